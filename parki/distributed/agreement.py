"""Errors that all ranks raise together when one rank fails, so that no rank waits for one that has gone."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import fields
from types import TracebackType
from typing import Any

import numpy as np

from parki.distributed.comm import Comm
from parki.engine import FunctionText

EVERYWHERE = "raised on all ranks."


class agreed:
    """Context of work of each rank by itself: an exception of any rank is raised on all ranks, after the work.

    All ranks enter and leave.  The body must not communicate: a rank that has failed would be waited for.  An
    interrupt passes at once: the launcher ends the other ranks.

    Parameters
    ----------
    comm : Comm
    doing : str
        The work, for messages: "checking points".
    same : dict, optional
        Facts by name that must be equal on all ranks, compared by their `repr`.

    Raises
    ------
    ValueError
        On all ranks, where facts differ, naming the first that does, and the rank.
    Exception
        On all ranks, that of the first rank that failed.
    """

    def __init__(self, comm: Comm, action: str, values: Mapping[str, Any] | None = None) -> None:
        self._comm, self._doing = comm, action
        self.same: Mapping[str, Any] = values or {}

    def __enter__(self) -> agreed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None and not isinstance(error, Exception):
            return False
        comm = self._comm
        mark = _digest(self.same)
        first, low, high = comm.allreduce([comm.size if error is None else comm.rank, mark, -mark], "min").tolist()
        if first == comm.size:
            if low != -high:
                difference = self._differ()
                difference.add_note(f"Found in {self._doing}; {EVERYWHERE}")
                raise difference
            return False
        message = comm.bcast(_sent(error) if comm.rank == first else None, int(first))
        failure = error if error is not None and comm.rank == first else pickle.loads(message)
        failure.add_note(f"Found by rank {int(first)} of {comm.size} in {self._doing}; {EVERYWHERE}")
        if failure is error:
            return False
        raise failure from error

    def _differ(self) -> ValueError:
        """Return the error of ranks that do not do the same."""
        texts = self._comm.allgather({name: repr(value) for name, value in self.same.items()})
        for name in dict.fromkeys(name for facts in texts for name in facts):
            expected = texts[0].get(name, "nothing")
            for rank, facts in enumerate(texts):
                fact = facts.get(name, "nothing")
                if fact != expected:
                    return ValueError(f"{name} is {fact} on rank {rank}; expected {expected}, as on rank 0.")
        return ValueError(f"ranks differ in {self._doing}: expected the same calls, in the same order, on all ranks.")


def shown(options: Any) -> dict[str, str]:
    """Return options, fields of a dataclass, that must be equal on all ranks."""
    own_names = ("comm", "execution_space", "threads", "verbose")
    values = {f.name: getattr(options, f.name) for f in fields(options) if f.name not in own_names}
    return {name: str(a.tolist() if isinstance(a, np.ndarray) else a) for name, a in values.items()}


def kernel_facts(kernel: Any) -> dict[str, Any]:
    """Return the name of a kernel, its parameters and its Python functions, which must be equal on all ranks.

    Functions are equal if their texts are.  A file may lie elsewhere on another machine: paths are not compared.
    """
    functions = {"function": kernel.pair} | {f"function of slot '{name}'": value for name, value in kernel.slots}
    texts = {name: str(value) for name, value in functions.items() if isinstance(value, FunctionText)}
    return {"kernel": str(kernel), **dict(zip(kernel.names, kernel.parameters, strict=True)), **texts}


def finder(error: BaseException) -> str | None:
    """Return the note of an error that `agreed` has raised on all ranks, which says who found it; None of others."""
    return next((note for note in getattr(error, "__notes__", ()) if note.endswith(EVERYWHERE)), None)


def _digest(values: Mapping[str, Any]) -> int:
    text = "\n".join(f"{name}={value!r}" for name, value in values.items())
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little")


def _sent(error: Exception | None) -> bytes:
    """Return an exception in bytes: itself, or one of a class of Python's own with its text."""
    try:
        message = pickle.dumps(error)
        pickle.loads(message)
    except Exception:
        base = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        name = "" if base is type(error) else f"{type(error).__name__}: "
        try:
            message = pickle.dumps(base(f"{name}{error}"))
            pickle.loads(message)
        except Exception:
            message = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return message


def totals(comm: Comm, *numbers: int) -> tuple[int, ...]:
    """Return the sums of whole numbers over all ranks."""
    return tuple(comm.allreduce(np.array(numbers, np.int64)).tolist())
