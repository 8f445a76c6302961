"""Checked builds (PARKI_DEBUG=1) report accesses out of bounds: file, line, index, extent; results do not change."""

import re
from pathlib import Path

import numpy as np
import pytest

from parki import engine
from parki.engine import CheckedFault, RangePolicy, TeamPolicy
from tests.engine import kernel_cases as cases

HEAD = "import pykokkos as pk\nfrom typing import List\nreal = pk.double\n"


@pytest.fixture(autouse=True)
def _checked(monkeypatch):
    monkeypatch.setenv("PARKI_DEBUG", "1")


RANGE = "i: int, x: pk.View1D[real], m: pk.View2D[real], k: pk.View1D[pk.int32], n: int"
TEAM = RANGE.replace("i: int", "team: pk.TeamMember")
LANES = ["def f(t: int):", "    {}", "pk.parallel_for(pk.TeamThreadRange(team, 5), f)"]
SINGLE = ["def f():", "    {}", "pk.single(pk.PerTeam(team), f)"]
VECTOR = [
    "def g(t: int):",
    "    def f(v: int):",
    "        {}",
    "    pk.parallel_for(pk.ThreadVectorRange(team, 5), f)",
    "pk.parallel_for(pk.TeamThreadRange(team, 1), g)",
]
REDUCE = [
    "def f(t: int, acc: pk.Acc[real]):",
    "    {}",
    "s: real = pk.parallel_reduce(pk.TeamThreadRange(team, 5), f)",
]
SCAN = [
    "def f(t: int, acc: pk.Acc[real], last: bool):",
    "    {}",
    "s: real = pk.parallel_scan(pk.TeamThreadRange(team, 5), f)",
]
LOOKUP = """@pk.function
def look(j: int) -> real:
    table: List[real] = [1.0, 2.0]
    return table[j]
"""
# x has 5 elements, m 2 x 5, k is 0 … 4 and n is 5; name of the case, its line in the body, view, index, extent
FAULTS = {
    "load, range": (RANGE, ["x[i] = x[i + 1]"], 1, "x", 5, 5),
    "load below, range": (RANGE, ["x[i] = x[i - 1]"], 1, "x", -1, 5),
    "gather, range": (RANGE, ["j: int = k[i]", "x[i] = m[j][i]"], 2, "m", 2, 2),
    "load at a loaded index, range": (RANGE, ["m[0][i] = x[2 * k[i]]"], 1, "x", 6, 5),
    "store, range": (RANGE, ["j: int = 2 * i", "x[j] = 1.0"], 2, "x", 6, 5),
    "store in place, range": (RANGE, ["m[1][2 * i] += 1.0"], 1, "m", 6, 5),
    "atomic, range": (RANGE, ["pk.atomic_add(x, [i + n], 1.0)"], 1, "x", 5, 5),
    "atomic with result, range": (RANGE, ["c: int = pk.atomic_fetch_max(k, [9 - i], 1)"], 1, "k", 9, 5),
    "under a mask, range": (RANGE, ["if i == 3:", "    x[i] = x[i * 7]"], 2, "x", 21, 5),
    "table, range": (RANGE, ["c: List[real] = [1.0, 2.0]", "x[i] = c[i]"], 2, "c", 2, 2),
    "load, lanes": (TEAM, [line.format("x[t] = x[t + 2]") for line in LANES], 2, "x", 5, 5),
    "store, lanes": (TEAM, [line.format("x[t + 1] = 1.0") for line in LANES], 2, "x", 5, 5),
    "atomic, lanes": (TEAM, [line.format("pk.atomic_add(k, [n], 1)") for line in LANES], 2, "k", 5, 5),
    "load, vector range": (TEAM, [line.format("x[v] = m[v][0]") for line in VECTOR], 3, "m", 2, 2),
    "load, reduction": (TEAM, [line.format("acc += x[t * 2]") for line in REDUCE], 2, "x", 6, 5),
    "load, scan": (TEAM, [line.format("acc += x[t + 1]") for line in SCAN], 2, "x", 5, 5),
    "store, single": (TEAM, [line.format("x[n] = 1.0") for line in SINGLE], 2, "x", 5, 5),
    "load, team level": (TEAM, ["a: real = x[n + 3]"], 1, "x", 8, 5),
    "second dimension": (TEAM, ["a: real = m[1][n]"], 1, "m", 5, 5),
}
SCRATCH = [
    "s: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), n)",
    "def fill(t: int):",
    "    s[t{}] = 1.0",
    "pk.parallel_for(pk.TeamThreadRange(team, n), fill)",
    "team.team_barrier()",
    "def drain(t: int):",
    "    x[t] = s[t{}]",
    "pk.parallel_for(pk.TeamThreadRange(team, n), drain)",
]
FAULTS["store, scratch"] = (TEAM, [line.format(" + 1") for line in SCRATCH[:5]], 3, "s", 5, 5)
FAULTS["load, scratch"] = (TEAM, SCRATCH[:2] + [line.format("" if "fill" in line or "] = 1" in line else " + 4")
                                                for line in SCRATCH[2:]], 7, "s", 5, 5)  # fmt: skip


def write(tmp_path, signature, lines, functions=""):
    scratch = "(scratch=[(real, lambda p: p.n)])" if any("Scratch" in line for line in lines) else ""
    head = f"{HEAD}{functions}@pk.workunit{scratch}\ndef w({signature}):\n"
    path = tmp_path / "mine.py"
    path.write_text(head + "".join(f"    {line}\n" for line in lines))
    return path, head.count("\n")


def arguments():
    return {"x": np.arange(5.0), "m": np.ones((2, 5)), "k": np.arange(5, dtype=np.int32), "n": 5}


def launch(signature, path, args, space="Serial"):
    policy = TeamPolicy(space, 1) if "team" in signature else RangePolicy(space, 5)
    engine.parallel_for(policy, engine.kernel(path, "w"), **args)


@pytest.mark.parametrize("name", FAULTS)
def test_out_of_bounds(name, tmp_path):
    signature, lines, line, view, index, extent = FAULTS[name]
    path, head = write(tmp_path, signature, lines)
    with pytest.raises(CheckedFault) as caught:
        launch(signature, path, arguments())
    text = str(caught.value)
    where = re.match(r"(.*):(\d+):\d+: ", text)
    assert where, text
    assert Path(where[1]).name == "mine.py"
    assert int(where[2]) == head + line
    assert f"'{view}' is {index}, outside 0 … {extent - 1}" in text


def test_a_table_in_a_function(tmp_path):
    path, _ = write(tmp_path, RANGE, ["if i == 4:", "    x[i] = look(i)"], LOOKUP)
    with pytest.raises(CheckedFault, match=r"mine\.py:7:\d+: index 0 of 'table' is 4, outside 0 … 1"):
        launch(RANGE, path, arguments())


def test_nothing_out_of_bounds_is_touched(tmp_path):
    """Check that the store does not happen, and that the next launch is clean."""
    path, _ = write(tmp_path, RANGE, ["x[i + n] = 1.0"])
    padded = np.zeros(10)
    args = {**arguments(), "x": padded[:5], "n": 2}
    prepared = engine.prepare(RangePolicy("OpenMP", 5), engine.kernel(path, "w"), **args)
    with pytest.raises(CheckedFault):
        prepared.run()
    assert list(padded) == [0, 0, 1, 1, 1, 0, 0, 0, 0, 0]
    prepared.set(x=np.zeros(7))
    prepared.run()


def one_of_each():
    """Return names of cases: the first of each kernel file is in every run, since each case takes two compilations.

    The interpreter finds accesses out of bounds in every case of every run.
    """
    names, seen = [], set()
    for name, case in cases.cases("double").items():
        names.append(pytest.param(name, marks=pytest.mark.slow) if case.file in seen else name)
        seen.add(case.file)
    return names


@pytest.fixture(scope="module")
def plain():
    """Compile the kernels' unchecked objects together, and then the checked objects."""
    quick = [name for name in one_of_each() if isinstance(name, str)]
    units = [cases.cases("double")[name].unit("double") for name in quick]
    engine.compile_all(list(dict.fromkeys(units)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARKI_DEBUG", "1")
        engine.compile_all(list(dict.fromkeys(units)))


@pytest.mark.parametrize("name", one_of_each())
def test_kernels_are_clean_and_give_the_same(name, plain, monkeypatch):
    case = cases.cases("double")[name]
    unit = case.unit("double")
    results = []
    for debug in ("", "1"):
        monkeypatch.setenv("PARKI_DEBUG", debug)
        args = case.fresh()
        policy = (TeamPolicy if unit.ir.policy == "team" else RangePolicy)("OpenMP", case.league)
        results.append((engine.prepare(policy, unit, **args).run(), args))
    (total, expected), (checked_total, found) = results
    assert checked_total == total
    for p in unit.ir.params:
        if p.written:
            size = max(1.0, float(np.max(np.abs(expected[p.name]))))
            np.testing.assert_allclose(found[p.name], expected[p.name], rtol=0, atol=1e-13 * size)
