"""Particle-particle: the near field of a periodic Ewald sum, |r| < rc.

Sources are sorted by cell, the last axis fastest, so the cells of one (x, y) column that lie within reach of a batch of
targets are one run of sources.  A batch is a few neighbouring targets, one vector's worth on a host; its bounding box
culls columns and trims the runs.  Cells and images are counted without wrapping, so any rc is right in any box.
"""

from typing import List

import pykokkos as pk

from parki.kernels.pair.laplace import NF, NS, NU, pair
from parki.kernels.scalar import rinv_or_zero

real = pk.double
TERMS = 16  # coefficients, an even number, of each polynomial in t = 2 r2 / rc2 - 1 that holds a far part


@pk.workunit
def p2p_gm_1d(
    team: pk.TeamMember, xt: pk.View2D[real], src: pk.View2D[real], u: pk.View2D[real], batch: pk.View2D[pk.int32],
    bound: pk.View2D[real], cell_begin: pk.View1D[pk.int32], coef: pk.View1D[real], n0: int, n1: int,
    n2: int, images: int, l0: real, l1: real, l2: real, h0: real, h1: real, h2: real, rc: real, tiny: real,
):  # fmt: skip
    """u[:, i] = near field at target i.

    batch[b] = first target and end; bound[b] = lowest x, y, z, highest x, y, z; src[e] = (x, y, z, strengths);
    coef = the polynomials of the far parts one after another, highest degree first; n cells of width h in a box of
    sides l; `images` is at least the number of box sides that rc reaches over, plus one.
    """
    b: int = team.league_rank()
    t_begin: int = batch[b][0]
    nt: int = batch[b][1] - t_begin
    x_lo: real = bound[b][0]
    y_lo: real = bound[b][1]
    z_lo: real = bound[b][2]
    x_hi: real = bound[b][3]
    y_hi: real = bound[b][4]
    z_hi: real = bound[b][5]
    rc2: real = rc * rc
    scale: real = 2.0 / rc2
    a_begin: int = int(pk.floor((x_lo - rc) / h0))
    a_end: int = int(pk.floor((x_hi + rc) / h0)) + 1
    c_begin: int = int(pk.floor((y_lo - rc) / h1))
    c_end: int = int(pk.floor((y_hi + rc) / h1)) + 1

    def target(t: int):
        i: int = t_begin + t
        x: real = xt[0][i]
        y: real = xt[1][i]
        z: real = xt[2][i]
        acc: List[real] = [0.0] * NU
        for a in range(a_begin, a_end):
            a_image: int = (a + images * n0) // n0 - images
            column_x: int = (a - a_image * n0) * n1
            gap_x: real = pk.fmax(0.0, pk.fmax(real(a) * h0 - x_hi, x_lo - real(a + 1) * h0))
            x_shifted: real = x - real(a_image) * l0
            for c in range(c_begin, c_end):
                gap_y: real = pk.fmax(0.0, pk.fmax(real(c) * h1 - y_hi, y_lo - real(c + 1) * h1))
                left: real = rc2 - gap_x * gap_x - gap_y * gap_y
                if left > 0.0:
                    c_image: int = (c + images * n1) // n1 - images
                    row: int = (column_x + c - c_image * n1) * n2
                    y_shifted: real = y - real(c_image) * l1
                    reach: real = pk.sqrt(left)
                    d_first: int = int(pk.floor((z_lo - reach) / h2)) + images * n2
                    d_last: int = int(pk.floor((z_hi + reach) / h2)) + images * n2
                    p_begin: int = d_first // n2
                    p_end: int = d_last // n2 + 1
                    for p in range(p_begin, p_end):
                        first: int = d_first - p * n2
                        if first < 0:
                            first = 0
                        last: int = d_last - p * n2
                        if last > n2 - 1:
                            last = n2 - 1
                        z_shifted: real = z - real(p - images) * l2
                        e_begin: int = cell_begin[row + first]
                        e_end: int = cell_begin[row + last + 1]
                        for e in range(e_begin, e_end):
                            dx: real = x_shifted - src[e][0]
                            dy: real = y_shifted - src[e][1]
                            dz: real = z_shifted - src[e][2]
                            r2: real = dx * dx + dy * dy + dz * dz
                            if r2 < rc2:
                                w: real = rinv_or_zero(r2, tiny)
                                tau: real = r2 * scale - 1.0
                                far: List[real] = [0.0] * NF
                                tau2: real = tau * tau
                                for f in range(NF):
                                    # even and odd powers apart: two chains of half the length
                                    even: real = coef[f * TERMS]
                                    odd: real = coef[f * TERMS + 1]
                                    for n in range(1, TERMS // 2):
                                        even = even * tau2 + coef[f * TERMS + 2 * n]
                                        odd = odd * tau2 + coef[f * TERMS + 2 * n + 1]
                                    far[f] = odd + even * tau
                                s: List[real] = [0.0] * NS
                                for k in range(NS):
                                    s[k] = src[e][3 + k]
                                pair(dx, dy, dz, r2, w, far, s, acc)
        for k in range(NU):
            u[k][i] = acc[k]

    pk.parallel_for(pk.TeamThreadRange(team, nt), target)
