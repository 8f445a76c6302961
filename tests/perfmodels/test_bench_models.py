"""Benchmarks `model`, `selection` and `roofline`: problems, sweeps, shares and tables; times are not judged."""

import argparse
import json
from dataclasses import replace

import numpy as np
import pytest

from parki.engine.run.spaces import Space
from parki.ewald import predict, stokes_comb
from parki.ewald.stages import work
from parki.perfmodels import roofline
from parki.perfmodels.bench import command, kernels, limits, models
from parki.perfmodels.bench.measure import row
from parki.perfmodels.bench.models import PROBLEMS, ModelProblem, TimedPlan
from parki.perfmodels.machine import Machine

ONE = Space("Serial")
N, PARTS = 240, ("near", "transform", "spread", "gather", "whole")


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Use a machine with known rates, and no calibration."""
    xeon = Machine.load("xeon")
    monkeypatch.setattr(models.calibrate, "measure", lambda seconds: xeon)
    return xeon


@pytest.fixture
def loose(monkeypatch):
    """Use the same problems at about one tolerance, so that few kernels are compiled, and sweeps of two cutoffs."""
    found = tuple(replace(problem, tolerance=1e-3 * (1 + 0.001 * k)) for k, problem in enumerate(PROBLEMS))
    monkeypatch.setattr(models, "PROBLEMS", found)
    monkeypatch.setattr(models, "FACTORS", np.array([0.9]))
    monkeypatch.setattr(models, "WEIGHTS", (1.0,))
    return found


def asked(name, **others):
    given = {"n": N, "tolerance": 1e-3, "repeat": 2, "threads": 1, "space": "Serial"}
    return argparse.Namespace(name=name, **(given | {"json": None, "compare": None, "plot": None} | others))


def ran(name, folder):
    """Run a benchmark and return the recorded rows."""
    path = folder / "record.json"
    assert command.main(asked(name, json=path)) == 0
    (record,) = json.loads(path.read_text())
    for r in record["rows"]:
        assert 0 < r["seconds"] == min(r["times"])
        assert len(r["times"]) == 2
        assert {"what", "n", "tolerance", "threads", "rate", "unit"} <= set(r)
        assert r["threads"] == 1
    names = [r["what"] for r in record["rows"]]
    assert len(set(names)) == len(names)
    return record["rows"]


def test_problems_are_twelve_of_all_kinds():
    names = [problem.name(30_000) for problem in PROBLEMS]
    assert len(set(names)) == 12
    assert "stokes_sl, 30,000, 1e-07, periodic in x" in names
    assert "laplace, 30,000, 0.0001, float32" in names
    for kernel in ("laplace", "stokes_sl", "stokes_comb"):
        some = [problem for problem in PROBLEMS if problem.kernel == kernel]
        assert {problem.tolerance for problem in some} == {1e-4, 1e-7, 1e-10}
        assert {problem.n(30_000) for problem in some} == {10_000, 30_000}
    assert {problem.periodicity for problem in PROBLEMS} == {1, 3}


def test_a_problem_is_made_as_it_says():
    it = models.made(ModelProblem("laplace", 0.5, 1e-3, 1, "float32", 0.5), 400, ONE)
    p, x = it.plan.parameters, it.plan.structure.points.originals()[1]
    assert (it.plan.n_sources, p.dtype, p.periodicity, p.tolerance) == (200, "float32", 1, 1e-3)
    assert x[0].max() > 0.9
    assert 0.45 < x[2].max() - x[2].min() <= 0.5


def test_a_sum_is_the_plans_and_counts_its_phases():
    it = models.made(ModelProblem("stokes_comb", 1, 1e-3), N, ONE)
    ticks = iter(range(100))
    timed = replace(it, clock=lambda: next(ticks))
    assert timed.once() == sum(timed.runs[0].values())
    assert timed.once(sorting=False) < timed.runs[0]["p2p"] + sum(timed.runs[1].values())
    assert [timed.runs[k]["p2p"] for k in (0, 1)] == [3, 1]  # with both steps of packing, and without
    assert timed.times(("p2p", "p2g")) == [timed.runs[1]["p2p"] + timed.runs[1]["p2g"]]
    plan, (dens, normals) = it.plan, it.given
    x = plan.structure.points.originals()[1]
    expected = stokes_comb(x, x, dens, normals, box=(1, 1, 1), tolerance=1e-3, execution_space=ONE)
    kept = []
    run = plan.sums[1].run
    plan.sums[1].run = lambda dens, normals, out, times: (run(dens, normals, out, times), kept.append(out.copy()))
    it.once()
    np.testing.assert_allclose(kept[0][0], expected, rtol=1e-12, atol=1e-12 * abs(expected).max())


def test_predictions_of_all_problems(loose, tmp_path, capsys):
    rows = ran("model", tmp_path)
    assert [(r["problem"], r["part"]) for r in rows] == [(p.name(N), part) for p in loose for part in PARTS]
    for r in rows:
        assert r["predicted"] > 0
        assert r["roofline"] > 0
        assert r["ratio"] == pytest.approx(r["predicted"] / r["seconds"])
    for first in range(0, 60, 5):
        *parts, whole = rows[first : first + 5]
        assert whole["predicted"] == pytest.approx(sum(r["predicted"] for r in parts))
        assert whole["times"] == pytest.approx([sum(times) for times in zip(*(r["times"] for r in parts), strict=True)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 12 + 1 + 2
    assert [line.split("   ")[0] for line in lines[1:13]] == [p.name(N) for p in loose]


def test_predictions_that_are_close_are_counted():
    rows = [
        row(f"a, {part}", [1.0], 1.0, "M", problem="a", part=part, ratio=ratio, against="", roofline=1.0)
        for part, ratio in zip(PARTS, (1.24, 0.76, 1.26, 0.74, 1.3), strict=True)
    ]
    *_, costs, limits = models.predictions_table(rows).splitlines()
    assert costs.split() == "costs 2 of 4 phases, 0 of 1 sums (median 1.30)".split()
    assert limits.split() == "roofline 4 of 4 phases, 1 of 1 sums (median 1.00)".split()


def test_selections_of_all_problems(loose, tmp_path, capsys):
    rows = ran("selection", tmp_path)
    assert [r["what"] for r in rows[1::2]] == [f"{p.name(N)}: chosen" for p in loose]
    for best, chosen in zip(rows[::2], rows[1::2], strict=True):
        assert best["problem"] == chosen["problem"]
        assert chosen["tried"] >= 2
        assert chosen["ratio"] == pytest.approx(best["seconds"] / chosen["seconds"])
        assert 0 < chosen["ratio"] <= 1
        assert {"rc", "P", "grid"} <= set(best)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 12 + 1
    close = sum(1 / r["ratio"] <= 1.10 for r in rows[1::2])
    assert lines[-1].startswith(f"{close} of 12 within 10% of the best")


def test_a_sweep_goes_around_the_choice():
    plan = models.made(ModelProblem("laplace", 1, 1e-4), 2000, ONE).plan
    found, chosen = models.sweep(plan), plan.parameters
    assert chosen not in found
    assert len({(p.rc, p.P, p.grid) for p in found}) == len(found) > 9
    assert min(p.rc for p in found) < 0.7 * chosen.rc
    assert max(p.rc for p in found) > 1.5 * chosen.rc
    near = {p.P for p in found if abs(p.rc - chosen.rc) < 0.02 * chosen.rc} | {chosen.P}
    assert len(near) > 1  # other windows at about the same cutoff
    assert {(p.tolerance, p.kernel, p.dtype) for p in found} == {(1e-4, chosen.kernel, "float64")}


def test_shares_of_the_roofline(known, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(limits, "LIMITED", ())
    rows = ran("roofline", tmp_path)
    assert [(r["kernel"], r["phase"]) for r in rows] == [
        (kernel, phase) for kernel in ("laplace", "stokes_sl", "stokes_comb") for phase in Machine.PHASES
    ]
    for r in rows:
        assert r["ratio"] == pytest.approx(r["limit"] / r["seconds"])
        assert min(r["ratio"], r["flops"], r["bandwidth"]) > 0
    it = models.made(ModelProblem("laplace", 1, 1e-3), N, ONE)
    plan = it.plan
    counts = work.count(
        plan.parameters, plan.chosen.variants, plan.structure.points.targets, plan.structure.points.sources
    ).counts["p2p"]
    limit = roofline.time(counts, known)
    assert (rows[0]["limit"], rows[0]["by"]) == (limit.seconds, limit.by)
    assert rows[0]["flops"] == pytest.approx(counts.flops / rows[0]["seconds"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 18
    assert lines[1].endswith("wanted 70%")


def test_a_limit_is_of_the_threads_there_are():
    it = models.made(ModelProblem("laplace", 1, 1e-3), N, ONE)
    pair = replace(Machine.load("xeon"), units=2, parallel={"p2p": 0.75})
    counts = predict.counts(it.plan.parameters, it.plan.chosen.variants, (N, N), pair)["p2p"]
    one = models.bound(it.plan, "p2p", counts, pair).seconds
    it.plan.space = Space("OpenMP", threads=2)
    two = models.bound(it.plan, "p2p", counts, pair).seconds
    launch = counts.launches * pair.launch
    assert two - launch == pytest.approx((one - launch) / 2 / 0.75)
    assert isinstance(it, TimedPlan)


def test_one_core_unless_threads_are_asked_for(known):
    both = Space("OpenMP", threads=2)
    assert models.host(asked("model", threads=None), both) == (ONE, known)
    assert models.host(asked("model", threads=2), both) == (both, known)
    with pytest.raises(ValueError, match="space: found GpuSim, expected one of the host"):
        models.host(asked("model"), Space("GpuSim"))


def test_fewer_particles_where_no_number_is_asked_for(monkeypatch, capsys):
    seen = []

    def record(asked, space):
        seen.append(asked.n)
        return [row("a", [1.0], 1.0, "M")]

    monkeypatch.setattr(models, "selections", record)
    monkeypatch.setattr(kernels, "transforms", record)
    monkeypatch.setattr(models, "selections_table", lambda rows: "a table of its own")
    for name, n in (("selection", None), ("fft", None), ("selection", 500)):
        command.main(asked(name, n=n))
    assert seen == [30_000, 100_000, 500]
    assert capsys.readouterr().out.count("a table of its own") == 2
