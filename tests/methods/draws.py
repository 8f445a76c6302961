"""Random draws of sums: kernel, points, tolerance, precision, scale, signs of charges; and their errors."""

from dataclasses import dataclass

import numpy as np

from parki import pairs, samples
from parki.direct import direct_sum
from parki.pairs import PAIRS
from tests.methods.sums import plan, relative

SIGNS = ("random", "positive", "neutral", "few")


def two_groups(n, seed=0, apart=20.0):
    """Return two cubes of side 2 with half of the points each, at a distance along x."""
    x = samples.uniform(n, seed)
    x[0, n // 2 :] += apart
    return x


SHAPES = {
    "uniform": samples.uniform,
    "gaussian": samples.gaussian,
    "plummer": samples.plummer,
    "sphere": samples.sphere,
    "rod": lambda n, seed: samples.box(n, seed, (1, 1, 10)),
    "two groups": two_groups,
}


@dataclass(frozen=True)
class Draw:
    """Parameters of a sum.  Lengths of kernels are in units of half the cube's side; `scale` multiplies all lengths."""

    seed: int
    method: str
    kernel: str
    shape: str
    tolerance: float
    gradient: bool | str = False
    same: bool = True
    n: int = 3000
    leaf_size: int = 20
    batch_size: int | None = None
    signs: str = "random"
    dtype: str = "float64"
    scale: float = 1.0
    length: float = 0.5


def parameters(d):
    """Return the kernel's parameters: lengths, or their inverses."""
    values = {"kappa": 1 / d.length, "k": np.pi / d.length, "width": d.length, "unit": d.length}
    values |= {"epsilon": 0.1 * d.length, "radius": 0.03 * d.length}
    inverse = ("kappa", "k")
    names = PAIRS[d.kernel].names if d.kernel in PAIRS else ()
    return {name: values[name] * (1 / d.scale if name in inverse else d.scale) for name in names}


def problem(d, pair):
    """Return targets, sources, charges and normals."""
    rng = np.random.default_rng([d.seed, 8])
    y = d.scale * SHAPES[d.shape](d.n, d.seed)
    x = y if d.same else d.scale * SHAPES[d.shape](d.n - 300, d.seed + 1000)
    charges = rng.uniform(-1, 1, (pair.dens, d.n))
    if d.signs == "positive":
        charges = abs(charges) + 0.1
    elif d.signs == "neutral":
        charges -= charges.mean(axis=1, keepdims=True)
    elif d.signs == "few":
        charges *= rng.random(d.n) < 0.02
    normals = rng.standard_normal((3, d.n)) if pair.normals else None
    x, y, charges = (a.astype(d.dtype) for a in (x, y, charges))
    x = y if d.same else x
    return x, y, charges[0] if pair.dens == 1 else charges, None if normals is None else normals.astype(d.dtype)


def ratio(d, kernel=None, shift=0.0):
    """Return error / tolerance, the larger one of potential and gradient, and the plan."""
    kernel = d.kernel if kernel is None else kernel
    x, y, charges, normals = problem(d, pairs.find(kernel, **parameters(d)))
    if shift:
        x, y = (x + shift, y + shift) if x is not y else (x + shift,) * 2
    options = {"tolerance": d.tolerance, "leaf_size": d.leaf_size, "gradient": d.gradient}
    options |= {"batch_size": d.batch_size} if d.batch_size else {}
    made = plan(d.method, kernel, x, y, **options, **parameters(d))
    u = made(charges, normals)
    wide = [None if a is None else a.astype(np.float64) for a in (x, y, charges, normals)]
    exact = direct_sum(made.kernel, *wide)
    parts = [(u[0], exact[0]), (u[1], exact[1:])] if d.gradient is True else [(u, exact)]
    assert all(found.dtype == d.dtype for found, _ in parts)
    return max(relative(found, right) for found, right in parts) / d.tolerance, made
