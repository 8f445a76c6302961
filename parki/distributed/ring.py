"""Blocks of numbers that travel from rank to rank in a ring, until all ranks have seen all of them."""

from __future__ import annotations

from collections.abc import Iterator

from parki.arrays import Array, module_of
from parki.distributed.comm import Comm


def around(comm: Comm, block: Array) -> Iterator[Array]:
    """Yield the blocks (rows, n) of all ranks, n of each its own: this rank's first, then from its left."""
    xp, counts = module_of(block), comm.allgather(block.shape[1])
    successor, predecessor = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for step in range(1, comm.size):
        next_block = xp.empty((len(block), counts[(comm.rank - step) % comm.size]), block.dtype)
        messages = comm.exchange({successor: block}, {predecessor: next_block}, "ring")
        yield block
        messages.finish()
        block = next_block
    yield block
