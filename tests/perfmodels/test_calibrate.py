"""Calibration by `parki calibrate`: costs from times, and the results that are stored, used or ignored."""

import argparse
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from parki import prediction
from parki.engine.run.spaces import Space
from parki.ewald import predict
from parki.ewald.choice import choose
from parki.ewald.choice.question import Question
from parki.perfmodels import machine, select
from parki.perfmodels.bench import calibrate, microbench
from parki.perfmodels.counts import clusters
from parki.perfmodels.machine import Costs, Machine

TRUE = Costs(near=3e-9, target=2e-7, fft=2e-8, spread=1.5e-9, gather=1.1e-9, sparse=0.1, single=0.55, single_fft=0.7)


@pytest.fixture(scope="module")
def tiny():
    """Return this host, measured for a very short time."""
    return calibrate.measure(0.05)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return the path of the stored calibration, which is apart from the kernels."""
    path = tmp_path / "machines" / "here.toml"
    monkeypatch.delenv("PARKI_CALIBRATION", raising=False)
    monkeypatch.setattr(machine, "stored", lambda: path)
    return path


def modelled(kernel, n, crowd, dtype, costs=TRUE):
    """Return a sum whose phases take the times of the model."""
    p = choose.parameters(
        Question(kernel, calibrate.CUBE, n, n, calibrate.TOLERANCE, dtype, cell_size=crowd, far=dtype), Costs()
    )
    points = float(math.prod(p.grid))
    domain = select.Domain(calibrate.CUBE)
    found = select.phases(select.ModelledSum(p.kernel, n, n, domain, p.itemsizes), p.rc, points, p.P, costs)
    seconds = {"p2p": found["near"], "p2g": found["spread"], "g2p": found["gather"]}
    seconds |= dict.fromkeys(("fft", "cnv", "ifft"), found["transform"] / 3)
    transforms = found["transform"] / points / (p.kernel.spread + p.kernel.result)
    given = {"crowd": domain.crowd(n, p.rc), "points": points, "transforms": transforms}
    return SimpleNamespace(p=p, n=n, seconds={name: float(t) for name, t in seconds.items()}, **given)


@pytest.mark.parametrize("costs", [TRUE, replace(TRUE, near=6e-9, lanes=4, sparse=0.3)], ids=["8 lanes", "4 lanes"])
def test_costs_are_those_that_make_the_times(costs):
    sums = {name: modelled(*given, costs) for name, given in calibrate.SUMS.items()}
    found = calibrate.fitted(sums, costs.lanes)
    assert found.near_overhead == Costs.near_overhead
    for name in ("near", "target", "fft", "spread", "gather", "sparse", "single", "single_fft", "lanes"):
        assert getattr(found, name) == pytest.approx(getattr(costs, name), rel=1e-6), name


def test_targets_cost_at_least_nothing():
    """Check times without a share of the targets, or with a negative share, as noise may give."""
    for share in (0.0, -1e-7):
        many, few = (modelled(*calibrate.SUMS[name], replace(TRUE, target=0.0)) for name in ("many", "few"))
        few.seconds["p2p"] += share * few.n
        near, target = calibrate.near_costs(many, few, 8)
        assert near == pytest.approx(TRUE.near)
        assert target == pytest.approx(0.0, abs=1e-15)


def test_a_measured_machine(tiny):
    generic = Machine.load("xeon")
    for dtype, rates in tiny.operations.items():
        assert rates.keys() == generic.operations[dtype].keys()
        assert all(1e5 < rate < 1e13 for rate in rates.values())
    assert tiny.bandwidth.keys() == generic.bandwidth.keys()
    assert tiny.bandwidth["dram_all"] >= tiny.bandwidth["dram"]
    assert tiny.reached.keys() == {*Machine.PHASES, *clusters.ASSUMED}
    assert all(share > 0 for share in tiny.reached.values())
    assert tiny.kind == "host"
    assert tiny.units >= 1
    for name in ("near", "fft", "spread", "gather", "single", "single_fft"):
        assert getattr(tiny.costs, name) > 0
    assert tiny.costs.lanes == tiny.lanes["float64"] == tiny.lanes["float32"] / 2


def test_it_is_stored_and_used(tiny, place, monkeypatch):
    serial = Space("Serial")
    assert prediction.costs(serial) == Costs()
    calibrate.store(tiny, place)
    assert [path.name for path in place.parent.iterdir()] == ["here.toml"]
    assert machine.calibrated() == tiny
    assert prediction.costs(serial) == Costs.of(Machine.load("host")) == tiny.costs
    assert prediction.costs(Space("GpuSim")) == Costs()
    monkeypatch.setenv("PARKI_CALIBRATION", "off")
    assert prediction.costs(serial) == Costs()
    monkeypatch.delenv("PARKI_CALIBRATION")
    monkeypatch.setattr(prediction, "built", lambda: "another compiler")
    assert prediction.costs(serial) == Costs()


@pytest.mark.parametrize(
    ("name", "wanted"), [(b"NVIDIA A100-SXM4-80GB", "a100"), (b"NVIDIA H200", "h200"), (b"Tesla V100", "h200")]
)
def test_a_gpu_has_the_costs_of_its_data_sheet(monkeypatch, name, wanted):
    runtime = SimpleNamespace(getDevice=lambda: 2, getDeviceProperties={2: {"name": name}}.get)
    monkeypatch.setattr(prediction.devices, "cupy", lambda: SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    assert prediction.costs(Space("Cuda")) == Costs.of(Machine.load(wanted))


def test_a_gpu_without_a_name(monkeypatch):
    monkeypatch.setattr(prediction.devices, "cupy", lambda: SimpleNamespace(cuda=None))
    assert prediction.costs(Space("HIP")) is prediction.H200


def test_what_kernels_are_built_for(monkeypatch):
    before = prediction.built()
    assert "\n" not in before
    monkeypatch.setenv("PARKI_VECTOR_BYTES", "16" if "PK_BYTES=16" not in before else "32")
    assert prediction.built() != before


def test_the_command(tiny, place, capsys, monkeypatch):
    monkeypatch.setattr(calibrate, "measure", lambda seconds: replace(tiny, source=f"{seconds} s"))
    asked = argparse.Namespace(seconds=3.0, forget=False, verbose=False)
    assert calibrate.main(asked) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in (tiny.name, "fma", "erfc", "dram_all", "near, ns", str(place)))
    assert machine.calibrated().source == "3.0 s"
    for word in ("removed", "nothing"):
        assert calibrate.main(argparse.Namespace(seconds=3.0, forget=True, verbose=False)) == 0
        assert capsys.readouterr().out.startswith(word)
        assert machine.calibrated() is None
    with pytest.raises(ValueError, match=r"seconds: found 0\.0"):
        calibrate.main(argparse.Namespace(seconds=0.0, forget=False, verbose=False))


def test_a_file_that_cannot_be_written(tiny, place, monkeypatch):
    calibrate.store(tiny, place)

    def refuse(*_):
        raise OSError("full")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(OSError, match="full"):
        calibrate.store(replace(tiny, name="later"), place)
    assert [path.name for path in place.parent.iterdir()] == ["here.toml"]
    assert machine.calibrated() == tiny


def test_threads_share_work_as_measured(tiny):
    made = replace(tiny, units=4, parallel=dict.fromkeys(Machine.PHASES, 0.7) | {"p2p": 1.0, "cnv": 0.4})
    assert predict.speedup("spread", Machine.load("xeon"), 4) == 4.0
    assert predict.speedup("near", made, 4) == pytest.approx(4.0)
    assert predict.speedup("spread", made, 4) == pytest.approx(2.8)
    assert predict.speedup("spread", made, 2) == pytest.approx(1.8)
    assert predict.speedup("transform", made, 4) == pytest.approx(2.4)
    assert predict.speedup("spread", made, 1) == 1.0


def test_the_best_of_all_turns_counts():
    planned = (0.0, 6e-4, 0.2, 0.2005, 0.4, 0.402)
    times = iter((*planned, 1.0, 1.008, 2.0, 2.002, 3.0, 3.006))
    seen = []
    probe = microbench.Probe(("it",), seen.append, 10.0, clock=lambda: next(times))
    probe.plan(1e-3)  # half a millisecond is enough
    assert seen == [1] * 3
    probe.turns = 4
    for _ in range(3):
        probe.once()
    assert seen == [1] * 3 + [4] * 3
    assert probe.rate == pytest.approx(10.0 / 5e-4)


def test_short_runs_are_repeated():
    now, seen = [0.0], []

    def run(turns):
        seen.append(turns)
        now[0] += 1e-6 * turns

    probe = microbench.Probe(("it",), run, 1.0, clock=lambda: now[0])
    probe.plan(1e-3)
    assert seen == [1] * 3 + [1000] * 3
    assert probe.rate == pytest.approx(1e6)


def test_operations_are_those_that_are_named():
    """Check the values of chains and arrays after their operations."""
    probes = {probe.name[1]: probe for probe in microbench.arithmetic("float64", calibrate.target().vector_bytes // 8)}
    assert probes.keys() == Machine.load("xeon").operations["float64"].keys()
    for name, probe in probes.items():
        data = probe.data
        probe.run(1)
        if name in microbench.ARRAYS:
            x, y = data[: microbench.LENGTH], data[microbench.LENGTH :]
            wanted = {"div": lambda v: 1 / v, "rsqrt": lambda v: v**-0.5, "pow": lambda v: v**1.7}
            f = wanted.get(name) or getattr(math, name)
            assert y[::37] == pytest.approx([f(v) for v in x[::37]], rel=1e-13), name


def test_cores_that_others_use():
    one = microbench.Probe(("fma",), print, 8.0, turns=5, seconds=1.0)
    every = microbench.everywhere(one, 4)
    assert (every.amount, every.turns) == (32.0, 5)
    for seconds, free in ((1.0, True), (1.1, True), (1.3, False)):
        every.seconds = seconds
        assert calibrate._free(one, every) is free


def test_speedups_of_phases():
    one = SimpleNamespace(seconds=dict.fromkeys(Machine.PHASES, 6.0))
    every = SimpleNamespace(seconds=dict.fromkeys(Machine.PHASES, 2.0) | {"p2p": 1.4, "cnv": 9.0})
    found = calibrate._parallel(one, every, 4)
    assert (found["p2p"], found["fft"], found["cnv"]) == (1.0, 0.75, 0.25)


def test_caches():
    sizes = microbench.caches()
    assert 4096 <= sizes["l1"] < sizes["l2"] < sizes["l3"]


def test_all_at_once():
    seen = []
    microbench.together([seen.append, lambda turns: seen.append(-turns)], 3)
    assert sorted(seen) == [-3, 3]
    assert calibrate._bandwidths({("bandwidth", "dram"): 2.0, ("fft", "float64"): 1.0})["dram_all"] == 2.0


@pytest.mark.parametrize("paused", [0, 1, 2])
def test_a_pause_of_the_system_is_no_measurement(paused):
    """Use a clock on which a turn lasts a microsecond, except for one of the first runs, which lasts a second."""
    now, runs = [0.0], []

    def run(turns):
        runs.append(turns)
        now[0] += turns * 1e-6 + (1.0 if len(runs) == paused + 1 else 0.0)

    probe = microbench.Probe(("one",), run, 5.0, clock=lambda: now[0])
    probe.plan(2e-3)
    assert 1000 <= probe.turns <= 4000
    assert probe.rate == pytest.approx(5e6)
