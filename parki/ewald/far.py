"""The far field of an Ewald sum: spread, transform, multiply, transform back, interpolate (G2P)."""

from functools import partial

from parki import engine, fft
from parki.arrays import Array, module_of
from parki.cells import CellList
from parki.engine import RangePolicy
from parki.engine.spaces import Space, workers
from parki.ewald import mesh, multipliers, planes, window
from parki.ewald.crew import Crew, Piece
from parki.ewald.mesh import Mesh
from parki.ewald.options import EwaldOptions
from parki.ewald.params import Parameters
from parki.ewald.planes import Parts
from parki.ewald.report import WallTime
from parki.ewald.spread import Spread, spread_kernel, window_slots
from parki.ewald.variants import Variants, rows, team

SLABS = 2  # of rows that each of a crew transforms along x, so that a slow one may leave some to others
HOST_BATCH = 16  # targets per team of G2P on a host: their windows stay in the first-level cache


def gather_kernel(p: Parameters, v: Variants, space: Space, rhs: int = 1) -> engine.Workunit:
    """G2P of the kernel's results."""
    slots = {"NC": p.kernel.result, "RHS": rhs, **window_slots(p)}
    if v.g2p == "BASE":
        return engine.kernel("g2p", "g2p_base", **slots)
    return engine.kernel("g2p", "g2p_target", BATCH=_batch(v, space), **slots)


def workunits(p: Parameters, space: Space, v: Variants, rhs: int = 1, whole: bool = False) -> list[engine.Workunit]:
    """All workunits of the far field."""
    spread, gather = spread_kernel(p, v, rhs), gather_kernel(p, v, space, rhs)
    return [spread, gather, *planes.workunits(p, whole, rhs), *mesh.workunits(p)]


def _batch(v: Variants, space: Space) -> int:
    """Targets of a team."""
    return HOST_BATCH if space.kind == "host" else rows(v.g2p_threads)[0]


class Gather:
    """Interpolation of the grid at `points`, sorted as the `targets`, for BASE in any order."""

    def __init__(self, p: Parameters, grid: Array, points: Array, targets: CellList, v: Variants, rhs: int) -> None:
        xp, n, space = module_of(grid), points.shape[1], targets.space
        self.result = xp.empty((rhs * p.kernel.result, n), p.far)
        values, _ = window.fit(p.P, p.beta, p.window_degree, p.far)
        given = {"xt": points, "grid": grid, "u": self.result, "window": xp.asarray(values)}
        given |= {f"s{d}": 1.0 / h for d, h in enumerate(p.h)}
        kernel = gather_kernel(p, v, space, rhs)
        if v.g2p == "BASE":
            self.launch = engine.prepare(RangePolicy(space, n, v.g2p_threads), kernel, **given)
        else:
            batch, _ = targets.runs(_batch(v, space))
            teams = team(space, rhs * len(batch), *rows(v.g2p_threads))
            self.launch = engine.prepare(teams, kernel, batch=batch, batches=len(batch), **given)

    def run(self) -> None:
        """Interpolate into `result`."""
        self.launch.run()


class FarField:
    """gather.result[:, j] = far field at target j: of the sorted ones, for G2P variant BASE of those in any order.

    `src`, `targets` and `points` are what `Spread` and `Gather` take.  The one grid holds what is spread, its transform
    along x, and the result.
    """

    def __init__(
        self, p: Parameters, sources: CellList, src: Array, targets: CellList, points: Array, v: Variants,
        options: EwaldOptions | None, rhs: int = 1,
    ) -> None:  # fmt: skip
        space = sources.space
        whole = options is not None and options.fft_type == "C2C"
        self.mesh = Mesh(p, multipliers.period(p))
        self.grid = self.mesh.empty(p, rhs * p.kernel.components, space)
        name = fft.choose(options.transform() if options else None, space.kind == "device")
        several = fft.BACKENDS[name].several and space.engine == "parki"  # PyKokkos launches from one thread
        self.crew = Crew(workers(space), self.grid.nbytes, several)
        self.library = fft.library(name, space.kind == "device", self.crew.each)
        spread, result = self.grid[: rhs * p.kernel.spread], self.grid[: rhs * p.kernel.result]
        self.spread = Spread(p, self.mesh.touched(spread), sources, src, v, rhs)
        self.clear = self.mesh.clear(p, self.grid, space)
        self.fold, self.wrap = self.mesh.fold(p, spread, space), self.mesh.wrap(p, result, space)
        box = self.mesh.transformed(self.grid)
        self.input, self.output = (fft.complexes(box[: len(a)]) for a in (spread, result))
        self.parts = Parts(p, self.mesh, box, space, self.library, whole, rhs, self.crew)
        self.gather = Gather(p, self.mesh.touched(result), points, targets, v, rhs)

    @property
    def launches(self) -> list[engine.Prepared]:
        """All that it launches."""
        return [self.clear, *self.spread.launches, *self.fold, *self.wrap, *self.parts.launches, self.gather.launch]

    def scatter(self) -> None:
        """P2G: spread the strengths."""
        self.clear.run()
        self.spread.run()
        for launch in self.fold:
            launch.run()

    def transform(self, times: WallTime) -> None:
        """FFT, CNV and inverse FFT; fill the margins."""
        if self.crew.size > 1:
            self.gather.launch.rest()
        self.crew.run(self.stages, times)
        with times.phase("ifft"):
            for launch in self.wrap:
                launch.run()

    @property
    def stages(self) -> list[list[Piece]]:
        """Of the transforms: along x, by slabs of rows; through the planes; back along x."""
        rows = self.mesh.box[1]
        count = min(rows, SLABS * self.crew.size) if self.crew.size > 1 else 1
        slabs = [slice(rows * i // count, rows * (i + 1) // count) for i in range(count)]
        forward = [partial(self._forward, rows) for rows in slabs]
        return [forward, [block.run for block in self.parts.blocks], [partial(self._backward, rows) for rows in slabs]]

    def _forward(self, rows: slice, _: int, times: WallTime) -> None:
        with times.phase("fft"):
            self.library.run(self.input[:, :, rows], 1, False)

    def _backward(self, rows: slice, _: int, times: WallTime) -> None:
        with times.phase("ifft"):
            self.parts.clear(rows)
            self.library.run(self.output[:, :, rows], 1, True)
