"""Direct sums over ranks as a method of plans: sources travel in a ring."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from parki import all_pairs, scaling
from parki.arrays import Array, module_of
from parki.direct_method import Direct, DirectParameters, DirectStructure
from parki.distributed import freespace
from parki.distributed.delivery import NOTHING
from parki.distributed.freespace import FreeOverRanks, RanksProblem
from parki.freespace import FreeMethod, FreeProblem
from parki.prediction import Prediction
from parki.timing import PhaseTimes


def over(method: Direct) -> FreeMethod:
    """Return direct sums over the ranks of their options' communicator; the method itself for a single rank."""
    return freespace.over(method, RingDirect)


@dataclass(frozen=True, eq=False)
class RingDirect(FreeOverRanks, Direct):
    """Direct sums over the ranks of a communicator."""

    def place(
        self, problem: RanksProblem, parameters: DirectParameters, structure: DirectStructure, rhs: int,
        times: PhaseTimes,
    ) -> RingSum:  # fmt: skip
        """Return the sum over a ring; direct sums of pieces launch by themselves."""
        return RingSum(self, problem, structure)

    def predict(self, problem: RanksProblem, *details: Any) -> Prediction:
        """Predict the time of a call from the pairs of this rank's targets."""
        return super().predict(replace(problem, n_sources=problem.totals[1]), *details)


class RingSum:
    """A direct sum over the sources of all ranks."""

    placed = NOTHING

    def __init__(self, method: RingDirect, problem: FreeProblem, structure: DirectStructure) -> None:
        self._method, self._structure, self._power = method, structure, problem.power

    def run(self, density: Array, normals: Array | None, out: Array, times: PhaseTimes) -> None:
        """Sum a density ``(rhs, components, Ns)`` with normals ``(3, Ns)`` into `out` ``(rhs, components, Nt)``."""
        method, structure = self._method, self._structure
        x, y = (scaling.times(a, -self._power) for a in (structure.targets, structure.sources))
        with times.phase("pairs"):
            u = all_pairs.direct_sums(method.kernel, x, y, density, normals, method.space, method.comm)
            out[...] = module_of(out).asarray(u)
