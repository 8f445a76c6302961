"""A fast multipole sum for fixed points, and what it can tell about itself."""

from __future__ import annotations

import math
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from parki import engine, plans, scaling
from parki.arrays import AnyArray, Array, Real, Result
from parki.checks import check_choice, check_flag, check_share, check_whole, refuse_boxes, refuse_half_moved
from parki.engine.spaces import Space
from parki.engine.steps import Placed
from parki.fmm import balance, chebyshev_order, estimate, limits, params, representations, surfaces, work
from parki.fmm.chebyshev_expansion import chebyshev_expansion
from parki.fmm.expansion import Expansion
from parki.fmm.params import Parameters
from parki.fmm.report import WallTime
from parki.fmm.representations import Representation
from parki.fmm.structure import FmmStructure
from parki.fmm.surface_expansion import any_far, surface_expansion
from parki.freespace import FreePlan, log, short
from parki.keywords import FmmOptions
from parki.names import FmmMethod, Gradient, Layout, SpaceName
from parki.pairs import KernelLike
from parki.prediction import Prediction
from parki.trees import octlists, octree, passes
from parki.trees.octlists import OctLists
from parki.trees.octree import Octree

METHODS = ("kifmm", "chebyshev")
COMPRESS = 0.1  # error of compressed translations over the tolerance
SINGLE = 5e-4  # tolerance that operators of float32 are made for: singular values below 5e-7 are noise
HARDER = {"stokes_dl", "stokes_comb", "stokes_grad", "stokes_pressure", "laplace_grad", "laplace_dipole", "rotlet"}
FINE = 1e-8  # tolerance from which on gradients of crowded points need one more point per edge than others
AWAY = 4.0  # distances of the sources, from which on targets are away from them
AWAY_SHARE = 1e-3  # of the tolerance, that is aimed at then
APART = 0.95  # of the half side of a box: from its sources to surfaces of boxes that are not next to it


class Plan(FreePlan[Result]):
    """A sum over pairs in free space for fixed points, by a fast multipole method: ``u = plan(charges)``.

    Parameters
    ----------
    kernel : str, path or Pair
        As in `parki.fmm.kifmm`.
    targets, sources : array (3, Nt), (3, Ns)
        Points anywhere; ``(N, 3)`` with ``layout="nd"``.
    method : {"kifmm", "chebyshev"}
        Equivalent sources on surfaces around boxes, or interpolation at Chebyshev points in them.
    timed : bool
        On a device, wait for each phase, so that its time is that of its work, not of its launches.
    **keywords
        As in `parki.fmm.kifmm`.

    Attributes
    ----------
    pair : Pair
    parameters : Parameters
    walltime : WallTime
        Times of making the plan and of its last sum.
    n_targets, n_sources : int
    structure : FmmStructure, optional
        Tree, lists and steps; None without points.

    Raises
    ------
    ValueError, TypeError
        For input that does not fit, naming the argument, what was found and what was expected.
    MemoryError
        Where the plan would need more memory of the host than is free, naming the options that lower it.
    """

    @overload
    def __init__(
        self: Plan[NDArray[Real]], kernel: KernelLike, targets: NDArray[Real], sources: NDArray[Real], *,
        method: FmmMethod = "kifmm", gradient: Literal[False, "only"] = False, timed: bool = False,
        **keywords: Unpack[FmmOptions],
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: Plan[tuple[NDArray[Real], NDArray[Real]]], kernel: KernelLike, targets: NDArray[Real],
        sources: NDArray[Real], *, method: FmmMethod = "kifmm", gradient: Literal[True], timed: bool = False,
        **keywords: Unpack[FmmOptions],
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: Plan[Any], kernel: KernelLike, targets: AnyArray, sources: AnyArray, *, method: FmmMethod = "kifmm",
        gradient: Gradient = False, timed: bool = False, **keywords: Unpack[FmmOptions],
    ) -> None: ...  # fmt: skip
    def __init__(
        self, kernel: KernelLike, targets: AnyArray, sources: AnyArray, *, method: FmmMethod = "kifmm",
        tolerance: float | None = None, order: int | None = None, leaf_size: int | None = None,
        gradient: Gradient = False, layout: Layout = "dn", execution_space: SpaceName | Space | None = None,
        threads: int | None = None, verbose: bool = False, timed: bool = False, **parameters: float | None,
    ) -> None:  # fmt: skip
        refuse_boxes(parameters, "fast multipole methods")
        check_choice("method", method, METHODS)
        check_choice("gradient", gradient, (False, True, "only"))
        check_choice("layout", layout, ("dn", "nd"))
        check_flag("verbose", verbose)
        if tolerance is not None and order is not None:
            raise ValueError("tolerance was given with order, which it chooses; expected one or the other.")
        check_share("tolerance", tolerance)
        check_whole("order", order, params.MOST_ORDER)
        check_whole("leaf_size", leaf_size)
        if order is not None and order < params.LEAST_ORDER:
            raise ValueError(f"order is {order}; expected {params.LEAST_ORDER} to {params.MOST_ORDER}.")
        super().__init__(
            kernel, targets, sources, gradient=gradient, layout=layout, execution_space=execution_space,
            threads=threads, times=WallTime, timed=timed or verbose, parameters=parameters,
        )  # fmt: skip
        self.verbose = verbose
        self.method = method
        self._asked = params.TOLERANCE if tolerance is None and order is None else tolerance, order, leaf_size
        self._warn_below(tolerance, params.REACH)
        self._settle()
        plans.say(log, verbose, "%s: %s", self.pair, self.parameters)

    def _place(self) -> None:
        """Make tree, lists, operators, and launches."""
        if self.some:
            with self.walltime.phase("prepare"):
                self._compile_first()
        representation = representations.find(self.pair.scaled(self._length)) if self.method == "kifmm" else None
        tolerance, order, asked_leaf = self._asked
        self._aim = tolerance
        if tolerance is not None and self._away():
            self._aim = min(tolerance, max(AWAY_SHARE * tolerance, params.REACH["float64"]))
        expected = order or self._order(self._aim)
        components = 1 if representation is None else representation.check
        leaf, fill = asked_leaf or params.leaf_size(self.method, expected, components), None
        self.structure: FmmStructure | None = None
        self.placed: Placed | None = None
        if not self.some:
            self.parameters = Parameters(self.method, expected, leaf, tolerance, fill)
            return
        times, (on_x, on_y) = self.walltime, self._placed()
        same = on_x is on_y
        with times.phase("tree"):
            if asked_leaf is None:
                leaf, fill = balance.leaves(on_x, on_y, leaf, self._costs(representation, expected), self.space)
            tree = octree.build(on_y, None if same else on_x, leaf, self.space, fill=fill, deepest=self._levels())
        with times.phase("lists"):
            few = self._surface(expected)
            lists = octlists.lists(tree.nodes, few).only
        with times.phase("prepare"):
            if order is None and self.method == "chebyshev":
                expected = chebyshev_order.order(self.linear, self._aim, tree.nodes, lists)
            self.parameters = Parameters(self.method, expected, leaf, tolerance, fill)
            self._prepare(tree, lists, representation)
        n_trg, n_src = tree.nodes.targets.count.astype(float), tree.nodes.sources.count.astype(float)
        surface_pairs = float(n_trg[lists.w_t].sum() + n_src[lists.x_s].sum()) * self._surface(expected)
        times.pairs = {"near": float(n_trg[lists.u_t] @ n_src[lists.u_s]), "p2l_m2p": surface_pairs}

    def _away(self) -> bool:
        """Return whether the targets are away from the sources, where nearly neutral ones leave little field."""
        x, y = self._points
        if x is y or not self.some:
            return False
        return scaling.nearest(x, y, self._length) > AWAY * scaling.nearest(y, y, self._length) > 0

    def _order(self, tolerance: float) -> int:
        """Return the points per edge for a tolerance; of interpolation a first guess, for the size of leaves."""
        harder = 0
        if self.gradient or self.pair.name in HARDER:
            harder = 1 if tolerance > FINE else 2
        if not self.linear.pair.startswith("pair/"):  # a caller's own: vectors need more than the flows known here
            harder = 1 if self.linear.result == 1 else 2
        return params.order(tolerance, harder)

    def _costs(self, representation: Representation | None, order: int) -> balance.FmmCosts | None:
        return None if representation is None else balance.costs(representation, order, self.dtype.name)

    def _surface(self, order: int) -> int:
        """Return the number of points of a box's values."""
        return surfaces.count(order) if self.method == "kifmm" else order**3

    def _levels(self) -> int:
        """Return the last level whose boxes, apart by their own side, are as far apart as the pair asks."""
        separation = self.linear.separation()
        if not separation:
            return octree.MAX_LEVEL
        sides = [math.ldexp(side, self._length) for side in balance.sides(*self._points)]
        return max(0, min(octree.MAX_LEVEL, math.floor(math.log2(max(APART * max(sides) / separation, 1.0)))))

    def _compile_first(self) -> None:
        """Compile everything that runs before the steps are known."""
        pair = self.pair.scaled(self._length)
        of_pair = representations.workunits(pair) if self.method == "kifmm" else [representations.unit(self.linear)]
        trees = passes.launches(octree.workunits(self.dtype, self.space))
        engine.compile_for(trees, self.space, on_host=of_pair)

    def _prepare(self, tree: Octree, lists: OctLists, representation: Representation | None) -> None:
        order = self.parameters.order
        if components := self._components(tree, lists, representation):
            estimate.require_values(tree, self._surface(order), components, self.space)
        expansion = (
            self._interpolation(tree, lists)
            if representation is None
            else self._equivalents(tree, lists, representation)
        )
        estimate.require(expansion.steps, tree, self.space)
        self.structure, self.placed = FmmStructure(tree, lists, representation, expansion), expansion.place(self.space)

    def _components(self, tree: Octree, lists: OctLists, representation: Representation | None) -> int:
        """Return the numbers at each point of a box: 0 where no box has expansions."""
        if representation is None:
            return self.linear.dens + self.linear.result
        return (
            representation.check + 2 * representation.equivalent if any_far(tree, lists) else 0
        )  # equivalents also as class values

    def _interpolation(self, tree: Octree, lists: OctLists) -> Expansion:
        eps = None
        if self._aim is not None:
            eps = COMPRESS * self._aim * chebyshev_order.left(self.linear, tree.nodes, lists)
        return chebyshev_expansion(tree, lists, self.linear, self.parameters.order, eps=eps)

    def _equivalents(self, tree: Octree, lists: OctLists, representation: Representation) -> Expansion:
        cut = self.parameters.expected if self._aim is None else self._aim
        enough = short(cut)
        if self.dtype == np.float32:
            cut = max(cut, SINGLE)
        limit, order = limits.of(self.space), self.parameters.order
        return surface_expansion(tree, lists, representation, order, limit, tolerance=cut, short=enough)

    def _add(self, charges: Array, u: Array) -> None:
        particles = self.structure.expansion.particles
        self.placed.run({particles.charges: charges, particles.result: u}, self.walltime)

    def _made_turned(self, targets: Any, sources: Any) -> Plan[Result]:
        tolerance, order, leaf = self._asked
        asked = {"tolerance": tolerance} if order is None else {"order": order}
        asked |= {"layout": self.layout, "execution_space": self.space, "leaf_size": leaf}
        return Plan(self.pair, targets, sources, method=self.method, **asked)

    @property
    def memory(self) -> int:
        """Bytes of the plan's own arrays."""
        if self.placed is None:
            return 0
        tree = self.structure.tree
        points = (a for some in (tree.sources, tree.targets) for a in (some.points, some.order))
        return sum(a.nbytes for a in {id(a): a for a in (*self.placed.arrays, *points)}.values())

    def predict(self) -> Prediction:
        """Return the predicted seconds of a sum of one right-hand side by phase, and the bytes that the plan holds."""
        refuse_half_moved(self._moving)
        return work.predict(self.structure, self.parameters, self.dtype, self.space, self.memory)

    def __str__(self) -> str:
        return f"{self.pair}, {self.method}, {self.parameters}"
