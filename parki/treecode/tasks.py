"""Treecode sums cut into tasks: the rows that each of their steps reads and writes.

Target points are in parts of equal work, clusters of a level, or of a number of proxy points, in runs of equal work.

Source: E. Agullo et al., "Task-based FMM for heterogeneous architectures", Inria RR-8513 (2014), section 3.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parki.engine.steps import Cut, Handle, RowBlocks, RowByRow, Step, Touched, constant
from parki.tasks.sizes import PARTS, TaskSizes, cumulated, divided
from parki.treecode.downward import Potentials
from parki.treecode.interactions import InteractionLists, Interactions
from parki.treecode.structure import TreecodeStructure

FEWEST = 256  # sources of a task that gathers them, at least
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TreecodeCuts:
    """Cuts of the steps of a sum.

    Attributes
    ----------
    sources, targets : RowBlocks
        Rows of sources, followed by crowds in a block of their own, and of target points.
    charges : dict of RowBlocks
        Rows of clusters with proxy charges, by the number of values of a cluster.
    potentials : RowBlocks
        Rows of proxy potentials.
    sums : Potentials
    """

    sources: RowBlocks
    targets: RowBlocks
    charges: dict[int, RowBlocks]
    potentials: RowBlocks
    sums: Potentials

    @classmethod
    def of(cls, s: TreecodeStructure, sums: Potentials, sizes: TaskSizes) -> "TreecodeCuts":
        """Return the cuts of a sum with these potentials."""
        n = s.source.n
        parts = max(min(PARTS * sizes.threads, n // FEWEST), 1)
        rows = np.unique([*(np.arange(parts + 1) * n // parts).tolist(), n + len(s.lists.lumps)])
        return cls(RowBlocks(rows), _targets(s, sizes), _charges(s, sizes), _potentials(s, sums, sizes), sums)

    def steps(self, steps: Iterable[Step]) -> list[Step]:
        """Return steps with their cuts; steps on several components of potentials are split by component."""
        cut_steps: list[Step] = []
        for step in steps:
            name = step.unit.l0.name
            if name == "crowd_rows":  # one task with the sums before it
                cut_steps.append(replace(step, cut=cut_steps[-1].cut))
            elif name == "charges":
                cut_steps.append(self._by_node(step))
            else:
                parts = self._components(step) if name in ("fill", "add") else [step]
                cut_steps += [replace(part, cut=_HOW[name](self, part)) for part in parts]
        return cut_steps

    # Sources and proxy charges ----------------------------------------------------------------------------------------
    def rows(self, step: Step) -> Cut:
        """Cut the making of rows of sources along the rows."""
        rows = RowByRow(step.args["src"], self.sources)
        return Cut("GATHER", 1.0, (), [rows], rows)

    def crowds(self, step: Step) -> Cut:
        """Return the sums of all crowds, and their rows, as one task."""
        low, high = (step.args["piece"].values[:, k].astype(np.int64) for k in (0, 1))
        bounds, src = self.sources.bounds[-2:], step.args["src"]
        inputs = Touched(src, self.sources, low, high, np.array([0, len(low)]))
        row = Touched(src, self.sources, bounds[:1], bounds[1:], np.array([0, 1]))
        return Cut("GATHER", float((high - low).sum()), [inputs], [row])

    def _by_node(self, step: Step) -> Step:
        """Return the interpolation of particles to charges in the order of nodes, cut along the nodes."""
        leaf = step.args["leaf"].values
        leaf = np.ascontiguousarray(leaf[np.argsort(leaf[:, 0], kind="stable")])
        charge = step.args["charge"]
        outputs = Touched.each(charge, self.charges[charge.shape[1]], leaf[:, 0])
        src = Touched(step.args["src"], self.sources, leaf[:, 1].astype(np.int64), leaf[:, 2].astype(np.int64))
        work = (leaf[:, 2] - leaf[:, 1]) * float(charge.shape[1])
        cut = Cut("P2M", work, [src, outputs], [outputs], outputs)
        return replace(step, args={**step.args, "leaf": constant(step.args["leaf"].name, leaf)}, cut=cut)

    def transfer(self, step: Step) -> Cut:
        """Cut the interpolation between clusters along the clusters that receive values."""
        item, m, n = step.args["item"].values.astype(np.int64), step.args["m"], step.args["n"]
        is_upward = step.phase == "upward"
        outputs_of, inputs_of = (
            self._clusters(step.args[name], 1 if is_upward else k**3) for name, k in (("made", n), ("given", m))
        )
        outputs, inputs = outputs_of(item[:, 0], 1), inputs_of(item[:, 1], item[:, 2] - item[:, 1])
        work = (item[:, 2] - item[:, 1]) * float(_transfer(m, n))
        return Cut("M2M" if is_upward else "L2L", work, [inputs, outputs], [outputs], outputs)

    def _clusters(self, a: Handle, n_rows: int) -> Callable[[Ints, ArrayLike], Touched]:
        """Return the function from clusters of an array, with `n_rows` rows per cluster, to their rows."""
        array, division, axis = a.whole, *self._division(a.whole)
        first = a.extent[0] // (a.dtype.itemsize * (1 if axis else array.shape[1]))
        return lambda node, count: Touched.each(array, division, first + node * n_rows, count * n_rows, axis)

    # Sums over lists --------------------------------------------------------------------------------------------------
    def ranges(self, step: Step) -> Cut:
        """Cut the sum over particles along targets."""
        item, span = step.args["item"].values.astype(np.int64), step.args["span"].values.astype(np.int64)
        outputs = self._sums(step.args["u"], item)
        begin = np.append(item[:, 4], item[-1, 5])
        src = Touched(step.args["src"], self.sources, span[:, 0], span[:, 1], begin)
        work = item[:, 2] * _met(item, span[:, 1] - span[:, 0])
        return Cut("P2P" if step.phase == "pp" else "P2L", work, [src, outputs], [outputs], outputs)

    def grids(self, step: Step) -> Cut:
        """Cut the sum over proxy points along targets."""
        item, charge = step.args["item"].values.astype(np.int64), step.args["charge"]
        outputs = self._sums(step.args["u"], item)
        inputs = self._listed(charge, outputs, item, step.args["other"].values)
        work = item[:, 2] * (item[:, 5] - item[:, 4]) * float(charge.shape[1])
        return Cut("M2P" if step.phase == "pc" else "M2L", work, [inputs, outputs], [outputs], outputs)

    def _sums(self, u: Handle, item: Ints) -> Touched:
        """Return the rows of sums, at targets or at proxy points, that items add to."""
        return Touched.each(u, self._division(u)[0], item[:, 1], item[:, 2], 1)

    def _listed(self, charge: Handle, outputs: Touched, item: Ints, row: NDArray[np.integer]) -> Touched:
        """Return the blocks of charges that the items of each task meet, listed with the task's first item."""
        division = self.charges[charge.shape[1]]
        starts = np.flatnonzero(np.diff(outputs.division.block(outputs.low), prepend=-1))
        task = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(item))))
        incidence = np.zeros((len(starts), len(division)), bool)  # sorting all pairs would take longer
        block = np.repeat(np.arange(len(division)), np.diff(division.bounds))
        incidence[np.repeat(task, item[:, 5] - item[:, 4]), block[row[item[0, 4] : item[-1, 5]]]] = True
        owner, column = np.nonzero(incidence)
        begin = np.searchsorted(starts[owner], np.arange(len(item) + 1))
        return Touched.listed(charge, division, begin, division.bounds[column])

    # Potentials and sums at targets -----------------------------------------------------------------------------------
    def particles(self, step: Step) -> Cut:
        """Cut the interpolation of potentials at particles along the particles."""
        leaf, phi = step.args["leaf"].values.astype(np.int64), step.args["phi"]
        first, end = (a // phi.dtype.itemsize for a in phi[0].extent)
        n_rows = (end - first) // len(step.args["box"])
        u = Touched.each(step.args["u"], self.targets, leaf[:, 1], leaf[:, 2] - leaf[:, 1], 1)
        inputs = Touched.each(phi.whole, self.potentials, first + leaf[:, 0] * n_rows, n_rows, 1)
        return Cut("L2P", (leaf[:, 2] - leaf[:, 1]) * float(n_rows), [inputs, u], [u], u)

    def scatter(self, step: Step) -> Cut:
        """Cut the transfer of sums into the caller's order along targets."""
        rows = RowByRow(step.args["a"], self.targets, axis=1)
        return Cut("SCATTER", 1.0, [rows], (), rows)

    # Whole arrays -----------------------------------------------------------------------------------------------------
    def fill(self, step: Step) -> Cut:
        """Cut the clearing of an array along its rows."""
        rows, is_complete = self._rows(step, "out")
        return self._along("FILL", step, [] if is_complete else [rows], rows)

    def add(self, step: Step) -> Cut:
        """Cut the addition of far sums to near ones along their rows."""
        rows, _ = self._rows(step, "out")
        return self._along("ADD", step, [self._rows(step, "a")[0], rows], rows)

    def copy(self, step: Step) -> Cut:
        """Cut the copy of charges in another precision along clusters."""
        rows, is_complete = self._rows(step, "out")
        inputs = self._rows(step, "a")[0]
        return self._along("GATHER", step, [inputs] if is_complete else [inputs, rows], rows)

    def _along(self, kind: str, step: Step, reads: Sequence[Touched | RowByRow], rows: Touched | RowByRow) -> Cut:
        if isinstance(rows, Touched):
            return Cut(kind, float(step.items), reads, [rows])
        width = 1 if rows.axis else rows.array.shape[1]
        return Cut(kind, float(width), reads, [rows], rows, width)

    def _rows(self, step: Step, name: str) -> tuple[Touched | RowByRow, bool]:
        """Return the rows of a step on a part of an array, and whether the step touches every row completely."""
        a = step.args[name]
        array, division, axis = a.whole, *self._division(a.whole)
        begin, end = (byte // a.dtype.itemsize for byte in a.extent)
        if axis:
            return RowByRow(array, division, begin % array.shape[1], 1), len(array) == 1 and a.size == array.size
        width = array.shape[1]
        if begin % width == end % width == 0:
            return RowByRow(array, division, begin // width), a.size == array.size
        low, high = np.array([begin // width]), np.array([-(-end // width)])
        return Touched(array, division, low, high, np.array([0, 1])), False

    def _components(self, step: Step) -> list[Step]:
        """Return a step on entries of all components of potentials as one step per component."""
        out = step.args["out"]
        n, first = out.whole.shape[1], out.extent[0] // out.dtype.itemsize
        if not self._division(out.whole)[1]:
            return [step]
        inner = np.arange(first // n + 1, -(-(first + step.items) // n)) * n - first
        steps = []
        for low, high in pairwise([0, *inner.tolist(), step.items]):
            parts = {k: a.view(low * a.dtype.itemsize, (high - low,), a.dtype) for k, a in step.handles.items()}
            steps.append(replace(step, items=high - low, args={**step.args, **parts}))
        return steps

    def _division(self, array: Handle) -> tuple[RowBlocks, int]:
        """Return the blocks of an array, and the axis of its rows."""
        if array in (self.sums.u, self.sums.far_u):
            return self.targets, 1
        if array in (self.sums.near, self.sums.far):
            return self.potentials, 1
        return self.charges[array.shape[1]], 0


def _targets(s: TreecodeStructure, sizes: TaskSizes) -> RowBlocks:
    """Return the parts of targets, whole leaves, with about equal numbers of pairs."""
    nodes, n = s.targets.nodes, s.target.nodes
    work = nodes.count * float(s.kernels.points**3 if s.down else 1)
    for entries, size in _lists(s.lists, "pp", "pc"):
        work += np.bincount(entries.items[:, 0], entries.items[:, 2] * _met(entries.items, size), n)
    leaves = nodes.leaves
    bounds = _runs(work[leaves], [0, len(leaves)], sizes)
    return RowBlocks(np.append(nodes.begin[leaves][bounds[:-1]], s.target.n).astype(np.int64))


def _charges(s: TreecodeStructure, sizes: TaskSizes) -> dict[int, RowBlocks]:
    """Return the runs of clusters with charges: of a level, or of a number of points."""
    if not s.up:
        return {}
    m_max, nodes = s.kernels.points, s.sources.nodes
    work = np.where(nodes.is_leaf, nodes.count * float(m_max**3), nodes.n_children * float(_transfer(m_max, m_max)))
    runs = {m_max: _runs(work, nodes.level_begin, sizes)}
    for m, members in s.up.items():
        if m != m_max:
            runs[m] = _runs(np.full(len(members), float(_transfer(m_max, m))), [0, len(members)], sizes)
    return {m**3 * s.kernels.charges: RowBlocks(bounds) for m, bounds in runs.items()}


def _potentials(s: TreecodeStructure, sums: Potentials, sizes: TaskSizes) -> RowBlocks:
    """Return the runs of potentials of clusters of a number of points, and of a level."""
    if not s.down:
        return RowBlocks(np.zeros(1, np.int64))
    m_max, level_begin = s.kernels.points, s.targets.nodes.level_begin
    rows = {m: np.arange(place.start, place.stop, m**3) for m, place in sums.place.items()}
    first = np.concatenate(list(rows.values()))
    work = np.concatenate([np.full(len(starts), float(_transfer(m, m_max))) for m, starts in rows.items()])
    for entries, size in _lists(s.lists, "cp", "cc"):
        item = sums.items(entries)
        index = np.searchsorted(first, item[:, 1])
        work += np.bincount(index, item[:, 2] * _met(item, size), len(first))
    groups = [0]
    for m, starts in rows.items():
        groups += (groups[-1] + (level_begin[1:] if m == m_max else np.array([len(starts)]))).tolist()
    bounds = _runs(work, groups, sizes)
    return RowBlocks(np.append(first, sums.near.shape[1])[bounds])


def _lists(lists: Interactions, particles: str, proxies: str) -> Iterator[tuple[InteractionLists, Floats]]:
    """Yield the lists of source particles and of proxy points, and the numbers of points of each of their sources."""
    ranges = getattr(lists, particles)
    if len(ranges.items):
        yield ranges, (ranges.sources[:, 1] - ranges.sources[:, 0]).astype(float)
    for m, grids in getattr(lists, proxies).items():
        if len(grids.items):
            yield grids, np.full(len(grids.sources), float(m**3))


def _met(item: NDArray[np.integer], size: NDArray[np.floating | np.integer]) -> Floats:
    """Return the number of source points of each item, from the numbers of its sources."""
    return cumulated(size, np.append(item[:, 4], item[-1:, 5]))


def _runs(work: Floats, groups: Sequence[int] | NDArray[np.integer], sizes: TaskSizes) -> Ints:
    """Return the bounds of runs of entries of about equal work, which end where groups do."""
    share = max(float(work.sum()) / sizes.parts(float(work.sum()), sizes.pairs, PARTS), 1.0)
    bounds = [np.zeros(1, np.int64)]
    for begin, end in pairwise(np.asarray(groups).tolist()):
        if end > begin:
            portion = work[begin:end]
            bounds.append(begin + divided(portion, max(math.ceil(float(portion.sum()) / share), 1))[1:])
    return np.concatenate(bounds)


def _transfer(m: int, n: int) -> int:
    """Return the products of an interpolation from m to n points per direction."""
    return n * m * (m * m + m * n + n * n)


_HOW: dict[str, Callable[[TreecodeCuts, Step], Cut]] = {
    "source_rows": TreecodeCuts.rows, "crowd_sums": TreecodeCuts.crowds, "transfer": TreecodeCuts.transfer,
    "ranges": TreecodeCuts.ranges, "grids": TreecodeCuts.grids, "potentials": TreecodeCuts.particles,
    "scatter": TreecodeCuts.scatter, "fill": TreecodeCuts.fill, "add": TreecodeCuts.add, "copy": TreecodeCuts.copy,
}  # fmt: skip
