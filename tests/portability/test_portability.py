"""Every workunit on every space that is here, in both precisions: one small problem each against plain NumPy."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import parki
from parki import engine
from parki.engine import RangePolicy, TeamPolicy

_spec = importlib.util.spec_from_file_location("formulas", Path(__file__).with_name("formulas.py"))
formulas = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(formulas)

pytestmark = pytest.mark.portability

BOX = (1.0, 1.3, 0.8)
CELLS = (3, 4, 5)
PAIRS = {"laplace": (1, 1, 1), "stokeslet": (3, 3, 2), "stresslet": (6, 3, 3), "stokes_comb": (9, 3, 3)}  # NS, NU, NF
P, DEGREE, TERMS = 6, 4, 4
WINDOW = {"P": P, "DEGREE": DEGREE}
P2P = {"p2p_gm_1d": (32, 1), "p2p_gm_2d": (8, 4), "p2p_sm_1d": (32, 1), "p2p_sm_2d": (8, 4)}  # rows and lanes of a team
P2G = ("p2g_block", "p2g_atomic", "p2g_grid", "p2g_hybrid")
G2P = ("g2p_target", "g2p_base")
NEAR = {"SCREENED": True, "TERMS": TERMS, "TARGETS": 8, "LANES": 4, "TILE": 8}  # less than a batch, less than a run
DTYPES = ("float64", "float32")
SLOTS = {
    "cell_index": [{}],
    "gather_points": [{}],
    "gather_sources": [{"NB": 3}],
    "batch_bounds": [{}],
    "scatter_sum": [{"FAR_SORTED": True}, {"FAR_SORTED": False}],
    "convolve_laplace": [{"DEGREE": DEGREE}],
    "convolve_stokes": [{"DEGREE": DEGREE, "COMB": False}, {"DEGREE": DEGREE, "COMB": True}],
    "direct_sum": [{"pair": f"pair/{name}"} for name in PAIRS],
    **{unit: [NEAR | {"pair": f"pair/{name}"} for name in PAIRS] for unit in P2P},
    **{unit: [WINDOW | {"NC": 3, "COMB": False}, WINDOW | {"NC": 4, "COMB": True}] for unit in P2G},
    "g2p_target": [WINDOW | {"NC": 3, "BATCH": 16}],
    "g2p_base": [WINDOW | {"NC": 3}],
    "halo_fold": [{}],
    "halo_wrap": [{}],
}
SLOTS["p2g_hybrid"] = [slots | {"CAP": 8, "ZT": 4} for slots in SLOTS["p2g_hybrid"]]
PLAIN = ("chunk_count", "count_scan", "chunk_begin", "chunk_place")  # of integers only


@pytest.fixture(scope="module")
def where(root):
    """The kernel file of every workunit."""
    found = {}
    for path in sorted((root / "kernels").glob("*.py")):
        for name in re.findall(r"@pk\.workunit[^\n]*\ndef (\w+)", path.read_text("utf-8")):
            found[name] = path.stem
    return found


@pytest.fixture(scope="module", autouse=True)
def compiled(where):
    """All specialisations, compiled side by side."""
    units = [engine.kernel(where[name], name) for name in PLAIN]
    for dtype in DTYPES:
        units += [engine.kernel(where[n], n, real=dtype, **slots) for n, chosen in SLOTS.items() for slots in chosen]
    engine.compile_all(units)


@pytest.fixture(params=DTYPES)
def real(request):
    return request.param


@pytest.fixture
def unit(where, real):
    """One of the compiled workunits by its name and place in the table."""
    return lambda name, i=0: engine.kernel(where[name], name, real=real, **SLOTS[name][i])


@pytest.fixture
def plain(where):
    return lambda name: engine.kernel(where[name], name)


def close(found, exact, factor=1.0):
    """Agreement to a few roundings, relative to the size of all."""
    bound = factor * {"float64": 1e-14, "float32": 4e-6}[found.dtype.name]
    np.testing.assert_allclose(found, exact, rtol=0, atol=bound * np.abs(exact).max())


def cloud(rng, n, real):
    """Points ``(3, n)`` sorted by cell, and the begins of the cells."""
    x = np.array(BOX)[:, None] * rng.random((3, n))
    index = np.minimum(x * np.array(CELLS)[:, None] / np.array(BOX)[:, None], np.array(CELLS)[:, None] - 1).astype(int)
    cell = np.ravel_multi_index(tuple(index), CELLS)
    begin = np.searchsorted(np.sort(cell), np.arange(np.prod(CELLS) + 1)).astype(np.int32)
    return np.ascontiguousarray(x[:, np.argsort(cell, kind="stable")].astype(real)), begin


def test_every_workunit_is_here(where):
    assert set(where) == {*SLOTS, *PLAIN}
    text = Path(__file__).read_text("utf-8")
    assert all(f"def test_{name}(" in text for name in where if name not in (*P2P, *P2G, *G2P))


def test_cell_index(space, real, unit, rng):
    x = (np.array(BOX)[:, None] * rng.random((3, 300))).astype(real)
    x[:, :3] = np.array(BOX)[:, None]
    cell = np.empty(300, np.int32)
    scale = [n / side for n, side in zip(CELLS, BOX, strict=True)]
    counts = {f"n{d}": n for d, n in enumerate(CELLS)} | {f"s{d}": s for d, s in enumerate(scale)}
    engine.parallel_for(RangePolicy(space, 300), unit("cell_index"), x=x, cell=cell, **counts)
    index = (x * np.array(scale, real)[:, None]).astype(int)
    expected = np.ravel_multi_index(tuple(np.minimum(index, np.array(CELLS)[:, None] - 1)), CELLS)
    np.testing.assert_array_equal(cell, expected)


def test_chunk_count(space, plain, rng):
    cell = rng.integers(0, 10, 100).astype(np.int32)
    count = np.zeros((3, 10), np.int32)
    engine.parallel_for(TeamPolicy(space, 3), plain("chunk_count"), cell=cell, count=count, n=100, chunk=40)
    np.testing.assert_array_equal(count, [np.bincount(cell[i : i + 40], minlength=10) for i in (0, 40, 80)])


def test_count_scan(space, plain, rng):
    count = rng.integers(0, 5, (3, 5000)).astype(np.int32)
    begin = np.empty(5000, np.int32)
    policy = RangePolicy(space, 5000)
    assert engine.parallel_reduce(policy, plain("count_scan"), count=count, begin=begin, chunks=3) == count.sum()
    np.testing.assert_array_equal(begin, np.cumsum(count.sum(axis=0)) - count.sum(axis=0))


def test_chunk_begin(space, plain, rng):
    count, begin = rng.integers(0, 5, (3, 70)).astype(np.int32), rng.integers(0, 90, 70).astype(np.int32)
    expected = begin + np.cumsum(count, axis=0) - count
    engine.parallel_for(RangePolicy(space, 70), plain("chunk_begin"), count=count, begin=begin, chunks=3)
    np.testing.assert_array_equal(count, expected)


def test_chunk_place(space, plain, rng):
    cell = rng.integers(0, 10, 100).astype(np.int32)
    count = np.array([np.bincount(cell[i : i + 40], minlength=10) for i in (0, 40, 80)])
    whole = count.sum(axis=0)
    at = (np.cumsum(whole) - whole + np.cumsum(count, axis=0) - count).astype(np.int32)
    order = np.empty(100, np.int32)
    engine.parallel_for(TeamPolicy(space, 3), plain("chunk_place"), cell=cell, at=at, order=order, n=100, chunk=40)
    np.testing.assert_array_equal(order, np.argsort(cell, kind="stable"))


def test_gather_points(space, real, unit, rng):
    x, order = rng.random((3, 77)).astype(real), rng.permutation(77).astype(np.int32)
    out = np.empty_like(x)
    engine.parallel_for(RangePolicy(space, 77), unit("gather_points"), x=x, order=order, out=out)
    np.testing.assert_array_equal(out, x[:, order])


def test_gather_sources(space, real, unit, rng):
    x, strength, order = rng.random((3, 77)).astype(real), rng.random((3, 77)).astype(real), rng.permutation(77)
    out = np.empty((77, 6), real)
    given = {"x": x, "strength": strength, "order": order.astype(np.int32)}
    engine.parallel_for(RangePolicy(space, 77), unit("gather_sources"), **given, out=out)
    np.testing.assert_array_equal(out, np.concatenate([x, strength[:, order]]).T)


def test_batch_bounds(space, real, unit, rng):
    x = rng.random((3, 60)).astype(real)
    batch = np.array([[0, 1], [1, 9], [9, 40], [40, 60]], np.int32)
    bound = np.empty((4, 6), real)
    engine.parallel_for(RangePolicy(space, 4), unit("batch_bounds"), x=x, batch=batch, bound=bound)
    parts = [x[:, b:e] for b, e in batch]
    np.testing.assert_array_equal(bound, [np.concatenate([p.min(axis=1), p.max(axis=1)]) for p in parts])


@pytest.mark.parametrize("far_sorted", [True, False])
def test_scatter_sum(far_sorted, space, real, unit, rng):
    a, b = rng.random((2, 3, 50)).astype(real)
    order, out = rng.permutation(50).astype(np.int32), np.empty((3, 50), real)
    given = {"a": a, "b": b, "order": order, "out": out, "components": 3}
    given["constant"] = constant = np.array([0.25, 0.5, -1.0], real)
    engine.parallel_for(RangePolicy(space, 50), unit("scatter_sum", int(not far_sorted)), **given)
    close(out[:, order], a + (b if far_sorted else b[:, order]) + constant[:, None])


def modes(rng, components, real):
    """A random spectrum ``(components, 4, 6, 2·5)``, and the tables of the multipliers."""
    spec = rng.standard_normal((components, 4, 6, 10)).astype(real)
    tables = {}
    for d, n in enumerate((4, 6, 5)):
        tables |= {f"k{d}": (np.fft.fftfreq(n) * n * (d + 1)).astype(real), f"d{d}": 1 + rng.random(n).astype(real)}
    tables |= {"profile": rng.random(DEGREE + 1).astype(real), "kmax2": 40.0, "m1": 6, "modes": 5}
    return spec, tables


def test_convolve_laplace(space, real, unit, rng):
    spec, tables = modes(rng, 1, real)
    expected = formulas.convolved(spec, tables, stokes=False)
    engine.parallel_for(TeamPolicy(space, 24), unit("convolve_laplace"), spec=spec, **tables)
    close(spec, expected, 3)


@pytest.mark.parametrize("components", [3, 4])
def test_convolve_stokes(components, space, real, unit, rng):
    spec, tables = modes(rng, components, real)
    expected = formulas.convolved(spec, tables, stokes=True)
    engine.parallel_for(TeamPolicy(space, 24), unit("convolve_stokes", components - 3), spec=spec, **tables)
    close(spec[:3], expected[:3], 3)


@pytest.mark.parametrize("pair", PAIRS)
def test_direct_sum(pair, space, real, unit, rng):
    ns, nu, nf = PAIRS[pair]
    xt, src = rng.standard_normal((3, 70)).astype(real), rng.standard_normal((33, 3 + ns)).astype(real)
    xt[:, 5] = src[7, :3]
    u = np.empty((nu, 70), real)
    given = {"xt": xt, "src": src, "u": u, "nt": 70, "ns": 33, "chunk": 32, "tiny": 0.0}
    engine.parallel_for(TeamPolicy(space, 3), unit("direct_sum", list(PAIRS).index(pair)), **given)
    close(u, formulas.pair_sum(pair, xt, src, np.zeros((nf, 1)), np.inf), 10)


def bounds(x, batch):
    """Lowest and highest coordinates of each batch."""
    parts = [x[:, b:e] for b, e in batch]
    return np.array([np.concatenate([p.min(axis=1), p.max(axis=1)]) for p in parts])


def near_setting(pair, rng, real):
    """The arguments of a near field: few batches, one longer than scratch, and a cutoff longer than one side."""
    ns, nu, nf = PAIRS[pair]
    x, begin = cloud(rng, 40, real)
    src = np.concatenate([x, rng.standard_normal((ns, 40))]).T.astype(real)
    xt = np.concatenate([cloud(rng, 30, real)[0], x[:, 3:6]], axis=1)
    batch = np.array([[0, 8], [8, 9], [9, 17], [17, 30], [30, 33]], np.int32)
    given = {
        "xt": xt, "src": np.ascontiguousarray(src), "u": np.full((nu, 33), np.nan, real), "batch": batch,
        "cell_begin": begin, "bound": bounds(xt, batch), "coef": rng.standard_normal(nf * TERMS).astype(real),
        "images": 3, "rc": 0.9, "tiny": 0.0, "t01": 0.0, "t02": 0.0, "t12": 0.0,
    }  # fmt: skip
    for d, (n, side) in enumerate(zip(CELLS, BOX, strict=True)):
        given |= {f"n{d}": n, f"l{d}": side, f"h{d}": side / n}
    return given


def near_field(name, pair, given, space, unit):
    u = given["u"].copy()
    policy = TeamPolicy(space, 5, *P2P[name])
    engine.parallel_for(policy, unit(name, list(PAIRS).index(pair)), **given | {"u": u})
    return u


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", P2P)
def test_p2p(name, pair, space, real, unit, rng):
    given = near_setting(pair, rng, real)
    far = given["coef"].reshape(-1, TERMS)
    exact = formulas.pair_sum(pair, given["xt"], given["src"], far, given["rc"], BOX)
    close(near_field(name, pair, given, space, unit), exact, 30)


def grid_setting(rng, real):
    """Window polynomials, grid points a length, and the shape of the grid with its margins."""
    polynomials = [rng.standard_normal((DEGREE + 1, P)).astype(real) for _ in range(2)]
    points = (9, 10, 8)
    scale = {f"s{d}": m / side for d, (m, side) in enumerate(zip(points, BOX, strict=True))}
    return polynomials, scale, tuple(m + P for m in points)


def spread_setting(components, rng, real):
    """40 sources by cell, what all P2G loops are given besides, and the shape of the grid."""
    (window, slope), scale, shape = grid_setting(rng, real)
    x, begin = cloud(rng, 40, real)
    src = np.ascontiguousarray(np.concatenate([x, rng.standard_normal((9 if components == 4 else 3, 40))]).T, real)
    return src, begin, {"window": window, "slope": slope} | scale, (components, *shape)


def spread(name, setting, space, unit):
    """The grid after one P2G loop; GRID stores to it, the others add."""
    src, begin, given, shape = setting
    which = unit(name, shape[0] - 3)
    grid = np.full(shape, np.nan if name == "p2g_grid" else 0, src.dtype)
    given = {"src": src, "grid": grid} | given
    cells = {f"n{d}": n for d, n in enumerate(CELLS)}
    if name == "p2g_block":
        del cells["n0"]
        block = np.array([[0, 2, 0, 4, 0, 5], [2, 3, 0, 3, 0, 5], [2, 3, 3, 4, 0, 5]], np.int32)
        for first in range(3):
            given |= {"block": block, "cell_begin": begin, "first": first} | cells
            engine.parallel_for(TeamPolicy(space, 1, 4, 8), which, **given)
    elif name == "p2g_atomic":
        engine.parallel_for(RangePolicy(space, len(src)), which, **given)
    elif name == "p2g_grid":
        widths = {f"h{d}": side / n for d, (n, side) in enumerate(zip(CELLS, BOX, strict=True))}
        given |= {"cell_begin": begin, "e1": shape[2], "e2": shape[3]} | cells | widths
        engine.parallel_for(TeamPolicy(space, shape[1] * shape[2], 32), which, **given)
    else:
        batch = np.array([[0, 8], [8, 9], [9, 27], [27, 40]], np.int32)
        bound = bounds(src.T[:3], batch).astype(src.dtype)
        engine.parallel_for(TeamPolicy(space, 4, 32), which, batch=batch, bound=bound, **given)
    return grid


@pytest.mark.parametrize("components", [3, 4])
@pytest.mark.parametrize("name", P2G)
def test_p2g(name, components, space, real, unit, rng):
    src, _, given, shape = setting = spread_setting(components, rng, real)
    scale = [given[f"s{d}"] for d in range(3)]
    exact = formulas.spread(src, given["window"], given["slope"], scale, components, shape[1:])
    close(spread(name, setting, space, unit), exact, 10)


def gather_setting(rng, real):
    """Targets, grid and window of an interpolation."""
    (window, _), scale, shape = grid_setting(rng, real)
    xt, grid = cloud(rng, 37, real)[0], rng.standard_normal((3, *shape)).astype(real)
    return {"xt": xt, "grid": grid, "window": window} | scale


def interpolate(name, given, space, unit):
    given = given | {"u": np.empty((3, 37), given["xt"].dtype)}
    if name == "g2p_base":
        engine.parallel_for(RangePolicy(space, 37), unit(name), **given)
    else:
        engine.parallel_for(TeamPolicy(space, 3, 4, 8), unit(name), nt=37, **given)
    return given["u"]


@pytest.mark.parametrize("name", G2P)
def test_g2p(name, space, real, unit, rng):
    given = gather_setting(rng, real)
    scale = [given[f"s{d}"] for d in range(3)]
    exact = formulas.interpolated(given["xt"], given["grid"], given["window"], scale)
    close(interpolate(name, given, space, unit), exact, 10)


def test_all_variants_agree(space, real, unit, rng):
    """Each loop against the first of its kind: they differ by the order of the sums alone."""
    for pair in PAIRS:
        given = near_setting(pair, rng, real)
        first, *others = (near_field(name, pair, given, space, unit) for name in P2P)
        for u in others:
            close(u, first, 10)
    for components in (3, 4):
        setting = spread_setting(components, rng, real)
        first, *others = (spread(name, setting, space, unit) for name in P2G)
        for grid in others:
            close(grid, first, 3)
    given = gather_setting(rng, real)
    close(interpolate(G2P[1], given, space, unit), interpolate(G2P[0], given, space, unit), 3)


def test_halo_fold(space, real, unit, rng):
    low, high, points = 2, 3, (6, 5, 8)
    grid = rng.standard_normal((2, *(low + m + high for m in points))).astype(real)
    expected = np.zeros((2, *points))
    place = np.meshgrid(*[(np.arange(low + m + high) - low) % m for m in points], indexing="ij")
    for c in range(2):
        np.add.at(expected[c], tuple(place), grid[c].astype(np.float64))
    numbers = {"low": low, "high": high, "m0": 6, "m1": 5, "m2": 8}
    engine.parallel_for(TeamPolicy(space, 2 * 6 * 5), unit("halo_fold"), grid=grid, **numbers)
    close(grid[:, low : low + 6, low : low + 5, low : low + 8], expected)


def test_halo_wrap(space, real, unit, rng):
    low, high = 2, 3
    box, grid = rng.standard_normal((6, 5, 8)).astype(real), np.zeros((2, 11, 10, 13), real)
    numbers = {"c": 1, "low": low, "m0": 6, "m1": 5, "e1": 10, "e2": 13, "m2": 8}
    engine.parallel_for(TeamPolicy(space, 11 * 10), unit("halo_wrap"), box=box, grid=grid, **numbers)
    np.testing.assert_array_equal(grid[1], np.pad(box, (low, high), mode="wrap"))
    np.testing.assert_array_equal(grid[0], 0)


@pytest.mark.parametrize("kernel", ["laplace", "stokes_sl", "stokes_comb"])
def test_ewald(kernel, space, real, root):
    with np.load(root / "tests" / "data" / "ewald_cases.npz") as file:
        get = {name.removeprefix("brick_plain_"): a for name, a in file.items()}
    strengths = {"laplace": ["charges"], "stokes_sl": ["dens"], "stokes_comb": ["dens", "normals"]}[kernel]
    given = [get[name].astype(real) for name in ("targets", "sources", *strengths)]
    if kernel == "stokes_sl":
        given[2] = given[2][:3]
    u = getattr(parki.ewald, kernel)(*given, box=tuple(get["box"]), tolerance=1e-4, execution_space=space)
    assert u.dtype == real
    exact = get[f"{kernel}_3p"]
    assert np.linalg.norm(u - exact) <= 1e-4 * np.linalg.norm(exact)
