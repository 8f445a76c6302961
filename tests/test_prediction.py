"""Predicted cost of a call, and the machine of the prediction."""

import copy
import pickle

import pytest

from parki import prediction
from parki.engine.run.spaces import Space
from parki.perfmodels.machine import Machine
from parki.prediction import Prediction

FOUND = Prediction({"near": 0.25, "far": 1.5}, 3_000_000)


def test_phases_are_attributes():
    assert (FOUND.near, FOUND.far, FOUND.memory) == (0.25, 1.5, 3_000_000)
    assert FOUND.seconds == 1.75
    assert str(FOUND) == "predicted 1.75 s a call (near 250 ms, far 1.5 s), holds 3 MB"
    assert str(Prediction({"near": 0.002}, 4_000_000_000)) == "predicted 2 ms a call (near 2 ms), holds 4 GB"
    with pytest.raises(AttributeError, match="'gather' is no attribute of a Prediction of phases near, far"):
        _ = FOUND.gather


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda found: pickle.loads(pickle.dumps(found))])
def test_copies(again):
    assert again(FOUND) == FOUND
    assert again(FOUND).near == 0.25


@pytest.mark.parametrize("name", ["Serial", "OpenMP", "GpuSim"])
def test_a_host_that_was_not_measured_is_a_generic_one(name):
    assert prediction.machine_of(Space(name)) == Machine.load("xeon")


@pytest.mark.parametrize(("name", "machine"), [("NVIDIA A100-SXM4-80GB", "a100"), ("Tesla V100", "h200"), ("", "h200")])
def test_a_gpu_is_known_by_its_name(name, machine, monkeypatch):
    monkeypatch.setattr(prediction, "device_name", lambda: name)
    assert prediction.machine_of(Space("Cuda")) == Machine.load(machine)
    assert prediction.machine_of(Space("Cuda")).is_gpu
