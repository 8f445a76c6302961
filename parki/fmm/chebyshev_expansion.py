"""Black-box method: Chebyshev interpolation on the boxes of an octree, for any smooth kernel.

A box has charges and potentials at order³ Chebyshev points of its own.  The parts of `proxy` and `clusters`
make charges from particles and boxes below, potentials from boxes above, and the sums of lists U, W and X.  Lists V are
products of matrices (`chebyshev_translations`).

Sources: W. Fong and E. Darve, J. Comput. Phys. 228 (2009) 8712; E. Agullo et al., "Task-based FMM for heterogeneous
architectures", Inria RR-8513 (2014).
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from parki.arrays import to_host
from parki.engine.steps import Handle, Step, Steps, glue, state
from parki.fmm import chebyshev_tables
from parki.fmm.chebyshev_tasks import ChebyshevCuts
from parki.fmm.chebyshev_translations import Translations
from parki.fmm.expansion import TOP_LEVEL, BoxValues, Expansion, Particles, ordered, table, teams
from parki.pairs import Pair
from parki.proxies import WARPS, ProxyKernels
from parki.tasks.sizes import TaskSizes
from parki.trees.lists import csr, joined_ranges
from parki.trees.octlists import OctLists
from parki.trees.octree import Octree

Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class ChebyshevExpansion(Expansion):
    """A sum by Chebyshev interpolation as a list of steps.

    Attributes
    ----------
    translations : Translations
        Translations of lists V.
    """

    translations: Translations


def chebyshev_expansion(
    tree: Octree, lists: OctLists, pair: Pair, order: int, *, eps: float,
    symmetric: bool = True, tasks: TaskSizes | None = None, parts: int = 0,
) -> ChebyshevExpansion:  # fmt: skip
    """Return a sum by Chebyshev interpolation.

    Parameters
    ----------
    tree : Octree
    lists : OctLists
    pair : Pair
        Linear in the strengths of sources; with a result of several components, all are interpolated.
    order : int
        Points per direction of a box, 2 to 24.
    eps : float
        Singular values of translations below this share of the largest are dropped; 0 keeps all.
    symmetric : bool
        Use the pair's symmetry, if it has one.
    tasks : TaskSizes, optional
        Sizes of tasks, for a sum that is cut into tasks.
    parts : int
        Parts of particles, two of which meet each other once; 0 where each target meets its sources.
    """
    particles = Particles.of(tree, pair)
    boxes = _ChebyshevBoxes(tree, particles, order)
    translations = Translations(tree.nodes, lists, pair, order, real=particles.real, eps=eps, symmetric=symmetric)
    far = [*translations.steps("m2l", boxes.charge, boxes.phi), *boxes.p2l_m2p(lists)]
    far += boxes.downward() if len(lists.v_t) + len(lists.x_t) else []
    values = BoxValues(boxes.charge, (np.arange(tree.nodes.n), None))
    near = partial(particles.near, tree, boxes.kernels, parts=parts)
    if tasks is not None:
        steps = [*particles.load("upward"), *boxes.upward(), *far, *particles.apart(near(lists))]
        steps = ChebyshevCuts.of(tree, lists, translations, tasks).steps(steps)
        return ChebyshevExpansion(Steps(steps), particles, translations)
    steps = ordered(tree, particles, lists, values, (boxes.upward(), far), near)
    return ChebyshevExpansion(Steps(steps), particles, translations)


class _ChebyshevBoxes:
    """Handles of the boxes of a tree, and the steps between boxes, and between boxes and particles."""

    def __init__(self, tree: Octree, particles: Particles, order: int) -> None:
        self.tree, self.particles, self.order = tree, particles, order
        self.real, pair = particles.real, particles.pair
        self.kernels = ProxyKernels(pair, self.real, self.real, order)
        nodes, weights = chebyshev_tables.points()
        self.tables = {"nodes": table("nodes", nodes), "weights": table("weights", weights)}
        self.place = table("place", nodes, self.real)
        self.box = table("box", np.hstack([tree.nodes.centre, np.repeat(tree.nodes.half[:, None], 3, axis=1)]))
        self.charge = state("charge", (tree.nodes.n, order**3 * pair.dens), self.real)
        self.phi = state("phi", (pair.result, tree.nodes.n * order**3), self.real)

    # Up and down ------------------------------------------------------------------------------------------------------
    def upward(self) -> list[Step]:
        """Return P2M and M2M, on cleared charges and potentials."""
        nodes, phase = self.tree.nodes, "upward"
        steps = glue.fill(phase, self.charge)
        for component in range(len(self.phi)):  # tasks divide components along boxes
            steps += glue.fill(phase, self.phi[component])
        leaves = self._leaves(nodes.own.begin, nodes.own.end)
        args = {"src": self.particles.rows, "box": self.box, "charge": self.charge, **self.tables}
        steps += teams(phase, self.kernels.particles_to_charges(), leaves, args, "leaf", WARPS)
        for level in range(len(nodes.level_begin) - 3, TOP_LEVEL - 1, -1):
            node = np.arange(*nodes.level_begin[level : level + 2])
            node = node[(nodes.n_children[node] > 0) & (nodes.own.count[node] > 0)]
            first, parents, children = nodes.first_child[node], self._level(level), self._level(level + 1)
            items = np.column_stack([node, first, first + nodes.n_children[node]])
            args = {"given": self.charge[children], "made": self.charge[parents]}
            steps += self._transfer(phase, parents, children, items, args)
        return steps

    def downward(self) -> list[Step]:
        """Return L2L and L2P."""
        nodes, steps, phase, m3 = self.tree.nodes, [], "downward", self.order**3
        for level in range(TOP_LEVEL + 1, len(nodes.level_begin) - 1):
            node = np.arange(*nodes.level_begin[level : level + 2])
            node = node[nodes.targets.end[node] > nodes.targets.begin[node]]
            items = np.column_stack([node, nodes.parent[node], nodes.parent[node] + 1])
            children, parents = self._level(level), self._level(level - 1)
            operand, result = (self.phi[:, rows.start * m3 : rows.stop * m3] for rows in (parents, children))
            steps += self._transfer(phase, children, parents, items, {"given": operand, "made": result})
        leaves = self._leaves(nodes.targets.begin, nodes.targets.end)
        leaves = leaves[np.argsort(leaves[:, 1], kind="stable")]  # tasks are runs of targets
        args = {"xt": self.particles.targets, "box": self.box, "phi": self.phi, "u": self.particles.sums, **self.tables}
        return steps + teams(phase, self.kernels.potentials_to_particles(), leaves, args, "leaf")

    def _level(self, level: int) -> slice:
        return slice(int(self.tree.nodes.level_begin[level]), int(self.tree.nodes.level_begin[level + 1]))

    def _leaves(self, begin: Ints, end: Ints) -> Ints:
        """Return leaves with expansions and with points begin … end − 1, as rows (node, begin, end)."""
        nodes = self.tree.nodes
        node = np.flatnonzero((nodes.n_children == 0) & (nodes.level >= TOP_LEVEL) & (end > begin))
        return np.column_stack([node, begin[node], end[node]])

    def _transfer(self, phase: str, targets: slice, sources: slice, items: Ints, args: dict[str, Handle]) -> list[Step]:
        """Return a transfer to the boxes of a level from those of another; items are (box, first, end)."""
        items = items - np.array([targets.start, sources.start, sources.start])
        args = {"box": self.box[sources], "to_box": self.box[targets], **args, **self.tables}
        return teams(phase, self.kernels.transfer(phase == "upward"), items, {**args, "m": self.order, "n": self.order})

    # Lists ------------------------------------------------------------------------------------------------------------
    def p2l_m2p(self, lists: OctLists) -> list[Step]:
        """Return P2L and M2P: lists X and W."""
        return [*self._particles_to_points(lists), *self._points_to_particles(lists)]

    def _particles_to_points(self, lists: OctLists) -> list[Step]:
        """Return list X: source particles at the points of boxes."""
        if not len(lists.x_t):
            return []
        nodes, m3, particles = self.tree.nodes, self.order**3, self.particles
        starts, spans = joined_ranges(lists.x_t, lists.x_s, nodes.sources.begin, nodes.sources.end, nodes.n)
        node = np.flatnonzero(np.diff(starts))
        counts = np.full((len(node), 2), [m3, self.order])
        item = np.column_stack([node, node.astype(np.int64) * m3, counts, starts[node], starts[node + 1]])
        args = {"xt": particles.targets, "u": self.phi, "box": self.box, "place": self.place}
        args |= {"span": table("spans", spans), "src": particles.rows}
        return teams("p2l_m2p", self.kernels.ranges(), item, args | {"tiny": particles.coincident(lists)})

    def _points_to_particles(self, lists: OctLists) -> list[Step]:
        """Return list W: points of boxes at the particles of leaves."""
        if not len(lists.w_t):
            return []
        nodes, particles = self.tree.nodes, self.particles
        starts, source = csr(lists.w_t, lists.w_s, nodes.n)
        node = np.flatnonzero(np.diff(starts))
        node = node[np.argsort(nodes.targets.begin[node], kind="stable")]
        zeros = np.zeros(len(node), np.int32)
        item = np.column_stack(
            [node, nodes.targets.begin[node], nodes.targets.count[node], zeros, starts[node], starts[node + 1]]
        )
        leaf = np.flatnonzero(nodes.is_leaf)
        leaf = leaf[np.argsort(nodes.targets.begin[leaf], kind="stable")]
        centre = np.repeat(nodes.centre[leaf], nodes.targets.count[leaf], axis=0).T
        local = table("local_targets", to_host(self.tree.targets.points) - centre, self.real)
        args = {"xt": local, "u": particles.sums, "box": self.box, "place": self.place, "other": table("boxes", source)}
        args |= {"source": self.box, "charge": self.charge}
        args |= {"constant": table("parameters", [*particles.pair.parameters, 0.0], self.real)}
        return teams("p2l_m2p", self.kernels.grids(self.order), item, args)
