"""How many warps of a kernel a multiprocessor holds at once, what limits them, and whether they hide latencies.

A block stays on one multiprocessor until it ends, with the registers of its warps (given out in pieces of 256) and its
shared memory (in pieces of 128 bytes, 1024 of them kept by the system); at most 32 blocks are there at once.

By Little's law a pipe that begins `rate` warps' instructions a cycle, with results `latency` cycles later, is kept busy
by latency × rate instructions in flight.  So many warps with `chains` independent instructions each reach

    share = min(1, warps × chains / (latency × rate))

of the pipe's peak: what occupancy leaves, before memory and everything else.  The defaults of both are assumed.
"""

from dataclasses import dataclass

from parki.perfmodels.machine import Machine

REGISTER_PIECE = 256  # registers of a warp are given out so many at a time
SHARED_PIECE, RESERVED = 128, 1024  # bytes; the latter of each block, for the system
MOST_BLOCKS = 32  # on a multiprocessor
LATENCY, RATE = 8.0, 2.0  # cycles; double-precision instructions of warps begun in one, where 64 lanes are
CHAINS = 2.0  # even and odd powers of the near field's polynomials


@dataclass(frozen=True)
class Occupancy:
    """What a multiprocessor holds: blocks and their warps, the scarce resource, the share of peak that they reach."""

    blocks: int
    warps: int
    limit: str
    share: float


def occupancy(
    machine: Machine,
    registers: int,
    scratch: int,
    threads: int,
    latency: float = LATENCY,
    rate: float = RATE,
    chains: float = CHAINS,
) -> Occupancy:
    """Return what a multiprocessor holds of a kernel.

    Parameters
    ----------
    machine
        A GPU.
    registers, scratch, threads
        Registers of a thread, bytes of shared memory and threads of a block.
    latency, rate, chains
        As in the module's formula.

    Raises
    ------
    ValueError
        If the machine has no multiprocessors, or a block does not fit one.
    """
    if not machine.threads:
        raise ValueError(f"machine: found {machine.name}, a {machine.kind}; expected a GPU")
    lanes = machine.lanes["float32"]
    warps = -(-threads // lanes)
    of_warp = _pieces(max(registers, 1) * lanes, REGISTER_PIECE)
    of_block = _pieces(scratch, SHARED_PIECE) + RESERVED
    limits = {
        "threads": machine.threads // (warps * lanes),
        "registers": machine.registers // of_warp // warps,
        "blocks": MOST_BLOCKS,
        "shared": machine.shared_bytes // of_block if scratch else MOST_BLOCKS,
    }
    limit = min(limits, key=limits.get)
    blocks = limits[limit]
    if not blocks:
        found = f"{threads} threads, {registers} registers, {scratch} bytes"
        raise ValueError(f"block: found {found}; expected one that fits {machine.name}: too much of {limit}")
    return Occupancy(blocks, blocks * warps, limit, min(1.0, blocks * warps * chains / (latency * rate)))


def _pieces(amount: int, piece: int) -> int:
    return -(-amount // piece) * piece
