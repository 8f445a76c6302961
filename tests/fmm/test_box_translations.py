"""Steps between boxes, parents and children, on every space, against the operators applied in NumPy."""

import math
from pathlib import Path

import numpy as np
import pytest

from parki import pairs
from parki.engine.run import spaces
from parki.engine.steps import Steps, constant, state
from parki.fmm import box_operators, representations
from parki.fmm.box_translations import BoxTranslations
from tests.fmm.octets import applied, children_folded, children_unfolded

CASES = {"laplace": ("laplace", 5), "stokes": ("rotlet", 3), "own": (Path(__file__).with_name("skewed.py"), 3)}
OCTETS = 3
PHASE = "upward"


@pytest.fixture(params=CASES)
def operators(request):
    name, p = CASES[request.param]
    return box_operators.operators(representations.find(pairs.find(name)), p, 1e-4, 0.5)


@pytest.fixture
def translations(operators):
    return BoxTranslations.of(operators, "float64", math.inf)


class Arrays:
    """Handles with initial values, and their values after steps in a space."""

    def __init__(self, space, rng, real="float64"):
        self.space, self.rng, self.real, self.begin = spaces.get(space), rng, real, {}

    def given(self, octets, rows):
        """Return random values, as a handle and as an array."""
        handle = state("given", (octets, rows, 8), self.real)
        self.begin[handle] = self.rng.standard_normal(handle.shape).astype(self.real)
        return handle, self.begin[handle].astype(float)

    def nothing(self, octets, rows):
        """Return a handle of NaNs, which steps must replace."""
        handle = state("nothing", (octets, rows, 8), self.real)
        self.begin[handle] = np.full(handle.shape, np.nan)
        return handle

    def run(self, steps):
        """Run steps on the initial values; return a function from a handle to its array afterwards."""
        placed = Steps(steps).place(self.space)
        for handle, values in self.begin.items():
            placed[handle][...] = placed.memory_of.xp.asarray(values)
        placed.run()
        return lambda handle: np.asarray(a.get() if hasattr(a := placed[handle], "get") else a)


@pytest.fixture
def arrays(space, rng):
    return Arrays(space, rng)


def each(function, *given):
    """Return the values of a function of (rows, 8) for each octet."""
    return np.stack([function(*parts) for parts in zip(*given, strict=True)])


def close(found, expected, bound=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound * np.abs(expected).max())


@pytest.mark.portability
@pytest.mark.parametrize("of", ["check", "equivalent"])
def test_fold_and_unfold(translations, arrays, of):
    classes = getattr(translations.operators, of)
    rows = int(classes.begin[-1])
    value, here = arrays.given(OCTETS, rows)
    made, again = arrays.nothing(OCTETS, rows), arrays.nothing(OCTETS, rows)
    after = arrays.run([translations.fold(PHASE, of, value, made), translations.unfold(PHASE, of, made, again)])
    close(after(made), each(classes.fold, here))
    close(after(again), here)


@pytest.mark.portability
@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("scratch", [math.inf, 0])
def test_solve(operators, arrays, way, scratch):
    """Apply both factors at once, or one after the other where a team has no scratch."""
    translations = BoxTranslations.of(operators, "float64", scratch)
    first, second = getattr(operators, way)
    given, here = arrays.given(OCTETS, first.columns)
    made, between = arrays.nothing(OCTETS, second.rows), arrays.nothing(OCTETS, translations.between_rows)
    steps = translations.solve(PHASE, way, given, between, made)
    assert len(steps) == (1 if scratch else 2)
    assert any(between.whole is a.whole for a in Steps(steps).handles) is not bool(scratch)
    close(arrays.run(steps)(made), each(lambda v: applied(second, applied(first, v)), here))


BELOW = np.array([[4, -1, 0, 2, -1, -1, 1, -1], [-1] * 8, [-1, 5, -1, -1, -1, 3, -1, -1]], np.int32)


@pytest.mark.portability
@pytest.mark.parametrize("together", [OCTETS, 2])
def test_to_parent(translations, arrays, together):
    """Add the values of all children; a box without children adds nothing."""
    equivalent, matrices = translations.operators.equivalent, translations.operators.to_parent
    rows = int(equivalent.begin[-1])
    value, here = arrays.given(6, rows)
    made, expected = arrays.given(OCTETS, matrices.rows)
    between = arrays.nothing(together, 8 * rows)
    after = arrays.run(translations.to_parent(PHASE, value, constant("below", BELOW), between, made))
    for q, lane in np.argwhere(BELOW >= 0):
        folded = children_folded(equivalent, here[BELOW[q, lane]].T)
        expected[q, :, lane] += applied(matrices, folded[:, None])[:, 0]
    close(after(made), expected)


@pytest.mark.portability
@pytest.mark.parametrize("together", [OCTETS, 2])
def test_to_children(translations, arrays, together):
    check, matrices = translations.operators.check, translations.operators.to_children
    rows = int(check.begin[-1])
    given, here = arrays.given(OCTETS, matrices.columns)
    value, expected = arrays.given(7, rows)  # octet 6 has no parent
    between = arrays.nothing(together, 8 * rows)
    after = arrays.run(translations.to_children(PHASE, given, constant("below", BELOW), between, value))
    for q, lane in np.argwhere(BELOW >= 0):
        folded = applied(matrices, here[q, :, lane : lane + 1])[:, 0]
        expected[BELOW[q, lane]] += children_unfolded(check, folded).T
    close(after(value), expected)


def test_single_precision(rng):
    """Factors in single precision make equivalents that agree with those of double precision."""
    made = box_operators.operators(representations.find(pairs.find("laplace")), 5, 1e-3)
    translations, arrays = BoxTranslations.of(made, "float32", math.inf), Arrays("Serial", rng, "float32")
    given, here = arrays.given(2, made.up[0].columns)
    solved = arrays.nothing(2, made.up[1].rows)
    found = arrays.run(translations.solve(PHASE, "up", given, solved, solved))(solved)
    close(found, each(lambda v: applied(made.up[1], applied(made.up[0], v)), here), 1e-4)
    assert found.dtype == np.float32
