"""Check of freshly compiled kernels against NumPy before their first use, with 64 points and the same specialisations.

Compilers do generate wrong code for some ``-march``.  The near field must agree to rounding, the far field to the
window's error.
"""

import math
from dataclasses import replace

import numpy as np

from parki import engine, hints
from parki.arrays import Array, to_host
from parki.engine import Space, checking, spaces, target
from parki.ewald.choice import params, variants
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.variants import Variants
from parki.ewald.kernel import Kernel
from parki.ewald.report import WallTime
from parki.ewald.stages import green, multipliers, radial, reference_kernels, sums
from parki.ewald.stages.points import Points
from parki.perfmodels import select
from parki.scaling import Powers

N, RC = 64, 0.8  # points, and cutoff in a unit box
HALF_RC = 0.24  # cutoff of half lists, which need boxes of four cutoffs
STEEPEST = 16.0  # largest κ in a unit box, and inverse of the least length, so that sums do not vanish
MARK = "verified"  # name of a file beside an object that has passed
# Bounds of the far field's error: over its tolerance, because parameters are scaled to a box that they were not chosen
# for, and absolute.  Errors of compilers are larger.
SLACK, LARGEST_ERROR = 100.0, 0.05
CUBIC_SLACK = 1e4  # the same of kernels that fall as 1/r³, whose sums are larger than far fields
ROOTS = 10.0  # errors of roots and exponentials, at most, in the near field
_sound: set[tuple] = set()  # specialisations that have passed in this process or earlier


class VerificationError(RuntimeError):
    """Disagreement of compiled kernels and NumPy, due to the compiler, its flags or the processor."""


def verify(
    p: Parameters, space: Space, v: Variants | None = None, units: list[engine.Workunit] | None = None, rhs: int = 1
) -> None:
    """Check the workunits of `p` once per set of compiled objects on a host, and once per process on GPUs.

    Parameters
    ----------
    p, space
        Parameters of the sum, and its execution space.
    v, units : optional
        Variants and their workunits; by default the variants of the space.
    rhs
        Right-hand sides at once.

    Raises
    ------
    VerificationError
        Naming the wrong part, its error, and the objects.
    """
    v = v or variants.choose(space, p.dtype, p=p)
    units = units or workunits(p, space, v, rhs)
    is_native = space.native and space.engine == "parki"
    case = (space, v, *units, *((target(), checking()) if is_native else ()))
    if case in _sound:
        return
    folders = [engine.object_path(w).parent for w in units] if is_native else []
    if folders and all((folder / MARK).exists() for folder in folders):
        _sound.add(case)
        return
    small = scaled(p)
    near, far = compiled(small, space, v, rhs)
    rounding, far_rounding = (1e4 * float(np.finfo(name).eps) for name in (p.dtype, p.far))
    rounding += ROOTS * hints.rounding(p.root_error)
    slack = CUBIC_SLACK if p.kernel.cubic else SLACK
    checks = [
        ("near field", near, reference_near(small, rhs), rounding),
        ("far field", far, reference_far(small, rhs), min(slack * p.tolerance, LARGEST_ERROR) + far_rounding),
    ]
    if v.once:
        short = scaled(p, HALF_RC)
        checks.append(("near field", compiled(short, space, v, rhs)[0], reference_near(short, rhs), rounding))
    for part, field, exact, bound in checks:
        error = float(np.sqrt(np.mean((field - exact) ** 2) / np.mean(exact**2)))
        if not error <= bound:
            advice = "Report it with the output of parki doctor."
            if is_native:
                text = ", ".join(str(folder) for folder in folders)
                advice = f"Try PARKI_VECTOR_BYTES=32 or PARKI_ARCH=x86-64; the objects are in {text}."
            raise VerificationError(
                f"the compiled {part} of {p.kernel} differs from NumPy by {error:.1e} on {space.name}, expected at "
                f"most {bound:.1e}. {advice}"
            )
    _sound.add(case)
    for folder in folders:
        try:
            (folder / MARK).touch()
        except OSError:  # a read-only cache: check again next time
            return


def workunits(p: Parameters, space: Space, v: Variants, rhs: int = 1) -> list[engine.Workunit]:
    """Return the workunits of a sum over a few points."""
    return list(dict.fromkeys(unit for unit, *_ in sums.SumSteps(p, v, (N, N, True), space, rhs=rhs).steps.units()))


def scaled(p: Parameters, rc: float = RC) -> Parameters:
    """Return parameters of the same kernels in a periodic unit box with this cutoff; lengths scale with it."""
    kmax, dimensions = p.c / rc, p.kernel.law
    kernel = p.kernel
    if dimensions is not None:
        values = zip(kernel.parameters, dimensions.parameters, strict=True)
        lengths = (value * (rc / p.rc) ** power for value, power in values)
        limit = rc / 4 if kernel.spectrum.softened else STEEPEST  # wider blobs have no near field
        kernel = replace(kernel, parameters=tuple(min(max(value, 1 / STEEPEST), limit) for value in lengths))
    skew = p.skew and (p.skew[0] / p.box[1], p.skew[1] / p.box[2], p.skew[2] / p.box[2])
    spacing = min(h * edge / side for h, edge, side in zip(p.h, params.edges(p.box, p.skew), p.box, strict=True))
    sides = params.edges((1.0,) * 3, skew)
    shape = tuple(int(m) for m in select.grids(np.array(spacing * p.kmax / kmax), sides, np.array(p.P)))
    small = {"box": (1.0,) * 3, "rc": rc, "kmax": kmax, "xi": p.xi * p.rc / rc, "grid": shape, "skew": skew}
    return replace(p, kernel=kernel, h=tuple(1.0 / m for m in shape), periodicity=3, **small)


def inputs(p: Parameters, rhs: int = 1) -> tuple[Array, Array, Array | None]:
    """Return points ``(3, N)``, densities ``(rhs, components, N)`` and normals."""
    rng = np.random.default_rng(7)
    x, dens = rng.random((3, N)).astype(p.dtype), rng.standard_normal((rhs, p.kernel.dens, N)).astype(p.dtype)
    return x, dens, rng.standard_normal((3, N)).astype(p.dtype) if p.kernel.normals else None


def compiled(p: Parameters, space: Space, v: Variants | None = None, rhs: int = 1) -> tuple[Array, Array]:
    """Return near and far field by the compiled stages, in the points' order; variants default to the space's."""
    v, xp = v or variants.choose(space, p.dtype, p=p), spaces.array_module(space)
    x, dens, normals = (a if a is None else xp.asarray(a) for a in inputs(p, rhs))
    sum_ = sums.SumSteps(p, v, (N, N, True), space, rhs=rhs)
    points = Points(p, x, x, space, v)
    stages = sums.Stages(sum_, points)
    stages.run(dens, normals, xp.empty((rhs, p.kernel.result, N), p.dtype), WallTime())
    order = np.argsort(to_host(points.targets.order))
    powers = Powers.of(p.kernel.law, 0, dens, normals, p.kernel.result).result
    near_powers = np.concatenate([powers, np.repeat(powers[:, :1], 6 * p.kernel.virial, axis=1)], axis=1)
    near, far = (
        np.ldexp(to_host(stages.placed[u]).astype(float), power.reshape(-1, 1))
        for u, power in ((sum_.near.result, near_powers), (sum_.far.result, powers))
    )
    return near[:, order], far if v.g2p == "BASE" else far[:, order]


def strengths(p: Parameters, rhs: int) -> list[Array]:
    """Return the strengths of the sources, ``(numbers, N)``, for each right-hand side."""
    _, dens, normals = inputs(p, rhs)
    sources = []
    for column in dens.astype(float):
        rows = [column] if normals is None else [column, normals.astype(float)]
        sources.append(np.concatenate([*rows, *(np.full((1, N), value) for value in p.kernel.parameters)]))
    return sources


def reference_near(p: Parameters, rhs: int = 1) -> Array:
    """Return the near field as a sum over all pairs and images, with the pair function in Python."""
    x = inputs(p)[0].astype(float)
    tables, kernel = radial.tables(p).astype(float), p.kernel
    t01, t02, t12 = p.skew or (0.0, 0.0, 0.0)
    cell, reach = np.array([[1.0, t01, t02], [0.0, 1.0, t12], [0.0, 0.0, 1.0]]), 1 if p.skew is None else 2
    images = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1.0)] * 3, indexing="ij")).reshape(3, -1).T @ cell
    r = x[:, :, None, None] - x[:, None, :, None] - images.T[:, None, None, :]
    i, j, m = np.nonzero(np.sum(r * r, axis=0) < p.rc**2)
    r = r[:, i, j, m]
    r2 = np.sum(r * r, axis=0)
    w = np.where(r2 > 0, 1 / np.sqrt(np.where(r2 > 0, r2, 1.0)), 0.0)
    far = [np.polyval(row, 2 * r2 / p.rc**2 - 1) for row in tables]
    total = []
    for s in strengths(p, rhs):
        rows = reference_kernels.pairs(kernel.pair, kernel.sums, r, far, list(s[:, j]), w, dict(kernel.slots))
        total += [np.bincount(i, row, N) for row in rows]
    return np.array(total)


def reference_far(p: Parameters, rhs: int = 1) -> Array:
    """Return the far field as a sum over its modes (`multipliers`)."""
    x, kernel = inputs(p)[0].astype(float), p.kernel
    m_max = int(p.kmax * max(params.edges(p.box, p.skew)) / (2 * math.pi))
    k = 2 * math.pi * np.stack(np.meshgrid(*[np.arange(-m_max, m_max + 1)] * 3, indexing="ij")).reshape(3, -1)
    s01, s02, s12 = multipliers.reciprocal(p)
    k = np.stack([k[0] + s01 * k[1] + s02 * k[2], k[1] + s12 * k[2], k[2]])
    k2 = np.sum(k * k, axis=0)
    inside = k2 < p.kmax**2
    k, k2 = k[:, inside], k2[inside]
    g = kernel.scale * green.whole(p, k2) * green.factor(p, k2)
    wave = np.exp(1j * k.T @ x)  # (modes, N)
    total = []
    for s in strengths(p, rhs):
        modes = reference_kernels.modes(kernel.multiplier, kernel.fields, k, g, _spread(kernel, s, k, np.conj(wave)))
        values = [] if kernel.gather == "slopes" else [*modes]
        slopes = [] if kernel.gather == "values" else [1j * axis * row for row in modes for axis in k]
        total += [(row @ wave).real for row in (*values, *slopes)]
    return np.array(total)


def _spread(kernel: Kernel, s: Array, k: Array, waves: Array) -> list[Array]:
    """Return the transforms of the densities that sources spread."""
    if not kernel.slopes:
        return [waves @ row for row in s[: kernel.spread]]
    q, n = s[kernel.given - 6 : kernel.given - 3], s[kernel.given - 3 : kernel.given]
    double = np.einsum("mj,mj,dj->dm", waves, k.T @ n, q) + np.einsum("mj,mj,dj->dm", waves, k.T @ q, n)
    force = (waves @ s[:3].T).T if kernel.single else 0.0
    return [*(force + 1j * double), waves @ np.sum(q * n, axis=0)]
