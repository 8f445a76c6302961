"""Pairs that a sum leaves out, or scales, as the bonded pairs of molecules: their lists as a caller gives them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parki import scaling
from parki.arrays import Array

#: Pairs as a caller gives them, see `of`.
Excluded = ArrayLike | tuple[ArrayLike, ...] | None


@dataclass(frozen=True, eq=False)
class Exclusions:
    """Pairs of a target and a source, by target.

    Attributes
    ----------
    begin : array (Nt + 1,) of int32
        Target i has the entries begin[i] … begin[i + 1] − 1.
    partner : array (M,) of int32
        Source of each entry; those of a target ascend.
    weight : array (M,)
        Share of the pair that is left out: 1 less its scale.
    n_sources : int
    """

    begin: NDArray[np.int32]
    partner: NDArray[np.int32]
    weight: NDArray[np.float64]
    n_sources: int

    @property
    def n_targets(self) -> int:
        """Return the number of targets."""
        return len(self.begin) - 1

    @property
    def targets(self) -> NDArray[np.int64]:
        """Return the target of each entry."""
        return np.repeat(np.arange(self.n_targets), np.diff(self.begin))

    def transposed(self) -> Exclusions:
        """Return the same pairs with targets and sources exchanged."""
        return _listed(self.partner.astype(np.int64), self.targets, self.weight, self.n_sources, self.n_targets)


def of(exclude: Any, n_targets: int, n_sources: int, same: bool) -> Exclusions | None:
    """Return the lists of pairs that a caller gives as `exclude`, None for none.

    Parameters
    ----------
    exclude : array (2, M), or tuple
        Pairs; (pairs, scale); or lists by target: (begin, partners), (begin, partners, scale).
    n_targets, n_sources : int
    same : bool
        Whether the targets are the sources: then a pair is given once, and counts for both of its particles.

    Raises
    ------
    ValueError
        For pairs of another shape, indices out of range, a particle with itself, pairs given twice, scales that are
        not finite.
    TypeError
        For indices that are not whole numbers.
    """
    if exclude is None:
        return None
    lists, i, j, scale = _entries(exclude, n_targets)
    for name, index, n in (("first", i, n_targets), ("second", j, n_sources)):
        if len(index) and not (index.min() >= 0 and index.max() < n):
            bad_index = int(index[(index < 0) | (index >= n)][0])
            raise ValueError(f"exclude has the {name} index {bad_index}; expected 0 to {n - 1}.")
    weight = _weights(scale, len(i))
    if not same:
        return _listed(i, j, weight, n_targets, n_sources)
    if (i == j).any():
        bad_index = int(i[i == j][0])
        raise ValueError(f"exclude has a pair of particle {bad_index} with itself; expected pairs of two particles.")
    if not (lists and _mirrored(i, j, weight, n_targets)):
        i, j, weight = np.concatenate([i, j]), np.concatenate([j, i]), np.concatenate([weight, weight])
    return _listed(i, j, weight, n_targets, n_sources)


def check_moved(pairs: Exclusions, points: tuple[Any, Any], layout: str) -> None:
    """Refuse a move to other numbers of targets or sources than those of `pairs`; None stands for points that stay.

    Raises
    ------
    ValueError
        Naming both numbers.
    """
    for x, n in zip(points, (pairs.n_targets, pairs.n_sources), strict=True):
        shape = np.shape(x)
        number = shape[0 if layout == "nd" else 1] if len(shape) == 2 else n
        if number != n:
            raise ValueError(
                f"found {number} points, and this plan has exclusions of {n}; expected as many. Call exclude() before "
                "a move to another number."
            )


def _entries(value: Any, n_targets: int) -> tuple[bool, NDArray[np.int64], NDArray[np.int64], Any]:
    """Return whether lists were given, the indices of pairs, and their scale: 0 if none was given."""
    if not isinstance(value, tuple):
        return False, *_pairs(value), 0.0
    first = np.ndim(value[0]) if value else 0
    if first == 2 and len(value) == 2:
        return False, *_pairs(value[0]), value[1]
    if first == 1 and len(value) in (2, 3):
        begin, partner = (_indices(name, a) for name, a in zip(("begin", "partners"), value, strict=False))
        is_valid = len(begin) == n_targets + 1 and begin[0] == 0 and begin[-1] == len(partner)
        if partner.ndim != 1 or not is_valid or (np.diff(begin) < 0).any():
            raise ValueError(
                f"exclude is (begin, partners) of {len(begin)} and {partner.size} entries; expected {n_targets + 1} "
                "that ascend from 0 to the number of partners. Pass pairs as an array (2, M)."
            )
        return True, np.repeat(np.arange(n_targets), np.diff(begin)), partner, value[2] if len(value) == 3 else 0.0
    raise ValueError(
        f"exclude is a tuple of {len(value)}; expected an array (2, M) of pairs, (pairs, scale), or (begin, partners)."
    )


def _pairs(values: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pairs = _indices("pairs", values)
    if pairs.ndim != 2 or pairs.shape[0] != 2:
        advice = " Pass its transpose." if pairs.ndim == 2 and pairs.shape[1] == 2 else ""
        raise ValueError(f"exclude has shape {pairs.shape}; expected (2, M), a pair a column.{advice}")
    return pairs[0], pairs[1]


def _on_host(values: Any) -> NDArray[Any]:
    return np.asarray(values.get() if hasattr(values, "get") else values)  # arrays of CuPy have get


def _indices(name: str, values: Any) -> NDArray[np.int64]:
    indices = _on_host(values)
    if indices.size == 0:
        indices = indices.astype(np.int64)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"exclude has {name} of {indices.dtype}; expected whole numbers.")
    return indices.astype(np.int64)


def _weights(scale: Any, count: int) -> NDArray[np.float64]:
    """Return the share of each pair that is left out."""
    factors = _on_host(scale)
    if factors.dtype.kind not in "biuf" or factors.shape not in ((), (count,)):
        kind = f"{factors.dtype} of shape {factors.shape}"
        raise ValueError(f"exclude has a scale of {kind}; expected a number, or ({count},), one a pair.")
    if not np.isfinite(factors).all():
        raise ValueError("exclude has a scale that is not finite; expected finite numbers.")
    return np.broadcast_to(1.0 - factors.astype(np.float64), count).copy()


def _mirrored(i: NDArray[np.int64], j: NDArray[np.int64], weight: NDArray[np.float64], n: int) -> bool:
    """Tell whether entries have every pair in the lists of both of its particles."""
    order, mirrored = np.argsort(i * n + j, kind="stable"), np.argsort(j * n + i, kind="stable")
    if not np.array_equal((i * n + j)[order], (j * n + i)[mirrored]):
        return False
    if not np.array_equal(weight[order], weight[mirrored]):
        raise ValueError("exclude has a pair with two scales; expected one.")
    return True


def _listed(
    i: NDArray[np.int64], j: NDArray[np.int64], weight: NDArray[np.float64], n_targets: int, n_sources: int
) -> Exclusions:
    """Return entries as lists by target."""
    order = np.argsort(i * n_sources + j, kind="stable")
    i, j, weight = i[order], j[order], weight[order]
    repeats = np.flatnonzero((np.diff(i) == 0) & (np.diff(j) == 0))
    if len(repeats):
        raise ValueError(f"exclude has the pair ({i[repeats[0]]}, {j[repeats[0]]}) twice; expected each pair once.")
    begin = np.searchsorted(i, np.arange(n_targets + 1)).astype(np.int32)
    return Exclusions(begin, j.astype(np.int32), weight, n_sources)


# Shares left ---------------------------------------------------------------------------------------------------------
ENOUGH = 0.7  # share of the size that parameters were chosen for, above which a sum keeps them
LEAST = 2.0**-10  # least share that parameters are chosen for


def least_share(rows: Array, whole: Array, has_gradient: bool, floor: float = LEAST) -> float:
    """Return the least remaining share of whole sums, over right-hand sides that are not zero.

    Parameters
    ----------
    rows : array (rhs, components, Nt)
        Remaining sums.
    whole : array (rhs, components)
        Norms of the whole sums.
    has_gradient : bool
        Whether the first component is a potential and the others its gradient, which count apart.
    floor : float
        Lower bound of the result.
    """
    remainders = norms(rows)
    groups = [slice(0, 1), slice(1, None)] if has_gradient else [slice(None)]
    shares = [1.0]
    for components in groups:
        remaining, total = (np.linalg.norm(a[:, components], axis=1) for a in (remainders, whole))
        shares += (remaining[total > 0] / total[total > 0]).tolist()
    return max(min(shares), floor)


def norms(rows: Array) -> NDArray[np.float64]:
    """Return the norms (rhs, components) of arrays (rhs, components, N), whose squares may be out of range."""
    result = np.zeros(rows.shape[:2])
    for index, largest in np.ndenumerate(scaling.largest(rows)):
        power = scaling.exponent(float(largest)) if np.isfinite(largest) else 0
        row = scaling.times(rows[index], power).astype(np.float64)
        result[index] = math.ldexp(math.sqrt(float(row @ row)), -power)
    return result


def rounded(value: float) -> float:
    """Round down to a power of √2, so that nearby sums share their parameters."""
    return float(2.0 ** (np.floor(2.0 * np.log2(value)) / 2.0))
