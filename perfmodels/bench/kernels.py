"""Benchmarks of single kernels: P2P, P2G, G2P, transforms, and all variants."""

import argparse
import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from parki import engine, fft
from parki.arrays import Array
from parki.cells import CellGrid, SortedCellHandles, SortedCells
from parki.engine import Space, TeamPolicy, spaces
from parki.engine.steps import Steps, constant, state
from parki.ewald import api
from parki.ewald.choice import choose, params, variants
from parki.ewald.choice.question import Question
from parki.ewald.kernels import KERNELS
from parki.ewald.options import EwaldOptions
from parki.ewald.stages import far
from parki.ewald.stages.mesh import Mesh
from parki.ewald.stages.spread import spread
from parki.options import choices
from parki.perfmodels.bench import handwritten
from parki.perfmodels.bench.measure import CUBE, Row, absent, clock, cloud, on, row, strengths, turns

SHORT = 5  # factor of the repeats of runs that last milliseconds
NEAR = 1e-9, 224.0  # tolerance, and sources in a cube of side rc, of the near fields
MOST_NEAR = 60_000  # particles of the near fields
WIDTHS, DENSITIES = (6, 8, 12), (1, 8)  # grid points across a window; grid points per particle


def p2p(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time all pairs in cache, and near fields at 1e-9 against scalar literal loops, on one thread."""
    rng = np.random.default_rng(0)
    nt, ns = 2048, 2000
    xt, src, u = rng.random((3, nt)), rng.random((ns, 4)), np.empty((1, nt))
    serial, by_hand = Space("Serial"), np.empty(nt)
    hand = handwritten.compiled("bench_vector_laplace", handwritten.VECTOR_LAPLACE)
    kernel = engine.kernel("direct", "direct_sum", real="double", pair="pair/laplace")
    launch = engine.prepare(
        TeamPolicy(serial, nt // 128), kernel, xt=xt, src=src, u=u, nt=nt, ns=ns, chunk=128, tiny=0.0
    )
    measures = [clock(lambda: handwritten.call(hand, xt, nt, src, ns, by_hand)), clock(launch.run)]
    reference_times, times = turns(measures, SHORT * args.repeat)
    if not np.allclose(u[0], by_hand, rtol=1e-12):
        raise RuntimeError("the direct sum and the loop written by hand disagree")
    pairs, details = nt * ns / 1e9, {"n": nt, "threads": 1}
    rows = [row("Laplace, all pairs, by hand (vector types)", reference_times, pairs, "G pairs", **details)]
    rows.append(row("Laplace, all pairs, parki (1 thread)", times, pairs, "G pairs", rows[0], **details))
    return rows + [r for name in handwritten.SCALAR for r in near(name, min(args.n, MOST_NEAR), args.repeat)]


def near(kernel: str, n: int, repeat: int) -> list[Row]:
    """Time a near field at 1e-9 with 224 sources per rc³ against a scalar literal loop, on one thread."""
    tolerance, crowd = NEAR
    run, pairs = near_field(kernel, n, tolerance, crowd)
    literal, _, sample_size = scalar_near(kernel, n, tolerance, crowd)
    by_hand, times = turns([clock(literal), clock(run)], repeat)
    details = {"n": n, "tolerance": tolerance, "threads": 1}
    name = f"{kernel} near field {tolerance:g}"
    rows = [row(f"{name}, scalar, erfc and exp", by_hand, pairs * sample_size / n, "G useful", **details)]
    return [*rows, row(f"{name}, parki (1 thread)", times, pairs, "G useful", rows[0], **details)]


def near_field(kernel: str, n: int, tolerance: float, crowd: float) -> tuple[Callable[[], object], float]:
    """Return a function that runs parki's near field alone, and the number of pairs within rc in 10⁹."""
    x, dens, normals = cloud(n)
    options = {"box": CUBE, "tolerance": tolerance, "cell_size": crowd, "execution_space": "Serial"}
    plan = api.plan(kernel, x, x, **options)
    plan(*strengths(kernel, dens, normals))
    return lambda: plan.sums[1].placed.again("p2p.kernel"), 4 / 3 * math.pi * plan.parameters.rc**3 * n * n / 1e9


def scalar_near(
    kernel: str, n: int, tolerance: float, crowd: float
) -> tuple[Callable[[], object], tuple[np.ndarray, np.ndarray], int]:
    """Return the literal loop for the first tenth of the sorted targets, their indices and sums, and their number."""
    x, dens, normals = cloud(n)
    p = choose.parameters(Question(kernel, CUBE, n, n, tolerance, split="gaussian", cell_size=crowd))
    grid = CellGrid(p.box, tuple(int(side / p.rc) for side in p.box))
    rows_of_sources = np.concatenate([np.atleast_2d(a) for a in strengths(kernel, dens, normals)])
    cells, src = sorted_sources(kernel, x, rows_of_sources, p, Space("Serial"), grid)
    sample_size = max(1, n // 10)
    targets = np.ascontiguousarray(cells.points.T[:sample_size])
    u, shape, box = np.empty((sample_size, KERNELS[kernel].result)), np.array(grid.shape, np.int32), np.array(p.box)
    run = handwritten.compiled(f"bench_scalar_{kernel}", handwritten.SCALAR[kernel])

    def literal() -> None:
        handwritten.call(run, targets, src, cells.begin, shape, box, p.rc, p.xi, sample_size, u)

    return literal, (cells.order[:sample_size], u), sample_size


def p2g(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time the spreading of two real components against finufft's complex one, on one thread."""
    return grid_rows(args, "P2G", 1)


def g2p(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time the interpolation of two real components against finufft's complex one, on one thread."""
    return grid_rows(args, "G2P", 2)


def grid_rows(args: argparse.Namespace, title: str, kind: int) -> list[Row]:
    """Return the rows for one and for eight grid points per particle."""
    rows: list[Row] = []
    count, details = args.n / 1e6, {"n": args.n, "threads": 1}
    for per_point, width in itertools.product(DENSITIES, WIDTHS):
        n = max(round((args.n * per_point) ** (1 / 3) / 2) * 2, 2 * width)
        name = f"{title} 2 components, P={width}, {per_point} grid points a particle"
        runs = [run for run in (peer_grid(args, n, width, kind), own_grid(title, args, n, width)) if run]
        times = turns([clock(run) for run in runs], args.repeat)
        if len(runs) > 1:
            rows.append(row(f"{name}: finufft", times[0], count, "M points", **details))
        else:
            rows.append(absent(f"{name}: finufft", "pip install finufft"))
        reference = rows[-1] if len(runs) > 1 else None
        rows.append(row(f"{name}: parki", times[-1], count, "M points", reference, **details))
    return rows


def own_grid(title: str, args: argparse.Namespace, n: int, width: int) -> Callable[[], object]:
    """Return a function that runs parki's kernel alone, on points that are sorted already, as in a plan."""
    space = Space("Serial")
    x, dens, _ = cloud(args.n)
    p = choose.parameters(Question("laplace", CUBE, args.n, args.n, 1e-6))
    p = replace(
        p,
        kernel=replace(p.kernel, dens=2, result=2, spread=2),
        grid=(n, n, n),
        h=(1 / n,) * 3,
        P=width,
        beta=2.3 * width,
        window_degree=width // 2 + 2,
    )
    cells, rows_of_sources = sorted_sources(2, x, dens[:2], p, space)
    v = variants.choose(space, p.dtype, p=p)
    mesh, handles = Mesh(p, n), SortedCellHandles("points", cells.n, cells.grid, p.dtype)
    grid, rows = mesh.touched(mesh.grid(p, 2, space)), constant("sources as rows", rows_of_sources)
    points = far.FarPoints(handles, handles, rows, handles.points)
    result = state("result", (2, cells.n), p.far)
    spreading = spread(p, grid, handles, rows, v, 1)
    steps = spreading if title == "P2G" else [far.interpolation(p, grid, result, points, v, space, 1)]
    return Steps(steps).place(space, handles.arrays(cells)).run


def peer_grid(args: argparse.Namespace, n: int, width: int, kind: int) -> Callable[[], object] | None:
    """Return a function that runs finufft's spreader at the same width, on sorted points; None without finufft."""
    try:
        import finufft
    except ImportError:
        return None
    x, dens, _ = cloud(args.n)
    plan = finufft.Plan(
        kind, (n, n, n), eps=10.0 ** (1 - width), dtype="complex128", nthreads=1, spreadinterponly=1, upsampfac=2.0
    )
    plan.setpts(*(2 * np.pi * x - np.pi))
    data = dens[0] + 1j * dens[1] if kind == 1 else np.ones((n, n, n), complex)
    return lambda: plan.execute(data)


def transforms(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time a sum's transforms along each axis there and back by every installed library, against the first.

    Two reals along z are one complex number, and the grid lies within margins, as in a sum.
    """
    names = fft.available() if space.kind == "host" else [fft.choose(None, True)]
    counts = [args.threads] if args.threads else sorted({1, spaces.threads()}) if space.kind == "host" else [1]
    rows: list[Row] = []
    for m, dtype, threads in itertools.product(sizes(args.n), ("float64", "float32"), counts):
        grid = spaces.array_module(space).asarray(np.random.default_rng(1).random((4, m + 8, m + 8, m + 8), dtype))
        box = fft.complexes(grid[:, 4:-4, 4:-4, 4:-4])
        libraries = [fft.library(name, space.kind == "device", threads) for name in names]
        measures = [clock(functools.partial(there_and_back, library, box), space) for library in libraries]
        first = None
        for name, times in zip(names, turns(measures, args.repeat), strict=True):
            title = f"{m}³ {dtype}, {threads} thread{'s' * (threads > 1)}: {name}"
            rows.append(row(title, times, 7 * m**3 / 1e6, "M points", first, n=m, threads=threads))
            first = first or rows[-1]
    return rows


def sizes(n: int) -> list[int]:
    """Return the sides of the grids: of sums of about 10⁵ to 10⁶ particles, smaller ones where `n` is smaller."""
    return [m for m in (98, 128, 224) if m**3 <= 120 * n] or [16]


def there_and_back(library: fft.Library, box: Array) -> None:
    """Transform all components forwards, and three of them back."""
    for axis in (1, 2, 3):
        library.run(box, axis, False)
    for axis in (3, 2, 1):
        library.run(box[:3], axis, True)
    # Neither direction divides by the number of points.
    box *= 1.0 / box[0].size


def compare_variants(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time every variant of P2P, P2G and G2P of stokes_comb, the kernels alone, against the default variant."""
    x, dens, normals = on(space, cloud(args.n))
    options = {"box": CUBE, "tolerance": args.tolerance, "execution_space": space, "return_walltime": True}
    rows: list[Row] = []
    for kernel in ("p2p", "p2g", "g2p"):
        default = variants.defaults(space)[kernel]
        names = [default, *(n for n in choices(EwaldOptions, f"{kernel}_method") if n not in ("AUTO", default))]
        plans = [api.plan("stokes_comb", x, x, **options, **{f"{kernel}_method": name}) for name in names]

        def alone(plan: Callable[..., Array], phase: str = f"time_{kernel}") -> float:
            plan(dens, normals)
            return getattr(plan.walltime, phase)["kernel"]

        first = None
        times_of_plans = turns([functools.partial(alone, plan) for plan in plans], args.repeat)
        for name, times in zip(names, times_of_plans, strict=True):
            title = f"{kernel.upper()} {name}, N = {args.n:,}, {args.tolerance:g}"
            rows.append(row(title, times, args.n / 1e6, "M particles", first))
            first = first or rows[-1]
    return rows


def sorted_sources(
    kernel: str | int, x: Array, rows: Array, p: params.Parameters, space: Space, grid: CellGrid | None = None
) -> tuple[SortedCells, np.ndarray]:
    """Return a cell list, and the sources in its order for a kernel, given by its name or number of strengths."""
    cells = SortedCells(x, grid or CellGrid.for_points(p.box, x.shape[1], p.rc), space)
    components = KERNELS[kernel].strengths if isinstance(kernel, str) else kernel
    return cells, np.ascontiguousarray(np.concatenate([x, rows[:components]])[:, cells.order].T)
