"""Cell lists by a stable counting sort in chunks: count, scan, place.  The result does not depend on threads."""

import pykokkos as pk

real = pk.double
far = real  # type of the far part
NB = 9  # numbers per source that are strengths
FAR_SORTED = True  # the far part is in the order of the cells, else in the caller's order


@pk.workunit
def cell_index(i: int, x: pk.View2D[real], cell: pk.View1D[pk.int32], n0: int, n1: int, n2: int, s0: real, s1: real,
               s2: real):  # fmt: skip
    """Set cell[i] of a point in the box, last axis fastest; s = cells per length.

    A point that rounding puts beyond the box goes to the last cell.
    """
    a: int = int(x[0][i] * s0)
    b: int = int(x[1][i] * s1)
    c: int = int(x[2][i] * s2)
    if a >= n0:
        a = n0 - 1
    if b >= n1:
        b = n1 - 1
    if c >= n2:
        c = n2 - 1
    cell[i] = (a * n1 + b) * n2 + c


@pk.workunit
def chunk_count(team: pk.TeamMember, cell: pk.View1D[pk.int32], count: pk.View2D[pk.int32], n: int, chunk: int):
    """Count the points of chunk k in cell c: count[k][c], which starts at zero."""
    k: int = team.league_rank()
    first: int = k * chunk
    end: int = first + chunk
    if end > n:
        end = n

    def tally():
        for i in range(first, end):
            count[k][cell[i]] += 1

    pk.single(pk.PerTeam(team), tally)


@pk.workunit
def count_scan(c: int, acc: pk.Acc[pk.int32], last: bool, count: pk.View2D[pk.int32], begin: pk.View1D[pk.int32],
               chunks: int):  # fmt: skip
    """Set begin[c] = points in cells before c; return the number of all points."""
    m: int = 0
    for k in range(chunks):
        m += count[k][c]
    if last:
        begin[c] = acc
    acc += m


@pk.workunit
def chunk_begin(c: int, count: pk.View2D[pk.int32], begin: pk.View1D[pk.int32], chunks: int):
    """Replace count[k][c] by the place of the first point of chunk k in cell c."""
    at: int = begin[c]
    for k in range(chunks):
        m: int = count[k][c]
        count[k][c] = at
        at += m


@pk.workunit
def chunk_place(team: pk.TeamMember, cell: pk.View1D[pk.int32], at: pk.View2D[pk.int32], order: pk.View1D[pk.int32],
                n: int, chunk: int):  # fmt: skip
    """Set order[place] = point for the points of one chunk; at[k][c] moves on."""
    k: int = team.league_rank()
    first: int = k * chunk
    end: int = first + chunk
    if end > n:
        end = n

    def place():
        for i in range(first, end):
            p: int = at[k][cell[i]]
            order[p] = i
            at[k][cell[i]] = p + 1

    pk.single(pk.PerTeam(team), place)


@pk.workunit
def gather_points(j: int, x: pk.View2D[real], order: pk.View1D[pk.int32], out: pk.View2D[real]):
    """Set out[:, j] = x[:, order[j]]."""
    i: int = order[j]
    out[0][j] = x[0][i]
    out[1][j] = x[1][i]
    out[2][j] = x[2][i]


@pk.workunit
def gather_sources(j: int, x: pk.View2D[real], strength: pk.View2D[real], order: pk.View1D[pk.int32],
                   out: pk.View2D[real]):  # fmt: skip
    """Set out[j] = (x, y, z, strengths) of source order[j]; x is sorted already."""
    i: int = order[j]
    out[j][0] = x[0][j]
    out[j][1] = x[1][j]
    out[j][2] = x[2][j]
    for k in range(NB):
        out[j][3 + k] = strength[k][i]


@pk.workunit
def batch_bounds(b: int, x: pk.View2D[real], batch: pk.View2D[pk.int32], bound: pk.View2D[real]):
    """Set bound[b] = lowest x, y, z and highest x, y, z of the points batch[b][0] … batch[b][1] - 1."""
    first: int = batch[b][0]
    end: int = batch[b][1]
    for d in range(3):
        lo: real = x[d][first]
        hi: real = lo
        for i in range(first + 1, end):
            v: real = x[d][i]
            lo = pk.fmin(lo, v)
            hi = pk.fmax(hi, v)
        bound[b][d] = lo
        bound[b][3 + d] = hi


@pk.workunit
def scatter_sum(j: int, a: pk.View2D[real], b: pk.View2D[far], order: pk.View1D[pk.int32], out: pk.View2D[real],
                constant: pk.View1D[real], factor: pk.View2D[real], components: int):  # fmt: skip
    """Sum the near part a, the far part b and a constant, in the caller's order and units.

    out[c][order[j]] = (a[c][j] + b[c][j] + constant[c]) factor[c][0] factor[c][1].  Without FAR_SORTED b is in the
    caller's order already.
    """
    i: int = order[j]
    k: int = i
    if FAR_SORTED:
        k = j
    for c in range(components):
        out[c][i] = (a[c][j] + real(b[c][k]) + constant[c]) * factor[c][0] * factor[c][1]
