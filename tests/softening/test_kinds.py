"""Charges with a softening length each: pairs have the larger one; by every method, against sums over all pairs."""

import pickle

import numpy as np
import pytest

import parki
from parki import samples
from parki.distributed.simulated import World
from parki.softening.kinds import Kinds
from tests.fmm.test_softened import crowd, enclosed
from tests.methods import sums
from tests.methods.sums import METHODS, relative
from tests.quick import every
from tests.test_pairs import spline

N = 1200
SOFTENED = ("regularised_coulomb", "spline_coulomb")
EVERY = ("direct", *METHODS)
SOME = pytest.mark.parametrize("method", ["direct", "dual", "kifmm"])


def plan(method, kernel, x, y, epsilon, **options):
    if method == "direct":
        options.pop("tolerance", None)
        return parki.direct.plan(kernel, x, y, epsilon=epsilon, **options)
    return sums.plan(method, kernel, x, y, epsilon=epsilon, **options)


def fields(kernel, x, y, a, b):
    """Return the potential (Nt, Ns) and the gradient (3, Nt, Ns) of unit charges, softened by the larger length."""
    d = x[:, :, None] - y[:, None]
    r, e = np.linalg.norm(d, axis=0), np.maximum(a[:, None], b)
    if kernel == "regularised_coulomb":
        phi, slope = 1 / np.sqrt(r**2 + e**2), -1 / np.sqrt(r**2 + e**2) ** 3
    else:
        phi = np.where(r > 0, spline(np.where(r > 0, r, 1.0), e), 1 / e)
        slope = enclosed(r / (2.8 * e)) / (2.8 * e) ** 3
    return phi, slope * d


def drawn(seed):
    """Return points, lengths and charges."""
    rng = np.random.default_rng([seed, 4])
    shape = (samples.plummer, samples.uniform, crowd)[seed % 3]
    lengths = 10 ** rng.uniform(-4, -1, (1, 2, 3, 6)[seed % 4])
    share = rng.dirichlet(np.ones(len(lengths)))
    q = rng.random(N) if rng.random() < 0.5 else rng.standard_normal(N)
    return shape(N, seed), rng.choice(lengths, N, p=share), q


@pytest.mark.parametrize("seed", every(14, range(24)))
@pytest.mark.parametrize("method", EVERY)
def test_sums(method, seed):
    (x, e, q), kernel, tolerance = drawn(seed), SOFTENED[seed // 2 % 2], (1e-3, 1e-5, 1e-7)[seed % 3]
    made = plan(method, kernel, x, x, e, tolerance=tolerance, gradient=True)
    u, g = made(q)
    phi, slope = fields(kernel, x, x, e, e)
    assert relative(u, phi @ q) < tolerance
    assert relative(g, slope @ q) < tolerance
    assert made.error(60).value < tolerance
    assert np.abs((q * g).sum(axis=1)).max() < tolerance * np.abs(q * g).sum()  # momentum


@SOME
def test_targets_apart_and_transposes(method):
    (y, b, q), rng = drawn(3), np.random.default_rng(3)
    x, a = samples.uniform(400, 8), rng.choice([0.0, 0.01, b.max(), 0.3], 400)
    options = {"tolerance": 1e-6}
    made = plan(method, "spline_coulomb", x, y, (a, b), **options)
    phi, w = fields("spline_coulomb", x, y, a, b)[0], rng.standard_normal(400)
    assert relative(made(np.stack([q, q**2])), np.stack([phi @ q, phi @ q**2])) < 1e-6
    assert relative(made.operator().T @ w, phi.T @ w) < 1e-6
    assert made.error(50).value < 1e-6


@SOME
def test_plans(method):
    x, e, q = drawn(2)
    options = {"tolerance": 1e-6}
    phi, slope = fields("regularised_coulomb", x, x, e, e)
    made = plan(method, "regularised_coulomb", x, x, e, **options)
    assert relative(made(q), phi @ q) < 1e-6
    energy, forces, _ = made.energy_forces(q)
    assert energy == pytest.approx(0.5 * q @ phi @ q, rel=1e-6)
    assert relative(forces, -q * (slope @ q)) < 1e-5
    assert relative(pickle.loads(pickle.dumps(made))(q), phi @ q) < 1e-6
    assert made.predict().seconds == pytest.approx(sum(made.predict().phases.values()))
    assert made.memory > 0
    assert "lengths, " in str(made)
    y = samples.plummer(N, 77)
    made.move(y)
    assert relative(made(q), fields("regularised_coulomb", y, y, e, e)[0] @ q) < 1e-6
    with pytest.raises(ValueError, match=f"epsilon has {N} numbers for 70 targets; expected one for each"):
        made.move(y[:, :70])
    assert relative(made(q), fields("regularised_coulomb", y, y, e, e)[0] @ q) < 1e-6
    rows = plan(method, "regularised_coulomb", *[np.ascontiguousarray(y.T)] * 2, e, layout="nd", **options)
    np.testing.assert_allclose(rows(q), made(q), rtol=1e-12)


@SOME
def test_without_own_terms(method):
    x, e, q = drawn(5)
    x[:, ::7] = x[:, 1::7][:, : x[:, ::7].shape[1]]
    for kernel in SOFTENED:
        made = plan(method, kernel, x, x, e, tolerance=1e-6, own_term=False)
        phi = fields(kernel, x, x, e, e)[0]
        np.fill_diagonal(phi, 0)
        assert relative(made(q), phi @ q) < 1e-6
        assert made.error(50).value < 1e-6


@SOME
def test_equal_lengths_are_one_length(method):
    x, _, q = drawn(1)
    u, one = (plan(method, "spline_coulomb", x, x, e, tolerance=1e-6)(q) for e in (np.full(N, 0.02), 0.02))
    np.testing.assert_array_equal(u, one)


def test_one_shot_sums_and_single_precision():
    x, e, q = drawn(10)
    x, q = x.astype("float32"), np.abs(q).astype("float32")
    expected = fields("spline_coulomb", x.astype(float), x.astype(float), e, e)[0] @ q
    for call in (parki.fmm.kifmm, parki.treecode.bldtt, parki.treecode.bltc):
        u = call(x, x, q, "spline_coulomb", epsilon=e, tolerance=1e-4)
        assert u.dtype == np.float32
        assert relative(u, expected) < 1e-4


@pytest.mark.parametrize("power", [-200, 300])
def test_units(power):
    x, e, q = drawn(6)
    u = plan("dual", "spline_coulomb", *[np.ldexp(x, power)] * 2, np.ldexp(e, power), tolerance=1e-5)(q)
    assert relative(np.ldexp(u, power), fields("spline_coulomb", x, x, e, e)[0] @ q) < 1e-5


def test_tasks_and_simulated_devices():
    x, e, q = drawn(7)
    for options in ({"schedule": "drain", "threads": 2}, {"execution_space": "GpuSim"}):
        made = plan("kifmm", "spline_coulomb", x, x, e, tolerance=1e-5, **options)
        assert relative(made(q), fields("spline_coulomb", x, x, e, e)[0] @ q) < 1e-5


def test_square_roots():
    """Check that the matrix is positive: spectra of 1/√(r² + ε²) fall as ε grows."""
    x, e = samples.uniform(60, 3), np.random.default_rng(3).choice([0.02, 0.1, 0.4], 60)
    made, z = plan("direct", "regularised_coulomb", x, x, e), np.random.default_rng(4).standard_normal(60)
    assert np.linalg.eigvalsh(fields("regularised_coulomb", x, x, e, e)[0])[0] > 0
    assert relative(made.sqrt(made.sqrt(z, tolerance=1e-9), tolerance=1e-9), made(z)) < 1e-7


def test_parts_have_every_pair_once():
    rng = np.random.default_rng(1)
    for a, b in ((rng.integers(1, 5, 40), None), (rng.integers(0, 4, 30), rng.integers(2, 6, 50))):
        kinds = Kinds.of(a) if b is None else Kinds.of((a, b))
        length, b = np.zeros((len(a), len(a if b is None else b))), a if b is None else b
        for part in kinds.parts:
            assert not length[np.ix_(part.targets, part.sources)].any()
            length[np.ix_(part.targets, part.sources)] = part.length
        np.testing.assert_array_equal(length, np.maximum(a[:, None], b))
        assert len(kinds.parts) < 2 * len(kinds.values)


@SOME
def test_no_points(method):
    none = np.empty((3, 0))
    assert plan(method, "spline_coulomb", none, none, np.empty(0), tolerance=1e-4)(np.empty(0)).shape == (0,)
    x = samples.uniform(5, 1)
    u = plan(method, "spline_coulomb", x, none, (np.full(5, 0.1), np.empty(0)), tolerance=1e-4)(np.empty(0))
    np.testing.assert_array_equal(u, np.zeros(5))


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        ([0.1, 0.2], "epsilon has 2 numbers for 20 targets; expected one for each"),
        (np.linspace(0.1, 0.2, 20), "epsilon has 20 different numbers; expected at most 8, one for each kind"),
        (np.zeros(20), "epsilon has numbers from 0 to 0; expected positive finite numbers"),
        (np.ones((2, 10)), r"epsilon has shape \(2, 10\); expected \(N,\), one number for each particle"),
        ((np.ones(20), np.zeros(20)), r"epsilon\[1\] has numbers from 0 to 0; expected positive finite"),
    ],
)
def test_wrong_lengths(epsilon, message):
    x = samples.uniform(20, 1)
    with pytest.raises(ValueError, match=message):
        parki.treecode.plan("spline_coulomb", x, x, epsilon=epsilon)


def test_refusals():
    x, e = samples.uniform(20, 1), np.repeat([0.1, 0.2], 10)
    pair = np.array([[0], [1]])
    with pytest.raises(ValueError, match="epsilon is one array and targets are not sources; expected a tuple"):
        parki.fmm.plan("spline_coulomb", x, x.copy(), epsilon=e)
    with pytest.raises(NotImplementedError, match="exclude was given with one epsilon for each particle"):
        parki.fmm.plan("spline_coulomb", x, x, epsilon=e, exclude=pair)
    with pytest.raises(NotImplementedError, match="exclude was given with spline_coulomb of several lengths"):
        parki.fmm.plan("spline_coulomb", x, x, epsilon=e).exclude(pair)
    with pytest.raises(NotImplementedError, match="exclude was given with rpy of several lengths"):
        parki.direct.plan("rpy", x, x, radius=e).exclude(pair)
    with pytest.raises(NotImplementedError, match="comm was given with one epsilon for each particle"):
        World(2).run(lambda comm: parki.direct.plan("spline_coulomb", x, x, epsilon=e, comm=comm))
    for call in (parki.direct.direct_sum, lambda *a, **k: parki.fastest(a[0], *a[1:3], **k)):
        with pytest.raises(ValueError, match=r"epsilon is array\([^)]*\); expected a positive number"):
            call("spline_coulomb", x, x, np.ones(20), epsilon=e)
    with pytest.raises(ValueError, match=r"epsilon is array\([^)]*\); expected a positive number"):
        parki.treecode.plan("regularised_yukawa", x, x, kappa=1.0, epsilon=e)
