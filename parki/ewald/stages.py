"""All stages of an Ewald sum over fixed points: the sorted points, the packed sources, the near and the far field."""

import numpy as np

from parki import cells, engine
from parki.arrays import Array, module_of
from parki.cells import CellGrid, CellList
from parki.engine import RangePolicy
from parki.engine.spaces import Space
from parki.ewald import multipliers
from parki.ewald.components import RESULT, SPREAD, STRENGTHS
from parki.ewald.far import FarField, convolve_kernel, gather_kernel
from parki.ewald.near import NearField, near_kernel
from parki.ewald.params import Parameters
from parki.ewald.spread import spread_kernel
from parki.ewald.variants import Variants


def workunits(p: Parameters, space: Space, v: Variants) -> list[engine.Workunit]:
    """All workunits of a sum, for compiling ahead."""
    found = [near_kernel(p, v), spread_kernel(p, SPREAD[p.kernel], v), gather_kernel(p, RESULT[p.kernel], v, space)]
    found += [convolve_kernel(p), _pack_kernel(p), _sum_kernel(p, v)]
    found += [engine.kernel("halo", name, real=p.dtype) for name in ("halo_fold", "halo_wrap")]
    return found + cells.workunits(p.dtype, space)


def threads(p: Parameters, space: Space, v: Variants) -> dict[engine.Workunit, int]:
    """Threads of a block on a GPU, of those workunits that are launched with others than the default."""
    lanes = v.lanes if v.p2p.endswith("2D") else 1
    return {
        near_kernel(p, v): v.targets * lanes,
        spread_kernel(p, SPREAD[p.kernel], v): v.p2g_threads,
        gather_kernel(p, RESULT[p.kernel], v, space): v.g2p_threads,
    }


def sort(p: Parameters, trg: Array, src: Array, space: Space, v: Variants) -> tuple[CellList, CellList]:
    """Cell lists of targets and sources, one if these are the same array; points in ``[0, box)``."""
    per_batch = cells.PER_BATCH if space.kind == "host" else v.targets
    grid = CellGrid.for_points(p.box, src.shape[1], p.rc, per_batch)
    sources = CellList(src, grid, space)
    return (sources if trg is src else CellList(trg, grid, space)), sources


class Stages:
    """Prepared launches over the points of two cell lists.

    Parameters
    ----------
    p, v
        Parameters and variants.
    targets, sources : CellList
        As `sort` returns them.
    trg, src : array (3, N)
        The same points in the caller's order; only the BASE variants read them, in each sum.
    """

    def __init__(
        self, p: Parameters, v: Variants, targets: CellList, sources: CellList, trg: Array, src: Array
    ) -> None:
        xp, self.p, self.space = module_of(src), p, sources.space
        self.targets, self.n_sources = targets, sources.n
        self.strengths = xp.empty((STRENGTHS[p.kernel], sources.n), p.dtype)
        self.packs = []
        packed = spreading = self._packed(sources.points, sources.order)
        if v.p2g == "BASE":
            spreading = self._packed(src.copy(), xp.arange(sources.n, dtype=np.int32))
        self.near = NearField(p, targets, sources, packed, v)
        self.far = FarField(p, sources, spreading, trg.copy() if v.g2p == "BASE" else targets.points, v)
        self.background, self.sum = multipliers.background(p), _sum_kernel(p, v)

    def _packed(self, points: Array, order: Array) -> Array:
        """Sources as rows (x, y, z, strengths), which `pack` fills."""
        rows = module_of(points).empty((self.n_sources, 3 + len(self.strengths)), self.p.dtype)
        given = {"x": points, "strength": self.strengths, "order": order, "out": rows}
        self.packs.append(engine.prepare(RangePolicy(self.space, self.n_sources), _pack_kernel(self.p), **given))
        return rows

    def pack(self, strengths: list[Array]) -> None:
        """Take strengths ``(components, N)`` in the caller's order, and pack the sources."""
        module_of(self.strengths).concatenate(strengths, out=self.strengths)
        for launch in self.packs:
            launch.run()

    def unsort(self, out: Array) -> None:
        """Near plus far field in the caller's order, and the constant that makes their mean zero."""
        net = self.strengths[: len(out)].sum(axis=1, dtype=np.float64)
        constant = (self.background * net).astype(self.p.dtype)
        policy = RangePolicy(self.space, self.targets.n)
        fields = {"a": self.near.result, "b": self.far.gather.result, "constant": constant}
        engine.parallel_for(policy, self.sum, order=self.targets.order, out=out, components=len(out), **fields)


def _pack_kernel(p: Parameters) -> engine.Workunit:
    return engine.kernel("cells", "gather_sources", real=p.dtype, NB=STRENGTHS[p.kernel])


def _sum_kernel(p: Parameters, v: Variants) -> engine.Workunit:
    slots = {"FAR_SORTED": False} if v.g2p == "BASE" else {}
    return engine.kernel("cells", "scatter_sum", real=p.dtype, **slots)
