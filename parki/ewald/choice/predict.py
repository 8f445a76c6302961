"""Predicted cost of a plan: the model that chose its parameters, applied to them."""

from dataclasses import dataclass

import numpy as np

from parki.engine import spaces
from parki.engine.runtime import devices
from parki.engine.runtime.compiler import toolchains
from parki.engine.spaces import Space
from parki.ewald.choice import params
from parki.ewald.choice.params import Parameters
from parki.ewald.planned import Planned
from parki.ewald.report import Params
from parki.perfmodels import machine, select
from parki.perfmodels.machine import H200, Costs, Machine
from parki.perfmodels.select import ModelledSum


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
        """Return the seconds of the whole call."""
        return self.near + self.transform + self.spread + self.gather

    def __str__(self) -> str:
        names = {"near": self.near, "transform": self.transform, "spread": self.spread, "gather": self.gather}
        parts = ", ".join(f"{name} {_time(seconds)}" for name, seconds in names.items())
        return f"predicted {_time(self.seconds)} a call ({parts}), holds {_size(self.memory)}"


#: The measured phases of each predicted one.
MEASURED = {"near": ("p2p",), "transform": ("fft", "cnv", "ifft"), "spread": ("p2g",), "gather": ("g2p",)}


def costs(space: Space) -> Costs:
    """Return costs of a space: of this host as `parki calibrate` measured it, of a GPU by its data sheet, or defaults.

    A GPU that is not known is taken for an H200.
    """
    if space.own_memory:
        known = Machine.of_device(_device())
        return H200 if known in (None, Machine.load("h200")) else Costs.of(known)
    here = calibrated(space)
    return here.costs if here and here.costs else Costs()


def _device() -> str:
    """Return the driver's name of the GPU in use, "" where it gives none: no reason to fail."""
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
    question = ModelledSum(p.kernel, n_targets, n_sources, domain, p.itemsizes)
    phases = select.phases(question, p.rc, points, p.P, costs(space))
    return Prediction(**{name: float(t) / speedup(name, space) for name, t in phases.items()}, memory=memory)


def speedup(phase: str, space: Space) -> float:
    """Return the speed of this space's threads over that of one thread, in a predicted phase.

    Fewer threads than all cores fall short of their number in proportion to all cores.
    """
    threads = spaces.workers(space)
    here = calibrated(space) if threads > 1 else None
    if here is None:
        return float(threads)
    return threads * float(np.mean([here.together(name, threads) for name in MEASURED[phase]]))


def held(plan: Planned) -> int:
    """Return the bytes of all arrays that a plan holds, each counted once."""
    held_arrays = {}
    for part in [plan.points, *plan.stages.values()] if plan.points else []:
        for a in part.arrays:
            while getattr(a, "base", None) is not None and hasattr(a.base, "nbytes"):
                a = a.base
            held_arrays[id(a)] = a
    own = sum(a.nbytes for a in held_arrays.values()) + (0 if plan.given is None else plan.given.nbytes)
    own += sum(replay.nbytes for stages in plan.stages.values() for replay in stages.placed.replays)
    return own + sum(other.memory for other in plan.others.values())


def describe(plan: Planned) -> str:
    """Describe a plan in a few lines."""
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
