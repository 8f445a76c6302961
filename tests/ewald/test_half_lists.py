"""Half lists: near fields of points at themselves that meet each pair once, where they pay, on any threads."""

import itertools

import numpy as np
import pytest

import parki
from parki.cells import CellGrid
from parki.ewald import predict
from parki.ewald.kernels import KERNELS
from parki.ewald.stages import half_lists
from tests.quick import but

N = 8000
CASES = {
    "laplace": ("laplace", {}),
    "gradients": ("laplace", {"gradient": True}),
    "slopes": ("laplace_grad", {}),
    "yukawa": ("yukawa", {"kappa": 3.0}),
    "forces": ("stokes_sl", {}),
    "blobs": ("regularised_stokeslet", {"epsilon": 0.02}),
    "spheres": ("rpy", {"radius": 0.04}),
    "normals": ("stokes_dl", {}),
    "single precision": ("laplace", {"tolerance": 1e-4, "dtype": "float32"}),
    "slab": ("laplace", {"periodicity": 2}),
    "column": ("laplace", {"periodicity": 1}),
    "free space": ("laplace", {"periodicity": 0}),
}


def rows(result):
    """Return all numbers of a result as rows."""
    parts = result if isinstance(result, tuple) else (result,)
    return np.concatenate([np.atleast_2d(part) for part in parts])


def points(rng, kind, n=N):
    """Return points of the unit box."""
    x = rng.random((3, n))
    if kind == "clusters":
        x = (0.5 + 0.02 * rng.standard_normal((3, n)) + (rng.random((1, n)) > 0.5) * 0.3) % 1.0
    elif kind == "crystal":
        side = round(n ** (1 / 3))
        x = np.array(np.meshgrid(*[np.arange(side) / side] * 3)).reshape(3, -1)
        x[:, 1:40] = x[:, :1]
    return x


@pytest.fixture
def plans(monkeypatch):
    """Return a function that makes plans of one sum: by half lists, if that is `once`, and by whole ones."""

    def make(kernel, x, once=True, **options):
        x = x.astype(options.pop("dtype", "float64"))
        given = {"box": (1.0, 1.0, 1.0), "tolerance": 1e-6, "rc": 0.07, "execution_space": "Serial"} | options
        made = []
        for fewest in (1000, 10**9):
            monkeypatch.setattr(half_lists, "FEWEST_POINTS", fewest)
            made.append(parki.ewald.plan(kernel, x, x, **given))
        assert [plan.chosen.variants.once for plan in made] == [once, False]
        return made

    return make


@pytest.mark.parametrize("case", but("normals", "slopes", "spheres", of=CASES))
def test_sums_are_those_of_whole_lists(case, plans, rng, monkeypatch):
    monkeypatch.setattr(half_lists, "MOST_NUMBERS", half_lists.MOST_WIDE)
    kernel, options = CASES[case]
    x, q = points(rng, "uniform"), rng.standard_normal((KERNELS[kernel].given, N))
    half, whole = plans(kernel, x, **options)
    q = (q - q.mean(axis=1, keepdims=True)).astype(options.get("dtype", "float64"))
    given = (q[:3], q[3:]) if KERNELS[kernel].normals else (q if len(q) > 1 else q[0],)
    found, exact = rows(half(*given)), rows(whole(*given))
    scale = np.linalg.norm(exact, axis=1)
    eps = np.finfo(q.dtype).eps
    assert np.all(np.linalg.norm(found - exact, axis=1) <= 20 * eps * scale)


@pytest.mark.parametrize("kind", ["clusters", "crystal"])
def test_points_that_move(kind, plans, rng):
    x, q = points(rng, "uniform"), rng.standard_normal(N)
    half, whole = plans("laplace", x, tolerance=1e-9)  # roots have so many digits that rounding alone differs
    y = points(rng, kind)
    n = y.shape[1]
    y = np.concatenate([y, rng.random((3, N - n))], axis=1) if n < N else y[:, :N]
    half.move(y)
    whole.move(y)
    found, exact = half(q), whole(q)
    assert np.linalg.norm(found - exact) <= 1e-12 * np.linalg.norm(exact)


def test_clustered_points_have_whole_lists(plans, rng):
    plans("laplace", points(rng, "clusters"), once=False)


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        ("laplace", {"rc": 0.3}),  # less than four blocks along a side
        ("stokes_comb", {}),  # nine numbers of a source
        ("laplace", {"p2p_method": "GM-1D"}),
        ("laplace", {"box": [[1.0, 0, 0], [0.3, 1.0, 0], [0.1, 0.2, 1.0]]}),
    ],
)
def test_other_sums_have_whole_lists(kernel, options, plans, rng):
    plans(kernel, points(rng, "uniform"), once=False, **options)


def test_many_numbers_of_a_pair_have_whole_lists(plans, rng, monkeypatch):
    """Forces have three numbers and nine sums of gradients."""
    wide = parki.engine.target().vector_bytes >= half_lists.WIDE
    for once in (True, False):
        monkeypatch.setattr(half_lists, "MOST_WIDE" if wide else "MOST_NUMBERS", 12 - (not once))
        plans("stokes_grad", points(rng, "uniform"), once=once)


def test_predictions(plans, rng):
    half, whole = (plan.predict().phases for plan in plans("laplace", points(rng, "uniform")))
    assert half == whole | {"near": pytest.approx(predict.ONCE * whole["near"])}


def test_several_densities(plans, rng):
    x, q = points(rng, "uniform"), rng.standard_normal((2, N))
    half, _ = plans("laplace", x)
    together = half(q)
    for row, one in zip(together, q, strict=True):
        assert np.linalg.norm(half(one) - row) <= 1e-14 * np.linalg.norm(row)


def test_results_do_not_depend_on_threads(plans, rng, monkeypatch):
    x, q = points(rng, "uniform"), rng.standard_normal(N)
    results = []
    for threads in ("1", "2", "4"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        half, _ = plans("laplace", x, execution_space="OpenMP")
        results.append(half(q))
    assert all(np.array_equal(results[0], other) for other in results)


@pytest.mark.parametrize("shape", [(4, 4, 4), (9, 8, 33), (23, 23, 93), (5, 40, 7)])
def test_blocks_of_one_colour_are_two_cutoffs_apart(shape):
    """Check across the faces of the box, too."""
    grid = CellGrid((1.0, 1.5, 0.7), shape)
    rc = 0.08
    counts = [max((c for c in range(2, n + 1, 2) if n // c * w >= 2 * rc), default=1) for n, w in
              zip(shape, grid.widths, strict=True)]  # fmt: skip
    assert half_lists.blocks(type("P", (), {"rc": rc}), grid) == counts
    boxes, starts = grid.coloured(counts)
    cells = np.zeros(shape, int)
    for box in boxes:
        cells[tuple(slice(*box[2 * d : 2 * d + 2]) for d in range(3))] += 1
    assert np.all(cells == 1)
    widths, sides = np.array(grid.widths), np.array(grid.box)
    for first, end in itertools.pairwise(starts):
        low, high = boxes[first:end, ::2] * widths, boxes[first:end, 1::2] * widths
        for a, b in itertools.combinations(range(len(low)), 2):
            gaps = [np.max([low[a] - high[b] + s, low[b] - high[a] - s], axis=0) for s in (-sides, 0 * sides, sides)]
            assert np.min(gaps, axis=0).max() >= 2 * rc * (1 - 1e-12)
