"""Multipole-to-local translations by transforms: lists of pairs of octets as prepared launches.

Planes of frequencies are done in groups, so that the spectra of a group stay below a given size.  Target rows are cut
into blocks, whose spectra of one frequency stay near a core; no two work items write to the same place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parki import engine
from parki.arrays import Array
from parki.engine import Prepared, TeamPolicy, spaces
from parki.engine.spaces import Space
from parki.engine.workunit import Workunit
from parki.fmm import spectra
from parki.fmm.memory import aligned

SPECTRA = 256 << 20  # bytes
RUN = 64  # target octets of a block: what they need of one frequency stays in a first-level cache
BLOCKS = 32  # of a work item on a host: in a second-level cache
ROWS = 16  # blocks of a work item on a device
TRANSFORM = (8, 8)  # team of a transform on a device


@dataclass(frozen=True)
class Blocks:
    """Pairs of octets by block of target octets and direction.

    `targets` and `sources` are the octets used, in ascending order; a row is an octet's place there.  Block b has
    target rows ``rows[b]`` … ``rows[b + 1] - 1``; ``pairs[j]`` is (target row, source row), in direction d for
    ``begin[b, d] <= j < begin[b, d + 1]``.
    """

    targets: NDArray[np.int32]
    sources: NDArray[np.int32]
    rows: NDArray[np.int32]
    begin: NDArray[np.int32]
    pairs: NDArray[np.int32]


def blocks(t: NDArray[Any], s: NDArray[Any], direction: NDArray[Any], run: int = RUN) -> Blocks:
    """Sort pairs of octets (target t, source s, direction 0 … 25) into blocks of `run` target octets."""
    targets, row_t = _rows(t)
    sources, row_s = _rows(s)
    count = -(-len(targets) // run)
    key = row_t // run * 26 + direction
    order = np.argsort(key, kind="stable")
    begin = np.zeros(count * 26 + 1, np.int32)
    np.cumsum(np.bincount(key, minlength=count * 26), out=begin[1:])
    begin = begin[np.arange(count)[:, None] * 26 + np.arange(27)]
    rows = np.minimum(np.arange(count + 1) * run, len(targets)).astype(np.int32)
    return Blocks(targets, sources, rows, begin, np.column_stack([row_t, row_s]).astype(np.int32)[order])


def _rows(octets: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The octets that occur, ascending, and the place of each entry there."""
    if not len(octets):
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    used = np.zeros(int(octets.max()) + 1, bool)
    used[octets] = True
    return np.flatnonzero(used).astype(np.int32), (np.cumsum(used) - 1)[octets]


def plane_groups(p: int, each: int, limit: int) -> list[tuple[int, int]]:
    """Groups (first plane, planes) in order: as many as fit `limit` bytes at `each` bytes a frequency, at least one."""
    out: list[tuple[int, int]] = []
    size = 0
    for k, more in enumerate(spectra.plane_sizes(p).tolist()):
        if out and size + more * each <= limit:
            out[-1], size = (out[-1][0], out[-1][1] + 1), size + more * each
        else:
            out.append((k, 1))
            size = more * each
    return out


@dataclass(frozen=True)
class Units:
    """Workunits: p grid points per direction, components of equivalents and of check values, dtype."""

    p: int
    dens: int
    result: int
    real: DTypeLike

    def forward(self) -> Workunit:
        """Equivalents to spectra."""
        return engine.kernel("m2l", "forward", real=np.dtype(self.real), P=self.p, NS=self.dens)

    def products(self) -> Workunit:
        """Spectra of equivalents to those of check values."""
        return engine.kernel("m2l", "products", real=np.dtype(self.real), NS=self.dens, NT=self.result)

    def backward(self) -> Workunit:
        """Spectra to check values."""
        return engine.kernel("m2l", "backward", real=np.dtype(self.real), P=self.p, NT=self.result)

    def needed(self) -> list[Workunit]:
        """All of them."""
        return [self.forward(), self.products(), self.backward()]


@dataclass(frozen=True)
class Part:
    """Pairs of octets (target `t`, source `s`, `direction` 0 … 25) that share one `spectra.table`, on the space."""

    table: Array
    t: NDArray[Any]
    s: NDArray[Any]
    direction: NDArray[Any]


class M2L:
    """Launches that add to the check values of octets what the equivalents of other octets give.

    Parameters
    ----------
    units : Units
    parts : sequence of Part
        For a kernel without a length of its own one for all levels, else one for each.
    equivalents : array (octets, at least dens · m, 8)
        Rows component · m + surface point of the m = 6 (p - 1)² + 2; columns are siblings.
    checks : array (octets, at least result · m, 8)
        Likewise; added to.
    space : Space
    limit : int
        Bytes of spectra up to which planes of frequencies are done together.

    Raises
    ------
    ValueError
        A table has another shape than `units` ask for.
    """

    def __init__(
        self, units: Units, parts: Sequence[Part], equivalents: Array, checks: Array, space: Space,
        limit: int = SPECTRA,
    ) -> None:  # fmt: skip
        self.units, self.space, self.xp = units, space, spaces.array_module(space)
        self._held: list[Array] = []
        real, p = np.dtype(units.real), units.p
        cosine, sine = (self._array(a.astype(real)) for a in spectra.waves(p))
        self._waves = {"column": self._array(spectra.columns(p)), "cosine": cosine, "sine": sine}
        self._place = self._array(spectra.places())
        shape = (int(spectra.plane_sizes(p).sum()), units.result * units.dens, 2 * spectra.COLUMNS)
        cut, sizes = [], [(0, 0)]
        for part in parts:
            if part.table.shape != shape:
                raise ValueError(f"a table has shape {part.table.shape}, expected {shape}")
            found = blocks(part.t, part.s, part.direction)
            each = 16 * units.dens * _odd(len(found.sources)), 16 * units.result * _odd(len(found.targets))
            groups = plane_groups(p, sum(each) * real.itemsize, limit) if len(found.pairs) else []
            cut.append((found, groups))
            most = max((self._frequencies(*group)[1] for group in groups), default=0)
            sizes.append((each[0] * most, each[1] * most))
        most = np.max(sizes, axis=0)
        self._in, self._out = (self._empty(int(n), real) for n in most)
        self._launches = [
            [one for group in groups for one in self._group(part.table, found, group, equivalents, checks)]
            for part, (found, groups) in zip(parts, cut, strict=True)
        ]

    @property
    def memory(self) -> int:
        """Bytes of all arrays, tables apart."""
        return sum(a.nbytes for a in self._held)

    def run(self, part: int | None = None) -> None:
        """Add to the check values, for all parts or for one."""
        for launches in self._launches if part is None else [self._launches[part]]:
            for one in launches:
                one.launch()

    def _array(self, a: NDArray[Any]) -> Array:
        self._held.append(self.xp.ascontiguousarray(self.xp.asarray(a)))
        return self._held[-1]

    def _empty(self, n: int, dtype: np.dtype) -> Array:
        self._held.append(aligned(self.xp, (n,), dtype))
        return self._held[-1]

    def _frequencies(self, first: int, planes: int) -> tuple[int, int]:
        """Number of the first frequency of a group of planes, and how many it has."""
        sizes = spectra.plane_sizes(self.units.p)
        return int(sizes[:first].sum()), int(sizes[first : first + planes].sum())

    def _team(self, league: int, shape: tuple[int, int]) -> TeamPolicy:
        return TeamPolicy(self.space, league, *(() if self.space.kind == "host" else shape))

    def _group(
        self, table: Array, found: Blocks, group: tuple[int, int], equivalents: Array, checks: Array
    ) -> list[Prepared]:
        """The three launches of one group of planes."""
        units, (first, planes) = self.units, group
        begin, count = self._frequencies(first, planes)
        n_src, n_trg = len(found.sources), len(found.targets)
        given, made = (
            buffer[: count * _odd(n) * 16 * components].reshape(count, _odd(n), 16 * components)
            for buffer, n, components in ((self._in, n_src, units.dens), (self._out, n_trg, units.result))
        )
        n = len(found.begin)
        parts = -(-n // (BLOCKS if self.space.kind == "host" else ROWS))
        cut = np.arange(parts + 1) * n // parts
        frequency, part = np.divmod(np.arange(count * parts), parts)
        item = np.column_stack([frequency, cut[part], cut[part + 1]]).astype(np.int32)
        lists = {"item": item, "rows": found.rows, "of": found.begin, "pair": found.pairs}
        lists = {name: self._array(a) for name, a in lists.items()}
        lists |= {"place": self._place, "table": table[begin : begin + count], "columns": spectra.COLUMNS}
        some = {"first": first, "planes": planes, **self._waves}
        sources, targets = self._array(found.sources), self._array(found.targets)
        forward = self._team(n_src * units.dens * planes, TRANSFORM)
        backward = self._team(n_trg * units.result, TRANSFORM)
        return [
            engine.prepare(forward, units.forward(), octet=sources, given=equivalents, spectra=given, **some),
            engine.prepare(self._team(len(item), (ROWS, 8)), units.products(), given=given, made=made, **lists),
            engine.prepare(backward, units.backward(), octet=targets, spectra=made, made=checks, **some),
        ]


def _odd(n: int) -> int:
    """Rows of an array of spectra: an odd number, so that the frequencies of a row spread over a cache."""
    return n | 1
