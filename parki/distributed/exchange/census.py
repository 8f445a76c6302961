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
        told = [self._told(OFFER, self.parts, self.offered, self.parts.begin)]
        told += [self._told(WISH, self.wishes, np.arange(len(self.wishes.name)), self.wishes.owner)]
        to, rows = (np.concatenate(arrays) for arrays in zip(*told, strict=True))
        send = {rank: rows[at] for rank, at in by_rank(to).items()}
        own = send.pop(comm.rank, rows[:0])
        come = comm.exchange_unknown(send, rows[:0], phase) | {comm.rank: own}
        asker = np.repeat(sorted(come), [len(come[rank]) for rank in sorted(come)])
        asked = np.concatenate([come[rank] for rank in sorted(come)])
        with agreed(comm, "finding the owners of values"):
            at = self._found(asker, asked)
        of = asked[:, 2]
        self.maker, self.made = asker[of == OFFER], at[of == OFFER]
        self.user, self.used = asker[of == WISH], at[of == WISH]
        self.wanted = np.zeros(len(self.parts.name), bool)
        self.wanted[self.used] = True

    @staticmethod
    def _told(of: int, nodes: Any, which: np.ndarray, owner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the ranks to which nodes are named, and rows of name, shelf and kind."""
        kind = np.full(len(which), of, np.int64)
        return owner[which], np.stack([nodes.name[which], nodes.shelf[which], kind], axis=1)

    def _found(self, asker: np.ndarray, asked: np.ndarray) -> np.ndarray:
        """Return the entries of this rank's nodes that others have named."""
        rank, parts = self.comm.rank, self.parts
        at = places(parts.name, asked[:, 0])
        bad = np.flatnonzero((at < 0) | (parts.begin[at] != rank)) if len(parts.name) else np.arange(len(at))
        if len(bad):
            doing = ("offered to", "wanted of")[asked[bad[0], 2]]
            raise RuntimeError(
                f"node {asked[bad[0], 0]} is {doing} rank {rank} by rank {asker[bad[0]]}; expected its owner."
            )
        bad = np.flatnonzero(parts.shelf[at] != asked[:, 1])
        if len(bad):
            name, theirs, _ = asked[bad[0]]
            found = f"shelf {theirs} of rank {asker[bad[0]]}"
            raise RuntimeError(
                f"node {name} is on {found}; expected {parts.shelf[at[bad[0]]]}, as of its owner {rank}."
            )
        return at


def places(names: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return the places of some names in an ascending list of names, -1 for names that are not there."""
    if not len(names):
        return np.full(len(some), -1)
    at = np.minimum(np.searchsorted(names, some), len(names) - 1)
    return np.where(names[at] == some, at, -1)


def _ordered(name: str, given: Any) -> Any:
    """Return the arrays as int64 in the order of node names; raise if a name occurs twice."""
    arrays = {f.name: np.asarray(getattr(given, f.name)) for f in fields(given)}
    for key, a in arrays.items():
        if a.shape != arrays["name"].shape or a.ndim != 1 or a.dtype.kind not in "iu":
            expected = f"whole numbers of shape ({arrays['name'].size},)"
            raise ValueError(f"{name}.{key} has shape {a.shape} and dtype {a.dtype}; expected {expected}.")
    order = np.argsort(arrays["name"], kind="stable")
    arrays = {key: a[order].astype(np.int64) for key, a in arrays.items()}
    twice = np.flatnonzero(np.diff(arrays["name"]) == 0)
    if len(twice):
        raise ValueError(f"{name}.name has {arrays['name'][twice[0]]} twice; expected each name once.")
    return replace(given, **arrays)


def _check(comm: Comm, parts: Parts, wishes: Wishes, shelves: int) -> None:
    """Raise an error for numbers that do not fit."""
    for name, given in (("parts", parts), ("wishes", wishes)):
        _bound(f"{name}.shelf", given.shelf, 0, shelves)
        _bound(f"{name}.row", given.row, 0, None)
    _bound("wishes.owner", wishes.owner, 0, comm.size)
    _bound("parts.begin", parts.begin, 0, comm.rank + 1)
    _bound("parts.end", parts.end, comm.rank + 1, comm.size + 1)
    at = places(parts.name, wishes.name)
    both = np.flatnonzero(at >= 0)
    at = at[both]
    same = (parts.shelf[at] == wishes.shelf[both]) & (parts.row[at] == wishes.row[both])
    for fits, expected in (
        (same, "the shelf and row of its part"),
        (parts.end[at] - parts.begin[at] > 1, "no wish for a node that is the rank's alone"),
    ):
        if not fits.all():
            name = wishes.name[both[np.argmin(fits)]]
            raise ValueError(f"node {name} is made and wanted by rank {comm.rank}; expected {expected}.")


def _bound(name: str, values: np.ndarray, least: int, most: int | None) -> None:
    """Raise an error for a number below the least, or not below the most."""
    wrong = values[(values < least) | (False if most is None else values >= most)]
    if len(wrong):
        expected = f"at least {least}" if most is None else f"{least} to {most - 1}"
        raise ValueError(f"{name} has {wrong[0]}; expected {expected}.")
