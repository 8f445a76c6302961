"""Rotne-Prager-Yamakawa mobility of spheres of radius a by forces f and torques t: velocity u, angular velocity o.

u = A f + B (r.f) r + C t x r,  o = C f x r + P t + Q (r.t) r,  A and B as in rpy.py.
r > 2 a: C = 1/r^3, P = -1/(2 r^3), Q = 3/(2 r^5); overlapping: C = (1 - 3 r/(8 a))/(2 a^3),
P = (1 - 27 r/(32 a) + 5 r^3/(64 a^3))/a^3, Q = (9/(32 r) - 3 r/(64 a^2))/a^4  (Wajnryb, Mizerski, Zuk, Szymczak 2013).
At r = 0 these are the mobilities of a sphere, u = 4 f/(3 a) and o = t/a^3.  Screened, far = (D, E, H, K) of the split:
A - D - r^2 E, B + E, C + 2 H, P + 2 H + 2 r^2 K, Q - 2 K.
"""

from typing import List

import pykokkos as pk

from parki.kernels.pair.rpy import tensor

real = pk.double
NS = 7  # f, t, a
NU = 6
NF = 4
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the velocity and the angular velocity due to a sphere to u."""
    half: real = 0.5 / s[6]
    v: real = pk.fmin(w, half)  # keeps the formulas of separate spheres finite where their results are not used
    a, b = tensor(r2, w, s[6])
    c: real = v * v * v
    p: real = -0.5 * c
    q: real = 1.5 * (c * (v * v))
    overlap: bool = r2 < 4.0 * s[6] * s[6]
    if overlap:
        x: real = half * (r2 * w)  # r/(2 a)
        h3: real = half * half * half
        c = h3 * (4.0 - 3.0 * x)
        p = h3 * (8.0 + x * (5.0 * (x * x) - 13.5))
        q = (h3 * half) * (4.5 * w - 3.0 * (half * x))
    if SCREENED:
        b += far[1]
        a -= far[0] + r2 * far[1]
        c += 2.0 * far[2]
        p += 2.0 * (far[2] + r2 * far[3])
        q -= 2.0 * far[3]
    g: real = b * (dx * s[0] + dy * s[1] + dz * s[2])
    e: real = q * (dx * s[3] + dy * s[4] + dz * s[5])
    u[0] += a * s[0] + g * dx + c * (s[4] * dz - s[5] * dy)
    u[1] += a * s[1] + g * dy + c * (s[5] * dx - s[3] * dz)
    u[2] += a * s[2] + g * dz + c * (s[3] * dy - s[4] * dx)
    u[3] += p * s[3] + e * dx + c * (s[1] * dz - s[2] * dy)
    u[4] += p * s[4] + e * dy + c * (s[2] * dx - s[0] * dz)
    u[5] += p * s[5] + e * dz + c * (s[0] * dy - s[1] * dx)
