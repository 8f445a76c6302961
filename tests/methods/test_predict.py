"""Predictions of plans: phases of calls, threads that share the work, a GPU, no points."""

import numpy as np
import pytest

from parki import prediction, samples
from parki.engine.run.spaces import Space
from parki.fmm import report as fmm_report
from parki.fmm import work as fmm_work
from parki.treecode import report as treecode_report
from parki.treecode import work as treecode_work
from tests.methods.sums import COARSE, FMM, METHODS, TREECODES, plan, table

#: The method that stands for all treecodes has all kinds of pairs.
COUNTED = ("dual", *FMM)
REPORT = table(treecode_report, fmm_report)
WORK = table(treecode_work, fmm_work)
#: Name of the phase of near pairs.
NEAR = table("pp", "near")


def phases_of_calls(method):
    return tuple(name for name in REPORT[method].PHASES if name not in REPORT[method].PLANNED)


def plan_of(method, dtype="float64"):
    """Return a plan with all lists in use."""
    x, y = samples.plummer(700, 1).astype(dtype), samples.uniform(500, 2).astype(dtype)
    if method in TREECODES:
        x, y = samples.uniform(900, 1).astype(dtype), samples.gaussian(700, 2, variance=0.2).astype(dtype)
    sizes = {"degree": 2, "theta": 0.7, "leaf_size": 24, "batch_size": 30} if method in TREECODES else {"leaf_size": 8}
    return plan(method, "coulomb", x, y, execution_space="Serial", **(COARSE[method] | sizes))


@pytest.fixture(scope="module")
def plans():
    return {method: plan_of(method) for method in COUNTED}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("method", COUNTED)
def test_phases_are_those_of_calls(method, dtype, plans):
    made = plans[method] if dtype == "float64" else plan_of(method, dtype)
    found = made.predict()
    assert tuple(found.phases) == phases_of_calls(method)
    assert all(seconds > 0 for seconds in found.phases.values())
    assert found.seconds == pytest.approx(sum(found.phases.values()))
    assert getattr(found, NEAR[method]) == found.phases[NEAR[method]]
    assert found.memory == made.memory > 0
    assert str(found).startswith("predicted ")


def predicted(method, made, space, memory=0):
    return WORK[method].predict(made.structure, made.parameters, made.dtype, space, memory)


@pytest.mark.parametrize("method", COUNTED)
def test_threads_share_the_work(method, plans):
    one, four = (predicted(method, plans[method], Space("OpenMP", threads)) for threads in (1, 4))
    assert one.phases == plans[method].predict().phases
    shared = phases_of_calls(method) if method == "dual" else ("near", "m2l")
    for name in shared:  # launches are not divided among threads
        assert one.phases[name] / 4 <= four.phases[name] < one.phases[name]
    near = NEAR[method]
    assert one.phases[near] / 4 < four.phases[near] < one.phases[near] / 2


@pytest.mark.parametrize("method", COUNTED)
def test_on_a_gpu(method, plans, monkeypatch):
    monkeypatch.setattr(prediction, "device_name", lambda: "NVIDIA H100 PCIe")
    found = predicted(method, plans[method], Space("Cuda"), 5)
    assert found.memory == 5
    assert all(0 < seconds < 1 for seconds in found.phases.values())
    assert found.phases != plans[method].predict().phases


def test_kinds_of_pairs_that_are_not_there_take_no_time():
    x = samples.uniform(900, seed=1)
    options = COARSE["pc"] | {"execution_space": "Serial"}
    phases = plan("pc", "coulomb", x, x, **options).predict().phases
    assert {name for name, seconds in phases.items() if not seconds} == {"cp", "cc", "downward"}


@pytest.mark.parametrize("method", FMM)
def test_few_points_have_a_near_field_alone(method):
    x = samples.uniform(100, seed=1)
    found = plan(method, "coulomb", x, x, order=3, leaf_size=200, execution_space="Serial").predict().phases
    assert {name for name, seconds in found.items() if seconds} <= {"upward", "near"}  # upward sorts charges
    assert found["near"] > 0


@pytest.mark.parametrize("method", METHODS)
def test_without_points_calls_take_no_time(method):
    x, none = samples.uniform(7, 1), np.empty((3, 0))
    for targets, sources in ((x, none), (none, x), (none, none)):
        found = plan(method, "coulomb", targets, sources).predict()
        assert found.phases == dict.fromkeys(phases_of_calls(method), 0.0)
        assert found.seconds == 0
