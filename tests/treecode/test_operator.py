"""Sums as linear operators: against calls, their transposes, corrections, solvers."""

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import parki
from parki import samples
from parki.direct import direct_sum
from parki.pairs import find

COARSE = {"degree": 1, "theta": 0.9, "leaf_size": 20}
NT, NS = 350, 400
BOUND = 0.05  # of the error of so few proxy points
SELF_ADJOINT = {"coulomb": {}, "gaussian": {"width": 2.0}, "stokeslet": {}, "rotlet": {}}


def plan_of(kernel="coulomb", layout="dn", **options):
    x, y = samples.uniform(NT, 2), samples.uniform(NS, 1)
    if layout == "nd":
        x, y = x.T, y.T
    return parki.treecode.plan(kernel, x, y, layout=layout, **(COARSE | options))


def dense(kernel, **parameters):
    """The matrix of the direct sum, (results, targets) against (components, sources)."""
    pair, x, y = find(kernel, **parameters), samples.uniform(NT, 2), samples.uniform(NS, 1)
    columns = []
    for e in np.eye(pair.dens):
        for j in range(NS):
            one = e if pair.dens > 1 else 1.0
            given = np.ascontiguousarray(np.reshape(one, (-1, 1))) if pair.dens > 1 else np.ones(1)
            columns.append(direct_sum(pair, x, y[:, j : j + 1].copy(), given).reshape(pair.result, NT))
    return np.stack(columns, axis=-1).reshape(pair.result, NT, pair.dens, NS)


def flat(matrix, layout):
    """As a matrix of flattened arrays."""
    if layout == "nd":
        matrix = matrix.transpose(1, 0, 3, 2)
    return matrix.reshape(matrix.shape[0] * matrix.shape[1], -1)


def size(v):
    return float(np.linalg.norm(v))


@pytest.mark.parametrize("layout", ["dn", "nd"])
@pytest.mark.parametrize("kernel", [*list(SELF_ADJOINT)[:3], pytest.param("rotlet", marks=pytest.mark.slow)])
def test_operator_and_transpose(kernel, layout, rng, sums):
    parameters = SELF_ADJOINT[kernel]
    plan = plan_of(kernel, layout, theta=0.6, leaf_size=10, **parameters)
    A, matrix = plan.operator(), flat(dense(kernel, **parameters), layout)
    assert sums.far(plan) > 0
    assert A.shape == matrix.shape
    assert A.dtype == np.float64
    x, w = rng.standard_normal(A.shape[1]), rng.standard_normal(A.shape[0])
    one = x if plan.pair.dens == 1 else x.reshape((-1, 3) if layout == "nd" else (3, -1))
    np.testing.assert_array_equal(A @ x, plan(one).ravel())
    assert sums.relative(A @ x, matrix @ x) < BOUND
    assert sums.relative(A.rmatvec(w), matrix.T @ w) < BOUND
    # The dot-product test: both are approximations of one number.
    apart = abs(w @ (A @ x) - A.rmatvec(w) @ x)
    assert apart < BOUND * (size(matrix @ x) * size(w) + size(matrix.T @ w) * size(x))


@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
def test_transposes_of_every_method(method, rng, sums):
    plan = plan_of(method=method)
    A, w = plan.operator(), rng.standard_normal(NT)
    x, y = samples.uniform(NT, 2), samples.uniform(NS, 1)
    assert sums.relative(A.rmatvec(w), direct_sum("coulomb", y, x, w)) < 0.05
    assert sums.relative(A.T @ w, A.rmatvec(w)) == 0
    assert plan.turned() is plan.turned()
    assert plan.turned().parameters.method == {"dual": "dual", "pc": "cp", "cp": "pc"}[method]


def test_several_and_complex_vectors(rng):
    A = plan_of("stokeslet").operator()
    x, w = rng.standard_normal((3 * NS, 2)), rng.standard_normal((3 * NT, 2))
    both, turned = A @ x, A.H @ w
    for k in range(2):
        np.testing.assert_array_equal(both[:, k], A @ x[:, k])
        np.testing.assert_array_equal(turned[:, k], A.H @ w[:, k])
    z = x[:, 0] + 1j * x[:, 1]
    np.testing.assert_array_equal(A @ z, both[:, 0] + 1j * both[:, 1])


def test_single_precision():
    x = samples.uniform(NS, 1).astype(np.float32)
    A = parki.treecode.plan("coulomb", x, x, **COARSE).operator()
    found = A @ np.ones(NS)
    assert (A.dtype, found.dtype) == (np.float32, np.float32)


def test_correction_is_added_to_both(rng):
    plan = plan_of()
    C = scipy.sparse.random_array((NT, NS), density=0.05, rng=rng)
    A, B = plan.operator(), plan.operator(C)
    x, w = rng.standard_normal(NS), rng.standard_normal((NT, 2))
    np.testing.assert_allclose(B @ x, A @ x + C @ x, rtol=1e-14)
    np.testing.assert_allclose(B.H @ w, A.H @ w + C.T @ w, rtol=1e-14)
    with pytest.raises(ValueError, match=r"correction has shape \(400, 350\); expected \(350, 400\)"):
        plan.operator(C.T)


def test_a_solver_finds_the_charges(rng):
    x, exact = samples.uniform(NS, 1), rng.standard_normal(NS)
    plan = parki.treecode.plan("gaussian", x, x, width=0.8, **COARSE)
    A = plan.operator(60 * scipy.sparse.eye_array(NS))
    found, failed = scipy.sparse.linalg.gmres(A, A @ exact, rtol=1e-10)
    assert not failed
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-8)


def test_sums_that_are_no_operator_or_have_no_transpose(tmp_path):
    with pytest.raises(ValueError, match="this plan has normals; expected a kernel that is linear in one array"):
        plan_of("stresslet").operator()
    with pytest.raises(ValueError, match="this plan has gradient=True"):
        plan_of(gradient=True).operator()
    for A, shape in (
        (plan_of(gradient="only").operator(), (3 * NT, NS)),
        (plan_of("laplace_dipole").operator(), (NT, 3 * NS)),
    ):
        assert A.shape == shape
        with pytest.raises(NotImplementedError, match=r"the transpose of laplace_\w+ is not known"):
            A.rmatvec(np.ones(shape[0]))
