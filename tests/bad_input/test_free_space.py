"""Bad input of sums without a box: direct sums, treecodes, fast multipole methods, and their plans."""

import functools
from pathlib import Path

import numpy as np
import pytest

from parki import direct, fmm, treecode
from tests.bad_input.refused import INF, NAN, Q4, X4, N, Q, V, X, refused, rows

CALLS = {
    "direct": lambda x, y, q, kernel="coulomb", **more: direct.direct_sum(kernel, x, y, q, **more),
    "bldtt": treecode.bldtt,
    "kifmm": fmm.kifmm,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": None}, "targets has dtype object"),
        ({"y": [1, 2]}, "sources has (dtype|shape)"),
        ({"x": "x"}, "targets has dtype"),
        ({"x": X.T}, "targets has shape"),
        ({"y": X * INF}, "sources has 27 of 27"),
        ({"x": X.astype(int)}, "targets has dtype int64"),
        ({"x": X4}, "targets float32, sources float64"),
        ({"q": None}, "(density|dens) has dtype object"),
        ({"q": Q[:3]}, "(density|dens) has shape"),
        ({"q": Q * NAN}, "(density|dens) has 9 of 9"),
        ({"q": Q > 0.5}, "(density|dens) has dtype bool"),
        ({"q": Q4}, "sources float64, (density|dens) float32"),
        ({"q": np.full(N, 2**53 + 1)}, "(density|dens) has the integer 9007199254740993"),
        ({"kernel": None}, "kernel is a NoneType"),
        ({"kernel": 3}, "kernel is a int"),
        ({"kernel": ""}, "kernel is ''"),
        ({"kernel": b"coulomb"}, "kernel is a bytes"),
        ({"kernel": "lapalce"}, "kernel is 'lapalce'"),
        ({"kernel": "nofile.py"}, "no kernel file 'nofile.py'"),
        ({"kernel": Path("nofile")}, "no kernel file 'nofile'"),
        ({"kernel": "yukawa"}, "kappa is missing"),
        ({"kernel": "yukawa", "kappa": "1"}, "kappa is '1'"),
        ({"kernel": "yukawa", "kappa": 0}, "kappa is 0"),
        ({"kernel": "yukawa", "kappa": -INF}, "kappa is -inf"),
        ({"kernel": "yukawa", "kappa": 1j}, "kappa is 1j"),
        ({"kernel": "yukawa", "kapa": 1}, "kapa was given, but yukawa .*'kappa'"),
        ({"kernel": "stresslet", "q": V}, "normals is missing"),
        ({"kernel": "stresslet", "q": V, "normals": V[:2]}, "normals has shape"),
        ({"normals": V}, "normals was given"),
        ({"threads": 0}, "threads"),
        ({"threads": 1.5}, "threads"),
        ({"threads": "2"}, "threads"),
        ({"execution_space": "Cuda2"}, "execution space 'Cuda2'"),
        ({"execution_space": 3}, "execution space"),
        ({"box": (1, 1, 1)}, "box was given"),
        ({"treads": 3}, "treads was given, but coulomb .*'threads'"),
    ],
    ids=str,
)
def test_calls(call, changed, message):
    given = {"x": X, "y": X, "q": Q} | changed
    refused(lambda: CALLS[call](given.pop("x"), given.pop("y"), given.pop("q"), **given), message)


@pytest.mark.parametrize("call", [treecode.bldtt, fmm.chebyshev], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tolerance": "a"}, "tolerance is 'a'"),
        ({"tolerance": 0}, "tolerance is 0"),
        ({"tolerance": NAN}, "tolerance is nan"),
        ({"leaf_size": 0}, "leaf_size is 0"),
        ({"leaf_size": 1e3}, "leaf_size is 1000.0"),
        ({"leaf_size": "a"}, "leaf_size is 'a'"),
        ({"gradient": "both"}, "gradient is 'both'"),
        ({"gradient": 1}, "gradient is 1"),
        ({"layout": "ND"}, "layout is 'ND'"),
        ({"verbose": "a"}, "verbose is 'a'"),
        ({"return_error": "no"}, "return_error is 'no'"),
        ({"return_walltime": 2}, "return_walltime is 2"),
        ({"method": "x"}, "'method'"),
        ({"tolerence": 1e-3}, "tolerence was given, but coulomb .*'tolerance'"),
    ],
    ids=str,
)
def test_options(call, changed, message):
    refused(lambda: call(X, X, Q, **changed), message)


@rows(
    (lambda: treecode.bldtt(X, X, Q, theta="a"), "theta is 'a'"),
    (lambda: treecode.bldtt(X, X, Q, theta=[0.5]), "theta is"),
    (lambda: treecode.bldtt(X, X, Q, degree=100), "degree is 100"),
    (lambda: treecode.bldtt(X, X, Q, batch_size=-1), "batch_size is -1"),
    (lambda: treecode.bldtt(X, X, Q, far_precision=1), "far_precision is 1"),
    (lambda: treecode.bldtt(X, X, Q, order=3), "order was given"),
    (lambda: treecode.bldtt(X, X), "'density'"),
    (lambda: treecode.bltc(X, X, Q, variant=None), "variant is None"),
    (lambda: treecode.plan("coulomb", X, X, method=None), "method is None"),
    (lambda: treecode.plan(None, X, X), "kernel is a NoneType"),
    (lambda: fmm.kifmm(X, X, Q, order=2), "order is 2"),
    (lambda: fmm.kifmm(X, X, Q, order="a"), "order is 'a'"),
    (lambda: fmm.kifmm(X, X, Q, order=5, tolerance=1e-3), "tolerance was given with order"),
    (lambda: fmm.kifmm(X, X, Q, "thin_plate"), "kernel is thin_plate"),
    (lambda: fmm.kifmm(X, X, Q, theta=0.5), r"theta was given, but coulomb takes no parameters\.$"),
    (lambda: fmm.plan("coulomb", X, X, return_walltime=True), "return_walltime was given; other calls take it"),
    (lambda: treecode.plan("stresslet", X, X, normals=X), "normals was given; other calls take it"),
    (lambda: fmm.kifmm(X, X, Q, far_precision="half"), "far_precision is 'half'"),
    (lambda: fmm.plan("coulomb", X, X, method=3), "method is 3"),
    (lambda: fmm.plan(None, X, X), "kernel is a NoneType"),
    (lambda: fmm.plan("rotlet", X, X, gradient=True), "rotlet has no gradient"),
)
def test_options_of_one_method(call, message):
    refused(call, message)


@functools.cache
def plan(method):
    """Return a plan that has not been called."""
    return {"treecode": treecode, "fmm": fmm}[method].plan("coulomb", X, X, tolerance=1e-3)


@pytest.mark.parametrize("method", ["treecode", "fmm"])
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p(None), "density has dtype object"),
        (lambda p: p(Q[:2]), "density has shape"),
        (lambda p: p(Q, V), "normals was given"),
        (lambda p: p(Q4), "targets and sources float64, density float32"),
        (lambda p: p(Q, out="x"), "out is a str"),
        (lambda p: p(Q, out=np.empty((9, 1))), "out is a"),
        (lambda p: p(Q, out=Q), "out shares memory"),
        (lambda p: p.move(), "found no points"),
        (lambda p: p.move("x"), "sources has dtype <U1"),
        (lambda p: p.move(X4), "sources has dtype float32"),
        (lambda p: p.move(targets=X.T, sources=X), "targets has shape"),
        (lambda p: p.operator(correction="x"), "correction is a str"),
        (lambda p: p.operator(correction=np.eye(2)), "correction has shape"),
        (lambda p: p.error(n=0, density=Q), "n is 0"),
        (lambda p: p.error(n="a", density=Q), "n is 'a'"),
        (lambda p: p.error(density=Q, seed=-1), "seed is -1"),
        (lambda p: p.error(density=Q, seed="x"), "seed is 'x'"),
        (lambda p: p.error(density=Q * 0), "the sum is zero"),
        (lambda p: p.error(density=Q[:2]), "density has shape"),
        (lambda p: p.transposed()(Q[:3]), "density has shape"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_plans(method, call, message):
    refused(lambda: call(plan(method)), message)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "dens", [Q.tolist(), np.arange(9), np.arange(9, dtype=">i2")], ids=["list", "int", "other order"]
)
def test_what_looks_odd_is_right(call, dens):
    apart = np.linalg.norm(X[:, :, None] - X[:, None], axis=0)
    exact = np.array(dens, float) @ np.where(apart > 0, 1 / np.where(apart > 0, apart, 1), 0)
    digits = {} if call == "direct" else {"tolerance": 1e-10}
    np.testing.assert_allclose(CALLS[call](X, X.tolist(), dens, **digits), exact, rtol=1e-10)
