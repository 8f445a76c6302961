"""How much arithmetic and memory traffic the launches of a sum are: counted from its points, cells and parameters.

Additions, multiplications, divisions, square roots and reciprocal square roots count as one operation each; integer
arithmetic counts nothing.

p2p
    Every pair of a target and a source that the kernel looks at takes the square of its distance; pairs within rc take
    the rest.  The pairs looked at are counted from the batches of targets and the cells that they reach: all batches
    up to 2048 of them, else so many at even distances, scaled up.  Those within rc are estimated: of the cells that
    a batch reaches, the share of their volume that a sphere of radius rc has.
p2g, g2p
    What is added at each of a point's P³ taps, and the polynomials of its window as often as the variant computes them.
    Products that rows of taps share are left out.
fft, ifft
    5 n log2 n for a line of n complex numbers, and each component: all lines along x, of which one is two real lines;
    in each plane of modes the lines along z that the grid has, and those columns along y that reach its circle of
    modes.  Complex transforms take the planes of negative kx, too.
cnv
    Every mode of a plane in full, also those that are dropped.

Traffic, in bytes: p2p and cnv read their input and write their result once, as with a cache for all; so do fft and
ifft, the lines along x and the planes each, a plane at kx from the grid's lines at kx and −kx; p2g and g2p read their
points once and go to the grid for every tap, as without a cache, p2g to read and to write (with GRID, which has its
sums in registers, it reads the source for every tap and writes each grid point once).  These are the models m∞ and m0
of Kosmacher et al. (2026), section 5.
"""

import math
from dataclasses import dataclass

import numpy as np

from parki.arrays import Array, to_host
from parki.cells import CellList
from parki.ewald import multipliers, planes
from parki.ewald.mesh import Mesh
from parki.ewald.params import Parameters
from parki.ewald.variants import Variants

SAMPLE = 2048  # batches
DISTANCE = 8  # operations of a pair's squared distance
SKEWED = 6  # operations of a wave vector in a triclinic cell


@dataclass(frozen=True)
class Work:
    """Operations (`flop`) and bytes (`mop`) by phase.

    Attributes
    ----------
    flop, mop : dict
        By ``"p2p"``, ``"p2g"``, ``"fft"``, ``"cnv"``, ``"ifft"``, ``"g2p"``.
    pairs : int
        Pairs of a target and a source that P2P looks at.
    values : int
        Real values that one forward transform of all components takes in.
    """

    flop: dict[str, int]
    mop: dict[str, int]
    pairs: int
    values: int


def count(p: Parameters, v: Variants, targets: CellList, sources: CellList, real: bool = True) -> Work:
    """Count the work of one sum with real transforms, or with complex ones of the real grids."""
    looked_at, within = pairs(p, v, targets, sources)
    spread, result, strengths = p.kernel.spread, p.kernel.result, p.kernel.strengths
    mesh, classes = Mesh(p, multipliers.period(p)), multipliers.planes(p, not real)
    points, touched = math.prod(mesh.box), math.prod(mesh.extent)
    modes = sum(len(c.modes) * c.rows * c.length for c in classes)
    transform = transform_operations(p, mesh, classes)
    lines = sum(len(c.modes) for c in classes) * mesh.box[1] * mesh.box[2]
    row, size = 3 + strengths, np.dtype(p.dtype).itemsize
    source, target = row * sources.n, (3 + result) * targets.n
    g2p, p2g = g2p_operations(p, v), p2g_operations(p, v)
    taps = sources.n * p.P**3
    flop = {
        "p2p": DISTANCE * looked_at + pair_operations(p) * within,
        "p2g": p2g * sources.n,
        "fft": spread * transform,
        "cnv": modes * (p.kernel.mode_flops + SKEWED * (p.skew is not None)),
        "ifft": result * transform,
        "g2p": g2p * targets.n,
    }
    mop = {
        "p2p": source + target,
        "p2g": row * taps + spread * touched if v.p2g == "GRID" else source + 2 * spread * taps,
        "fft": spread * (2 * points + 2 * lines + 2 * modes),
        "cnv": (spread + result) * 2 * modes,
        "ifft": result * (2 * points + (2 if real else 1) * lines + 2 * modes),
        "g2p": target + result * targets.n * p.P**3,
    }
    whole = {name: round(n) for name, n in flop.items()}
    return Work(whole, {name: size * n for name, n in mop.items()}, looked_at, spread * points)


def transform_operations(p: Parameters, mesh: Mesh, classes: list[multipliers.Planes]) -> float:
    """Operations of transforming one component in one direction: lines along x, then planes."""
    n0, n1, n2 = mesh.box
    found = n1 * n2 // 2 * _line(n0)
    for c in classes:
        for mode in c.modes:
            columns = sum(len(range(c.length)[part]) for part in planes.columns(p, c, (mode,)))
            found += n1 * _line(c.length) + columns * _line(c.rows)
    return found


def _line(n: int) -> float:
    """Operations of a complex transform of so many numbers."""
    return 5.0 * n * math.log2(n)


def pair_operations(p: Parameters) -> int:
    """Operations of a pair within rc, besides its distance: 1/r, t and t², the tables, the pair itself."""
    terms = 2 * (p.radial_degree // 2 + 1)
    return 1 + 2 + 1 + len(p.kernel.far) * (2 * terms - 2) + p.kernel.flops


def p2g_operations(p: Parameters, v: Variants) -> int:
    """Operations of a source; a tap of the combined kernel's first three components has the slope's term too."""
    combined = p.kernel.slopes
    tap = 2 * p.kernel.spread + 2 * (4 if v.p2g == "BLOCK" else 3) * combined
    values = {"GRID": 3 * p.P**3, "BASE": p.P + 2 * p.P**2, "SOURCE": p.P + 2 * p.P**2}.get(v.p2g, 3 * p.P)
    return tap * p.P**3 + (1 + combined) * values * 2 * p.window_degree


def g2p_operations(p: Parameters, v: Variants) -> int:
    """Operations of a target."""
    values = 2 * p.P + p.P**2 if v.g2p == "BASE" else 3 * p.P
    return 2 * p.kernel.result * p.P**3 + values * 2 * p.window_degree


def pairs(p: Parameters, v: Variants, targets: CellList, sources: CellList) -> tuple[int, int]:
    """Pairs that P2P looks at, but for rounding, and an estimate of those within rc: see the module."""
    batch, bound = targets.batches(v.targets)
    step = -(-len(batch) // SAMPLE) or 1
    batch, bound = to_host(batch)[::step].astype(np.int64), to_host(bound)[::step].astype(float)
    held, cells = _reached(p.rc, bound, sources)
    size = batch[:, 1] - batch[:, 0]
    scale = targets.n / max(int(size.sum()), 1)
    sphere = 4 / 3 * math.pi * p.rc**3 / math.prod(sources.grid.widths)  # in cells
    share = np.minimum(sphere / np.maximum(cells, 1), 1.0)
    return round(scale * int(size @ held)), round(scale * float((size * held) @ share))


def _reached(rc: float, bound: Array, sources: CellList) -> tuple[Array, Array]:
    """Sources in the cells that each batch reaches, and the number of these cells, images counted again."""
    grid, begin = sources.grid, to_host(sources.begin).astype(np.int64)
    n0, n1, n2 = grid.shape
    first, left = [], np.full((len(bound), 1, 1), rc**2)
    for axis in (0, 1):
        lo, hi, h = bound[:, axis], bound[:, 3 + axis], grid.widths[axis]
        low, high = np.floor((lo - rc) / h).astype(int), np.floor((hi + rc) / h).astype(int)
        slab = low[:, None] + np.arange((high - low).max(initial=0) + 1)
        gap = np.maximum(0.0, np.maximum(slab * h - hi[:, None], lo[:, None] - (slab + 1) * h))
        slab, gap = (x[:, :, None] if axis == 0 else x[:, None] for x in (slab, gap))
        first.append(slab)
        left = left - gap**2
    reach = np.sqrt(np.maximum(left, 0.0))  # a slab beyond the last has no reach left
    lo, hi, h = bound[:, 2, None, None], bound[:, 5, None, None], grid.widths[2]
    low, end = np.floor((lo - reach) / h).astype(int), np.floor((hi + reach) / h).astype(int) + 1
    row = (first[0] % n0 * n1 + first[1] % n1) * n2

    def below(d: Array) -> Array:
        """Sources of the columns below cell d, counted from their lowest cell in the box."""
        return d // n2 * (begin[row + n2] - begin[row]) + begin[row + d % n2] - begin[row]

    held = np.where(left > 0.0, below(end) - below(low), 0).sum(axis=(1, 2))
    return held, np.where(left > 0.0, end - low, 0).sum(axis=(1, 2))
