"""Fast multipole methods over ranks: the tree of one process, of which every rank works on a part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import ranks
from parki.arrays import Array
from parki.distributed import freespace
from parki.distributed.agreement import agreed
from parki.distributed.exchange.parcels import Shelf
from parki.distributed.fmm import weights
from parki.distributed.fmm.boxes import RankBoxes
from parki.distributed.fmm.part import CHARGES, RankPart
from parki.distributed.fmm.structure import RankStructure
from parki.distributed.freespace import EXCHANGES, FreeOverRanks, RanksProblem, SumOverRanks
from parki.distributed.trees import cuts, kinds
from parki.distributed.trees.shared import SharedTree
from parki.engine import spaces
from parki.fmm import balance, estimate
from parki.fmm.balance import Cloud, FmmCosts
from parki.fmm.chebyshev_order import Met
from parki.fmm.expansion import RankOctree
from parki.fmm.kinds import Chebyshev, Kifmm
from parki.fmm.method import Aim, Fmm, Leaves
from parki.fmm.surface_expansion import any_far
from parki.freespace import FreeMethod
from parki.timing import PhaseTimes
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes

UNEVEN = 1.02  # largest over mean work above which a tree is cut anew
MOVED = 1.05  # the same for points that have moved
SCHEME: str | None = None  # scheme of the exchange of values; None: the one that is predicted to be faster


def over(method: Fmm) -> FreeMethod:
    """Return a method over the ranks of its options' communicator; the method itself for a single rank."""
    return freespace.over(method, KINDS[method.name])


@dataclass(frozen=True, eq=False)
class RankCloud(Cloud):
    """Points of all ranks, as questions about them: see `parki.fmm.balance.Cloud`."""

    method: FmmOverRanks
    total: int

    @property
    def n(self) -> int:
        """Return the number of points."""
        return self.total

    @cached_property
    def corners(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lowest and highest coordinates."""
        return self.method.corners(self.points)

    def sample(self, stride: int) -> Array:
        """Return every `stride`-th point of all ranks in their order."""
        xp = spaces.array_module(self.method.space)
        return xp.asarray(np.ascontiguousarray(self.method.sample(self.points, stride)))

    def ends(self, stride: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lowest and highest coordinates of a sample."""
        return self.method.corners(self._own(stride))

    def cells(self, low: NDArray[np.float64], side: NDArray[np.float64], stride: int) -> NDArray[np.int64]:
        """Return the numbers of points of a sample in cells of a box."""
        return self.method.comm.allreduce(Cloud(self._own(stride)).cells(low, side, 1))

    def _own(self, stride: int) -> Array:
        """Return this rank's points of a sample."""
        return self.method.own_sample(self.points, stride)


class FmmOverRanks(FreeOverRanks, Fmm):
    """A fast multipole method over the ranks of a communicator; every rank calls every method."""

    def times(self, problem: RanksProblem, parameters: Any) -> PhaseTimes:
        """Return the times of all phases, exchanges included, set to zero."""
        phase_times = super().times(problem, parameters)
        phase_times.over(self.comm, EXCHANGES | {CHARGES: "charges of ghosts"})
        return phase_times

    def kept(self, old: RanksProblem, new: RanksProblem, parameters: Aim) -> Aim:
        """Return the parameters of moved points, with the shares of the old tree at which ranks began."""
        return replace(self.choose(new), shares=parameters.shares)

    def arrange(self, problem: RanksProblem, aim: Aim, times: PhaseTimes) -> tuple[Aim, RankStructure]:
        """Return the aim with refined parameters, and this rank's part of tree, lists and expansions; collective.

        Raises
        ------
        MemoryError
            On all ranks, where the values of all boxes of a rank would take more memory of its host than is free.
        """
        comm, order = self.comm, aim.parameters.order
        boxes = self._boxes(problem, aim, times)
        with times.phase("lists"):
            tree, points = boxes.with_points(self.space)
        nodes, lists = tree.nodes, boxes.lists
        with times.phase("prepare"):
            aim = self._refined(aim, nodes, lists)
            order = aim.parameters.order
            far = bool(comm.allreduce(int(any_far(tree, lists)), "max"))
            width = self._points(order) * self._made(aim) if far else 0
            shelves = Shelf(aim.linear.dens, problem.dtype), Shelf(width, problem.dtype)
            part = RankPart.of(comm, boxes, nodes, points, shelves, self.space, scheme=SCHEME)
            tree = RankOctree(nodes, tree.sources, tree.targets, part)
            with agreed(comm, "making expansions"):
                expansion = self._expanded(aim, tree, lists)
        times.pairs = self._pairs(nodes, lists, order)
        shares = boxes.tree.cuts / max(1, int(boxes.tree.cuts[-1]))
        source_copy = problem.sources.copy()  # the caller's array may change
        originals = source_copy if problem.same else problem.targets.copy(), source_copy
        structure = RankStructure(tree, lists, aim.representation, expansion, boxes.tree, part, originals)
        return replace(aim, shares=shares), structure

    def _boxes(self, problem: RanksProblem, aim: Aim, times: PhaseTimes) -> RankBoxes:
        """Return this rank's boxes and lists, of a tree cut by points, and cut again by work where that is uneven."""
        comm, space, points = self.comm, self.space, self._points(aim.parameters.order)
        sets = [problem.sources, *([] if problem.same else [problem.targets])]
        with times.phase("tree"):
            sizes, fill, deepest = aim.leaves
            shape = {"fill": fill, "deepest": deepest, "is_rounded": self._has_sizes(aim), "shares": aim.shares}
            grown_tree, root = kinds.boxes(comm, sets, sizes.size, space, **shape)
            tree = SharedTree.of(comm, grown_tree)
        with times.phase("lists"):
            boxes = RankBoxes.of(tree, root, points)
            edges, work = weights.of_leaves(boxes, self._weights(aim), points)
            imbalance = cuts.imbalance(comm, float(work.sum()))
        if imbalance <= (UNEVEN if aim.shares is None else MOVED):
            return boxes
        with times.phase("tree"):
            tree = SharedTree.cut(comm, grown_tree, cuts.by_work(comm, edges, work), sets, space)
        with times.phase("lists"):
            return RankBoxes.of(tree, root, points)

    def place(
        self, problem: RanksProblem, aim: Aim, structure: RankStructure, rhs: int, times: PhaseTimes
    ) -> SumOverRanks:  # fmt: skip
        """Place the steps of a right-hand side; collective.

        Raises
        ------
        MemoryError
            On all ranks, where the arrays of a rank would take more memory of its host than is free.
        """
        expansion = structure.expansion
        with times.phase("prepare"), agreed(self.comm, "compiling and allocating"):
            estimate.require(expansion.steps, structure.tree, self.space)
            placement = expansion.place(self.space)
            particles = expansion.particles
            return SumOverRanks(
                placement, particles.charges, particles.result, problem.with_points(None, None), structure
            )

    def _leaves(self, problem: RanksProblem, aim: Aim) -> Leaves:
        """Return the leaves that the first rank chooses: hosts of other ranks may have other costs."""
        return self.comm.bcast(super()._leaves(problem, aim))

    def _cloud(self, points: Array) -> RankCloud:
        return RankCloud(points, self, ranks.total(self.comm, points.shape[1]))

    def _made(self, aim: Aim) -> int:
        """Return the numbers of equivalent sources that a box has at each of its points."""
        return aim.linear.dens if aim.representation is None else aim.representation.equivalent

    def _weights(self, aim: Aim) -> FmmCosts:
        """Return the costs by which a tree is cut."""
        return self._costs(aim, aim.parameters.order)


class KifmmOverRanks(FmmOverRanks, Kifmm):
    """Kernel-independent method over ranks."""


class ChebyshevOverRanks(FmmOverRanks, Chebyshev):
    """Black-box method over ranks."""

    def _weights(self, aim: Aim) -> FmmCosts:
        return balance.interpolation_costs(aim.linear, aim.parameters.order, aim.dtype.name)

    def _met(self, nodes: OctNodes, lists: OctLists) -> Met:
        """Return the numbers of pairs of all ranks' particles."""
        own_counts = Met.of(nodes, lists)
        far, near = self.comm.allreduce(np.stack([own_counts.far, own_counts.near]))
        return replace(own_counts, far=far, near=near)


KINDS = {"kifmm": KifmmOverRanks, "chebyshev": ChebyshevOverRanks}
