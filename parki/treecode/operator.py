"""A treecode sum as a linear operator, with its transpose.

A kernel K(r) with K(−r)ᵀ = K(r), r = target − source, is its own adjoint: the even ones with symmetric components, and
the rotlet, whose components are as antisymmetric as it is odd.
"""

from typing import TYPE_CHECKING, Any

from parki import operators
from parki.arrays import Array
from parki.pairs import PAIRS

if TYPE_CHECKING:
    from parki.treecode.plan import Plan

ONE_WAY = {"laplace_grad", "laplace_dipole", "stokes_pressure", "stokes_grad", "stokes_dl", "stokes_comb"}


def make(plan: "Plan", correction: Any) -> Any:
    """Return the linear operator of a plan: see `Plan.operator`."""
    pair, shape = plan.pair, (plan.pair.result * plan.n_targets, plan.pair.dens * plan.n_sources)
    if pair.normals or plan.gradient is True:
        found = "normals" if pair.normals else "gradient=True"
        raise ValueError(f"this plan has {found}; expected a kernel that is linear in one array and has one result.")

    def columns(x: Array) -> Array:
        return _columns(plan, x)

    def rows(w: Array) -> Array:
        if pair.name not in PAIRS or pair.name in ONE_WAY:
            raise NotImplementedError(f"the transpose of {pair} is not known.")
        return _columns(plan.turned(), w)

    return operators.linear(shape, plan.dtype, columns, rows, correction, plan.on_gpu)


def _columns(plan: "Plan", x: Array) -> Array:
    """Columns of flattened arrays through the plan, and back."""
    n, components = plan.n_sources, plan.pair.dens
    one = (n,) if components == 1 else (n, components) if plan.layout == "nd" else (components, n)
    found = plan(x.T.astype(plan.dtype).reshape(-1, *one))
    return found.reshape(len(found), -1).T
