"""A kernel of one's own in a notebook
===================================

A Gaussian process in space, by sums of a kernel that is a Python function in a cell: Matérn's covariance.

:Shows: `parki.pairs.Pair` with a Python function, summed directly, by a treecode and by interpolation on an octree; a
    plan's operator in conjugate gradients; how plans, times and errors show themselves in notebooks.
:Run: ``python examples/own_kernel_cells.py -o own_kernel_cells.png`` (``--small``: fewer points), or
    cell by cell in Jupyter
:Expect: The sums agree with NumPy's and with each other to the tolerance; the field that is found from noisy values at
    scattered points differs from the one that they were drawn from by less than the noise.
"""

import importlib.util
import sys

import numpy as np
from scipy.sparse import diags_array
from scipy.sparse.linalg import cg

import parki

n, tolerance = (4000, 1e-3) if "--small" in sys.argv else (10_000, 1e-6)

# %%
# The kernel
# ----------
#
# Matérn's covariance is k(r) = (1 + √3 r/l) exp(−√3 r/l), where l is a length.  The function adds one source to u.  Its
# arguments are r² and w = 1/r, which is 0 for a coincident pair, and the numbers of the source, here its weight s[0]
# and the length s[1].  parki reads and compiles the function, and never calls it; ``real`` is the type of the points,
# and ``pk`` has the functions of mathematics.  Numbers such as ROOT are compiled in.

ROOT = 3**0.5


def matern(dx, dy, dz, r2, w, far, s, u):
    """Add the covariance with one source."""
    t: real = ROOT * r2 * w / s[1]
    u[0] += s[0] * (1.0 + t) * pk.exp(-t)


covariance = parki.pairs.Pair("matern", 1, 1, matern, names=("length",), singular=False)
covariance = parki.pairs.find(covariance, length=0.4)

# %%
# Three methods
# -------------
#
# Any method that needs only values of a kernel can sum this one.

rng = np.random.default_rng(1)
x, weights = rng.random((3, n)), rng.normal(size=n)
some = rng.permutation(n)[:50]
r = np.linalg.norm(x[:, some, None] - x[:, None, :], axis=0) * ROOT / 0.4
exact = ((1 + r) * np.exp(-r)) @ weights

largest = 0.0
for method in (parki.direct.plan, parki.treecode.plan, parki.fmm.plan):
    options = {} if method is parki.direct.plan else {"tolerance": tolerance}
    options |= {"method": "chebyshev"} if method is parki.fmm.plan else {}
    plan = method(covariance, x, x, **options)
    error = np.linalg.norm(plan(weights)[some] - exact) / np.linalg.norm(exact)
    largest = max(largest, error / tolerance)
    print(f"{plan!r}: relative error {error:.1e}")
print(f"largest error: {largest:.3f} of the tolerance")
assert largest < 1

# %%
# A plan shows its parameters, and the times of its last call.

plan

# %%
plan.walltime

# %%
# A plan measures its own error.

plan.error()

# %%
# A field from noisy values
# -------------------------
#
# Values y of a smooth field at the points, with noise σ, give the field k (K + σ²)⁻¹ y.  The matrix K is the plan's
# operator, and the noise a correction of its diagonal.


def truth(x):
    """Return the field that values are drawn from."""
    return np.sin(5 * x[0]) * np.cos(4 * x[1]) + x[2]


noise = 0.1
values = truth(x) + noise * rng.normal(size=n)
smooth = parki.treecode.plan(covariance, x, x, tolerance=1e-5)
operator = smooth.operator(correction=diags_array(np.full(n, noise**2)))
found, left = cg(operator, values, rtol=1e-2, maxiter=1000)
assert left == 0

pixels = 60 if "--small" in sys.argv else 150
side = (np.arange(pixels) + 0.5) / pixels
plane = np.stack([a.ravel() for a in np.meshgrid(side, side, [0.5], indexing="ij")])
field = parki.treecode.bldtt(plane, x, found, covariance, tolerance=1e-5)
off = np.sqrt(np.mean((field - truth(plane)) ** 2))
print(f"the field in the plane z = 1/2: RMS error {off:.3f}, noise of the values {noise}")
assert off < noise


# %%
def draw():
    """Draw the values close to the plane, and the field found in it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    near = np.abs(x[2] - 0.5) < 0.03
    look = {"cmap": "RdBu_r", "vmin": -0.7, "vmax": 1.7}
    left.scatter(*x[:2, near], c=values[near], s=14, **look)
    image = right.pcolormesh(side, side, field.reshape(pixels, pixels).T, **look)
    for panel, title in ((left, "noisy values near z = 1/2"), (right, "the field from all values, z = 1/2")):
        panel.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="x", ylabel="y", title=title)
    figure.colorbar(image, ax=(left, right), pad=0.01, label="value")
    return figure


figure = draw() if importlib.util.find_spec("matplotlib") else 'no picture: pip install "parki[plot]"'
if "-o" in sys.argv and not isinstance(figure, str):
    figure.savefig(sys.argv[sys.argv.index("-o") + 1], dpi=120)
    print(f"picture in {sys.argv[sys.argv.index('-o') + 1]}")
figure
