"""The plan of a sum as the functions take it that check its calls, measure its error, or describe it."""

from typing import Any, Protocol

import numpy as np

from parki.arrays import Array
from parki.engine.spaces import Space
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.ewald.geometry import Geometry
from parki.ewald.kernels import Kernel
from parki.ewald.options import EwaldOptions
from parki.ewald.stages.sums import Points, Stages


class Planned(Protocol):
    """A plan: see `parki.ewald.plan.Plan` for its attributes."""

    kernel: Kernel
    options: EwaldOptions
    space: Space
    on_gpu: bool
    dtype: np.dtype
    xp: Any
    geometry: Geometry
    given: Array | None
    n_targets: int
    n_sources: int
    question: Question
    chosen: Parameters
    points: Points | None
    stages: dict[int, Stages]
    others: dict[str, "Planned"]

    @property
    def parameters(self) -> Parameters:
        """Return the parameters in the caller's unit of length."""

    @property
    def memory(self) -> int:
        """Return the bytes of all arrays that the plan holds."""

    def __call__(self, dens: Array, normals: Array | None = None, *, out: Array | None = None) -> Array:
        """Sum at all targets."""

    def like(
        self, kernel: Kernel, trg: Array, src: Array, options: EwaldOptions, dtype: np.dtype,
        parameters: Parameters | None = None,
    ) -> "Planned":  # fmt: skip
        """Plan another sum with points in the stages' coordinates of this one."""

    def turned(self, kernel: Kernel) -> "Planned":
        """Return the plan of another kernel from the targets to the sources."""

    def take_reach(self, other: "Planned") -> None:
        """Take how far points were from the box from another plan."""

    def predict(self) -> Any:
        """Return the predicted time of a call."""
