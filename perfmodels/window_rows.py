"""Rows of windows of spreading and interpolation, weighted by their cost on hosts and on GPUs."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parki.perfmodels.counts.g2p import clocks

#: Weights of a window's rows in vectors of four lanes, by P: measured on a Zen 3 core with AVX2.
FOUR = {
    "P": np.arange(4, 17),
    "spread": (2.04, 1.58, 1.34, 1.56, 1.34, 1.48, 1.53, 1.94, 1.79, 2.03, 2.14, 2.6, 2.84),
    "gather": (2.01, 1.55, 1.13, 1.55, 1.0, 1.17, 1.17, 1.68, 1.2, 1.72, 1.82, 2.4, 2.41),
}
WARP = 32  # lanes of a GPU's warp, at least; vectors of hosts have fewer
TAPS = 8  # points across the window at which rates of P2G and G2P are taken
# Of a GPU's tiles, for each component: fused operations of a source of TAPS points across the window, 9/8 for each of
# the 15 × 11 × 11 places of its window in pieces of 8 × 4 × 4, and 1/8 for its windows; bytes of scratch of a target, 8
# for each of TAPS³ points, 1/5 for numbers of windows, and 1/4 for copies of the tile.
SPREADING = 9 * 15 * 11 * 11 / 8 * 1.12
GATHERING = 8 * 512 * 1.2 * 1.25


def rows(phase: str, P: ArrayLike, lanes: int, itemsize: int = 8, sparse: ArrayLike = 0.0) -> NDArray[np.float64]:
    """Return the P² rows of a window, weighted by their cost on AVX-512 cores.

    A row is cut into vectors, and halves of halves at its end.  Spreading takes the time of stores, half a vector
    or less each.  Gathering takes the time of loads, which is the same as long as all weights are in registers,
    except for rows of one half vector.  More than two pieces take about twice as long in both.  Numbers of half the
    size fill half as many vectors.  Vectors of four lanes have the weights of `FOUR`.  On a GPU teams own tiles, see
    `SPREADING`.

    Parameters
    ----------
    phase
        ``"spread"`` or ``"gather"``.
    P
        Points of the window per direction.
    lanes
        Lanes of a vector in double precision, or of a warp.
    itemsize
        Bytes of a number.
    sparse
        Cost of grid points that come from slower memory, relative to the rows of a window of `TAPS` points: once for
        all rows that meet a point, and for spreading back again.
    """
    P = np.asarray(P)
    if lanes >= WARP:
        return _rows_of_tiles(phase, P)
    lanes, moves = lanes * 8 // itemsize, 2.0 if phase == "spread" else 1.0
    vectors, rest = np.divmod(P, lanes)
    pieces = vectors + sum((rest >> bit) & 1 for bit in range(6))
    halves = np.maximum(-(-2 * P // lanes), np.minimum(pieces, 2))
    if phase == "spread":
        weight = 0.5 + 0.42 * halves + 0.9 * np.maximum(pieces - 2, 0)
    else:
        weight = np.where((pieces > 2) | (halves > 3), 1.85, np.where(halves == 1, 0.7, 1.0))
    if lanes == 4:
        weight = np.interp(P, FOUR["P"], FOUR[phase])
    return np.square(P, dtype=np.float64) * weight + moves * TAPS**2 * sparse


def _rows_of_tiles(phase: str, P: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the rows of windows that teams with tiles take, weighted so that P² of TAPS points are P²."""
    if phase == "spread":
        return TAPS**2 * ((P + 7.0) * (P + 3) ** 2) / (15 * 11**2)
    return TAPS**2 * np.vectorize(clocks, otypes=[float])(P) / clocks(TAPS)
