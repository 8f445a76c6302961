"""The dense steps as workunits, on every space, against the operators applied in NumPy."""

from pathlib import Path

import numpy as np
import pytest

from parki import engine, pairs
from parki.engine import spaces
from parki.fmm import dense, factors, kinds
from tests.fmm.octets import children_folded, children_unfolded

pytestmark = pytest.mark.portability

CASES = {"laplace": ("laplace", 5), "stokes": ("rotlet", 3), "own": (Path(__file__).with_name("skewed.py"), 3)}
OCTETS = 3


@pytest.fixture(scope="module", autouse=True)
def compiled():
    units = [u for symmetric in (True, False) for u in dense.units(symmetric, "float64")]
    for name in ("Serial", "GpuSim"):
        engine.compile_all(units, spaces.get(name))


@pytest.fixture(params=CASES)
def steps(request, space):
    name, p = CASES[request.param]
    made = factors.operators(kinds.find(pairs.find(name)), p, 1e-4, 0.5)
    return dense.Dense(made, spaces.get(space), "float64")


class Arrays:
    """Arrays on a space, and back."""

    def __init__(self, steps, rng):
        self.xp, self.rng, self.real = spaces.array_module(steps.space), rng, steps.real

    def given(self, octets, rows):
        """Random values, on the space and here."""
        a = self.rng.standard_normal((octets, rows, 8)).astype(self.real)
        return self.xp.asarray(a.copy()), a.astype(float)

    def ints(self, a):
        return self.xp.asarray(np.asarray(a, np.int32))

    def nothing(self, octets, rows):
        """Values that must be replaced."""
        return self.xp.full((octets, rows, 8), np.nan, self.real)


@pytest.fixture
def arrays(steps, rng):
    return Arrays(steps, rng)


def host(a):
    return np.asarray(a.get() if hasattr(a, "get") else a)


def each(function, *given):
    """A function of (rows, 8) for every octet."""
    return np.stack([function(*parts) for parts in zip(*given, strict=True)])


def close(found, expected, bound=1e-12):
    np.testing.assert_allclose(host(found), expected, rtol=0, atol=bound * np.abs(expected).max())


def test_fold_and_unfold(steps, arrays):
    for of in ("check", "equivalent"):
        classes = getattr(steps.operators, of)
        rows = int(classes.begin[-1])
        value, here = arrays.given(OCTETS, rows)
        made, again = arrays.nothing(OCTETS, rows), arrays.nothing(OCTETS, rows)
        steps.fold(of, value, made).launch()
        close(made, each(classes.fold, here))
        steps.unfold(of, made, again).launch()
        close(again, here)


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("room", [dense.ROOM, 0])
def test_solve(steps, arrays, way, room, monkeypatch):
    """At once, or where a team has no room, one factor after the other."""
    monkeypatch.setattr(dense, "ROOM", room)
    first, second = getattr(steps.operators, way)
    given, here = arrays.given(OCTETS, first.columns)
    made = arrays.nothing(OCTETS, second.rows)
    launches = steps.solve(way, given, made)
    assert len(launches) == (2 if room == 0 and steps.space.kind != "host" else 1)
    for launch in launches:
        launch.launch()
    close(made, each(lambda v: second.apply(first.apply(v)), here))


BELOW = np.array([[4, -1, 0, 2, -1, -1, 1, -1], [-1] * 8, [-1, 5, -1, -1, -1, 3, -1, -1]])


@pytest.mark.parametrize("together", [OCTETS, 2])
def test_to_parent(steps, arrays, together):
    """Adds what all children give; a box without children adds nothing."""
    equivalent, block = steps.operators.equivalent, steps.operators.to_parent
    rows = int(equivalent.begin[-1])
    value, here = arrays.given(6, rows)
    made, before = arrays.given(OCTETS, block.rows)
    between = arrays.nothing(together, 8 * rows)
    for launch in steps.to_parent(value, arrays.ints(BELOW), between, made):
        launch.launch()
    expected = before
    for q, lane in np.argwhere(BELOW >= 0):
        folded = children_folded(equivalent, here[BELOW[q, lane]].T)
        expected[q, :, lane] += block.apply(folded[:, None])[:, 0]
    close(made, expected)


@pytest.mark.parametrize("together", [OCTETS, 2])
def test_to_children(steps, arrays, together):
    check, block = steps.operators.check, steps.operators.to_children
    rows = int(check.begin[-1])
    given, here = arrays.given(OCTETS, block.columns)
    value, expected = arrays.given(7, rows)  # octet 6 is nobody's
    between = arrays.nothing(together, 8 * rows)
    for launch in steps.to_children(given, arrays.ints(BELOW), between, value):
        launch.launch()
    for q, lane in np.argwhere(BELOW >= 0):
        folded = block.apply(here[q, :, lane : lane + 1])[:, 0]
        expected[BELOW[q, lane]] += children_unfolded(check, folded).T
    close(value, expected)


def test_single_precision(rng):
    """Factors in single precision, applied one after the other: the field of the equivalents is right to rounding."""
    made = factors.operators(kinds.find(pairs.find("laplace")), 5, 1e-3)
    steps = dense.Dense(made, spaces.get("Serial"), "float32")
    arrays = Arrays(steps, rng)
    given, here = arrays.given(2, made.up[0].columns)
    found = arrays.nothing(2, made.up[1].rows)
    for launch in steps.solve("up", given, found):
        launch.launch()
    close(found, each(lambda v: made.up[1].apply(made.up[0].apply(v)), here), 1e-4)
    assert found.dtype == np.float32
