"""Seconds of tasks from the models, and `parki model fmm --schedule`: counts, printed tables, files and refusals."""

import argparse
import dataclasses
import json

import numpy as np
import pytest

from parki import cli, fmm, samples
from parki.fmm import work
from parki.perfmodels import tasks
from parki.perfmodels.counts import fmm as fmm_counts
from parki.perfmodels.machine import Machine
from parki.perfmodels.models import fmm as fmm_model
from parki.perfmodels.models import tasks as tasks_model
from parki.perfmodels.tasks import UnitWork
from parki.tasks import units
from parki.tasks.cut import CutSteps, Regions
from parki.tasks.durations import Durations
from parki.tasks.graph import Graph, IntLists
from parki.tasks.node import Node
from parki.tasks.trace import Trace
from tests.tasks.uniform import Cut, Leaves

N = 20000


@pytest.fixture(scope="module")
def plan():
    x = samples.uniform(N, seed=1)
    return fmm.plan("coulomb", x, x, order=4, execution_space="Serial")


@pytest.fixture(scope="module")
def graph():
    """Return the tasks of a sum over N points, in a tree with one level of leaves."""
    return Cut(Leaves.cube(N, 3), 4, 16).graph()


@pytest.fixture(scope="module")
def parts(graph):
    """Return the same tasks as tasks of a list of steps, each of which may run anywhere."""
    n, none = len(graph), np.zeros(0, np.int64)
    regions = Regions([], none, none, none, none, none)
    ends = np.arange(n + 1, dtype=np.int32)
    calls = ends[:-1], np.zeros(n, np.int32), np.ones(n, np.int32)
    return CutSteps(graph, regions, ends, *calls, np.zeros(n, bool)), np.zeros(n, bool)


def side(plan, name, units):
    machine = Machine.load(name)
    return UnitWork(machine, work.counts(plan.structure, plan.parameters, machine), units)


def seconds_of(graph, seconds):
    return dict(zip(graph.kinds, np.bincount(graph.kind, seconds, len(graph.kinds)), strict=True))


@pytest.mark.parametrize(("name", "units"), [("xeon", 1), ("xeon", 16), ("h200", 2)])
def test_tasks_take_as_long_as_the_steps(plan, graph, name, units):
    some = side(plan, name, units)
    together = units if name == "xeon" else 1
    bounds = fmm_counts.predict(some.counts, some.machine, "float64", together)
    found = seconds_of(graph, some.seconds(graph, "float64"))
    kinds = {kind: step for kind, step in tasks.STEPS.items() if kind in found}
    assert {"P2M", "M2L", "P2P"} <= {kind for kind, seconds in found.items() if seconds}
    for kind, step in kinds.items():
        body = bounds[step].seconds - bounds[step].parts["launch"]
        present = (graph.kind == graph.kinds.index(kind)).any()
        assert found[kind] == pytest.approx(together * body if present else 0.0)


def test_transforms_are_shared_by_both_ways(plan, graph):
    both = dataclasses.replace(graph, kinds=[{"L2P": "IFFT"}.get(name, name) for name in graph.kinds])
    some = side(plan, "xeon", 4)
    one, halves = (seconds_of(g, some.seconds(g, "float64")) for g in (graph, both))
    assert [halves["FFT"], halves["IFFT"]] == pytest.approx([one["FFT"] / 2] * 2)


def test_cores_beyond_a_processor_are_of_several(plan, graph):
    machine = Machine.load("xeon")
    assert [dataclasses.replace(side(plan, "xeon", 1), units=n).together for n in (1, 24, 25, 64)] == [1, 24, 13, 22]
    within, beyond = (side(plan, "xeon", n).seconds(graph, "float64") for n in (machine.units, 2 * machine.units))
    np.testing.assert_array_equal(within, beyond)


def test_memory_sets_the_time_of_small_tasks(plan):
    data = IntLists.of(np.arange(4), np.arange(4), 4)
    empty = IntLists.of(np.zeros(0), np.zeros(0), 4)
    kinds = ("FILL", "GATHER", "SCATTER", "JOIN")
    graph = Graph(kinds, np.arange(4, dtype=np.uint8), np.zeros(4, np.int32), np.ones(4), np.ones(4), empty, data,
                  np.full(4, 1.7e7), np.zeros(4))  # fmt: skip
    assert side(plan, "xeon", 1).seconds(graph, "float64").tolist() == pytest.approx([1e-3, 2e-3, 1.5e-3, 0.0])
    made = tasks.durations(graph, "float64", side(plan, "xeon", 1), side(plan, "h200", 1))
    assert made.device[0] == pytest.approx(1.7e7 / 4.17e12)
    assert made.launches.tolist() == [1, 1, 1, 0]
    strange = dataclasses.replace(graph, kinds=("FILL", "GATHER", "SCATTER", "SORT"))
    with pytest.raises(ValueError, match="kinds: found 'SORT', expected some of P2M"):
        side(plan, "xeon", 1).seconds(strange, "float64")


def test_links_are_those_of_the_device(plan):
    both = tasks.node(side(plan, "xeon", 16), side(plan, "h200", 4))
    assert (both.cores, both.devices, both.bandwidth, both.between) == (16, 4, 5e10, 3.5e11)
    assert tasks.node(None, side(plan, "rtx4090", 2)).between == 0.0
    assert tasks.node(side(plan, "xeon", 3), None).units == 3
    bare = dataclasses.replace(Machine.load("h200"), links={})
    with pytest.raises(ValueError, match="links: found none of NVIDIA H200"):
        tasks.node(None, dataclasses.replace(side(plan, "h200", 1), machine=bare))


def test_a_modelled_schedule(plan, graph, parts):
    made = tasks_model.modelled(*parts, plan, Machine.load("rtx4090"), 16, 1, "drain")
    made.trace.check(graph)
    assert made.bound < min(made.trace.seconds, *made.alone.values())
    assert set(made.shares) == {"cores", "devices"}
    rows = tasks_model.rows(made)
    assert sum(row["tasks"] for row in rows.values()) == len(graph)
    assert 0 < rows["P2P"]["on devices"] <= rows["P2P"]["tasks"]
    cores = tasks_model.modelled(*parts, plan, Machine.load("xeon"), 8, 0, "heft")
    assert (cores.device, set(cores.alone), cores.trace.moved) == (None, {"cores"}, 0.0)


@pytest.mark.parametrize("points", ["uniform", "plummer", "sphere"])
def test_cores_beside_a_device_come_near_the_bound(points):
    asked = argparse.Namespace(n=10**6, points=points, dtype="float64", kernel=None, schedule="drain", cores=16,
                               device="rtx4090")  # fmt: skip
    plan = fmm_model.plan_of(asked, {"tolerance": 1e-6, "far_precision": "double"})
    parts, here = fmm_model.cut_of(plan)
    made = tasks_model.modelled(parts, here, plan, Machine.load("rtx4090"), 16, 1, "drain")
    made.trace.check(parts.graph)
    units, together = made.trace.unit, parts.together
    assert (units[here & ~together] < 16).all()
    assert (units[together] == 16).all()  # spectra stay on the device
    writes = parts.graph.writes
    assert made.trace.moved < 0.1 * parts.graph.nbytes[writes.values[together[writes.owner]]].sum()
    assert made.bound > 0.86 * made.trace.seconds
    assert made.trace.seconds < 0.8 * made.durations.device.sum()


def test_a_slow_device_shares_translations():
    x = samples.uniform(N, seed=1)
    parts, _ = fmm_model.cut_of(fmm.plan("coulomb", x, x, order=4, schedule="drain"))
    core, device = (np.where(parts.together, some, 1.0) for some in (10.0, 100.0))
    shared = units.gathered(Durations.of(parts.graph, core, device, {}, {}), parts, Node(4, 1))
    assert np.isfinite(shared.core).all()
    quick = Durations.of(parts.graph, core, np.where(parts.together, 1e-3, 1.0), {}, {})
    assert np.isinf(units.gathered(quick, parts, Node(4, 1)).core[parts.together]).all()
    assert units.gathered(quick, parts, Node(4, 2)) is quick


def test_a_printed_schedule(plan, graph, parts, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="no picture: matplotlib is not installed")
    asked = argparse.Namespace(
        kernel=None, n=N, points=None, dtype="float64", schedule="drain", cores=16, devices=None,
        json=tmp_path / "run.json", trace=tmp_path / "trace.json", gantt=tmp_path / "run.png",
    )  # fmt: skip
    assert tasks_model.main(asked, Machine.load("rtx4090"), plan, lambda it: parts) == 0
    text, found = capsys.readouterr().out, json.loads(asked.json.read_text("utf-8"))
    assert "on 16 cores of generic server with AVX-512 and 1 × NVIDIA GeForce RTX 4090" in text
    trace = Trace.read(asked.trace)
    trace.check(graph)
    assert found["seconds"] == trace.seconds > found["bound"] > 0
    assert f"schedule drain: {1e3 * trace.seconds:.4g} ms" in text
    assert found["kinds"]["P2P"]["tasks"] == (graph.kind == graph.kinds.index("P2P")).sum()
    assert (tmp_path / "run.png").stat().st_size > 10000


@pytest.mark.parametrize(
    ("what", "more", "says"),
    [
        ("ewald", ("--schedule", "drain"), "--schedule: found with ewald, expected with fmm"),
        ("treecode", ("--gantt", "a.png"), "--gantt: found with treecode, expected with fmm"),
        ("treecode", ("--points", "sphere"), "--points: found with treecode, expected with fmm"),
        ("fmm", ("--points", "sphere"), "--points: found without --schedule"),
        ("fmm", ("--cores", "4"), "--cores: found without --schedule"),
        ("fmm", ("--schedule", "drain", "--ranks", "4"), "--ranks: found with --schedule"),
        ("fmm", ("--schedule", "drain", "--gantt", "a.txt"), "gantt: found 'a.txt'"),
    ],
)
def test_options_that_do_not_fit_are_refused(capsys, what, more, says):
    assert cli.main(["model", what, "--n", "3000", "--device", "h200", *more]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("machine", "cores", "devices", "says"),
    [("h200", -1, None, "--cores: found -1"), ("xeon", None, 2, "--devices: found with generic server")],
)
def test_units_that_there_are_none_of(machine, cores, devices, says):
    with pytest.raises(ValueError, match=says):
        tasks_model.counted(argparse.Namespace(cores=cores, devices=devices), Machine.load(machine))


def test_units_that_are_not_asked_for():
    nothing = argparse.Namespace(cores=None, devices=None)
    assert tasks_model.counted(nothing, Machine.load("h200")) == (0, 1)
    assert tasks_model.counted(nothing, Machine.load("xeon")) == (24, 0)


def test_the_command_cuts_the_plan(capsys):
    pytest.importorskip("parki.tasks.cut", reason="plans are not cut into tasks")
    assert cli.main(["model", "fmm", "--n", "3000", "--device", "h200", "--cores", "4", "--schedule", "drain"]) == 0
    assert "P2P" in capsys.readouterr().out
