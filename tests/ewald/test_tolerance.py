"""The tolerance is met: random draws of kernel, tolerance, precision, box, points, number of points and split."""

import importlib.util
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import parki

_spec = importlib.util.spec_from_file_location("reference", Path(__file__).parent.with_name("reference.py"))
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

COMPONENTS = {"laplace": 1, "stokes_sl": 3, "stokes_comb": 6}
POINTS = ("uniform", "cluster", "sphere", "jittered", "crystal", "equal", "layers")
#: Where symmetry cancels most of a crystal's sum, rounding is as large as these errors.
CRYSTAL_FLOOR = {"float64": 4e-12, "float32": 5e-5}
ROCK_SALT = (list(itertools.product((0, 0.5), repeat=3)), [1, -1, -1, 1, -1, 1, 1, -1])
CELLS = {"NaCl": ROCK_SALT, "CsCl": ([(0, 0, 0), (0.5, 0.5, 0.5)], [1, -1]), "cubic": ([(0, 0, 0)], [1])}


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
        n_targets=None if rng.random() < 0.6 else round(2 * 300 ** rng.random()),
        split="prolate" if rng.random() < 0.6 else "gaussian",
    )


def points(kind, n, box, rng):
    """Points in a box: uniform, a Gaussian cluster, a sphere's surface, a jittered lattice."""
    sides = np.array(box)[:, None]
    if kind in ("uniform", "equal"):
        return sides * rng.random((3, n))
    if kind == "jittered":
        m = int(np.ceil(n ** (1 / 3)))
        nodes = np.array(np.meshgrid(*[np.arange(m)] * 3)).reshape(3, -1)[:, rng.permutation(m**3)[:n]]
        return parki.utils.wrap(sides / m * (nodes + 0.1 * rng.standard_normal((3, n))), box)
    x = rng.standard_normal((3, n))
    x *= 0.06 if kind == "cluster" else 0.3 / np.linalg.norm(x, axis=0)
    return parki.utils.wrap(sides * rng.random((3, 1)) + min(box) * x, box)


def crystal(name, cells, box):
    """Ions of a crystal of `cells`³ elementary cells, and the signs of their strengths."""
    base, signs = CELLS[name]
    moves = np.array(list(itertools.product(range(cells), repeat=3)), float).T
    x = (np.array(base, float).T[:, :, None] + moves[:, None, :]).reshape(3, -1) / cells
    return np.array(box)[:, None] * x, np.repeat(np.array(signs, float), moves.shape[1])


def sources(d, rng):
    """Points and their strengths (components, N), one pattern of signs for crystals and layers."""
    components = COMPONENTS[d.kernel] + (3 if d.kernel == "stokes_comb" else 0)
    if d.points == "crystal":
        name = list(CELLS)[rng.integers(3)]
        src, signs = crystal(name, int(rng.integers(2 if name == "cubic" else 1, 5)), d.box)
        signs = rng.choice([-1.0, 1.0], len(signs)) if name == "cubic" else signs
    elif d.points == "layers":
        planes, axis = 2 * int(rng.integers(1, 5)), int(rng.integers(3))
        src, _ = crystal("cubic", planes, d.box)
        signs = (-1.0) ** np.rint(planes * src[axis] / d.box[axis])
    else:
        src = points(d.points, d.n_sources, d.box, rng)
        signs = None
    if signs is None and d.points != "equal":
        return src, rng.standard_normal((components, src.shape[1]))
    alike = np.ones((components, src.shape[1])) * rng.standard_normal((components, 1))
    if signs is not None:
        alike[: COMPONENTS[d.kernel]] *= signs
    return src, alike


def ratio(d):
    """Error over what is allowed for a draw: the tolerance, but for crystals near rounding."""
    rng = np.random.default_rng([d.seed, 1])
    src, strengths = sources(d, rng)
    perfect = d.points in ("crystal", "layers")
    trg = src if d.n_targets is None or perfect else points("uniform", d.n_targets, d.box, rng)
    given = [trg, src, strengths[0] if d.kernel == "laplace" else strengths[: COMPONENTS[d.kernel]]]
    given += [strengths[6:]] if d.kernel == "stokes_comb" else []
    given = [a.astype(d.dtype) for a in given]
    given[:2] = [np.minimum(x, np.array(d.box, d.dtype)[:, None]) for x in given[:2]]  # rounding may have left the box
    u = getattr(parki.ewald, d.kernel)(*given, box=d.box, tolerance=d.tolerance, split=d.split)
    assert u.dtype == d.dtype
    allowed = max(d.tolerance, CRYSTAL_FLOOR[d.dtype] if perfect else 0.0)
    return reference.relative_rms(u, reference.potential(d.kernel, *given, box=d.box)) / allowed


@pytest.mark.parametrize("seed", range(40))
def test_tolerance_is_met(seed):
    d = draw(seed)
    assert ratio(d) <= 1, d


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_sweep():
    found = [(ratio(d), d) for d in map(draw, range(40, 540))]
    assert [(r, d) for r, d in found if not r <= 1] == []
    # Accuracy that was not asked for costs time.
    for kernel in COMPONENTS:
        plain = [r for r, d in found if d.kernel == kernel and d.points in ("uniform", "equal")]
        assert 0.04 < np.median(plain) < 0.4


def test_draws_cover_what_is_asked():
    draws = [draw(seed) for seed in range(40)]
    assert {d.points for d in draws} == set(POINTS)
    assert {d.split for d in draws} == {"prolate", "gaussian"}
    assert {d.kernel for d in draws if d.dtype == "float32"} == set(COMPONENTS)
    assert max(d.n_sources for d in draws) > 300
    assert min(d.n_sources for d in draws) <= 5
    assert min(d.tolerance for d in draws) < 1e-11
    assert max(d.tolerance for d in draws) > 3e-3
