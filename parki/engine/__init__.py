"""Compiler and launcher for workunits.

A kernel file is read as text, specialised, checked, lowered to C++, compiled once, and launched:

>>> import numpy as np
>>> from parki import engine
>>> unit = engine.kernel("cells", "gather_points", real="double")
>>> x, out = np.arange(9.0).reshape(3, 3), np.zeros((3, 2))
>>> order = np.array([2, 0], np.int32)
>>> engine.parallel_for(engine.RangePolicy("CPU", 2), unit, x=x, order=order, out=out)
>>> out[0]
array([2., 0.])

The rest of parki imports from here and from `parki.engine.steps`, and from no module below.  `__all__` names the
public part; names imported ``as`` themselves are for parki alone.
"""

from parki.engine import audience as audience
from parki.engine import forks as forks
from parki.engine.calls.device import unit as gpu_unit  # noqa: F401
from parki.engine.calls.gpu import TEAM as DEFAULT_TEAM  # noqa: F401
from parki.engine.calls.gpu import requested as scratch_bytes  # noqa: F401
from parki.engine.calls.gpu import shared_memory as shared_memory
from parki.engine.calls.table import CallTable as CallTable
from parki.engine.compile import cache as cache
from parki.engine.compile import compiler as compiler
from parki.engine.compile import loading as loading
from parki.engine.compile import objects as objects
from parki.engine.compile import rtc as rtc
from parki.engine.compile import trust as trust
from parki.engine.compile import writing as writing
from parki.engine.compile.compiler import cpus as cpus
from parki.engine.compile.compiler import target as target
from parki.engine.compile.compiler import toolchains as toolchains
from parki.engine.counting import counters
from parki.engine.errors import BuildError, CheckedFault, KernelError, LaunchError, SpaceUnavailable
from parki.engine.lower.host import HEADERS as HOST_HEADERS  # noqa: F401
from parki.engine.run import devices as devices
from parki.engine.run import spaces as spaces
from parki.engine.run.ahead import Wanted as Wanted
from parki.engine.run.ahead import compile_all, compile_for
from parki.engine.run.fit import Fixed
from parki.engine.run.fit import taken as launchable  # noqa: F401
from parki.engine.run.launch import Prepared, parallel_for, parallel_reduce, prepare
from parki.engine.run.policy import MAX_TEAM as MAX_TEAM
from parki.engine.run.policy import RangePolicy, TeamPolicy
from parki.engine.run.spaces import Space as Space
from parki.engine.run.spaces import array_module as array_module
from parki.engine.run.spaces import workers as workers
from parki.engine.settled import settled
from parki.engine.text import functions as functions
from parki.engine.text import source as kernel_files  # noqa: F401
from parki.engine.text.functions import FunctionText as FunctionText
from parki.engine.text.source import KernelLocation as KernelLocation
from parki.engine.text.source import constant as kernel_constant  # noqa: F401
from parki.engine.text.specialise import constants
from parki.engine.text.syntax import parsed as parsed
from parki.engine.tree.operations import Totals as Totals
from parki.engine.tree.operations import operations
from parki.engine.workunit import Workunit, kernel, object_path
from parki.engine.workunit import checking as checking

__all__ = [
    "BuildError",
    "CheckedFault",
    "Fixed",
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
