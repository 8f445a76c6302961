"""A treecode sum as a linear operator, with its transpose.

A kernel K(r) with K(−r)ᵀ = K(r), r = target − source, is its own adjoint: the even ones with symmetric components, and
the rotlet, whose components are as antisymmetric as it is odd.
"""

import importlib
from typing import TYPE_CHECKING, Any

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
    if correction is not None and correction.shape != shape:
        raise ValueError(f"correction has shape {correction.shape}; expected {shape}.")

    def matmat(x: Array) -> Array:
        found = _columns(plan, x)
        return found if correction is None else found + correction @ x

    def rmatmat(w: Array) -> Array:
        if pair.name not in PAIRS or pair.name in ONE_WAY:
            raise NotImplementedError(f"the transpose of {pair} is not known.")
        found = _columns(plan.turned(), w)
        return found if correction is None else found + correction.conj().T @ w

    library = importlib.import_module("cupyx.scipy.sparse.linalg" if plan.on_gpu else "scipy.sparse.linalg")
    return library.LinearOperator(
        shape, matvec=lambda x: matmat(x.reshape(-1, 1))[:, 0], rmatvec=lambda w: rmatmat(w.reshape(-1, 1))[:, 0],
        matmat=matmat, rmatmat=rmatmat, dtype=plan.dtype,
    )  # fmt: skip


def _columns(plan: "Plan", x: Array) -> Array:
    """Columns of flattened arrays through the plan, and back."""
    if x.dtype.kind == "c":
        return _columns(plan, x.real) + 1j * _columns(plan, x.imag)
    n, components = plan.n_sources, plan.pair.dens
    one = (n,) if components == 1 else (n, components) if plan.layout == "nd" else (components, n)
    found = plan(x.T.astype(plan.dtype).reshape(-1, *one))
    return found.reshape(len(found), -1).T
