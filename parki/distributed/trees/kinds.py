"""Trees of clusters and octrees as tables: rows of levels, and nodes from rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from parki.arrays import Array
from parki.distributed.comm import Comm
from parki.distributed.trees import growth, tables
from parki.distributed.trees.growth import Grown
from parki.distributed.trees.tables import COMMON, Places, Table
from parki.engine import Space
from parki.trees import octree
from parki.trees.cluster import ASPECT, ClusterNodes, MinimalBoxes
from parki.trees.levels import Level
from parki.trees.octree import Cubes

CLUSTERS = np.dtype([*COMMON, ("low", np.float64, 3), ("high", np.float64, 3)])
#: Fields of boxes: also the Morton key, and first places and numbers of sources and of targets.
BOXES = np.dtype([*COMMON, ("key", np.int64), ("first", np.int64, 2), ("number", np.int64, 2)])
Shares = NDArray[np.float64]


def _rows(kind: np.dtype, level: Level, begin: Places, leaf: NDArray[np.bool_]) -> Table:
    table = np.zeros(len(begin), kind)
    table["level"], table["leaf"], table["begin"], table["count"] = level.depth, leaf, begin, sum(level.count)
    return table


def cluster_rows(level: Level, firsts: list[Places], begin: Places, leaf: NDArray[np.bool_]) -> Table:
    """Return the table of a level of clusters: see `growth.Rows`."""
    table = _rows(CLUSTERS, level, begin, leaf)
    table["low"], table["high"] = level.box
    return table


def box_rows(level: Level, firsts: list[Places], begin: Places, leaf: NDArray[np.bool_]) -> Table:
    """Return the table of a level of boxes."""
    table = _rows(BOXES, level, begin, leaf)
    table["key"] = level.box[1]
    for k in range(2):  # one set is both sources and targets
        table["first"][:, k], table["number"][:, k] = firsts[-k], level.count[-k]
    return table


def clusters(comm: Comm, x: Array, leaf_size: int, space: Space, shares: Shares | None = None) -> Grown:
    """Grow the tree of clusters of all ranks' points (3, n), as `parki.trees.cluster.build` does; collective."""
    return growth.grow(comm, [x], lambda sets: MinimalBoxes(leaf_size, ASPECT, x.dtype), cluster_rows, space, shares)


def boxes(
    comm: Comm, sets: Sequence[Array], leaf_size: int, space: Space, *, fill: float | None, deepest: int,
    is_rounded: bool, shares: Shares | None = None,
) -> tuple[Grown, tuple[NDArray[np.float64], float]]:  # fmt: skip
    """Grow the octree of all ranks' sources, and of separate targets; return it and its root; collective."""
    roots = []

    def rule(passes: list[growth.SummedPasses]) -> Cubes:
        roots.append(octree.root_cube(passes, fill, is_rounded))
        return Cubes(*roots[0], leaf_size, min(deepest, octree.MAX_LEVEL), sets[0].dtype)

    grown_tree = growth.grow(comm, sets, rule, box_rows, space, shares)
    return grown_tree, roots[0]


def cluster_nodes(table: Table, own_range: tuple[int, int]) -> ClusterNodes:
    """Return nodes with places among all ranks' points; their leaves are those with places of `own_range`."""
    leaves = np.flatnonzero(table["leaf"] & tables.within(table, *own_range))
    leaves = leaves[np.argsort(table["begin"][leaves])].astype(np.int32)
    begin, end = table["begin"].astype(np.int32), (table["begin"] + table["count"]).astype(np.int32)
    boxes = (np.ascontiguousarray(table[name]) for name in ("low", "high"))
    return ClusterNodes(*tables.topology(table), begin, end, *boxes, leaves)
