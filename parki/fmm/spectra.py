"""Transforms of kernels for translations between octets, and their places in a table.

A translation takes equivalent sources on a grid of p³ points around a box to check values on an equal grid around
another box, `o` box widths away: a convolution with K(2 o + g (i - j)) in half sides of a box, which transforms of
2 p - 1 values per direction make exact.  An octet is the eight boxes below one box; its octant number has x as the
highest bit.  Direction d of 26 is the d-th of (dx, dy, dz) in {-1, 0, 1}³ without (0, 0, 0), x slowest: the box above
the sources minus that above the targets, in its own widths.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki.fmm import symmetry
from parki.fmm.surfaces import INNER
from parki.trees import octlists
from parki.trees.octree import OCTANTS

REACH, ALONG = 3, 7  # box widths of the offsets per direction, -3 to 3, and their number
COLUMNS = 344  # 7³ offsets and one for alignment
SINGLE_RANGE = 1e-20, 1e20  # of the largest transform: its products with charges up to 1 are far from 1e±38
SUBNORMAL = 1e-30  # in single precision: products of smaller transforms may be subnormal, which is slow
DIRECTIONS = np.delete(octlists.DIRECTIONS, octlists.CENTRE, axis=0)
Values = Callable[[NDArray[np.float64]], NDArray[np.float64]]  # kernel blocks of differences target - source


def plane_sizes(p: int) -> NDArray[np.int64]:
    """Count the frequencies of each plane kz = 0 … p - 1: p (2 p - 1) in plane 0, (2 p - 1)² in the others."""
    f = 2 * p - 1
    return np.array([p * f] + [f * f] * (p - 1))


def offsets() -> NDArray[np.int64]:
    """Return the offsets of a table's columns (343, 3), target box minus source box in box widths, x slowest."""
    return np.indices((ALONG, ALONG, ALONG)).reshape(3, -1).T - REACH


def places() -> NDArray[np.int32]:
    """Return the columns of a table, by entry 64 direction + 8 source octant + target octant."""
    stride = np.array([49, 7, 1])
    o = OCTANTS[None, None, :] - OCTANTS[None, :, None] - 2 * DIRECTIONS[:, None, None] + REACH
    return (o @ stride).ravel().astype(np.int32)


def table(values: Values, p: int, real: str = "float64") -> NDArray[Any]:
    """Return the transforms of a kernel for all offsets of boxes that do not touch.

    Parameters
    ----------
    values : callable
        From differences target - source (n, 3), in half sides of a box, to kernel blocks (n, targets, sources).
    p : int
        Points of the surface grid per direction, at least 2.
    real : str
        Type of the entries.

    Returns
    -------
    array (frequencies, targets · sources, 2 · COLUMNS)
        Real parts, then imaginary parts, of each offset, 0 for touching boxes.  Frequencies in the order of
        the workunits of ``kernels/m2l.py``, weighted for the ones that they leave out, with the factor of the
        inverse transform.  Empty if ``"float32"`` has too short a range.
    """
    masks, largest, (low, high) = symmetry.parities(values), 0.0, SINGLE_RANGE
    blocks = math.prod(values(np.ones((1, 3))).shape[1:])
    rows, first = int(plane_sizes(p).sum()), p * (2 * p - 1)  # rows of all planes, and of plane 0
    # With reflections, offsets in one octant stand for all.
    side = np.arange(-REACH if masks is None else 0, REACH + 1)
    columns = np.zeros((rows, blocks, 2 * COLUMNS), real)
    cubes = columns.reshape(rows, blocks, 2, COLUMNS)[..., : ALONG**3].reshape(rows, blocks, 2, *[ALONG] * 3)
    for x in side:
        slab = _slab(values, p, int(x), side)
        largest = max(largest, float(np.abs(slab).max()))
        if real == "float32":
            if not largest < high:
                break
            slab[np.abs(slab) < SUBNORMAL] = 0.0
        for member in range(1 if masks is None else 4 if x == 0 else 8):
            place = [REACH - x if member & 4 else REACH + x]
            place += [slice(REACH, None, -1) if member & bit else slice(REACH + side[0], None) for bit in (2, 1)]
            image = _reflected(slab, member, masks)
            cubes[:first, :, :, *place] = image[0, :p].reshape(first, blocks, 2, len(side), -1)
            cubes[first:, :, :, *place] = image[1:].reshape(rows - first, blocks, 2, len(side), -1)
    return columns if real == "float64" or low < largest < high else np.empty(0, real)


def _slab(values: Values, p: int, x: int, side: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return transforms for offsets (x, y, z) with y and z in `side`, as (kz, ky, kx, blocks, 2, y, z), kz < p."""
    f, n = 2 * p - 1, np.arange(2 * p - 1)
    step = 2 * INNER / (p - 1) * np.where(n < p, n, n - f)
    wave = np.exp(-2j * np.pi / f * (np.outer(n, n) % f))
    y, z = (a.ravel() for a in np.meshgrid(side, side, indexing="ij"))
    far = np.flatnonzero(np.max(np.abs([np.full_like(y, x), y, z]), axis=0) > 1)
    r = np.empty((f, f, f, len(far), 3))
    shapes = (1, 1, f, 1), (1, f, 1, 1), (f, 1, 1, 1)
    for axis, (offset, shape) in enumerate(zip((x, y[far], z[far]), shapes, strict=True)):
        r[..., axis] = 2.0 * offset + step.reshape(shape)
    k = values(r.reshape(-1, 3)).reshape(f, f, f, len(far), -1)
    blocks = k.shape[-1]
    k = np.ascontiguousarray(np.moveaxis(k, 4, 3)).reshape(f, -1)
    k = (wave[:p].real @ k + 1j * (wave[:p].imag @ k)).reshape(p, f, -1)  # z
    k = (wave @ k).reshape(p, f, f, -1)  # y
    k = (wave @ k).reshape(p, f, f, blocks, len(far))  # x
    k *= 2.0 / f**3  # each frequency also stands for its conjugate …
    k[0, 0] *= 0.5  # … except in row 0 of plane 0, where both are stored
    out = np.zeros((p, f, f, blocks, 2, len(y)))
    out[..., 0, far], out[..., 1, far] = k.real, k.imag
    return out.reshape(p, f, f, blocks, 2, len(side), -1)


def _reflected(slab: NDArray[np.float64], member: int, masks: symmetry.Masks | None) -> NDArray[np.float64]:
    """Return transforms for offsets reflected by a member of the group: see `symmetry`."""
    if not member or masks is None:
        return slab
    reversed_z = member & 1  # frequencies -kz are not stored, but are conjugates of the others
    kx, ky = (bool(member & bit) != reversed_z for bit in (4, 2))
    opposite = -np.arange(slab.shape[1])  # frequency -k
    image = slab[:, opposite] if ky else slab
    image = image[:, :, opposite] if kx else image
    sign = symmetry.SIGNS[member, (np.array(masks[0])[:, None] ^ np.array(masks[1])).reshape(-1, 1)]
    sign = sign * (1.0, -1.0 if reversed_z else 1.0)
    return image * sign[:, :, None, None]


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
