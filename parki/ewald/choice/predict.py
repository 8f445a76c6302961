"""Predicted cost of a plan, by the model that chose its parameters."""

import numpy as np

from parki import prediction
from parki.engine import Space, spaces
from parki.ewald.choice import params
from parki.ewald.choice.params import Parameters
from parki.perfmodels import select
from parki.perfmodels.select import ModelledSum
from parki.prediction import Prediction

#: Measured phases of each predicted phase.
MEASURED = {"near": ("p2p",), "transform": ("fft", "cnv", "ifft"), "spread": ("p2g",), "gather": ("g2p",)}


def predict(
    p: Parameters, n_targets: int, n_sources: int, space: Space, memory: int, crowding: tuple[float, ...] = ()
) -> Prediction:
    """Predict the time of a sum; OpenMP's threads speed it up by their number, or by a measured factor.

    The phases are near (P2P), transform (transforms and multipliers), spread (P2G) and gather (G2P).
    """
    if not (n_targets and n_sources):
        return Prediction(dict.fromkeys(MEASURED, 0.0), memory)
    question, points = modelled(p, n_targets, n_sources, crowding)
    phases = select.phases(question, p.rc, points, p.P, prediction.costs(space))
    return Prediction({name: float(phases[name]) / speedup(name, space) for name in MEASURED}, memory)


def modelled(
    p: Parameters, n_targets: int, n_sources: int, crowding: tuple[float, ...] = ()
) -> tuple[ModelledSum, float]:
    """Return a sum in the form of the models, and the points of its transforms."""
    tolerance = max(p.tolerance, p.reach)
    domain = select.Domain(p.box, p.periodicity, tolerance, params.edges(p.box, p.skew), crowding)
    spacing = max(h * edge / side for h, edge, side in zip(p.h, domain.edges, p.box, strict=True))
    points, _ = domain.work(spacing, np.array(p.grid), p.P, p.rc)
    return ModelledSum(p.kernel, n_targets, n_sources, domain, p.itemsizes), points


def speedup(phase: str, space: Space) -> float:
    """Return the speed of this space's threads over that of one thread, in a predicted phase.

    The loss for fewer threads than cores is scaled from the measured loss on all cores.
    """
    threads = spaces.workers(space)
    here = prediction.calibrated(space) if threads > 1 else None
    if here is None:
        return float(threads)
    return threads * float(np.mean([here.together(name, threads) for name in MEASURED[phase]]))
