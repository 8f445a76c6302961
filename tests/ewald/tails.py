"""Integrals of near fields beyond the cutoff, which the error estimates of `parki.ewald.split.layers` are fitted to."""

import numpy as np
from scipy.special import roots_legendre

from parki.ewald.split import far_parts


def parts(split, r):
    """Return F, D, E, G at the radii `r` (N,); shape (4, N)."""
    return np.array([far_parts.values(getattr(far_parts, name), split, r) for name in "FDEG"])


def integral(layer, split, rc, kappa=None):
    """Return 4π ∫ |K_near|² r² dr from `rc` to 6 `rc`, averaged over the directions of the strengths.

    For the layer of laplace the kernel is that of Yukawa where `kappa` is given.
    """
    nodes, weights = roots_legendre(300)
    r, weights = rc * (3.5 + 2.5 * nodes), 2.5 * rc * weights
    F, D, E, G = parts(split, r)
    match layer.name:
        case "laplace" if kappa is not None:
            square = (np.exp(-kappa * r) / r - far_parts.values(far_parts.Y, split, r, kappa)) ** 2
        case "laplace":
            square = (1 / r - F) ** 2
        case "laplace_grad":
            square = (1 / r**2 + 2 * r * far_parts.values(far_parts.H, split, r)) ** 2
        case "stokes_sl":
            a, b = 1 / r - D - r**2 * E, 1 / r + r**2 * E
            square = a**2 + (2 * a * b + b**2) / 3
        case "stokes_grad":
            a, b, c = -(r**-2 + 4 * r * E + 2 * r**3 * G), r**-2 + r * E, 2 * r**3 * G - 3 / r**2
            square = a**2 + (8 * b**2 + c**2 + 4 * a * b + 2 * a * c + 4 * b * c) / 3
        case "regularised_dipole":  # for ε = 0
            h, k = (far_parts.values(part, split, r) for part in (far_parts.H, far_parts.K))
            a, b = 4 * h + 4 * r**2 * k - r**-3, 3 / r**3 - 4 * r**2 * k
            square = a**2 + (2 * a * b + b**2) / 3
        case _:
            side = -(3 * E + 2 * r**2 * G) * r
            along = 3 * side + (4 * G - 6 / r**5) * r**3
            square = along**2 / 9 + 2 * side**2 / 3
    return float(4 * np.pi * np.sum(weights * r**2 * square))
