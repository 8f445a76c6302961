"""Published names of arguments and attributes that were renamed in plans: they work, and warn for one release."""

import warnings

import numpy as np
import pytest

import parki
from tests.test_plan import BOX, EWALD, MAKERS, NS, NT, TOLERANCE, Q, X, Y, Z, each, near


def once(text, function, *given, **named):
    """Call, and check that one warning with this text points to this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*given, **named)
    caught = [w for w in caught if issubclass(w.category, DeprecationWarning)]
    assert [w.filename for w in caught] == [__file__]
    assert text in str(caught[0].message)
    return result


@each
def test_old_names_work_with_a_warning(method):
    plan = MAKERS[method]("laplace", X, Y)
    u = plan(Q)
    for name in ("charges", "dens"):
        np.testing.assert_array_equal(once(f"{name} of __call__ is now density", plan, **{name: Q}), u)
    measured = plan.error()
    assert once("error takes density and normals by keyword", plan.error, Q) == measured
    assert once("dens of error is now density", plan.error, dens=Q) == measured
    turned = once("turned is now transposed", plan.turned)
    assert turned is plan.transposed()
    assert once("pair of a plan is now kernel", lambda: plan.pair) is plan.kernel
    first, second = (Z, X) if method in EWALD else (X, Z)
    once("move takes targets and sources by keyword", plan.move, first, second)
    near(plan(Q), MAKERS[method]("laplace", X, Z)(Q), TOLERANCE.get(method, 1e-4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(TypeError, match="found both dens and density"):
            plan(dens=Q, density=Q)


@each
def test_a_correction_by_position(method):
    plan, C = MAKERS[method]("laplace", X, Y), np.ones((NT, NS))
    A = once("operator takes a correction by keyword", plan.operator, C)
    near(A @ Q, plan(Q) + C @ Q)


@pytest.mark.parametrize("method", EWALD)
def test_old_moves_of_ewald_sums(method):
    plan = MAKERS[method]("laplace", X, Y)
    once("move takes sources by keyword in a plan that has targets apart", plan.move, Z)
    near(plan(Q), MAKERS[method]("laplace", X, Z)(Q), 1e-4)
    once("src of move is now sources", plan.move, src=Y)
    near(plan(Q), MAKERS[method]("laplace", X, Y)(Q), 1e-4)
    once("trg of plan is now targets", parki.ewald.plan, "laplace", trg=X, sources=Y, **BOX)


def test_old_names_of_one_shot_calls():
    for call in (parki.treecode.bldtt, parki.treecode.bltc, parki.fmm.kifmm, parki.fmm.chebyshev):
        u = call(X, Y, Q)
        np.testing.assert_array_equal(once("charges of", call, X, Y, charges=Q), u)
