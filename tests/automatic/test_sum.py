"""`parki.sum` and `parki.fastest`: results by every method, the method that is chosen, and wrong input."""

import logging
import pickle
import warnings

import numpy as np
import pytest

import parki
from parki import pairs, prediction, samples
from parki.automatic import candidates, picks
from parki.automatic.options import METHODS, SumOptions
from parki.error import NetDensityWarning, PrecisionWarning
from parki.fmm import chebyshev_m2l
from parki.plan import make
from parki.prediction import PlanCost
from parki.trees import cluster, octree

N = 400
X, Y = samples.uniform(N, seed=1), samples.uniform(N + 100, seed=2)
Q = samples.charges(N + 100, seed=3)
INSIDE = 0.5 * (X + 1.0)  # the unit box
KERNELS = {"coulomb": {}, "gaussian": {"width": 0.5}, "stokeslet": {}, "yukawa": {"kappa": 2.0}}


def density(kernel, n=N + 100):
    shape = (n,) if pairs.PAIRS[kernel].dens == 1 else (pairs.PAIRS[kernel].dens, n)
    return np.random.default_rng(4).normal(size=shape)


def error(u, v):
    return np.linalg.norm(u - v) / np.linalg.norm(v)


@pytest.fixture
def predicted(monkeypatch):
    """Predict the cost of few pairs, too."""
    monkeypatch.setattr(candidates, "FEW_PAIRS", 0)


@pytest.fixture
def looked_at(monkeypatch):
    """List the methods whose costs are predicted, without picks of earlier tests."""
    names, candidate = [], candidates._candidate

    def listed(name, *arguments):
        names.append(name)
        return candidate(name, *arguments)

    monkeypatch.setattr(candidates, "_candidate", listed)
    picks.forget()
    return names


def chosen(kernel, n, tolerance, cloud=samples.uniform, **keywords):
    """Return the name of the method that is chosen for points that are sources and targets."""
    names = set(SumOptions.names())
    x, options = cloud(n, seed=5), SumOptions(tolerance=tolerance, **{k: v for k, v in keywords.items() if k in names})
    pair = pairs.find(kernel, **{k: v for k, v in keywords.items() if k not in names})
    return candidates.fastest(pair, x, x, options).method.name


# Results --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_the_sum(method, kernel):
    q, exact = density(kernel), parki.direct.direct_sum(kernel, X, Y, density(kernel), **KERNELS[kernel])
    if kernel == "gaussian" and method in ("ewald", "kifmm"):
        with pytest.raises(ValueError, match="gaussian"):
            parki.sum(X, Y, q, kernel, method=method, **KERNELS[kernel])
        return
    u = parki.sum(X, Y, q, kernel, method=method, tolerance=1e-5, **KERNELS[kernel])
    assert error(u, exact) < 1e-5


@pytest.mark.parametrize("kernel", ["coulomb", "yukawa"])
@pytest.mark.parametrize("method", ["auto", "ewald", "kifmm", "bldtt"])
def test_gradients(method, kernel):
    keywords = {"gradient": True, **KERNELS[kernel]}
    exact = parki.direct.plan(kernel, X, Y, **keywords)(Q)
    found = parki.sum(X, Y, Q, kernel, method=method, tolerance=1e-5, **keywords)
    assert all(error(u, v) < 1e-5 for u, v in zip(found, exact, strict=True))


@pytest.mark.parametrize("periodicity", [1, 2, 3, (False, True, False)])
def test_periodic_sums_are_those_of_ewald(periodicity):
    box, q = (1.0, 1.0, 1.0), Q - Q.mean()
    exact = parki.ewald.laplace(INSIDE, INSIDE, q[:N], box=box, periodicity=periodicity, tolerance=1e-9)
    assert error(parki.sum(INSIDE, INSIDE, q[:N], box=box, periodicity=periodicity), exact) < 1e-6


def test_a_box_is_periodic_and_no_box_is_free_space():
    q, x, box = Q[:N] - Q[:N].mean(), INSIDE, (1, 1, 1)
    assert error(parki.sum(x, x, q, box=box), parki.ewald.laplace(x, x, q, box=box)) < 2e-6
    exact = parki.direct.direct_sum("coulomb", x, x, q)
    for keywords in ({}, {"box": box, "periodicity": 0}, {"periodicity": (False, False, False)}):
        assert error(parki.sum(x, x, q, **keywords), exact) < 1e-6
        assert error(parki.sum(x, x, q, method="ewald", **keywords), exact) < 1e-6


def test_reports():
    u, times, parameters, found = parki.sum(
        X, Y, Q, method="kifmm", return_walltime=True, return_params=True, return_error=True
    )
    assert (u == parki.sum(X, Y, Q, method="kifmm")).all()
    assert times.total > 0
    assert parameters.method == "kifmm"
    assert found.value < 1e-6


def test_normals():
    rng = np.random.default_rng(6)
    q, normals = rng.normal(size=(3, N + 100)), rng.normal(size=(3, N + 100))
    exact = parki.direct.plan("stokes_dl", X, Y)(q, normals)
    assert error(parki.sum(X, Y, q, "stokes_dl", normals=normals, method="ewald"), exact) < 1e-6
    assert error(parki.sum(X, Y, q, "stokes_dl", normals=normals), exact) < 1e-6


def test_pairs_as_kernels():
    own = pairs.find(pairs.PAIRS["inverse_quadratic"], width=1.0)
    assert error(parki.sum(X, Y, Q, own), parki.direct.direct_sum(own, X, Y, Q)) < 1e-6


def test_plans_leave_pairs_out_move_and_are_copied():
    exclude = np.array([[0, 1], [2, 3]])
    plan = parki.fastest("coulomb", X, X, exclude=exclude, calls=10)
    expected = parki.direct.plan("coulomb", X, X, exclude=exclude)(Q[:N])
    assert error(plan(Q[:N]), expected) < 1e-6
    assert error(pickle.loads(pickle.dumps(plan))(Q[:N]), expected) < 1e-6
    plan.move(INSIDE)
    assert error(plan(Q[:N]), parki.direct.plan("coulomb", INSIDE, INSIDE, exclude=exclude)(Q[:N])) < 1e-6


def test_layouts_and_no_points():
    u = parki.sum(X.T.copy(), Y.T.copy(), density("stokeslet").T.copy(), "stokeslet", layout="nd")
    assert error(u.T, parki.sum(X, Y, density("stokeslet"), "stokeslet")) < 1e-12
    assert parki.sum(X, Y[:, :0], Q[:0]).tolist() == [0.0] * N
    assert parki.sum(X[:, :0], Y, Q).shape == (0,)


def test_points_of_a_device(predicted):
    x, y, q = X[:, :40].copy(), Y[:, :60].copy(), Q[:60]
    plan = parki.fastest("coulomb", x, y, execution_space="GpuSim")
    assert plan.space.name == "GpuSim"
    assert error(plan(q), parki.direct.direct_sum("coulomb", x, y, q)) < 1e-6


# Choice ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("pairs_unpredicted", [0, candidates.FEW_PAIRS])
def test_few_points_are_summed_directly(pairs_unpredicted, monkeypatch):
    monkeypatch.setattr(candidates, "FEW_PAIRS", pairs_unpredicted)
    assert all(chosen(kernel, 500, 1e-6, **KERNELS[kernel]) == "direct" for kernel in KERNELS)


@pytest.mark.parametrize(("kernel", "tolerance"), [("coulomb", 1e-7), ("stokeslet", 1e-5), ("stokeslet", 1e-7)])
def test_even_points_have_a_grid_and_crowded_ones_a_tree(kernel, tolerance):
    assert chosen(kernel, 60_000, tolerance) == "ewald"
    assert chosen(kernel, 60_000, 1e-5, cloud=samples.plummer) == "kifmm"


def test_other_kernels_have_trees():
    assert chosen("gaussian", 40_000, 1e-3, width=0.5) in ("dual", "chebyshev")
    assert chosen("gaussian", 40_000, 1e-3, width=0.5, calls=1000) == "chebyshev"  # whose tables take long to make


@pytest.mark.parametrize(("kernel", "parameters"), [("coulomb", {}), ("multiquadric", {"width": 0.321})])
def test_tables_that_are_kept_take_no_time(kernel, parameters):
    """Boxes of each size have tables of their own, but for kernels that scale."""
    chebyshev_m2l.tables.cache_clear()
    pair, n = pairs.find(kernel, **parameters), 3000

    def tables(x):
        method, problem = candidates.quiet("chebyshev", pair, SumOptions(tolerance=1e-3), {"targets": x, "sources": x})
        return method, method.cost(problem, method.choose(problem)).once

    x = samples.uniform(n, 1)
    method, seconds = tables(x)
    assert seconds > 0.01
    make(method, x, x)
    kept = tables(x)[1]
    assert 0 < kept == tables(0.99 * x)[1] < 0.05 * seconds
    assert tables(8 * x)[1] == pytest.approx(kept if kernel == "coulomb" else seconds)


def test_softened_charges_that_are_near_take_a_treecode():
    """Boxes of kifmm have a side of at least ε/√tolerance: 0.01, and more than the cube."""
    pair = pairs.find("regularised_coulomb", epsilon=1e-4)
    assert {"direct", "kifmm", "bldtt", "chebyshev"} <= set(candidates.names(pair, SumOptions()))
    assert chosen("regularised_coulomb", 60_000, 1e-4, epsilon=1e-4) == "kifmm"
    assert chosen("regularised_coulomb", 60_000, 1e-4, epsilon=0.1) in ("dual", "chebyshev")


def test_the_least_cost_of_all_calls_is_chosen(monkeypatch, predicted):
    costs = {"direct": PlanCost(100.0, 20.0), "ewald": PlanCost(150.0, 10.0), "kifmm": PlanCost(500.0, 1.0)}

    def candidate(name, method, problem, limit):
        assert (limit is None) == (name == "direct")
        return candidates.Candidate(name, method, None, costs[name])

    monkeypatch.setattr(candidates, "_candidate", candidate)
    found = [candidates.fastest(pairs.find("coulomb"), X, X, SumOptions(calls=n)).method.name for n in (1, 6, 38, 39)]
    assert found == ["direct", "ewald", "ewald", "kifmm"]


@pytest.mark.parametrize(
    ("kernel", "parameters", "picked"), [("coulomb", {}, "ewald"), ("multiquadric", {"width": 0.1}, "chebyshev")]
)
def test_sums_like_an_earlier_one_take_its_method(kernel, parameters, picked, looked_at):
    x, pair, options = samples.uniform(40_000, seed=5), pairs.find(kernel, **parameters), SumOptions(tolerance=1e-3)

    def looking(points, options=options):
        looked_at.clear()
        candidates.fastest(pair, points, points, options)
        return len(looked_at)

    assert looking(x) > 1
    assert sum(looking(x) for _ in range(30)) < 33  # others are looked at again where that may pay
    assert [looking(points) for points in (x, 1.01 * x, 0.99 * x[:, 100:], x + 1e-3)] == [1, 1, 1, 1]
    assert looked_at == [picked]
    others = (samples.plummer(40_000, seed=5), samples.uniform(60_000, seed=5), 3 * x)
    assert all(looking(points) > 1 for points in others)
    assert looking(x, SumOptions(tolerance=2e-3)) > 1
    assert looking(x, SumOptions(tolerance=1e-3, calls=100)) > 1


def test_a_pick_that_takes_longer_or_finds_no_memory_is_looked_at_anew(looked_at, monkeypatch):
    def names():
        looked_at.clear()
        chosen("coulomb", 60_000, 1e-5)
        return looked_at

    assert names()[:2] == ["direct", "ewald"]
    assert names()[0] == "ewald"
    with monkeypatch.context() as patch:
        patch.setitem(prediction.MAKING, "ewald", (10.0, 0.0))
        assert names() == ["ewald", "direct", "kifmm"]
        assert names() == ["kifmm"]
    assert names() == ["kifmm"]
    picks.forget()
    assert names()[:2] == ["direct", "ewald"]
    monkeypatch.setattr("parki.ewald.method.estimate.require", refuse)
    assert names()[:2] == ["ewald", "direct"]


def test_sums_that_come_again_are_worth_tables(monkeypatch, predicted):
    costs = {"direct": PlanCost(1.0, 99.0), "bldtt": PlanCost(1.0, 9.0), "chebyshev": PlanCost(1.0, 5.0, 10.0)}
    limits = []

    def candidate(name, method, problem, limit):
        limits.append(limit)
        return candidates.Candidate(name, method, None, costs[name])

    monkeypatch.setattr(candidates, "_candidate", candidate)
    picks.forget()
    pair = pairs.find("gaussian", width=1.0)
    found = [candidates.fastest(pair, X, X, SumOptions()).name for _ in range(6)]
    assert found == ["bldtt"] * 2 + ["chebyshev"] * 4
    assert limits == [None, 100.0, 10.0, None, None, 30.0, None, None, None]


def test_only_the_best_method_keeps_its_trees(monkeypatch):
    monkeypatch.setattr(candidates, "LOOK", {})
    pair, x = pairs.find("multiquadric", width=0.1), samples.uniform(3000, seed=1)
    comparison = candidates.MethodComparison(pair, SumOptions(tolerance=1e-3), {"targets": x, "sources": x})
    for name in ("chebyshev", "bldtt"):
        comparison.look(name)
    drafts = {name: candidate.cost.draft is not None for name, candidate in comparison.looked_at.items()}
    assert drafts == {name: name == comparison.best.name for name in ("chebyshev", "bldtt")}


@pytest.mark.parametrize("method", ["bldtt", "chebyshev"])
@pytest.mark.parametrize("kernel", ["coulomb", "multiquadric"])
def test_plans_go_on_from_the_trees_of_their_prediction(method, kernel, monkeypatch):
    monkeypatch.setattr(candidates, "FEW_PAIRS", 0)
    monkeypatch.setattr(candidates, "names", lambda *_: ["direct", method])
    monkeypatch.setitem(prediction.MAKING, "direct", (10.0, 0.0))
    picks.forget()
    trees = []
    for module in (cluster, octree):
        monkeypatch.setattr(module, "build", lambda *a, _build=module.build, **k: trees.append(1) or _build(*a, **k))
    parameters = {"multiquadric": {"width": 0.1}}.get(kernel, {})
    x, q = samples.plummer(6000, seed=5), samples.charges(6000, seed=6)
    found = parki.sum(x, x, q, kernel, tolerance=1e-4, **parameters)
    assert len(trees) == 1
    assert (found == parki.sum(x, x, q, kernel, method=method, tolerance=1e-4, **parameters)).all()
    exact = parki.direct.direct_sum(kernel, x, x, q, **parameters)
    assert error(found, exact) < 1e-4
    _, times = parki.sum(x, x, q, kernel, tolerance=1e-4, return_walltime=True, **parameters)
    assert min(times.time["tree"], times.time["lists"]) > 0


def refuse(*_):
    raise MemoryError("too large")


def test_methods_without_memory_are_passed_over(monkeypatch):
    assert chosen("coulomb", 60_000, 1e-5) == "ewald"
    monkeypatch.setattr("parki.ewald.method.estimate.require", refuse)
    assert chosen("coulomb", 60_000, 1e-5) == "kifmm"
    with pytest.raises(MemoryError, match="too large"):
        parki.sum(INSIDE, INSIDE, Q[:N], box=(1, 1, 1))


def test_costs_are_logged(caplog, predicted):
    with caplog.at_level(logging.INFO, "parki"):
        parki.sum(X, Y, Q, verbose=True)
    assert any(record.getMessage().startswith("direct: predicted ") for record in caplog.records)


# Input ----------------------------------------------------------------------------------------------------------------
def test_warnings_come_once():
    with pytest.warns(PrecisionWarning) as caught:
        parki.sum(X.astype("f4"), Y.astype("f4"), Q.astype("f4"), method="ewald", tolerance=1e-9)
    assert len(caught) == 1
    with pytest.warns(NetDensityWarning):
        parki.sum(INSIDE, INSIDE, np.ones(N), box=(1, 1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parki.sum(X, Y, np.ones(N + 100))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"method": "fmm"}, "method is 'fmm'"),
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"tolerance": None}, "tolerance is None"),
        ({"periodicity": 3}, "box"),
        ({"periodicity": 4, "box": (1, 1, 1)}, "periodicity is 4"),
        ({"method": "kifmm", "box": (1, 1, 1)}, "method is 'kifmm' with periodicity=3"),
        ({"kernel": "gaussian", "width": 1.0, "box": (1, 1, 1)}, "kernel is 'gaussian' with periodic axes"),
        ({"kernel": "yukawa"}, "kappa"),
        ({"kappa": 1.0}, "kappa"),
        ({"comm": object()}, "comm was given"),
        ({"return_error": 2}, "return_error is 2"),
        ({"gradient": "both"}, "gradient is 'both'"),
    ],
)
def test_wrong_input(keywords, message):
    with pytest.raises(ValueError, match=message):
        parki.sum(X, Y, Q, **keywords)


def test_points_that_do_not_fit():
    with pytest.raises(ValueError, match="targets"):
        parki.sum(X[:2], Y, Q)
    with pytest.raises(ValueError, match="density"):
        parki.sum(X, Y, Q[:-1])
    with pytest.raises(ValueError, match="calls is 0"):
        parki.fastest("coulomb", X, Y, calls=0)
