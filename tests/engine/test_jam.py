"""Loops of several turns at once: which loops are jammed, in which order their parts run, and with which results."""

import numpy as np
import pytest

from parki import engine
from parki.engine.interpreter import launching
from parki.engine.interpreter.lanes import run_lanes
from parki.engine.lower import jam as module
from parki.engine.lower.jam import jam
from parki.engine.lower.vectorise import vectorise
from parki.engine.tree import ir
from parki.engine.tree.check import check
from parki.engine.tree.parse import parse
from parki.engine.tree.walk import walk
from tests.engine import kernel_cases as cases
from tests.engine.programs import drawn
from tests.engine.test_kernels import SLOW
from tests.quick import but

HEAD = """import pykokkos as pk


@pk.function
def root(x: pk.double) -> pk.double:
    return pk.sqrt(x) + 1.0


@pk.workunit
def work(
    i: int, x: pk.View1D[pk.double], y: pk.View1D[pk.double], n: pk.View2D[pk.int32], k: pk.View1D[pk.int32],
):
    total: pk.double = y[i]
    first: int = n[i][0]
    end: int = n[i][1]
"""
TAIL = "    y[i] = total\n"
#: Bodies of a loop ``for q in range(first, end)``, by what is special about them.
JAMMED = {
    "sum": "w: pk.double = pk.rsqrt(x[q])\ntotal += w * x[q]",
    "root in a function": "w: pk.double = root(x[q])\ntotal += w",
    "order of changes": "total = total * 0.5\nw: pk.double = pk.sqrt(x[q])\ntotal -= w\nw = w * 2.0\ntotal += w * x[q]",
    "a change before the root": "total = 3.0 - total\nw: pk.double = pk.sqrt(total * total + x[q])\ntotal += w",
    "loop within": "w: pk.double = pk.sqrt(x[q])\np: pk.double = x[q]\nfor m in range(5):\n"
    "    p = p * w + x[m]\ntotal += p",
    "loop within a loop": "w: pk.double = pk.sqrt(x[q])\np: pk.double = x[q]\nfor m in range(5):\n"
    "    for l in range(2):\n        p = p * w + x[m + l]\n    p -= w\ntotal += p",
    "a change in a loop within": "w: pk.double = pk.sqrt(x[q])\nfor m in range(4):\n    total = total * 0.5 + w * x[m]",
    "a use in a loop within": "w: pk.double = pk.sqrt(x[q])\nfor m in range(4):\n    w = w + total\ntotal = w",
    "two loops": "w: pk.double = pk.sqrt(x[q])\nfor m in range(4):\n    w = w * 0.5 + x[m]\nv: pk.double = w\n"
    "for m in range(3):\n    v = v * w - x[m]\ntotal += v",
    "branches": "w: pk.double = pk.sqrt(x[q])\nv: pk.double = 0.0\nif x[q] > 0.4:\n    v = w\nelse:\n    v = -w\n"
    "if q % 2 == 0:\n    total += v",
    "names of the kernel": "w_0: pk.double = pk.sqrt(x[q])\nw: pk.double = w_0 + 1.0\nq_begin_0: pk.double = w\n"
    "total += w - 2.0 * w_0 + q_begin_0",
    "a list": "t: List[pk.double] = [0.25, 0.5]\nw: pk.double = pk.sqrt(x[q])\nfor m in range(2):\n    w = w * t[m]\n"
    "total += w",
    "a store": "w: pk.double = pk.sqrt(x[q])\nk[8 * i + q % 8] = k[8 * i + (q + 1) % 8] + q\ntotal += w",
    "an atomic update": "w: pk.double = pk.sqrt(x[q])\nold: int = pk.atomic_fetch_add(k, [8 * i + q % 8], q)\n"
    "total += w + pk.double(old)",
}
KEPT = {
    "no root": "total += x[q]",
    "break": "w: pk.double = pk.sqrt(x[q])\nif w > 0.8:\n    break\ntotal += w",
    "continue": "w: pk.double = pk.sqrt(x[q])\nif w > 0.8:\n    continue\ntotal += w",
    "while": "w: pk.double = pk.sqrt(x[q])\nwhile w > 0.5:\n    w = w * 0.5\ntotal += w",
    "a loop of unknown length": "w: pk.double = pk.sqrt(x[q])\nfor m in range(q):\n    w = w * 0.5\ntotal += w",
}


def program(body, bounds="first, end"):
    """Return the tree of a workunit with a loop over a body."""
    lines = [f"    for q in range({bounds}):", *(f"        {line}" for line in body.splitlines())]
    head = HEAD.replace("import pyk", "from typing import List\n\nimport pyk") if "List" in body else HEAD
    tree = parse(head + "\n".join(lines) + "\n" + TAIL, name="work.py")
    check(tree)
    return tree


def arguments():
    rng = np.random.default_rng(3)
    ends = np.array([[0, 0], [0, 1], [0, 7], [2, 8], [5, 3], [9, 1], [-2, -2], [1, 12], [3, 4], [0, 6]], np.int32)
    return {"x": rng.random(16), "y": rng.random(len(ends)), "n": ends, "k": np.arange(8 * len(ends), dtype=np.int32)}


def steps(tree):
    """Return the steps of all loops."""
    return [n.step for n in walk(tree.body) if isinstance(n, ir.For)]


def assert_same(tree, jammed, league, fresh, written):
    """Assert that two trees give the same results to the bit, also on lanes."""
    check(jammed)
    expected, found, vector = fresh(), fresh(), fresh()
    total = launching.run(tree, league=league, args=expected)
    assert launching.run(jammed, league=league, args=found) == total
    lanes = vectorise(jammed, {p.name: "C" for p in tree.params if p.rank})[0]
    assert run_lanes(lanes, width=4, league=league, args=vector) == total
    for view in written:
        np.testing.assert_array_equal(found[view], expected[view])
        np.testing.assert_array_equal(vector[view], expected[view])


@pytest.mark.parametrize("turns", [2, 3, 6])
@pytest.mark.parametrize("name", JAMMED)
def test_results(name, turns):
    tree = program(JAMMED[name])
    jammed = jam(tree, turns)
    assert turns in steps(jammed)
    assert_same(tree, jammed, len(arguments()["n"]), arguments, ("y", "k"))


@pytest.mark.parametrize("name", KEPT)
def test_loops_that_stay(name):
    tree = program(KEPT[name])
    assert jam(tree, 3) == tree


def test_a_loop_of_known_length_stays():
    tree = program(JAMMED["sum"], bounds="0, 6")
    assert jam(tree, 3) == tree


def test_order_of_parts():
    """All roots come first, then the loops within as one; changes beyond a turn come last, in order."""
    jammed = jam(program(JAMMED["loop within"]), 2)
    (loop,) = (s for s in jammed.body if isinstance(s, ir.For) and s.step == 2)
    kinds = [(type(s).__name__, getattr(s, "name", "")) for s in loop.body]
    roots, first, inner, last = kinds[:2], kinds[2:4], kinds[4], kinds[5:]
    assert [name for _, name in roots] == ["w_0", "w_1"]
    assert [name for _, name in first] == ["p_0", "p_1"]
    assert inner == ("For", "m")
    assert [s.name for s in loop.body[4].body] == ["p_0", "p_1"]
    assert last == [("Assign", "total")] * 2


@pytest.mark.parametrize("seed", range(40))
def test_programs(seed, monkeypatch):
    """Drawn programs whose loops are all taken for loops with roots."""
    monkeypatch.setattr(module._Jam, "has_root", lambda self, s: True)
    sample = drawn.random_program(seed)
    tree = parse(sample.text, name="program.py")
    check(tree)
    assert_same(tree, jam(tree, 3), sample.league, sample.fresh_args, sample.written)


IN_DOUBLE = [name for name, (_, real) in cases.ALL.items() if real == "double"]


@pytest.mark.parametrize("name", but(*SLOW, of=IN_DOUBLE))
def test_kernels(name):
    case, real = cases.ALL[name]
    tree = case.unit(real).ir
    jammed = jam(tree, 3)
    if case.workunit in ("p2p_list", "direct_sum", "ranges", "check_values", "fields"):
        assert 3 in steps(jammed)
    if jammed != tree:
        check(jammed)
        expected, found = case.fresh(), case.fresh()
        launching.run(tree, league=case.league, args=expected)
        launching.run(jammed, league=case.league, args=found)
        for view in (p.name for p in tree.params if p.written):
            np.testing.assert_array_equal(found[view], expected[view])


def test_hints():
    plain, hinted = (engine.kernel("direct", "direct_sum", hints=h) for h in ((), ("jam_3",)))
    sources = [u.unit(u.default_layouts(), False)[0].source for u in (plain, hinted)]
    assert sources[0] != sources[1]
    assert plain.unit(plain.default_layouts(), True)[0].source == hinted.unit(hinted.default_layouts(), True)[0].source
    assert plain.gpu(plain.default_layouts()) != hinted.gpu(hinted.default_layouts())
    with pytest.raises(ValueError, match=r"hints: found 'jam_1', expected some of .*jam_8"):
        engine.kernel("direct", "direct_sum", hints=("jam_1",))
