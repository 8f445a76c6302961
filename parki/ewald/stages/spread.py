"""Spreading of an Ewald sum (P2G) as steps: one launch per colour of blocks, or one launch in all."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import engine
from parki.cells import CellGrid, SortedCellHandles
from parki.engine.steps import Handle, Step, constant
from parki.ewald.choice import spread_tiles
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.variants import Variants, lane_rows
from parki.ewald.split import window

# Grid points per side of a spreading block, least and most, and the fraction of the grid in between: so that reused
# rows stay in a cache, blocks overlap little, and there are blocks for many threads.
BLOCK = ((16, 48, 1 / 8), (16, 48, 1 / 8), (64, 128, 1 / 3))
NARROW = 12  # least side along x and y for a single component, which would otherwise have too few blocks
RUN = 32  # neighbouring sources per team of HYBRID, whose windows fit in 48 KB of scratch
ROW = 32  # lanes of TILE, which go over the same sources
#: Kernel file and workunit of each variant.
LOOPS = {
    "BASE": ("p2g_atomic", "p2g_atomic"), "SOURCE": ("p2g_atomic", "p2g_atomic"), "BLOCK": ("p2g", "p2g_block"),
    "GRID": ("published/p2g_grid", "p2g_grid"), "HYBRID": ("p2g_hybrid", "p2g_hybrid"),
    "TILE": ("p2g_tile", "p2g_tile"),
}  # fmt: skip


def spread_kernel(p: Parameters, v: Variants, rhs: int = 1) -> engine.Workunit:
    """Return the workunit of P2G; the Stokes double layer also takes the window's slopes."""
    slots = {"NC": p.kernel.spread, "COMB": p.kernel.slopes, "SINGLE": p.kernel.single, "RHS": rhs}
    directions = 6 if p.skew is not None and p.kernel.slopes else 0
    slots |= {"SKEW": p.skew is not None, "NS": p.kernel.strengths + directions, **window_slots(p)}
    hints: tuple[str, ...] = ()
    if v.p2g == "HYBRID":
        slots["CAP"] = RUN
    elif v.p2g == "TILE":
        slots |= tile_of(p, v)
        hints = ("resident_512", f"lanes_{ROW}")  # two teams: one adds while the other waits
    return engine.kernel(*LOOPS[v.p2g], hints=hints, **slots)


def tile_of(p: Parameters, v: Variants) -> dict[str, int]:
    """Return the slots that say the shape of TILE's tiles."""
    kernel = p.kernel
    moments = 7 + 3 * kernel.single + 3 * (p.skew is not None) if kernel.slopes else kernel.spread
    return spread_tiles.tile(kernel.spread, kernel.slopes, moments, (p.P, p.window_degree), p.itemsizes[1], v.scratch)


def window_slots(p: Parameters) -> dict[str, object]:
    """Return the slots of every kernel with a window."""
    return {"real": p.far, "coord": p.dtype, "P": p.P, "DEGREE": p.window_degree}


def spread(
    p: Parameters, grid: Handle, sources: SortedCellHandles, rows: Handle, v: Variants, rhs: int
) -> list[Step]:  # fmt: skip
    """Return the steps that add strengths of sources to a grid with margins.

    Parameters
    ----------
    p : Parameters
    grid : Handle (rhs C, …)
    sources : SortedCellHandles
    rows : Handle (Ns, numbers)
        Sources (x, y, z, strengths) in the order of their list, or for BASE in any order.
    v : Variants
    rhs : int
        Right-hand sides.
    """
    values, slopes = window.fit(p.P, p.beta, p.window_degree, p.far)
    args: dict[str, Any] = {"src": rows, "grid": grid}
    args |= {"window": constant("window", values), "slope": constant("slopes of the window", -slopes)}
    args |= {f"s{d}": 1.0 / h for d, h in enumerate(p.h)}
    unit, cells, threads = spread_kernel(p, v, rhs), sources.grid, v.p2g_threads

    def step(items: int, *shape: int, **extra_args: Any) -> Step:
        return Step("p2g.kernel", unit, items, args | extra_args, shape, lane="far")

    if v.p2g in ("BASE", "SOURCE"):
        return [step(sources.n, threads)]
    if v.p2g == "HYBRID":
        batch, bound = sources.runs(RUN)
        return [step(len(batch), threads, 1, batch=batch, bound=bound)]
    args |= {"cell_begin": sources.begin, "n1": cells.shape[1], "n2": cells.shape[2]}
    if v.p2g in ("GRID", "TILE"):
        e0, e1, e2 = grid.shape[1:]
        cell_args = {f"h{d}": w for d, w in enumerate(cells.widths)} | {"n0": cells.shape[0], "e1": e1, "e2": e2}
        if v.p2g == "GRID":
            return [step(e0 * e1, threads, 1, **cell_args)]
        shape = tile_of(p, v)
        n_tiles = math.prod(-(-e // shape[side]) for e, side in zip((e0, e1, e2), ("TX", "TY", "TZ"), strict=True))
        owners = shape["TX"] * shape["TY"] // shape["YT"]
        return [step(rhs * n_tiles, max(1, min(owners, threads) // ROW), ROW, e0=e0, **cell_args)]
    boxes, starts = _blocks(p, cells)
    args |= {"block": constant("spreading blocks", boxes)}
    pieces = [(first, end) for first, end in itertools.pairwise(starts) if end > first]
    return [step((end - first) * len(grid), *lane_rows(threads), first=first) for first, end in pieces]


def blocks(shape: Sequence[int], widths: Sequence[float], P: int, components: int) -> list[int]:
    """Return the number of blocks along each axis, from cells and their widths in grid points."""
    counts = []
    sides = BLOCK if components > 1 else [(NARROW, *side[1:]) for side in BLOCK[:2]] + [BLOCK[2]]
    for n, width, (low, high, share) in zip(shape, widths, sides, strict=True):
        side = max(low, P + 1, min(high, share * n * width))
        counts.append(max(1, n // math.ceil(side / width)))
    return counts


def _blocks(p: Parameters, cells: CellGrid) -> tuple[NDArray[np.int32], list[int]]:
    """Return `CellGrid.coloured` boxes of cells at least P + 1 grid points wide."""
    widths = [width / h for width, h in zip(cells.widths, p.h, strict=True)]
    return cells.coloured(blocks(cells.shape, widths, p.P, p.kernel.spread))
