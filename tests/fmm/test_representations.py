"""Equivalents of pairs, against plain formulas."""

from pathlib import Path

import numpy as np
import pytest

from parki import pairs
from parki.fmm import representations, symmetry
from tests.fmm import plain

A, KAPPA = 0.05, 1.3
STOKES = {
    "stokes_sl": (plain.force, slice(0, 3)),
    "stokes_dl": (plain.stresslet, slice(0, 3)),
    "stokes_comb": (lambda r: np.concatenate([plain.force(r), plain.stresslet(r)], axis=-1), slice(0, 3)),
    "stokes_pressure": (plain.force, slice(3, 4)),
    "rotlet": (plain.torque, slice(0, 3)),
    "rpy": (lambda r: plain.sphere(r, A), slice(0, 3)),
}
PARAMETERS = {"rpy": {"radius": A}, "yukawa": {"kappa": KAPPA}}


@pytest.fixture
def r(rng):
    return rng.standard_normal((40, 3))


def find(name):
    return representations.find(pairs.find(name, **PARAMETERS.get(name, {})))


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-13 * np.abs(b).max())


@pytest.mark.parametrize("name", STOKES)
def test_stokes_kernels(name, r):
    representation, (source, components) = find(name), STOKES[name]
    close(representations.block(representation.up, r), plain.both(r))
    close(representations.block(representation.source, r), source(r))
    close(representations.block(representation.target, r), plain.both(r)[:, components])
    close(representations.block(representation.pair, r), source(r)[:, components])
    assert (representation.a, representation.b, representation.per_level) == ((0, 0, 0, 1), (1, 1, 1, 2), False)
    assert representation.masks == ((4, 2, 1, 0), (4, 2, 1, 0))
    assert representation.separation(1e-6) == (2 * A if name == "rpy" else 0)


def test_stokes_gradient(r):
    representation = find("stokes_grad")
    slope = plain.gradient(plain.both, r)[:, :3].transpose(0, 1, 3, 2).reshape(-1, 9, 4)
    apart = np.linalg.norm(r, axis=1) > 0.8
    error = np.abs(representations.block(representation.target, r) - slope)[apart]
    assert error.max() < 1e-8 * np.abs(slope[apart]).max()


@pytest.mark.parametrize("name", ["stokes_sl", "stokes_dl", "stokes_dipole", "rotlet", "rpy"])
def test_sources_make_stokes_flows(name):
    """Check ∇²u = ∇p and ∇·u = 0 by differences of values of parki itself."""
    r, h, representation = 1.5 * symmetry.GENERIC / np.linalg.norm(symmetry.GENERIC, axis=1)[:, None], 1e-3, find(name)

    def value(x):
        return representations.block(representation.source, x)

    step = h * np.eye(3)
    here = value(r)
    sides = [(value(r + s), value(r - s)) for s in step]
    laplacian = sum(a + b - 2 * here for a, b in sides)[:, :3] / h**2
    slope = np.stack([(a - b)[:, 3] for a, b in sides], axis=1) / (2 * h)
    divergence = sum((a - b)[:, i] for i, (a, b) in enumerate(sides)) / (2 * h)
    size = np.abs(np.stack([(a - b)[:, :3] for a, b in sides])).max() / (2 * h)
    assert np.abs(laplacian - slope).max() < 1e-4 * size
    assert np.abs(divergence).max() < 1e-5 * size


@pytest.mark.parametrize("name", ["laplace", "yukawa"])
def test_charges(name, r):
    representation, kappa = find(name), KAPPA * (name == "yukawa")
    close(representations.block(representation.up, r), plain.charge(r, kappa))
    close(representations.block(representation.source, r), plain.charge(r, kappa))
    both = representations.find(representation.pair.with_gradient())
    slope = representations.find(representation.pair.with_gradient(only=True))
    assert both.up == slope.up == representation.up
    close(representations.block(both.target, r), plain.charge(r, kappa, gradient=True))
    close(representations.block(slope.target, r), plain.charge(r, kappa, gradient=True)[:, 1:])
    assert representation.per_level is both.per_level is (name == "yukawa")
    unit = representation.at(0.25)  # K(r; κ) = K(r/h; κh) h^−1
    close(representations.block(unit, r / 0.25) / 0.25, plain.charge(r, kappa))


def test_dipoles(r):
    representation = find("laplace_dipole")
    close(representations.block(representation.source, r), plain.dipole(r))
    assert representation.up.name == representation.target.name == "laplace"
    assert find("laplace_grad").target.name == "laplace_grad"


@pytest.mark.parametrize("name", ["gaussian", "multiquadric", "thin_plate", "biharmonic", "oscillatory"])
def test_kernels_that_no_surface_sources_make(name):
    parameters = {"width": 1.0} if name in ("gaussian", "multiquadric") else {}
    with pytest.raises(ValueError, match=rf"kernel is {name}.*parki\.fmm\.chebyshev"):
        representations.find(pairs.find(name, **parameters))


def test_regularised_kernels_do_not_converge():
    """Show the reason for point charges in expansions: errors of softened ones stay above 1e-6 with more points."""
    pair, rng = pairs.find("regularised_coulomb", epsilon=0.5), np.random.default_rng(1)
    y, x, q = rng.uniform(-1, 1, (30, 3)), rng.uniform(-1, 1, (30, 3)) + np.array([4, 0, 0]), rng.uniform(-1, 1, 30)

    def matrix(x, y):
        return plain.matrix(lambda r: representations.block(pair, r.reshape(-1, 3)).reshape(*r.shape[:2], 1, 1), x, y)

    errors = []
    for p in (6, 8):
        inner, outer = plain.surface(p, 1.05), plain.surface(p, 2.95)
        u, s, vt = np.linalg.svd(matrix(outer, inner))
        keep = s > 1e-9 * s[0]
        e = (vt[keep].T / s[keep]) @ (u[:, keep].T @ (matrix(outer, y) @ q))
        exact = matrix(x, y) @ q
        errors.append(np.linalg.norm(matrix(x, inner) @ e - exact) / np.linalg.norm(exact))
    assert min(errors) > 1e-6
    assert representations.find(pair).up.name == "laplace"
    with pytest.raises(ValueError, match="chebyshev"):
        representations.find(pairs.find("regularised_yukawa", kappa=1.0, epsilon=0.5))


def test_a_kernel_of_ones_own(tmp_path):
    path = Path(__file__).with_name("skewed.py")
    own = representations.find(pairs.find(path))
    assert own.up == own.down == own.source == own.target
    assert own.masks is None
    assert (own.a, own.b, own.per_level) == ((0, 0), (1, 1), False)  # found by itself
    text = path.read_text("utf-8")
    (tmp_path / "screened.py").write_text(text.replace("w * s[1]", "pk.exp(-r2) * s[1]"), "utf-8")
    screened = representations.find(pairs.find(tmp_path / "screened.py"))
    assert (screened.a, screened.b, screened.per_level, screened.size(0.3)) == (None, None, True, 0.3)


@pytest.mark.parametrize("name", ["laplace_grad", "stokeslet", "rotlet", "stokes_grad", "stokes_dipole"])
def test_exponents_and_parities_of_many(name, r):
    """Find exponents and parities from values: K(λr) and K(Rr) follow from K(r)."""
    pair = pairs.find(name)
    a, b = representations.exponents(pair)
    rows, columns = symmetry.parities(lambda r: representations.block(pair, r))
    here = representations.block(pair, r)
    close(representations.block(pair, 1.7 * r), here * 1.7 ** -(np.array(a)[:, None] + b))
    for g in range(8):
        turned = r * np.where([g & 4, g & 2, g & 1], -1, 1)
        sign = symmetry.SIGNS[g, list(rows)][:, None] * symmetry.SIGNS[g, list(columns)]
        close(representations.block(pair, turned), here * sign)


def test_exponents_of_kernels_with_a_length():
    assert representations.exponents(pairs.find("yukawa", kappa=1.0)) is None
    assert representations.exponents(pairs.find("regularised_stokeslet", epsilon=0.1)) is None
    # At any width: at distances near 1 a short one looks like zero, a long one like a constant.
    for width in (1e-3, 1e8):
        assert representations.exponents(pairs.find("gaussian", width=width)) is None
        assert representations.exponents(pairs.find("inverse_quadratic", width=width)) is None


@pytest.mark.parametrize("factor", ["pk.exp(-1e6 * r2)", "(1.0 + 1e-14 * r2)", "pk.exp(-1e-14 * r2)"])
def test_lengths_of_ones_own_kernels_are_found(factor, tmp_path):
    """Find also the axes that a kernel prefers where it is not zero."""
    text = Path(__file__).with_name("skewed.py").read_text("utf-8")
    text = text.replace("w * s[1] + 0.1 * v * s[0]", f"{factor} * w * s[1]").replace("v * s[0]", f"{factor} * v * s[0]")
    (tmp_path / "screened.py").write_text(text, "utf-8")
    representation = representations.find(pairs.find(tmp_path / "screened.py"))
    assert (representation.a, representation.masks) == (None, None)
