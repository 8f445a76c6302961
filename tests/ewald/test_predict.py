"""Predicted time of a sum: one model for plans and for `parki model ewald`, threads, crowded points, GPUs."""

import json
from dataclasses import replace

import pytest

import parki
from parki import cli, prediction
from parki.engine import Space
from parki.ewald import predict
from parki.ewald.choice import choose, variants
from parki.ewald.choice.question import Question
from parki.ewald.stages import work
from parki.perfmodels import machine as machines
from parki.perfmodels.machine import Costs, Machine
from parki.perfmodels.models import ewald

CUBE = (1.0, 1.0, 1.0)
N = 3000
MEASURED = replace(
    Machine.load("xeon"),
    units=4,
    parallel=dict.fromkeys(Machine.PHASES, 0.8) | {"p2p": 0.9, "cnv": 0.5},
    costs=Costs(near=2e-9, fft=2e-8, spread=1.1e-9, gather=0.9e-9, lanes=4),
)


@pytest.fixture(params=["generic", "measured"])
def host(request, monkeypatch, tmp_path):
    """Use a host that was not calibrated, and one that was."""
    monkeypatch.delenv("PARKI_CALIBRATION", raising=False)
    monkeypatch.setattr(machines, "stored", lambda: tmp_path / "here.toml")
    if request.param == "measured":
        (tmp_path / "here.toml").write_text(f"# {prediction.built()}\n{MEASURED.text()}", "utf-8")


def question(kernel, periodicity=3, dtype="float64", **more):
    return Question(kernel, CUBE, N, N, 1e-5, dtype, periodicity=periodicity, **more)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("kernel", "periodicity"), [("laplace", 3), ("stokes_comb", 1), ("laplace_grad", 0)])
def test_plans_and_the_command_give_the_same_times(kernel, periodicity, threads, host, rng, tmp_path):
    x, space = rng.random((3, N)), Space("OpenMP", threads)
    given = {"box": CUBE, "tolerance": 1e-5, "periodicity": periodicity, "execution_space": space}
    plan = parki.ewald.plan(kernel, x, x, **given)
    modelled = ewald.predict(question(kernel, periodicity), Machine.load("host"), threads)
    found = plan.predict()
    assert modelled.parameters == plan.chosen.parameters
    assert dict(modelled.parts) == found.phases
    assert modelled.seconds == found.seconds
    path = tmp_path / "model.json"
    command = ["model", "ewald", "--kernel", kernel, "--n", str(N), "--tolerance", "1e-5", "--json", str(path)]
    assert cli.main([*command, "--periodicity", str(periodicity), "--threads", str(threads)]) == 0
    written = json.loads(path.read_text("utf-8"))
    assert written["seconds"] == found.seconds
    for part, names in predict.PARTS.items():
        seconds = [written["phases"][name]["seconds"] for name in names]
        assert seconds == [found.phases[part]] or sum(seconds) == pytest.approx(found.phases[part], rel=1e-14)


@pytest.mark.parametrize(("device", "name", "space"), [("h100", "NVIDIA H100 PCIe", "Cuda"), ("h200", "", "HIP")])
def test_plans_and_the_command_give_the_same_times_on_a_gpu(device, name, space, monkeypatch):
    monkeypatch.setattr(prediction, "device_name", lambda: name)
    space, there = Space(space), Machine.load(device)
    asked = question("stokes_sl", space=space, far="float64")
    modelled = ewald.predict(asked, there)
    p, v = choose.parameters(asked), variants.choose(Space("Cuda"), "float64")
    found = predict.predict(p, v, (N, N), space, 5)
    assert modelled.parameters == p
    assert dict(modelled.parts) == found.phases
    assert (modelled.seconds, found.memory) == (found.seconds, 5)
    for phase, counts in predict.counts(p, v, (N, N), there).items():
        phase_at_limit = predict.by_limit(counts, there, "float64", 1, modelled.phases[phase].share)
        assert modelled.phases[phase].bound == phase_at_limit.bound


def test_phases_of_a_part_share_its_measured_costs():
    asked = question("stokes_sl")
    p, v = choose.parameters(asked), variants.choose(Space("Serial"), "float64")
    parts = predict.seconds(p, v, (N, N), MEASURED, 2)
    again, phases = predict.parts_and_phases(p, v, (N, N), MEASURED, 2)
    limits = predict.by_limits(p, v, (N, N), MEASURED, 2)
    assert again == parts
    assert parts["near"] == phases["p2p"].bound.seconds
    assert parts["transform"] == pytest.approx(sum(phases[name].bound.seconds for name in ("fft", "cnv", "ifft")))
    ratios = [phases[name].bound.seconds / limits[name].bound.seconds for name in ("fft", "cnv", "ifft")]
    assert ratios == pytest.approx([ratios[0]] * 3)
    for name, phase in phases.items():
        assert (phase.counts, phase.bound.by) == (limits[name].counts, limits[name].bound.by)
        assert phase.share * phase.bound.seconds == pytest.approx(limits[name].share * limits[name].bound.seconds)
    one = predict.seconds(p, v, (N, N), MEASURED, 1)
    assert one["near"] / parts["near"] == pytest.approx(2 * (1 - 0.1 / 3))


@pytest.mark.parametrize("name", ["xeon", "h200"])
def test_without_points_a_sum_takes_no_time(name):
    p, v = choose.parameters(question("laplace")), variants.choose(Space("Serial"), "float64")
    for n in ((0, 5), (5, 0)):
        assert predict.seconds(p, v, n, Machine.load(name), 1) == dict.fromkeys(predict.PARTS, 0.0)


@pytest.mark.parametrize("name", ["xeon", "h200"])
def test_crowded_points_have_more_pairs(name):
    p, v = choose.parameters(question("laplace")), variants.choose(Space("Cuda"), "float64")
    even, crowded = (predict.seconds(p, v, (N, N), Machine.load(name), 1, c) for c in ((), (2.0, 4.0, 4.0)))
    assert 1.2 * even["near"] < crowded["near"] < 5 * even["near"]
    assert predict.seconds(p, v, (N, N), Machine.load(name), 1, (1.0, 1.0)) == even


@pytest.mark.parametrize("filled", [0.5, 0.25])
def test_pairs_of_crowded_points_are_counted_without_them(filled, rng):
    x = rng.random((3, 20_000)) * [[1.0], [1.0], [filled]]
    plan = parki.ewald.plan("laplace", x, x, box=CUBE, tolerance=1e-5, execution_space="Serial")
    chosen, points = plan.chosen, plan.structure.points
    counted = work.count(chosen.parameters, chosen.variants, points.targets, points.sources)
    found = work.modelled(chosen.parameters, chosen.variants, 20_000, 20_000, crowding=chosen.question.crowding)
    assert found.pairs == pytest.approx(counted.pairs, rel=0.25)
    even = work.modelled(chosen.parameters, chosen.variants, 20_000, 20_000)
    assert even.pairs < 1.5 * filled * counted.pairs  # lists of few sources waste more lanes
    assert found.counts["p2p"].operations["rsqrt"] == pytest.approx(counted.counts["p2p"].operations["rsqrt"], rel=0.25)
