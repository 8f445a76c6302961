"""Sums as linear operators, by every method: against calls, their transposes, corrections, solvers."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import parki
from parki import samples
from parki.direct import direct_sum
from parki.pairs import find

METHODS = {
    "bldtt": (parki.treecode, "dual", {"degree": 1, "theta": 0.6, "leaf_size": 10}),
    "bltc": (parki.treecode, "pc", {"degree": 1, "theta": 0.6, "leaf_size": 10}),
    "kifmm": (parki.fmm, "kifmm", {"order": 3, "leaf_size": 20}),
    "chebyshev": (parki.fmm, "chebyshev", {"order": 3, "leaf_size": 20}),
}
NT, NS = 350, 400
BOUND = 0.05  # largest error with such small clusters
SELF_ADJOINT = ("coulomb", "stokeslet", "rotlet")

pytestmark = pytest.mark.parametrize("method", METHODS)


def plan_of(method, kernel="coulomb", layout="dn", same=False, **options):
    x, y = samples.uniform(NT, 2), samples.uniform(NS, 1)
    x, y = (x.T, y.T) if layout == "nd" else (x, y)
    module, name, coarse = METHODS[method]
    return module.plan(kernel, y if same else x, y, layout=layout, method=name, **(coarse | options))


def dense(kernel):
    """Return the matrix of the direct sum, (results, targets) against (components, sources)."""
    pair, x, y = find(kernel), samples.uniform(NT, 2), samples.uniform(NS, 1)
    columns = []
    for e in np.eye(pair.dens):
        for j in range(NS):
            given = e[:, None].copy() if pair.dens > 1 else np.ones(1)
            columns.append(direct_sum(pair, x, y[:, j : j + 1].copy(), given).reshape(pair.result, NT))
    return np.stack(columns, axis=-1).reshape(pair.result, NT, pair.dens, NS)


@pytest.fixture(scope="module")
def matrices():
    return {kernel: dense(kernel) for kernel in SELF_ADJOINT}


def flat(matrix, layout):
    """Return the matrix for flattened arrays."""
    if layout == "nd":
        matrix = matrix.transpose(1, 0, 3, 2)
    return matrix.reshape(matrix.shape[0] * matrix.shape[1], -1)


def size(v):
    return float(np.linalg.norm(v))


def relative(found, exact):
    return size(found - exact) / size(exact)


@pytest.mark.parametrize("layout", ["dn", "nd"])
@pytest.mark.parametrize("kernel", [*SELF_ADJOINT[:2], pytest.param("rotlet", marks=pytest.mark.slow)])
def test_operator_and_transpose(kernel, layout, method, rng, matrices):
    plan = plan_of(method, kernel, layout)
    A, matrix = plan.operator(), flat(matrices[kernel], layout)
    assert A.shape == matrix.shape
    assert A.dtype == np.float64
    x, w = rng.standard_normal(A.shape[1]), rng.standard_normal(A.shape[0])
    one = x if plan.kernel.dens == 1 else x.reshape((-1, 3) if layout == "nd" else (3, -1))
    np.testing.assert_array_equal(A @ x, plan(one).ravel())
    assert 1e-12 < relative(A @ x, matrix @ x) < BOUND
    assert 1e-12 < relative(A.rmatvec(w), matrix.T @ w) < BOUND
    # Dot-product test: both sides approximate the same number.
    apart = abs(w @ (A @ x) - A.rmatvec(w) @ x)
    assert apart < BOUND * (size(matrix @ x) * size(w) + size(matrix.T @ w) * size(x))
    assert plan.transposed() is plan.transposed()
    np.testing.assert_array_equal(A.T @ w, A.rmatvec(w))


def test_several_and_complex_vectors(method, rng):
    A = plan_of(method, "stokeslet").operator()
    x, w = rng.standard_normal((3 * NS, 2)), rng.standard_normal((3 * NT, 2))
    both, turned = A @ x, A.H @ w
    for k in range(2):
        np.testing.assert_array_equal(both[:, k], A @ x[:, k])
        np.testing.assert_array_equal(turned[:, k], A.H @ w[:, k])
    z = x[:, 0] + 1j * x[:, 1]
    np.testing.assert_array_equal(A @ z, both[:, 0] + 1j * both[:, 1])


def test_single_precision(method):
    x = samples.uniform(NS, 1).astype(np.float32)
    module, name, coarse = METHODS[method]
    A = module.plan("coulomb", x, x, method=name, **coarse).operator()
    found = A @ np.ones(NS)
    assert (A.dtype, found.dtype) == (np.float32, np.float32)


def test_correction_is_added_to_both(method, rng):
    plan = plan_of(method)
    C = scipy.sparse.random_array((NT, NS), density=0.05, rng=rng)
    A, B = plan.operator(), plan.operator(correction=C)
    x, w = rng.standard_normal(NS), rng.standard_normal((NT, 2))
    np.testing.assert_allclose(B @ x, A @ x + C @ x, rtol=1e-14)
    np.testing.assert_allclose(B.H @ w, A.H @ w + C.T @ w, rtol=1e-14)
    with pytest.raises(ValueError, match=r"correction has shape \(400, 350\); expected \(350, 400\)"):
        plan.operator(correction=C.T)


def test_a_solver_finds_the_charges(method, rng):
    plan, exact = plan_of(method, same=True), rng.standard_normal(NS)
    A = plan.operator(correction=2000 * scipy.sparse.eye_array(NS))
    found, failed = scipy.sparse.linalg.gmres(A, A @ exact, rtol=1e-10)
    assert not failed
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-8)


def test_sums_that_are_no_operator_or_have_no_transpose(method):
    with pytest.raises(ValueError, match=r"normals is missing; stresslet expects \(3, 400\)"):
        plan_of(method, "stresslet").operator()
    with pytest.raises(ValueError, match="this plan has gradient=True"):
        plan_of(method, gradient=True).operator()
    A = plan_of(method, "yukawa", gradient="only", kappa=1.0).operator()
    assert A.shape == (3 * NT, NS)
    with pytest.raises(NotImplementedError, match="the transpose of yukawa_grad is not known"):
        A.rmatvec(np.ones(3 * NT))
