"""Octrees against a build by recursion, and what must hold of any."""

import hypothesis
import hypothesis.extra.numpy
import hypothesis.strategies as st
import numpy as np
import pytest

from parki import engine, samples
from parki.engine import spaces
from parki.engine.spaces import Space
from parki.trees import octree, passes
from tests.ewald import cupy_standin as standin

SERIAL = Space("Serial")
SORTED = ("sources", "targets")


def fields(tree):
    """All arrays of a tree, on the host."""
    made = {name: getattr(tree, name) for name in tree.__dataclass_fields__ if name not in SORTED}
    for name in SORTED:
        made |= {f"{name}.{part}": getattr(getattr(tree, name), part) for part in ("points", "order")}
    return {name: a.get() if hasattr(a, "get") else np.asarray(getattr(a, "inner", a)) for name, a in made.items()}


def same(a, b):
    for (name, found), expected in zip(fields(a).items(), fields(b).values(), strict=True):
        np.testing.assert_array_equal(found, expected, err_msg=name)


def by_hand(x, y, leaf_size, low, width):
    """Boxes level by level: (level, parent, octant, anchor, its sources, its targets), points in the order given."""
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
    boxes = by_hand(x, y, leaf_size, tree.low, tree.width)
    level, parent, octant, anchor, sources, targets = zip(*boxes, strict=True)
    for name, expected in (("level", level), ("parent", parent), ("octant", octant), ("anchor", anchor)):
        np.testing.assert_array_equal(getattr(tree, name), expected, err_msg=name)
    leaf = [b not in parent for b in range(len(boxes))]
    assert tree.is_leaf.tolist() == leaf
    for name, ends, held in (("sources", "src", sources), ("targets", "trg", targets)):
        begin, end = getattr(tree, f"begin_{ends}"), getattr(tree, f"end_{ends}")
        assert (end - begin).tolist() == getattr(tree, f"n_{ends}").tolist() == [len(h) for h in held]
        order, given = getattr(tree, name).order, x if name == "sources" else y
        for b in range(len(boxes)):
            found = order[begin[b] : end[b]]
            np.testing.assert_array_equal(found if leaf[b] else np.sort(found), held[b])
        np.testing.assert_array_equal(getattr(tree, name).points, given[:, order])
        assert getattr(tree, name).points.dtype == given.dtype


def assert_linked(tree):
    """Every field says what the others say."""
    of = {"key": np.int64, "low": np.float64, "width": float, "sources": octree.Sorted, "targets": octree.Sorted}
    for name in tree.__dataclass_fields__:
        value = getattr(tree, name)
        assert (value.dtype if isinstance(value, np.ndarray) else type(value)) == of.get(name, np.int32), name
    box = np.arange(tree.n)
    assert tree.level_begin.tolist() == np.searchsorted(tree.level, range(tree.depth + 2)).tolist()
    assert tree.depth == tree.level.max()
    key = sum((tree.anchor[:, d].astype(np.int64) >> bit & 1) << 3 * bit + 2 - d for d in range(3) for bit in range(20))
    np.testing.assert_array_equal(tree.key, key)
    assert all((np.diff(key[tree.level == level]) > 0).all() for level in range(tree.depth + 1))
    for b in box:
        children = np.flatnonzero(tree.parent == b)
        assert tree.n_children[b] == len(children)
        assert tree.first_child[b] == (children[0] if len(children) else -1)
        expected = np.full(8, -1)
        expected[tree.octant[children]] = children
        assert tree.child[b].tolist() == expected.tolist()
    inner = np.flatnonzero(tree.n_children)
    assert tree.octet_parent.tolist() == inner.tolist()
    assert tree.octet[inner].tolist() == list(range(len(inner)))
    assert (tree.octet[tree.is_leaf] == -1).all()
    assert tree.octet_begin.tolist() == [np.count_nonzero(tree.level[inner] < level) for level in range(tree.depth + 2)]
    assert tree.slot[0] == -1
    np.testing.assert_array_equal(tree.octet_parent[tree.slot[1:] // 8], tree.parent[1:])
    np.testing.assert_array_equal(tree.slot[1:] % 8, tree.octant[1:])


def assert_inside(tree):
    """Points are in the closed cubes of their leaves, up to rounding."""
    slack = 4e-16 * (np.abs(tree.low).max() + tree.width)
    for side, begin, end in (
        (tree.sources, tree.begin_src, tree.end_src),
        (tree.targets, tree.begin_trg, tree.end_trg),
    ):
        leaves = np.flatnonzero(tree.is_leaf & (begin < end))
        leaves = leaves[np.argsort(begin[leaves])]
        of = np.repeat(leaves, (end - begin)[leaves])
        assert len(of) == side.n
        assert (np.abs(side.points.T - tree.centre[of]) <= tree.half[of, None] + slack).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "leaf_size"), [(1, 3), (2, 1), (60, 1), (300, 10), (500, 60)])
def test_as_by_recursion(shape, n, leaf_size, dtype, rng):
    x = shape(rng, n).astype(dtype)
    tree = octree.build(x, None, leaf_size, SERIAL)
    assert tree.targets is tree.sources
    assert_as_by_hand(tree, x, x, leaf_size)
    assert_linked(tree)
    assert_inside(tree)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_targets_that_are_not_sources(shapes, dtype, rng):
    for name, other in (("cube", "plummer"), ("plane", "line"), ("equal", "cube"), ("two groups", "equal")):
        x, y = shapes[name](rng, 150).astype(dtype), shapes[other](rng, 90).astype(dtype)
        tree = octree.build(x, y, 7, SERIAL)
        assert_as_by_hand(tree, x, y, 7)
        assert_linked(tree)
        assert_inside(tree)


NUMBERS = st.one_of(
    st.floats(-1, 1), st.sampled_from([0.0, -0.0, 0.5, 1.0, 1.0 + 2**-52, 1.0 + 2**-51, 5e-324, 1e-323, -5e-324, 1e300])
)
POINTS = hypothesis.extra.numpy.arrays(np.float64, st.tuples(st.just(3), st.integers(0, 25)), elements=NUMBERS)


@hypothesis.given(
    x=POINTS, y=st.none() | POINTS, leaf_size=st.integers(1, 5), fill=st.none() | st.floats(1, 50), data=st.data()
)
def test_any_points(x, y, leaf_size, fill, data):
    """Neighbouring, subnormal and large numbers among them; repeated points."""
    if x.shape[1]:
        x = x[:, data.draw(st.lists(st.integers(0, x.shape[1] - 1), max_size=40))]
    tree = octree.build(x, y, leaf_size, SERIAL, fill=fill)
    assert_as_by_hand(tree, x, x if y is None else y, leaf_size)
    assert_linked(tree)
    assert_inside(tree)


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e6])
@pytest.mark.parametrize("fill", [1, 2, 3, 5, 8, 11, 2.5])
def test_boxes_across(fill, offset, rng):
    """So many boxes across on the level where the root has as many or more; points on upper faces open none."""
    x = rng.random((3, 30_000)) * [[1], [0.999], [1]] + offset
    tree = octree.build(x, None, 20, SERIAL, fill=fill)
    level = int(np.ceil(np.log2(fill)))
    at = tree.anchor[tree.level == level]
    across = int(np.ceil(fill))
    assert at.max() == across - 1
    assert len(at) == across**3
    side = (x.max(axis=1) - x.min(axis=1)).max()
    assert tree.width == pytest.approx(side * 2**level / fill, rel=1e-11, abs=1e-8 if offset else 0)
    assert np.array_equal(tree.low, x.min(axis=1))


def test_a_root_without_fill_is_the_cube_of_the_points(rng):
    x = rng.random((3, 1000)) * [[1], [4], [2]]
    tree = octree.build(x, None, 20, SERIAL)
    assert tree.width == pytest.approx(np.ptp(x[1]), rel=2e-12)
    same(tree, octree.build(x, None, 20, SERIAL, fill=4))


def test_equal_points_are_one_leaf():
    x = np.full((3, 1000), 0.3)
    tree = octree.build(x, None, 10, SERIAL)
    assert tree.n == 1
    assert tree.width == 1
    assert np.array_equal(tree.sources.order, np.arange(1000))
    tree = octree.build(x, np.array([[0.9], [0.3], [0.3]]), 10, SERIAL)
    assert tree.level.tolist() == [0, 1, 1]
    assert tree.n_src.tolist() == [1000, 1000, 0]
    assert tree.n_trg.tolist() == [1, 0, 1]


def test_equal_points_among_others_are_a_leaf_at_once(rng):
    x = np.concatenate([rng.random((3, 200)), np.full((3, 40), 0.7)], axis=1)
    tree = octree.build(x, None, 12, SERIAL)
    full = np.flatnonzero(tree.is_leaf & (tree.n_src > 12))
    assert tree.n_src[full].tolist() == [40]
    assert tree.n_src[tree.parent[full]] > 40


def test_levels_end(rng):
    x = np.concatenate([rng.random((3, 50)), 0.5 + 1e-9 * rng.random((3, 50))], axis=1)
    tree = octree.build(x, None, 1, SERIAL)
    assert tree.depth == octree.MAX_LEVEL == 20
    assert tree.n_src[tree.is_leaf].max() > 1
    assert (tree.level[tree.is_leaf & (tree.n_src > 1)] == 20).all()


@pytest.mark.parametrize(("n_src", "n_trg"), [(0, 0), (0, 300), (300, 0)])
def test_no_points(n_src, n_trg, rng):
    tree = octree.build(rng.random((3, n_src)), rng.random((3, n_trg)), 10, SERIAL)
    assert tree.sources.n == n_src
    assert tree.targets.n == n_trg
    assert tree.n_src[0] == n_src
    assert tree.n_trg[tree.is_leaf].sum() == n_trg
    assert (tree.n == 1) == (n_src + n_trg == 0)
    assert octree.build(np.empty((3, 0)), None, 10, SERIAL).n_trg.tolist() == [0]


@pytest.mark.parametrize("size", [3, 16, 50])
def test_pieces_do_not_show(shape, size, rng, monkeypatch):
    x, y = shape(rng, 400), rng.random((3, 100))
    whole = octree.build(x, y, 12, SERIAL)
    monkeypatch.setattr(passes, "PIECE", {"host": size})
    same(octree.build(x, y, 12, SERIAL), whole)


@pytest.mark.portability
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_spaces_agree(space, dtype, shapes, rng, monkeypatch):
    """Also where a piece ends within a box, and where boxes of equal points are found."""
    monkeypatch.setattr(passes, "DEVICE_PIECE", 100)
    where = spaces.get(space)
    xp = spaces.array_module(where)
    for name in ("plummer", "slab", "two equal groups"):
        x, y = shapes[name](rng, 700).astype(dtype), shapes["cube"](rng, 300).astype(dtype)
        there, here = octree.build(xp.asarray(x), xp.asarray(y), 20, where), octree.build(x, y, 20, SERIAL)
        assert isinstance(there.sources.points, xp.ndarray)
        assert isinstance(there.targets.order, xp.ndarray)
        same(there, here)


def test_points_stay_on_a_gpu(rng, monkeypatch):
    """What comes to the host is as long as the lists of pieces, not as the points."""
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
    same(tree, here)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_agree(threads):
    x = samples.plummer(50_000)
    same(octree.build(x, None, 100, Space("OpenMP", threads)), octree.build(x, None, 100, SERIAL))


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
        same(octree.build(*kept, leaf_size, SERIAL), tree)


@pytest.mark.parametrize("name", ["Serial", "GpuSim"])
def test_workunits_are_those_launched(name, rng, monkeypatch):
    if spaces.available()[name] is not None:
        pytest.skip(spaces.available()[name])
    launched, parallel_for = set(), engine.parallel_for

    def note(policy, workunit, **args):
        launched.add(workunit.l0)
        parallel_for(policy, workunit, **args)

    monkeypatch.setattr(engine, "parallel_for", note)
    octree.build(rng.standard_normal((3, 300)), None, 10, Space(name))
    assert {unit.l0 for unit in octree.workunits(np.dtype(float), Space(name))} == launched


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
