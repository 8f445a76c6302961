"""Batches of programs in one shared object, and a comparison of their launches with the interpreter.

Compiling takes most of the time of these tests, and most of that time is start-up.  Programs whose texts begin alike
therefore share one text, each in its own namespace.
"""

import ctypes
import platform
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parki.engine import CheckedFault, RangePolicy, TeamPolicy, prepare
from parki.engine.calls import sim
from parki.engine.compile import objects
from parki.engine.compile.compiler import WIDTHS, Target, target
from parki.engine.interpreter import launching
from parki.engine.lower import host
from parki.engine.lower.common import Lowered
from parki.engine.run import gpusim
from parki.engine.run.spaces import Space
from parki.engine.text.specialise import L0
from parki.engine.workunit import Compiled, Workunit, load

PER_OBJECT = 25
STRUCT = "struct pk_args {"  # a program's own text begins here


class Batched(Workunit):
    """Program whose compiled object is part of a larger one."""

    def __init__(self, program) -> None:
        super().__init__(L0("w", program.text, "", "program.py", (), (), ()))
        self.object: Compiled | None = None
        views = {p.name: program.args[p.name] for p in self.ir.params if p.rank}
        # drawn arrays are contiguous
        self.layouts = {k: "C" if a.flags.c_contiguous or a.size == 0 else "F" for k, a in views.items()}

    def compiled(self, layouts, checked, flags=()) -> Compiled:
        """Return the object of the batch."""
        return self.object


@dataclass(frozen=True)
class Host:
    """Host code for a target."""

    target: Target
    flags: tuple[str, ...]
    checked: bool = False

    def compile(self, units: list[Batched]) -> None:
        """Set the units' objects."""
        texts = [host.lower(unit.ir, unit.layouts, self.checked) for unit in units]
        for n, (path, symbol) in enumerate(_built(texts, host.HEADERS, self.target, self.flags)):
            units[n].object = load(path, texts[n], symbol)

    def policies(self, program, n: int) -> list[RangePolicy | TeamPolicy]:
        """Return a policy for each space."""
        policy = TeamPolicy if program.policy == "team" else RangePolicy
        return [policy(space, program.league) for space in (Space("Serial"), Space("OpenMP", 2))]


@dataclass(frozen=True)
class Simulator:
    """GPU text on the simulator."""

    flags: tuple[str, ...]

    SPACES = (Space("GpuSim"), Space("GpuSim64"))
    SHAPES = ((1, 1), (7, 1), (3, 4), (32, 2), (5, 16), (2, 32))  # team size, lanes

    def compile(self, units: list[Batched]) -> None:
        """Set the units' objects."""
        texts = [unit.gpu(unit.layouts) for unit in units]
        flags = (*sim.FLAGS, "-DPK_WIDE=0", *self.flags)
        for unit, (path, symbol) in zip(units, _built(texts, gpusim.HEADERS, target(), flags), strict=True):
            run = ctypes.CDLL(str(path))[symbol]
            run.argtypes, run.restype = [ctypes.c_void_p, ctypes.c_void_p], None
            unit.objects[sim.key(unit.layouts)] = run

    def policies(self, program, n: int) -> list[RangePolicy | TeamPolicy]:
        """Return policies; `n` picks the space, and the block of a team policy."""
        space, shapes = self.SPACES[n % len(self.SPACES)], [self.SHAPES[(n + k) % len(self.SHAPES)] for k in (0, 2)]
        if program.policy == "team":
            return [TeamPolicy(space, program.league, team, lanes) for team, lanes in shapes]
        return [RangePolicy(space, program.league)]


def _built(texts: list[Lowered], headers, where: Target, flags: tuple[str, ...]) -> list[tuple[Path, str]]:
    """Return for each text a shared object and the text's symbol in it."""
    groups: dict[str, list[int]] = defaultdict(list)
    for n, text in enumerate(texts):
        groups[text.source.partition(STRUCT)[0].partition("\n")[2]].append(n)
    places: dict[int, tuple[Path, str]] = {}
    for head, members in groups.items():
        source = "\n".join([head, *(_in_namespace(texts[n].source, n) for n in members)])
        path = objects.build(objects.Unit("batch", "batch", source, headers, where, flags))
        places |= {n: (path, f"pk_run_{n}") for n in members}
    return [places[n] for n in range(len(texts))]


def _in_namespace(source: str, n: int) -> str:
    text = source[source.index(STRUCT) :]
    return f"#define pk_run pk_run_{n}\nnamespace program_{n} {{\n{text}}}\n#undef pk_run\n"


def targets() -> list[Target]:
    """Return a target for each vector width that this machine runs: the x86-64 level with this width, else native."""
    native = target()
    arch = {16: "x86-64", 32: "x86-64-v3"} if platform.machine() in ("x86_64", "AMD64") else {}
    widths = [w for w in WIDTHS if w <= native.vector_bytes]
    return [target("native" if w == native.vector_bytes else arch.get(w, "native"), w) for w in widths]


# Comparison -----------------------------------------------------------------------------------------------------------
def compare(programs, place: Host | Simulator, same) -> None:
    """Assert that launches agree with the interpreter; ``same(a, b)`` compares two arrays."""
    wrong = []
    for first in range(0, len(programs), PER_OBJECT):
        units = [Batched(program) for program in programs[first : first + PER_OBJECT]]
        place.compile(units)
        for n, (program, unit) in enumerate(zip(programs[first:], units, strict=False)):
            wrong += _disagreements(program, unit, place.policies(program, n), same)
    assert wrong == [], f"{place}: {len(wrong)} disagreements; the first:\n{wrong[0]}"


def interpreted(program, unit: Workunit) -> tuple[object, dict[str, object]]:
    """Return total and arguments after a run of the interpreter."""
    args = program.fresh_args()
    return launching.run(unit.ir, league=program.league, args=args), args


def _launched(program, unit: Workunit, policy) -> tuple[object, dict[str, object]]:
    args = program.fresh_args()
    try:
        return prepare(policy, unit, **args).run(), args
    except CheckedFault as error:
        raise AssertionError(f"{error}\n{program.text}") from error


def _disagreements(program, unit: Workunit, policies, same) -> list[str]:
    total, expected = interpreted(program, unit)
    wrong = []
    for policy in policies:
        other, args = _launched(program, unit, policy)
        names = [name for name in program.args if not same(np.asarray(args[name]), np.asarray(expected[name]))]
        names += ["total"] if total is not None and not same(np.asarray(other), np.asarray(total)) else []
        if names:
            values = [f"{k}: found {args.get(k, other)!r}, expected {expected.get(k, total)!r}" for k in names]
            wrong.append("\n".join([f"--- {policy}", *values, program.text, repr(program.args)]))
    return wrong


def bitwise(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether arrays are equal to the bit, except for sign and payload of NaN and the sign of a zero.

    A zero has either sign after fmin and fmax of two zeros, and after g++ takes float(int(x)) for trunc(x).
    """
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def within(ulp: float):
    """Return a comparison: integers to the bit, reals to `ulp` units in the last place of 1 or of a larger value."""

    def same(a: np.ndarray, b: np.ndarray) -> bool:
        if a.dtype.kind != "f":
            return np.array_equal(a, b)
        eps = float(np.finfo(a.dtype).eps)
        return np.allclose(a, b, rtol=ulp * eps, atol=ulp * eps, equal_nan=True)

    return same
