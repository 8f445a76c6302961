"""Counted work of interpolation."""

import pytest

import parki
from parki import samples
from parki.fmm import chebyshev_work
from parki.perfmodels.machine import Machine

ORDER = 3


def plan_of(kernel="coulomb"):
    """Return a plan with all lists in use."""
    x, y = samples.plummer(700, 1), samples.uniform(500, 2)
    options = {"order": ORDER, "leaf_size": 8, "execution_space": "Serial"}
    return parki.fmm.plan(kernel, x, y, method="chebyshev", **options)


@pytest.fixture(scope="module")
def chebyshev():
    plan = plan_of()
    assert min(len(getattr(plan.structure.lists, f"{name}_t")) for name in "uvwx") > 0
    return plan


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
    translations = plan_of(kernel).structure.expansion.translations
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
    plan, xeon = plan_of(), Machine.load("xeon")
    levels = plan.structure.expansion.translations.levels
    least = chebyshev_work.products(levels).operations["fma"] / xeon.operations["float64"]["fma"]
    found = chebyshev_work.seconds(plan.structure, xeon, plan.dtype, 1)["m2l"]
    assert found > least / chebyshev_work.PRODUCTS_SHARE


def counted(plan):
    return chebyshev_work.counts(plan.structure, Machine.load("xeon"))
