"""Bad input of `parki.ewald`: calls, plans and methods of plans."""

import functools
from pathlib import Path

import numpy as np
import pytest

from parki import ewald
from tests.bad_input.refused import BOX, INF, NAN, Q4, X4, N, Q, V, X, refused, rows


def laplace(**changed):
    """Return a call of `laplace` with some arguments in place of good ones."""
    return lambda: ewald.laplace(**({"trg": X, "src": X, "dens": Q} | BOX | changed))


@rows(
    (laplace(trg=None), "trg has dtype object"),
    (laplace(src=None), "src has dtype object"),
    (laplace(dens=None), "dens has dtype object"),
    (laplace(trg="x"), "trg has dtype <U1"),
    (laplace(trg=[[1, 2], [3]]), "trg cannot be read as an array"),
    (laplace(dens="q"), "dens has dtype <U1"),
    (laplace(dens=Q * 1j), "dens has dtype complex128"),
    (laplace(dens=Q > 0.5), "dens has dtype bool"),
    (laplace(dens=Q.astype("f2")), r"dens has dtype float16.*dens\.astype"),
    (laplace(dens=np.array(3.0)), r"dens has shape \(\)"),
    (laplace(dens=np.full(N, 2**60 + 1)), "dens has the integer 1152921504606846977"),
    (laplace(trg=X4, src=X4, dens=np.full(N, 2**24 + 1)), "dens has the integer 16777217, which float32"),
    (laplace(trg=X.T), "trg has shape"),
    (laplace(src=X * NAN), "src has 27 of 27 values"),
    (laplace(src=X4), "trg float64, src float32"),
    (laplace(dens=Q4), "trg and src float64, dens float32"),
    (laplace(trg=X + 10, periodicity=0), "9 of 9 points of trg lie outside the box"),
    (laplace(src=X - 10, periodicity=(True, False, True)), "9 of 9 points of (trg|src) lie outside the box"),
    (laplace(box="111"), "box is a str"),
    (laplace(box={}), "box is a dict"),
    (laplace(box=None), "box is missing"),
    (laplace(box=[1, 1, NAN]), "box is"),
    (laplace(box=[True, True, True]), "box is"),
    (laplace(box=[1j, 1, 1]), "box is"),
    (laplace(box=np.zeros((3, 3))), "box is"),
    (laplace(box=np.tri(3), periodicity=2), "at right angles to all others"),
    (laplace(box=np.diag([1, -1, 1]), periodicity=1), "points outside the box"),
    (laplace(tolerance=None), "tolerance is None"),
    (laplace(tolerance=NAN), "tolerance is nan"),
    (laplace(tolerance=[1e-3]), "tolerance is"),
    (laplace(tolerance=1), "tolerance is 1"),
    (laplace(tolerance=True), "tolerance is True"),
    (laplace(periodicity=None), "periodicity is None"),
    (laplace(periodicity=NAN), "periodicity is nan"),
    (laplace(periodicity=[True] * 4), "periodicity is"),
    (laplace(rc="1"), "rc is '1'"),
    (laplace(rc=NAN), "rc is nan"),
    (laplace(rc=-0.1), "rc is -0.1"),
    (laplace(rc=0.3, cell_size=3), "rc is 0.3 and cell_size is 3"),
    (laplace(cell_size=INF), "cell_size is inf"),
    (laplace(cell_size=1e-9), "cell_size"),
    (laplace(cell_size=1e-300), "cell_size"),
    (laplace(execution_space=3), "execution_space is 3"),
    (laplace(execution_space=""), "execution space ''"),
    (laplace(threads=0), "threads is 0"),
    (laplace(threads=1.5), "threads is 1.5"),
    (laplace(threads="2"), "threads is '2'"),
    (laplace(threads=True), "threads is True"),
    (laplace(layout=None), "layout is None"),
    (laplace(layout="DN2"), "layout is 'DN2'"),
    (laplace(split=None), "split is None"),
    (laplace(fft=3), "fft is 3"),
    (laplace(fft="cupy"), "fft is 'cupy'"),
    (laplace(engine=3), "engine is 3"),
    (laplace(verbose="yes"), "verbose is 'yes'"),
    (laplace(graph=True), "graph is True"),
    (laplace(tune=None), "tune is None"),
    (laplace(p2p_method=3), "p2p_method is 3"),
    (laplace(p2g_threads=0), "p2g_threads is 0"),
    (laplace(g2p_threads=2.5), "g2p_threads is 2.5"),
    (laplace(far_precision=8), "far_precision is 8"),
    (laplace(trg=X4, src=X4, dens=Q4, far_precision="double"), "far_precision is 'double'"),
    (laplace(options="tune"), "options is a str"),
    (laplace(options=ewald.EwaldOptions), "options is a type"),
    (laplace(tolerence=1e-3), "'tolerence'.*'tolerance'"),
    (laplace(kappa=1.0), "'kappa'"),
    (lambda: ewald.laplace(X, X), "'dens'"),
    (lambda: ewald.laplace(X, X, Q, V, **BOX), "options is a ndarray"),
    (lambda: ewald.stokes_dl(X, X, V, **BOX), "'normals'"),
    (lambda: ewald.stokes_dl(X, X, V, Q, **BOX), "normals has shape"),
    (lambda: ewald.stokes_dl(X, X, V, V * NAN, **BOX), "normals has 27 of 27"),
    (lambda: ewald.stokes_comb(X, X, V, V, **BOX), "dens has shape"),
    (lambda: ewald.stokes_sl(X, X, Q, **BOX), "dens has shape"),
    (lambda: ewald.yukawa(X, X, Q, **BOX), "'kappa'"),
    (lambda: ewald.yukawa(X, X, Q, None, **BOX), "kappa is missing"),
    (lambda: ewald.yukawa(X, X, Q, "1", **BOX), "kappa is '1'"),
    (lambda: ewald.yukawa(X, X, Q, True, **BOX), "kappa is True"),
    (lambda: ewald.yukawa(X, X, Q, 0, **BOX), "kappa is 0"),
    (lambda: ewald.yukawa(X, X, Q, INF, **BOX), "kappa is inf"),
    (lambda: ewald.yukawa(X, X, Q, [1.0], **BOX), "kappa is"),
    (lambda: ewald.plan(None, X, X, **BOX), "kernel is a NoneType"),
    (lambda: ewald.plan("", X, X, **BOX), "kernel is ''"),
    (lambda: ewald.plan(3, X, X, **BOX), "kernel is a int"),
    (lambda: ewald.plan(Path("x.py"), X, X, **BOX), "kernel is a"),
    (lambda: ewald.plan(["laplace"], X, X, **BOX), "kernel is a list"),
    (lambda: ewald.plan("laplace", X, **BOX), "'sources'"),
    (lambda: ewald.plan("laplace", X, X, kappa="a", **BOX), "kappa was given"),
    (lambda: ewald.plan("yukawa", X, X, kapa=1.0, **BOX), "'kapa'.*'kappa'"),
    (lambda: ewald.EwaldOptions((1, 1)), "box is"),
    (lambda: ewald.EwaldOptions(box=(1, 1, 1), tolerence=1), "'tolerence'"),
)
def test_calls(call, message):
    refused(call, message)


def locked():
    """Return an array that cannot be written to."""
    u = np.empty(9)
    u.flags.writeable = False
    return u


@functools.cache
def plan(kernel="laplace"):
    """Return a plan that has been called."""
    made = ewald.plan(kernel, X, X, **BOX)
    made(*((V, V) if made.kernel.normals else (Q,)))
    return made


@rows(
    (lambda: plan()(), "'density'"),
    (lambda: plan()(None), "density has dtype object"),
    (lambda: plan()(Q[:-1]), "density has shape"),
    (lambda: plan()(Q, V), "normals was given"),
    (lambda: plan()(Q * INF), "density has 9 of 9"),
    (lambda: plan()(Q4), "density float32"),
    (lambda: plan()(Q, output=Q), "'output'"),
    (lambda: plan()(Q, out="u"), "out is a str"),
    (lambda: plan()(Q, out=np.empty(8)), "out is a"),
    (lambda: plan()(Q, out=np.empty(9, "f4")), "out is a"),
    (lambda: plan()(Q, out=Q), "out shares memory"),
    (lambda: plan()(Q, out=locked()), "out is read-only"),
    (lambda: plan("stokes_dl")(V), "normals is missing"),
    (lambda: plan("stokes_dl")(V, V[:, :3]), "normals has shape"),
    (lambda: plan("stokes_dl")(V, "n"), "normals has dtype"),
    (lambda: plan().move("x"), "sources has dtype <U1"),
    (lambda: plan().move(), "found no points"),
    (lambda: plan().move(X[:2]), "sources has shape"),
    (lambda: plan().move(X4), "sources has dtype float32"),
    (lambda: plan().move(X * NAN), "sources has 27 of 27"),
    (lambda: plan().move(targets=X.copy()), "targets was given"),
    (lambda: plan().operator(normals=V), "normals is given"),
    (lambda: plan("stokes_dl").operator(), "normals is missing"),
    (lambda: plan("stokes_dl").operator(V[:, :3]), "normals has shape"),
    (lambda: plan("stokes_dl").operator("n"), "normals has dtype"),
    (lambda: plan("stokes_dl").operator(V * NAN), "normals has 27 of 27"),
    (lambda: plan("stokes_dl").operator(V.astype("f4")), "normals float32"),
    (lambda: plan().operator(correction="x"), "correction is a str"),
    (lambda: plan().operator(correction=np.eye(3)), "correction has shape"),
    (lambda: plan().operator() @ np.ones(3), "dimension mismatch"),
    (lambda: plan().error(n=0), "n is 0"),
    (lambda: plan().error(n=2.5), "n is 2.5"),
    (lambda: plan().error(n="all"), "n is 'all'"),
    (lambda: plan().error(seed=-1), "seed is -1"),
    (lambda: plan().error(seed=1.5), "seed is 1.5"),
    (lambda: plan().error(seed="x"), "seed is 'x'"),
    (lambda: plan().error(density=Q[:3]), "density has shape"),
    (lambda: plan().error(density=Q * 0), "the sum is zero"),
    (lambda: plan().error(density=Q, u=Q[:3]), "u has shape"),
    (lambda: plan().error(density=Q, u="u"), "u has dtype"),
    (lambda: plan().error(density=Q, normals=V), "normals was given"),
)
def test_plans(call, message):
    refused(call, message)


FREE = {"periodicity": 0, "tolerance": 1e-6}


@pytest.mark.parametrize(
    ("trg", "src", "dens"),
    [
        (X[:, :0], X, Q),
        (X, X[:, :0], Q[:0]),
        (X, X, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (X.tolist(), X.tolist(), Q.tolist()),
        (X, X, np.arange(9, dtype=np.uint8)),
        (np.asfortranarray(X), X[:, ::-1], Q[::-1]),
        (X, X, X),
    ],
    ids=["no targets", "no sources", "integers", "lists", "bytes", "other orders", "three right-hand sides"],
)
def test_what_looks_odd_is_right(trg, src, dens):
    found = ewald.laplace(trg, src, dens, **FREE)
    apart = np.linalg.norm(np.array(trg, float)[:, :, None] - np.array(src, float)[:, None], axis=0)
    exact = np.array(dens, float) @ np.where(apart > 0, 1 / np.where(apart > 0, apart, 1), 0).T
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-6 * max(np.abs(exact).max(initial=0), 1))
