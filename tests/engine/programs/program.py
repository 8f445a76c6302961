"""A test program: the text of a workunit and the arguments of a launch."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

L0 = ("import pykokkos as pk", "from typing import List")
L1 = ("import pykokkos as pk", "from typing import List, Tuple", "real = pk.double")
TYPES = {"int32": np.int32, "int64": np.int64, "uint8": np.uint8, "double": np.float64, "float": np.float32}
NAMES = {np.dtype(dtype): f"pk.{name}" for name, dtype in TYPES.items()}


def indent(lines: Iterable[str]) -> list[str]:
    """Return the lines of a block, one level deeper."""
    return ["    " + line for line in lines] or ["    pass"]


def write(
    signature: str, lines: Iterable[str], functions: Iterable[str] = (), scratch: str = "", head: Iterable[str] = L0
) -> str:
    """Return a file with workunit ``w`` below `functions`; `scratch` lists the decorator's entries."""
    decorator = f"@pk.workunit(scratch=[{scratch}])" if scratch else "@pk.workunit"
    return "\n".join([*head, *functions, decorator, f"def w({signature}):", *indent(lines), ""])


def parameter(name: str, value: object) -> str:
    """Return the declaration of a parameter that takes this argument."""
    if isinstance(value, np.ndarray):
        return f"{name}: pk.View{value.ndim}D[{NAMES[value.dtype]}]"
    return f"{name}: {type(value).__name__}"


@dataclass(frozen=True)
class Program:
    """Text with a launch: `args` has NumPy arrays and scalars; `written` names the arrays that a run changes.

    `policy` is that of the kernel (range or team); `acc` is the accumulator's type if the launch returns a total.
    """

    text: str
    policy: str
    league: int
    args: dict[str, object]
    written: tuple[str, ...]
    acc: str | None = None

    def fresh_args(self) -> dict[str, object]:
        """Return the arguments, with copies of the arrays."""
        return {k: v.copy(order="K") if isinstance(v, np.ndarray) else v for k, v in self.args.items()}
