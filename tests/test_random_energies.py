"""Random charges with forces, stresses and excluded pairs meet the requested tolerance; a seed names its case."""

import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import parki
from tests.ewald.strained import Charges

QUICK = 3  # number of seeds in every run
#: Numbers of periodic directions by kernel.
PERIODIC = {"laplace": (0, 1, 2, 3, 3), "yukawa": (0, 1, 2, 3)}


def molecules(rng, n, box, least):
    """Return points in a box in close groups of three, and the pairs of each group."""
    size = 10 ** rng.uniform(least, -0.8) * box.min()
    centres = size + rng.random((3, n // 3)) * (box - 2 * size)[:, None]
    x = np.repeat(centres, 3, axis=1) + 0.5 * size * rng.uniform(-1, 1, (3, n // 3 * 3))
    pairs = [(3 * m + a, 3 * m + b) for m in range(n // 3) for a, b in ((0, 1), (0, 2), (1, 2))]
    return x, np.array(pairs).T


def draw(seed):
    """Return the exact charges, and the options of a plan for them."""
    rng = np.random.default_rng([seed, 26])
    name = "yukawa" if seed % 4 == 1 else "laplace"
    periodicity = int(rng.choice(PERIODIC[name]))
    box = 10 ** rng.uniform(0, 0.5, 3)
    box /= box.max()
    cell, n = np.diag(box), 3 * int(rng.integers(2, 9))
    dtype = "float32" if seed % 5 == 4 else "float64"
    least = -1.6 if dtype == "float64" else -1.0  # in single precision, closer pairs leave too few digits
    x, pairs = molecules(rng, n, box, least) if rng.random() < 0.7 else (rng.random((3, n)) * box[:, None], None)
    turn = np.eye(3)
    if periodicity and rng.random() < 0.5:
        tilt = np.eye(3) + np.triu(rng.uniform(-0.45, 0.45, (3, 3)), 1) * (periodicity == 3)
        tilt[0, 1] = rng.uniform(-0.45, 0.45) * (periodicity > 1)
        turn = Rotation.random(random_state=seed).as_matrix()
        x, cell = turn @ tilt.T @ x, cell @ tilt @ turn.T
    q = rng.uniform(0.5, 1.5, n) * rng.choice([-1.0, 1.0], n)
    if rng.random() < 0.6:  # neutral molecules
        q = (q.reshape(-1, 3) - q.reshape(-1, 3).mean(axis=1, keepdims=True)).ravel()
    elif rng.random() < 0.7:
        q -= q.mean()
    weight = 1.0
    if pairs is not None and rng.random() < 0.4:
        weight = rng.uniform(0.2, 1.2, pairs.shape[1]) if rng.random() < 0.5 else 0.5
    tolerance = 10 ** -rng.uniform(2, 3 if dtype == "float32" else 10)
    x, q = (a.astype(dtype).astype(float) for a in (x, q))
    kappa = float(10 ** rng.uniform(-0.3, 1)) if name == "yukawa" else None
    charges = Charges(name, x, q, cell, periodicity, kappa, pairs, weight)
    charges.turn = turn
    options = {"periodicity": periodicity, "tolerance": tolerance, "kappa": kappa}
    options["exclude"] = None if pairs is None else (pairs, 1.0 - weight)
    if periodicity or seed % 2:
        options["box"] = cell if np.any(cell != np.diag(np.diag(cell))) else tuple(np.diag(cell))
    return charges, dtype, options


@pytest.mark.parametrize("seed", [pytest.param(s, marks=[pytest.mark.slow] * (s >= QUICK)) for s in range(300)])
def test_energies(seed):
    charges, dtype, options = draw(seed)
    x, q, tolerance = charges.x.astype(dtype), charges.q.astype(dtype), options["tolerance"]
    plan = parki.ewald.plan(charges.kernel, x, x, gradient=True, **options)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        u, g = plan(q)
        energy, forces, stress = plan.energy_forces(q, stress=True)
    assert {w.category for w in said} <= {parki.error.NetDensityWarning, parki.error.PrecisionWarning}
    if any(w.category is parki.error.PrecisionWarning for w in said):
        return  # exclusions leave too few digits for the tolerance, as the plan reports
    exact, slope = charges.potential()
    for found, right in ((u, exact), (g, slope), (forces, -charges.q * slope)):
        assert np.linalg.norm(found - right) <= tolerance * np.linalg.norm(right)
    size = np.linalg.norm(charges.q) * np.linalg.norm(exact)
    assert abs(energy - 0.5 * charges.q @ exact) <= 0.5 * tolerance * size
    np.testing.assert_allclose(stress, stress.T, rtol=0, atol=1e-12 * np.abs(stress).max())
    strain = charges.turn @ directions(seed, charges.periodicity) @ charges.turn.T
    # Along free directions the stress comes from forces; differences round like the sum over all pairs.
    free = (charges.turn.T @ x)[charges.periodicity :]
    free = free - free.mean(axis=1, keepdims=True)
    size += np.linalg.norm(free) * np.linalg.norm(charges.q * slope)
    rounding = 1e-10 * np.linalg.norm(charges.q) * np.linalg.norm(charges.whole())
    found = np.sum(stress * charges.measure * strain)
    assert found == pytest.approx(charges.slope(strain), abs=0.5 * tolerance * size + rounding)


def directions(seed, periodicity):
    """Return a random strain that keeps free directions at right angles to periodic ones."""
    rng = np.random.default_rng(seed)
    strain = np.diag(rng.standard_normal(3))
    others = np.triu(rng.standard_normal((3, 3)), 1)
    if 0 < periodicity < 3:
        others[:periodicity, periodicity:] = 0
    strain = strain + others + others.T
    return strain / np.linalg.norm(strain)
