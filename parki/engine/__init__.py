"""The compiler and launcher for workunits.

A kernel file is read as text, specialised, checked, lowered to C++, compiled once, and launched:

>>> import numpy as np
>>> from parki import engine
>>> unit = engine.kernel("cells", "gather_points", real="double")
>>> x, out = np.arange(9.0).reshape(3, 3), np.zeros((3, 2))
>>> order = np.array([2, 0], np.int32)
>>> engine.parallel_for(engine.RangePolicy("CPU", 2), unit, x=x, order=order, out=out)
>>> out[0]
array([2., 0.])
"""

from parki.engine.ahead import compile_all, compile_for
from parki.engine.counting import counters
from parki.engine.errors import BuildError, CheckedFault, KernelError, LaunchError, SpaceUnavailable
from parki.engine.launch import Prepared, parallel_for, parallel_reduce, prepare
from parki.engine.operations import operations
from parki.engine.policy import RangePolicy, TeamPolicy
from parki.engine.settled import settled
from parki.engine.specialise import constants
from parki.engine.workunit import Workunit, kernel, object_path

__all__ = [
    "BuildError",
    "CheckedFault",
    "KernelError",
    "LaunchError",
    "Prepared",
    "RangePolicy",
    "SpaceUnavailable",
    "TeamPolicy",
    "Workunit",
    "compile_all",
    "compile_for",
    "constants",
    "counters",
    "kernel",
    "object_path",
    "operations",
    "parallel_for",
    "parallel_reduce",
    "prepare",
    "settled",
]


def __dir__() -> list[str]:
    return sorted(__all__)
