"""Sums behind derivatives: those of a kernel, its gradient and its adjoint by one method, on arrays.

`parki.torch` and `parki.jax` call `Differentiable` to compute the nodes of their graphs.
"""

from __future__ import annotations

import importlib
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parki import arrays, operators
from parki.arguments import TARGETS, ArgumentNames
from parki.arrays import Array, module_of
from parki.ewald import kernels
from parki.ewald.method import Ewald
from parki.ewald.options import EwaldOptions
from parki.keywords import KernelParameters
from parki.pairs import PAIRS, Pair, find
from parki.plan import Plan, make

METHODS = ("ewald", "treecode", "fmm", "direct")
ANY_BOX = (2.0**500,) * 3  # sides that stand for a box of any size, which comes with each sum
KEPT = 8  # plans that one `Differentiable` holds, at most
#: Options of plans that sums of tensors do not take.
REFUSED = ("layout", "gradient", "comm", "rhs", "timed", "verbose", "return_walltime", "return_params", "return_error")


@dataclass(eq=False)
class Differentiable:
    """Sums of one kernel by one method, and the sums that its derivatives consist of.

    Parameters
    ----------
    kernel : Pair
    slope : Pair or None
        The kernel of its gradient alone, if there is one.
    plan : callable
        ``plan(kernel, gradient, targets, sources, box, exclude)`` makes plans of the method; gradient is False or True.
    table : mapping of str to Pair
        Other kernels of the method by name.
    periodic : tuple of bool
        Whether each direction is periodic.
    exclude : optional
        Pairs that all sums leave out.
    keeps : bool
        Whether a held plan moves to new points; else each plan serves fixed points.
    names : ArgumentNames
        Names of arguments in messages.
    """

    kernel: Pair
    slope: Pair | None
    plan: Callable[..., Plan[Any]]
    table: Mapping[str, Pair]
    periodic: tuple[bool, bool, bool] = (False, False, False)
    exclude: Any = None
    keeps: bool = False
    names: ArgumentNames = TARGETS
    _plans: dict[Any, tuple[Plan[Any], list[Any]]] = field(default_factory=dict, repr=False)
    _lock: Any = field(default_factory=threading.Lock, repr=False)

    def pair(self, name: str) -> Pair:
        """Return the kernel of a name: this kernel, that of its gradient, or another of the method."""
        for kernel in (self.kernel, self.slope):
            if kernel is not None and kernel.name == name:
                return kernel
        return self.table[name]

    def slope_of(self, name: str) -> str | None:
        """Return the name of the kernel of a kernel's gradient, None if there is none."""
        return self.slope.name if self.slope is not None and name == self.kernel.name else None

    def box_differentiable(self, name: str) -> bool:
        """Tell whether sums of this name have a derivative in the box: periodic sums of charges, with one potential."""
        return any(self.periodic) and name == self.kernel.name and self.kernel.dens == self.kernel.result == 1

    def check(self, x: Any, y: Any, density: Any, normals: Any) -> int:
        """Check the shapes of a sum's arrays, of any library; return the number of sources.

        Raises
        ------
        ValueError
            Naming the argument, the shape found and the shape expected, and for excluded pairs of targets apart from
            sources.
        """
        if self.exclude is not None and y is not None:
            raise ValueError("exclude was given for targets apart from sources; expected one array for both.")
        for name, a in zip(self.names[:2], (x, y), strict=True):
            if a is not None:
                arrays.points(name, _zeros(a))
        n, kernel = (x if y is None else y).shape[1], self.kernel
        arrays.density(self.names.density, _zeros(density), kernel.dens, n, many=True)
        if kernel.normals is not (normals is not None):
            expected = f"{kernel} expects (3, {n})" if kernel.normals else f"{kernel} takes none"
            raise ValueError(f"normals is {'missing' if normals is None else 'given'}; {expected}.")
        if normals is not None:
            arrays.density("normals", _zeros(normals), 3, n)
        return n

    def shaped(self, density: Any, n: int, work: Callable[[Any], Any]) -> Any:
        """Return the sum of a checked density of `n` sources, both in a caller's shapes.

        `work` takes a density ``(rhs, components, n)`` to its sum ``(rhs, components, Nt)``.
        """
        kernel = self.kernel
        u = work(density.reshape(-1, kernel.dens, n))
        u = u if kernel.result > 1 else u[:, 0]
        return u if density.ndim == (2 if kernel.dens == 1 else 3) else u[0]

    def check_energy(self, points: Any, charges: Any) -> None:
        """Check the kernel of an energy, and the shapes of its arrays.

        Raises
        ------
        ValueError
            As `check`, and for a kernel without a gradient, or of other strengths than charges.
        """
        if self.slope is None or self.kernel.dens != 1:
            raise ValueError(f"{self.kernel} has no energy; expected a kernel of charges that has a gradient.")
        arrays.points("points", _zeros(points))
        arrays.density("charges", _zeros(charges), 1, points.shape[1])

    def sum(self, name: str, x: Array, y: Array | None, d: Array, normals: Array | None, box: Array | None) -> Array:
        """Return the sum ``(rhs, components, Nt)`` of a density ``(rhs, components, Ns)``."""
        with self._lock:
            return operators.apply(self._plan(name, False, x, y, box), d, normals)

    def energy(self, x: Array, q: Array, box: Array | None, strained: bool) -> tuple[Any, ...]:
        """Return the energy of charges ``(N,)``, its derivatives by points and charges, and that by the box or None."""
        with self._lock:
            plan = self._plan(self.kernel.name, True, x, None, box)
            terms = plan.energy_terms(q, stress=strained)
        slopes = -terms.forces
        by_box = self._by_box(terms.stress, box, x, slopes).astype(x.dtype) if strained else None
        return terms.energy, slopes, terms.potential, by_box

    def box_slope(self, x: Array, y: Array | None, d: Array, w: Array, box: Array) -> Array:
        """Return the derivative of Σ w · u in the box, of the shape of `box`, at fixed points.

        With the energy E(q) = ½ Σ q u the sum is (E(d + w) − E(d − w))/2, in which the charges of points that are both
        targets and sources add.
        """
        xp = module_of(x)
        zeros = [xp.zeros_like(a[:, 0]) for a in ((d, w) if y is not None else ())]
        density, weights = d[:, 0], w[:, 0]
        if y is not None:
            x = xp.concatenate([x, y], axis=1)
            density, weights = xp.concatenate([zeros[1], density], axis=1), xp.concatenate([weights, zeros[0]], axis=1)
        sizes = [float(xp.linalg.norm(a)) for a in (density, weights)]
        if not all(sizes):
            return np.zeros_like(box)
        weights = weights * (sizes[0] / sizes[1])
        densities = xp.concatenate([density + weights, density - weights]).astype(x.dtype)
        with self._lock:
            terms = self._plan(self.kernel.name, True, x, None, box).energy_terms(densities, stress=True)
        half, share = len(densities) // 2, 0.5 * sizes[1] / sizes[0]
        slopes, stress = (
            share * (a[:half] - a[half:]).sum(axis=0) for a in (-terms.forces.astype(np.float64), terms.stress)
        )
        return self._by_box(stress, box, x, slopes).astype(box.dtype)

    def _by_box(self, stress: np.ndarray, box: Array, x: Array, slopes: Array) -> np.ndarray:
        """Return the derivative by the box, from those by a strain, which moves box and points, and by points."""
        axes = np.array(self.periodic)
        cell = (np.diag(box) if np.ndim(box) == 1 else np.asarray(box, np.float64))[axes]
        measure = math.sqrt(np.linalg.det(cell @ cell.T))  # volume of the cell, its area, or its length
        moments = np.asarray(arrays.to_host(slopes.astype(np.float64) @ x.astype(np.float64).T))
        inverse = np.linalg.pinv(cell)
        along = inverse @ cell  # projects onto the periodic directions
        result = np.zeros((3, 3))
        result[axes] = (along @ (stress * measure - moments) @ inverse).T
        return np.diag(result).copy() if np.ndim(box) == 1 else result

    def _plan(self, name: str, gradient: bool, x: Array, y: Array | None, box: Array | None) -> Plan[Any]:
        """Return a plan for these points: a held plan, moved if it `keeps`, or a new one."""
        shapes = tuple(None if a is None else (a.shape, a.dtype.name) for a in (x, y, box))
        key, arrays_now = (name, gradient, *shapes), [x, y, box]
        plan, arrays_before = self._plans.pop(key, (None, None))
        if plan is not None and not all(_equal(a, b) for a, b in zip(arrays_now, arrays_before, strict=True)):
            plan = self._moved(plan, arrays_now, arrays_before) if self.keeps else None
        if plan is None:
            plan = self.plan(self.pair(name), gradient, x, x if y is None else y, box, self.exclude)
        self._plans[key] = (plan, [a if a is None or not self.keeps else a.copy() for a in arrays_now])
        if len(self._plans) > KEPT:
            del self._plans[next(iter(self._plans))]
        return plan

    def _moved(self, plan: Plan[Any], arrays_now: list[Any], arrays_before: list[Any]) -> Plan[Any]:
        x, y, box = arrays_now
        places = {"points": x} if y is None else {"targets": x, "sources": y}
        plan.move(**places, **({} if _equal(box, arrays_before[2]) else {"box": _box(box)}))
        return plan


def _zeros(x: Any) -> Array:
    """Return zeros of the shape of an array, which take no memory."""
    return np.broadcast_to(np.float64(0.0), tuple(x.shape))


def taken_box(options: Mapping[str, Any], kind: type) -> tuple[Any, dict[str, Any]]:
    """Return the box of options if it is an array of this kind, else None; and options with `ANY_BOX` for it.

    Raises
    ------
    ValueError
        For a box of another shape than (3,) or (3, 3).
    """
    box = options.get("box")
    if not isinstance(box, kind):
        return None, dict(options)
    if tuple(box.shape) not in ((3,), (3, 3)):
        raise ValueError(f"box has shape {tuple(box.shape)}; expected (3,) or (3, 3).")
    return box, {**options, "box": ANY_BOX}


def _equal(a: Array | None, b: Array | None) -> bool:
    return a is b or (a is not None and b is not None and a.shape == b.shape and bool((a == b).all()))


@dataclass(frozen=True)
class NamedSum:
    """A sum apart from its arrays: the sums of a method, and the name of a kernel."""

    sums: Differentiable
    name: str


def ewald(
    kernel: Pair, options: EwaldOptions, exclude: Any = None, keeps: bool = False, names: ArgumentNames = TARGETS
) -> Differentiable:
    """Return the sums of a kernel by Ewald's method."""

    def plan(pair: Pair, gradient: bool, targets: Array, sources: Array, box: Any, exclude: Any) -> Plan[Any]:
        options_of_box = options if box is None else EwaldOptions.resolve(options, box=_box(box))
        pair = kernels.gradient(pair, True) if gradient else pair
        return make(Ewald(pair, options_of_box, names=names, gradient=gradient), targets, sources, exclude)

    slopes = kernels.SLOPES.get(kernel.name, {}) if kernels.known_to_parki(kernel) else {}
    slope = replace(slopes["only"], parameters=kernel.parameters) if "only" in slopes else None
    return Differentiable(kernel, slope, plan, kernels.KERNELS, options.periodic, exclude, keeps, names)


def free(
    method: str, kernel: Any, options: Mapping[str, Any], exclude: Any = None, keeps: bool = False
) -> Differentiable:
    """Return the sums of a kernel by a method of free space: ``"treecode"``, ``"fmm"`` or ``"direct"``."""
    module = importlib.import_module(f"parki.{method}")
    pair, rest = _split(kernel, dict(options))

    def plan(pair: Pair, gradient: bool, targets: Array, sources: Array, box: Any, exclude: Any) -> Plan[Any]:
        return module.plan(pair, targets, sources, gradient=gradient, exclude=exclude, **rest)

    try:
        slope = pair.with_gradient(only=True)
    except ValueError:
        slope = None
    return Differentiable(pair, slope, plan, PAIRS, exclude=exclude, keeps=keeps)


def _split(kernel: Any, options: dict[str, Any]) -> tuple[Pair, dict[str, Any]]:
    """Return the pair with its parameters, and the options that are none of these."""
    parameters = {name: options.pop(name) for name in KernelParameters.__annotations__ if name in options}
    return find(kernel, tuple(options), **parameters), options


def _box(box: Array) -> Any:
    return tuple(box.tolist()) if box.ndim == 1 else np.asarray(box, np.float64)


def of_method(method: str, kernel: Any, options: Mapping[str, Any], keeps: bool = False) -> Differentiable:
    """Return the sums of a kernel by one of `METHODS`, with the options of its plan, `exclude` among them.

    Raises
    ------
    ValueError, TypeError
        For an unknown method, an option that is not offered, and as plans.
    """
    if method not in METHODS:
        raise ValueError(f"by is {method!r}; expected one of {', '.join(map(repr, METHODS))}.")
    for name in REFUSED:
        if name in options:
            raise TypeError(f"{name} was given; sums that are differentiated do not take it.")
    keywords = dict(options)
    exclude = keywords.pop("exclude", None)
    if method != "ewald":
        return free(method, kernel, keywords, exclude, keeps)
    pair = kernels.find(kernel, **{name: keywords.pop(name, None) for name in kernels.PARAMETERS})
    return ewald(pair, EwaldOptions.resolve(None, None, kernels.PARAMETERS, **keywords), exclude, keeps)
