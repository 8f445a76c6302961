"""Lists of an octree against their definitions, box by box; all pairs of points must meet once."""

import hypothesis
import hypothesis.extra.numpy
import hypothesis.strategies as st
import numpy as np
import pytest

from parki import samples
from parki.engine.run.spaces import Space
from parki.trees import octlists, octree

SERIAL = Space("Serial")


def build(x, y, leaf_size, fill=None):
    return octree.build(x, y, leaf_size, SERIAL, fill=fill).nodes


def touching(nodes):
    """Return whether closed cubes meet, (M, M)."""
    finest = nodes.depth - nodes.level
    low = nodes.anchor.astype(np.int64) << finest[:, None]
    high = low + (1 << finest[:, None])
    return ((low[:, None] <= high) & (low <= high[:, None])).all(axis=-1)


def by_definition(nodes, few=0):
    """Return U, V, W and X as matrices (target, source), and pairs of octets as one."""
    touch, leaf, level = touching(nodes), nodes.is_leaf, nodes.level
    parents = touch[nodes.parent][:, nodes.parent]  # the root's is not used
    parents[0], parents[:, 0] = False, False
    coarser = touch & leaf[:, None]
    w = coarser[:, nodes.parent] & ~touch & (level[:, None] < level)
    w[:, 0] = False
    some = (nodes.targets.count > 0)[:, None] & (nodes.sources.count > 0)
    few_src, few_trg = (leaf & (n < few) for n in (nodes.sources.count, nodes.targets.count))
    direct = (w & few_src) | (w.T & few_trg[:, None])
    found = {
        "u": (touch & leaf & leaf[:, None]) | direct,
        "v": parents & ~touch & (level == level[:, None]),
        "w": w & ~few_src,
        "x": w.T & ~few_trg[:, None],
    }
    octets = touch & some & (level == level[:, None]) & ~np.eye(nodes.n, dtype=bool)
    inner = nodes.octet_parent
    return {name: pairs & some for name, pairs in found.items()} | {"octets": octets[inner][:, inner]}


def boxes_of_octets(nodes, found):
    """Return V pairs of boxes."""
    t, s = (nodes.child[nodes.octet_parent[octet]] for octet in (found.v_t, found.v_s))
    t, s = np.repeat(t, 8, axis=1).ravel(), np.tile(s, (1, 8)).ravel()
    t, s = (box[(t >= 0) & (s >= 0)] for box in (t, s))
    apart = (
        (np.abs(nodes.anchor[t] - nodes.anchor[s]) > 1).any(axis=1)
        & (nodes.targets.count[t] > 0)
        & (nodes.sources.count[s] > 0)
    )
    return t[apart], s[apart]


def pairs(nodes, found):
    parts = {name: (getattr(found, f"{name}_t"), getattr(found, f"{name}_s")) for name in "uwx"}
    return parts | {"v": boxes_of_octets(nodes, found)}


def assert_as_defined(nodes, few=0):
    found, expected = octlists.lists(nodes, few).only, by_definition(nodes, few)
    for name, (t, s) in pairs(nodes, found).items():
        times = np.zeros((nodes.n, nodes.n), int)
        np.add.at(times, (t, s), 1)
        np.testing.assert_array_equal(times, expected[name], err_msg=name)
    for name in found.__dataclass_fields__:
        assert getattr(found, name).dtype == np.int32, name
    # Octets: all of them, sorted, and in the directions of their anchors.
    t, s = np.nonzero(expected["octets"])
    above = nodes.octet_parent
    step = (nodes.anchor[above[s]] - nodes.anchor[above[t]]) @ [9, 3, 1] + 13
    order = np.lexsort([step, t])
    assert found.v_t.tolist() == t[order].tolist()
    assert found.v_s.tolist() == s[order].tolist()
    assert found.v_direction.tolist() == (step - (step > 13))[order].tolist()
    return found


def assert_once(nodes, found):
    """Assert that every target meets every source in one pair, and near sources in one range."""
    times = np.zeros((nodes.targets.n_points, nodes.sources.n_points), int)
    of_u = np.zeros_like(times)
    for name, (t, s) in pairs(nodes, found).items():
        for a, b in zip(t, s, strict=True):
            block = (
                slice(nodes.targets.begin[a], nodes.targets.end[a]),
                slice(nodes.sources.begin[b], nodes.sources.end[b]),
            )
            times[block] += 1
            if name == "u":
                of_u[block] += 1
    assert (times == 1).all()
    items, ranges = octlists.near(nodes, nodes.sources, found)
    assert items.dtype == ranges.dtype == np.int32
    assert items.shape[1:] == (4,)
    assert ranges.shape[1:] == (2,)
    for begin, end, first, last in items:
        assert begin < end
        assert first < last
        assert (ranges[first:last, 0] < ranges[first:last, 1]).all()
        assert (ranges[first + 1 : last, 0] > ranges[first : last - 1, 1]).all()  # sorted, and joined
        for a, b in ranges[first:last]:
            of_u[begin:end, a:b] -= 1
    assert (of_u == 0).all()
    assert (np.diff(items[:, 0]) > 0).all()
    assert items[:, 2].tolist() == [0, *items[:-1, 3]][: len(items)]
    assert len(ranges) == items[:, 3].max(initial=0)


def sets(name, rng):
    """Return sources, and targets that are not the sources or None."""
    match name:
        case "uniform":
            return rng.random((3, 600)), None
        case "plummer":
            return samples.plummer(600), None
        case "sphere":
            return samples.sphere(600), None
        case "clusters far apart":
            return rng.random((3, 300)) + 1e4 * (np.arange(300) % 2), None
        case "line":
            return np.ones((3, 1)) * rng.random(400), None
        case "coincident":
            return np.concatenate([rng.random((3, 200)), np.full((3, 40), 0.7)], axis=1), None
        case "others":
            return samples.plummer(350), rng.random((3, 450)) * 10
        case "others, coincident":
            return np.repeat(rng.random((3, 20)), 20, axis=1), rng.random((3, 300))
        case "far from each other":
            return rng.random((3, 200)), np.add(rng.random((3, 300)), [[3], [0], [0]])
        case "one source":
            return rng.random((3, 1)), rng.random((3, 300))
        case "one target":
            return samples.plummer(300), np.zeros((3, 1))
        case "one":
            return rng.random((3, 1)), None
        case "equal":
            return np.full((3, 50), 0.1), None
        case "no sources":
            return np.empty((3, 0)), rng.random((3, 100))
        case "no targets":
            return rng.random((3, 100)), np.empty((3, 0))
        case "nothing":
            return np.empty((3, 0)), None


SETS = [
    "uniform", "plummer", "sphere", "clusters far apart", "line", "coincident", "others", "others, coincident",
    "far from each other", "one source", "one target", "one", "equal", "no sources", "no targets", "nothing",
]  # fmt: skip


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("leaf_size", "few"), [(3, 0), (12, 0), (12, 8)])
def test_as_defined(name, leaf_size, few, rng):
    nodes = build(*sets(name, rng), leaf_size)
    assert_once(nodes, assert_as_defined(nodes, few))


POINTS = hypothesis.extra.numpy.arrays(
    np.float64, st.tuples(st.just(3), st.integers(0, 40)), elements=st.floats(0, 1) | st.sampled_from([0.0, 0.5, 0.51])
)


@hypothesis.given(
    x=POINTS, y=st.none() | POINTS, leaf_size=st.integers(1, 4), few=st.integers(0, 4), fill=st.sampled_from([None, 3])
)
def test_any_points(x, y, leaf_size, few, fill):
    nodes = build(x, y, leaf_size, fill)
    assert_once(nodes, assert_as_defined(nodes, few))


def test_the_sets_have_all_lists(rng):
    """Check that the sets above have pairs in all lists."""
    for name in ("plummer", "sphere", "others"):
        found = octlists.lists(build(*sets(name, rng), 3)).only
        assert min(len(found.u_t), len(found.v_t), len(found.w_t), len(found.x_t)) > 100
    found = octlists.lists(build(*sets("far from each other", rng), 12)).only
    assert len(found.u_t) == 0
    assert len(found.v_t) > 0


@pytest.mark.parametrize("across", [4, 6, 8, 10])
def test_counts_of_a_full_grid(across):
    """Count U pairs and pairs of octets of k³ leaves, and no others: (3 k − 2)³, and those of the levels above."""
    x = (np.stack(np.meshgrid(*[np.arange(across)] * 3), axis=-1).reshape(-1, 3).T + 0.5) / across
    x = np.concatenate([x - 0.4 / across, x + 0.4 / across], axis=1)
    found = octlists.lists(build(x, None, 2, across)).only
    octets = 0
    k = across
    while (k := -(-k // 2)) > 1:
        octets += (3 * k - 2) ** 3 - k**3
    assert len(found.u_t) == (3 * across - 2) ** 3
    assert len(found.v_t) == octets
    assert len(found.w_t) == len(found.x_t) == 0


def test_few_points_go_direct(rng):
    """Check that pairs move to U lists, and that none is lost."""
    nodes = build(*sets("others", rng), 12)
    all_, moved = octlists.lists(nodes).only, octlists.lists(nodes, 8).only
    assert len(moved.u_t) > len(all_.u_t)
    assert 0 < len(moved.w_t) < len(all_.w_t)
    assert sum(len(a) for a in (all_.u_t, all_.w_t, all_.x_t)) == sum(len(a) for a in (moved.u_t, moved.w_t, moved.x_t))
    assert ((nodes.sources.count[moved.w_s] >= 8) | ~nodes.is_leaf[moved.w_s]).all()
    assert ((nodes.targets.count[moved.x_t] >= 8) | ~nodes.is_leaf[moved.x_t]).all()


def test_ranges_are_fewer_than_pairs(rng):
    nodes = build(rng.random((3, 20_000)), None, 40)
    found = octlists.lists(nodes).only
    items, ranges = octlists.near(nodes, nodes.sources, found)
    assert len(items) == np.count_nonzero(nodes.is_leaf)
    assert len(ranges) < 0.6 * len(found.u_t)
    work = ((items[:, 1] - items[:, 0]) * np.add.reduceat(ranges[:, 1] - ranges[:, 0], items[:, 2])).sum()
    assert work == (nodes.targets.count[found.u_t].astype(np.int64) * nodes.sources.count[found.u_s]).sum()
