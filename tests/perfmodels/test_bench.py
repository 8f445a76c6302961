"""Benchmarks by `parki bench`: compared programs take turns, records are complete, and all benchmarks run."""

import argparse
import importlib
import json
import re

import numpy as np
import pytest

from parki import cli
from parki.perfmodels.bench import command, free, handwritten, kernels, measure, sums
from parki.perfmodels.bench.benchmark import BENCHMARKS
from parki.scaling import Powers
from tests.quick import but

DEFAULTS = {
    "n": 300,
    "tolerance": 1e-4,
    "repeat": 1,
    "threads": 1,
    "space": "Serial",
    "json": None,
    "compare": None,
    "plot": None,
}


def asked(name, **others):
    return argparse.Namespace(name=name, **(DEFAULTS | others))


def test_measures_take_turns():
    seen = []

    def recorded(name):
        seen.append(name)
        return float(len(seen))

    found = measure.turns([lambda: recorded("a"), lambda: recorded("b")], 3)
    assert seen == ["a", "b"] * 4
    assert found == [[3.0, 5.0, 7.0], [4.0, 6.0, 8.0]]  # the first turn does not count
    assert measure.turns([lambda: recorded("a")], 2, warm=False) == [[9.0, 10.0]]
    assert seen[8:] == ["a", "a"]


def test_a_clock_measures_its_run(monkeypatch):
    times = iter([10.0, 10.25])
    monkeypatch.setattr(measure.time, "perf_counter", lambda: next(times))
    calls = []
    assert measure.clock(lambda: calls.append(1))() == 0.25
    assert calls == [1]


def test_rows_and_their_table():
    first = measure.row("sum, N = 5: theirs", [0.5, 0.25, 0.3], 1.0, "M points", n=5, error=2e-6)
    second = measure.row("sum, N = 5: ours", [0.125], 1.0, "M points", first)
    assert first["times"] == [0.5, 0.25, 0.3]
    assert (first["seconds"], first["rate"], first["n"]) == (0.25, 4.0, 5)
    assert (second["ratio"], second["against"]) == (2.0, "sum, N = 5: theirs")
    lines = measure.table([first, second, measure.absent("other", "pip install other")]).splitlines()
    assert lines[0].split() == ["what", "best", "median", "rate", "error", "against"]
    assert re.fullmatch(r"sum, N = 5: theirs +250\.00 ms +\+20% +4 M points/s +2\.0e-06", lines[1])
    assert re.fullmatch(r"sum, N = 5: ours +125\.00 ms +8 M points/s +2\.00 x theirs", lines[2])
    assert re.fullmatch(r"other +not measured: pip install other", lines[3])


@pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=str)
def test_functions_of_a_benchmark_are_there(benchmark):
    for path in (benchmark.measures, benchmark.prints, benchmark.draws):
        module, name = path.split(".")
        assert callable(getattr(importlib.import_module(f"parki.perfmodels.bench.{module}"), name))


def test_benchmarks_are_listed(capsys):
    assert cli.main(["bench", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(BENCHMARKS)
    assert lines[list(BENCHMARKS).index("threads")] == "threads           all methods, against threads (--only)"


@pytest.mark.parametrize(
    "name",
    but("variants", "ewald", of=["p2p", "p2g", "g2p", "fft", "variants", "ewald", "scaling", "split", "crowds"]),
)
def test_every_benchmark_runs(name, tmp_path, capsys):
    path = tmp_path / "record.json"
    assert command.main(asked(name, json=path)) == 0
    (record,) = json.loads(path.read_text())
    rows = [r for r in record["rows"] if "absent" not in r]
    assert rows
    printed = capsys.readouterr().out
    for r in record["rows"]:
        assert r["what"] in printed
    for r in rows:
        assert 0 < r["seconds"] == min(r["times"])
        assert {"n", "tolerance", "threads", "rate", "unit"} <= set(r)
    names = [(r["what"], r["n"], r["tolerance"], r["threads"]) for r in rows]
    assert len(set(names)) == len(names)


def test_errors_against_the_tolerance(monkeypatch):
    monkeypatch.setattr(sums, "TOLERANCES", [1e-3, 1e-6])
    monkeypatch.setattr(sums, "KERNELS", ["laplace", "stokes_sl"])
    rows = sums.tolerances(asked("tolerance", n=400), sums.spaces.get("Serial"))
    assert [r["tolerance"] for r in rows] == [1e-3, 1e-6] * 2
    assert all(0 < r["error"] < r["tolerance"] for r in rows)


def test_precisions_by_kernel_and_tolerance(monkeypatch):
    monkeypatch.setattr(sums, "KERNELS", ["laplace"])
    monkeypatch.setattr(sums, "LOOSE", [1e-3])
    double, single = sums.precisions(asked("precision", n=400), sums.spaces.get("Serial"))
    assert [double["what"], single["what"]] == [f"laplace, N = 400, 0.001, {name}" for name in ("double", "single")]
    assert single["against"] == double["what"]
    assert all(0 < r["error"] < r["tolerance"] == 1e-3 for r in (double, single))


def test_fmm3d_in_free_space():
    pytest.importorskip("fmm3dpy")
    rows = free.free_space(asked("free", n=400), sums.spaces.get("Serial"))
    assert len(rows) == 10
    for theirs, ours in zip(rows[::2], rows[1::2], strict=True):
        assert ours["against"] == theirs["what"]
        assert ours["error"] <= max(theirs["error"], 1e-11)


def test_records_tell_how_to_repeat_them(tmp_path, capsys):
    path = tmp_path / "record.json"
    given = asked("fft", n=200, json=path, threads=None, space=None, repeat=3, tolerance=1e-6)
    for _ in range(2):
        command.main(given)
    first, second = json.loads(path.read_text())
    assert first["command"] == "parki bench fft --n 200 --repeat 3 --tolerance 1e-06"
    assert first["asked"] == second["asked"]
    assert first["asked"]["threads"] >= 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", first["date"])
    assert first["versions"]["numpy"] == np.__version__
    assert {"parki", "scipy", "python", "compiler"} <= set(first["versions"])
    assert first["machine"]["cores"] >= 1
    assert first["machine"]["processor"]
    assert {len(r["times"]) for r in first["rows"]} == {3}
    assert len(first["yardstick"]) == 2
    assert min(first["yardstick"]) > 0


def test_the_exit_status_says_what_is_slower(tmp_path, capsys, monkeypatch):
    seconds = [1.0]
    monkeypatch.setattr(handwritten, "yardstick", lambda: [1e-3])
    monkeypatch.setattr(kernels, "p2p", lambda *_: [measure.row("loop", seconds * 3, 1.0, "G pairs")])
    path = tmp_path / "old.json"
    assert command.main(asked("p2p", json=path)) == 0
    assert command.main(asked("p2p", compare=path)) == 0
    seconds[0] = 2.0
    assert command.main(asked("p2p", compare=path)) == 1
    assert "1 of 1 rows slower beyond noise" in capsys.readouterr().out
    with pytest.raises(ValueError, match="no record of p2p with n 7"):
        command.main(asked("p2p", n=7, compare=path))


def test_files_are_looked_at_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "p2p", lambda *_: pytest.fail("measured"))
    path = tmp_path / "old.json"
    path.write_text("{}")
    for name in ("json", "compare"):
        with pytest.raises(ValueError, match="no list of records"):
            command.main(asked("p2p", **{name: path}))
    with pytest.raises(FileNotFoundError):
        command.main(asked("p2p", compare=tmp_path / "none.json"))


@pytest.mark.parametrize("kernel", handwritten.SCALAR)
def test_the_scalar_near_field_is_the_near_field(kernel):
    n, tolerance, crowd = 600, 1e-10, 40.0
    literal, (order, u), some = kernels.scalar_near(kernel, n, tolerance, crowd)
    literal()
    x, dens, normals = measure.cloud(n)
    options = {"box": (1, 1, 1), "tolerance": tolerance, "split": "gaussian", "execution_space": "Serial"}
    plan = kernels.api.plan(kernel, x, x, cell_size=crowd, **options)
    plan(*measure.strengths(kernel, dens, normals))
    made = plan.sums[1]
    found = made.placed[made.sum.near.result]
    near = np.empty_like(found)
    powers = Powers.of(plan.kernel.law, plan.problem.geometry.power, dens.reshape(1, -1, n), normals, len(near)).result
    near[:, plan.structure.points.targets.order] = np.ldexp(found, powers.reshape(-1, 1))
    assert some == len(u) == 60
    # The plain loop leaves out the share of the far field of a source at the target itself.
    own = np.atleast_2d(measure.strengths(kernel, dens, normals)[0])[: len(near), order]
    own = (1 if kernel == "laplace" else 2) * 2 * plan.parameters.xi / np.sqrt(np.pi) * own
    assert np.linalg.norm(u.T - own - near[:, order]) < 1e-8 * np.linalg.norm(u)


def test_numbers_of_particles_grow_by_factors_of_three():
    assert sums.numbers(500) == [500]
    assert sums.numbers(100_000) == [10_000, 30_000, 100_000]
    assert sums.numbers(2_000_000) == [10_000, 30_000, 100_000, 300_000, 1_000_000, 2_000_000]


def test_rates_are_compared_from_the_first_large_sum_on(monkeypatch):
    monkeypatch.setattr(sums, "numbers", lambda n: [100, 200, 400])
    monkeypatch.setattr(sums, "FLAT", 200)
    rows = sums.scaling(asked("scaling", n=400), sums.spaces.get("Serial"))
    assert [r["n"] for r in rows] == [100, 200, 400] * 3
    assert ["ratio" in r for r in rows] == [False, False, True] * 3
    assert all(rows[k + 2]["against"] == rows[k + 1]["what"] for k in (0, 3, 6))
