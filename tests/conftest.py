"""Fixtures of all tests.  Compiled kernels go to the user's cache, so that test workers share them.

The calibration of a developer's machine is ignored.  Idle threads leave their core at once, because several workers
share the cores: threads that spin while waiting double the time of a run of all tests.
"""

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest

os.environ["PARKI_CALIBRATION"] = "off"  # before parki is imported
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before the first library of OpenMP is loaded

from parki import hints
from parki.engine import SpaceUnavailable
from parki.engine.run import spaces
from parki.fmm import params

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, max_examples=40)
hypothesis.settings.register_profile("long", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("ci")


@pytest.fixture(autouse=True)
def _no_idle_stages():
    """Forget the stages that one-shot sums of other tests have left, which may hold stand-ins."""
    if idle := sys.modules.get("parki.ewald.idle"):
        idle._kept.clear()


@pytest.fixture
def all_digits(monkeypatch):
    """Compute roots, exponentials and spectra of boxes to all digits at any tolerance: results agree to rounding."""
    monkeypatch.setattr(hints, "SHORT", ())
    monkeypatch.setattr(params, "SINGLE", np.inf)
    monkeypatch.setattr(params, "HARDER_SINGLE", np.inf)


@pytest.fixture
def rng():
    """Return a random generator in the same state for all tests."""
    return np.random.default_rng(20261121)


@pytest.fixture
def interruptible():
    """Install Python's own handler of interrupts, also where the tests were started with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(params=spaces.NAMES)
def space(request):
    """Return the name of an execution space, for all known ones; skip with the reason where the space cannot run."""
    why = spaces.available()[request.param]
    if why is not None:
        pytest.skip(why)
    return request.param


@pytest.fixture(scope="session")
def root():
    """Return the repository's folder."""
    return Path(__file__).parent.parent


@pytest.fixture(scope="session")
def water_file(root):
    """Return the path of a periodic box of water with exact potentials of some of its atoms."""
    return root / "examples" / "data" / "water.npz"


@pytest.fixture(scope="session")
def water(water_file):
    """Return the arrays of the box of water."""
    with np.load(water_file) as file:
        return dict(file)


@pytest.fixture
def counted(monkeypatch):
    """Return the stand-in for CuPy, with its counts at zero."""
    from tests.ewald import cupy_standin

    cupy_standin.counts.clear()
    return SimpleNamespace(cupy=cupy_standin.install(monkeypatch), counts=cupy_standin.counts)


@pytest.fixture(params=["stand-in", "GPU"])
def cupy(request, monkeypatch):
    """Return the stand-in for CuPy, or CuPy where it has a device."""
    from tests.ewald import cupy_standin

    if request.param == "stand-in":
        return cupy_standin.install(monkeypatch)
    try:
        return spaces.array_module(spaces.get("GPU"))
    except SpaceUnavailable as why:
        pytest.skip(str(why))
