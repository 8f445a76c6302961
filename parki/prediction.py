"""Predicted cost of a call of a plan, and the machine of the prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from parki import engine
from parki.engine import Space, devices, toolchains
from parki.perfmodels import machine
from parki.perfmodels.machine import GENERIC, H200, Costs, Machine

if TYPE_CHECKING:
    from parki.timing import PhaseTimes

GPU = "h200"  # machine that stands for an unknown GPU
#: Seconds of making a plan with compiled kernels: fixed, and for each point.  Measured on two cores: of Zen 4 for
#: points of Ewald sums and for fast multipole sums of even points; else of Zen 3, or by ratios on Zen 4.
MAKING = {
    "direct": (2e-3, 1e-8), "ewald": (15e-3, 1e-7), "treecode": (15e-3, 5e-7), "treecode of lengths": (0.08, 5e-7),
    "fmm": (13e-3, 1.1e-7), "uneven fmm": (32e-3, 1.4e-7),
}  # fmt: skip
#: Shares of the time predicted for a generic host: of Ewald sums, and of direct sums and treecodes by bytes of vectors
#: (AVX-512: 0.36 to 0.53 on Emerald Rapids, 0.4 to 0.5 on Zen 4; AVX2: 1 and 0.6).
GENERIC_SHARE, PAIRS_SHARES = 0.6, {64: 0.45, 32: 0.8}


@dataclass(frozen=True)
class Prediction:
    """Hold the predicted seconds of a call by phase, for the cores and GPUs that the model was calibrated for.

    The seconds of a phase are an attribute, too: ``prediction.near`` is ``prediction.phases["near"]``.

    Parameters
    ----------
    phases : dict
        Seconds by phase.
    memory : int
        Bytes of the arrays that the plan holds.

    See Also
    --------
    parki.plan.Plan.predict : Predict a call of a plan.

    Examples
    --------
    >>> from parki.prediction import Prediction
    >>> prediction = Prediction({"near": 0.25, "far": 0.125}, 2_000_000)
    >>> prediction.seconds, prediction.near
    (0.375, 0.25)
    """

    phases: Mapping[str, float]
    memory: int

    def __getattr__(self, name: str) -> float:
        phases = vars(self).get("phases", {})  # not there yet while a copy is made
        if name not in phases:
            raise AttributeError(f"{name!r} is no attribute of a {type(self).__name__} of phases {', '.join(phases)}")
        return phases[name]

    @property
    def seconds(self) -> float:
        """Return the seconds of the whole call."""
        total = 0.0
        for seconds in self.phases.values():  # in order: `sum` rounds in other ways since Python 3.12
            total += seconds
        return total

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {_time(seconds)}" for name, seconds in self.phases.items())
        return f"predicted {_time(self.seconds)} a call ({parts}), holds {_size(self.memory)}"


class Draft(NamedTuple):
    """Refined parameters, trees and lists that a prediction took, from which `Method.finish` goes on, and their times.

    The trees and lists of treecodes are a whole structure.
    """

    parameters: Any
    arranged: Any
    times: PhaseTimes


@dataclass(frozen=True)
class PlanCost:
    """Predicted seconds of making a plan, of one call, and, once, of tables that are kept for plans like it.

    The draft of the plan is there if the prediction took one.
    """

    making: float
    call: float
    once: float = 0.0
    draft: Draft | None = field(default=None, repr=False, compare=False)

    def of(self, calls: int, plans: int = 1) -> float:
        """Return the seconds of a plan with a number of calls, and of its share of the tables of several plans."""
        return self.again(calls) + self.once / plans

    def again(self, calls: int) -> float:
        """Return the seconds of another plan like it, with a number of calls."""
        return self.making + calls * self.call

    def __str__(self) -> str:
        return f"predicted {_time(self.making + self.once)} for the plan and {_time(self.call)} a call"


def making(method: str, n: int) -> float:
    """Return the seconds of making a plan of n points, targets and sources together if they differ."""
    fixed, point = MAKING[method]
    return fixed + point * n


def of_generic(space: Space) -> float:
    """Return the time of Ewald sums over that predicted from a machine's data: less on a host that was not measured.

    Fast multipole sums are predicted from times that were measured, and do not take this share.
    """
    return GENERIC_SHARE if _is_generic(space) else 1.0


def of_generic_pairs(space: Space) -> float:
    """Return the time of direct sums and treecodes over that predicted from a machine's data."""
    return PAIRS_SHARES.get(engine.target().vector_bytes, 1.0) if _is_generic(space) else 1.0


def _is_generic(space: Space) -> bool:
    return machine_of(space) == Machine.load(GENERIC)


def machine_of(space: Space) -> Machine:
    """Return the machine of a space: a host as `parki calibrate` measured it, a GPU by its data sheet.

    A host that was not measured is taken for a generic one, a GPU that is not known for an H200.
    """
    if space.own_memory:
        return Machine.of_device(device_name()) or Machine.load(GPU)
    return calibrated(space) or Machine.load(GENERIC)


def costs(space: Space) -> Costs:
    """Return costs of a space: of this host as `parki calibrate` measured it, of a GPU by its data sheet, or defaults.

    A GPU that is not known is taken for an H200.
    """
    hardware = machine_of(space)
    if hardware.is_gpu:
        return H200 if hardware == Machine.load(GPU) else Costs.of(hardware)
    return hardware.costs or Costs()


def device_name() -> str:
    """Return the driver's name of the GPU in use, "" if there is no name, which is no reason to fail."""
    try:
        runtime = devices.cupy().cuda.runtime
        return runtime.getDeviceProperties(runtime.getDevice())["name"].decode("utf-8", "replace")
    except (AttributeError, KeyError, RuntimeError):
        return ""


def calibrated(space: Space) -> Machine | None:
    """Return the host at hand if this is its space and it was measured with this compiler; else None."""
    return machine.calibrated(built()) if space.native else None


def built() -> str:
    """Return the compiler and the target of kernels, in one line."""
    compiler, target = toolchains()[0]
    return " ".join((compiler.version, target.resolved, *target.flags))


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _size(count: int) -> str:
    return f"{count / 1e9:.3g} GB" if count >= 1e9 else f"{count / 1e6:.3g} MB"
