"""`parki bench`: kernels and whole sums, measured beside what they are to beat, in one run."""

import argparse
import functools
import itertools
import json
import math
import platform
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import parki
from parki import engine, fft
from parki.arrays import Array
from parki.cells import CellGrid, CellList
from parki.engine import TeamPolicy, spaces
from parki.engine.runtime.compiler import target
from parki.engine.spaces import Space
from parki.ewald import api, params, variants
from parki.ewald.far import Gather
from parki.ewald.kernels import KERNELS
from parki.ewald.mesh import Mesh
from parki.ewald.near import NearField
from parki.ewald.options import CHOICES
from parki.ewald.plan import Plan
from parki.ewald.spread import Spread
from parki.perfmodels import free, handwritten

Row = dict[str, object]
RHS = 8


def main(asked: argparse.Namespace) -> int:
    """Run one benchmark, print its table, and append it to a JSON file if asked to."""
    space = replace(spaces.get(asked.space), threads=asked.threads) if asked.threads else spaces.get(asked.space)
    rows = BENCHMARKS[asked.name](asked, space)
    print(table(rows))  # noqa: T201
    if asked.json:
        record = {"benchmark": asked.name, "machine": machine(), "parki": parki.__version__, "rows": rows}
        old = json.loads(asked.json.read_text()) if asked.json.exists() else []
        asked.json.write_text(json.dumps([*old, record], indent=1) + "\n")
    return 0


def best(run: Callable[[], object], repeat: int, space: Space | None = None) -> float:
    """Seconds of the fastest of `repeat` runs after one that does not count; a device is waited for."""
    device = spaces.array_module(space).cuda.Device() if space and space.kind == "device" else None
    times = []
    for _ in range(repeat + 1):
        began = time.perf_counter()
        run()
        if device is not None:
            device.synchronize()
        times.append(time.perf_counter() - began)
    return min(times[1:])


def table(rows: list[Row]) -> str:
    """Rows as text; a row's `ratio`, if it has one, is its rate over that of the row it names."""
    lines = [f"{'what':<58}{'time':>12}{'rate':>24}   against"]
    for r in rows:
        ratio = f"{r['ratio']:.2f} x {r['against']}" if "ratio" in r else ""
        measured = f"{1e3 * r['seconds']:>9.2f} ms{r['rate']:>10.4g} {r['unit']:<13}"
        lines.append(f"{r['what']:<58}{measured}   {ratio}".rstrip())
    return "\n".join(lines)


def machine() -> Row:
    """What the figures were measured on."""
    made = target()
    return {"processor": platform.processor() or platform.machine(), "arch": made.arch, "bytes": made.vector_bytes}


def row(what: str, seconds: float, count: float, unit: str, other: Row | None = None) -> Row:
    """One measurement: `count` units in `seconds`."""
    made: Row = {"what": what, "seconds": seconds, "rate": count / seconds, "unit": f"{unit}/s"}
    if other is not None:
        made |= {"ratio": made["rate"] / other["rate"], "against": other["what"]}
    return made


def p2p(asked: argparse.Namespace, space: Space) -> list[Row]:
    """All pairs in cache on one thread, and the near field of the combined Stokes kernel at 1e-9."""
    rng = np.random.default_rng(0)
    nt, ns = 2048, 2000
    xt, src, u = rng.random((3, nt)), rng.random((ns, 4)), np.empty((1, nt))
    one = Space("Serial")
    hand = handwritten.compiled("bench_vector_laplace", handwritten.VECTOR_LAPLACE)
    by_hand = np.empty(nt)
    written = best(lambda: handwritten.call(hand, xt, nt, src, ns, by_hand), 5 * asked.repeat)
    kernel = engine.kernel("direct", "direct_sum", real="double", pair="pair/laplace")
    launch = engine.prepare(TeamPolicy(one, nt // 128), kernel, xt=xt, src=src, u=u, nt=nt, ns=ns, chunk=128, tiny=0.0)
    own = best(launch.run, 5 * asked.repeat)
    if not np.allclose(u[0], by_hand, rtol=1e-12):
        raise RuntimeError("the direct sum and the loop written by hand disagree")
    pairs = nt * ns / 1e9
    rows = [row("Laplace, all pairs, by hand (vector types)", written, pairs, "G pairs")]
    rows.append(row("Laplace, all pairs, parki (1 thread)", own, pairs, "G pairs", rows[0]))
    return rows + near(asked, one)


def near(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Near field of stokes_comb, 1e-9, at the density of 224 sources per rc³, against a scalar literal loop."""
    n = min(asked.n, 60_000)
    x, dens, normals = cloud(n)
    p = params.choose("stokes_comb", (1.0, 1.0, 1.0), n, n, 1e-9, cell_size=224.0)
    useful = 4 / 3 * math.pi * p.rc**3 * n * n / 1e9
    cells, packed = sorted_sources("stokes_comb", x, np.concatenate([dens, normals]), p, space)
    field = NearField(p, cells, cells, packed, variants.choose(space, p.dtype))
    own = best(field.run, asked.repeat)
    coarse = CellGrid(p.box, tuple(int(side / p.rc) for side in p.box))
    scalar_cells, scalar_src = sorted_sources("stokes_comb", x, np.concatenate([dens, normals]), p, space, coarse)
    some = n // 10
    run = handwritten.compiled("bench_scalar_stokes", handwritten.SCALAR_STOKES)
    targets, u = np.ascontiguousarray(scalar_cells.points.T[:some]), np.empty((some, 3))
    shape, box = np.array(coarse.shape, np.int32), np.array(p.box)
    xi = 4.87 / p.rc  # the Gaussian's for this tolerance
    literal = best(
        lambda: handwritten.call(run, targets, scalar_src, scalar_cells.begin, shape, box, p.rc, xi, some, u), 2
    )
    rows = [row("stokes_comb near field 1e-9, scalar, erfc and exp", literal, useful / 10, "G useful")]
    return [*rows, row("stokes_comb near field 1e-9, parki (1 thread)", own, useful, "G useful", rows[0])]


def p2g(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Spreading of two real components, against finufft's complex one, on one thread."""
    return grid_rows(asked, "P2G", 1)


def g2p(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Interpolation of two real components, against finufft's complex one, on one thread."""
    return grid_rows(asked, "G2P", 2)


def grid_rows(asked: argparse.Namespace, what: str, kind: int) -> list[Row]:
    """Rows for one and for eight grid points per particle."""
    rows: list[Row] = []
    for per_point in (1, 8):
        for width in (6, 8, 12):
            n = round((asked.n * per_point) ** (1 / 3) / 2) * 2
            seconds = own_grid(what, asked, n, width)
            name = f"{what} 2 components, P={width}, {per_point} grid points a particle"
            other = peer_grid(asked, n, width, kind)
            if other is not None:
                rows.append(row(f"{name}: finufft", other, asked.n / 1e6, "M points"))
            rows.append(row(f"{name}: parki", seconds, asked.n / 1e6, "M points", rows[-1] if other else None))
    return rows


def own_grid(what: str, asked: argparse.Namespace, n: int, width: int) -> float:
    """Seconds of parki's kernel alone; the points are sorted, as a plan keeps them."""
    space = Space("Serial")
    x, dens, _ = cloud(asked.n)
    p = params.choose("laplace", (1.0, 1.0, 1.0), asked.n, asked.n, 1e-6)
    p = replace(
        p,
        kernel=replace(p.kernel, dens=2, result=2, spread=2),
        grid=(n, n, n),
        h=(1 / n,) * 3,
        P=width,
        beta=2.3 * width,
        window_degree=width // 2 + 2,
    )
    cells, packed = sorted_sources(2, x, dens[:2], p, space)
    v = variants.choose(space, p.dtype)
    mesh = Mesh(p, n)
    grid = mesh.touched(mesh.empty(p, 2, space))
    if what == "P2G":
        return best(Spread(p, grid, cells, packed, v, 1).run, asked.repeat)
    return best(Gather(p, grid, cells.points, space, v, 1).run, asked.repeat)


def peer_grid(asked: argparse.Namespace, n: int, width: int, kind: int) -> float | None:
    """Seconds of finufft's spreader at the same width, or None where it is not installed."""
    try:
        import finufft
    except ImportError:
        return None
    x, dens, _ = cloud(asked.n)
    plan = finufft.Plan(
        kind, (n, n, n), eps=10.0 ** (1 - width), dtype="complex128", nthreads=1, spreadinterponly=1, upsampfac=2.0
    )
    plan.setpts(*(2 * np.pi * x - np.pi))
    data = dens[0] + 1j * dens[1] if kind == 1 else np.ones((n, n, n), complex)
    return best(lambda: plan.execute(data), asked.repeat)


def transforms(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Transforms of a sum, along each axis there and back, by every library that is installed, against the first.

    Pairs of reals along z are one complex number, and the grid lies within margins, as in a sum.  The libraries take
    turns, so that all share the machine's moods.
    """
    names = fft.available() if space.kind == "host" else [fft.choose(None, True)]
    counts = [asked.threads] if asked.threads else sorted({1, spaces.threads()}) if space.kind == "host" else [1]
    rows: list[Row] = []
    for m, dtype, threads in itertools.product((98, 128, 224), ("float64", "float32"), counts):
        grid = spaces.array_module(space).asarray(np.random.default_rng(1).random((4, m + 8, m + 8, m + 8), dtype))
        box = fft.complexes(grid[:, 4:-4, 4:-4, 4:-4])
        libraries = [fft.library(name, space.kind == "device", threads) for name in names]
        runs = [functools.partial(there_and_back, library, box) for library in libraries]
        turns = [[best(run, 1, space) for run in runs] for _ in range(asked.repeat)]
        first = None
        for name, seconds in zip(names, map(min, zip(*turns, strict=True)), strict=True):
            what = f"{m}³ {dtype}, {threads} thread{'s' * (threads > 1)}: {name}"
            rows.append(row(what, seconds, 7 * m**3 / 1e6, "M points", first))
            first = first or rows[-1]
    return rows


def there_and_back(library: fft.Library, box: Array) -> None:
    """Transform all components, and three of them back."""
    for axis in (1, 2, 3):
        library.run(box, axis, False)
    for axis in (3, 2, 1):
        library.run(box[:3], axis, True)
    # Neither direction divides by the number of points.
    box *= 1.0 / box[0].size


def ewald(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Whole calls of the three kernels, with everything that a first call does but compiling."""
    x, dens, normals = on(space, cloud(asked.n))
    options = {"box": (1.0, 1.0, 1.0), "tolerance": asked.tolerance, "execution_space": space}
    strengths = {"laplace": (dens[0],), "stokes_sl": (dens[:3],), "stokes_comb": (dens, normals)}
    return [made for kernel, given in strengths.items() for made in ewald_rows(kernel, x, given, options, asked)]


def ewald_rows(kernel: str, x: Array, given: tuple, options: Row, asked: argparse.Namespace) -> list[Row]:
    """A whole call, the plan again, eight right-hand sides in one pass, and the plan's phases."""
    call, count, space = getattr(api, kernel), asked.n / 1e6, options["execution_space"]
    call(x, x, *given, **options)
    whole = best(lambda: call(x, x, *given, **options), asked.repeat, space)
    plan = api.plan(kernel, x, x, **options)
    again = best(lambda: plan(*given), asked.repeat, space)
    rows = [row(f"{kernel}, N = {asked.n:,}, {asked.tolerance:g}, whole call", whole, count, "M particles")]
    rows.append(row("  the plan again", again, count, "M particles"))
    stacked = spaces.array_module(space).stack([given[0]] * RHS)
    many = best(lambda: plan(stacked, *given[1:]), asked.repeat, space)
    rows.append(row(f"  {RHS} right-hand sides in one pass", many, RHS * count, "M particles", rows[-1]))
    phases = ("p2p", "p2g", "fft", "cnv", "ifft", "g2p")
    times = phase_times(
        plan if space.kind == "host" else api.plan(kernel, x, x, return_walltime=True, **options), given
    )
    return rows + [row(f"    {p}", times[p]["tot"], count, "M particles") for p in phases]


def free_space(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Whole calls in free space against FMM3D at the same measured error."""
    rows: list[Row] = []
    for kernel, seconds, error, ours, reached in free.measure(asked, space):
        rows.append(row(f"{kernel}, N = {asked.n:,}: FMM3D, error {error:.0e}", seconds, asked.n / 1e6, "M particles"))
        rows.append(row(f"{kernel}: parki, error {reached:.0e}", ours, asked.n / 1e6, "M particles", rows[-1]))
    return rows


def compare_variants(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Every variant of P2P, P2G and G2P of stokes_comb, the kernels alone, against the one that is taken by default."""
    x, dens, normals = on(space, cloud(asked.n))
    options = {"box": (1.0, 1.0, 1.0), "tolerance": asked.tolerance, "execution_space": space, "return_walltime": True}
    rows: list[Row] = []
    for kernel in ("p2p", "p2g", "g2p"):
        default = variants.DEFAULTS[space.kind][kernel]
        names = [default, *(n for n in CHOICES[f"{kernel}_method"] if n not in ("AUTO", default))]
        first = len(rows)
        for name in names:
            plan = api.plan("stokes_comb", x, x, **options, **{f"{kernel}_method": name})
            seconds = min(phase_times(plan, (dens, normals))[kernel]["kernel"] for _ in range(asked.repeat + 1))
            other = rows[first] if len(rows) > first else None
            what = f"{kernel.upper()} {name}, N = {asked.n:,}, {asked.tolerance:g}"
            rows.append(row(what, seconds, asked.n / 1e6, "M particles", other))
    return rows


def phase_times(plan: Plan, given: tuple) -> dict[str, dict[str, float]]:
    """Seconds of each phase of one sum."""
    plan(*given)
    return {p: getattr(plan.walltime, f"time_{p}") for p in ("p2p", "p2g", "fft", "cnv", "ifft", "g2p")}


def on(space: Space, arrays: tuple[np.ndarray, ...]) -> list[Array]:
    """The arrays where kernels of this space take them."""
    return [spaces.array_module(space).asarray(a) for a in arrays]


def cloud(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Uniform points ``(3, n)`` in the unit box, densities ``(6, n)`` and unit normals ``(3, n)``."""
    rng = np.random.default_rng(1)
    normals = rng.standard_normal((3, n))
    return rng.random((3, n)), rng.standard_normal((6, n)), normals / np.linalg.norm(normals, axis=0)


def sorted_sources(
    kernel: str | int, x: Array, strengths: Array, p: params.Parameters, space: Space, grid: CellGrid | None = None
) -> tuple[CellList, np.ndarray]:
    """A cell list, and the sources in its order as a kernel takes them, by its name or number of strengths."""
    cells = CellList(x, grid or CellGrid.for_points(p.box, x.shape[1], p.rc), space)
    components = KERNELS[kernel].strengths if isinstance(kernel, str) else kernel
    packed = np.ascontiguousarray(np.concatenate([x, strengths[:components]])[:, cells.order].T)
    return cells, packed


BENCHMARKS = {
    "p2p": p2p,
    "p2g": p2g,
    "g2p": g2p,
    "fft": transforms,
    "ewald": ewald,
    "free": free_space,
    "variants": compare_variants,
}
