"""Tests of simulated ranks, agreement and deliveries without any sum."""

import time

import numpy as np
import pytest

from parki.distributed import communicators, delivery, ring
from parki.distributed.agreement import agreed, totals
from parki.distributed.comm import Comm
from parki.distributed.simulated import Aborted, World
from parki.engine.run import spaces


@pytest.mark.parametrize("size", [1, 2, 3, 8, 65])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_collectives(size, seed):
    def work(comm):
        assert isinstance(comm, Comm)
        assert comm.allreduce(comm.rank).item() == size * (size - 1) // 2
        assert comm.allreduce([comm.rank, -comm.rank], "max").tolist() == [size - 1, 0]
        assert comm.allgather(str(comm.rank)) == [str(q) for q in range(size)]
        assert comm.bcast({"rank": comm.rank}, size - 1) == {"rank": size - 1}
        comm.barrier()
        return totals(comm, 1, comm.rank)

    assert World(size, seed).run(work) == [(size, size * (size - 1) // 2)] * size


def test_messages_are_copied_and_counted():
    def work(comm):
        a, b = np.full(3, float(comm.rank)), np.empty(3)
        after, before = (comm.rank + 1) % 4, (comm.rank - 1) % 4
        pending = comm.exchange({after: a, comm.rank: a}, {before: b, comm.rank: np.empty(3)}, "there")
        a[:] = -1
        pending.finish()
        assert b.tolist() == [before] * 3
        return comm.traffic.nbytes["there"], comm.traffic.messages["there"]

    assert World(4).run(work) == [(24, 1)] * 4


def test_messages_come_to_those_that_asked_first():
    def work(comm):
        other, found = 1 - comm.rank, [np.empty(1), np.empty(2)]
        pending = [comm.exchange({other: np.full(a.size, float(a.size))}, {other: a}, "both") for a in found]
        pending[1].finish()
        pending[0].finish()
        return [a.tolist() for a in found]

    assert World(2).run(work) == [[[1.0], [2.0, 2.0]]] * 2


def test_unknown_senders():
    def work(comm):
        rows = np.full((comm.rank, 2), comm.rank, np.int32)
        found = comm.exchange_unknown({0: rows} if comm.rank else {}, rows[:0], "rows")
        return {q: a.shape for q, a in found.items()}

    assert World(3).run(work) == [{1: (1, 2), 2: (2, 2)}, {}, {}]


def test_messages_take_their_time():
    def work(comm):
        comm.barrier()
        a, began = np.zeros(1000), time.perf_counter()
        pending = comm.exchange({1 - comm.rank: a}, {1 - comm.rank: a.copy()}, "slow")
        assert not pending.test()
        pending.finish()
        return time.perf_counter() - began

    assert min(World(2, delay=(0.01, 1e-6)).run(work)) >= 0.01


@pytest.mark.parametrize(
    ("work", "error", "text"),
    [
        (lambda c: c.barrier() if c.rank else c.allreduce(1), RuntimeError, "expected one call of all ranks"),
        (lambda c: c.barrier() if c.rank else None, Aborted, "all of 3 ranks wait: rank 1 in barrier"),
        (lambda c: c.exchange({}, {c.rank ^ 1: np.empty(1)}, "tea").finish(), Aborted, "rank 0 in tea, from rank 1"),
        (lambda c: 1 // c.rank, ZeroDivisionError, "by zero"),
        (
            lambda c: c.exchange({c.rank ^ 1: np.empty(2)}, {c.rank ^ 1: np.empty(1)}, "tea").finish(),
            RuntimeError,
            "tea: found 16 bytes of float64 from rank .*, expected 8",
        ),
    ],
)
def test_faults_are_named(work, error, text):
    for seed in range(3):
        with pytest.raises(error, match=text):
            World(4, seed).run(work)


def test_what_is_no_communicator():
    with pytest.raises(TypeError, match=r"comm is a builtins.str; expected a communicator of mpi4py, or None"):
        communicators.of("MPI_COMM_WORLD")


# Agreement ------------------------------------------------------------------------------------------------------------
class Odd(ValueError):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


@pytest.mark.parametrize(
    ("error", "kind"), [(ValueError("x is nan"), ValueError), (Odd(1, 2), ValueError), (MemoryError("no"), MemoryError)]
)
def test_one_rank_s_error_is_everyone_s(error, kind):
    def work(comm):
        def check():
            if comm.rank == 2:
                raise error

        with pytest.raises(kind, match=str(error)) as caught, agreed(comm, "checking points"):
            check()
        with agreed(comm, "checking points"):
            pass
        return caught.value.__notes__, comm.allreduce(1).item()

    note = "Found by rank 2 of 5 in checking points; raised on all ranks."
    for found, total in World(5).run(work):
        assert found[-1] == note
        assert total == 5


def test_the_first_of_several_errors_is_raised():
    def work(comm):
        with pytest.raises(ValueError, match="rank 1"), agreed(comm, "work"):
            raise ValueError(f"rank {comm.rank}") if comm.rank else ValueError("rank 1, too")

    World(3).run(work)


def test_facts_that_differ():
    def work(comm):
        facts = {"call": "move", "tolerance": 1e-5 if comm.rank == 3 else 1e-6}
        text = r"tolerance is 1e-05 on rank 3; expected 1e-06, as on rank 0"
        with pytest.raises(ValueError, match=text), agreed(comm, "a move", facts):
            pass
        facts = {"call": "move" if comm.rank == 2 else "plan"}
        text = "call is 'move' on rank 2; expected 'plan', as on rank 0"
        with pytest.raises(ValueError, match=text), agreed(comm, "work", facts):
            pass

    World(4).run(work)


def test_an_interrupt_passes():
    def work(comm):
        with agreed(comm, "work"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        World(2).run(work)


# Deliveries -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("space", [None, spaces.get("Serial")])
def test_there_and_back(size, space):
    rng = np.random.default_rng(1)
    owners = [rng.integers(0, size, 7 * (q != 1)).astype(np.int32) for q in range(size)]

    def work(comm):
        own = owners[comm.rank]
        a = np.stack([np.full(len(own), 100 * comm.rank), np.arange(len(own))]).astype(float)[None]
        to = delivery.to_owners(comm, own, "sort", space)
        there = to.there(a)
        expected = [(100 * q, i) for q in range(size) for i in np.flatnonzero(owners[q] == comm.rank)]
        assert [tuple(c) for c in there[0].T] == expected
        np.testing.assert_array_equal(to.back(there), a)

    World(size).run(work)


def test_blocks_go_around():
    def work(comm):
        block = np.full((2, comm.rank), comm.rank)
        return [(len(b), b.shape[1], int(b.sum())) for b in ring.around(comm, block)]

    found = World(4).run(work)
    assert found[0] == [(2, 0, 0), (2, 3, 18), (2, 2, 8), (2, 1, 2)]
