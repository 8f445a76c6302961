"""Sums by one worker and by several: results, failures, times, memory, forks."""

import os
import subprocess
import sys

import numpy as np
import pytest

import parki
from parki import fft
from parki.engine.run import spaces
from parki.engine.steps import Blocks, workers
from parki.ewald.report import PHASES
from parki.ewald.stages import multipliers, planes

if spaces.get("CPU").name != "OpenMP":
    pytest.skip("the compiler has no OpenMP", allow_module_level=True)

BOX, TOLERANCE = (1.0, 1.3, 0.8), 1e-9
CELL = np.array([[1.0, 0.1, 0.0], [0.2, 1.1, 0.1], [0.0, 0.3, 0.9]])
PLACES = {"3": {}, "2": {"periodicity": 2}, "1": {"periodicity": 1}, "0": {"periodicity": 0}, "skew": {"box": CELL}}


@pytest.fixture(autouse=True)
def _small_sums_are_worth_it(monkeypatch):
    monkeypatch.setattr(workers, "WORTH", 1)
    monkeypatch.setattr(planes, "CACHE", 1)  # bytes: so few that each block has one plane


def problem(kernel, n=150, rhs=()):
    rng = np.random.default_rng(5)
    x = np.array(BOX)[:, None] * rng.random((3, n)) * 0.6
    dens = rng.standard_normal({"laplace": (*rhs, n), "stokes_sl": (*rhs, 3, n), "stokes_comb": (*rhs, 6, n)}[kernel])
    return x, (dens, *([rng.standard_normal((3, n))] if kernel == "stokes_comb" else []))


def plan_of(kernel, x, **options):
    return parki.ewald.plan(kernel, x, x, **({"box": BOX, "tolerance": TOLERANCE} | options))


def phases(times):
    return {name: getattr(times, f"time_{name}")["tot"] for name, *_ in PHASES}


@pytest.mark.parametrize("fft_type", ["R2C", "C2C"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kernel", ["laplace", "stokes_comb"])
def test_several_sum_as_one_does(kernel, place, fft_type):
    x, given = problem(kernel)
    options = PLACES[place] | {"fft_type": fft_type}
    exact = plan_of(kernel, x, threads=1, **options)(*given)
    for threads in (2, 5):
        plan = plan_of(kernel, x, threads=threads, **options)
        assert plan._placed(1).placed.size == threads
        for _ in range(3):
            np.testing.assert_array_equal(plan(*given), exact)


@pytest.mark.parametrize("name", fft.available())
def test_every_library_with_several_right_hand_sides(name, monkeypatch):
    x, given = problem("stokes_comb", rhs=(2,))
    exact = plan_of("stokes_comb", x, threads=1)(*given)
    plan = plan_of("stokes_comb", x, threads=3, fft=name)
    for _ in range(2):
        np.testing.assert_allclose(plan(*given), exact, rtol=0, atol=1e-12 * np.abs(exact).max())
    assert plan._placed(2).placed.size == (3 if fft.BACKENDS[name].several else 1)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_blocks_write_apart(place, whole):
    """A mode and its image belong to one block, and every mode to some block."""
    x, _ = problem("stokes_sl")
    plan = plan_of("stokes_sl", x, threads=3, fft_type="C2C" if whole else "R2C", **PLACES[place])
    far = plan._placed(1).sum.far
    n0, (blocks,) = far.mesh.box[0], [s for s in far.steps if isinstance(s, Blocks) and len(s.parts[0][1]) > 1]
    classes = [c.modes for c in multipliers.planes(plan.chosen.parameters, whole)]
    written = [
        {m for a in modes[b["first"] : b["end"]] for m in (a, -a % n0)}
        for modes, (cut, _) in zip(classes, blocks.parts, strict=True)
        for b in cut(3)
    ]
    assert sum(map(len, written)) == len(set.union(*written))
    modes = [m for c in multipliers.planes(plan.parameters, whole) for m in c.modes]
    assert sorted({m for a in modes for m in (a, -a % n0)}) == sorted(set.union(*written))
    assert len(written) >= 3


@pytest.mark.parametrize(
    ("count", "fit", "unit"), [(1, 4, 1), (7, 2, 1), (56, 5, 1), (40, 7, 2), (12, 3, 2), (9, 99, 1)]
)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_modes_are_split_evenly(count, fit, unit, size):
    bounds = planes.split(count, fit, unit, size)
    lengths = np.diff(bounds)
    assert (bounds[0], bounds[-1]) == (0, count)
    assert all(0 < n <= fit and n % unit == 0 for n in lengths)
    assert max(lengths) - min(lengths) <= unit
    assert len(lengths) % size == 0 or max(lengths) == unit


def test_a_sum_that_fails_can_be_repeated(monkeypatch):
    x, given = problem("laplace")
    plan = plan_of("laplace", x, threads=2)
    exact = plan(*given)
    with monkeypatch.context() as patch:
        patch.setattr(plan.sums[1].sum.far.transforms.library, "run", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            plan(*given)
    np.testing.assert_array_equal(plan(*given), exact)


def test_times_of_a_sum_by_several():
    x, given = problem("stokes_sl", 3000)
    plan = plan_of("stokes_sl", x, threads=2)
    plan(*given)
    plan(*given)
    found = phases(plan.walltime)
    assert min(found.values()) > 0
    assert 0.5 * plan.walltime.time_ewald < sum(found.values()) <= plan.walltime.time_ewald


def test_memory_counts_everyones_planes():
    x, _ = problem("laplace")
    one, two, four = (plan_of("laplace", x, threads=threads) for threads in (1, 2, 4))
    assert [plan._placed(1).placed.size for plan in (one, two, four)] == [1, 2, 4]
    (row,) = (a.nbytes for a in two._placed(1).sum.steps.handles if a.role == "scratch")
    assert two.memory - one.memory >= row
    assert four.memory - one.memory >= 3 * row


FORK = """
import os, sys, warnings, numpy as np, parki
from parki.engine.steps import workers
workers.WORTH = 1
warnings.simplefilter("ignore")
x = np.random.default_rng(0).random((3, 500))
plan = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-9, threads=2)
assert plan._placed(1).placed.size == 2
exact = plan(x[0])
pid = os.fork()
if pid == 0:
    os._exit(7 if np.array_equal(plan(x[0]), exact) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), np.array_equal(plan(x[0]), exact))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_sums_as_well():
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["7", "True"]
