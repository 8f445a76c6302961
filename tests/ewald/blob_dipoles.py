"""Parts of exact sums of the regularised source dipole (∇∇ − I∇²) A, by the split of `sums` with A = 1/s, s² = r² + ε².

The near part of A is erfc(ξs)/s; modes are the kernel's own, 4πε K₁(εk)/k, less the transform of the near part, a
quadrature over r = ε sinh θ.
"""

from functools import lru_cache

import numpy as np
from scipy.special import erf, erfc, k1

from tests.ewald import blobs


def tensor(r, s, first, second, dimensions):
    """Apply ∇∇ − I∇² of a function to dipoles, from its derivatives by r²; r (3, Nt, Ns) lies in some dimensions."""
    tau = np.sum(r * r, axis=0)
    u = np.einsum("imn,mn->im", r, 4 * second * np.einsum("imn,in->mn", r, s))
    u -= s @ (2 * dimensions * first + 4 * tau * second).T
    u[3 - dimensions :] += s[3 - dimensions :] @ (2 * first).T
    return u


def pairs(r, s, xi, epsilon):
    """Sum the near kernels over the sources; r (3, Nt, Ns)."""
    sigma = np.sum(r * r, axis=0) + epsilon**2
    d = np.sqrt(sigma)
    a, bell = erfc(xi * d) / d, 2 * xi / np.sqrt(np.pi) * np.exp(-(xi**2) * sigma)
    return tensor(r, s, -0.5 * (a + bell) / sigma, 0.75 * (a + bell) / sigma**2 + 0.5 * xi**2 * bell / sigma, 3)


def modes(rho, k, kk, weight, xi, epsilon, reach):
    """Multiply the modes ρ of one plane."""
    length = np.sqrt(kk)
    own = 4 * np.pi * epsilon * length * k1(epsilon * length)
    g = weight * (own - kk * near_part(xi, epsilon, reach, float(np.ceil(length.max())))(length))
    return g * (rho - k * np.sum(k * rho, axis=0) / kk)


@lru_cache(maxsize=4)
def near_part(xi, epsilon, reach, last):
    """Return the transform of the near part of A up to a wave number."""
    return blobs.transform(lambda s: erfc(xi * s) / s, xi, epsilon, reach, last)


def constant_modes(r, s, xi, box, periodicity, epsilon):
    """Return the far field of lines or planes of sources, across which r (3, Nt, Ns) is given."""
    sigma = np.sum(r * r, axis=0) + epsilon**2
    if periodicity == 2:  # the integral of erf(ξs)/s over a plane has the derivative −π erf(ξs)/s
        d = np.sqrt(sigma)
        step, bell = erf(xi * d), 2 * xi * d / np.sqrt(np.pi) * np.exp(-(xi**2) * sigma)
        return tensor(r, s, -np.pi * step / d, 0.5 * np.pi * (step - bell) / d**3, 1) / (box[0] * box[1])
    v = xi**2 * sigma
    first, second = np.expm1(-v) / sigma, -(np.expm1(-v) + v * np.exp(-v)) / sigma**2
    return tensor(r, s, first, second, 2) / box[0]
