"""The stages of a treecode sum as prepared launches: charges up, sums over lists, potentials down.

Arrays are made once; a call fills them anew.  There is an array of proxy values for each number m of points per
direction: of the largest, made from particles or children, values of cluster c stand at c m³ …; of the others, made
from these, values of the k-th cluster that has them at k m³ ….
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import engine
from parki.arrays import Array, index32
from parki.engine import Prepared, RangePolicy, TeamPolicy, spaces
from parki.engine.spaces import Space
from parki.engine.workunit import Workunit
from parki.proxies import THREADS, WARPS, ProxyKernels, tables
from parki.treecode import estimate
from parki.treecode.interactions import FEWER, Interactions, Lists
from parki.treecode.report import WallTime
from parki.trees.cluster import ClusterTree


def needed(kernels: ProxyKernels, found: Interactions) -> list[Workunit]:
    """Return every workunit that these lists launch."""
    units = [kernels.gather(), *(kernels.grids(m) for m in {*found.pc, *found.cc})]
    if len(found.pp.items) + len(found.cp.items):
        units.append(kernels.ranges())
    if found.pc or found.cc:
        units += [kernels.particles_to_charges(), kernels.transfer(up=True)]
    if len(found.cp.items) or found.cc:
        units += [kernels.potentials_to_particles(), kernels.transfer(up=False)]
    return units


def _used(found: Interactions) -> tuple[dict[int, NDArray[np.int32]], dict[int, NDArray[np.int32]]]:
    """Source and target nodes that have proxy points, by their number per direction."""
    up = {}
    for m in sorted({*found.pc, *found.cc}):
        up[m] = np.unique(np.concatenate([of[m].sources for of in (found.pc, found.cc) if m in of]))
    items = np.concatenate([found.cp.items, *(one.items for one in found.cc.values())])
    return up, {int(m): np.unique(items[items[:, 3] == m, 0]) for m in np.unique(items[:, 3])}


class Stages:
    """Launches and arrays of one set of lists.

    Parameters
    ----------
    units : ProxyKernels
    targets, sources : ClusterTree
    found : Interactions
    space : Space
    tiny : float
        Squared distance up to which points coincide, over that from the origin.
    """

    def __init__(
        self,
        units: ProxyKernels,
        targets: ClusterTree,
        sources: ClusterTree,
        found: Interactions,
        space: Space,
        tiny: float,
    ) -> None:
        self.units, self.space, self.xp = units, space, spaces.array_module(space)
        self.targets, self.sources, self.found = targets, sources, found
        self.up, self.down = _used(found)
        estimate.require(self, found)
        self._held: list[Array] = []
        pair, xp = units.linear, self.xp
        places, weights = tables()
        self._tables = {"nodes": xp.asarray(places), "weights": xp.asarray(weights)}
        self._boxes = {
            id(tree): self._array(np.hstack([tree.nodes.centre, tree.nodes.half])) for tree in (targets, sources)
        }
        self.rows = self._empty((sources.sorted.n + len(found.lumps), 3 + pair.strengths), units.real)
        self.strengths = self._empty((pair.strengths, sources.sorted.n), units.real)
        for k, value in enumerate(pair.parameters):
            self.strengths[pair.dens + k] = value
        self.u = self._empty((pair.result, targets.sorted.n), units.real)
        self._upward()
        self._downward()
        self._sums(found, tiny)

    @property
    def memory(self) -> int:
        """Bytes of all arrays, those of the trees apart."""
        return sum(a.nbytes for a in self._held)

    def run(self, charges: Array, times: WallTime) -> Array:
        """The sum at the targets in the order of their tree, from charges (NC, N) in the caller's order."""
        with times.phase("upward"):
            self.strengths[: self.units.charges] = charges
            self._gather.launch()
            self._lump()
            for a in self.charge.values():
                a.fill(0)
            _launch(self._up)
            for m, a in self.far_charge.items():
                if a is not self.charge[m]:
                    a[...] = self.charge[m]
        with times.phase("downward"):
            for a in {id(a): a for a in (self.u, self.phi, self.far_u, self.far_phi)}.values():
                a.fill(0)
        for name, launches in self._lists.items():
            with times.phase(name):
                _launch(launches)
        with times.phase("downward"):
            if self.far_phi is not self.phi:
                self.phi += self.far_phi
            if self.far_u is not self.u:
                self.u += self.far_u
            _launch(self._down)
        return self.u

    def _lump(self) -> None:
        """Behind the sources, one for each crowd of sources in one place."""
        n, nodes, xp = self.sources.sorted.n, self.sources.nodes, self.xp
        for k, node in enumerate(self.found.lumps):
            rows = self.rows[int(nodes.begin[node]) : int(nodes.end[node])]
            self.rows[n + k] = rows[0]
            charges = slice(3, 3 + self.units.charges)
            self.rows[n + k, charges] = xp.sum(rows[:, charges], axis=0)

    # Arrays -----------------------------------------------------------------------------------------------------------
    def _array(self, a: NDArray[Any]) -> Array:
        self._held.append(self.xp.ascontiguousarray(self.xp.asarray(a)))
        return self._held[-1]

    def _empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        self._held.append(self.xp.zeros(shape, dtype))
        return self._held[-1]

    def _team(self, league: int, shape: tuple[int, int] = THREADS) -> TeamPolicy:
        return TeamPolicy(self.space, league, *(() if self.space.kind == "host" else shape))

    # Upward -----------------------------------------------------------------------------------------------------------
    def _upward(self) -> None:
        """From particles to leaves, to their parents level by level, and to fewer points of the same clusters."""
        units, tree, nodes, particles = self.units, self.sources, self.sources.nodes, self.sources.sorted
        gather = {"x": particles.points, "order": particles.order}
        gather |= {"strength": self.strengths, "out": self.rows[: particles.n]}
        self._gather = engine.prepare(RangePolicy(self.space, particles.n), units.gather(), **gather)
        m_all, count, nc = units.points, len(nodes.begin), units.charges
        rows = {m: len(node) for m, node in self.up.items()} | ({m_all: count} if self.up else {})
        self.charge = {m: self._empty((n, m**3 * nc), units.real) for m, n in rows.items()}
        self.far_charge = {
            m: self.charge[m] if units.far == units.real else self._empty(self.charge[m].shape, units.far)
            for m in self.up
        }
        self._up: list[Prepared] = []
        if not self.up:
            return
        most = self.charge[m_all]
        leaf = self._array(np.column_stack([nodes.leaves, nodes.begin[nodes.leaves], nodes.end[nodes.leaves]]))
        box = self._boxes[id(tree)]
        given = {"leaf": leaf, "src": self.rows, "box": box, "charge": most, **self._tables}
        self._up.append(engine.prepare(self._team(len(leaf), WARPS), units.particles_to_charges(), **given))
        top = min(int(nodes.level[node].min()) for node in self.up.values())
        for level in range(len(nodes.level_begin) - 3, top - 1, -1):
            node = np.arange(nodes.level_begin[level], nodes.level_begin[level + 1], dtype=np.int32)
            node = node[nodes.n_children[node] > 0]
            first = nodes.first_child[node]
            items = np.column_stack([node, first, first + nodes.n_children[node]])
            below, here = _level(tree, level + 1), _level(tree, level)
            offset = (here.start, below.start, below.start)
            self._transfer(True, (m_all, m_all), items - offset, box[below], box[here], most[below], most[here])
        for m, node in self.up.items():
            if m != m_all:
                items = np.column_stack([np.arange(len(node)), node, node + 1])
                self._transfer(True, (m_all, m), items, box, self._boxes_of(tree, node), most, self.charge[m])

    def _transfer(
        self, up: bool, m: tuple[int, int], items: NDArray[np.int32], box: Array, to_box: Array, given: Array,
        made: Array,
    ) -> None:  # fmt: skip
        """Add a launch, from m[0] to m[1] points per direction."""
        if len(items):
            args = {"item": self._array(items.astype(np.int32)), "box": box, "to_box": to_box, **self._tables}
            args |= {"given": given, "made": made, "m": m[0], "n": m[1]}
            prepared = engine.prepare(self._team(len(items)), self.units.transfer(up), **args)
            (self._up if up else self._down).append(prepared)

    # Downward ---------------------------------------------------------------------------------------------------------
    def _downward(self) -> None:
        """From fewer points to all of the same clusters, to their children level by level, and to particles."""
        units, tree, nodes = self.units, self.targets, self.targets.nodes
        m_all, count, nu = units.points, len(nodes.begin), units.linear.result
        self._base, total = {}, 0
        rows = {m: len(node) for m, node in self.down.items()} | ({m_all: count} if self.down else {})
        for m in sorted(rows):
            self._base[m], total = total, total + rows[m] * m**3
        index32("the number of proxy points of targets", np.array([total]), FEWER)
        self.phi = self._empty((nu, total), units.real)
        self.far_phi = self.phi if units.far == units.real else self._empty((nu, total), units.far)
        self._down: list[Prepared] = []
        if not self.down:
            return
        box, phi = self._boxes[id(tree)], {m: self.phi[:, at : at + rows[m] * m**3] for m, at in self._base.items()}
        for m, node in self.down.items():
            if m != m_all:
                k = np.arange(len(node))
                items = np.column_stack([node, k, k + 1])
                self._transfer(False, (m, m_all), items, self._boxes_of(tree, node), box, phi[m], phi[m_all])
        active = np.zeros(count, bool)
        active[np.concatenate(list(self.down.values()))] = True
        for level in range(1, len(nodes.level_begin) - 1):
            node = np.arange(nodes.level_begin[level], nodes.level_begin[level + 1], dtype=np.int32)
            parent = nodes.parent[node]
            taking = active[parent]
            active[node] |= taking
            items = np.column_stack([node, parent, parent + 1])[taking]
            here, above = _level(tree, level), _level(tree, level - 1)
            offset = (here.start, above.start, above.start)
            of, to = (phi[m_all][:, at.start * m_all**3 : at.stop * m_all**3] for at in (above, here))
            self._transfer(False, (m_all, m_all), items - offset, box[above], box[here], of, to)
        leaves = nodes.leaves[active[nodes.leaves]]
        leaf = self._array(np.column_stack([leaves, nodes.begin[leaves], nodes.end[leaves]]))
        given = {"leaf": leaf, "xt": tree.sorted.points, "box": box, "phi": phi[m_all], "u": self.u}
        unit = units.potentials_to_particles()
        self._down.append(engine.prepare(self._team(len(leaf)), unit, **given, **self._tables))

    # Lists ------------------------------------------------------------------------------------------------------------
    def _sums(self, found: Interactions, tiny: float) -> None:
        units, xp, tree = self.units, self.xp, self.targets
        place = {dtype: xp.asarray(self._tables["nodes"], dtype) for dtype in {units.real, units.far}}
        box = self._boxes[id(tree)]
        constant = xp.asarray([*units.linear.parameters, 0.0], units.far)
        same = units.far == units.real
        self.far_u = self.u if same or not found.pc else self._empty(self.u.shape, units.far)
        local = self._local() if found.pc else self._empty((3, 0), units.far)
        self._lists: dict[str, list[Prepared]] = {"pp": [], "pc": [], "cp": [], "cc": []}
        for name, of, u, proxies in (("pp", found.pp, self.u, False), ("cp", found.cp, self.phi, True)):
            if len(of.items):
                given = {"xt": tree.sorted.points, "box": box, "place": place[units.real], "src": self.rows}
                given["tiny"] = tiny
                given |= {"item": self._items(of, proxies), "span": self._array(of.sources), "u": u}
                prepared = engine.prepare(self._team(len(of.items)), units.ranges(), **given)
                self._lists[name].append(prepared)
        for name, lists, u, proxies in (("pc", found.pc, self.far_u, False), ("cc", found.cc, self.far_phi, True)):
            for m, of in lists.items():
                given = {"xt": local, "box": box, "place": place[units.far], "constant": constant, "u": u}
                given |= {"item": self._items(of, proxies), **self._sources(m, of)}
                unit = units.grids(m)
                prepared = engine.prepare(self._team(len(of.items)), unit, charge=self.far_charge[m], **given)
                self._lists[name].append(prepared)

    def _items(self, of: Lists, proxies: bool) -> Array:
        """Items, the first proxy point counted from the start of the array of all."""
        items = of.items
        if proxies:
            items = items.copy()
            for m, node in self.down.items():
                at = items[:, 3] == m
                row = items[at, 0] if m == self.units.points else np.searchsorted(node, items[at, 0])
                items[at, 1] = self._base[m] + row.astype(np.int64) * m**3
        return self._array(items)

    def _sources(self, m: int, of: Lists) -> dict[str, Array]:
        """Source nodes of m points by the rows of their charges, and the boxes of these."""
        tree, node = self.sources, self.up[m]
        if m == self.units.points:
            return {"source": self._boxes[id(tree)], "other": self._array(of.sources)}
        row = np.searchsorted(node, of.sources).astype(np.int32)
        return {"source": self._boxes_of(tree, node), "other": self._array(row)}

    def _boxes_of(self, tree: ClusterTree, node: NDArray[np.int32]) -> Array:
        nodes = tree.nodes
        return self._array(np.hstack([nodes.centre[node], nodes.half[node]]))

    def _local(self) -> Array:
        """Targets from the centres of their leaves."""
        tree, nodes = self.targets, self.targets.nodes
        made = self._empty(tree.sorted.points.shape, self.units.far)
        count = nodes.count[nodes.leaves]
        for d, centre in enumerate(nodes.centre[nodes.leaves].T):  # one at a time: less memory
            made[d] = tree.sorted.points[d] - self.xp.asarray(np.repeat(centre, count))
        return made


def _launch(launches: Iterable[Prepared]) -> None:
    for one in launches:
        one.launch()


def _level(tree: ClusterTree, level: int) -> slice:
    """The nodes of a level."""
    return slice(int(tree.nodes.level_begin[level]), int(tree.nodes.level_begin[level + 1]))
