"""Near field of an Ewald sum: the walk over the columns of cells that a batch of targets reaches, and one source.

Cells and images of the box are counted without wrapping, so any cutoff is right in any box.

The box is a brick of sides l0, l1, l2.  With SKEW it repeats by the lattice vectors (l0, t01, t02), (0, l1, t12) and
(0, 0, l2), in layers that are shifted against each other: these bricks fill space too, and the cells divide the brick.
An image i in x also moves y and z, by i t01 and i t02, and an image j in y moves z by j t12.

All loops take the geometry as two views:

    cells = n0, n1, n2, images: cells along each axis; a number above the number of box sides by which rc and the tilts
            t reach beyond the box
    lattice = l0, l1, l2, t01, t02, t12, h0, h1, h2, rc: sides of the box, tilts, sides of a cell, cutoff

Right-hand sides share the quantities that depend on the distance alone: the far parts and 1/r.
"""

from typing import List, Tuple

import pykokkos as pk

from parki.kernels.pair.laplace import NF, NS, NU, pair
from parki.kernels.scalar import rinv_or_zero

real = pk.double
TERMS = 16  # coefficients, an even number, of the polynomial of each far part in t = 2 r2 / rc2 - 1
RHS = 1  # right-hand sides
LINEAR = NS  # numbers of a source's strengths in which its field is linear, the first ones
SKEW = False  # the box repeats in skew layers
WIDTH = 3 + RHS * NS  # numbers of a source: x, y, z, strengths of the first right-hand side, of the second, …
SUMS = RHS * NU  # numbers of a target, right-hand sides in the same order


@pk.function
def constants(cells: pk.View1D[pk.int32], lattice: pk.View1D[real]) -> Tuple[int, real, real]:
    """Return the cells along z, the squared cutoff, and the factor of a squared distance in the far parts."""
    rc2: real = lattice[9] * lattice[9]
    return cells[2], rc2, 2.0 / rc2


@pk.function
def slabs(lo: real, hi: real, rc: real, h: real) -> Tuple[int, int]:
    """Return the first slab of cells within rc of [lo, hi], and the end."""
    return int(pk.floor((lo - rc) / h)), int(pk.floor((hi + rc) / h)) + 1


@pk.function
def beyond(left: real, a: int, h: real, lo: real, hi: real) -> real:
    """Return a squared reach minus the squared distance of slab a from [lo, hi]."""
    gap: real = pk.fmax(0.0, pk.fmax(real(a) * h - hi, lo - real(a + 1) * h))
    return left - gap * gap


@pk.function
def in_box(a: int, n: int) -> Tuple[int, real]:
    """Wrap slab a to one of the box's n; return this slab, and the image of the box that slab a is in."""
    image: real = pk.floor((real(a) + 0.5) / real(n))
    return a - int(image) * n, image


@pk.function
def layer(i: real, j: real, tilt_i: real, tilt_j: real) -> real:
    """Return the shift along a third axis due to the images i and j of two axes."""
    move: real = 0.0
    if SKEW:
        move = i * tilt_i + j * tilt_j
    return move


@pk.function
def reach(left: real, lo: real, hi: real, h: real, n: int, images: int) -> Tuple[int, int]:
    """Find the first and last cell of a column within a squared reach of [lo, hi], counted from the lowest image."""
    distance: real = pk.sqrt(left)
    return int(pk.floor((lo - distance) / h)) + images * n, int(pk.floor((hi + distance) / h)) + images * n


@pk.function
def all_columns(bound: pk.View2D[real], b: int, nt: int, lattice: pk.View1D[real]) -> Tuple[int, int, int]:
    """Return the first slab along x that batch b of nt targets reaches, the columns of a slab, and all columns."""
    first, end = slabs(bound[b][0], bound[b][3], lattice[9], lattice[6])
    across: int = 0
    if SKEW:  # layers are shifted along y
        across = int(pk.floor((bound[b][4] - bound[b][1] + 2.0 * lattice[9]) / lattice[7])) + 2
    else:
        first_column, column_end = slabs(bound[b][1], bound[b][4], lattice[9], lattice[7])
        across = column_end - first_column
    columns: int = 0
    if nt > 0:
        columns = (end - first) * across
    return first, across, columns


@pk.function
def nth_column(
    j: int, first: int, across: int, bound: pk.View2D[real], b: int, cells: pk.View1D[pk.int32],
    lattice: pk.View1D[real],
) -> Tuple[bool, int, int, int, real, real, real]:  # fmt: skip
    """Return column j of `all_columns`, and whether batch b reaches it.

    A column is its first cell in the box, its first and last cell within reach, counted from the lowest image along z,
    and the shift of its image, without that along z due to the image along z.
    """
    layers: int = int(pk.floor((real(j) + 0.5) / real(across)))
    a: int = first + layers
    a_box, i_box = in_box(a, cells[0])
    a_left: real = beyond(lattice[9] * lattice[9], a, lattice[6], bound[b][0], bound[b][3])
    y_move: real = layer(i_box, 0.0, lattice[3], 0.0)
    y_lo: real = bound[b][1] - y_move
    y_hi: real = bound[b][4] - y_move
    c_begin, c_end = slabs(y_lo, y_hi, lattice[9], lattice[7])
    c: int = c_begin + j - layers * across
    left: real = beyond(a_left, c, lattice[7], y_lo, y_hi)
    c_box, j_box = in_box(c, cells[1])
    z_move: real = layer(i_box, j_box, lattice[4], lattice[5])
    # columns out of reach have a negative square, and integers that would overflow
    lowest, highest = reach(
        pk.fmax(left, 0.0), bound[b][2] - z_move, bound[b][5] - z_move, lattice[8], cells[2], cells[3]
    )
    within: bool = left > 0.0 and c < c_end
    row: int = (a_box * cells[1] + c_box) * cells[2]
    return within, row, lowest, highest, i_box * lattice[0], j_box * lattice[1] + y_move, z_move


@pk.function
def run(
    cell_begin: pk.View1D[pk.int32], row: int, lowest: int, highest: int, p: int, z_move: real,
    cells: pk.View1D[pk.int32], lattice: pk.View1D[real],
) -> Tuple[int, int, real]:  # fmt: skip
    """Return begin and end of the sources of a column that are in image p along z, and the image's shift along z."""
    first: int = lowest - p * cells[2]
    if first < 0:
        first = 0
    last: int = highest - p * cells[2]
    if last > cells[2] - 1:
        last = cells[2] - 1
    return cell_begin[row + first], cell_begin[row + last + 1], real(p - cells[3]) * lattice[2] + z_move


@pk.function
def images_along_z(
    bound: pk.View2D[real], b: int, n2: int, cells: pk.View1D[pk.int32], lattice: pk.View1D[real]
) -> Tuple[int, int]:
    """Return the first image along z that batch b reaches, and the end; in a skew lattice all images."""
    first: int = 0
    end: int = 2 * cells[3] + 1
    if not SKEW:
        lowest, highest = reach(lattice[9] * lattice[9], bound[b][2], bound[b][5], lattice[8], n2, cells[3])
        first = lowest // n2
        end = highest // n2 + 1
    return first, end


@pk.function
def nth_run(
    column: int, p: int, n2: int, first_slab: int, across: int, bound: pk.View2D[real], b: int,
    cell_begin: pk.View1D[pk.int32], cells: pk.View1D[pk.int32], lattice: pk.View1D[real],
) -> Tuple[int, int, real, real, real]:  # fmt: skip
    """Return begin and end of the sources of a column in image p along z, and their shift; none out of reach."""
    column_in_reach, row, lowest, highest, x_shift, y_shift, z_move = nth_column(
        column, first_slab, across, bound, b, cells, lattice
    )
    e_begin: int = 0
    e_end: int = 0
    z_shift: real = 0.0
    image_in_reach: bool = column_in_reach and highest >= p * n2 and lowest < (p + 1) * n2
    if image_in_reach:
        e_begin, e_end, z_shift = run(cell_begin, row, lowest, highest, p, z_move, cells, lattice)
    return e_begin, e_end, x_shift, y_shift, z_shift


@pk.function
def far_parts(tau: real, coef: pk.View1D[real], far: List[real]) -> None:
    """Set far[f] = polynomial f at tau; even and odd powers are two chains of half the length."""
    tau2: real = tau * tau
    for f in range(NF):
        even: real = coef[f * TERMS]
        odd: real = coef[f * TERMS + 1]
        for n in range(1, TERMS // 2):
            even = even * tau2 + coef[f * TERMS + 2 * n]
            odd = odd * tau2 + coef[f * TERMS + 2 * n + 1]
        far[f] = odd + even * tau


@pk.function
def root_and_far_parts(r2: real, coef: pk.View1D[real], scale: real, tiny: real, far: List[real]) -> real:
    """Set the far parts of a pair within rc, scale = 2 / rc2; return 1/r, or 0 for a coincident pair."""
    w: real = rinv_or_zero(r2, tiny)
    far_parts(r2 * scale - 1.0, coef, far)
    return w


@pk.function
def add_pair(
    r: int, dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], acc: List[real]
) -> None:
    """Add the field of strengths s to the sums of right-hand side r."""
    u: List[real] = [0.0] * NU
    for k in range(NU):
        u[k] = acc[r * NU + k]
    pair(dx, dy, dz, r2, w, far, s, u)
    for k in range(NU):
        acc[r * NU + k] = u[k]


@pk.function
def separation(x: real, y: real, z: real, src: pk.View2D[real], e: int) -> Tuple[real, real, real, real]:
    """Return the vector from source e to (x, y, z), and its square."""
    dx: real = x - src[e][0]
    dy: real = y - src[e][1]
    dz: real = z - src[e][2]
    return dx, dy, dz, dx * dx + dy * dy + dz * dz


@pk.function
def strengths(src: pk.View2D[real], e: int, r: int, s: List[real]) -> None:
    """Set s to the strengths of source e in right-hand side r."""
    for k in range(NS):
        s[k] = src[e][3 + r * NS + k]


@pk.function
def add_fields(
    dx: real, dy: real, dz: real, r2: real, src: pk.View2D[real], e: int, coef: pk.View1D[real], scale: real,
    tiny: real, acc: List[real],
) -> None:  # fmt: skip
    """Add to acc the fields of all right-hand sides of source e, at (dx, dy, dz) from it; scale = 2 / rc2."""
    far: List[real] = [0.0] * NF
    w: real = root_and_far_parts(r2, coef, scale, tiny, far)
    for r in range(RHS):
        s: List[real] = [0.0] * NS
        strengths(src, e, r, s)
        add_pair(r, dx, dy, dz, r2, w, far, s, acc)


@pk.function
def add_source(
    x: real, y: real, z: real, src: pk.View2D[real], e: int, coef: pk.View1D[real], rc2: real, scale: real, tiny: real,
    acc: List[real],
) -> None:  # fmt: skip
    """Add source e to acc if it is closer than rc; scale = 2 / rc2."""
    dx, dy, dz, r2 = separation(x, y, z, src, e)
    in_reach: bool = r2 < rc2
    if in_reach:
        add_fields(dx, dy, dz, r2, src, e, coef, scale, tiny, acc)


@pk.function
def add_listed(
    x: real, y: real, z: real, src: pk.View2D[real], e: int, coef: pk.View1D[real], rc2: real, scale: real, tiny: real,
    acc: List[real],
) -> None:  # fmt: skip
    """Add source e of a list to acc, without strength if it is not closer than rc; scale = 2 / rc2."""
    dx, dy, dz, r2 = separation(x, y, z, src, e)
    if r2 > rc2:
        r2 = rc2  # polynomials of far parts may overflow beyond it
    far: List[real] = [0.0] * NF
    w: real = root_and_far_parts(r2, coef, scale, tiny, far)
    for r in range(RHS):
        s: List[real] = [0.0] * NS
        strengths(src, e, r, s)
        for k in range(LINEAR):
            if r2 >= rc2:
                s[k] = 0.0
        add_pair(r, dx, dy, dz, r2, w, far, s, acc)


@pk.function
def add_staged(
    x: real, y: real, z: real, tile: pk.ScratchView1D[real], j: int, coef: pk.View1D[real], rc2: real, scale: real,
    tiny: real, acc: List[real],
) -> None:  # fmt: skip
    """Add source j of a tile in scratch to acc, like add_source."""
    at: int = j * WIDTH
    dx: real = x - tile[at]
    dy: real = y - tile[at + 1]
    dz: real = z - tile[at + 2]
    r2: real = dx * dx + dy * dy + dz * dz
    in_reach: bool = r2 < rc2
    if in_reach:
        far: List[real] = [0.0] * NF
        w: real = root_and_far_parts(r2, coef, scale, tiny, far)
        for r in range(RHS):
            s: List[real] = [0.0] * NS
            for k in range(NS):
                s[k] = tile[at + 3 + r * NS + k]
            add_pair(r, dx, dy, dz, r2, w, far, s, acc)
