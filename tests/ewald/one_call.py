"""Pair functions and multipliers, called by workunits of their own."""

import numpy as np

from parki import engine
from parki.ewald import kernels
from parki.ewald.split import far_parts
from tests.ewald import sums

KAPPA = sums.PARAMETERS["yukawa"]["kappa"]
PAIR = '''"""One source for each target."""

from typing import List

import pykokkos as pk

from parki.kernels.pair.laplace import NF, NS, NU, pair

real = pk.double


@pk.workunit
def one_pair(
    i: int, r: pk.View2D[real], w: pk.View1D[real], parts: pk.View2D[real], s: pk.View2D[real], u: pk.View2D[real]
):
    """u[:, i] = the source s[:, i] at -r[:, i] from the target."""
    x: real = r[0][i]
    y: real = r[1][i]
    z: real = r[2][i]
    far: List[real] = [0.0] * NF
    strengths: List[real] = [0.0] * NS
    acc: List[real] = [0.0] * NU
    for f in range(NF):
        far[f] = parts[f][i]
    for k in range(NS):
        strengths[k] = s[k][i]
    pair(x, y, z, x * x + y * y + z * z, w[i], far, strengths, acc)
    for k in range(NU):
        u[k][i] = acc[k]
'''
MODE = '''"""One mode."""

from typing import List

import pykokkos as pk

from parki.kernels.multiplier.scalar import NIN, NOUT, multiply

real = pk.double


@pk.workunit
def one_mode(
    i: int, k: pk.View2D[real], n: pk.View2D[real], g: pk.View1D[real], vs: pk.View2D[real], ws: pk.View2D[real]
):
    """ws[:, i] = what becomes of vs[:, i]."""
    v: List[real] = [0.0] * (2 * NIN)
    w: List[real] = [0.0] * (2 * NOUT)
    for c in range(2 * NIN):
        v[c] = vs[c][i]
    for c in range(2 * NOUT):
        w[c] = 77.0
    multiply(k[0][i], k[1][i], k[2][i], n[0][i], n[1][i], n[2][i], g[i], v, w)
    for c in range(2 * NOUT):
        ws[c][i] = w[c]
'''


def find(name):
    """Return the kernel of this name, or that of a gradient, with its parameter."""
    own, wanted = name, False
    for suffix, value in (("_and_grad", True), ("_grad", "only")):
        if name not in kernels.KERNELS and not wanted and name.endswith(suffix):
            own, wanted = name.removesuffix(suffix), value
    return kernels.gradient(kernels.find(own, **sums.PARAMETERS.get(own, {})), wanted)


class Caller:
    """Caller of the package's pair functions and multipliers, by two workunits written to files in `folder`."""

    def __init__(self, folder):
        self.pair, self.mode = folder / "one_pair.py", folder / "one_mode.py"
        self.pair.write_text(PAIR, "utf-8")
        self.mode.write_text(MODE, "utf-8")

    def pairs(self, kernel, r, w, parts, s, n):
        """Return u (components, N) at the vectors r (3, N), each from its own source."""
        count = r.shape[1]
        numbers = [s, *([n] if kernel.normals else []), *(np.full((1, count), v) for v in kernel.parameters)]
        slots = {"pair": kernel.pair, "SCREENED": True, **dict(kernel.slots)}
        unit = engine.kernel(self.pair, "one_pair", real="double", **slots)
        u = np.zeros((kernel.result, count))
        given = {"r": r, "w": w, "parts": parts, "s": np.concatenate(numbers), "u": u}
        engine.parallel_for(engine.RangePolicy("Serial", count), unit, **given)
        return u

    def near(self, kernel, split, r, s, n):
        """Return the near field of the same, with a split's far parts computed without tables."""
        d = np.linalg.norm(r, axis=0)
        w = np.divide(1.0, d, out=np.zeros_like(d), where=d > 0)
        parts = np.array([far_parts.values(part, split, d, kernel.parameter()) for part in kernel.far])
        return self.pairs(kernel, r, w, parts, s, n)

    def multiply(self, kernel, k, g, v):
        """Return w (NOUT, modes) of k (3, modes), g (modes,) and v (NIN, modes)."""
        length = np.linalg.norm(k, axis=0)
        n = np.where(length > 0, k / np.where(length > 0, length, 1.0), np.array([0.0, 0.0, 1.0])[:, None])
        modes = len(length)
        vs = np.stack([v.real, v.imag], axis=1).reshape(-1, modes)
        ws = np.zeros((2 * kernel.fields, modes))
        unit = engine.kernel(self.mode, "one_mode", real="double", multiply=kernel.multiplier)
        engine.parallel_for(engine.RangePolicy("Serial", modes), unit, k=k, n=n, g=g, vs=vs, ws=ws)
        return ws[0::2] + 1j * ws[1::2]
