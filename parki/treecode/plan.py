"""A treecode sum for fixed points, and what it can tell about itself."""

from __future__ import annotations

import math
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from parki import direct, engine, memory, plans, scaling
from parki.arrays import PRECISIONS, AnyArray, Array, Real, Result
from parki.checks import check_choice, check_flag, check_share, check_whole, refuse_boxes, refuse_half_moved
from parki.engine.spaces import Space
from parki.engine.steps import Placed, Steps
from parki.freespace import FreePlan, log, short
from parki.keywords import TreecodeOptions
from parki.names import Gradient, Layout, Precision, SpaceName, TreecodeMethod
from parki.pairs import KernelLike
from parki.prediction import Prediction
from parki.proxies import ProxyKernels
from parki.treecode import costs, interactions, params, work
from parki.treecode.report import WallTime
from parki.treecode.steps import TreecodeSteps, steps
from parki.treecode.structure import Structure
from parki.trees import cluster, dual, lists, passes
from parki.trees.bysource import ListsBySource

METHODS = ("dual", "pc", "cp")
ADVICE = "A larger leaf_size and batch_size, a smaller degree or theta, or a larger tolerance takes less."


class Plan(FreePlan[Result]):
    """A sum over pairs in free space for fixed points, by a treecode: ``u = plan(charges)``.

    Parameters
    ----------
    kernel : str, path or Pair
        As in `parki.treecode.bldtt`.
    targets, sources : array (3, Nt), (3, Ns)
        Points anywhere; ``(N, 3)`` with ``layout="nd"``.
    method : {"dual", "pc", "cp"}
        Dual tree traversal; batches of targets against clusters of sources; clusters of targets against batches of
        sources.
    timed : bool
        On a device, wait for each phase, so that its time is that of its work, not of its launches.
    **keywords
        As in `parki.treecode.bldtt`.

    Attributes
    ----------
    pair : Pair
    parameters : Parameters
    walltime : WallTime
        Times of making the plan and of its last sum.
    n_targets, n_sources : int

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
        method: TreecodeMethod = "dual", gradient: Literal[False, "only"] = False, timed: bool = False,
        **keywords: Unpack[TreecodeOptions],
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: Plan[tuple[NDArray[Real], NDArray[Real]]], kernel: KernelLike, targets: NDArray[Real],
        sources: NDArray[Real], *, method: TreecodeMethod = "dual", gradient: Literal[True], timed: bool = False,
        **keywords: Unpack[TreecodeOptions],
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: Plan[Any], kernel: KernelLike, targets: AnyArray, sources: AnyArray, *, method: TreecodeMethod = "dual",
        gradient: Gradient = False, timed: bool = False, **keywords: Unpack[TreecodeOptions],
    ) -> None: ...  # fmt: skip
    def __init__(
        self, kernel: KernelLike, targets: AnyArray, sources: AnyArray, *, method: TreecodeMethod = "dual",
        theta: float | None = None, degree: int | None = None, tolerance: float | None = None,
        leaf_size: int | None = None, batch_size: int | None = None, gradient: Gradient = False,
        far_precision: Precision | None = None, layout: Layout = "dn",
        execution_space: SpaceName | Space | None = None, threads: int | None = None, verbose: bool = False,
        timed: bool = False, **parameters: float | None,
    ) -> None:  # fmt: skip
        _check(method, theta, degree, tolerance, leaf_size, batch_size, gradient, far_precision, layout, parameters)
        check_flag("verbose", verbose)
        super().__init__(
            kernel, targets, sources, gradient=gradient, layout=layout, execution_space=execution_space,
            threads=threads, times=WallTime, timed=timed or verbose, parameters=parameters,
        )  # fmt: skip
        self.verbose = verbose
        options = {"theta": theta, "degree": degree, "tolerance": tolerance, "leaf_size": leaf_size}
        options |= {"batch_size": batch_size, "far": PRECISIONS.get(far_precision)}
        options |= {"fewest": min(self.n_targets, self.n_sources), "space": self._probe()}
        self._compile_first(tolerance)
        self.parameters = params.choose(self.linear, method, *self._lengths(), dtype=self.dtype, **options)
        self._warn_below(tolerance, params.REACH)
        plans.say(log, verbose, "%s: %s", self.pair, self.parameters)
        self._settle()

    def _place(self) -> None:
        self.structure: Structure | None = None
        self.sum: TreecodeSteps | None = None
        self.placed: Placed | None = None
        if self.some:
            self.structure = self._arranged(*self._placed())
            with self.walltime.phase("lists"):
                self.sum = steps(self.structure)
                self._require_memory(self.structure, self.sum.steps)
            engine.compile_for(self.sum.steps.units(), self.space)
            with self.walltime.phase("lists"):
                self.placed = self.sum.steps.place(self.space)

    def _lengths(self) -> tuple[float, float]:
        """Return half the longest side around all points, and targets' distance from sources (`scaling.nearest`)."""
        x, y = self._points
        scale_free = self.linear.law is not None and not self.linear.parameters
        return self.extent, 0.0 if scale_free or not self.some else scaling.nearest(x, y, self._length)

    @engine.settled()
    def _compile_first(self, tolerance: float | None) -> None:
        """Compile in one batch the kernels that are launched before the steps are known."""
        if self.some:
            wanted = passes.launches(cluster.workunits(self.dtype, self.space))
            if self.extent > 0 and self.space.kind != "sim":  # which leaves small sums to the host
                wanted += [(w, w.default_layouts(), None) for w in params.workunits(self.linear, tolerance)]
            engine.compile_for(wanted, self.space)

    def _probe(self) -> Space | None:
        """Return the space of the small sums that measure how well the kernel is interpolated: a device, or None."""
        return self.space if self.space.own_memory else None

    def _arranged(self, x: Array, y: Array) -> Structure:
        """Return trees and lists of targets and sources."""
        p, times, same = self.parameters, self.walltime, x is y
        extent, apart = self._lengths()
        t_size, s_size = (p.leaf_size, p.batch_size) if p.method == "cp" else (p.batch_size, p.leaf_size)
        with times.phase("tree"):
            sources = cluster.build(y, s_size, self.space)
            targets = sources if same and t_size == s_size else cluster.build(x, t_size, self.space)
        with times.phase("lists"):
            tiny = direct.coincident(self.dtype) if self.pair.singular else 0.0
            farthest = max(float(scaling.largest(a).max()) for a in (x, y))
            separation = max(self.separation, math.sqrt(3 * tiny) * farthest)  # grids skip no pairs
            far = {"separation": separation, "cubes": p.tolerance is not None}
            match p.method:
                case "dual":
                    pairs = dual.traverse(targets.nodes, sources.nodes, p.theta, **far)
                case "pc":
                    pairs = lists.traverse(targets.nodes, sources.nodes, p.theta, **far)
                case _:
                    pairs = lists.traverse(sources.nodes, targets.nodes, p.theta, **far).swapped()
            kernels = ProxyKernels(self.linear, self.dtype, np.dtype(p.far), p.degree + 1, short(p.expected))
            field_size = params.field_size(self.linear, extent, self._probe())
            fewest = min(self.n_targets, self.n_sources)
            difficulty = params.difficulty(self.linear, p, extent, apart, fewest, self._probe())
            rule = p.rule(field_size, difficulty, costs.grid(kernels))
            interacting = interactions.build(ListsBySource.of(targets.nodes, sources.nodes, pairs), rule).only
        times.pairs = dict(zip(("pp", "pc", "cp", "cc"), interacting.pairs, strict=True))
        return Structure(kernels, targets, sources, interacting, tiny)

    def _require_memory(self, s: Structure, needed: Steps) -> None:
        """Refuse steps whose arrays, those that are there already apart, take more memory of the host than is free."""
        if not self.space.own_memory:
            there = sum(a.nbytes for a in needed.handles if a.values is not None)
            clusters = f"a treecode of {s.source.nodes} and {s.target.nodes} clusters"
            memory.require(needed.nbytes() - there, clusters, ADVICE)

    def _add(self, charges: Array, u: Array) -> None:
        bound = {self.sum.charges: self.xp.ascontiguousarray(charges), self.sum.u: u}
        self.placed.run(bound, self.walltime)

    def _made_turned(self, targets: Any, sources: Any) -> Plan[Result]:
        p = self.parameters
        options = {"tolerance": p.tolerance} if p.tolerance is not None else {"theta": p.theta, "degree": p.degree}
        options |= {"leaf_size": p.leaf_size, "batch_size": p.batch_size, "layout": self.layout}
        options |= {"far_precision": "single" if p.far == "float32" else "double", "execution_space": self.space}
        method = {"pc": "cp", "cp": "pc"}.get(p.method, p.method)
        return Plan(self.pair, targets, sources, method=method, **options)

    def predict(self) -> Prediction:
        """Return the predicted seconds of a sum of one right-hand side by phase, and the bytes that the plan holds."""
        refuse_half_moved(self._moving)
        return work.predict(self.structure, self.parameters, self.dtype, self.space, self.memory)

    @property
    def memory(self) -> int:
        """Return the bytes of the plan's own arrays."""
        if self.placed is None:
            return 0
        trees = [tree.sorted for tree in (self.structure.targets, self.structure.sources)]
        trees = [a for points in trees for a in (points.points, points.order)]
        return sum(a.nbytes for a in {id(a): a for a in (*self.placed.arrays, *trees)}.values())

    def __str__(self) -> str:
        return f"{self.pair}, {self.parameters.method}, {self.parameters}"


def _check(
    method: Any, theta: Any, degree: Any, tolerance: Any, leaf_size: Any, batch_size: Any, gradient: Any,
    far_precision: Any, layout: Any, parameters: dict[str, Any],
) -> None:  # fmt: skip
    """Refuse options that are not in range."""
    refuse_boxes(parameters, "treecodes")
    check_choice("method", method, METHODS)
    check_choice("gradient", gradient, (False, True, "only"))
    check_choice("far_precision", far_precision, (None, *PRECISIONS))
    check_choice("layout", layout, ("dn", "nd"))
    if tolerance is not None and (theta is not None or degree is not None):
        raise ValueError("tolerance was given with theta or degree, which it chooses; expected one or the other.")
    check_share("tolerance", tolerance)
    check_share("theta", theta)
    check_whole("degree", degree, params.MOST_DEGREE)
    check_whole("leaf_size", leaf_size)
    check_whole("batch_size", batch_size)
