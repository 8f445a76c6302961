"""Seeded random points: moments and radial distributions against exact formulas."""

import numpy as np
import pytest
from scipy import stats

from parki import samples

N = 40_000
POINTS = [samples.uniform, samples.gaussian, samples.plummer, samples.box, samples.sphere]


def fits(values, share):
    """Return whether sorted values follow a distribution (Kolmogorov and Smirnov); fails once in 10⁴ seeds."""
    return stats.kstest(values, share, method="asymp").pvalue > 1e-4


def flat(low, high):
    return stats.uniform(low, high - low).cdf


@pytest.mark.parametrize("draw", [*POINTS, samples.charges])
def test_shapes_and_seeds(draw):
    points = draw(N, seed=5)
    assert points.dtype == np.float64
    assert points.shape == ((N,) if draw is samples.charges else (3, N))
    assert points.flags.c_contiguous
    np.testing.assert_array_equal(draw(N, 5), points)
    assert np.mean(draw(N, seed=6) == points) < 0.01
    np.testing.assert_array_equal(draw(10), draw(10, seed=0))
    assert draw(0).shape[-1] == 0
    assert draw(1).shape[-1] == 1


def test_functions_with_one_seed_are_independent():
    """Check independence: charges that follow a coordinate of the points would distort errors."""
    drawn = [a for draw in POINTS for a in draw(N, 1)] + [samples.charges(N, 1)]
    correlation = stats.spearmanr(drawn, axis=1).statistic - np.eye(len(drawn))
    assert np.abs(correlation).max() < 5 / np.sqrt(N)


def test_uniform():
    for points, low, high in ((samples.uniform(N, 1), -1, 1), (samples.uniform(N, 2, low=2.0, high=5.0), 2, 5)):
        assert all(fits(row, flat(low, high)) for row in points)


def test_gaussian():
    """Check exp(−r²/6): the variance of each coordinate is 3."""
    points = samples.gaussian(N, 1)
    assert np.cov(points) == pytest.approx(3 * np.eye(3), abs=0.1)
    assert all(fits(row, stats.norm(scale=np.sqrt(3)).cdf) for row in points)
    assert fits(np.linalg.norm(points, axis=0), stats.maxwell(scale=np.sqrt(3)).cdf)
    assert fits(samples.gaussian(N, 1, variance=0.25)[0], stats.norm(scale=0.5).cdf)


def test_plummer():
    """Check the radial profile, of which 1.5e-4 is outside the cutoff r = 100."""
    points = samples.plummer(N, 1)
    r = np.linalg.norm(points, axis=0)
    assert np.abs(points).max() <= 100
    assert r.max() > 20
    assert fits(r, lambda r: r**3 * (1 + r**2) ** -1.5)
    assert all(fits(row / r, flat(-1, 1)) for row in points)
    potential = np.mean(1 / np.sqrt(1 + r**2))
    assert potential == pytest.approx(3 * np.pi / 16, abs=5e-3)  # ∫ 3 r² (1 + r²)^(-3) dr


def test_plummer_with_a_small_cutoff():
    """Check small cutoffs: almost uniform in a small cube; in a larger one, the profile cut at its faces."""
    points = samples.plummer(N, 3, cutoff=0.05)
    assert all(fits(row, flat(-0.05, 0.05)) for row in points)
    points = samples.plummer(N, 4, cutoff=1.5)
    assert np.abs(points).max() <= 1.5
    r = np.linalg.norm(points, axis=0)
    ball = r[r < 1.5]
    assert fits(ball, lambda r: (r**3 * (1 + r**2) ** -1.5) / (1.5**3 * 3.25**-1.5))
    assert len(ball) < N


def test_box():
    for sides in ((1.0, 10.0, 10.0), (1.0, 1.0, 10.0)):
        points = samples.box(N, 2, sides)
        assert all(fits(row, flat(-side / 2, side / 2)) for row, side in zip(points, sides, strict=True))
    np.testing.assert_array_equal(samples.box(9, 2), samples.box(9, 2, (1, 10, 10)))


def test_sphere():
    points = samples.sphere(N, 1, radius=2.5)
    assert np.linalg.norm(points, axis=0) == pytest.approx(2.5, rel=1e-14)
    assert all(fits(row, flat(-2.5, 2.5)) for row in points)
    assert fits(np.arctan2(points[1], points[0]), flat(-np.pi, np.pi))


def test_charges():
    assert fits(samples.charges(N, 1), flat(-1, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: samples.uniform(-1), "n is -1; expected an integer"),
        (lambda: samples.uniform(1.5), "n is 1.5; expected an integer"),
        (lambda: samples.charges(3, seed=-2), "seed is -2; expected an integer"),
        (lambda: samples.sphere(3, seed="a"), "seed is 'a'; expected an integer"),
        (lambda: samples.uniform(3, low=1.0, high=1.0), r"low is 1.0 and high is 1.0; expected finite numbers"),
        (lambda: samples.gaussian(3, variance=0.0), "variance is 0.0; expected a positive number"),
        (lambda: samples.plummer(3, cutoff=np.inf), "cutoff is inf; expected a positive number"),
        (lambda: samples.box(3, sides=(1.0, 2.0)), r"sides is \(1.0, 2.0\); expected three positive numbers"),
        (lambda: samples.box(3, sides=(1.0, 2.0, -1.0)), "sides is -1.0; expected a positive number"),
        (lambda: samples.sphere(3, radius=float("nan")), "radius is nan; expected a positive number"),
    ],
)
def test_wrong_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
