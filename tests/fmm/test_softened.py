"""Softened charges by equivalent sources: direct where they are near, as point charges where the error is small."""

import itertools

import numpy as np
import pytest

import parki
from parki import pairs, samples
from parki.fmm import representations
from parki.trees.octlists import OCTANTS
from tests.methods.sums import relative
from tests.quick import every
from tests.test_pairs import spline

SOFTENED = ("regularised_coulomb", "spline_coulomb")
SHAPES = ("uniform", "plummer", "sphere", "crowd")


def crowd(n, seed):
    """Return points of which a third crowd in a thousandth of the cube's side."""
    x = samples.uniform(n, seed)
    x[:, ::3] = 0.3 + 1e-3 * x[:, ::3]
    return x


def exact(kernel, x, y, q, e):
    """Return the potential (1, n), and its gradient (3, n), of pairs that do not coincide, or are one point."""
    parts = []
    for some in np.array_split(x, 20, axis=1):
        r = some[:, :, None] - y[:, None]
        length = np.linalg.norm(r, axis=0)
        if kernel == "regularised_coulomb":
            phi, slope = 1 / np.hypot(length, e), -1 / np.hypot(length, e) ** 3
        else:
            distance = np.maximum(length, 1e-30)
            phi, slope = np.where(length > 0, spline(distance, e), 1 / e), enclosed(length / (2.8 * e)) / (2.8 * e) ** 3
        parts.append(np.concatenate([[phi @ q], ((slope * q) * r).sum(axis=2)]))
    return np.concatenate(parts, axis=1)


def enclosed(u):
    """Return −(charge inside of u)/u³ of the density (8/π)(1 − 6u² + 6u³), (16/π)(1 − u)³ from 1/2 on."""
    integral = np.polynomial.Polynomial([0, 0, 0, 64 / 3, -48, 192 / 5, -32 / 3])  # of 64 u² (1 − u)³
    v = np.clip(u, 0.5, 1)
    outer = (1 + integral(v) - integral(1)) / np.maximum(u, 0.5) ** 3
    return -np.where(u < 0.5, 32 / 3 - 192 / 5 * u**2 + 32 * u**3, outer)


def drawn(seed):
    """Return points, charges, ε and a tolerance."""
    rng = np.random.default_rng([seed, 3])
    shape = SHAPES[seed // 4 % 4]
    y = crowd(3000, seed) if shape == "crowd" else getattr(samples, shape)(3000, seed)
    x = y if rng.random() < 0.6 else samples.uniform(2000, seed + 1)
    q = rng.random(3000) if rng.random() < 0.5 else rng.normal(size=3000)
    return x, y, q, float(10 ** rng.uniform(-5, -1.5)), float(10 ** rng.uniform(-8, -3))


@pytest.mark.parametrize("r", [0.0, 0.3, 0.5, 0.8, 1.0, 1.7])
def test_spline_softens_by_the_density_of_smoothed_particles(r):
    """Compare with the potential of (8/π) (1 − 6 u² + 6 u³) up to 1/2 and (16/π) (1 − u)³ up to 1, by quadrature."""
    t, weight = np.polynomial.legendre.leggauss(8)
    u, charge = [], []
    for low, high in itertools.pairwise(sorted({0.0, 0.5, 1.0, min(r, 1.0)})):
        s = low + (high - low) * (1 + t) / 2
        density = np.where(s < 0.5, 1 - 6 * s**2 + 6 * s**3, 2 * (1 - s) ** 3) * 8 / np.pi
        u.append(s)
        charge.append(0.5 * (high - low) * weight * 4 * np.pi * s**2 * density)
    u, charge = np.concatenate(u), np.concatenate(charge)
    h = 2.8 * 0.25
    x, y = np.array([[r * h], [0], [0]]), np.zeros((3, 1))
    found = parki.direct.direct_sum("spline_coulomb", x, y, np.ones(1), epsilon=0.25)
    assert charge.sum() == pytest.approx(1, rel=1e-14)
    assert found[0] == pytest.approx((charge / np.maximum(u, r)).sum() / h, rel=1e-13)


@pytest.mark.parametrize("seed", every(9, range(48)))
def test_tolerance_is_met(seed):
    (x, y, q, e, tolerance), kernel, is_slope = drawn(seed), SOFTENED[seed % 2], seed % 4 > 1
    u = parki.fmm.kifmm(x, y, q, kernel, epsilon=e, tolerance=tolerance, gradient="only" if is_slope else False)
    expected = exact(kernel, x, y, q, e)
    assert relative(u, expected[1:] if is_slope else expected[0]) < tolerance


@pytest.mark.slow
def test_gradients_on_a_sphere():
    """Sum with close pairs that are softened, and so do not hide the error of expansions."""
    x, q, epsilon = samples.sphere(3000, 11), samples.charges(3000, 12), 0.08
    options = {"epsilon": epsilon, "gradient": "only"}
    u = parki.fmm.kifmm(x, x, q, "spline_coulomb", tolerance=1.25e-10, leaf_size=20, **options)
    assert relative(u, parki.direct.plan("spline_coulomb", x, x, **options)(q)) < 1e-10


@pytest.mark.parametrize("power", [-200, 300])
def test_units(power):
    x, y, q, e, _ = drawn(0)
    x, y = (np.ldexp(a, power) for a in (x, y))
    u = parki.fmm.kifmm(x, y, q, "regularised_coulomb", epsilon=np.ldexp(e, power), tolerance=1e-4)
    expected = exact("regularised_coulomb", np.ldexp(x, -power), np.ldexp(y, -power), q, e)
    assert relative(np.ldexp(u, power), expected[0]) < 1e-4


def test_single_precision():
    _, y, q, _, _ = drawn(4)
    y, q = y.astype(np.float32), q.astype(np.float32)
    u = parki.fmm.kifmm(y, y, q, "spline_coulomb", epsilon=0.03, tolerance=1e-4)
    assert u.dtype == np.float32
    assert relative(u, exact("spline_coulomb", y.astype(float), y.astype(float), q, np.float32(0.03))[0]) < 1e-4


def unit(plan, x):
    """Return the caller's unit of length in that of a plan's tree."""
    return np.ptp(np.asarray(plan.structure.tree.targets.points)[0]) / np.ptp(x[0])


def width(plan, x):
    """Return the side of the smallest boxes."""
    return 2 * plan.structure.tree.nodes.half.min() / unit(plan, x)


def meetings(plan):
    """Return the pairs of boxes that meet through expansions, by lists V, W and X."""
    nodes, lists = plan.structure.tree.nodes, plan.structure.lists
    parents = nodes.octet_parent
    t, s = nodes.child[parents[lists.v_t]][:, :, None], nodes.child[parents[lists.v_s]][:, None]
    steps = nodes.anchor[parents[lists.v_s]] - nodes.anchor[parents[lists.v_t]]
    offset = 2 * steps[:, None, None] + OCTANTS - OCTANTS[:, None]  # targets, sources
    mask = (t >= 0) & (s >= 0) & (np.abs(offset) > 1).any(axis=-1)
    t, s = (np.broadcast_to(a, mask.shape)[mask] for a in (t, s))
    return {"v": (t, s), "w": (lists.w_t, lists.w_s), "x": (lists.x_t, lists.x_s)}


@pytest.mark.parametrize(("kernel", "distance"), [("regularised_coulomb", 1 / np.sqrt(1e-3)), ("spline_coulomb", 2.8)])
def test_points_that_meet_through_expansions_are_apart(kernel, distance):
    """At ε/√tolerance the potential of a point charge is off by half of the tolerance."""
    rng, e = np.random.default_rng(2), 0.02 / distance
    x = np.concatenate([rng.random((3, 1000)), 0.05 + 0.1 * rng.random((3, 10000))], axis=1)
    y = np.concatenate([rng.random((3, 1000)), 0.8 + 0.1 * rng.random((3, 10000))], axis=1)
    plan = parki.fmm.plan(kernel, x, y, epsilon=e, tolerance=1e-3, leaf_size=3)
    tree, nodes = plan.structure.tree, plan.structure.tree.nodes
    targets, sources = (np.asarray(side.points) for side in (tree.targets, tree.sources))
    for name, (t, s) in meetings(plan).items():
        low = []
        for i, j in zip(t, s, strict=True):
            a = targets[:, nodes.targets.begin[i] : nodes.targets.end[i]]
            b = sources[:, nodes.sources.begin[j] : nodes.sources.end[j]]
            if a.size and b.size:
                gap = np.maximum(a.min(axis=1) - b.max(axis=1), b.min(axis=1) - a.max(axis=1))
                low.append(np.linalg.norm(np.maximum(gap, 0)) / unit(plan, x))
        assert min(low) >= 0.02, name
    assert 0.02 <= width(plan, x) < 0.02 / 0.94  # no larger than they need to be


@pytest.mark.parametrize("gradient", [False, "only"])
def test_point_charges_are_off_by_half_of_the_tolerance(gradient):
    pair = pairs.find("regularised_coulomb", epsilon=0.3)
    representation = representations.find(pair.with_gradient(only=True) if gradient else pair)
    for tolerance in (1e-3, 1e-6):
        r = representation.separation(tolerance)
        near, far = (1 / np.hypot(r, 0.3), 1 / r) if not gradient else (r / np.hypot(r, 0.3) ** 3, 1 / r**2)
        assert far / near - 1 == pytest.approx(0.5 * tolerance, rel=5e-3)
    soft, point = representation.pair, representation.target
    at = np.array([[1e4, 2e4, -1e4]])
    np.testing.assert_allclose(representations.block(soft, at), representations.block(point, at), rtol=1e-8)


def test_fewer_levels_are_needed(monkeypatch):
    """Without the distance between softened charges errors exceed the tolerance."""
    x, q = crowd(3000, 1), np.full(3000, 1.0)
    expected = exact("regularised_coulomb", x, x, q, 1e-3)[0]
    options = {"epsilon": 1e-3, "tolerance": 1e-3}
    plan = parki.fmm.plan("regularised_coulomb", x, x, **options)
    assert relative(plan(q), expected) < 1e-3
    assert plan.structure.expansion.far
    monkeypatch.setattr(representations, "SOFTENING", 1e9)
    assert relative(parki.fmm.kifmm(x, x, q, "regularised_coulomb", **options), expected) > 2e-3


def test_targets_away_from_neutral_sources():
    y, q = samples.uniform(3000, 1), samples.charges(3000, 2)
    x, q = y + np.array([[3.0], [0], [0]]), q - q.mean()
    plan = parki.fmm.plan("regularised_coulomb", x, y, epsilon=0.02, tolerance=1e-3)
    assert plan.structure.expansion.far
    assert relative(plan(q), exact("regularised_coulomb", x, y, q, 0.02)[0]) < 1e-3


def test_an_order_has_the_distance_of_its_error():
    x, q = samples.uniform(3000, 1), np.full(3000, 1.0)
    plans = [parki.fmm.plan("regularised_coulomb", x, x, epsilon=0.005, order=p, leaf_size=10) for p in (4, 8)]
    widths = [width(plan, x) for plan in plans]
    assert 0.005 / np.sqrt(plans[0].parameters.expected) <= widths[0] < widths[1]
    assert relative(plans[0](q), exact("regularised_coulomb", x, x, q, 0.005)[0]) < plans[0].parameters.expected


def test_points_within_epsilon_meet_directly():
    x, q = samples.uniform(2000, 1), samples.charges(2000, 2)
    plan = parki.fmm.plan("regularised_coulomb", x, x, epsilon=3.0, tolerance=1e-8)
    assert plan.structure.tree.nodes.depth == 0
    assert relative(plan(q), exact("regularised_coulomb", x, x, q, 3.0)[0]) < 1e-10


def test_a_plan_moves():
    x, q = samples.uniform(3000, 3), samples.charges(3000, 4)
    plan = parki.fmm.plan("spline_coulomb", x, x, epsilon=0.01, tolerance=1e-5)
    y = crowd(3000, 5)
    plan.move(y)
    assert relative(plan(q), exact("spline_coulomb", y, y, q, 0.01)[0]) < 1e-5
