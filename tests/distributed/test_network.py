"""Networks that are measured and kept, and the cutoffs that sums over ranks choose for them."""

import numpy as np
import pytest

import parki
from parki.distributed import network
from parki.distributed.simulated import World
from parki.perfmodels.network import Network
from tests.distributed.shares import Case, cuts, part

SLOW = Network(1e-5, 1e7)


def test_messages_are_measured():
    found = World(3, delay=(1e-3, 1e-9)).run(network.measure)
    assert len(set(found)) == 1
    assert found[0].alpha >= 1e-3
    assert 0 < found[0].beta <= 2e9  # two messages travel at the same time


def test_a_network_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("PARKI_CALIBRATION")
    assert network.kept() is None
    path = network.keep(SLOW)
    assert (network.kept().alpha, network.kept().beta) == (1e-5, 1e7)
    monkeypatch.setenv("PARKI_CALIBRATION", "off")
    assert network.kept() is None
    monkeypatch.delenv("PARKI_CALIBRATION")
    path.write_text("{}")
    assert network.kept() is None


def drawn(seed):
    """Return error / tolerance of a random sum over ranks, and whether its cutoff exceeds that of one process."""
    rng = np.random.default_rng(seed)
    kernel = rng.choice(["laplace", "stokes_sl", "stokes_comb", "laplace_grad"])
    periodicity = int(rng.choice([3, 3, 2, 1, 0]))
    tolerance = float(10 ** rng.uniform(-10, -3))
    case = Case(kernel, periodicity, tuple(rng.uniform(0.5, 2, 3)), n=1500, seed=seed, options={"tolerance": tolerance})
    ranks = int(rng.integers(2, 9))
    ends = cuts(case.n, ranks)

    def work(comm):
        own = ends[comm.rank]
        plan = case.plan(part(case.targets, own), part(case.sources, own), comm=comm)
        plan(part(case.density, own), *case.given(own))
        return plan.error(200).value / tolerance, plan.parameters.rc

    found = World(ranks).run(work)
    return found[0][0], found[0][1] > 1.05 * case.alone()[0].parameters.rc


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 106), marks=pytest.mark.slow)])
def test_the_tolerance_is_met_with_cutoffs_for_a_network(seeds, monkeypatch):
    monkeypatch.setattr(network, "kept", lambda: SLOW)
    errors, longer = zip(*(drawn(seed) for seed in seeds), strict=True)
    assert max(errors) < 1, errors
    assert any(longer)


def test_a_cutoff_that_is_named_is_honoured(monkeypatch):
    monkeypatch.setattr(network, "kept", lambda: SLOW)

    def work(comm):
        x = np.random.default_rng(comm.rank).random((3, 300))
        return parki.ewald.plan("laplace", x, x, box=(1, 1, 1), rc=0.25, comm=comm).parameters.rc

    assert World(3).run(work) == [0.25] * 3
