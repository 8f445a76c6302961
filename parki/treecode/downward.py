"""Steps from proxy potentials of clusters to potentials of particles."""

import numpy as np
from numpy.typing import NDArray

from parki.arrays import index32
from parki.engine.steps import ArraysOf, Handle, Step
from parki.proxies import THREADS
from parki.treecode.interactions import FEWER, InteractionLists
from parki.treecode.structure import TreecodeStructure
from parki.treecode.transfers import ranges, transfer


class Potentials:
    """Proxy potentials of target clusters, grouped by points per direction.

    For the largest number of points, values of cluster c begin at place c m³ of the group; for others, values of the
    k-th cluster that has them begin at k m³.

    Attributes
    ----------
    near, far : Handle
        Sums over particles, and sums over proxy points in the far precision: one array if precisions are equal.
    u, far_u : Handle
        The same for sums at targets, in the order of the tree.
    place : dict of slice
        Places of the potentials of m points per direction, in the order of m.
    zeros, added : list of Step
        Steps that set all sums to zero, and that add far sums to near ones, if they are separate.
    """

    def __init__(self, s: TreecodeStructure, parts: ArraysOf) -> None:
        self._s, kernels = s, s.kernels
        count = {m: len(nodes) for m, nodes in s.down.items()} | ({kernels.points: s.target.nodes} if s.down else {})
        self.place, total = {}, 0
        for m in sorted(count):
            self.place[m] = slice(total, total + count[m] * m**3)
            total = self.place[m].stop
        index32("the number of proxy points of targets", np.array([total]), FEWER)
        shapes = {"proxy potentials": (kernels.linear.result, total), "sorted u": (kernels.linear.result, s.target.n)}
        near = parts("potentials", shapes, kernels.real)
        (self.near, self.u), self.zeros, self.added = near.arrays, near.zeros("downward"), []
        self.far, self.far_u = self.near, self.u
        if kernels.far != kernels.real:
            far = near.alike("far", kernels.far)
            self.far, self.far_u = far.arrays
            self.zeros += far.zeros("downward")
            self.added += far.added("downward", near)

    def of(self, m: int) -> Handle:
        """Return the potentials of m points per direction."""
        return self.near[:, self.place[m]]

    def items(self, entries: InteractionLists) -> NDArray[np.integer]:
        """Return the items of a list whose first target is counted from the start of all potentials."""
        items = entries.items.copy()
        for m, nodes in self._s.down.items():
            mask = items[:, 3] == m
            row = items[mask, 0] if m == self._s.kernels.points else np.searchsorted(nodes, items[mask, 0])
            items[mask, 1] = self.place[m].start + row.astype(np.int64) * m**3
        return items

    def steps(self) -> list[Step]:
        """Return the steps that add all proxy potentials to those at targets."""
        if not self._s.down:
            return []
        s, side, m_max = self._s, self._s.target, self._s.kernels.points
        steps = []
        for m, nodes in s.down.items():
            if m != m_max:
                items, boxes = ranges(nodes, np.arange(len(nodes))), (side.boxes(nodes), side.box)
                steps += transfer(s, False, (m, m_max), items, boxes, (self.of(m), self.of(m_max)))
        active = np.zeros(side.nodes, bool)
        active[np.concatenate(list(s.down.values()))] = True
        steps += self._children(active)
        leaves = s.targets.nodes.leaves
        leaf = side.leaves(leaves[active[leaves]])
        args = {"leaf": leaf, "xt": side.points, "box": side.box, "phi": self.of(m_max), "u": self.u, **s.tables}
        return [*steps, Step("downward", s.kernels.potentials_to_particles(), len(leaf), args, THREADS)]

    def _children(self, active: NDArray[np.bool_]) -> list[Step]:
        """Return the steps from parents to children, level by level; mark children of nodes with potentials."""
        s, side, m_max, steps = self._s, self._s.target, self._s.kernels.points, []
        for level in range(1, side.levels):
            parents, children = side.level(level - 1), side.level(level)
            node, parent = np.arange(children.start, children.stop), s.targets.nodes.parent[children]
            mask = active[parent]
            active[children] |= mask
            items = ranges(node - children.start, parent - parents.start)[mask]
            values = tuple(
                self.of(m_max)[:, rows.start * m_max**3 : rows.stop * m_max**3] for rows in (parents, children)
            )
            steps += transfer(s, False, (m_max, m_max), items, (side.box[parents], side.box[children]), values)
        return steps
