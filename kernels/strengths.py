"""Quantities that a source spreads: strengths times window W, or (COMB) Stokes double layer, alone or with the single.

A source is (x, y, z, NS strengths of the first right-hand side, those of the second, …).  Strengths that are spread
come first: q or f, or (COMB) f, q, n, without the single layer's f if not SINGLE.  COMB has four components: the three
of F = f W + q (n.grad) W + n (q.grad) W, and tau = (q.n) W.  Component c of right-hand side r is component r NC + c of
the grid.

With SKEW the axes of the grid are those of a triclinic box: x, y, z are coordinates along its sides, and six numbers
follow n: q and n as directions in these coordinates, along which the gradients are taken.
"""

from typing import List

import pykokkos as pk

real = pk.double
coord = real  # type of the sources
RHS = 1  # right-hand sides
NC = 1  # components of a right-hand side
COMB = False
SINGLE = True
SKEW = False
NS = (1 - COMB) * NC + COMB * (6 + 3 * SINGLE + 6 * SKEW)  # strengths of a right-hand side; more if some are not spread
Q = 3 * SINGLE  # index of q among the strengths
ALONG_Q = Q + 6 * SKEW  # index of q as a direction on the grid
SYMMETRIC = (0, 1, 2, 1, 3, 4, 2, 4, 5)  # index of a symmetric 3 x 3 matrix's entry among its six numbers
NM = (1 - COMB) * NC + COMB * (7 + 3 * SINGLE + 3 * SKEW)  # moments
NR = (1 - COMB) * NC + COMB * 10  # numbers of a plane of constant x


@pk.function
def moments(src: pk.View2D[coord], e: int, r: int, at: int, m: List[real]) -> None:
    """Set the moments of right-hand side r of source e, from m[at] on.

    Moments are the strengths, or (COMB) f, q.n and qn + nq: xx xy xz yy yz zz, or with SKEW nine, directions second.
    """
    s: int = 3 + r * NS
    if COMB:
        q: int = s + Q
        n: int = q + 3
        along_q: int = s + ALONG_Q
        along_n: int = along_q + 3
        for c in range(Q):
            m[at + c] = real(src[e][s + c])
        m[at + Q] = real(src[e][q] * src[e][n] + src[e][q + 1] * src[e][n + 1] + src[e][q + 2] * src[e][n + 2])
        for c in range(3):
            for d in range(3):
                if SKEW:
                    m[at + Q + 1 + 3 * c + d] = real(
                        src[e][q + c] * src[e][along_n + d] + src[e][n + c] * src[e][along_q + d]
                    )
                elif c <= d:
                    m[at + Q + 1 + SYMMETRIC[3 * c + d]] = real(
                        src[e][q + c] * src[e][n + d] + src[e][n + c] * src[e][q + d]
                    )
    else:
        for c in range(NC):
            m[at + c] = real(src[e][s + c])


@pk.function
def along_z(
    m: List[real], at: int, wx: real, gx: real, wy: real, gy: real, value: List[real], tilt: List[real]
) -> None:
    """Set value and tilt of a row along z, whose component c is value[c] W(z) + tilt[c] W'(z); g = slope of w.

    m[at] is the first of the moments.  Only F has a tilt.
    """
    w: real = wx * wy
    if COMB:
        x: real = gx * wy
        y: real = wx * gy
        for c in range(3):
            row: List[real] = [0.0] * 3
            for d in range(3):
                if SKEW:
                    row[d] = m[at + Q + 1 + 3 * c + d]
                else:
                    row[d] = m[at + Q + 1 + SYMMETRIC[3 * c + d]]
            if SINGLE:
                value[c] = m[at + c] * w + row[0] * x + row[1] * y
            else:
                value[c] = row[0] * x + row[1] * y
            tilt[c] = row[2] * w
        value[3] = m[at + Q] * w
    else:
        for c in range(NC):
            value[c] = m[at + c] * w


@pk.function
def along_x(m: List[real], wx: real, gx: real, plane: List[real]) -> None:
    """Set the numbers of a plane of constant x from the moments: `along_z` without the factors along y.

    These are NC values, or (COMB) three factors each of W(y) W(z), W'(y) W(z) and W(y) W'(z) for F, and that of tau.
    """
    if COMB:
        for c in range(3):
            row: List[real] = [0.0] * 3
            for d in range(3):
                if SKEW:
                    row[d] = m[Q + 1 + 3 * c + d]
                else:
                    row[d] = m[Q + 1 + SYMMETRIC[3 * c + d]]
            plane[c] = row[0] * gx
            if SINGLE:
                plane[c] += m[c] * wx
            plane[3 + c] = row[1] * wx
            plane[6 + c] = row[2] * wx
        plane[9] = m[Q] * wx
    else:
        for c in range(NC):
            plane[c] = m[c] * wx


@pk.function
def along_y(plane: List[real], wy: real, gy: real, value: List[real], tilt: List[real]) -> None:
    """Set value and tilt of a row along z, as in `along_z`, from the numbers of its plane."""
    if COMB:
        for c in range(3):
            value[c] = plane[c] * wy + plane[3 + c] * gy
            tilt[c] = plane[6 + c] * wy
        value[3] = plane[9] * wy
    else:
        for c in range(NC):
            value[c] = plane[c] * wy
