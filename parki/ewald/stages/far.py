"""Far field of an Ewald sum: spread, transform, multiply, transform back, interpolate (G2P)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from parki import engine, fft
from parki.arrays import Array
from parki.cells import SortedCellHandles
from parki.engine import Space, workers
from parki.engine.steps import Block, Blocks, Call, Context, Handle, Step, constant, share, state
from parki.ewald.choice.gather_tiles import Tile
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.variants import Variants, lane_rows
from parki.ewald.split import window
from parki.ewald.stages import multipliers, own_field, planes
from parki.ewald.stages.brick import Exchanges, Share
from parki.ewald.stages.mesh import Mesh
from parki.ewald.stages.planes import Transforms
from parki.ewald.stages.spread import spread, window_slots

SLABS = 2  # slabs of rows per worker in transforms along x, so that a slow worker may leave one to others
ALONG_X, ALONG_Y = 1, 2  # axes of a grid, whose first is that of components
HOST_BATCH = 16  # targets per team of G2P on a host: their windows fit in the first-level cache


@dataclass(frozen=True)
class FarPoints:
    """Arrays that the far field reads and writes.

    Attributes
    ----------
    sources, targets : SortedCellHandles
        Points in the order of their cells; in a triclinic cell the sources are in lattice coordinates.
    rows : Handle (Ns, numbers)
        Sources (x, y, z, strengths): see `parki.ewald.stages.spread.spread`.
    gather : Handle (3, Nt)
        Points of G2P: sorted like the targets, or for BASE in the caller's order.
    own : tuple of Handle, optional
        If targets are the sources, the caller's indices of `gather`, and the strengths (rhs, numbers, Ns).
    noise : Handle (C, …), optional
        White noise on the grid's points, which stands in for the spread sources.
    """

    sources: SortedCellHandles
    targets: SortedCellHandles
    rows: Handle
    gather: Handle
    own: tuple[Handle, Handle] | None = None
    noise: Handle | None = None


@dataclass(frozen=True)
class FarField:
    """Steps of the far field.

    Attributes
    ----------
    mesh : Mesh
    grid : Handle (C, …)
        Spread strengths, their transform along x, and the result.
    result : Handle (rhs C, Nt)
        Result in the order of `FarPoints.gather`.
    lines : Handle (lines, 7) or None
        Sums over lines of modes, for a kernel with its virial: see `kernels/virial.py`.
    transforms : Transforms
    steps : list
    """

    mesh: Mesh
    grid: Handle
    result: Handle
    lines: Handle | None
    transforms: Transforms
    steps: list[Step | Call | Blocks]


def field(
    p: Parameters, points: FarPoints, v: Variants, space: Space, library: str | None = None, with_images: bool = False,
    rhs: int = 1, part: Share | None = None,
) -> FarField:  # fmt: skip
    """Return the far field of `rhs` right-hand sides, transformed by a library; `with_images` transforms all modes.

    With `part`, a rank's share, the steps exchange margins and lines with other ranks.
    """
    brick, exchanges = (part.brick, part.others) if part else (None, None)
    mesh = Mesh(p, multipliers.period(p), brick)
    grid = mesh.grid(p, rhs * p.kernel.components, space)
    name = fft.choose(library, space.own_memory)
    concurrency = fft.BACKENDS[name].several and space.engine == "parki"  # PyKokkos launches from one thread
    size, threads = share(workers(space), grid.nbytes) if concurrency else (1, workers(space))
    transforms = Transforms(name, space.own_memory, concurrency, size, threads)
    spread_part, result_part = grid[: rhs * p.kernel.spread], grid[: rhs * p.kernel.fields]
    box = mesh.transformed(grid)
    along_x = partial(_lines, ALONG_X, transforms)
    last = planes.last_mode(p, mesh, with_images)
    lines = planes.virial_lines(p, with_images) if p.kernel.virial else None
    plane_steps = partial(planes.blocks, p, transforms=transforms, with_images=with_images, rhs=rhs, virial=lines)
    result = state("far field", (rhs * p.kernel.result, points.gather.shape[1]), p.far, zero=False)
    steps = [
        *mesh.emptied(grid, spread_part, v.p2g == "TILE" and points.noise is None),
        *_filled(p, mesh, spread_part, points, v, rhs),
        *(exchanges.fold(spread_part) if exchanges else []),
        along_x("fft", box[: len(spread_part)], _forward),
        *_between(p, mesh, box, rhs, exchanges, plane_steps, (transforms, last)),
        along_x("ifft", box[: len(result_part)], partial(_backward, last)),
        *(exchanges.fill(result_part) if exchanges else []),
        *mesh.wrap(p, result_part),
        interpolation(p, mesh.touched(result_part), result, points, v, space, rhs),
        *_own_fields(p, points, result, rhs),
    ]
    return FarField(mesh, grid, result, lines, transforms, steps)


def nothing(p: Parameters, points: FarPoints, rhs: int) -> FarField:
    """Return a far field of zeros, without steps."""
    mesh, empty = Mesh(p, multipliers.period(p)), state("no grid", (0,), p.far)
    result = state("far field", (rhs * p.kernel.result, points.gather.shape[1]), p.far)
    return FarField(mesh, empty, result, None, Transforms(fft.choose(None, False), False, False, 1, 1), [])


def _filled(p: Parameters, mesh: Mesh, grid: Handle, points: FarPoints, v: Variants, rhs: int) -> list[Step | Call]:
    """Return the steps that spread the sources, or take noise, to an empty grid."""
    if points.noise is None:
        return [*spread(p, mesh.touched(grid), points.sources, points.rows, v, rhs), *mesh.fold(p, grid)]
    box = mesh.transformed(grid)[:, :, :, : points.noise.shape[3]]
    return [Call("p2g.kernel", _copy, [points.noise], [box], lane="far")]


def _copy(context: Context, noise: Array, box: Array) -> None:
    box[...] = noise


def _between(
    p: Parameters, mesh: Mesh, box: Handle, rhs: int, exchanges: Exchanges | None, plane_steps: Callable[..., Blocks],
    along_y: tuple[Transforms, int],
) -> list[Step | Call | Blocks]:  # fmt: skip
    """Return the steps on planes of the grid, or of lines that come from all bricks and go back to them.

    Slabs also transform the kept modes along y, and exchange lines along z.
    """
    if exchanges is None:
        return [plane_steps(points=mesh.box, grid=box)]
    spread_box, result_box, lines, line_steps = box[: rhs * p.kernel.spread], box[: rhs * p.kernel.fields], None, []
    transforms, last = along_y
    ranges = [slice(0, last + 1), slice(mesh.box[0] - last, None)][: 1 + (last > 0)] if exchanges.single else []
    if exchanges.modes.classes:
        lines, points = exchanges.planes(len(box), p.far)
        line_steps = [plane_steps(points=points, grid=lines, modes=exchanges.modes)]
    steps = [
        *exchanges.there(spread_box, None if lines is None else lines[: len(spread_box)]),
        *line_steps,
        *(mesh.clear(result_box[:, rows], "ifft") for rows in ranges),
        *exchanges.back(None if lines is None else lines[: len(result_box)], result_box),
    ]
    forward = [_lines(ALONG_Y, transforms, "fft", spread_box[:, rows], _forward) for rows in ranges]
    backward = [_lines(ALONG_Y, transforms, "ifft", result_box[:, rows], _inverse) for rows in ranges]
    return [*forward, *steps, *backward]


def gather_kernel(p: Parameters, v: Variants, space: Space, rhs: int = 1) -> engine.Workunit:
    """Return the workunit of G2P."""
    gather = p.kernel.gather
    slots = {"NC": p.kernel.fields, "VALUE": gather != "slopes", "SLOPES": gather != "values", "RHS": rhs}
    slots |= {"SKEW": p.skew is not None and gather != "values", **window_slots(p)}
    if v.g2p == "BASE":
        return engine.kernel("g2p", "g2p_base", **slots)
    if v.g2p == "TILE":
        del slots["RHS"]
        return engine.kernel("g2p_tile", "g2p_tile", **slots, **tile_of(p, v).slots())
    return engine.kernel("g2p", "g2p_target", BATCH=_batch(v, space), **slots)


def _batch(v: Variants, space: Space) -> int:
    """Return the number of targets of a team."""
    return space.pick(HOST_BATCH, lane_rows(v.g2p_threads)[0])


def tile_of(p: Parameters, v: Variants) -> Tile:
    """Return the tile of TILE.

    Raises
    ------
    ValueError
        If no tile fits in scratch.
    """
    tile = v.tile(p)
    if tile is None:
        raise ValueError(f"g2p_method is 'TILE', and a window of {p.P} points is too wide; expected 'TARGET'.")
    return tile


def interpolation(
    p: Parameters, grid: Handle, result: Handle, points: FarPoints, v: Variants, space: Space, rhs: int
) -> Step:
    """Return the step that interpolates the grid at targets.

    TARGET stands in for TILE where the targets' cells are not in the grid's coordinates.
    """
    if v.g2p == "TILE" and points.gather is not points.targets.points:
        v = replace(v, g2p="TARGET")
    values, slopes = window.fit(p.P, p.beta, p.window_degree, p.far)
    args = {"xt": points.gather, "grid": grid, "u": result}
    args |= {"window": constant("window", values), "slope": constant("slopes of the window at targets", slopes)}
    args |= {f"s{d}": 1.0 / h for d, h in enumerate(p.h)}
    args |= dict(zip(("s01", "s02", "s12"), multipliers.reciprocal(p), strict=True))
    unit = gather_kernel(p, v, space, rhs)
    if v.g2p == "BASE":
        return Step("g2p.kernel", unit, points.gather.shape[1], args, (v.g2p_threads,), lane="far")
    if v.g2p == "TILE":
        cells, tile, extent = points.targets.grid, tile_of(p, v), grid.shape[1:]
        counts = [(e - p.P) // side + 1 for e, side in zip(extent, tile.sides, strict=True)]
        args |= {"cell_begin": points.targets.begin, "tiles": math.prod(counts)}
        args |= {"tiles1": counts[1], "tiles2": counts[2]} | {f"e{d}": e for d, e in enumerate(extent)}
        args |= {f"n{d}": n for d, n in enumerate(cells.shape)} | {f"h{d}": w for d, w in enumerate(cells.widths)}
        shape = lane_rows(v.g2p_threads, tile.row_lanes)
        return Step("g2p.kernel", unit, rhs * math.prod(counts), args, shape, lane="far")
    batch, _ = points.targets.runs(_batch(v, space))
    args |= {"batch": batch, "batches": len(batch)}
    return Step("g2p.kernel", unit, rhs * len(batch), args, lane_rows(v.g2p_threads), lane="far")


def _own_fields(p: Parameters, points: FarPoints, result: Handle, rhs: int) -> list[Step]:
    """Return the steps that subtract the sources' own fields from the slopes of each right-hand side."""
    if not own_field.taken_off(p, points.own is not None):
        return []
    (order, strengths), n_fields = points.own, p.kernel.result
    slopes = (result[r * n_fields + n_fields - 3 : (r + 1) * n_fields] for r in range(rhs))
    return [own_field.step(p, points.gather, strengths[r], order, slope) for r, slope in enumerate(slopes)]


def _lines(axis: int, transforms: Transforms, phase: str, lines: Handle, function: object) -> Blocks:
    """Return the transforms along one of the axes x and y, in slabs of the other one."""
    rows = lines.shape[3 - axis]
    count = min(rows, SLABS * transforms.size) if transforms.size > 1 else 1
    cuts = [slice(rows * i // count, rows * (i + 1) // count) for i in range(count)]
    slabs = [Block(rows=cut) for cut in cuts]
    call = Call(phase, partial(function, transforms, axis), [lines], [lines], lane="far",
                threadsafe=transforms.several)  # fmt: skip
    return Blocks([(lambda workers: slabs, [call])], lane="far")


def _slab(axis: int, context: Context, lines: Array) -> Array:
    rows = context.block["rows"]
    return lines[:, :, rows] if axis == ALONG_X else lines[:, rows]


def _forward(transforms: Transforms, axis: int, context: Context, lines: Array) -> None:
    transforms.library.run(fft.complexes(_slab(axis, context, lines)), axis, False)


def _inverse(transforms: Transforms, axis: int, context: Context, lines: Array) -> None:
    transforms.library.run(fft.complexes(_slab(axis, context, lines)), axis, True)


def _backward(last: int, transforms: Transforms, axis: int, context: Context, lines: Array) -> None:
    """Set modes without a plane to zero, and transform back."""
    n0 = lines.shape[1]
    lines[:, last + 1 : n0 - last, context.block["rows"]] = 0
    _inverse(transforms, axis, context, lines)
