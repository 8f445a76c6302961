"""What a source spreads: its strengths times its window, or (COMB) the Stokes single and double layer together.

COMB has the components F = f W + q (n.grad) W + n (q.grad) W, three, and tau = (q.n) W.  A source is (x, y, z,
strengths), with the strengths q or f, or (COMB) f, q, n.
"""

from typing import List

import pykokkos as pk

real = pk.double
NC = 1  # components
COMB = False
NM = NC + 6 * COMB  # moments


@pk.function
def moments(src: pk.View2D[real], e: int, m: List[real]) -> None:
    """The numbers that source e's components are made of: strengths; or f, q.n and the xx xy xz yy yz zz of qn + nq."""
    if COMB:
        for c in range(3):
            m[c] = src[e][3 + c]
        m[4] = 2.0 * src[e][6] * src[e][9]
        m[5] = src[e][6] * src[e][10] + src[e][7] * src[e][9]
        m[6] = src[e][6] * src[e][11] + src[e][8] * src[e][9]
        m[7] = 2.0 * src[e][7] * src[e][10]
        m[8] = src[e][7] * src[e][11] + src[e][8] * src[e][10]
        m[9] = 2.0 * src[e][8] * src[e][11]
        m[3] = 0.5 * (m[4] + m[7] + m[9])
    else:
        for c in range(NC):
            m[c] = src[e][3 + c]


@pk.function
def along_z(m: List[real], wx: real, gx: real, wy: real, gy: real, value: List[real], tilt: List[real]) -> None:
    """Component c of a row of grid points is value[c] W(z) + tilt[c] W'(z); g = slope of w.  No tilt but in F."""
    w: real = wx * wy
    if COMB:
        x: real = gx * wy
        y: real = wx * gy
        value[0] = m[0] * w + m[4] * x + m[5] * y
        value[1] = m[1] * w + m[5] * x + m[7] * y
        value[2] = m[2] * w + m[6] * x + m[8] * y
        value[3] = m[3] * w
        tilt[0] = m[6] * w
        tilt[1] = m[8] * w
        tilt[2] = m[9] * w
    else:
        for c in range(NC):
            value[c] = m[c] * w
