"""Shares of ranks in sums over one tree: counts of all ranks at once against loops over ranks and nodes."""

import itertools

import numpy as np
import pytest

from parki import samples, treecode
from parki.engine.run.spaces import Space
from parki.perfmodels.network import Network
from parki.perfmodels.ranks import fmm_shares, shares, treecode_shares
from parki.perfmodels.ranks.fmm_shares import FmmShares, Units
from parki.perfmodels.ranks.shares import Cuts, RankTraffic, Values
from parki.trees import octlists, octree

SERIAL = Space("Serial")
COSTS = Units(1.0, 2000.0, 500.0, 300.0, 20.0, 50.0)


def test_cuts_are_at_the_edges_nearest_to_equal_work():
    cuts = Cuts.by_work(np.array([0, 10, 20, 30]), np.array([1.0, 1.0, 1.0, 5.0]), 40, 2)
    assert cuts.first.tolist() == [0, 30, 40]
    assert cuts.imbalance(np.array([0, 10, 20, 30]), np.array([1.0, 1.0, 1.0, 5.0])) == 5 / 4
    assert [a.tolist() for a in cuts.contributors(np.array([0, 20]), np.array([40, 30]))] == [[0, 0], [2, 1]]


def test_ranks_without_points_contribute_nothing():
    cuts = Cuts(np.array([0, 4, 4, 8]))
    low, high = cuts.contributors(np.array([0]), np.array([8]))
    assert [a.tolist() for a in cuts.runs(low, high)] == [[0, 2], [0, 0]]


def test_traffic_has_one_message_for_each_pair_of_ranks():
    some = RankTraffic.of(3, np.array([0, 0, 1, 2]), np.array([1, 1, 1, 0]), np.array([8.0, 16.0, 4.0, 2.0]))
    assert (some.pairs.tolist(), some.nbytes.tolist()) == ([1, 6], [24.0, 2.0])
    both = some + RankTraffic.of(3, np.array([0]), np.array([1]), 8.0)
    assert both.sent.tolist() == [32.0, 0.0, 2.0]
    assert both.received.tolist() == [2.0, 32.0, 0.0]
    assert both.messages.tolist() == [1.0, 1.0, 1.0]
    assert both.seconds(Network(1.0, 2.0)).tolist() == [17.0, 17.0, 2.0]
    assert shares.partners(3, [both]).tolist() == [2, 1, 1]
    large = RankTraffic.of(10_000, np.array([9999, 9999, 5]), np.array([5, 5, 5]), np.array([1.0, 2.0, 3.0]))
    assert (large.pairs.tolist(), large.nbytes.tolist()) == ([99_990_005], [3.0])


def drawn(ranks, seed, nodes=40):
    """Return values of random runs of contributors, with random users."""
    rng = np.random.default_rng(seed)
    cuts = Cuts(np.arange(ranks + 1) * 10)
    ends = np.sort(rng.integers(0, 10 * ranks + 1, (nodes, 2)), axis=1)
    ends[:, 1] = np.maximum(ends[:, 1], ends[:, 0] + 1)
    ends -= (ends[:, 1] > 10 * ranks)[:, None]
    users = rng.integers(0, ranks, 300), rng.integers(0, nodes, 300)
    return Values.used(cuts, (ends[:, 0], ends[:, 1]), users, 8.0), set(zip(*(a.tolist() for a in users), strict=True))


def halves(begin, end):
    """Yield, step by step, all pairs of halves of groups."""
    groups = [(begin, end)]
    while any(b - a > 1 for a, b in groups):
        pairs = [((a, (a + b) // 2), ((a + b) // 2, b)) for a, b in groups if b - a > 1]
        yield pairs
        groups = [half for pair in pairs for half in pair]


@pytest.mark.parametrize(("ranks", "seed"), [(1, 0), (2, 1), (3, 2), (5, 3), (8, 4), (13, 5), (16, 6)])
def test_ways_of_exchanging_values_against_loops(ranks, seed):
    values, users = drawn(ranks, seed)
    makers = [range(low, high) for low, high in zip(values.low, values.high, strict=True)]
    users = {(rank, node) for rank, node in users if list(makers[node]) != [rank]}
    assert set(zip(values.rank.tolist(), values.node.tolist(), strict=True)) == users
    used = {node for _, node in users}
    parts, sums = shares.owners(values)
    assert parts.nbytes.sum() == 8 * sum(len(makers[node]) - 1 for node in used)
    assert sums.nbytes.sum() == 8 * sum(rank != makers[node][0] for rank, node in users)

    held = {(rank, node): {rank} for node in used for rank in makers[node]}  # parts of ranks in the sum of each rank
    steps = shares.hypercube(values)
    for step, pairs in itertools.zip_longest(steps, halves(0, ranks)):
        sent, found = np.zeros((ranks, ranks)), {}
        for (a, b), (c, d) in (p for pair in pairs for p in (pair, pair[::-1])):
            for (rank, node), of in held.items():
                if a <= rank < b:
                    if any((user, node) in users for user in range(c, d)):
                        to = min(c + rank - a, d - 1)
                        sent[rank, to] += 8
                        found.setdefault((to, node), []).append(of)
                    if any((user, node) in users for user in range(a, b)):
                        found.setdefault((rank, node), []).append(of)
        held = {key: set().union(*of) for key, of in found.items()} | {
            key: of for key, of in held.items() if not any(a <= key[0] < d for (a, _), (_, d) in pairs)
        }
        assert np.array_equal(np.flatnonzero(sent), step.pairs)
        assert np.array_equal(sent.ravel()[step.pairs], step.nbytes)
    assert all(held[rank, node] == set(makers[node]) for rank, node in users)
    assert len(steps) == int(np.ceil(np.log2(ranks)))


def test_ranges_that_overlap_are_one():
    cuts = Cuts(np.array([0, 10, 20, 30]))
    found = shares.ghosts(cuts, np.array([0, 0, 0, 2]), np.array([5, 8, 22, 0]), np.array([12, 15, 25, 3]), 8.0)
    assert dict(zip(found.pairs.tolist(), found.nbytes.tolist(), strict=True)) == {2: 24.0, 3: 40.0, 6: 24.0}


@pytest.fixture(scope="module", params=["uniform", "plummer"])
def octets(request):
    x = getattr(samples, request.param)(3000, seed=1)
    nodes = octree.build(x, None, 20, SERIAL).nodes
    return nodes, octlists.lists(nodes, 8).only


def box_pairs(nodes, lists):
    """Yield all pairs of boxes of lists V, box by box."""
    directions = octlists.DIRECTIONS[np.arange(27) != 13]
    for t, s, direction in zip(lists.v_t, lists.v_s, lists.v_direction, strict=True):
        above = nodes.octet_parent
        for a, b in itertools.product(range(8), range(8)):
            one, other = nodes.child[above[t], a], nodes.child[above[s], b]
            apart = 2 * directions[direction] + octree.OCTANTS[b] - octree.OCTANTS[a]
            if one >= 0 and other >= 0 and np.abs(apart).max() > 1:
                yield one, other


@pytest.mark.parametrize("ranks", [1, 3, 8, 40])
def test_octets_against_loops_over_pairs_of_boxes(octets, ranks):
    nodes, lists = octets
    it = fmm_shares.share(nodes, lists, ranks, COSTS)
    low, high = it.contributors
    makers = [set(range(a, b)) for a, b in zip(low, high, strict=True)]
    pairs = [*box_pairs(nodes, lists), *zip(lists.w_t, lists.w_s, strict=True)]
    users = {(rank, int(s)) for t, s in pairs for rank in makers[t] if makers[s] != {rank}}
    values = it.expansions(8.0)
    assert set(zip(values.rank.tolist(), values.node.tolist(), strict=True)) == users
    met = [*zip(lists.u_t, lists.u_s, strict=True), *zip(lists.x_t, lists.x_s, strict=True)]
    ghosts = {(rank, int(s)) for t, s in met for rank in makers[t] if makers[s] != {rank}}
    received = np.bincount([r for r, _ in ghosts], [8.0 * nodes.sources.count[s] for _, s in ghosts], ranks)
    assert np.array_equal(it.ghosts(1).received, received)
    octet_pairs = np.zeros(ranks)
    for t in lists.v_t:
        for rank in set().union(*(makers[c] for c in nodes.child[nodes.octet_parent[t]] if c >= 0)):
            octet_pairs[rank] += 1
    assert np.array_equal(it.units.octet_pairs, octet_pairs)
    assert it.units.pairs.sum() == nodes.sources.count[lists.u_t].astype(float) @ nodes.sources.count[lists.u_s]
    assert it.units.particles.sum() == 3000


def test_chunks_change_nothing(octets, monkeypatch):
    nodes, lists = octets
    whole = fmm_shares.share(nodes, lists, 8, COSTS)
    monkeypatch.setattr(fmm_shares, "CHUNK", 1000)
    small = FmmShares(nodes, lists, whole.cuts)
    assert all(np.array_equal(a, b) for a, b in zip(whole.translations, small.translations, strict=True))


@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
@pytest.mark.parametrize("ranks", [1, 3, 8])
def test_treecode_lists_against_loops(method, ranks):
    x = samples.uniform(2000, seed=1)
    given = {"tolerance": 1e-5, "leaf_size": 40, "batch_size": 40}
    structure = treecode.plan("coulomb", x, x, method=method, execution_space="Serial", **given).structure
    nodes, lists = structure.sources.nodes, treecode_shares.ListRows.of(structure.lists)
    it = treecode_shares.share(nodes, lists, ranks, 0.7, 2, 4)
    low, high = it.contributors
    evaluated, clusters, particles = np.zeros(ranks), set(), [set() for _ in range(ranks)]
    for _, m, rows in lists.each():
        for k, (target, pairs) in enumerate(zip(rows.target, rows.pairs, strict=True)):
            for rank in range(low[target], high[target]):
                evaluated[rank] += pairs
                if m:
                    clusters.add((rank, m, int(rows.source[k])))
                else:
                    particles[rank].update(range(*rows.source[k]))
    assert np.allclose(sum(it.evaluations[name] for name in ("pp", "pc", "cp", "cc")), evaluated)
    own = [set(range(*it.source_cuts.first[r : r + 2])) for r in range(ranks)]
    assert it.ghosts.received.tolist() == [16.0 * len(particles[r] - own[r]) for r in range(ranks)]
    remote = {(r, m, s) for r, m, s in clusters if (low[s], high[s]) != (r, r + 1)}
    assert it.wanted.tolist() == [sum(r == one for one, _, _ in remote) for r in range(ranks)]
    parts, complete = it.exchange
    shared = {(m, s) for _, m, s in remote if high[s] - low[s] > 1}
    assert parts.nbytes.sum() == sum(8.0 * m**3 * (high[s] - low[s] - 1) for m, s in shared)
    sent = sum(8.0 * m**3 for r, m, s in remote if r != low[s])
    assert complete.nbytes.sum() == sent + it.ghosts.nbytes.sum()
    if ranks == 1:
        assert evaluated[0] == pytest.approx(sum(structure.lists.pairs))


def test_skeletons_have_all_that_is_above():
    x = samples.uniform(2000, seed=1)
    structure = treecode.plan("coulomb", x, x, theta=0.7, degree=2, leaf_size=40, execution_space="Serial").structure
    nodes, lists = structure.sources.nodes, treecode_shares.ListRows.of(structure.lists)
    it = treecode_shares.share(nodes, lists, 4, 1.0, 1, 8)
    (low, high), leaf_of = it.contributors, nodes.begin[nodes.leaves]
    for rank in range(4):
        seen = set()
        for _, m, rows in lists.each():
            for target, source in zip(rows.target, rows.source, strict=True):
                if low[target] <= rank < high[target]:
                    node = source if m else nodes.leaves[np.searchsorted(leaf_of, source[0], "right") - 1]
                    while node >= 0:
                        seen.add(int(node))
                        node = nodes.parent[node]
        assert it.skeleton()[rank] == sum((low[s], high[s]) != (rank, rank + 1) for s in seen)
