"""Tables of the translations of a pair between boxes of one size."""

import itertools
from collections.abc import Iterable
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from parki.fmm import memory, representations
from parki.fmm.chebyshev_tables import (
    Action,
    Components,
    Floats,
    Offset,
    Tables,
    Turn,
    canonical,
    factors,
    grid,
    offsets,
    seen_from_source,
    symmetry,
    weights,
)
from parki.pairs import Pair

TABLE_SECONDS, ENTRY_SECONDS = 0.06, 1.1e-7  # of a table, and for each entry of its matrices, on a host with AVX2
BYTE_SECONDS = 4e-10  # of laying out a byte of a table in tiles
FAR = 4.0  # half sides between boxes where magnitudes of components are compared


def sizes(pair: Pair, half: float) -> tuple[Floats, Floats]:
    """Return the magnitudes of the rows and columns of blocks between boxes, which may have different units."""
    corners = [d for d in np.ndindex(3, 3, 3) if d != (1, 1, 1)]
    r = (np.array(corners) - 1.0) * (FAR * half)
    k = np.sqrt(np.square(representations.block(pair, r)).sum(axis=0))
    rows = np.sqrt(np.square(k).sum(axis=1))
    rows = np.where(rows > 0, rows, rows.max() if rows.max() > 0 else 1.0)
    columns = np.sqrt(np.square(k / rows[:, None]).sum(axis=0))
    return rows, np.where(columns > 0, columns, columns.max() if columns.max() > 0 else 1.0)


def operator(pair: Pair, order: int, d: Offset, half: float) -> Floats:
    """Return the matrix (result order³, order³ dens) of an offset.

    Rows are by component and point, columns by point and component.
    """
    x = grid(order)
    r = half * (2.0 * np.array(d) + x[:, None] - x).reshape(-1, 3)
    k = representations.block(pair, r).reshape(len(x), len(x), pair.result, pair.dens)
    return k.transpose(2, 0, 1, 3).reshape(pair.result * len(x), -1)


@memory.kept()
def tables(pair: Pair, order: int, half: float, eps: float, use_symmetry: bool = True) -> Tables:
    """Return all translations between boxes of this half side.

    Parameters
    ----------
    pair : Pair
        Linear in the strengths of sources.
    order : int
        Points per direction.
    half : float
    eps : float
        Singular values below this share of the largest of the same translation are dropped; 0 keeps all.
    use_symmetry : bool
        Decompose 16 translations if the pair has the cube's symmetries; else all 316.
    """
    components = symmetry(pair) if use_symmetry else None
    rows, columns = sizes(pair, half)
    w = weights(order)
    row_weight, column_weight = (w / rows[:, None]).ravel(), (w[:, None] / columns).ravel()

    @cache
    def decomposed(d: Offset) -> tuple[Floats, Floats]:
        return factors(operator(pair, order, d, half), row_weight, column_weight, eps)

    offset_list = offsets()
    with threadpool_limits(1, "blas"):  # matrices are too small for more threads
        for d in {canonical(d) for d in offset_list} if components else _all():
            decomposed(d)
    if components is None:
        frames = [Turn.reflection(octant) for octant in range(8)]
        left = [[decomposed(_reflected(turn, d))[0] for d in offset_list] for turn in frames]
        right = [[decomposed(_reflected(turn, seen_from_source(d)))[1] for d in offset_list] for turn in frames]
    else:
        left = [[_turned(d, components[0], order, True)(decomposed(canonical(d))[0]) for d in offset_list]]
        right = [
            [
                _turned(seen_from_source(d), components[1], order, False)(decomposed(canonical(d))[1])
                for d in offset_list
            ]
        ]
    count = decomposed.cache_info().currsize
    column = np.zeros(len(offset_list) + 1, np.int32)
    column[1:] = np.cumsum([max(len(part) for part in parts) for parts in zip(*left, strict=True)])
    return Tables(_stacked(left, column), _stacked(right, column), column, count)


def seconds(pair: Pair, order: int, halves: Iterable[float], eps: float) -> float:
    """Return the seconds of making the tables of boxes of these half sides, on one core: few if they are kept."""
    has_symmetry = symmetry(pair) is not None
    entries = _count(has_symmetry) * pair.result * pair.dens * float(order) ** 6
    total = 0.0
    for size in {representations.half_side(pair, half) for half in halves}:
        result = memory.held(tables, pair, order, size, eps, has_symmetry)
        if result is None:
            total += TABLE_SECONDS + ENTRY_SECONDS * entries
        else:
            total += BYTE_SECONDS * (result.left.nbytes + result.right.nbytes)
    return total


@cache
def _count(has_symmetry: bool) -> int:
    """Return the number of translations that are decomposed for boxes of one size."""
    return len({canonical(d) for d in offsets()}) if has_symmetry else len(_all())


def _all() -> list[Offset]:
    """Return all 316 offsets."""
    return [d for d in itertools.product(range(-3, 4), repeat=3) if max(map(abs, d)) > 1]


def _reflected(turn: Turn, d: Offset) -> Offset:
    return tuple(s * a for s, a in zip(turn.sign, d, strict=True))


def _turned(d: Offset, components: Components, order: int, points_last: bool) -> Action:
    return Action.of(Turn.to(d), components, order, points_last)


def _stacked(frames: list[list[Floats]], column: NDArray[np.int32]) -> Floats:
    out = np.zeros((len(frames), int(column[-1]), frames[0][0].shape[1]))
    for frame, parts in zip(out, frames, strict=True):
        for first, part in zip(column[:-1], parts, strict=True):
            frame[first : first + len(part)] = part
    return out


@lru_cache(maxsize=16)
def frame(components: Components, order: int, points_last: bool) -> tuple[Action, ...]:
    """Return the actions into the frame of each octant, and back: reflections are their own inverses."""
    return tuple(Action.of(Turn.reflection(octant), components, order, points_last) for octant in range(8))


@lru_cache(maxsize=1)
def ways() -> NDArray[np.int32]:
    """Return, by octant of the target and place in `offsets`, the source octet's direction 0 … 25 and octant there."""
    out = np.empty((8, len(offsets()), 2), np.int32)
    for octant in range(8):
        bits = np.array([octant >> 2 & 1, octant >> 1 & 1, octant & 1])
        anchor = bits - np.array(offsets()) * (1 - 2 * bits)  # the source's anchor, in the target's parent
        parent = anchor // 2
        direction = ((parent[:, 0] + 1) * 3 + parent[:, 1] + 1) * 3 + parent[:, 2] + 1
        out[octant, :, 0] = direction - (direction > 13)
        out[octant, :, 1] = (anchor - 2 * parent) @ np.array([4, 2, 1])
    return out
