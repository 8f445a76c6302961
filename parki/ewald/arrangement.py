"""How points lie in their box: like a crystal, evenly, or in clusters; measured from a sample of them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki import arrays
from parki.arrays import Array

_SOME, _MORE = 1024, 4608  # points of a sample: a few, and of many points more
_BINS = 4096  # of an axis, for the structure factor
LEVELS = 4  # of crowding
_EACH = 8  # points that a bin has on the average where targets may be the sources' copies
_LEAST = 2.0**-4  # crowding of targets away from all sources


@dataclass(frozen=True)
class Arrangement:
    """What is known of how points lie: `regularity` of the sources, `crowding`, and whether targets are the sources."""

    regular: float
    crowding: tuple[float, ...]
    same: bool

    @classmethod
    def of(cls, targets: Array, sources: Array, box: tuple[float, float, float]) -> "Arrangement":
        """Measure points (3, n) in the box."""
        n = sources.shape[1]
        most = min(_MORE, max(_SOME, n // 64))
        some = sample(sources, most)
        others = some if targets is sources else sample(targets, most)
        same = n == targets.shape[1] and np.array_equal(others, some)  # a sample is of the same places of any array
        few = some[:, :: max(1, some.shape[1] // _SOME)]
        return cls(regularity(few, box, n), crowding(some if same else others, some, box), same)


def sample(x: Array, most: int) -> np.ndarray:
    """Some of the points, always the same ones, on the host: that is all of them that leaves a GPU."""
    n = x.shape[1]
    if n > most:
        x = x[:, arrays.module_of(x).asarray(np.unique(np.random.default_rng(0).integers(n, size=most)))]
    return arrays.to_host(x)


def regularity(points: NDArray, box: tuple[float, float, float], number: int) -> float:
    """Measure by the structure factor |Σ exp(2πi m x/L)|²/n² of each axis how much points resemble a crystal.

    A crystal has its first peak at some m as large as the number of planes of a cube of so many points, far above noise
    and all lower m.  A cluster has its highest value at m = 1.

    Parameters
    ----------
    points : array (3, n)
        About a thousand of the points, drawn at random, or all if there are fewer.
    box
        Sides.
    number
        How many points there are.

    Returns
    -------
    float
        1 for a lattice, exp(−(2πs)²) if its points are off by s of the distance of its planes.  One axis suffices, but
        fewer than 8 points need all.  Without such a peak −1 for one point, −exp(−(2πs)²) for a Gaussian cluster with a
        standard deviation of s sides along the axis where that is most; 0 for random points.
    """
    n = points.shape[1]
    if n < 2:
        return 0.0
    found, clustered, least = [], [], max(2, int(0.95 * number ** (1 / 3)))
    for x, side in zip(points, box, strict=True):
        bins = np.rint(np.asarray(x, np.float64) * (_BINS / side)).astype(np.int64) % _BINS
        peaks = np.abs(np.fft.rfft(np.bincount(bins, minlength=_BINS))[1 : _BINS // 4]) ** 2 / n
        lower = np.maximum.accumulate(peaks)[:-1]
        good = peaks[1:] >= np.maximum(4.0 * lower, min(6.0, 0.9 * n))
        first = np.flatnonzero(good[least - 2 :])
        found.append(min(1.0, peaks[first[0] + least - 1] / n) if len(first) else 0.0)
        clustered.append(max(0.0, (peaks[0] - 1.0) / (n - 1.0)))
    regular = min(found) if n < 8 else max(found)
    return float(regular or -max(clustered))


def crowding(targets: NDArray, sources: NDArray, box: tuple[float, float, float]) -> tuple[float, ...]:
    """Measure how many more sources are near a target than if they filled the box evenly.

    The box is cut into bins of sides l/2, l/4, … l/16, l = V^(1/3), and pairs in one bin are counted; once more with
    the bins shifted by half of their sides, as a cluster may lie where bins meet.

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
        √2; without entries for the shortest bins where the points are too few to tell.  At least 1 if the targets are
        the sources.
    """
    n, m = targets.shape[1], sources.shape[1]
    same, sides = targets is sources, np.array(box)[:, None]
    pairs = max(1.0, n * (n - 1.0 if same else m))
    length, found = float(np.prod(box)) ** (1 / 3), []
    t, s = targets / sides, sources / sides
    for level in range(1, LEVELS + 1):
        shape = [max(1, round(side / length * 2**level)) for side in box]
        bins = math.prod(shape)
        if bins > (n if same else min(n, m) // _EACH):
            break
        together = 0.0
        for shift in (0.0, 0.5):
            count = _counted(t, shape, shift)
            together += 0.5 * (count @ (count - 1.0) if same else count @ _counted(s, shape, shift))
        ratio = max(1.0 if same else _LEAST, float(together) * bins / pairs)
        found.append(2.0 ** (round(2.0 * math.log2(ratio)) / 2.0))
    return tuple(found)


def _counted(x: NDArray, shape: list[int], shift: float) -> NDArray[np.float64]:
    """Points in each bin, `x` in sides of the box."""
    found = np.zeros(x.shape[1], np.int64)
    for row, count in zip(x, shape, strict=True):
        found *= count
        found += (row * count + shift).astype(np.int64) % count
    return np.bincount(found, minlength=math.prod(shape)).astype(np.float64)
