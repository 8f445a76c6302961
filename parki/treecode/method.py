"""Treecodes as a method: parameters, trees and lists, and the steps of a sum."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from parki import all_pairs, engine, memory, prediction, scaling
from parki.arrays import PRECISIONS, Array
from parki.engine import Space, spaces
from parki.engine.steps import Steps
from parki.freespace import FreeProblem, FreeSum, TaskMethod
from parki.hints import short
from parki.prediction import Draft, PlanCost, Prediction
from parki.proxies import ProxyKernels
from parki.tasks import starpu
from parki.tasks.schedule import Schedule
from parki.tasks.scheduled import Scheduled
from parki.tasks.sizes import TaskSizes
from parki.timing import PhaseTimes
from parki.treecode import costs, interactions, params, work
from parki.treecode.interactions import FarPairRule
from parki.treecode.options import TreecodeOptions
from parki.treecode.params import Parameters, TreecodeQuestion
from parki.treecode.report import PHASES, PLANNED
from parki.treecode.steps import steps
from parki.treecode.structure import TreecodeStructure
from parki.trees import cluster, dual, lists, passes
from parki.trees.bysource import ListsBySource
from parki.trees.cluster import ClusterNodes
from parki.trees.dual import Pairs

ADVICE = "A larger leaf_size and batch_size, a smaller degree or theta, or a larger tolerance takes less."
EXCHANGED = {"pc": "cp", "cp": "pc"}  # methods of the transposed sum


class Treecode(TaskMethod):
    """Barycentric Lagrange treecodes, see `parki.treecode`."""

    options: TreecodeOptions
    reach = params.REACH
    phases, planned = PHASES, PLANNED
    runtimes: ClassVar = {starpu.PREFIX: starpu.check}

    @engine.settled()
    def choose(self, problem: FreeProblem) -> Parameters:
        """Compile the kernels that are launched before the steps are known; choose parameters."""
        self._compile(problem)
        return self._chosen(problem, self._apart(problem))

    def _compile(self, problem: FreeProblem) -> None:
        """Compile the kernels that are launched before the steps are known."""
        if not problem.empty:
            launches = passes.launches(cluster.workunits(problem.dtype, self.space))
            if problem.extent > 0 and not self.space.checks_accesses:  # the simulator leaves small sums to the host
                small = params.workunits(problem.linear, self.options.tolerance)
                launches += [(unit, unit.default_layouts(), None) for unit in small]
            engine.compile_for(launches, self.space)

    def _chosen(self, problem: FreeProblem, distance: float) -> Parameters:
        """Choose parameters for targets at a `distance` from sources."""
        options = self.options
        arguments = {
            name: getattr(options, name) for name in ("theta", "degree", "tolerance", "leaf_size", "batch_size")
        }
        question = self.question(problem, distance)
        return params.choose(question, **arguments, far=PRECISIONS.get(options.far_precision))

    def question(self, problem: FreeProblem, distance: float) -> TreecodeQuestion:
        """Return the sum for which parameters are chosen, with targets at a `distance` from sources."""
        n_min = min(problem.n_targets, problem.n_sources)
        facts = problem.extent, distance, n_min, problem.same, problem.dtype, self._probe()
        return TreecodeQuestion(problem.linear, self.options.method, *facts)

    def _apart(self, problem: FreeProblem) -> float:
        """Return the distance of targets from sources (`scaling.nearest`) if the parameters depend on it, else 0."""
        return self._nearest(problem.targets, problem.sources) if _has_lengths(problem) else 0.0

    def _nearest(self, x: Array, y: Array) -> float:
        """Return the distance of targets from sources."""
        return scaling.nearest(x, y, 0)

    def _probe(self) -> Space | None:
        """Return the space of sums that measure the kernel's interpolation, None for the host if this one is slow."""
        return None if self.space.checks_accesses else self.space

    def arrange(self, problem: FreeProblem, p: Parameters, times: PhaseTimes) -> tuple[Parameters, TreecodeStructure]:
        """Return the parameters, and trees and lists of targets and sources."""
        x, y, distance = problem.targets, problem.sources, self._apart(problem)
        t_size, s_size = sizes(p)
        with times.phase("tree"):
            sources = cluster.build(y, s_size, self.space)
            shared = problem.same and t_size == s_size
            targets = sources if shared else cluster.build(x, t_size, self.space)
        with times.phase("lists"):
            largest_coordinate = max(float(scaling.largest(a).max()) for a in (x, y))
            tiny, separation = least_distances(problem, largest_coordinate)
            pairs = traverse(targets.nodes, sources.nodes, p, separation)
            kernels, rule = self._rule(problem, p, distance)
            interaction_lists = interactions.build(ListsBySource.of(targets.nodes, sources.nodes, pairs), rule).only
        times.pairs = dict(zip(("pp", "pc", "cp", "cc"), interaction_lists.pairs, strict=True))
        return p, TreecodeStructure(kernels, targets, sources, interaction_lists, tiny, problem.same)

    def finish(self, draft: Draft) -> tuple[Parameters, TreecodeStructure]:
        """Return the parameters and the structure of a draft, which is whole."""
        return draft.parameters, draft.arranged

    def _rule(self, problem: FreeProblem, p: Parameters, distance: float) -> tuple[ProxyKernels, FarPairRule]:
        """Return the kernels of a sum, and the rule by which pairs are approximated."""
        linear = problem.linear
        hints = short(self.rounding(p.expected), linear.ours)
        kernels = ProxyKernels(linear, problem.dtype, np.dtype(p.far), p.degree + 1, hints)
        return kernels, self.question(problem, distance).rule(p, costs.grid(kernels))

    def place(
        self, problem: FreeProblem, p: Parameters, structure: TreecodeStructure, rhs: int, times: PhaseTimes
    ) -> FreeSum:
        """Compile and place the steps of a right-hand side.

        Raises
        ------
        MemoryError
            If the arrays would take more memory of the host than is free.
        """
        options = self.options
        with times.phase("lists"):
            sum_steps = steps(structure, TaskSizes(spaces.workers(self.space)) if options.tasks else None)
            self._require_memory(structure, sum_steps.steps)
        engine.compile_for(sum_steps.steps.units(self.space), self.space)
        with times.phase("lists"):
            all_steps = sum_steps.steps
            placement = (
                Scheduled(all_steps, self.space, options.schedule) if options.tasks else all_steps.place(self.space)
            )
            return FreeSum(placement, sum_steps.charges, sum_steps.u, problem.with_points(None, None))

    def _require_memory(self, s: TreecodeStructure, all_steps: Steps) -> None:
        """Raise if the arrays of steps that are not made yet take more memory of the host than is free."""
        if not self.space.own_memory:
            nbytes = sum(a.nbytes for a in all_steps.handles if a.values is not None)
            clusters = f"a treecode of {s.source.nodes} and {s.target.nodes} clusters"
            memory.require(all_steps.nbytes() - nbytes, clusters, ADVICE)

    def schedule(self, sums: FreeSum) -> Schedule | None:
        """Return the schedule of a sum that runs as tasks."""
        return Schedule(sums.placed) if isinstance(sums.placed, Scheduled) else None

    def transposed_options(self, p: Parameters) -> TreecodeOptions:
        """Return options that lead to the same parameters with targets and sources exchanged."""
        arguments = {"theta": p.theta, "degree": p.degree} if p.tolerance is None else {"tolerance": p.tolerance}
        arguments |= {"leaf_size": p.leaf_size, "batch_size": p.batch_size, "method": EXCHANGED.get(p.method, p.method)}
        return replace(self.options, **arguments, far_precision="single" if p.far == "float32" else "double")

    def predict(
        self, problem: FreeProblem, p: Parameters, structure: TreecodeStructure | None, nbytes: int
    ) -> Prediction:
        """Predict the time of a call."""
        return work.predict(structure, p, problem.dtype, self.space, nbytes)

    def cost(self, problem: FreeProblem, p: Parameters, limit: float | None = None) -> PlanCost:
        """Predict the seconds of a plan and of a call, by trees and lists that a plan may take."""
        seconds, draft = 0.0, None
        if not problem.empty:
            times = self.times(problem, p)
            draft = Draft(*self.arrange(problem, p, times), times)
            seconds = prediction.of_generic_pairs(self.space) * self.predict(problem, p, draft.arranged, 0).seconds
        making = prediction.making("treecode", problem.points)
        # errors of kernels with a length are measured once at each scale
        measuring = prediction.making("treecode of lengths", problem.points) - making if _has_lengths(problem) else 0.0
        return PlanCost(making, seconds, measuring, draft)


def sizes(p: Parameters) -> tuple[int, int]:
    """Return the largest numbers of points of a leaf of the targets' and the sources' tree."""
    return (p.leaf_size, p.batch_size) if p.method == "cp" else (p.batch_size, p.leaf_size)


def traverse(targets: ClusterNodes, sources: ClusterNodes, p: Parameters, separation: float) -> Pairs:
    """Return the pairs of nodes of a method."""
    far = {"separation": separation, "cubes": p.tolerance is not None}
    match p.method:
        case "dual":
            return dual.traverse(targets, sources, p.theta, **far)
        case "pc":
            return lists.traverse(targets, sources, p.theta, **far)
        case _:
            return lists.traverse(sources, targets, p.theta, **far).swapped()


def _has_lengths(problem: FreeProblem) -> bool:
    """Return whether parameters depend on the distance of targets from sources."""
    scale_free = problem.linear.law is not None and not problem.linear.parameters
    return not (scale_free or problem.empty)


def least_distances(problem: FreeProblem, largest_coordinate: float) -> tuple[float, float]:
    """Return the squared distance up to which points coincide, relative to the origin's, and the least of far pairs."""
    tiny = all_pairs.coincident(problem.dtype) if problem.kernel.singular else 0.0
    return tiny, max(problem.kernel.separation(), math.sqrt(3 * tiny) * largest_coordinate)  # grids skip no pairs
