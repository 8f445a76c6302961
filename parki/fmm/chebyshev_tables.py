"""Translations between Chebyshev points of boxes: symmetry, compression, and their tables.

Offsets are target box − source box in sides.  A box is seen in the frame in which its octant is 0: a reflection of
the axes on which it is the upper child.  There all targets have the same 189 offsets, and so have all sources;
a pair sees its offset with the same components on axes where that is even and opposite ones where it is odd.  So
one place j of a list is one offset for both: a source makes for place j the values that a target takes there.

Sources: W. Fong and E. Darve, J. Comput. Phys. 228 (2009) 8712 (interpolation, weighted compression); E. Agullo et al.,
"Task-based FMM for heterogeneous architectures", Inria RR-8513 (2014), section 3.1.2 (16 operators); the common frame
is this library's own.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from parki.fmm import representations
from parki.fmm.symmetry import SCALES
from parki.pairs import Pair
from parki.proxies import MOST_POINTS

Floats = NDArray[np.float64]
Offset = tuple[int, int, int]
EXACT = 1e-10  # relative differences up to which a kernel has a symmetry
ROUNDED = 1 + 2.0**-48  # factor of a distance that stands for sixteen roundings
OVER = 8  # random vectors in addition to the rank that is looked for


# Points ---------------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=1)
def points() -> tuple[Floats, Floats]:
    """Return Chebyshev points of the first kind and weights of their polynomials, laid out as `proxies.tables`.

    Returns
    -------
    nodes : array (MOST_POINTS, MOST_POINTS)
        cos((2k + 1)π/2m), k = 0 … m − 1, in row m − 1.
    weights : array (MOST_POINTS, MOST_POINTS)
        1/∏_{j≠k}(x_k − x_j).
    """
    nodes, weights = np.zeros((MOST_POINTS, MOST_POINTS)), np.zeros((MOST_POINTS, MOST_POINTS))
    for m in range(1, MOST_POINTS + 1):
        k = np.arange(m)
        nodes[m - 1, :m] = np.sin(0.5 * np.pi * (m - 1 - 2 * k) / m)  # cos, but exactly odd about the middle
        weights[m - 1, :m] = (-1.0) ** k * np.sin((2 * k + 1) * np.pi / (2 * m)) * 2.0 ** (m - 1) / m
    return nodes, weights


def grid(order: int) -> Floats:
    """Return all points (order³, 3) of the box [−1, 1]³, the last axis fastest."""
    x = points()[0][order - 1, :order]
    return np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)


def offsets() -> list[Offset]:
    """Return the 189 offsets of a target with octant 0, class by class, nearest first."""
    cube = itertools.product(range(-3, 3), repeat=3)
    return sorted((d for d in cube if max(map(abs, d)) > 1), key=lambda d: (canonical(d), d))


def seen_from_source(d: Offset) -> Offset:
    """Return the offset in the source's frame for the offset `d` in the target's."""
    return tuple(-a if a % 2 else a for a in d)


def canonical(d: Offset) -> Offset:
    """Return the offset with components a ≥ b ≥ c ≥ 0 that a symmetry of the cube takes to `d`."""
    return tuple(sorted(map(abs, d), reverse=True))


# Symmetry -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Turn:
    """A symmetry Q of the cube: (Q v)[a] = sign[a] v[axis[a]]."""

    axis: Offset
    sign: Offset

    @staticmethod
    def to(d: Offset) -> "Turn":
        """Return the symmetry that takes `canonical(d)` to `d`."""
        order = np.argsort(-np.abs(d), kind="stable")
        return Turn(tuple(int(a) for a in np.argsort(order)), tuple(-1 if a < 0 else 1 for a in d))

    @staticmethod
    def reflection(octant: int) -> "Turn":
        """Return the reflection of the axes whose bits are set, x the highest."""
        return Turn((0, 1, 2), tuple(1 - 2 * (octant >> bit & 1) for bit in (2, 1, 0)))

    @property
    def matrix(self) -> Floats:
        """Return Q (3, 3)."""
        q = np.zeros((3, 3))
        q[np.arange(3), self.axis] = self.sign
        return q

    def of_points(self, order: int) -> NDArray[np.intp]:
        """Return the place of Q⁻¹ x for each point x of `grid`."""
        k = np.stack(np.meshgrid(*[np.arange(order)] * 3, indexing="ij")).reshape(3, -1)
        image = np.empty_like(k)
        for a in range(3):
            image[self.axis[a]] = k[a] if self.sign[a] > 0 else order - 1 - k[a]
        return (image[0] * order + image[1]) * order + image[2]


PARTS = {9: "tensor", 6: "symmetric tensor", 3: "vector", 1: "scalar"}
_PAIRS = [(i, j) for i in range(3) for j in range(i, 3)]  # entries of a symmetric tensor


@dataclass(frozen=True)
class Components:
    """Components under turns: sizes of their parts, see `PARTS`, and whether each changes sign in reflections."""

    parts: tuple[int, ...]
    axial: tuple[bool, ...]

    def matrix(self, q: Floats) -> Floats:
        """Return the signed permutation (n, n) of the components for Q."""
        out = np.zeros((sum(self.parts), sum(self.parts)))
        begin, determinant = 0, np.linalg.det(q).round()
        for n, is_axial in zip(self.parts, self.axial, strict=True):
            out[begin : begin + n, begin : begin + n] = _turned(n, q) * (determinant if is_axial else 1.0)
            begin += n
        return out


def _turned(n: int, q: Floats) -> Floats:
    if n == 1:
        return np.ones((1, 1))
    if n == 3:
        return q
    if n == 9:
        return np.kron(q, q)
    out = np.zeros((6, 6))
    for row, (i, j) in enumerate(_PAIRS):
        k, m = np.flatnonzero(q[i])[0], np.flatnonzero(q[j])[0]
        out[row, _PAIRS.index((min(k, m), max(k, m)))] = q[i, k] * q[j, m]
    return out


def _components(n: int, mirrored: bool) -> Iterator[Components]:
    """Return n components of all kinds: of polar parts, if `mirrored` of axial ones, too, and of vectors of both."""
    for parts in _layouts(n):
        yield Components(parts, (False,) * len(parts))
        if mirrored:
            yield Components(parts, (True,) * len(parts))
    if n % 3 == 0 and n > 3:
        for flags in itertools.product((False, True), repeat=n // 3):
            if mirrored or not flags[0]:
                yield Components((3,) * (n // 3), flags)


def _layouts(n: int) -> Iterator[tuple[int, ...]]:
    """Return all ways to make n components of parts, large parts first."""
    if n == 0:
        yield ()
    for part in PARTS:
        if part <= n:
            yield from ((part, *rest) for rest in _layouts(n - part))


@lru_cache(maxsize=256)
def symmetry(pair: Pair) -> tuple[Components, Components] | None:
    """Return the turns of result and charges under symmetries of the cube; None if K(Qr) ≠ D K(r) D'ᵀ for all tried.

    The test uses the kernel's own values at a few points, which may differ as much as those of distances rounded
    otherwise: kernels that oscillate do.
    """
    if max(pair.result, pair.dens) > 12:
        return None
    rng = np.random.default_rng(3)
    r = rng.uniform(0.2, 1.0, (6, 3)) * rng.choice([-1.0, 1.0], (6, 3)) * np.array([[0.5], [1], [1], [2], [4], [8]])
    r = np.concatenate([scale * r for scale in SCALES])
    turns = [Turn.reflection(4).matrix, Turn((1, 0, 2), (1, 1, 1)).matrix, Turn((1, 2, 0), (1, 1, 1)).matrix]
    k, near, *images = representations.block(pair, np.concatenate([r, r * ROUNDED, *(r @ q.T for q in turns)])).reshape(
        5, len(r), pair.result, pair.dens
    )
    allowed = EXACT * np.abs(k).max(axis=(1, 2), keepdims=True) + np.abs(near - k).max(axis=(1, 2), keepdims=True)
    for d_t, d_s in itertools.product(_components(pair.result, True), _components(pair.dens, False)):
        if all(
            (np.abs(image - d_t.matrix(q) @ k @ d_s.matrix(q).T) <= allowed).all()
            for q, image in zip(turns, images, strict=True)
        ):
            return d_t, d_s
    return None


# Compression ----------------------------------------------------------------------------------------------------------
def factors(matrix: Floats, left: Floats, right: Floats, eps: float) -> tuple[Floats, Floats]:
    """Return L (r, n), R (r, m) with matrix ≈ Lᵀ R, by a singular value decomposition with weights on rows and columns.

    Singular values above `eps` times the largest are kept; with eps = 0 all, and R = 1.  They are found in a space
    of random vectors, as many as needed.
    """
    if eps <= 0:
        return matrix.T.copy(), np.eye(matrix.shape[1])
    product = matrix * left[:, None] * right
    n = min(product.shape)
    rng, count = np.random.default_rng(0), min(n, 24 + OVER)
    while True:
        if count >= n // 2:
            u, s, vt = np.linalg.svd(product, full_matrices=False)
            break
        q = np.linalg.qr(product @ rng.standard_normal((product.shape[1], count)))[0]
        q = np.linalg.qr(product @ (product.T @ q))[0]  # once more, for vectors as good as those of the whole
        u, s, vt = np.linalg.svd(q.T @ product, full_matrices=False)
        if s[count - OVER] <= eps * s[0]:
            u = q @ u
            break
        count *= 2
    if not s[0] > 0:
        return np.zeros((0, matrix.shape[0])), np.zeros((0, matrix.shape[1]))
    rank = int((s > eps * s[0]).sum())
    return np.ascontiguousarray((u[:, :rank] * s[:rank] / left[:, None]).T), vt[:rank] / right


def weights(order: int) -> Floats:
    """Return the square roots (order³,) of the weights of Gauss–Chebyshev quadrature at `grid`."""
    x = points()[0][order - 1, :order]
    w = np.sqrt(np.pi / order * np.sqrt(1 - x * x))
    return np.einsum("i,j,k->ijk", w, w, w).ravel()


@dataclass(frozen=True)
class Tables:
    """Factors of all translations of one size of boxes, as rows: column c of compressed values goes with row c.

    With symmetry there is one frame; else there are eight, one for each octant, in true coordinates.

    Attributes
    ----------
    left : array (frames, C, result order³)
        Rows that expand to the target's values, by component, then point.
    right : array (frames, C, order³ dens)
        Rows that compress the source's values, by point, then component.
    column : array (190,) of int32
        Place j of `offsets` has columns column[j] … column[j + 1] − 1.
    operators : int
        Translations that were decomposed.
    """

    left: Floats
    right: Floats
    column: NDArray[np.int32]
    operators: int


@dataclass(frozen=True)
class Action:
    """Signed permutation of values: out[i] = sign[i] value[place[i]]; sign is None if all are 1."""

    place: NDArray[np.intp]
    sign: Floats | None

    @staticmethod
    def of(turn: Turn, components: Components, order: int, points_last: bool) -> "Action":
        """Return the action of a symmetry on values at all points, by component and point or by point and component."""
        d = components.matrix(turn.matrix)
        node, comp = turn.of_points(order), np.abs(d).argmax(axis=1)
        sign = d[np.arange(len(d)), comp]
        if points_last:
            place, signs = (comp[:, None] * len(node) + node).ravel(), np.repeat(sign, len(node))
        else:
            place, signs = (node[:, None] * len(d) + comp).ravel(), np.tile(sign, len(node))
        return Action(place, None if (sign > 0).all() else signs)

    def __call__(self, values: Floats) -> Floats:
        """Apply the action to values along the last axis."""
        out = values[..., self.place]
        return out if self.sign is None else out * self.sign
