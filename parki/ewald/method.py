"""Spectral Ewald sums as a method: box, parameters, sorted points and stages of a sum."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from parki import adjoints, all_pairs, arrays, cells, engine, prediction, scaling
from parki.adjoints import Adjoint
from parki.arguments import TARGETS, ArgumentNames, Arguments, Density
from parki.arrays import Array
from parki.engine import Space, spaces
from parki.ewald import checks, estimate, idle, kernels, moving, predict, reference
from parki.ewald.choice import choose, params, tuning, variants
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.ewald.choice.tuning import Bench, Tuned
from parki.ewald.choice.variants import Variants
from parki.ewald.energies import Energies
from parki.ewald.kernel import Kernel
from parki.ewald.kernels import KERNELS
from parki.ewald.options import EwaldOptions, quiet
from parki.ewald.problem import EwaldProblem, question
from parki.ewald.report import Params, WallTime, describe
from parki.ewald.stages import half_lists, work
from parki.ewald.stages.points import Points
from parki.ewald.stages.sums import Stages, SumSteps
from parki.ewald.stages.verify import verify
from parki.plan import Plan
from parki.prediction import PlanCost, Prediction


@dataclass(frozen=True, eq=False)
class EwaldChoice:
    """Parameters and variants of a sum, in the unit of its stages.

    Attributes
    ----------
    question : Question
    parameters : Parameters
    variants : Variants
    tuned : Tuned or None
        Choice and its candidates, with ``tune=True``.
    edges : tuple of float
        Lengths of the lattice vectors for which the parameters were chosen, in the caller's unit.
    """

    question: Question
    parameters: Parameters
    variants: Variants
    tuned: Tuned | None = None
    edges: tuple[float, ...] = ()


@dataclass(eq=False)
class EwaldStructure:
    """Sorted points, and the first stages, or their steps until these are placed."""

    points: Points
    steps: SumSteps | None = None
    stages: Stages | None = None

    @property
    def arrays(self) -> list[Array]:
        """Return every array of the points."""
        return self.points.arrays

    def originals(self) -> tuple[Array, Array]:
        """Return targets and sources in the caller's order, one array if they are the same."""
        return self.points.originals()


@dataclass(frozen=True, eq=False)
class Ewald(Energies):
    """Spectral Ewald sums, see `parki.ewald`.

    Attributes
    ----------
    kernel : Kernel
        Kernel in the caller's unit of length.
    options : EwaldOptions
        Resolved options.
    space : Space, optional
    names : ArgumentNames
    served : bool
        True if the sum serves another plan, and gives no warnings.
    gradient : bool or "only"
        False if a call returns the sum, True for the sum and its gradient, "only" for the gradient.
    """

    kernel: Kernel
    options: EwaldOptions
    space: Space | None = None
    names: ArgumentNames = TARGETS
    served: bool = False
    gradient: bool | str = False

    name = "ewald"
    positional = ("sources", "targets")
    logger = "parki.ewald"
    excludes = True

    def in_space(self, space: Space) -> Self:
        """Return the method in a space."""
        return replace(self, space=space)

    def times(self, problem: EwaldProblem, choice: EwaldChoice) -> WallTime:
        """Return a record of the times of all phases, set to zero.

        A GPU keeps working while the next launches are made.  Its phases are timed, by waiting for each, only if
        `return_walltime` or `verbose` is set.
        """
        is_timed = self.options.return_walltime or self.options.verbose
        wait = spaces.waiter(self.space) if is_timed else None
        grid = int(np.prod(choice.parameters.grid))
        return WallTime(problem.n_sources, problem.n_targets, grid, wait=wait)

    # Points -----------------------------------------------------------------------------------------------------------
    def problem(self, targets: Any, sources: Any) -> EwaldProblem:
        """Check a caller's points and options, and map the points to the box of the stages."""
        return self._problem(*self._checked(targets, sources))

    def _checked(self, targets: Any, sources: Any) -> tuple[Array, Array, bool]:
        """Return a caller's checked targets and sources, and True if they are on a GPU."""
        options, (trg, src) = self.options, self.names[:2]
        on_gpu = arrays.on_gpu(**{trg: targets, src: sources}) is not None
        if (count := sum(options.periodic)) not in self.kernel.periodicities:
            text = " or ".join(str(n) for n in self.kernel.periodicities)
            raise ValueError(
                f"periodicity is {count} and the kernel is {self.kernel}; expected {text} for this kernel."
            )
        x = checks.points(trg, targets, options)
        y = x if targets is sources else checks.points(src, sources, options)
        dtype = arrays.same_dtype(**{trg: x, src: y})
        if not self.served:
            checks.precision(dtype.name, options)
        return x, y, on_gpu

    def _problem(self, x: Array, y: Array, on_gpu: bool) -> EwaldProblem:
        geometry = checks.place(self.options, self.kernel, self.names, x, y)
        xp = spaces.array_module(self.space)
        return EwaldProblem.of(geometry, self.names[:2], x, y, on_gpu, xp, self.options.box is None)

    def moved(
        self, arguments: Arguments, old: EwaldProblem, full: Callable[[], EwaldProblem], points: tuple[Any, Any],
        box: Any,
    ) -> tuple[Self, EwaldProblem]:  # fmt: skip
        """Check points that a plan moves to, None for points that stay; return the method and the problem.

        A box that was made around the points is made again if one of them leaves it.
        """
        method = self if box is None else replace(self, options=EwaldOptions.resolve(self.options, box=box))
        if box is not None and self.options.box is not None and np.array_equal(method.options.box, self.options.box):
            method, box = self, None  # the same box: arrays stay
        moved_points = moving.checked(method, arguments, points)
        if box is not None or moving.left(method.options, old, moved_points):
            outer = old.outer or (None, None)
            x, y = (a if a is not None else b for a, b in zip(moved_points, outer, strict=True))
            return method, method._problem(x, y, old.on_gpu)
        return self, moving.within(
            old, full, self.names, moved_points, spaces.array_module(self.space), self.options.box is None
        )

    def in_place(self, old: EwaldProblem, new: EwaldProblem) -> bool:
        """Tell whether moved points fit the present arrays: the same numbers of points, in the same box."""
        counts = [(p.n_targets, p.n_sources, p.same) for p in (old, new)]
        return counts[0] == counts[1] and old.geometry is new.geometry

    def kept(self, old: EwaldProblem, new: EwaldProblem, choice: EwaldChoice) -> EwaldChoice | None:
        """Return the parameters, stretched with the box, for the same number of points in a box of a similar shape.

        Return None if parameters must be chosen anew: for another number of points, for a box whose edges have changed
        much since the parameters were chosen, for a box around free points, or for a given cutoff.
        """
        if self.options.box is None or self.options.rc is not None:
            return None
        parameters = moving.stretched(old, new, choice.parameters, choice.edges)
        return None if parameters is None else replace(choice, parameters=parameters)

    def rearrange(self, problem: EwaldProblem, choice: EwaldChoice, structure: EwaldStructure, times: WallTime) -> None:
        """Move the points of a structure within its arrays."""
        with times.phase("cell_list"):
            is_same = problem.targets is problem.sources
            structure.points.move(None if is_same else problem.targets, problem.sources)
        structure.points.wrapped_from(max(problem.reach))
        self._count(choice, structure.points, times)

    # Parameters -------------------------------------------------------------------------------------------------------
    def choose(self, problem: EwaldProblem) -> EwaldChoice:
        """Choose parameters by the models, or with ``tune=True`` by measurement.

        Raises
        ------
        MemoryError
            If the grid would take more memory of the host than is free.
        """
        options, space = self.options, self.space
        sum_question = question(self.kernel, options, space, problem)
        parameters = choose.parameters(sum_question)
        estimate.require(sum_question, parameters, options)
        selection = variants.choose(space, problem.dtype.name, options, parameters, problem.n_targets)
        selection = half_lists.chosen(selection, parameters, sum_question, problem.same, space)
        choice = self.choice(problem, sum_question, parameters, selection)
        if not (options.tune and problem.n_targets and problem.n_sources):
            return choice
        result = tuning.tune(self.bench(problem, sum_question))
        best = result.choice.parameters
        selection = half_lists.chosen(result.choice.variants, best, sum_question, problem.same, space)
        return replace(choice, parameters=best, variants=selection, tuned=result)

    def choice(
        self, problem: EwaldProblem, sum_question: Question, parameters: Parameters, selection: Variants
    ) -> EwaldChoice:
        """Return the choice of given parameters and variants."""
        place = problem.geometry
        lengths = tuple(place.outer(edge) for edge in params.edges(place.box, place.skew))
        return EwaldChoice(sum_question, parameters, selection, edges=lengths)

    def bench(self, problem: EwaldProblem, sum_question: Question) -> Bench:
        """Return the bench that measures this sum with other parameters."""

        def make(options: EwaldOptions, parameters: Parameters) -> Plan[Any]:
            selection = variants.choose(self.space, problem.dtype.name, options, parameters, problem.n_targets)
            selection = half_lists.chosen(selection, parameters, sum_question, problem.same, self.space)
            method = replace(self, options=options, served=True)
            return Plan(method, problem, self.choice(problem, sum_question, parameters, selection))

        xp = spaces.array_module(self.space) if problem.on_gpu else np
        return Bench(sum_question, self.options, make, xp, problem.power, problem.same)

    # Stages -----------------------------------------------------------------------------------------------------------
    def arrange(
        self, problem: EwaldProblem, choice: EwaldChoice, times: WallTime
    ) -> tuple[EwaldChoice, EwaldStructure]:
        """Compile the first stages and sort the points, or take over stages that are no longer in use."""
        stages = idle.take(self._key(problem, choice))
        steps = self._compiled(problem, choice, 1) if stages is None else None
        is_same = problem.same
        with times.phase("cell_list"):
            if stages is None:
                x, y = problem.targets, problem.sources
                points = Points(choice.parameters, y if is_same else x, y, self.space, choice.variants)
            else:
                points = stages.points
                points.move(None if is_same else problem.targets, problem.sources)
        points.wrapped_from(max(problem.reach))
        self._count(choice, points, times)
        return choice, EwaldStructure(points, steps, stages)

    def _key(self, problem: EwaldProblem, choice: EwaldChoice) -> Hashable:
        """Return the facts that stages depend on."""
        o, counts = self.options, (problem.n_targets, problem.n_sources, problem.same)
        facts = choice.parameters, choice.variants, problem.geometry, self.space, spaces.workers(self.space)
        return (*facts, counts, o.layout, o.fft_type, o.transform(), o.graph)

    def place(
        self, problem: EwaldProblem, choice: EwaldChoice, structure: EwaldStructure, rhs: int, times: WallTime
    ) -> Stages:
        """Compile, verify and place the stages of a number of right-hand sides.

        Raises
        ------
        MemoryError
            If the arrays would take more memory of the host than is free.
        """
        graph = self.options.graph
        if rhs > 1:
            return Stages(self._compiled(problem, choice, rhs), structure.points, graph=graph)
        if structure.stages is None:
            steps, structure.steps = structure.steps, None
            with times.phase("cell_list"):
                structure.stages = Stages(steps, structure.points, graph=graph)
        return structure.stages

    def _compiled(self, problem: EwaldProblem, choice: EwaldChoice, rhs: int) -> SumSteps:
        """Return the steps of `rhs` right-hand sides at once, with compiled and verified workunits."""
        p, space = choice.parameters, self.space
        counts = problem.n_targets, problem.n_sources, problem.same
        return self.ready(SumSteps(p, choice.variants, counts, space, self.options, rhs, problem.geometry), choice, rhs)

    def ready(self, steps: SumSteps, choice: EwaldChoice, rhs: int) -> SumSteps:
        """Compile and verify the workunits of steps; return the steps.

        Raises
        ------
        MemoryError
            If the arrays would take more memory of the host than is free.
        """
        p, space = choice.parameters, self.space
        estimate.require_steps(steps, self.options)
        units = steps.steps.units(space)
        sorting = [(unit, unit.default_layouts(), None) for unit in cells.workunits(p.dtype, space).values()]
        engine.compile_for([*sorting, *units], space)
        if not space.checks_accesses:
            verify(p, space, choice.variants, list(dict.fromkeys(unit for unit, *_ in units)), rhs)
        return steps

    def _count(self, choice: EwaldChoice, points: Points, times: WallTime) -> None:
        if self.options.return_walltime:
            sides = points.targets, points.sources
            sum_work = work.count(choice.parameters, choice.variants, *sides, self.options.fft_type != "C2C")
            times.take(sum_work.flop, sum_work.mop, sum_work.pairs, sum_work.values)

    def most_rhs(self, choice: EwaldChoice, structure: EwaldStructure) -> int:
        """Return the largest number of right-hand sides at once."""
        return checks.most_rhs(self.kernel, structure.stages.sum.far.grid.nbytes)

    def retire(
        self, problem: EwaldProblem, choice: EwaldChoice, structure: EwaldStructure, sums: dict[int, Stages]
    ) -> None:
        """Keep the first stages for the next sum with the same parameters."""
        if not self.space.own_memory and 1 in sums:
            idle.keep(self._key(problem, choice), sums[1])

    # Queries ----------------------------------------------------------------------------------------------------------
    def inspect(self, problem: EwaldProblem, density: Density) -> None:
        """Warn of a net charge or force in a box that is periodic in all directions."""
        if not self.served:
            net = checks.NetDensity.of(self.kernel, density.values)
            checks.warn_of_net(self.kernel, problem.geometry.periodicity, problem.dtype, net)

    def own_terms(self, problem: EwaldProblem) -> None:
        """Return None: own terms count."""

    def adjoint(self) -> Adjoint | None:
        """Return the transposed sum by sums of other kernels; None for a kernel that is not one of parki's."""
        return adjoints.of(self.kernel) if kernels.known_to_parki(self.kernel) else None

    def transposed(
        self, problem: EwaldProblem, choice: EwaldChoice, kernel: str
    ) -> tuple[Self, EwaldProblem, EwaldChoice | None]:
        """Return method, problem and, if they can be reused, parameters of a kernel's sum from targets to sources."""
        is_same = kernel == self.kernel.name
        kernel = self.kernel if is_same else KERNELS[kernel]
        method = replace(self, kernel=kernel, served=True, gradient=self.gradient if is_same else False)
        method = replace(method, options=quiet(self.options, graph=self.options.graph))
        transpose, p = problem.transposed(), choice.parameters
        if not p.serves(kernel):
            return method, transpose, None
        sum_question = question(kernel, self.options, self.space, transpose, measured=False)
        p = replace(p, kernel=kernel.scaled(problem.power))
        return method, transpose, replace(choice, question=sum_question, parameters=p, tuned=None)

    def reference(self, problem: EwaldProblem, choice: EwaldChoice, index: Array, density: Density) -> np.ndarray:
        """Return the sum at chosen targets by another method, in double precision: ``(rhs, components, n)``.

        In free space the reference is the direct sum over all pairs.  Otherwise it is a sum with the other split, a
        hundredth of the tolerance and another near-field radius, so that the two agree only if both are right.
        """
        xp, wide = spaces.array_module(self.space), np.float64
        trg, src = (a.astype(wide) for a in (problem.targets, problem.sources))
        trg = trg[:, xp.asarray(index)]
        values, axes = density.values.astype(wide), density.normals
        axes = None if axes is None else axes.astype(wide)
        if problem.geometry.periodicity == 0:
            x, y = (scaling.times(a, -problem.power) for a in (trg, src))
            return self.direct(x, y, values, axes)
        options = quiet(self.options, layout="dn", **reference.other(self.options, choice.parameters, problem.geometry))
        method = replace(self, options=options, served=True, gradient=False)
        second: Plan[Any] = Plan(method, problem.at(trg, src))
        if not problem.on_gpu:
            values, axes = arrays.to_host(values), None if axes is None else arrays.to_host(axes)
        return arrays.to_host(second(second.arguments.given(values), axes)).reshape(len(values), self.kernel.result, -1)

    def direct(self, targets: Array, sources: Array, density: Array, normals: Array | None) -> np.ndarray:
        """Return direct sums ``(rhs, components, Nt)`` in free space, in the caller's unit of length."""
        return all_pairs.direct_sums(self.kernel, targets, sources, density, normals, self.space)

    def expected(self, choice: EwaldChoice) -> float:
        """Return the expected relative error of a sum."""
        return self.options.tolerance

    def predict(
        self, problem: EwaldProblem, choice: EwaldChoice, structure: EwaldStructure | None, memory: int
    ) -> Prediction:
        """Predict the time of a call."""
        counts, chosen = (problem.n_targets, problem.n_sources), (choice.parameters, choice.variants)
        return predict.predict(*chosen, counts, self.space, memory, choice.question.crowding)

    def cost(self, problem: EwaldProblem, choice: EwaldChoice, limit: float | None = None) -> PlanCost:
        """Predict the seconds of a plan and of a call."""
        share = prediction.of_generic(self.space) if max(choice.question.crowding, default=1.0) <= 1 else 1.0
        seconds = share * self.predict(problem, choice, None, 0).seconds
        return PlanCost(prediction.making(self.name, problem.points), seconds)

    def public(self, problem: EwaldProblem, choice: EwaldChoice) -> Parameters:
        """Return the parameters in the caller's unit of length."""
        return choice.parameters.scaled(-problem.power)

    def report(self, parameters: Parameters) -> Params:
        """Return parameters by their published names."""
        return Params(parameters)

    def describe(self, problem: EwaldProblem, choice: EwaldChoice, prediction: Prediction) -> dict[str, str]:
        """Describe a plan by lines with titles, without its kernel and points."""
        lines = describe(self.public(problem, choice), self.options.periodic) | {"call": str(prediction)}
        return lines | ({"tuning": str(choice.tuned)} if choice.tuned else {})
