"""Direct sums as a method of plans: exact, of all pairs, for few points and as a reference."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from parki import all_pairs, engine, prediction
from parki.arrays import Array
from parki.engine.steps import Step, Steps, argument, constant, glue, result, state
from parki.freespace import FreeMethod, FreeProblem, FreeSum
from parki.options import FreeOptions
from parki.perfmodels.counts import clusters
from parki.prediction import PlanCost, Prediction, machine_of
from parki.proxies import ProxyKernels
from parki.timing import PhaseTimes

PHASES = {"lists": "launches", "pack": "packing of sources", "pairs": "pairs"}
PLANNED = ("lists",)
ROUNDING = {"float64": 1e-14, "float32": 1e-6}  # relative error of a sum by dtype


@dataclass(frozen=True)
class DirectParameters:
    """Parameters of a direct sum: its rounding alone.

    Attributes
    ----------
    expected : float
        Relative error by rounding.
    """

    expected: float

    def __str__(self) -> str:
        return f"rounding {self.expected:g}"


@dataclass(frozen=True, eq=False)
class DirectStructure:
    """Points of a direct sum, in the caller's order: targets (3, Nt) and sources (3, Ns)."""

    targets: Array
    sources: Array

    @property
    def arrays(self) -> list[Array]:
        """Return every array of the points."""
        return [self.targets, self.sources]

    def originals(self) -> tuple[Array, Array]:
        """Return targets and sources, one array if they are the same."""
        return self.targets, self.sources


class Direct(FreeMethod):
    """Direct sums over all pairs, see `parki.direct`."""

    options: FreeOptions
    name = "direct"
    phases, planned = PHASES, PLANNED

    def choose(self, problem: FreeProblem) -> DirectParameters:
        """Return the rounding of the points' dtype."""
        return DirectParameters(ROUNDING[problem.dtype.name])

    def arrange(
        self, problem: FreeProblem, parameters: DirectParameters, times: PhaseTimes
    ) -> tuple[DirectParameters, DirectStructure]:
        """Copy the points."""
        sources = problem.sources.copy()
        return parameters, DirectStructure(sources if problem.same else problem.targets.copy(), sources)

    def place(
        self, problem: FreeProblem, parameters: DirectParameters, structure: DirectStructure, rhs: int,
        times: PhaseTimes,
    ) -> FreeSum:  # fmt: skip
        """Place the steps: rows of places, charges and parameters, and the sum over all of them."""
        pair, dtype, n, nt = problem.linear, problem.dtype, problem.n_sources, problem.n_targets
        charges = argument("charges", (pair.dens, n), dtype)
        u = result("u", (pair.result, nt), dtype)
        targets, order = constant("targets", structure.targets), constant("order", np.arange(n, dtype=np.int32))
        sources = targets if problem.same else constant("sources", structure.sources)
        rows = state("rows", (n, 3 + pair.strengths), dtype)
        numbers = state("parameters", (max(1, len(pair.parameters)), n), dtype)
        first = [glue.gather_columns("lists", sources, order, rows, 0)]
        for k, value in enumerate(pair.parameters):
            first += glue.fill("lists", numbers[k], value)
        if pair.parameters:
            first.append(glue.gather_columns("lists", numbers, order, rows, 3 + pair.dens))
        args = {"xt": targets, "src": rows, "u": u, "nt": nt, "ns": n, "chunk": all_pairs.CHUNK}
        args["tiny"] = all_pairs.coincident(dtype)
        unit, teams = all_pairs.workunit(pair, dtype), math.ceil(nt / all_pairs.CHUNK)
        steps = [
            glue.gather_columns("pack", charges, order, rows, 3),
            Step("pairs", unit, teams, args, shape=(all_pairs.CHUNK, 1)),
        ]
        with times.phase("lists"):
            placed_steps = Steps(steps, first).place(self.space)
        return FreeSum(placed_steps, charges, u, problem.with_points(None, None))

    def predict(
        self, problem: FreeProblem, parameters: DirectParameters, structure: DirectStructure | None, memory: int
    ) -> Prediction:
        """Predict the time of a call."""
        machine, real = machine_of(self.space), problem.dtype
        text = engine.operations(ProxyKernels(problem.linear, real, real, 1).ranges())  # the same loop over sources
        pairs = problem.n_targets * problem.n_sources
        seconds = pairs * clusters.time_of(text, machine, real.name) if pairs else 0.0
        return Prediction({"pairs": seconds / engine.spaces.workers(self.space)}, memory)

    def cost(self, problem: FreeProblem, parameters: DirectParameters, limit: float | None = None) -> PlanCost:
        """Predict the seconds of a plan and of a call."""
        seconds = prediction.of_generic_pairs(self.space) * self.predict(problem, parameters, None, 0).seconds
        return PlanCost(prediction.making(self.name, problem.points), seconds)
