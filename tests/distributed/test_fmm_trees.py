"""Octrees and lists of ranks against those of one process: the same boxes, and every pair of boxes once."""

import numpy as np
import pytest

from parki import samples
from parki.distributed.fmm.boxes import RankBoxes
from parki.distributed.fmm.morton import anchors, around, finest, keys
from parki.distributed.simulated import World
from parki.distributed.trees import kinds, tables
from parki.distributed.trees.shared import SharedTree
from parki.engine.run.spaces import Space
from parki.trees import octlists, octree
from tests.distributed.essential import octet_pairs
from tests.distributed.shares import cuts, part
from tests.quick import but

SERIAL = Space("Serial")
FEW = 30


def clusters(n, seed):
    """Return two clusters that are 10^6 of their sizes apart."""
    x = samples.uniform(n, seed)
    x[0, ::2] += 1e6
    return x


POINTS = {"uniform": samples.uniform, "plummer": samples.plummer, "sphere": samples.sphere, "clusters": clusters}


def boxes(comm, sets, leaf_size, cut=None, fill=None):
    grown, root = kinds.boxes(comm, sets, leaf_size, SERIAL, fill=fill, deepest=octree.MAX_LEVEL, is_rounded=False)
    tree = SharedTree.of(comm, grown)
    return RankBoxes.of(tree, root, FEW)


def named(name, nodes, lists):
    """Return the pairs of each list as a set of pairs of names."""
    pairs = {kind: (getattr(lists, f"{kind}_t"), getattr(lists, f"{kind}_s")) for kind in "uwx"}
    pairs["v"] = octet_pairs(nodes, lists)
    found = {}
    for kind, (t, s) in pairs.items():
        rows = list(zip(name[t].tolist(), name[s].tolist(), strict=True))
        found[kind] = set(rows)
        assert len(found[kind]) == len(rows)
    return found


def name_of(nodes, begin):
    return tables.named(nodes.level, begin.astype(np.int64))


@pytest.mark.parametrize("ranks", but(2, 64, of=[1, 2, 3, 8, 64]))
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("kind", POINTS)
def test_boxes_and_pairs_are_those_of_one_process(kind, apart, ranks):
    n = 3000
    sets = [POINTS[kind](n, 1), *([POINTS[kind](n // 2, 2)] if apart else [])]
    of_sets = [cuts(x.shape[1], ranks, seed) for seed, x in enumerate(sets)]
    one = octree.build(sets[0], sets[1] if apart else None, 20, SERIAL).nodes
    begin = one.sources.begin + (one.targets.begin if apart else 0)
    expected = named(name_of(one, begin), one, octlists.lists(one, FEW).only)

    def work(comm):
        own = [part(x, of[comm.rank]) for x, of in zip(sets, of_sets, strict=True)]
        return boxes(comm, own, 20)

    found = World(ranks).run(work)
    whole = {name: set() for name in expected}
    for here in found:
        assert set(here.names) <= set(name_of(one, begin))
        for name, pairs in named(here.names, here.nodes, here.lists).items():
            if name == "u":
                assert not whole[name] & pairs  # each leaf belongs to one rank
            whole[name] |= pairs
    assert whole == expected
    every = np.unique(np.concatenate([here.names for here in found]))
    np.testing.assert_array_equal(every, np.sort(name_of(one, begin)))


def test_keys():
    rng = np.random.default_rng(1)
    level = np.arange(21).repeat(20)
    anchor = rng.integers(0, 1 << level[:, None], (len(level), 3))
    key = keys(anchor)
    np.testing.assert_array_equal(anchors(key), anchor)
    assert (key < 8 ** level.astype(object)).all()
    box, begin, end = around(key, level)
    at = anchors(begin >> 3 * (20 - level[box]))
    assert (np.abs(at - anchor[box]) <= 1).all()
    assert (end - begin == 8 ** (20 - level[box])).all()
    inside = np.minimum(anchor + 1, (1 << level[:, None]) - 1) - np.maximum(anchor - 1, 0) + 1
    np.testing.assert_array_equal(np.bincount(box), inside.prod(axis=1))
    assert finest(np.array([1]), np.array([20]))[0] == 1
