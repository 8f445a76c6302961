"""Tables of some nodes of one tree, as rows that travel from rank to rank.

Places are those of all points in the depth-first order of the tree.  A node is named by its level and first place, as
nodes of one level have no places in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parki.trees.nodes import Ints

#: Fields: level, whether the node has no children, its first place and its number of places.
COMMON = [("level", np.int32), ("leaf", np.bool_), ("begin", np.int64), ("count", np.int64)]
LEVEL_SHIFT = 32  # low bits of a name, for the first place; the bits above hold the level
MOST_PLACES = 2**31 - 1  # places of a tree, at most: lists hold them as int32

Table = NDArray[Any]  # structured, with the fields of `COMMON` and those of a kind of tree
Places = NDArray[np.int64]


def names(table: Table) -> Places:
    """Return the names of nodes: numbers that grow with the level and then with the place."""
    return named(table["level"], table["begin"])


def named(level: NDArray[np.integer], begin: NDArray[np.integer]) -> Places:
    """Return the names of nodes from their levels and first places."""
    return (np.asarray(level, np.int64) << LEVEL_SHIFT) + begin


def places(name: Places) -> Places:
    """Return the first places of nodes from their names."""
    return name & ((1 << LEVEL_SHIFT) - 1)


def merged(tables: Sequence[Table]) -> Table:
    """Return the nodes of several tables, each once, sorted by level and place."""
    table = np.concatenate(tables)
    _, first = np.unique(names(table), return_index=True)
    return table[first]


def find(table: Table, name: Places) -> NDArray[np.intp]:
    """Return the rows of nodes from their names.

    Raises
    ------
    LookupError
        If a node is not in the table.
    """
    known_names = names(table)
    row = np.searchsorted(known_names, name)
    if len(name) and not (known_names[np.minimum(row, len(known_names) - 1)] == name).all():
        raise LookupError("a node was asked for that is not in the table.")
    return row


class Topology(NamedTuple):
    """Parents, and the children that the table has, by row: see `parki.trees.nodes.Nodes`."""

    level: Ints
    parent: Ints
    first_child: Ints
    n_children: Ints
    level_begin: Ints


def topology(table: Table) -> Topology:
    """Return parents and children for a table that has the parents of all its nodes."""
    level = table["level"]
    row = np.searchsorted(names(table), named(level - 1, table["begin"]), side="right") - 1
    parent = np.where(level == 0, -1, row).astype(np.int32)
    n_children = np.bincount(parent[parent >= 0], minlength=len(table)).astype(np.int32)
    first_child = np.full(len(table), -1, np.int32)
    inner = np.flatnonzero(n_children)
    first_child[inner] = 1 + np.cumsum(n_children[inner]) - n_children[inner]
    depth = int(level[-1])
    begin = np.searchsorted(level, np.arange(depth + 2)).astype(np.int32)
    return Topology(level.astype(np.int32), parent, first_child, n_children, begin)


def contributors(table: Table, cuts: Places) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the ranks lo … hi − 1 that hold each node's places: the first is its owner.

    Ranks without places of their own are among them where they lie between others.
    """
    return ranks(table["begin"], table["count"], cuts)


def ranks(begin: Places, count: Places, cuts: Places) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the ranks lo … hi − 1 that hold runs of places, as `contributors` does."""
    lo = np.searchsorted(cuts[1:-1], begin, side="right")
    return lo, np.searchsorted(cuts[1:-1], begin + count - 1, side="right") + 1


def within(table: Table, first: int, end: int) -> NDArray[np.bool_]:
    """Return whether each node has places among first … end − 1."""
    return (table["begin"] < end) & (table["begin"] + table["count"] > first)
