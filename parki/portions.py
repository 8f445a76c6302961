"""Part of a file's particles that a rank of a sum reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from parki.arrays import Array

ALONG = ("src", "dens", "normals", "trg")  # arrays with particles along their last axis


@dataclass
class Portion:
    """Entries ``rank * n // size`` to ``(rank + 1) * n // size`` of n particles; for a process alone all n.

    Attributes
    ----------
    rank, size : int
    shapes : dict
        Shapes of whole arrays by name, as far as they were read.
    """

    rank: int = 0
    size: int = 1
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, comm: Any) -> Portion:
        """Return the part of a communicator's rank; None is a process alone."""
        return cls() if comm is None else cls(comm.rank, comm.size)

    def places(self, n: int) -> slice:
        """Return the slice of this rank among n entries."""
        return slice(self.rank * n // self.size, (self.rank + 1) * n // self.size)

    def columns(self, name: str, a: Any) -> Array:
        """Return this rank's entries along the last axis of an array or HDF5 dataset; all of other arrays.

        A part is a copy, so that the whole array can be freed.
        """
        self.shapes[name] = a.shape or ()
        if self.size == 1 or name not in ALONG or not a.shape:
            return np.asarray(a[()])
        return np.array(a[..., self.places(a.shape[-1])])

    def rows(self, table: Array) -> Array:
        """Return this rank's rows of a table, in memory."""
        self.shapes["table"] = table.shape
        return table if self.size == 1 else np.array(table[self.places(len(table))])

    def check(self, path: Path, always: bool = False) -> None:
        """Raise ValueError for arrays that do not fit each other.

        Parts of such arrays might fit.  A process alone checks only with `always`, because an Ewald sum tells more.
        """
        if (self.size == 1 and not always) or "src" not in self.shapes:
            return
        n = self.shapes["src"][-1] if self.shapes["src"] else 0
        for name, shape in self.shapes.items():
            if name in ("src", "trg") and (len(shape) != 2 or shape[0] != 3):
                raise ValueError(f"{path}: {name} has shape {shape}; expected (3, N).")
            if name in ("dens", "normals") and shape[-1:] != (n,):
                expected = f"{n} values along the last axis, one for each source"
                raise ValueError(f"{path}: {name} has shape {shape}; expected {expected}.")
