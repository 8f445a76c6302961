"""`parki demo`: the main job at full size, with its times, its error and a picture."""

import importlib.util
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import parki
from parki import doctor, memory, ranks
from parki.arrays import Array
from parki.engine import writing
from parki.ewald import api
from parki.ewald.options import EwaldOptions
from parki.ewald.report import Params
from parki.progress import Progress

KERNEL = "stokes_comb"
PARTICLE = 300  # bytes per particle, at least: 12 numbers, as many sorted, a result of three
FORCES = 150  # point forces in the picture: few enough to see each
PIXELS = 400  # pixels per side of the picture, each a target


def particles(n: int, seed: int, comm: Any = None) -> tuple[Array, Array, Array]:
    """Return uniform points ``(3, n)`` in the unit box, densities ``(6, n)`` and unit normals ``(3, n)``.

    Each rank of a communicator has its share of the n particles.
    """
    rank, size = (0, 1) if comm is None else (comm.rank, comm.size)
    rng, total = np.random.default_rng((seed, rank) if size > 1 else seed), n
    n = n * (rank + 1) // size - n * rank // size
    normals = rng.standard_normal((3, n))
    x, dens = rng.random((3, n)), rng.standard_normal((6, n))
    net = dens[:3].sum(axis=1, keepdims=True)  # forces that balance need no mean pressure gradient
    dens[:3] -= (net if comm is None else comm.allreduce(net)) / total
    return x, dens, normals / np.linalg.norm(normals, axis=0)


def run(
    options: EwaldOptions,
    n: int,
    seed: int,
    picture: Path | None,
    say: Callable[[str], None],
    progress: Progress | None = None,
) -> float:
    """Sum the flow of `n` random particles, report the times, and return the sampled error over the tolerance."""
    progress = progress or Progress(None)
    with ranks.together(options.comm, "making particles"):
        memory.require(n * PARTICLE, f"a demo with n = {n}", "A smaller n takes less.")
    x, dens, normals = particles(n, seed, ranks.of(options.comm) if ranks.several(options.comm) else None)
    say(f"parki {parki.__version__}: {KERNEL}, {n} random particles in a periodic box, tolerance {options.tolerance:g}")
    say(f"backend     {doctor.backend(options.execution_space)}")
    with progress:
        progress("preparing")
        start = time.perf_counter()
        plan = api.plan(KERNEL, x, x, options, return_walltime=True)  # on a GPU, phases are timed only if asked for
        plan.walltime.watch = progress
        middle = time.perf_counter()
        u = plan(dens, normals)
        end = time.perf_counter()
    say(f"parameters  {Params(plan.parameters)}")
    say(f"times       plan {middle - start:.2f} s (compiles what is not in the cache), sum {end - middle:.2f} s\n")
    say((plan.walltime.table() if plan.comm is None else plan.walltime.summary()) + "\n")
    with progress:
        progress("second sum")
        error = plan.error(u=u).value
    say(f"error       {error:.1e} relative RMS at {min(n, 100)} targets, against a second sum with the other split")
    if picture is not None and importlib.util.find_spec("matplotlib") is None:
        say('picture     none: matplotlib is not installed → pip install "parki[plot]"')
    elif picture is not None and (plan.comm is None or plan.comm.rank == 0):
        draw(picture, replace(options, comm=None), x[:, :FORCES], dens[:3, :FORCES])
        say(f"picture     {picture}")
    return error / options.tolerance


def draw(path: Path, options: EwaldOptions, x: Array, forces: Array) -> None:
    """Draw the flow of some of the particles' forces in the plane z = L/2: colour is speed, streaks follow the flow."""
    from matplotlib.cm import ScalarMappable  # imported here, because no other function needs them
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure

    forces = forces - forces.mean(axis=1, keepdims=True)  # as those of all particles, they balance
    lx, ly, lz = (float(side) for side in options.box)
    pixel = (np.arange(PIXELS) + 0.5) / PIXELS
    plane = np.stack([*(axis.ravel() for axis in np.meshgrid(pixel * lx, pixel * ly)), np.full(PIXELS**2, lz / 2)])
    # The combined kernel without a double layer is the stokeslet, and it is compiled already.
    dens, normals = np.vstack([forces, np.zeros_like(forces)]), np.ones_like(forces)
    flow = api.plan(KERNEL, plane, x, options)(dens, normals).reshape(3, PIXELS, PIXELS)
    speed = np.linalg.norm(flow, axis=0)
    scale = ScalarMappable(PowerNorm(0.7, *np.percentile(speed, [1, 99.5])), "inferno")
    colour = np.clip(scale.to_rgba(speed)[..., :3] * streaks(flow[0] / lx, flow[1] / ly)[..., None], 0.0, 1.0)
    figure = Figure(figsize=(7.4, 6.2), layout="constrained")
    axes = figure.subplots()
    axes.imshow(colour, extent=(0.0, lx, 0.0, ly), origin="lower")
    axes.set(xlabel="x (sides of the box)", ylabel="y (sides of the box)")
    axes.set_title(f"Stokes flow of {x.shape[1]} random forces in a periodic box,\nin the plane z = {lz / 2:g}")
    figure.colorbar(scale, ax=axes, extend="both", label="speed (typical force / (8π viscosity · side of the box))")
    with writing.replacing(path) as work:
        figure.savefig(work, format="png", dpi=120)


def streaks(u: Array, v: Array, steps: int = 18) -> Array:
    """Return brightness around 1 that varies across a periodic flow but hardly along it: line integral convolution.

    White noise is averaged over `steps` pixels up and down the flow (Cabral and Leedom 1993).
    """
    rows, columns = u.shape
    length = np.sqrt(u * u + v * v) + np.finfo(float).tiny
    u, v = (u / length).astype(np.float32).ravel(), (v / length).astype(np.float32).ravel()
    noise = np.random.default_rng(1).random(rows * columns, dtype=np.float32)
    total = noise.copy()
    for way in (np.float32(1), np.float32(-1)):
        y, x = (axis.ravel().astype(np.float32) for axis in np.indices((rows, columns)))
        place = np.arange(rows * columns)
        for _ in range(steps):
            x += way * u[place]
            y += way * v[place]
            place = np.rint(y).astype(np.int64) % rows * columns + np.rint(x).astype(np.int64) % columns
            total += noise[place]
    total = (total - total.mean()) / total.std()
    return np.clip(0.9 + 0.25 * total, 0.2, 1.6).reshape(rows, columns)
