"""Lists of pairs of clusters against recursion; every pair of points must be in exactly one of them."""

import itertools

import hypothesis
import hypothesis.extra.numpy
import hypothesis.strategies as st
import numpy as np
import pytest

from parki.engine.run.spaces import Space
from parki.trees import cluster, dual, lists

SERIAL = Space("Serial")


def tree_of(x, leaf_size):
    return cluster.build(np.ascontiguousarray(x), leaf_size, SERIAL)


def pairs_of(t, s):
    """Return pairs as a sorted list; assert that no pair is there twice."""
    assert t.dtype == s.dtype == np.int32
    found = sorted(zip(t.tolist(), s.tolist(), strict=True))
    assert len(set(found)) == len(found)
    return found


def covered(targets, sources, pairs):
    """Count the lists' pairs that hold each pair of points, (targets, sources)."""
    times = np.zeros((targets.sorted.n, sources.sorted.n), int)
    for t, s in [*pairs_of(pairs.far_t, pairs.far_s), *pairs_of(pairs.near_t, pairs.near_s)]:
        times[targets.nodes.begin[t] : targets.nodes.end[t], sources.nodes.begin[s] : sources.nodes.end[s]] += 1
    return times


def check(pairs, expected):
    far, near = expected
    assert pairs_of(pairs.far_t, pairs.far_s) == sorted(far)
    assert pairs_of(pairs.near_t, pairs.near_s) == sorted(near)


@pytest.mark.parametrize("theta", [0.5, 0.9])
def test_dual(shape, theta, by_hand, rng):
    targets, sources = tree_of(shape(rng, 300), 8), tree_of(shape(rng, 250), 13)
    pairs = dual.traverse(targets.nodes, sources.nodes, theta)
    check(pairs, by_hand.dual(targets, sources, theta))
    assert (covered(targets, sources, pairs) == 1).all()
    assert targets.nodes.is_leaf[pairs.near_t].all()
    assert sources.nodes.is_leaf[pairs.near_s].all()


def test_balls_of_far_pairs_never_overlap(by_hand, rng):
    """Check far pairs for a theta above 1, which alone would let balls overlap."""
    tree = tree_of(rng.random((3, 300)), 8)
    pairs = dual.traverse(tree.nodes, tree.nodes, 1.5)
    check(pairs, by_hand.dual(tree, tree, 1.5))
    apart = np.linalg.norm(tree.nodes.centre[pairs.far_t] - tree.nodes.centre[pairs.far_s], axis=1)
    assert (apart >= tree.nodes.radius[pairs.far_t] + tree.nodes.radius[pairs.far_s]).all()


def test_dual_of_a_tree_with_itself(shape, by_hand, rng):
    tree = tree_of(shape(rng, 300), 10)
    pairs = dual.traverse(tree.nodes, tree.nodes, 0.8)
    check(pairs, by_hand.dual(tree, tree, 0.8))
    assert (covered(tree, tree, pairs) == 1).all()
    own = tree.nodes.leaves[tree.nodes.radius[tree.nodes.leaves] > 0]
    assert set(own.tolist()) <= {t for t, s in zip(pairs.near_t, pairs.near_s, strict=True) if t == s}


POINTS = hypothesis.extra.numpy.arrays(
    np.float64,
    st.tuples(st.just(3), st.integers(1, 40)),
    elements=st.one_of(st.floats(-1, 1), st.sampled_from([0.0, 1.0, 1e6, 1e300, 1e-300])),
)


@hypothesis.given(x=POINTS, y=POINTS, leaf_size=st.integers(1, 4), theta=st.sampled_from([0.3, 0.7, 1.0, 1.5]))
def test_any_points_are_paired_once(x, y, leaf_size, theta):
    targets, sources = tree_of(x, leaf_size), tree_of(y, leaf_size)
    for pairs in (
        dual.traverse(targets.nodes, sources.nodes, theta),
        lists.traverse(targets.nodes, sources.nodes, theta, small=2),
    ):
        assert (covered(targets, sources, pairs) == 1).all()


@pytest.mark.parametrize("separation", [0.1, 0.5, 10.0])
def test_separation(separation, by_hand, rng):
    tree = tree_of(rng.random((3, 300)) * [[4], [1], [1]], 5)
    pairs = dual.traverse(tree.nodes, tree.nodes, 0.9, separation=separation)
    check(pairs, by_hand.dual(tree, tree, 0.9, separation))
    apart = np.linalg.norm(tree.nodes.centre[pairs.far_t] - tree.nodes.centre[pairs.far_s], axis=1)
    assert (apart - tree.nodes.radius[pairs.far_t] - tree.nodes.radius[pairs.far_s] >= separation).all()
    assert len(pairs.far_t) < len(dual.traverse(tree.nodes, tree.nodes, 0.9).far_t)
    assert (len(pairs.far_t) == 0) == (separation == 10)
    check(
        lists.traverse(tree.nodes, tree.nodes, 0.9, separation=separation), by_hand.batches(tree, tree, 0.9, separation)
    )


@pytest.mark.parametrize("small", [0, 20, 100])
def test_batches(shape, small, by_hand, rng):
    targets, sources = tree_of(shape(rng, 250), 12), tree_of(shape(rng, 300), 9)
    pairs = lists.traverse(targets.nodes, sources.nodes, 0.7, small=small)
    check(pairs, by_hand.batches(targets, sources, 0.7, small=small))
    assert (covered(targets, sources, pairs) == 1).all()
    assert targets.nodes.is_leaf[pairs.far_t].all()
    assert (sources.nodes.count[pairs.far_s] > small).all()
    assert (sources.nodes.is_leaf[pairs.near_s] | (sources.nodes.count[pairs.near_s] <= small)).all()


def test_clusters_of_targets(rng):
    """Test batches of sources against clusters of targets: the same with targets and sources exchanged."""
    targets, sources = tree_of(rng.random((3, 200)), 10), tree_of(rng.random((3, 300)), 12)
    pairs = lists.traverse(sources.nodes, targets.nodes, 0.7).swapped()
    assert (covered(targets, sources, pairs) == 1).all()
    assert sources.nodes.is_leaf[pairs.far_s].all()
    assert not targets.nodes.is_leaf[pairs.far_t].all()


def test_blocks_do_not_show(rng, monkeypatch):
    tree = tree_of(rng.standard_normal((3, 300)), 6)
    whole = [dual.traverse(tree.nodes, tree.nodes, 0.6), lists.traverse(tree.nodes, tree.nodes, 0.6)]
    monkeypatch.setattr(dual, "BLOCK", 7)
    for found, expected in zip(
        [dual.traverse(tree.nodes, tree.nodes, 0.6), lists.traverse(tree.nodes, tree.nodes, 0.6)], whole, strict=True
    ):
        check(found, [pairs_of(expected.far_t, expected.far_s), pairs_of(expected.near_t, expected.near_s)])


@pytest.mark.parametrize("power", [-900, -500, 500, 900])
def test_lengths_have_no_unit(power, rng):
    """Test lengths whose squared distances would be out of range."""
    x = rng.standard_normal((3, 200))
    one, other = tree_of(x, 5), tree_of(np.ldexp(x, power), 5)
    expected = dual.traverse(one.nodes, one.nodes, 0.7, separation=0.25)
    found = dual.traverse(other.nodes, other.nodes, 0.7, separation=np.ldexp(0.25, power))
    assert len(expected.far_t)
    for name in ("far_t", "far_s", "near_t", "near_s"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


def test_single_points(rng):
    a, b = tree_of(np.zeros((3, 1)), 1), tree_of(np.ones((3, 1)), 1)
    for traverse in (dual.traverse, lists.traverse):
        assert traverse(a.nodes, b.nodes, 0.5).far_t.tolist() == [0]
        assert traverse(a.nodes, b.nodes, 0.5).near_t.tolist() == []
        assert traverse(a.nodes, a.nodes, 0.5).near_t.tolist() == [0]
        assert traverse(a.nodes, a.nodes, 0.5).far_t.tolist() == []
        assert traverse(a.nodes, b.nodes, 0.0).near_t.tolist() == [0]


def test_no_points():
    none, some = tree_of(np.zeros((3, 0)), 1), tree_of(np.ones((3, 5)), 1)
    for traverse in (dual.traverse, lists.traverse):
        for trees in ((none, some), (some, none), (none, none)):
            pairs = traverse(*(tree.nodes for tree in trees), 0.5)
            assert [len(a) for a in (pairs.far_t, pairs.far_s, pairs.near_t, pairs.near_s)] == [0] * 4
            assert pairs.far_t.dtype == np.int32


def test_to_leaves(shape, rng):
    tree = tree_of(shape(rng, 300), 7)
    node = rng.integers(0, len(tree.nodes.begin), 60).astype(np.int32)
    other = rng.integers(0, 1000, 60).astype(np.int32)

    def leaves_below(i):
        inside = (tree.nodes.begin[tree.nodes.leaves] >= tree.nodes.begin[i]) & (
            tree.nodes.end[tree.nodes.leaves] <= tree.nodes.end[i]
        )
        return tree.nodes.leaves[inside].tolist()

    expected = [(leaf, o) for i, o in zip(node, other.tolist(), strict=True) for leaf in leaves_below(i)]
    leaf, handed = lists.to_leaves(tree.nodes, node, other)
    assert list(zip(leaf.tolist(), handed.tolist(), strict=True)) == expected
    assert leaf.dtype == handed.dtype == np.int32
    assert [len(a) for a in lists.to_leaves(tree.nodes, node[:0], other[:0])] == [0, 0]


@pytest.mark.parametrize("n_rows", [1, 10, 1 << 16, 200_000])
def test_csr(n_rows, rng):
    rows = rng.integers(0, n_rows, 500).astype(np.int32)
    rows[:5] = n_rows - 1
    columns = rng.permutation(np.arange(500, dtype=np.int32) // 2)  # pairs may be there twice, and in descending order
    starts, sorted_columns = lists.csr(rows, columns, n_rows)
    assert starts.shape == (n_rows + 1,)
    assert starts.dtype == sorted_columns.dtype == np.int32
    assert sorted_columns.tolist() == [columns[k] for k in sorted(range(500), key=lambda k: (rows[k], k))]
    assert np.array_equal(np.repeat(np.arange(n_rows), np.diff(starts)), np.sort(rows))


def test_csr_of_nothing():
    none = np.empty(0, np.int32)
    starts, columns = lists.csr(none, none, 3)
    assert starts.tolist() == [0, 0, 0, 0]
    assert columns.tolist() == []


@hypothesis.given(st.data())
def test_joined_ranges(data):
    """Test nodes between marks of a line, some of them in rows, in any order."""
    marks = data.draw(st.lists(st.integers(0, 2**31 - 1), min_size=2, max_size=12, unique=True).map(sorted))
    spans = [*itertools.pairwise(marks), (5, 5)]  # the last node is empty
    number = data.draw(st.permutations(range(len(spans))))  # of each span among the nodes
    begin, end = np.array([spans[number.index(k)] for k in range(len(spans))], np.int32).T
    one = st.tuples(st.integers(0, 4), st.integers(0, len(spans) - 1))
    pairs = data.draw(st.lists(one, unique=True, max_size=30))
    rows, nodes = (np.array([pair[c] for pair in pairs], np.int32) for c in range(2))
    starts, ranges = lists.joined_ranges(rows, np.array(number, np.int32)[nodes], begin, end, 6)
    assert starts.dtype == ranges.dtype == np.int32
    expected = [[] for _ in range(6)]
    for r, k in sorted(pairs):
        first, last = spans[k]
        if expected[r] and first < last and expected[r][-1][1] == first:
            expected[r][-1][1] = last
        elif first < last:
            expected[r].append([first, last])
    assert [ranges[a:b].tolist() for a, b in itertools.pairwise(starts)] == expected


def test_near_sources_as_ranges(rng):
    """Check that joined ranges of near leaves hold the same sources, in fewer pieces."""
    tree = tree_of(rng.random((3, 2000)), 20)
    pairs = dual.traverse(tree.nodes, tree.nodes, 0.7)
    nodes = tree.nodes
    starts, ranges = lists.joined_ranges(pairs.near_t, pairs.near_s, nodes.begin, nodes.end, nodes.n)
    assert len(ranges) < 0.7 * len(pairs.near_t)
    before = np.bincount(pairs.near_t, nodes.count[pairs.near_s], nodes.n)
    rows = np.repeat(np.arange(nodes.n), np.diff(starts))
    assert np.array_equal(np.bincount(rows, ranges[:, 1] - ranges[:, 0], nodes.n), before)
