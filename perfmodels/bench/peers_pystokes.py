"""Velocities of spheres by forces on them against pystokes, at the same measured error: `parki bench spheres`.

Spheres are apart from each other on a shaken lattice, at a volume fraction of a tenth.  In free space pystokes sums
over all pairs, as parki's direct sum does; fast multipole sums at two tolerances stand beside them.  In a periodic cube
pystokes sums over images and modes, in a time that grows as the square of the number of spheres: there are few of them,
and parki's tolerance is the largest one tried that is as accurate.  Errors are relative to parki's sums, over all pairs
or at a tolerance of 1e-11.
"""

import argparse
import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from parki import direct
from parki.engine import Space, workers
from parki.ewald import api
from parki.fmm import api as fmm
from parki.perfmodels.bench.free import reaching
from parki.perfmodels.bench.measure import Row, absent, clock, require_host, row, turns
from parki.perfmodels.bench.peers import agreeing, relative

EXACT = 1e-11  # tolerance of the periodic sums that errors are measured against
FRACTION, SHAKE = 0.1, 0.1  # volume fraction; largest displacement along each axis, in spacings of the lattice
TOLERANCES = (1e-3, 1e-6)  # of fast multipole sums
FEW = 100  # spheres in the periodic cube
IMAGES = (4, 6)  # images and modes along a direction, at which pystokes has about 5 and 11 digits of 100 spheres
GET = "pip install pystokes"

Array = np.ndarray


def spheres(args: argparse.Namespace, space: Space) -> list[Row]:
    """Return rows of velocities in free space and in a cube, or a row on how to install pystokes.

    Raises
    ------
    ValueError
        If the space is not on the host.
    RuntimeError
        If pystokes and parki disagree.
    """
    require_host(space)
    try:
        pystokes = importlib.import_module("pystokes")
    except ImportError:
        return [absent("against pystokes", GET)]
    with threadpool_limits(workers(space)):
        return free_rows(pystokes, args.n, args.repeat, space) + periodic_rows(pystokes, FEW, args.repeat, space)


def suspension(n: int) -> tuple[Array, Array, float]:
    """Return centres (3, n) of spheres of radius 1 in a cube, forces (3, n) that add up to 0, and the cube's side."""
    rng, m = np.random.default_rng(0), int(np.ceil(n ** (1 / 3)))
    spacing = (4 / 3 * np.pi / FRACTION) ** (1 / 3)
    sites = np.stack(np.unravel_index(rng.permutation(m**3)[:n], (m, m, m)))
    x = (sites + 0.5 + SHAKE * rng.uniform(-1, 1, (3, n))) * spacing
    f = rng.standard_normal((3, n))
    return x, f - f.mean(axis=1, keepdims=True), m * spacing


def free_rows(pystokes: ModuleType, n: int, repeat: int, space: Space) -> list[Row]:
    """Return rows of all pairs and of fast multipole sums in free space."""
    x, f, _ = suspension(n)
    options: dict[str, Any] = {"radius": 1.0, "execution_space": space}
    plans = [direct.plan("rpy", x, x, **options), *(fmm.plan("rpy", x, x, tolerance=t, **options) for t in TOLERANCES)]
    peer = velocities(pystokes.unbounded.Rbm(radius=1.0, particles=n, viscosity=1.0), x, f)
    runs = [peer, *(functools.partial(plan, f) for plan in plans)]
    errors = [relative(run(), plans[0](f)) for run in runs]
    agreeing("pystokes", errors[0])
    names = ["pystokes", "parki, all pairs", *(f"parki, kifmm, tolerance {t:g}" for t in TOLERANCES)]
    return rows(f"free space, N = {n:,}", names, turns([clock(run) for run in runs], repeat), errors, n)


def periodic_rows(pystokes: ModuleType, n: int, repeat: int, space: Space) -> list[Row]:
    """Return rows of sums in a periodic cube, at the errors of pystokes."""
    x, f, side = suspension(n)
    options: dict[str, Any] = {"radius": 1.0, "box": (side,) * 3, "execution_space": space}
    exact = api.plan("rpy", x, x, tolerance=EXACT, **options)(f)
    mobility = pystokes.periodic.Rbm(radius=1.0, particles=n, viscosity=1.0, boxSize=side)
    results: list[Row] = []
    for images in IMAGES:
        peer, plans = velocities(mobility, x, f, images, images), []

        def error(tolerance: float, plans: list[Any] = plans) -> float:
            plans.append(api.plan("rpy", x, x, tolerance=tolerance, **options))
            return relative(plans[-1](f), exact)

        target = max(agreeing("pystokes", relative(peer(), exact)), EXACT)
        _, reached = reaching(error, target)
        times = turns([clock(peer), clock(functools.partial(plans[-1], f))], repeat)
        names = [f"pystokes, {images} images and modes", "parki"]
        results += rows(f"periodic cube, N = {n:,}", names, times, [target, reached], n)
    return results


def velocities(mobility: Any, x: Array, f: Array, *images: int) -> Callable[[], Array]:
    """Return a function that returns the velocities (3, n) of pystokes times 8π and the viscosity, which is 1."""
    points, forces = np.ascontiguousarray(x).ravel(), np.ascontiguousarray(f).ravel()

    def run() -> Array:
        u = np.zeros(x.size)
        mobility.mobilityTT(u, points, forces, *images)
        return 8 * np.pi * u.reshape(x.shape)

    return run


def rows(place: str, names: list[str], times: list[list[float]], errors: list[float], n: int) -> list[Row]:
    """Return rows of which the first one is the reference of the others."""
    results: list[Row] = []
    for name, seconds, error in zip(names, times, errors, strict=True):
        first = results[0] if results else None
        results.append(row(f"velocities, {place}: {name}", seconds, n / 1e6, "M spheres", first, error=error))
    return results
