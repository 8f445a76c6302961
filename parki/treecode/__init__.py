"""Treecodes in free space: barycentric Lagrange treecode (BLTC) and dual tree traversal (BLDTT)."""

from parki.treecode.api import bldtt, bltc, plan
from parki.treecode.params import Parameters
from parki.treecode.plan import Plan

__all__ = ["Parameters", "Plan", "bldtt", "bltc", "plan"]


def __dir__() -> list[str]:
    return sorted(__all__)
