"""Occupancy: warps of a kernel that a multiprocessor holds at once, their limit, and the share of peak they reach.

A block stays on one multiprocessor until it ends, with the registers of its warps (given out in pieces of 256) and its
shared memory (in pieces of 128 bytes, and 1024 more for the system); at most 32 blocks are there at once.

By Little's law a pipe that begins `rate` warps' instructions a cycle, with results `latency` cycles later, is kept busy
by latency × rate instructions in flight.  Warps with `chains` independent instructions each reach

    share = min(1, warps × chains / (latency × rate))

of the pipe's peak: the limit by occupancy, without memory and all else.  Defaults of `latency` and `rate` are assumed.
"""

from dataclasses import dataclass

from parki.perfmodels.machine import Machine

REGISTER_PIECE = 256  # registers given out to a warp at a time
SHARED_PIECE, RESERVED = 128, 1024  # bytes of shared memory given out at a time; bytes of each block for the system
MOST_BLOCKS = 32  # blocks on a multiprocessor
LATENCY, RATE = 8.0, 2.0  # cycles to a result; warp instructions begun a cycle: double precision, 64 lanes
CHAINS = 2.0  # independent instructions of a warp: even and odd powers in the near field's polynomials


@dataclass(frozen=True)
class Occupancy:
    """Blocks and warps that a multiprocessor holds, the resource that limits them, the share of peak they reach."""

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
    """Return the occupancy of a multiprocessor by a kernel.

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
        description = f"{threads} threads, {registers} registers, {scratch} bytes"
        raise ValueError(f"block: found {description}; expected one that fits {machine.name}: too much of {limit}")
    return Occupancy(blocks, blocks * warps, limit, min(1.0, blocks * warps * chains / (latency * rate)))


def _pieces(amount: int, piece: int) -> int:
    return -(-amount // piece) * piece
