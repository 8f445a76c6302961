"""Constants that a net density adds to a sum, for kernels whose result has a mean that periodic sums fix.

With free directions they undo the shifts of the truncated kernels.  Without free directions they make the mean over the
box of near and far field that of the kernel, with the near field cut at rc: for equal strengths the tail is coherent,
and the constant removes it.  The kernel's mean is zero for harmonic kernels (a uniform neutralising background) and
Stokes kernels (no mean flow).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import k0, roots_legendre

from parki.ewald.split import far_parts
from parki.ewald.split.far_parts import D_SPHERES, E_SPHERES, H_SPHERES, K_SPHERES, D, E, F, Y
from parki.ewald.split.profiles import Split
from parki.ewald.split.softened import SoftenedField, softened_field
from parki.ewald.split.softened_dipole import SoftenedDipoleField


@dataclass(frozen=True)
class Surroundings:
    """Box of a sum, and the split and truncation of its kernel.

    Attributes
    ----------
    box, periodicity
        Sides, of which the first `periodicity` are periodic.
    radius, logarithm
        Radius at which the Green's function is cut in free directions, and ln of this length in the caller's unit.
    split, rc, parameter
        Profile, cutoff of the near field, first parameter of the kernel: κ, or a radius.
    """

    box: tuple[float, float, float]
    periodicity: int
    radius: float
    logarithm: float
    split: Split
    rc: float
    parameter: float


def harmonic(place: Surroundings) -> NDArray[np.float64]:
    """Return the constant (1,) of 1/r."""
    l0, l1, l2 = place.box
    match place.periodicity:
        case 0:
            constant = 1 / place.radius
        case 1:
            constant = -2 * place.logarithm / l0
        case 2:
            constant = -2 * np.pi * l2 / 3 / (l0 * l1)
        case _:
            constant = -near_harmonic(place.split, place.rc) / math.prod(place.box)
    return np.array([constant])


def stokes(place: Surroundings) -> NDArray[np.float64]:
    """Return the constants (3,) of the single layer."""
    l0, l1, l2 = place.box
    match place.periodicity:
        case 0:
            return np.full(3, 2 / place.radius)
        case 1:
            transverse_mean = -(2 * place.logarithm + 1) / l0
            return np.array([-(4 * place.logarithm + 2) / l0, transverse_mean, transverse_mean])
        case 2:
            planar_mean = -4 * np.pi * l2 / 3 / (l0 * l1)
            return np.array([planar_mean, planar_mean, 0.0])
    return np.full(3, -near_stokes(place.split, place.rc) / math.prod(place.box))


def spheres(place: Surroundings) -> NDArray[np.float64]:
    """Return the constants (3,) of the flow of spheres, whose radius is the parameter."""
    if place.periodicity < 3:
        return stokes(place)
    return np.full(3, -near_spheres(place.split, place.rc, place.parameter) / math.prod(place.box))


def flow_and_laplacian(place: Surroundings) -> NDArray[np.float64]:
    """Return the constants (6,) of the single layer and of its Laplacian, which has none."""
    return np.concatenate([stokes(place), np.zeros(3)])


def rotating_spheres(place: Surroundings) -> NDArray[np.float64]:
    """Return the constants (6,) of velocities and angular velocities of spheres, whose radius is the parameter."""
    spin = 0.0
    if place.periodicity == 3:
        spin = -near_spin(place.split, place.rc, place.parameter) / math.prod(place.box)
    return np.concatenate([spheres(place), np.full(3, spin)])


def softened(place: Surroundings) -> NDArray[np.float64]:
    """Return the constants (3,) of the single layer of √(r² + ε²), where ε is the parameter."""
    split, rc, epsilon, periodicity = place.split, place.rc, place.parameter, place.periodicity
    match periodicity:
        case 2:
            return stokes(place)
        case 3:
            return np.full(3, -near_softened(split, rc, epsilon) / math.prod(place.box))
    shift = softened_field(SoftenedField, split, rc, epsilon, periodicity, place.radius).shift
    if periodicity == 0:
        return np.full(3, 2 * shift / 3)
    shift += 4 * (math.log(place.radius) - place.logarithm)  # the logarithm of a line in the caller's unit
    return np.array([1.0, 0.5, 0.5]) * shift / place.box[0]


def softened_dipole(place: Surroundings) -> NDArray[np.float64]:
    """Return the constants (3,) of the regularised source dipole, where ε is the parameter."""
    split, rc, epsilon, periodicity = place.split, place.rc, place.parameter, place.periodicity
    if periodicity == 3:
        return np.full(3, -near_softened_dipole(split, rc, epsilon) / math.prod(place.box))
    shift = softened_field(SoftenedDipoleField, split, rc, epsilon, periodicity, place.radius).shift
    parts = ((2 / 3, 2 / 3, 2 / 3), (1.0, 0.5, 0.5), (1.0, 1.0, 0.0))[periodicity]
    return np.array(parts) * shift / math.prod(place.box[:periodicity])


def screened(place: Surroundings) -> NDArray[np.float64]:
    """Return the constant (1,) of exp(−κr)/r."""
    if place.periodicity == 3:
        return np.array([beyond_screened(place.parameter, place.split, place.rc) / math.prod(place.box)])
    kappa = place.parameter
    shifts = (
        lambda: math.exp(-kappa * place.radius) / place.radius,
        lambda: 2 * float(k0(kappa * place.radius)) / place.box[0],
        lambda: 2 * math.pi / kappa * math.exp(-kappa * place.radius) / (place.box[0] * place.box[1]),
    )
    # The split's profile is not 1 at k = 0, and also multiplies the shift.
    return np.array([shifts[place.periodicity]() / place.split.growth(kappa)])


def near_harmonic(split: Split, rc: float) -> float:
    """Return ∫ K_near dV of 1/r over the ball of radius `rc`: −2πΦ''(0) up to the dropped tail."""
    r, weights = _radii(rc)
    return float(2 * np.pi * rc * np.sum(weights * r**2 * (1 / r - far_parts.values(F, split, r))))


def near_stokes(split: Split, rc: float) -> float:
    """Return ∫ K_near dV of a component of the single layer over the ball of radius `rc`: 0 up to the dropped tail."""
    r, weights = _radii(rc)
    d, e = (far_parts.values(part, split, r) for part in (D, E))
    mean = 1 / r - d - r**2 * e + (1 / r + r**2 * e) / 3
    return float(2 * np.pi * rc * np.sum(weights * r**2 * mean))


def near_spheres(split: Split, rc: float, radius: float) -> float:
    """Return ∫ K_near dV of a component of the flow of spheres over the ball of radius `rc`, as `near_stokes`."""
    r, weights = _beyond_contact(rc, radius)
    contact = 2 * radius
    separate_pair = 1 / r + (2 / 3) * radius**2 / r**3, 1 / r**3 - 2 * radius**2 / r**5
    overlap_pair = (4 / 3 - 0.375 * r / radius) / radius, 0.125 / (radius**2 * r)
    a, b = np.where(r > contact, separate_pair, overlap_pair)
    d, e = (far_parts.values(part, split, r, radius) for part in (D_SPHERES, E_SPHERES))
    mean = a - d - r**2 * e + (b + e) * r**2 / 3
    return float(4 * np.pi * np.sum(weights * r**2 * mean))


def near_softened(split: Split, rc: float, epsilon: float) -> float:
    """Return ∫ K_near dV of a component of the single layer of √(r² + ε²) over the ball of `rc`, as `near_stokes`."""
    r, s, weights = _softened_radii(rc, epsilon)
    d, e = (far_parts.values(part, split, r, epsilon) for part in (far_parts.D_SOFTENED, far_parts.E_SOFTENED))
    mean = 2 / s - d + r**2 / 3 * (-2 / s**3 - 2 * e)
    return float(4 * np.pi * np.sum(weights * r**2 * mean))


def near_softened_dipole(split: Split, rc: float, epsilon: float) -> float:
    """Return ∫ K_near dV of a component of the regularised source dipole over the ball of `rc`, as `near_softened`."""
    r, s, weights = _softened_radii(rc, epsilon)
    h, k = (far_parts.values(part, split, r, epsilon) for part in (far_parts.H_SOFTENED, far_parts.K_SOFTENED))
    mean = 2 * epsilon**2 / s**5 + 4 * h + (8 / 3) * r**2 * k
    return float(4 * np.pi * np.sum(weights * r**2 * mean))


def _softened_radii(rc: float, epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return radii r in (0, rc), √(r² + ε²), and the weights of their quadrature."""
    nodes, weights = roots_legendre(64)
    top = 0.5 * math.asinh(rc / epsilon)
    r, s = epsilon * np.sinh(top * (nodes + 1.0)), epsilon * np.cosh(top * (nodes + 1.0))
    return r, s, top * weights * s


def near_spin(split: Split, rc: float, radius: float) -> float:
    """Return ∫ K_near dV of a component of the angular velocity by torques over the ball of radius `rc`.

    Its mean over directions is zero beyond contact, but for the far part.
    """
    r, weights = _beyond_contact(rc, radius)
    x = np.minimum(r / radius, 2.0)
    overlap_pair = (1 - 0.75 * x + 0.0625 * x**3) / radius**3
    h, k = (far_parts.values(part, split, r, radius) for part in (H_SPHERES, K_SPHERES))
    mean = np.where(x < 2.0, overlap_pair, 0.0) + 2 * h + (4 / 3) * r**2 * k
    return float(4 * np.pi * np.sum(weights * r**2 * mean))


def _beyond_contact(rc: float, radius: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return radii in (0, rc) on both sides of a pair's contact, and the weights of their quadrature."""
    contact, rest = 2 * radius, rc - 2 * radius
    (inner, weights), (outer, _) = _radii(contact), _radii(rest)
    return np.concatenate([inner, contact + outer]), 0.5 * np.concatenate([contact * weights, rest * weights])


def beyond_screened(kappa: float, split: Split, rc: float) -> float:
    """Return the integral over space of exp(−κr)/r beyond rc and of its far part within rc, without the near field."""
    r, weights = _radii(rc)
    x = kappa * rc
    far = 2 * np.pi * rc * float(np.sum(weights * r**2 * far_parts.values(Y, split, r, kappa)))
    return far + 4 * np.pi * math.exp(-x) * (1 + x) / kappa**2


def _radii(rc: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return radii in (0, rc) and the weights of their quadrature, which sum to 2."""
    nodes, weights = roots_legendre(48)
    return 0.5 * rc * (nodes + 1.0), weights
