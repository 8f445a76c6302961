"""Benchmark `parki bench treecode` and related ones: rows, tables, known times of BaryTree; times are not judged."""

import importlib
import itertools

import numpy as np
import pytest

from parki.engine.run.spaces import Space
from parki.perfmodels.bench import free, handwritten, limits, models, sweeps, treecode
from parki.perfmodels.bench.treecode import CASES, TreecodeCase
from parki.perfmodels.counts import clusters
from parki.perfmodels.machine import Machine
from parki.treecode.report import PHASES
from tests.perfmodels import recording

N, ONE = 600, Space("Serial")
MORE = 3000  # number of points that is large enough for clusters far from each other
FEW = (TreecodeCase("coulomb", "dual", 2), TreecodeCase("yukawa", "pc", 2))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Use two cases, so that few kernels are compiled, a short sweep, and a machine with known rates."""
    monkeypatch.setattr(treecode, "CASES", FEW)
    monkeypatch.setattr(treecode, "SIZES", (0.5, 1.0))
    monkeypatch.setattr(treecode, "BATCHES", (1.0, 2.0))
    monkeypatch.setattr(sweeps, "FINALISTS", 1)
    monkeypatch.setattr(models.calibrate, "measure", lambda seconds: Machine.load("xeon"))


def test_cases_are_those_of_the_papers():
    assert len(CASES) == 8
    assert {(c.kernel, c.method, c.degree) for c in CASES} >= {("coulomb", "dual", 8), ("yukawa", "pc", 4)}
    known = {(method, degree) for method, degree, _ in treecode.BARYTREE}
    assert known <= {(c.method, c.degree) for c in CASES}


def test_sums_by_phases(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(treecode.BARYTREE, ("dual", 2, N), 0.5)
    rows = recording.ran("treecode", N, tmp_path)
    assert [r["what"] for r in rows] == [
        f"{case}: {what}" for case in FEW for what in ("published loop", "whole call", "plan(charges)")
    ]
    for loop, call, again in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        assert tuple(call["phases"]) == tuple(PHASES)
        assert set(again["phases"]) == set(PHASES) - {"tree", "lists"}
        assert 0 < sum(call["phases"].values()) <= call["seconds"]
        assert 0 < call["error"] < 1e-1
        assert call["loop"] == pytest.approx(1e9 * loop["rate"])
        assert call["memory"] > 8 * 7 * N
        assert sum(call["pairs"].values()) > 0
    first, second = rows[1], rows[4]
    assert first["ratio"] == pytest.approx(0.5 * 2.8e9 / first["loop"] / first["seconds"])
    assert "ratio" not in second
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:3]] == [str(case) for case in FEW]
    assert lines[1].endswith(f"{first['ratio']:.2f}")
    assert lines[-1].startswith("published loop, one thread: coulomb ")


def test_barytree_is_known_for_one_core_and_one_kernel():
    eight = TreecodeCase("coulomb", "pc", 8)
    assert treecode.barytree(eight, 100_000, 1) == 2.2
    assert treecode.barytree(eight, 100_000, 2) is None
    assert treecode.barytree(eight, 50_000, 1) is None
    assert treecode.barytree(TreecodeCase("yukawa", "pc", 8), 100_000, 1) is None


@pytest.mark.parametrize("kernel", treecode.KERNELS)
def test_plain_loops_are_the_direct_sum(kernel, monkeypatch):
    assert 0 < treecode.plain(kernel)() < 60
    text = handwritten.TREECODES[kernel][0].replace("sum +=", "sum -=")
    monkeypatch.setitem(handwritten.TREECODES, kernel, (text,))
    with pytest.raises(RuntimeError, match=f"direct sum of {kernel} and the loop written by hand disagree"):
        treecode.plain(kernel)


def test_scaling(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(treecode, "DEGREES", treecode.DEGREES[:1])
    rows = recording.ran("treecode-scaling", 100 * N, tmp_path)
    some = itertools.product(treecode.SHAPES, treecode.DEGREES, (N, 10 * N, 100 * N))
    assert [(r["shape"], r["degree"], r["n"]) for r in rows] == list(some)
    for first, *others in (rows[k : k + 3] for k in range(0, len(rows), 3)):
        assert "ratio" not in first
        for r in others:
            assert r["ratio"] == pytest.approx(first["seconds"] / first["n"] * r["n"] / r["seconds"])
            assert r["pairs"] > r["n"]
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(rows)


def test_sizes_of_leaves(tmp_path, capsys):
    rows = recording.ran("treecode-leaves", N, tmp_path)
    assert [r["what"] for r in rows] == [f"{case}: {what}" for case in FEW for what in ("best of the sweep", "chosen")]
    for best, chosen, case in zip(rows[::2], rows[1::2], FEW, strict=True):
        sizes = treecode.grid((chosen["leaf"], chosen["batch"]), case.method)
        assert (best["leaf"], best["batch"]) in {*sizes, (chosen["leaf"], chosen["batch"])}
        assert chosen["tried"] == len({*sizes, (chosen["leaf"], chosen["batch"])})
        assert 0 < chosen["ratio"] <= 1
    close = sum(1 / r["ratio"] <= 1.10 for r in rows[1::2])
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"{close} of 2 within 10% of the best")


def test_a_sweep_has_batches_of_their_own_for_particle_cluster():
    assert treecode.grid((100, 100), "dual") == [(50, 50), (100, 100)]
    assert treecode.grid((100, 100), "pc") == [(50, 50), (50, 100), (100, 100), (100, 200)]


def test_predictions(tmp_path, capsys):
    rows = recording.ran("treecode-model", N, tmp_path)
    for case in FEW:
        *parts, whole = [r for r in rows if r["case"] == str(case)]
        assert [r["part"] for r in parts] == [name for name in clusters.PHASES if name in {r["part"] for r in parts}]
        assert {"tree", "lists", "pp"} <= {r["part"] for r in parts}
        assert whole["predicted"] == pytest.approx(sum(r["predicted"] for r in parts))
        assert whole["ratio"] == pytest.approx(whole["predicted"] / whole["seconds"])
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(FEW) + 2


def test_shares_of_the_roofline(monkeypatch):
    monkeypatch.setattr(limits, "LIMITED", (TreecodeCase("coulomb", "pc", 2),))
    rows = limits.of_treecodes(recording.asked("roofline", MORE), ONE, Machine.load("xeon"))
    assert [r["what"] for r in rows] == ["coulomb, ranges", "coulomb, grids"]
    for r in rows:
        assert r["ratio"] == pytest.approx(r["limit"] / r["seconds"])
        assert r["by"] in ("compute", "launch")
    assert "wanted 70%" in limits.rooflines_table(rows).splitlines()[1]


def test_beside_fmm3d(monkeypatch):
    pytest.importorskip("fmm3dpy")
    monkeypatch.setattr(free, "ASKED", (1e-3,))
    theirs, ours = treecode.against_fmm(recording.asked("treecode-free", 300, repeat=1), ONE)
    assert ours["against"] == theirs["what"]
    assert ours["error"] <= max(theirs["error"], 1e-11)
    assert ours["n"] == theirs["n"] == 300


def test_without_fmm3d(monkeypatch):
    known = importlib.import_module

    def none(name):
        if name == "fmm3dpy":
            raise ImportError(name)
        return known(name)

    monkeypatch.setattr(free.importlib, "import_module", none)
    assert treecode.against_fmm(recording.asked("treecode-free", N), ONE)[0]["absent"] == "pip install fmm3dpy"
    with pytest.raises(ValueError, match="space is GpuSim"):
        treecode.against_fmm(recording.asked("treecode-free", N), Space("GpuSim"))


def test_one_core_unless_threads_are_asked_for():
    both = Space("OpenMP", threads=2)
    assert treecode.one_core(recording.asked("treecode", N, threads=None), both) == ONE
    assert treecode.one_core(recording.asked("treecode", N, threads=2), both) == both
    x, q = treecode.cloud(50)
    assert x.shape == (3, 50)
    assert np.abs(q).max() <= 1
