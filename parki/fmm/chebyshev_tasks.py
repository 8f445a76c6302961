"""Sums by Chebyshev interpolation cut into tasks: the rows that each of their steps reads and writes.

Boxes of a level are in runs, their points with them; blocks of a level are in runs of work items; target points are
in parts of equal near work.

Source: E. Agullo et al., "Task-based FMM for heterogeneous architectures", Inria RR-8513 (2014), section 3.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from parki.arrays import spread
from parki.engine.steps import Cut, Handle, RowBlocks, RowByRow, Step, Touched
from parki.fmm.chebyshev_translations import TOGETHER, LevelSide, LevelTranslations, Translations
from parki.fmm.particle_tasks import ParticleCuts
from parki.tasks.sizes import TaskSizes
from parki.trees.octlists import OctLists
from parki.trees.octree import Octree

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _LevelCuts:
    """Blocks of rows of the values of a level.

    Attributes
    ----------
    given, made, compressed : RowBlocks
        Rows of blocks of sources and of targets, and of compressed values.
    begin, rows : arrays
        Compressed rows that each item of targets reads: the first row of each of their blocks.
    """

    given: RowBlocks
    made: RowBlocks
    compressed: RowBlocks
    begin: Ints
    rows: Ints

    @classmethod
    def of(cls, level: LevelTranslations, near: NDArray[np.int32], sizes: TaskSizes) -> "_LevelCuts":
        """Return the blocks of a level; near[octet] are the neighbours of octets."""
        lanes = level.sources.blocks.boxes.shape[1]
        source_blocks, target_blocks = (_runs(side, sizes) for side in (level.sources, level.targets))
        value_rows = RowBlocks(source_blocks.bounds * lanes)
        place, row = level.target.values, level.row.values
        incidence = np.zeros((len(target_blocks), len(near) + 1), bool)  # the last column stands for −1: no neighbour
        block, lane = np.nonzero(place >= 0)
        incidence[target_blocks.block(block)[:, None], near[place[block, lane] // 8]] = True
        task, octet = np.nonzero(incidence[:, :-1])
        rows = row.reshape(-1, 8)[octet]
        reads = np.zeros((len(target_blocks), len(source_blocks)), bool)
        mask = rows >= 0
        reads[np.broadcast_to(task[:, None], rows.shape)[mask], value_rows.block(rows[mask])] = True
        task, column = np.nonzero(reads)
        first = np.searchsorted(level.targets.item.values[:, 0], target_blocks.bounds[:-1])  # first item of each task
        begin = np.searchsorted(first[task], np.arange(level.targets.item.shape[0] + 1))
        return cls(source_blocks, target_blocks, value_rows, begin, value_rows.bounds[column])


@dataclass(frozen=True, eq=False)
class ChebyshevCuts:
    """Cuts of the steps of a sum.

    Attributes
    ----------
    particles : ParticleCuts
    boxes, points : RowBlocks
        Rows of boxes, and of their points.
    order : int
    levels : dict of _LevelCuts
        Cuts by the values of sources, by those of targets, and by the compressed ones.
    """

    particles: ParticleCuts
    boxes: RowBlocks
    points: RowBlocks
    order: int
    levels: dict[Handle, _LevelCuts] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: Octree, lists: OctLists, translations: Translations, sizes: TaskSizes) -> "ChebyshevCuts":
        """Return the cuts of a tree's sum."""
        level_begin, m3 = tree.nodes.level_begin, translations.order**3
        runs = [np.arange(first, end, sizes.boxes) for first, end in pairwise(level_begin)]
        boxes = np.unique(np.concatenate([[0], *runs, [tree.nodes.n]])).astype(np.int64)
        cuts = cls(ParticleCuts.of(tree, lists, sizes), RowBlocks(boxes), RowBlocks(boxes * m3), translations.order)
        for level in translations.levels:
            level_cuts = _LevelCuts.of(level, translations.near, sizes)
            for a in (level.sources.values, level.targets.values, level.compressed):
                cuts.levels[a] = level_cuts
        return cuts

    def steps(self, steps: Iterable[Step]) -> list[Step]:
        """Return steps with their cuts."""
        return [replace(step, cut=_HOW[step.unit.l0.name](self, step)) for step in steps]

    # Boxes and particles ----------------------------------------------------------------------------------------------
    def _boxes(self, a: Handle, first: NDArray[np.integer], count: NDArray[np.integer] | int = 1) -> Touched:
        """Return the rows of boxes, numbered from the start of a part of all values."""
        array, m3 = a.whole, self.order**3
        if len(array) == self.boxes.bounds[-1]:
            begin = a.extent[0] // (array.nbytes // len(array))
            return Touched.each(array, self.boxes, begin + first.astype(np.int64), count)
        begin = a.extent[0] // a.dtype.itemsize
        return Touched.each(array, self.points, begin + first.astype(np.int64) * m3, count * m3, axis=1)

    def charges(self, step: Step) -> Cut:
        """Cut P2M along boxes."""
        leaf = step.args["leaf"].values.astype(np.int64)
        outputs = self._boxes(step.args["charge"], leaf[:, 0])
        src = Touched(step.args["src"], self.particles.sources, leaf[:, 1], leaf[:, 2])
        return Cut("P2M", (leaf[:, 2] - leaf[:, 1]).astype(float), [src, outputs], [outputs], outputs)

    def transfer(self, step: Step) -> Cut:
        """Cut M2M and L2L along the boxes that receive values."""
        item = step.args["item"].values.astype(np.int64)
        outputs = self._boxes(step.args["made"], item[:, 0])
        inputs = self._boxes(step.args["given"], item[:, 1], item[:, 2] - item[:, 1])
        kind = "M2M" if step.phase == "upward" else "L2L"
        return Cut(kind, (item[:, 2] - item[:, 1]).astype(float), [inputs, outputs], [outputs], outputs)

    def potentials(self, step: Step) -> Cut:
        """Cut L2P along targets."""
        leaf = step.args["leaf"].values.astype(np.int64)
        count = leaf[:, 2] - leaf[:, 1]
        u = Touched.each(step.args["u"], self.particles.targets, leaf[:, 1], count, axis=1)
        phi = self._boxes(step.args["phi"], leaf[:, 0])
        return Cut("L2P", count.astype(float), [phi, u], [u], u)

    def ranges(self, step: Step) -> Cut:
        """Cut sums over particles: P2P along targets, P2L along boxes."""
        if step.phase == "near":
            return self.particles.near(step)
        item = step.args["item"].values
        outputs = self._boxes(step.args["u"], item[:, 0])
        src, n_sources = self.particles.spans(step, np.append(item[:, 4], item[-1, 5]))
        return Cut("P2L", n_sources, [src, outputs], [outputs], outputs)

    def grids(self, step: Step) -> Cut:
        """Cut M2P along targets."""
        item = step.args["item"].values.astype(np.int64)
        count = item[:, 5] - item[:, 4]
        u = Touched.each(step.args["u"], self.particles.targets, item[:, 1], item[:, 2], axis=1)
        boxes, begin = step.args["other"].values[spread(item[:, 4], count)], np.concatenate([[0], np.cumsum(count)])
        inputs = Touched.listed(step.args["charge"], self.boxes, begin, boxes)
        return Cut("M2P", item[:, 2] * count.astype(float), [inputs, u], [u], u)

    def fill(self, step: Step) -> Cut:
        """Cut the clearing of charges and of one component of potentials along boxes; sums are cleared in one task."""
        out, array = step.args["out"], step.args["out"].whole
        if array.shape[1] == self.particles.targets.bounds[-1]:
            return self.particles.fill(step)
        (first, end), is_part = (byte // out.dtype.itemsize for byte in out.extent), out.nbytes < array.nbytes
        width = array.shape[1]
        if len(array) != self.boxes.bounds[-1]:
            rows = RowByRow(array, self.points, first % width, axis=1)
            return Cut("FILL", 1.0, [rows] * is_part, [rows], rows)
        if first % width == end % width == 0:
            rows = RowByRow(array, self.boxes, first // width)
            return Cut("FILL", 1.0, [rows] * is_part, [rows], rows, width)
        low, high = np.array([first // width]), np.array([-(-end // width)])
        access = Touched(array, self.boxes, low, high, np.array([0, 1]))
        return Cut("FILL", float(step.items), [access], [access])

    # Translations -----------------------------------------------------------------------------------------------------
    def enter(self, step: Step) -> Cut:
        """Cut the transfer of values into frames along blocks of sources."""
        inputs = step.args["given"]
        rows = RowByRow(inputs, self.levels[inputs].given)
        return Cut("ENTER", 1.0, [self._of_blocks(step, "charge")], [rows], rows)

    def leave(self, step: Step) -> Cut:
        """Cut the transfer of values out of frames along blocks of targets."""
        outputs = step.args["made"]
        rows, phi = RowByRow(outputs, self.levels[outputs].made), self._of_blocks(step, "phi")
        return Cut("LEAVE", 1.0, [rows, phi], [phi], rows)

    def _of_blocks(self, step: Step, name: str) -> Touched:
        """Return the values of the boxes of each block."""
        box = step.args["box"].values
        begin = np.concatenate([[0], np.cumsum(np.count_nonzero(box >= 0, axis=1))])
        access = self._boxes(step.args[name], box[box >= 0])
        return replace(access, begin=begin)

    def compress(self, step: Step) -> Cut:
        """Cut products of values and matrices along blocks of sources."""
        inputs, outputs, (first, count) = step.args["given"], step.args["made"], step.args["item"].values.T[:2]
        cuts, lanes = self.levels[inputs], inputs.shape[2]
        rows = Touched.each(inputs, cuts.given, first, count)
        out = Touched.each(outputs, cuts.compressed, first.astype(np.int64) * lanes, count.astype(np.int64) * lanes)
        return Cut("COMPRESS", count * float(step.args["columns"]), [rows], [out], rows)

    def expand(self, step: Step) -> Cut:
        """Cut products of compressed values and matrices along blocks of targets."""
        inputs, outputs, (first, count) = step.args["given"], step.args["made"], step.args["item"].values.T[:2]
        cuts = self.levels[outputs]
        reads = Touched.listed(inputs, cuts.compressed, cuts.begin, cuts.rows)
        rows = Touched.each(outputs, cuts.made, first, count)
        add = step.args["first_column"] > 0
        return Cut("M2L", count * float(step.args["columns"]), [reads, *[rows] * add], [rows], rows)


def _runs(side: LevelSide, sizes: TaskSizes) -> RowBlocks:
    """Return runs of blocks that end where work items do."""
    first = side.item.values[:, 0].astype(np.int64)
    stride = max(sizes.boxes // (TOGETHER * side.blocks.boxes.shape[1]), 1)
    return RowBlocks(np.append(first[::stride], len(side.blocks)))


_HOW: dict[str, Callable[[ChebyshevCuts, Step], Cut]] = {
    "fill": ChebyshevCuts.fill, "charges": ChebyshevCuts.charges, "transfer": ChebyshevCuts.transfer,
    "enter": ChebyshevCuts.enter, "compress": ChebyshevCuts.compress, "expand": ChebyshevCuts.expand,
    "leave": ChebyshevCuts.leave, "potentials": ChebyshevCuts.potentials, "ranges": ChebyshevCuts.ranges,
    "grids": ChebyshevCuts.grids,
    "gather_columns": lambda cuts, step: cuts.particles.load(step),
    "scatter_both": lambda cuts, step: cuts.particles.store(step),
}  # fmt: skip
