"""Exchanges of values that several ranks make parts of and others use: by owners, and by halves of the ranks."""

from dataclasses import replace

import numpy as np
import pytest

from parki.distributed import network as networks
from parki.distributed.exchange import choice, parcels
from parki.distributed.exchange.census import Census
from parki.distributed.exchange.parcels import Parcels, Shelf
from parki.distributed.simulated import World
from parki.perfmodels.network import Network
from tests.distributed.nodes import SHELVES, Nodes
from tests.ewald import cupy_standin as standin
from tests.quick import but

RANKS = [1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 64]
PHASE = "values"


def made(comm, nodes, scheme):
    return choice.SCHEMES[scheme](Census(comm, *nodes.of(comm.rank), len(SHELVES), PHASE), SHELVES)


def called(comm, nodes, scheme, put=np.asarray, calls=2):
    """Return this rank's shelves after each call, and the exchange; check the bytes and messages of each call."""
    rounds, found = made(comm, nodes, scheme), []
    for call in range(calls):
        before = comm.traffic.copy()
        shelves = [put(a) for a in nodes.shelves(comm.rank, call)]
        rounds.start(shelves)
        while not rounds.test():
            if call % 2:
                rounds.finish()
            else:
                comm.world.let_others(comm.rank)
        found.append([a if isinstance(a, np.ndarray) else a.get() for a in shelves])
        sent = [getattr(comm.traffic, of).get(PHASE, 0) - getattr(before, of).get(PHASE, 0) for of in COUNTED]
        assert sent == [rounds.nbytes, rounds.messages]
    return found, rounds


COUNTED = ("nbytes", "messages")


@pytest.mark.parametrize("scheme", choice.SCHEMES)
@pytest.mark.parametrize("size", but(64, of=RANKS))
def test_users_have_the_sums_of_all_parts(size, scheme):
    for seed in range(3):
        nodes = Nodes(size, seed)
        first, again = (World(size, order).run(called, nodes, scheme) for order in (seed, seed + 7))
        for rank, ((found, rounds), (repeated, _)) in enumerate(zip(first, again, strict=True)):
            for call, shelves in enumerate(found):
                nodes.check(rank, call, shelves)
                for a, b in zip(shelves, repeated[call], strict=True):
                    np.testing.assert_array_equal(a, b)
            assert rank not in rounds.partners
            sums = any(node.users and len(node.makers) > 1 for node in nodes.every)
            assert rounds.steps == {"owners": 1 + sums, "hypercube": (size - 1).bit_length()}[scheme]


@pytest.mark.parametrize("scheme", choice.SCHEMES)
@pytest.mark.parametrize("size", [3, 8, 31])
def test_sums_of_fractions_repeat_bit_for_bit(size, scheme):
    nodes = Nodes(size, 5, whole=False)
    first, again = (World(size, order).run(called, nodes, scheme) for order in (0, 1))
    for rank, ((found, _), (repeated, _)) in enumerate(zip(first, again, strict=True)):
        nodes.check(rank, 0, found[0], rtol=1e-6)
        for a, b in zip(found[0], repeated[0], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("scheme", choice.SCHEMES)
def test_messages_that_have_begun_before_may_end_later(scheme):
    def work(comm):
        rounds, shelves, ghosts = (
            made(comm, nodes, scheme),
            nodes.shelves(comm.rank, 0),
            {q: np.empty(7) for q in range(7)},
        )
        pending = comm.exchange({q: np.full(7, float(comm.rank)) for q in ghosts}, ghosts, "ghosts")
        rounds.start(shelves)
        rounds.finish()
        nodes.check(comm.rank, 0, shelves)
        pending.finish()
        assert all((a == q).all() for q, a in ghosts.items())

    nodes = Nodes(7, 2)
    World(7).run(work)


# Counts by other programs ---------------------------------------------------------------------------------------------
def owners_by_loops(nodes):
    """Return the bytes and messages that each rank sends: parts in use to owners, values to users."""
    nbytes, pairs = np.zeros(nodes.size, int), set()
    for node in nodes.every:
        for user in node.users:
            if user != node.makers[0]:
                nbytes[node.makers[0]] += SHELVES[node.shelf].nbytes
                pairs.add((node.makers[0], user, "value"))
        for maker in node.makers[1:] if node.users else ():
            nbytes[maker] += SHELVES[node.shelf].nbytes
            pairs.add((maker, node.makers[0], "part"))
    return nbytes, np.bincount([sender for sender, *_ in pairs], minlength=nodes.size)


def halves_by_loops(nodes):
    """Return the bytes and messages that each rank sends, following each node's parts through halves of ranges."""
    nbytes, pairs = np.zeros(nodes.size, int), set()

    def split(node, ranks, makers, users, level):
        if len(ranks) == 1 or not users:
            return
        middle = -(-len(ranks) // 2)
        for mine, theirs in ((ranks[:middle], ranks[middle:]), (ranks[middle:], ranks[:middle])):
            wanted = [rank for rank in users if rank in theirs]
            come = set()
            for maker in makers:
                if wanted and maker in mine:
                    to = theirs[min(mine.index(maker), len(theirs) - 1)]
                    nbytes[maker] += SHELVES[node.shelf].nbytes
                    pairs.add((maker, to, level))
                    come.add(to)
            split(node, theirs, come | {rank for rank in makers if rank in theirs}, wanted, level + 1)

    for node in nodes.every:
        split(node, list(range(nodes.size)), set(node.makers), node.users, 0)
    return nbytes, np.bincount([sender for sender, *_ in pairs], minlength=nodes.size)


def halves_by_digits(nodes):
    """Return the bytes that each of 2^d ranks sends, from the low digits of makers and the high digits of users.

    In the round of digit i a rank has the parts of makers whose digits up to i are its own.  It sends them if a user
    has its digits above i and the other digit i.
    """
    nbytes = np.zeros(nodes.size, int)
    for i in range(nodes.size.bit_length() - 1):
        for node in nodes.every:
            low = {maker % (2 << i) for maker in node.makers}
            for half in {user >> i for user in node.users}:
                for rest in low:
                    if rest >> i != half % 2:
                        nbytes[((half ^ 1) << i) + rest % (1 << i)] += SHELVES[node.shelf].nbytes
    return nbytes


@pytest.mark.parametrize("size", RANKS)
def test_bytes_and_messages(size):
    for seed in range(3):
        nodes = Nodes(size, seed)
        for scheme, count in (("owners", owners_by_loops), ("hypercube", halves_by_loops)):
            rounds = World(size, seed).run(made, nodes, scheme)
            nbytes, messages = count(nodes)
            assert [one.nbytes for one in rounds] == nbytes.tolist()
            assert [one.messages for one in rounds] == messages.tolist()
        if size & (size - 1) == 0:
            assert halves_by_digits(nodes).tolist() == nbytes.tolist()


# Nodes of one kind ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", choice.SCHEMES)
@pytest.mark.parametrize("size", [2, 5, 16])
@pytest.mark.parametrize(
    "kind", [lambda p: ([0], range(p)), lambda p: ([p - 1], range(p)), lambda p: (range(p), [p // 2]),
             lambda p: (range(p), range(p)), lambda p: (range(p), [])],
    ids=["one to all", "the last to all", "all to one", "all to all", "all to none"],
)  # fmt: skip
def test_one_node(kind, size, scheme):
    nodes = Nodes(size, 0, [kind(size)])
    for rank, (found, rounds) in enumerate(World(size).run(called, nodes, scheme)):
        nodes.check(rank, 0, found[0])
        if not nodes.every[0].users:
            assert (rounds.nbytes, rounds.messages, rounds.partners) == (0, 0, set())
        elif scheme == "hypercube":
            assert rounds.messages <= (size - 1).bit_length()


def test_parts_stay_where_only_values_of_one_rank_are_wanted():
    nodes = Nodes(4, 0, [([1], [0, 3]), (range(4), [])])
    rounds = World(4).run(made, nodes, "owners")
    assert [(one.steps, one.messages, one.partners) for one in rounds] == [
        (1, 0, set()), (1, 2, {0, 3}), (1, 0, set()), (1, 0, set())
    ]  # fmt: skip


def test_users_are_told_once():
    def work(comm):
        made(comm, nodes, "hypercube")
        return comm.traffic.nbytes[PHASE]

    nodes, row = Nodes(16, 0, [(range(16), range(16))]), 3 * 8
    owner, *others = World(16).run(work)
    assert others == [(2 + 8 + 4 + 2 + 1) * row] * 15  # a part, a wish, and users in the halves that the rank leaves
    assert owner == (15 * 16 + 8 + 4 + 2 + 1) * row


# Errors of one rank ---------------------------------------------------------------------------------------------------
def _changed(of, key, value):
    def change(parts, wishes):
        given = {"parts": parts, "wishes": wishes}
        a = getattr(given[of], key).copy()
        a[0] = value(given)
        given[of] = replace(given[of], **{key: a})
        return given["parts"], given["wishes"]

    return change


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (_changed("wishes", "owner", lambda _: 3), RuntimeError, "is wanted of rank 3 by rank 2; expected its owner"),
        (_changed("wishes", "owner", lambda _: 1), RuntimeError, "is wanted of rank 1 by rank 2; expected its owner"),
        (_changed("wishes", "name", lambda _: -5), RuntimeError, "node -5 is wanted of rank"),
        (_changed("parts", "name", lambda _: -5), RuntimeError, "node -5 is offered to rank 0 by rank 2"),
        (_changed("wishes", "shelf", lambda w: (w["wishes"].shelf[0] + 1) % 3), RuntimeError, "is on shelf"),
        (_changed("wishes", "shelf", lambda _: 9), ValueError, "wishes.shelf has 9; expected 0 to 2"),
        (_changed("wishes", "owner", lambda _: 4), ValueError, "wishes.owner has 4; expected 0 to 3"),
        (_changed("parts", "row", lambda _: -1), ValueError, "parts.row has -1; expected at least 0"),
        (_changed("parts", "end", lambda _: 2), ValueError, "parts.end has 2; expected 3 to 4"),
        (_changed("wishes", "name", lambda w: w["wishes"].name[1]), ValueError, "twice; expected each name once"),
        (_changed("wishes", "name", lambda w: w["parts"].name[0]), ValueError, "is made and wanted by rank 2"),
        (lambda parts, wishes: (parts, replace(wishes, row=wishes.row[1:])), ValueError, "wishes.row has shape"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("scheme", choice.SCHEMES)
def test_errors_of_one_rank_are_raised_on_all(change, error, text, scheme):
    nodes = Nodes(4, 1, [(range(4), []), ([0, 1], [2]), ([1], [2, 3])])

    def work(comm):
        given = nodes.of(comm.rank)
        if comm.rank == 2:
            given = change(*given)
        with pytest.raises(error, match=text):
            choice.chosen(comm, None, *given, SHELVES, PHASE, scheme)
        return made(comm, nodes, scheme).nbytes

    assert sum(World(4).run(work)) > 0


# Choice ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    ("size", "network", "kind", "expected"),
    [
        (8, Network(1e-3, 1e12), "all to all", "hypercube"),  # latency counts: 3 messages, or 7 + 7
        (8, Network(1e-9, 1e3), "one to one", "owners"),  # bytes count: owners send each value once
        (64, None, "all to all", "owners"),
        (65, None, "all to all", "hypercube"),
        (65, None, "one to one", "owners"),
    ],
)
def test_the_cheaper_exchange_is_taken(size, network, kind, expected, kept, monkeypatch):
    every = [(range(size), range(size))] if kind == "all to all" else [([q], [q ^ 7]) for q in range(8)] * 4
    nodes = Nodes(size, 0, every)
    monkeypatch.setattr(networks, "kept", lambda: network if kept else None)

    def work(comm):
        given = network if comm.rank == 0 and not kept else None
        return type(choice.chosen(comm, given, *nodes.of(comm.rank), SHELVES, PHASE))

    assert set(World(size).run(work)) == {choice.SCHEMES[expected]}


def test_a_scheme_is_forced_or_unknown():
    nodes = Nodes(3, 0)

    def work(comm):
        given = comm, Network(1e-6, 1e9), *nodes.of(comm.rank), SHELVES, PHASE
        with pytest.raises(ValueError, match="scheme is 'ring'; expected 'owners' or 'hypercube', or None"):
            choice.chosen(*given, "ring" if comm.rank == 1 else "owners")
        return [type(choice.chosen(*given, scheme)) for scheme in choice.SCHEMES]

    assert World(3).run(work) == [list(choice.SCHEMES.values())] * 3


# Parcels --------------------------------------------------------------------------------------------------------------
def aligned(a, rows, out, gathered=parcels.gathered):
    assert out.flags.aligned
    gathered(a, rows, out)


def test_parcels_have_no_gaps_and_keep_their_memory(monkeypatch):
    monkeypatch.setattr(parcels, "gathered", aligned)
    kinds = [Shelf(3, np.dtype("f4")), Shelf(1, np.dtype("i1")), Shelf(2, np.dtype("c16")), Shelf(5, np.dtype("f8"))]
    ours = [np.array([2, 0, 2]), np.array([1]), np.array([], int), np.array([3])]
    theirs = [np.array([3, 1, 4]), np.array([0]), np.array([], int), np.array([2])]

    def work(comm):
        rows = Parcels(comm, {1 - comm.rank: ours}, {1 - comm.rank: theirs}, kinds, "rows")
        assert (rows.sent.messages, rows.sent.nbytes, rows.partners) == (1, 3 * 12 + 1 + 40, {1 - comm.rank})
        memory = None
        for call in range(2):
            shelves = [np.full((5, k.width), 10 * comm.rank + i, k.dtype) for i, k in enumerate(kinds)]
            expected = [a.copy() for a in shelves]
            for i, at in enumerate(theirs):
                expected[i][at] = 10 * (1 - comm.rank) + i + call * expected[i][at]
            rows.start(shelves, add=bool(call)).finish()
            for a, b in zip(shelves, expected, strict=True):
                np.testing.assert_array_equal(a, b)
            kept = [id(a) for a in rows.arrays]
            assert memory in (None, kept)
            memory = kept
        with pytest.raises(IndexError, match="shelf 0 has 4 rows; expected at least 5"):
            rows.start([a[:4] for a in shelves])
        return comm.traffic.nbytes["rows"]

    assert World(2).run(work) == [2 * 77] * 2


@pytest.mark.parametrize("scheme", choice.SCHEMES)
def test_arrays_of_a_device_stay_there(scheme, monkeypatch):
    cupy = standin.install(monkeypatch)
    nodes = Nodes(5, 3)
    for rank, (found, rounds) in enumerate(World(5).run(called, nodes, scheme, cupy.asarray)):
        nodes.check(rank, 1, found[1])
        assert any(isinstance(a, standin.ndarray) for a in rounds.arrays)
