"""Kernels of each fast multipole method, and the share of far pairs of a sum by its lists."""

from parki.pairs import PAIRS

#: Kernels by method, with their option `gradient`.
KERNELS = {
    "kifmm": [
        ("laplace", False), ("laplace", True), ("yukawa", False), ("yukawa", True), ("laplace_grad", False),
        ("laplace_dipole", False), ("stokes_sl", False), ("stokes_sl", "only"), ("stokes_dl", False),
        ("stokes_comb", False), ("stokes_pressure", False), ("stokes_dipole", False), ("rotlet", False), ("rpy", False),
        ("regularised_coulomb", False), ("regularised_coulomb", "only"), ("spline_coulomb", True),
    ],
    "chebyshev": [
        ("laplace", True), *((name, False) for name, pair in PAIRS.items() if name == pair.name), ("yukawa", True),
    ],
}  # fmt: skip


def far_share(plan):
    """Return the share of the pairs of particles that are not summed one by one."""
    tree, lists = plan.structure.tree, plan.structure.lists
    near = tree.nodes.targets.count[lists.u_t].astype(float) @ tree.nodes.sources.count[lists.u_s]
    return 1 - near / (plan.n_targets * plan.n_sources)
