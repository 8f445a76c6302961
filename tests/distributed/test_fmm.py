"""Fast multipole sums over ranks: equal to those of one process, with both exchanges of values."""

from dataclasses import replace

import numpy as np
import pytest

import parki
from parki.distributed.fmm import method as fmm_method
from parki.distributed.fmm import weights
from parki.distributed.fmm.boxes import RankBoxes
from parki.distributed.overlap import Meanwhile
from parki.distributed.simulated import World
from parki.distributed.trees.shared import SharedTree
from parki.fmm import estimate, surfaces
from tests.distributed import essential
from tests.distributed.free import SETS, FreeCase, assert_same, far
from tests.distributed.shares import part
from tests.fmm.sums import KERNELS
from tests.methods.sums import FMM as METHODS
from tests.quick import but, every, half

FIXED = {"order": 4, "leaf_size": 25, "far_precision": "double"}
OWN = {"gaussian": {"width": 0.7}, "rpy": {"radius": 0.01}}
OWN |= {"regularised_coulomb": {"epsilon": 0.001}, "spline_coulomb": {"epsilon": 0.05}}
RANKS = (1, 2, 3, 8)
PLAIN = ("laplace_dipole", "stokes_dl", "stokes_pressure", "stokes_dipole", "rotlet")  # values of one kind, no scale


def case(method="kifmm", **more):
    options = {"method": method} | FIXED | more.pop("options", {})
    if "tolerance" in options:
        options = {name: a for name, a in options.items() if name not in FIXED}
    return FreeCase(parki.fmm, options=options, **more)


@pytest.mark.parametrize(("points", "ranks"), half(SETS, RANKS))
def test_sums(points, ranks, scheme):
    assert_same(case(points=points), ranks, seed=ranks)


@pytest.mark.parametrize(("points", "ranks"), half(SETS, [2, 7]))
def test_sums_by_interpolation(points, ranks, scheme):
    assert_same(case("chebyshev", points=points, n=1000), ranks, seed=ranks)


@pytest.mark.parametrize(("method", "scheme"), half(METHODS, ["owners", "hypercube"]), indirect=["scheme"])
def test_many_ranks(method, scheme):
    assert_same(case(method, points="plummer", n=1000), 64)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("points", [name for name in SETS if name != "plummer"])
def test_many_ranks_of_all_sets(method, points, scheme):
    assert_same(case(method, points=points), 64, seed=64)


def test_boxes_that_meet_in_single_precision(scheme):
    assert_same(case(points="plummer", n=1000, options={"far_precision": "single"}), 3, most=1e-6)


@pytest.mark.parametrize(("method", "points"), half(METHODS, ["uniform", "plummer"]))
def test_parameters_are_those_of_one_process(method, points):
    assert_same(case(method, points=points, n=4000, options={"tolerance": 1e-4}), 5)
    assert_same(case(method, points=points, targets="uniform", n=4000, options={"tolerance": 1e-4}), 5)


@pytest.mark.parametrize("points", ["uniform", "plummer"])
def test_hosts_of_other_costs_take_the_leaves_of_the_first(points, monkeypatch):
    costs = fmm_method.FmmOverRanks._sum_costs

    def of_rank(method, *arguments):
        cost = costs(method, *arguments)
        return replace(cost, pair=cost.pair * 10.0**method.comm.rank)

    monkeypatch.setattr(fmm_method.FmmOverRanks, "_sum_costs", of_rank)
    assert_same(case(points=points, n=4000, options={"tolerance": 1e-4}), 3)


@pytest.mark.parametrize(
    ("kernel", "gradient"),
    [pytest.param(*of, marks=[pytest.mark.slow] * (of[0] in PLAIN)) for of in KERNELS["kifmm"]],
)
def test_kernels(kernel, gradient):
    options = OWN.get(kernel, {}) | {"gradient": gradient}
    assert_same(case(kernel=kernel, n=700, options=options), 4)


@pytest.mark.parametrize(
    "kernel",
    but("stokes_comb", "rotlet", "rpy",
        of=["stokes_sl", "stokes_comb", "laplace_grad", "gaussian", "rotlet", "yukawa", "rpy"]),
)  # fmt: skip
def test_kernels_by_interpolation(kernel):
    assert_same(case("chebyshev", kernel=kernel, n=700, options=OWN.get(kernel, {})), 4)


@pytest.mark.parametrize(("method", "scheme"), half(METHODS, ["owners", "hypercube"]), indirect=["scheme"])
def test_targets_apart(method, scheme):
    assert_same(case(method, points="uniform", targets="plummer"), 6)
    assert_same(case(method, points="sphere", targets="uniform", n=900), 3)
    assert_same(case(method, points="uniform", targets="two", n=900), 8)


def test_single_precision():
    assert_same(case(n=900, dtype="float32"), 4, most=1e-5)


def test_one_shot_sums():
    one = case(n=800)

    def work(comm):
        mine = one.shares(3)[1][comm.rank]
        x, q = part(one.y, mine), part(one.density, mine)
        return parki.fmm.kifmm(x, x, q, return_error=True, return_walltime=True, comm=comm, **FIXED)

    found = World(3).run(work)
    expected, measured = parki.fmm.kifmm(one.y, one.y, one.density, return_error=True, **FIXED)
    assert far(np.concatenate([u for u, *_ in found]), expected) < 1e-12
    for _, times, error in found:
        assert error.value == pytest.approx(measured.value, rel=1e-6)
        assert times.nbytes["exchange"] > 0


def root(plan):
    nodes = plan.structure.tree.nodes
    return nodes.low, nodes.width


@pytest.mark.parametrize("points", ["uniform", "plummer"])
def test_work_is_cut_evenly(points, monkeypatch):
    """Work of leaves adds up to that of the whole tree, and no rank has much more than the mean."""
    kept = []
    of_leaves = weights.of_leaves

    def counted(*given):
        found = of_leaves(*given)
        kept.append(float(found[1].sum()))
        return found

    monkeypatch.setattr(weights, "of_leaves", counted)
    one = case(n=20_000, points=points, options={"leaf_size": 20})
    one.over(4)
    total = sum(kept)

    def again(comm, plan, strengths):
        boxes = RankBoxes.of(plan.structure.shared, root(plan), plan.method._points(4))
        return float(of_leaves(boxes, plan.method._weights(plan.chosen), plan.method._points(4))[1].sum())

    _, found = one.over(4, again)
    assert sum(found) == pytest.approx(total, rel=1e-9)
    assert max(found) < 1.03 * np.mean(found)


@pytest.mark.parametrize(("points", "apart"), half(["uniform", "plummer", "sphere", "two"], [None, "uniform"]))
def test_values_that_travel(points, apart, scheme):
    """Ranks send the values that the lists of one process ask for, and charges of ghosts."""
    one, ranks = case(points=points, targets=apart, n=6000), 8
    plan, _ = one.alone()
    nodes, lists = plan.structure.tree.nodes, plan.structure.lists

    def work(comm, plan, strengths):
        shared, times = plan.structure.shared, plan.walltime
        return shared.firsts, dict(times.nbytes), plan.structure.part.points, times.messages["exchange"]

    _, found = one.over(ranks, work)
    firsts, size = found[0][0], 8 * surfaces.count(FIXED["order"])
    counted = {"owners": essential.owners_send, "hypercube": essential.hypercube_sends}[scheme]
    expected = size * counted(nodes, lists, firsts)
    np.testing.assert_array_equal([nbytes["exchange"] for _, nbytes, *_ in found], expected)
    asked = essential.ghosts(nodes, lists, firsts)
    assert [sum(points.receive.values()) for *_, points, _ in found] == asked.tolist()
    assert sum(nbytes["ghost_source"] for _, nbytes, *_ in found) == 8 * sum(asked)
    most = {"owners": 2 * (ranks - 1), "hypercube": 3}[scheme]
    assert 0 < max(messages for *_, messages in found) <= most


@pytest.mark.parametrize("method", METHODS)
def test_predictions(method):
    """Predictions of ranks add up to that of one process, except for boxes that several ranks share."""
    one = case(method, n=20_000)
    plan, _ = one.alone()
    expected = plan.predict()
    _, found = one.over(4, lambda comm, plan, strengths: plan.predict())
    for phase in ("near", "upward", "downward", "m2l"):
        together = sum(getattr(other, phase) for other in found)
        twice = 1.5 if phase == "m2l" else 1.2  # values of ghosts are transformed, or compressed, by all users
        assert 0.99 < together / getattr(expected, phase) < twice, phase


def test_targets_away_from_sources():
    """Take the order of one process for targets far from sources, whose charges nearly cancel there."""
    one = case(n=2000, targets="uniform", options={"tolerance": 1e-4})
    one.x += 20
    assert_same(one, 3)


def test_cuts_stay_while_work_is_balanced(monkeypatch):
    cut, one = [], case(n=6000, points="plummer")
    made = SharedTree.cut.__func__
    monkeypatch.setattr(SharedTree, "cut", classmethod(lambda cls, *given: cut.append(1) or made(cls, *given)))

    def work(comm, plan, strengths):
        mine = one.shares(4)[1][comm.rank]
        rng, begun = np.random.default_rng(comm.rank), len(cut)
        plan.move(part(one.y, mine) + 1e-3 * rng.standard_normal((3, len(mine))))
        comm.barrier()
        stayed = len(cut) == begun
        comm.barrier()
        plan.move(np.where(one.y[0, mine] > 0, 1e-3, 1.0) * part(one.y, mine))
        return stayed, begun

    _, found = one.over(4, work)
    assert found == [(True, 4)] * 4
    assert len(cut) == 8


def test_near_field_is_summed_while_values_travel(monkeypatch):
    """Parts of the near field are summed before the last message has come."""
    one, done = case(n=3000), []
    run = Meanwhile._run

    def parts(self, first, end):
        done.append(self.pending is not None)
        run(self, first, end)

    until = Meanwhile.until

    def under_way(self, pending, phase):
        self.pending = pending
        until(self, pending, phase)
        self.pending = None

    monkeypatch.setattr(Meanwhile, "pending", None, raising=False)
    monkeypatch.setattr(Meanwhile, "_run", parts)
    monkeypatch.setattr(Meanwhile, "until", under_way)
    assert_same(one, 4, world=World(4, delay=(2e-3, 0.0)))
    assert any(done)


def test_errors_are_those_of_all(monkeypatch):
    one = case(n=500)

    def require(steps, *given):
        if some[0].rank == 1:
            raise MemoryError("no room")

    some = []

    def work(comm, failing):
        x = part(one.y, one.shares(3)[1][comm.rank])
        if failing == "points" and comm.rank == 1:
            x[0, 0] = np.nan
        if failing == "order":
            return one.plan(x, x, comm=comm, order=4 + comm.rank % 2)
        return one.plan(x, x, comm=comm)

    for failing, text in (("points", "sources"), ("order", "order is '5' on rank 1; expected '4'")):
        with pytest.raises(ValueError, match=text) as found:
            World(3).run(work, failing)
        assert "all ranks" in found.value.__notes__[0]
    monkeypatch.setattr(estimate, "require", require)
    place = fmm_method.FmmOverRanks.place

    def placed(self, *given):
        some[:] = [self.comm]
        return place(self, *given)

    monkeypatch.setattr(fmm_method.FmmOverRanks, "place", placed)
    with pytest.raises(MemoryError, match="no room") as found:
        World(3).run(work, "memory")
    assert "rank 1 of 3" in found.value.__notes__[0]


@pytest.mark.parametrize("seed", every(4, range(12)))
def test_random_sums(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(fmm_method, "SCHEME", [None, "owners", "hypercube"][rng.integers(3)])
    options = {"order": int(rng.integers(3, 6)), "leaf_size": int(rng.integers(1, 60))}
    points = {"points": list(SETS)[rng.integers(len(SETS))], "targets": [None, *SETS][rng.integers(len(SETS) + 1)]}
    one = case(METHODS[seed % 2], n=int(rng.integers(50, 2000)), seed=seed, options=options, **points)
    plans = assert_same(one, int(rng.integers(2, 41)), seed=seed)
    assert all(np.isfinite(plan.predict().seconds) for plan in plans)
