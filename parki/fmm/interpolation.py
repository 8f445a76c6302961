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

from parki import direct, engine
from parki.arrays import Array
from parki.engine import Prepared, TeamPolicy, spaces
from parki.engine.spaces import Space
from parki.engine.workunit import Workunit
from parki.fmm import chebyshev_tables, groups
from parki.fmm.translations import Translations
from parki.pairs import Pair
from parki.treecode.stages import THREADS, WARPS, Units
from parki.trees.lists import csr, merge_ranges
from parki.trees.octlists import OctLists
from parki.trees.octree import Octree

TOP = 2  # level of the largest boxes that have expansions
Ints = NDArray[np.int32]


class Expansion:
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
    real : dtype, optional
        Of points and sums, by default that of the points.
    far : dtype, optional
        Of translations, by default `real`.
    eps : float, optional
        Singular values of translations below this share of the largest are dropped: by default 10^−order; 0 keeps all.
    symmetric : bool
        Use the pair's symmetry, if it has one.
    group : int
        Boxes of a group at most.

    Attributes
    ----------
    u : array (result, n_trg)
        The sum at the targets in the order of the tree.
    """

    def __init__(
        self, tree: Octree, lists: OctLists, pair: Pair, order: int, space: Space, *, real: DTypeLike = None,
        far: DTypeLike = None, eps: float | None = None, symmetric: bool = True, group: int = groups.SIZE,
    ) -> None:  # fmt: skip
        self.tree, self.pair, self.order, self.space = tree, pair, order, space
        self.real = np.dtype(tree.sources.points.dtype if real is None else real)
        self.units = Units(pair, self.real, self.real, order)
        self.xp = xp = spaces.array_module(space)
        self._held: list[Array] = []
        nodes, weights = chebyshev_tables.points()
        self._tables = {"nodes": xp.asarray(nodes), "weights": xp.asarray(weights)}
        self._box = self._array(np.hstack([tree.centre, np.repeat(tree.half[:, None], 3, axis=1)]))
        n, m3 = len(tree.level), order**3
        self.rows = self._empty((tree.sources.points.shape[1], 3 + pair.strengths))
        self.rows[:, :3] = tree.sources.points.T
        for k, value in enumerate(pair.parameters):
            self.rows[:, 3 + pair.dens + k] = value
        self.charge = self._empty((n, m3 * pair.dens))
        self.phi = self._empty((pair.result, n * m3))
        self.u = self._empty((pair.result, tree.targets.points.shape[1]))
        self._up, self._down = self._upward(), self._downward(lists)
        self.translations = Translations(
            tree, lists, pair, order, space, real=self.real, far=np.dtype(self.real if far is None else far),
            eps=10.0**-order if eps is None else eps, symmetric=symmetric, group=group,
        )  # fmt: skip
        tiny = direct.coincident(tree.targets.points, tree.sources.points) if len(lists.u_t) + len(lists.x_t) else 0.0
        place = xp.asarray(nodes, self.real)
        self._x = self._ranges(lists.x_t, lists.x_s, True, place, tiny)
        self._u = self._ranges(lists.u_t, lists.u_s, False, place, tiny)
        self._w = self._grids(lists.w_t, lists.w_s, place)

    @property
    def memory(self) -> int:
        """Bytes of all arrays, those of the tree apart."""
        return sum(a.nbytes for a in self._held) + self.translations.memory

    def run(self, charges: Array) -> Array:
        """The whole sum at the targets, from charges (dens, n_src), both in the order of the tree."""
        self.begin(charges)
        for phase in (self.upward, self.across, self.uneven, self.downward, self.near):
            phase()
        return self.u

    def begin(self, charges: Array) -> None:
        """Set the charges (dens, n_src), in the order of the tree, and clear the sums."""
        self.rows[:, 3 : 3 + self.pair.dens] = charges.reshape(self.pair.dens, -1).T
        for a in (self.charge, self.phi, self.u):
            a.fill(0)

    def upward(self) -> None:
        """P2M and M2M: charges of all boxes."""
        _launch(self._up)

    def across(self) -> None:
        """M2L: list V."""
        self.translations.run(self.charge, self.phi)

    def uneven(self) -> None:
        """P2L and M2P: lists X and W."""
        _launch(self._x)
        _launch(self._w)

    def downward(self) -> None:
        """L2L and L2P: potentials of boxes at the targets."""
        _launch(self._down)

    def near(self) -> None:
        """P2P: list U."""
        _launch(self._u)

    # Arrays -----------------------------------------------------------------------------------------------------------
    def _array(self, a: NDArray[Any]) -> Array:
        self._held.append(self.xp.ascontiguousarray(self.xp.asarray(a)))
        return self._held[-1]

    def _empty(self, shape: tuple[int, ...]) -> Array:
        self._held.append(self.xp.zeros(shape, self.real))
        return self._held[-1]

    def _team(self, league: int, shape: tuple[int, int] = THREADS) -> TeamPolicy:
        return TeamPolicy(self.space, league, *(() if self.space.kind == "host" else shape))

    def _prepare(
        self, unit: Workunit, item: NDArray[Any], name: str, shape: tuple[int, int] = THREADS, **given: Any
    ) -> list[Prepared]:
        """A launch of a team for each item, if there are any."""
        if not len(item):
            return []
        given[name] = self._array(item.astype(np.int32))
        return [engine.prepare(self._team(len(item), shape), unit, **given)]

    # Up and down ------------------------------------------------------------------------------------------------------
    def _level(self, level: int) -> slice:
        return slice(int(self.tree.level_begin[level]), int(self.tree.level_begin[level + 1]))

    def _leaves(self, begin: Ints, end: Ints) -> Ints:
        """Leaves with expansions and with points begin … end − 1, as rows (node, begin, end)."""
        tree = self.tree
        node = np.flatnonzero((tree.n_children == 0) & (tree.level >= TOP) & (end > begin))
        return np.column_stack([node, begin[node], end[node]])

    def _transfer(self, up: bool, to: int, of: int, items: NDArray[Any], values: Array, m3: int) -> list[Prepared]:
        """Between the boxes of two levels; items are (box, first, end)."""
        here, there = self._level(to), self._level(of)
        first = (slice(here.start * m3, here.stop * m3), slice(there.start * m3, there.stop * m3))
        made, given = (values[here], values[there]) if up else (values[:, first[0]], values[:, first[1]])
        args = {"box": self._box[there], "to_box": self._box[here], "given": given, "made": made, **self._tables}
        items = items - np.array([here.start, there.start, there.start])
        return self._prepare(self.units.transfer(up), items, "item", m=self.order, n=self.order, **args)

    def _upward(self) -> list[Prepared]:
        tree = self.tree
        leaves = self._leaves(tree.begin_src, tree.end_src)
        given = {"src": self.rows, "box": self._box, "charge": self.charge, **self._tables}
        found = self._prepare(self.units.particles_to_charges(), leaves, "leaf", WARPS, **given)
        for level in range(len(tree.level_begin) - 3, TOP - 1, -1):
            node = np.arange(*tree.level_begin[level : level + 2])
            node = node[(tree.n_children[node] > 0) & (tree.end_src[node] > tree.begin_src[node])]
            first = tree.first_child[node]
            items = np.column_stack([node, first, first + tree.n_children[node]])
            found += self._transfer(True, level, level + 1, items, self.charge, 1)
        return found

    def _downward(self, lists: OctLists) -> list[Prepared]:
        tree = self.tree
        if not len(lists.v_t) + len(lists.x_t):
            return []
        found = []
        for level in range(TOP + 1, len(tree.level_begin) - 1):
            node = np.arange(*tree.level_begin[level : level + 2])
            node = node[tree.end_trg[node] > tree.begin_trg[node]]
            items = np.column_stack([node, tree.parent[node], tree.parent[node] + 1])
            found += self._transfer(False, level, level - 1, items, self.phi, self.order**3)
        leaves = self._leaves(tree.begin_trg, tree.end_trg)
        given = {"xt": tree.targets.points, "box": self._box, "phi": self.phi, "u": self.u, **self._tables}
        return found + self._prepare(self.units.potentials_to_particles(), leaves, "leaf", **given)

    # Lists ------------------------------------------------------------------------------------------------------------
    def _items(self, t: Ints, starts: Ints, points: bool) -> Ints:
        """Items (node, first target, count, m, begin, end) of boxes t, all that have a list."""
        tree, m3 = self.tree, self.order**3
        first = t * m3 if points else tree.begin_trg[t]
        count = np.full(len(t), m3) if points else tree.end_trg[t] - tree.begin_trg[t]
        m = np.full(len(t), self.order if points else 0)
        return np.column_stack([t, first, count, m, starts[:-1], starts[1:]])

    def _ranges(self, t: Ints, s: Ints, points: bool, place: Array, tiny: float) -> list[Prepared]:
        """Source particles of boxes s at the points, or at the particles, of boxes t."""
        if not len(t):
            return []
        tree = self.tree
        t, begin, end = merge_ranges(t, tree.begin_src[s], tree.end_src[s])
        box, starts = np.unique(t, return_index=True)
        item = self._items(box, np.append(starts, len(t)), points)
        given = {"xt": tree.targets.points, "u": self.phi if points else self.u, "box": self._box, "place": place}
        given |= {"span": self._array(np.column_stack([begin, end])), "src": self.rows, "tiny": tiny}
        return self._prepare(self.units.ranges(), item, "item", **given)

    def _grids(self, t: Ints, s: Ints, place: Array) -> list[Prepared]:
        """Points of boxes s at the particles of leaves t."""
        if not len(t):
            return []
        tree, xp = self.tree, self.xp
        starts, s = csr(t, s, len(tree.level))
        box = np.flatnonzero(np.diff(starts))
        item = self._items(box, starts[np.append(box, len(tree.level))], False)
        leaf = np.flatnonzero(tree.n_children == 0)
        leaf = leaf[np.argsort(tree.begin_trg[leaf], kind="stable")]
        centre = np.repeat(tree.centre[leaf], (tree.end_trg - tree.begin_trg)[leaf], axis=0).T
        local = self._array((tree.targets.points - xp.asarray(centre)).astype(self.real))
        given = {"xt": local, "u": self.u, "box": self._box, "place": place, "other": self._array(s)}
        given |= {"source": self._box, "charge": self.charge}
        constant = xp.asarray([*self.pair.parameters, 0.0], self.real)
        return self._prepare(self.units.grids(self.order), item, "item", constant=constant, **given)


def _launch(launches: list[Prepared]) -> None:
    for one in launches:
        one.launch()
