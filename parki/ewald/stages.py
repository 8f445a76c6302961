"""All stages of an Ewald sum over fixed points: the sorted points, the packed sources, the near and the far field."""

from dataclasses import dataclass

import numpy as np

from parki import cells, engine
from parki.arrays import Array, module_of
from parki.cells import CellGrid, CellList
from parki.engine import RangePolicy
from parki.engine.spaces import Space
from parki.ewald import far, geometry, green
from parki.ewald.far import FarField, gather_kernel
from parki.ewald.near import NearField, near_kernel
from parki.ewald.options import EwaldOptions
from parki.ewald.params import Parameters
from parki.ewald.spread import spread_kernel
from parki.ewald.variants import Variants


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


@dataclass(frozen=True)
class Points:
    """The points of a sum in the order of their cells.

    Attributes
    ----------
    targets, sources : CellList
        For the near field; one list if they are the same points.
    spreading : CellList
        The sources for P2G: the same list, or in a triclinic cell one in lattice coordinates.
    trg, src : array (3, N)
        In the caller's order; only the BASE variants read them, in each sum.
    """

    targets: CellList
    sources: CellList
    spreading: CellList
    trg: Array
    src: Array


def sort(p: Parameters, trg: Array, src: Array, space: Space, v: Variants) -> Points:
    """Cell lists of targets and sources, one if these are the same array; points in ``[0, box)``."""
    per_batch = cells.PER_BATCH if space.kind == "host" else v.targets
    grid = CellGrid.for_points(p.box, src.shape[1], p.rc, per_batch, p.periodicity)
    sources = CellList(src, grid, space)
    spreading = sources if p.skew is None else CellList(geometry.lattice(p, src), grid, space)
    return Points(sources if trg is src else CellList(trg, grid, space), sources, spreading, trg, src)


class Stages:
    """Prepared launches over sorted points, for `rhs` right-hand sides at once."""

    def __init__(
        self, p: Parameters, v: Variants, points: Points, options: EwaldOptions | None = None, rhs: int = 1
    ) -> None:
        sources, self.p, self.points, self.space, self.rhs = points.sources, p, points, points.sources.space, rhs
        xp, self.packs = module_of(sources.points), []
        self.strengths = xp.empty((rhs, p.kernel.strengths, sources.n), p.dtype)
        for i, value in enumerate(p.kernel.parameters, p.kernel.given):
            self.strengths[:, i] = value
        # In a triclinic cell sources spread in other coordinates, where vectors have other components.
        self.directed = self.strengths
        if _directions(p):
            self.directed = xp.empty((rhs, p.kernel.strengths + _directions(p), sources.n), p.dtype)
        packed = spreading = self._packed(sources.points, sources.order, self.strengths)
        targets = points.targets.points if v.g2p != "BASE" else points.trg.copy()
        if v.p2g == "BASE":
            everyone = xp.arange(sources.n, dtype=np.int32)
            spreading = self._packed(geometry.lattice(p, points.src).copy(), everyone, self.directed)
        elif p.skew is not None:
            spreading = self._packed(points.spreading.points, points.spreading.order, self.directed)
        self.near = NearField(p, points.targets, sources, packed, v, rhs, p.skew)
        self.far = FarField(p, points.spreading, spreading, geometry.lattice(p, targets), v, options, rhs)
        self.constants, self.sum = np.tile(green.constants(p), rhs), _sum_kernel(p, v)

    def _packed(self, points: Array, order: Array, strengths: Array) -> Array:
        """Sources as rows (x, y, z, strengths of each right-hand side), which `pack` fills."""
        flat = strengths.reshape(-1, strengths.shape[-1])
        rows = module_of(points).empty((flat.shape[1], 3 + len(flat)), self.p.dtype)
        kernel, policy = _pack_kernel(self.p, len(flat)), RangePolicy(self.space, flat.shape[1])
        self.packs.append(engine.prepare(policy, kernel, x=points, strength=flat, order=order, out=rows))
        return rows

    def pack(self, dens: Array, normals: Array | None) -> None:
        """Take densities ``(rhs, components, N)`` and normals ``(3, N)`` in the caller's order; pack the sources."""
        kernel, given, numbers = self.p.kernel, self.p.kernel.given, self.p.kernel.strengths
        self.strengths[:, : kernel.dens] = dens
        if normals is not None:
            self.strengths[:, kernel.dens : given] = normals
        if self.directed is not self.strengths:
            self.directed[:, :numbers] = self.strengths
            for r, start in np.ndindex(self.rhs, 2):  # q, then n
                vectors = self.strengths[r, given - 6 + 3 * start : given - 3 + 3 * start]
                self.directed[r, numbers + 3 * start :][:3] = geometry.directions(self.p, vectors)
        for launch in self.packs:
            launch.run()

    def unsort(self, out: Array) -> None:
        """Near plus far field in the caller's order, ``(rhs * components, Nt)``, and the constants of their mean."""
        targets, net = self.points.targets, self.strengths[:, : self.p.kernel.result].sum(axis=2, dtype=np.float64)
        constant = module_of(out).zeros(len(out), self.p.dtype)
        if self.p.kernel.mean:
            constant[...] = module_of(out).asarray(self.constants) * net.ravel()
        policy = RangePolicy(self.space, targets.n)
        fields = {"a": self.near.result, "b": self.far.gather.result, "constant": constant}
        engine.parallel_for(policy, self.sum, order=targets.order, out=out, components=len(out), **fields)


def _directions(p: Parameters) -> int:
    """Numbers of a source that say in lattice coordinates where q and n of a double layer point."""
    return 6 if p.skew is not None and p.kernel.slopes else 0


def _pack_kernel(p: Parameters, numbers: int) -> engine.Workunit:
    return engine.kernel("cells", "gather_sources", real=p.dtype, NB=numbers)


def _sum_kernel(p: Parameters, v: Variants) -> engine.Workunit:
    slots = {"FAR_SORTED": False} if v.g2p == "BASE" else {}
    return engine.kernel("cells", "scatter_sum", real=p.dtype, **slots)
