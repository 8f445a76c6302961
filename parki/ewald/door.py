"""What comes into and goes out of the calls of a plan: checks, the axes of right-hand sides, the result's memory."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from parki import arrays, error, scaling
from parki.arrays import PRECISIONS, Array
from parki.error import PrecisionWarning
from parki.ewald import geometry
from parki.ewald.geometry import Geometry
from parki.ewald.kernels import Kernel
from parki.ewald.options import EwaldOptions
from parki.ewald.params import REACH

if TYPE_CHECKING:
    from parki.ewald.plan import Plan

TOGETHER = 8  # right-hand sides that go through the stages at once, at most
ROOM = 1 << 30  # bytes that their grid may take; one alone takes what it needs
#: The net density that periodic sums fix by convention, and its components, by the function of the modes.
NET = {
    "multiplier/scalar": ("charge", 1),
    "multiplier/gradient": ("charge", 1),
    "multiplier/stokes": ("force", 3),
    "multiplier/stokes_comb": ("force", 3),
    "multiplier/stokes_grad": ("force", 3),
}
CONVENTION = {
    "charge": "a uniform neutralising background is assumed",
    "force": "a mean pressure gradient balances it, and the mean flow is zero",
}
NEUTRAL = {"float64": 1e-8, "float32": 1e-6}  # net over moduli, up to which a density is neutral but for rounding
STEEPEST = 1e4  # κ times the longest side, at most: polynomials of the near field have no more terms
SUMS = 64  # numbers of a target that the near field holds in registers, at most


def points(name: str, x: Any, options: EwaldOptions) -> Array:
    """Checked points in the caller's coordinates."""
    free = [axis for axis, on in enumerate(options.periodic) if not on]
    return arrays.points(name, x, options.box, options.layout, free)


def precision(dtype: str, options: EwaldOptions) -> None:
    """Refuse a far field more precise than the points; warn of a tolerance that the types do not reach."""
    far = PRECISIONS.get(options.far_precision, dtype)
    if (dtype, far) == ("float32", "float64"):
        raise ValueError("far_precision is 'double' and the points are float32; expected 'single', None, or float64.")
    floor = max(REACH[dtype], REACH[far])
    if options.tolerance < floor:
        what, use = dtype, "float64"
        if far != dtype:
            what, use = "a far field in single precision", "far_precision='double'"
        text = f"tolerance={options.tolerance:g} is below what {what} reaches here, about {floor:g}"
        error.warn(f"{text}; use {use} or a larger tolerance", PrecisionWarning)


def inside(place: Geometry, x: Array) -> bool:
    """Whether all points are in the box."""
    xp, x = arrays.module_of(x), scaling.times(x, place.power)
    low, sides = (xp.asarray(np.array(v), x.dtype) for v in (place.origin or (0.0, 0.0, 0.0), place.box))
    return bool(((x.min(axis=1) >= low) & (x.max(axis=1) - low <= sides)).all())


def in_place(plan: "Plan", **given: Any) -> None:
    """Refuse arrays that are not where the points are."""
    name = next(iter(given))
    if (arrays.on_gpu(**given) is not None) is not plan.on_gpu:
        kind = ("on the GPU", "cupy.asarray") if plan.on_gpu else ("on the host", "cupy.asnumpy")
        raise ValueError(f"{name} is not {kind[0]}, where the points of this plan are. Pass {kind[1]}({name}).")


def moved(plan: "Plan", name: str, x: Any, n: int) -> Array:
    """Checked points, as many as the plan has."""
    x = points(name, x, plan.options)
    if x.shape[1] != n:
        raise ValueError(f"{name} has {x.shape[1]} points; expected {n}, as many as this plan was made for.")
    if x.dtype != plan.dtype:
        raise ValueError(f"{name} has dtype {x.dtype}; expected {plan.dtype}, that of this plan.")
    return x


def strengths(plan: "Plan", dens: Array, normals: Array | None) -> tuple[Array, Array | None, bool]:
    """Densities ``(rhs, components, N)`` and normals in the caller's axes, and whether there was an axis of rhs."""
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


def warn_of_net(plan: "Plan", dens: Array) -> None:
    """Warn of a net charge or force in a box that is periodic in all directions.

    Parameters
    ----------
    plan : Plan
    dens : array (rhs, components, N)
    """
    found = NET.get(plan.kernel.multiplier)
    if found is None or plan.geometry.periodicity != 3 or not dens.shape[-1] or plan.kernel.profile == "yukawa":
        return
    if plan.kernel.slopes and not plan.kernel.single:  # a double layer has no forces
        return
    what, components = found
    rows = dens[:, :components]
    net = arrays.to_host(rows.sum(axis=-1, dtype=np.float64))
    if not np.abs(net).max() > NEUTRAL[plan.dtype.name] * rows.shape[-1] * scaling.largest(rows).max():
        return
    total = ", ".join(f"{value:.6g}" for value in net[np.abs(net).max(axis=1).argmax()])
    text = f"periodicity is 3 and the total {what} is {total}: {CONVENTION[what]} (README, Conventions)"
    error.warn(text, error.NetDensityWarning)


def sums(plan: "Plan", u: Any, rhs: int, many: bool) -> Array:
    """A caller's result of a call, checked."""
    there = arrays.taken("u", u)
    if there.shape != (shape := _shape(plan, rhs, many)):
        raise ValueError(f"u has shape {there.shape}; expected {shape}, that of the result.")
    return there


def _shape(plan: "Plan", rhs: int, many: bool) -> tuple[int, ...]:
    n, count = plan.n_targets, plan.kernel.result
    one = (n,) if count == 1 else (n, count) if plan.options.layout == "nd" else (count, n)
    return (rhs, *one) if many else one


def result(plan: "Plan", rhs: int, many: bool, out: Array | None) -> Array:
    """What the stages write to: a new array or `out`; on a GPU for arrays on the host always a new one."""
    shape = _shape(plan, rhs, many)
    return plan.xp.empty(shape, plan.dtype) if out is None else _checked(plan, out, shape)


def _checked(plan: "Plan", out: Any, shape: tuple[int, ...]) -> Array:
    kind, module = ("a CuPy", plan.xp) if plan.on_gpu else ("a NumPy", np)
    if not isinstance(out, module.ndarray) or out.shape != shape or out.dtype != plan.dtype:
        found = f"{type(out).__name__} of shape {getattr(out, 'shape', None)} and {getattr(out, 'dtype', None)}"
        raise ValueError(f"out is a {found}; expected {kind} array of shape {shape} and {plan.dtype}.")
    if not out.flags.c_contiguous or (module is np and not out.flags.writeable):
        raise ValueError("out is read-only or not C-contiguous; expected a C-contiguous array to write to.")
    return out if module is plan.xp else plan.xp.empty(shape, plan.dtype)


def split(plan: "Plan", u: Array, rhs: int) -> Array:
    """A result as ``(rhs, components, Nt)``."""
    n, count = plan.n_targets, plan.kernel.result
    if plan.options.layout == "nd" and count > 1:
        return u.reshape(rhs, n, count).swapaxes(1, 2)
    return u.reshape(rhs, count, n)


def place(options: EwaldOptions, kernel: Kernel, trg: Array, src: Array) -> Geometry:
    """Return the geometry that options ask for, in the caller's unit of length where the kernel does not scale."""
    scaled = kernel.law is not None
    if options.box is None:
        found = geometry.around(trg, src, scaled=scaled)
        _check_resolved(options.tolerance, max(found.box), found.power, trg, src)
    elif isinstance(options.box, np.ndarray):
        found = geometry.of_cell(options.box, scaled)
    else:
        found = geometry.of_box(options.box, options.periodic, scaled)
    side = max(found.box)
    if kernel.scaled(found.power, arrays.same_dtype(trg=trg, src=src).name).kappa * side > STEEPEST:
        most = STEEPEST / found.outer(side)
        raise ValueError(f"kappa is {kernel.kappa:g}; expected at most {most:g}, {STEEPEST:g} over the longest side.")
    return found


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


def groups(plan: "Plan", count: int) -> Iterator[tuple[int, int]]:
    """Runs of right-hand sides, each as long as a power of two."""
    first, most, one = 0, TOGETHER, plan.stages[1].sum.far.grid.size * plan.chosen.itemsizes[1]
    while most > 1 and (most * one > ROOM or most * plan.kernel.result > SUMS):
        most //= 2
    while first < count:
        size = most
        while size > count - first:
            size //= 2
        yield first, size
        first += size
