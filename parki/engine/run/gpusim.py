"""GpuSim, the GPU text run on the host: launch record of `pk_threads.h`, orders of threads, sentences on faults."""

import ctypes
import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from parki.engine import config
from parki.engine.errors import CheckedFault, Loc

HEADERS = (
    "pk_gpu.h",
    "pk_roots.h",
    "pk_exp.h",
    "pk_seeds.h",
    "pk_sim.h",
    "pk_threads.h",
    "pk_fibre.h",
)  # files that a text compiled with -DPK_SIM includes
ORDERS = {"random": 0, "ascending": 1, "descending": 2}
DEEDS = ("read", "written", "atomically updated")
(VIEW, SCRATCH, REQUEST, BARRIER, SCRATCH_RACE, VIEW_RACE, UNSET, ROW, MEMORY, TWO) = range(1, 11)


class SimLaunch(ctypes.Structure):
    """Record of a launch, as ``pk_run`` takes it; the run fills in `fault`."""

    _fields_ = (
        ("grid", ctypes.c_int64),  # blocks
        ("block_x", ctypes.c_int64),  # lanes of a row
        ("block_y", ctypes.c_int64),  # rows
        ("warp", ctypes.c_int64),  # 32 or 64
        ("shared_bytes", ctypes.c_int64),  # scratch of a block
        ("seed", ctypes.c_int64),
        ("order", ctypes.c_int64),  # a value of ORDERS
        ("fault", ctypes.c_int64 * 8),
    )


@dataclass(frozen=True)
class Fault:
    """First fault of a launch.

    Sites count from 1; `other_site` and `other_thread` are -1 where there is none.  `index` and `limit` are an index
    and the length it exceeds, or bytes of scratch asked for and granted, or a row and its lanes.  For a race `limit`
    holds the deed of `thread` (an index into `DEEDS`) plus four times the earlier deed of `other_thread`.
    """

    kind: int
    site: int
    other_site: int
    index: int
    limit: int
    block: int
    thread: int
    other_thread: int


class GpuFault(CheckedFault):
    """A fault that GpuSim found: out of bounds, a race, a barrier or a shuffle that not all threads reach."""


def fault_of(launch: SimLaunch) -> Fault | None:
    """Return the fault of a launch that has run, None if there was none."""
    return Fault(*launch.fault) if launch.fault[0] else None


def order_from_environment() -> tuple[int, int]:
    """Return seed and order of threads: ``PARKI_SIM_SEED`` (default 0), ``PARKI_SIM_ORDER`` (default ``random``).

    Raises
    ------
    ValueError
        If the seed is no integer of 64 bits, or the order not ``random``, ``ascending`` or ``descending``.
    """
    seed, order = os.environ.get(config.SIM_SEED) or "0", os.environ.get(config.SIM_ORDER) or "random"
    try:
        number = int(seed)
    except ValueError:
        raise ValueError(f"{config.SIM_SEED}={seed!r}: expected an integer.") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{config.SIM_SEED}={seed!r}: expected an integer of 64 bits.")
    if order not in ORDERS:
        raise ValueError(f"{config.SIM_ORDER}={order!r}: expected {', '.join(ORDERS)}.")
    return number, ORDERS[order]


def explain(fault: Fault | Sequence[int], sites: Sequence[tuple[str, Loc | str]], kernel_name: str) -> str:
    """Return one sentence about a fault, with the kernel lines that take part.

    Parameters
    ----------
    fault : Fault or sequence of 8 int
        The fault, or ``SimLaunch.fault`` as it is.
    sites : sequence of (str, place)
        Name of the view or construct at each site, and its place; site n is ``sites[n - 1]``.
    kernel_name : str
        Name of the workunit, the beginning of the sentence.
    """
    f = fault if isinstance(fault, Fault) else Fault(*fault)
    return f"{kernel_name}: {_Sentence(f, sites).text()}."


class _Sentence:
    def __init__(self, fault: Fault, sites: Sequence[tuple[str, Loc | str]]) -> None:
        self.fault, self.sites = fault, sites
        self.what, self.place = self.site(fault.site)

    def site(self, number: int) -> tuple[str, str]:
        """Return the name of the view or construct at a site, and its place."""
        if not 1 <= number <= len(self.sites):
            return "something", f"an unknown place (site {number})"
        name, place = self.sites[number - 1]
        return f"'{name}'" if name.isidentifier() else name, str(place)

    def text(self) -> str:
        f = self.fault
        element, actor = f"{self.what}[{f.index}]", f"by thread {f.thread} of block {f.block}"
        match f.kind:
            case 1:
                return f"{element} is out of bounds at {self.place}: its view spans {f.limit} elements ({actor})"
            case 2:
                return f"{element} is out of bounds at {self.place}: the scratch has {f.limit} elements ({actor})"
            case 3:
                return self.request(actor)
            case 4:
                return self.barrier()
            case 5:
                return f"missing barrier: {self.race()}"
            case 6:
                return f"race: {self.race()}"
            case 7:
                cause = "a barrier between, or the store, may be missing"
                return f"{element} of the scratch is read at {self.place} before it is written: {cause} ({actor})"
            case 8:
                return self.row()
            case 9:
                return "the host has no memory for the simulated threads"
            case 10:
                return f"{element} and the next element are read at once at {self.place}, at an odd place ({actor})"
        return f"fault {astuple(f)} that this version of parki does not know"

    def request(self, actor: str) -> str:
        f = self.fault
        if f.index < 0:
            return f"{self.what} at {self.place} asks for {f.index} elements of scratch ({actor})"
        return f"{self.what} at {self.place} brings the scratch to {f.index} bytes of {f.limit} requested ({actor})"

    def barrier(self) -> str:
        f = self.fault
        waits = f"{self.what} at {self.place} is reached by thread {f.thread} of block {f.block}"
        if f.other_site == -1:
            return f"divergent barrier: {waits}, but thread {f.other_thread} has ended"
        return f"divergent barrier: {waits}, but thread {f.other_thread} waits at {self.elsewhere()}"

    def row(self) -> str:
        f = self.fault
        if f.other_thread == -1:
            return f"{self.what} at {self.place} needs rows of 1, 2, 4, 8, 16 or 32 lanes, and there are {f.limit}"
        waits = f"{self.what} at {self.place} is reached by thread {f.thread} of block {f.block}"
        partner = f"thread {f.other_thread} of the same row"
        if f.other_site == -1:
            return f"incomplete row: {waits}, but {partner} has ended"
        return f"incomplete row: {waits}, but {partner} waits at {self.elsewhere()}"

    def elsewhere(self) -> str:
        name, place = self.site(self.fault.other_site)
        return f"{name} at {place}"

    def race(self) -> str:
        """Return a clause on two accesses of an element; a write comes first."""
        f = self.fault
        places = [self.place, self.site(f.other_site)[1]]
        deeds = [DEEDS[min(d, 2)] for d in (f.limit % 4, f.limit // 4)]
        threads = [f.thread, f.other_thread]
        if deeds[0] == DEEDS[0] or (deeds[0] == DEEDS[2] and deeds[1] == DEEDS[1]):
            places, deeds, threads = places[::-1], deeds[::-1], threads[::-1]
        if deeds[0] == deeds[1] and places[0] == places[1]:
            accesses = f"is {deeds[0]} at {places[0]}"
        elif deeds[0] == deeds[1]:
            accesses = f"is {deeds[0]} at {places[0]} and at {places[1]}"
        else:
            accesses = f"is {deeds[0]} at {places[0]} and {deeds[1]} at {places[1]}"
        actors = f"by threads {threads[0]} and {threads[1]} of block {f.block}"
        return f"{self.what}[{f.index}] {accesses} {actors} without a barrier between"
