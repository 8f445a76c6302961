"""Properties of all methods in free space over ranks: moves, queries, spaces, ranks without points."""

import numpy as np
import pytest

from parki.distributed.simulated import World
from tests.distributed.free import FIXED, FreeCase, assert_same, far, whole
from tests.distributed.shares import part
from tests.methods.sums import FMM, module, table

OPTIONS = table(FIXED, {"order": 4, "leaf_size": 25})
each_method = pytest.mark.parametrize("method", ["dual", *FMM])
each_exchange = pytest.mark.parametrize(
    ("method", "scheme"),
    [("dual", "owners"), *((method, scheme) for method in FMM for scheme in ("owners", "hypercube"))],
    indirect=["scheme"],
)


def case(method, **more):
    return FreeCase(module(method), options=OPTIONS[method] | {"method": method} | more.pop("options", {}), **more)


@each_exchange
def test_ranks_without_points(method, scheme):
    one = case(method, n=600, targets="plummer")
    everything, none = np.arange(one.n), np.empty(0, int)
    for shares in (
        ([none, none, np.arange(300), none], [everything, none, none, none]),
        ([np.arange(100), none, np.arange(100, 300), none], [none, everything[:50], none, everything[50:]]),
    ):
        assert_same(one, 4, shares=shares)
    assert_same(case(method, n=5), 8)
    u, _ = case(method, n=0).over(3)
    assert u.shape == (0,)


@each_method
@pytest.mark.parametrize("space", ["OpenMP", "GpuSim"])
def test_spaces(space, method):
    small = {"order": 3, "leaf_size": 10} if method in FMM else {}
    assert_same(case(method, n=300, options={"execution_space": space} | small), 3)


@pytest.mark.parametrize("method", ["dual", "kifmm"])
def test_moves(method):
    """Move a plan to other points, and to another number of points; all ranks cut the points in the same places."""
    others = [case(method, n=2000), case(method, n=2000, points="plummer", seed=8), case(method, n=900, seed=9)]

    def work(comm, plan, strengths):
        found = []
        for other in others:
            mine = other.shares(4, seed=5)[1][comm.rank]
            plan.move(part(other.y, mine))
            structure = plan.structure
            cuts = structure.shared.cuts if method == "kifmm" else structure.parts[1].cuts
            found.append((plan(part(other.density, mine)), mine, cuts.tolist()))
        return found

    _, found = others[0].over(4, work)
    for k, other in enumerate(others):
        plan = others[0].plan(others[0].y, others[0].y)
        plan.move(other.y)
        expected = plan(other.density)
        u = np.empty_like(expected)
        u[np.concatenate([of[k][1] for of in found])] = np.concatenate([of[k][0] for of in found])
        assert far(u, expected) < 1e-12
    cuts = [[of[k][2] for of in found] for k in range(len(others))]
    assert all(of == every[0] for every in cuts for of in every)
    assert cuts[0][0] != cuts[1][0] != cuts[2][0]
    assert cuts[0][0] == sorted(cuts[0][0])


@each_method
def test_queries(method):
    """Check errors, operators, several right-hand sides, points that stay, and given output arrays over ranks."""
    one = case(method, n=1000)
    alone, expected = one.alone()

    def work(comm, plan, strengths):
        (q,) = strengths
        error = plan.error(40)
        both = plan(np.stack([q, 2 * q]))
        out = np.empty_like(q)
        assert plan(q, out=out) is out
        product = plan.operator() @ q
        transposed = plan.operator().T @ q
        np.testing.assert_array_equal(plan.ours(plan.theirs(q)), q)
        assert any(text in plan.walltime.summary() for text in ("exchange", "values"))
        assert plan.predict().seconds > 0
        assert plan.memory > 0
        x = plan.theirs(part(one.y, one.shares(4)[1][comm.rank]))
        stay = one.plan(x, x, comm=comm)
        mine = plan.ours(stay(plan.theirs(q)))
        return error, both, out, product, mine, transposed

    _, found = one.over(4, work)
    assert len({repr(of[0]) for of in found}) == 1
    assert found[0][0].value == pytest.approx(alone.error(40).value, rel=1e-6)
    assert far(whole([of[1] for of in found]), np.stack([expected, 2 * expected])) < 1e-12
    for k in (2, 3, 4):
        assert far(whole([of[k] for of in found]), expected) < 1e-12
    assert far(whole([of[5] for of in found]), alone.operator().T @ one.density) < 1e-12


@each_exchange
def test_results_repeat(method, scheme):
    one = case(method, n=1200, points="plummer")
    results = [one.over(5, world=World(5, seed))[0] for seed in (1, 2)]
    np.testing.assert_array_equal(*results)
