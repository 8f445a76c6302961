"""Spectral Ewald sums in periodic boxes."""

from parki.ewald.api import laplace, plan, stokes_comb, stokes_sl
from parki.ewald.options import EwaldOptions
from parki.ewald.plan import Plan

__all__ = ["EwaldOptions", "Plan", "laplace", "plan", "stokes_comb", "stokes_sl"]
