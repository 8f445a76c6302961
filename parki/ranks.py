"""Sums over ranks, seen from calls of one process: `parki.distributed` is imported only if there is a communicator."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from parki import arrays, error
from parki.arrays import AnyArray
from parki.checks import check_choice
from parki.engine import Space, devices, spaces

if TYPE_CHECKING:
    from parki.method import Method, Structure

T = TypeVar("T")

ALONE = contextlib.nullcontext()


def together(comm: Any, doing: str, **facts: Any) -> contextlib.AbstractContextManager[Any]:
    """Return a context for work that each rank does by itself, whose errors are raised on all ranks.

    Parameters
    ----------
    comm : communicator or None
        None for a process alone.
    doing : str
        The work, for messages.
    **same
        Facts that must be equal on all ranks.
    """
    if not several(comm):
        return ALONE
    from parki.distributed.agreement import agreed

    return agreed(of(comm), doing, facts)


def of(comm: Any) -> Any:
    """Return a caller's communicator with the calls of `parki.distributed.comm.Comm`."""
    from parki.distributed import communicators

    return communicators.of(comm)


def several(comm: Any) -> bool:
    """Tell whether a caller's communicator, None for a process alone, has several ranks."""
    return comm is not None and of(comm).size > 1


def sample(comm: Any, n_targets: int, n: int, seed: int) -> NDArray[np.intp]:
    """Sample at most `n` targets of all ranks, the same for any division; return the places of this rank's samples.

    Raises
    ------
    ValueError
        As `parki.error.sample`.
    """
    if comm is None:
        return error.sample(n_targets, n, seed)
    counts = comm.allgather(n_targets)
    first = sum(counts[: comm.rank])
    indices = error.sample(sum(counts), n, seed)
    return indices[(indices >= first) & (indices < first + n_targets)] - first


def gathered(comm: Any, *parts: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return arrays (…, n) with the entries of all ranks along the last axis."""
    if comm is None:
        return parts
    return tuple(np.concatenate(shares, axis=-1) for shares in zip(*comm.allgather(parts), strict=True))


class OverRanks:
    """Part of `parki.plan.Plan` for sums over ranks; a process alone is one rank of one."""

    comm: Any
    structure: Structure | None
    method: Method
    xp: Any

    def theirs(self, a: AnyArray, of: Literal["targets", "sources"] = "sources") -> AnyArray:
        """Return entries of arrays along this rank's points on the ranks where the plan has these points.

        A program whose points stay where the plan has put them sends to neighbours only when it moves them.

        Parameters
        ----------
        a : array (…, N)
            Entries along the caller's points of this rank.
        of : {"sources", "targets"}, default "sources"
            The points that `a` goes along.

        Returns
        -------
        array (…, n)
            Entries along the plan's points of this rank; `a` itself in a process alone.

        Raises
        ------
        ValueError
            For an array with another number of entries.
        """
        return self._carried(a, of, "theirs")

    def ours(self, a: AnyArray, of: Literal["targets", "sources"] = "sources") -> AnyArray:
        """Return entries that `theirs` has brought to other ranks.

        Parameters
        ----------
        a : array (…, n)
            Entries along the plan's points of this rank.
        of : {"sources", "targets"}, default "sources"
            The points that `a` goes along.

        Returns
        -------
        array (…, N)
            Entries along the caller's points of this rank; `a` itself in a process alone.

        Raises
        ------
        ValueError
            For an array with another number of entries.
        """
        return self._carried(a, of, "ours")

    def _carried(self, a: AnyArray, side: str, way: str) -> AnyArray:
        with together(self.comm, f"{way} of a plan", call=way) as check:
            check_choice("of", side, ("sources", "targets"))
            if self.comm is None or self.structure is None:
                return a
            delivery, array = getattr(self.structure, f"to_{side}"), self.xp.asarray(a)
            n = delivery.sent if way == "theirs" else delivery.received
            if array.shape[-1:] != (n,):
                raise ValueError(f"a has shape {array.shape}; expected (..., {n}), entries along this rank's {side}.")
            check.same = {"call": way, "of": side, "entries": array.shape[:-1], "dtype": array.dtype.name}
        return delivery.there(array) if way == "theirs" else delivery.back(array)

    def inner(self, a: AnyArray, b: AnyArray) -> float:
        """Return the inner product Σ a b of vectors of which every rank has a part, as solvers need it.

        Parameters
        ----------
        a, b : array
            The parts of this rank, of one size.

        Returns
        -------
        float
            The product over all ranks, the same on each.
        """
        with together(self.comm, "an inner product", call="inner"):
            product = float(np.vdot(arrays.to_host(arrays.taken("a", a)), arrays.to_host(arrays.taken("b", b))))
        return product if self.comm is None else float(self.comm.allreduce(product))


def of_first(comm: Any, doing: str, work: Callable[[], T]) -> T:
    """Return on all ranks the result of work that the first one alone does; its errors are raised on all."""
    if comm is None:
        return work()
    result = None
    with together(comm, doing):
        if comm.rank == 0:
            result = work()
    return comm.bcast(result)


def total(comm: Any, n: int) -> int:
    """Return the sum of a whole number over all ranks."""
    return n if comm is None else int(comm.allreduce(np.array(n, np.int64)))


def take_gpu(comm: Any, space: Space, **values: Any) -> None:
    """Give each rank of a machine a GPU of its own, unless its arrays, or its caller, have chosen one.

    Parameters
    ----------
    comm : communicator
    space : Space
    **given
        The call's arrays by name, as they came in.
    """
    if space.own_memory and several(comm) and arrays.on_gpu(**values) is None:
        devices.share(space.name, of(comm).place)


def shared_threads(comm: Any, space: Space) -> Space:
    """Return a space of a host with this rank's share of the threads, unless their number was given."""
    explicit = space.threads is not None or "OMP_NUM_THREADS" in os.environ
    if space.name != "OpenMP" or explicit or comm.peers < 2:
        return space
    return replace(space, threads=max(1, spaces.threads() // comm.peers))


def check(method: Method) -> None:
    """Raise NotImplementedError for a communicator of several ranks, and a method that is of one process."""
    if getattr(method, "comm", None) is None and several(method.options.comm):
        raise NotImplementedError(
            f"comm was given to a call of {method.name}, which does not sum over ranks; expected a method that "
            "does, or no comm."
        )
