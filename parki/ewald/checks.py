"""Checks of points, boxes, precisions and densities of Ewald sums."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parki import arrays, error, scaling
from parki.arrays import PRECISIONS, Array
from parki.error import PrecisionWarning
from parki.ewald import geometry
from parki.ewald.choice.params import REACH, most_cutoff
from parki.ewald.geometry import Geometry
from parki.ewald.kernel import Kernel
from parki.ewald.options import EwaldOptions

MOST_RHS = 8  # right-hand sides, at most, that pass through the stages at once
GRID_BYTES = 1 << 30  # bytes, at most, of a grid of several right-hand sides; a grid of one may be larger
NEUTRAL = {"float64": 1e-8, "float32": 1e-6}  # net density over sum of moduli, at most, that rounding explains
STEEPEST = 1e4  # largest κ times the longest side, which limits the terms of near-field polynomials
MOST_SUMS = 64  # numbers per target, at most, that the near field holds in registers


def points(name: str, x: Any, options: EwaldOptions) -> Array:
    """Check points in the caller's coordinates."""
    axes = [axis for axis, is_periodic in enumerate(options.periodic) if not is_periodic]
    return arrays.points(name, x, options.sides, options.layout, axes)


def precision(dtype: str, options: EwaldOptions) -> None:
    """Raise if the far field is more precise than the points; warn if the types do not reach the tolerance."""
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


class NetDensity(NamedTuple):
    """Net densities (rhs, components) of a number of sources, and the largest modulus of one."""

    values: NDArray[np.float64]
    largest: float
    n: int

    @classmethod
    def of(cls, kernel: Kernel, dens: Array) -> "NetDensity":
        """Return the net densities of ``(rhs, components, N)``, for components that a kernel has a convention for."""
        rows = dens[:, : kernel.net.components if kernel.net else 0]
        values = arrays.to_host(arrays.along_rows("sum", rows, dtype=np.float64))
        return cls(values, float(scaling.largest(rows).max(initial=0.0)), rows.shape[-1])


def warn_of_net(kernel: Kernel, periodicity: int, dtype: np.dtype, net_density: NetDensity) -> None:
    """Warn of a net charge or force in a box that is periodic in all directions."""
    kind, net = kernel.net, net_density.values
    if kind is None or periodicity != 3 or not net_density.n:
        return
    if not np.abs(net).max() > NEUTRAL[dtype.name] * net_density.n * net_density.largest:
        return
    total = ", ".join(f"{value:.6g}" for value in net[np.abs(net).max(axis=1).argmax()])
    text = f"periodicity is 3 and the total {kind.name} is {total}: {kind.convention} (Boxes and conventions)"
    error.warn(text, error.NetDensityWarning)


def place(options: EwaldOptions, kernel: Kernel, names: tuple[str, ...], trg: Array, src: Array) -> Geometry:
    """Return the geometry that options ask for, in the caller's unit of length if the kernel does not scale."""
    scaled = kernel.law is not None
    if options.box is None:
        place = geometry.around(trg, src, scaled=scaled)
        _check_resolved(options.tolerance, max(place.box), place.power, names, trg, src)
    elif isinstance(options.box, np.ndarray):
        place = geometry.of_cell(options.box, options.periodic, scaled)
    else:
        place = geometry.of_box(options.box, options.periodic, scaled)
    side = max(place.box)
    if kernel.scaled(place.power, src.dtype.name).kappa * side > STEEPEST:
        limit = STEEPEST / place.outer(side)
        raise ValueError(f"kappa is {kernel.kappa:g}; expected at most {limit:g}, {STEEPEST:g} over the longest side.")
    _check_separation(kernel, options, place)
    widest = 0.5 * place.outer(min(place.box[: place.periodicity], default=math.inf))
    if kernel.spectrum.softened and kernel.parameter() > widest * (1 + 1e-12):
        name, value = kernel.names[0], kernel.parameter()
        raise ValueError(f"{name} is {value:g}; expected at most {widest:g}, half of the shortest periodic side.")
    return place


def _check_separation(kernel: Kernel, options: EwaldOptions, place: Geometry) -> None:
    """Raise unless the cutoff reaches all pairs that have another formula than pairs further apart."""
    separation, longest = kernel.separation(), place.outer(most_cutoff(place.box, place.periodicity))
    if place.periodicity and separation > longest:
        name, value = kernel.names[0], kernel.parameters[0]
        raise ValueError(f"{name} is {value:g}; expected at most {longest / kernel.core[0]:g}, for the periodic sides.")
    if options.rc is not None and options.rc < min(separation, longest):
        raise ValueError(f"rc is {options.rc:g}; expected at least {separation:g}, for near pairs of {kernel}.")


def _check_resolved(tolerance: float, side: float, power: int, names: tuple[str, ...], trg: Array, src: Array) -> None:
    """Raise if points are so close for their extent that moving them to a corner of the box loses their distances."""
    if trg.dtype == np.float32 or not (trg.shape[1] and src.shape[1]):
        return
    distance, precision = scaling.nearest(trg, src, power), 2 * float(np.finfo(float).eps) * side
    if 0 < distance * tolerance < precision:
        raise ValueError(
            f"{names[0]} and {names[1]} extend {side / distance:.2g} times as far as their close points are apart, "
            f"which a grid around all does not resolve to a tolerance of {tolerance:g}; expected points without "
            "distant ones. parki.treecode and parki.fmm take them."
        )


def most_rhs(kernel: Kernel, grid_bytes: int) -> int:
    """Return the largest number of right-hand sides at once, a power of two; `grid_bytes` is the grid of one."""
    count = MOST_RHS
    while count > 1 and (count * grid_bytes > GRID_BYTES or count * kernel.result > MOST_SUMS):
        count //= 2
    return count
