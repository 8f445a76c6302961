"""Operators of boxes: check values to equivalents in two factors, to parents and to children; by classes.

Check values c = K e are solved for e by a singular value decomposition without small values, kept as two
factors, e = V S⁻¹ (Uᵀ c): their product would have entries up to 1/cut and lose digits.  Singular values below
max(tolerance/1000, 1e-15) of the largest of all classes are left out: with less, those of Stokes flows that are
only errors of the surface grid spoil the result.  Operators are made in double precision, once, and kept in the
process and on disk.
"""

import functools
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parki.engine import cache
from parki.fmm import memory, representations, surfaces, symmetry
from parki.fmm.class_matrices import ClassMatrices
from parki.fmm.representations import Representation
from parki.fmm.surfaces import CHILDREN, INNER, OUTER
from parki.fmm.symmetry import SIGNS, Classes, Masks
from parki.pairs import Pair

Floats = NDArray[np.float64]
VERSION = 1  # version of the files on disk
CUT = 1e-3  # singular values left out, relative to the largest, for a tolerance of 1
LEAST_CUT = 1e-15  # singular values left out, relative to the largest, for any tolerance
HALF = 0.5  # half side of a child, in half sides of its parent
NAMES = ("up_first", "up_second", "down_first", "down_second", "to_parent", "to_children")


@dataclass(frozen=True)
class Operators:
    """Operators of boxes of one size.

    Attributes
    ----------
    check, equivalent : Classes
        Classes of check values and of equivalents.
    up, down : (ClassMatrices, ClassMatrices)
        Uᵀ and V S⁻¹: from class values of check values to those of equivalents.
    to_parent : ClassMatrices
        From the 8 children's equivalents, rows as in `Classes.octet_rows`, sums over reflections without a factor, to
        class values of the parent's check values.  Each has the unit of its own box.
    to_children : ClassMatrices
        From class values of the parent's downward equivalents to the 8 children's check values, likewise.
    """

    check: Classes
    equivalent: Classes
    up: tuple[ClassMatrices, ClassMatrices]
    down: tuple[ClassMatrices, ClassMatrices]
    to_parent: ClassMatrices
    to_children: ClassMatrices


def cut(tolerance: float) -> float:
    """Return the share of the largest singular value below which others are left out."""
    return max(CUT * tolerance, LEAST_CUT)


def operators(representation: Representation, p: int, tolerance: float, half: float = 1.0) -> Operators:
    """Return the operators of boxes of half side `half`, from the process or the cache on disk, or newly made.

    Parameters
    ----------
    representation : Representation
    p : int
        Points per edge of a surface.
    tolerance : float
        Relative error of the sum, see `cut`.
    half : float, optional
        Used only if `representation.per_level`.

    Raises
    ------
    ValueError
        For p < 2, and for a kernel with values that are not finite.
    """
    half = float(half) if representation.per_level else 1.0
    return _kept(
        _Key(
            representation.at(half),
            representation.masks,
            representation.a,
            representation.b,
            p,
            cut(tolerance),
            representation.size(half),
        )
    )


@dataclass(frozen=True)
class _Key:
    """Everything that operators depend on.

    `pair` maps equivalents to check values, `size` is the half side of the box.
    """

    pair: Pair
    masks: Masks | None
    a: tuple[float, ...] | None
    b: tuple[float, ...] | None
    p: int
    cut: float
    size: float

    @property
    def file(self) -> Path:
        """Return the path of the operators, by the text of the kernel."""
        text = (representations.unit(self.pair).l0.hash, self.pair.parameters, self.masks, self.a, self.b)
        content = repr((VERSION, *text, self.p, self.cut, self.size)).encode()
        name = hashlib.blake2b(content, digest_size=16).hexdigest()
        return cache.folder() / cache.FORMAT / cache.TABLES / f"{name}.operators"


@memory.kept()
def _kept(key: _Key) -> Operators:
    check, equivalent = (
        Classes(key.p, key.masks and key.masks[side], n) for side, n in enumerate((key.pair.result, key.pair.dens))
    )
    matrices = _read(key.file)
    if matrices is None or (matrices[0].columns, matrices[1].rows) != (check.begin[-1], equivalent.begin[-1]):
        matrices = _make(key, check, equivalent)
        _write(key.file, matrices)
    return Operators(
        check, equivalent, (matrices[0], matrices[1]), (matrices[2], matrices[3]), matrices[4], matrices[5]
    )


def _read(path: Path) -> list[ClassMatrices] | None:
    """Return the operators in a file; None if the file is missing or damaged."""
    content = cache.read_sealed(path)
    if content is None:
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return [ClassMatrices(file[f"{name}_table"], file[f"{name}_part"]) for name in NAMES]


def _write(path: Path, matrices: list[ClassMatrices]) -> None:
    """Store operators; where nothing can be written, the next process makes them again."""
    content = io.BytesIO()
    parts = zip(NAMES, matrices, strict=True)
    np.savez(content, **{f"{name}_{part}": getattr(b, part) for name, b in parts for part in ("table", "part")})
    cache.write_sealed(path, content.getvalue())


# Making ---------------------------------------------------------------------------------------------------------------
def _make(key: _Key, check: Classes, equivalent: Classes) -> list[ClassMatrices]:
    """Make the operators in the order of `NAMES`."""
    inner, outer = (surfaces.points(key.p, key.size * radius) for radius in (INNER, OUTER))
    rows = check.orbits[:, 0]
    reduction = functools.partial(_reduced, key.pair, check, equivalent)
    upward = reduction(outer[rows], inner[equivalent.orbits])
    downward = reduction(inner[rows], outer[equivalent.orbits])
    up_factors, down_factors = _factors(upward, key.cut), _factors(downward, key.cut)

    centre, point = key.size * CHILDREN, HALF * inner
    image = symmetry.images(key.p, check.group)
    a, b = np.array(key.a or (0.0,) * check.components), np.array(key.b or (0.0,) * equivalent.components)
    children = centre + point[image.T] if check.group == 8 else (centre[:, None] + point).reshape(-1, 1, 3)
    to_parent = reduction(outer[rows], children, columns_are_octets=True)
    to_children = reduction(children[:, 0], outer[equivalent.orbits], rows_are_octets=True)
    up_scale, down_scale = (np.repeat(HALF**power, len(children)) for power in (b, a))
    to_parent = [m * up_scale for m in to_parent]
    to_children = [m * down_scale[:, None] for m in to_children]
    return [*up_factors, *down_factors, ClassMatrices.of(to_parent), ClassMatrices.of(to_children)]


def _reduced(
    pair: Pair, check: Classes, equivalent: Classes, x: Floats, y: Floats, *, rows_are_octets: bool = False,
    columns_are_octets: bool = False,
) -> list[Floats]:  # fmt: skip
    """Return a matrix check ← equivalent by classes.

    The matrix has one target x (n, 3) of each orbit and all images of sources y (orbits, group, 3).  By symmetry
    the other targets of an orbit have the same values up to signs.  Octets, all (child, point), take plain sums over
    reflections, without the factor of an orthonormal basis.
    """
    group = check.group
    r = (x[:, None, None] - y).reshape(-1, 3)
    k = representations.block(pair, r).reshape(len(x), *y.shape[:2], pair.result, pair.dens)
    if not np.isfinite(k).all():
        raise ValueError(f"{pair} has values that are not finite on the surfaces of a box; expected finite ones.")
    signs = SIGNS[:group, :group]
    k = np.einsum("cg,ijgts->ctisj", signs, k, optimize=True)
    k *= (1.0 if columns_are_octets else np.sqrt(equivalent.size)) / group
    if not rows_are_octets:
        k *= np.sqrt(check.size)[:, None, None]
    classes = []
    for c in range(group):
        parts = []
        for t, row_mask in enumerate(check.signed):
            rows = slice(None) if rows_are_octets else check.present[:, c ^ row_mask]
            line = []
            for s, mask in enumerate(equivalent.signed):
                columns = slice(None) if columns_are_octets else equivalent.present[:, c ^ mask]
                line.append(k[c ^ mask, t, rows, s][:, columns])
            parts.append(np.concatenate(line, axis=1))
        classes.append(np.concatenate(parts))
    return classes


def _factors(matrices: list[Floats], share: float) -> tuple[ClassMatrices, ClassMatrices]:
    """Return Uᵀ and V S⁻¹ of the matrices of all classes, without singular values below this share of the largest."""
    parts = [np.linalg.svd(a, full_matrices=False) for a in matrices]
    cutoff = max(share * max(s.max(initial=0) for _, s, _ in parts), float(np.finfo(float).tiny))
    pairs = [(u[:, s > cutoff].T, vt[s > cutoff].T / s[s > cutoff]) for u, s, vt in parts]
    return ClassMatrices.of([u for u, _ in pairs]), ClassMatrices.of([v for _, v in pairs])
