"""Parts of exact sums of the regularised stokeslet, by the split of `sums` with B = s = √(r² + ε²) in place of r.

The near part of B is that of r at s, in closed form; modes are the kernel's own, 8π (εk)² K₂(εk)/2k², less the
transform of the near part, a quadrature over r = ε sinh θ.
"""

from functools import lru_cache

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.special import erf, erfc, exp1, j0, kn, roots_legendre

NODES, STEPS = 700, 2400


def interval(n, end):
    """Return nodes and weights of a quadrature from 0 to an end."""
    nodes, weights = roots_legendre(n)
    return 0.5 * end * (nodes + 1), 0.5 * end * weights


def from_modes(r, k, modes, periodicity):
    """Return a field at distances r from a point, a line or a plane, of modes times weights of their quadrature."""
    waves = (
        lambda x: np.sinc(x / np.pi) * k**2 / (2 * np.pi**2), lambda x: j0(x) * k / (2 * np.pi),
        lambda x: np.cos(x) / np.pi,
    )[periodicity]  # fmt: skip
    return waves(np.outer(r, k)) @ modes


def pairs(r, s, xi, epsilon):
    """Sum the near kernels over the sources; r (3, Nt, Ns)."""
    sigma = np.sum(r * r, axis=0) + epsilon**2
    d = np.sqrt(sigma)
    a, bell = erfc(xi * d) / d, 2 * xi / np.sqrt(np.pi) * np.exp(-(xi**2) * sigma)
    second = -(a + bell) / (4 * sigma)
    across = 2 * a + 4 * (sigma - epsilon**2) * second
    return s @ across.T - np.einsum("imn,mn->im", r, 4 * second * np.einsum("imn,in->mn", r, s))


def modes(rho, k, kk, weight, xi, epsilon, reach):
    """Multiply the modes ρ of one plane."""
    length = np.sqrt(kk)
    own = 4 * np.pi * epsilon**2 * kn(2, epsilon * length)
    g = weight * (own + kk * near_part(xi, epsilon, reach, float(np.ceil(length.max())))(length))
    return g * (rho - k * np.sum(k * rho, axis=0) / kk)


@lru_cache(maxsize=4)
def near_part(xi, epsilon, reach, last):
    """Return the transform of the near part of B up to a wave number."""
    rest = xi * np.sqrt(np.pi)
    return transform(lambda s: s * erfc(xi * s) - np.exp(-((xi * s) ** 2)) / rest, xi, epsilon, reach, last)


def transform(near, xi, epsilon, reach, last):
    """Return the transform of a function of s = √(r² + ε²) that ends at `reach`/ξ, up to a wave number."""
    nodes, weights = roots_legendre(NODES)
    half = 0.5 * np.arcsinh(reach / (xi * epsilon))
    theta = half * (nodes + 1)
    r, s = epsilon * np.sinh(theta), epsilon * np.cosh(theta)
    k = np.linspace(-0.02 * last, 1.02 * last, STEPS)
    values = 4 * np.pi * half * weights * s * r**2 * near(s)
    return make_interp_spline(k, np.sinc(np.outer(k, r) / np.pi) @ values, 9)


def constant_modes(r, s, xi, box, periodicity, epsilon):
    """Return the far field of lines or planes of sources, across which r (3, Nt, Ns) is given."""
    tau = np.sum(r * r, axis=0)
    sigma = tau + epsilon**2
    d = np.sqrt(sigma)
    if periodicity == 2:
        step = erf(xi * d)
        lap = d * step + np.exp(-(xi**2) * sigma) / (xi * np.sqrt(np.pi)) + tau * step / d
        return -2 * np.pi / (box[0] * box[1]) * np.stack([s[0] @ lap.T, s[1] @ lap.T, 0 * (s[2] @ lap.T)])
    v = xi**2 * sigma
    first = -0.5 * (np.log(sigma) + exp1(v) + 1)
    second = 0.5 * np.expm1(-v) / sigma
    lap = 4 * first + 4 * tau * second
    u = s @ lap.T - np.einsum("imn,mn->im", r, 4 * second * np.einsum("imn,in->mn", r, s))
    u[1:] -= s[1:] @ (2 * first).T
    return u / box[0]


def far_laplacian(parts, r, xi, box, periodicity, epsilon):
    """Return the Laplacian of the far field around a point, a line or a plane, by the `parts` of exact sums."""
    if periodicity:
        at, along = np.zeros((3, len(r), 1)), np.eye(3)[:, :1]
        at[2, :, 0] = r
        return parts.constant_modes(at, along, xi, box, periodicity, epsilon)[0]
    at, axes = np.stack([r, 0 * r, 0 * r])[:, :, None], np.eye(3)  # the trace of the tensor is twice the Laplacian
    near, whole = (sum(parts.pairs(at, axes[:, [d]], end, epsilon)[d] for d in range(3)) for end in (xi, 0.0))
    return 0.5 * (whole - near)
