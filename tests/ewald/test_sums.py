"""Fully periodic sums: exact cases, known constants, invariances."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import parki
from tests import reference
from tests.catalogue import COMPONENTS
from tests.quick import every

MADELUNG = {"NaCl": -1.7475645946331822, "CsCl": -1.7626747730709884}
ONE_CHARGE = -2.8372974794806196  # potential at a charge in a unit cube with its background
BRICK = (1.3, 0.8, 1.7)


def total(kernel, trg, src, strengths, **options):
    return getattr(parki.ewald, kernel)(trg, src, *strengths, **options)


def cloud(kernel, rng, nt, ns, box=(1.0, 1.0, 1.0)):
    """Return random targets, sources and strengths."""
    sides = np.array(box)[:, None]
    dens = rng.standard_normal((COMPONENTS[kernel], ns) if COMPONENTS[kernel] > 1 else ns)
    normals = (rng.standard_normal((3, ns)),) if kernel == "stokes_comb" else ()
    return sides * rng.random((3, nt)), sides * rng.random((3, ns)), (dens, *normals)


def error(u, exact):
    return reference.relative_rms(u, exact)


@pytest.fixture(scope="module")
def cases():
    with np.load(Path(__file__).parent.parent / "data" / "ewald_cases.npz") as file:
        return dict(file)


@pytest.mark.parametrize(
    ("shape", "tolerance"),
    every(3, [("cube", 1e-9), ("cube", 1e-2), ("cube", 1e-5), ("brick", 1e-3), ("brick", 1e-7), ("brick", 1e-12)]),
)
@pytest.mark.parametrize("kernel", COMPONENTS)
def test_frozen_cases(kernel, shape, tolerance, cases):
    for case in (f"{shape}_plain", f"{shape}_neutral"):
        get = {name.removeprefix(f"{case}_"): a for name, a in cases.items()}
        strengths = {"laplace": (get["charges"],), "stokes_sl": (get["dens"][:3],)}.get(
            kernel, (get["dens"], get["normals"])
        )
        u = total(kernel, get["targets"], get["sources"], strengths, box=tuple(get["box"]), tolerance=tolerance)
        assert error(u, get[f"{kernel}_3p"]) <= tolerance


def crystal(name, cells):
    """Return ions, at nearest distance 1, and charges of a crystal of `cells`³ elementary cubes, and the box's side."""
    base, charges = {
        "NaCl": (np.array(list(itertools.product((0, 1), repeat=3)), float).T, [1, -1, -1, 1, -1, 1, 1, -1]),
        "CsCl": (np.array([[0, 0.5], [0, 0.5], [0, 0.5]]) * 2 / np.sqrt(3), [1, -1]),
    }[name]
    edge = 2.0 if name == "NaCl" else 2 / np.sqrt(3)
    moves = edge * np.array(list(itertools.product(range(cells), repeat=3)), float).T
    x = (base[:, :, None] + moves[:, None, :]).reshape(3, -1)
    return x, np.repeat(np.array(charges, float), moves.shape[1]), edge * cells


@pytest.mark.parametrize(("name", "tolerance"), every(4, itertools.product(MADELUNG, [1e-3, 1e-9, 1e-12])))
def test_madelung(name, tolerance):
    x, q, side = crystal(name, 1)
    u = parki.ewald.laplace(x, x, q, box=(side,) * 3, tolerance=tolerance)
    assert error(u, MADELUNG[name] * q) <= tolerance


@pytest.mark.parametrize(
    ("name", "cells", "split"), every(3, itertools.product(MADELUNG, [2, 3, 4, 6], ["prolate", "gaussian"]))
)
def test_larger_crystals(name, cells, split):
    """Whole shells of a perfect crystal err alike; parameters account for this."""
    x, q, side = crystal(name, cells)
    u = parki.ewald.laplace(x, x, q, box=(side,) * 3, tolerance=1e-9, split=split)
    assert error(u, MADELUNG[name] * q) <= 1e-9


@pytest.mark.parametrize("tolerance", [1e-3, 1e-9, 1e-12])
@pytest.mark.parametrize("side", [1.0, 7.0])
def test_one_charge(side, tolerance):
    x = side * np.array([[0.3], [0.9], [0.1]])
    u = parki.ewald.laplace(x, x, np.ones(1), box=(side,) * 3, tolerance=tolerance)
    assert u[0] * side == pytest.approx(ONE_CHARGE, rel=tolerance)


@pytest.mark.parametrize(("axis", "tolerance"), every(4, itertools.product(range(3), [1e-3, 1e-9, 1e-12])))
def test_hasimoto(axis, tolerance):
    side = 2.5
    force = np.zeros((3, 1))
    force[axis] = 1.0
    x = np.array([[0.3], [0.9], [2.4]])
    u = parki.ewald.stokes_sl(x, x, force, box=(side,) * 3, tolerance=tolerance)
    assert error(u * side, 4 / 3 * ONE_CHARGE * force) <= tolerance


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_translation(kernel, rng):
    trg, src, strengths = cloud(kernel, rng, 40, 50, BRICK)
    move = np.array(BRICK)[:, None] * rng.random((3, 1))
    u = total(kernel, trg, src, strengths, box=BRICK, tolerance=1e-9)
    moved = [parki.utils.wrap(x + move, BRICK) for x in (trg, src)]
    assert error(total(kernel, *moved, strengths, box=BRICK, tolerance=1e-9), u) <= 2e-9


def turned(v):
    """Rotate about z: (x, y, z) → (−y, x, z), for each three components."""
    return v if v.ndim == 1 else np.concatenate([np.stack([-a[1], a[0], a[2]]) for a in np.split(v, len(v) // 3)])


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_rotation_by_a_right_angle(kernel, rng):
    trg, src, strengths = cloud(kernel, rng, 40, 50, BRICK)
    u = total(kernel, trg, src, strengths, box=BRICK, tolerance=1e-9)
    box = (BRICK[1], BRICK[0], BRICK[2])
    points = [parki.utils.wrap(turned(x), box) for x in (trg, src)]
    assert error(total(kernel, *points, [turned(s) for s in strengths], box=box, tolerance=1e-9), turned(u)) <= 2e-9


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_order_of_points(kernel, rng):
    trg, src, strengths = cloud(kernel, rng, 40, 50, BRICK)
    u = total(kernel, trg, src, strengths, box=BRICK, tolerance=1e-9)
    new_targets, new_sources = rng.permutation(40), rng.permutation(50)
    again = total(kernel, trg[:, new_targets], src, strengths, box=BRICK, tolerance=1e-9)
    np.testing.assert_allclose(again, u[..., new_targets], rtol=0, atol=1e-13 * np.abs(u).max())
    shuffled = [s[..., new_sources] for s in strengths]
    again = total(kernel, trg, src[:, new_sources], shuffled, box=BRICK, tolerance=1e-9)
    np.testing.assert_allclose(again, u, rtol=0, atol=1e-13 * np.abs(u).max())


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_parameters_of_the_split_do_not_matter(kernel, rng):
    trg, src, strengths = cloud(kernel, rng, 40, 50, BRICK)
    u = total(kernel, trg, src, strengths, box=BRICK, tolerance=1e-9)
    for choice in ({"rc": 0.8}, {"rc": 0.3, "split": "gaussian"}, {"cell_size": 4.0}):
        again, params = total(kernel, trg, src, strengths, box=BRICK, tolerance=1e-9, return_params=True, **choice)
        assert error(again, u) <= 2e-9
        rc = choice.get("rc", (4.0 * np.prod(BRICK) / 50) ** (1 / 3))
        assert params.rc == pytest.approx(rc, rel=1e-12)
        assert params.split == choice.get("split", "prolate")


def test_sum_is_symmetric(rng):
    """Exchange sources and targets: forces f at y along g at x sum to the same as g at x along f at y."""
    x, y, (g,) = cloud("stokes_sl", rng, 30, 30, BRICK)
    f = rng.standard_normal((3, 30))
    there = parki.ewald.stokes_sl(x, y, f, box=BRICK, tolerance=1e-9)
    back = parki.ewald.stokes_sl(y, x, g, box=BRICK, tolerance=1e-9)
    scale = np.linalg.norm(g) * np.linalg.norm(there)
    assert abs(np.sum(g * there) - np.sum(f * back)) <= 2e-9 * scale


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_linearity(kernel, rng):
    trg, src, (dens, *normals) = cloud(kernel, rng, 40, 50, BRICK)
    plan = parki.ewald.plan(kernel, trg, src, box=BRICK, tolerance=1e-9)
    other = rng.standard_normal(dens.shape)
    u, v = plan(dens, *normals), plan(other, *normals)
    both = plan(3.0 * dens - other, *normals)
    np.testing.assert_allclose(both, 3.0 * u - v, rtol=0, atol=1e-12 * np.abs(both).max())
    np.testing.assert_array_equal(plan(0.0 * dens, *normals), 0.0)
    np.testing.assert_array_equal(plan(2.0 * dens, *normals), 2.0 * u)
