"""Checks of arguments and results of a plan's calls; the axes of right-hand sides, and the result's memory."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from parki import arrays, error, scaling
from parki.arrays import PRECISIONS, Array
from parki.error import PrecisionWarning
from parki.ewald import geometry
from parki.ewald.choice.params import REACH
from parki.ewald.geometry import Geometry
from parki.ewald.kernels import Kernel
from parki.ewald.options import EwaldOptions
from parki.ewald.planned import Planned

MOST_RHS = 8  # right-hand sides that go through the stages at once
GRID_BYTES = 1 << 30  # most bytes of a grid of several right-hand sides; that of a single one may be larger
NEUTRAL = {"float64": 1e-8, "float32": 1e-6}  # net over moduli, up to which a density is neutral but for rounding
STEEPEST = 1e4  # largest κ times the longest side: polynomials of the near field have no more terms
MOST_SUMS = 64  # numbers of a target that the near field holds in registers


def points(name: str, x: Any, options: EwaldOptions) -> Array:
    """Check points in the caller's coordinates."""
    free = [axis for axis, on in enumerate(options.periodic) if not on]
    return arrays.points(name, x, options.box, options.layout, free)


def precision(dtype: str, options: EwaldOptions) -> None:
    """Refuse a far field more precise than the points; warn of a tolerance that the types do not reach."""
    far = PRECISIONS.get(options.far_precision, dtype)
    if (dtype, far) == ("float32", "float64"):
        raise ValueError("far_precision is 'double' and the points are float32; expected 'single', None, or float64.")
    floor = max(REACH[dtype], REACH[far])
    if options.tolerance < floor:
        kind, use = dtype, "float64"
        if far != dtype:
            kind, use = "a far field in single precision", "far_precision='double'"
        text = f"tolerance={options.tolerance:g} is below what {kind} reaches here, about {floor:g}"
        error.warn(f"{text}; use {use} or a larger tolerance", PrecisionWarning)


def inside(place: Geometry, x: Array) -> bool:
    """Tell whether all points are in the box."""
    xp, x = arrays.module_of(x), scaling.times(x, place.power)
    low, sides = (xp.asarray(np.array(v), x.dtype) for v in (place.origin or (0.0, 0.0, 0.0), place.box))
    return bool(((x.min(axis=1) >= low) & (x.max(axis=1) - low <= sides)).all())


def in_place(plan: Planned, **given: Any) -> None:
    """Refuse arrays that are not where the points are."""
    name = next(iter(given))
    if (arrays.on_gpu(**given) is not None) is not plan.on_gpu:
        kind = ("on the GPU", "cupy.asarray") if plan.on_gpu else ("on the host", "cupy.asnumpy")
        raise ValueError(f"{name} is not {kind[0]}, where the points of this plan are. Pass {kind[1]}({name}).")


def moved(plan: Planned, name: str, x: Any, n: int) -> Array:
    """Check points, as many as the plan has."""
    x = points(name, x, plan.options)
    if x.shape[1] != n:
        raise ValueError(f"{name} has {x.shape[1]} points; expected {n}, as many as this plan was made for.")
    if x.dtype != plan.dtype:
        raise ValueError(f"{name} has dtype {x.dtype}; expected {plan.dtype}, that of this plan.")
    return x


def strengths(plan: Planned, dens: Array, normals: Array | None) -> tuple[Array, Array | None, bool]:
    """Return densities ``(rhs, components, N)``, normals, both in the caller's axes, and whether rhs had an axis."""
    layout, n, components = plan.options.layout, plan.n_sources, plan.kernel.dens
    there = {"dens": dens} if normals is None else {"dens": dens, "normals": normals}
    in_place(plan, **there)
    dens = arrays.density("dens", dens, components, n, layout, many=True, contiguous=False, promoted=plan.dtype)
    checked = {"dens": dens}
    if plan.kernel.normals:
        if normals is None:
            raise ValueError(f"normals is missing; {plan.kernel} expects (3, {n}), one normal for each source.")
        checked["normals"] = arrays.density("normals", normals, 3, n, layout, contiguous=False, promoted=plan.dtype)
    elif normals is not None:
        raise ValueError(f"normals was given, but {plan.kernel} takes none.")
    arrays.check_like_points(("trg", "src"), plan.dtype, **checked)
    dens, normals = plan.xp.asarray(dens), checked.get("normals")
    many = dens.ndim == (2 if components == 1 else 3)
    dens = dens if many else dens[None]
    dens = dens[:, None] if components == 1 else dens
    return dens, None if normals is None else plan.xp.asarray(normals), many


def warn_of_net(plan: Planned, dens: Array) -> None:
    """Warn of a net charge or force in a box that is periodic in all directions.

    Parameters
    ----------
    plan : Planned
    dens : array (rhs, components, N)
    """
    kind = plan.kernel.net
    if kind is None or plan.geometry.periodicity != 3 or not dens.shape[-1]:
        return
    rows = dens[:, : kind.components]
    net = arrays.to_host(rows.sum(axis=-1, dtype=np.float64))
    if not np.abs(net).max() > NEUTRAL[plan.dtype.name] * rows.shape[-1] * scaling.largest(rows).max():
        return
    total = ", ".join(f"{value:.6g}" for value in net[np.abs(net).max(axis=1).argmax()])
    text = f"periodicity is 3 and the total {kind.name} is {total}: {kind.convention} (README, Conventions)"
    error.warn(text, error.NetDensityWarning)


def sums(plan: Planned, u: Any, rhs: int, many: bool) -> Array:
    """Check a caller's result of a call."""
    there = arrays.taken("u", u)
    if there.shape != (shape := _shape(plan, rhs, many)):
        raise ValueError(f"u has shape {there.shape}; expected {shape}, that of the result.")
    return there


def _shape(plan: Planned, rhs: int, many: bool) -> tuple[int, ...]:
    n, count = plan.n_targets, plan.kernel.result
    shape = (n,) if count == 1 else (n, count) if plan.options.layout == "nd" else (count, n)
    return (rhs, *shape) if many else shape


def result(plan: Planned, rhs: int, many: bool, out: Array | None) -> Array:
    """Return the array that stages write to: a new one or `out`; for a GPU and arrays on the host always a new one."""
    shape = _shape(plan, rhs, many)
    return plan.xp.empty(shape, plan.dtype) if out is None else _checked(plan, out, shape)


def _checked(plan: Planned, out: Any, shape: tuple[int, ...]) -> Array:
    kind, module = ("a CuPy", plan.xp) if plan.on_gpu else ("a NumPy", np)
    if not isinstance(out, module.ndarray) or out.shape != shape or out.dtype != plan.dtype:
        kept = f"{type(out).__name__} of shape {getattr(out, 'shape', None)} and {getattr(out, 'dtype', None)}"
        raise ValueError(f"out is a {kept}; expected {kind} array of shape {shape} and {plan.dtype}.")
    if not out.flags.c_contiguous or (module is np and not out.flags.writeable):
        raise ValueError("out is read-only or not C-contiguous; expected a C-contiguous array to write to.")
    return out if module is plan.xp else plan.xp.empty(shape, plan.dtype)


def split(plan: Planned, u: Array, rhs: int) -> Array:
    """Return a result as ``(rhs, components, Nt)``."""
    n, count = plan.n_targets, plan.kernel.result
    if plan.options.layout == "nd" and count > 1:
        return u.reshape(rhs, n, count).swapaxes(1, 2)
    return u.reshape(rhs, count, n)


def place(options: EwaldOptions, kernel: Kernel, trg: Array, src: Array) -> Geometry:
    """Return the geometry that options ask for, in the caller's unit of length where the kernel does not scale."""
    scaled = kernel.law is not None
    if options.box is None:
        place = geometry.around(trg, src, scaled=scaled)
        _check_resolved(options.tolerance, max(place.box), place.power, trg, src)
    elif isinstance(options.box, np.ndarray):
        place = geometry.of_cell(options.box, scaled)
    else:
        place = geometry.of_box(options.box, options.periodic, scaled)
    side = max(place.box)
    if kernel.scaled(place.power, arrays.same_dtype(trg=trg, src=src).name).kappa * side > STEEPEST:
        most = STEEPEST / place.outer(side)
        raise ValueError(f"kappa is {kernel.kappa:g}; expected at most {most:g}, {STEEPEST:g} over the longest side.")
    return place


def _check_resolved(tolerance: float, side: float, power: int, trg: Array, src: Array) -> None:
    """Refuse points so close for their extent that moving them to a corner of the box loses their distances."""
    if trg.dtype == np.float32 or not (trg.shape[1] and src.shape[1]):
        return
    apart, lost = scaling.nearest(trg, src, power), 2 * float(np.finfo(float).eps) * side
    if 0 < apart * tolerance < lost:
        raise ValueError(
            f"trg and src extend {side / apart:.2g} times as far as their close points are apart, which a grid around "
            f"all does not resolve to a tolerance of {tolerance:g}; expected points without distant ones. "
            "parki.treecode and parki.fmm take them."
        )


def groups(plan: Planned, count: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the number of each run of right-hand sides, a power of two."""
    first, most, grid = 0, MOST_RHS, plan.stages[1].sum.far.grid.size * plan.chosen.itemsizes[1]
    while most > 1 and (most * grid > GRID_BYTES or most * plan.kernel.result > MOST_SUMS):
        most //= 2
    while first < count:
        size = most
        while size > count - first:
            size //= 2
        yield first, size
        first += size
