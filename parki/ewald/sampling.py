"""Random results of an Ewald sum's matrix by split sampling: the near field by Lanczos, the far field by its modes."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from parki import lanczos, normal
from parki.arrays import Array
from parki.engine import spaces
from parki.ewald.choice import choose
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.ewald.problem import EwaldProblem
from parki.ewald.report import WallTime
from parki.ewald.split import profiles
from parki.ewald.stages.parts import NearSteps, NoiseStages, NoiseSteps
from parki.ewald.stages.points import Points
from parki.ewald.stages.sums import Stages, SumSteps

Groups = Callable[[int], Iterable[tuple[int, int]]]

NEAR_SUMS = 8.0  # sums of the near field that a square root takes, by which near and far field are balanced
LONGER, TRIES = 1.1, 20  # factor of a cutoff whose near field is not positive, and the most cutoffs that are tried


def parameters(question: Question) -> Parameters | None:
    """Choose the parameters by which random results take the least time, None if no near field is positive."""
    kernel = question.kernel
    if question.periodicity < 3 or kernel.spectrum.form is None:
        return None
    costly = replace(question, kernel=replace(kernel, near=NEAR_SUMS * kernel.near), rc=None, cell_size=None)
    p = choose.parameters(costly)
    for _ in range(TRIES):
        if kernel.is_positive(profiles.profile(p.split, p.c, p.rc, p.xi), p.tolerance):
            return replace(p, kernel=kernel)
        if LONGER * p.rc > min(question.box):
            return None
        p = choose.parameters(replace(costly, rc=LONGER * p.rc))
    return None


class Sampler:
    """Near field and modes of a sum by themselves.

    Parameters
    ----------
    p : Parameters
    points : Points
        Points of the sum, sorted for its parameters.
    ready : function
        Return compiled steps of a class for a number of right-hand sides, components first.
    times : WallTime

    References
    ----------
    Fiore, Balboa Usabiaga, Donev and Swan, J. Chem. Phys. 146 (2017) 124116.
    """

    def __init__(
        self, p: Parameters, points: Points, ready: Callable[[type[SumSteps], int], Any], times: WallTime
    ) -> None:  # fmt: skip
        self._p, self._points, self._ready, self._times = p, points, ready, times
        self._near: dict[int, Stages] = {}
        self._far = NoiseStages(ready(NoiseSteps, 1), points)

    def draw(self, rng: np.random.Generator, count: int, tolerance: float, groups: Groups, products: int) -> Array:
        """Return random results (count, components, N), each of the covariance of the sum's matrix.

        Parameters
        ----------
        rng
            Generator of random numbers: of the near field for all results, then of the grid for each.
        count
            Number of results.
        tolerance
            Relative error of the near field's square root.
        groups
            Function from a number of right-hand sides to the first and the number of each group in a pass.
        products
            Products with the near field, at most.

        Raises
        ------
        ValueError
            Where the near field has an eigenvalue below zero, beyond the tolerance of the sum.
        ArithmeticError
            Where this number of products does not meet the tolerance.
        """
        p, far = self._p, self._far
        dens, xp = p.kernel.dens, spaces.array_module(far.sum.space)
        z = normal.numbers(rng, (count, dens * far.sum.density.shape[-1]), p.dtype, xp)

        def product(columns: Array) -> Array:
            values = xp.ascontiguousarray(columns.T).reshape(columns.shape[1], dens, -1)
            out = xp.empty_like(values)
            for first, size in groups(len(values)):
                part = slice(first, first + size)
                self._near_sum(size).run(values[part], None, out[part], self._times)
            return out.reshape(len(out), -1).T

        root = lanczos.square_root(product, xp.ascontiguousarray(z.T), tolerance, products, xp, p.tolerance)
        results = xp.ascontiguousarray(root.values.T).reshape(count, dens, -1)
        noise = xp.empty_like(results[:1])
        for result in results:
            far.draw(normal.numbers(rng, far.sum.noise.shape, p.far, xp), noise, self._times)
            result += noise[0]
        return results

    def move(self, problem: EwaldProblem) -> None:
        """Take other points, as many as before."""
        self._points.move(None, problem.sources)
        self._points.wrapped_from(max(problem.reach))

    @property
    def sums(self) -> list[Stages]:
        """Return all placed stages."""
        return [self._far, *self._near.values()]

    def _near_sum(self, rhs: int) -> Stages:
        """Return the near field of a number of right-hand sides."""
        if rhs not in self._near:
            self._near[rhs] = Stages(self._ready(NearSteps, rhs), self._points)
        return self._near[rhs]
