"""Sums of charges with a softening length each, as a method of plans: sums of one length, by another method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from parki import all_pairs, arrays, own_terms, scaling
from parki.arguments import Density
from parki.arrays import Array, module_of
from parki.engine import spaces
from parki.freespace import FreeMethod, FreeProblem
from parki.lengths import OfLengths
from parki.method import Structure, Sum
from parki.pairs import Pair
from parki.prediction import Prediction
from parki.softening.kinds import Kinds, LengthPart
from parki.timing import PhaseTimes


@dataclass(frozen=True, eq=False)
class SoftenedStructure:
    """Points of a sum in the caller's order, and the structure and problem of each part.

    Attributes
    ----------
    targets, sources : array
        One array if they are the same.
    parts : list of tuple
        Method, problem and structure.
    """

    targets: Array
    sources: Array
    parts: list[tuple[FreeMethod, FreeProblem, Structure]]

    @property
    def arrays(self) -> list[Array]:
        """Return every array."""
        return [self.targets, self.sources, *(a for _, _, structure in self.parts for a in structure.arrays)]

    def originals(self) -> tuple[Array, Array]:
        """Return targets and sources, one array if they are the same."""
        return self.targets, self.sources


class PlacedParts:
    """Placed steps of several sums: see `parki.engine.steps.Placed`."""

    def __init__(self, sums: Sequence[Sum]) -> None:
        self._placed = [part.placed for part in sums]

    @property
    def arrays(self) -> list[Array]:
        """Return every array."""
        return [a for placed in self._placed for a in placed.arrays]

    @property
    def replays(self) -> list[Any]:
        """Return recorded launches."""
        return [replay for placed in self._placed for replay in placed.replays]

    @property
    def memory_of(self) -> PlacedParts:
        """Return the object itself, as the memory of all steps."""
        return self

    @property
    def unmade(self) -> int:
        """Return the bytes of arrays that are made when they are first used."""
        return sum(placed.memory_of.unmade for placed in self._placed)


class SoftenedSum:
    """Sum over parts.

    Parameters
    ----------
    sums : list of Sum
    indices : list of tuple of arrays
        Targets and sources of each part.
    """

    def __init__(self, sums: list[Sum], indices: list[tuple[Array, Array]]) -> None:
        self._sums, self._indices, self.placed = sums, indices, PlacedParts(sums)

    def run(self, density: Array, normals: Array | None, out: Array, times: PhaseTimes) -> None:
        """Sum a density ``(rhs, 1, Ns)`` to `out` ``(rhs, components, Nt)``."""
        xp = module_of(density)
        out[...] = 0
        for part, (targets, sources) in zip(self._sums, self._indices, strict=True):
            u = xp.empty((*out.shape[:2], len(targets)), out.dtype)
            part.run(density[..., sources], None, u, times)
            out[..., targets] += u


@dataclass(frozen=True, eq=False)
class Softened(OfLengths):
    """Softened charges of several lengths, over a method for the largest one."""

    method: FreeMethod
    lengths: Kinds

    def kept(self, old: FreeProblem, new: FreeProblem, parameters: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return the parameters of moved points, None to have new ones chosen."""
        return None if self.method.kept(old, new, parameters[0]) is None else parameters

    def _kernel(self, length: float) -> Pair:
        return replace(self.method.kernel, parameters=(length,))

    def _part(self, problem: FreeProblem, part: LengthPart) -> tuple[FreeMethod, FreeProblem]:
        """Return the method and problem of a part."""
        method = replace(self.method, kernel=self._kernel(part.length), served=True)
        method = replace(method, options=replace(method.options, verbose=False))
        xp = spaces.array_module(self.space)

        def some(points: Array, index: Array) -> Array:
            return scaling.times(xp.ascontiguousarray(points[:, xp.asarray(index)]), -problem.power)

        sources = some(problem.sources, part.sources)
        targets = sources if part.targets is part.sources else some(problem.targets, part.targets)
        return method, method.of(targets, sources, problem.on_gpu)

    # Sums -------------------------------------------------------------------------------------------------------------
    def choose(self, problem: FreeProblem) -> tuple[Any, ...]:
        """Choose parameters of each part."""
        if problem.empty:
            return (self.method.choose(problem),)
        parts = (self._part(problem, part) for part in self.lengths.parts)
        return tuple(method.choose(part) for method, part in parts)

    def arrange(
        self, problem: FreeProblem, parameters: tuple[Any, ...], times: PhaseTimes
    ) -> tuple[tuple[Any, ...], SoftenedStructure]:
        """Arrange the points of each part."""
        refined_parameters, parts, pairs = [], [], {}
        for part, part_parameters in zip(self.lengths.parts, parameters, strict=True):
            method, part_problem = self._part(problem, part)
            refined, structure = method.arrange(part_problem, part_parameters, times)
            refined_parameters.append(refined)
            parts.append((method, part_problem.with_points(None, None), structure))
            for name, count in times.pairs.items():
                pairs[name] = pairs.get(name, 0.0) + count
        times.pairs = pairs
        sources = problem.sources.copy()
        targets = sources if problem.same else problem.targets.copy()
        return tuple(refined_parameters), SoftenedStructure(targets, sources, parts)

    def place(
        self, problem: FreeProblem, parameters: tuple[Any, ...], structure: SoftenedStructure, rhs: int,
        times: PhaseTimes,
    ) -> SoftenedSum:  # fmt: skip
        """Compile and place the steps of each part."""
        xp = spaces.array_module(self.space)
        sums = [
            method.place(part_problem, part_parameters, part, rhs, times)
            for (method, part_problem, part), part_parameters in zip(structure.parts, parameters, strict=True)
        ]
        indices = [(xp.asarray(part.targets), xp.asarray(part.sources)) for part in self.lengths.parts]
        return SoftenedSum(sums, indices)

    # Queries ----------------------------------------------------------------------------------------------------------
    def own_terms(self, problem: FreeProblem) -> np.ndarray | None:
        """Return the fields (result, 1, N) of particles at themselves that sums leave out; None for none."""
        if self.method.own_terms(problem) is None or not len(self.lengths.values):
            return None
        terms = np.concatenate([own_terms.of(self._kernel(length)) for length in self.lengths.values.tolist()], axis=2)
        return terms[..., np.searchsorted(self.lengths.values, self.lengths.sources)]

    def transposed(self, problem: FreeProblem, parameters: tuple[Any, ...], kernel: str) -> tuple[Self, Any, None]:
        """Return the method and problem of the sum from the sources to the targets."""
        method, problem, _ = self.method.transposed(problem, parameters[0], kernel)
        return replace(self, method=method, lengths=self.lengths.turned()), problem, None

    def with_gradient(self, problem: FreeProblem, stress: bool) -> tuple[Self, FreeProblem]:
        """Return the method and problem of the same sum with its gradient."""
        method, problem = self.method.with_gradient(problem, stress)
        return replace(self, method=method), problem

    def reference(
        self, problem: FreeProblem, parameters: tuple[Any, ...], chosen: Array, density: Density
    ) -> np.ndarray:
        """Return direct sums in double precision at chosen targets: ``(rhs, components, n)``."""
        x, y = (
            scaling.times(arrays.to_host(a).astype(np.float64), -problem.power)
            for a in (problem.targets, problem.sources)
        )
        index, values = arrays.to_host(chosen), arrays.to_host(density.values).astype(np.float64)
        sums = np.zeros((len(values), self.kernel.result, len(index)))
        for length, places, sources in Kinds(self.lengths.targets[index], self.lengths.sources).parts:
            some = (np.ascontiguousarray(a) for a in (x[:, index[places]], y[:, sources], values[..., sources]))
            sums[..., places] += all_pairs.direct_sums(self._kernel(length), *some, None, self.space)
        return sums

    def expected(self, parameters: tuple[Any, ...]) -> float:
        """Return the relative error that the sum of each part is expected to have."""
        return max(self.method.expected(p) for p in parameters)

    def predict(
        self, problem: FreeProblem, parameters: tuple[Any, ...], structure: SoftenedStructure | None, memory: int
    ) -> Prediction:
        """Predict the time of a call, by those of all parts."""
        if structure is None:
            return self.method.predict(problem, parameters[0], None, memory)
        phases: dict[str, float] = {}
        for (method, part_problem, part), part_parameters in zip(structure.parts, parameters, strict=True):
            for name, seconds in method.predict(part_problem, part_parameters, part, 0).phases.items():
                phases[name] = phases.get(name, 0.0) + seconds
        return Prediction(phases, memory)

    def schedule(self, sums: SoftenedSum) -> None:
        """Return None: each part has a schedule of its own."""

    def public(self, problem: FreeProblem, parameters: tuple[Any, ...]) -> Any:
        """Return the parameters of the part with most pairs."""
        return self.method.public(problem, parameters[0])

    def describe(self, problem: FreeProblem, parameters: tuple[Any, ...], prediction: Prediction) -> dict[str, str]:
        """Describe a plan: lines by title, with the parameters of the part with most pairs."""
        lines = self.method.describe(problem, parameters[0], prediction)
        return {**lines, "epsilon": f"{len(self.lengths.values)} lengths, {len(self.lengths.parts)} sums"}
