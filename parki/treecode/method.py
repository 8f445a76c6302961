"""Treecodes as a method: parameters, trees and lists, and the steps of a sum over them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from parki import all_pairs, engine, memory, scaling
from parki.arrays import PRECISIONS
from parki.engine.spaces import Space
from parki.engine.steps import Steps
from parki.freespace import FreeMethod, FreeProblem, FreeSum, short
from parki.prediction import Prediction
from parki.proxies import ProxyKernels
from parki.timing import PhaseTimes
from parki.treecode import costs, interactions, params, work
from parki.treecode.options import TreecodeOptions
from parki.treecode.params import Parameters, TreecodeQuestion
from parki.treecode.report import PHASES, PLANNED
from parki.treecode.steps import steps
from parki.treecode.structure import TreecodeStructure
from parki.trees import cluster, dual, lists, passes
from parki.trees.bysource import ListsBySource

ADVICE = "A larger leaf_size and batch_size, a smaller degree or theta, or a larger tolerance takes less."
EXCHANGED = {"pc": "cp", "cp": "pc"}  # methods of the transposed sum


class Treecode(FreeMethod):
    """Barycentric Lagrange treecodes, see `parki.treecode`."""

    options: TreecodeOptions
    reach = params.REACH
    phases, planned = PHASES, PLANNED

    @engine.settled()
    def choose(self, problem: FreeProblem) -> Parameters:
        """Compile the kernels that are launched before the steps are known; choose parameters."""
        options = self.options
        if problem.n_targets and problem.n_sources:
            wanted = passes.launches(cluster.workunits(problem.dtype, self.space))
            if problem.extent > 0 and not self.space.checks_accesses:  # which leaves small sums to the host
                small = params.workunits(problem.linear, options.tolerance)
                wanted += [(unit, unit.default_layouts(), None) for unit in small]
            engine.compile_for(wanted, self.space)
        named = {name: getattr(options, name) for name in ("theta", "degree", "tolerance", "leaf_size", "batch_size")}
        lengths, fewest = _lengths(problem), min(problem.n_targets, problem.n_sources)
        asked = TreecodeQuestion(problem.linear, options.method, *lengths, fewest, problem.dtype, self._probe())
        return params.choose(asked, **named, far=PRECISIONS.get(options.far_precision))

    def _probe(self) -> Space | None:
        """Return the space of the small sums that measure how well the kernel is interpolated: a device, or None."""
        return self.space if self.space.own_memory else None

    def arrange(self, problem: FreeProblem, p: Parameters, times: PhaseTimes) -> tuple[Parameters, TreecodeStructure]:
        """Return the parameters, and trees and lists of targets and sources."""
        x, y, (extent, apart) = problem.targets, problem.sources, _lengths(problem)
        t_size, s_size = (p.leaf_size, p.batch_size) if p.method == "cp" else (p.batch_size, p.leaf_size)
        with times.phase("tree"):
            sources = cluster.build(y, s_size, self.space)
            shared = problem.same and t_size == s_size
            targets = sources if shared else cluster.build(x, t_size, self.space)
        with times.phase("lists"):
            tiny = all_pairs.coincident(problem.dtype) if problem.kernel.singular else 0.0
            farthest = max(float(scaling.largest(a).max()) for a in (x, y))
            separation = max(problem.kernel.separation(), math.sqrt(3 * tiny) * farthest)  # grids skip no pairs
            far = {"separation": separation, "cubes": p.tolerance is not None}
            match p.method:
                case "dual":
                    pairs = dual.traverse(targets.nodes, sources.nodes, p.theta, **far)
                case "pc":
                    pairs = lists.traverse(targets.nodes, sources.nodes, p.theta, **far)
                case _:
                    pairs = lists.traverse(sources.nodes, targets.nodes, p.theta, **far).swapped()
            linear = problem.linear
            kernels = ProxyKernels(linear, problem.dtype, np.dtype(p.far), p.degree + 1, short(p.expected))
            field_size = params.field_size(linear, extent, self._probe())
            fewest = min(problem.n_targets, problem.n_sources)
            difficulty = params.difficulty(linear, p, extent, apart, fewest, self._probe())
            rule = p.rule(field_size, difficulty, costs.grid(kernels))
            interacting = interactions.build(ListsBySource.of(targets.nodes, sources.nodes, pairs), rule).only
        times.pairs = dict(zip(("pp", "pc", "cp", "cc"), interacting.pairs, strict=True))
        return p, TreecodeStructure(kernels, targets, sources, interacting, tiny, problem.same)

    def place(
        self, problem: FreeProblem, p: Parameters, structure: TreecodeStructure, rhs: int, times: PhaseTimes
    ) -> FreeSum:
        """Compile and place the steps of a right-hand side.

        Raises
        ------
        MemoryError
            Where the arrays would take more memory of the host than is free.
        """
        with times.phase("lists"):
            listed = steps(structure)
            self._require_memory(structure, listed.steps)
        engine.compile_for(listed.steps.units(), self.space)
        with times.phase("lists"):
            return FreeSum(listed.steps.place(self.space), listed.charges, listed.u, problem.with_points(None, None))

    def _require_memory(self, s: TreecodeStructure, needed: Steps) -> None:
        """Refuse steps whose arrays, those that are there already apart, take more memory of the host than is free."""
        if not self.space.own_memory:
            there = sum(a.nbytes for a in needed.handles if a.values is not None)
            clusters = f"a treecode of {s.source.nodes} and {s.target.nodes} clusters"
            memory.require(needed.nbytes() - there, clusters, ADVICE)

    def transposed_options(self, p: Parameters) -> TreecodeOptions:
        """Return options that lead to the same parameters, targets and sources exchanged."""
        given = {"theta": p.theta, "degree": p.degree} if p.tolerance is None else {"tolerance": p.tolerance}
        given |= {"leaf_size": p.leaf_size, "batch_size": p.batch_size, "method": EXCHANGED.get(p.method, p.method)}
        return replace(self.options, **given, far_precision="single" if p.far == "float32" else "double")

    def predict(
        self, problem: FreeProblem, p: Parameters, structure: TreecodeStructure | None, held: int
    ) -> Prediction:
        """Predict the time of a call."""
        return work.predict(structure, p, problem.dtype, self.space, held)


def _lengths(problem: FreeProblem) -> tuple[float, float]:
    """Return half the longest side around all points, and targets' distance from sources (`scaling.nearest`)."""
    scale_free = problem.linear.law is not None and not problem.linear.parameters
    some = problem.n_targets and problem.n_sources
    apart = 0.0 if scale_free or not some else scaling.nearest(problem.targets, problem.sources, 0)
    return problem.extent, apart
