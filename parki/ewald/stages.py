"""All stages of an Ewald sum over fixed points: the sorted points, the packed sources, the near and the far field."""

import contextlib
import math
from collections.abc import Iterator

import numpy as np

from parki import cells, engine, scaling
from parki.arrays import Array, module_of, to_host
from parki.cells import CellGrid, CellList
from parki.engine import RangePolicy
from parki.engine.runtime import devices, graphs
from parki.engine.spaces import Space
from parki.ewald import far, geometry, green
from parki.ewald.far import FarField, gather_kernel
from parki.ewald.geometry import Geometry
from parki.ewald.near import NearField, near_kernel
from parki.ewald.options import EwaldOptions
from parki.ewald.params import Parameters
from parki.ewald.report import WallTime
from parki.ewald.spread import spread_kernel
from parki.ewald.variants import Variants
from parki.scaling import Powers

SOME = 512  # points whose vectors are turned at once


def workunits(p: Parameters, space: Space, v: Variants, rhs: int = 1, whole: bool = False) -> list[engine.Workunit]:
    """All workunits of a sum of so many right-hand sides, for compiling ahead; `whole` transforms all modes."""
    found = [near_kernel(p, v, rhs, p.skew is not None), *far.workunits(p, space, v, rhs, whole)]
    found += [_pack_kernel(p, n) for n in {rhs * p.kernel.strengths, rhs * (p.kernel.strengths + _directions(p))}]
    return [*found, _sum_kernel(p, v), *cells.workunits(p.dtype, space)]


def threads(p: Parameters, space: Space, v: Variants, rhs: int = 1) -> dict[engine.Workunit, int]:
    """Threads of a block on a GPU, of those workunits that are launched with others than the default."""
    lanes = v.lanes if v.p2p.endswith("2D") else 1
    return {
        near_kernel(p, v, rhs, p.skew is not None): v.targets * lanes,
        spread_kernel(p, v, rhs): v.p2g_threads,
        gather_kernel(p, v, space, rhs): v.g2p_threads,
    }


class Points:
    """The points of a sum, in ``[0, box)``, in the order of their cells.

    Attributes
    ----------
    targets, sources : CellList
        For the near field; one list if they are the same points.
    spreading : CellList
        The sources for P2G: the same list, or in a triclinic cell one in lattice coordinates.
    gather : array (3, Nt)
        What G2P reads: the sorted targets, in a triclinic cell in lattice coordinates; for BASE the caller's order.
    base : array (3, Ns), optional
        The sources in the caller's order, for P2G by BASE.

    All arrays stay where they are when the points move.
    """

    def __init__(self, p: Parameters, trg: Array, src: Array, space: Space, v: Variants) -> None:
        per_batch = cells.PER_BATCH if space.kind == "host" else v.targets
        grid = CellGrid.for_points(p.box, src.shape[1], p.rc, per_batch, p.periodicity)
        self.p, self.same, self.g2p = p, trg is src, v.g2p
        self.sources = CellList(src, grid, space)
        self.spreading = self.sources if p.skew is None else CellList(geometry.lattice(p, src), grid, space)
        self.targets = self.sources if self.same else CellList(trg, grid, space)
        sorts = self.g2p != "BASE" and p.skew is None
        self.gather = self.targets.points if sorts else self._gathered(trg).copy()
        self.base = geometry.lattice(p, src).copy() if v.p2g == "BASE" else None

    def _gathered(self, trg: Array) -> Array:
        return geometry.lattice(self.p, trg if self.g2p == "BASE" else self.targets.points)

    def move(self, trg: Array | None = None, src: Array | None = None) -> None:
        """Sort as many other targets, or sources, or both; where they are the same points one is both."""
        if self.same:
            trg = src = trg if src is None else src
        if src is not None:
            self.sources.move(src)
            if self.spreading is not self.sources:
                self.spreading.move(geometry.lattice(self.p, src))
            if self.base is not None:
                self.base[...] = geometry.lattice(self.p, src)
        if trg is not None:
            if not self.same:
                self.targets.move(trg)
            if self.gather is not self.targets.points:
                self.gather[...] = self._gathered(trg)

    def originals(self) -> tuple[Array, Array]:
        """Targets and sources in the caller's order, one array if they are the same; exactly as they were sorted."""
        src = _original(self.sources)
        return src if self.same else _original(self.targets), src

    @property
    def arrays(self) -> list[Array]:
        """All arrays."""
        lists = (self.targets, self.sources, self.spreading)
        found = [a for c in lists for a in (c.order, c.begin, c.points, *c.held)]
        return [*found, self.gather, *([] if self.base is None else [self.base])]


def _original(found: CellList) -> Array:
    x = module_of(found.points).empty(found.points.shape, found.points.dtype)
    x[:, found.order] = found.points
    return x


class Stages:
    """Prepared launches over sorted points, for `rhs` right-hand sides at once."""

    def __init__(
        self, p: Parameters, v: Variants, points: Points, options: EwaldOptions | None = None, rhs: int = 1,
        place: Geometry | None = None,
    ) -> None:  # fmt: skip
        sources, self.p, self.points, self.space, self.rhs = points.sources, p, points, points.sources.space, rhs
        self.place = place or Geometry(p.box, p.periodicity)
        xp, self.packs = module_of(sources.points), []
        self.strengths = xp.empty((rhs, p.kernel.strengths, sources.n), p.dtype)
        for i, value in enumerate(p.kernel.parameters, p.kernel.given):
            self.strengths[:, i] = value
        # In a triclinic cell sources spread in other coordinates, where vectors have other components.
        self.directed = self.strengths
        if _directions(p):
            self.directed = xp.empty((rhs, p.kernel.strengths + _directions(p), sources.n), p.dtype)
        packed = spreading = self._packed(sources.points, sources.order, self.strengths)
        if points.base is not None:
            everyone = xp.arange(sources.n, dtype=np.int32)
            spreading = self._packed(points.base, everyone, self.directed)
        elif p.skew is not None:
            spreading = self._packed(points.spreading.points, points.spreading.order, self.directed)
        self.near = NearField(p, points.targets, sources, packed, v, rhs, p.skew)
        self.far = FarField(p, points.spreading, spreading, points.targets, points.gather, v, options, rhs)
        self.side = devices.Side() if self.space.kind == "device" and self.space.engine == "parki" else None
        self.replay = graphs.Replay() if options is not None and options.graph else None
        self.factors = xp.asarray(np.tile(green.constants(p, self.place.power), rhs))
        self.back = xp.empty((rhs * p.kernel.result, 2), p.dtype)
        self.constant = xp.zeros(rhs * p.kernel.result, p.dtype)
        rows = options is not None and options.layout == "nd"
        self.sums = [self._sum(r, _sum_kernel(p, v), rows) for r in range(rhs)]

    def _packed(self, points: Array, order: Array, strengths: Array) -> Array:
        """Sources as rows (x, y, z, strengths of each right-hand side), which `pack` fills."""
        flat = strengths.reshape(-1, strengths.shape[-1])
        rows = module_of(points).empty((flat.shape[1], 3 + len(flat)), self.p.dtype)
        kernel, policy = _pack_kernel(self.p, len(flat)), RangePolicy(self.space, flat.shape[1])
        self.packs.append(engine.prepare(policy, kernel, x=points, strength=flat, order=order, out=rows))
        return rows

    def _sum(self, r: int, kernel: engine.Workunit, rows: bool) -> engine.Prepared:
        """The launch that adds up the fields of a right-hand side; `unsort` gives it the array to write to."""
        targets, count = self.points.targets, self.p.kernel.result
        xp, at = module_of(targets.points), slice(r * count, (r + 1) * count)
        fields = {"a": self.near.result[at], "b": self.far.gather.result[at], "constant": self.constant[at]}
        fields["factor"] = self.back[at]
        out = xp.empty((targets.n, count), self.p.dtype).T if rows else xp.empty((count, targets.n), self.p.dtype)
        policy = RangePolicy(self.space, targets.n)
        made = engine.prepare(policy, kernel, order=targets.order, out=out, components=count, **fields)
        made.release("out")
        return made

    def pack(self, dens: Array, normals: Array | None) -> None:
        """Take densities ``(rhs, components, N)`` and normals ``(3, N)`` in the caller's order; pack the sources."""
        kernel, given, numbers = self.p.kernel, self.p.kernel.given, self.p.kernel.strengths
        powers = Powers.of(kernel.law, self.place.power, dens, normals, kernel.result)
        self.back[...] = module_of(self.back).asarray(
            scaling.pairs_of_factors(tuple(powers.result.ravel().tolist()), self.p.dtype)
        )
        for r, strengths in enumerate(self.strengths):
            self._take(strengths[: kernel.dens], dens[r], powers.dens[r])
            if normals is not None:
                self._take(strengths[kernel.dens : given], normals, np.full(3, powers.normals))
            if self.directed is not self.strengths:
                self.directed[r, :numbers] = strengths
                for start in (0, 3):  # q, then n
                    into, vectors = self.directed[r, numbers + start :][:3], strengths[given - 6 + start :][:3]
                    for at in self._parts(vectors):
                        into[:, at] = geometry.directions(self.p, vectors[:, at])
        for launch in self.packs:
            launch.run()

    def _take(self, into: Array, given: Array, powers: scaling.Ints) -> None:
        """Copy numbers, or vectors in the caller's axes, each component times 2 to its power."""
        if len(into) == 1 or self.place.frame is None:
            scaling.put(into, given, powers)
            return
        for at in self._parts(into):
            into[:, at] = self.place.vectors(scaling.multiplied(given[:, at], powers))

    def _parts(self, a: Array) -> Iterator[slice]:
        """All points: on a host some at a time, so that intermediate results stay small."""
        step = SOME if self.space.kind == "host" else max(a.shape[-1], 1)
        return (slice(first, first + step) for first in range(0, a.shape[-1], step))

    def wrapped(self, reach: float) -> None:
        """Take how far points were before they were wrapped into the box."""
        if self.near.wrapped(reach) and self.replay is not None:
            self.replay = graphs.Replay()

    def fields(self, times: WallTime) -> None:
        """The near and the far field of the packed sources, at the sorted targets.

        On a GPU one beside the other: pairs are arithmetic, spreading and transforms are traffic.  With `graph` both
        are one graph, in which all arrays are those of the stages.  Not so where each phase is timed by itself.
        """
        if self.replay is None or times.apart:
            self._both_fields(times)
        else:
            self.replay.run(lambda: self._both_fields(times))

    def _both_fields(self, times: WallTime) -> None:
        side = None if self.side is None or times.apart else self.side
        with times.phase("p2p", "kernel"), contextlib.nullcontext() if side is None else side.work():
            self.near.run()
        try:
            self._far_field(times)
        finally:
            if side is not None:
                side.join()

    def _far_field(self, times: WallTime) -> None:
        far = self.far
        with times.phase("p2g", "kernel"):
            far.scatter()
        far.transform(times)
        with times.phase("g2p", "kernel"):
            far.gather.run()

    def unsort(self, out: Array) -> None:
        """Add near field, far field and constants ``(rhs, components, Nt)``, in the caller's order and units.

        In memory `out` is C-ordered, or with rows ``layout="nd"`` that of ``(rhs, Nt, components)``.
        """
        if self.p.kernel.mean:
            self.constant[...] = self.factors * self._net().reshape(-1)
        for launch, u in zip(self.sums, out, strict=True):
            launch.set(out=u)
            launch.run()
            launch.release("out")
            if self.place.frame is not None and len(u) > 1:
                for at in self._parts(u):
                    u[:, at] = self.place.back(u[:, at], len(u))

    def _net(self) -> Array:
        """The net density of each right-hand side; without rounding where it counts so much more than single ones."""
        rows = self.strengths[:, : self.p.kernel.result]
        if self.p.kernel.spectrum.screened and self.p.periodicity == 3:
            return module_of(rows).asarray([math.fsum(row) for row in to_host(rows[:, 0]).tolist()])
        return rows.sum(axis=2, dtype=np.float64)

    def run(
        self, dens: Array, normals: Array | None, out: Array, times: WallTime, sorting: WallTime | None = None
    ) -> None:
        """The whole sum: `pack`, `fields` and `unsort`, of which first and last count for `sorting` if it is given."""
        around = times if sorting is None else sorting
        with around.phase("p2p", "sort"):
            self.pack(dens, normals)
        self.fields(times)
        with around.phase("g2p", "sort"):
            self.unsort(out)

    @property
    def arrays(self) -> list[Array]:
        """All arrays that it holds, those of its points among them."""
        launches = [*self.packs, *self.sums, self.near.launch, *self.far.launches]
        own = [
            self.strengths,
            self.directed,
            self.factors,
            self.constant,
            self.back,
            self.far.grid,
            self.far.parts.buffers,
        ]
        return [*own, *(a for launch in launches for a in launch.arrays)]


def _directions(p: Parameters) -> int:
    """Numbers of a source that say in lattice coordinates where q and n of a double layer point."""
    return 6 if p.skew is not None and p.kernel.slopes else 0


def _pack_kernel(p: Parameters, numbers: int) -> engine.Workunit:
    return engine.kernel("cells", "gather_sources", real=p.dtype, NB=numbers)


def _sum_kernel(p: Parameters, v: Variants) -> engine.Workunit:
    slots = {"FAR_SORTED": False} if v.g2p == "BASE" else {}
    return engine.kernel("cells", "scatter_sum", real=p.dtype, far=p.far, **slots)
