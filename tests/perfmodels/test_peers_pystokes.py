"""Velocities of spheres beside pystokes: the suspension, a missing program, and agreement with an installed one."""

import argparse
import sys
import types

import numpy as np
import pytest

import parki
from parki.engine.run.spaces import Space
from parki.perfmodels.bench import peers_pystokes

ASKED = argparse.Namespace(n=60, repeat=1, tolerance=1e-6, threads=1)
ONE = Space("Serial")


class Mobility:
    """Stand-in for mobilities of pystokes, with an error of 1e-4, by parki's sums."""

    def __init__(self, radius, particles, viscosity, boxSize=None):
        self.radius, self.side, self.factor = radius, boxSize, 1.0001 / (8 * np.pi * viscosity)

    def mobilityTT(self, v, r, f, *images):
        x, f = r.reshape(3, -1), f.reshape(3, -1)
        if self.side is None:
            u = parki.direct.direct_sum("rpy", x, x, f, radius=self.radius)
        else:
            assert len(images) == 2
            u = parki.ewald.rpy(x, x, f, self.radius, box=(self.side,) * 3, tolerance=1e-9)
        v += self.factor * u.ravel()


def test_spheres_are_apart():
    x, f, side = peers_pystokes.suspension(50)
    r = x[:, :, None] - x[:, None]
    r -= side * np.round(r / side)
    assert np.sqrt((r**2).sum(axis=0))[~np.eye(50, dtype=bool)].min() > 2
    np.testing.assert_allclose(f.sum(axis=1), 0, atol=1e-12)
    assert 50 * 4 / 3 * np.pi / side**3 < peers_pystokes.FRACTION


def test_rows(monkeypatch):
    place = types.SimpleNamespace(Rbm=Mobility)
    monkeypatch.setitem(sys.modules, "pystokes", types.SimpleNamespace(unbounded=place, periodic=place))
    monkeypatch.setattr(peers_pystokes, "FEW", 20)
    found = peers_pystokes.spheres(ASKED, ONE)
    theirs, direct, *trees = found[:4]
    assert theirs["error"] == pytest.approx(1e-4, rel=1e-6)
    assert direct["error"] == 0
    assert [row["error"] < t for row, t in zip(trees, peers_pystokes.TOLERANCES, strict=True)] == [True, True]
    assert all(row["against"] == theirs["what"] for row in found[1:4])
    for first, mine in zip(found[4::2], found[5::2], strict=True):
        assert first["error"] == pytest.approx(1e-4, rel=1e-3)
        assert 0 < mine["error"] <= first["error"]
        assert mine["against"] == first["what"]


def test_another_sum_is_found_out(monkeypatch):
    place = types.SimpleNamespace(Rbm=lambda **keywords: Mobility(**keywords | {"viscosity": 1.1}))
    monkeypatch.setitem(sys.modules, "pystokes", types.SimpleNamespace(unbounded=place))
    with pytest.raises(RuntimeError, match="pystokes and parki differ by 9"):
        peers_pystokes.spheres(ASKED, ONE)


def test_an_absent_pystokes_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pystokes", None)
    assert [row["absent"] for row in peers_pystokes.spheres(ASKED, ONE)] == ["pip install pystokes"]


def test_devices_are_refused():
    with pytest.raises(ValueError, match="space is Cuda"):
        peers_pystokes.spheres(ASKED, Space("Cuda"))


def test_pystokes_agrees():
    pystokes = pytest.importorskip("pystokes")
    for row in peers_pystokes.free_rows(pystokes, 60, 1, ONE) + peers_pystokes.periodic_rows(pystokes, 20, 1, ONE):
        assert row["error"] < 1e-3
