"""Freshly compiled kernels against plain NumPy: 64 points, the same specialisations, before their first use.

Compilers do go wrong for some ``-march``.  The near field must agree to rounding, the far field to the window's error.
"""

import math
from dataclasses import replace

import numpy as np

from parki import engine
from parki.arrays import Array, to_host
from parki.engine import spaces
from parki.engine.spaces import Space
from parki.ewald import multipliers, radial, stages, variants
from parki.ewald.components import STRENGTHS
from parki.ewald.params import Parameters
from parki.ewald.variants import Variants
from parki.perfmodels import select

N, RC = 64, 0.8  # points, and cutoff in a unit box
MARK = "verified"  # file beside an object that has passed
SLACK = 10.0  # of the far field's tolerance: parameters are scaled to a box that they were not chosen for
_sound: set[tuple] = set()  # what has passed in this process and leaves no objects to mark


class VerificationError(RuntimeError):
    """Compiled kernels and NumPy disagree: the compiler, its flags or the processor are at fault."""


def verify(p: Parameters, space: Space, v: Variants | None = None, units: list[engine.Workunit] | None = None) -> None:
    """Check the workunits of `p` once for each set of compiled objects on a host, on GPUs once in each process.

    Parameters
    ----------
    p, space
        Parameters of the sum, and where it is computed.
    v, units : optional
        Variants, by default those of the space; what `stages.workunits` returns for them.

    Raises
    ------
    VerificationError
        Naming the part that is wrong, by how much, and the objects.
    """
    v = v or variants.choose(space, p.dtype)
    units = units or stages.workunits(p, space, v)
    marked = space.kind == "host" and space.engine == "parki"
    folders = [engine.object_path(w).parent for w in units] if marked else []
    mine = (space, v, *units)
    if mine in _sound or (folders and all((folder / MARK).exists() for folder in folders)):
        return
    small = scaled(p)
    near, far = compiled(small, space, v)
    for part, found, exact, bound in (
        ("near field", near, plain_near(small), 1e4 * float(np.finfo(p.dtype).eps)),
        ("far field", far, plain_far(small), SLACK * p.tolerance + 1e4 * float(np.finfo(p.dtype).eps)),
    ):
        error = float(np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2)))
        if not error <= bound:
            advice = "Report it with the output of parki doctor."
            if marked:
                listed = ", ".join(str(folder) for folder in folders)
                advice = f"Try PARKI_VECTOR_BYTES=32 or PARKI_ARCH=x86-64; the objects are in {listed}."
            raise VerificationError(
                f"the compiled {part} of {p.kernel} differs from NumPy by {error:.1e} on {space.name}, expected at "
                f"most {bound:.1e}. {advice}"
            )
    if not marked:
        _sound.add(mine)
    for folder in folders:
        try:
            (folder / MARK).touch()
        except OSError:  # a read-only cache: check again next time
            return


def scaled(p: Parameters) -> Parameters:
    """The same kernels in a unit box with a few hundred modes."""
    kmax = p.c / RC
    spacing = min(p.h) * p.kmax / kmax
    shape = tuple(int(m) for m in select.grids(np.array(spacing), (1.0,) * 3, np.array(p.P)))
    small = {"box": (1.0,) * 3, "rc": RC, "kmax": kmax, "xi": p.xi * p.rc / RC, "grid": shape}
    return replace(p, h=tuple(1.0 / m for m in shape), **small)


def inputs(p: Parameters) -> tuple[Array, Array]:
    """Points ``(3, N)`` and strengths ``(components, N)``."""
    rng = np.random.default_rng(7)
    return rng.random((3, N)).astype(p.dtype), rng.standard_normal((STRENGTHS[p.kernel], N)).astype(p.dtype)


def compiled(p: Parameters, space: Space, v: Variants | None = None) -> tuple[Array, Array]:
    """Near and far field by the compiled stages, in the points' own order; by default the variants of the space."""
    v, xp = v or variants.choose(space, p.dtype), spaces.array_module(space)
    x, s = (xp.asarray(a) for a in inputs(p))
    targets, sources = stages.sort(p, x, x, space, v)
    made = stages.Stages(p, v, targets, sources, x, x)
    made.pack([s])
    made.near.run()
    made.far.spread.run()
    spectrum = made.far.forward()
    made.far.multiply(spectrum)
    made.far.backward(spectrum)
    made.far.gather.run()
    back = np.argsort(to_host(targets.order))
    near, far = (to_host(u).astype(float) for u in (made.near.result, made.far.gather.result))
    return near[:, back], far if v.g2p == "BASE" else far[:, back]


def plain_near(p: Parameters) -> Array:
    """The near field as its formulas stand (`radial`), over all pairs and images."""
    x, s = (a.astype(float) for a in inputs(p))
    tables, total = radial.tables(p).astype(float), 0.0
    for image in np.ndindex(3, 3, 3):
        r = x[:, :, None] - x[:, None, :] - (np.array(image) - 1.0)[:, None, None]
        r2 = np.sum(r * r, axis=0)
        inside = r2 < p.rc**2
        w = np.where(r2 > 0, 1 / np.sqrt(np.where(r2 > 0, r2, 1.0)), 0.0) * inside
        far = [np.polyval(row, 2 * r2 / p.rc**2 - 1) * inside for row in tables]
        total = total + pairs(p.kernel, r, r2, w, far, s)
    return total


def pairs(kernel: str, r: Array, r2: Array, w: Array, far: list[Array], s: Array) -> Array:
    """Sum over sources of one image; formulas as in `radial`."""
    if kernel == "laplace":
        return ((w - far[0]) @ s[0])[None]
    along = [np.einsum("dij,dj->ij", r, s[c : c + 3]) for c in range(0, len(s), 3)]
    u = np.einsum("ij,dj->di", w - far[0] - r2 * far[1], s[:3])
    scale = (w**3 + far[1]) * along[0]
    if kernel == "stokes_comb":
        c = -(3 * far[1] + 2 * r2 * far[2])
        scale = scale + (4 * far[2] - 6 * w**5) * along[1] * along[2] + c * np.sum(s[3:6] * s[6:9], axis=0)
        u = u + np.einsum("ij,dj->di", c * along[2], s[3:6]) + np.einsum("ij,dj->di", c * along[1], s[6:9])
    return u + np.einsum("ij,dij->di", scale, r)


def plain_far(p: Parameters) -> Array:
    """The far field as a sum over its modes (`multipliers`)."""
    x, s = (a.astype(float) for a in inputs(p))
    most = int(p.kmax / (2 * math.pi))
    n = np.stack(np.meshgrid(*[np.arange(-most, most + 1)] * 3, indexing="ij")).reshape(3, -1)
    k = 2 * math.pi * n[:, (n != 0).any(axis=0)]
    k2 = np.sum(k * k, axis=0)
    k, k2 = k[:, k2 < p.kmax**2], k2[k2 < p.kmax**2]
    phi = np.polyval(multipliers.profile(p).astype(float), 2 * k2 / p.kmax**2 - 1)
    wave = np.exp(1j * k.T @ x)  # (modes, N)
    modes = np.conj(wave)
    if p.kernel == "laplace":
        return ((4 * math.pi * phi / k2 * (modes @ s[0])) @ wave).real[None]
    f = modes @ s[:3].T
    if p.kernel == "stokes_comb":
        q, normal = s[3:6], s[6:9]
        kq, kn = k.T @ q, k.T @ normal
        double = np.einsum("mj,mj,dj->md", modes, kn, q) + np.einsum("mj,mj,dj->md", modes, kq, normal)
        trace = modes @ np.sum(q * normal, axis=0)
        f = f + 1j * double
    along = np.sum(k.T * f, axis=1) / k2
    v = f - k.T * along[:, None]
    if p.kernel == "stokes_comb":
        v = v + 1j * k.T * trace[:, None]
    return ((8 * math.pi * phi / k2)[:, None] * v).T.dot(wave).real
