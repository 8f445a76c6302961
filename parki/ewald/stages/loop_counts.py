"""Average turns of the kernels' loops, an input of `engine.operations`, by the names of the loops in `kernels/`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from parki.cells import CellGrid
from parki.engine import kernel_constant
from parki.ewald.choice.gather_tiles import PIECE, SPREAD, Tile
from parki.ewald.kernel import Kernel
from parki.ewald.stages.spread import blocks
from parki.perfmodels.counts.p2g import Spreading, met
from parki.perfmodels.counts.p2p import Near

CHOICES = {"overlap": 1.0}  # of pair functions between formulas: some lanes take each


@dataclass(frozen=True)
class Trips:
    """Number of teams, or of turns of a range, and the average turns of each loop in one of them."""

    teams: float
    of: Mapping[str, float]


@dataclass(frozen=True)
class Runs:
    """Runs of neighbouring sources: their number, and their average extent in grid points."""

    count: float
    extent: tuple[float, float, float] = (0.0, 0.0, 0.0)


def near(variant: str, n: Near, row: int, sums: int, targets: int, lanes: int, all_lanes: bool = False) -> Trips:
    """Count the loops of the near field, for batches of `targets` with `lanes` for each target.

    A source has `row` numbers, a target `sums`.  With `all_lanes` all lanes count of a vector in which any has a
    target, or a pair within rc.
    """
    size = n.n_targets / _least(n.batches)
    if variant == "LIST":
        return _listed(n, targets, all_lanes)
    if variant == "LIST-2D":
        return _listed_by_lanes(n, lanes, all_lanes)
    flat = variant.endswith("2D")
    n_sources = n.met if all_lanes else n.looked_at / _least(size)
    if all_lanes and not flat:
        size = float(targets)
    share = _share(n.listed, n.met) if all_lanes else _share(n.within, n.looked_at)
    turns = CHOICES | {"column": n.rows / _least(n.batches), "column_in_reach": _share(n.columns, n.rows)}
    turns |= {"p": _share(n.runs, n.columns), "in_reach": share, "t": size}
    pieces = n.tiles if variant.startswith("SM") else n.runs
    part = _share(n_sources, pieces)
    if flat:  # the last vector of a piece is half empty
        turns["first"] = 1.0
        part = (part + (lanes - 1) / 2 * (all_lanes and part > 0)) / lanes
    if variant.startswith("SM"):
        turns |= {"e": _share(n.tiles, n.runs), "j": part, "e:q": row * _share(n.met, n.tiles)}
        turns["first:q"] = size * sums * lanes
    else:
        turns["e"] = part
    return Trips(n.batches, turns)


def _listed(n: Near, targets: int, all_lanes: bool) -> Trips:
    """Count the loops of LIST: lanes are a batch's columns and their sources; its targets go over the list."""
    teams = _least(n.batches)
    images = max(_share(n.runs, n.columns), 1.0)
    lists = max(n.boxed / teams / kernel_constant("p2p_list", "CAP"), 1.0)
    size = float(targets) if all_lanes else n.n_targets / teams
    pairs = n.boxed / teams if all_lanes else _share(n.within, n.n_targets)
    turns = CHOICES | {"t": size, "p": images, "column": 1.0, "column:j": n.rows / teams, "k": 1.0}
    ratio = _share(n.runs, n.rows * images)
    turns |= {"image_in_reach": ratio, "has_sources": ratio, "final": 1.0, "first_run": lists / images}
    turns |= {"g": n.runs / teams / lists, "g:j": _share(n.met, n.runs)}
    turns |= {"near_box": _share(n.boxed, n.met), "in_reach": 1.0}
    turns["q"] = pairs / lists
    return Trips(n.batches, turns)


def _listed_by_lanes(n: Near, lanes: int, all_lanes: bool) -> Trips:
    """Count the loops of LIST-2D: lanes are images of columns, then the sources of a run, then those of a target."""
    names = ("RUNS", "CAP", "TESTS", "FULL", "ROOM")
    runs_fit, fit, tests, full, room = (kernel_constant("p2p_list_2d", name) for name in names)
    teams, targets = _least(n.batches), _least(n.n_targets)
    images = max(_share(n.runs, n.columns), 1.0)
    columns, runs, met = n.rows * images / teams, n.runs / teams, n.met / teams
    passes, lists = max(columns / runs_fit, 1.0), max(met / fit, 1.0)
    places = met / lists + (tests - 1) / 2 * (met > 0)  # of a list, whose last tests are filled up
    n_near = room**1.5 * n.within / targets / lists  # by the test in single precision
    pairs = n_near if not all_lanes else n_near + (lanes - 1) / 2 * (n_near > 0)
    # sums of a target's list: the last one, and one whenever the list is full, by more or less than a row of lanes
    n_sums = min(1.0 + max(n_near / (full + lanes / 2) - 0.5, 0.0), max(places / tests, 1.0))
    ratio = _share(n.runs, n.rows * images)
    turns = CHOICES | {"t": n.n_targets / teams, "first_run": passes, "thread:j": columns / passes}
    turns |= {"image_in_reach": ratio, "has_sources": ratio, "thread:g": runs / passes}
    turns |= {"final": 1.0, "q_first": lists / passes, "q_first:g": runs / passes, "g:j": _share(places, runs / passes)}
    turns |= {"is_source": _share(met / lists, places), "test": places / tests}
    turns |= {"may_be_near": _share(n_near, places), "is_full": _share(n_sums, max(places / tests, 1.0))}
    turns |= {"lane:q": pairs / lanes / n_sums, "in_reach": 1.0 if all_lanes else room**-1.5}
    return Trips(n.batches, turns)


def spread(variant: str, s: Spreading, cells: CellGrid, extent: tuple[int, int, int], runs: Runs) -> Trips:
    """Count the loops of spreading on a grid of `extent`, for sources in these cells; `runs` are those of HYBRID."""
    if variant in ("BASE", "SOURCE"):
        return Trips(s.n, {})
    if variant == "GRID":
        # a grid point tests the cells within P of it, and as many grid points test a source
        reach = [s.P + w for w in s.cells]
        n_cells = [min(r / w, float(n)) for r, w, n in zip(reach, s.cells, cells.shape, strict=True)]
        n_candidates = s.n * math.prod(min(r, e) for r, e in zip(reach, extent, strict=True))
        turns = {"z": float(extent[2]), "a": n_cells[0], "b": n_cells[1]}
        turns["e"] = n_candidates / (math.prod(extent) * n_cells[0] * n_cells[1])
        turns["in_window"] = _share(s.taps, n_candidates)
        return Trips(float(extent[0] * extent[1]), turns)
    if variant == "HYBRID":
        return _hybrid(s, runs)
    block_shape = blocks(cells.shape, s.cells, s.P, s.components)
    columns = cells.shape[0] * cells.shape[1] * block_shape[2]
    batches = columns * _pieces(s.n / columns, kernel_constant("p2g", "BATCH"))
    turns = {"cx": cells.shape[0] / block_shape[0], "cy": cells.shape[1] / block_shape[1], "batch": batches / columns}
    turns |= {"t": _share(s.n, batches), "is_vector": 3 / max(s.components, 3)}
    return Trips(float(math.prod(block_shape) * s.components), turns)


def _hybrid(s: Spreading, runs: Runs) -> Trips:
    """Count the loops of HYBRID: a run's grid points are a box, and each thread has ZT neighbours along z."""
    size, zt = s.n / _least(runs.count), kernel_constant("p2g_hybrid", "ZT")
    nx, ny, nz = (max(extent, 0.0) + s.P for extent in runs.extent)
    n_steps = max(nz / zt + (zt - 1) / (2 * zt), 1.0)  # average after rounding up
    meets = s.P**2 * (s.P + zt - 1) / zt  # items with points of one source's window
    zp = s.P + 2 * (zt - 1)
    share = 1 - max(0.0, 1 - min(1.0, s.P**3 / (nx * ny * nz))) ** size
    return Trips(
        runs.count,
        {
            "e_begin": 1.0,
            "t": size,
            "e_begin:q": size * zp,
            "in_plane": s.P / zp,
            "tap_along_z": s.P / zp,
            "r:q": nx * ny * n_steps,
            "in_window": min(1.0, meets / (nx * ny * n_steps)),
            "touched": share * nz / (n_steps * zt),
        },
    )


def tiles(
    s: Spreading, cells: CellGrid, extent: tuple[int, int, int], tile: Mapping[str, int], layers: int
) -> Trips:  # fmt: skip
    """Count the loops of spreading by TILE, for tiles of these slots and sources with `layers` windows.

    Candidates are the sources of all cells in reach; and members are sources whose windows touch the tile.
    """
    sides = [tile[name] for name in ("TX", "TY", "TZ")]
    n_tiles = math.prod(-(-e // side) for e, side in zip(extent, sides, strict=True))
    reach = [side + s.P - 1 for side in sides]
    spans = [min(r + w, float(e)) for r, w, e in zip(reach, s.cells, extent, strict=True)]
    columns = math.prod(min(span / w, float(n)) for span, w, n in zip(spans, s.cells, cells.shape[:2], strict=False))
    candidates = s.n * math.prod(span / side for span, side in zip(spans, sides, strict=True)) / n_tiles
    members = s.n * math.prod(r / side for r, side in zip(reach, sides, strict=True)) / n_tiles
    first_columns = max(columns / kernel_constant("p2g_tile", "COLUMNS"), 1.0)
    lists = _pieces(candidates / first_columns, kernel_constant("p2g_tile", "CANDIDATES"))
    batches = _pieces(_share(members, first_columns * lists), tile["CAP"])
    size = _share(members, first_columns * lists * batches)
    lanes, part = (kernel_constant("p2g_tile", name) for name in ("LANES", "ZS"))
    row_sides = (lanes // tile["LINE"], tile["LINE"] * tile["YT"])  # grid points of a row of lanes
    near = (
        math.prod((s.P + n - 1) / n for n in row_sides) * (s.P + sides[2] - 1) / sides[2]
    )  # rows of lanes of a source
    rows = sides[0] * sides[1] / tile["YT"] / lanes
    return Trips(
        float(n_tiles),
        {
            "first_column": first_columns,
            "g": columns / first_columns,
            "final": 1.0,
            "list_number": lists,
            "candidate": _share(candidates, first_columns * lists),
            "high": math.log2(max(columns / first_columns, 1.0)),
            "touches": _share(members, candidates),
            "batch": batches,
            "part": 4 * size,
            "along_an_axis": 3 / 4,
            "along_y_axis": 1 / 3,
            "along_z_axis": 1 / 3,
            "value": size * (sides[1] + sides[2]) * layers,
            "item": size * s.P,
            "y_in_tile": sides[1] / reach[1],
            "z_in_tile": sides[2] / reach[2],
            "t": size,
            "in_reach": _share(s.n * near, n_tiles * members * rows),
            "q": size * _share(s.n * near, n_tiles * members * rows),
            "in_window": met(s.P, lanes, tile["LINE"], tile["YT"]),
            "z_in_window": (s.P + part - 1) / (s.P + sides[2] - 1),
            "in_grid": math.prod(extent[1:])
            / math.prod(-(-e // n) * n for e, n in zip(extent[1:], sides[1:], strict=True)),
            "is_inside": extent[0] / (-(-extent[0] // sides[0]) * sides[0]),
        },
    )


def gather(
    variant: str, s: Spreading, cells: CellGrid, kernel: Kernel, batch: int, tile: Tile | None = None
) -> Trips:  # fmt: skip
    """Count the loops of interpolation for one right-hand side, with at most `batch` targets of cells per team."""
    if variant == "BASE":
        return Trips(s.n, {})
    if variant == "TILE" and tile is not None:
        return _tiled(s, cells, kernel, tile)
    pieces = cells.shape[0] * cells.shape[1] * cells.cuts
    teams = pieces * _pieces(s.n / pieces, batch)
    parts = kernel.result // kernel.fields
    slopes = 3.0 if kernel.gather == "both" else float(parts == 3)
    turns = {"t": _share(s.n, teams), "c": float(kernel.fields), "c:q": float(parts)}
    return Trips(teams, turns | {"is_slope": slopes / parts})


def _tiled(s: Spreading, cells: CellGrid, kernel: Kernel, tile: Tile) -> Trips:
    """Count the loops of TILE: a team tests the targets of the cells in reach of its tile."""
    teams = s.touched / math.prod(tile.sides)
    targets, reach = s.n / teams, [side / w for side, w in zip(tile.sides, s.cells, strict=True)]
    columns = [min(1 + r, float(n)) for r, n in zip(reach[:2], cells.shape, strict=False)]
    tests = targets * math.prod(1 + 1 / r for r in reach)
    pieces = max(1.0, _pieces(tests / math.prod(columns), PIECE))
    batches = min(1.0, targets) if targets <= tile.capacity / SPREAD else _pieces(targets, tile.capacity)
    turns = {"a": columns[0], "b": columns[1], "e": pieces, "j": tests / math.prod(columns) / pieces}
    turns |= {"in_tile": targets / tests, "final": 1.0, "batch": batches / math.prod(columns) / pieces}
    turns |= {"t": targets / batches, "c": float(kernel.fields)}
    loads, along_x = kernel_constant("g2p_tile", "LOADS"), tile.sides[0] + s.P - 1
    turns["in_copy"] = along_x / (-(-along_x // loads) * loads)  # the last piece of a copy is filled up
    longest = max(tile.taps[1:])
    turns |= {"in_window": tile.P / longest, "along_y": tile.taps[1] / longest, "along_z": tile.taps[2] / longest}
    slopes = 3.0 if kernel.gather == "both" else float(tile.parts == 3)
    return Trips(teams, turns | {"result": targets / batches * tile.parts, "is_slope": slopes / tile.parts})


def modes(length: float, rows: float, skew: bool = False) -> Trips:
    """Count the loops of the convolution over rows of modes; negative modes are separate, except in a skew cell."""
    low = length if skew else length // 2 + 1
    return Trips(rows, {"has_plane": 1.0, "j": low, "i": length - low, "is_constant": 0.0})


def _pieces(n: float, size: int) -> float:
    """Return the average number of pieces of at most `size` items for about n items."""
    return n / size + 0.5 * min(1.0, n) if n * 2 > size else min(1.0, n)


def _share(a: float, b: float) -> float:
    return a / b if b else 0.0


def _least(n: float) -> float:
    return n or 1.0
