"""The functions of the modes: formulas, parities, whole sums without a grid, and the error that a window leaves."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from parki import engine
from parki.ewald import kernels, profiles, radial, window
from parki.ewald.kernels import KERNELS


def load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sums = load("sums")
FILES = {kernel.multiplier: kernel for kernel in KERNELS.values()}
KAPPA = 3.0
ONE_MODE = '''"""One mode."""

from typing import List

import pykokkos as pk

from parki.kernels.multiplier.scalar import NIN, NOUT, multiply

real = pk.double


@pk.workunit
def one_mode(
    i: int, k: pk.View2D[real], n: pk.View2D[real], g: pk.View1D[real], vs: pk.View2D[real], ws: pk.View2D[real]
):
    """ws[:, i] = what becomes of vs[:, i]."""
    v: List[real] = [0.0] * (2 * NIN)
    w: List[real] = [0.0] * (2 * NOUT)
    for c in range(2 * NIN):
        v[c] = vs[c][i]
    for c in range(2 * NOUT):
        w[c] = 77.0
    multiply(k[0][i], k[1][i], k[2][i], n[0][i], n[1][i], n[2][i], g[i], v, w)
    for c in range(2 * NOUT):
        ws[c][i] = w[c]
'''


@pytest.fixture(scope="module")
def multiply(tmp_path_factory):
    """w (NOUT, modes) from the name of a file, k (3, modes), g (modes,) and v (NIN, modes)."""
    path = tmp_path_factory.mktemp("kernels") / "one_mode.py"
    path.write_text(ONE_MODE, "utf-8")

    def call(kernel, k, g, v):
        length = np.linalg.norm(k, axis=0)
        n = np.where(length > 0, k / np.where(length > 0, length, 1.0), np.array([0.0, 0.0, 1.0])[:, None])
        modes = len(length)
        vs = np.stack([v.real, v.imag], axis=1).reshape(-1, modes)
        ws = np.zeros((2 * kernel.result, modes))
        unit = engine.kernel(path, "one_mode", real="double", multiply=kernel.multiplier)
        engine.parallel_for(engine.RangePolicy("Serial", modes), unit, k=k, n=n, g=g, vs=vs, ws=ws)
        return ws[0::2] + 1j * ws[1::2]

    return call


def formula(file, k, g, v):
    """In plain NumPy."""
    along = np.sum(k * v[:3], axis=0) / np.sum(k * k, axis=0)
    match file.removeprefix("multiplier/"):
        case "scalar":
            return g * v
        case "gradient":
            return 1j * k * g * v
        case "divergence":
            return -1j * g * np.sum(k * v, axis=0)[None]
        case "stokes":
            return g * (v - k * along)
        case "stokes_comb":
            return g * (v[:3] - k * along + 1j * k * v[3])
        case "stokes_grad":
            return (1j * (g * (v - k * along))[:, None] * k[None]).reshape(9, -1)


@pytest.mark.parametrize("file", FILES)
def test_formulas(multiply, rng, file):
    kernel, n = FILES[file], 50
    k, g = rng.standard_normal((3, n)), rng.standard_normal(n)
    v = rng.standard_normal((kernel.spread, n)) + 1j * rng.standard_normal((kernel.spread, n))
    assert multiply(kernel, k, g, v) == pytest.approx(formula(file, k, g, v), abs=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_parities(multiply, rng, name):
    """Each component of the result, as a function of k for each that is spread."""
    kernel, n = KERNELS[name], 20
    assert len(kernel.odd) == kernel.result * kernel.spread
    k, g = rng.uniform(0.3, 1.0, (3, n)), np.ones(n)
    for s in range(kernel.spread):
        v = np.zeros((kernel.spread, n), complex)
        v[s] = 1.0
        w = multiply(kernel, k, g, v)
        for axis, letter in enumerate("xyz"):
            mirror = np.ones((3, 1))
            mirror[axis] = -1
            mirrored = multiply(kernel, mirror * k, g, v)
            for r in range(kernel.result):
                odd = kernel.odd[r * kernel.spread + s]
                assert (odd == "-") == (not w[r].any())
                assert mirrored[r] == pytest.approx(-w[r] if letter in odd else w[r], abs=1e-14)


@pytest.mark.parametrize("file", FILES)
def test_the_mode_zero_is_finite(multiply, file):
    """With n = (0, 0, 1); scalars pass."""
    kernel = FILES[file]
    w = multiply(kernel, np.zeros((3, 1)), np.ones(1), np.ones((kernel.spread, 1), complex))
    assert np.isfinite(w).all()
    assert (w[0, 0] == 1) == (file in ("multiplier/scalar", "multiplier/stokes", "multiplier/stokes_comb"))


# Sums of modes


def modes_of(kmax):
    """Wave vectors in a unit box."""
    most = int(kmax / (2 * np.pi)) + 1
    k = 2 * np.pi * (np.indices((2 * most + 1,) * 3).reshape(3, -1) - most)
    return k[:, np.sum(k * k, axis=0) < kmax**2]


def far(multiply, kernel, split, k, here, there, s, n):
    """Far field of the modes k without a grid; `here` and `there` are exp(ik·x) and exp(−ik·y), (N, modes)."""
    k2 = np.sum(k * k, axis=0)
    kappa = kernel.kappa
    safe = np.where(k2 > 0, k2, 1.0)
    green = {"harmonic": 4 * np.pi / safe, "biharmonic": 8 * np.pi / safe, "yukawa": 4 * np.pi / (k2 + kappa**2)}
    g = kernel.scale * green[kernel.green] * radial.kernel_profile(kernel, split, np.sqrt(k2))
    if kernel.green != "yukawa":
        g = np.where(k2 > 0, g, 0.0)
    v = s[: kernel.spread] @ there
    if kernel.slopes:
        q = s[-3:]
        double = np.einsum("dj,jm,jm->dm", q, n.T @ k, there) + np.einsum("dj,jm,jm->dm", n, q.T @ k, there)
        single = s[:3] @ there if kernel.single else 0.0
        v = np.concatenate([single + 1j * double, (np.sum(q * n, axis=0) @ there)[None]])
    return (multiply(kernel, k, g, v) @ here.T).real


def waves(k, x):
    return np.exp(1j * x.T @ k)


def strengths(kernel, rng, n):
    return rng.standard_normal((kernel.dens, n)), rng.standard_normal((3, n)) if kernel.normals else None


@pytest.mark.parametrize("split", profiles.SPLITS)
@pytest.mark.parametrize("name", KERNELS)
def test_near_and_far_fields_add_up(multiply, rng, name, split):
    """Data of a kernel are complete: with its modes, profile, far parts and mean, any split gives the same sum."""
    kernel = kernels.find(name, kappa=KAPPA if name == "yukawa" else None)
    rc, c, xi, n = 0.5, 22.0, 8.0, 12
    split = profiles.profile(split, c if split == "prolate" else 45.0, rc, xi)
    x = rng.random((3, n))
    s, normals = strengths(kernel, rng, n)
    k = modes_of(split.kmax)
    u = far(multiply, kernel, split, k, waves(k, x), waves(k, x).conj(), s, normals)
    u = u + near(kernel, split, rc, x, s, normals)
    if kernel.mean:
        constant = -radial.near_mean(kernel, split, rc)
        if name == "yukawa":
            constant += 4 * np.pi / KAPPA**2 * (1 - 1 / split.growth(KAPPA))
        u += constant * s[: kernel.result].sum(axis=1)[:, None]
    exact = sums.periodic(name, x, x, s, normals, kappa=KAPPA).reshape(kernel.result, n)
    level = 0.0
    for layer in kernel.layers:
        unit, _ = radial.units(layer, rc, 1.0, n, same=True)
        level += unit * radial.truncation(layer, "prolate" if xi * rc > 4.5 or c == split.kmax * rc else "gaussian", c, xi * rc)
    error = np.sqrt(np.sum((u - exact) ** 2) / np.sum(exact**2))
    assert error < 4 * level
    assert level < 2e-4
