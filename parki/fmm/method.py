"""Fast multipole methods as methods of plans: orders, octrees and lists, and expansions of two kinds."""

from __future__ import annotations

import contextlib
import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parki import engine, prediction, ranks, scaling
from parki.arrays import Array
from parki.engine import spaces
from parki.fmm import (
    balance,
    estimate,
    limits,
    params,
    scheduling,
    work,
)
from parki.fmm.balance import Cloud, LeafSizes
from parki.fmm.expansion import Expansion
from parki.fmm.options import FmmOptions
from parki.fmm.params import Parameters
from parki.fmm.report import PHASES, PLANNED
from parki.fmm.representations import Representation, softened
from parki.fmm.scheduling import ScheduleChoice
from parki.fmm.structure import FmmStructure
from parki.freespace import FreeProblem, FreeSum, TaskMethod
from parki.pairs import Pair
from parki.prediction import Draft, PlanCost, Prediction
from parki.tasks import starpu
from parki.tasks.schedule import Schedule
from parki.tasks.scheduled import Scheduled
from parki.timing import PhaseTimes
from parki.trees import octlists, octree, passes
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes, Octree

MANY_CORES = 16  # cores from which barriers between phases cost more than the time to look: 2 to 5 % on 16, simulated
HARDER = {
    "stokes_dl", "stokes_comb", "stokes_grad", "stokes_pressure", "laplace_grad", "laplace_dipole", "rotlet",
    "rpy_rotation", "stokes_dipole",
}  # fmt: skip
FINE = 1e-8  # tolerance below which gradients of crowded points need one more point per edge than others
AWAY = 4.0  # distances between sources, from which targets count as away from them
AWAY_SHARE = 1e-3  # share of the tolerance that is then aimed at
APART = 0.95  # sides of a box: between its two surfaces, the least distance that expansions meet


class Leaves(NamedTuple):
    """Sizes of the leaves of a tree; boxes across all points on its last level, or None; and that level."""

    sizes: LeafSizes
    fill: float | None
    deepest: int


@dataclass(frozen=True, eq=False)
class Aim:
    """Sum that a tree is made for, and its parameters.

    Attributes
    ----------
    linear : Pair
    dtype : dtype
    representation : Representation or None
        Equivalent sources and check values of the kernel; None where expansions interpolate.
    tolerance : float or None
        Tolerance of the options, or less where targets are away from nearly neutral sources; None where the order is
        given.
    parameters : Parameters
    left : float
        For interpolation, the share of fields that does not cancel if charges add up to 0.
    shares : array (P + 1,), optional
        For a sum over ranks, the shares of the tree's places at which the parts of the last points began.
    schedule : ScheduleChoice or None
        How units share the tasks; None for phases.
    leaves : Leaves or None
        Leaves of the tree; None without points.
    """

    linear: Pair
    dtype: np.dtype[Any]
    representation: Representation | None
    tolerance: float | None
    parameters: Parameters
    left: float = 1.0
    shares: NDArray[np.float64] | None = None
    schedule: ScheduleChoice | None = None
    leaves: Leaves | None = None


class Fmm(TaskMethod):
    """A fast multipole method on an adaptive octree, see `parki.fmm`."""

    options: FmmOptions
    comm: ClassVar[Any] = None  # None: a sum of one process
    reach = params.REACH
    phases, planned = PHASES, PLANNED
    runtimes: ClassVar = {starpu.PREFIX: starpu.check}

    @cached_property
    def asked(self) -> float | None:
        """Return the tolerance of the options, None where the order is given."""
        o = self.options
        return params.TOLERANCE if o.tolerance is None and o.order is None else o.tolerance

    def asked_space(self, points: Any) -> tuple[Any, int | None]:
        """Return the space of the options (of several spaces, the one with the plan's arrays), and its threads."""
        if self._alone:
            return self.options.execution_space, self.options.threads
        is_single = getattr(points, "dtype", None) == np.float32
        return scheduling.space_of(self.options, "float32" if is_single else "float64")

    @property
    def _alone(self) -> bool:
        """Tell whether one space does the whole sum."""
        return self.options.devices is None and not isinstance(self.options.execution_space, tuple)

    @engine.settled()
    def choose(self, problem: FreeProblem) -> Aim:
        """Compile the kernels that run before the steps are known; choose an order and the size of leaves."""
        with self._together("compiling"):
            if not problem.empty:
                self._compile(problem, passes.launches(octree.workunits(problem.dtype, self.space)))
        tolerance = self.asked
        if tolerance is not None and not (problem.same or problem.empty) and _away(*self._clouds(problem)):
            tolerance = min(tolerance, max(AWAY_SHARE * tolerance, params.REACH["float64"]))
        with self._together("choosing parameters"):
            representation = self._representation(problem)
            order = self.options.order or self._order(problem.linear, tolerance)
            leaf = self.options.leaf_size or self._leaf_size(order, representation)
        parameters = Parameters(self.name, order, leaf, self.asked)
        error = parameters.expected if tolerance is None else tolerance
        parameters = replace(parameters, far=self._far(error, problem.dtype.name))
        aim = Aim(problem.linear, problem.dtype, representation, tolerance, parameters)
        return aim if problem.empty else replace(aim, leaves=self._leaves(problem, aim))

    def _together(self, action: str) -> contextlib.AbstractContextManager[Any]:
        """Return the context of work whose errors are those of all ranks."""
        return ranks.ALONE if self.comm is None else ranks.together(self.comm, action)

    def kept(self, old: FreeProblem, new: FreeProblem, parameters: Aim) -> None:
        """Return None: parameters are chosen anew for moved points, as leaves and orders depend on their places."""

    def arrange(self, problem: FreeProblem, aim: Aim, times: PhaseTimes) -> tuple[Aim, FmmStructure]:
        """Return the aim with refined parameters, and tree, lists and expansions.

        Raises
        ------
        MemoryError
            If the values of all boxes would take more memory of the host than is free.
        """
        return self.finish(self._drafted(problem, aim, times))

    def _drafted(self, problem: FreeProblem, aim: Aim, times: PhaseTimes, limit: float | None = None) -> Draft:
        """Return the aim with refined parameters for at most `limit` seconds of tables, with tree and lists."""
        with times.phase("tree"):
            tree = self._tree(problem, aim)
        with times.phase("lists"):
            lists = octlists.lists(tree.nodes, self._points(aim.parameters.order)).only
        with times.phase("prepare"):
            aim = self._refined(aim, tree.nodes, lists, limit)
        return Draft(aim, (tree, lists), times)

    def finish(self, draft: Draft) -> tuple[Aim, FmmStructure]:
        """Return the aim with a schedule, and the structure of a draft's tree and lists, with expansions.

        Raises
        ------
        MemoryError
            If the values of all boxes would take more memory of the host than is free.
        """
        aim, (tree, lists), times = draft
        with times.phase("prepare"):
            aim = replace(aim, schedule=self._schedule(aim, tree, lists))
            expansion = self._expanded(aim, tree, lists)
        times.pairs = self._pairs(tree.nodes, lists, aim.parameters.order)
        return aim, FmmStructure(tree, lists, aim.representation, expansion)

    def _tree(self, problem: FreeProblem, aim: Aim) -> Octree:
        """Return the tree of the points."""
        sizes, fill, deepest = aim.leaves
        targets, shape = None if problem.same else problem.targets, {"fill": fill, "deepest": deepest}
        return octree.build(problem.sources, targets, sizes.size, self.space, is_rounded=self._has_sizes(aim), **shape)

    def _clouds(self, problem: FreeProblem) -> tuple[Cloud, Cloud]:
        """Return the targets and the sources, one object if they are the same."""
        y = self._cloud(problem.sources)
        return (y if problem.same else self._cloud(problem.targets)), y

    def _cloud(self, points: Array) -> Cloud:
        return Cloud(points)

    def _leaves(self, problem: FreeProblem, aim: Aim) -> Leaves:
        """Return the sizes of leaves and the last level."""
        x, y = self._clouds(problem)
        sizes, across = LeafSizes(aim.parameters.leaf_size, None), _across(self._separation(aim), x, y)
        if self.options.leaf_size is None:
            sizes = balance.leaves(x, y, sizes.size, self._sum_costs(problem, aim), across)
        fill = sizes.fill if sizes.fill or not 1 < across < math.inf else across
        return Leaves(sizes, fill, octree.levels_of(across, fill))

    def _separation(self, aim: Aim) -> float:
        """Return the distance that particles which meet through expansions must exceed.

        Far from nearly neutral sources errors of softening cancel as their fields do, so the options' tolerance counts.
        """
        if aim.representation is None:
            return aim.linear.separation()
        return aim.representation.separation(self.asked or aim.parameters.expected)

    def _expanded(self, aim: Aim, tree: Octree, lists: OctLists) -> Expansion:
        """Return the steps of the sum, if there is memory for the values of all boxes."""
        if components := self._components(aim, tree, lists):
            estimate.require_values(tree, self._points(aim.parameters.order), components, self.space)
        return self._expansion(aim, tree, lists)

    def _schedule(self, aim: Aim, tree: Octree, lists: OctLists) -> ScheduleChoice | None:
        """Return how units share the sum; None if its phases follow each other and no reason is reported."""
        options, dtype = self.options, aim.dtype.name
        has_few_cores = options.schedule == "auto" and spaces.workers(self.space) < MANY_CORES
        if self._alone and (has_few_cores or options.schedule == "phases"):
            return None
        choice = scheduling.without_model(options, self.space, dtype)
        if choice is not None:
            return choice
        tasks = self._expansion(replace(aim, schedule=ScheduleChoice(scheduling.BEST)), tree, lists)
        structure = FmmStructure(tree, lists, aim.representation, tasks)
        return scheduling.modelled(options, self.space, dtype, structure, aim.parameters)

    def _pairs(self, nodes: OctNodes, lists: OctLists, order: int) -> dict[str, float]:
        """Return the evaluations of the kernel by phase."""
        n_trg, n_src = (spans.count.astype(np.int64) for spans in (nodes.targets, nodes.sources))  # BLAS has threads
        pairs = float(n_trg[lists.w_t].sum() + n_src[lists.x_s].sum()) * self._points(order)
        return {"near": float(n_trg[lists.u_t] @ n_src[lists.u_s]), "p2l_m2p": pairs}

    def place(self, problem: FreeProblem, aim: Aim, structure: FmmStructure, rhs: int, times: PhaseTimes) -> FreeSum:
        """Place the steps of a right-hand side.

        Raises
        ------
        MemoryError
            If the arrays would take more memory of the host than is free.
        """
        expansion = structure.expansion
        with times.phase("prepare"):
            estimate.require(expansion.steps, structure.tree, self.space)
            arguments: tuple[Any, ...] = ()
            if (choice := aim.schedule) is not None and choice.as_tasks:
                facts = self.options, self.space, aim.dtype.name, structure, aim.parameters
                arguments = choice.order, scheduling.with_model(choice, *facts)
            placement = expansion.place(self.space, *arguments)
        particles = expansion.particles
        return FreeSum(placement, particles.charges, particles.result, problem.with_points(None, None))

    def schedule(self, sums: FreeSum) -> Schedule | None:
        """Return the schedule of a sum that runs as tasks."""
        return Schedule(sums.placed) if isinstance(sums.placed, Scheduled) else None

    def transposed_options(self, aim: Aim) -> FmmOptions:
        """Return the options of the transposed sum: the same tolerance or order, and size of leaves."""
        return replace(self.options, tolerance=self.asked)

    def expected(self, aim: Aim) -> float:
        """Return the relative error that a sum is expected to have."""
        return aim.parameters.expected

    def public(self, problem: FreeProblem, aim: Aim) -> Parameters:
        """Return the parameters, which have no lengths."""
        return aim.parameters

    def describe(self, problem: FreeProblem, aim: Aim, prediction: Prediction) -> dict[str, str]:
        """Describe a plan in a few lines."""
        lines = super().describe(problem, aim.parameters, prediction)
        if (choice := aim.schedule) is not None and (choice.as_tasks or choice.why):
            lines["schedule"] = choice.said(spaces.workers(self.space))
        return lines

    def predict(self, problem: FreeProblem, aim: Aim, structure: FmmStructure | None, nbytes: int) -> Prediction:
        """Predict the time of a call."""
        return work.predict(structure, aim.parameters, problem.dtype, self.space, nbytes)

    def cost(self, problem: FreeProblem, aim: Aim, limit: float | None = None) -> PlanCost:
        """Predict the seconds of a plan and of a call.

        Raises
        ------
        ValueError
            For interpolation with a tolerance that needs too many points, or tables that take more than the limit.
        """
        return PlanCost(prediction.making("fmm", 0), 0.0) if problem.empty else self._cost(problem, aim, limit)

    # Parameters -------------------------------------------------------------------------------------------------------
    def _order(self, linear: Pair, tolerance: float) -> int:
        """Return the points per edge for a tolerance; for interpolation a first guess, for the size of leaves."""
        increase = 0
        if self._is_harder:
            increase = 1 if tolerance > FINE else 2 + softened(self.kernel)  # softened close pairs do not hide errors
        if not linear.ours:  # a caller's own kernel: vectors need more than the flows known here
            increase = 1 if linear.result == 1 else 2
        return params.order(tolerance, increase)

    @property
    def _is_harder(self) -> bool:
        """Tell whether sums need more digits than potentials, as far fields are small beside the parts that add up."""
        return bool(self.gradient) or self.kernel.name in HARDER

    def _leaf_size(self, order: int, representation: Representation | None) -> int:
        """Return the points of a leaf that suit a cube of uniform points."""
        return params.leaf_size(self.name, order, 1 if representation is None else representation.check)

    # Two kinds of expansions ------------------------------------------------------------------------------------------
    @abstractmethod
    def _representation(self, problem: FreeProblem) -> Representation | None:
        """Return equivalent sources and check values of the kernel; None if expansions interpolate."""

    @abstractmethod
    def _compile(self, problem: FreeProblem, trees: list[Any]) -> None:
        """Compile the launches of trees, and the kernels that make operators, on the host."""

    def _far(self, error: float, dtype: str) -> str:
        """Return the type of the transforms by which boxes meet: that of the points."""
        return dtype

    @abstractmethod
    def _points(self, order: int) -> int:
        """Return the number of points of a box's values."""

    def _costs(self, aim: Aim, order: int) -> balance.FmmCosts | None:
        """Return the costs by which leaves are chosen; None for the size that suits a cube."""
        return None

    def _sum_costs(self, problem: FreeProblem, aim: Aim) -> balance.FmmCosts | None:
        """Return the costs of a sum; None without costs.  Schedules and ranks do not change them, nor so the leaves."""
        costs = self._costs(aim, aim.parameters.order)
        is_one_set = problem.same and limits.of(self.space).parts > 0
        return balance.of_one_set(costs, aim.linear) if costs is not None and is_one_set else costs

    def _refined(self, aim: Aim, nodes: OctNodes, lists: OctLists, limit: float | None = None) -> Aim:
        """Return the aim with the parameters for a tree, whose tables may take at most `limit` seconds."""
        sizes = aim.leaves.sizes
        return replace(aim, parameters=replace(aim.parameters, leaf_size=sizes.size, fill=sizes.fill))

    @abstractmethod
    def _has_sizes(self, aim: Aim) -> bool:
        """Return whether boxes of each size need tables of their own."""

    @abstractmethod
    def _cost(self, problem: FreeProblem, aim: Aim, limit: float | None) -> PlanCost:
        """Predict the seconds of a plan and of a call for some targets and sources."""

    @abstractmethod
    def _components(self, aim: Aim, tree: Octree, lists: OctLists) -> int:
        """Return the number of values at each point of a box; 0 if no box has expansions."""

    @abstractmethod
    def _expansion(self, aim: Aim, tree: Octree, lists: OctLists) -> Expansion:
        """Return the steps of the sum."""


def _away(x: Cloud, y: Cloud) -> bool:
    """Return whether targets are away from the sources, where nearly neutral sources leave little field."""
    return _apart(x, y) > AWAY * _apart(y, y) > 0


def _apart(x: Cloud, y: Cloud) -> float:
    """Estimate the distance of targets from sources, as `scaling.nearest` does."""
    strides = -(-x.n // scaling.SOME_TARGETS), -(-y.n // scaling.SOME_SOURCES)
    samples = [cloud.on_host(stride) for cloud, stride in zip((x, y), strides, strict=True)]
    return scaling.nearest_of_some(samples[0], samples[1], y.n, x is y)


def _across(separation: float, x: Cloud, y: Cloud) -> float:
    """Return the number of boxes across all points whose sides are `separation`: apart boxes are one side apart."""
    return APART * max(balance.sides(x, y)) / separation if separation else math.inf
