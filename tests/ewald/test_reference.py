"""Slow reference of the tests: frozen cases, known constants, independence of its splitting parameter."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from tests import reference

BRICK = (1.3, 0.8, 1.7)


@pytest.fixture(scope="module")
def cases():
    with np.load(Path(__file__).parent.parent / "data" / "ewald_cases.npz") as file:
        return dict(file)


def strengths(kernel, rng, n):
    return rng.standard_normal({"laplace": (n,), "stokes_sl": (3, n), "stokes_comb": (6, n)}[kernel])


@pytest.mark.parametrize("kernel", reference.KERNELS)
@pytest.mark.parametrize("label", ["plain", "neutral"])
@pytest.mark.parametrize("box", ["cube", "brick"])
def test_frozen_cases(cases, box, label, kernel):
    def get(name):
        return cases[f"{box}_{label}_{name}"]

    dens = {"laplace": get("charges"), "stokes_sl": get("dens")[:3], "stokes_comb": get("dens")}[kernel]
    u = reference.potential(kernel, get("targets"), get("sources"), dens, get("normals"), get("box"))
    exact = get(f"{kernel}_3p")
    assert u.shape == exact.shape
    assert np.abs(u - exact).max() <= 1e-12 * np.median(np.abs(exact))


@pytest.mark.parametrize("kernel", reference.KERNELS)
def test_does_not_depend_on_xi(rng, kernel):
    x = rng.random((3, 30)) * np.array(BRICK)[:, None]
    dens, normals = strengths(kernel, rng, 30), rng.standard_normal((3, 30))
    u = [reference.potential(kernel, x, x, dens, normals, BRICK, xi) for xi in (5.0, 7.0, 11.0)]
    assert reference.relative_rms(u[0], u[1]) <= 1e-13
    assert reference.relative_rms(u[2], u[1]) <= 1e-13


def madelung(basis, charges, nearest):
    """Return the first ion's charge times its potential in a crystal of unit cells, times the nearest distance."""
    x = np.array(basis, float).T
    u = reference.potential("laplace", x[:, :1], x, np.array(charges, float))
    return charges[0] * u[0] * nearest


def test_madelung_constants():
    rock_salt = list(itertools.product((0.0, 0.5), repeat=3))
    charges = [(-1) ** round(2 * sum(p)) for p in rock_salt]
    assert madelung(rock_salt, charges, 0.5) == pytest.approx(-1.7475645946331822, abs=1e-13)
    assert madelung([(0, 0, 0), (0.5, 0.5, 0.5)], [1, -1], np.sqrt(0.75)) == pytest.approx(
        -1.7626747730709884, abs=1e-13
    )


def test_single_charge_in_its_background():
    origin = np.full((3, 1), 0.3)
    u = reference.potential("laplace", origin, origin, np.ones(1))
    assert u[0] == pytest.approx(-2.8372974794806196, abs=1e-13)


def test_single_force_meets_hasimoto():
    origin = np.full((3, 1), 0.3)
    u = reference.potential("stokes_sl", origin, origin, np.array([[0.0], [1.0], [0.0]]))
    assert u[:, 0] == pytest.approx([0.0, -4 / 3 * 2.8372974794806196, 0.0], abs=1e-12)


def test_many_points_agree_with_few(rng):
    """Other chunks and another ξ give the same, with more sources than one chunk of the plane waves."""
    x, dens = rng.random((3, 4100)), rng.standard_normal(4100)
    few = reference.potential("laplace", x[:, :5], x, dens)
    other = reference.potential("laplace", x[:, :9], x, dens, xi=9.0)[:5]
    assert reference.relative_rms(few, other) <= 1e-12


def test_unknown_kernel_is_refused():
    with pytest.raises(ValueError, match="kernel: found 'yukawa'"):
        reference.potential("yukawa", np.zeros((3, 1)), np.zeros((3, 1)), np.ones(1))
