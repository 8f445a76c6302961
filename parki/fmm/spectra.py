"""Transforms of kernels for translations between octets, and their places in a table.

A translation takes equivalent sources on a grid of p³ points around a box to check values on an equal grid around
another box, `o` box widths away: a convolution with K(2 o + g (i - j)) in half sides of a box, which transforms of
2 p - 1 values per direction make exact.  An octet is the eight boxes below one box; its octant number has x as the
highest bit.  Direction d of 26 is the d-th of (dx, dy, dz) in {-1, 0, 1}³ without (0, 0, 0), x slowest: the box above
the sources minus that above the targets, in its own widths.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from parki.fmm.surfaces import INNER
from parki.trees import octlists
from parki.trees.octree import OCTANTS

REACH = 3  # box widths of the offsets per direction: -3 to 3
COLUMNS = 344  # 7³ offsets and one for alignment
AT_ONCE = 400_000  # kernel blocks computed in one call
DIRECTIONS = np.delete(octlists.DIRECTIONS, octlists.CENTRE, axis=0)


def plane_sizes(p: int) -> NDArray[np.int64]:
    """Count the frequencies of each plane kz = 0 … p - 1: p (2 p - 1) in plane 0, (2 p - 1)² in the others."""
    f = 2 * p - 1
    return np.array([p * f] + [f * f] * (p - 1))


def offsets() -> NDArray[np.int64]:
    """Return the offsets of a table's columns (343, 3), target box minus source box in box widths, x slowest."""
    side = 2 * REACH + 1
    return np.indices((side, side, side)).reshape(3, -1).T - REACH


def places() -> NDArray[np.int32]:
    """Return the columns of a table, by entry 64 direction + 8 source octant + target octant."""
    stride = np.array([49, 7, 1])
    o = OCTANTS[None, None, :] - OCTANTS[None, :, None] - 2 * DIRECTIONS[:, None, None] + REACH
    return (o @ stride).ravel().astype(np.int32)


def table(values: Callable[[NDArray[np.float64]], NDArray[np.float64]], p: int) -> NDArray[np.float64]:
    """Return the transforms of a kernel for all offsets of boxes that do not touch.

    Parameters
    ----------
    values : callable
        From differences target - source (n, 3), in half sides of a box, to kernel blocks (n, targets, sources).
    p : int
        Points of the surface grid per direction, at least 2.

    Returns
    -------
    array (frequencies, targets · sources, 2 · COLUMNS)
        Real parts, then imaginary parts, of each offset, 0 for touching boxes.  Frequencies in the order of
        the workunits of ``kernels/m2l.py``, weighted for the ones that they leave out, with the factor of the
        inverse transform.
    """
    f, n = 2 * p - 1, np.arange(2 * p - 1)
    step = 2 * INNER / (p - 1) * np.where(n < p, n, n - f)
    wave = np.exp(-2j * np.pi / f * (np.outer(n, n) % f))
    sizes, all_offsets = plane_sizes(p), offsets()
    far = np.flatnonzero(np.abs(all_offsets).max(axis=1) > 1)
    out = np.zeros(0)
    for part in np.array_split(far, max(1, -(-len(far) * f**3 // AT_ONCE))):
        r = np.empty((f, f, f, len(part), 3))
        for axis, shape in enumerate(((1, 1, f, 1), (1, f, 1, 1), (f, 1, 1, 1))):
            r[..., axis] = 2.0 * all_offsets[part, axis] + step.reshape(shape)
        blocks = values(r.reshape(-1, 3))
        kt, ks = blocks.shape[1:]
        if not out.size:
            out = np.zeros((sizes.sum(), kt * ks, 2 * COLUMNS))
        k = np.ascontiguousarray(np.moveaxis(blocks.reshape(f, f, f, len(part), kt * ks), 4, 3)).reshape(f, -1)
        k = (wave[:p].real @ k + 1j * (wave[:p].imag @ k)).reshape(p, f, -1)  # z
        k = (wave @ k).reshape(p, f, f, -1)  # y
        k = (wave @ k).reshape(p, f * f, kt * ks, len(part))  # x
        begin = 0
        for plane, size in enumerate(sizes):
            rows = out[begin : begin + size]
            rows[:, :, part], rows[:, :, COLUMNS + part] = k[plane, :size].real, k[plane, :size].imag
            begin += size
    out *= 2.0 / f**3  # each frequency also stands for its conjugate …
    out[:f] *= 0.5  # … except in plane 0, where both are stored
    return out


def waves(p: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return cosine and sine of 2 π k x / (2 p - 1) as (k, x), k in 0 … p - 1; x goes on to p where p is odd.

    So rows begin at even elements, and GPUs read two at once.
    """
    angle = 2 * np.pi / (2 * p - 1) * (np.outer(np.arange(p), np.arange(p + p % 2)) % (2 * p - 1))
    return np.cos(angle), np.sin(angle)


def columns(p: int) -> NDArray[np.int32]:
    """Return the first surface point of column (x, y), at x p + y; points are in the order of the grid, z fastest."""
    x, y = np.divmod(np.arange(p * p), p)
    rim = (x == 0) | (x == p - 1) | (y == 0) | (y == p - 1)
    count = np.where(rim, p, 2)
    return (np.cumsum(count) - count).astype(np.int32)
