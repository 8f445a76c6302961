"""Multipole-to-local translations by transforms: lists of pairs of octets as steps.

Planes of frequencies are processed in groups, so that the spectra of a group stay below a given size.  Target rows
are cut into blocks, whose spectra of one frequency stay near a core; no two work items write to the same place.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parki import engine
from parki.engine import Workunit
from parki.engine.steps import Handle, Step, state
from parki.fmm import spectra
from parki.fmm.expansion import table
from parki.fmm.limits import TeamLimits
from parki.fmm.staging import Staged, shape

RUN = 64  # target octets of a block: their spectra of one frequency stay in a first-level cache
TEAM = (16, 8)  # team of products on a device: a thread for each block of an item
TRANSFORM = (8, 8)  # team of a transform on a device


@dataclass(frozen=True)
class PairBlocks:
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

    def sources_of_blocks(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Return the source rows of each block, ascending, the begins of blocks, and places in them.

        The places ``(targets, 26)`` are those of the source of each target row and direction, −1 where there is none.
        """
        blocks, directions = len(self.begin), self.begin.shape[1] - 1
        first = self.begin[:, :-1].ravel()
        direction = np.repeat(np.arange(len(first)) % directions, np.diff(self.begin, axis=1).ravel())
        target, source = self.pairs.T
        block = np.searchsorted(self.rows, target, side="right") - 1
        keys, place = np.unique(block * np.int64(max(len(self.sources), 1)) + source, return_inverse=True)
        begin = np.searchsorted(keys, np.arange(blocks + 1) * max(len(self.sources), 1)).astype(np.int32)
        near = np.full((len(self.targets), directions), -1, np.int32)
        near[target, direction] = place - begin[block]
        return (keys % max(len(self.sources), 1)).astype(np.int32), begin, near


def blocks(t: NDArray[Any], s: NDArray[Any], direction: NDArray[Any], run: int = RUN) -> PairBlocks:
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
    return PairBlocks(targets, sources, rows, begin, np.column_stack([row_t, row_s]).astype(np.int32)[order])


def _rows(octets: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the octets that occur, ascending, and the place of each entry there."""
    if not len(octets):
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    mask = np.zeros(int(octets.max()) + 1, bool)
    mask[octets] = True
    return np.flatnonzero(mask).astype(np.int32), (np.cumsum(mask) - 1)[octets]


def plane_groups(p: int, nbytes: int, limit: int) -> list[tuple[int, int]]:
    """Return groups (first plane, planes) in order.

    A group has as many planes as fit `limit` bytes at `nbytes` bytes a frequency, and at least one.
    """
    out: list[tuple[int, int]] = []
    size = 0
    for k, n_frequencies in enumerate(spectra.plane_sizes(p).tolist()):
        if out and size + n_frequencies * nbytes <= limit:
            out[-1], size = (out[-1][0], out[-1][1] + 1), size + n_frequencies * nbytes
        else:
            out.append((k, 1))
            size = n_frequencies * nbytes
    return out


def parts(is_gauss: bool) -> int:
    """Return the numbers of a component of sources, for 8 siblings."""
    return 24 if is_gauss else 16


def forward(p: int, dens: int, real: DTypeLike, wide: DTypeLike, is_gauss: bool) -> Workunit:
    """Return the workunit from equivalents of `dens` components, of type `wide`, to spectra of type `real`.

    A direction has p grid points.
    """
    return engine.kernel("m2l", "forward", real=np.dtype(real), wide=np.dtype(wide), P=p, NS=dens, GAUSS=is_gauss)


def products(dens: int, result: int, real: DTypeLike, is_gauss: bool) -> Workunit:
    """Return the workunit from spectra of equivalents to those of check values of `result` components."""
    return engine.kernel("m2l", "products", real=np.dtype(real), NS=dens, NT=result, GAUSS=is_gauss)


def block_products(dens: int, result: int, real: DTypeLike, shape: Staged) -> Workunit:
    """Return the workunit of the same products for teams with sources in scratch."""
    return engine.kernel("m2l_block", "block_products", real=np.dtype(real), NS=dens, NT=result, **shape.slots)


def backward(p: int, result: int, real: DTypeLike, wide: DTypeLike) -> Workunit:
    """Return the workunit from spectra of type `real` to check values of type `wide`."""
    return engine.kernel("m2l", "backward", real=np.dtype(real), wide=np.dtype(wide), P=p, NT=result)


@dataclass(frozen=True)
class PairList:
    """Pairs of octets (target `t`, source `s`, `direction` 0 … 25) that share one `spectra.table`."""

    table: Handle
    t: NDArray[Any]
    s: NDArray[Any]
    direction: NDArray[Any]


@dataclass(frozen=True, eq=False)
class OctetValues:
    """Values of octets between which steps translate.

    Attributes
    ----------
    p : int
        Grid points per direction of a surface of m = 6 (p - 1)² + 2 points.
    dens, result : int
        Components of equivalents and of check values.
    equivalents : Handle (octets, at least dens · m, 8)
        Rows component · m + surface point; columns are siblings.
    checks : Handle (octets, at least result · m, 8)
        The same for check values; added to.
    real : dtype
        Type of spectra and of their tables: that of the values, or a shorter one.
    """

    p: int
    dens: int
    result: int
    equivalents: Handle
    checks: Handle
    real: np.dtype[Any]

    @property
    def wide(self) -> np.dtype[Any]:
        """Return the type of equivalents and check values."""
        return self.checks.dtype


def steps(phase: str, values: OctetValues, pair_lists: Sequence[PairList], limits: TeamLimits) -> list[Step]:
    """Return steps that add to the check values of octets those of the equivalents of other octets.

    Parameters
    ----------
    phase : str
    values : OctetValues
    pair_lists : sequence of PairList
        One list for all levels if the kernel has no length of its own, else one for each level.
    limits : TeamLimits
        Blocks of target octets in a work item, and bytes of spectra.  If sums are cut into tasks, groups of planes
        alternate between two rooms of half the size.

    Raises
    ------
    ValueError
        If a table's shape does not match the components.
    """
    p, real = values.p, values.real
    table_shape = (int(spectra.plane_sizes(p).sum()), values.result * values.dens, 2 * spectra.COLUMNS)
    staged = shape(limits.block, real.itemsize) if limits.block and limits.tasks is None else None
    is_gauss = limits.gauss and real == np.float64
    cuts, sizes = [], [(0, 0)]
    for pairs in pair_lists:
        if pairs.table.shape != table_shape:
            raise ValueError(f"a table has shape {pairs.table.shape}, expected {table_shape}")
        sorted_pairs = blocks(pairs.t, pairs.s, pairs.direction, staged.run if staged else RUN)
        n_values = (
            parts(is_gauss) * values.dens * _odd(len(sorted_pairs.sources)),
            16 * values.result * _odd(len(sorted_pairs.targets)),
        )
        bound = limits.spectra if limits.tasks is None else limits.spectra // 2
        groups = plane_groups(p, sum(n_values) * real.itemsize, bound) if len(sorted_pairs.pairs) else []
        cuts.append((pairs.table, sorted_pairs, groups))
        bound = max((_frequencies(p, *group)[1] for group in groups), default=0)
        sizes.append((n_values[0] * bound, n_values[1] * bound))
    most_in, most_out = np.max(sizes, axis=0).tolist()
    sides = ("source", most_in), ("target", most_out)
    rooms = [
        tuple(state(f"{side}_spectra", (count,), real, zero=False) for side, count in sides)
        for _ in range(1 if limits.tasks is None else 2)
    ]
    shared = _transforms(p, real, is_gauss)
    return [
        step
        for kernel, sorted_pairs, groups in cuts
        for step in _PlaneGroups(phase, values, shared, rooms, kernel, sorted_pairs, limits, staged).steps(groups)
    ]


@dataclass(frozen=True, eq=False)
class _Transforms:
    """Constants of all transforms: surface points, waves, places of translations in a table.

    With `is_gauss` a complex product takes three real ones, for which spectra of sources have a third part.
    """

    waves: dict[str, Handle]
    place: Handle
    is_gauss: bool


@functools.lru_cache(maxsize=32)
def _transforms(p: int, real: np.dtype[Any], is_gauss: bool) -> _Transforms:
    """Return the constants of transforms for surfaces of p points per edge."""
    cosine, sine = spectra.waves(p)
    waves = {"column": table("column", spectra.columns(p))}
    waves |= {"cosine": table("cosine", cosine, real), "sine": table("sine", sine, real)}
    return _Transforms(waves, table("place", spectra.places()), is_gauss)


class _PlaneGroups:
    """Steps of one list of pairs, by groups of planes."""

    def __init__(
        self, phase: str, values: OctetValues, shared: _Transforms, rooms: Sequence[tuple[Handle, Handle]],
        kernel: Handle, pairs: PairBlocks, limits: TeamLimits, staged: Staged | None,
    ) -> None:  # fmt: skip
        self.phase, self.values, self.shared, self.rooms, self.kernel = phase, values, shared, rooms, kernel
        self.count, self.limits = len(pairs.begin), limits
        self.sources, self.targets = table("source_octets", pairs.sources), table("target_octets", pairs.targets)
        self.lists = {"rows": table("block_rows", pairs.rows)}
        self.staged = staged
        if staged:
            lists = zip(("source", "source_begin", "near"), pairs.sources_of_blocks(), strict=True)
            self.lists |= {name: table(name, a) for name, a in lists}
        else:
            self.lists |= {"of": table("block_begin", pairs.begin), "pair": table("octet_pairs", pairs.pairs)}

    def steps(self, groups: list[tuple[int, int]]) -> list[Step]:
        """Return the steps of groups (first plane, planes)."""
        return [step for k, group in enumerate(groups) for step in self._group(*group, self.rooms[k % len(self.rooms)])]

    def _group(self, first: int, planes: int, rooms: tuple[Handle, Handle]) -> list[Step]:
        """Return the three steps of one group of planes."""
        v, phase = self.values, self.phase
        begin, count = _frequencies(v.p, first, planes)
        spectra_in = _room(rooms[0], count, len(self.sources), parts(self.shared.is_gauss) * v.dens)
        spectra_out = _room(rooms[1], count, len(self.targets), 16 * v.result)
        plane_args = {"first": first, "planes": planes, **self.shared.waves}
        source = {"octet": self.sources, "given": v.equivalents, "spectra": spectra_in, **plane_args}
        target = {"octet": self.targets, "spectra": spectra_out, "made": v.checks, **plane_args}
        product = {"given": spectra_in, "made": spectra_out, "place": self.shared.place, **self.lists}
        product |= {"table": self.kernel[begin : begin + count], "columns": spectra.COLUMNS}
        units = forward(v.p, v.dens, v.real, v.wide, self.shared.is_gauss), backward(v.p, v.result, v.real, v.wide)
        return [
            Step(phase, units[0], len(self.sources) * v.dens * planes, source, shape=TRANSFORM),
            self._products(count, product),
            Step(phase, units[1], len(self.targets) * v.result, target, shape=TRANSFORM),
        ]

    def _products(self, count: int, args: dict[str, Any]) -> Step:
        """Return the step of the products of some frequencies."""
        v = self.values
        if self.staged:
            unit = block_products(v.dens, v.result, v.real, self.staged)
            return Step(self.phase, unit, count * self.count, args | {"blocks": self.count}, shape=self.staged.team)
        item = self._items(count)
        unit = products(v.dens, v.result, v.real, self.shared.is_gauss)
        return Step(self.phase, unit, len(item), args | {"item": item}, shape=TEAM)

    def _items(self, count: int) -> Handle:
        """Return work items (frequency, first block, end of blocks)."""
        parts = -(-self.count // self.limits.blocks)
        cut = np.arange(parts + 1) * self.count // parts
        frequency, part = np.divmod(np.arange(count * parts), parts)
        return table("items", np.column_stack([frequency, cut[part], cut[part + 1]]), np.int32)


def _frequencies(p: int, first: int, planes: int) -> tuple[int, int]:
    """Return the number of the first frequency of a group of planes, and the number of frequencies in it."""
    sizes = spectra.plane_sizes(p)
    return int(sizes[:first].sum()), int(sizes[first : first + planes].sum())


def _room(room: Handle, count: int, octets: int, numbers: int) -> Handle:
    return room.view(0, (count, _odd(octets), numbers), room.dtype)


def _odd(n: int) -> int:
    """Return the odd number of rows of an array of spectra, so that frequencies of a row spread over a cache."""
    return n | 1
