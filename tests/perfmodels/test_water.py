"""Water beside OpenMM, by `parki bench water` and `drift`: the box, a missing OpenMM, tables, agreement."""

import argparse
import os
import sys

import numpy as np
import pytest

from parki.engine.run.spaces import Space
from parki.perfmodels.bench import drift_openmm, peers_openmm
from parki.perfmodels.bench.benchmark import BENCHMARKS
from parki.perfmodels.bench.peers_openmm import Configuration, Water

ASKED = argparse.Namespace(n=2685, repeat=1, tolerance=1e-6, threads=None)
ONE, MEASURES = Space("Serial"), {"water": peers_openmm.water, "drift": drift_openmm.drift}


def test_the_box_is_repeated_to_the_atoms_asked_for():
    one, eight = Water.of(BENCHMARKS["water"].n), Water.of(8 * 2685)
    assert one.x.shape == (3, 2685)
    assert np.array_equal(Water.of(10).x, one.x)
    assert eight.x.shape == (3, 8 * 2685)
    assert eight.q.sum() == pytest.approx(0, abs=1e-9)
    assert np.array_equal(eight.box, 2 * one.box)
    i, j = eight.pairs
    assert len(i) == 8 * 2685
    assert np.linalg.norm(eight.x[:, i] - eight.x[:, j], axis=0).max() < 0.2  # molecules are whole
    corners = {tuple(np.round(x)) for x in (eight.x.reshape(3, 8, -1) - one.x[:, None])[:, :, 0].T}
    assert corners == {(x, y, z) for x in (0, 3) for y in (0, 3) for z in (0, 3)}


@pytest.mark.parametrize("name", MEASURES)
def test_without_openmm_a_row_says_how_to_get_it(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "openmm", None)
    rows = MEASURES[name](ASKED, ONE)
    assert rows == [{"what": "against openmm", "absent": "pip install openmm"}]
    assert "not measured: pip install openmm" in BENCHMARKS[name].table(rows)


@pytest.mark.parametrize("name", MEASURES)
def test_devices_are_refused(name):
    with pytest.raises(ValueError, match="space is Cuda"):
        MEASURES[name](ASKED, Space("Cuda"))


def test_one_core_unless_threads_are_asked_for():
    both = Space("OpenMP", threads=2)
    assert peers_openmm.one_core(ASKED, both) == ONE
    assert peers_openmm.one_core(argparse.Namespace(threads=2), both) == both


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not tell cores")
def test_cores_are_given_back():
    before = os.sched_getaffinity(0)
    with peers_openmm.kept_to(1):
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


def configuration(program, precision, error, seconds):
    made = Configuration(program, precision, f"{error:g}", 1e-3, len, [], error, error / 10)
    return made.row([seconds, 2 * seconds], 2685, 1)


def test_rows_of_openmm_name_the_row_of_parki_that_is_as_exact():
    rows = [
        configuration("parki", "double", 1e-4, 2e-3),
        configuration("parki", "double", 1e-6, 3e-3),
        configuration("parki", "single", 1e-5, 1e-3),
        configuration("OpenMM CPU", "single", 1e-5, 6e-3),
        configuration("OpenMM CPU", "single", 1e-4, 7e-3),
        configuration("OpenMM CPU", "single", 1e-7, 8e-3),
    ]
    _, *lines, _ = peers_openmm.table(rows).splitlines()
    assert [line.startswith("OpenMM CPU *") for line in lines] == [False, False, False, True, False, True]
    assert "2.00 x, 1e-06" in lines[3]
    assert "6.00 x, 1e-05" in lines[3]
    assert "3.50 x, 0.0001" in lines[4]
    assert lines[5].count("none as exact") == 2
    assert rows[3]["rate"] == pytest.approx(2685e-6 / 6e-3)


def test_a_line_has_the_drift_and_the_fluctuation():
    times = drift_openmm.EVERY * drift_openmm.TIMESTEP * np.arange(9)
    wave = np.array([1, -1, 0, 0, 0, 0, 0, -1, 1])  # without a slope
    slope, fluctuation = drift_openmm.line(5.0 + 3.0 * times + 0.1 * wave)
    assert slope == pytest.approx(3.0)
    assert fluctuation == pytest.approx(0.1 * np.sqrt(4 / 9))


@pytest.mark.slow
def test_steps_agree_with_openmm(monkeypatch):
    pytest.importorskip("openmm")
    monkeypatch.setattr(peers_openmm, "SWEEPS", {"CPU": [(0.9, 1e-4, 1.0)], "Reference": [(0.9, 1e-5, 1.0)]})
    monkeypatch.setattr(peers_openmm, "TOLERANCES", {"double": [1e-4], "single": [1e-3]})
    monkeypatch.setattr(peers_openmm, "STEPS", 2)
    rows = peers_openmm.water(ASKED, ONE)
    assert [r["program"] for r in rows] == ["parki", "parki", "OpenMM CPU", "OpenMM Reference"]
    assert all(0 < r["error"] < 1e-3 and 0 < r["energy_error"] < 1e-3 for r in rows)
    assert {r["threads"] for r in rows} == {1}
    assert len(BENCHMARKS["water"].table(rows).splitlines()) == 6


@pytest.mark.slow
def test_runs_keep_their_energy(monkeypatch):
    openmm = pytest.importorskip("openmm")
    if not hasattr(openmm, "PythonForce"):
        pytest.skip("OpenMM has no PythonForce")
    for name, value in (("PIECE", 4e-3), ("THERMOSTAT", 4e-3), ("TOLERANCES", (1e-3,)), ("ASKED", (1e-4,))):
        monkeypatch.setattr(drift_openmm, name, value)
    rows = drift_openmm.drift(ASKED, ONE)
    assert [r["tolerance"] for r in rows] == [1e-9, 1e-3, 1e-4]
    assert all(0 < r["error"] < 1e-2 and r["steps"] == 16 for r in rows)
    assert rows[0]["error_drift"] == rows[0]["error_fluctuation"] == 0
    assert len(BENCHMARKS["drift"].table(rows).splitlines()) == 5
