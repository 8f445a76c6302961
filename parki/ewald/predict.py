"""What a plan is predicted to cost: the model that chose its parameters, applied to them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parki.engine import spaces
from parki.engine.spaces import Space
from parki.ewald import params
from parki.ewald.params import Parameters
from parki.ewald.report import Params
from parki.perfmodels import select
from parki.perfmodels.machine import H200, Costs

if TYPE_CHECKING:
    from parki.ewald.plan import Plan


@dataclass(frozen=True)
class Prediction:
    """Predicted seconds of a call by phase, for the cores and GPUs that the model was calibrated for.

    Attributes
    ----------
    near, transform, spread, gather : float
        P2P; transforms and multipliers; P2G; G2P.
    memory : int
        Bytes of the arrays that the plan holds.
    """

    near: float
    transform: float
    spread: float
    gather: float
    memory: int

    @property
    def seconds(self) -> float:
        """The whole call."""
        return self.near + self.transform + self.spread + self.gather

    def __str__(self) -> str:
        names = {"near": self.near, "transform": self.transform, "spread": self.spread, "gather": self.gather}
        parts = ", ".join(f"{name} {_time(seconds)}" for name, seconds in names.items())
        return f"predicted {_time(self.seconds)} a call ({parts}), holds {_size(self.memory)}"


def costs(space: Space) -> Costs:
    """Calibrated costs of a space."""
    return H200 if space.kind == "device" else Costs()


def predict(p: Parameters, n_targets: int, n_sources: int, space: Space, memory: int) -> Prediction:
    """Predict a sum of these parameters; OpenMP's threads share its work evenly."""
    if not (n_targets and n_sources):
        return Prediction(0.0, 0.0, 0.0, 0.0, memory)
    tolerance = max(p.tolerance, params.REACH[p.dtype])
    domain = select.Domain(p.box, p.periodicity, tolerance, params.edges(p.box, p.skew))
    spacing = max(h * edge / side for h, edge, side in zip(p.h, domain.edges, p.box, strict=True))
    points, _ = domain.work(spacing, np.array(p.grid), p.P, p.rc)
    itemsize = np.dtype(p.dtype).itemsize
    found = select.phases(p.kernel, n_targets, n_sources, domain, p.rc, points, p.P, itemsize, costs(space))
    threads = (space.threads or spaces.threads()) if space.name == "OpenMP" else 1
    return Prediction(**{name: float(seconds) / threads for name, seconds in found.items()}, memory=memory)


def held(plan: "Plan") -> int:
    """Bytes of all arrays that a plan holds, each counted once."""
    found = {}
    for part in [plan.points, *plan.stages.values()] if plan.points else []:
        for a in part.arrays:
            while getattr(a, "base", None) is not None and hasattr(a.base, "nbytes"):
                a = a.base
            found[id(a)] = a
    own = sum(a.nbytes for a in found.values()) + (0 if plan.given is None else plan.given.nbytes)
    return own + sum(other.memory for other in plan.others.values())


def describe(plan: "Plan") -> str:
    """A plan in a few lines."""
    p, (l0, l1, l2) = plan.parameters, plan.parameters.box
    axes = "".join(axis for axis, on in zip("xyz", plan.options.periodic, strict=True) if on) or "no direction"
    shape = f"box {l0:.4g} × {l1:.4g} × {l2:.4g}" if p.skew is None else "triclinic cell"
    return (
        f"{plan.kernel}: {plan.n_targets} targets, {plan.n_sources} sources, {plan.dtype}, {plan.space.name}\n"
        f"{shape}, periodic in {axes}, tolerance {p.tolerance:g}\n"
        f"{Params(p)}\n{plan.predict()}"
    )


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _size(count: int) -> str:
    return f"{count / 1e9:.3g} GB" if count >= 1e9 else f"{count / 1e6:.3g} MB"
