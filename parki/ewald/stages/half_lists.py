"""Near field of an Ewald sum whose targets are its sources as steps: half lists meet each pair once (`p2p_half.py`)."""

import itertools
import math
from dataclasses import replace

from parki.cells import CellGrid, SortedCellHandles
from parki.engine import Space, target, workers
from parki.engine.steps import Handle, Step, constant, glue, state
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.ewald.choice.variants import Variants
from parki.ewald.stages import near
from parki.ewald.stages.points import cell_grids

#: Points, at least, of a sum that more launches pay for.
FEWEST_POINTS = 20_000
#: Blocks of one colour, at least.
FEWEST_BLOCKS = 8
#: Numbers of a source, at most: more take longer to list than to meet twice.
MOST_GIVEN = 6
#: Numbers of a source and sums of a target, at most, which registers hold; with vectors of 64 bytes there are twice as
#: many registers.
MOST_NUMBERS, MOST_WIDE = 6, 12
WIDE = 64  # bytes
#: Sources near a target over evenly spread ones, at most: a block of many points would keep one thread busy.
MOST_CROWDED = 1.5


def blocks(p: Parameters, grid: CellGrid) -> list[int]:
    """Return the most blocks along each axis that are 2 rc wide, an even number: neighbours have other colours."""
    widest = []
    for n, width in zip(grid.shape, grid.widths, strict=True):
        fit = (count for count in range(2, n + 1, 2) if n // count * width >= 2 * p.rc)
        widest.append(max(fit, default=1))
    return widest


def fit(p: Parameters, v: Variants, grid: CellGrid) -> bool:
    """Return whether half lists can be used: for sources in these cells that are all targets."""
    is_right = v.p2p == "LIST" and p.kernel.ours and p.skew is None
    return is_right and min(blocks(p, grid)) >= 2


def chosen(v: Variants, p: Parameters, sum_question: Question, is_same: bool, space: Space) -> Variants:
    """Return variants that meet each pair once, if targets are the sources and half lists are faster.

    They are with few numbers of a source, many points that are about evenly spread, and blocks for all threads.
    """
    n = sum_question.n_sources
    if not (is_same and space.native and n >= FEWEST_POINTS and _has_few_numbers(p)):
        return v
    grid, _ = cell_grids(p, n, n, space, v)
    of_colour = math.prod(blocks(p, grid)) // 8
    is_even = float(sum_question.domain.denser(2 * p.rc)) <= MOST_CROWDED
    return replace(v, once=fit(p, v, grid) and is_even and of_colour >= max(FEWEST_BLOCKS, workers(space)))


def _has_few_numbers(p: Parameters) -> bool:
    """Return whether the numbers of sources are few enough to be listed, and those of a pair for the registers."""
    limit = MOST_WIDE if target().vector_bytes >= WIDE else MOST_NUMBERS
    return p.kernel.given <= MOST_GIVEN and p.kernel.given + p.kernel.sums <= limit


def field(p: Parameters, points: SortedCellHandles, strengths: Handle, v: Variants) -> near.NearField:
    """Return the near field of points at themselves.

    Parameters
    ----------
    p : Parameters
    points : SortedCellHandles
    strengths : Handle (numbers, N)
        Strengths in the caller's order.
    v : Variants
    """
    boxes, starts = points.grid.coloured(blocks(p, points.grid))
    ordered = state("strengths by cell", strengths.shape, p.dtype, zero=False)
    result = state("near field", (p.kernel.sums, points.n), p.dtype, zero=False)
    shared = near.arguments(p, points)
    args = shared | {
        "xs": points.points,
        "strength": ordered,
        "u": result,
        "block": constant("blocks of half lists", boxes),
        "bound": state("boxes of batches", (len(boxes), 6), p.dtype, zero=False),
    }
    unit = near.near_kernel(p, replace(v, p2p="HALF"))
    sorting = glue.gather("p2p.kernel", strengths, points.order, ordered, lane="near")
    steps = [sorting, *glue.fill("p2p.kernel", result, lane="near")]
    for first, end in itertools.pairwise(starts):
        steps.append(Step("p2p.kernel", unit, end - first, args | {"first": first}, (1, 1), lane="near"))
    return near.NearField(result, shared["tiny"], tuple(steps))
