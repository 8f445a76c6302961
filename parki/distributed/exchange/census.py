"""Ranks that make and that use the values of nodes: found once, by the owners of nodes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from parki.distributed.agreement import agreed
from parki.distributed.comm import Comm
from parki.distributed.exchange.parcels import by_rank

OFFER, WISH = 0, 1


@dataclass(frozen=True, eq=False)
class Parts:
    """Nodes to whose values a rank adds a part, each once: arrays (n,) of whole numbers.

    Attributes
    ----------
    name : int64
        Name of the node, the same on all ranks.
    shelf, row : int
        Place of the rank's part.
    begin, end : int
        Ranks from `begin` to ``end - 1`` may have parts; `begin` has one, and owns the node.
    """

    name: np.ndarray
    shelf: np.ndarray
    row: np.ndarray
    begin: np.ndarray
    end: np.ndarray


@dataclass(frozen=True, eq=False)
class Wishes:
    """Nodes whose complete values a rank uses without making all parts of them: arrays (n,) of whole numbers.

    Attributes
    ----------
    name : int64
    shelf, row : int
        Place of the complete value: if the rank makes a part of the node, the place of that part.
    owner : int
        Rank of the owner.
    """

    name: np.ndarray
    shelf: np.ndarray
    row: np.ndarray
    owner: np.ndarray


class Census:
    """Ranks that make and that use the values of nodes; construction is collective.

    Parameters
    ----------
    comm : Comm
    parts : Parts
    wishes : Wishes
    shelves : int
        Number of shelves.
    phase : str
        Phase under which messages are counted.

    Attributes
    ----------
    parts, wishes : Parts, Wishes
        Parts and wishes of this rank, in the order of names.
    offered : array of int
        Entries of `parts` whose nodes another rank owns.
    maker, made : arrays of int
        Other ranks that have parts of nodes of this one, and the nodes as entries of `parts`; by rank, then name.
    user, used : arrays of int
        Ranks that use nodes of this one, itself among them, and the nodes as entries of `parts`; by rank, then name.
    wanted : array of bool
        Whether any rank uses the value, for each node that this rank owns.

    Raises
    ------
    ValueError
        On all ranks, for arrays of one rank that do not fit each other.
    RuntimeError
        On all ranks, for a node that is wanted of, or offered to, a rank that does not own it.
    """

    def __init__(self, comm: Comm, parts: Parts, wishes: Wishes, shelves: int, phase: str) -> None:
        self.comm, self.phase = comm, phase
        with agreed(comm, "naming values", {"shelves": shelves}):
            self.parts, self.wishes = _ordered("parts", parts), _ordered("wishes", wishes)
            _check(comm, self.parts, self.wishes, shelves)
        self.offered = np.flatnonzero(self.parts.begin != comm.rank)
        notices = [self._told(OFFER, self.parts, self.offered, self.parts.begin)]
        notices += [self._told(WISH, self.wishes, np.arange(len(self.wishes.name)), self.wishes.owner)]
        ranks, rows = (np.concatenate(arrays) for arrays in zip(*notices, strict=True))
        send = {rank: rows[index] for rank, index in by_rank(ranks).items()}
        own_rows = send.pop(comm.rank, rows[:0])
        messages = comm.exchange_unknown(send, rows[:0], phase) | {comm.rank: own_rows}
        asker = np.repeat(sorted(messages), [len(messages[rank]) for rank in sorted(messages)])
        requests = np.concatenate([messages[rank] for rank in sorted(messages)])
        with agreed(comm, "finding the owners of values"):
            entry = self._found(asker, requests)
        kinds = requests[:, 2]
        self.maker, self.made = asker[kinds == OFFER], entry[kinds == OFFER]
        self.user, self.used = asker[kinds == WISH], entry[kinds == WISH]
        self.wanted = np.zeros(len(self.parts.name), bool)
        self.wanted[self.used] = True

    @staticmethod
    def _told(code: int, nodes: Any, index: np.ndarray, owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranks to which nodes are named, and rows of name, shelf and kind."""
        kind = np.full(len(index), code, np.int64)
        return owner[index], np.stack([nodes.name[index], nodes.shelf[index], kind], axis=1)

    def _found(self, asker: np.ndarray, requests: np.ndarray) -> np.ndarray:
        """Return the entries of this rank's nodes that others have named."""
        rank, parts = self.comm.rank, self.parts
        entry = places(parts.name, requests[:, 0])
        faults = (
            np.flatnonzero((entry < 0) | (parts.begin[entry] != rank)) if len(parts.name) else np.arange(len(entry))
        )
        if len(faults):
            action = ("offered to", "wanted of")[requests[faults[0], 2]]
            raise RuntimeError(
                f"node {requests[faults[0], 0]} is {action} rank {rank} by rank {asker[faults[0]]}; expected its owner."
            )
        faults = np.flatnonzero(parts.shelf[entry] != requests[:, 1])
        if len(faults):
            name, shelf, _ = requests[faults[0]]
            text = f"shelf {shelf} of rank {asker[faults[0]]}"
            raise RuntimeError(
                f"node {name} is on {text}; expected {parts.shelf[entry[faults[0]]]}, as of its owner {rank}."
            )
        return entry


def places(names: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return the places of some names in an ascending list of names, -1 for names that are not there."""
    if not len(names):
        return np.full(len(queries), -1)
    index = np.minimum(np.searchsorted(names, queries), len(names) - 1)
    return np.where(names[index] == queries, index, -1)


def _ordered(name: str, nodes: Any) -> Any:
    """Return the arrays as int64 in the order of node names; raise if a name occurs twice."""
    arrays = {f.name: np.asarray(getattr(nodes, f.name)) for f in fields(nodes)}
    for key, a in arrays.items():
        if a.shape != arrays["name"].shape or a.ndim != 1 or a.dtype.kind not in "iu":
            expected = f"whole numbers of shape ({arrays['name'].size},)"
            raise ValueError(f"{name}.{key} has shape {a.shape} and dtype {a.dtype}; expected {expected}.")
    order = np.argsort(arrays["name"], kind="stable")
    arrays = {key: a[order].astype(np.int64) for key, a in arrays.items()}
    repeats = np.flatnonzero(np.diff(arrays["name"]) == 0)
    if len(repeats):
        raise ValueError(f"{name}.name has {arrays['name'][repeats[0]]} twice; expected each name once.")
    return replace(nodes, **arrays)


def _check(comm: Comm, parts: Parts, wishes: Wishes, shelves: int) -> None:
    """Raise an error for numbers that do not fit."""
    for name, nodes in (("parts", parts), ("wishes", wishes)):
        _bound(f"{name}.shelf", nodes.shelf, 0, shelves)
        _bound(f"{name}.row", nodes.row, 0, None)
    _bound("wishes.owner", wishes.owner, 0, comm.size)
    _bound("parts.begin", parts.begin, 0, comm.rank + 1)
    _bound("parts.end", parts.end, comm.rank + 1, comm.size + 1)
    index = places(parts.name, wishes.name)
    overlap = np.flatnonzero(index >= 0)
    index = index[overlap]
    equality = (parts.shelf[index] == wishes.shelf[overlap]) & (parts.row[index] == wishes.row[overlap])
    for fits, expected in (
        (equality, "the shelf and row of its part"),
        (parts.end[index] - parts.begin[index] > 1, "no wish for a node that is the rank's alone"),
    ):
        if not fits.all():
            name = wishes.name[overlap[np.argmin(fits)]]
            raise ValueError(f"node {name} is made and wanted by rank {comm.rank}; expected {expected}.")


def _bound(name: str, values: np.ndarray, low: int, high: int | None) -> None:
    """Raise an error for a number below the least, or not below the most."""
    faults = values[(values < low) | (False if high is None else values >= high)]
    if len(faults):
        expected = f"at least {low}" if high is None else f"{low} to {high - 1}"
        raise ValueError(f"{name} has {faults[0]}; expected {expected}.")
