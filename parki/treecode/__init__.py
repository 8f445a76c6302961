"""Treecodes in free space: barycentric Lagrange treecode (BLTC) and dual tree traversal (BLDTT)."""

from parki.plan import Plan
from parki.treecode.api import bldtt, bltc, plan
from parki.treecode.params import Parameters

__all__ = ["Parameters", "Plan", "bldtt", "bltc", "plan"]


def __dir__() -> list[str]:
    return sorted(__all__)
