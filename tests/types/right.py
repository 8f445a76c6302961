"""A user's script with every method and plan: a type checker has nothing to say.  Never run."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import parki
from parki.pairs import Pair

Doubles = NDArray[np.float64]

x, y = parki.samples.uniform(200, seed=1), parki.samples.plummer(300, cutoff=5.0)
q, forces, normals = parki.samples.charges(300), np.ones((3, 300)), np.ones((3, 300))
single = x.astype(np.float32)

# Treecodes
assert_type(parki.treecode.bldtt(x, y, q), Doubles)
assert_type(parki.treecode.bldtt(single, single, [1.0] * 200, theta=0.7, degree=8), NDArray[np.float32])
assert_type(parki.treecode.bltc(x, y, q, "yukawa", variant="cp", kappa=2.0, tolerance=1e-6, gradient="only"), Doubles)
u, slope = parki.treecode.bldtt(x, y, q, gradient=True)
assert_type(slope, Doubles)
u, times, error = parki.treecode.bldtt(x, y, q, return_walltime=True, return_error=True, threads=2, layout="dn")
tree = parki.treecode.plan("regularised_stokeslet", x, y, method="pc", epsilon=0.1, far_precision="single")
assert_type(tree, parki.treecode.Plan[Doubles])
both = parki.treecode.plan("coulomb", x, y, gradient=True, execution_space="OpenMP")
assert_type(both(q), tuple[Doubles, Doubles])

# Fast multipole methods
assert_type(parki.fmm.kifmm(x, y, forces, "stokes_dl", normals=normals, tolerance=1e-5), Doubles)
assert_type(parki.fmm.chebyshev(x, y, q, Path("kernel.py"), order=6, leaf_size=80), Doubles)
fast = parki.fmm.plan("rpy", x, y, method="chebyshev", radius=0.01, verbose=False)
assert_type(fast(forces, out=np.empty((3, 200))), Doubles)
fast.move(targets=2 * x, sources=2 * y)
assert_type(fast.error(n=50).value, float)
assert_type(fast.walltime.table(), str)
assert_type(fast.predict().seconds, float)
operator = fast.operator(correction=None)


def bytes_of(plan: parki.fmm.Plan) -> int:
    return plan.memory


# Direct sums, and a pair of one's own with a parameter of its own name
mine = Pair("mine", 1, 1, "pair/radial", names=("length",), slots=(("radial", "radial/gaussian"),))
assert_type(parki.direct.direct_sum(parki.pairs.find(mine, length=0.5), x, y, q), Doubles)
assert_type(parki.direct.direct_sum("thin_plate", x, y, q, unit=2.0, execution_space="Serial"), Doubles)
assert_type(parki.fmm.kifmm(x, y, q, mine.with_gradient(only=True)), Doubles)

exact = parki.direct.plan("coulomb", x, y, gradient="only", layout="dn")
assert_type(exact(q), Doubles)

# Ewald sums
assert_type(parki.ewald.laplace(x, x, q, box=(2, 2, 2), tolerance=1e-6, split="gaussian", fft="scipy"), Doubles)
assert_type(parki.ewald.yukawa(x, x, q, 2.0, periodicity=0), Doubles)
assert_type(parki.ewald.stokes_comb(x, x, np.ones((6, 300)), normals, box=np.eye(3)), Doubles)
options = parki.ewald.EwaldOptions([1.0, 1.0, 1.0], 3, 1e-6, p2p_method="SM-1D", return_params=True)
flow, parameters = parki.ewald.stokes_sl(x, x, forces, options, threads=1)
ewald = parki.ewald.plan("stokes_dl", x, y, box=(2, 2, 2), engine="parki", tune=True, rhs=4)
assert_type(ewald(forces, normals, out=flow), Doubles)
ewald.move(sources=y, targets=x)
assert_type(ewald.error(n=50, density=forces, normals=normals).high, float)
assert_type(ewald.walltime.time["ewald"], float)
assert_type(ewald.predict().seconds, float)
assert_type(ewald.transposed(), parki.ewald.Plan[Doubles])

# Helpers
assert_type(parki.utils.wrap(single, (1, 1, 1), layout="dn"), NDArray[np.float32])
cells = parki.CellList(x, 0.5, (2.0, 2.0, 2.0), parki.utils.get_execution_space("CPU"))
keywords: dict[str, Any] = {"tolerance": 1e-4}
assert_type(cells.num_cells, int)
assert_type(parki.treecode.plan("coulomb", x, y, **keywords).n_targets, int)
assert_type(parki.__version__, str)
