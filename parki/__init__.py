"""parki: fast sums of particle interactions, from one kernel source for every machine.

``parki.ewald``, ``parki.treecode``, ``parki.fmm``, ``parki.direct``, ``parki.distributed``, ``parki.pairs``,
``parki.samples``, ``parki.units``, ``parki.utils``, ``parki.engine``, ``parki.torch``, ``parki.jax``, ``parki.ase``,
``parki.CellList``, ``parki.sum`` and ``parki.fastest`` are imported on first use, so ``import parki`` costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parki import ase as ase
    from parki import direct, distributed, engine, ewald, fmm, pairs, samples, treecode, units, utils
    from parki import jax as jax
    from parki import torch as torch
    from parki.automatic.api import fastest, sum
    from parki.celllist import CellList

__version__ = "0.1.0"

SUBMODULES = "ase direct distributed engine ewald fmm jax pairs samples torch treecode units utils".split()
OBJECTS = {"CellList": "parki.celllist", "fastest": "parki.automatic.api", "sum": "parki.automatic.api"}
__all__ = [
    "CellList",
    "__version__",
    "direct",
    "distributed",
    "engine",
    "ewald",
    "fastest",
    "fmm",
    "pairs",
    "samples",
    "sum",
    "treecode",
    "units",
    "utils",
]

if not TYPE_CHECKING:  # type checkers, which read the imports above, find a name that is not there

    def __getattr__(name: str) -> Any:
        if name in SUBMODULES:
            return importlib.import_module(f"parki.{name}")
        if name in OBJECTS:
            return getattr(importlib.import_module(OBJECTS[name]), name)
        raise AttributeError(f"module 'parki' has no attribute {name!r}; it has {', '.join((*SUBMODULES, *OBJECTS))}")


def __dir__() -> list[str]:
    return sorted(__all__)
