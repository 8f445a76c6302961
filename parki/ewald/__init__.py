"""Spectral Ewald sums in periodic boxes."""

from parki.ewald.api import laplace, plan, stokes_comb, stokes_sl
from parki.ewald.options import EwaldOptions
from parki.ewald.plan import Plan, PrecisionWarning

__all__ = ["EwaldOptions", "Plan", "PrecisionWarning", "laplace", "plan", "stokes_comb", "stokes_sl"]
