"""Energies, forces, stresses and random results by an Ewald sum's method, and sums without some pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from parki import exclusions, left_out, scaling
from parki.arguments import Density
from parki.arrays import Array
from parki.engine import Space
from parki.ewald import kernels, sampling
from parki.ewald.choice import choose, measured, variants
from parki.ewald.choice.params import REACH
from parki.ewald.kernel import Kernel
from parki.ewald.options import EwaldOptions, quiet
from parki.ewald.problem import EwaldProblem
from parki.ewald.report import WallTime
from parki.ewald.sampling import Sampler
from parki.ewald.stages.points import Points
from parki.ewald.stages.sums import SumSteps
from parki.ewald.stages.virial import VirialStages
from parki.method import Place

FEW = 1000  # particles below which a stress needs a tenth of the tolerance


class Energies:
    """Base class of `parki.ewald.method.Ewald`: the parts for energies, random results, and pairs that are left out."""

    kernel: Kernel
    options: EwaldOptions
    space: Space | None
    gradient: bool | str

    def _compiled(self, problem: EwaldProblem, choice: Any, rhs: int) -> SumSteps:
        """Return the steps of `rhs` right-hand sides at once, with compiled and verified workunits."""
        raise NotImplementedError

    def ready(self, steps: SumSteps, choice: Any, rhs: int) -> SumSteps:
        """Compile and verify the workunits of steps; return the steps."""
        raise NotImplementedError

    def times(self, problem: EwaldProblem, choice: Any) -> WallTime:
        """Return a record of the times of all phases, set to zero."""
        raise NotImplementedError

    def sampler(self, problem: EwaldProblem, choice: Any) -> Sampler | None:
        """Return the sampler of random results, None where near or far field is not known to be positive."""
        p, options = sampling.parameters(choice.question), quiet(self.options, layout="dn")
        if p is None:
            return None
        selection = variants.choose(self.space, problem.dtype.name, options, p, problem.n_targets)
        choice = replace(choice, parameters=p, variants=selection)
        points = Points(p, problem.sources, problem.sources, self.space, selection)
        points.wrapped_from(max(problem.reach))

        def ready(kind: type[SumSteps], rhs: int) -> SumSteps:
            counts = problem.n_targets, problem.n_sources, True
            return self.ready(kind(p, selection, counts, self.space, options, rhs, problem.geometry), choice, rhs)

        return Sampler(p, points, ready, self.times(problem, choice))

    def outer(self, problem: EwaldProblem) -> Place:
        """Return the points in the caller's unit of length, and their cell."""
        geometry = problem.geometry
        y = scaling.times(problem.sources, -geometry.power)
        x = y if problem.same else scaling.times(problem.targets, -geometry.power)
        frame = None if geometry.frame is None else np.array(geometry.frame)
        return Place(x, y, left_out.vectors_of(problem.cell, geometry.power), frame)

    def refined(
        self, problem: EwaldProblem, choice: Any, density: Density, norms: Array, rows: Array
    ) -> tuple[Self, Any] | None:
        """Return the choice for a sum that is smaller than the estimates assume; None if the old choice suffices."""
        question, p = choice.question, choice.parameters
        sizes = measured.sizes(question, p, problem.power, density, rows)
        old_sizes = question.sizes or (1.0,) * len(sizes)
        near_error = p.tolerance * exclusions.least_share(rows, norms, self.gradient is True)
        pairs_suffice = near_error > exclusions.ENOUGH * p.pair_error
        if pairs_suffice and all(new > exclusions.ENOUGH * old for new, old in zip(sizes, old_sizes, strict=True)):
            return None
        near_error = p.pair_error if pairs_suffice else exclusions.rounded(near_error)
        new_sizes = tuple(min(exclusions.rounded(new), old) for new, old in zip(sizes, old_sizes, strict=True))
        question = replace(question, sizes=new_sizes)
        parameters = replace(choose.parameters(question), near_error=near_error)
        return self, replace(choice, question=question, parameters=parameters)

    def serves_energies(self, problem: EwaldProblem, stress: bool) -> bool:
        """Tell whether this sum gives energies and forces, and the `stress` if that is asked for, to the tolerance."""
        return self.gradient is True and not (stress and problem.n_sources < FEW)

    def with_gradient(self, problem: EwaldProblem, stress: bool) -> tuple[Self, EwaldProblem]:
        """Return the method and problem of the same sum with its gradient, also for the `stress` if asked for.

        For few particles the stress needs a tenth of the tolerance, because the errors of its modes do not average out.

        Raises
        ------
        ValueError
            For a kernel without a gradient.
        """
        kernel = self.kernel if self.gradient is True else kernels.gradient(self.kernel, True)
        options = quiet(self.options, layout="dn", graph=self.options.graph)
        if stress and problem.n_sources < FEW:
            options.tolerance = max(0.1 * options.tolerance, REACH[problem.dtype.name])
        return replace(self, kernel=kernel, gradient=True, options=options, served=True), problem

    def energy_sum(self, problem: EwaldProblem, choice: Any, structure: Any, times: WallTime) -> VirialStages:
        """Compile, verify and place the stages of one right-hand side of a sum with its gradient and virial."""
        p = choice.parameters
        choice = replace(choice, parameters=replace(p, kernel=p.kernel.with_virial()))
        return VirialStages(self._compiled(problem, choice, 1), structure.points, graph=self.options.graph)
