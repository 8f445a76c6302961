"""Moved points of an Ewald sum: their checks, their places in the box, and parameters that stretch with the box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from parki.arguments import ArgumentNames, Arguments
from parki.arrays import Array
from parki.ewald import checks
from parki.ewald.choice import params
from parki.ewald.choice.params import Parameters
from parki.ewald.options import EwaldOptions
from parki.ewald.problem import EwaldProblem

STRETCHED = 1.1  # factor of an edge of the box, at which parameters are chosen anew
Moved = tuple[Array | None, Array | None]  # targets and sources, None for points that stay


def checked(method: Any, arguments: Arguments, points: tuple[Any, Any]) -> Moved:
    """Return checked targets and sources of a move, one array if they are the same."""
    (trg, src), (targets, sources), options = method.names[:2], points, method.options
    axes = [axis for axis, is_periodic in enumerate(options.periodic) if not is_periodic]
    y = None if sources is None else arguments.points(src, sources, options.sides, axes)
    x = y if targets is sources else None if targets is None else arguments.points(trg, targets, options.sides, axes)
    return x, y


def left(options: EwaldOptions, old: EwaldProblem, points: Moved) -> bool:
    """Tell whether points have left the box that was made around the old ones."""
    point_sets = [a for a in points if a is not None and a.shape[1]]
    return options.box is None and not all(checks.inside(old.geometry, a) for a in point_sets)


def within(
    old: EwaldProblem, full: Callable[[], EwaldProblem], names: ArgumentNames, points: Moved, xp: Any, grows: bool
) -> EwaldProblem:
    """Return the problem of points in the old box; `grows` is True if that box was made around the points."""
    place, (x, y) = old.geometry, points
    is_same = x is y
    inner, reach = [], list(old.reach)
    for i, (name, a) in enumerate(zip(names[:2], points, strict=True)):
        if i == 0 and is_same:
            continue
        inner_points = None
        if a is not None:
            inner_points, reach[i] = place.points(name, xp.asarray(a))
        inner.append(inner_points)
    if is_same:
        inner, reach[0] = inner * 2, 0.0
    counts = [n if a is None else a.shape[1] for a, n in zip(points, (old.n_targets, old.n_sources), strict=True)]
    if counts != [old.n_targets, old.n_sources] and any(a is None for a in points):
        problem = full()
        inner = [b if a is None else a for a, b in zip(inner, (problem.targets, problem.sources), strict=True)]
    outer = None
    if grows and not is_same:
        outer = tuple(b if a is None else a.copy() for a, b in zip(points, old.outer or (None, None), strict=True))
    one_set = is_same or (old.same and x is None)
    return EwaldProblem(*inner, *counts, one_set, old.dtype, old.on_gpu, place.power, place, tuple(reach), outer)


def stretched(
    old: EwaldProblem, new: EwaldProblem, parameters: Parameters, edges: Sequence[float]
) -> Parameters | None:
    """Return the parameters of the same number of points in another box, or None if they must be chosen anew.

    `edges`, in the caller's unit, are those for which the parameters were chosen.
    """
    old_geometry, new_geometry = old.geometry, new.geometry
    counts = [(p.n_targets, p.n_sources, p.same, p.geometry.periodicity, p.geometry.skew is None) for p in (old, new)]
    new_edges = params.edges(new_geometry.box, new_geometry.skew)
    ratios = [b / new_geometry.inner(a) for a, b in zip(edges, new_edges, strict=True)]
    if counts[0] != counts[1] or not all(1 / STRETCHED < ratio < STRETCHED for ratio in ratios):
        return None
    return parameters.scaled(new_geometry.power - old_geometry.power).stretched(new_geometry.box, new_geometry.skew)
