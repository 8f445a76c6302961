"""parki: fast sums of particle interactions, from one kernel source for every machine.

``parki.ewald``, ``parki.direct``, ``parki.utils`` and ``parki.engine`` are imported on first use, so ``import parki``
costs nothing.
"""

import importlib
from types import ModuleType

__version__ = "0.1.0"

SUBMODULES = ("direct", "engine", "ewald", "utils")
__all__ = ["__version__", "direct", "engine", "ewald", "utils"]


def __getattr__(name: str) -> ModuleType:
    if name in SUBMODULES:
        return importlib.import_module(f"parki.{name}")
    raise AttributeError(f"module 'parki' has no attribute {name!r}; it has {', '.join(SUBMODULES)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *SUBMODULES})
