"""Predictions of plans of treecodes."""

import numpy as np
import pytest

import parki
from parki import prediction, samples
from parki.engine.run.spaces import Space
from parki.treecode import work
from parki.treecode.report import PHASES, PLANNED

PHASES_OF_CALLS = tuple(name for name in PHASES if name not in PLANNED)
OPTIONS = {"degree": 2, "leaf_size": 24, "batch_size": 30, "execution_space": "Serial"}


@pytest.fixture(scope="module", params=["float64", "float32"])
def plan(request):
    """Return a plan with all four kinds of pairs."""
    x, y = samples.uniform(900, seed=1), samples.gaussian(700, seed=2, variance=0.2)
    return parki.treecode.plan("coulomb", x.astype(request.param), y.astype(request.param), **OPTIONS)


def test_phases_are_those_of_calls(plan):
    found = plan.predict()
    assert tuple(found.phases) == PHASES_OF_CALLS
    assert all(seconds > 0 for seconds in found.phases.values())
    assert found.seconds == pytest.approx(sum(found.phases.values()))
    assert found.pp == found.phases["pp"]
    assert found.memory == plan.memory > 0
    assert str(found).startswith("predicted ")


def test_kinds_of_pairs_that_are_not_there_take_no_time():
    x = samples.uniform(900, seed=1)
    phases = parki.treecode.plan("coulomb", x, x, method="pc", **OPTIONS).predict().phases
    assert {name for name, seconds in phases.items() if not seconds} == {"cp", "cc", "downward"}


def test_threads_share_the_work(plan):
    def predicted(space):
        return work.predict(plan.structure, plan.parameters, plan.dtype, space, 0)

    one, four = predicted(Space("OpenMP", 1)), predicted(Space("OpenMP", 4))
    assert one.phases == plan.predict().phases
    for name in PHASES_OF_CALLS:
        assert one.phases[name] / 4 < four.phases[name] < one.phases[name]  # launches are not divided among threads
    assert four.pp < one.pp / 2


def test_on_a_gpu(plan, monkeypatch):
    monkeypatch.setattr(prediction, "device_name", lambda: "NVIDIA H100 PCIe")
    found = work.predict(plan.structure, plan.parameters, plan.dtype, Space("Cuda"), 5)
    assert found.memory == 5
    assert all(0 < seconds < 1 for seconds in found.phases.values())
    assert found.phases != plan.predict().phases


def test_without_points_calls_take_no_time():
    x, none = samples.uniform(7, 1), np.empty((3, 0))
    for targets, sources in ((x, none), (none, x), (none, none)):
        found = parki.treecode.plan("coulomb", targets, sources).predict()
        assert found.phases == dict.fromkeys(PHASES_OF_CALLS, 0.0)
        assert found.seconds == 0
