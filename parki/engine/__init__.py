"""The compiler and launcher for workunits.

A kernel file is read as text, specialised, checked, lowered to C++, compiled once, and launched:

>>> from parki import engine
>>> unit = engine.kernel("cells", "chunk_begin")
>>> unit.ir.policy
'range'
"""

from parki.engine.errors import BuildError, CheckedFault, KernelError, LaunchError, SpaceUnavailable
from parki.engine.launch import Prepared, RangePolicy, TeamPolicy, parallel_for, parallel_reduce, prepare
from parki.engine.workunit import Workunit, compile_all, kernel, object_path

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
    "kernel",
    "object_path",
    "parallel_for",
    "parallel_reduce",
    "prepare",
]
