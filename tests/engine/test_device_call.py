"""Arguments of launches to a device's driver; a stand-in driver runs the same text in the simulator."""

import numpy as np
import pytest

from parki import engine
from parki.engine import LaunchError, RangePolicy, TeamPolicy
from tests.engine import driver_standin as standin
from tests.engine.launch_kernels import KERNELS


@pytest.fixture
def device(monkeypatch, tmp_path):
    """Return the stand-in driver and the units compiled for it."""
    return standin.install(monkeypatch, tmp_path)


@pytest.fixture
def kernels(tmp_path):
    """Return a function that gives fresh workunits of the launch tests, without loaded objects."""
    path = tmp_path / "kernels_of_test.py"
    path.write_text(KERNELS)
    return lambda name, **slots: engine.kernel(path, name, **slots)


def on_device(*arrays):
    return [standin.ndarray(a) for a in arrays]


def test_an_iteration_a_thread(device, kernels):
    driver, units = device
    x, y = np.random.default_rng(1).random((2, 300, 4))
    dx, dy = on_device(x, y)
    made = engine.prepare(RangePolicy("Cuda", 300), kernels("scale"), x=dx, y=dy, a=1.5, n=4, flag=True)
    assert driver.launches == []
    assert made.run() is None
    np.testing.assert_array_equal(y, 3.0 * x)
    assert driver.launches == [{"grid": 3, "block": (1, 128), "shared": 0, "stream": standin.STREAM}]
    assert [(u.backend, u.arch, u.block, u.wide) for u in units] == [("cuda", "sm_90", 128, False)]
    made.set(a=2.0, flag=False)
    made.run()
    np.testing.assert_array_equal(y, 2.0 * x)
    assert len(units) == 1
    engine.parallel_for(RangePolicy("Cuda", 300, 256), kernels("scale"), x=dx, y=dy, a=1.5, n=4, flag=True)
    assert driver.launches[-1]["block"] == (1, 256)
    assert driver.launches[-1]["grid"] == 2


def test_teams_are_blocks(device, kernels):
    driver, units = device
    x = np.random.default_rng(2).random((5, 33))
    given = {"x": standin.ndarray(x), "n": 33, "asked": 33}
    expected = x[:, ::-1].copy()
    engine.parallel_for(TeamPolicy("Cuda", 5, 20, 2), kernels("reversed_by_scratch"), **given)
    np.testing.assert_array_equal(x, expected)
    assert driver.launches[-1] == {"grid": 5, "block": (2, 20), "shared": 34 * 8 + 68 * 4, "stream": standin.STREAM}
    assert units[-1].block == 64
    engine.parallel_for(TeamPolicy("Cuda", 5), kernels("reversed_by_scratch"), **given)
    assert driver.launches[-1]["block"] == (1, 128)


def test_much_scratch_is_asked_for(device, kernels):
    driver, _ = device
    x = np.zeros((2, 3))
    unit = kernels("reversed_by_scratch")
    engine.parallel_for(TeamPolicy("Cuda", 2, 32), unit, x=standin.ndarray(x), n=3, asked=3000)
    assert driver.attributes == []
    engine.parallel_for(TeamPolicy("Cuda", 2, 32), unit, x=standin.ndarray(x), n=3, asked=4000)
    ((function, attribute, value),) = driver.attributes
    assert (function, attribute, value) == (100, standin.MAX_DYNAMIC_SHARED, standin.SHARED - 1024)


def test_too_much_scratch(device, kernels):
    x = standin.ndarray(np.zeros((2, 3)))
    with pytest.raises(LaunchError, match="asks for 320016 bytes of scratch, Cuda has at most 231424 for a team"):
        engine.prepare(TeamPolicy("Cuda", 2, 32), kernels("reversed_by_scratch"), x=x, n=3, asked=20000)


@pytest.mark.parametrize("n", [0, 1, 127, 128, 1000])
def test_reductions_and_scans(device, kernels, n):
    x, y = np.random.default_rng(3).integers(0, 9, (2, n)).astype(float)
    dx, dy = on_device(x, y)
    assert engine.parallel_reduce(RangePolicy("Cuda", n), kernels("total"), x=dx) == x.sum()
    assert engine.parallel_reduce(RangePolicy("Cuda", n), kernels("running"), x=dx, y=dy) == x.sum()
    np.testing.assert_array_equal(y, np.cumsum(x))
    assert len(device[0].launches) == (3 if n else 0)


def test_what_does_not_fit(device, kernels):
    x, y = np.zeros((2, 3, 4))
    given = {"a": 1.0, "n": 4, "flag": False}
    with pytest.raises(LaunchError, match=r"'x' is a numpy\.ndarray, expected a CuPy array"):
        engine.prepare(RangePolicy("Cuda", 3), kernels("scale"), x=x, y=standin.ndarray(y), **given)
    with pytest.raises(LaunchError, match="an array is on device 1, the launch on device 0"):
        engine.prepare(RangePolicy("Cuda", 3), kernels("scale"), x=standin.ndarray(x, 1), y=standin.ndarray(y), **given)
    same = standin.ndarray(x)
    with pytest.raises(LaunchError, match="'y' is written and overlaps 'x'"):
        engine.prepare(RangePolicy("Cuda", 3), kernels("scale"), x=same, y=same, **given)


def test_wide_arrays(device, kernels):
    """Check that only arrays that span 2**31 elements or more get 64-bit offsets."""
    far = np.lib.stride_tricks.as_strided(np.zeros(4), (2, 1), (8 * 2**31, 8))
    y = np.zeros((1, 1))
    for x, wide in ((far, True), (far[:1], False)):
        given = {"x": standin.ndarray(x), "y": standin.ndarray(y), "a": 1.0, "n": 0, "flag": False}
        engine.parallel_for(RangePolicy("Cuda", 1), kernels("scale"), **given)
        assert device[1][-1].wide is wide
