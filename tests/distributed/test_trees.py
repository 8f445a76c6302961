"""Trees over ranks: nodes, points and their order equal to those of one process, and cuts into equal work."""

import itertools

import numpy as np
import pytest

import parki
from parki.distributed.simulated import World
from parki.distributed.treecode.lists import RankLists
from parki.distributed.trees import cuts, kinds, tables
from parki.distributed.trees.shared import SharedTree
from parki.engine.run.spaces import Space
from parki.treecode.params import Parameters
from parki.trees import cluster
from tests.distributed.free import SETS, FreeCase
from tests.distributed.shares import cuts as divided
from tests.distributed.shares import part
from tests.quick import every

SERIAL = Space("Serial")


def edges_of(leaves):
    """Return the places between leaves, among all points and among the points of the single set."""
    places = np.append(leaves["begin"], leaves["begin"][-1:] + leaves["count"][-1:])
    return np.stack([places, places], axis=1)


def grown(comm, x, which, leaf_size):
    """Return a rank's part of a tree and its order of points, for cuts by points and by a superlinear work."""
    own = part(x, which[comm.rank])
    tree = kinds.clusters(comm, own, leaf_size, SERIAL)
    by_points = SharedTree.of(comm, tree)
    leaves = by_points.leaves
    again = cuts.by_work(comm, edges_of(leaves), leaves["count"] ** 1.5)
    by_work = SharedTree.cut(comm, tree, again, [own], SERIAL)
    order = part(which[comm.rank].astype(float)[None], slice(None))
    return [(one, one.deliveries[0].there(order)[0, one.orders[0]].astype(int)) for one in (by_points, by_work)]


@pytest.mark.parametrize(("points", "ranks"), every(2, itertools.product(SETS, [1, 2, 5, 17, 64])))
def test_clusters_are_those_of_one_process(points, ranks):
    x = SETS[points](3000, 1)
    one = cluster.build(x, 20, SERIAL)
    which = divided(3000, ranks, ranks)
    found = World(ranks, ranks).run(grown, x, which, 20)
    for k in range(2):
        parts = [of[k][0] for of in found]
        table, nodes = tables.merged([own.table for own in parts]), one.nodes
        for name in ("level", "begin", "count", "low", "high"):
            np.testing.assert_array_equal(table[name], getattr(nodes, name))
        np.testing.assert_array_equal(table["leaf"], nodes.is_leaf)
        np.testing.assert_array_equal(np.concatenate([own.points[0] for own in parts], axis=1), one.sorted.points)
        np.testing.assert_array_equal(np.concatenate([of[k][1] for of in found]), one.sorted.order)
        for own in parts:
            first, end = own.mine
            assert own.points[0].shape[1] == end - first
            assert (tables.within(own.table, first, end) | (own.table["level"] == 0)).all()


@pytest.mark.parametrize("x", [np.zeros((3, 1)), np.ones((3, 3)), np.full((3, 400), 0.7)], ids=["one", "few", "equal"])
def test_small_trees(x):
    one = cluster.build(x, 20, SERIAL)
    found = World(4).run(grown, x, divided(x.shape[1], 4), 20)
    for k in range(2):
        table = tables.merged([of[k][0].table for of in found])
        np.testing.assert_array_equal(table["begin"], one.nodes.begin)


def test_cuts_are_between_equal_work():
    """A rank's work differs from the mean by no more than the work of a leaf."""
    work = np.random.default_rng(1).random(500)

    def cut(comm):
        mine = slice(100 * comm.rank, 100 * comm.rank + 100)
        edges = np.arange(100 * comm.rank, 100 * comm.rank + 101)[:, None]
        return cuts.by_work(comm, edges, work[mine])

    (found, *others) = World(5).run(cut)
    assert all((other == found).all() for other in others)
    each = np.add.reduceat(work, found[:-1, 0])
    assert np.abs(each - work.sum() / 5).max() <= work.max()
    assert World(3).run(lambda comm: cuts.imbalance(comm, float(comm.rank)))[0] == 2.0


@pytest.mark.slow
@pytest.mark.parametrize("points", ["uniform", "plummer", "sphere"])
def test_treecodes_are_balanced(points):
    x, p = SETS[points](1_000_000, 1), Parameters("dual", 0.7, 8, 1000, 1000, None, 1e-6, True, "float64")
    rule = p.rule(lambda r: 1 / r, lambda h: np.ones_like(h), 0.5)

    def balance(comm):
        own = part(x, slice(comm.rank, None, comm.size))
        tree, even = kinds.clusters(comm, own, 1000, SERIAL), None
        for _ in range(2):
            one = SharedTree.of(comm, tree) if even is None else SharedTree.cut(comm, tree, even, [own], SERIAL)
            edges = edges_of(one.leaves)
            work = RankLists.of(one, one, p, rule, 0.0).work(edges[:, 0])
            found, even = cuts.imbalance(comm, float(work.sum())), cuts.by_work(comm, edges, work)
        return found

    assert World(64).run(balance)[0] <= 1.06


@pytest.mark.slow
@pytest.mark.parametrize("points", ["uniform", "plummer"])
def test_plans_of_fast_multipole_sums_scale(points):
    """At 64 ranks, less than a twentieth of a rank's items do not fall with the number of ranks."""
    one = FreeCase(parki.fmm, points=points, n=1_000_000)

    def work(comm):
        x = part(one.y, slice(comm.rank, None, comm.size))
        return one.plan(x, x, comm=comm, tolerance=1e-5).structure.handled

    repeated, own = np.mean(World(64).run(work), axis=0)
    assert repeated < 0.05 * (repeated + own)
