"""Forces beside OpenMM and torch-pme: the ions, missing programs, and agreement with installed ones."""

import argparse
import importlib

import numpy as np
import pytest

from parki.engine.run.spaces import Space
from parki.perfmodels.bench import free, peers

ASKED = argparse.Namespace(n=300, repeat=1, tolerance=1e-6, threads=1)


def test_ions_are_neutral_apart_and_push_each_other():
    here = peers.ions(299)
    assert here.x.shape == (3, 300)
    assert here.q.sum() == 0
    assert here.x.min() >= 0
    assert here.x.max() < here.side
    distance = here.x[:, :, None] - here.x[:, None]
    distance -= here.side * np.round(distance / here.side)
    r = np.sqrt((distance**2).sum(axis=0)) + 9.0 * np.eye(300)
    assert r.min() > 0.29 * peers.PER_NM3 ** (-1 / 3)
    assert np.abs(here.forces.sum(axis=1)).max() < 1e-9 * np.abs(here.forces).sum()
    # The closest pair outweighs all others.
    i, j = np.unravel_index(np.argmin(r), r.shape)
    assert np.sign(here.forces[:, i] @ distance[:, i, j]) == np.sign(here.q[i] * here.q[j])


def test_moving_all_points_changes_no_force():
    here, space = peers.ions(200), Space("Serial")
    moves = here.moved()
    first, second = next(moves), next(moves)
    assert np.abs(first - second).max() > 0.1 * here.side
    for x in (first, second):
        assert peers.relative(peers._sums(x, here, 1e-8, True, space), here.forces) < 1e-8


def test_who_is_absent_is_named(monkeypatch):
    known = importlib.import_module

    def none(name):
        if name in peers.GET:
            raise ImportError(name)
        return known(name)

    monkeypatch.setattr(peers.importlib, "import_module", none)
    rows = peers.peers(ASKED, Space("Serial"))
    absent = {f"against {name}": peers.GET[name] for name in peers.GET}
    absent["against ESP"] = f"build {peers.ESP[1]}, then --library dmk=PATH"
    assert {r["what"]: r["absent"] for r in rows} == absent


def test_devices_are_refused():
    with pytest.raises(ValueError, match="space is Cuda"):
        peers.peers(ASKED, Space("Cuda"))


@pytest.mark.parametrize(("name", "others"), [("openmm", ()), ("torchpme", ("torch", "vesin"))])
def test_peers_agree(name, others):
    modules = [pytest.importorskip(module) for module in (name, *others)]
    rows = {"openmm": peers.openmm_rows, "torchpme": peers.torch_rows}[name](
        modules, peers.ions(300), 1, Space("Serial")
    )
    assert rows
    for r in rows:
        assert r["error"] < peers.AGREE
        if "ratio" in r:
            against = next(other for other in rows if other["what"] == r["against"])
            assert r["error"] <= against["error"]


def test_another_sum_is_found_out():
    with pytest.raises(RuntimeError, match="Peer and parki differ by 5"):
        peers.agreeing("Peer", 0.5)
    with pytest.raises(RuntimeError, match="differ"):
        peers.agreeing("Peer", float("nan"))


def test_the_largest_tolerance_that_reaches_an_error():
    tried = []

    def error(tolerance):
        tried.append(tolerance)
        return tolerance / 3

    tolerance, reached = free.reaching(error, 1e-6)
    assert reached == tolerance / 3 <= 1e-6
    assert tried == pytest.approx([8e-6 * 0.7**k for k in range(len(tried))])
    assert tried[-2] / 3 > 1e-6
    with pytest.raises(RuntimeError, match="no tolerance"):
        free.reaching(lambda t: 1.0, 1e-6)
