"""Random results of Ewald sums by split sampling: covariance, seeds, moves, parameters, and the near field's sign."""

import numpy as np
import pytest

import parki
from parki.ewald import sampling
from parki.ewald.choice.question import Question
from parki.ewald.kernels import KERNELS, find
from parki.ewald.split import profiles
from tests.mobilities import dense, deviations
from tests.quick import but, every

CELLS = {
    "cube": {"box": (1.0, 1.0, 1.0)},
    "sides": {"box": (1.0, 1.3, 0.8)},
    "triclinic": {"box": [[1, 0, 0], [0.3, 1.1, 0], [0.2, -0.4, 0.9]]},
    "gaussian": {"box": (1.0, 1.0, 1.0), "split": "gaussian"},
    "huge unit": {"box": (1e6, 1e6, 1e6)},
}


def blobs(cell, n, radius, rng, **more):
    """Return the plan of spheres at random points of a cell, as a share of its first side."""
    unit = np.abs(np.asarray(cell["box"], float)).max() if cell["box"][0] == 1e6 else 1.0
    x = unit * rng.random((3, n))
    return parki.ewald.plan("rpy", x, x, radius=radius * unit, **{"tolerance": 1e-4} | cell | more), x


#: Kinds of cells and numbers of samples, multiples of the right-hand sides that a kernel takes at once.
SAMPLED = [("cube", 3000), ("cube", 10_000), *((cell, 1504) for cell in CELLS if cell != "cube")]


@pytest.mark.parametrize(("cell", "count"), every(len(SAMPLED), SAMPLED))
def test_the_covariance_is_the_matrix(cell, count, rng):
    """Compare samples for 20 spheres, some of them overlapping, with the matrix."""
    plan, _ = blobs(CELLS[cell], 20, 0.12, rng)
    samples = plan.noise(rng=rng, count=count).reshape(count, -1)
    assert plan._sampler
    found = deviations(samples, dense(plan))
    assert np.abs(found).max() < 4.8
    assert 0.9 < np.sqrt(np.mean(found**2)) < 1.1


def test_far_and_near_field_have_their_own_covariance(rng):
    """Check that neither part of the noise is negligible, which would hide its errors."""
    plan, _ = blobs(CELLS["cube"], 20, 0.12, rng)
    plan.noise(rng=0)
    far, near = plan._sampler._far, np.empty((1, 3, 20))
    samples = []
    for _ in range(300):
        far.draw(rng.standard_normal(far.sum.noise.shape, far.sum.noise.dtype), near, plan._sampler._times)
        samples.append(near.copy().ravel())
    share = np.var(samples) / np.diag(dense(plan)).mean()
    assert 0.1 < share < 0.9


@pytest.mark.parametrize("count", but(1, 5, of=[None, 1, 5, 8]))
def test_shapes_layouts_and_types(count, rng):
    plan, x = blobs(CELLS["cube"], 30, 0.05, rng)
    u = plan.noise(rng=3, count=count)
    assert u.shape == ((3, 30) if count is None else (count, 3, 30))
    rows = np.ascontiguousarray(x.T)
    nd = parki.ewald.plan("rpy", rows, rows, radius=0.05, box=(1, 1, 1), tolerance=1e-4, layout="nd")
    np.testing.assert_allclose(nd.noise(rng=3, count=count).swapaxes(-1, -2), u, rtol=1e-12, atol=1e-12)
    single = x.astype("f4")
    plan = parki.ewald.plan("rpy", single, single, radius=0.05, box=(1, 1, 1), tolerance=1e-4)
    assert plan.noise(rng=3, count=count).dtype == np.float32


def test_the_same_seed_gives_the_same_noise_on_any_number_of_threads(rng):
    plan, x = blobs(CELLS["cube"], 400, 0.03, rng)
    one = parki.ewald.plan("rpy", x, x, radius=0.03, box=(1, 1, 1), tolerance=1e-4, threads=1)
    first = plan.noise(rng=7)
    np.testing.assert_array_equal(plan.noise(rng=7), first)
    np.testing.assert_array_equal(plan.noise(rng=np.random.default_rng(7)), first)
    np.testing.assert_allclose(one.noise(rng=7), first, rtol=1e-10, atol=1e-10)
    assert np.abs(plan.noise(rng=8) - first).max() > 1


def test_noise_follows_points_and_boxes(rng):
    plan, _ = blobs(CELLS["cube"], 100, 0.04, rng)
    plan.noise(rng=0)
    y = rng.random((3, 100))
    plan.move(y)
    fresh = parki.ewald.plan("rpy", y, y, radius=0.04, box=(1, 1, 1), tolerance=1e-4)
    np.testing.assert_allclose(plan.noise(rng=1), fresh.noise(rng=1), rtol=1e-10, atol=1e-10)
    cell = [[1, 0, 0], [0.2, 1, 0], [0, 0, 1]]
    plan.move(y, box=cell)
    fresh = parki.ewald.plan("rpy", y, y, radius=0.04, box=cell, tolerance=1e-4)
    samples = plan.noise(rng=1, count=304), fresh.noise(rng=2, count=304)
    np.testing.assert_allclose(*(s.var() for s in samples), rtol=0.05)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("radius", [1e-3, 0.03, 0.06])
def test_parameters_leave_a_near_field_that_is_positive(radius, tolerance):
    """Evaluate the transform of the near field between the points at which the choice looks, and beyond kmax."""
    p = sampling.parameters(Question(find("rpy", radius=radius), (1.0, 1.0, 1.0), 60, 60, tolerance))
    split = profiles.profile(p.split, p.c, p.rc, p.xi)
    a = p.kernel.parameters[0]
    k = np.linspace(1e-3, 3, 300) * split.kmax
    near = np.square(np.sinc(k * a / np.pi)) - p.kernel.profile(split, k)
    assert (near > -tolerance).all()


def test_spheres_too_large_for_a_split_take_the_square_root_of_the_sum(rng):
    """Spheres of half the box: any far field within the box's modes is larger than the whole."""
    plan, _ = blobs(CELLS["cube"], 3, 0.45, rng, tolerance=1e-9)
    assert sampling.parameters(plan.chosen.question) is None
    samples = plan.noise(rng=rng, count=3000).reshape(3000, -1)
    assert plan._sampler is False
    assert np.abs(deviations(samples, dense(plan))).max() < 4.5


def test_a_cell_size_is_of_the_sum_alone(rng):
    """Take a radius for which the cutoff of the noise must be longer than that of the least time."""
    plan, _ = blobs(CELLS["cube"], 60, 0.3, rng, cell_size=20)
    assert plan.noise(rng=1).shape == (3, 60)


def test_an_unknown_transform_is_not_split():
    assert not KERNELS["stokes_sl"].is_positive(profiles.profile("prolate", 12.0, 0.2, 30.0), 1e-4)


def test_a_nearly_indefinite_matrix(rng):
    """Many spheres on top of each other: eigenvalues near zero, of either sign by the sum's errors."""
    x = 0.5 + 1e-3 * rng.standard_normal((3, 60))
    plan = parki.ewald.plan("rpy", x, x, radius=0.05, box=(1, 1, 1), tolerance=1e-3)
    samples = plan.noise(rng=rng, count=2000).reshape(2000, 3, -1)
    total = samples.mean(axis=2).ravel()
    expected = np.trace(dense(plan)) / 180
    assert abs(np.var(total) / expected - 1) < 0.1


def test_memory_counts_the_sampler(rng):
    plan, _ = blobs(CELLS["cube"], 500, 0.02, rng)
    before = plan.memory
    plan.noise(rng=0)
    assert plan.memory > before + 3 * 8 * 500
