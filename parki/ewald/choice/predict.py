"""The predicted cost of a plan: the model that chose its parameters, applied to them."""

import numpy as np

from parki import prediction
from parki.engine import spaces
from parki.engine.spaces import Space
from parki.ewald.choice import params
from parki.ewald.choice.params import Parameters
from parki.ewald.planned import Planned
from parki.ewald.report import Params
from parki.perfmodels import select
from parki.prediction import Prediction

#: The measured phases of each predicted one.
MEASURED = {"near": ("p2p",), "transform": ("fft", "cnv", "ifft"), "spread": ("p2g",), "gather": ("g2p",)}


def predict(
    p: Parameters, n_targets: int, n_sources: int, space: Space, memory: int, crowding: tuple[float, ...] = ()
) -> Prediction:
    """Predict a sum of these parameters; OpenMP's threads share its work evenly, or as they were measured to do.

    The phases are near (P2P), transform (transforms and multipliers), spread (P2G) and gather (G2P).
    """
    if not (n_targets and n_sources):
        return Prediction(dict.fromkeys(MEASURED, 0.0), memory)
    tolerance = max(p.tolerance, p.reach)
    domain = select.Domain(p.box, p.periodicity, tolerance, params.edges(p.box, p.skew), crowding)
    spacing = max(h * edge / side for h, edge, side in zip(p.h, domain.edges, p.box, strict=True))
    points, _ = domain.work(spacing, np.array(p.grid), p.P, p.rc)
    costs = prediction.costs(space)
    phases = select.phases(p.kernel, n_targets, n_sources, domain, p.rc, points, p.P, p.itemsizes, costs)
    return Prediction({name: float(phases[name]) / speedup(name, space) for name in MEASURED}, memory)


def speedup(phase: str, space: Space) -> float:
    """Return the speed of this space's threads over that of one thread, in a predicted phase.

    Fewer threads than all cores fall short of their number in proportion to all cores.
    """
    threads = spaces.workers(space)
    here = prediction.calibrated(space) if threads > 1 else None
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
