"""Stokes flow of forces f, point flows c, torques t, tensors S: velocity u, pressure p, gradient, curl, Laplacian.

    u = f/r + r (r.f)/r^3 + c r/r^3 + t x r/r^3 - 6 r (r.S r)/r^5
    p = 2 r.f/r^3 + 4 tr S/r^3 - 12 (r.S r)/r^5

with laplacian u = grad p away from sources.  S is symmetric, (q n + n q)/2 for a double layer.  A source holds the
chosen ones of f, c, t, S, and of doublets g, whose u = 2 g/r^3 - 6 r (r.g)/r^5 is the Laplacian of that of forces and
has no pressure, in this order.  With `SPHERE` the flow of f is that of spheres further apart than their
diameter 2 a (Rotne, Prager, Yamakawa): u gains 2 a^2/3 [f/r^3 - 3 r (r.f)/r^5], which has no pressure.
"""

from typing import List

import pykokkos as pk

real = pk.double
FORCE = True
FLOW = True
TORQUE = False
TENSOR = False  # S: xx xy xz yy yz zz
DOUBLET = False
SPHERE = False  # a, behind all others
VELOCITY = True
PRESSURE = True
GRADIENT = False  # of the velocity, of f and c: 3 i + j is the derivative of component i along axis j
SPIN = False  # half the curl of the velocity, of f, c and t: f x r/r^3 + (3 r (r.t)/r^5 - t/r^3)/2
LAPLACIAN = False  # of the velocity
C = 3 * FORCE
T = C + 1 * FLOW
S = T + 3 * TORQUE
D = S + 6 * TENSOR
A = D + 3 * DOUBLET
NS = A + 1 * SPHERE
P = 3 * VELOCITY
G = P + 1 * PRESSURE
W = G + 9 * GRADIENT
L = W + 3 * SPIN
NU = L + 3 * LAPLACIAN
NF = 1


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the chosen fields of the chosen sources to u."""
    w2: real = w * w
    w3: real = w2 * w
    g: real = 0.0  # factor of r
    p: real = 0.0
    if TENSOR:
        tx: real = dx * s[S] + dy * s[S + 1] + dz * s[S + 2]
        ty: real = dx * s[S + 1] + dy * s[S + 3] + dz * s[S + 4]
        tz: real = dx * s[S + 2] + dy * s[S + 4] + dz * s[S + 5]
        g = -6.0 * (w3 * w2) * (dx * tx + dy * ty + dz * tz)
        p = 4.0 * (w3 * (s[S] + s[S + 3] + s[S + 5])) + 2.0 * g
    if FLOW:
        g += s[C] * w3
    if DOUBLET:
        g -= 6.0 * (w3 * w2) * (dx * s[D] + dy * s[D + 1] + dz * s[D + 2])
        if VELOCITY:
            u[0] += 2.0 * (w3 * s[D])
            u[1] += 2.0 * (w3 * s[D + 1])
            u[2] += 2.0 * (w3 * s[D + 2])
    if FORCE:
        rf: real = dx * s[0] + dy * s[1] + dz * s[2]
        a: real = w
        b: real = w3
        p += 2.0 * (w3 * rf)
        if SPHERE:
            v: real = (2.0 / 3.0) * (s[A] * s[A]) * w3
            a += v
            b -= 3.0 * (v * w2)
        g += b * rf
        if VELOCITY:
            u[0] += a * s[0]
            u[1] += a * s[1]
            u[2] += a * s[2]
        if LAPLACIAN:
            steeper: real = -6.0 * (w3 * w2) * rf
            u[L] += 2.0 * (w3 * s[0]) + steeper * dx
            u[L + 1] += 2.0 * (w3 * s[1]) + steeper * dy
            u[L + 2] += 2.0 * (w3 * s[2]) + steeper * dz
    if TORQUE:
        u[0] += w3 * (s[T + 1] * dz - s[T + 2] * dy)
        u[1] += w3 * (s[T + 2] * dx - s[T] * dz)
        u[2] += w3 * (s[T] * dy - s[T + 1] * dx)
    if SPIN:
        if FORCE:
            u[W] += w3 * (s[1] * dz - s[2] * dy)
            u[W + 1] += w3 * (s[2] * dx - s[0] * dz)
            u[W + 2] += w3 * (s[0] * dy - s[1] * dx)
        if TORQUE:
            h: real = 1.5 * (w3 * w2) * (dx * s[T] + dy * s[T + 1] + dz * s[T + 2])
            u[W] += h * dx - 0.5 * w3 * s[T]
            u[W + 1] += h * dy - 0.5 * w3 * s[T + 1]
            u[W + 2] += h * dz - 0.5 * w3 * s[T + 2]
    if VELOCITY:
        u[0] += g * dx
        u[1] += g * dy
        u[2] += g * dz
    if PRESSURE:
        u[P] += p
    if GRADIENT:
        e: List[real] = [dx, dy, dz]
        steep: real = -3.0 * (w2 * g)
        for i in range(3):
            along: real = steep * e[i] - w3 * s[i]
            side: real = w3 * e[i]
            for j in range(3):
                u[G + 3 * i + j] += along * e[j] + side * s[j]
            u[G + 4 * i] += g
