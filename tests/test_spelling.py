"""Unknown names: advice by spelling, and the kernel's name as the caller wrote it."""

import numpy as np
import pytest
import scipy.sparse.linalg

import parki
from parki import spelling

X, Q = np.random.default_rng(1).random((3, 10)), np.ones(10)
BOX = {"box": (1, 1, 1)}


def test_advice():
    assert spelling.meant("tolerence", ("theta", "tolerance")) == "tolerance"
    assert spelling.meant("space", ("spaces", "execution_space", "p2p")) == "spaces"
    assert spelling.meant("space", ("theta", "execution_space", "p2p")) == "execution_space"
    assert spelling.meant("mu", ("theta", "tolerance")) is None
    assert spelling.advice("tolerence", ("theta", "tolerance")) == "Did you mean 'tolerance'?"
    assert spelling.advice("mu", ()) == ""


CALLS = [
    (lambda: parki.treecode.bldtt(X, X, Q, "coulomb", tolerence=1e-4), "tolerence .* coulomb .* mean 'tolerance'"),
    (lambda: parki.treecode.bltc(X, X, Q, "coulomb", return_eror=True), "return_eror .* mean 'return_error'"),
    (lambda: parki.treecode.plan("stokeslet", X, X, thread=1), "thread .* stokeslet .* mean 'threads'"),
    (lambda: parki.fmm.kifmm(X, X, Q, "yukawa", kapa=1.0), "kapa was given, but yukawa .* mean 'kappa'"),
    (lambda: parki.fmm.chebyshev(X, X, Q, "gaussian", widht=1.0), "widht .* gaussian takes width.* mean 'width'"),
    (lambda: parki.fmm.plan("coulomb", X, X, leafsize=9), "leafsize .* coulomb .* mean 'leaf_size'"),
    (lambda: parki.fmm.plan("coulomb", X, X, space="OpenMP"), "space .* coulomb .* mean 'execution_space'"),
    (lambda: parki.direct.direct_sum("coulomb", X, X, Q, treads=1), "treads .* coulomb .* mean 'threads'"),
    (lambda: parki.pairs.find("stresslet", kappa=1.0), "kappa was given, but stresslet takes no parameters.$"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message for _, message in CALLS])
def test_unknown_keywords_without_a_box(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_unknown_keywords_of_ewald_sums():
    with pytest.raises(TypeError, match=r"unknown option 'kapa'\. Did you mean 'kappa'"):
        parki.ewald.plan("yukawa", X, X, kapa=1.0, **BOX)
    with pytest.raises(TypeError, match=r"unknown option 'wall'\. Options are box, periodicity"):
        parki.ewald.laplace(X, X, Q, wall=True, **BOX)


def test_an_alias_is_the_same_pair():
    known = parki.pairs.PAIRS
    assert str(known["coulomb"]) == "coulomb"
    assert known["coulomb"] == known["laplace"]
    assert hash(known["coulomb"]) == hash(known["laplace"])


@pytest.mark.parametrize("method", ["ewald", "treecode", "fmm"])
def test_kernels_and_corrections_of_other_types(method):
    module, more = getattr(parki, method), BOX if method == "ewald" else {}
    with pytest.raises(TypeError, match="kernel is a NoneType; expected a name"):
        module.plan(None, X, X, **more)
    plan = module.plan("laplace", X, X, tolerance=1e-3, **more)
    for wrong in ("x", 3.0, [[1.0]], np.full((10, 10), "x")):
        with pytest.raises(TypeError, match=f"correction is a {type(wrong).__name__}; expected a sparse matrix"):
            plan.operator(correction=wrong)


def test_the_kernel_of_an_ewald_sum_is_not_any_pair():
    with pytest.raises(TypeError, match=r"kernel is a Pair; expected a name or a parki\.ewald\.Kernel"):
        parki.ewald.plan(parki.pairs.PAIRS["laplace"], X, X, **BOX)
    with pytest.raises(TypeError, match="kernel is a NoneType; expected a name"):
        parki.direct.direct_sum(None, X, X, Q)


def test_a_correction_may_be_a_linear_operator():
    plan, matrix = parki.treecode.plan("coulomb", X, X), np.random.default_rng(2).random((10, 10))
    found = plan.operator(correction=scipy.sparse.linalg.aslinearoperator(matrix))
    np.testing.assert_allclose(found.rmatvec(Q), plan.operator().rmatvec(Q) + matrix.T @ Q)
