"""Fast multipole methods as methods of plans: orders, octrees and lists, and expansions of two kinds."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from parki import engine, scaling
from parki.arguments import Arguments
from parki.fmm import balance, chebyshev_order, estimate, limits, params, representations, surfaces, work
from parki.fmm.chebyshev_expansion import chebyshev_expansion
from parki.fmm.expansion import Expansion
from parki.fmm.options import FmmOptions
from parki.fmm.params import Parameters
from parki.fmm.report import PHASES, PLANNED
from parki.fmm.representations import Representation
from parki.fmm.structure import FmmStructure
from parki.fmm.surface_expansion import any_far, surface_expansion
from parki.freespace import FreeMethod, FreeProblem, FreeSum, short
from parki.pairs import Pair
from parki.prediction import Prediction
from parki.timing import PhaseTimes
from parki.trees import octlists, octree, passes
from parki.trees.octlists import OctLists
from parki.trees.octree import Octree

COMPRESS = 0.1  # error of compressed translations over the tolerance
SINGLE = 5e-4  # tolerance that operators of float32 are made for: singular values below 5e-7 are noise
HARDER = {"stokes_dl", "stokes_comb", "stokes_grad", "stokes_pressure", "laplace_grad", "laplace_dipole", "rotlet"}
FINE = 1e-8  # tolerance from which on gradients of crowded points need one more point per edge than others
AWAY = 4.0  # distances of the sources, from which on targets are away from them
AWAY_SHARE = 1e-3  # of the tolerance, that is aimed at then
APART = 0.95  # of the half side of a box: from its sources to surfaces of boxes that are not next to it


@dataclass(frozen=True, eq=False)
class Aim:
    """The sum that a tree is made for, and its parameters.

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
    """

    linear: Pair
    dtype: np.dtype[Any]
    representation: Representation | None
    tolerance: float | None
    parameters: Parameters


class Fmm(FreeMethod):
    """A fast multipole method on an adaptive octree, see `parki.fmm`."""

    options: FmmOptions
    reach = params.REACH
    phases, planned = PHASES, PLANNED

    @cached_property
    def asked(self) -> float | None:
        """Return the tolerance of the options, None where the order is given."""
        o = self.options
        return params.TOLERANCE if o.tolerance is None and o.order is None else o.tolerance

    @engine.settled()
    def choose(self, problem: FreeProblem) -> Aim:
        """Compile the kernels that run before the steps are known; choose an order and the size of leaves."""
        if problem.n_targets and problem.n_sources:
            self._compile(problem, passes.launches(octree.workunits(problem.dtype, self.space)))
        tolerance = self.asked
        if tolerance is not None and _away(problem):
            tolerance = min(tolerance, max(AWAY_SHARE * tolerance, params.REACH["float64"]))
        representation = self._representation(problem)
        order = self.options.order or self._order(problem.linear, tolerance)
        leaf = self.options.leaf_size or self._leaf_size(order, representation)
        parameters = Parameters(self.name, order, leaf, self.asked, None)
        return Aim(problem.linear, problem.dtype, representation, tolerance, parameters)

    def kept(self, old: FreeProblem, new: FreeProblem, parameters: Aim) -> None:
        """Have the parameters of moved points chosen: leaves and orders depend on how points lie."""

    def arrange(self, problem: FreeProblem, aim: Aim, times: PhaseTimes) -> tuple[Aim, FmmStructure]:
        """Return the aim with refined parameters, and tree, lists and expansions.

        Raises
        ------
        MemoryError
            Where the values of all boxes would take more memory of the host than is free.
        """
        x, y, space, p = problem.targets, problem.sources, self.space, aim.parameters
        leaf, fill = p.leaf_size, None
        with times.phase("tree"):
            if self.options.leaf_size is None:
                leaf, fill = balance.leaves(x, y, leaf, self._costs(aim, p.order), space)
            deepest = _levels(problem)
            tree = octree.build(y, None if problem.same else x, leaf, space, fill=fill, deepest=deepest)
        with times.phase("lists"):
            lists = octlists.lists(tree.nodes, self._points(p.order)).only
        with times.phase("prepare"):
            p = replace(p, order=self._refined(aim, p.order, tree, lists), leaf_size=leaf, fill=fill)
            if components := self._components(aim, tree, lists):
                estimate.require_values(tree, self._points(p.order), components, space)
            expansion = self._expansion(aim, p, tree, lists)
        n_trg, n_src = (spans.count.astype(float) for spans in (tree.nodes.targets, tree.nodes.sources))
        uneven = float(n_trg[lists.w_t].sum() + n_src[lists.x_s].sum()) * self._points(p.order)
        times.pairs = {"near": float(n_trg[lists.u_t] @ n_src[lists.u_s]), "p2l_m2p": uneven}
        return replace(aim, parameters=p), FmmStructure(tree, lists, aim.representation, expansion)

    def place(self, problem: FreeProblem, aim: Aim, structure: FmmStructure, rhs: int, times: PhaseTimes) -> FreeSum:
        """Place the steps of a right-hand side.

        Raises
        ------
        MemoryError
            Where the arrays would take more memory of the host than is free.
        """
        expansion = structure.expansion
        with times.phase("prepare"):
            estimate.require(expansion.steps, structure.tree, self.space)
            placed = expansion.place(self.space)
        particles = expansion.particles
        return FreeSum(placed, particles.charges, particles.result, problem.with_points(None, None))

    def transposed_options(self, aim: Aim) -> FmmOptions:
        """Return the options of the transposed sum: the same tolerance or order, and size of leaves."""
        return replace(self.options, tolerance=self.asked)

    def expected(self, aim: Aim) -> float:
        """Return the relative error that a sum is expected to have."""
        return aim.parameters.expected

    def public(self, problem: FreeProblem, aim: Aim) -> Parameters:
        """Return the parameters, which have no lengths."""
        return aim.parameters

    def describe(self, arguments: Arguments, problem: FreeProblem, aim: Aim, prediction: Prediction) -> str:
        """Describe a plan in a few lines."""
        return super().describe(arguments, problem, aim.parameters, prediction)

    def predict(self, problem: FreeProblem, aim: Aim, structure: FmmStructure | None, held: int) -> Prediction:
        """Predict the time of a call."""
        return work.predict(structure, aim.parameters, problem.dtype, self.space, held)

    # Parameters -------------------------------------------------------------------------------------------------------
    def _order(self, linear: Pair, tolerance: float) -> int:
        """Return the points per edge for a tolerance; of interpolation a first guess, for the size of leaves."""
        harder = 0
        if self.gradient or self.kernel.name in HARDER:
            harder = 1 if tolerance > FINE else 2
        if not linear.pair.startswith("pair/"):  # a caller's own: vectors need more than the flows known here
            harder = 1 if linear.result == 1 else 2
        return params.order(tolerance, harder)

    def _leaf_size(self, order: int, representation: Representation | None) -> int:
        """Return the points of a leaf that suit a cube of uniform points."""
        return params.leaf_size(self.name, order, 1 if representation is None else representation.check)

    # Two kinds of expansions ------------------------------------------------------------------------------------------
    @abstractmethod
    def _representation(self, problem: FreeProblem) -> Representation | None:
        """Return equivalent sources and check values of the kernel, None where expansions interpolate."""

    @abstractmethod
    def _compile(self, problem: FreeProblem, trees: list[Any]) -> None:
        """Compile the launches of trees, and the kernels that operators are made with, on the host."""

    @abstractmethod
    def _points(self, order: int) -> int:
        """Return the number of points of a box's values."""

    def _costs(self, aim: Aim, order: int) -> balance.FmmCosts | None:
        """Return the costs by which leaves are chosen, None for the size that suits a cube."""
        return None

    def _refined(self, aim: Aim, order: int, tree: Octree, lists: OctLists) -> int:
        """Return the order for a tree."""
        return order

    @abstractmethod
    def _components(self, aim: Aim, tree: Octree, lists: OctLists) -> int:
        """Return the numbers at each point of a box: 0 where no box has expansions."""

    @abstractmethod
    def _expansion(self, aim: Aim, p: Parameters, tree: Octree, lists: OctLists) -> Expansion:
        """Return the steps of the sum."""


class Kifmm(Fmm):
    """The kernel-independent method: equivalent sources on surfaces around boxes."""

    def _representation(self, problem: FreeProblem) -> Representation:
        return representations.find(problem.kernel)

    def _compile(self, problem: FreeProblem, trees: list[Any]) -> None:
        engine.compile_for(trees, self.space, on_host=representations.workunits(problem.kernel))

    def _points(self, order: int) -> int:
        return surfaces.count(order)

    def _costs(self, aim: Aim, order: int) -> balance.FmmCosts:
        return balance.costs(aim.representation, order, aim.dtype.name)

    def _components(self, aim: Aim, tree: Octree, lists: OctLists) -> int:
        if not any_far(tree, lists):
            return 0
        return aim.representation.check + 2 * aim.representation.equivalent  # equivalents also as class values

    def _expansion(self, aim: Aim, p: Parameters, tree: Octree, lists: OctLists) -> Expansion:
        cut = p.expected if aim.tolerance is None else aim.tolerance
        enough = short(cut)
        if aim.dtype == np.float32:
            cut = max(cut, SINGLE)
        at = limits.of(self.space)
        return surface_expansion(tree, lists, aim.representation, p.order, at, tolerance=cut, short=enough)


class Chebyshev(Fmm):
    """The black-box method: interpolation at Chebyshev points of boxes."""

    def _representation(self, problem: FreeProblem) -> None:
        return None

    def _compile(self, problem: FreeProblem, trees: list[Any]) -> None:
        engine.compile_for(trees, self.space, on_host=[representations.unit(problem.linear)])

    def _points(self, order: int) -> int:
        return order**3

    def _refined(self, aim: Aim, order: int, tree: Octree, lists: OctLists) -> int:
        if self.options.order is not None:
            return order
        return chebyshev_order.order(aim.linear, aim.tolerance, tree.nodes, lists)

    def _components(self, aim: Aim, tree: Octree, lists: OctLists) -> int:
        return aim.linear.dens + aim.linear.result

    def _expansion(self, aim: Aim, p: Parameters, tree: Octree, lists: OctLists) -> Expansion:
        linear, eps = aim.linear, None
        if aim.tolerance is not None:
            eps = COMPRESS * aim.tolerance * chebyshev_order.left(linear, tree.nodes, lists)
        return chebyshev_expansion(tree, lists, linear, p.order, eps=eps)


KINDS = {"kifmm": Kifmm, "chebyshev": Chebyshev}


def _away(problem: FreeProblem) -> bool:
    """Return whether the targets are away from the sources, where nearly neutral ones leave little field."""
    x, y = problem.targets, problem.sources
    if problem.same or not (problem.n_targets and problem.n_sources):
        return False
    return scaling.nearest(x, y, 0) > AWAY * scaling.nearest(y, y, 0) > 0


def _levels(problem: FreeProblem) -> int:
    """Return the last level whose boxes, apart by their own side, are as far apart as the pair asks."""
    separation = problem.linear.separation()
    if not separation:
        return octree.MAX_LEVEL
    side = max(balance.sides(problem.targets, problem.sources))
    return max(0, min(octree.MAX_LEVEL, math.floor(math.log2(max(APART * side / separation, 1.0)))))
