"""The arithmetic that all loops of the near field share: which cells a batch of targets reaches, and one source.

Cells and images of the box are counted without wrapping, so any cutoff is right in any box.
"""

from typing import List, Tuple

import pykokkos as pk

from parki.kernels.pair.laplace import NF, NS, NU, pair
from parki.kernels.scalar import rinv_or_zero

real = pk.double
TERMS = 16  # coefficients, an even number, of each polynomial in t = 2 r2 / rc2 - 1 that holds a far part
WIDTH = 3 + NS  # numbers of a source: x, y, z, strengths
SUMS = NU  # numbers of a target


@pk.function
def slabs(bound: pk.View2D[real], b: int, d: int, rc: real, h: real) -> Tuple[real, real, int, int]:
    """Batch b along axis d: its lowest and highest coordinate, the first slab of cells within rc, and their end."""
    lo: real = bound[b][d]
    hi: real = bound[b][3 + d]
    return lo, hi, int(pk.floor((lo - rc) / h)), int(pk.floor((hi + rc) / h)) + 1


@pk.function
def beyond(left: real, a: int, h: real, lo: real, hi: real) -> real:
    """What slab a's distance from [lo, hi] leaves of a squared reach."""
    gap: real = pk.fmax(0.0, pk.fmax(real(a) * h - hi, lo - real(a + 1) * h))
    return left - gap * gap


@pk.function
def in_box(a: int, n: int, side: real, images: int) -> Tuple[int, real]:
    """Slab a as one of the box's n, and how far its image of the box is moved."""
    image: int = (a + images * n) // n - images
    return a - image * n, real(image) * side


@pk.function
def reach(left: real, lo: real, hi: real, h: real, n: int, images: int) -> Tuple[int, int]:
    """The first and the last cell of a column within a squared reach of [lo, hi], from the lowest image on."""
    distance: real = pk.sqrt(left)
    return int(pk.floor((lo - distance) / h)) + images * n, int(pk.floor((hi + distance) / h)) + images * n


@pk.function
def run(cell_begin: pk.View1D[pk.int32], row: int, first: int, last: int, n: int) -> Tuple[int, int]:
    """The sources of the cells first to last of a column, where they are inside the box: begin and end."""
    lowest: int = first
    if lowest < 0:
        lowest = 0
    highest: int = last
    if highest > n - 1:
        highest = n - 1
    return cell_begin[row + lowest], cell_begin[row + highest + 1]


@pk.function
def far_parts(tau: real, coef: pk.View1D[real], far: List[real]) -> None:
    """far[f] = polynomial f at tau; even and odd powers apart, two chains of half the length."""
    tau2: real = tau * tau
    for f in range(NF):
        even: real = coef[f * TERMS]
        odd: real = coef[f * TERMS + 1]
        for n in range(1, TERMS // 2):
            even = even * tau2 + coef[f * TERMS + 2 * n]
            odd = odd * tau2 + coef[f * TERMS + 2 * n + 1]
        far[f] = odd + even * tau


@pk.function
def add_source(
    x: real, y: real, z: real, src: pk.View2D[real], e: int, coef: pk.View1D[real], rc2: real, scale: real, tiny: real,
    acc: List[real],
) -> None:  # fmt: skip
    """Add source e to acc if it is closer than rc; scale = 2 / rc2."""
    dx: real = x - src[e][0]
    dy: real = y - src[e][1]
    dz: real = z - src[e][2]
    r2: real = dx * dx + dy * dy + dz * dz
    if r2 < rc2:
        w: real = rinv_or_zero(r2, tiny)
        far: List[real] = [0.0] * NF
        far_parts(r2 * scale - 1.0, coef, far)
        s: List[real] = [0.0] * NS
        for k in range(NS):
            s[k] = src[e][3 + k]
        pair(dx, dy, dz, r2, w, far, s, acc)


@pk.function
def add_staged(
    x: real, y: real, z: real, tile: pk.ScratchView1D[real], j: int, coef: pk.View1D[real], rc2: real, scale: real,
    tiny: real, acc: List[real],
) -> None:  # fmt: skip
    """As add_source, for source j of a tile in scratch."""
    at: int = j * WIDTH
    dx: real = x - tile[at]
    dy: real = y - tile[at + 1]
    dz: real = z - tile[at + 2]
    r2: real = dx * dx + dy * dy + dz * dz
    if r2 < rc2:
        w: real = rinv_or_zero(r2, tiny)
        far: List[real] = [0.0] * NF
        far_parts(r2 * scale - 1.0, coef, far)
        s: List[real] = [0.0] * NS
        for k in range(NS):
            s[k] = tile[at + 3 + k]
        pair(dx, dy, dz, r2, w, far, s, acc)
