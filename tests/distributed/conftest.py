"""Simulated ranks, and sums that are split among them."""

import pytest

pytest.importorskip("greenlet", reason="greenlet, of parki[test], makes simulated ranks")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Give bricks to ranks with few points."""
    from parki.distributed.bricks import division

    monkeypatch.setattr(division, "LEAST_POINTS", 1)


@pytest.fixture(params=["owners", "hypercube"])
def scheme(request, monkeypatch):
    """Select the exchange of values of fast multipole methods, for both."""
    from parki.distributed.fmm import method

    monkeypatch.setattr(method, "SCHEME", request.param)
    return request.param
