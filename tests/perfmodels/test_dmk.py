"""DMK and its ESP beside parki, by a stand-in for their library: layouts of arguments, units, and what is freed."""

import argparse
import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from parki import direct, samples
from parki.engine.run.spaces import Space
from parki.perfmodels.bench import peers, peers_free, peers_free_dmk
from parki.perfmodels.bench.peers_esp import FLAGS, UPSAMPLING, Esp
from tests.reference import relative_rms

ONE = Space("Serial")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path, compiler = tmp_path_factory.mktemp("dmk") / "libdmk.so", shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler of C")
    text = Path(__file__).with_name("dmk.c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", path, text, "-lm"], check=True)
    return path


def count(library, name):
    return ctypes.c_int.in_dll(ctypes.CDLL(str(library)), name).value


@pytest.mark.parametrize("sum_", peers_free.SUMS, ids=str)
def test_sums(library, sum_):
    program, x = peers_free_dmk.DmkPeer(library), samples.uniform(100, seed=1)
    q = samples.charges(300, seed=2).reshape(3, 100)
    q = q if sum_.kernel == "stokes_sl" else q[0]
    gradient = "only" if sum_.gradient else False
    exact = direct.plan(sum_.kernel, x, x, gradient=gradient, **sum_.parameters)
    assert program.settings(sum_)[:2] == [(1e-2, 100), (1e-2, 280)]
    for eps in (1e-3, 1e-9):
        session = program.session(sum_, (eps, 100))
        for u, strengths in ((session.points(x, q), q), (session.charges(2 * q + 1), 2 * q + 1)):
            assert relative_rms(u, exact(strengths)) == pytest.approx(0.5 * eps, rel=1e-4)
        assert count(library, "trees") == 1
        session.close()
        session.close()
        assert count(library, "trees") == 0


def test_plans_of_esp(library):
    q, x, side = np.arange(5.0), np.random.default_rng(1).random((3, 5)) * 0.75, 0.75
    run = Esp(library).potentials(side, q, 1e-5, 0.125)
    known = 1e3 * side + 1e4 * 0.125 + 1e6 * 1e-5 + 1e5 * UPSAMPLING + 6 + 10 + 20 * 3 + 30 + 40 + 50 * FLAGS + 60 * 2
    expected = known + np.array([1.0, 2.0, 3.0]) @ (x - side / 2) + 4 * q
    np.testing.assert_allclose(run(x), expected, rtol=1e-12)
    assert count(library, "plans") == 1
    del run
    assert count(library, "plans") == 0


def test_failures_are_errors(library):
    program, x, q = peers_free_dmk.DmkPeer(library), samples.uniform(10, seed=1), samples.charges(10, seed=2)
    coulomb = peers_free.SUMS[0]
    with pytest.raises(RuntimeError, match="pdmk_tree_create of DMK failed: no eps"):
        program.session(coulomb, (0.0, 100)).points(x, q)
    session = program.session(coulomb, (1e-3, 100))
    session.points(x, q)
    with pytest.raises(RuntimeError, match="pdmk_tree_update_charges of DMK failed: no eps"):
        session.charges(np.full(10, np.nan))
    session.close()
    with pytest.raises(RuntimeError, match="pdmk_esp_plan_create of DMK failed: no eps"):
        Esp(library).potentials(0.75, q, 0.0, 0.125)


class NoisyEsp:
    """Sums of parki with errors of the tolerance that is asked for."""

    def potentials(self, side, q, eps, cutoff):
        assert 0 < cutoff < 0.5 * side

        def run(x):
            u = peers.api.laplace(x, x, q, box=(side,) * 3, tolerance=1e-11, execution_space=ONE)
            return u * (1 + eps * np.where(np.arange(len(u)) % 2, 1.0, -1.0))

        return run


def test_rows_of_esp(monkeypatch):
    monkeypatch.setattr(peers, "ESP_ASKED", (1e-4, 1e-6))
    rows = peers.esp_rows(NoisyEsp(), peers.ions(100), 1, ONE)
    assert [r["what"].partition(": ")[2] for r in rows] == 2 * ["ESP", "parki, moved points", "parki, new charges"]
    for theirs, *own in (rows[:3], rows[3:]):
        assert theirs["error"] == pytest.approx(float(theirs["what"].split()[5].rstrip(":")), rel=1e-3)
        assert all(r["error"] <= theirs["error"] and r["against"] == theirs["what"] for r in own)


def test_esp_is_asked_for_by_its_library(library):
    asked = argparse.Namespace(n=100, repeat=1, tolerance=1e-6, threads=1, library=["pvfmm=a.so"])
    with pytest.raises(ValueError, match=r"--library was given .* NAME one of dmk\."):
        peers.peers(asked, ONE)
    asked.library = [f"dmk={library}"]
    with pytest.raises(RuntimeError, match="ESP and parki differ"):  # the stand-in returns what it is given
        peers.peers(asked, ONE)
