"""The kernel-independent method: equivalent sources on surfaces around the boxes of an octree.

Check values of a box are those of its sources on a surface around it, upward on the outer one, downward on the inner
one; equivalents on the other surface make the same values.  Boxes pass them on to their parents and children
(`dense`) and to boxes of their level that are apart (`m2l`).  Particles and surfaces meet in the kernels of
`surfaces`, particles and particles in those that treecodes have.

Source: L. Ying, G. Biros, D. Zorin, J. Comput. Phys. 196 (2004) 591–626.  I. Lashuk et al., SC09.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parki import engine
from parki.arrays import Array
from parki.engine import Prepared
from parki.engine.spaces import Space
from parki.engine.workunit import Workunit
from parki.fmm import dense, factors, kinds, m2l, memory, spectra, surfaces
from parki.fmm.dense import Dense
from parki.fmm.expansion import TOP, Expansion
from parki.fmm.kinds import Kind
from parki.pairs import Pair
from parki.proxies import ProxyKernels
from parki.trees.lists import csr, merge_ranges
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes, Octree

AT_ONCE = 64  # octets whose children are folded together: they stay in a second-level cache
Ints = NDArray[np.int32]


def units(kind: Kind, p: int, real: DTypeLike, short: tuple[str, ...]) -> dict[str, Workunit]:
    """Workunits of particles, by step."""
    real = np.dtype(real)
    particles = ProxyKernels(kind.pair, real, real, 1, short)

    def unit(name: str, pair: Pair, **more: Any) -> Workunit:
        return engine.kernel("surfaces", name, real=real, pair=pair.pair, hints=pair.hints, **dict(pair.slots), **more)

    fields = {"NP": len(kind.target.parameters), "TRUE_SIZE": kind.a is None}
    return {
        "check": unit("check_values", kind.source, CENTRED=True),
        "fields": unit("fields", kind.target, **fields),
        "ranges": particles.ranges(),
    }


class Equivalents(Expansion):
    """Arrays and launches of a sum by equivalent sources, phase by phase.

    Parameters
    ----------
    tree : Octree
    lists : OctLists
    kind : Kind
    p : int
        Points per edge of a surface.
    space : Space
    tolerance : float
        What is asked for: singular values that matter less are left out.
    short : tuple of str
        Hints on what is enough of roots and exponentials.
    """

    def __init__(
        self,
        tree: Octree,
        lists: OctLists,
        kind: Kind,
        p: int,
        space: Space,
        *,
        tolerance: float,
        short: tuple[str, ...] = (),
    ) -> None:
        self.kind, self.p, self.points = kind, p, surfaces.count(p)
        self._units = units(kind, p, tree.sources.points.dtype, short)
        super().__init__(tree, lists, kind.pair, space, self._units["ranges"])
        self.far = tree.nodes.depth >= TOP and bool(len(lists.v_t) + len(lists.w_t) + len(lists.x_t))
        if not self.far:
            return
        octets, m = len(tree.nodes.octet_parent), self.points
        self._tables = {name: self._array(surfaces.points(p, r).T.astype(self.real)) for name, r in _RADII.items()}
        self.check = self._empty((octets, kind.check * m, 8))
        self.equivalent = self._empty((octets, kind.equivalent * m, 8))
        self._slot = self._array(tree.nodes.slot)
        self._operators(tolerance, lists)
        self._boxes()
        self._from_particles()
        self._up_and_down()
        self._to_particles(lists)

    @property
    def memory(self) -> int:
        """Bytes of all arrays, those of the tree apart."""
        far = self._m2l.memory + sum(d.memory for d in self._dense.values()) if self.far else 0
        return super().memory + far

    def upward(self) -> None:
        """P2M and M2M: upward equivalents of all boxes."""
        if self.far:
            self.check.fill(0)
            super().upward()

    def across(self) -> None:
        """M2L: list V."""
        if self.far:
            self.check.fill(0)
            self._m2l.run()

    # Operators --------------------------------------------------------------------------------------------------------
    def _operators(self, tolerance: float, lists: OctLists) -> None:
        """Dense operators and transforms of the kernel for each level, or for all at once."""
        kind, nodes, p = self.kind, self.tree.nodes, self.p
        halves = {level: float(nodes.width * 0.5 ** (level + 1)) for level in range(TOP, nodes.depth + 1)}
        one = {} if kind.per_level else dict.fromkeys(halves, halves[TOP])
        of = {level: one.get(level, half) for level, half in halves.items()}
        self._dense = {
            half: Dense(factors.operators(kind, p, tolerance, half), self.space, self.real) for half in {*of.values()}
        }
        self._by_level = {level: self._dense[half] for level, half in of.items()}
        above = nodes.level[nodes.octet_parent[lists.v_t]] + 1 if len(lists.v_t) else np.zeros(0, np.int32)
        size = np.array([of.get(level, 0.0) for level in range(nodes.depth + 1)])[above]
        parts = []
        for half in dict.fromkeys(of.values()):
            here = size == half
            if here.any():
                table = self._transforms(half)
                parts.append(m2l.Part(table, lists.v_t[here], lists.v_s[here], lists.v_direction[here]))
        asked = m2l.Units(p, kind.equivalent, kind.check, self.real)
        self._m2l = m2l.M2L(asked, parts, self.equivalent, self.check, self.space)

    def _transforms(self, half: float) -> Array:
        return self._array(_table(self.kind.at(half), self.kind.size(half), self.p).astype(self.real))

    def _up_and_down(self) -> None:
        """Prepare the dense steps, level by level."""
        kind, nodes = self.kind, self.tree.nodes
        octets = len(nodes.octet_parent)
        below = np.full((octets, 8), -1, np.int32)
        below.reshape(-1)[nodes.slot[1:]] = nodes.octet[1:]
        self._below = self._array(below)
        some = next(iter(self._dense.values())).operators
        checks, equivalents = int(some.check.begin[-1]), int(some.equivalent.begin[-1])
        most = int(np.diff(nodes.octet_begin).max())
        folded, solved = self._empty((most, checks, 8)), self._empty((octets, equivalents, 8))
        rows = 8 * self.points * max(kind.check, kind.equivalent)
        between = self._empty((min(AT_ONCE, most), rows, 8))
        steps: dict[int, tuple[list[Prepared], list[Prepared]]] = {}
        for level in range(TOP, nodes.depth + 1):
            at = slice(int(nodes.octet_begin[level - 1]), int(nodes.octet_begin[level]))
            d, inner = self._by_level[level], level < nodes.depth
            here = folded[: at.stop - at.start]
            one = (self.check[at], self.equivalent[at], solved[at])
            fold, unfold = d.fold("check", one[0], here), d.unfold("equivalent", one[2], one[1])
            rows_up, rows_down = (8 * self.points * n for n in (kind.equivalent, kind.check))
            steps_up, steps_down = [fold], [fold]
            if inner:
                steps_up += d.to_parent(self.equivalent, self._below[at], _shaped(between, rows_up), here)
            steps_up += [*d.solve("up", here, one[2]), unfold]
            steps_down += [*d.solve("down", here, one[2]), unfold]
            if inner:
                steps_down += d.to_children(one[2], self._below[at], _shaped(between, rows_down), self.check)
            steps[level] = steps_up, steps_down
        for level in sorted(steps):
            self._launches["downward"] += steps[level][1]
        for level in sorted(steps, reverse=True):
            self._launches["upward"] += steps[level][0]

    # Particles --------------------------------------------------------------------------------------------------------
    def _boxes(self) -> None:
        """Boxes as they are, for check values, and as the unit box, for fields."""
        nodes, kind = self.tree.nodes, self.kind
        factor = np.array([kind.scales(h)[0] for h in _halves(nodes)])[nodes.level]
        box = np.column_stack([nodes.centre, nodes.half])
        self._physical = {"box": self._array(box), "factor": self._array(factor.astype(self.real))}
        size = nodes.half[:, None] if kind.a is not None else np.ones((nodes.n, 1))
        constant = np.array([[*kinds.scaled(kind.target, kind.powers, h).parameters, 0.0] for h in _halves(nodes)])
        self._unit = {
            "box": self._array(np.column_stack([nodes.centre, 1 / nodes.half, nodes.half])),
            "factor": self._array((size ** -kinds.field_exponents(kind)).astype(self.real)),
            "slot": self._slot,
            "constant": self._array(constant[nodes.level].astype(self.real)),
            "value": self.equivalent,
        }

    def _from_particles(self) -> None:
        """Prepare P2M."""
        nodes = self.tree.nodes
        node = np.flatnonzero(nodes.is_leaf & (nodes.level >= TOP) & (nodes.sources.count > 0))
        spans = np.stack([nodes.sources.begin, nodes.sources.end], axis=1)[node]
        self._checks("upward", "outer", node, np.arange(len(node) + 1), spans)

    def _to_particles(self, lists: OctLists) -> None:
        """Prepare L2P, and lists W and X."""
        nodes = self.tree.nodes
        node = np.flatnonzero(nodes.is_leaf & (nodes.level >= TOP) & (nodes.targets.count > 0))
        self._fields("downward", "outer", node, np.arange(len(node) + 1), node)
        if len(lists.x_t):
            t, begin, end = merge_ranges(lists.x_t, nodes.sources.begin[lists.x_s], nodes.sources.end[lists.x_s])
            node, starts = np.unique(t, return_index=True)
            self._checks("uneven", "inner", node, np.append(starts, len(t)), np.stack([begin, end], axis=1))
        if len(lists.w_t):
            starts, source = csr(lists.w_t, lists.w_s, nodes.n)
            node = np.flatnonzero(np.diff(starts))
            self._fields("uneven", "inner", node, starts[np.append(node, nodes.n)], source)

    def _checks(self, phase: str, surface: str, node: Ints, starts: Ints, spans: Ints) -> None:
        """Check values of boxes, of sources in ranges."""
        slot = self.tree.nodes.slot[node]
        item = np.column_stack([node, slot // 8, slot % 8, starts[:-1], starts[1:]])
        given = {"surface": self._tables[surface], "span": self._array(spans.astype(np.int32)), "src": self.rows}
        self._prepare(
            phase, self._units["check"], item, value=self.check, points=self.points, **given, **self._physical
        )

    def _fields(self, phase: str, surface: str, node: Ints, starts: Ints, source: Ints) -> None:
        """Fields of equivalents of boxes at the targets of leaves."""
        tree, nodes = self.tree, self.tree.nodes
        item = np.column_stack([nodes.targets.begin[node], nodes.targets.count[node], starts[:-1], starts[1:]])
        given = {"surface": self._tables[surface], "other": self._array(source.astype(np.int32)), "u": self.u}
        self._prepare(
            phase, self._units["fields"], item, xt=tree.targets.points, points=self.points, **given, **self._unit
        )


@memory.kept()
def _table(pair: Pair, size: float, p: int) -> NDArray[np.float64]:
    """Transforms of a kernel between boxes of half side `size`."""
    return spectra.table(lambda r: kinds.block(pair, size * r), p)


_RADII = {"inner": surfaces.INNER, "outer": surfaces.OUTER}


def _halves(nodes: OctNodes) -> list[float]:
    return [float(nodes.width * 0.5 ** (level + 1)) for level in range(nodes.depth + 1)]


def _shaped(buffer: Array, rows: int) -> Array:
    """A buffer with fewer rows for each of as many octets."""
    return buffer.reshape(-1)[: len(buffer) * rows * 8].reshape(len(buffer), rows, 8)


def workunits(kind: Kind, p: int, real: DTypeLike, short: tuple[str, ...]) -> list[Workunit]:
    """All workunits of an expansion, for compiling ahead."""
    real = np.dtype(real)
    far = [*m2l.Units(p, kind.equivalent, kind.check, real).needed(), *dense.units(kind.masks is not None, real)]
    return [*units(kind, p, real, short).values(), *far]
