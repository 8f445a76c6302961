"""Sums with none to three periodic directions, against exact sums and under changes that must not matter."""

import itertools

import numpy as np
import pytest

import parki
from tests.ewald import sums
from tests.quick import every

KERNELS = ("laplace", "laplace_grad", "stokes_sl", "stokes_dl", "stokes_comb")
DENS = {"laplace": 1, "laplace_grad": 1, "stokes_sl": 3, "stokes_dl": 3, "stokes_comb": 6}
TOLERANCES = (1e-3, 1e-6, 1e-9)
BOX = (1.0, 1.3, 0.8)
TOLERANCE = 1e-9
FLAGS = list(itertools.product((False, True), repeat=3))


def total(kernel, trg, src, strengths, **options):
    return parki.ewald.plan(kernel, trg, src, **({"box": BOX, "tolerance": TOLERANCE} | options))(*strengths)


def error(u, exact):
    """Return the relative RMS error."""
    return np.linalg.norm(u - exact) / np.linalg.norm(exact)


def strengths_for(kernel, n, rng, neutral=False):
    """Return densities, for a double layer also normals."""
    dens = rng.standard_normal((DENS[kernel], n))
    if neutral:
        dens -= dens.mean(axis=1, keepdims=True)
    normals = [rng.standard_normal((3, n))] if kernel in ("stokes_dl", "stokes_comb") else []
    return [dens if DENS[kernel] > 1 else dens[0], *normals]


def cloud(rng, n, box=BOX):
    return np.array(box)[:, None] * rng.random((3, n))


def exactly(kernel, trg, src, strengths, box, periodic):
    """Return the exact sum with any axes periodic: axes and components are reordered, periodic ones first."""
    order = sorted(range(3), key=lambda axis: not periodic[axis])

    def turned(v):
        return v if v.ndim == 1 else v.reshape(-1, 3, v.shape[1])[:, order].reshape(v.shape)

    u = sums.periodic(
        kernel, trg[order], src[order], *map(turned, strengths), box=np.array(box)[order], periodicity=sum(periodic)
    )
    return u if u.ndim == 1 else u[np.argsort(order)]


# Frozen cases


@pytest.fixture(scope="module")
def cases(root):
    with np.load(root / "tests" / "data" / "ewald_cases.npz") as file:
        return dict(file)


@pytest.mark.parametrize(("kernel", "periodicity"), every(3, itertools.product(KERNELS, range(4))))
def test_frozen_cases(kernel, periodicity, cases):
    """Each kernel meets each tolerance for some periodicity, and each periodicity for some kernel."""
    tolerance = TOLERANCES[(KERNELS.index(kernel) + periodicity) % 3]
    for case in ("cube_plain", "cube_neutral", "brick_plain", "brick_neutral"):
        get = {name.removeprefix(f"{case}_"): a for name, a in cases.items() if name.startswith(case)}
        dens = {"laplace": get["charges"], "laplace_grad": get["charges"], "stokes_comb": get["dens"]}
        dens |= {"stokes_sl": get["dens"][:3], "stokes_dl": get["dens"][3:]}
        given = [dens[kernel], *([get["normals"]] if kernel in ("stokes_dl", "stokes_comb") else [])]
        options = {"box": tuple(get["box"]), "periodicity": periodicity, "tolerance": tolerance}
        u = total(kernel, get["targets"], get["sources"], given, **options)
        assert error(u, get[f"{kernel}_{periodicity}p"]) <= tolerance, case


@pytest.mark.parametrize("rc", [None, 0.9])
@pytest.mark.parametrize("periodicity", [1, 2])
def test_few_points_along_a_period(periodicity, rc):
    """A cutoff is at most half a period, or smaller errors are aimed at: those of few modes do not average out."""
    for seed in range(8):
        rng = np.random.default_rng([seed, 1])
        n = int(rng.integers(20, 80))
        src, trg = rng.random((3, n)), rng.random((3, 25))
        (charges,) = strengths_for("laplace_grad", n, rng)
        options = {"box": (1.0, 1.0, 1.0), "periodicity": periodicity, "tolerance": 1e-4, "rc": rc}
        u = total("laplace_grad", trg, src, [charges], **options)
        exact = sums.periodic("laplace_grad", trg, src, charges, box=np.ones(3), periodicity=periodicity)
        assert error(u, exact) <= 1e-4, seed


@pytest.mark.parametrize("periodicity", range(4))
def test_single_precision(periodicity, rng):
    for kernel in ("laplace", "stokes_comb"):
        src, strengths = cloud(rng, 60), strengths_for(kernel, 60, rng)
        given = [a.astype(np.float32) for a in (src, *strengths)]
        u = total(kernel, given[0], given[0], given[1:], periodicity=periodicity, tolerance=1e-3)
        assert u.dtype == np.float32
        double = [a.astype(float) for a in given]
        exact = sums.periodic(kernel, double[0], *(double[:2]), *double[2:], box=BOX, periodicity=periodicity)
        assert error(u, exact) <= 1e-3


# Axes


@pytest.mark.parametrize("periodic", FLAGS, ids=str)
@pytest.mark.parametrize("kernel", ["laplace_grad", "stokes_sl", "stokes_dl"])
def test_any_axes(kernel, periodic, rng):
    trg, src, strengths = cloud(rng, 20), cloud(rng, 30), strengths_for(kernel, 30, rng)
    u = total(kernel, trg, src, strengths, periodicity=periodic, tolerance=1e-3)
    assert error(u, exactly(kernel, trg, src, strengths, BOX, periodic)) <= 1e-3


def test_matrices_are_in_the_callers_axes(rng):
    x, (dens,) = cloud(rng, 30), strengths_for("stokes_sl", 30, rng)
    step = 1e-4
    for periodic in ((False, True, True), (True, False, True), (False, False, True)):
        # Differences of the sum itself, by moving targets, which lie apart from the sources.
        trg = cloud(rng, 12) * 0.9 + 0.03
        u = total("stokes_grad", trg, x, (dens,), periodicity=periodic, tolerance=1e-4).reshape(3, 3, -1)
        for axis in range(3):
            move = step * (np.arange(3) == axis)[:, None]
            above, below = (exactly("stokes_sl", trg + s * move, x, (dens,), BOX, periodic) for s in (1, -1))
            difference = (above - below) / (2 * step)
            assert error(u[:, axis], difference) < 1e-3


@pytest.mark.parametrize("periodic", [flags for flags in FLAGS if any(flags)], ids=str)
def test_periods_and_shifts_change_nothing(periodic, rng):
    on = np.array(periodic)[:, None]
    trg, src, strengths = cloud(rng, 25), cloud(rng, 40), strengths_for("stokes_sl", 40, rng)
    u = total("stokes_sl", trg, src, strengths, periodicity=periodic)
    periods = [on * np.array(BOX)[:, None] * rng.integers(-3, 4, x.shape) for x in (trg, src)]
    moved = total("stokes_sl", trg + periods[0], src + periods[1], strengths, periodicity=periodic)
    np.testing.assert_allclose(moved, u, rtol=0, atol=1e-11 * np.abs(u).max())
    shift = on * 10 * rng.standard_normal((3, 1))
    assert error(total("stokes_sl", trg + shift, src + shift, strengths, periodicity=periodic), u) <= 2 * TOLERANCE


@pytest.mark.parametrize("periodic", FLAGS, ids=str)
def test_faces(periodic, rng):
    """Opposite faces are one along periodic axes, and two along free axes, where both belong to the box."""
    src, strengths = cloud(rng, 40), strengths_for("stokes_sl", 40, rng)
    for axis in range(3):
        src[axis, 4 * axis : 4 * axis + 2], src[axis, 4 * axis + 2 : 4 * axis + 4] = 0.0, BOX[axis]
    given = {"periodicity": periodic}
    u = total("stokes_sl", src, src, strengths, **given)
    assert error(u, exactly("stokes_sl", src, src, strengths, BOX, periodic)) <= TOLERANCE
    other = src.copy()
    for axis in np.flatnonzero(periodic):
        at = [src[axis] == face for face in (0.0, BOX[axis])]
        other[axis, at[0]], other[axis, at[1]] = BOX[axis], 0.0
    np.testing.assert_array_equal(total("stokes_sl", other, other, strengths, **given), u)


@pytest.mark.parametrize("periodic", [flags for flags in FLAGS if not all(flags)], ids=str)
def test_points_beyond_a_free_side_are_named(periodic, rng):
    axis = periodic.index(False)
    x = cloud(rng, 20)
    x[axis, 7] = BOX[axis] + 0.1
    with pytest.raises(ValueError, match=rf"1 of 20 points of sources lie outside .*index 7, {'xyz'[axis]} = "):
        parki.ewald.plan("laplace", cloud(rng, 5), x, box=BOX, periodicity=periodic)


# Free directions


@pytest.mark.parametrize("neutral", [True, False])
@pytest.mark.parametrize("periodicity", [0, 1, 2])
@pytest.mark.parametrize("kernel", ["laplace", "stokes_sl"])
def test_free_sides_do_not_matter(kernel, periodicity, neutral, rng):
    """Neither sides nor places along free axes matter: constants of a net strength are the kernel's, not the box's."""
    free = np.arange(3) >= periodicity
    src, strengths = cloud(rng, 40), strengths_for(kernel, 40, rng, neutral)
    given = {"periodicity": periodicity}
    u = total(kernel, src, src, strengths, **given)
    for side, shift in ((1.5, 0.3), (3.0, 1.7)):
        box, moved = np.where(free, side * np.array(BOX), BOX), src + free[:, None] * (shift * np.array(BOX)[:, None])
        assert error(total(kernel, moved, moved, strengths, **given, box=tuple(box)), u) <= 2 * TOLERANCE


@pytest.mark.parametrize("kernel", KERNELS)
def test_without_periods_it_is_the_direct_sum(kernel, rng):
    src, strengths = cloud(rng, 80), strengths_for(kernel, 80, rng)
    trg = np.concatenate([src[:, ::2], cloud(rng, 30)], axis=1)
    exact = parki.direct.direct_sum(kernel, trg, src, *strengths)
    assert error(total(kernel, trg, src, strengths, periodicity=0), exact) <= TOLERANCE
    assert error(total(kernel, trg, src, strengths, periodicity=0, box=None), exact) <= TOLERANCE


@pytest.mark.parametrize("where", [(-50.0, 7.0, 400.0), (1e5, 1e5, -1e5)], ids=str)
def test_points_anywhere_in_free_space(where, rng):
    near, strengths = cloud(rng, 60, (3.0, 0.1, 20.0)), strengths_for("stokes_sl", 60, rng)
    x = near + np.array(where)[:, None]
    exact = parki.direct.direct_sum("stokes_sl", x, x, *strengths)
    assert error(total("stokes_sl", x, x, strengths, periodicity=0, box=None), exact) <= TOLERANCE


LONG = [
    (0, (20.0, 1.0, 1.0)),
    (1, (1.0, 1.0, 20.0)),
    (1, (20.0, 1.0, 1.0)),
    (2, (1.0, 20.0, 1.0)),
    (3, (1.0, 1.0, 20.0)),
]
LONG += [(2, (5.0, 5.0, 0.25)), (2, (1.0, 1.0, 20.0))]


@pytest.mark.parametrize(("periodicity", "box"), LONG, ids=str)
def test_long_and_flat_boxes(periodicity, box, rng):
    src, strengths = cloud(rng, 25, box), strengths_for("stokes_sl", 25, rng)
    u = total("stokes_sl", src, src, strengths, periodicity=periodicity, box=box, tolerance=1e-3)
    assert error(u, exactly("stokes_sl", src, src, strengths, box, [a < periodicity for a in range(3)])) <= 1e-3


# Thin clouds


@pytest.mark.parametrize("box", [BOX, None], ids=str)
@pytest.mark.parametrize("periodicity", [0, 1, 2])
def test_clouds_without_thickness(periodicity, box, rng):
    if box is None and periodicity:
        pytest.skip("a box with periods has sides")
    strengths = strengths_for("stokes_sl", 30, rng)
    for flat in range(periodicity, 3):
        src = cloud(rng, 30)
        src[flat] = 0.37
        u = total("stokes_sl", src, src, strengths, periodicity=periodicity, box=box)
        exact = exactly("stokes_sl", src, src, strengths, BOX, [a < periodicity for a in range(3)])
        assert error(u, exact) <= TOLERANCE


@pytest.mark.parametrize("periodicity", range(4))
def test_one_point_and_two_at_one_place(periodicity, rng):
    boxes = (BOX, None) if periodicity == 0 else (BOX,)
    for box in boxes:
        for n in (1, 2):
            x = np.repeat(cloud(rng, 1), n, axis=1)
            q = np.arange(1.0, n + 1)
            u = total("laplace", x, x, (q,), periodicity=periodicity, box=box)
            assert u.shape == (n,)
            if periodicity == 0:  # no other point and no image
                assert np.abs(u).max() <= TOLERANCE * 10
            else:
                exact = sums.periodic("laplace", x, x, q, box=BOX, periodicity=periodicity)
                assert error(u, exact) <= TOLERANCE


@pytest.mark.parametrize("periodicity", range(4))
def test_no_points(periodicity):
    nothing = np.zeros((3, 0))
    for box in (BOX, None) if periodicity == 0 else (BOX,):
        given = {"periodicity": periodicity, "box": box}
        assert total("laplace", nothing, nothing, (nothing[0],), **given).shape == (0,)
        x = np.full((3, 4), 0.4)
        np.testing.assert_array_equal(total("stokes_sl", x, nothing, (nothing,), **given), np.zeros((3, 4)))
        assert total("stokes_sl", nothing, x, (x,), **given).shape == (3, 0)
