"""Kernels as Python functions, and as the files that they stand for."""

SCALE = 0.5
NS = NU = NP = 1
real = float


def squared(r2, length):
    return r2 + length * length


def blob(dx, dy, dz, r2, w, far, s, u):
    """Add the potential of a blob."""
    from parki.kernels.scalar import rinv_or_zero

    u[0] += s[0] * rinv_or_zero(squared(r2, s[1]), 0.0) * SCALE


BLOB = '''"""A blob."""

from typing import List

import pykokkos as pk

from parki.kernels.scalar import rinv_or_zero

real = pk.double
NS = 2
NU = 1
NF = 1
SCALE = 0.5


@pk.function
def squared(r2: real, length: real) -> real:
    return r2 + length * length


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the potential of a blob."""
    u[0] += s[0] * rinv_or_zero(squared(r2, s[1]), 0.0) * SCALE
'''


def laplace(dx: real, dy: real, dz: real, r2: real, w: real, far: list[real], s: list[real], u: list[real]) -> None:
    a: real = w
    if SCREENED:  # noqa: F821
        a -= far[0]
    u[0] += s[0] * a


def root(r2, w, p, out):
    """Set out to sqrt(r2 + p^2) and its slope over r."""
    v: real = pk.sqrt(r2 + p[0] * p[0])  # noqa: F821
    out[0] = v
    out[1] = 1.0 / v


def unknown(dx, dy, dz, r2, w, far, s, u):
    """Fail in its fourth line, at column 13."""
    # its fourth line follows
    u[0] += nowhere  # noqa: F821
