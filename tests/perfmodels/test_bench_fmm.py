"""Benchmark `parki bench fmm`, related ones, and `parki model fmm`: rows, tables, counts; times are not judged."""

import json
import re

import numpy as np
import pytest

from parki import cli, fmm, samples
from parki.engine.run.spaces import Space
from parki.fmm import balance, work
from parki.fmm.report import PHASES
from parki.perfmodels.bench import fmm as bench_fmm
from parki.perfmodels.bench import free, models, sweeps
from parki.perfmodels.bench.fmm import CASES, PEERS, FmmCase, Peer
from parki.perfmodels.counts import fmm as counted
from parki.perfmodels.machine import Machine
from parki.perfmodels.models import fmm as model_fmm
from tests.perfmodels import recording

N, ONE, MORE = 1500, Space("Serial"), 3000
FEW = (FmmCase("coulomb", 4), FmmCase("coulomb", 4, points="sphere"))
ROW = re.compile(
    r"^([\w, ]+?) +[\d.e+]+ +[\d.e+]+ +[\d.e+-]+ +\d+% +\w+ +([\d.e-]+) +(\d+)% +([\d.e-]+)$", re.MULTILINE
)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Use two cases, a short sweep, and a machine with known rates."""
    for cases in ("CASES", "SURFACES"):
        monkeypatch.setattr(bench_fmm, cases, FEW)
    monkeypatch.setattr(bench_fmm, "SWEPT", FEW)
    monkeypatch.setattr(bench_fmm, "SIZES", (0.5, 1.0))
    monkeypatch.setattr(sweeps, "FINALISTS", 1)
    monkeypatch.setattr(models.calibrate, "measure", lambda seconds: Machine.load("xeon"))
    monkeypatch.setenv("PARKI_CALIBRATION", "off")


@pytest.fixture(scope="module")
def plan():
    x = samples.uniform(MORE, seed=1)
    return fmm.plan("coulomb", x, x, order=4, leaf_size=20, execution_space="Serial")


def test_cases_are_those_that_other_codes_are_known_for():
    assert {case for case, _ in PEERS} == {case for case in CASES if case.method == "kifmm"}
    assert len({str(case) for case in CASES}) == len(CASES)
    assert {n for _, n in PEERS} == {100_000, 1_000_000}


def test_sums_by_phases(tmp_path, capsys, monkeypatch):
    known = (Peer("One", 1e-3, 0.5, 0.25), Peer("Two", 1e-4, 0.1))
    monkeypatch.setitem(bench_fmm.PEERS, (FEW[0], N), known)
    rows = recording.ran("fmm", N, tmp_path)
    assert [r["what"] for r in rows] == [f"{case}: {what}" for case in FEW for what in ("whole call", "plan(charges)")]
    for call, again in zip(rows[::2], rows[1::2], strict=True):
        assert tuple(call["phases"]) == tuple(PHASES)
        assert set(again["phases"]) == set(PHASES) - {"tree", "lists", "prepare"}
        assert 0 < sum(call["phases"].values()) <= call["seconds"]
        assert 0 < call["error"] < 1e-2
        assert call["memory"] > 8 * 4 * N
        assert call["pairs"]["near"] > N
    call, again, other = rows[:3]
    assert call["ratio"] == pytest.approx(0.5 * 4.6e9 / call["loop"] / call["seconds"])
    assert again["ratio"] == pytest.approx(0.25 * 4.6e9 / again["loop"] / again["seconds"])
    assert [peer["name"] for peer in call["peers"]] == ["One", "Two"]
    assert [peer["name"] for peer in again["peers"]] == ["One"]
    assert "ratio" not in other
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:3]] == [str(case) for case in FEW]
    assert f"One {call['ratio']:.2f}, {again['ratio']:.2f} (1.0e-03); Two " in lines[1]


def test_others_are_known_for_one_core():
    case = FmmCase("yukawa", 7)
    found = bench_fmm._carried(case, 100_000, 1, "whole call", 0.1)
    assert [(peer["name"], round(peer["ratio"], 6)) for peer in found] == [("exafmm-t", 7.7), ("DMK", 5.2)]
    assert bench_fmm._carried(case, 100_000, 2, "whole call", 0.1) == []
    assert bench_fmm._carried(case, 100_000, 1, "plan(charges)", 0.1) == []


def test_strengths_are_those_of_the_kernel():
    assert FmmCase("stokes_sl", 5).given(50)[1].shape == (3, 50)
    x, q = FmmCase("coulomb", 4, points="sphere").given(50)
    assert np.linalg.norm(x, axis=0) == pytest.approx(np.ones(50))
    assert q.shape == (50,)
    assert q.min() < 0 < q.max()


def test_sizes_of_leaves(tmp_path, capsys):
    known = balance.leaves
    rows = recording.ran("fmm-leaves", N, tmp_path)
    assert balance.leaves is known
    for best, chosen, case in zip(rows[::2], rows[1::2], FEW, strict=True):
        x, _ = case.given(N)
        p = case.plan(x, ONE).parameters
        size = round(N / p.fill**3) if p.fill else p.leaf_size
        assert chosen["leaf"] == size
        assert best["leaf"] in (size, round(0.5 * size))
        assert chosen["tried"] == 2
        assert 0 < chosen["ratio"] <= 1
    close = sum(1 / r["ratio"] <= 1.10 for r in rows[1::2])
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"{close} of 2 within 10% of the best")


def test_plans_within_a_sweep_have_other_leaves():
    x = samples.uniform(N, seed=1)
    sizes = []
    for wished in (20, 80):
        with bench_fmm._wishing(wished):
            sizes.append(FEW[0].plan(x, ONE).parameters.leaf_size)
    assert 0 < sizes[0] < sizes[1]


def test_predictions(tmp_path, capsys):
    rows = recording.ran("fmm-model", N, tmp_path)
    for case in FEW:
        *parts, whole = [r for r in rows if r["case"] == str(case)]
        names = [r["part"] for r in parts]
        assert names == [name for name in counted.PHASES if name in names]
        assert {"tree", "lists", "upward", "downward", "near"} <= set(names)
        assert whole["predicted"] == pytest.approx(sum(r["predicted"] for r in parts))
        assert whole["ratio"] == pytest.approx(whole["predicted"] / whole["seconds"])
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(FEW) + 2


@pytest.mark.parametrize("kernel", ["coulomb", "stokes_sl"])
def test_beside_fmm3d(kernel, monkeypatch):
    pytest.importorskip("fmm3dpy")
    monkeypatch.setattr(free, "ASKED", (1e-2,))
    monkeypatch.setattr(bench_fmm, "KERNELS", (kernel,))
    theirs, ours = bench_fmm.against_fmm(recording.asked("fmm-free", 400, repeat=1), ONE)
    assert theirs["what"].startswith(f"{kernel}, N = 400")
    assert ours["against"] == theirs["what"]
    assert ours["error"] <= max(theirs["error"], 1e-11)


# Counts ---------------------------------------------------------------------------------------------------------------
def test_counts_are_the_sums_over_lists(plan):
    found, numbers = work.counts(plan.structure, plan.parameters, Machine.load("xeon")), work.sizes(plan.structure)
    tree, lists, m = plan.structure.tree, plan.structure.lists, 56
    assert tuple(found) == tuple(counted.STEPS)
    deep = tree.nodes.is_leaf & (tree.nodes.level >= 2)
    assert found["p2m"].operations["rsqrt"] == pytest.approx(m * tree.nodes.sources.count[deep].sum())
    assert found["l2p"].operations["rsqrt"] == pytest.approx(m * tree.nodes.targets.count[deep].sum())
    assert found["p2p"].operations["rsqrt"] == pytest.approx(plan.walltime.pairs["near"])
    (level,) = numbers.translation_levels
    assert level.pairs == len(lists.v_t)
    assert found["m2l"].flops == pytest.approx(level.boxes * 512 * (4 * 7 + 3 * 49) * level.pairs)
    assert sum(level.boxes for level in numbers.levels) == tree.nodes.n - tree.nodes.level_begin[2]


def test_counts_of_points_that_are_crowded():
    x = samples.plummer(MORE, seed=1)
    plan = fmm.plan("coulomb", x, x, order=4, leaf_size=80, execution_space="Serial")
    found = work.counts(plan.structure, plan.parameters, Machine.load("xeon"))
    uneven = [found[step].operations["rsqrt"] for step in ("m2p", "p2l")]
    assert min(uneven) > 0
    assert sum(uneven) == pytest.approx(plan.walltime.pairs["p2l_m2p"])
    assert found["p2p"].operations["rsqrt"] == pytest.approx(plan.walltime.pairs["near"])


def test_dense_steps_are_the_matrices_of_all_boxes(plan):
    """Check one fused operation per matrix entry and box; tiles are filled up to 8 rows, and octets to pairs."""
    found, numbers = work.counts(plan.structure, plan.parameters, Machine.load("xeon")), work.sizes(plan.structure)
    for step, ways in (("m2m", ("up", "to_parent")), ("l2l", ("down", "to_children"))):
        solve, further = (sum(8 * one.turns for one in numbers.matrices[way]) for way in ways)
        least = sum(level.boxes * (solve + level.inner * further) for level in numbers.levels)
        assert 1.0 <= found[step].operations["fma"] / least < 1.6


def test_transforms_are_those_of_the_text(plan):
    """Compare with 4 p⁴ + 8 p³ F + 8 p² F² operations per box and direction, if all parts are transformed plainly."""
    found = work.counts(plan.structure, plan.parameters, Machine.load("xeon"))["transforms"]
    (level,), f = work.sizes(plan.structure).translation_levels, 7
    plainly = (4 * 4**4 + 8 * 4**3 * f + 8 * 4**2 * f**2) * 8 * level.boxes * (level.sources + level.targets)
    assert 0.3 < found.flops / plainly < 1.0


def test_plans_without_expansions_have_a_near_field_alone():
    x = samples.uniform(100, seed=1)
    near = fmm.plan("coulomb", x, x, order=4, leaf_size=200, execution_space="Serial")
    machine = Machine.load("xeon")
    found = counted.predict(work.counts(near.structure, near.parameters, machine), machine, units=1)
    assert {name for name, bound in found.items() if bound.seconds} <= {"tree", "lists", "p2p"}
    assert counted.by_phase(found)["near"] == found["p2p"].seconds > 0
    other = fmm.plan("coulomb", x, x, order=4, method="chebyshev", execution_space="Serial")
    with pytest.raises(ValueError, match="expected one of method 'kifmm'"):
        work.counts(other.structure, other.parameters, Machine.load("xeon"))


def test_kernels_of_a_length_have_translations_by_level():
    x = samples.uniform(MORE, seed=1)
    made = fmm.plan("yukawa", x, x, order=4, leaf_size=5, kappa=0.5, execution_space="Serial")
    levels = work.sizes(made.structure).translation_levels
    assert len(levels) == made.structure.tree.nodes.depth - 1 > 1
    assert sum(one.pairs for one in levels) == len(made.structure.lists.v_t)


# parki model fmm ------------------------------------------------------------------------------------------------------
GIVEN = ("--n", str(MORE), "--order", "4")


@pytest.mark.parametrize("device", ["h200", "mi300x", "host"])
def test_table(capsys, device):
    assert cli.main(["model", "fmm", *GIVEN, "--device", device]) == 0
    text = capsys.readouterr().out
    assert "coulomb, kifmm, N = 3,000, float64" in text
    rows = ROW.findall(text)
    assert {"octree", "lists", "P2M", "M2L, products", "P2P"} <= {row[0] for row in rows}
    total = float(re.search(r"^total +([\d.e-]+)$", text, re.MULTILINE).group(1))
    assert total == pytest.approx(sum(float(row[3]) for row in rows), rel=2e-3)


def test_a_record(tmp_path, capsys):
    path = tmp_path / "model.json"
    assert cli.main(["model", "fmm", *GIVEN, "--device", "h200", "--dtype", "float32", "--json", str(path)]) == 0
    found = json.loads(path.read_text("utf-8"))
    assert found["seconds"] == pytest.approx(sum(found["phases"].values()))
    assert found["seconds"] == pytest.approx(sum(step["seconds"] for step in found["steps"].values()))
    assert found["dtype"] == "float32"
    assert f"{1e3 * found['seconds']:.4g}" in capsys.readouterr().out


def test_more_cores_take_less_time_and_machines_differ(plan):
    host, device = Machine.load("xeon"), Machine.load("h200")
    one, all_ = (model_fmm.predict(plan, host, units) for units in (1, None))
    assert all_["p2p"].bound.seconds < 0.5 * one["p2p"].bound.seconds
    assert model_fmm.predict(plan, device)["p2p"].bound.seconds < all_["p2p"].bound.seconds
    with pytest.raises(ValueError, match="threads: found 1000"):
        model_fmm.predict(plan, host, 1000)


@pytest.mark.parametrize(
    ("what", "more", "says"),
    [
        ("fmm", ("--rc", "0.1"), "--rc: found with fmm"),
        ("fmm", ("--theta", "0.5"), "--theta: found with fmm, expected with treecode"),
        ("fmm", ("--periodicity", "3"), "--periodicity: found 3"),
        ("fmm", ("--tolerance", "1e-3", "--order", "4"), "tolerance was given with order"),
        ("treecode", ("--order", "4"), "--order: found with treecode"),
        ("ewald", ("--order", "4"), "--order: found with ewald, expected with fmm"),
    ],
)
def test_options_of_the_other_kind_are_refused(capsys, what, more, says):
    assert cli.main(["model", what, "--n", "3000", "--device", "h200", *more]) == 2
    assert says in capsys.readouterr().err


def test_the_black_box_method_is_measured_too():
    case = FmmCase("coulomb", 3, method="chebyshev")
    assert str(case) == "coulomb, order 3, chebyshev"
    plan = case.plan(case.given(N)[0], ONE)
    assert (plan.method.name, plan.parameters.order) == ("chebyshev", 3)
