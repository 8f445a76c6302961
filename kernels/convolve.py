"""Fourier multipliers on the half spectrum of a real grid, in place: one team a row of modes along the last axis.

The spectrum is complex, seen as pairs of reals: spec[c][a][b][2 j] and [2 j + 1].  Modes with k = 0 or |k| >= kmax are
dropped.  Per axis, k = wave numbers and d = deconvolution factors; profile = polynomial of the split's profile in
t = 2 k2 / kmax2 - 1, highest degree first.
"""

import pykokkos as pk

real = pk.double
DEGREE = 20  # of the profile's polynomial
COMB = False  # Stokes: a fourth component carries q.n


@pk.workunit
def convolve_laplace(
    team: pk.TeamMember, spec: pk.View4D[real], k0: pk.View1D[real], k1: pk.View1D[real], k2: pk.View1D[real],
    d0: pk.View1D[real], d1: pk.View1D[real], d2: pk.View1D[real], profile: pk.View1D[real], kmax2: real, m1: int,
    modes: int,
):  # fmt: skip
    """spec[0] *= 4 pi / k2 times profile and factors."""
    r: int = team.league_rank()
    a: int = r // m1
    b: int = r % m1
    kxy2: real = k0[a] * k0[a] + k1[b] * k1[b]
    dxy: real = 12.566370614359172 * d0[a] * d1[b]

    def mode(j: int):
        kk: real = kxy2 + k2[j] * k2[j]
        m: real = 0.0
        if kk < kmax2 and kk > 0.0:
            t: real = 2.0 * kk / kmax2 - 1.0
            v: real = profile[0]
            for n in range(1, DEGREE + 1):
                v = v * t + profile[n]
            m = dxy * d2[j] * v / kk
        spec[0][a][b][2 * j] *= m
        spec[0][a][b][2 * j + 1] *= m

    pk.parallel_for(pk.TeamThreadRange(team, modes), mode)


@pk.workunit
def convolve_stokes(
    team: pk.TeamMember, spec: pk.View4D[real], k0: pk.View1D[real], k1: pk.View1D[real], k2: pk.View1D[real],
    d0: pk.View1D[real], d1: pk.View1D[real], d2: pk.View1D[real], profile: pk.View1D[real], kmax2: real, m1: int,
    modes: int,
):  # fmt: skip
    """spec[0 .. 2] = 8 pi / k2 times profile and factors times [F - k (k.F)/k2 + i k tau]; tau = spec[3] if COMB."""
    r: int = team.league_rank()
    a: int = r // m1
    b: int = r % m1
    kx: real = k0[a]
    ky: real = k1[b]
    kxy2: real = kx * kx + ky * ky
    dxy: real = 25.132741228718345 * d0[a] * d1[b]

    def mode(j: int):
        kz: real = k2[j]
        kk: real = kxy2 + kz * kz
        m: real = 0.0
        safe: real = 1.0
        if kk < kmax2 and kk > 0.0:
            t: real = 2.0 * kk / kmax2 - 1.0
            v: real = profile[0]
            for n in range(1, DEGREE + 1):
                v = v * t + profile[n]
            m = v
            safe = kk
        inverse: real = 1.0 / safe
        m *= dxy * d2[j] * inverse
        x_re: real = spec[0][a][b][2 * j]
        x_im: real = spec[0][a][b][2 * j + 1]
        y_re: real = spec[1][a][b][2 * j]
        y_im: real = spec[1][a][b][2 * j + 1]
        z_re: real = spec[2][a][b][2 * j]
        z_im: real = spec[2][a][b][2 * j + 1]
        along_re: real = -(kx * x_re + ky * y_re + kz * z_re) * inverse
        along_im: real = -(kx * x_im + ky * y_im + kz * z_im) * inverse
        if COMB:
            along_re -= spec[3][a][b][2 * j + 1]
            along_im += spec[3][a][b][2 * j]
        spec[0][a][b][2 * j] = m * (x_re + kx * along_re)
        spec[0][a][b][2 * j + 1] = m * (x_im + kx * along_im)
        spec[1][a][b][2 * j] = m * (y_re + ky * along_re)
        spec[1][a][b][2 * j + 1] = m * (y_im + ky * along_im)
        spec[2][a][b][2 * j] = m * (z_re + kz * along_re)
        spec[2][a][b][2 * j + 1] = m * (z_im + kz * along_im)

    pk.parallel_for(pk.TeamThreadRange(team, modes), mode)
