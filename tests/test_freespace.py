"""Sums over pairs in free space, alike by every method: calls, right-hand sides, layouts, results, errors."""

import logging

import numpy as np
import pytest

import parki
from parki import samples
from parki.direct import direct_sum
from parki.engine import KernelError
from parki.pairs import find
from parki.timing import PhaseTimes

#: By call: the module, the method's name in plans, and options with small clusters, so that a box has far pairs.
METHODS = {
    "bldtt": (parki.treecode, "dual", {"degree": 1, "theta": 0.9, "leaf_size": 20}),
    "bltc": (parki.treecode, "pc", {"degree": 1, "theta": 0.9, "leaf_size": 20}),
    "kifmm": (parki.fmm, "kifmm", {"order": 3, "leaf_size": 20}),
    "chebyshev": (parki.fmm, "chebyshev", {"order": 3, "leaf_size": 20}),
}
NT, NS = 350, 400

pytestmark = pytest.mark.parametrize("method", METHODS)


def points(same=False):
    """Return targets and sources."""
    y = samples.uniform(NS, 1)
    return (y if same else samples.uniform(NT, 2)), y


def plan_of(method, kernel="coulomb", *, same=False, at=None, **options):
    """Return a plan that is coarse and has far pairs."""
    module, name, coarse = METHODS[method]
    return module.plan(kernel, *(at or points(same)), method=name, **(coarse | options))


def call(method, x, y, charges, kernel="coulomb", **options):
    """Call the one-shot sum."""
    module, _, coarse = METHODS[method]
    return getattr(module, method)(x, y, charges, kernel, **(coarse | options))


def strengths(kernel, rng, *many):
    """Return charges and, for kernels with them, normals."""
    pair = find(kernel)
    charges = rng.standard_normal((*many, pair.dens, NS) if pair.dens > 1 else (*many, NS))
    return [charges, *([rng.standard_normal((3, NS))] if pair.normals else [])]


def relative(found, exact):
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


@pytest.fixture
def q(rng):
    return rng.standard_normal(NS)


# Calls and their results ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("same", [True, False])
def test_calls_are_plans_used_once(same, method, q):
    x, y = points(same)
    plan = plan_of(method, same=same)
    u = plan(q)
    assert (u.shape, u.dtype, type(u)) == ((x.shape[1],), np.float64, np.ndarray)
    assert 1e-5 < relative(u, direct_sum("coulomb", x, y, q)) < 0.05
    np.testing.assert_array_equal(call(method, x, y, q), u)
    np.testing.assert_array_equal(getattr(METHODS[method][0], method)(x, y, q, **METHODS[method][2]), u)
    assert repr(plan).startswith(f"<Plan: coulomb, {METHODS[method][1]}, 400 sources, {x.shape[1]} targets, ")
    assert plan.memory > u.nbytes


def test_what_is_returned_and_in_which_order(method, q):
    x, y = points()
    u, module = call(method, x, y, q), METHODS[method][0]
    kinds = {
        "return_walltime": PhaseTimes,
        "return_params": module.Parameters,
        "return_error": parki.error.ErrorEstimate,
    }
    for asked in (*([name] for name in kinds), ["return_error", "return_walltime"], list(kinds)[::-1]):
        found = call(method, x, y, q, **dict.fromkeys(asked, True))
        assert [type(one) for one in found] == [np.ndarray, *(kinds[name] for name in kinds if name in asked)]
        np.testing.assert_array_equal(found[0], u)
    times = call(method, x, y, q, return_walltime=True)[1]
    assert min(times.time[phase] for phase in ("tree", "lists", "upward")) > 0
    assert times.total == pytest.approx(sum(times.time.values()))
    assert "total" in times.table()


def test_times_are_those_of_the_last_sum(method, q):
    plan = plan_of(method)
    before = dict(plan.walltime.time)
    assert before["tree"] > 0
    assert before["upward"] == 0
    plan(np.stack([q] * 5))
    first = dict(plan.walltime.time)
    plan.error()
    assert plan.walltime.time == first  # measuring is not a sum of the caller
    plan(q)
    assert plan.walltime.time["tree"] == before["tree"]
    assert 0 < plan.walltime.time["upward"] != first["upward"]


def test_parameters_are_logged_if_asked(method, caplog):
    with caplog.at_level(logging.INFO, "parki"):
        plan = plan_of(method)
        assert caplog.text == ""
        plan = plan_of(method, verbose=True)
    assert str(plan.parameters) in caplog.text
    assert str(plan).splitlines()[1] == f"{METHODS[method][1]}, {plan.parameters}"


@pytest.mark.parametrize("kernel", ["coulomb", pytest.param("stresslet", marks=pytest.mark.slow)])
@pytest.mark.parametrize("options", [{}, {"layout": "nd"}])
def test_errors_are_measured(kernel, options, method, rng):
    x, y = points()
    given = strengths(kernel, rng)
    exact = direct_sum(kernel, x, y, *given)
    if options:
        x, y, given = x.T, y.T, [a.T for a in given]
    plan = plan_of(method, kernel, at=(x, y), **options)
    with pytest.raises(ValueError, match="density is missing: this plan has not been called"):
        plan.error()
    u = plan(*given)
    true = relative(u.T if options and u.ndim == 2 else u, exact)
    every = plan.error(n=NT)
    assert (every.low, every.high, every.n) == (every.value, every.value, NT)
    assert every.value == pytest.approx(true, rel=1e-6)
    some = plan.error(n=150, seed=4)
    assert some.n == 150
    assert some.low < true < some.high
    one = call(method, x, y, given[0], kernel, normals=[*given, None][1], return_error=True, **options)[1]
    assert one == plan.error()
    assert one.n == 100
    with pytest.raises(ValueError, match="n is 0; expected a positive number of targets"):
        plan.error(n=0)


def test_errors_of_other_charges_and_many(method, rng):
    plan, x = plan_of(method, same=True), points(True)[0]
    charges = rng.standard_normal((3, NS))
    exact = np.stack([direct_sum("coulomb", x, x, one) for one in charges])
    true = relative(plan(charges), exact)
    assert plan.error(n=NS).value == pytest.approx(true, rel=1e-6)
    one = relative(plan(charges[1]), exact[1])
    assert plan.error(NS, density=charges[1]).value == pytest.approx(one, rel=1e-6)
    with pytest.raises(ValueError, match="the sum is zero at all sampled targets"):
        plan.error(density=0 * charges)


# Right-hand sides, layouts, places of results -------------------------------------------------------------------------
@pytest.mark.parametrize("kernel", ["coulomb", "stresslet"])
def test_right_hand_sides(kernel, method, rng):
    plan = plan_of(method, kernel)
    charges, *normals = strengths(kernel, rng, 3)
    u = plan(charges, *normals)
    assert u.shape == ((3, NT) if kernel == "coulomb" else (3, 3, NT))
    for one, right in zip(u, charges, strict=True):
        np.testing.assert_array_equal(one, plan(right, *normals))
    one = plan(charges[:1], *normals)
    assert one.shape == (1, *u.shape[1:])
    np.testing.assert_array_equal(one[0], u[0])


@pytest.mark.parametrize("kernel", ["coulomb", "stresslet"])
def test_one_point_a_row(kernel, method, rng):
    x, y = points()
    charges, *normals = strengths(kernel, rng, 2)
    u = call(method, x, y, charges, kernel, normals=(normals or [None])[0])
    turned = charges if kernel == "coulomb" else np.ascontiguousarray(charges.swapaxes(1, 2))
    normals = normals[0].T.copy() if normals else None
    found = call(method, x.T.copy(), y.T.copy(), turned, kernel, normals=normals, layout="nd")
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, u if kernel == "coulomb" else u.swapaxes(1, 2))


def test_memory_order_and_input(method, rng):
    x, y = points()
    charges, normals = strengths("stresslet", rng)
    given = [x, y, charges]
    expected = call(method, *given, "stresslet", normals=normals)
    before = [a.copy() for a in (*given, normals)]
    for a in (*given, normals):
        a.flags.writeable = False
    for change in (np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2], lambda a: a):
        moved = [change(a) for a in given]
        plan = plan_of(method, "stresslet", at=moved[:2])
        np.testing.assert_array_equal(plan(moved[2], change(normals)), expected)
        plan.error(n=10)
    for a, kept in zip((*given, normals), before, strict=True):
        np.testing.assert_array_equal(a, kept)


def test_results_are_the_callers(method, q):
    plan = plan_of(method)
    u = plan(q)
    kept = u.copy()
    plan(2 * q)
    np.testing.assert_array_equal(u, kept)
    u[:] = 0
    np.testing.assert_array_equal(plan(q), kept)


def test_where_a_result_goes(method, q, rng):
    plan = plan_of(method)
    out = np.full(NT, np.nan)
    assert plan(q, out=out) is out
    np.testing.assert_array_equal(out, plan(q))
    y, f = points()[1].T, rng.standard_normal((2, NS, 3))
    vector = plan_of(method, "stokeslet", at=(y, y), layout="nd")
    out = np.full((2, NS, 3), np.nan)
    assert vector(f, out=out) is out
    np.testing.assert_array_equal(out, vector(f))


def test_what_a_result_cannot_go_to(method, q):
    plan, kept = plan_of(method, same=True), q.copy()
    for out, text in (
        (np.empty(NS + 1), r"out is a ndarray of shape \(401,\) and float64; expected a NumPy array of shape"),
        (np.empty(NS, np.float32), r"and float32; expected a NumPy array of shape \(400,\) and float64"),
        (np.empty((1, NS)), r"of shape \(1, 400\)"),
        ([0.0] * NS, "out is a list of shape None"),
        (q, "out shares memory with density"),
    ):
        with pytest.raises(ValueError, match=text):
            plan(q, out=out)
    np.testing.assert_array_equal(q, kept)
    with pytest.raises(ValueError, match="out was given with gradient=True, which has two results"):
        plan_of(method, gradient=True, same=True)(q, out=np.empty(NS))


def test_gradients_of_many_right_hand_sides_and_rows(method, rng):
    x, y = points()
    charges = rng.standard_normal((2, NS))
    plan = plan_of(method, gradient=True)
    u, g = plan(charges)
    assert (u.shape, g.shape) == ((2, NT), (2, 3, NT))
    one = plan(charges[1])
    np.testing.assert_array_equal(one[0], u[1])
    np.testing.assert_array_equal(one[1], g[1])
    (v, h), error = call(method, x.T, y.T, charges, layout="nd", return_error=True, gradient=True)
    np.testing.assert_array_equal(v, u)
    np.testing.assert_array_equal(h, g.swapaxes(1, 2))
    assert 0 < error.value < 0.2


# Other points, and none -----------------------------------------------------------------------------------------------
def test_moved_points(method, rng):
    plan = plan_of(method, same=True)
    first = rng.standard_normal(NS)
    kept = plan(first)
    x, y = samples.uniform(300, 5), 2 * samples.plummer(450, 6, 1.0)
    q, w = rng.standard_normal(450), rng.standard_normal(300)
    plan.operator().rmatvec(first)  # transposed sums move, too
    plan.move(targets=x, sources=y)
    assert (plan.n_targets, plan.n_sources) == (300, 450)
    with pytest.raises(ValueError, match="this plan has not been called"):
        plan.error()
    np.testing.assert_array_equal(plan(q), plan_of(method, at=(x, y))(q))
    assert relative(plan.operator().rmatvec(w), direct_sum("coulomb", y, x, w)) < 0.05
    plan.move(targets=x[:, :0], sources=y)
    assert plan(q).shape == (0,)
    x, _ = points(True)
    plan.move(targets=x, sources=x)
    np.testing.assert_array_equal(plan(first), kept)


def test_points_that_a_plan_cannot_move_to(method, q):
    plan = plan_of(method)
    kept, x = plan(q), np.zeros((3, 5))
    for targets, sources, text in (
        (x[:2], x, r"targets has shape \(2, 5\); expected \(3, N\)"),
        (x, x + np.nan, "sources has 15 of 15 values that are NaN or infinite"),
        (x.astype(np.float32), x, "targets has dtype float32; expected float64, that of this plan"),
        (*(x.astype(np.float32),) * 2, "sources has dtype float32; expected float64, that of this plan"),
    ):
        with pytest.raises(ValueError, match=text):
            plan.move(targets=targets, sources=sources)
    np.testing.assert_array_equal(plan(q), kept)
    assert plan.error(n=NT).value < 0.05


@pytest.mark.parametrize("kernel", ["coulomb", "stokeslet"])
def test_no_points(kernel, method):
    x, none = samples.uniform(7, 1), np.empty((3, 0))
    many = (3,) if kernel == "stokeslet" else ()
    module, name, _ = METHODS[method]
    empty = module.plan(kernel, none, x, method=name)
    assert empty(np.ones((*many, 7))).shape == (*many, 0)
    assert empty(np.ones((2, *many, 7))).shape == (2, *many, 0)
    silent = module.plan(kernel, x, none, method=name)
    np.testing.assert_array_equal(silent(np.ones((*many, 0))), np.zeros((*many, 7)))
    nothing = module.plan(kernel, none, none, method=name, tolerance=1e-3)
    assert nothing(np.ones((*many, 0))).shape == (*many, 0)
    assert max(empty.memory, silent.memory) <= x.nbytes
    assert nothing.memory == 0
    for plan in (empty, silent):
        with pytest.raises(ValueError, match="this plan has no targets or no sources"):
            plan.error()
    u, g = call(method, none, x, np.ones(7), gradient=True)
    assert (u.shape, g.shape) == ((0,), (3, 0))


def test_charges_that_are_zero(method, q):
    plan = plan_of(method, same=True)
    plan(q)  # the state that this call leaves is forgotten
    np.testing.assert_array_equal(plan(np.zeros(NS)), 0)
    with pytest.raises(ValueError, match="the sum is zero at all sampled targets"):
        plan.error()


# Arguments that do not fit --------------------------------------------------------------------------------------------
def test_wrong_input(method):
    for change, message in WRONG:
        given = {"x": np.zeros((3, 2)), "y": np.eye(3, 4), "charges": np.ones(4)} | change
        with pytest.raises(ValueError, match=message):
            getattr(METHODS[method][0], method)(given.pop("x"), given.pop("y"), given.pop("charges"), **given)


WRONG = [
    ({"x": np.zeros((4, 2))}, r"targets has shape \(4, 2\); expected \(3, N\)"),
    ({"x": np.zeros((2, 3))}, r'targets has shape \(2, 3\); expected \(3, N\). Pass targets.T, or layout="nd"'),
    ({"y": np.zeros((3, 4), int)}, "sources has dtype int64; expected float32 or float64"),
    ({"y": np.full((3, 4), np.inf)}, "sources has 12 of 12 values that are NaN or infinite"),
    ({"y": np.zeros((3, 4), np.float32)}, "dtypes differ: targets float64, sources float32"),
    ({"charges": np.zeros(5)}, r"density has shape \(5,\); expected \(4,\)"),
    ({"charges": np.zeros((0, 4))}, r"density has shape \(0, 4\); expected at least one right-hand side"),
    ({"charges": np.zeros(4, np.float32)}, "dtypes differ: targets and sources float64, density float32"),
    ({"charges": np.array([0, 1, np.nan, 0])}, r"density has 1 of 4 .* \(first: density\[2\] = nan\)"),
    ({"kernel": "stokeslet"}, r"density has shape \(4,\); expected \(3, 4\)"),
    ({"kernel": "stresslet", "charges": np.ones((3, 4))}, r"normals is missing; stresslet expects \(3, 4\)"),
    ({"normals": np.ones((3, 4))}, "normals was given, but coulomb takes none"),
    (
        {"kernel": "stresslet", "charges": np.ones((3, 4)), "normals": np.ones((3, 5))},
        r"normals has shape \(3, 5\); expected \(3, 4\)",
    ),
    ({"kernel": "colomb"}, "kernel is 'colomb'; expected one of 'laplace'"),
    ({"kernel": "yukawa"}, "kappa is missing; yukawa expects a positive number"),
    ({"kernel": "yukawa", "kappa": -2.0}, "kappa is -2.0; expected a positive number"),
    ({"kappa": 1.0}, "kappa was given, but coulomb takes no parameters"),
    ({"length": 1.0}, "length was given, but coulomb takes no parameters"),
    ({"leaf_size": 0}, "leaf_size is 0; expected a positive whole number"),
    ({"leaf_size": 2.5}, "leaf_size is 2.5; expected a positive whole number"),
    ({"leaf_size": True}, "leaf_size is True; expected a positive whole number"),
    ({"tolerance": 0}, "tolerance is 0; expected a number between 0 and 1"),
    ({"tolerance": 1.5}, "tolerance is 1.5; expected a number between 0 and 1"),
    ({"tolerance": np.nan}, "tolerance is nan; expected a number between 0 and 1"),
    ({"gradient": "yes"}, "gradient is 'yes'; expected one of False, True, 'only'"),
    ({"gradient": 1}, "gradient is 1; expected one of False, True, 'only'"),
    ({"kernel": "rotlet", "gradient": True}, "rotlet has no gradient; expected one of 'laplace'"),
    ({"kernel": "stokeslet", "gradient": True}, "stokeslet has its gradient alone; expected only=True"),
    ({"layout": "xyz"}, "layout is 'xyz'; expected one of 'dn', 'nd'"),
    ({"box": (1, 1, 1)}, "box was given, but .* sum in free space; parki.ewald has periodic boxes"),
    ({"periodicity": 3}, "periodicity was given, but .* sum in free space; parki.ewald"),
    ({"execution_space": "OpenMPI"}, "'OpenMPI'"),
    ({"execution_space": "Serial", "threads": 2}, "threads is 2 with execution_space 'Serial'"),
    ({"threads": 0}, "threads=0"),
]


def test_kernels_that_are_none(method, tmp_path):
    with pytest.raises(TypeError, match="kernel is a int; expected a name, the path of a file, a function or a Pair"):
        plan_of(method, 3)
    with pytest.raises(KernelError, match="no kernel file"):
        plan_of(method, tmp_path / "none.py")
