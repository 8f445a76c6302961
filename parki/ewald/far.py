"""The far field of an Ewald sum: spread, transform, multiply, transform back, interpolate (G2P)."""

import math

from parki import engine, fft
from parki.arrays import Array, module_of
from parki.cells import CellList
from parki.engine import RangePolicy, TeamPolicy
from parki.engine.spaces import Space, threads
from parki.ewald import multipliers, window
from parki.ewald.components import RESULT, SPREAD
from parki.ewald.options import EwaldOptions
from parki.ewald.params import Parameters
from parki.ewald.spread import Spread, window_slots
from parki.ewald.variants import Variants, rows, team

HOST_BATCH = 16  # targets per team of G2P on a host: their windows stay in the first-level cache


def gather_kernel(p: Parameters, components: int, v: Variants, space: Space) -> engine.Workunit:
    """G2P of so many components."""
    if v.g2p == "BASE":
        return engine.kernel("g2p", "g2p_base", NC=components, **window_slots(p))
    return engine.kernel("g2p", "g2p_target", NC=components, BATCH=_batch(v, space), **window_slots(p))


def convolve_kernel(p: Parameters) -> engine.Workunit:
    """The Fourier multiplier."""
    slots: dict[str, object] = {"real": p.dtype, "DEGREE": len(multipliers.profile(p)) - 1}
    if p.kernel == "laplace":
        return engine.kernel("convolve", "convolve_laplace", **slots)
    return engine.kernel("convolve", "convolve_stokes", COMB=p.kernel == "stokes_comb", **slots)


def _batch(v: Variants, space: Space) -> int:
    """Targets of a team."""
    return HOST_BATCH if space.kind == "host" else rows(v.g2p_threads)[0]


class Gather:
    """Interpolation of periodic fields at `points`: sorted targets, for BASE in any order."""

    def __init__(self, p: Parameters, components: int, grid: Array, points: Array, space: Space, v: Variants) -> None:
        xp, n = module_of(grid), points.shape[1]
        self.p, self.grid, self.space = p, grid, space
        self.result = xp.empty((components, n), p.dtype)
        values, _ = window.fit(p.P, p.beta, p.window_degree, p.dtype)
        given = {"xt": points, "grid": grid, "u": self.result, "window": xp.asarray(values)}
        given |= {f"s{d}": 1.0 / h for d, h in enumerate(p.h)}
        kernel = gather_kernel(p, components, v, space)
        if v.g2p == "BASE":
            self.launch = engine.prepare(RangePolicy(space, n, v.g2p_threads), kernel, **given)
        else:
            teams = team(space, math.ceil(n / _batch(v, space)), *rows(v.g2p_threads))
            self.launch = engine.prepare(teams, kernel, nt=n, **given)
        self.wrap = engine.kernel("halo", "halo_wrap", real=p.dtype)

    def fill(self, component: int, field: Array) -> None:
        """Put a field ``(M0, M1, M2)`` into the grid, with its margins."""
        m0, m1, m2 = self.p.grid
        e0, e1, e2 = self.grid.shape[1:]
        sizes = {"low": self.p.P // 2, "m0": m0, "m1": m1, "m2": m2, "e1": e1, "e2": e2}
        teams = TeamPolicy(self.space, e0 * e1)
        engine.parallel_for(teams, self.wrap, box=field, grid=self.grid, c=component, **sizes)

    def run(self) -> None:
        """Interpolate into `result`."""
        self.launch.run()


class FarField:
    """gather.result[:, j] = far field at target j: of the sorted ones, for G2P variant BASE of those in any order.

    `src` and `points` are what `Spread` and `Gather` take.
    """

    def __init__(self, p: Parameters, sources: CellList, src: Array, points: Array, v: Variants) -> None:
        space, xp = sources.space, module_of(src)
        self.p, self.space, self.threads = p, space, space.threads or (threads() if space.name == "OpenMP" else 1)
        self.spread = Spread(p, SPREAD[p.kernel], sources, src, v)
        self.gather = Gather(p, RESULT[p.kernel], self.spread.grid, points, space, v)
        (k0, d0), (k1, d1), (k2, d2) = multipliers.axes(p)
        tables = {"k0": k0, "k1": k1, "k2": k2, "d0": d0, "d1": d1, "d2": d2, "profile": multipliers.profile(p)}
        self.factors = {name: xp.asarray(table) for name, table in tables.items()}
        self.factors |= {"kmax2": p.kmax**2, "m1": p.grid[1], "modes": len(k2)}
        self.convolve = convolve_kernel(p)
        self.transform = fft.Transform(self.spread.box, threads=self.threads)

    def use(self, options: EwaldOptions) -> None:
        """Transform as the options say, and not by the default for these arrays."""
        kind = "C2C" if options.fft_type == "C2C" else "R2C"
        self.transform = fft.Transform(self.spread.box, options.transform(), kind, self.threads)

    def forward(self) -> Array:
        """FFT of the spread strengths."""
        return self.transform.forward()

    def multiply(self, spectrum: Array) -> None:
        """CNV: the Fourier multiplier, in place."""
        policy = TeamPolicy(self.space, self.p.grid[0] * self.p.grid[1])
        engine.parallel_for(policy, self.convolve, spec=fft.pairs(spectrum), **self.factors)

    def backward(self, spectrum: Array) -> None:
        """Inverse FFT, one component after another into the grid with margins, whose strengths are spent."""
        for c in range(RESULT[self.p.kernel]):
            self.gather.fill(c, self.transform.inverse(spectrum[c]))
