"""Window function of spreading and interpolation: a point's first tap on the grid, and the values of its taps.

The grid has P more points than the box in each direction, so no tap wraps (`halo.py`): P // 2 below the box, the rest
above.  window[d][k] and slope[d][k] = polynomial of tap k and of its derivative by the grid point's position, highest
degree first, in the offset from mid-cell; s = grid points per length.
"""

from typing import Tuple

import pykokkos as pk

real = pk.double
coord = real  # type of coordinates, which may be wider than that of the grid
P = 8  # taps per direction
DEGREE = 6  # of the polynomials
HALF = 0.5 * P
SLACK = 0.01  # grid points by which rounding may move a point


@pk.function
def first_tap(x: coord, s: coord) -> int:
    """Return a point's first tap, as a grid point counted from the begin of the margin."""
    return int(pk.ceil(x * s - HALF)) + P // 2


@pk.function
def offset(x: coord, s: coord) -> real:
    """Return a point's offset from mid-cell, in grid points."""
    g: coord = x * s - HALF
    return real(pk.ceil(g) - g - 0.5)


@pk.function
def anchor(x: coord, s: coord) -> Tuple[int, real]:
    """Return a point's first tap and its offset."""
    return first_tap(x, s), offset(x, s)


@pk.function
def cells_of(g: int, size: int, s: coord, h: coord, n: int) -> Tuple[int, int]:
    """Return begin and end of the n cells of width h that hold points whose first taps are g … g + size - 1.

    There is one cell at least.  Grid point x is among the taps of points whose first taps are x - P + 1 … x.
    """
    first: coord = coord(g - P // 2 - 1) + HALF
    last: coord = coord(g + size - 1 - P // 2) + HALF
    begin: int = int(pk.fmax(0.0, pk.floor((first - SLACK) / (s * h))))
    end: int = int(pk.floor((last + SLACK) / (s * h))) + 1
    if end > n:
        end = n
    if begin >= n:
        begin = n - 1
    return begin, end


@pk.function
def tap(window: pk.View2D[real], k: int, t: real) -> real:
    """Return the value of tap k at offset t."""
    w: real = window[0][k]
    for d in range(1, DEGREE + 1):
        w = w * t + window[d][k]
    return w


@pk.function
def taps(window: pk.View2D[real], k: int, tx: real, ty: real, tz: real) -> Tuple[real, real, real]:
    """Return the values of tap k at three offsets."""
    wx: real = window[0][k]
    wy: real = wx
    wz: real = wx
    for d in range(1, DEGREE + 1):
        v: real = window[d][k]
        wx = wx * tx + v
        wy = wy * ty + v
        wz = wz * tz + v
    return wx, wy, wz


@pk.function
def slope_tap(slope: pk.View2D[real], k: int, t: real, s: coord) -> real:
    """Return the slope of tap k at offset t, per length."""
    w: real = tap(slope, k, t)
    return real(s) * w
