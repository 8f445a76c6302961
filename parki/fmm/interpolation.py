"""The black-box method: Chebyshev interpolation on the boxes of an octree, for any smooth kernel.

Charges of a box stand at order³ Chebyshev points of its own, and so do potentials.  The parts of `proxy` and `clusters`
make charges from particles and boxes below, potentials from boxes above, and the sums of lists U, W and X.  Lists V are
products of matrices (`translations`).

Sources: W. Fong and E. Darve, J. Comput. Phys. 228 (2009) 8712; E. Agullo et al., "Task-based FMM for heterogeneous
architectures", Inria RR-8513 (2014).
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parki.arrays import Array
from parki.engine.spaces import Space
from parki.fmm import chebyshev_tables, groups
from parki.fmm.expansion import TOP, Expansion
from parki.fmm.translations import Translations
from parki.pairs import Pair
from parki.proxies import WARPS, ProxyKernels
from parki.trees.lists import csr, merge_ranges
from parki.trees.octlists import OctLists
from parki.trees.octree import Octree

Ints = NDArray[np.int32]


class Interpolation(Expansion):
    """Arrays and launches of a sum by Chebyshev interpolation, phase by phase.

    Parameters
    ----------
    tree : Octree
    lists : OctLists
    pair : Pair
        Linear in what sources carry; with a result of several components, all are interpolated.
    order : int
        Points per direction of a box, 2 to 24.
    space : Space
    far : dtype, optional
        Of translations, by default that of the points.
    eps : float, optional
        Singular values of translations below this share of the largest are dropped: by default 10^−order; 0 keeps all.
    symmetric : bool
        Use the pair's symmetry, if it has one.
    group : int
        Boxes of a group at most.
    """

    def __init__(
        self, tree: Octree, lists: OctLists, pair: Pair, order: int, space: Space, *, far: DTypeLike = None,
        eps: float | None = None, symmetric: bool = True, group: int = groups.SIZE,
    ) -> None:  # fmt: skip
        self.order, real = order, tree.sources.points.dtype
        self.units = ProxyKernels(pair, real, real, order)
        super().__init__(tree, lists, pair, space, self.units.ranges())
        xp, boxes = self.xp, tree.nodes
        nodes, weights = chebyshev_tables.points()
        self._tables = {"nodes": xp.asarray(nodes), "weights": xp.asarray(weights)}
        self._box = self._array(np.hstack([boxes.centre, np.repeat(boxes.half[:, None], 3, axis=1)]))
        self._place = xp.asarray(nodes, real)
        self.charge = self._empty((boxes.n, order**3 * pair.dens))
        self.phi = self._empty((pair.result, boxes.n * order**3))
        self._upward()
        self._downward(lists)
        self._particles_to_points(lists)
        self._points_to_particles(lists)
        self.translations = Translations(
            boxes, lists, pair, order, space, real=self.real, far=np.dtype(real if far is None else far),
            eps=10.0**-order if eps is None else eps, symmetric=symmetric, group=group,
        )  # fmt: skip

    @property
    def memory(self) -> int:
        """Bytes of all arrays, those of the tree apart."""
        return super().memory + self.translations.memory

    def begin(self, charges: Array) -> None:
        """Set the charges (dens, n_src), in the order of the tree, and clear the sums."""
        super().begin(charges)
        self.charge.fill(0)
        self.phi.fill(0)

    def across(self) -> None:
        """M2L: list V."""
        self.translations.run(self.charge, self.phi)

    # Up and down ------------------------------------------------------------------------------------------------------
    def _level(self, level: int) -> slice:
        return slice(int(self.tree.nodes.level_begin[level]), int(self.tree.nodes.level_begin[level + 1]))

    def _leaves(self, begin: Ints, end: Ints) -> Ints:
        """Leaves with expansions and with points begin … end − 1, as rows (node, begin, end)."""
        nodes = self.tree.nodes
        node = np.flatnonzero((nodes.n_children == 0) & (nodes.level >= TOP) & (end > begin))
        return np.column_stack([node, begin[node], end[node]])

    def _transfer(self, up: bool, to: int, of: int, items: NDArray[Any], values: Array, m3: int) -> None:
        """Prepare a transfer between the boxes of two levels; items are (box, first, end)."""
        here, there = self._level(to), self._level(of)
        first = (slice(here.start * m3, here.stop * m3), slice(there.start * m3, there.stop * m3))
        made, given = (values[here], values[there]) if up else (values[:, first[0]], values[:, first[1]])
        args = {"box": self._box[there], "to_box": self._box[here], "given": given, "made": made, **self._tables}
        items = items - np.array([here.start, there.start, there.start])
        args |= {"m": self.order, "n": self.order}
        self._prepare("upward" if up else "downward", self.units.transfer(up), items, **args)

    def _upward(self) -> None:
        """Prepare P2M and M2M."""
        nodes = self.tree.nodes
        leaves = self._leaves(nodes.sources.begin, nodes.sources.end)
        given = {"src": self.rows, "box": self._box, "charge": self.charge, **self._tables}
        self._prepare("upward", self.units.particles_to_charges(), leaves, "leaf", WARPS, **given)
        for level in range(len(nodes.level_begin) - 3, TOP - 1, -1):
            node = np.arange(*nodes.level_begin[level : level + 2])
            node = node[(nodes.n_children[node] > 0) & (nodes.sources.end[node] > nodes.sources.begin[node])]
            first = nodes.first_child[node]
            items = np.column_stack([node, first, first + nodes.n_children[node]])
            self._transfer(True, level, level + 1, items, self.charge, 1)

    def _downward(self, lists: OctLists) -> None:
        """Prepare L2L and L2P."""
        tree, nodes = self.tree, self.tree.nodes
        if not len(lists.v_t) + len(lists.x_t):
            return
        for level in range(TOP + 1, len(nodes.level_begin) - 1):
            node = np.arange(*nodes.level_begin[level : level + 2])
            node = node[nodes.targets.end[node] > nodes.targets.begin[node]]
            items = np.column_stack([node, nodes.parent[node], nodes.parent[node] + 1])
            self._transfer(False, level, level - 1, items, self.phi, self.order**3)
        leaves = self._leaves(nodes.targets.begin, nodes.targets.end)
        given = {"xt": tree.targets.points, "box": self._box, "phi": self.phi, "u": self.u, **self._tables}
        self._prepare("downward", self.units.potentials_to_particles(), leaves, "leaf", **given)

    # Lists ------------------------------------------------------------------------------------------------------------
    def _particles_to_points(self, lists: OctLists) -> None:
        """Prepare P2L, list X: source particles at the points of boxes."""
        if not len(lists.x_t):
            return
        sources, m3, s = self.tree.nodes.sources, self.order**3, lists.x_s
        t, begin, end = merge_ranges(lists.x_t, sources.begin[s], sources.end[s])
        node, first = np.unique(t, return_index=True)
        ends = np.append(first[1:], len(t))
        item = np.column_stack(
            [node, node.astype(np.int64) * m3, np.full((len(node), 2), [m3, self.order]), first, ends]
        )
        given = {"xt": self.tree.targets.points, "u": self.phi, "box": self._box, "place": self._place}
        given |= {"span": self._array(np.column_stack([begin, end])), "src": self.rows, "tiny": self.tiny}
        self._prepare("uneven", self.units.ranges(), item, **given)

    def _points_to_particles(self, lists: OctLists) -> None:
        """Prepare M2P, list W: points of boxes at the particles of leaves."""
        if not len(lists.w_t):
            return
        tree, nodes, xp = self.tree, self.tree.nodes, self.xp
        targets = nodes.targets
        starts, source = csr(lists.w_t, lists.w_s, nodes.n)
        node = np.flatnonzero(np.diff(starts))
        nothing = np.zeros(len(node), np.int32)
        item = np.column_stack(
            [node, targets.begin[node], targets.count[node], nothing, starts[node], starts[node + 1]]
        )
        leaf = np.flatnonzero(nodes.is_leaf)
        leaf = leaf[np.argsort(targets.begin[leaf], kind="stable")]
        centre = np.repeat(nodes.centre[leaf], targets.count[leaf], axis=0).T
        local = self._array((tree.targets.points - xp.asarray(centre)).astype(self.real))
        given = {"xt": local, "u": self.u, "box": self._box, "place": self._place, "other": self._array(source)}
        given |= {"source": self._box, "charge": self.charge}
        constant = xp.asarray([*self.pair.parameters, 0.0], self.real)
        self._prepare("uneven", self.units.grids(self.order), item, constant=constant, **given)
