"""Particle-to-grid: runs of neighbouring sources in team scratch, threads own grid points, one atomic addition each.

A team computes a run's windows in scratch, and the moments of one right-hand side after another.  Each thread then owns
ZT grid points along z of the box of grid points that the run reaches, and goes over the sources with one sum per grid
point and component in registers.  A source's window along z has ZT - 1 zeros on either side, so that ZT grid points
that overlap the window anywhere read it without a test.

Scratch of a source: NM moments, 2 P + ZP window values, and as many slopes if COMB, 3 anchors; CAP = 32 sources of
COMB with P = 16 and ZT = 8 in double precision take 34 KB.
"""

from typing import List

import pykokkos as pk

from parki.kernels.strengths import COMB, NC, NM, RHS, along_z, moments
from parki.kernels.window import P, first_tap, offset, slope_tap, tap

real = pk.double
coord = real
CAP = 32  # sources in scratch
ZT = 8  # grid points per thread
ZP = P + 2 * (ZT - 1)  # window values along z, zeros included
SLOPES = 2 * P + ZP  # index of a source's first slope, after its window values
WIN = SLOPES * (1 + COMB)


@pk.workunit(scratch=[(real, lambda p: CAP * WIN), (real, lambda p: CAP * NM), (pk.int32, lambda p: CAP * 3)])
def p2g_hybrid(
    team: pk.TeamMember, src: pk.View2D[coord], grid: pk.View4D[real], batch: pk.View2D[pk.int32],
    bound: pk.View2D[coord], window: pk.View2D[real], slope: pk.View2D[real], s0: coord, s1: coord, s2: coord,
):  # fmt: skip
    """Add sources batch[b][0] … batch[b][1] - 1 to grid; bound[b] = their lowest x, y, z and highest x, y, z.

    A run of more than CAP sources is taken in parts; window, slope and s as in window.py.
    """
    b: int = team.league_rank()
    begin: int = batch[b][0]
    end: int = batch[b][1]
    x_first: int = first_tap(bound[b][0], s0)
    y_first: int = first_tap(bound[b][1], s1)
    z_first: int = first_tap(bound[b][2], s2)
    nx: int = first_tap(bound[b][3], s0) - x_first + P
    ny: int = first_tap(bound[b][4], s1) - y_first + P
    nz: int = first_tap(bound[b][5], s2) - z_first + P
    items: int = nx * ny * ((nz + ZT - 1) // ZT)
    win: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), CAP * WIN)
    moment: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), CAP * NM)
    first: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), CAP * 3)
    for e_begin in range(begin, end, CAP):
        m: int = end - e_begin
        if m > CAP:
            m = CAP

        def anchors(t: int):
            e: int = e_begin + t
            first[3 * t] = first_tap(src[e][0], s0) - x_first
            first[3 * t + 1] = first_tap(src[e][1], s1) - y_first
            first[3 * t + 2] = first_tap(src[e][2], s2) - z_first

        pk.parallel_for(pk.TeamThreadRange(team, m), anchors)

        def taps(q: int):
            t: int = q // ZP
            k: int = q % ZP
            at: int = t * WIN
            tx: real = offset(src[e_begin + t][0], s0)
            ty: real = offset(src[e_begin + t][1], s1)
            tz: real = offset(src[e_begin + t][2], s2)
            in_plane: bool = k < P
            if in_plane:
                wx: real = tap(window, k, tx)
                wy: real = tap(window, k, ty)
                win[at + k] = wx
                win[at + P + k] = wy
                if COMB:
                    gx: real = slope_tap(slope, k, tx, s0)
                    gy: real = slope_tap(slope, k, ty, s1)
                    win[at + SLOPES + k] = gx
                    win[at + SLOPES + P + k] = gy
            wz: real = 0.0
            gz: real = 0.0
            tap_along_z: bool = k >= ZT - 1 and k < P + ZT - 1
            if tap_along_z:
                wz = tap(window, k - (ZT - 1), tz)
                if COMB:
                    gz = slope_tap(slope, k - (ZT - 1), tz, s2)
            win[at + 2 * P + k] = wz
            if COMB:
                win[at + SLOPES + 2 * P + k] = gz

        pk.parallel_for(pk.TeamThreadRange(team, m * ZP), taps)
        for r in range(RHS):

            def strengths(t: int):
                v: List[real] = [0.0] * NM
                moments(src, e_begin + t, r, 0, v)
                for c in range(NM):
                    moment[t * NM + c] = v[c]

            pk.parallel_for(pk.TeamThreadRange(team, m), strengths)
            team.team_barrier()

            # y fastest: neighbouring threads read the same windows along z
            def item(q: int):
                z: int = q // (nx * ny) * ZT
                x: int = q % (nx * ny) // ny
                y: int = q % ny
                acc: List[real] = [0.0] * (NC * ZT)
                for t in range(m):
                    i: int = x - first[3 * t]
                    j: int = y - first[3 * t + 1]
                    k: int = z - first[3 * t + 2] + (ZT - 1)
                    in_window: bool = i >= 0 and i < P and j >= 0 and j < P and k >= 0 and k < P + ZT - 1
                    if in_window:
                        at: int = t * WIN
                        v: List[real] = [0.0] * NM
                        for c in range(NM):
                            v[c] = moment[t * NM + c]
                        gx: real = 0.0
                        gy: real = 0.0
                        if COMB:
                            gx = win[at + SLOPES + i]
                            gy = win[at + SLOPES + P + j]
                        value: List[real] = [0.0] * NC
                        tilt: List[real] = [0.0] * NC
                        along_z(v, 0, win[at + i], gx, win[at + P + j], gy, value, tilt)
                        for n in range(ZT):
                            wz: real = win[at + 2 * P + k + n]
                            for c in range(NC):
                                acc[c * ZT + n] += value[c] * wz
                            if COMB:
                                gz: real = win[at + SLOPES + 2 * P + k + n]
                                for c in range(3):
                                    acc[c * ZT + n] += tilt[c] * gz
                for c in range(NC):
                    for n in range(ZT):
                        touched: bool = z + n < nz and acc[c * ZT + n] != 0.0
                        if touched:
                            pk.atomic_add(
                                grid, [r * NC + c, x_first + x, y_first + y, z_first + z + n], acc[c * ZT + n]
                            )

            pk.parallel_for(pk.TeamThreadRange(team, items), item)
            team.team_barrier()
