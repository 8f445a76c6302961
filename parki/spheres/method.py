"""Sums of spheres of several radii as a method of plans: another method's sum of a flow and of its Laplacian.

By Faxén's laws a sphere of radius a moves with the flow u of the others plus a²/6 ∇²u, and one of radius b has the flow
of its force f and of the doublet b²f/6.  Pairs closer than two of the largest radius are corrected from a list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from parki import arrays, pairs
from parki.adjoints import Adjoint, Multiple
from parki.arguments import Density
from parki.arrays import Array, module_of
from parki.engine import spaces
from parki.engine.steps import Placed
from parki.lengths import OfLengths
from parki.method import Method, Problem, Structure, Sum
from parki.pairs import Pair
from parki.spheres import close, mobility
from parki.spheres.close import ClosePairs
from parki.spheres.flow import SIZED
from parki.spheres.radii import Radii
from parki.timing import PhaseTimes

AT_ONCE = 1 << 18  # pairs of a reference sum that NumPy computes together


@dataclass(eq=False)
class SpheresStructure:
    """Structure of the flow's sum, and the close pairs."""

    flow: Structure
    close: ClosePairs

    @property
    def arrays(self) -> list[Array]:
        """Return every array."""
        return [*self.flow.arrays, *self.close.arrays]

    def originals(self) -> tuple[Array, Array]:
        """Return targets and sources in the caller's order, one array if they are the same."""
        return self.flow.originals()


class SpheresSum:
    """Sum of a flow and its Laplacian, from forces to velocities of spheres.

    Parameters
    ----------
    flow : Sum
    structure : SpheresStructure
    weights : tuple of arrays (Nt,) and (Ns,)
        Factors of the Laplacian at targets, and of doublets at sources.
    rows : bool
        Whether results have their components last in memory.
    """

    def __init__(self, flow: Sum, structure: SpheresStructure, weights: tuple[Array, Array], rows: bool) -> None:
        self._flow, self._structure, self._weights, self._rows = flow, structure, weights, rows

    @property
    def placed(self) -> Placed:
        """Return the placed steps of the flow."""
        return self._flow.placed

    def run(self, density: Array, normals: Array | None, out: Array, times: PhaseTimes) -> None:
        """Sum forces ``(rhs, 3, Ns)`` to velocities `out` ``(rhs, 3, Nt)``."""
        xp, (rhs, _, n) = module_of(density), out.shape
        of_targets, of_sources = self._weights
        forces = xp.concatenate([density, density * of_sources], axis=1)
        if self._rows:
            forces = xp.ascontiguousarray(forces.swapaxes(1, 2)).swapaxes(1, 2)
        flow = xp.empty((rhs, n, 6) if self._rows else (rhs, 6, n), out.dtype)
        flow = flow.swapaxes(1, 2) if self._rows else flow
        self._flow.run(forces, None, flow, times)
        for r in range(rhs):
            velocities = xp.ascontiguousarray(flow[r, :3] + of_targets * flow[r, 3:])
            self._structure.close.add(xp.ascontiguousarray(density[r]), velocities)
            out[r] = velocities


@dataclass(frozen=True, eq=False)
class Spheres(OfLengths):
    """Mobilities of spheres of several radii, over a method of the pair `FAXEN` or `SIZED` with the largest radius."""

    method: Method
    lengths: Radii

    @property
    def kernel(self) -> Pair:
        """Return the pair of spheres that have the largest radius."""
        return replace(pairs.PAIRS["rpy"], parameters=(self.lengths.largest,))

    def _checked(self, problem: Problem) -> Problem:
        super()._checked(problem)
        close.check(self.lengths, close.cell_of(problem.cell, problem.power))
        return problem

    # Sums -------------------------------------------------------------------------------------------------------------
    def arrange(self, problem: Problem, parameters: Any, times: PhaseTimes) -> tuple[Any, SpheresStructure]:
        """Arrange the points of the flow's sum, and list close pairs."""
        parameters, structure = self.method.arrange(problem, parameters, times)
        return parameters, SpheresStructure(structure, self._close(problem))

    def rearrange(self, problem: Any, parameters: Any, structure: SpheresStructure, times: PhaseTimes) -> None:
        """Move the points of the flow's sum, and list close pairs anew."""
        self.method.rearrange(problem, parameters, structure.flow, times)
        place = self.method.outer(problem.with_points(*structure.flow.originals()))
        structure.close = structure.close.moved(place, close.cell_of(problem.cell, problem.power))

    def _close(self, problem: Problem) -> ClosePairs:
        cell = close.cell_of(problem.cell, problem.power)
        return ClosePairs.of(
            self.method.outer(problem), cell, self.lengths, self.lengths.largest, problem.dtype, self.space
        )

    def place(
        self, problem: Problem, parameters: Any, structure: SpheresStructure, rhs: int, times: PhaseTimes
    ) -> SpheresSum:
        """Compile, verify and place the steps of a number of right-hand sides."""
        flow, is_rows = self.method.place(problem, parameters, structure.flow, rhs, times), self.options.layout == "nd"
        return SpheresSum(flow, structure, self._weights(problem, problem.dtype), is_rows)

    def _weights(self, problem: Problem, dtype: Any) -> tuple[Array, Array]:
        """Return a²/6 of targets and sources in the unit of length of the flow's sum, or over that of the largest."""
        xp, both = spaces.array_module(self.space), (self.lengths.targets, self.lengths.sources)
        if self.method.kernel == replace(SIZED, parameters=self.method.kernel.parameters):
            weights = [(values / self.lengths.largest) ** 2 for values in both]
        else:
            weights = [np.ldexp(values, problem.power) ** 2 / 6 for values in both]
        of_targets, of_sources = (xp.asarray(values.astype(dtype)) for values in weights)
        return of_targets, of_sources

    def most_rhs(self, parameters: Any, structure: SpheresStructure) -> int:
        """Return the most right-hand sides that pass at once."""
        return self.method.most_rhs(parameters, structure.flow)

    def retire(
        self, problem: Problem, parameters: Any, structure: SpheresStructure, sums: dict[int, SpheresSum]
    ) -> None:
        """Keep the arrays of the flow's sum for other sums."""
        self.method.retire(problem, parameters, structure.flow, {rhs: item._flow for rhs, item in sums.items()})

    # Queries ----------------------------------------------------------------------------------------------------------
    def adjoint(self) -> Adjoint:
        """Return the transposed sum: of the same kernel."""
        return Multiple(self.kernel.name)

    def transposed(self, problem: Problem, parameters: Any, kernel: str) -> tuple[Self, Problem, Any]:
        """Return the method, problem and parameters (or None) of the sum from the sources to the targets."""
        flow, problem, parameters = self.method.transposed(problem, parameters, self.method.kernel.name)
        return replace(self, method=flow, lengths=self.lengths.turned()), problem, parameters

    def sampler(self, problem: Problem, parameters: Any) -> None:
        """Return None: Lanczos' method draws random results."""

    def predict(self, problem: Problem, parameters: Any, structure: SpheresStructure | None, memory: int) -> Any:
        """Predict the time of a call, without close pairs."""
        return self.method.predict(problem, parameters, None if structure is None else structure.flow, memory)

    def schedule(self, item: SpheresSum) -> Any:
        """Return the tasks of the flow's sum, None without."""
        schedule = getattr(self.method, "schedule", None)
        return None if schedule is None else schedule(item._flow)

    def reference(self, problem: Problem, parameters: Any, chosen: Array, density: Density) -> np.ndarray:
        """Return the sum at chosen targets, ``(rhs, 3, n)``: in free space over all pairs, else by another sum."""
        place, index = self.method.outer(problem), arrays.to_host(chosen)
        cell = close.cell_of(problem.cell, problem.power)
        radii = Radii(self.lengths.targets[index], self.lengths.sources)
        x, y = (arrays.to_host(a).astype(np.float64) for a in (place.targets, place.sources))
        forces = arrays.to_host(density.values).astype(np.float64)
        if cell is None:
            return _direct(x[:, index], y, radii, forces)
        weights = self._weights(problem, np.float64)
        values = density.values.astype(np.float64)
        flow_density = density._replace(values=module_of(values).concatenate([values, values * weights[1]], axis=1))
        flow = self.method.reference(problem, parameters, chosen, flow_density)
        sums = flow[:, :3] + arrays.to_host(weights[0])[index] * flow[:, 3:]
        xp, largest = spaces.array_module(self.space), self.lengths.largest
        some = place._replace(targets=xp.asarray(x[:, index]), sources=xp.asarray(y))
        close_pairs = ClosePairs.of(some, cell, radii, largest, np.float64, self.space)
        total = xp.asarray(sums)
        for velocities, row in zip(total, xp.asarray(forces), strict=True):
            close_pairs.add(row, velocities)
        return arrays.to_host(total)


def _direct(x: Array, y: Array, radii: Radii, forces: Array) -> np.ndarray:
    """Return the sum over all pairs of targets x (3, n) and sources y (3, Ns) on the host: (rhs, 3, n)."""
    step = max(1, AT_ONCE // max(1, y.shape[1]))
    parts = []
    for first in range(0, x.shape[1], step):
        part = slice(first, first + step)
        d = x[:, part, None] - y[:, None, :]
        r = np.sqrt((d**2).sum(axis=0))
        a, b = mobility.exact(r, radii.targets[part, None], radii.sources[None, :])
        n = d / np.where(r > 0, r, 1.0)
        along = np.einsum("dij,rdj->rij", n, forces)
        parts.append(np.einsum("ij,rdj->rdi", a, forces) + np.einsum("rij,dij->rdi", b * along, n))
    return np.concatenate(parts, axis=2)
