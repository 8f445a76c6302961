"""Two spheres of radius 1 that rotate about their line of centres, against Jeffery's series.

Jeffery, Proc. London Math. Soc. 14 (1915) 327: with centres 2h apart, cosh α = h, the torque over 8πμΩ is
sinh³α Σ (±1)ⁿ⁺¹ cosech³ nα, + for opposite senses.
"""

import numpy as np
import pytest

import parki
from tests.quick import but, every

DISTANCES, SENSES = (1.05, 1.3, 2.0, 5.0), (1, -1)


def series(h, sense):
    """Return the torque over 8πμΩ on each of two spheres that turn in the same sense (1) or opposite ones (−1)."""
    alpha = np.arccosh(h)
    n = np.arange(1, int(40 / alpha) + 2)
    return np.sinh(alpha) ** 3 * np.sum((-float(sense)) ** (n + 1) / np.sinh(n * alpha) ** 3)


def both(points, h):
    """Return points (3, 2n) around each of the centres ∓h on the axis z, from points (3, n) around one at zero."""
    lower = points - [[0.0], [0.0], [h]]
    return np.hstack([lower, lower * [[1.0], [1.0], [-1.0]]])


def spiral(n, radius):
    """Return n points (3, n) on a sphere."""
    z, angle = 1 - (2 * np.arange(n) + 1) / n, np.pi * (1 + np.sqrt(5)) * np.arange(n)
    return radius * np.stack([np.sqrt(1 - z**2) * np.cos(angle), np.sqrt(1 - z**2) * np.sin(angle), z])


def turning(x, sense):
    """Return velocities (3, N) of points on both spheres: the lower one turns with 1, the upper one with `sense`."""
    return np.where(x[2] > 0, sense, 1) * np.cross([0, 0, 1], x, axis=0)


def fitted(kernel, x, y, units, *velocities):
    """Return strengths (n,) of unit densities (n, 3, Ns) at y by least squares, and errors at x, of each velocities.

    Units are taken 96 at a time, a multiple of the right-hand sides that a kernel takes at once.
    """
    plan = parki.ewald.plan(kernel, x, y, periodicity=0, tolerance=1e-12, rhs=96)
    columns = [plan(units[k : k + 96]) for k in range(0, len(units), 96)]
    matrix, right = np.concatenate(columns).reshape(len(units), -1).T, np.stack([v.ravel() for v in velocities], axis=1)
    strengths = np.linalg.lstsq(matrix, right, rcond=1e-12)[0]
    return strengths.T, np.abs(matrix @ strengths - right).max(axis=0)


def test_the_series_at_contact_is_a_zeta_function():
    zeta = 1.2020569031595942
    assert series(1 + 1e-7, -1) == pytest.approx(zeta, rel=1e-5)
    assert series(1 + 1e-7, 1) == pytest.approx(0.75 * zeta, rel=1e-5)


@pytest.mark.parametrize("h", but(1.3, 2.0, 5.0, of=DISTANCES))
def test_torques_on_the_axis_make_the_flow(h):
    """Fit torques between each centre and the limit point of its images, e^−α away."""
    m = 24
    to_limit = 0.5 * (1 - np.cos(np.pi * (np.arange(m) + 0.5) / m)) * np.exp(-np.arccosh(h))
    y = both(np.array([0 * to_limit, 0 * to_limit, to_limit]), h)
    angle = np.pi * (np.arange(100) + 0.5) / 100
    x = both(np.array([np.sin(angle), 0 * angle, np.cos(angle)]), h)
    units = np.zeros((2 * m, 3, 2 * m))
    units[:, 2] = np.eye(2 * m)
    fits, errors = fitted("rotlet", x, y, units, *(turning(x, sense) for sense in SENSES))
    assert errors.max() < 1e-9
    for sense, torques in zip(SENSES, fits, strict=True):
        lower, upper = torques.reshape(2, m).sum(axis=1)
        assert lower == pytest.approx(series(h, sense), rel=1e-10)
        assert upper == pytest.approx(sense * series(h, sense), rel=1e-10)


@pytest.mark.parametrize(("h", "n", "inside"), every(3, [(2.0, 80, 0.4), (1.4, 90, 0.5), (5.0, 70, 0.4)]))
def test_forces_inside_the_spheres_make_the_flow(h, n, inside):
    y, x = both(spiral(n, inside), h), both(spiral(2 * n, 1.0), h)
    units = np.eye(6 * n).reshape(-1, 3, 2 * n)
    fits, errors = fitted("stokes_sl", x, y, units, *(turning(x, sense) for sense in SENSES))
    assert errors.max() < 1e-3
    for sense, forces in zip(SENSES, fits, strict=True):
        f = forces.reshape(3, 2 * n)
        torques = (y[0] * f[1] - y[1] * f[0]).reshape(2, n).sum(axis=1)
        np.testing.assert_allclose(torques, series(h, sense) * np.array([1, sense]), rtol=1e-6)


def spin(h, sense, ewald):
    """Return the angular velocity times 8πμ by the mobility of Rotne, Prager and Yamakawa, for unit torques."""
    x, load = both(np.zeros((3, 1)), h), np.zeros((6, 2))
    load[5] = 1, sense
    if ewald:
        return parki.ewald.rpy_rotation(x, x, load, 1.0, periodicity=0, tolerance=1e-12)[5, 0]
    return parki.direct.direct_sum("rpy_rotation", x, x, load, radius=1.0)[5, 0]


@pytest.mark.parametrize(
    ("h", "ewald"),
    [pytest.param(5.0, True, marks=pytest.mark.slow), (5.0, False), (10.0, False), (20.0, False)],
)
@pytest.mark.parametrize("sense", [1, -1])
def test_the_mobility_of_spheres_is_right_to_the_cube_of_the_inverse_distance(sense, h, ewald):
    """Expand the inverse series: 1 ± s³ − 3s⁸ − 6s¹⁰ …, s = 1/2h, of which the tensor has the first two."""
    s = 1 / (2 * h)
    remainder = (spin(h, sense, ewald) - 1 / series(h, sense)) / s**8
    assert remainder == pytest.approx(3 + 6 * s**2, rel=2 * s**3 + 1e-15 / s**8)
