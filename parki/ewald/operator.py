"""A sum as a linear operator, with its transpose by sums of other kernels (`adjoints`)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from parki import arrays, operators
from parki.arrays import Array
from parki.ewald import error
from parki.ewald.choice.params import Parameters
from parki.ewald.kernels import KERNELS, Kernel
from parki.ewald.planned import Planned


def make(plan: Planned, normals: Array | None, correction: Any) -> Any:
    """Return the linear operator of a plan: see `Plan.operator`."""
    kernel, nt, ns = plan.kernel, plan.n_targets, plan.n_sources
    shape = (kernel.result * nt, kernel.dens * ns)
    if kernel.normals is not (normals is not None):
        expected = f"{kernel} expects (3, {ns})" if kernel.normals else f"{kernel} takes none"
        raise ValueError(f"normals is {'missing' if normals is None else 'given'}; {expected}.")
    if normals is not None:
        layout = plan.options.layout
        there = arrays.density("normals", normals, 3, ns, layout, contiguous=False, promoted=plan.dtype)
        arrays.check_like_points(("trg", "src"), plan.dtype, normals=there)
    turned = normals.T if normals is not None and plan.options.layout == "nd" else normals

    def forward(x: Array) -> Array:
        return apply(plan, x, normals)

    def backward(w: Array) -> Array:
        return adjoint(plan, w, turned)

    def columns(x: Array) -> Array:
        return _columns(plan, x, forward, kernel.dens, ns)

    def rows(w: Array) -> Array:
        return _columns(plan, w, backward, kernel.result, nt)

    return operators.linear(shape, plan.dtype, columns, rows, correction, plan.on_gpu)


def _columns(plan: Planned, x: Array, function: Callable[[Array], Array], components: int, n: int) -> Array:
    """Apply to columns of flattened arrays a function of ``(columns, components, n)``, and back."""
    rows = plan.options.layout == "nd"
    columns = x.T.astype(plan.dtype).reshape(-1, *((n, components) if rows else (components, n)))
    sums = function(columns.swapaxes(1, 2) if rows else columns)
    sums = sums.swapaxes(1, 2) if rows else sums
    return sums.reshape(len(sums), -1).T


def apply(plan: Planned, dens: Array, normals: Array | None = None) -> Array:
    """Return sums ``(rhs, components, Nt)`` of densities ``(rhs, components, Ns)``, whatever the layout of the plan."""
    rows = plan.options.layout == "nd"
    dens = dens[:, 0] if plan.kernel.dens == 1 else dens.swapaxes(1, 2) if rows else dens
    u = plan(dens, normals)
    return u[:, None] if plan.kernel.result == 1 else u.swapaxes(1, 2) if rows else u


def adjoint(plan: Planned, w: Array, normals: Array | None) -> Array:
    """Return the transposed sums ``(rhs, components, Ns)`` of ``(rhs, components, Nt)``; normals ``(3, Ns)``.

    Raises
    ------
    NotImplementedError
        For a kernel that is not one of parki's.
    """
    name = plan.kernel.name
    if plan.kernel.adjoint is None or replace(plan.kernel, parameters=()) != KERNELS.get(name):
        raise NotImplementedError(f"the transpose of {name} is not known; expected one of {', '.join(KERNELS)}.")

    def back(name: str, w: Array, normals: Array | None = None) -> Array:
        kernel = plan.kernel if name == plan.kernel.name else KERNELS[name]
        return apply(plan.turned(kernel), w, normals)

    return plan.kernel.adjoint(back, w, normals)


def turned(plan: Planned, kernel: Kernel) -> Planned:
    """Return the plan of another kernel from the targets to the sources, made when it is first asked for."""
    if kernel.name not in plan.others:
        trg, src = plan.points.originals()
        options = error.quiet(plan.options, layout="dn", graph=plan.options.graph)
        p = replace(plan.chosen, kernel=kernel.scaled(plan.geometry.power)) if serves(plan.chosen, kernel) else None
        plan.others[kernel.name] = plan.like(kernel, src, trg, options, plan.dtype, p)
        plan.others[kernel.name].take_reach(plan)
    return plan.others[kernel.name]


def serves(p: Parameters, kernel: Kernel) -> bool:
    """Tell whether parameters chosen for their kernel serve another one as well."""
    return kernel.layers == p.kernel.layers and kernel.spectrum.profile == p.kernel.spectrum.profile
