"""Plans of all methods: moves, transposes, errors, predictions, near pairs, pickles."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import parki
from parki.direct import direct_sum
from tests.quick import every

NT, NS = 300, 350
RNG = np.random.default_rng(4)
X, Y, Z = RNG.random((3, NT)), RNG.random((3, NS)), RNG.random((3, NS))
Q = RNG.standard_normal(NS)
N = RNG.standard_normal((3, NS))
BOX = {"box": (1, 1, 1), "tolerance": 1e-9}
#: By method: function that makes a plan of a kernel, targets, sources and options, with far pairs.
MAKERS = {
    "3P": lambda k, x, y, **o: parki.ewald.plan(k, x, y, **(BOX | o)),
    "0P": lambda k, x, y, **o: parki.ewald.plan(k, x, y, **({"periodicity": 0, "tolerance": 1e-9} | o)),
    "dual": lambda k, x, y, **o: parki.treecode.plan(k, x, y, tolerance=1e-5, leaf_size=20, **o),
    "pc": lambda k, x, y, **o: parki.treecode.plan(k, x, y, method="pc", theta=0.6, degree=5, leaf_size=20, **o),
    "kifmm": lambda k, x, y, **o: parki.fmm.plan(k, x, y, tolerance=1e-5, leaf_size=20, **o),
    "chebyshev": lambda k, x, y, **o: parki.fmm.plan(k, x, y, method="chebyshev", order=6, leaf_size=20, **o),
    "direct": lambda k, x, y, **o: parki.direct.plan(k, x, y, **o),
}
EWALD = ("3P", "0P")
FREE = [name for name in MAKERS if name not in EWALD]
TOLERANCE = {"pc": 1e-3, "chebyshev": 1e-3}

each = pytest.mark.parametrize("method", MAKERS)
some = pytest.mark.parametrize("method", every(2, MAKERS))


def near(u, v, tolerance=1e-12):
    np.testing.assert_allclose(u, v, rtol=0, atol=tolerance * np.abs(v).max())


def relative(u, v):
    return float(np.linalg.norm(u - v) / np.linalg.norm(v))


def filled(shape, dtype=float, *args, empty=np.empty, **keywords):
    """Return an array with all bits set, which is NaN in numbers of any width."""
    made = empty(shape, dtype, *args, **keywords)
    made.reshape(-1).view(np.uint8).fill(255)
    return made


# Calls ----------------------------------------------------------------------------------------------------------------
@each
def test_a_call_with_an_array_that_has_gaps(method):
    plan = MAKERS[method]("laplace", X, Y)
    u = plan(Q)
    out = np.full((2, 2 * NT), np.nan)[:, ::2]
    assert plan(np.stack([Q, 2 * Q]), out=out) is out
    near(out, np.stack([u, 2 * u]))
    locked = np.empty(NT)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only; expected an array to write to"):
        plan(Q, out=locked)
    with pytest.raises(ValueError, match="out shares memory with density or normals"):
        MAKERS[method]("laplace", Y, Y)(Q, out=Q)


@each
def test_no_points(method):
    for x, y in ((X[:, :0], Y), (X, Y[:, :0])):
        plan = MAKERS[method]("laplace", x, y)
        assert plan(np.ones(y.shape[1])).tolist() == [0.0] * x.shape[1]
        assert plan.predict().seconds == 0
        with pytest.raises(ValueError, match="no targets or no sources"):
            plan.error(density=np.ones(y.shape[1]))
        plan.move(targets=X, sources=Y)
        near(plan(Q), MAKERS[method]("laplace", X, Y)(Q))


@some
def test_arrays_that_begin_with_any_bytes(method, monkeypatch):
    cell = {"box": [[1, 0, 0], [0.3, 1, 0], [0.1, 0.2, 1]]} if method == "3P" else {}

    def sums():
        return [
            MAKERS[method]("laplace", X, Y)(Q),
            MAKERS[method]("stokes_dl", X, Y, **cell)(N, Z),
            MAKERS[method]("laplace", Y, Y, **cell)(Q),
        ]

    expected = sums()
    monkeypatch.setattr(np, "empty", filled)
    for u, v in zip(sums(), expected, strict=True):
        np.testing.assert_array_equal(u, v)


# Moves ----------------------------------------------------------------------------------------------------------------
@each
def test_points_move_by_keyword(method):
    plan, made = MAKERS[method]("laplace", X, Y), MAKERS[method]
    plan(Q)
    plan.move(sources=Z)
    near(plan(Q), made("laplace", X, Z)(Q), TOLERANCE.get(method, 1e-4))
    plan.move(targets=0.5 * X)
    near(plan(Q), made("laplace", 0.5 * X, Z)(Q), TOLERANCE.get(method, 1e-4))
    plan.move(targets=X, sources=Y)
    near(plan(Q), made("laplace", X, Y)(Q), TOLERANCE.get(method, 1e-4))
    same = made("laplace", Y, Y)
    same.move(Z)
    near(same(Q), made("laplace", Z, Z)(Q), TOLERANCE.get(method, 1e-4))
    same.move(sources=Y)
    near(same(Q), made("laplace", Y, Y)(Q), TOLERANCE.get(method, 1e-4))


@each
def test_another_number_of_points(method):
    plan, many = MAKERS[method]("laplace", X, Y), RNG.random((3, 500))
    plan.move(targets=many)
    assert (plan.n_targets, plan.n_sources) == (500, NS)
    near(plan(Q), MAKERS[method]("laplace", many, Y)(Q), TOLERANCE.get(method, 1e-4))
    assert plan.error().value < 2e-3
    plan.move(targets=X[:, :7], sources=Y[:, :9])
    near(plan(Q[:9]), MAKERS[method]("laplace", X[:, :7], Y[:, :9])(Q[:9]), 1e-4)
    assert plan(Q[:9]).shape == (7,)


@each
def test_a_plan_of_one_array_takes_two(method):
    plan = MAKERS[method]("laplace", Y, Y)
    with pytest.raises(
        ValueError, match="targets was given, but the targets of this plan are its sources; expected both"
    ):
        plan.move(targets=X)
    plan.move(targets=X, sources=Y)
    near(plan(Q), MAKERS[method]("laplace", X, Y)(Q), TOLERANCE.get(method, 1e-4))


@each
@pytest.mark.parametrize(
    ("points", "error", "text"),
    [
        (
            {"sources": Z.astype(np.float32)},
            ValueError,
            "sources has dtype float32; expected float64, that of",
        ),
        ({"targets": X[:2]}, ValueError, "targets has shape"),
        ({"targets": np.full((3, NT), np.nan)}, ValueError, "targets has 900 of 900 values that are NaN"),
        ({"targets": X, "sources": Y[:2]}, ValueError, "sources has shape"),
        ({}, TypeError, "move: found no points, expected points, or targets or sources by keyword"),
        ({"points": Y, "sources": Y}, TypeError, "move: found several arrays of points, expected one"),
    ],
)
def test_points_that_do_not_fit_change_nothing(method, points, error, text):
    plan = MAKERS[method]("laplace", X, Y)
    u = plan(Q)
    with pytest.raises(error, match=text):
        plan.move(**points)
    np.testing.assert_array_equal(plan(Q), u)


def test_a_new_box():
    plan = MAKERS["3P"]("laplace", X, Y)
    before = plan(Q)
    plan.move(targets=2 * X, sources=2 * Y, box=(2, 2, 2))
    near(plan(Q), before / 2)
    plan.move(targets=2 * X, sources=2 * Y, box=(2, 2, 4))
    near(plan(Q), MAKERS["3P"]("laplace", 2 * X, 2 * Y, box=(2, 2, 4))(Q))
    with pytest.raises(ValueError, match="box was given without all points"):
        plan.move(sources=Y, box=(1, 1, 1))
    with pytest.raises(ValueError, match=r"box is .* expected three positive, finite side lengths"):
        plan.move(targets=X, sources=Y, box=(1, 1, -1))
    near(plan(Q), MAKERS["3P"]("laplace", 2 * X, 2 * Y, box=(2, 2, 4))(Q))


@pytest.mark.parametrize("box", [(1.0, 1.0, 1.0), [[1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [0.1, 0.0, 1.0]]])
def test_the_same_box_keeps_arrays(box, rng):
    x, q = rng.random((3, 30)), rng.standard_normal(30)
    plan = parki.ewald.plan("laplace", x, x, box=box, tolerance=1e-3)
    u, structure = plan(q), plan.structure
    plan.move(x, box=np.array(box))
    assert plan.structure is structure
    np.testing.assert_array_equal(plan(q), u)


def test_a_box_around_points_that_come_apart():
    plan = MAKERS["0P"]("laplace", Y, Y)
    plan.move(targets=0.5 * X + 0.2, sources=0.5 * Y + 0.2)  # within the box
    plan.move(sources=3 * Z - 1)  # outside the box: the targets stay
    near(plan(Q), MAKERS["0P"]("laplace", 0.5 * X + 0.2, 3 * Z - 1)(Q), 1e-4)
    plan.move(targets=3 * X - 1)
    near(plan(Q), MAKERS["0P"]("laplace", 3 * X - 1, 3 * Z - 1)(Q), 1e-4)


def test_points_that_were_wrapped_before_they_became_one():
    plan = MAKERS["3P"]("laplace", X + 100.0, Y)
    plan.move(targets=Y, sources=Y)
    near(plan(Q), MAKERS["3P"]("laplace", Y, Y)(Q))


@pytest.mark.parametrize("method", FREE)
def test_a_box_in_free_space(method):
    with pytest.raises(ValueError, match=r"box was given, but .* sum in free space"):
        MAKERS[method]("laplace", X, Y).move(targets=X, sources=Y, box=(1, 1, 1))


@each
def test_callers_may_change_their_points(method):
    x, y = X.copy(), Y.copy()
    plan = MAKERS[method]("laplace", x, y)
    u = plan(Q)
    x[...], y[...] = 0, 1
    np.testing.assert_array_equal(plan(Q), u)
    assert plan.error().value < 2e-3
    plan.move(sources=Y)
    near(plan(Q), u, TOLERANCE.get(method, 1e-4))


# Transposes -----------------------------------------------------------------------------------------------------------
@each
@pytest.mark.parametrize("kernel", every(3, ["laplace", "stokes_sl", "laplace_grad", "stokes_comb"]))
@pytest.mark.parametrize("layout", every(2, ["dn", "nd"]))
def test_operators_and_their_transposes(method, kernel, layout):
    if kernel in ("laplace_grad", "stokes_comb") and method in ("pc", "chebyshev"):
        pytest.skip("as the other methods of its module")
    x, y, n = (a if layout == "dn" else np.ascontiguousarray(a.T) for a in (X, Y, N))
    plan = MAKERS[method](kernel, x, y, layout=layout)
    normals = [n] if plan.kernel.normals else []
    A = plan.operator(*normals)
    v, w = RNG.standard_normal(A.shape[1]), RNG.standard_normal(A.shape[0])
    shape = (NS,) if plan.kernel.dens == 1 else (plan.kernel.dens, NS) if layout == "dn" else (NS, plan.kernel.dens)
    forward = plan(v.reshape(shape), *normals)
    np.testing.assert_array_equal(A @ v, forward.ravel())
    back = A.T @ w
    scale = np.linalg.norm(forward) * np.linalg.norm(w) + np.linalg.norm(back) * np.linalg.norm(v)
    assert abs(forward.ravel() @ w - back @ v) < TOLERANCE.get(method, 2e-4) * scale
    assert (A @ np.stack([v, 2 * v], axis=1)).shape == (A.shape[0], 2)


@each
def test_transposed_plans_move_with_theirs(method):
    plan = MAKERS[method]("laplace", X, Y)
    w = RNG.standard_normal(NT)
    first = plan.operator().T @ w
    plan.move(sources=Z)
    second = plan.operator().T @ w
    assert relative(second, first) > 0.1
    near(second, MAKERS[method]("laplace", X, Z).operator().T @ w, TOLERANCE.get(method, 1e-4))
    turned = plan.transposed()
    assert (turned.n_targets, turned.n_sources) == (NS, NT)
    np.testing.assert_array_equal(turned(w), second)
    assert plan.transposed() is turned


@pytest.mark.parametrize("method", FREE)
def test_operators_of_gradients(method):
    only = MAKERS[method]("laplace", X, Y, gradient="only")
    near(only.operator() @ Q, only(Q).ravel())
    w = RNG.standard_normal(3 * NT)
    back = only.operator().T @ w
    assert abs(only(Q).ravel() @ w - back @ Q) < 2e-3 * np.linalg.norm(back) * np.linalg.norm(Q)
    with pytest.raises(ValueError, match="this plan has gradient=True; expected a plan with one result"):
        MAKERS[method]("laplace", X, Y, gradient=True).operator()


def test_gradients_of_ewald_sums():
    plan = parki.ewald.plan("laplace", X, Y, gradient="only", **BOX)
    np.testing.assert_array_equal(plan(Q), parki.ewald.plan("laplace_grad", X, Y, **BOX)(Q))
    with pytest.raises(ValueError, match="stokes_dl has no gradient='only' in Ewald sums; expected one of 'laplace'"):
        parki.ewald.plan("stokes_dl", X, Y, gradient="only", **BOX)
    with pytest.raises(ValueError, match="gradient is 'both'; expected one of False, True, 'only'"):
        parki.ewald.plan("laplace", X, Y, gradient="both", **BOX)
    u, g = parki.ewald.plan("laplace", X, Y, gradient=True, **BOX)(Q)
    near(u, parki.ewald.plan("laplace", X, Y, **BOX)(Q), 1e-4)
    near(g, plan(Q), 1e-4)


# Queries --------------------------------------------------------------------------------------------------------------
@each
def test_errors_by_keyword(method):
    plan = MAKERS[method]("laplace", X, Y)
    with pytest.raises(ValueError, match="density is missing: this plan has not been called; call it, or pass density"):
        plan.error()
    u = plan(Q)
    before = dict(plan.walltime.time)
    measured = plan.error(n=NT)
    assert plan.walltime.time == before  # measuring is not a call
    assert plan.error(n=NT, u=u) == measured
    assert plan.error(n=NT, density=2 * Q).value == pytest.approx(measured.value, rel=1e-6, abs=1e-15)
    if method != "3P":
        assert measured.value == pytest.approx(relative(u, direct_sum("laplace", X, Y, Q)), rel=1e-3, abs=1e-14)
    assert measured.value < 2e-3
    assert plan.error(n=20).n == 20


@each
def test_predictions_memory_and_descriptions(method):
    plan = MAKERS[method]("laplace", X, Y)
    prediction = plan.predict()
    assert prediction.seconds == pytest.approx(sum(prediction.phases.values()))
    assert min(prediction.phases.values()) >= 0 < prediction.seconds < 10
    assert prediction.memory == plan.memory > X.nbytes + Y.nbytes
    before = plan.memory
    plan.operator().T @ np.ones(NT)
    assert plan.memory > before
    assert str(prediction) in str(MAKERS[method]("laplace", X, Y))
    head, *_ = str(plan).splitlines()
    assert head == f"laplace: {NT} targets, {NS} sources, float64, OpenMP"
    assert repr(plan).startswith(f"<Plan: laplace, {plan.method.name}, {NS} sources, {NT} targets, ")


@each
def test_near_pairs(method):
    plan = MAKERS[method]("laplace", X, Y)
    pairs = plan.near_pairs(0.1)
    r = X[:, :, None] - Y[:, None, :]
    if method == "3P":
        r -= np.round(r)
    distance = np.linalg.norm(r, axis=0)
    expected = np.where(distance <= 0.1, distance, 0.0)
    assert pairs.shape == (NT, NS)
    np.testing.assert_allclose(pairs.toarray(), expected, atol=1e-14)
    correction = pairs.copy()
    correction.data = -1 / correction.data
    far = plan.operator(correction=correction) @ Q
    exact = np.where(distance > 0.1, 1 / distance, 0.0) @ Q
    if method != "3P":
        assert relative(far, exact) < 2e-3
    with pytest.raises(ValueError, match="radius"):
        plan.near_pairs(-1.0)
    if method == "3P":
        with pytest.raises(ValueError, match=r"radius.*0\.5"):
            plan.near_pairs(0.6)


@some
def test_arrays_go_with_a_plan(method):
    """Check that arrays are freed at once, not when Python collects cycles."""
    gc.collect()
    gc.disable()
    try:
        plan = MAKERS[method]("laplace", X, Y)
        plan(Q)
        plan.operator().T @ np.ones(NT)
        held = [weakref.ref(one) for one in (plan, plan.structure, plan.sums[1].placed, plan.transposed())]
        del plan
        assert [one() for one in held] == [None] * 4
    finally:
        gc.enable()


# Copies ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("again", [lambda p: pickle.loads(pickle.dumps(p)), copy.copy, copy.deepcopy])
@each
def test_copies_are_made_anew(method, again):
    plan = MAKERS[method]("laplace", X, Y)
    u = plan(Q)
    other = again(plan)
    near(other(Q), u, 1e-14)
    assert str(other) == str(plan)
    other.move(sources=Z)  # a plan with its own arrays
    np.testing.assert_array_equal(plan(Q), u)
    assert relative(other(Q), u) > 0.1


def test_a_pickle_of_a_triclinic_cell_with_normals():
    cell = np.array([[1.0, 0.2, 0.0], [0.1, 1.0, 0.3], [0.0, 0.1, 1.1]])
    plan = parki.ewald.plan("stokes_dl", X, Y, box=cell, tolerance=1e-3)
    f = RNG.standard_normal((3, NS))
    near(pickle.loads(pickle.dumps(plan))(f, N), plan(f, N), 1e-14)
