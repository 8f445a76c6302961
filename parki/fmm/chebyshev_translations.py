"""Lists V by matrix products: compressed values of sources for all their targets, and their sums at targets.

On a level, values enter the frames of their boxes' octants.  For as many columns at a time as memory allows, each
block of sources makes compressed values for all boxes that may take them by one product; then each block of targets
collects its own and expands them by one product.  Sums over a target's sources are part of the product: nothing is
added in an order that depends on threads.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import engine
from parki.engine import Workunit
from parki.engine.steps import Handle, Step, constant, state
from parki.fmm import blocks, chebyshev_m2l, representations
from parki.fmm.blocks import BoxBlocks
from parki.fmm.chebyshev_tables import Components, symmetry
from parki.fmm.expansion import TOP_LEVEL, table
from parki.pairs import Pair
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes

COMPRESSED = 128 << 20  # bytes of compressed values of all levels
COLUMNS = 256  # columns of compressed values at one time: those of a team's targets stay in a second-level cache
ROWS = 8  # rows of a tile of a matrix; entries of one column in a tile are contiguous
TOGETHER = 2  # blocks that share one read of a matrix
LANES = 64  # bytes of the values of a block's lanes
THREADS = 16  # threads of a team on a device


def workunit(name: str, real: np.dtype[Any], **slots: Any) -> Workunit:
    """Return a workunit of the translations, by its name."""
    return engine.kernel("interchange", name, real=real, LANES=lanes(real), **slots)


def lanes(real: np.dtype[Any]) -> int:
    """Return the number of boxes in a block."""
    return LANES // real.itemsize


@dataclass(frozen=True, eq=False)
class LevelSide:
    """Sources or targets of the translations of a level.

    Attributes
    ----------
    blocks : BoxBlocks
    box, frame : Handle (blocks, lanes)
        Number of each box, −1 for none, and of its frame.
    item : Handle (items, 3)
        Work items: first block, blocks, first line of the matrix.
    scale : Handle (rows,)
        Factors that scale values to the unit box.
    values : Handle (blocks, rows, lanes)
        Values in the frames of boxes.
    """

    blocks: BoxBlocks
    box: Handle
    frame: Handle
    item: Handle
    scale: Handle
    values: Handle


@dataclass(frozen=True)
class Matrices:
    """Matrices of all translations between boxes of one size, in tiles.

    Attributes
    ----------
    left, right : Handle (lines, ROWS)
        To targets: tiles of values, a line for each column.  From sources: tiles of columns, a line for each value.
    column : array (translations + 1,)
        First column of each translation.
    """

    left: Handle
    right: Handle
    column: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LevelTranslations:
    """Translations between the boxes of one level.

    Attributes
    ----------
    sources, targets : LevelSide
    target, row : Handle
        Place of each target (blocks, lanes), −1 for none; row of sources by place.
    matrices : Matrices
    compressed : Handle (source rows, columns)
    """

    sources: LevelSide
    targets: LevelSide
    target: Handle
    row: Handle
    matrices: Matrices
    compressed: Handle

    @property
    def columns(self) -> int:
        """Return the number of columns of compressed values."""
        return int(self.matrices.column[-1])

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Return the first column and the number of columns that are handled at one time."""
        width = self.compressed.shape[1]
        return [(first, min(width, self.columns - first)) for first in range(0, self.columns, width)]


@dataclass(frozen=True, eq=False)
class _Frame:
    """Frames of one kind of values: their signed permutations (frames, rows)."""

    place: Handle
    sign: Handle
    signed: bool


class Translations:
    """Translations of all lists V; arguments are those of `parki.fmm.chebyshev_expansion.chebyshev_expansion`.

    Attributes
    ----------
    levels : list of LevelTranslations
    operators : dict
        Number of operators that are decomposed, by half side of the boxes.
    near : array (octets, 26)
        Neighbours of octets, if there is any translation.
    """

    def __init__(
        self, nodes: OctNodes, lists: OctLists, pair: Pair, order: int, *, real: np.dtype[Any], eps: float,
        symmetric: bool,
    ) -> None:  # fmt: skip
        self.pair, self.order, self.real, self.eps = pair, order, real, eps
        self.turning = symmetry(pair) if symmetric else None
        self.levels: list[LevelTranslations] = []
        self._matrices: dict[float, Matrices] = {}
        self.operators: dict[float, int] = {}
        if not len(lists.v_t):
            return
        self._octets = int(nodes.octet_begin[-1])
        self.near = blocks.neighbours(lists.v_t, lists.v_s, lists.v_direction, self._octets)
        self._tables = {"near": table("near", self.near), "way": constant("ways", chebyshev_m2l.ways())}
        source_components, target_components = (
            (None, None) if self.turning is None else (self.turning[1], self.turning[0])
        )
        self._frames = [
            self._frame(source_components, pair.dens, False),
            self._frame(target_components, pair.result, True),
        ]
        in_s, in_t = np.zeros(self._octets, bool), np.zeros(self._octets, bool)
        in_s[lists.v_s], in_t[lists.v_t] = True, True
        levels = []
        for level in range(TOP_LEVEL, len(nodes.level_begin) - 1):
            box = np.arange(*nodes.level_begin[level : level + 2], dtype=np.int32)
            octet = nodes.slot[box] // 8
            s = box[in_s[octet] & (nodes.sources.count[box] > 0)]
            t = box[in_t[octet] & (nodes.targets.end[box] > nodes.targets.begin[box])]
            if len(s) and len(t):
                levels.append(
                    (float(nodes.half[s[0]]), *(self._blocks(boxes, nodes.octant[boxes]) for boxes in (s, t)))
                )
        rows = sum(s.boxes.size for _, s, _ in levels)
        width = max(min(COMPRESSED // max(rows * real.itemsize, 1), COLUMNS) // ROWS, 1) * ROWS
        for half, s, t in levels:
            self._add(nodes, half, s, t, width)

    def _blocks(self, boxes: NDArray[np.int32], octant: NDArray[np.int32]) -> BoxBlocks:
        return BoxBlocks.of(boxes, octant if self.turning is None else np.zeros_like(octant), lanes(self.real))

    def _frame(self, components: Components | None, count: int, points_last: bool) -> _Frame:
        """Return the frames of the values of sources or targets, one if there is no symmetry."""
        if components is None:
            place, signs = np.arange(self.order**3 * count)[None], []
        else:
            actions = chebyshev_m2l.frame(components, self.order, points_last)
            place = np.stack([a.place for a in actions])
            signs = [a.sign for a in actions]
        has_signs = any(row is not None for row in signs)
        sign = [np.ones(place.shape[1]) if row is None else row for row in signs] if has_signs else [[1.0]]
        return _Frame(table("place", place, np.int32), table("sign", sign, self.real), has_signs)

    def _add(self, nodes: OctNodes, half: float, s: BoxBlocks, t: BoxBlocks, width: int) -> None:
        """Add the level of sources s and targets t."""
        exponents, m3 = representations.exponents(self.pair), self.order**3
        matrices = self._matrices_of(representations.half_side(self.pair, half))
        if not matrices.column[-1]:
            return
        a, b = exponents or (np.zeros(self.pair.result), np.zeros(self.pair.dens))
        scales = np.tile(half ** -np.array(b), m3), np.repeat(half ** -np.array(a), m3)
        # A matrix of sources has a tile for each ROWS columns, that of targets for each ROWS values.
        lines = -(-int(matrices.column[-1]) // ROWS) * len(scales[0]), -(-len(scales[1]) // ROWS) * matrices.column[-1]
        sides = [
            self._side(blocks, nodes, *arguments)
            for blocks, *arguments in zip((s, t), scales, lines, ("given", "made"), strict=True)
        ]
        self.levels.append(
            LevelTranslations(
                *sides,
                target=table("target", t.placed(nodes.slot, -1)),
                row=table("row", blocks.rows_by_place(s, nodes.slot, self._octets)),
                matrices=matrices,
                compressed=state("compressed", (s.boxes.size, width), self.real, zero=False),
            )
        )

    def _side(self, blocks: BoxBlocks, nodes: OctNodes, scale: NDArray[np.float64], lines: int, name: str) -> LevelSide:
        frame = np.zeros_like(blocks.boxes) if self.turning is None else blocks.placed(nodes.octant, 0)
        return LevelSide(
            blocks=blocks,
            box=table("box", blocks.boxes),
            frame=table("frame", frame),
            item=table("item", blocks.items(TOGETHER, lines)),
            scale=table("scale", scale, self.real),
            values=state(name, (len(blocks), len(scale), blocks.boxes.shape[1]), self.real, zero=False),
        )

    def _matrices_of(self, size: float) -> Matrices:
        """Return the matrices between boxes of this half side."""
        if size not in self._matrices:
            result = chebyshev_m2l.tables(self.pair, self.order, size, self.eps, self.turning is not None)
            left, right = _tiles(result.left.transpose(0, 2, 1)), _tiles(result.right)
            self._matrices[size] = Matrices(
                table("left", left, self.real), table("right", right, self.real), np.asarray(result.column)
            )
            self.operators[size] = result.operators
        return self._matrices[size]

    # Steps ------------------------------------------------------------------------------------------------------------
    def steps(self, phase: str, charge: Handle, phi: Handle) -> list[Step]:
        """Return steps that add to potentials phi (result, boxes × order³) those of charges (boxes, order³ × dens)."""
        return [step for level in self.levels for step in self._of_level(phase, level, charge, phi)]

    def _of_level(self, phase: str, level: LevelTranslations, charge: Handle, phi: Handle) -> list[Step]:
        shape = THREADS, lanes(self.real)
        steps = [self._framed(phase, "enter", level.sources, 0, {"charge": charge, "given": level.sources.values})]
        column = constant("column", level.matrices.column)
        constants = {"target": level.target, "row": level.row, "column": column, **self._tables}
        rows_s, rows_t = (side.values.shape[1] for side in (level.sources, level.targets))
        for first, count in level.parts:
            args: dict[str, Any] = {"item": level.sources.item, "table": level.matrices.right}
            args |= {"given": level.sources.values, "made": level.compressed}
            args |= {"rows": rows_s, "tile": first // ROWS, "columns": count}
            steps.append(Step(phase, self.compress, len(level.sources.item), args, shape=shape))
            begin = int(np.searchsorted(level.matrices.column, first, side="right")) - 1
            end = int(np.searchsorted(level.matrices.column, first + count))
            args = {"item": level.targets.item, "table": level.matrices.left, "given": level.compressed, **constants}
            args |= {"made": level.targets.values, "rows": rows_t, "lines": level.columns}
            args |= {"first_column": first, "columns": count, "first": begin, "count": end - begin}
            steps.append(Step(phase, self.expand(first > 0), len(level.targets.item), args, shape=shape))
        args = {"made": level.targets.values, "phi": phi, "points": self.order**3}
        return [*steps, self._framed(phase, "leave", level.targets, 1, args)]

    @property
    def compress(self) -> Workunit:
        """Return the workunit that makes compressed values of sources."""
        return workunit("compress", self.real, ROWS=ROWS, BLOCKS=TOGETHER)

    def expand(self, add: bool) -> Workunit:
        """Return the workunit that makes values of targets; with `add` it adds to them."""
        return workunit("expand", self.real, ROWS=ROWS, BLOCKS=TOGETHER, ADD=add)

    def _framed(self, phase: str, name: str, side: LevelSide, number: int, args: dict[str, Any]) -> Step:
        """Return the step that moves values into the frames of their boxes, or back."""
        frame = self._frames[number]
        args |= {"box": side.box, "frame": side.frame, "place": frame.place, "sign": frame.sign, "scale": side.scale}
        unit = workunit(name, self.real, SIGNED=frame.signed)
        args["rows"] = side.values.shape[1]
        return Step(phase, unit, len(side.blocks), args, shape=(THREADS, lanes(self.real)))


def _tiles(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return matrices (n, rows, columns) in tiles of ROWS rows, a line for each column: (lines, ROWS)."""
    n, rows, columns = matrices.shape
    count, rest = divmod(rows, ROWS)
    tiles = np.zeros((n, count + (rest > 0), columns, ROWS))
    tiles[:, :count] = matrices[:, : count * ROWS].reshape(n, count, ROWS, columns).transpose(0, 1, 3, 2)
    if rest:
        tiles[:, count, :, :rest] = matrices[:, count * ROWS :].transpose(0, 2, 1)
    return tiles.reshape(-1, ROWS)
