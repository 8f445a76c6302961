"""Treecodes over ranks as a method."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from parki import engine, ranks, scaling
from parki.arrays import Array
from parki.distributed import freespace
from parki.distributed.agreement import agreed
from parki.distributed.freespace import FreeOverRanks, RanksProblem, SumOverRanks
from parki.distributed.treecode.lists import RankLists
from parki.distributed.treecode.structure import SharedStructure, structure
from parki.distributed.trees import cuts, kinds
from parki.distributed.trees.growth import Grown
from parki.distributed.trees.shared import SharedTree
from parki.freespace import FreeMethod, FreeProblem
from parki.timing import PhaseTimes
from parki.treecode.interactions import FarPairRule
from parki.treecode.method import Treecode, least_distances, sizes
from parki.treecode.params import Parameters
from parki.treecode.steps import steps

EVEN = 1.03  # largest over mean work up to which cuts between equal numbers of points stay: new cuts cost a plan more
BALANCED = 1.05  # the same for cuts by the work of points before they moved


@dataclass(frozen=True)
class SharedParameters(Parameters):
    """Parameters of a treecode over ranks.

    Attributes
    ----------
    shares : tuple of float
        Shares of all places of targets at which ranks begin and end; empty before there are cuts.
    """

    shares: tuple[float, ...] = ()


def over(method: Treecode) -> FreeMethod:
    """Return treecodes over the ranks of their options' communicator; the method itself for a single rank."""
    return freespace.over(method, TreecodeOverRanks)


class TreecodeOverRanks(FreeOverRanks, Treecode):
    """Barycentric Lagrange treecodes over the ranks of a communicator."""

    @engine.settled()
    def choose(self, problem: RanksProblem) -> SharedParameters:
        """Compile the kernels that are launched before the steps are known; choose parameters on the first rank."""
        with agreed(self.comm, "compiling"):
            self._compile(problem)
        distance = self._apart(problem)
        p = ranks.of_first(self.comm, "choosing parameters", lambda: self._chosen(problem.whole, distance))
        return SharedParameters(**{f.name: getattr(p, f.name) for f in fields(p)})

    def _nearest(self, x: Array, y: Array) -> float:
        """Estimate `scaling.nearest` from samples of all ranks' points, as large as one process takes; collective."""
        counts = [int(n) for n in self.comm.allreduce(np.array([x.shape[1], y.shape[1]], np.int64))]
        sizes = scaling.SOME_TARGETS, scaling.SOME_SOURCES
        samples = [self.sample(a, -(-n // size)) for a, n, size in zip((x, y), counts, sizes, strict=True)]
        return scaling.nearest_of_some(*(a.astype(np.float64) for a in samples), counts[1], x is y)

    def arrange(
        self, problem: RanksProblem, p: SharedParameters, times: PhaseTimes
    ) -> tuple[SharedParameters, SharedStructure]:
        """Return the parameters, and this rank's part of trees and lists."""
        comm, x, y, distance = self.comm, problem.targets, problem.sources, self._apart(problem)
        t_size, s_size = sizes(p)
        shared, shares = problem.same and t_size == s_size, np.array(p.shares) if p.shares else None
        with times.phase("tree"):
            targets = kinds.clusters(comm, x, t_size, self.space, shares)
            sources = targets if shared else kinds.clusters(comm, y, s_size, self.space)
        with times.phase("lists"):
            largest_coordinate = float(comm.allreduce(max(float(scaling.largest(a).max()) for a in (x, y)), "max"))
            tiny, separation = least_distances(problem, largest_coordinate)
            with agreed(comm, "choosing pairs"):
                kernels, rule = self._rule(problem.whole, p, distance)
            parts, lists = self._cut(targets, sources, x, (p, rule, separation), BALANCED if p.shares else EVEN)
            source_copy = y.copy()  # the caller's array may change
            own_problem = problem.with_points(source_copy if problem.same else x.copy(), source_copy)
            own_structure = structure(kernels, parts, lists, tiny, own_problem, self.space)
        times.pairs = dict(zip(("pp", "pc", "cp", "cc"), own_structure.lists.pairs, strict=True))
        return replace(p, shares=tuple((parts[0].cuts / parts[0].cuts[-1]).tolist())), own_structure

    def _cut(
        self, targets: Grown, sources: Grown, x: Array, rule: tuple[Parameters, FarPairRule, float], even: float
    ) -> tuple[tuple[SharedTree, SharedTree], RankLists]:
        """Return the parts of the trees and lists, cut again where the largest work exceeds `even` times the mean."""
        comm, shared = self.comm, sources is targets
        target_part = SharedTree.of(comm, targets)
        parts = target_part, target_part if shared else SharedTree.of(comm, sources)
        lists = RankLists.of(*parts, *rule)
        leaves = target_part.leaves
        edges = np.append(leaves["begin"], leaves["begin"][-1:] + leaves["count"][-1:])
        work = lists.work(edges) if len(leaves) else np.empty(0)
        if cuts.imbalance(comm, float(work.sum())) <= even:
            return parts, lists
        places = cuts.by_work(comm, np.stack([edges, edges], axis=1), work)
        target_part = SharedTree.cut(comm, targets, places, [x], self.space)
        parts = target_part, target_part if shared else parts[1]
        return parts, RankLists.of(*parts, *rule)

    def place(
        self, problem: FreeProblem, p: Parameters, structure: SharedStructure, rhs: int, times: PhaseTimes
    ) -> SumOverRanks:
        """Compile and place the steps of a right-hand side."""
        with times.phase("lists"), agreed(self.comm, "compiling and allocating"):
            sum_steps = steps(structure)
            self._require_memory(structure, sum_steps.steps)
            engine.compile_for(sum_steps.steps.units(self.space), self.space)
            placement = sum_steps.steps.place(self.space)
            return SumOverRanks(placement, sum_steps.charges, sum_steps.u, problem.with_points(None, None), structure)

    def public(self, problem: FreeProblem, p: Parameters) -> Any:
        """Return the parameters without the shares of ranks."""
        return Parameters(**{f.name: getattr(p, f.name) for f in fields(Parameters)})
