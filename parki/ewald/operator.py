"""A sum as a linear operator, with its transpose: the sum of the adjoint kernel from the targets to the sources.

With r = target − source, S the single layer, p and ∇u its pressure and velocity gradient, and w given at the targets:

laplace, yukawa, stokes_sl
    Even kernels with symmetric components are their own adjoints.
laplace_grad, laplace_dipole, stokes_pressure
    −q r/r³ and d·r/r³ are each other's; 2 f·r/r³ has twice the gradient.
stokes_dl
    −σ·n with the stress σ = −p I + ∇u + ∇uᵀ of S w; stokes_comb has that of S above it.
stokes_grad
    −∂ⱼ S_ki w_ij.  The symmetric part of w_ij takes the double layer, less the gradient of the Laplace kernel for its
    trace; the antisymmetric one takes dipoles.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from parki import arrays, operators
from parki.arrays import Array, module_of
from parki.ewald import error
from parki.ewald.kernels import KERNELS, Kernel

if TYPE_CHECKING:
    from parki.ewald.plan import Plan


#: The kernel of the transposed sum and its factor, where one kernel is enough.
ADJOINT = {
    "laplace": ("laplace", 1.0),
    "laplace_grad": ("laplace_dipole", 1.0),
    "laplace_dipole": ("laplace_grad", 1.0),
    "stokes_pressure": ("laplace_grad", 2.0),
    "stokes_sl": ("stokes_sl", 1.0),
    "yukawa": ("yukawa", 1.0),
}


def make(plan: "Plan", normals: Array | None, correction: Any) -> Any:
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


def _columns(plan: "Plan", x: Array, function: Callable[[Array], Array], components: int, n: int) -> Array:
    """Columns of flattened arrays, through a function of ``(columns, components, n)``, and back."""
    rows = plan.options.layout == "nd"
    given = x.T.astype(plan.dtype).reshape(-1, *((n, components) if rows else (components, n)))
    found = function(given.swapaxes(1, 2) if rows else given)
    found = found.swapaxes(1, 2) if rows else found
    return found.reshape(len(found), -1).T


def apply(plan: "Plan", dens: Array, normals: Array | None = None) -> Array:
    """Sums ``(rhs, components, Nt)`` of densities ``(rhs, components, Ns)``, whatever the layout of the plan."""
    rows = plan.options.layout == "nd"
    given = dens[:, 0] if plan.kernel.dens == 1 else dens.swapaxes(1, 2) if rows else dens
    found = plan(given, normals)
    return found[:, None] if plan.kernel.result == 1 else found.swapaxes(1, 2) if rows else found


def adjoint(plan: "Plan", w: Array, normals: Array | None) -> Array:
    """The transposed sums ``(rhs, components, Ns)`` of ``(rhs, components, Nt)``; normals ``(3, Ns)``.

    Raises
    ------
    NotImplementedError
        For a kernel that is not one of parki's.
    """
    name = plan.kernel.name
    if replace(plan.kernel, parameters=()) != KERNELS.get(name):
        raise NotImplementedError(f"the transpose of {name} is not known; expected one of {', '.join(KERNELS)}.")

    def turned(name: str, w: Array, normals: Array | None = None) -> Array:
        kernel = plan.kernel if name == plan.kernel.name else KERNELS[name]
        return apply(plan.turned(kernel), w, normals)

    if name in ADJOINT:
        back, factor = ADJOINT[name]
        return factor * turned(back, w)
    match name:
        case "stokes_dl":
            return _traction(turned, w, normals)
        case "stokes_comb":
            return module_of(w).concatenate([turned("stokes_sl", w), _traction(turned, w, normals)], axis=1)
        case _:
            return _doublets(turned, w)


def _traction(turned: Callable[..., Array], w: Array, normals: Array) -> Array:
    """−σ·n of the single layer."""
    pressure = turned("stokes_pressure", w)
    g = turned("stokes_grad", w)
    g = g.reshape(len(g), 3, 3, -1)
    return pressure * normals - ((g + g.swapaxes(1, 2)) * normals).sum(axis=2)


def _doublets(turned: Callable[..., Array], w: Array) -> Array:
    """−∂ⱼ S_ki w_ij."""
    xp, (rhs, _, n) = module_of(w), w.shape
    w = w.reshape(rhs, 3, 3, n)
    found = turned("laplace_grad", w[:, 0, 0:1] + w[:, 1, 1:2] + w[:, 2, 2:3])
    odd = (w - w.swapaxes(1, 2)).reshape(3 * rhs, 3, n)
    found += turned("laplace_dipole", odd).reshape(found.shape)
    for axis in range(3):
        along = xp.zeros((3, n), w.dtype)
        along[axis] = 1
        found -= 0.5 * turned("stokes_dl", w[:, axis], along)
    return found


def turned(plan: "Plan", kernel: Kernel) -> "Plan":
    """Return the plan of another kernel from the targets to the sources, made when it is first asked for."""
    if kernel.name not in plan.others:
        trg, src = plan.points.originals()
        options = error.quiet(plan.options, layout="dn", graph=plan.options.graph)
        p = replace(plan.chosen, kernel=kernel.scaled(plan.geometry.power)) if serves(plan.chosen, kernel) else None
        plan.others[kernel.name] = plan.like(kernel, src, trg, options, plan.dtype, p)
        plan.others[kernel.name].take_reach(plan)
    return plan.others[kernel.name]


def serves(p: Any, kernel: Kernel) -> bool:
    """Whether parameters chosen for their kernel serve another one as well."""
    return kernel.layers == p.kernel.layers and kernel.profile == p.kernel.profile
