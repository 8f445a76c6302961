"""Octrees against a build by recursion, and invariants of all octrees."""

import hypothesis
import hypothesis.extra.numpy
import hypothesis.strategies as st
import numpy as np
import pytest

from parki import samples
from parki.engine.run import spaces
from parki.engine.run.spaces import Space
from parki.trees import octree, passes
from parki.trees.nodes import Spans
from tests.ewald import cupy_standin as standin
from tests.trees.fields import assert_same

SERIAL = Space("Serial")


def by_hand(x, y, leaf_size, low, width):
    """Return boxes level by level: (level, parent, octant, anchor, sources, targets), points in the order given."""
    at, boxes = [(0, -1, 0, (0, 0, 0), np.arange(x.shape[1]), np.arange(y.shape[1]))], []
    while at:
        below = []
        for level, parent, octant, anchor, s, t in at:
            boxes.append((level, parent, octant, anchor, s, t))
            both = np.concatenate([x[:, s], y[:, t]], axis=1)
            if max(len(s), len(t)) <= leaf_size or level == 20 or (both == both[:, :1]).all():
                continue
            middle = low + 0.5 ** (level + 1) * width * (2 * np.array(anchor) + 1)
            child_s, child_t = ([4, 2, 1] @ (z[:, i].astype(float) >= middle[:, None]) for z, i in ((x, s), (y, t)))
            for c in range(8):
                inside = s[child_s == c], t[child_t == c]
                if len(inside[0]) + len(inside[1]):
                    corner = tuple(2 * a + b for a, b in zip(anchor, (c >> 2, c >> 1 & 1, c & 1), strict=True))
                    below.append((level + 1, len(boxes) - 1, c, corner, *inside))
        at = below
    return boxes


def assert_as_by_hand(tree, x, y, leaf_size):
    boxes = by_hand(x, y, leaf_size, tree.nodes.low, tree.nodes.width)
    level, parent, octant, anchor, sources, targets = zip(*boxes, strict=True)
    for name, expected in (("level", level), ("parent", parent), ("octant", octant), ("anchor", anchor)):
        np.testing.assert_array_equal(getattr(tree.nodes, name), expected, err_msg=name)
    leaf = [b not in parent for b in range(len(boxes))]
    assert tree.nodes.is_leaf.tolist() == leaf
    for name, held in (("sources", sources), ("targets", targets)):
        spans = getattr(tree.nodes, name)
        begin, end = spans.begin, spans.end
        assert (end - begin).tolist() == spans.count.tolist() == [len(h) for h in held]
        order, given = getattr(tree, name).order, x if name == "sources" else y
        for b in range(len(boxes)):
            found = order[begin[b] : end[b]]
            np.testing.assert_array_equal(found if leaf[b] else np.sort(found), held[b])
        np.testing.assert_array_equal(getattr(tree, name).points, given[:, order])
        assert getattr(tree, name).points.dtype == given.dtype


def assert_linked(nodes):
    """Assert that all fields of nodes agree with each other."""
    of = {"key": np.int64, "low": np.float64, "width": float, "sources": Spans, "targets": Spans, "part": type(None)}
    for name in nodes.__dataclass_fields__:
        value = getattr(nodes, name)
        assert (value.dtype if isinstance(value, np.ndarray) else type(value)) == of.get(name, np.int32), name
    box = np.arange(nodes.n)
    assert nodes.level_begin.tolist() == np.searchsorted(nodes.level, range(nodes.depth + 2)).tolist()
    assert nodes.depth == nodes.level.max()
    key = sum(
        (nodes.anchor[:, d].astype(np.int64) >> bit & 1) << 3 * bit + 2 - d for d in range(3) for bit in range(20)
    )
    np.testing.assert_array_equal(nodes.key, key)
    assert all((np.diff(key[nodes.level == level]) > 0).all() for level in range(nodes.depth + 1))
    for b in box:
        children = np.flatnonzero(nodes.parent == b)
        assert nodes.n_children[b] == len(children)
        assert nodes.first_child[b] == (children[0] if len(children) else -1)
        expected = np.full(8, -1)
        expected[nodes.octant[children]] = children
        assert nodes.child[b].tolist() == expected.tolist()
    inner = np.flatnonzero(nodes.n_children)
    assert nodes.octet_parent.tolist() == inner.tolist()
    assert nodes.octet[inner].tolist() == list(range(len(inner)))
    assert (nodes.octet[nodes.is_leaf] == -1).all()
    assert nodes.octet_begin.tolist() == [
        np.count_nonzero(nodes.level[inner] < level) for level in range(nodes.depth + 2)
    ]
    assert nodes.slot[0] == -1
    np.testing.assert_array_equal(nodes.octet_parent[nodes.slot[1:] // 8], nodes.parent[1:])
    np.testing.assert_array_equal(nodes.slot[1:] % 8, nodes.octant[1:])


def assert_inside(tree):
    """Assert that points are in the closed cubes of their leaves, up to rounding."""
    slack = 4e-16 * (np.abs(tree.nodes.low).max() + tree.nodes.width) + np.finfo(float).smallest_subnormal
    for side, begin, end in (
        (tree.sources, tree.nodes.sources.begin, tree.nodes.sources.end),
        (tree.targets, tree.nodes.targets.begin, tree.nodes.targets.end),
    ):
        leaves = np.flatnonzero(tree.nodes.is_leaf & (begin < end))
        leaves = leaves[np.argsort(begin[leaves])]
        of = np.repeat(leaves, (end - begin)[leaves])
        assert len(of) == side.n
        assert (np.abs(side.points.T - tree.nodes.centre[of]) <= tree.nodes.half[of, None] + slack).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "leaf_size"), [(1, 3), (2, 1), (60, 1), (300, 10), (500, 60)])
def test_as_by_recursion(shape, n, leaf_size, dtype, rng):
    x = shape(rng, n).astype(dtype)
    tree = octree.build(x, None, leaf_size, SERIAL)
    assert tree.targets is tree.sources
    assert tree.nodes.targets is tree.nodes.sources
    assert_as_by_hand(tree, x, x, leaf_size)
    assert_linked(tree.nodes)
    assert_inside(tree)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_targets_that_are_not_sources(shapes, dtype, rng):
    for name, other in (("cube", "plummer"), ("plane", "line"), ("equal", "cube"), ("two groups", "equal")):
        x, y = shapes[name](rng, 150).astype(dtype), shapes[other](rng, 90).astype(dtype)
        tree = octree.build(x, y, 7, SERIAL)
        assert_as_by_hand(tree, x, y, 7)
        assert_linked(tree.nodes)
        assert_inside(tree)


NUMBERS = st.one_of(
    st.floats(-1, 1), st.sampled_from([0.0, -0.0, 0.5, 1.0, 1.0 + 2**-52, 1.0 + 2**-51, 5e-324, 1e-323, -5e-324, 1e300])
)
POINTS = hypothesis.extra.numpy.arrays(np.float64, st.tuples(st.just(3), st.integers(0, 25)), elements=NUMBERS)


@hypothesis.given(
    x=POINTS, y=st.none() | POINTS, leaf_size=st.integers(1, 5), fill=st.none() | st.floats(1, 50), data=st.data()
)
def test_any_points(x, y, leaf_size, fill, data):
    """Test any points: neighbouring, subnormal and large numbers among them; repeated points."""
    if x.shape[1]:
        x = x[:, data.draw(st.lists(st.integers(0, x.shape[1] - 1), max_size=40))]
    tree = octree.build(x, y, leaf_size, SERIAL, fill=fill)
    assert_as_by_hand(tree, x, x if y is None else y, leaf_size)
    assert_linked(tree.nodes)
    assert_inside(tree)


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e6])
@pytest.mark.parametrize("fill", [1, 2, 3, 5, 8, 11, 2.5])
def test_boxes_across(fill, offset, rng):
    """Check boxes across on the first level with `fill` or more across the root; points on upper faces open none."""
    x = rng.random((3, 30_000)) * [[1], [0.999], [1]] + offset
    tree = octree.build(x, None, 20, SERIAL, fill=fill)
    level = int(np.ceil(np.log2(fill)))
    at = tree.nodes.anchor[tree.nodes.level == level]
    across = int(np.ceil(fill))
    assert at.max() == across - 1
    assert len(at) == across**3
    side = (x.max(axis=1) - x.min(axis=1)).max()
    assert tree.nodes.width == pytest.approx(side * 2**level / fill, rel=1e-11, abs=1e-8 if offset else 0)
    assert np.array_equal(tree.nodes.low, x.min(axis=1))


def test_a_root_without_fill_is_the_cube_of_the_points(rng):
    x = rng.random((3, 1000)) * [[1], [4], [2]]
    tree = octree.build(x, None, 20, SERIAL)
    assert tree.nodes.width == pytest.approx(np.ptp(x[1]), rel=2e-12)
    assert_same(tree, octree.build(x, None, 20, SERIAL, fill=4))


def test_equal_points_are_one_leaf():
    x = np.full((3, 1000), 0.3)
    tree = octree.build(x, None, 10, SERIAL)
    assert tree.nodes.n == 1
    assert tree.nodes.width == 1
    assert np.array_equal(tree.sources.order, np.arange(1000))
    tree = octree.build(x, np.array([[0.9], [0.3], [0.3]]), 10, SERIAL)
    assert tree.nodes.level.tolist() == [0, 1, 1]
    assert tree.nodes.sources.count.tolist() == [1000, 1000, 0]
    assert tree.nodes.targets.count.tolist() == [1, 0, 1]


def test_equal_points_among_others_are_a_leaf_at_once(rng):
    x = np.concatenate([rng.random((3, 200)), np.full((3, 40), 0.7)], axis=1)
    tree = octree.build(x, None, 12, SERIAL)
    full = np.flatnonzero(tree.nodes.is_leaf & (tree.nodes.sources.count > 12))
    assert tree.nodes.sources.count[full].tolist() == [40]
    assert tree.nodes.sources.count[tree.nodes.parent[full]] > 40


def test_levels_end(rng):
    x = np.concatenate([rng.random((3, 50)), 0.5 + 1e-9 * rng.random((3, 50))], axis=1)
    tree = octree.build(x, None, 1, SERIAL)
    assert tree.nodes.depth == octree.MAX_LEVEL == 20
    assert tree.nodes.sources.count[tree.nodes.is_leaf].max() > 1
    assert (tree.nodes.level[tree.nodes.is_leaf & (tree.nodes.sources.count > 1)] == 20).all()


@pytest.mark.parametrize(("n_src", "n_trg"), [(0, 0), (0, 300), (300, 0)])
def test_no_points(n_src, n_trg, rng):
    tree = octree.build(rng.random((3, n_src)), rng.random((3, n_trg)), 10, SERIAL)
    assert tree.sources.n == n_src
    assert tree.targets.n == n_trg
    assert tree.nodes.sources.count[0] == n_src
    assert tree.nodes.targets.count[tree.nodes.is_leaf].sum() == n_trg
    assert (tree.nodes.n == 1) == (n_src + n_trg == 0)
    assert octree.build(np.empty((3, 0)), None, 10, SERIAL).nodes.targets.count.tolist() == [0]


@pytest.mark.parametrize("size", [3, 16, 50])
def test_pieces_do_not_show(shape, size, rng, monkeypatch):
    x, y = shape(rng, 400), rng.random((3, 100))
    whole = octree.build(x, y, 12, SERIAL)
    monkeypatch.setattr(passes, "HOST_PIECE", size)
    assert_same(octree.build(x, y, 12, SERIAL), whole)


@pytest.mark.portability
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_spaces_agree(space, dtype, shapes, rng, monkeypatch):
    """Test spaces, also if a piece ends within a box, and if there are boxes of equal points."""
    monkeypatch.setattr(passes, "DEVICE_PIECE", 100)
    where = spaces.get(space)
    xp = spaces.array_module(where)
    for name in ("plummer", "slab", "two equal groups"):
        x, y = shapes[name](rng, 700).astype(dtype), shapes["cube"](rng, 300).astype(dtype)
        there, here = octree.build(xp.asarray(x), xp.asarray(y), 20, where), octree.build(x, y, 20, SERIAL)
        assert isinstance(there.sources.points, xp.ndarray)
        assert isinstance(there.targets.order, xp.ndarray)
        assert_same(there, here)


def test_points_stay_on_a_gpu(rng, monkeypatch):
    """Check that arrays copied to the host are as long as the lists of pieces, not as the points."""
    x, y = rng.random((3, 3000)), rng.random((3, 2500))
    here = octree.build(x, y, 500, SERIAL)
    cupy = standin.install(monkeypatch)
    there, sizes = (cupy.asarray(x), cupy.asarray(y)), []
    get = cupy.ndarray.get
    monkeypatch.setattr(cupy.ndarray, "get", lambda self: sizes.append(self.size) or get(self))
    tree = octree.build(*there, 500, Space("Cuda"))
    assert max(sizes) < 500
    assert isinstance(tree.sources.points, cupy.ndarray)
    assert isinstance(tree.targets.order, cupy.ndarray)
    assert_same(tree, here)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_agree(threads):
    x = samples.plummer(50_000)
    assert_same(octree.build(x, None, 100, Space("OpenMP", threads)), octree.build(x, None, 100, SERIAL))


def test_input_stays(rng):
    for n, leaf_size in ((500, 10), (500, 300), (5, 10)):
        x, y = rng.random((3, n)), rng.random((n, 3)).T
        kept = x.copy(), y.copy()
        x.flags.writeable = y.flags.writeable = False
        tree = octree.build(x, y, leaf_size, SERIAL)
        assert np.array_equal(x, kept[0])
        assert np.array_equal(y, kept[1])
        assert not np.shares_memory(tree.sources.points, x)
        assert not np.shares_memory(tree.targets.points, y)
        assert_same(octree.build(*kept, leaf_size, SERIAL), tree)


SOME = np.zeros((3, 5))


@pytest.mark.parametrize(
    ("x", "y", "leaf_size", "fill", "message"),
    [
        (np.zeros((2, 5)), None, 1, None, r"sources has shape \(2, 5\)"),
        (SOME, np.zeros(3), 1, None, "targets has shape"),
        (SOME.astype(int), None, 1, None, "sources .* dtype int64"),
        (SOME, SOME.astype(np.float32), 1, None, "targets has dtype float32; expected .* float64"),
        (SOME, None, 0, None, "leaf_size is 0"),
        (SOME, None, 2.0, None, "leaf_size is 2.0"),
        (SOME, None, 1, 0.9, "fill is 0.9"),
        (SOME, None, 1, np.inf, "fill is inf"),
        (SOME, None, 1, np.nan, "fill is nan"),
        (np.full((3, 2), 1.5e308) * [1, -1], None, 1, None, "points are up to inf apart"),
    ],
)
def test_bad_input(x, y, leaf_size, fill, message):
    with pytest.raises(ValueError, match=message):
        octree.build(x, y, leaf_size, SERIAL, fill=fill)
