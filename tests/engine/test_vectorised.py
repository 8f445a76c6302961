"""Vectorised trees, run by the interpreter: they give the results of the scalar trees that they are made of."""

import numpy as np
import pytest

from parki.engine.errors import CheckedFault
from parki.engine.interpreter import launching
from parki.engine.interpreter.lanes import run_lanes
from parki.engine.lower.vectorise import vectorise
from parki.engine.tree import lanes
from parki.engine.tree.check import check
from parki.engine.tree.parse import parse
from parki.engine.tree.walk import walk
from tests.engine import kernel_cases as cases
from tests.engine.programs.by_hand import BY_HAND
from tests.engine.programs.drawn import random_program
from tests.engine.programs.program import write
from tests.engine.test_kernels import SLOW, assert_close

WIDTHS = {"double": 4, "float": 8}
EXPLICIT = {
    lanes.Splat, lanes.Affine, lanes.LoadLanes, lanes.Gather, lanes.RowLoad, lanes.RowStore, lanes.StoreLanes,
    lanes.StorePair, lanes.Scatter, lanes.Compress, lanes.MaskedLoop, lanes.Leave, lanes.LaneRange, lanes.Compaction,
}  # fmt: skip


def vectorised(tree):
    return vectorise(tree, {p.name: "C" for p in tree.params if p.rank})[0]


def nodes(tree):
    return {type(n) for n in walk((*tree.body, *(s for f in tree.functions for s in f.body)))}


OFTEN = [n for n, (_, real) in cases.ALL.items() if n not in SLOW and real == "double"]


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in OFTEN else pytest.mark.slow) for n in cases.ALL])
def test_kernels(name):
    case, real = cases.ALL[name]
    tree, expected, found = case.unit(real).ir, case.fresh(), case.fresh()
    total = launching.run(tree, league=case.league, args=expected)
    assert run_lanes(vectorised(tree), width=WIDTHS[real], league=case.league, args=found) == total
    for view in (p.name for p in tree.params if p.written):
        assert_close(found[view], expected[view], view)


@pytest.mark.parametrize("width", [1, 4, 7])
@pytest.mark.parametrize("seed", range(20))
def test_programs(seed, width):
    same_results(random_program(seed), width)


@pytest.mark.parametrize("name", BY_HAND)
def test_programs_by_hand(name):
    same_results(BY_HAND[name], 4)


def same_results(program, width):
    tree, expected, found = parse(program.text, name="program.py"), program.fresh_args(), program.fresh_args()
    check(tree)
    total = launching.run(tree, league=program.league, args=expected)
    assert run_lanes(vectorised(tree), width=width, league=program.league, args=found) == total
    for view in program.written:
        np.testing.assert_array_equal(found[view], expected[view])


def test_all_decisions_on_lanes_are_made():
    units = (case.unit(real).ir for case, real in map(cases.ALL.get, OFTEN))
    found = set().union(*(nodes(vectorised(tree)) for tree in units))
    by_hand = (nodes(vectorised(parse(p.text, name="p.py"))) for p in BY_HAND.values())
    assert found.union(*by_hand) >= EXPLICIT


def test_an_active_lane_uses_no_undefined_value():
    text = write("i: int, x: pk.View1D[pk.double], y: pk.View1D[pk.double]", ["if i > 2:", "    y[i] = x[i - 3]"])
    tree = vectorised(parse(text, name="work.py"))
    args = {"x": np.arange(9.0), "y": np.zeros(9)}
    run_lanes(tree, width=4, league=9, args=args)
    np.testing.assert_array_equal(args["y"], [0, 0, 0, *range(6)])
    load = next(n for n in walk(tree.body) if isinstance(n, lanes.LoadLanes))
    nothing = lanes.Lanewise(op="not", args=(lanes.AllLanes(type="bool", loc=load.loc),), type="bool", loc=load.loc)
    object.__setattr__(load, "mask", nothing)  # a pass that masks the wrong lanes
    with pytest.raises(CheckedFault, match=r"work\.py:6: a lane uses a value that is not defined"):
        run_lanes(tree, width=4, league=9, args=args)
