"""Small kernels between the steps of a sum: fill, copy, add, scale, rotate and permute arrays."""

import pykokkos as pk

real = pk.double
other = real  # type of what is copied or added
wide = real  # type of an addition: the wider one of both


@pk.workunit
def fill(i: int, out: pk.View1D[real], value: real):
    """Set out[i] = value."""
    out[i] = value


@pk.workunit
def copy(i: int, a: pk.View1D[other], out: pk.View1D[real]):
    """Set out[i] = a[i], converted to the type of `out`."""
    out[i] = real(a[i])


@pk.workunit
def add(i: int, a: pk.View1D[other], out: pk.View1D[real]):
    """Add a[i] to out[i], rounded once."""
    out[i] = real(wide(out[i]) + wide(a[i]))


@pk.workunit
def load(i: int, a: pk.View2D[real], factor: pk.View2D[real], out: pk.View2D[real], rows: int):
    """Set out[k][i] = a[k][i] times both factors of row k."""
    for k in range(rows):
        out[k][i] = a[k][i] * factor[k][0] * factor[k][1]


@pk.workunit
def load_vectors(i: int, a: pk.View2D[real], factor: pk.View2D[real], matrix: pk.View2D[real], out: pk.View2D[real],
                 vectors: int):  # fmt: skip
    """Scale vectors by both factors of their rows, and turn them to the axes that are the rows of the matrix."""
    for v in range(vectors):
        k: int = 3 * v
        x: real = a[k][i] * factor[k][0] * factor[k][1]
        y: real = a[k + 1][i] * factor[k + 1][0] * factor[k + 1][1]
        z: real = a[k + 2][i] * factor[k + 2][0] * factor[k + 2][1]
        for d in range(3):
            out[k + d][i] = matrix[d][0] * x + matrix[d][1] * y + matrix[d][2] * z


@pk.workunit
def turn_vectors(i: int, u: pk.View2D[real], matrix: pk.View2D[real]):
    """Turn the vector u[0 … 2][i] to the axes that are the rows of the matrix."""
    x: real = u[0][i]
    y: real = u[1][i]
    z: real = u[2][i]
    for d in range(3):
        u[d][i] = matrix[d][0] * x + matrix[d][1] * y + matrix[d][2] * z


@pk.workunit
def along_sides(i: int, v: pk.View2D[real], out: pk.View2D[real], t01: real, t02: real, t12: real):
    """Convert a vector to coordinates along a cell's sides (1, t01, t02), (0, 1, t12), (0, 0, 1) by its lengths."""
    along: real = v[1][i] - v[0][i] * t01
    out[0][i] = v[0][i]
    out[1][i] = along
    out[2][i] = v[2][i] - v[0][i] * t02 - along * t12


@pk.workunit
def gather(j: int, a: pk.View2D[real], order: pk.View1D[pk.int32], out: pk.View2D[real], rows: int):
    """Set out[k][j] = a[k][order[j]]."""
    for k in range(rows):
        out[k][j] = a[k][order[j]]


@pk.workunit
def gather_columns(j: int, a: pk.View2D[real], order: pk.View1D[pk.int32], out: pk.View2D[real], first: int,
                   rows: int):  # fmt: skip
    """Set out[j][first + k] = a[k][order[j]]: numbers of a source, which follow its coordinates."""
    for k in range(rows):
        out[j][first + k] = a[k][order[j]]


@pk.workunit
def scatter(j: int, a: pk.View2D[real], order: pk.View1D[pk.int32], out: pk.View2D[real], rows: int):
    """Set out[k][order[j]] = a[k][j]."""
    for k in range(rows):
        out[k][order[j]] = a[k][j]


@pk.workunit
def scatter_both(j: int, a: pk.View2D[real], b: pk.View2D[real], order: pk.View1D[pk.int32], out: pk.View2D[real],
                 rows: int):  # fmt: skip
    """Set out[k][order[j]] = a[k][j] + b[k][j]."""
    for k in range(rows):
        out[k][order[j]] = a[k][j] + b[k][j]


@pk.workunit
def scatter_columns(j: int, a: pk.View2D[real], order: pk.View1D[pk.int32], out: pk.View2D[real], rows: int):
    """Set out[k][order[j]] = a[j][k]."""
    for k in range(rows):
        out[k][order[j]] = a[j][k]
