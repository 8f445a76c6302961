"""Sums as functions of JAX with derivatives of their own, for `parki.jax`: numbers come from callbacks."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

from parki import differentials
from parki.differentiable import Differentiable, NamedSum
from parki.differentials import Places

Arrays = tuple[Any, ...]


def _callback(function: Any, result: Any, *inputs: Any) -> Any:
    """Return the results, of these shapes and types, of a function of NumPy arrays."""

    def call(*inputs_: Any) -> Any:
        return function(*(None if a is None else np.asarray(a) for a in inputs_))

    return jax.pure_callback(call, result, *inputs, vmap_method="sequential")


def _values(arguments: Arrays) -> tuple[Arrays, Arrays]:
    """Return the arrays of a forward rule, and for each a marker without leaves: () if it is differentiated."""
    values = tuple(None if a is None else a.value for a in arguments)
    return values, tuple(() if a is not None and a.perturbed else None for a in arguments)


def _none(w: Any) -> bool:
    """Tell whether a cotangent is a symbolic zero."""
    return isinstance(w, jax.custom_derivatives.SymbolicZero)


# Sums -----------------------------------------------------------------------------------------------------------------
@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def summed(question: NamedSum, x: Any, y: Any, d: Any, normals: Any, box: Any) -> Any:
    """Return a sum ``(rhs, components, Nt)`` of targets, sources (None where they are the targets) and strengths."""
    shape = (d.shape[0], question.sums.pair(question.name).result, x.shape[1])
    work = functools.partial(question.sums.sum, question.name)
    return _callback(work, jax.ShapeDtypeStruct(shape, x.dtype), x, y, d, normals, box)


def _forward(question: NamedSum, *arguments: Any) -> tuple[Any, Any]:
    values, needs = _values(arguments)
    return summed(question, *values), (values, needs)


def _backward(question: NamedSum, residuals: Any, w: Any) -> Arrays:
    values, needs = residuals
    if _none(w):
        return (None,) * len(values)
    sums, name = question.sums, question.name
    x, y, d, normals, box = values
    need_x, need_y, need_d, need_normals, need_box = (need is not None for need in needs)
    kernel, slope, places = sums.pair(name), sums.slope_of(name), Places(x, y)
    to_x = to_y = None

    def field(name: str, targets: Any, sources: Any, d: Any, normals: Any) -> Any:
        return summed(NamedSum(sums, name), targets, sources, d, normals, box)

    if need_x or need_y:
        if slope is None:
            raise NotImplementedError(f"{kernel} has no derivative in its points here.")
        to_x, to_y = differentials.to_points(kernel, slope, field, places, d, w, (need_x, need_y))
    to_d = differentials.to_density(kernel, field, places, w, normals) if need_d else None
    to_normals = differentials.to_normals(field, places, d, w) if need_normals else None
    to_box = _box_slope(question, x, y, d, w, box) if need_box else None
    return to_x, to_y, to_d, to_normals, to_box


summed.defvjp(_forward, _backward, symbolic_zeros=True)


def _box_slope(question: NamedSum, *arguments: Any) -> Any:
    """Return the derivative of Σ w · u in the box, which cannot be differentiated again."""
    sums, box = question.sums, arguments[-1]
    if not sums.box_differentiable(question.name):
        raise NotImplementedError(f"{sums.pair(question.name)} has no derivative in the box here.")
    return _callback(sums.box_slope, jax.ShapeDtypeStruct(box.shape, box.dtype), *arguments)


# Energies -------------------------------------------------------------------------------------------------------------
@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def energy_terms(sums: Differentiable, strained: bool, x: Any, q: Any, box: Any) -> Arrays:
    """Return the energy of charges, and its derivatives by points, charges and, if `strained`, the box."""
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in (x, q, *([box] if strained else []))]

    def work(x: Any, q: Any, box: Any) -> Any:
        energy, *slopes = sums.energy(x, q, box, strained)
        return np.asarray(energy, x.dtype), *(a for a in slopes if a is not None)

    terms = _callback(work, (jax.ShapeDtypeStruct((), x.dtype), *shapes), x, q, box)
    return terms if strained else (*terms, None)


def _energy_forward(sums: Differentiable, strained: bool, *arguments: Any) -> tuple[Arrays, Any]:
    values, needs = _values(arguments)
    terms = energy_terms(sums, needs[2] is not None, *values)
    return (*terms[:3], terms[3] if strained else None), (values, needs, terms[1:])


def _energy_backward(sums: Differentiable, strained: bool, residuals: Any, w: Arrays) -> Arrays:
    (x, q, box), needs, slopes = residuals
    need_x, need_q, need_box = (need is not None for need in needs)
    to_energy, to_slopes, to_potential, _ = w
    gradients = [None if _none(to_energy) or a is None else to_energy * a for a in slopes]

    def add(i: int, value: Any) -> None:
        gradients[i] = value if gradients[i] is None else gradients[i] + value

    if strained and not (w[3] is None or _none(w[3])):
        raise NotImplementedError("the derivative in the box was differentiated again; expected first derivatives.")
    if not _none(to_slopes):  # slopes, q times the gradient of the potential, are differentiated again
        if need_x or need_box:
            raise NotImplementedError(f"{sums.slope} has no derivative in its points here.")
        gradient = NamedSum(sums, sums.slope.name)

        def slopes_of(q: Any) -> Any:
            return q * summed(gradient, x, None, q[None, None], None, box)[0]

        if need_q:
            add(1, jax.vjp(slopes_of, q)[1](to_slopes)[0])
    if not _none(to_potential):
        potential = NamedSum(sums, sums.kernel.name)

        def potential_of(x: Any, q: Any) -> Any:
            return summed(potential, x, None, q[None, None], None, box)

        by_x, by_q = jax.vjp(potential_of, x, q)[1](to_potential[None, None])
        if need_x:
            add(0, by_x)
        if need_q:
            add(1, by_q)
    return tuple(a if need else None for a, need in zip(gradients, (need_x, need_q, need_box), strict=True))


energy_terms.defvjp(_energy_forward, _energy_backward, symbolic_zeros=True)
