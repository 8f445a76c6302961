"""Batches of L0 programs in one shared object, and a comparison of host results with the interpreter's.

Compiling takes most of the time of these tests, and most of that time is start-up.  Programs with the same lane size
therefore share one text, each in its own namespace.
"""

import platform
import re
from collections import defaultdict

import numpy as np

from parki.engine import CheckedFault, RangePolicy, TeamPolicy, prepare
from parki.engine.compile import objects
from parki.engine.compile.compiler import WIDTHS, Target, target
from parki.engine.interpreter import launching
from parki.engine.lower import host
from parki.engine.lower.common import Lowered
from parki.engine.run.spaces import Space
from parki.engine.text.specialise import L0
from parki.engine.workunit import Compiled, Workunit, load

SPACES = (Space("Serial"), Space("OpenMP", 2))


class Batched(Workunit):
    """Program whose compiled object is part of a larger one."""

    def __init__(self, text: str) -> None:
        super().__init__(L0("work", text, "", "program.py", (), (), ()))
        self.object: Compiled | None = None

    def compiled(self, layouts, checked, flags=()) -> Compiled:
        """Return the object that `compile_batch` has set."""
        return self.object


def layouts(unit, args) -> dict[str, str]:
    """Return the layout of each view argument; drawn arrays are contiguous."""
    views = {p.name: args[p.name] for p in unit.ir.params if p.rank}
    return {name: "C" if a.flags.c_contiguous or a.size == 0 else "F" for name, a in views.items()}


def compile_batch(programs, target: Target, flags: tuple[str, ...], checked: bool = False) -> list[Batched]:
    """Return the programs as workunits that are ready to launch."""
    units = [Batched(p.text) for p in programs]
    lowered = [host.lower(u.ir, layouts(u, p.args), checked) for u, p in zip(units, programs, strict=True)]
    groups: dict[str, list[int]] = defaultdict(list)
    for n, made in enumerate(lowered):
        groups[made.source.partition("struct pk_args {")[0].partition("\n")[2]].append(n)
    for head, members in groups.items():
        parts = [_in_namespace(lowered[n], n) for n in members]
        unit = objects.Unit("batch", "batch", "\n".join([head, *parts]), host.HEADERS, target, flags)
        path = objects.build(unit)
        for n in members:
            units[n].object = load(path, lowered[n], f"pk_run_{n}")
    return units


def targets() -> list[Target]:
    """Return a target for each vector width that this machine runs: the x86-64 level with this width, else native."""
    native = target()
    arch = {16: "x86-64", 32: "x86-64-v3"} if platform.machine() in ("x86_64", "AMD64") else {}
    widths = [w for w in WIDTHS if w <= native.vector_bytes]
    return [target("native" if w == native.vector_bytes else arch.get(w, "native"), w) for w in widths]


def _in_namespace(made: Lowered, n: int) -> str:
    text = made.source[made.source.index("struct pk_args {") :]
    return f"namespace program_{n} {{\n{re.sub(r'pk_run', f'pk_run_{n}', text)}}}"


def expected(program) -> tuple[object, dict[str, object]]:
    """Return total and arguments after a run of the interpreter."""
    args = program.fresh_args()
    return launching.run(Batched(program.text).ir, league=program.league, args=args), args


def found(program, unit: Workunit, space: Space) -> tuple[object, dict[str, object]]:
    """Return total and arguments after a launch on the host."""
    args = program.fresh_args()
    policy = (TeamPolicy if program.policy == "team" else RangePolicy)(space, program.league)
    try:
        return prepare(policy, unit, **args).run(), args
    except CheckedFault as error:
        raise AssertionError(f"{error}\n{program.text}") from error


def disagreements(program, unit: Workunit, where: str, same) -> list[str]:
    """Return the differences from the interpreter on all spaces; ``same(a, b)`` compares two arrays."""
    total, args = expected(program)
    wrong = []
    for space in SPACES:
        other, changed = found(program, unit, space)
        names = [name for name in program.args if not same(np.asarray(changed[name]), np.asarray(args[name]))]
        names += ["total"] if total is not None and not same(np.asarray(other), np.asarray(total)) else []
        if names:
            shown = [f"{n}: found {changed.get(n, other)!r}, expected {args.get(n, total)!r}" for n in names]
            wrong.append(
                "\n".join(
                    [f"--- {where}, {space.name}, league {program.league}", *shown, program.text, repr(program.args)]
                )
            )
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
