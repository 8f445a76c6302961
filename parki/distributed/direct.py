"""Direct sums over ranks as a method of plans: sources travel in a ring."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from parki import all_pairs, scaling
from parki.arguments import Arguments, Density
from parki.arrays import Array, module_of
from parki.direct_method import Direct, DirectParameters, DirectStructure
from parki.distributed import agreement, communicators
from parki.distributed.agreement import agreed
from parki.distributed.comm import Comm
from parki.distributed.delivery import NOTHING
from parki.freespace import FreeProblem
from parki.prediction import Prediction
from parki.timing import PhaseTimes


def over(method: Direct) -> Direct:
    """Return direct sums over the ranks of their options' communicator; the method itself for a single rank."""
    ranks = communicators.of(method.options.comm)
    return method if ranks.size == 1 else RingDirect(method.kernel, method.options, method.space, method.served, ranks)


@dataclass(frozen=True, eq=False)
class RingProblem(FreeProblem):
    """The points of one rank, and the numbers of targets and sources of all ranks."""

    totals: tuple[int, int] = (0, 0)

    @property
    def empty(self) -> bool:
        """Tell whether there are no targets or no sources at all."""
        return not all(self.totals)


@dataclass(frozen=True, eq=False)
class RingDirect(Direct):
    """Direct sums over the ranks of a communicator."""

    comm: Comm | None = None

    def problem(self, targets: Any, sources: Any) -> RingProblem:
        """Check every rank's points."""
        facts = {"kernel": str(self.kernel), "layout": self.options.layout, "gradient": self.gradient}
        with agreed(self.comm, "checking points", facts) as check:
            own = super().problem(targets, sources)
            check.same = facts | {"dtype": own.dtype.name, "on a GPU": own.on_gpu}
        return self._over(own)

    def _over(self, own: FreeProblem) -> RingProblem:
        fields = {name: getattr(own, name) for name in FreeProblem.__dataclass_fields__}
        return RingProblem(**fields, totals=agreement.totals(self.comm, own.n_targets, own.n_sources))

    def moved(self, arguments: Arguments, *given: Any) -> tuple[Self, RingProblem]:
        """Check points that a plan moves to; None for those that stay."""
        with agreed(self.comm, "checking points", {"call": "move"}):
            _, own = super().moved(arguments, *given)
        return self, self._over(own)

    def transposed(self, problem: RingProblem, parameters: Any, kernel: str) -> tuple[Self, RingProblem, Any]:
        """Return the method and problem of a kernel's sum from the targets to the sources."""
        method, turned, _ = super().transposed(problem, parameters, kernel)
        return method, self._over(turned), None

    def place(
        self, problem: RingProblem, parameters: DirectParameters, structure: DirectStructure, rhs: int,
        times: PhaseTimes,
    ) -> RingSum:  # fmt: skip
        """Return the sum over a ring; direct sums of pieces launch by themselves."""
        return RingSum(self, problem, structure)

    def reference(self, problem: RingProblem, parameters: Any, chosen: Array, density: Density) -> np.ndarray:
        """Return the sum at chosen targets in double precision: ``(rhs, components, n)``."""
        xp, wide = module_of(problem.sources), np.float64
        x, y = (scaling.times(a.astype(wide), -problem.power) for a in (problem.targets, problem.sources))
        axes = None if density.normals is None else density.normals.astype(wide)
        x = xp.ascontiguousarray(x[:, xp.asarray(chosen)])
        return all_pairs.direct_sums(self.kernel, x, y, density.values.astype(wide), axes, self.space, self.comm)

    def predict(self, problem: RingProblem, *given: Any) -> Prediction:
        """Predict the time of a call: of the pairs of this rank's targets."""
        return super().predict(replace(problem, n_sources=problem.totals[1]), *given)


class RingSum:
    """A direct sum over the sources of all ranks."""

    placed = NOTHING

    def __init__(self, method: RingDirect, problem: FreeProblem, structure: DirectStructure) -> None:
        self._method, self._structure, self._power = method, structure, problem.power

    def run(self, density: Array, normals: Array | None, out: Array, times: PhaseTimes) -> None:
        """Sum a density ``(rhs, components, Ns)`` with normals ``(3, Ns)`` to `out` ``(rhs, components, Nt)``."""
        method, own = self._method, self._structure
        x, y = (scaling.times(a, -self._power) for a in (own.targets, own.sources))
        with times.phase("pairs"):
            u = all_pairs.direct_sums(method.kernel, x, y, density, normals, method.space, method.comm)
            out[...] = module_of(out).asarray(u)
