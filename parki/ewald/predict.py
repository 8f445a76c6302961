"""What a plan is predicted to cost: the model that chose its parameters, applied to them."""

from dataclasses import dataclass

import numpy as np

from parki.engine import spaces
from parki.engine.spaces import Space
from parki.ewald import params
from parki.ewald.params import Parameters
from parki.perfmodels import select
from parki.perfmodels.machine import Costs


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


def predict(
    p: Parameters, n_targets: int, n_sources: int, space: Space, costs: Costs | None, memory: int
) -> Prediction:
    """Predict a sum of these parameters; OpenMP's threads share its work evenly."""
    if not (n_targets and n_sources):
        return Prediction(0.0, 0.0, 0.0, 0.0, memory)
    tolerance = max(p.tolerance, params.REACH[p.dtype])
    domain = select.Domain(p.box, p.periodicity, tolerance, params.edges(p.box, p.skew))
    spacing = max(h * edge / side for h, edge, side in zip(p.h, domain.edges, p.box, strict=True))
    points, _ = domain.work(spacing, np.array(p.grid), p.P, p.rc)
    itemsize = np.dtype(p.dtype).itemsize
    found = select.phases(p.kernel, n_targets, n_sources, domain, p.rc, points, p.P, itemsize, costs)
    threads = (space.threads or spaces.threads()) if space.name == "OpenMP" else 1
    return Prediction(**{name: float(seconds) / threads for name, seconds in found.items()}, memory=memory)


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _size(count: int) -> str:
    return f"{count / 1e9:.3g} GB" if count >= 1e9 else f"{count / 1e6:.3g} MB"
