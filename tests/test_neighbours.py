"""Pairs of near points against all distances to all images."""

import itertools
import math
import re

import numpy as np
import pytest

from parki.neighbours import near_pairs

INF = math.inf
SKEW = (0.4, -0.3, 0.9)  # skew of a cell; longer than half a side, too
CELLS = [
    (None, None),
    ((1.0, INF, INF), None),
    ((INF, INF, 0.5), None),
    ((1.0, INF, 0.7), None),
    ((INF, 1.3, 0.7), None),
    ((1.0, 1.3, 0.7), None),
    ((1.0, 1.3, 0.7), (0.0, 0.0, 0.0)),
    ((1.0, 1.3, 0.7), SKEW),
    ((1.0, 1.3, 0.7), (0.0, 0.0, -0.2)),
    ((1.0, 0.4, 0.5), (3.1, 2.2, -1.7)),
]


def shortest_vectors(targets, sources, sides, skew, cells=6):
    """Return all distances (Nt, Ns), minimal over the images in `cells` cells on each side of the difference's cell."""
    r = targets.astype(float)[:, :, None] - sources.astype(float)[:, None]
    periodic = [axis for axis in range(3) if sides and sides[axis] < INF]
    t01, t02, t12 = skew or (0, 0, 0)
    vectors = np.array([[sides[0], t01, t02], [0, sides[1], t12], [0, 0, sides[2]]]) if periodic else np.eye(3)
    for axis in periodic:
        r -= np.round(r[axis] / sides[axis]) * vectors[axis][:, None, None]
    best = np.full(r.shape[1:], INF)
    for n in itertools.product(*[range(-cells, cells + 1) if axis in periodic else [0] for axis in range(3)]):
        moved = r + sum(n[axis] * vectors[axis] for axis in periodic)[:, None, None] if periodic else r
        best = np.minimum(best, np.sqrt((moved**2).sum(axis=0)))
    return best


def height(sides, skew):
    if sides is None:
        return INF
    if skew is None:
        return min(sides)
    t01, t02, t12 = skew
    cell = np.array([[sides[0], t01, t02], [0, sides[1], t12], [0, 0, sides[2]]])
    return min(abs(np.linalg.det(cell)) / np.linalg.norm(np.cross(*np.delete(cell, i, axis=0))) for i in range(3))


def check(found, exact, radius, slack=1e-13):
    """Compare with all distances; pairs within rounding of the radius are optional."""
    assert found.format == "csr"
    assert found.shape == exact.shape
    assert found.dtype == np.float64
    for row in range(found.shape[0]):
        columns = found.indices[found.indptr[row] : found.indptr[row + 1]]
        assert (np.diff(columns) > 0).all()
    rows = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
    stored = np.zeros(exact.shape, bool)
    stored[rows, found.indices] = True
    np.testing.assert_allclose(found.data, exact[rows, found.indices], rtol=0, atol=slack)
    assert (found.data <= radius).all()
    assert stored[exact < radius - slack].all()
    assert not stored[exact > radius + slack].any()


@pytest.mark.parametrize("share", [1.0, 0.9, 0.3])
@pytest.mark.parametrize(("sides", "skew"), CELLS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_all_pairs(sides, skew, dtype, share):
    rng = np.random.default_rng(0)
    targets, sources = (rng.uniform(-1.5, 2.5, (3, n)).astype(dtype) for n in (150, 170))
    given = targets.copy(), sources.copy()
    radius = share * min(0.5 * height(sides, skew) * (1 - 1e-12), 0.8)
    exact = shortest_vectors(targets, sources, sides, skew)
    assert (exact < radius).any()
    check(near_pairs(targets, sources, radius, sides, skew), exact, radius)
    for array, before in zip((targets, sources), given, strict=True):
        np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize(("sides", "skew"), CELLS)
def test_targets_that_are_the_sources(sides, skew):
    x = np.random.default_rng(1).uniform(-2, 2, (3, 200))
    radius = 0.45 * min(height(sides, skew), 1.0)
    found = near_pairs(x, x, radius, sides, skew)
    check(found, shortest_vectors(x, x, sides, skew), radius)
    assert found.nnz > x.shape[1]
    assert (found.diagonal() == 0).all()
    assert (np.diff((found != 0).astype(int).indptr) == np.diff(found.indptr) - 1).all()  # the diagonal is stored


def grid(shape, spacing=0.25):
    """Return points at multiples of the spacing, upper faces included; with a quarter all distances are exact."""
    return spacing * np.indices([n + 1 for n in shape]).reshape(3, -1)


@pytest.mark.parametrize("periodic", list(itertools.product([True, False], repeat=3)))
def test_points_on_faces_and_at_the_radius(periodic):
    x = grid((4, 4, 4))  # points of a unit cube
    sides = tuple(1.0 if on else INF for on in periodic)
    exact = shortest_vectors(x, x, sides, None, cells=2)
    for radius in (0.25, 0.5):
        found = near_pairs(x, x, radius, sides)
        np.testing.assert_array_equal(found.nnz, np.count_nonzero(exact <= radius))
        np.testing.assert_array_equal(found.toarray(), np.where(exact <= radius, exact, 0))


def test_faces_of_a_skew_cell():
    x = np.concatenate([grid((4, 4, 4)), [[-0.5, 1.5], [1.0, 0.25], [1.25, 3.0]]], axis=1)
    sides, skew = (1.0, 1.0, 1.0), (0.5, 0.0, 0.25)
    exact = shortest_vectors(x, x, sides, skew)
    found = near_pairs(x, x, 0.25, sides, skew)
    assert found.nnz == np.count_nonzero(exact <= 0.25)
    np.testing.assert_array_equal(found.toarray(), np.where(exact <= 0.25, exact, 0))


@pytest.mark.parametrize("sides", [None, (1.0, INF, INF), (1.0, 1.0, 1.0)])
def test_radius_itself_is_within(sides):
    """Check pairs whose squared distance and radius may round either way."""
    rng = np.random.default_rng(2)
    for x in rng.uniform(-0.25, 0.25, (200, 3, 1)):
        radius = float(np.sqrt((x[:, 0] ** 2).sum()))
        found = near_pairs(x + 0.5, np.full((3, 1), 0.5), radius * (1 + 1e-15), sides)
        assert found.nnz == (float(np.sqrt(((x + 0.5 - 0.5)[:, 0] ** 2).sum())) <= radius * (1 + 1e-15))
        assert found.nnz in (0, 1)


@pytest.mark.parametrize("sides", [(1.0, 1.0, 1.0), (1.0, INF, 1.0), (1.0, INF, INF)])
def test_two_images_at_half_a_side(sides):
    targets, sources = np.array([[0.25], [0.5], [0.5]]), np.array([[0.75], [0.5], [0.5]])
    found = near_pairs(targets, sources, 0.5, sides)
    assert found.nnz == 1
    assert found[0, 0] == 0.5


@pytest.mark.parametrize(("sides", "skew"), CELLS)
@pytest.mark.parametrize("counts", [(0, 0), (0, 3), (3, 0), (1, 1), (1, 5)])
def test_few_points(sides, skew, counts):
    targets, sources = (np.full((3, n), 0.125) for n in counts)
    found = near_pairs(targets, sources, 0.01, sides, skew)
    assert found.shape == counts
    assert found.nnz == counts[0] * counts[1]
    assert not found.toarray().any()


@pytest.mark.parametrize("unit", [1e-300, 1e-30, 1e30, 1e300])
@pytest.mark.parametrize(("sides", "skew"), CELLS)
def test_units(sides, skew, unit):
    x = np.random.default_rng(3).uniform(-0.5, 1.5, (3, 100))
    radius = 0.4 * min(height(sides, skew), 1.0)
    exact = shortest_vectors(x, x, sides, skew)
    of_unit = (None if lengths is None else tuple(unit * length for length in lengths) for lengths in (sides, skew))
    found = near_pairs(unit * x, unit * x, unit * radius, *of_unit)
    found.data /= unit
    check(found, exact, radius * (1 + 1e-15))


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_units_in_single_precision(unit):
    x = (unit * np.random.default_rng(3).random((3, 100))).astype(np.float32)
    found = near_pairs(x, x, 0.4 * unit, (unit,) * 3)
    found.data /= unit
    check(found, shortest_vectors(x / unit, x / unit, (1.0,) * 3, None), 0.4, slack=1e-6)
    assert found.nnz > 100


def test_radius_beyond_all_points():
    x = np.random.default_rng(4).random((3, 20))
    for radius in (10.0, 1e300):
        check(near_pairs(x, x, radius), shortest_vectors(x, x, None, None), radius)


def test_many_points():
    """Check many points, whose distances would take 3.2 GB."""
    rng = np.random.default_rng(5)
    targets, sources = rng.random((3, 20_000)), rng.random((3, 20_000))
    found = near_pairs(targets, sources, 0.02, (1.0,) * 3)
    expected = 20_000**2 * 4 / 3 * math.pi * 0.02**3
    assert abs(found.nnz - expected) < 6 * math.sqrt(expected)


X = np.zeros((3, 2))


@pytest.mark.parametrize("radius", [0, -1.0, INF, -INF, math.nan, True, "1", None])
def test_radius_is_a_positive_finite_number(radius):
    with pytest.raises(ValueError, match=r"radius is .*; expected a positive finite number\."):
        near_pairs(X, X, radius)


@pytest.mark.parametrize(
    ("sides", "skew", "most"),
    [
        ((1.0, 2.0, 3.0), None, 0.5),
        ((INF, 2.0, 3.0), None, 1.0),
        ((INF, INF, 3.0), None, 1.5),
        ((1.0, 1.0, 1.0), (1.0, 0.0, 0.0), 0.5 / math.sqrt(2)),
    ],
)
def test_radius_above_half_the_shortest_height(sides, skew, most):
    assert near_pairs(X, X, most * (1 - 1e-14), sides, skew).nnz == 4
    message = (
        rf"radius is {re.escape(repr(1.25 * most))}; expected at most {str(most)[:10]}\d*, half the shortest height"
    )
    with pytest.raises(ValueError, match=message):
        near_pairs(X, X, 1.25 * most, sides, skew)


def test_radius_too_small_beside_the_coordinates():
    with pytest.raises(ValueError, match=r"radius is 1e-200; expected at least 3.05e-151 with coordinates"):
        near_pairs(X + 1.0, X, 1e-200)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 3)), X, 1.0), r"targets has shape \(2, 3\); expected \(3, N\)\."),
        ((X, np.zeros(3), 1.0), r"sources has shape \(3,\); expected \(3, N\)\."),
        ((X.astype(int), X, 1.0), r"targets is int64; expected a NumPy array of float32 or float64\."),
        ((X.tolist(), X, 1.0), r"targets is list; expected a NumPy array"),
        ((X, X * math.nan, 1.0), r"sources has coordinates that are not finite"),
        ((X, X, 0.1, (1.0, 1.0)), r"sides is \(1\.0, 1\.0\); expected three positive lengths"),
        ((X, X, 0.1, (1.0, 1.0, -1.0)), r"sides is .*; expected three positive lengths"),
        ((X, X, 0.1, (1.0, 1.0, 1.0), (0.0, INF, 0.0)), r"skew is .*; expected three finite lengths"),
        ((X, X, 0.1, (1.0, 1.0, INF), (0.1, 0.0, 0.0)), r"skew is .*; expected three finite sides"),
        ((X, X, 0.1, None, (0.1, 0.0, 0.0)), r"skew is .*; expected three finite sides"),
    ],
)
def test_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        near_pairs(*arguments)
