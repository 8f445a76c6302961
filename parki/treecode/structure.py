"""Trees and lists of a treecode sum, and the constants that its steps take from them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from parki.arrays import Array, module_of
from parki.engine.steps import Call, Handle, Step, constant
from parki.proxies import ProxyKernels, tables
from parki.treecode.interactions import Interactions
from parki.trees.cluster import ClusterTree

Nodes = NDArray[np.integer]


class Side:
    """Constants of one tree: points and their order, boxes, and tables of nodes.

    Attributes
    ----------
    tree : ClusterTree
    points, order, box : Handle
        Points (3, n) in the order of the tree, that order (n,), and boxes (M, 6): centre, half sides.
    """

    def __init__(self, tree: ClusterTree, name: str) -> None:
        self.tree, self.name = tree, name
        self.points = constant(name, tree.sorted.points)
        self.order = constant(f"order of {name}", tree.sorted.order)
        self.box = constant(f"boxes of {name}", np.hstack([tree.nodes.centre, tree.nodes.half]))

    @property
    def n(self) -> int:
        """Return the number of points."""
        return self.tree.sorted.n

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return self.tree.nodes.n

    @property
    def levels(self) -> int:
        """Return the number of levels."""
        return self.tree.nodes.depth + 1

    def level(self, level: int) -> slice:
        """Return the nodes of a level."""
        begin = self.tree.nodes.level_begin
        return slice(int(begin[level]), int(begin[level + 1]))

    def boxes(self, nodes: Nodes) -> Handle:
        """Return the boxes of some nodes."""
        return constant(f"boxes of {self.name} with fewer points", self.box.values[nodes])

    def leaves(self, leaves: Nodes) -> Handle:
        """Return rows (node, begin, end) of leaves."""
        rows = np.column_stack([leaves, self.tree.nodes.begin[leaves], self.tree.nodes.end[leaves]])
        return indices(f"leaves of {self.name}", rows)


class Incoming(Protocol):
    """Messages that bring the values of sources from elsewhere."""

    def steps(self, shelves: list[Handle], near: Step | None) -> list[Step | Call]:
        """Return the steps of an exchange of rows of arrays, and of the step `near` that needs none of them."""


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """Sources that are elsewhere, in a sum with parts on other ranks.

    Attributes
    ----------
    lists : Interactions
        Lists with these sources; lists with sources that are here are the structure's.
    lumps : int
        Number of crowds that are here, among those of all lists: they come first.
    points : array (3, n)
        Particles from elsewhere, in the order of places.
    here : slice
        Places of the particles that are here, among all.
    makes : array of bool
        Whether particles here add to the charges of each source node.
    served : dict
        Nodes, by points per direction, whose charges other ranks use: in the order of `shelves`.
    messages : Incoming
    """

    lists: Interactions
    lumps: int
    points: Array
    here: slice
    makes: NDArray[np.bool_]
    served: dict[int, NDArray[np.int32]]
    messages: Incoming


@dataclass(frozen=True, eq=False)
class TreecodeStructure:
    """Trees, lists and kernels of a sum.

    Attributes
    ----------
    kernels : ProxyKernels
    targets, sources : ClusterTree
        Trees, which may be the same.
    lists : Interactions
    tiny : float
        Squared distance up to which points coincide, relative to the squared distance from the origin.
    same : bool
        Whether the targets are the sources.
    elsewhere : Elsewhere or None
        None if all sources are here.
    """

    kernels: ProxyKernels
    targets: ClusterTree
    sources: ClusterTree
    lists: Interactions
    tiny: float
    same: bool = False
    elsewhere: Elsewhere | None = None

    @property
    def every(self) -> list[Interactions]:
        """Return the lists of sources that are here, and of others."""
        return [self.lists] if self.elsewhere is None else [self.lists, self.elsewhere.lists]

    @property
    def particles(self) -> int:
        """Return the number of source particles, those from elsewhere among them."""
        return self.source.n + (0 if self.elsewhere is None else self.elsewhere.points.shape[1])

    @cached_property
    def makes(self) -> NDArray[np.bool_]:
        """Return whether particles here add to the charges of each source node."""
        return np.ones(self.sources.nodes.n, bool) if self.elsewhere is None else self.elsewhere.makes

    @property
    def arrays(self) -> list[Array]:
        """Return every array of the sorted points."""
        return [a for tree in (self.targets, self.sources) for a in (tree.sorted.points, tree.sorted.order)]

    def originals(self) -> tuple[Array, Array]:
        """Return targets and sources in the caller's order, one array if they are the same."""
        sources = self.sources.sorted.originals()
        return (sources if self.same else self.targets.sorted.originals()), sources

    @cached_property
    def up(self) -> dict[int, NDArray[np.int32]]:
        """Return the source nodes that have proxy charges, by the number of points per direction."""
        remote_nodes = {} if self.elsewhere is None else self.elsewhere.served
        own_nodes = [
            {m: entries.sources for m, entries in grids.items()}
            for lists in self.every
            for grids in (lists.pc, lists.cc)
        ]
        node_sets = [*own_nodes, remote_nodes]
        return {
            m: np.unique(np.concatenate([nodes[m] for nodes in node_sets if m in nodes]))
            for m in sorted(set().union(*node_sets))
        }

    @cached_property
    def down(self) -> dict[int, NDArray[np.int32]]:
        """Return the target nodes that have proxy potentials, by the number of points per direction."""
        items = np.concatenate([entries.items for lists in self.every for entries in (lists.cp, *lists.cc.values())])
        return {int(m): np.unique(items[items[:, 3] == m, 0]) for m in np.unique(items[:, 3])}

    @cached_property
    def source(self) -> Side:
        """Return the constants of the sources' tree."""
        return Side(self.sources, "sources")

    @cached_property
    def target(self) -> Side:
        """Return the constants of the targets' tree."""
        return self.source if self.targets is self.sources else Side(self.targets, "targets")

    @cached_property
    def from_centres(self) -> Handle:
        """Return targets relative to the centres of their leaves, in the far precision."""
        nodes, points = self.targets.nodes, self.targets.sorted.points
        xp = module_of(points)
        count, local = nodes.count[nodes.leaves], xp.empty(points.shape, self.kernels.far)
        for d, centre in enumerate(nodes.centre[nodes.leaves].T):  # one coordinate at a time: less memory
            local[d] = points[d] - xp.asarray(np.repeat(centre, count))
        return constant("targets from centres", local)

    @cached_property
    def tables(self) -> dict[str, Handle]:
        """Return places of proxy points in one direction, and weights of their polynomials, by number of points."""
        return {name: constant(name, a) for name, a in zip(("nodes", "weights"), tables(), strict=True)}

    @cached_property
    def places(self) -> dict[np.dtype[Any], Handle]:
        """Return places of proxy points in one direction, in the precision of each sum."""
        types = {self.kernels.real, self.kernels.far}
        return {dtype: constant(f"nodes in {dtype}", tables()[0].astype(dtype)) for dtype in types}


def indices(name: str, values: NDArray[Any]) -> Handle:
    """Return a contiguous constant of int32."""
    return constant(name, np.ascontiguousarray(values, np.int32))
