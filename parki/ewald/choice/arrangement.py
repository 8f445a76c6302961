"""Arrangement of points in their box: like a crystal, evenly, or in clusters; measured from a sample of them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki import arrays
from parki.arrays import Array

_SAMPLE, _LARGE_SAMPLE = 1024, 4608  # points in a sample of few points, and of many
_BINS = 4096  # bins per axis, for the structure factor
LEVELS, _FINEST = 12, 20  # number of levels of bins, and the level at which points in one bin coincide
_LEAST_PAIRS = 512.0  # pairs in bins, at least, for a reliable count
_LEAST_CROWDING = 2.0**-4  # crowding of targets far from all sources


@dataclass(frozen=True)
class Arrangement:
    """Arrangement of points.

    Attributes
    ----------
    regular
        `regularity` of the sources.
    crowding
    same
        True if the targets are the sources.
    height
        Share of the box's last side that targets and sources extend over.
    """

    regular: float
    crowding: tuple[float, ...]
    same: bool
    height: float = 1.0

    @classmethod
    def of(cls, targets: Array, sources: Array, box: tuple[float, float, float]) -> "Arrangement":
        """Measure points (3, n) in the box."""
        n = sources.shape[1]
        source_sample = sample(sources, sampled(n, n))
        target_sample = source_sample if targets is sources else sample(targets, sampled(targets.shape[1], n))
        return cls.of_samples(target_sample, source_sample, targets.shape[1], n, box)

    @classmethod
    def of_samples(
        cls, targets: NDArray, sources: NDArray, n_targets: int, n_sources: int, box: tuple[float, float, float]
    ) -> "Arrangement":
        """Measure points by samples of them, which take the same indices of every array of a length."""
        is_same = n_targets == n_sources and np.array_equal(targets, sources)
        subsample = sources[:, :: max(1, sources.shape[1] // _SAMPLE)]
        ends = [end for z in (targets[2], sources[2]) if z.size for end in (z.min(), z.max())]
        height = float(np.ptp(ends)) / box[2] if ends else 1.0
        crowds = crowding(sources if is_same else targets, sources, box)
        return cls(regularity(subsample, box, n_sources), crowds, is_same, height)


def sampled(n: int, n_sources: int) -> NDArray[np.integer] | None:
    """Return the indices of a sample of n points, for a sum with `n_sources` sources; None for all points."""
    size = min(_LARGE_SAMPLE, max(_SAMPLE, n_sources // 256))
    return np.unique(np.random.default_rng(0).integers(n, size=size)) if n > size else None


def sample(x: Array, index: NDArray[np.integer] | None) -> np.ndarray:
    """Return the chosen points on the host, all for None; no other points leave a GPU."""
    return arrays.to_host(x if index is None else x[:, arrays.module_of(x).asarray(index)])


def regularity(points: NDArray, box: tuple[float, float, float], number: int) -> float:
    """Measure the likeness of points to a crystal by the structure factor |Σ exp(2πi m x/L)|²/n² of each axis.

    A crystal has its first peak at an m about as large as the number of planes of a cube of `number` points, far above
    noise and all lower m.  A cluster has its highest value at m = 1.

    Parameters
    ----------
    points : array (3, n)
        About a thousand of the points, drawn at random, or all if there are fewer.
    box
        Sides.
    number
        Number of all points.

    Returns
    -------
    float
        1 for a lattice, exp(−(2πs)²) if its points are off by s of the distance of its planes.  A peak along one axis
        suffices; fewer than 8 points need one along each.  Without such a peak −1 for one point, −exp(−(2πs)²) for a
        Gaussian cluster with a standard deviation of s sides along the axis of the largest value; 0 for random points.
    """
    n = points.shape[1]
    if n < 2:
        return 0.0
    regular_by_axis, clustered_by_axis, lowest = [], [], max(2, int(0.95 * number ** (1 / 3)))
    for x, side in zip(points, box, strict=True):
        bins = np.rint(np.asarray(x, np.float64) * (_BINS / side)).astype(np.int64) % _BINS
        peaks = np.abs(np.fft.rfft(np.bincount(bins, minlength=_BINS))[1 : _BINS // 4]) ** 2 / n
        lower = np.maximum.accumulate(peaks)[:-1]
        good = peaks[1:] >= np.maximum(4.0 * lower, min(6.0, 0.9 * n))
        first = np.flatnonzero(good[lowest - 2 :])
        regular_by_axis.append(min(1.0, peaks[first[0] + lowest - 1] / n) if len(first) else 0.0)
        clustered_by_axis.append(max(0.0, (peaks[0] - 1.0) / (n - 1.0)))
    regular = min(regular_by_axis) if n < 8 else max(regular_by_axis)
    return float(regular or -max(clustered_by_axis))


def crowding(targets: NDArray, sources: NDArray, box: tuple[float, float, float]) -> tuple[float, ...]:
    """Measure the number of sources near a target, over that of sources that fill the box evenly.

    The box is cut into bins of sides l/2, l/4, …, l = V^(1/3), and pairs in one bin are counted; then again with bins
    shifted by half of their sides, because a cluster may lie where bins meet.  Coincident points do not count.

    Parameters
    ----------
    targets, sources : array (3, n)
        Some thousands of each, drawn at random, in the box; the same array if they are the same points.
    box
        Sides.

    Returns
    -------
    tuple of float
        For each side of bins, from the longest on, pairs in one bin over those of evenly spread points, in steps of
        √2; the tuple ends where there are too few pairs.  At least 1 if the targets are the sources.
    """
    n, m = targets.shape[1], sources.shape[1]
    is_same, sides = targets is sources, np.array(box)[:, None]
    n_pairs, length, ratios = n * (n - 1 if is_same else m), float(np.prod(box)) ** (1 / 3), []
    t, s = targets / sides, sources / sides

    def cut(level: int) -> list[int]:
        return [max(1, round(side / length * 2**level)) for side in box]

    def pairs(shape: list[int], shift: float) -> float:
        first_bins = _bins(t, shape, shift)
        second_bins = first_bins if is_same else _bins(s, shape, shift)
        return _together(first_bins, second_bins, math.prod(shape)) - (n if is_same else 0)

    n_coincident = pairs(cut(_FINEST), 0.0) if n_pairs else 0.0
    for level in range(1, LEVELS + 1):
        shape = cut(level)
        n_near = 0.5 * (pairs(shape, 0.0) + pairs(shape, 0.5)) - n_coincident
        even = n_pairs / math.prod(shape)
        if max(n_near, even) < _LEAST_PAIRS:
            break
        ratio = max(1.0 if is_same else _LEAST_CROWDING, n_near / even)
        ratios.append(2.0 ** (round(2.0 * math.log2(ratio)) / 2.0))
    return tuple(ratios)


def _bins(x: NDArray, shape: list[int], shift: float) -> NDArray[np.int64]:
    """Return the bin of each point; `x` is in units of the box's sides."""
    bins = np.zeros(x.shape[1], np.int64)
    for row, count in zip(x, shape, strict=True):
        bins *= count
        bins += (row * count + shift).astype(np.int64) % count
    return bins


def _together(first: NDArray[np.int64], second: NDArray[np.int64], bins: int) -> float:
    """Count the pairs of two points in the same bin."""
    is_sparse = bins > 4 * (len(first) + len(second))  # most bins are empty: number the others
    if is_sparse and first is second:
        return float(np.square(np.unique(first, return_counts=True)[1].astype(np.float64)).sum())
    if is_sparse:
        numbers = np.unique(np.concatenate([first, second]), return_inverse=True)[1]
        first, second, bins = numbers[: len(first)], numbers[len(first) :], int(numbers.max()) + 1
    counts = [np.bincount(numbers, minlength=bins).astype(np.float64) for numbers in (first, second)]
    return float(counts[0] @ counts[1])
