"""Arithmetic and memory traffic of the launches of a sum, counted from its points, cells and parameters.

`engine.operations` counts the operations of one turn of a loop from the kernel's own text, `loop_counts` the turns of
loops, and the models of `perfmodels` assign the traffic to levels of memory.  A fused multiplication and addition is
two operations; additions, multiplications, divisions and each mathematical function are one; comparisons and integer
arithmetic are none.

p2p
    Each pair of a target and a source that the kernel tests takes its squared distance; pairs within rc take the rest.
    Tested pairs are counted from the batches of targets and the cells that they reach: from all batches up to 2048,
    else from 2048 at even distances, scaled up.  Pairs within rc are estimated by the volume of a sphere of radius rc
    over that of the cells that a batch reaches; sources within rc of at least one target by the volume of their
    positions, from random points around some batches.
p2g, g2p
    Additions at each of a point's P³ taps, with the products that rows of taps share, and the polynomials of its
    window, as often as the variant computes them.
fft, ifft
    5 n log2 n for a line of n complex numbers, and each component: all lines along x, each for two real lines; in each
    plane of modes the lines along z that the grid has, and the columns along y that reach its circle of modes.
    Complex transforms include the planes of negative kx.
cnv
    All modes of a plane, including those that are dropped.

Traffic, in bytes (`mop`): p2p and cnv read their input and write their result once, as with an unlimited cache; so do
fft and ifft, separately for the lines along x and for the planes, a plane at kx from the grid's lines at kx and −kx.
p2g and g2p read their points once and access the grid for every tap, as without a cache; p2g reads and writes it (GRID,
which has its sums in registers, reads the source for every tap and writes each grid point once).  These are the models
m∞ and m0 of Kosmacher et al. (2026), section 5.  `counts` has the traffic of every level, and steps that are not in the
paper: setting the grid to zero, and folding and filling its margins.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from parki import engine
from parki.arrays import Array, module_of, to_host
from parki.cells import PER_BATCH, CellGrid, SortedCells
from parki.engine import Space, Totals, kernel_constant
from parki.ewald.choice import variants
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.variants import Variants
from parki.ewald.stages import far, loop_counts, multipliers, near, planes, spread
from parki.ewald.stages.loop_counts import Runs, Trips
from parki.ewald.stages.mesh import Mesh
from parki.perfmodels.counts import convolve, fft, g2p, p2g, p2p
from parki.perfmodels.counts.p2g import Spreading
from parki.perfmodels.counts.p2p import Near
from parki.perfmodels.counts.totals import Counts
from parki.perfmodels.select import Domain

SAMPLE = 2048  # batches, at most, that are counted
DRAWN, PLACES = 128, 256  # batches drawn to represent all, and random places around each
COLUMNS = 512  # columns of cells drawn for the sizes of batches
WARP = 32  # lanes of a GPU that share one load of a number


@dataclass(frozen=True)
class Work:
    """Operations (`flop`) and bytes (`mop`) by phase.

    Attributes
    ----------
    flop, mop : dict
        By ``"p2p"``, ``"p2g"``, ``"fft"``, ``"cnv"``, ``"ifft"``, ``"g2p"``.
    pairs : int
        Pairs of a target and a source that P2P tests.
    values : int
        Real input values of one forward transform of all components.
    counts : dict
        Counts of the same phases for the models: operations by class, bytes by level of memory.
    """

    flop: dict[str, int]
    mop: dict[str, int]
    pairs: int
    values: int
    counts: dict[str, Counts] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchSample:
    """Batches of targets that represent all.

    Attributes
    ----------
    size : array (batches,)
        Targets of each batch.
    bound : array (batches, 6)
        Lowest x, y, z and highest x, y, z of each batch.
    points : array (some, size, 3)
        Targets of some of the batches.
    scale : float
        All targets over those of the batches.
    """

    size: Array
    bound: Array
    points: Array
    scale: float


def count(p: Parameters, v: Variants, targets: SortedCells, sources: SortedCells, real: bool = True) -> Work:
    """Count the work of one sum, with real transforms or with complex ones of the real grids."""
    runs = Runs(0.0)
    if v.p2g == "HYBRID":
        batch, bound = (to_host(a) for a in sources.batches(spread.RUN))
        extent = (bound[:, 3:] - bound[:, :3]).mean(axis=0, dtype=float) / p.h
        runs = Runs(len(batch), tuple(float(x) for x in extent))
    return _work(p, v, meets(p, v, targets, sources), runs, sources.grid, targets.space.kind, real)


def modelled(
    p: Parameters, v: Variants, n_targets: int, n_sources: int, kind: str = "host", real: bool = True,
    crowding: tuple[float, ...] = (),
) -> Work:  # fmt: skip
    """Count the work of a sum over hypothetical uniform points, on a ``"host"`` or a ``"device"``.

    Points with a `crowding` (`Arrangement.crowding`) are taken to fill a part of the box evenly.
    """
    denser = float(Domain(p.box, crowding=crowding).denser(p.rc))
    per_batch = PER_BATCH if kind == "host" else v.targets
    grid = CellGrid.for_points(p.box, n_sources, p.rc, per_batch, [axis < p.periodicity for axis in range(3)])
    size, points = _uniform(p, grid, denser * n_targets, v.targets)
    sources_of_cell = denser * n_sources / math.prod(p.box) * math.prod(grid.widths)
    inside = [np.clip(side / w - np.arange(n), 0.0, 1.0)
              for side, w, n in zip(p.box, grid.widths, grid.shape, strict=True)]  # fmt: skip
    total = np.concatenate([[0.0], np.cumsum(inside[2])])

    def sources_below(x: Array, y: Array, d: Array) -> Array:
        n = grid.shape[2]
        return sources_of_cell * inside[0][x] * inside[1][y] * (d // n * total[-1] + total[d % n])

    sample = BatchSample(size, _bounds(points), points, n_targets / float(size.sum()))
    near_sums = _met(p, sample, grid, sources_below, n_targets, n_sources)
    size, points = _uniform(p, grid, denser * n_sources, spread.RUN)
    bound = _bounds(points)
    extent = (bound[:, 3:] - bound[:, :3]).mean(axis=0) / p.h
    runs = Runs(n_sources / float(size.mean()), tuple(float(x) for x in extent))
    return _work(p, v, near_sums, runs, grid, kind, real)


def _work(p: Parameters, v: Variants, near: Near, runs: Runs, grid: CellGrid, kind: str, real: bool) -> Work:
    """Count all phases, from the pairs that batches meet."""
    spread, result, fields = p.kernel.spread, p.kernel.result, p.kernel.fields
    mesh, classes = Mesh(p, multipliers.period(p)), multipliers.planes(p, not real)
    points, extent_points = math.prod(mesh.box), math.prod(mesh.extent)
    modes = sum(len(c.modes) * c.rows * c.length for c in classes)
    transforms = transform_lines(p, mesh, classes)
    lines = sum(len(c.modes) for c in classes) * mesh.box[1] * mesh.box[2]
    row, (size, far_size) = 3 + p.kernel.strengths, p.itemsizes
    wide = size // far_size  # numbers of the far field with the bytes of one coordinate
    source, target = row * near.n_sources, (3 + result) * near.n_targets
    taps = near.n_sources * p.P**3
    mop = {
        "p2p": wide * (source + target),
        "p2g": wide * row * taps + spread * extent_points if v.p2g == "GRID" else wide * source + 2 * spread * taps,
        "fft": spread * (2 * points + 2 * lines + 2 * modes),
        "cnv": (spread + fields) * 2 * modes,
        "ifft": fields * (2 * points + (2 if real else 1) * lines + 2 * modes),
        "g2p": (3 * wide + result) * near.n_targets + fields * near.n_targets * p.P**3,
    }
    mop = {name: far_size * n for name, n in mop.items()}
    widths = tuple(w / h for w, h in zip(grid.widths, p.h, strict=True))
    spreading = Spreading(near.n_sources, wide * row, spread, p.P, extent_points, widths, far_size)
    gathering = Spreading(near.n_targets, 3 * wide + result, fields, p.P, extent_points, widths, far_size)
    in_far = replace(v, lanes=wide * v.lanes) if kind == "host" else v
    length = modes / max(sum(len(c.modes) * c.rows for c in classes), 1)
    margins = Counts(
        {}, dict.fromkeys(("l1", "l2", "dram"), 2.0 * far_size * fields * (extent_points - points)), launches=2
    )
    phases = {
        "p2p": _near(p, v, near, kind),
        "p2g": _spread(p, in_far, spreading, grid, mesh, runs, kind) + _folded(spreading, p.periodicity > 0),
        "fft": fft.counts(transforms, mop["fft"] / spread, spread, 1 + 2 * len(classes)),
        "cnv": _convolve(p, modes, length, len(classes), kind, real),
        "ifft": fft.counts(transforms, mop["ifft"] / fields, fields, 1 + 2 * len(classes)) + margins,
        "g2p": _gather(p, in_far, gathering, grid, kind),
    }
    flop = {name: round(counts.flops) for name, counts in phases.items()}
    return Work(flop, mop, round(near.looked_at), spread * points, phases)


def _text(unit: engine.Workunit, t: Trips, lanes: int, kind: str) -> Totals:
    """Count the operations of all teams.

    Each thread of a GPU computes for itself; a warp loads one number once.  Loops and branches of a user's own
    functions are counted once.
    """
    tree = engine.operations(unit)
    totals = tree.total(t.of, lanes if kind == "host" else 1, otherwise=1.0)
    if kind != "host":
        shared = tree.total(t.of, WARP, otherwise=1.0)
        totals = replace(totals, loads=shared.loads, stores=shared.stores)
    return totals.scaled(t.teams)


def _near(p: Parameters, v: Variants, n: Near, kind: str) -> Counts:
    unit, row, result = near.near_kernel(p, v, 1, p.skew is not None), 3 + p.kernel.strengths, p.kernel.result
    useful, lane_totals = (
        _text(unit, loop_counts.near(v.p2p, n, row, result, v.targets, v.lanes, all_lanes), v.lanes, kind)
        for all_lanes in (False, True)
    )
    return p2p.counts(useful, lane_totals, n, row, result, p.itemsizes[0], kind != "host")


def _spread(p: Parameters, v: Variants, s: Spreading, grid: CellGrid, mesh: Mesh, runs: Runs, kind: str) -> Counts:
    if v.p2g == "TILE":
        return _tiles(p, v, s, grid, mesh, kind)
    turns = loop_counts.spread(v.p2g, s, grid, mesh.extent, runs)
    text = _text(spread.spread_kernel(p, v), turns, v.lanes, kind)
    fill, launches = 1.0, 1
    if v.p2g == "BLOCK":
        fill, launches = p2g.filled(s.P, _lanes(v, kind, v.p2g_threads), kind == "host"), 8  # colours
    elif v.p2g == "HYBRID":
        fill = p2g.reached(s.P, v.lanes if kind == "host" else WARP, *(e + p.P for e in runs.extent[:2]))
    return p2g.counts(v.p2g, text, s, kind != "host", fill, launches)


def _tiles(p: Parameters, v: Variants, s: Spreading, grid: CellGrid, mesh: Mesh, kind: str) -> Counts:
    """Count spreading by tiles, where all lanes of a warp add a source if any of them has a row in its window.

    Threads of a warp that read the same number of a plane or a line of scratch read it once.
    """
    tile, unit, layers = spread.tile_of(p, v), spread.spread_kernel(p, v), 1 + p.kernel.slopes
    turns = loop_counts.tiles(s, grid, mesh.extent, tile, layers)
    text, rest = (_text(unit, t, v.lanes, kind) for t in (turns, replace(turns, of={**turns.of, "in_window": 0.0})))
    line, rows, along_z = tile["LINE"], tile["YT"], layers * tile["TZ"] * turns.of["z_in_window"]
    share = 1.0 if kind == "host" else turns.of["in_window"]  # of the lanes, in rows
    fill = text.flops / (rest.flops + (text.flops - rest.flops) / share)

    def in_lanes(total: Mapping[str, float], remainder: Mapping[str, float], **parts: float) -> dict[str, float]:
        """Return numbers that are those of all lanes when divided by `fill`."""
        return {
            name: fill * (remainder.get(name, 0.0) + parts.get(name, 1.0) * (n - remainder.get(name, 0.0)) / share)
            for name, n in total.items()
        }

    if kind != "host":
        win = (along_z + layers * rows * line) / (along_z + layers * rows * WARP)
        loads = in_lanes(text.loads, rest.loads, planes=1 / line, win=win)
        operations, stores = in_lanes(text.operations, rest.operations), in_lanes(text.stores, rest.stores)
        text = replace(text, operations=operations, loads=loads, stores=stores)
    candidates = turns.teams * math.prod(turns.of[name] for name in ("first_column", "list_number", "candidate"))
    return p2g.counts(v.p2g, text, s, kind != "host", fill, looked_at=candidates)


def _lanes(v: Variants, kind: str, threads: int) -> int:
    """Return the number of lanes that share the points of a window."""
    return v.lanes if kind == "host" else variants.lane_rows(threads)[1]


def _folded(s: Spreading, folds: bool) -> Counts:
    """Count the traffic of setting the grid to zero, and of reading and writing it to fold its margins."""
    return Counts({}, dict.fromkeys(("l1", "l2", "dram"), (1.0 + 2.0 * folds) * s.grid), launches=1 + folds)


def _gather(p: Parameters, v: Variants, s: Spreading, grid: CellGrid, kind: str) -> Counts:
    batch = far.HOST_BATCH if kind == "host" else variants.lane_rows(v.g2p_threads)[0]
    unit = far.gather_kernel(p, v, Space("OpenMP" if kind == "host" else "Cuda"))
    tile = far.tile_of(p, v) if v.g2p == "TILE" else None
    text = _text(unit, loop_counts.gather(v.g2p, s, grid, p.kernel, batch, tile), v.lanes, kind)
    tiles = tile and g2p.Tiles(tile.sides, tile.extent, tile.fill, tile.wide(s.itemsize))
    return g2p.counts(v.g2p, text, s, kind != "host", _lanes(v, kind, v.g2p_threads), tiles=tiles)


def _convolve(p: Parameters, modes: int, length: float, launches: int, kind: str, real: bool) -> Counts:
    trips = loop_counts.modes(length, modes / max(length, 1.0), p.skew is not None)
    text = _text(planes.convolve_kernel(p), trips, 1, kind)
    return convolve.counts(text, modes, p.kernel.spread, p.kernel.fields, p.itemsizes[1], launches, kind != "host")


def transform_lines(p: Parameters, mesh: Mesh, classes: list[multipliers.Planes]) -> dict[int, float]:
    """Count the complex lines of one component in one direction of the transform, by their length."""
    n0, n1, n2 = mesh.box
    lines = {n0: n1 * n2 / 2}
    for c in classes:
        for mode in c.modes:
            columns = sum(len(range(c.length)[part]) for part in planes.columns(p, c, (mode,)))
            for n, number in ((c.length, n1), (c.rows, columns)):
                lines[n] = lines.get(n, 0.0) + number
    return lines


# Cells and sources that batches meet ----------------------------------------------------------------------------------
def pairs(p: Parameters, v: Variants, targets: SortedCells, sources: SortedCells) -> tuple[int, int]:
    """Count the pairs that P2P tests, up to rounding, and estimate the pairs within rc: see the module."""
    near_sums = meets(p, v, targets, sources)
    return round(near_sums.looked_at), round(near_sums.within)


def meets(p: Parameters, v: Variants, targets: SortedCells, sources: SortedCells) -> Near:
    """Count the cells, sources and pairs that the batches of targets meet: see the module."""
    batch, bound = targets.batches(v.targets)
    number = len(batch)
    step = -(-number // SAMPLE) or 1
    batch, bound = to_host(batch)[::step].astype(np.int64), to_host(bound)[::step].astype(float)
    size = batch[:, 1] - batch[:, 0]
    begin = to_host(sources.begin).astype(np.int64)
    _, n1, n2 = sources.grid.shape

    def sources_below(x: Array, y: Array, d: Array) -> Array:
        row = (x * n1 + y) * n2
        return d // n2 * (begin[row + n2] - begin[row]) + begin[row + d % n2] - begin[row]

    stride = slice(None, None, -(-len(batch) // DRAWN) or 1)
    indices = np.minimum(batch[stride, :1] + np.arange(v.targets), batch[stride, 1:] - 1)
    selection = module_of(targets.points).asarray(indices.ravel())
    points = to_host(targets.points[:, selection]).T.astype(float).reshape(*indices.shape, 3)
    sample = BatchSample(size, bound, points, targets.n / max(int(size.sum()), 1))
    return _met(p, sample, sources.grid, sources_below, targets.n, sources.n)


def _met(
    p: Parameters, sample: BatchSample, grid: CellGrid, sources_below: Callable, n_targets: int, n_sources: int
) -> Near:
    """Sum the sources and cells that a sample of batches meets, scaled to all batches."""
    size, bound, points = sample.size, sample.bound, sample.points
    rows, columns, runs, tiles, cells, sources = _reached(p.rc, bound, grid, sources_below)
    ball, volume = 4 / 3 * math.pi * p.rc**3, math.prod(grid.widths) * np.maximum(cells, 1)
    bounds, boxes = _bounds(points), _around(p.rc, bound)
    near_volume = boxes * (_near_one(p.rc, points, bounds) / _around(p.rc, bounds).sum() if len(bounds) else 1.0)
    ball_share, list_share, box_share = (np.minimum(part / volume, 1.0) for part in (ball, near_volume, boxes))
    sums = [len(bound), *(counts.sum() for counts in (rows, columns, runs, tiles, sources)), sources @ list_share]
    pairs = size @ sources, (size * sources) @ ball_share
    return Near(n_targets, n_sources, *(sample.scale * float(x) for x in (*sums, *pairs, sources @ box_share)))


def _bounds(points: Array) -> Array:
    """Return lowest x, y, z and highest x, y, z of batches of points (batches, size, 3)."""
    return np.concatenate([points.min(axis=1), points.max(axis=1)], axis=1)


def _around(rc: float, bound: Array) -> Array:
    """Return the volume within rc of each box (Steiner's formula)."""
    x, y, z = (bound[:, 3:] - bound[:, :3]).T
    return x * y * z + 2 * rc * (x * y + y * z + z * x) + math.pi * rc**2 * (x + y + z) + 4 / 3 * math.pi * rc**3


def _near_one(rc: float, points: Array, bound: Array) -> float:
    """Estimate the volume within rc of at least one point of a batch, summed over batches, from random places."""
    low, wide = bound[:, None, :3] - rc, (bound[:, 3:] - bound[:, :3] + 2 * rc)[:, None]
    places = low + wide * np.random.default_rng(0).random((len(points), PLACES, 3))
    offsets = places[:, :, None] - points[:, None]
    hit = (np.einsum("bijk,bijk->bij", offsets, offsets) < rc**2).any(axis=2)
    return float(hit.mean(axis=1) @ wide[:, 0].prod(axis=1))


def _reached(rc: float, bound: Array, grid: CellGrid, sources_below: Callable) -> tuple[Array, ...]:
    """Count for each batch columns, columns within reach, runs, SM tiles, cells with images, and sources.

    ``sources_below(x, y, d)`` is the number of sources of a column below cell d, from its lowest cell in the box.
    """
    n0, n1, n2 = grid.shape
    first, left, ends = [], np.full((len(bound), 1, 1), rc**2), []
    for axis in (0, 1):
        lo, hi, h = bound[:, axis], bound[:, 3 + axis], grid.widths[axis]
        low, high = np.floor((lo - rc) / h).astype(int), np.floor((hi + rc) / h).astype(int)
        slab = low[:, None] + np.arange((high - low).max(initial=0) + 1)
        gap = np.maximum(0.0, np.maximum(slab * h - hi[:, None], lo[:, None] - (slab + 1) * h))
        slab, gap = (x[:, :, None] if axis == 0 else x[:, None] for x in (slab, gap))
        first.append(slab)
        ends.append(high - low + 1)
        left = left - gap**2
    reach = np.sqrt(np.maximum(left, 0.0))  # 0 for slabs beyond the last
    lo, hi, h = bound[:, 2, None, None], bound[:, 5, None, None], grid.widths[2]
    low, end = np.floor((lo - reach) / h).astype(int), np.floor((hi + reach) / h).astype(int) + 1
    x, y, hit = first[0] % n0, first[1] % n1, left > 0.0
    sources = np.where(hit, sources_below(x, y, end) - sources_below(x, y, low), 0)
    runs = np.where(hit, (end - 1) // n2 - low // n2 + 1, 0)
    tiles = np.ceil(sources / kernel_constant("p2p", "TILE")) + np.where(sources > 0, runs - 1, 0)
    cells = np.where(hit, end - low, 0)
    sums = (a.sum(axis=(1, 2)) for a in (hit, runs, tiles, cells, sources))
    return ends[0] * ends[1], *sums


def _uniform(p: Parameters, grid: CellGrid, n: float, size: int) -> tuple[Array, Array]:
    """Draw some runs of at most `size` of n uniform points; return their sizes and points (runs, size, 3)."""
    (w0, w1, _), box, rng = grid.widths, np.array(p.box), np.random.default_rng(0)
    column_mean = n / math.prod(round(side / w) for side, w in zip(p.box[:2], (w0, w1), strict=True))
    numbers = rng.poisson(column_mean / grid.cuts, COLUMNS)
    last = numbers[numbers % size > 0] % size
    sizes = np.concatenate([last, np.full((numbers // size).sum(), size)]) if numbers.any() else np.ones(1, int)
    sizes = sizes[np.linspace(0, len(sizes) - 1, DRAWN).round().astype(int)]
    length = box[2] * np.minimum((sizes + 1) / max(column_mean, 1e-9), 1.0)  # size - 1 mean distances between the ends
    wide = np.stack([np.full(DRAWN, w0), np.full(DRAWN, w1), length], axis=1)
    columns = np.floor(rng.random((DRAWN, 2)) * box[:2] / wide[:, :2]) * wide[:, :2]
    low = np.concatenate([columns, rng.random((DRAWN, 1)) * (box[2] - length[:, None])], axis=1)
    points = low[:, None] + wide[:, None] * rng.random((DRAWN, size, 3))
    return sizes, np.where((np.arange(size) < sizes[:, None])[..., None], points, points[:, :1])
