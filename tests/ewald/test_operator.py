"""Sums as linear operators: against dense matrices, their transposes, corrections, solvers."""

import dataclasses
import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import parki
from parki.ewald import kernels
from tests.ewald import sums
from tests.quick import but, every

BOX = np.array([1.0, 1.2, 0.9])[:, None]
CELL = np.array([[1.0, 0.1, 0.0], [0.2, 1.1, 0.1], [0.0, 0.3, 0.9]])
TOLERANCE = 1e-3


def plan_of(name, rng, nt=5, ns=4, **options):
    """Return a plan whose targets are other points and two of the sources, and its normals or None."""
    src = BOX * rng.random((3, ns))
    trg = np.concatenate([BOX * rng.random((3, nt - 2)), src[:, :2]], axis=1)
    if options.get("layout") == "nd":
        trg, src = trg.T, src.T
    options = {"box": tuple(BOX.ravel()), "tolerance": TOLERANCE, "far_precision": "double"} | options
    normals = rng.standard_normal(src.shape) if kernels.KERNELS[name].normals else None
    return parki.ewald.plan(name, trg, src, **options, **sums.PARAMETERS.get(name, {})), normals


def dense(plan, normals):
    """Return the matrix, column by column, from calls of the plan."""
    k, rows = plan.kernel, plan.method.options.layout == "nd"
    n = plan.n_sources
    shape = (n,) if k.dens == 1 else (n, k.dens) if rows else (k.dens, n)
    columns = [plan(e.reshape(shape), normals).ravel() for e in np.eye(k.dens * n)]
    return np.stack(columns, axis=1)


def agree(found, exact, bound):
    np.testing.assert_allclose(found, exact, rtol=0, atol=bound * np.abs(exact).max())


@pytest.mark.parametrize(
    ("name", "periodicity"),
    [
        pytest.param(
            name, n, marks=[pytest.mark.slow] * (n in (1, 2) or (n == 0 and name not in ("yukawa", "laplace_grad")))
        )
        for n in range(4)
        for name in kernels.KERNELS
    ],
)
def test_operator_and_transpose_are_those_of_the_dense_matrix(name, periodicity, rng):
    if periodicity not in kernels.KERNELS[name].periodicities:
        pytest.skip("not for this kernel")
    plan, normals = plan_of(name, rng, periodicity=periodicity)
    A, matrix = plan.operator(normals), dense(plan, normals)
    assert A.shape == matrix.shape == (plan.kernel.result * 5, plan.kernel.dens * 4)
    x, w = rng.standard_normal(A.shape[1]), rng.standard_normal(A.shape[0])
    agree(A @ x, matrix @ x, 1e-13)
    blobs = ("regularised_stokeslet", "regularised_dipole")
    exact = name in ("laplace", "yukawa", "stokes_sl", *blobs, "rpy", "rpy_rotation")
    agree(A.rmatvec(w), matrix.T @ w, 1e-13 if exact else TOLERANCE)


@pytest.mark.parametrize("name", but("stokes_dl", "stokes_grad", of=["laplace", "stokes_dl", "stokes_grad"]))
def test_several_vectors_in_one_pass(name, rng):
    plan, normals = plan_of(name, rng)
    A, matrix = plan.operator(normals), dense(plan, normals)
    x, w = rng.standard_normal((A.shape[1], 2)), rng.standard_normal((A.shape[0], 2))
    agree(A @ x, matrix @ x, 1e-13)
    agree(A.H @ w, matrix.T @ w, TOLERANCE)


@pytest.mark.parametrize(
    ("place", "name"),
    every(
        5,
        itertools.product(
            [{"box": CELL}, {"periodicity": (False, True, True)}, {"layout": "nd"}],
            ["laplace_grad", "stokes_dl", "stokes_comb", "stokes_grad"],
        ),
    ),
)
def test_other_cells_axes_and_layouts(name, place, rng):
    plan, normals = plan_of(name, rng, **place)
    A, matrix = plan.operator(normals), dense(plan, normals)
    x, w = rng.standard_normal(A.shape[1]), rng.standard_normal(A.shape[0])
    agree(A @ x, matrix @ x, 1e-13)
    agree(A.rmatvec(w), matrix.T @ w, TOLERANCE)


def test_transpose_follows_points_that_move(rng):
    x, y, w = BOX * rng.random((3, 6)), BOX * rng.random((3, 6)), rng.standard_normal(18)
    plan = parki.ewald.plan("laplace_grad", x, x, box=tuple(BOX.ravel()), tolerance=TOLERANCE)
    A = plan.operator()
    before = A.rmatvec(w)
    plan.move(y)
    agree(A.rmatvec(w), dense(plan, None).T @ w, TOLERANCE)
    assert np.abs(A.rmatvec(w) - before).max() > 0.1


def test_correction_is_added_to_both(rng):
    plan, normals = plan_of("stokes_dl", rng)
    C = scipy.sparse.random_array((15, 12), density=0.2, rng=rng)
    A, B = plan.operator(normals), plan.operator(normals, C)
    x, w = rng.standard_normal(12), rng.standard_normal(15)
    agree(B @ x, A @ x + C @ x, 1e-14)
    agree(B.H @ w, A.H @ w + C.T @ w, 1e-14)
    with pytest.raises(ValueError, match=r"correction has shape \(12, 15\); expected \(15, 12\)"):
        plan.operator(normals, C.T)


def test_complex_vectors(rng):
    A = plan_of("laplace", rng)[0].operator()
    x = rng.standard_normal(4) + 1j * rng.standard_normal(4)
    agree(A @ x, A @ x.real + 1j * (A @ x.imag), 1e-14)
    assert A.dtype == np.float64


def test_single_precision(rng):
    src = (BOX * rng.random((3, 6))).astype(np.float32)
    A = parki.ewald.plan("laplace", src, src, box=tuple(BOX.ravel()), tolerance=1e-3).operator()
    found = A @ np.ones(6)
    assert (A.dtype, found.dtype) == (np.float32, np.float32)


def test_a_solver_finds_the_densities(rng):
    """Solve a second-kind equation, I + A/50, by LSQR, which needs the transpose, and by GMRES."""
    x = BOX * rng.random((3, 20))
    plan = parki.ewald.plan("stokes_sl", x, x, box=tuple(BOX.ravel()), tolerance=1e-9)
    A = plan.operator(correction=50 * scipy.sparse.eye_array(60))
    exact = rng.standard_normal(60)
    b = A @ exact
    agree(scipy.sparse.linalg.lsqr(A, b, atol=1e-10, btol=1e-10)[0], exact, 1e-7)
    found, failed = scipy.sparse.linalg.gmres(A, b, rtol=1e-9)
    assert not failed
    agree(found, exact, 1e-6)


def test_normals_are_checked_when_it_is_made(rng):
    plan, normals = plan_of("stokes_dl", rng)
    with pytest.raises(ValueError, match=r"normals is missing; stokes_dl expects \(3, 4\)"):
        plan.operator()
    with pytest.raises(ValueError, match="normals is given; laplace takes none"):
        plan_of("laplace", rng)[0].operator(normals)


def test_kernels_of_ones_own_have_no_transpose(rng):
    own = dataclasses.replace(kernels.LAPLACE, name="mine")
    x = BOX * rng.random((3, 4))
    A = parki.ewald.plan(own, x, x, box=tuple(BOX.ravel())).operator()
    assert (A @ np.ones(4)).shape == (4,)
    with pytest.raises(NotImplementedError, match="the transpose of mine is not known"):
        A.rmatvec(np.ones(4))


@pytest.mark.parametrize(
    ("tolerance", "given", "warned"), [(1e-4, 1e-6, False), (1e-6, 1e-6, False), (1e-8, 1e-6, True)]
)
def test_solvers_that_ask_for_more_are_warned(tolerance, given, warned, rng):
    x = rng.random((3, 10))
    plan = parki.ewald.plan("laplace", x, x, box=tuple(BOX.ravel()), tolerance=given)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        plan.operator(tolerance=tolerance)
    assert [w.category for w in said] == [parki.error.PrecisionWarning] * warned
    if warned:
        assert "tolerance is 1e-08, and products of this plan are off by about 1e-06" in str(said[0].message)
        assert said[0].filename == __file__


def test_tolerances_of_solvers_are_checked(rng):
    x = rng.random((3, 10))
    plan = parki.direct.plan("coulomb", x, x)
    plan.operator(tolerance=1e-12)
    for wrong in (0, 2.0, "1e-3", True):
        with pytest.raises(ValueError, match=r"tolerance is .*; expected a number between 0 and 1"):
            plan.operator(tolerance=wrong)
