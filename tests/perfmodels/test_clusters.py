"""Counts of the treecode's kernels by hand, numbers of real plans, predictions."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from parki import engine, pairs, samples, treecode
from parki.perfmodels.counts import clusters
from parki.perfmodels.counts.clusters import Lists, Transfers
from parki.perfmodels.counts.totals import Counts
from parki.perfmodels.machine import Machine
from parki.proxies import ProxyKernels
from parki.treecode import work
from parki.treecode.report import PHASES

DOUBLE = np.dtype("float64")
XEON, H200 = Machine.load("xeon"), Machine.load("h200")
#: Two items: 10 targets and 3 ranges of 50 particles in all; 6 targets and one range of 20.
SOME = Lists(np.array([10, 6]), np.array([3, 1]), np.array([50.0, 20.0]), 0.0, 60.0)


def units(name="coulomb", points=3, **parameters):
    return ProxyKernels(pairs.find(name, **parameters).linear()[0], DOUBLE, DOUBLE, points)


@pytest.fixture(scope="module")
def plan():
    """Return a sum with all four kinds of pairs."""
    x, y = samples.uniform(900, seed=1), samples.gaussian(700, seed=2, variance=0.2)
    return treecode.plan("coulomb", x, y, degree=2, leaf_size=24, batch_size=30, far_precision="double",
                         execution_space="Serial")  # fmt: skip


def test_phases_are_those_of_the_report():
    assert tuple(PHASES) == clusters.PHASES
    assert set(clusters.PHASES) == clusters.SHARES.keys()
    assert set(clusters.SHARES.values()) == clusters.ASSUMED.keys()


def test_pairs_of_particles():
    found = clusters.interacting(engine.operations(units().ranges()), SOME, 4, 1, 8, 8)
    n = 10 * 50 + 6 * 20
    assert SOME.pairs == n
    assert found.operations["rsqrt"] == n
    targets = 16  # each with the square of its distance from the origin, by which pairs are found coincident
    assert found.operations["fma"] == 3 * n + 2 * targets
    assert found.operations["mul"] == n + 2 * targets
    assert found.fill == pytest.approx(n / (16 * 50 + 8 * 20), rel=0.01)  # whole vectors of 8 targets
    ends = 8 * 16 * 5  # three coordinates in, the sum in and out
    assert found.bytes["l2"] == pytest.approx(8 * 4 * (50 + 20) + ends)
    assert found.bytes["dram"] == pytest.approx(8 * 4 * 60 + ends)
    assert found.launches == 1


def test_a_pair_with_a_grid_shares_differences_along_rows():
    m = 3
    lists = Lists(np.array([8, 16]), np.array([2, 1]), m**3 * np.array([2.0, 1.0]), 0.0, m**3 * 2.0)
    text = engine.operations(units().grids(m))
    found = clusters.interacting(text, lists, 1 + 6 / m**3, 1, 8, 8)
    n, rows, planes, grids = lists.pairs, 32 * m * m, 32 * m, 32
    assert n == 32 * 27
    assert found.operations["rsqrt"] == n
    assert found.operations["fma"] == n + 2 * rows + planes + m * grids
    assert found.fill == 1.0
    fewer = clusters.interacting(text, replace(lists, targets=lists.targets - 1), 1, 1, 8, 8)
    assert fewer.fill == pytest.approx((7 * 54 + 15 * 27) / (8 * 54 + 16 * 27), rel=0.01)


def test_proxy_points_as_targets_are_made_from_boxes():
    text = engine.operations(units().ranges())
    none, all_ = (clusters.interacting(text, replace(SOME, proxies=share), 4, 1, 8, 8) for share in (0.0, 1.0))
    assert all_.operations["fma"] - none.operations["fma"] == pytest.approx(3 * 16)


def test_a_device_fills_teams_of_threads():
    found = clusters.interacting(engine.operations(units().ranges()), SOME, 4, 1, 8, 32, device=True)
    assert found.fill == pytest.approx(620 / (128 * 70), rel=0.05)
    assert found.bytes["shared"] == 0


def test_no_items_are_no_work():
    empty = Lists(np.empty(0, int), np.empty(0, int), np.empty(0), 0.0, 0.0)
    assert clusters.interacting(engine.operations(units().ranges()), empty, 4, 1, 8, 8) == Counts()
    assert clusters.leaves(None, np.empty(0), 64, 4, 27, 8, 8) == Counts()
    assert clusters.transferred(None, Transfers(3, 3, 0, 0), True, 1, 8, 8) == Counts()


def test_charges_and_potentials_are_products_with_all_polynomials():
    made, sizes, points = units(points=3), np.array([20, 150]), 27
    up = clusters.leaves(engine.operations(made.particles_to_charges()), sizes, 128, 4, 2 * points, 8, 8)
    assert up.operations["fma"] == pytest.approx(points * 170)
    assert up.operations["div"] == pytest.approx(3 * 170)
    assert up.bytes["dram"] == 8 * (170 * 4 + 2 * 2 * points)
    down = clusters.leaves(engine.operations(made.potentials_to_particles()), sizes, 64, 5, points, 8, 8)
    first = 9  # each sum over a row begins with a product
    assert down.operations["fma"] == pytest.approx((27 + 9 + 3 - first) * 170)
    assert down.operations["mul"] >= first * 170
    assert down.operations["div"] == pytest.approx(3 * 170)
    assert down.bytes["dram"] == 8 * (170 * 5 + 2 * points)


def test_two_of_three_tables_of_polynomials_are_in_scratch():
    text, sizes = engine.operations(units(points=3).potentials_to_particles()), np.array([20, 150])
    found = clusters.leaves(text, sizes, 64, 5, 27, 8, 32, device=True)
    assert found.bytes["shared"] == pytest.approx(8 * 170 * (2 * 3 + 3 + 9))  # stored, loaded for planes and for rows


def test_leaves_go_in_blocks():
    """Check that charges of a cluster are updated once per block of its particles."""
    text, sizes = engine.operations(units(points=3).particles_to_charges()), np.array([96, 96])
    one, two = (clusters.leaves(text, sizes, block, 4, 54, 8, 1).operations for block in (128, 64))
    assert two["fma"] == pytest.approx(one["fma"])
    assert two["add"] - one["add"] == pytest.approx(27 * 2)


@pytest.mark.parametrize(("up", "m", "n"), [(True, 3, 3), (True, 4, 2), (False, 2, 4)])
def test_transfers_go_along_one_direction_after_the_other(up, m, n):
    found = clusters.transferred(engine.operations(units().transfer(up)), Transfers(m, n, 5, 35), up, 1, 8, 8)
    along = 35 * n * m * (m * m + n * m + n * n)  # for each of n planes: sums of m along each direction
    assert found.operations["fma"] == pytest.approx(along + 35 * 3 * m * n)  # and one for each polynomial's place
    assert found.bytes["dram"] == 8 * (35 * m**3 + 2 * 5 * n**3)


def test_numbers_of_a_plan(plan):
    n = work.sizes(plan.structure, plan.parameters)
    plan(np.ones(700))
    evaluations = {kind: sum(lists.pairs for lists in of.values()) for kind, of in n.sums.items()}
    assert evaluations == pytest.approx(plan.walltime.pairs)
    assert all(evaluations.values())
    assert (n.n_targets, n.n_sources, n.points) == (900, 700, 3)
    assert n.up.sum() == 700
    assert 0 < n.down.sum() <= 900
    kernels, sizes = plan.structure.kernels, {}
    for step in plan.sums[1].placed.steps:
        sizes.setdefault(step.unit, []).append(step.items)
    for transfers, up in ((n.charges, True), (n.potentials, False)):
        assert sum(it.launches for it in transfers) == len(sizes[kernels.transfer(up)])
        assert sum(it.items for it in transfers) == sum(sizes[kernels.transfer(up)])
    assert sizes[kernels.particles_to_charges()] == [len(n.up)]
    assert sizes[kernels.potentials_to_particles()] == [len(n.down)]
    counts = work.counts(plan.structure, plan.parameters, XEON)
    assert tuple(counts) == clusters.PHASES
    for kind, of in evaluations.items():
        assert counts[kind].operations["rsqrt"] == pytest.approx(of)


def test_predictions_of_a_plan(plan):
    counts, far = work.counts(plan.structure, plan.parameters, XEON), plan.parameters.far
    one, two = (clusters.predict(counts, XEON, plan.dtype.name, far, units) for units in (1, 2))
    assert all(bound.seconds > 0 for bound in one.values())
    assert one["pp"].by == one["cc"].by == "compute"
    assert two["lists"] == one["lists"]
    assert one["pp"].seconds > two["pp"].seconds > 0.5 * one["pp"].seconds
    on_gpu = clusters.predict(work.counts(plan.structure, plan.parameters, H200), H200, plan.dtype.name, far)
    assert all(on_gpu[name].seconds > 0 for name in clusters.PHASES)


def test_measured_shares_count():
    measured = replace(XEON, reached=XEON.reached | {"grids": 0.9})
    assert clusters.share(measured, "pc") == clusters.share(measured, "cc") == 0.9
    assert clusters.share(measured, "pp") == clusters.share(XEON, "pc") == XEON.reached["p2p"]
    counts = {"pc": Counts({"fma": 3.79e9}, launches=1)}
    slow, fast = (clusters.predict(counts, it, units=1)["pc"].seconds for it in (XEON, measured))
    assert slow == pytest.approx(0.1 / XEON.reached["p2p"], rel=1e-3)
    assert fast == pytest.approx(0.1 / 0.9, rel=1e-3)


@pytest.mark.parametrize("machine", [XEON, H200], ids=["host", "device"])
def test_times_of_pairs(machine):
    made, dear = units(), units("yukawa", kappa=0.5)

    def seconds(text, points=0, dtype="float64"):
        return clusters.time_of(engine.operations(text), machine, dtype, points)

    pair, grid = seconds(made.ranges()), seconds(made.grids(9), 9)
    assert 0 < grid < pair
    assert seconds(made.grids(9), 9, "float32") < 0.6 * grid
    assert seconds(dear.ranges()) > 1.2 * pair
    assert seconds(made.grids(3), 3) > grid  # fewer pairs share the fixed cost of a row


def test_rates_say_what_a_pair_takes():
    """Check one operation per cycle and vector: seconds are the reciprocal of the rate over the reached fraction."""

    def total(trips, lanes=1, otherwise=None):
        operations = {"fma": trips["t"] * trips["t:j"] * trips["t:j:e"]}
        return SimpleNamespace(operations=operations, memory=0.0, scratch=0.0, atomics=0.0)

    text = SimpleNamespace(total=total)
    found = clusters.time_of(text, XEON)
    assert found == pytest.approx(1 / XEON.operations["float64"]["fma"] / XEON.reached["p2p"], rel=0.05)
