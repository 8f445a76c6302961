"""Sums by equivalent sources cut into tasks: the rows that each of their steps reads and writes.

Octets of a level are in runs, target points in parts of equal near work, rows of spectra in runs of octets.

Source: E. Agullo et al., "Task-based FMM for heterogeneous architectures", Inria RR-8513 (2014), section 3.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki.arrays import spread
from parki.engine.steps import Cut, Handle, RowBlocks, RowByRow, Step, Touched
from parki.fmm.particle_tasks import ParticleCuts
from parki.tasks.sizes import PARTS, TaskSizes, divided
from parki.trees.octlists import OctLists
from parki.trees.octree import Octree

Ints = NDArray[np.int64]
Some = list[Touched | RowByRow]


@dataclass(frozen=True, eq=False)
class SurfaceCuts:
    """Cuts of the steps of a sum.

    Attributes
    ----------
    octets : RowBlocks
    particles : ParticleCuts
    points : int
        Points of a surface.
    sizes : TaskSizes
    rooms : dict
        Last division of each room of spectra, by the room's id: other lists of pairs have other rows there.
    """

    octets: RowBlocks
    particles: ParticleCuts
    points: int
    sizes: TaskSizes
    rooms: dict[int, RowBlocks] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: Octree, lists: OctLists, points: int, sizes: TaskSizes) -> "SurfaceCuts":
        """Return the cuts of a tree's sum."""
        nodes = tree.nodes
        runs = [np.arange(first, end, sizes.octets) for first, end in pairwise(nodes.octet_begin)]
        octets = np.unique(np.concatenate([[0], *runs, [len(nodes.octet_parent)]]))
        return cls(RowBlocks(octets), ParticleCuts.of(tree, lists, sizes), points, sizes)

    def steps(self, steps: Iterable[Step]) -> list[Step]:
        """Return steps with their cuts."""
        cut_steps: list[Step] = []
        for step in steps:
            name = step.unit.l0.name
            method = SurfaceCuts.products if "pair" in step.args else _HOW.get(name)
            if method is not None:
                cut_steps.append(replace(step, cut=method(self, step)))
            elif name == "fold":  # first step of a run of octets; the others follow
                cut_steps.append(replace(step, cut=Cut("M2M" if step.phase == "upward" else "L2L", 0.0)))
            else:
                cut_steps.append(replace(step, cut=cut_steps[-1].cut))
        return self._runs(cut_steps)

    def _runs(self, steps: Sequence[Step]) -> list[Step]:
        """Return steps with the rows of runs of octets, which all steps of a run touch together."""
        runs: dict[int, list[Step]] = {}
        for step in steps:
            if step.cut.kind in ("M2M", "L2L"):
                runs.setdefault(id(step.cut), []).append(step)
        cuts = {}
        for key, run in runs.items():
            reads = [t for step in run for t in self._dense(step, step.reads)]
            writes = [t for step in run for t in self._dense(step, step.writes)]
            reads += [t for step in run if step.unit.l0.name != "unfold" for t in self._dense(step, step.writes)]
            cuts[key] = Cut(run[0].cut.kind, float(len(run[0].args["value"])), reads, writes)
        return [replace(step, cut=cuts.get(id(step.cut), step.cut)) for step in steps]

    # Steps ------------------------------------------------------------------------------------------------------------
    def _dense(self, step: Step, arrays: Iterable[Handle]) -> Some:
        """Return the rows of arrays that a step between boxes touches."""
        accesses: Some = []
        for a in arrays:
            if a.whole.role != "state":
                continue
            if "below" in step.args and a is step.args["value"]:
                children = step.args["below"]
                rows = children.of(children.whole.values)
                rows = np.unique(rows[rows >= 0])
            else:
                rows = _first_row(a) + np.arange(len(a))
            accesses.append(Touched.listed(a.whole, self.octets, [0, len(rows)], rows))
        return accesses

    def checks(self, step: Step) -> Cut:
        """Cut the sum over particles at surfaces along octets."""
        item = step.args["item"].values
        value = Touched.each(step.args["value"], self.octets, item[:, 1])
        src, n_sources = self.particles.spans(step, np.append(item[:, 3], item[-1, 4]))
        if step.phase == "upward":
            return Cut("P2M", n_sources, [src, value], [value], value)
        return Cut("P2L", n_sources * self.points, [src, value], [value], value)

    def fields(self, step: Step) -> Cut:
        """Cut the fields of equivalents at targets along targets."""
        item, slot = step.args["item"].values, step.args["slot"].values
        u = Touched.each(step.args["u"], self.particles.targets, item[:, 0], item[:, 1], axis=1)
        count = item[:, 3] - item[:, 2]
        begin = np.concatenate([[0], np.cumsum(count)])
        boxes = step.args["other"].values[spread(item[:, 2], count)]
        value = Touched.listed(step.args["value"], self.octets, begin, slot[boxes] // 8)
        if step.phase == "downward":
            return Cut("L2P", item[:, 1], [value, u], [u], u)
        return Cut("M2P", item[:, 1] * count * float(self.points), [value, u], [u], u)

    def forward(self, step: Step) -> Cut:
        """Cut transforms of equivalents along octets."""
        spectra, octet = step.args["spectra"], step.args["octet"].values
        rows = RowByRow(spectra, self._room(spectra, octet), axis=1)
        inputs = Touched.each(step.args["given"], self.octets, octet)
        return Cut("FFT", 1.0, [inputs], [rows], rows, step.items // len(octet), together=True)

    def products(self, step: Step) -> Cut:
        """Cut products of spectra along frequencies: all octets of a frequency stay near a core with their table."""
        item, octets = step.args["item"].values, step.args["of"].values
        begin = np.append(octets[:, 0], octets[-1, -1])
        work = (begin[item[:, 2]] - begin[item[:, 1]]).astype(float)
        size = self.sizes.products / step.args["table"].shape[1]  # products of components
        runs = divided(work, self.sizes.parts(float(work.sum()), size, PARTS))
        frequencies, rows, values = step.args["made"].shape
        first = item[:, 0].astype(np.int64) * rows + step.args["rows"].values[item[:, 1]]
        bounds = np.append(first[runs[:-1]], frequencies * rows)
        outputs = step.args["made"].reshape(frequencies * rows, values)
        outputs = Touched.each(outputs, RowBlocks(bounds), first)
        block = RowBlocks(np.array([0, len(step.args["given"])]))
        inputs = Touched.each(step.args["given"], block, np.zeros(len(item)))
        return Cut("M2L", work, [inputs], [outputs], outputs, together=True)

    def backward(self, step: Step) -> Cut:
        """Cut transforms to check values along octets."""
        spectra, octet = step.args["spectra"], step.args["octet"].values
        rows = RowByRow(spectra, self._room(spectra, octet), axis=1)
        check = Touched.each(step.args["made"], self.octets, octet)
        return Cut("IFFT", 1.0, [rows, check], [check], rows, step.items // len(octet), together=True)

    def _room(self, room: Handle, octet: NDArray[Any]) -> RowBlocks:
        """Return the blocks of the octets of a room of spectra, the same object while they do not change."""
        bounds, last = np.unique(np.searchsorted(octet, self.octets.bounds)), self.rooms.get(id(room.whole))
        if last is None or not np.array_equal(last.bounds, bounds):
            last = self.rooms[id(room.whole)] = RowBlocks(bounds)
        return last

    def fill(self, step: Step) -> Cut:
        """Cut the clearing of an array: octets along their runs, sums not at all."""
        out, array = step.args["out"], step.args["out"].whole
        is_part = out.nbytes < array.nbytes
        if array.ndim == 3:
            width, (begin, end) = _row_bytes(array), out.extent
            if begin % width == end % width == 0:
                rows = RowByRow(array, self.octets, begin // width)
                return Cut("FILL", 1.0, [rows] * is_part, [rows], rows, width // out.dtype.itemsize)
            low, high = np.array([begin // width]), np.array([-(-end // width)])
            access = Touched(array, self.octets, low, high, np.array([0, 1]))
            return Cut("FILL", float(step.items), [access] * is_part, [access])
        return self.particles.fill(step)


def _first_row(a: Handle) -> int:
    """Return the first row of a part, along the first axis of the whole array."""
    return a.extent[0] // _row_bytes(a.whole)


def _row_bytes(array: Handle) -> int:
    return array.nbytes // len(array)


_HOW: dict[str, Callable[[SurfaceCuts, Step], Cut]] = {
    "check_values": SurfaceCuts.checks, "fields": SurfaceCuts.fields,
    "ranges": lambda cuts, step: cuts.particles.near(step),
    "forward": SurfaceCuts.forward, "backward": SurfaceCuts.backward, "fill": SurfaceCuts.fill,
    "gather_columns": lambda cuts, step: cuts.particles.load(step),
    "scatter_both": lambda cuts, step: cuts.particles.store(step),
}  # fmt: skip
