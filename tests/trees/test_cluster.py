"""Trees of clusters against a build by recursion, and invariants of all trees."""

import hypothesis
import hypothesis.extra.numpy
import hypothesis.strategies as st
import numpy as np
import pytest

from parki.engine.run import spaces
from parki.engine.run.spaces import Space
from parki.trees import cluster, passes
from tests.ewald import cupy_standin as standin
from tests.trees.fields import assert_same

SERIAL = Space("Serial")
INTEGERS = "order begin end parent first_child n_children level level_begin leaves".split()


def assert_equal(tree, expected, x):
    """Compare a tree attribute by attribute, with dtypes."""
    for name, values in expected.items():
        found = tree.sorted.order if name == "order" else getattr(tree.nodes, name)
        np.testing.assert_array_equal(found, values, err_msg=name)
        assert found.dtype == (np.int32 if name in INTEGERS else np.float64), name
    np.testing.assert_array_equal(tree.sorted.points, x[:, tree.sorted.order])
    assert tree.sorted.points.dtype == x.dtype


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "leaf_size"), [(1, 3), (2, 1), (60, 1), (300, 10), (500, 60)])
def test_as_by_recursion(shape, n, leaf_size, dtype, by_hand, rng):
    x = shape(rng, n).astype(dtype)
    assert_equal(cluster.build(x, leaf_size, SERIAL), by_hand.expected(x, leaf_size), x)


NUMBERS = st.one_of(
    st.floats(-1, 1),
    st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, 1.0 + 2**-51, 5e-324, 1e-323, 1.5e-323, -5e-324, 1e308, -1e308]),
)


@hypothesis.given(
    x=hypothesis.extra.numpy.arrays(np.float64, st.tuples(st.just(3), st.integers(1, 40)), elements=NUMBERS),
    leaf_size=st.integers(1, 5),
    aspect=st.sampled_from([1.0, 2**0.5, 5.0]),
    data=st.data(),
)
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_any_points(x, leaf_size, aspect, data, by_hand):
    """Test any points: neighbouring, subnormal and huge numbers among them; repeated points."""
    x = x[:, data.draw(st.lists(st.integers(0, x.shape[1] - 1), min_size=1, max_size=60))]
    tree = cluster.build(x, leaf_size, SERIAL, aspect=aspect)
    assert_equal(tree, by_hand.expected(x, leaf_size, aspect), x)
    assert all(np.isfinite(a).all() for a in (tree.nodes.centre, tree.nodes.half))


def test_neighbouring_numbers_in_single_precision(by_hand):
    a = np.float32(1)
    steps = [a]
    for _ in range(3):
        steps.append(np.nextafter(steps[-1], np.float32(2)))
    x = np.array([steps, [0] * 4, [0] * 4], np.float32)[:, [2, 0, 3, 1]]
    tree = cluster.build(x, 1, SERIAL)
    assert_equal(tree, by_hand.expected(x, 1), x)
    assert list(tree.sorted.order[np.argsort(tree.nodes.begin[tree.nodes.leaves])]) == [1, 3, 0, 2]
    assert len(tree.nodes.leaves) == 4


def test_invariants_of_many_points(shapes, rng):
    """Check the invariants that sums need, at sizes too large for recursion, with more than one piece."""
    for name, n in (("cube", 50_000), ("plummer", 40_000), ("two groups", 20_000), ("rod", 20_000)):
        x, leaf_size = shapes[name](rng, n), 50
        tree = cluster.build(x, leaf_size, Space("OpenMP", 2))
        assert np.array_equal(np.sort(tree.sorted.order), np.arange(n))
        leaves = tree.nodes.leaves
        assert tree.nodes.begin[leaves[0]] == 0
        assert tree.nodes.end[leaves[-1]] == n
        assert np.array_equal(tree.nodes.begin[leaves[1:]], tree.nodes.end[leaves[:-1]])
        assert np.array_equal(
            np.minimum.reduceat(tree.sorted.points, tree.nodes.begin[leaves], axis=1).T, tree.nodes.low[leaves]
        )
        assert np.array_equal(
            np.maximum.reduceat(tree.sorted.points, tree.nodes.begin[leaves], axis=1).T, tree.nodes.high[leaves]
        )
        assert (tree.nodes.count[leaves] <= leaf_size).all()
        inner = np.flatnonzero(~tree.nodes.is_leaf)
        assert (tree.nodes.count[inner] > leaf_size).all()
        for k in range(8):
            some = inner[tree.nodes.n_children[inner] > k]
            child = tree.nodes.first_child[some] + k
            assert (tree.nodes.parent[child] == some).all()
            last = tree.nodes.n_children[some] == k + 1
            assert (tree.nodes.end[child[last]] == tree.nodes.end[some[last]]).all()
            assert (tree.nodes.begin[child[~last] + 1] == tree.nodes.end[child[~last]]).all()
            assert (tree.nodes.level[child] == tree.nodes.level[some] + 1).all()
        assert (tree.nodes.begin[tree.nodes.first_child[inner]] == tree.nodes.begin[inner]).all()
        assert (tree.nodes.n_children[inner] <= np.where(tree.nodes.count[inner] <= 2 * leaf_size, 2, 8)).all()
        assert (tree.nodes.n_children[inner] <= np.where(tree.nodes.count[inner] <= 4 * leaf_size, 4, 8)).all()
        assert (tree.nodes.n_children[inner] >= 2).all()


def test_boxes_are_cut_to_be_cubes(rng):
    """Check that a slab of 8 × 8 × 1 is cut along two axes until its boxes are as wide as high."""
    tree = cluster.build(rng.random((3, 30_000)) * [[8], [8], [1]], 50, SERIAL)
    assert list(tree.nodes.level_begin[:5]) == [0, 1, 5, 21, 85]
    assert (tree.nodes.n_children[tree.nodes.level == 2] == 4).all()
    assert (tree.nodes.n_children[tree.nodes.level == 3] == 8).all()
    half = tree.nodes.half[tree.nodes.level == 3]
    assert (half.max(axis=1) < 1.1 * half.min(axis=1)).all()


def test_equal_points_are_one_leaf():
    tree = cluster.build(np.full((3, 1000), 0.3), 10, SERIAL)
    assert list(tree.nodes.leaves) == [0]
    assert tree.nodes.radius[0] == 0
    assert np.array_equal(tree.sorted.order, np.arange(1000))


def test_levels_end(shapes, rng):
    x = shapes["geometric"](rng, 300)
    tree = cluster.build(x, 1, SERIAL)
    assert len(tree.nodes.level_begin) - 1 == cluster.MAX_LEVELS == 100
    assert (
        tree.nodes.count[tree.nodes.leaves].max() == 300 - 2 * 99
    )  # the middle of 1 and nearly 0 is 1/2, a point, too
    assert np.array_equal(np.sort(tree.sorted.order), np.arange(300))


def test_no_points():
    tree = cluster.build(np.empty((3, 0)), 10, SERIAL)
    assert tree.sorted.n == 0
    assert tree.sorted.points.shape == (3, 0)
    assert tree.nodes.count.sum() == 0


def test_huge_coordinates_stay_finite():
    tree = cluster.build(np.array([[-1.5e308, 1.5e308], [0, 0], [0, 0]]), 1, SERIAL)
    assert tree.nodes.centre[0, 0] == 0
    assert tree.nodes.radius[0] == 1.5e308
    assert len(tree.nodes.leaves) == 2


def test_geometry():
    x = np.array([[0.0, 2.0], [1.0, 5.0], [-1.0, 3.0]])
    tree = cluster.build(x, 2, SERIAL)
    assert tree.nodes.centre.tolist() == [[1, 3, 1]]
    assert tree.nodes.half.tolist() == [[1, 2, 2]]
    assert tree.nodes.radius.tolist() == [3]
    assert tree.nodes.is_leaf.tolist() == [True]


@pytest.mark.parametrize("size", [3, 16, 50])
def test_pieces_do_not_show(shape, size, rng, monkeypatch):
    x = shape(rng, 400)
    whole = cluster.build(x, 12, SERIAL)
    monkeypatch.setattr(passes, "HOST_PIECE", size)
    assert_same(cluster.build(x, 12, SERIAL), whole)


@pytest.mark.portability
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_spaces_agree(space, dtype, shapes, rng, monkeypatch):
    """Test spaces, also if a piece ends within a node."""
    monkeypatch.setattr(passes, "DEVICE_PIECE", 100)
    where = spaces.get(space)
    xp = spaces.array_module(where)
    for name in ("plummer", "slab", "two equal groups"):
        x = shapes[name](rng, 700).astype(dtype)
        there, here = cluster.build(xp.asarray(x), 20, where), cluster.build(x, 20, SERIAL)
        assert isinstance(there.sorted.points, xp.ndarray)
        assert_same(there, here)


def test_points_stay_on_a_gpu(rng, monkeypatch):
    """Check that arrays copied to the host are as long as the lists of pieces, not as the points."""
    x = rng.random((3, 3000))
    here = cluster.build(x, 500, SERIAL)
    cupy = standin.install(monkeypatch)
    there, sizes = cupy.asarray(x), []
    get = cupy.ndarray.get
    monkeypatch.setattr(cupy.ndarray, "get", lambda self: sizes.append(self.size) or get(self))
    tree = cluster.build(there, 500, Space("Cuda"))
    assert max(sizes) < 1500
    assert isinstance(tree.sorted.points, cupy.ndarray)
    assert isinstance(tree.sorted.order, cupy.ndarray)
    assert_same(tree, here)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_agree(threads, rng):
    x = rng.random((3, 100_000))
    assert_same(cluster.build(x, 200, Space("OpenMP", threads)), cluster.build(x, 200, SERIAL))


def test_input_stays(rng):
    for n, leaf_size in ((500, 10), (500, 300), (5, 10)):
        x = rng.random((3, n))
        kept = x.copy()
        x.flags.writeable = False
        tree = cluster.build(x, leaf_size, SERIAL)
        assert np.array_equal(x, kept)
        assert not np.shares_memory(tree.sorted.points, x)


def test_other_memory_orders(rng):
    x = rng.random((400, 3))
    assert_same(cluster.build(x.T, 10, SERIAL), cluster.build(x.T.copy(), 10, SERIAL))
    assert_same(cluster.build(x[::2].T, 10, SERIAL), cluster.build(x[::2].T.copy(), 10, SERIAL))


@pytest.mark.parametrize(
    ("x", "leaf_size", "aspect", "message"),
    [
        (np.zeros((2, 5)), 1, 1.5, r"x has shape \(2, 5\)"),
        (np.zeros(3), 1, 1.5, "x has shape"),
        (np.zeros((3, 5), int), 1, 1.5, "dtype int64"),
        (np.zeros((3, 5)), 0, 1.5, "leaf_size is 0"),
        (np.zeros((3, 5)), 2.0, 1.5, "leaf_size is 2.0"),
        (np.zeros((3, 5)), True, 1.5, "leaf_size is True"),
        (np.zeros((3, 5)), 1, 0.5, "aspect is 0.5"),
        (np.zeros((3, 5)), 1, np.nan, "aspect is nan"),
    ],
)
def test_bad_input(x, leaf_size, aspect, message):
    with pytest.raises(ValueError, match=message):
        cluster.build(x, leaf_size, SERIAL, aspect=aspect)
