"""Functions of the modes: formulas, whole sums without a grid, and the error that a window leaves."""

import dataclasses

import numpy as np
import pytest

from parki.ewald.kernels import FAXEN, KERNELS
from parki.ewald.split import layers, profiles, window
from parki.ewald.split.means import Surroundings
from tests.ewald import sums
from tests.ewald.one_call import KAPPA, Caller, find
from tests.quick import every

FILES = {kernel.multiplier: kernel for kernel in (*KERNELS.values(), FAXEN)}


@pytest.fixture(scope="module")
def caller(tmp_path_factory):
    return Caller(tmp_path_factory.mktemp("kernels"))


def formula(file, k, g, v):
    """Multiply modes in plain NumPy."""
    along = np.sum(k * v[:3], axis=0) / np.sum(k * k, axis=0)
    match file.removeprefix("multiplier/"):
        case "scalar":
            return g * v
        case "divergence":
            return -1j * g * np.sum(k * v, axis=0)[None]
        case "curl":
            return 1j * g * np.cross(k, v, axis=0)
        case "stokes":
            return g * (v - k * along)
        case "spheres":
            u = formula("stokes", k, g, v[:3] + 0.5j * np.cross(k, v[3:], axis=0))
            return np.concatenate([u, 0.5j * np.cross(k, u, axis=0)])
        case "stokes_dipole":
            return formula("stokes", k, g, -1j * np.einsum("ijn,jn->in", v.reshape(3, 3, -1), k))
        case "faxen":
            k2 = np.sum(k * k, axis=0)
            return np.concatenate([formula("stokes", k, g, v[:3] - k2 * v[3:]), -k2 * formula("stokes", k, g, v[:3])])
        case "stokes_comb":
            return g * (v[:3] - k * along + 1j * k * v[3])


@pytest.mark.parametrize("file", FILES)
def test_formulas(caller, rng, file):
    kernel, n = FILES[file], 50
    k, g = rng.standard_normal((3, n)), rng.standard_normal(n)
    v = rng.standard_normal((kernel.spread, n)) + 1j * rng.standard_normal((kernel.spread, n))
    assert caller.multiply(kernel, k, g, v) == pytest.approx(formula(file, k, g, v), abs=1e-12)


@pytest.mark.parametrize("file", FILES)
def test_the_mode_zero_is_finite(caller, file):
    """At k = 0 the direction is n = (0, 0, 1), and scalars pass."""
    kernel = FILES[file]
    w = caller.multiply(kernel, np.zeros((3, 1)), np.ones(1), np.ones((kernel.spread, 1), complex))
    assert np.isfinite(w).all()
    passing = (
        "multiplier/scalar",
        "multiplier/stokes",
        "multiplier/stokes_comb",
        "multiplier/spheres",
        "multiplier/faxen",
    )
    assert (w[0, 0] == 1) == (file in passing)


# Sums of modes


def modes_of(kmax):
    """Return the wave vectors below kmax in a unit box."""
    most = int(kmax / (2 * np.pi)) + 1
    k = 2 * np.pi * (np.indices((2 * most + 1,) * 3).reshape(3, -1) - most)
    return k[:, np.sum(k * k, axis=0) < kmax**2]


def far(caller, kernel, split, k, here, there, s, n, slopes=None):
    """Return the far field of the modes k without a grid; `here` and `there` are exp(ik·x) and exp(−ik·y), (N, modes).

    `slopes` (3, N, modes) are the derivatives of `here`, by default those of exp(ik·x).
    """
    k2 = np.sum(k * k, axis=0)
    safe = np.where(k2 > 0, k2, 1.0) if not kernel.spectrum.screened else k2 + kernel.kappa**2
    green = (8 if kernel.spectrum.planar == 2 else 4) * np.pi / (1.0 if kernel.spectrum.flat else safe)
    g = kernel.scale * green * kernel.profile(split, np.sqrt(k2))
    if not kernel.spectrum.screened:
        g = np.where(k2 > 0, g, 0.0)
    v = s[: kernel.spread] @ there
    if kernel.slopes:
        q = s[-3:]
        double = np.einsum("dj,jm,jm->dm", q, n.T @ k, there) + np.einsum("dj,jm,jm->dm", n, q.T @ k, there)
        single = s[:3] @ there if kernel.single else 0.0
        v = np.concatenate([single + 1j * double, (np.sum(q * n, axis=0) @ there)[None]])
    w = caller.multiply(kernel, k, g, v)
    values = [] if kernel.gather == "slopes" else [*(w @ here.T)]
    if kernel.gather != "values":
        along = 1j * k[:, None] * here if slopes is None else slopes
        values += [field @ axis.T for field in w for axis in along]
    return np.array(values).real


def waves(k, x):
    return np.exp(1j * x.T @ k)


def strengths(kernel, rng, n):
    return rng.standard_normal((kernel.dens, n)), rng.standard_normal((3, n)) if kernel.normals else None


def near(caller, kernel, split, rc, x, s, normals):
    """Sum the near field of all pairs and images within rc, in a unit box."""
    count = x.shape[1]
    i, j = (index.ravel() for index in np.indices((count, count)))
    u = np.zeros((kernel.result, count))
    for image in np.ndindex(3, 3, 3):
        r = x[:, i] - x[:, j] + np.array(image)[:, None] - 1.0
        keep = np.sum(r * r, axis=0) < rc**2
        if keep.any():
            n = None if normals is None else normals[:, j[keep]]
            found = caller.near(kernel, split, r[:, keep], s[:, j[keep]], n)
            for row, values in zip(u, found, strict=True):
                row += np.bincount(i[keep], values, count)
    return u


def in_turn(names, pair):
    """Return each name with both of a pair, of which every second name has the other first, and the second as slow."""
    return every(2, [(name, *one) for k, name in enumerate(names) for one in (pair if k % 2 else pair[::-1])])


@pytest.mark.parametrize(
    ("name", "split", "c", "xi"),
    in_turn(
        [*KERNELS, "laplace_and_grad", "yukawa_and_grad", "yukawa_grad"],
        [("prolate", 22.0, 0.0), ("gaussian", 44.0, 8.8)],
    ),
)
def test_near_and_far_fields_add_up(caller, rng, name, split, c, xi):
    """A kernel's profile, far parts, modes and mean suffice: any split gives the same sum."""
    kernel, rc, n = find(name), 0.5, 12
    profile = profiles.profile(split, c, rc, xi)
    x = rng.random((3, n))
    s, normals = strengths(kernel, rng, n)
    k = modes_of(profile.kmax)
    u = far(caller, kernel, profile, k, waves(k, x), waves(k, x).conj(), s, normals)
    u = u + near(caller, kernel, profile, rc, x, s, normals)
    if kernel.mean:
        constants = kernel.mean(Surroundings((1.0,) * 3, 3, 0.0, 0.0, profile, rc, kernel.parameter()))
        if kernel.spectrum.screened:  # the sum over modes here includes k = 0
            constants -= 4 * np.pi / KAPPA**2 / profile.growth(KAPPA)
        u[: kernel.fields] += (constants * s[: kernel.fields].sum(axis=1))[:, None]
    given = {"kappa": KAPPA} | sums.PARAMETERS.get(name, {})
    exact = sums.periodic(name, x, x, s, normals, **given).reshape(kernel.result, n)
    size = np.sqrt(np.sum(exact**2) / (n * np.sum(s**2)))
    units = [layer.unit(rc, 1.0) / size if layer.cubic else layer.units(rc, 1.0, n, True)[0] for layer in kernel.layers]
    levels = [layer.truncation(split, c, xi * rc) * unit for layer, unit in zip(kernel.layers, units, strict=True)]
    error = np.sqrt(np.sum((u - exact) ** 2) / np.sum(exact**2))
    growth = float(kernel.growth(-(profiles.rate(split, c, rc, xi * rc) ** 2)))
    assert error < 2 * growth * max(levels)
    assert 2 * max(levels) < 1e-5


# Windows


def gridded(k, x, m, P, beta, along=None):
    """Return exp(ik·x), (N, modes), from a grid of m points an axis by a window of P, or its slope `along` an axis."""
    h, found = 1.0 / m, 1.0
    for axis, (kd, xd) in enumerate(zip(k, x, strict=True)):
        nodes, width = np.arange(-P, m + P), 0.5 * P * h
        z = (nodes * h - xd[:, None]) / width
        weights = -window.slope(z, beta) / width if axis == along else window.value(z, beta)
        found = found * (weights @ np.exp(1j * np.outer(nodes * h, kd))) * (h / window.transform(P, beta, kd, h))
    return found


WINDOWED = ("laplace", "laplace_grad", "laplace_dipole", "stokes_sl")
WINDOWED += ("stokes_pressure", "stokes_grad", "stokes_dipole", "regularised_dipole")


@pytest.mark.parametrize(("name", "m", "P", "beta"), in_turn(WINDOWED, [(16, 6, 14.0), (24, 5, 13.0)]))
def test_the_error_of_windows_is_as_estimated(caller, rng, name, m, P, beta):
    kernel, rc, c, n = find(name), 0.5, 16.0, 60
    profile = profiles.Prolate(c, c / rc)
    x = rng.random((3, n))
    s, _ = strengths(kernel, rng, n)
    k = modes_of(profile.kmax)
    exact, wave = waves(k, x), gridded(k, x, m, P, beta)
    slopes = [gridded(k, x, m, P, beta, axis) for axis in range(3)]
    right = far(caller, kernel, profile, k, exact, exact.conj(), s, None)
    found = far(caller, kernel, profile, k, wave, wave.conj(), s, None, slopes)
    error = np.sqrt(np.sum((found - right) ** 2) / n)
    (layer,) = kernel.layers
    low = (6 * np.pi**2) ** (1 / 3) * rc / c
    if layer.cubic:
        layer = dataclasses.replace(layer, width=kernel.parameter() / rc)
    both = window.alias(layer, "prolate", c, 0.0, low, P, beta, np.pi * m / profile.kmax)
    unit = np.sqrt(np.sum(s**2)) * kernel.scale
    if layer is layers.LAPLACE_GRAD and name != layer.name:
        unit /= np.sqrt(3)  # as in all estimates of `layers`
    fall = 3 if layer.cubic else 2 if layer.steep else 1
    estimate = unit * np.hypot(both[0] * layer.unit(rc, 1.0), both[1] / np.sqrt(n) / rc**fall)
    assert 0.4 < error / estimate < 1.4


@pytest.mark.parametrize("name", ["laplace_dipole", "stokes_pressure", "stokes_dipole", "rotlet"])
def test_sources_do_not_see_themselves(caller, rng, name):
    """Kernels with odd modes have no self-interaction, even on a coarse grid."""
    kernel, profile = find(name), profiles.Prolate(16.0, 32.0)
    x = rng.random((3, 1))
    s, _ = strengths(kernel, rng, 1)
    k = modes_of(profile.kmax)
    wave = gridded(k, x, 12, 4, 9.0)
    assert far(caller, kernel, profile, k, wave, wave.conj(), s, None) == pytest.approx(0, abs=1e-9)
