"""Two kinds of fast multipole methods: equivalent sources on surfaces, and Chebyshev interpolation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from parki import engine, prediction
from parki.arrays import PRECISIONS
from parki.engine import spaces
from parki.fmm import balance, chebyshev_m2l, chebyshev_order, limits, params, representations, surfaces
from parki.fmm.chebyshev_expansion import chebyshev_expansion
from parki.fmm.chebyshev_order import Met
from parki.fmm.expansion import Expansion
from parki.fmm.method import Aim, Fmm
from parki.fmm.occupied_boxes import TreeSizes
from parki.fmm.representations import Representation
from parki.fmm.surface_expansion import any_far, surface_expansion
from parki.freespace import FreeProblem
from parki.prediction import PlanCost
from parki.tasks.sizes import TaskSizes
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes, Octree

COMPRESS = 0.1  # error of compressed translations, relative to the tolerance
OPERATOR_SECONDS, OPERATOR_POWER = 1.6e-5, 3.7  # of making the operators of a level, by points per edge (two cores)
SINGLE = 5e-4  # tolerance that operators of float32 are made for: singular values below 5e-7 are noise


class Kifmm(Fmm):
    """Kernel-independent method: equivalent sources on surfaces around boxes."""

    def _representation(self, problem: FreeProblem) -> Representation:
        return representations.find(problem.kernel)

    def _compile(self, problem: FreeProblem, trees: list[Any]) -> None:
        engine.compile_for(trees, self.space, on_host=representations.workunits(problem.kernel))

    def _points(self, order: int) -> int:
        return surfaces.count(order)

    def _costs(self, aim: Aim, order: int) -> balance.FmmCosts:
        return balance.costs(aim.representation, aim.linear, order, aim.dtype.name, aim.parameters.far)

    def _far(self, error: float, dtype: str) -> str:
        if (far := PRECISIONS.get(self.options.far_precision)) is not None:
            return far
        return "float32" if self.rounding(error) >= self.single_reach else dtype

    @property
    def single_reach(self) -> float:
        """Return the least relative error with transforms in single precision."""
        return params.HARDER_SINGLE if self._is_harder or not self.kernel.ours else params.SINGLE

    def _has_sizes(self, aim: Aim) -> bool:
        return aim.representation.per_level

    def _cost(self, problem: FreeProblem, aim: Aim, limit: float | None) -> PlanCost:
        (x, y), sizes = self._clouds(problem), aim.leaves.sizes
        counts = balance.counted(x, y, sizes)
        kind, making = ("even", "fmm") if sizes.is_even else ("uneven", "uneven fmm")
        seconds = self._sum_costs(problem, aim).of(counts, (x.n + y.n) / 2)
        call = balance.taken(seconds, kind, aim.linear, problem.dtype.name, self.space)
        level = OPERATOR_SECONDS * aim.parameters.order**OPERATOR_POWER
        operators = counts.levels * level if self._has_sizes(aim) else 0.0
        return PlanCost(prediction.making(making, problem.points), call, operators)

    def _components(self, aim: Aim, tree: Octree, lists: OctLists) -> int:
        if not any_far(tree, lists):
            return 0
        return aim.representation.check + 2 * aim.representation.equivalent  # equivalents are also kept as class values

    def _expansion(self, aim: Aim, tree: Octree, lists: OctLists) -> Expansion:
        p = aim.parameters
        cut = p.expected if aim.tolerance is None else aim.tolerance
        types = {"error": self.rounding(cut), "far": p.far}
        if aim.dtype == np.float32:
            cut = max(cut, SINGLE)
        team_limits = limits.of(self.space)
        if aim.schedule is not None and aim.schedule.as_tasks:
            devices = len(aim.schedule.units.devices)
            sizes = TaskSizes.of(spaces.workers(self.space), len(tree.nodes.octet_parent), devices)
            team_limits = replace(limits.DEVICE if devices else team_limits, tasks=sizes)
        return surface_expansion(tree, lists, aim.representation, p.order, team_limits, tolerance=cut, **types)


class Chebyshev(Fmm):
    """Black-box method: interpolation at Chebyshev points of boxes."""

    def _representation(self, problem: FreeProblem) -> None:
        return None

    def _compile(self, problem: FreeProblem, trees: list[Any]) -> None:
        engine.compile_for(trees, self.space, on_host=[representations.unit(problem.linear)])

    def _points(self, order: int) -> int:
        return order**3

    def _met(self, nodes: OctNodes, lists: OctLists) -> Met:
        """Return the numbers of pairs of particles by the boxes through which they meet."""
        return Met.of(nodes, lists)

    def _cost(self, problem: FreeProblem, aim: Aim, limit: float | None) -> PlanCost:
        draft = self._drafted(problem, aim, self.times(problem, aim), limit)
        aim, (tree, lists), _ = draft
        nodes, order = tree.nodes, aim.parameters.order
        tables = self._tables(aim, nodes, lists)
        costs = balance.interpolation_costs(aim.linear, order, aim.dtype.name)
        octets = len(nodes.octet_parent) - nodes.octet_begin[min(1, nodes.depth)]
        pairs = sum(self._pairs(nodes, lists, order).values())
        seconds = costs.of(TreeSizes(pairs, float(octets), 0.0, nodes.depth), max(problem.n_targets, problem.n_sources))
        call = balance.taken(seconds, "interpolation", aim.linear, problem.dtype.name, self.space)
        return PlanCost(prediction.making("uneven fmm", problem.points), call, tables[order], draft)

    def _tables(self, aim: Aim, nodes: OctNodes, lists: OctLists) -> dict[int, float]:
        """Return the seconds of making the tables of a tree that are not kept, by points per direction."""
        halves = (0.5 * np.unique(nodes.half[nodes.octet_parent[lists.v_t]])).tolist()
        cut = self._cut(aim)
        return {order: chebyshev_m2l.seconds(aim.linear, order, halves, cut) for order in chebyshev_order.ORDERS}

    def _refined(self, aim: Aim, nodes: OctNodes, lists: OctLists, limit: float | None = None) -> Aim:
        aim = super()._refined(aim, nodes, lists, limit)
        if aim.tolerance is None:
            return aim
        counts, bound = self._met(nodes, lists), params.MOST_ORDER
        aim = replace(aim, left=chebyshev_order.left(aim.linear, counts))
        if limit is not None:  # errors are not measured at orders whose tables take too long
            tables = self._tables(aim, nodes, lists)
            bound = max((order for order, seconds in tables.items() if seconds <= limit), default=0)
        order = chebyshev_order.order(aim.linear, aim.tolerance, counts, bound)
        return replace(aim, parameters=replace(aim.parameters, order=order))

    def _cut(self, aim: Aim) -> float:
        """Return the share of a translation's largest singular value below which others are left out."""
        if aim.tolerance is None:
            return 10.0**-aim.parameters.order
        # powers of 2, so that points which move a little keep their tables
        return COMPRESS * aim.tolerance * 2.0 ** math.floor(math.log2(aim.left))

    def _has_sizes(self, aim: Aim) -> bool:
        return representations.exponents(aim.linear) is None

    def _components(self, aim: Aim, tree: Octree, lists: OctLists) -> int:
        return aim.linear.dens + aim.linear.result

    def _expansion(self, aim: Aim, tree: Octree, lists: OctLists) -> Expansion:
        as_tasks = aim.schedule is not None and aim.schedule.as_tasks
        tasks = TaskSizes(spaces.workers(self.space)) if as_tasks else None
        parts, order = 0 if as_tasks else limits.of(self.space).parts, aim.parameters.order
        return chebyshev_expansion(tree, lists, aim.linear, order, eps=self._cut(aim), tasks=tasks, parts=parts)


KINDS = {"kifmm": Kifmm, "chebyshev": Chebyshev}
