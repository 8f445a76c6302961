"""Steps on particles cut into tasks: charges to the order of the tree, sums to the caller's, and the near field.

Target points are in parts of equal near work.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.engine.steps import Cut, RowBlocks, RowByRow, Step, Touched
from parki.tasks.sizes import PARTS, TaskSizes, cumulated, divided
from parki.trees.octlists import OctLists, leaves_in_order
from parki.trees.octree import OctNodes, Octree


@dataclass(frozen=True, eq=False)
class ParticleCuts:
    """Cuts of the steps on particles.

    Attributes
    ----------
    targets, sources : RowBlocks
        Rows of target points and of source points.
    """

    targets: RowBlocks
    sources: RowBlocks

    @classmethod
    def of(cls, tree: Octree, lists: OctLists, sizes: TaskSizes) -> "ParticleCuts":
        """Return the cuts of a tree's particles."""
        targets = RowBlocks(np.append(_equal_near_work(tree.nodes, lists, sizes), tree.targets.n))
        parts = len(targets)
        even = RowBlocks(np.unique(np.arange(parts + 1) * tree.sources.n // parts))
        return cls(targets, targets if tree.sources is tree.targets else even)

    def spans(self, step: Step, begin: NDArray[np.integer]) -> tuple[Touched, NDArray[np.float64]]:
        """Return the sources that items meet, in spans that start at `begin`, and their numbers."""
        span = step.args["span"].values
        src = Touched(step.args["src"], self.sources, span[:, 0], span[:, 1], begin)
        return src, cumulated(span[:, 1] - span[:, 0], begin)

    def near(self, step: Step) -> Cut:
        """Cut the sum over particles at particles along targets."""
        item = step.args["item"].values
        u = Touched.each(step.args["u"], self.targets, item[:, 1], item[:, 2], axis=1)
        src, n_sources = self.spans(step, np.append(item[:, 4], item[-1, 5]))
        return Cut("P2P", item[:, 2] * n_sources, [src, u], [u], u)

    def fill(self, step: Step) -> Cut:
        """Return the clearing of sums as one task."""
        out, array = step.args["out"], step.args["out"].whole
        low, high = self.targets.bounds[:1], self.targets.bounds[-1:]
        access = Touched(array, self.targets, low, high, np.array([0, 1]), axis=1)
        return Cut("FILL", float(step.items), [access] * (out.nbytes < array.nbytes), [access])

    def load(self, step: Step) -> Cut:
        """Cut the transfer of charges into the order of the tree along sources."""
        rows = RowByRow(step.args["out"].whole, self.sources)
        return Cut("GATHER", 1.0, [rows], [rows], rows)

    def store(self, step: Step) -> Cut:
        """Cut the transfer of sums into the caller's order along targets."""
        rows = [RowByRow(step.args[name], self.targets, axis=1) for name in ("a", "b")]
        return Cut("SCATTER", 1.0, rows, (), rows[0])


def _equal_near_work(nodes: OctNodes, lists: OctLists, sizes: TaskSizes) -> NDArray[np.int64]:
    """Return the first targets of parts with about equal numbers of near pairs, beginning with 0."""
    leaves, _ = leaves_in_order(nodes)
    n_sources = np.bincount(lists.u_t, nodes.sources.count[lists.u_s], nodes.n)
    work = ((n_sources + 1) * nodes.targets.count)[leaves]
    bounds = divided(work, sizes.parts(float(work.sum()), sizes.pairs, PARTS))
    return nodes.targets.begin[leaves][bounds[:-1]].astype(np.int64)
