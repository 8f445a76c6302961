"""What a plan is predicted to cost: the model that chose its parameters, applied to them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parki.engine import spaces
from parki.engine.runtime import devices
from parki.engine.runtime.compiler import toolchains
from parki.engine.spaces import Space
from parki.ewald import params
from parki.ewald.params import Parameters
from parki.ewald.report import Params
from parki.perfmodels import machine, select
from parki.perfmodels.machine import H200, Costs, Machine

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


#: The measured phases of each predicted one.
MEASURED = {"near": ("p2p",), "transform": ("fft", "cnv", "ifft"), "spread": ("p2g",), "gather": ("g2p",)}


def costs(space: Space) -> Costs:
    """Costs of a space: of this host as `parki calibrate` has measured it, of a GPU by its data sheet, or the defaults.

    A GPU that is not known is taken for an H200.
    """
    if space.kind == "device":
        known = Machine.of_device(_device())
        return H200 if known in (None, Machine.load("h200")) else Costs.of(known)
    here = calibrated(space)
    return here.costs if here and here.costs else Costs()


def _device() -> str:
    """What the driver calls the GPU in use, "" if it does not say: no reason to fail."""
    try:
        runtime = devices.cupy().cuda.runtime
        return runtime.getDeviceProperties(runtime.getDevice())["name"].decode("utf-8", "replace")
    except (AttributeError, KeyError, RuntimeError):
        return ""


def calibrated(space: Space) -> Machine | None:
    """The host at hand if it has been measured, with this compiler, and this is a space of it; else None."""
    return machine.calibrated(built()) if space.kind == "host" else None


def built() -> str:
    """What kernels are compiled by and for, in one line."""
    compiler, made = toolchains()[0]
    return " ".join((compiler.version, made.resolved, *made.flags))


def predict(
    p: Parameters, n_targets: int, n_sources: int, space: Space, memory: int, crowding: tuple[float, ...] = ()
) -> Prediction:
    """Predict a sum of these parameters; OpenMP's threads share its work evenly, or as they were measured to do."""
    if not (n_targets and n_sources):
        return Prediction(0.0, 0.0, 0.0, 0.0, memory)
    tolerance = max(p.tolerance, p.reach)
    domain = select.Domain(p.box, p.periodicity, tolerance, params.edges(p.box, p.skew), crowding)
    spacing = max(h * edge / side for h, edge, side in zip(p.h, domain.edges, p.box, strict=True))
    points, _ = domain.work(spacing, np.array(p.grid), p.P, p.rc)
    found = select.phases(p.kernel, n_targets, n_sources, domain, p.rc, points, p.P, p.itemsizes, costs(space))
    return Prediction(**{name: float(t) / speedup(name, space) for name, t in found.items()}, memory=memory)


def speedup(phase: str, space: Space) -> float:
    """Return how many times as fast as one thread this space's are in a predicted phase.

    What all cores were measured to fall short of it, fewer threads do in proportion.
    """
    threads = spaces.workers(space)
    here = calibrated(space) if threads > 1 else None
    if here is None:
        return float(threads)
    return threads * float(np.mean([here.together(name, threads) for name in MEASURED[phase]]))


def held(plan: "Plan") -> int:
    """Bytes of all arrays that a plan holds, each counted once."""
    found = {}
    for part in [plan.points, *plan.stages.values()] if plan.points else []:
        for a in part.arrays:
            while getattr(a, "base", None) is not None and hasattr(a.base, "nbytes"):
                a = a.base
            found[id(a)] = a
    own = sum(a.nbytes for a in found.values()) + (0 if plan.given is None else plan.given.nbytes)
    own += sum(replay.nbytes for made in plan.stages.values() for replay in made.placed.replays)
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
