"""The tolerance is met: random draws of kernel, tolerance, precision, box, points, number of points and split."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import parki

_spec = importlib.util.spec_from_file_location("reference", Path(__file__).parent.with_name("reference.py"))
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

COMPONENTS = {"laplace": 1, "stokes_sl": 3, "stokes_comb": 6}
POINTS = ("uniform", "cluster", "sphere", "lattice")


@dataclass(frozen=True)
class Draw:
    """One sum; `n_targets` is None where the targets are the sources."""

    seed: int
    kernel: str
    tolerance: float
    dtype: str
    box: tuple[float, float, float]
    points: str
    n_sources: int
    n_targets: int | None
    split: str


def draw(seed):
    """Draw a sum; every fourth one is in single precision."""
    rng = np.random.default_rng(seed)
    dtype = "float32" if seed % 4 == 3 else "float64"
    boxes = [(1.0, 1.0, 1.0), (1.0, 2.0, 3.0), tuple(float(side) for side in np.exp(rng.uniform(-1, 1, 3)))]
    return Draw(
        seed=seed,
        kernel=list(COMPONENTS)[seed % 3],
        tolerance=float(10 ** -rng.uniform(2, 12 if dtype == "float64" else 5)),
        dtype=dtype,
        box=boxes[rng.integers(3)],
        points=POINTS[rng.integers(len(POINTS))],
        n_sources=round(2 * 300 ** rng.random()),
        n_targets=None if rng.random() < 0.5 else round(2 * 300 ** rng.random()),
        split="prolate" if rng.random() < 0.6 else "gaussian",
    )


def points(kind, n, box, rng):
    """Points in a box: uniform, a Gaussian cluster, a sphere's surface, a jittered lattice."""
    sides = np.array(box)[:, None]
    if kind == "uniform":
        return sides * rng.random((3, n))
    if kind == "lattice":
        m = int(np.ceil(n ** (1 / 3)))
        nodes = np.array(np.meshgrid(*[np.arange(m)] * 3)).reshape(3, -1)[:, rng.permutation(m**3)[:n]]
        return parki.utils.wrap(sides / m * (nodes + 0.1 * rng.standard_normal((3, n))), box)
    x = rng.standard_normal((3, n))
    x *= 0.06 if kind == "cluster" else 0.3 / np.linalg.norm(x, axis=0)
    return parki.utils.wrap(sides * rng.random((3, 1)) + min(box) * x, box)


def ratio(d):
    """Error over tolerance of a draw."""
    rng = np.random.default_rng([d.seed, 1])
    n, components = d.n_sources, COMPONENTS[d.kernel]
    src = points(d.points, n, d.box, rng)
    trg = src if d.n_targets is None else points("uniform", d.n_targets, d.box, rng)
    given = [trg, src, rng.standard_normal((components, n) if components > 1 else n)]
    given += [rng.standard_normal((3, n))] if d.kernel == "stokes_comb" else []
    given = [a.astype(d.dtype) for a in given]
    given[:2] = [np.minimum(x, np.array(d.box, d.dtype)[:, None]) for x in given[:2]]  # rounding may have left the box
    u = getattr(parki.ewald, d.kernel)(*given, box=d.box, tolerance=d.tolerance, split=d.split)
    assert u.dtype == d.dtype
    return reference.relative_rms(u, reference.potential(d.kernel, *given, box=d.box)) / d.tolerance


@pytest.mark.parametrize("seed", range(30))
def test_tolerance_is_met(seed):
    d = draw(seed)
    assert ratio(d) <= 1, d


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_sweep():
    found = [(ratio(d), d) for d in map(draw, range(30, 430))]
    assert [(r, d) for r, d in found if not r <= 1] == []


def test_draws_cover_what_is_asked():
    draws = [draw(seed) for seed in range(30)]
    assert {d.points for d in draws} == set(POINTS)
    assert {d.split for d in draws} == {"prolate", "gaussian"}
    assert {d.kernel for d in draws if d.dtype == "float32"} == set(COMPONENTS)
    assert max(d.n_sources for d in draws) > 300
    assert min(d.n_sources for d in draws) <= 5
    assert min(d.tolerance for d in draws) < 1e-11
    assert max(d.tolerance for d in draws) > 3e-3
