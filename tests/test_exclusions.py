"""Pairs that sums leave out or scale: by every method, in all accepted forms, changed and moved."""

import pickle
import warnings

import numpy as np
import pytest

import parki
from parki import exclusions
from tests.ewald.strained import images, left_out

RNG = np.random.default_rng(26)
N = 60
BOX = np.array([1.0, 1.2, 0.9])
CENTRES = RNG.random((3, N // 3)) * BOX[:, None]
X = np.repeat(CENTRES, 3, axis=1) + 0.04 * RNG.uniform(-1, 1, (3, N))  # some molecules lie across faces
Q = np.tile([-0.8, 0.4, 0.4], N // 3)
PAIRS = np.array([(3 * m + a, 3 * m + b) for m in range(N // 3) for a, b in ((0, 1), (0, 2), (1, 2))]).T
MAKERS = {
    "direct": parki.direct.plan,
    "treecode": parki.treecode.plan,
    "fmm": parki.fmm.plan,
    "ewald": parki.ewald.plan,
}
OPTIONS = {"direct": {}, "treecode": {"tolerance": 1e-8}, "fmm": {"tolerance": 1e-8}}
OPTIONS["ewald"] = {"tolerance": 1e-9, "box": tuple(BOX)}
each = pytest.mark.parametrize("method", MAKERS)


def make(method, pairs=PAIRS, x=X, **options):
    return MAKERS[method]("laplace", x, x, exclude=pairs, **OPTIONS[method], **options)


def without(method, pairs=PAIRS, weight=1.0, x=X, q=Q):
    """Return potential and gradient minus the pairs, from a plan without exclusions."""
    u, g = MAKERS[method]("laplace", x, x, gradient=True, **OPTIONS[method])(q)
    cell, count = np.diag(BOX), 3 if method == "ewald" else 0
    v, h = left_out(x, q, pairs, weight, images(x, pairs, cell, count), cell)
    return u - v, g - h


def near(found, exact, bound=1e-7):
    assert np.linalg.norm(found - exact) <= bound * np.linalg.norm(exact)


@each
def test_pairs(method):
    u, g = make(method, gradient=True)(Q)
    exact = without(method)
    near(u, exact[0])
    near(g, exact[1])
    near(make(method)(Q), exact[0])
    near(make(method, gradient="only")(Q), exact[1])


@each
def test_scales(method):
    scale = RNG.uniform(-0.5, 1.5, PAIRS.shape[1])
    near(make(method, (PAIRS, scale))(Q), without(method, weight=1 - scale)[0])
    near(make(method, (PAIRS, 0.5))(Q), without(method, weight=0.5)[0])
    np.testing.assert_array_equal(make(method, (PAIRS, 1.0))(Q), MAKERS[method]("laplace", X, X, **OPTIONS[method])(Q))


def test_lists_are_pairs():
    """Check lists of both particles of a pair, and of one of them."""
    begin, partner = np.arange(0, 2 * N + 1, 2), np.array([[1, 2], [0, 2], [0, 1]])
    whole = (partner[None] + 3 * np.arange(N // 3)[:, None, None]).ravel()
    u = make("direct")(Q)
    np.testing.assert_array_equal(make("direct", (begin, whole))(Q), u)
    half = np.concatenate([[0], np.cumsum(np.tile([2, 1, 0], N // 3))])
    some = (np.array([1, 2, 2])[None] + 3 * np.arange(N // 3)[:, None]).ravel()
    np.testing.assert_array_equal(make("direct", (half, some))(Q), u)
    np.testing.assert_array_equal(make("direct", (half, some, 0.0))(Q), u)
    np.testing.assert_array_equal(make("direct", PAIRS[::-1, RNG.permutation(N)].tolist())(Q), u)


@each
def test_targets_apart(method):
    x, pairs = X[:, :7] + 0.01, np.array([[0, 0, 4], [3, 5, 59]])
    options = OPTIONS[method]
    u = MAKERS[method]("laplace", x, X, exclude=pairs, **options)(Q)
    whole = MAKERS[method]("laplace", x, X, **options)(Q)
    r = x[:, pairs[0]] - X[:, pairs[1]]
    if method == "ewald":
        r -= BOX[:, None] * np.round(r / BOX[:, None])
    near(whole - np.bincount(pairs[0], Q[pairs[1]] / np.linalg.norm(r, axis=0), 7), u)


@each
def test_moves_and_changes(method):
    plan, y = make(method), X + 0.01 * RNG.uniform(-1, 1, X.shape)
    near(plan(Q), without(method)[0])
    plan.move(y)
    near(plan(Q), without(method, x=y)[0])
    plan.exclude(PAIRS[:, ::2])
    near(plan(Q), without(method, PAIRS[:, ::2], x=y)[0])
    plan.exclude()
    near(plan(Q), MAKERS[method]("laplace", y, y, **OPTIONS[method])(Q))
    with pytest.raises(ValueError, match="exclude has the second index 60; expected 0 to 59"):
        plan.exclude([[0], [60]])
    near(plan(Q), MAKERS[method]("laplace", y, y, **OPTIONS[method])(Q))
    plan.move(X[:, :57])


@each
def test_another_number_of_points_is_refused(method):
    plan = make(method)
    with pytest.raises(ValueError, match=r"found 57 points, and this plan has exclusions of 60; .* Call exclude\(\)"):
        plan.move(X[:, :57])
    near(plan(Q), without(method)[0])


@each
def test_many_right_hand_sides(method):
    q = np.stack([Q, RNG.standard_normal(N), np.zeros(N)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", parki.error.NetDensityWarning)
        u, plan = make(method)(q), make(method)
        for row, one in zip(u, q, strict=True):
            np.testing.assert_allclose(row, plan(one), rtol=0, atol=1e-7 * np.abs(u).max())


def test_vectors_in_other_axes():
    """Check a flow with the second direction free, and a turned cell."""
    f = RNG.standard_normal((3, N))
    x, (i, j) = 0.05 + 0.85 * X.clip(0, BOX[:, None]), PAIRS
    x = np.asarray(x)
    cases = [{"box": tuple(BOX), "periodicity": (True, False, True)}, {"box": np.diag(BOX)[::-1] + 0.1}]
    for options in cases:
        whole, plan = (
            parki.ewald.plan("stokes_sl", x, x, tolerance=1e-9, exclude=pairs, **options) for pairs in (None, PAIRS)
        )
        cell = options["box"] if np.ndim(options["box"]) == 2 else np.diag(BOX * [1, 0, 1])
        r = x[:, i] - x[:, j]
        r -= cell.T @ np.floor(np.linalg.pinv(cell).T @ r + 0.5)
        d = np.linalg.norm(r, axis=0)
        v = np.zeros((3, N))
        for a, b in ((i, j), (j, i)):
            flow = f[:, b] / d + r * np.sum(r * f[:, b], axis=0) / d**3
            v += [np.bincount(a, row, N) for row in flow]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", parki.error.NetDensityWarning)
            near(plan(f), whole(f) - v)


@each
def test_the_error_is_that_of_the_rest(method):
    plan = make(method)
    u = plan(Q)
    exact = without(method)[0]
    error = np.linalg.norm(u - exact) / np.linalg.norm(exact)
    assert plan.error(n=N).value == pytest.approx(error, rel=0.5, abs=3e-9)


def test_the_transpose_leaves_out_as_well():
    x, pairs = X[:, :7] + 0.01, np.array([[0, 0, 4], [3, 5, 59]])
    plan = parki.ewald.plan("laplace", x, X, exclude=pairs, **OPTIONS["ewald"])
    operator, w = plan.operator(), RNG.standard_normal(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", parki.error.NetDensityWarning)
        assert (operator @ Q) @ w == pytest.approx((operator.T @ w) @ Q, rel=1e-6)


@each
def test_pickled_plans(method):
    plan = make(method)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(plan))(Q), make(method)(Q))


def test_the_tolerance_is_that_of_the_rest():
    """Check neutral molecules far smaller than their distances, whose own pairs are most of the sum."""
    x = np.repeat(CENTRES, 3, axis=1) + 0.001 * RNG.uniform(-1, 1, (3, N))
    for method in ("ewald", "fmm", "treecode"):
        exact = MAKERS[method]("laplace", x, x, **OPTIONS[method] | {"tolerance": 1e-11})(Q)
        cell, count = np.diag(BOX), 3 if method == "ewald" else 0
        exact = exact - left_out(x, Q, PAIRS, 1.0, images(x, PAIRS, cell, count), cell)[0]
        plan = MAKERS[method]("laplace", x, x, exclude=PAIRS, **OPTIONS[method] | {"tolerance": 1e-5})
        near(plan(Q), exact, 1e-5)
        fresh = MAKERS[method]("laplace", x, x, exclude=PAIRS, gradient=True, **OPTIONS[method] | {"tolerance": 1e-5})
        found = fresh.energy_forces(Q, stress=True)
        assert abs(found.energy - 0.5 * Q @ exact) <= 0.5e-5 * np.linalg.norm(Q) * np.linalg.norm(exact)
        np.testing.assert_array_equal(found.forces, fresh.energy_forces(Q, stress=True).forces)


def test_lost_digits_are_told():
    x = (np.repeat(CENTRES, 3, axis=1) + 0.01 * RNG.uniform(-1, 1, (3, N))).astype(np.float32)
    plan = parki.ewald.plan("laplace", x, x, box=tuple(BOX), tolerance=1e-5, exclude=PAIRS)
    with pytest.warns(parki.error.PrecisionWarning, match=r"exclusions leave .* of the sum, which float32 holds"):
        plan(Q.astype(np.float32))


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (PAIRS.T, ValueError, r"shape \(60, 2\); expected \(2, M\), a pair a column. Pass its transpose"),
        (np.zeros((2, 3)), TypeError, "pairs of float64; expected whole numbers"),
        ([[0], [-1]], ValueError, "second index -1; expected 0 to 59"),
        ([[60], [0]], ValueError, "first index 60; expected 0 to 59"),
        ([[3], [3]], ValueError, "a pair of particle 3 with itself"),
        ([[0, 0], [1, 1]], ValueError, r"the pair \(0, 1\) twice"),
        ([[0, 1], [1, 0]], ValueError, r"the pair \(0, 1\) twice"),
        ((PAIRS, [0.5]), ValueError, r"scale of float64 of shape \(1,\); expected a number, or \(60,\)"),
        ((PAIRS, np.nan), ValueError, "a scale that is not finite"),
        ((PAIRS, "half"), ValueError, "expected a number"),
        (([0, 1], [1, 2]), ValueError, r"\(begin, partners\) of 2 and 2 entries; expected 61"),
        ((PAIRS,), ValueError, "a tuple of 1; expected an array"),
        ((), ValueError, "a tuple of 0; expected an array"),
    ],
)
def test_what_is_refused(given, error, text):
    with pytest.raises(error, match=text):
        make("direct", given)


def test_a_pair_with_two_scales_is_refused():
    begin = np.concatenate([[0, 1], np.full(N - 1, 2)])
    with pytest.raises(ValueError, match="a pair with two scales; expected one"):
        make("direct", (begin, [1, 0], [0.5, 0.25]))


def test_no_pairs():
    assert exclusions.of(None, 3, 3, True) is None
    u = MAKERS["direct"]("laplace", X, X)(Q)
    np.testing.assert_array_equal(make("direct", np.zeros((2, 0), int))(Q), u)
