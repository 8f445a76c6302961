"""The stages of an Ewald sum as prepared launches: near field, spreading, Fourier multipliers, interpolation."""

import itertools
import math

import numpy as np

from parki import engine, fft
from parki.arrays import Array
from parki.cells import CellGrid, CellList
from parki.engine import TeamPolicy
from parki.engine.runtime.compiler import target
from parki.engine.spaces import Space, threads
from parki.ewald import multipliers, radial, window
from parki.ewald.params import Parameters

PAIRS = {"laplace": "pair/laplace", "stokes_sl": "pair/stokeslet", "stokes_comb": "pair/stokes_comb"}
STRENGTHS = {"laplace": 1, "stokes_sl": 3, "stokes_comb": 9}  # numbers per source: q; f; f, q, n
SPREAD = {"laplace": 1, "stokes_sl": 3, "stokes_comb": 4}  # components of the grid
RESULT = {"laplace": 1, "stokes_sl": 3, "stokes_comb": 3}
G2P_BATCH = 16  # targets per team of G2P: their windows stay in the first-level cache
BLOCK = (16, 16, 64)  # grid points per side of a spreading block, at least; long runs along z reuse cached rows
COINCIDENT = 1e-14  # of the longest side: double precision points closer than this are one point


def near_kernel(p: Parameters) -> engine.Workunit:
    """The near-field workunit of these parameters."""
    return engine.kernel("p2p", "p2p_gm_1d", real=p.dtype, pair=PAIRS[p.kernel], SCREENED=True, TERMS=_terms(p))


def spread_kernel(p: Parameters, components: int) -> engine.Workunit:
    """P2G of so many components; four of the combined kernel carry the window's slopes too."""
    comb = p.kernel == "stokes_comb"
    return engine.kernel("p2g", "p2g_block", NC=components, COMB=comb, **_window_slots(p))


def gather_kernel(p: Parameters, components: int) -> engine.Workunit:
    """G2P of so many components."""
    return engine.kernel("g2p", "g2p_target", NC=components, BATCH=G2P_BATCH, **_window_slots(p))


def convolve_kernel(p: Parameters) -> engine.Workunit:
    """The Fourier multiplier."""
    slots: dict[str, object] = {"real": p.dtype, "DEGREE": len(multipliers.profile(p)) - 1}
    if p.kernel == "laplace":
        return engine.kernel("convolve", "convolve_laplace", **slots)
    return engine.kernel("convolve", "convolve_stokes", COMB=p.kernel == "stokes_comb", **slots)


def workunits(p: Parameters) -> list[engine.Workunit]:
    """All workunits of a sum, for compiling ahead."""
    halo = [engine.kernel("halo", name, real=p.dtype) for name in ("halo_fold", "halo_wrap")]
    spread, gather = spread_kernel(p, SPREAD[p.kernel]), gather_kernel(p, RESULT[p.kernel])
    return [near_kernel(p), spread, gather, convolve_kernel(p), *halo]


def _window_slots(p: Parameters) -> dict[str, object]:
    return {"real": p.dtype, "P": p.P, "DEGREE": p.window_degree}


def batch_size(dtype: str) -> int:
    """Targets of a near-field batch: one vector's worth."""
    return max(4, target().vector_bytes // np.dtype(dtype).itemsize)


class NearField:
    """u[:, j] = near field at the sorted targets."""

    def __init__(self, p: Parameters, targets: CellList, sources: CellGrid, begin: Array, src: Array, space: Space):
        batch, bound = targets.batches(batch_size(p.dtype))
        self.result = np.zeros((RESULT[p.kernel], targets.n), p.dtype)
        tiny = 0.0 if p.dtype == "float32" else (COINCIDENT * max(p.box)) ** 2
        self.launch = engine.prepare(
            TeamPolicy(space, len(batch)),
            near_kernel(p),
            xt=targets.points,
            src=src,
            u=self.result,
            batch=batch,
            bound=bound,
            cell_begin=begin,
            coef=_far_tables(p),
            images=max(int(p.rc / side) for side in p.box) + 2,
            rc=p.rc,
            tiny=tiny,
            **{f"n{d}": n for d, n in enumerate(sources.shape)},
            **{f"l{d}": side for d, side in enumerate(p.box)},
            **{f"h{d}": w for d, w in enumerate(sources.widths)},
        )

    def run(self) -> None:
        """Compute the near field."""
        self.launch.run()


class Spread:
    """P2G: strengths of the sources onto a grid with margins, which are then folded into the box."""

    def __init__(self, p: Parameters, components: int, cells: CellGrid, begin: Array, src: Array, space: Space) -> None:
        self.grid = _margined(p, components)
        values, slopes = window.fit(p.P, p.beta, p.window_degree, p.dtype)
        shared = {"src": src, "grid": self.grid, "cell_begin": begin, "window": values, "slope": -slopes}
        shared |= {f"s{d}": 1.0 / h for d, h in enumerate(p.h)} | {"n1": cells.shape[1], "n2": cells.shape[2]}
        blocks, starts = _blocks(p, cells)
        kernel = spread_kernel(p, components)
        self.colours = [
            engine.prepare(TeamPolicy(space, end - first), kernel, block=blocks, first=first, **shared)
            for first, end in itertools.pairwise(starts)
            if end > first
        ]
        m0, m1, m2 = p.grid
        margins = {"low": p.P // 2, "high": p.P - p.P // 2, "m0": m0, "m1": m1, "m2": m2}
        fold = engine.kernel("halo", "halo_fold", real=p.dtype)
        self.fold = engine.prepare(TeamPolicy(space, components * m0 * m1), fold, grid=self.grid, **margins)
        self.box = self.grid[(slice(None), *(slice(p.P // 2, p.P // 2 + m) for m in p.grid))]

    def run(self) -> None:
        """Spread; the result is `box`, the grid without its margins."""
        self.grid[...] = 0
        for colour in self.colours:
            colour.run()
        self.fold.run()


class Gather:
    """G2P: interpolation of periodic fields at the sorted targets."""

    def __init__(self, p: Parameters, components: int, grid: Array, points: Array, space: Space) -> None:
        self.p, self.grid, self.space = p, grid, space
        self.result = np.empty((components, points.shape[1]), p.dtype)
        values, _ = window.fit(p.P, p.beta, p.window_degree, p.dtype)
        self.launch = engine.prepare(
            TeamPolicy(space, math.ceil(points.shape[1] / G2P_BATCH)),
            gather_kernel(p, components),
            xt=points,
            grid=grid,
            u=self.result,
            window=values,
            nt=points.shape[1],
            **{f"s{d}": 1.0 / h for d, h in enumerate(p.h)},
        )
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
    """Spread, transform, multiply, transform back, interpolate."""

    def __init__(self, p: Parameters, targets: CellList, sources: CellGrid, begin: Array, src: Array, space: Space):
        self.p, self.space, self.threads = p, space, space.threads or (1 if space.name == "Serial" else threads())
        self.spread = Spread(p, SPREAD[p.kernel], sources, begin, src, space)
        self.gather = Gather(p, RESULT[p.kernel], self.spread.grid, targets.points, space)
        (k0, d0), (k1, d1), (k2, d2) = multipliers.axes(p)
        self.tables = {"k0": k0, "k1": k1, "k2": k2, "d0": d0, "d1": d1, "d2": d2, "profile": multipliers.profile(p)}
        self.tables |= {"kmax2": p.kmax**2, "m1": p.grid[1], "modes": len(k2)}

    def forward(self) -> Array:
        """FFT of the spread strengths."""
        return fft.forward(self.spread.box, self.threads)

    def multiply(self, spectrum: Array) -> None:
        """CNV: the Fourier multiplier, in place."""
        policy = TeamPolicy(self.space, self.p.grid[0] * self.p.grid[1])
        engine.parallel_for(policy, convolve_kernel(self.p), spec=fft.pairs(spectrum), **self.tables)

    def backward(self, spectrum: Array) -> None:
        """Inverse FFT, one component after another into the grid with margins, whose strengths are spent."""
        for c in range(RESULT[self.p.kernel]):
            self.gather.fill(c, fft.inverse(spectrum[c], self.p.grid, self.threads))


def _terms(p: Parameters) -> int:
    """Coefficients per table: an even number, so that even and odd powers pair up."""
    return p.radial_degree + 1 + (p.radial_degree + 1) % 2


def _far_tables(p: Parameters) -> Array:
    """The near-field tables one after another, each with a leading zero where its number of terms is odd."""
    tables = radial.tables(p)
    padded = np.zeros((len(tables), _terms(p)), p.dtype)
    padded[:, -tables.shape[1] :] = tables
    return padded.ravel()


def _margined(p: Parameters, components: int) -> Array:
    """The grid with its margins; rows are padded away from multiples of 256 bytes, which would crowd cache sets."""
    shape = [m + p.P for m in p.grid]
    row = shape[2]
    while row * np.dtype(p.dtype).itemsize % 256 == 0:
        row += 4
    return np.zeros((components, shape[0], shape[1], row), p.dtype)[..., : shape[2]]


def _blocks(p: Parameters, cells: CellGrid) -> tuple[Array, Array]:
    """Boxes of cells at least P + 1 grid points wide, by colour: begin and end per axis, and where colours start.

    Two blocks of one colour are a whole block apart in some direction, or are the same.
    """
    edges = []
    for n, width, h, least in zip(cells.shape, cells.widths, p.h, BLOCK, strict=True):
        per_block = math.ceil(max(least, p.P + 1) * h / width)
        count = max(1, n // per_block)
        edges.append([n * i // count for i in range(count + 1)])
    boxes: dict[tuple[int, ...], list[list[int]]] = {colour: [] for colour in itertools.product((0, 1), repeat=3)}
    for index in itertools.product(*(range(len(e) - 1) for e in edges)):
        box = [x for e, i in zip(edges, index, strict=True) for x in (e[i], e[i + 1])]
        boxes[tuple(i % 2 for i in index)].append(box)
    starts = np.cumsum([0, *(len(b) for b in boxes.values())])
    return np.array([b for group in boxes.values() for b in group], np.int32), [int(s) for s in starts]
