"""Programs with one access out of bounds, and the place, view, index and extent that a checked build must name."""

from dataclasses import dataclass

import numpy as np

from tests.engine.programs.program import L1, Program, indent, write

VIEWS = "x: pk.View1D[real], m: pk.View2D[real], k: pk.View1D[pk.int32], n: int"
ARGUMENTS = {"x": np.arange(5.0), "m": np.ones((2, 5)), "k": np.arange(5, dtype=np.int32), "n": 5}
LOOKUP = ["@pk.function", "def look(j: int) -> real:", "    table: List[real] = [1.0, 2.0]", "    return table[j]"]


@dataclass(frozen=True)
class Fault:
    """Program, and the line of the file with the access to element `index` of a view of `extent` elements."""

    program: Program
    line: int
    view: str
    index: int
    extent: int


def over(*lines: str, functions=()) -> Program:
    """Return a program with a range policy over 5 values of `i`."""
    text = write(f"i: int, {VIEWS}", lines, functions, head=L1)
    return Program(text, "range", 5, ARGUMENTS, ("x", "m", "k"))


def team(*lines: str) -> Program:
    """Return a program with one team."""
    scratch = "(real, lambda p: p.n)" if "Scratch" in lines[0] else ""
    text = write(f"team: pk.TeamMember, {VIEWS}", lines, scratch=scratch, head=L1)
    return Program(text, "team", 1, ARGUMENTS, ("x", "m", "k"))


def lanes(line: str, name: str = "f") -> list[str]:
    """Return a team range over `t`."""
    return [f"def {name}(t: int):", f"    {line}", f"pk.parallel_for(pk.TeamThreadRange(team, 5), {name})"]


def single(line: str) -> list[str]:
    """Return a body that one thread runs."""
    return ["def f():", f"    {line}", "pk.single(pk.PerTeam(team), f)"]


def vector(line: str) -> list[str]:
    """Return a vector range over `v`."""
    inner = ["def f(v: int):", f"    {line}", "pk.parallel_for(pk.ThreadVectorRange(team, 5), f)"]
    return ["def g(t: int):", *indent(inner), "pk.parallel_for(pk.TeamThreadRange(team, 1), g)"]


def total(line: str, kind: str = "reduce") -> list[str]:
    """Return a reduction or a scan over `t`."""
    last = ", last: bool" if kind == "scan" else ""
    use = f"s: real = pk.parallel_{kind}(pk.TeamThreadRange(team, 5), f)"
    return [f"def f(t: int, acc: pk.Acc[real]{last}):", f"    {line}", use]


def scratch(fill: str, drain: str) -> list[str]:
    """Return lines that fill scratch and read it."""
    declared = "s: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), n)"
    return [declared, *lanes(fill), "team.team_barrier()", *lanes(drain, "g")]


# program, line of its body, view, index, extent
_TABLE = {
    "load, range": (over("x[i] = x[i + 1]"), 1, "x", 5, 5),
    "load below, range": (over("x[i] = x[i - 1]"), 1, "x", -1, 5),
    "gather, range": (over("j: int = k[i]", "x[i] = m[j][i]"), 2, "m", 2, 2),
    "load at a loaded index, range": (over("m[0][i] = x[2 * k[i]]"), 1, "x", 6, 5),
    "store, range": (over("j: int = 2 * i", "x[j] = 1.0"), 2, "x", 6, 5),
    "store in place, range": (over("m[1][2 * i] += 1.0"), 1, "m", 6, 5),
    "atomic, range": (over("pk.atomic_add(x, [i + n], 1.0)"), 1, "x", 5, 5),
    "atomic with result, range": (over("c: int = pk.atomic_fetch_max(k, [9 - i], 1)"), 1, "k", 9, 5),
    "under a mask, range": (over("if i == 3:", "    x[i] = x[i * 7]"), 2, "x", 21, 5),
    "table, range": (over("c: List[real] = [1.0, 2.0]", "x[i] = c[i]"), 2, "c", 2, 2),
    "table in a function": (over("if i == 4:", "    x[i] = look(i)", functions=LOOKUP), -2, "table", 4, 2),
    "load, lanes": (team(*lanes("x[t] = x[t + 2]")), 2, "x", 5, 5),
    "store, lanes": (team(*lanes("x[t + 1] = 1.0")), 2, "x", 5, 5),
    "atomic, lanes": (team(*lanes("pk.atomic_add(k, [n], 1)")), 2, "k", 5, 5),
    "load, vector range": (team(*vector("x[v] = m[v][0]")), 3, "m", 2, 2),
    "load, reduction": (team(*total("acc += x[t * 2]")), 2, "x", 6, 5),
    "load, scan": (team(*total("acc += x[t + 1]", "scan")), 2, "x", 5, 5),
    "store, single": (team(*single("x[n] = 1.0")), 2, "x", 5, 5),
    "load, team level": (team("a: real = x[n + 3]"), 1, "x", 8, 5),
    "second dimension": (team("a: real = m[1][n]"), 1, "m", 5, 5),
    "store, scratch": (team(*scratch("s[t + 1] = 1.0", "x[t] = s[t]")), 3, "s", 5, 5),
    "load, scratch": (team(*scratch("s[t] = 1.0", "x[t] = s[t + 4]")), 7, "s", 5, 5),
}


def _fault(program: Program, line: int, *access) -> Fault:
    above = program.text.partition("def w(")[0].count("\n") + 1
    return Fault(program, above + line, *access)


FAULTS = {name: _fault(*row) for name, row in _TABLE.items()}
