"""Sums in free space beside other programs: interpolation to parki's error, ratios, and programs that are not here."""

import ctypes.util
import importlib

import numpy as np
import pytest

import parki
from parki import cli, direct, samples
from parki.engine.run.spaces import Space
from parki.perfmodels.bench import benchmark, command, peers_free, peers_free_libraries, peers_free_programs
from parki.perfmodels.bench.peers_free import COARSER, LEAST, NEW, PeerTimes
from parki.perfmodels.bench.peers_free_sums import PeerProgram, PeerSession, PeerSum
from tests.perfmodels import recording

ONE, N = Space("Serial"), 300
COULOMB = PeerSum("coulomb")


class NoisyProgram(PeerProgram):
    """Direct sums with errors of chosen size, at errors that are its settings; of potentials, or of gradients, too."""

    def __init__(self, name, settings, keeps=True, against="kifmm", factor=1.0, gradients=False, alone=False):
        self.name, self.errors, self.keeps, self.against, self.factor = name, settings, keeps, against, factor
        self.gradients, self.alone, self.calls = gradients, alone, []

    def settings(self, sum_):
        return () if sum_.gradient and not self.gradients else self.errors

    def session(self, sum_, setting):
        return NoisySession(self, sum_, setting)


class NoisySession(PeerSession):
    """A direct sum, with an error on the charges at hand."""

    def __init__(self, program, sum_, error):
        self.program, self.sum, self.error, self.keeps = program, sum_, error, program.keeps

    def points(self, x, q):
        self.program.calls.append("points")
        options = {"gradient": "only" if self.sum.gradient else False} | self.sum.parameters
        self.plan = direct.plan(self.sum.kernel, x, x, execution_space="Serial", **options)
        return self.summed(q)

    def charges(self, q):
        self.program.calls.append("charges")
        return self.summed(q)

    def summed(self, q):
        u = self.plan(q)
        signs = np.where(np.arange(u.size) % 2, 1.0, -1.0).reshape(u.shape)
        return self.program.factor * u * (1 + self.error * signs)

    def close(self):
        self.program.calls.append("close")
        del self.plan


def with_programs(monkeypatch, *programs, sums=(COULOMB,)):
    monkeypatch.setattr(peers_free_programs, "programs", lambda words: (list(programs), []))
    monkeypatch.setattr(peers_free, "SUMS", sums)


def asked(**others):
    return recording.asked("peers-free", N, **({"points": "uniform", "library": None, "tolerance": 1e-5} | others))


# Interpolation --------------------------------------------------------------------------------------------------------
def test_a_setting_counts_if_no_other_one_is_as_fast_and_more_accurate():
    results = [(1e-4, 1.0), (1e-6, 2.0), (1e-5, 3.0), (1e-8, 5.0), (1e-9, 5.0), (0.5, 0.1)]
    assert peers_free.front(results) == [(1e-9, 5.0), (1e-6, 2.0), (1e-4, 1.0)]


def test_times_are_powers_of_the_error():
    results = [(10.0**-k, 3.0 * 1.5**k) for k in (3, 5, 9)]
    for k in (3, 4, 5, 6.5, 9):
        seconds, note = peers_free.interpolated(10.0**-k, results)
        assert (seconds, note) == (pytest.approx(3.0 * 1.5**k), "")


def test_nothing_is_extrapolated():
    results = [(1e-3, 1.0), (1e-6, 4.0)]
    assert peers_free.interpolated(1e-7, results) == (4.0, LEAST)
    assert peers_free.interpolated(2e-3, results) == (None, COARSER)


def test_ratios_are_of_new_points_and_of_new_charges():
    peer, other = NoisyProgram("One", ()), NoisyProgram("Two", (), keeps=False)
    own = PeerTimes(None, 1e-4, 1e-4, [2.0, 1.0], [0.25, 0.5])
    times = [
        PeerTimes(peer, 0, 1e-3, [3.0], [1.0]),
        PeerTimes(peer, 1, 1e-5, [12.0, 13.0], [4.0, 9.0]),
        PeerTimes(other, 0, 1e-3, [2.5], None),
        own,
    ]
    first = peers_free.ratios(own, [peer, other], times, NEW[0])
    assert [result["ratio"] for result in first["peers"]] == [pytest.approx(6.0), 2.5]  # sqrt(3 · 12) / 1
    assert [result["note"] for result in first["peers"]] == ["", LEAST]
    assert (first["ratio"], first["against"]) == (2.5, "at least Two")
    second = peers_free.ratios(own, [peer, other], times, NEW[1])
    assert [result["ratio"] for result in second["peers"]] == [pytest.approx(2.0 / 0.25), 2.5 / 0.25]
    assert second["against"] == "One"
    coarse = PeerTimes(None, 0.1, 5e-3, [1.0], [1.0])
    assert peers_free.ratios(coarse, [peer], times, NEW[0]) == {
        "peers": [{"name": "One", "ratio": None, "note": COARSER}]
    }


def test_gradients_alone_are_compared_with_gradients_alone(tmp_path, monkeypatch):
    both = NoisyProgram("Both", (1e-3, 1e-9), gradients=True)
    alone = NoisyProgram("Alone", (1e-3, 1e-9), gradients=True, alone=True)
    with_programs(monkeypatch, both, alone, sums=(COULOMB, PeerSum("coulomb", gradient=True)))
    rows = recording.ran_rows(asked(), tmp_path)
    found = {(r["sum"], r["series"]): [peer["name"] for peer in r["peers"]] for r in rows if "peers" in r}
    assert found == {
        ("coulomb", "parki kifmm"): ["Both", "Alone"],
        ("coulomb-gradient", "parki kifmm"): ["Both"],
        ("coulomb-gradient", "parki kifmm alone"): ["Alone"],
    }
    sums = {"parki kifmm": True, "parki kifmm alone": "only"}
    for name, gradient in sums.items():
        program = peers_free.OwnProgram("kifmm", name != "parki kifmm", (1e-3,), ONE)
        session = program.session(PeerSum("coulomb", gradient=True), 1e-3)
        x = samples.uniform(300, 1)
        assert session.points(x, np.ones(300)).shape == (3, 300)
        assert (program.name, session.plan.method.options.gradient) == (name, gradient)


# Rows -----------------------------------------------------------------------------------------------------------------
def test_rows(monkeypatch, tmp_path, capsys):
    peer, other = NoisyProgram("One", (1e-3, 1e-9)), NoisyProgram("Two", (1e-3,), keeps=False, against="bldtt")
    with_programs(monkeypatch, peer, other, sums=(COULOMB, PeerSum("coulomb", gradient=True), PeerSum("stokes_sl")))
    rows = recording.ran_rows(asked(), tmp_path)
    sums = list(dict.fromkeys(r["sum"] for r in rows))
    assert sums == ["coulomb", "stokes_sl"]  # no program has gradients
    first = [r for r in rows if r["sum"] == "coulomb"]
    assert [(r["series"], r["setting"], r["part"]) for r in first] == [
        *(("One", setting, part) for setting in ("0.001", "1e-09") for part in NEW),
        ("Two", "0.001", NEW[0]),
        *((name, t, part) for name in ("parki kifmm", "parki bldtt") for t in ("0.001", "1e-05") for part in NEW),
    ]
    for r in first:
        expected = r["tolerance"] or float(r["setting"])
        assert r["error"] <= expected if r["tolerance"] else r["error"] == pytest.approx(expected, rel=1e-3)
        assert [p["name"] for p in r.get("peers", [])] == {"parki kifmm": ["One"], "parki bldtt": ["Two"]}.get(
            r["series"], []
        )
    assert peer.calls[:4] == ["points", "charges", "charges", "close"]  # errors first, and then both settings in turns
    assert "charges" not in other.calls
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("uniform, coulomb, N = 300 ")
    assert any(line.startswith("parki kifmm, 1e-05") and " One " in line for line in lines)


def test_every_sum_of_parki_has_the_error_that_its_tolerance_asks_for(monkeypatch):
    peer = NoisyProgram("One", (1e-9,))
    monkeypatch.setattr(peer, "settings", lambda sum_: peer.errors)
    own = peers_free.OwnProgram("kifmm", False, (1e-5,), ONE)
    for sum_ in peers_free.SUMS:
        (times,) = peers_free.measured([own], "plummer", sum_, asked(repeat=1), ONE)
        assert times.error < 1e-5
        assert len(times.points) == len(times.charges) == 1


def test_all_kinds_of_points_unless_one_is_asked_for(monkeypatch):
    with_programs(monkeypatch, NoisyProgram("One", (1e-9,)))
    rows = peers_free.peers_free(asked(points=None, repeat=1, tolerance=0.1), ONE)
    assert list(dict.fromkeys(r["points"] for r in rows)) == list(peers_free.POINTS)
    assert {r["setting"] for r in rows} == {"1e-09", "0.1"}


def test_one_sum_alone(monkeypatch):
    with_programs(monkeypatch, NoisyProgram("One", (1e-9,)), sums=peers_free.SUMS)
    options = {"points": "sphere", "repeat": 1, "tolerance": 0.1}
    rows = peers_free.peers_free(asked(only=["yukawa"], **options), ONE)
    assert {r["sum"] for r in rows} == {"yukawa"}
    with pytest.raises(ValueError, match="--only is 'gravity'; expected some of coulomb, coulomb-gradient"):
        peers_free.peers_free(asked(only=["gravity"], **options), ONE)


def test_a_picture_has_a_panel_for_each_sum_and_kind_of_points(monkeypatch):
    figures = pytest.importorskip("matplotlib.figure")
    with_programs(monkeypatch, NoisyProgram("One", (1e-3, 1e-9)), sums=(COULOMB, PeerSum("yukawa")))
    figure = figures.Figure(layout="constrained")
    peers_free.draw(figure, peers_free.peers_free(asked(repeat=1), ONE))
    assert [axes.get_title() for axes in figure.axes] == ["coulomb, uniform", "yukawa, uniform"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["One", "parki kifmm"]
    assert {line.get_linestyle() for line in figure.axes[0].lines} == {"-", "--"}
    peers_free.draw(figures.Figure(layout="constrained"), [])


# Programs -------------------------------------------------------------------------------------------------------------
def test_another_sum_is_refused(monkeypatch):
    with_programs(monkeypatch, NoisyProgram("One", (1e-3, 1e-6), factor=1.02))
    with pytest.raises(RuntimeError, match=r"One and the direct sum of coulomb, uniform points, differ by 2\.0e-02"):
        peers_free.peers_free(asked(), ONE)


def test_absent_programs_are_named(monkeypatch):
    monkeypatch.setattr(peers_free_programs.free, "library", lambda: None)
    rows = peers_free.peers_free(asked(), ONE)
    assert [r["what"] for r in rows] == [
        f"against {name}" for name in ("FMM3D", "BaryTree", "DMK", "exafmm-t", "PVFMM")
    ]
    assert rows[0]["absent"] == "pip install fmm3dpy"
    assert "--library pvfmm=PATH" in rows[4]["absent"]
    assert peers_free.table(rows).splitlines()[0] == "against FMM3D: not measured, pip install fmm3dpy"


@pytest.mark.parametrize("word", ["fmm=a.so", "pvfmm", "pvfmm="])
def test_unknown_libraries_are_refused(word):
    with pytest.raises(ValueError, match=r"--library was given .* one of barytree, dmk, exafmm-t, pvfmm"):
        peers_free_programs.programs([word])


@pytest.mark.parametrize("name", peers_free_programs.LIBRARIES)
def test_libraries_that_are_missing_or_another_one_are_refused(name, tmp_path):
    libm = ctypes.util.find_library("m")
    for path in (tmp_path / "missing.so", libm):
        with pytest.raises(ValueError, match=rf"--library {name} was given .* does not load"):
            peers_free_programs.programs([f"{name}={path}"])


def test_devices_are_refused():
    with pytest.raises(ValueError, match="space is Cuda"):
        peers_free.peers_free(asked(), Space("Cuda"))


def test_fmm3d_agrees():
    module = pytest.importorskip("fmm3dpy")
    program, x = peers_free_programs.Fmm3dPeer(module), samples.uniform(200, seed=1)
    for sum_ in peers_free.SUMS:
        q = samples.charges(600, seed=2).reshape(3, 200)
        q = q if sum_.kernel == "stokes_sl" else q[0]
        gradient = "only" if sum_.gradient else False
        exact = parki.direct.plan(sum_.kernel, x, x, gradient=gradient, **sum_.parameters)(q)
        assert peers_free.relative(program.session(sum_, 1e-6).points(x, q), exact) < 1e-6


def test_a_variable_of_the_environment_is_kept_if_a_user_has_set_it(monkeypatch):
    environ = peers_free_libraries.os.environ
    monkeypatch.delenv("PARKI_OPERATORS", raising=False)
    with peers_free_libraries._variable("PARKI_OPERATORS", "there"):
        assert environ["PARKI_OPERATORS"] == "there"
    assert "PARKI_OPERATORS" not in environ
    monkeypatch.setenv("PARKI_OPERATORS", "here")
    with peers_free_libraries._variable("PARKI_OPERATORS", "there"):
        assert environ["PARKI_OPERATORS"] == "here"
    assert environ["PARKI_OPERATORS"] == "here"


def test_output_of_c_code_is_dropped(capfd):
    libc = ctypes.CDLL(None)
    with peers_free_libraries._silence():
        libc.puts(b"silence")
    libc.puts(b"words")
    libc.fflush(None)
    assert capfd.readouterr().out == "words\n"


# Command line ---------------------------------------------------------------------------------------------------------
def test_options(monkeypatch, capsys):
    given = []
    monkeypatch.setattr(
        importlib.import_module("parki.perfmodels.bench.command"), "main", lambda a: given.append(a) or 0
    )
    words = ["--points", "sphere", "--n", "500", "--library", "pvfmm=a.so", "barytree=b.so"]
    assert cli.main(["bench", "peers-free", *words]) == 0
    assert (given[0].points, given[0].library) == ("sphere", ["pvfmm=a.so", "barytree=b.so"])
    text = benchmark.BENCHMARKS["peers-free"].command(given[0])
    assert text.endswith("--points sphere --library pvfmm=a.so barytree=b.so")


def test_libraries_are_of_this_benchmark():
    with pytest.raises(ValueError, match="--library was given with fmm; expected one of peers, peers-free"):
        command.main(recording.asked("fmm", N, library=["pvfmm=a.so"]))
