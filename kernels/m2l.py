"""Translations of equivalent sources to check values by discrete Fourier transforms, eight siblings side by side.

A cube grid of P points per direction holds the M points on its surface; a transform has F = 2 P - 1 values per
direction, so that differences of grid points do not wrap.  Values of an octet have the layout
[component M + point][sibling], spectra [frequency][octet][16 component + sibling], each imaginary part 8 behind its
real part; those of sources may have the sum of both, 16 behind.  A plane of frequencies is one kz in 0 … P - 1: rows
of ky, each with F values of kx, both in the order 0 … P - 1, 1 - P … -1.  Plane 0 has the rows 0 … P - 1 only; the
tables of `products` include the weights that make up for the rows left out.  cosine[k][x] and sine[k][x] are those of
2 pi k x / F.
"""

from typing import List

import pykokkos as pk

real = pk.double  # of spectra
wide = pk.double  # of equivalent sources and check values
P = 6  # surface points per edge
NS = 1  # components of equivalent sources
NT = 1  # components of check values
F = 2 * P - 1
M = 6 * (P - 1) * (P - 1) + 2
DIRECTIONS = 26
GAUSS = False  # a complex product takes three real ones, not four: sources have a third part, the sum of both
ROW = 16 + 8 * GAUSS  # numbers of a component of sources


@pk.function
def start(first: int, k: int) -> int:
    """Return the index of the first frequency of plane k, counted from the begin of plane `first`."""
    n: int = (k - first) * F * F
    if first == 0 and k > 0:
        n = P * F + (k - 1) * F * F
    return n


@pk.function
def store_spectrum(spectra: pk.View3D[real], at: int, row: int, place: int, re: real, im: real) -> None:
    """Store a frequency of a sibling, whose imaginary part and the sum of both are 8 and 16 behind the real part."""
    spectra[at][row][place] = re
    spectra[at][row][place + 8] = im
    if GAUSS:
        spectra[at][row][place + 16] = re + im


@pk.workunit(scratch=[(real, lambda p: 16 * P * F)])
def forward(
    team: pk.TeamMember, octet: pk.View1D[pk.int32], given: pk.View3D[wide], column: pk.View1D[pk.int32],
    cosine: pk.View2D[real], sine: pk.View2D[real], spectra: pk.View3D[real], first: int, planes: int,
):  # fmt: skip
    """Transform the equivalent sources of octets `octet`, planes first … first + planes - 1, one plane per team.

    column[x P + y] is the first surface point above (x, y): the column has P points on the rim, else its two ends.
    """
    b: int = team.league_rank()
    k: int = first + b % planes
    c: int = b // planes % NS
    row: int = b // (planes * NS)
    o: int = octet[row]
    base: int = start(first, k)
    lines: int = F
    if k == 0:
        lines = P
    half: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 16 * P * F)

    def over_y(x: int):
        def lane(i: int):
            zr: List[real] = [0.0] * P
            zi: List[real] = [0.0] * P
            for y in range(P):
                at: int = c * M + column[x * P + y]
                on_rim: bool = x == 0 or x == P - 1 or y == 0 or y == P - 1
                if on_rim:
                    for z in range(P):
                        v: real = real(given[o][at + z][i])
                        zr[y] += v * cosine[k][z]
                        zi[y] -= v * sine[k][z]
                else:
                    end: real = real(given[o][at + 1][i])
                    zr[y] = real(given[o][at][i]) + end * cosine[k][P - 1]
                    zi[y] = -(end * sine[k][P - 1])
            for j in range(P):
                rc: real = 0.0
                rs: real = 0.0
                ic: real = 0.0
                si: real = 0.0
                for y in range(P):
                    rc += zr[y] * cosine[j][y]
                    rs += zr[y] * sine[j][y]
                    ic += zi[y] * cosine[j][y]
                    si += zi[y] * sine[j][y]
                half[(j * P + x) * 16 + i] = rc + si
                half[(j * P + x) * 16 + 8 + i] = ic - rs
                if j > 0:
                    half[((F - j) * P + x) * 16 + i] = rc - si
                    half[((F - j) * P + x) * 16 + 8 + i] = ic + rs

        pk.parallel_for(pk.ThreadVectorRange(team, 8), lane)

    pk.parallel_for(pk.TeamThreadRange(team, P), over_y)
    team.team_barrier()

    def over_x(ky: int):
        def lane(i: int):
            yr: List[real] = [0.0] * P
            yi: List[real] = [0.0] * P
            for x in range(P):
                yr[x] = half[(ky * P + x) * 16 + i]
                yi[x] = half[(ky * P + x) * 16 + 8 + i]
            at: int = base + ky * F
            for j in range(P):
                rc: real = 0.0
                rs: real = 0.0
                ic: real = 0.0
                si: real = 0.0
                for x in range(P):
                    rc += yr[x] * cosine[j][x]
                    rs += yr[x] * sine[j][x]
                    ic += yi[x] * cosine[j][x]
                    si += yi[x] * sine[j][x]
                store_spectrum(spectra, at + j, row, c * ROW + i, rc + si, ic - rs)
                if j > 0:
                    store_spectrum(spectra, at + F - j, row, c * ROW + i, rc - si, ic + rs)

        pk.parallel_for(pk.ThreadVectorRange(team, 8), lane)

    pk.parallel_for(pk.TeamThreadRange(team, lines), over_x)


@pk.function
def take_translation(
    kernel: pk.ScratchView1D[real], place: pk.View1D[pk.int32], table: pk.View3D[real], f: int, c: int, columns: int,
    q: int, i: int,
) -> None:  # fmt: skip
    """Copy the translation from sibling q % 8 to sibling i, in direction q // 8, of frequency f to scratch."""
    at: int = place[8 * q + i]
    kernel[16 * q + i] = table[f][c][at]
    kernel[16 * q + 8 + i] = table[f][c][columns + at]


@pk.workunit(scratch=[(real, lambda p: 128 * DIRECTIONS)])
def products(
    team: pk.TeamMember, item: pk.View2D[pk.int32], rows: pk.View1D[pk.int32], of: pk.View2D[pk.int32],
    pair: pk.View2D[pk.int32], place: pk.View1D[pk.int32], table: pk.View3D[real], given: pk.View3D[real],
    made: pk.View3D[real], columns: int,
):  # fmt: skip
    """Compute the spectra of check values: for each pair of octets, 8 × 8 translations between their boxes.

    An item is (frequency, first block, end).  Target rows rows[n] … rows[n + 1] - 1 belong to block n, and for
    of[n][d] <= j < of[n][d + 1] pair[j] is (target row, source row) in direction d.  The transform of the kernel
    from sibling s to sibling t is at table[frequency][component t NS + component s][place[64 d + 8 s + t]], and its
    imaginary part `columns` behind.
    """
    b: int = team.league_rank()
    f: int = item[b][0]
    first: int = item[b][1]
    end: int = item[b][2]
    kernel: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 128 * DIRECTIONS)
    for c in range(NT * NS):
        t: int = c // NS * 16
        s: int = c % NS * ROW

        def copy(q: int):
            def value(i: int):
                take_translation(kernel, place, table, f, c, columns, q, i)

            pk.parallel_for(pk.ThreadVectorRange(team, 8), value)

        pk.parallel_for(pk.TeamThreadRange(team, 8 * DIRECTIONS), copy)
        team.team_barrier()

        def block(k: int):
            n: int = first + k
            row_begin: int = rows[n]
            row_end: int = rows[n + 1]

            def lane(i: int):
                if s == 0:
                    for row in range(row_begin, row_end):
                        made[f][row][t + i] = 0.0
                        made[f][row][t + 8 + i] = 0.0
                for d in range(DIRECTIONS):
                    j_begin: int = of[n][d]
                    j_end: int = of[n][d + 1]
                    if j_end > j_begin:
                        kr: List[real] = [0.0] * 8
                        ki: List[real] = [0.0] * 8
                        both: List[real] = [0.0] * 8
                        for e in range(8):
                            kr[e] = kernel[128 * d + 16 * e + i]
                            ki[e] = kernel[128 * d + 16 * e + 8 + i]
                            if GAUSS:
                                both[e] = kr[e] + ki[e]
                        for j in range(j_begin, j_end):
                            to: int = pair[j][0]
                            source: int = pair[j][1]
                            re: real = made[f][to][t + i]
                            im: real = made[f][to][t + 8 + i]
                            rr: real = 0.0
                            ii: real = 0.0
                            cross: real = 0.0
                            for e in range(8):
                                x: real = given[f][source][s + e]
                                y: real = given[f][source][s + 8 + e]
                                rr += kr[e] * x
                                ii += ki[e] * y
                                if GAUSS:
                                    cross += both[e] * given[f][source][s + 16 + e]
                                else:
                                    cross += ki[e] * x
                                    im += kr[e] * y
                            if GAUSS:
                                cross -= rr + ii
                            made[f][to][t + i] = re + (rr - ii)
                            made[f][to][t + 8 + i] = im + cross

            pk.parallel_for(pk.ThreadVectorRange(team, 8), lane)

        pk.parallel_for(pk.TeamThreadRange(team, end - first), block)
        team.team_barrier()


@pk.workunit(scratch=[(real, lambda p: 16 * P * F)])
def backward(
    team: pk.TeamMember, octet: pk.View1D[pk.int32], spectra: pk.View3D[real], column: pk.View1D[pk.int32],
    cosine: pk.View2D[real], sine: pk.View2D[real], made: pk.View3D[wide], first: int, planes: int,
):  # fmt: skip
    """Add the inverse transform of planes first … first + planes - 1 to the check values of octets `octet`."""
    b: int = team.league_rank()
    c: int = b % NT
    row: int = b // NT
    o: int = octet[row]
    half: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 16 * P * F)
    for k in range(first, first + planes):
        base: int = start(first, k)
        lines: int = F
        if k == 0:
            lines = P

        def over_x(ky: int):
            def lane(i: int):
                at: int = base + ky * F
                er: List[real] = [0.0] * P
                ei: List[real] = [0.0] * P
                dr: List[real] = [0.0] * P
                di: List[real] = [0.0] * P
                er[0] = spectra[at][row][c * 16 + i]
                ei[0] = spectra[at][row][c * 16 + 8 + i]
                for j in range(1, P):
                    ar: real = spectra[at + j][row][c * 16 + i]
                    ai: real = spectra[at + j][row][c * 16 + 8 + i]
                    br: real = spectra[at + F - j][row][c * 16 + i]
                    bi: real = spectra[at + F - j][row][c * 16 + 8 + i]
                    er[j] = ar + br
                    ei[j] = ai + bi
                    dr[j] = ar - br
                    di[j] = ai - bi
                for x in range(P):
                    vr: real = er[0]
                    vi: real = ei[0]
                    wr: real = 0.0
                    wi: real = 0.0
                    for j in range(1, P):
                        vr += er[j] * cosine[j][x]
                        vi += ei[j] * cosine[j][x]
                        wr += di[j] * sine[j][x]
                        wi += dr[j] * sine[j][x]
                    half[(x * F + ky) * 16 + i] = vr - wr
                    half[(x * F + ky) * 16 + 8 + i] = vi + wi

            pk.parallel_for(pk.ThreadVectorRange(team, 8), lane)

        pk.parallel_for(pk.TeamThreadRange(team, lines), over_x)
        team.team_barrier()

        def over_y(x: int):
            def lane(i: int):
                er: List[real] = [0.0] * P
                ei: List[real] = [0.0] * P
                dr: List[real] = [0.0] * P
                di: List[real] = [0.0] * P
                er[0] = half[x * F * 16 + i]
                ei[0] = half[x * F * 16 + 8 + i]
                for j in range(1, P):
                    er[j] = half[(x * F + j) * 16 + i]
                    ei[j] = half[(x * F + j) * 16 + 8 + i]
                    dr[j] = er[j]
                    di[j] = ei[j]
                    has_mirror: bool = k > 0
                    if has_mirror:
                        br: real = half[(x * F + F - j) * 16 + i]
                        bi: real = half[(x * F + F - j) * 16 + 8 + i]
                        er[j] += br
                        ei[j] += bi
                        dr[j] -= br
                        di[j] -= bi
                for y in range(P):
                    vr: real = er[0]
                    vi: real = ei[0]
                    for j in range(1, P):
                        vr += er[j] * cosine[j][y]
                        vi += ei[j] * cosine[j][y]
                        vr -= di[j] * sine[j][y]
                        vi += dr[j] * sine[j][y]
                    at: int = c * M + column[x * P + y]
                    on_rim: bool = x == 0 or x == P - 1 or y == 0 or y == P - 1
                    if on_rim:
                        for z in range(P):
                            made[o][at + z][i] += wide(vr * cosine[k][z] - vi * sine[k][z])
                    else:
                        made[o][at][i] += wide(vr)
                        made[o][at + 1][i] += wide(vr * cosine[k][P - 1] - vi * sine[k][P - 1])

            pk.parallel_for(pk.ThreadVectorRange(team, 8), lane)

        pk.parallel_for(pk.TeamThreadRange(team, P), over_y)
        team.team_barrier()
