"""Far fields in single precision of sums in double precision: choice, accuracy, memory, plans."""

import itertools
import warnings

import numpy as np
import pytest

import parki
from parki.ewald import EwaldOptions
from parki.ewald.choice import choose
from parki.ewald.choice.arrangement import Arrangement
from parki.ewald.choice.question import Question
from parki.ewald.kernels import KERNELS
from tests.ewald import cupy_standin as standin
from tests.ewald import sums
from tests.quick import every
from tests.reference import relative_rms

BOX = (1.0, 1.3, 0.8)
CELL = np.array([[1.0, 0.0, 0.0], [0.3, 1.2, 0.0], [0.1, 0.2, 0.9]])
ROUNDING = 1e-6  # relative error of sums in single precision
#: Kernels and periodicities; random sums of all of them are in test_tolerance.py.
SOME = (
    ("laplace", 0),
    ("laplace", 2),
    ("laplace", 3),
    ("yukawa", 0),
    ("yukawa", 3),
    ("stokes_comb", 1),
    ("stokes_comb", 3),
)
VARIANTS = [{"p2g_method": name} for name in ("BASE", "SOURCE", "GRID", "HYBRID", "BLOCK", "TILE")]
VARIANTS += [{"g2p_method": name} for name in ("BASE", "TILE")]


def arguments(kernel, rng, n=120, box=BOX):
    """Return points and neutral strengths."""
    k = KERNELS[kernel]
    x = np.array(box)[:, None] * rng.random((3, n))
    dens = rng.standard_normal((k.dens, n))
    dens -= dens.mean(axis=1, keepdims=True)
    return [x, x, dens if k.dens > 1 else dens[0], *([rng.standard_normal((3, n))] if k.normals else [])]


def total(kernel, given, far_precision, **options):
    options = {"box": BOX, "tolerance": 1e-5} | options
    return getattr(parki.ewald, kernel)(*given, far_precision=far_precision, **options)


# Choice


@pytest.mark.parametrize("kernel", [name for name, kernel in KERNELS.items() if not kernel.names])
def test_from_which_tolerance_on_it_is_chosen(kernel):
    found = {
        t: choose.parameters(Question(kernel, BOX, 5000, 5000, t)).far for t in (1e-2, 1e-4, 1e-5, 5e-6, 1e-6, 1e-9)
    }
    assert list(found.values()) == 3 * ["float32"] + 3 * ["float64"]


def test_slopes_take_it_later_with_free_directions_and_for_many_sources():
    def far(periodicity, n, tolerance):
        return choose.parameters(Question("laplace_grad", BOX, n, n, tolerance, periodicity=periodicity)).far

    assert [far(n, 5000, 1e-5) for n in range(4)] == 3 * ["float64"] + ["float32"]
    assert [far(n, 5000, 1e-4) for n in range(4)] == 4 * ["float32"]
    assert [far(3, n, 1e-5) for n in (10**6, 10**8)] == ["float32", "float64"]


@pytest.mark.slow
def test_slopes_of_masses_in_a_part_of_the_box(rng):
    x = rng.random((3, 60_000))
    masses, box = np.ones(60_000), (1.0, 1.0, 3.0)
    u, exact = (
        parki.ewald.plan("laplace_grad", x, x, box=box, tolerance=tolerance, far_precision=far)(masses)
        for tolerance, far in ((1e-5, "single"), (1e-9, "double"))
    )
    assert relative_rms(u, exact) <= 0.5e-5


def test_a_crystal_leaves_less_room():
    """Crystals, whose sums cancel, leave the window a smaller share of the tolerance, and this share decides."""
    found = [
        choose.parameters(Question("laplace", BOX, 5000, 5000, 3e-5, arrangement=Arrangement(regular, (), True))).far
        for regular in (0.0, 1.0)
    ]
    assert found == ["float32", "float64"]


def test_a_few_points_leave_less_room():
    found = [choose.parameters(Question("laplace", BOX, n, n, 1e-5)).far for n in (2, 5000)]
    assert found == ["float64", "float32"]


def test_single_precision_has_no_choice():
    for far in (None, "float32"):
        assert choose.parameters(Question("laplace", BOX, 500, 500, 1e-5, "float32", far=far)).far == "float32"
    with pytest.raises(ValueError, match="far: found 'float64' with dtype 'float32', expected 'float32'"):
        choose.parameters(Question("laplace", BOX, 500, 500, 1e-5, "float32", far="float64"))
    with pytest.raises(ValueError, match=r"far: found 'half', expected one of .*, or None to have it chosen"):
        choose.parameters(Question("laplace", BOX, 500, 500, 1e-5, far="half"))


def test_the_option_is_honoured(rng):
    given = arguments("laplace", rng)
    for asked, tolerance, expected in (
        ("single", 1e-5, "float32"), ("SINGLE", 1e-5, "float32"), ("double", 1e-3, "float64"), (None, 1e-6, "float64"),
    ):  # fmt: skip
        plan = parki.ewald.plan("laplace", *given[:2], box=BOX, tolerance=tolerance, far_precision=asked)
        assert plan.parameters.far == expected
        u = plan(given[2])
        assert u.dtype == plan.dtype == np.float64
        made = plan._placed(1).sum
        assert made.far.grid.dtype == made.far.result.dtype == expected
        assert made.near.result.dtype == np.float64


def test_wrong_input(rng):
    x, _, q = arguments("laplace", rng)
    with pytest.raises(ValueError, match="far_precision is 'half'; expected one of 'double', 'single'"):
        EwaldOptions(BOX, far_precision="half")
    with pytest.raises(ValueError, match="far_precision is 'double' and the points are float32; expected 'single'"):
        total("laplace", [a.astype(np.float32) for a in (x, x, q)], "double")
    with pytest.warns(
        parki.ewald.PrecisionWarning, match=r"a far field in single .* 1e-06; use far_precision='double'"
    ):
        total("laplace", [x, x, q], "single", tolerance=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        total("laplace", [x, x, q], "single", tolerance=1e-5)


# Accuracy


@pytest.mark.parametrize(("kernel", "periodicity"), SOME)
def test_the_tolerance_is_met(kernel, periodicity, rng):
    given, names = arguments(kernel, rng), {"kappa": 2.0} if KERNELS[kernel].names else {}
    exact = sums.periodic(kernel, *given, box=BOX, periodicity=periodicity, **names)
    assert relative_rms(total(kernel, given, "single", periodicity=periodicity, **names), exact) <= 1e-5


def test_at_the_reach_of_single_precision(rng):
    for kernel in ("laplace", "stokes_comb"):
        given = arguments(kernel, rng)
        exact = sums.periodic(kernel, *given, box=BOX)
        for tolerance in (1e-5, 2e-6):
            assert relative_rms(total(kernel, given, "single", tolerance=tolerance), exact) <= tolerance


def test_triclinic_cells(rng):
    x = CELL.T @ rng.random((3, 100))
    q = rng.standard_normal(100)
    given = [x, x, q - q.mean()]
    exact = parki.ewald.laplace(*given, box=CELL, tolerance=1e-9)
    assert relative_rms(total("laplace", given, "single", box=CELL), exact) <= 1e-5


def test_coordinates_stay_in_double_precision(rng):
    """Far from the origin of a long box numbers of single precision are coarser than the tolerance allows."""
    box = (64.0, 1.0, 1.0)
    x = np.array([[63.0], [0.0], [0.0]]) + rng.random((3, 100))
    x[:, 1::2] = x[:, ::2] + 1e-5 * rng.standard_normal((3, 50))
    x %= np.array(box)[:, None]
    q = np.where(np.arange(100) % 2, 1.0, -1.0) * rng.random(100)
    given = [x, x, q]
    exact = total("laplace", given, "double", box=box, tolerance=1e-9)
    rounded = [x.astype(np.float32).astype(float)] * 2 + [q]
    assert relative_rms(total("laplace", given, "single", box=box), exact) <= 1e-5
    assert relative_rms(total("laplace", rounded, "double", box=box, tolerance=1e-9), exact) > 1e-4


@pytest.mark.parametrize(("space", "variant"), every(6, itertools.product(["Serial", "GpuSim"], VARIANTS)), ids=str)
def test_variants(variant, space, rng):
    given = arguments("stokes_comb", rng, 60)
    options = {"tolerance": 1e-4, "rc": 0.5}
    exact = total("stokes_comb", given, "single", **options)
    assert (
        relative_rms(total("stokes_comb", given, "single", execution_space=space, **options, **variant), exact)
        <= ROUNDING
    )


# Plans


def test_right_hand_sides_moves_and_measured_errors(rng):
    x, _, f = arguments("stokes_sl", rng)
    plan = parki.ewald.plan("stokes_sl", x, x, box=BOX, tolerance=2e-4)
    assert plan.parameters.far == "float32"
    together = plan(np.stack([f, 3 * f]))
    assert {stage.sum.p.far for stage in plan.sums.values()} == {"float32"}
    assert relative_rms(together[1], 3 * plan(f)) <= 2e-4
    moved = np.roll(x, 1, axis=1)
    plan.move(moved)
    u = plan(f)
    exact = sums.periodic("stokes_sl", moved, moved, f, box=BOX)
    assert relative_rms(u, exact) <= 2e-4
    assert plan.error(n=120).value == pytest.approx(relative_rms(u, exact), rel=0.02)


def test_the_transposed_operator(rng):
    x = np.array(BOX)[:, None] * rng.random((3, 50))
    y = np.array(BOX)[:, None] * rng.random((3, 70))
    plan = parki.ewald.plan("stokes_sl", x, y, box=BOX, tolerance=2e-4)
    A, v, w = plan.operator(), rng.standard_normal(210), rng.standard_normal(150)
    assert plan.parameters.far == "float32"
    assert abs(w @ (A @ v) - v @ A.rmatvec(w)) <= ROUNDING * np.linalg.norm(w) * np.linalg.norm(A @ v)
    assert A.rmatvec(w).dtype == np.float64


def test_it_takes_half_the_memory_of_the_grid(rng):
    x = rng.random((3, 200))
    plans = {far: parki.ewald.plan("laplace", x, x, box=(1, 1, 1), rc=0.1, far_precision=far, tolerance=1e-4)
             for far in ("double", "single")}  # fmt: skip
    grids = {far: plan._placed(1).sum.far.grid for far, plan in plans.items()}
    assert grids["single"].nbytes < 0.6 * grids["double"].nbytes
    assert plans["single"].memory < 0.75 * plans["double"].memory


def test_it_is_part_of_the_parameters_that_are_told(rng):
    given = arguments("laplace", rng)
    for far in ("double", "single"):
        _, told = total("laplace", given, far, return_params=True)
        assert told.far_precision == far
        assert f"far field in {far} precision" in str(told)


def test_on_a_gpu(monkeypatch, rng):
    cupy = standin.install(monkeypatch)
    for kernel in ("laplace", "stokes_comb"):
        given = arguments(kernel, rng)
        u = total(kernel, [cupy.asarray(a) for a in given], "single")
        assert isinstance(u, cupy.ndarray)
        assert u.dtype == np.float64
        exact = sums.periodic(kernel, *given, box=BOX)
        assert relative_rms(u.get(), exact) <= 1e-5
