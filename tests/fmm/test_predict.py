"""Predictions of plans of fast multipole sums, and the counted work of interpolation."""

import numpy as np
import pytest

import parki
from parki import prediction, samples
from parki.engine.run.spaces import Space
from parki.fmm import chebyshev_work, work
from parki.fmm.report import PHASES, PLANNED
from parki.perfmodels.machine import Machine

PHASES_OF_CALLS = tuple(name for name in PHASES if name not in PLANNED)
METHODS = ("kifmm", "chebyshev")
ORDER = 3


def plan_of(method, kernel="coulomb", dtype="float64", **options):
    """Return a plan with all lists in use."""
    x, y = samples.plummer(700, 1).astype(dtype), samples.uniform(500, 2).astype(dtype)
    options = {"order": ORDER, "leaf_size": 8, "execution_space": "Serial"} | options
    return parki.fmm.plan(kernel, x, y, method=method, **options)


@pytest.fixture(scope="module")
def chebyshev():
    plan = plan_of("chebyshev")
    assert min(len(getattr(plan.structure.lists, f"{name}_t")) for name in "uvwx") > 0
    return plan


# Predictions ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("method", METHODS)
def test_phases_are_those_of_calls(method, dtype):
    plan = plan_of(method, dtype=dtype)
    found = plan.predict()
    assert tuple(found.phases) == PHASES_OF_CALLS
    assert all(seconds > 0 for seconds in found.phases.values())
    assert found.seconds == pytest.approx(sum(found.phases.values()))
    assert found.m2l == found.phases["m2l"]
    assert found.memory == plan.memory > 0
    assert str(found).startswith("predicted ")


@pytest.mark.parametrize("method", METHODS)
def test_threads_share_the_work(method):
    plan = plan_of(method)

    def predicted(space):
        return work.predict(plan.structure, plan.parameters, plan.dtype, space, 0)

    one, four = predicted(Space("OpenMP", 1)), predicted(Space("OpenMP", 4))
    assert one.phases == plan.predict().phases
    assert one.near / 4 < four.near < one.near / 2  # launches are not shared
    assert one.m2l / 4 <= four.m2l < one.m2l


@pytest.mark.parametrize("method", METHODS)
def test_on_a_gpu(method, monkeypatch):
    monkeypatch.setattr(prediction, "device_name", lambda: "NVIDIA H100 PCIe")
    plan = plan_of(method)
    found = work.predict(plan.structure, plan.parameters, plan.dtype, Space("Cuda"), 5)
    assert found.memory == 5
    assert all(0 < seconds < 1 for seconds in found.phases.values())
    assert found.phases != plan.predict().phases


@pytest.mark.parametrize("method", METHODS)
def test_few_points_have_a_near_field_alone(method):
    x = samples.uniform(100, seed=1)
    plan = parki.fmm.plan("coulomb", x, x, method=method, order=ORDER, leaf_size=200, execution_space="Serial")
    found = plan.predict().phases
    assert {name for name, seconds in found.items() if seconds} <= {"upward", "near"}  # upward sorts charges
    assert found["near"] > 0


@pytest.mark.parametrize("method", METHODS)
def test_without_points_calls_take_no_time(method):
    x, none = samples.uniform(7, 1), np.empty((3, 0))
    for targets, sources in ((x, none), (none, x), (none, none)):
        found = parki.fmm.plan("coulomb", targets, sources, method=method).predict()
        assert found.phases == dict.fromkeys(PHASES_OF_CALLS, 0.0)
        assert found.seconds == 0


# Counted work of interpolation ----------------------------------------------------------------------------------------
def test_evaluations_are_those_of_the_lists(chebyshev):
    found, (tree, lists) = counted(chebyshev), (chebyshev.structure.tree, chebyshev.structure.lists)
    targets, sources, points = tree.nodes.targets.count, tree.nodes.sources.count, ORDER**3
    evaluations = {
        "pp": sum(int(targets[t]) * int(sources[s]) for t, s in zip(lists.u_t, lists.u_s, strict=True)),
        "cp": sum(points * int(sources[s]) for s in lists.x_s),
        "pc": sum(points * int(targets[t]) for t in lists.w_t),
    }
    for name, number in evaluations.items():
        assert number > 0
        assert found[name].operations["rsqrt"] == pytest.approx(number)
    assert evaluations["pp"] == chebyshev.walltime.pairs["near"]
    assert evaluations["cp"] + evaluations["pc"] == chebyshev.walltime.pairs["p2l_m2p"]


def test_interpolation_is_that_of_all_boxes(chebyshev):
    """Count fused operations: products with the polynomials of particles, and transfers along three directions."""
    found, nodes, m = counted(chebyshev), chebyshev.structure.tree.nodes, ORDER
    transfer, upward, downward = 3 * m**4 + 3 * m * m, 0, 0
    for box in range(nodes.n):
        sources, targets = int(nodes.sources.count[box]), int(nodes.targets.count[box])
        if nodes.level[box] < 2:
            continue
        if nodes.n_children[box] == 0:
            upward += m**3 * sources
            downward += (m**3 + m) * targets
        elif sources:
            upward += transfer * int(nodes.n_children[box])
        if nodes.level[box] > 2 and targets:
            downward += transfer
    assert found["upward"].operations["fma"] == pytest.approx(upward)
    assert found["downward"].operations["fma"] == pytest.approx(downward)


@pytest.mark.parametrize(
    ("kernel", "components"), [("coulomb", (1, 1)), ("stokes_sl", (3, 3)), ("laplace_grad", (1, 3))]
)
def test_translations_are_the_products_of_all_parts(kernel, components):
    """Count the loops of a sum: parts of the columns, and boxes in blocks, with lanes that have no box."""
    translations = plan_of("chebyshev", kernel).structure.expansion.translations
    given, made = (ORDER**3 * number for number in components)
    flops = values = 0
    for level in translations.levels:
        for _, width in level.parts:
            for side, size in ((level.sources, given), (level.targets, made)):
                flops += 2 * len(side.blocks) * 8 * width * size
                values += len(side.blocks) * 8 * width
    assert chebyshev_work.products(translations.levels).flops == flops > 0
    assert chebyshev_work.passes(translations.levels, 8).bytes["dram"] == 8 * values


def test_the_rate_of_products_is_that_of_the_machine():
    plan, xeon = plan_of("chebyshev"), Machine.load("xeon")
    levels = plan.structure.expansion.translations.levels
    least = chebyshev_work.products(levels).operations["fma"] / xeon.operations["float64"]["fma"]
    found = chebyshev_work.seconds(plan.structure, xeon, plan.dtype, 1)["m2l"]
    assert found > least / chebyshev_work.PRODUCTS_SHARE


def counted(plan):
    return chebyshev_work.counts(plan.structure, Machine.load("xeon"))
