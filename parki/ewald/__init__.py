"""Spectral Ewald sums in boxes that are periodic in none, one, two or all directions."""

from parki.error import CancellationWarning, NetDensityWarning, PrecisionWarning
from parki.ewald.api import laplace, laplace_dipole, laplace_grad, plan, yukawa
from parki.ewald.kernel import Kernel
from parki.ewald.options import EwaldOptions
from parki.ewald.spheres import regularised_dipole, regularised_stokeslet, rpy, rpy_rotation
from parki.ewald.stokes import rotlet, stokes_comb, stokes_dipole, stokes_dl, stokes_grad, stokes_pressure, stokes_sl
from parki.plan import Plan

__all__ = [
    "CancellationWarning",
    "EwaldOptions",
    "Kernel",
    "NetDensityWarning",
    "Plan",
    "PrecisionWarning",
    "laplace",
    "laplace_dipole",
    "laplace_grad",
    "plan",
    "regularised_dipole",
    "regularised_stokeslet",
    "rotlet",
    "rpy",
    "rpy_rotation",
    "stokes_comb",
    "stokes_dipole",
    "stokes_dl",
    "stokes_grad",
    "stokes_pressure",
    "stokes_sl",
    "yukawa",
]


def __dir__() -> list[str]:
    return sorted(__all__)
