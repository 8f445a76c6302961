"""The error of a sum, measured at some of its targets against a second sum that shares none of its parameters.

In free space that is the direct sum over all pairs.  Else it has the other split, a hundredth of the tolerance and
another near-field radius, so that the two agree only where both are right.  Both take the points as the plan holds
them, in its precision, and compute in double precision.

The targets are drawn at random.
"""

import dataclasses
from typing import Any

import numpy as np

from parki import direct, error, scaling
from parki.arrays import Array, to_host
from parki.error import ErrorEstimate
from parki.ewald import checks
from parki.ewald.options import EwaldOptions
from parki.ewald.planned import Planned

FINEST = 1e-13  # least tolerance of the second sum: a hundredth of the first may be out of reach of double precision
LARGE, SMALL = 0.45, 0.3  # near-field radius of the second sum in shortest sides; few targets make a large one cheap


def measure(plan: Planned, dens: Array, normals: Array | None, u: Array | None, n: int, seed: int) -> ErrorEstimate:
    """Measure the error of `u`, the plan's sum of these strengths, at `n` random targets: see `Plan.error`."""
    if plan.points is None:
        raise ValueError("this plan has no targets or no sources; expected points to measure an error at.")
    chosen = error.sample(plan.n_targets, n, seed)
    strengths, axes, many = checks.strengths(plan, dens, normals)
    u = plan(dens, normals) if u is None else checks.sums(plan, u, len(strengths), many)
    values = to_host(checks.split(plan, u, len(strengths))[..., plan.xp.asarray(chosen)]).astype(np.float64)
    both = plan.xp.concatenate([strengths, _signed(plan, strengths)])
    exact, random = np.split(to_host(reference(plan, chosen, both, axes)).reshape(-1, *values.shape[1:]), 2)
    error.warn_of_cancellation(exact, random, plan.options.tolerance)
    return error.estimate(values, exact, plan.n_targets, seed)


def reference(plan: Planned, chosen: Array, strengths: Array, normals: Array | None) -> Array:
    """Sum at the chosen targets by other means: ``(rhs[, components], n)``, of strengths ``(rhs, components, N)``."""
    trg, src = (x.astype(np.float64) for x in plan.points.originals())
    trg = trg[:, plan.xp.asarray(chosen)]
    dens = strengths.astype(np.float64)
    dens = dens[:, 0] if plan.kernel.dens == 1 else dens
    normals = None if normals is None else normals.astype(np.float64)
    if plan.geometry.periodicity == 0:
        place, power = {"execution_space": plan.space}, -plan.geometry.power
        trg, src = scaling.times(trg, power), scaling.times(src, power)
        return np.stack(
            [to_host(direct.direct_sum(plan.kernel, trg, src, column, normals, **place)) for column in dens]
        )
    second = plan.like(plan.kernel, trg, src, _second(plan), np.dtype(np.float64))
    second.take_reach(plan)
    if not plan.on_gpu:
        dens, normals = to_host(dens), None if normals is None else to_host(normals)
    return second(dens, normals)


def _signed(plan: Planned, strengths: Array) -> Array:
    return plan.xp.asarray(error.signed(to_host(strengths)).astype(plan.dtype))


def quiet(options: EwaldOptions, **others: Any) -> EwaldOptions:
    """Return options of a sum that serves another one, with `others` in place of their values."""
    flags = ("return_walltime", "return_params", "return_error", "verbose", "tune", "graph")
    return dataclasses.replace(options, **(dict.fromkeys(flags, False) | others))


def _second(plan: Planned) -> EwaldOptions:
    options, p = plan.options, plan.chosen
    shortest = min(p.box[: p.periodicity])
    # At least a fifth away from the first sum's radius.
    radius = (LARGE if not LARGE / 1.25 < p.rc / shortest < LARGE * 1.25 else SMALL) * shortest
    split = "gaussian" if options.split == "prolate" else "prolate"
    finer = {"tolerance": max(options.tolerance / 100, FINEST), "split": split, "cell_size": None}
    finer["rc"] = plan.geometry.outer(radius)
    finer["far_precision"] = "double"
    return quiet(options, layout="dn", **finer)
