"""Helpers of the tests of whole sums: points, kernels of each method, errors, shares of far pairs."""

import numpy as np

from parki import samples
from parki.pairs import PAIRS

SHAPES = {"uniform": samples.uniform, "plummer": samples.plummer, "sphere": samples.sphere}
METHODS = ("kifmm", "chebyshev")
#: Kernels by method, with their option `gradient`.
KERNELS = {
    "kifmm": [
        ("laplace", False), ("laplace", True), ("yukawa", False), ("yukawa", True), ("laplace_grad", False),
        ("laplace_dipole", False), ("stokes_sl", False), ("stokes_sl", "only"), ("stokes_dl", False),
        ("stokes_comb", False), ("stokes_pressure", False), ("rotlet", False), ("rpy", False),
    ],
    "chebyshev": [
        ("laplace", True), *((name, False) for name, pair in PAIRS.items() if name == pair.name), ("yukawa", True),
    ],
}  # fmt: skip


def relative(found, exact):
    """Return the relative error in the 2-norm over all targets and components."""
    return float(np.linalg.norm(np.asarray(found, np.float64) - exact) / np.linalg.norm(exact))


def far_share(plan):
    """Return the share of the pairs of particles that are not summed one by one."""
    tree, lists = plan.structure.tree, plan.structure.lists
    near = tree.nodes.targets.count[lists.u_t].astype(float) @ tree.nodes.sources.count[lists.u_s]
    return 1 - near / (plan.n_targets * plan.n_sources)
