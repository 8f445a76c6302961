"""Sums without own terms: pairs of a particle and itself, by every method and against sums over all pairs by NumPy."""

import pickle
import warnings

import numpy as np
import pytest

import parki
from parki import own_terms, pairs, samples
from parki.distributed.simulated import World
from parki.error import PrecisionWarning
from tests.distributed.shares import cuts, part
from tests.methods import sums
from tests.methods.sums import METHODS, relative
from tests.quick import every
from tests.test_pairs import PHI

N = 900
SOFTENED = ("regularised_coulomb", "spline_coulomb")
EVERY = ("direct", *METHODS)


def plan(method, kernel, x, **options):
    """Return the plan of a method without own terms."""
    options = {"own_term": False} | options
    if method == "direct":
        options.pop("tolerance", None)
        return parki.direct.plan(kernel, x, x, **options)
    return sums.plan(method, kernel, x, x, **options)


def twice(n, seed):
    """Return points of which every fifth is where another one is, and three are in one place."""
    x = samples.plummer(n, seed)
    x[:, ::5] = x[:, 1::5]
    x[:, 2] = x[:, 1]
    return x


def matrix(kernel, x, *parameters):
    """Return φ of all pairs of two particles, and 0 for a particle and itself."""
    phi, at_zero = PHI[kernel]
    r = np.linalg.norm(x[:, :, None] - x[:, None], axis=0)
    values = np.where(r > 0, phi(np.where(r > 0, r, 1.0), *parameters), at_zero(*parameters))
    np.fill_diagonal(values, 0.0)
    return values


@pytest.mark.parametrize("seed", every(6, range(12)))
@pytest.mark.parametrize("method", EVERY)
def test_softened_charges(method, seed):
    rng = np.random.default_rng([seed, 8])
    kernel, e, tolerance = SOFTENED[seed % 2], 10 ** rng.uniform(-4, -1), 10 ** rng.uniform(-7, -3)
    x = (twice, samples.uniform, samples.sphere)[seed % 3](N, seed)
    q = rng.random(N) if seed % 4 < 2 else rng.standard_normal(N)
    made = plan(method, kernel, x, epsilon=e, tolerance=tolerance)
    expected = matrix(kernel, x, e) @ q
    assert relative(made(q), expected) < tolerance
    with_own = plan(method, kernel, x, epsilon=e, tolerance=tolerance, own_term=True)
    assert relative(with_own(q), expected + q / e) < tolerance
    assert made.error(50).value < tolerance


@pytest.mark.parametrize("method", ["direct", "dual", "kifmm"])
def test_own_terms_that_are_most_of_the_sum(method):
    """Take off terms of ten thousand times the rest: roots of few digits would leave an error."""
    x, q, e = samples.uniform(N, 4), np.random.default_rng(4).random(N), 1e-8
    u = plan(method, "regularised_coulomb", x, epsilon=e, tolerance=1e-5)(q)
    expected = matrix("regularised_coulomb", x, e) @ q
    assert np.linalg.norm(q / e) > 1e4 * np.linalg.norm(expected)
    assert relative(u, expected) < 1e-5


@pytest.mark.parametrize("method", ["direct", "dual", "kifmm"])
def test_gradients_and_energies(method):
    x, q, e = twice(N, 1), np.random.default_rng(1).random(N), 0.02
    options = {"epsilon": e, "tolerance": 1e-6}
    u, g = plan(method, "spline_coulomb", x, gradient=True, **options)(q)
    whole, slope = plan(method, "spline_coulomb", x, gradient=True, own_term=True, **options)(q)
    np.testing.assert_allclose(u, whole - q / e, rtol=1e-5)
    assert relative(g, slope) < 1e-6
    assert relative(plan(method, "spline_coulomb", x, gradient="only", **options)(q), slope) < 1e-6
    energy, forces, _ = plan(method, "spline_coulomb", x, **options).energy_forces(q)
    assert energy == pytest.approx(0.5 * q @ matrix("spline_coulomb", x, e) @ q, rel=1e-6)
    assert relative(forces, -q * slope) < 1e-5


@pytest.mark.parametrize("method", ["direct", "dual", "kifmm"])
def test_moves_operators_and_copies(method):
    x, q, e = samples.uniform(N, 2), np.random.default_rng(2).standard_normal((2, N)), 0.05
    made = plan(method, "spline_coulomb", x, epsilon=e, tolerance=1e-6, layout="dn")
    a = matrix("spline_coulomb", x, e)
    assert relative(made(q), q @ a) < 1e-6
    assert relative(made.operator() @ q[0], a @ q[0]) < 1e-6
    assert relative(made.operator().T @ q[0], a @ q[0]) < 1e-6
    assert relative(made.transposed()(q[1]), a @ q[1]) < 1e-6
    assert relative(pickle.loads(pickle.dumps(made))(q), q @ a) < 1e-6
    for n in (N, 500):
        y = twice(n, 6)
        made.move(y)
        assert relative(made(q[0, :n]), matrix("spline_coulomb", y, e) @ q[0, :n]) < 1e-6
    rows = plan(method, "spline_coulomb", x.T.copy(), epsilon=e, tolerance=1e-6, layout="nd")
    assert relative(rows(q), q @ a) < 1e-6


def test_excluded_pairs_are_left_out_too():
    x, q, e, listed = twice(60, 3), np.random.default_rng(3).random(60), 0.1, np.array([[0, 7], [1, 30]])
    a = matrix("regularised_coulomb", x, e)
    a[listed[0], listed[1]] = a[listed[1], listed[0]] = 0
    for method in ("direct", "dual", "kifmm"):
        made = plan(method, "regularised_coulomb", x, epsilon=e, tolerance=1e-8, exclude=listed)
        assert relative(made(q), a @ q) < 1e-8
        assert made.error(20).value < 1e-8


@pytest.mark.parametrize("power", [-200, 300])
def test_units(power):
    x, q, e = samples.uniform(200, 5), np.random.default_rng(5).random(200), 0.01
    u = plan("direct", "spline_coulomb", np.ldexp(x, power), epsilon=np.ldexp(e, power))(q)
    assert relative(np.ldexp(u, power), matrix("spline_coulomb", x, e) @ q) < 1e-12


def test_single_precision():
    x, q = samples.uniform(N, 5).astype("float32"), np.random.default_rng(5).random(N).astype("float32")
    u = plan("kifmm", "spline_coulomb", x, epsilon=0.03, tolerance=1e-4)(q)
    assert u.dtype == np.float32
    assert relative(u, matrix("spline_coulomb", x.astype(float), np.float32(0.03)) @ q) < 1e-4
    with pytest.warns(PrecisionWarning, match="sums without own terms are .* of the sum, which float32 holds to"):
        plan("kifmm", "spline_coulomb", x, epsilon=1e-9, tolerance=1e-4)(q)
    small = np.float32(1e-30) * q  # a particle's own term is in range, and 1/ε is not
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", PrecisionWarning)
        u = plan("direct", "regularised_coulomb", np.float32(1e-35) * x, epsilon=1e-39)(small)
    assert np.isfinite(u).all()


@pytest.mark.parametrize("kernel", [name for name in PHI if name != "coulomb"])
def test_values_at_zero(kernel):
    names = pairs.PAIRS[kernel].names
    parameters = dict(zip(names, (0.3, 0.7), strict=False))
    terms = own_terms.of(pairs.find(kernel, **parameters))
    expected = PHI[kernel][1](*parameters.values())
    assert (0.0 if terms is None else float(terms[0, 0, 0])) == pytest.approx(expected, rel=1e-14)


def test_vectors_and_kernels_without_own_terms():
    x, f = samples.uniform(N, 7), np.random.default_rng(7).standard_normal((3, N))
    for kernel, e, at_zero in (("regularised_stokeslet", 0.1, 2 / 0.1), ("regularised_dipole", 0.1, 2 / 0.1**3)):
        u = plan("dual", kernel, x, epsilon=e, tolerance=1e-6)(f)
        assert relative(u, parki.direct.direct_sum(kernel, x, x, f, epsilon=e) - at_zero * f) < 1e-6
    u = plan("kifmm", "coulomb", x, tolerance=1e-6)(f[0])
    np.testing.assert_array_equal(u, plan("kifmm", "coulomb", x, tolerance=1e-6, own_term=True)(f[0]))


@pytest.mark.parametrize("method", ["direct", "dual", "kifmm"])
def test_sums_over_ranks(method):
    x, q, e = twice(N, 9), np.random.default_rng(9).random(N), 0.04
    shares = cuts(N, 3, 1)

    def work(comm):
        y = part(x, shares[comm.rank])
        made = plan(method, "spline_coulomb", y, epsilon=e, tolerance=1e-6, comm=comm)
        u = made(part(q, shares[comm.rank]))
        assert made.error(30).value < 1e-6
        return u

    u = np.concatenate(World(3).run(work))
    assert relative(u, matrix("spline_coulomb", x, e) @ q) < 1e-6


def test_the_fastest_method():
    x, f = samples.uniform(3000, 7), np.random.default_rng(7).standard_normal((3, 3000))
    u = parki.sum(x, x, f, "rpy", radius=0.01, own_term=False, tolerance=1e-4)
    assert relative(u, parki.direct.direct_sum("rpy", x, x, f, radius=0.01) - 4 / 0.03 * f) < 1e-4
    with pytest.raises(NotImplementedError, match="own_term is False, and Ewald sums of rpy count own terms"):
        parki.sum(x, x, f, "rpy", radius=0.01, own_term=False, box=(1, 1, 1))


def test_wrong_input():
    x = samples.uniform(20, 1)
    with pytest.raises(ValueError, match="own_term is False and targets are not the sources; expected one array"):
        parki.fmm.plan("spline_coulomb", x, x.copy(), epsilon=0.1, own_term=False)
    with pytest.raises(ValueError, match="own_term is 'yes'; expected True or False"):
        plan("dual", "spline_coulomb", x, epsilon=0.1, own_term="yes")
    with pytest.raises(NotImplementedError, match="own_term was given with one radius for each sphere"):
        parki.direct.plan("rpy", x, x, radius=np.full(20, 0.1), own_term=False)
    with pytest.raises(NotImplementedError, match="a square root is of one process, and of all pairs"):
        plan("direct", "regularised_coulomb", x, epsilon=0.1).sqrt(np.ones(20))
    assert plan("direct", "spline_coulomb", np.zeros((3, 0)), epsilon=0.1)(np.zeros(0)).shape == (0,)
