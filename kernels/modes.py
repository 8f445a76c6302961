"""Scalar multipliers of planes of modes with a periodic part, or of single lines: one team per line along z.

The multiplier of a mode is (w / (k² + kappa²)) Q(2 k²/kmax² - 1) dx dy dz, where Q is the profile of the split as a
polynomial, highest power first, and dx, dy and dz are the factors of the window along the axes; it is 0 at k = 0 and
beyond kmax.  SOFTENED takes for Q a Chebyshev series in 2 (k²/kmax²)^(1/4) - 1, last term first.  FLAT has w in the
place of w / (k² + kappa²).  ROOT takes the square root that makes noise, share times what lies below it.
"""

import pykokkos as pk

real = pk.double
SINGLE = False  # planes are single lines: ky[m]
SKEW = False  # a triclinic cell: the wave vector is (kx + s01 ky + s02 kz, ky + s12 kz, kz)
ROOT = False
SOFTENED = False
FLAT = False


@pk.workunit
def plane_multipliers(
    team: pk.TeamMember, green: pk.View3D[real], kx: pk.View1D[pk.double], ky: pk.View1D[pk.double],
    kz: pk.View1D[pk.double], dx: pk.View1D[pk.double], dy: pk.View1D[pk.double], dz: pk.View1D[pk.double],
    power: pk.View1D[pk.double], number: pk.View1D[pk.double], rows: int, columns: int, terms: int,
):  # fmt: skip
    """Set green[m][b][j] for wave numbers kx[m], ky[b] and kz[j]; number is w, kappa², kmax², share, s01, s02, s12."""
    t: int = team.league_rank()
    m: int = t // rows
    b: int = t % rows
    line: int = b
    if SINGLE:
        line = m
    x0: pk.double = kx[m]
    y0: pk.double = ky[line]
    weight: pk.double = number[0] * dx[m] * dy[line]

    def mode(j: int):
        x: pk.double = x0
        y: pk.double = y0
        z: pk.double = kz[j]
        if SKEW:
            x += number[4] * y0 + number[5] * z
            y += number[6] * z
        k2: pk.double = x * x + y * y + z * z
        v: pk.double = 0.0
        has_part: bool = k2 > 0.0 and k2 <= number[2]
        if has_part:
            at: pk.double = 2.0 * k2 / number[2] - 1.0
            q: pk.double = power[0]
            if SOFTENED:
                at = 2.0 * pk.sqrt(pk.sqrt(k2 / number[2])) - 1.0
                before: pk.double = 0.0
                for d in range(1, terms):
                    next_sum: pk.double = 2.0 * at * q - before + power[d]
                    before = q
                    q = next_sum
                q -= at * before
            else:
                for d in range(1, terms):
                    q = q * at + power[d]
            v = weight * dz[j] * q
            if not FLAT:
                v /= k2 + number[1]
            if ROOT:
                if v < 0.0:
                    v = 0.0
                v = pk.sqrt(v * number[3])
        green[m][b][j] = real(v)

    pk.parallel_for(pk.TeamThreadRange(team, columns), mode)
