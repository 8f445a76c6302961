"""Faults at any step: a plan whose move or call did not finish is right at the next call, or refuses the call."""

import threading

import numpy as np
import pytest

import parki
from parki.engine.run.launch import Prepared

N = 40
RNG = np.random.default_rng(8)
X, Y, Z = (RNG.random((3, N)) for _ in range(3))
Q = RNG.standard_normal(N)
METHODS = {
    "3P": lambda x, y: parki.ewald.plan("laplace", x, y, box=(1, 1, 1), tolerance=1e-3),
    "cell": lambda x, y: parki.ewald.plan("laplace", x, y, box=np.array([[1, 0, 0], [0.3, 1, 0], [0, 0.2, 1]])),
    "0P": lambda x, y: parki.ewald.plan("laplace", x, y, periodicity=0, tolerance=1e-3),
    "treecode": lambda x, y: parki.treecode.plan("laplace", x, y, degree=2, leaf_size=4, batch_size=4),
    "kifmm": lambda x, y: parki.fmm.plan("laplace", x, y, order=3, leaf_size=4),
    "chebyshev": lambda x, y: parki.fmm.plan("laplace", x, y, method="chebyshev", order=3, leaf_size=4),
}


class Strike:
    """Counter of preparations, launches and allocations that fails at the k-th; other threads do not count."""

    def __init__(self, monkeypatch, kind):
        self.at, self.kind, self.count, self.own = None, kind, 0, threading.get_ident()
        monkeypatch.setattr(Prepared, "__init__", self.before(Prepared.__init__))
        monkeypatch.setattr(Prepared, "launch", self.before(Prepared.launch))
        for name in ("empty", "zeros", "concatenate", "stack"):
            monkeypatch.setattr(np, name, self.before(getattr(np, name)))

    def before(self, function):
        def struck(*given, **named):
            if threading.get_ident() == self.own:
                self.count += 1
                if self.count == self.at:
                    raise self.kind("struck")
            return function(*given, **named)

        return struck

    def arm(self, at):
        self.at, self.count = at, 0


@pytest.fixture(params=[MemoryError, KeyboardInterrupt])
def strike(request, monkeypatch):
    return Strike(monkeypatch, request.param)


def every(strike, action, step):
    """Run `action` with a fault at about `step` of its steps, one at a time; yield the number of each failed step."""
    for _ in range(2):  # the first time makes the objects that are kept
        strike.arm(None)
        action()
    steps = strike.count
    for k in range(1, steps + 1, max(1, steps // step)):
        strike.arm(k)
        with pytest.raises(strike.kind, match="struck"):
            action()
        strike.arm(None)
        yield k


@pytest.mark.parametrize("method", METHODS)
def test_a_move_that_fails(method, strike):
    plan, new, old = METHODS[method](X, Y), METHODS[method](Z, Y)(Q), METHODS[method](X, Y)(Q)
    there, steps = [Z], 0
    for _ in every(strike, lambda: plan.move(targets=there[0], sources=Y), 15):
        steps += 1
        try:
            u = plan(Q)
        except RuntimeError as refused:
            assert "the last move of this plan did not finish" in str(refused)  # noqa: PT017  or the sum is right
            with pytest.raises(RuntimeError, match="the last move of this plan did not finish"):
                plan.error(n=5, density=Q)
        else:
            same = [np.allclose(u, one, rtol=1e-12, atol=1e-12) for one in (old, new)]
            assert any(same)
        plan.move(targets=X, sources=Y)
        np.testing.assert_allclose(plan(Q), old, rtol=1e-12, atol=1e-12)
    assert steps > 3


@pytest.mark.parametrize("method", METHODS)
def test_half_a_move_does_not_mend_a_plan(method, strike):
    """Check that sources alone leave targets where the failed move left them."""
    plan = METHODS[method](X, Y)
    refused = 0
    for _ in every(strike, lambda: plan.move(sources=Z, targets=X), 6):
        try:
            plan.move(sources=Y)
        except RuntimeError as error:
            assert "the last move of this plan did not finish; expected targets and sources" in str(error)  # noqa: PT017
            refused += 1
        plan.move(sources=0.5 * Y + 0.25, targets=0.5 * X + 0.25)  # within a box that the failed move may have made
        exact = METHODS[method](0.5 * X + 0.25, 0.5 * Y + 0.25)(Q)
        np.testing.assert_allclose(plan(Q), exact, rtol=0, atol=3e-3 * np.abs(exact).max())
        plan.move(sources=Y, targets=X)
    assert refused


@pytest.mark.parametrize("method", METHODS)
def test_a_call_that_fails(method, strike):
    plan = METHODS[method](X, Y)
    right = plan(Q)
    steps = 0
    for _ in every(strike, lambda: plan(2 * Q), 20):
        steps += 1
        np.testing.assert_array_equal(plan(Q), right)
    assert steps > 3


@pytest.mark.parametrize("method", METHODS)
def test_a_plan_that_is_not_made(method, strike):
    """Check that a plan that is not made leaves nothing behind that the next plan takes."""
    right = METHODS[method](X, Y)(Q)
    for _ in every(strike, lambda: METHODS[method](X, Y)(Q), 6):
        np.testing.assert_array_equal(METHODS[method](X, Y)(Q), right)


@pytest.mark.parametrize("method", ["3P", "cell"])
def test_many_right_hand_sides_and_transposes_that_fail(method, strike):
    plan = METHODS[method](X, Y)
    many = np.stack([Q, -Q])
    right, back = METHODS[method](X, Y)(many), METHODS[method](X, Y).operator().T @ Q

    def anew():
        fresh = METHODS[method](X, Y)
        return fresh(many), fresh.operator().T @ Q

    for _ in every(strike, anew, 6):
        np.testing.assert_array_equal(plan(many), right)
        np.testing.assert_array_equal(plan.operator().T @ Q, back)
