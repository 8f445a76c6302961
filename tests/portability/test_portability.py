"""Tests of all workunits on every available space, in both precisions: a small problem each against NumPy."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import parki
from parki import engine
from parki.engine import RangePolicy, TeamPolicy
from tests.catalogue import PAIRS
from tests.portability import formulas, launching, problems
from tests.portability.formulas import close
from tests.portability.problems import (
    BOX,
    CELLS,
    DTYPES,
    G2P,
    MIXED,
    MULTIPLIERS,
    P2G,
    P2P,
    PLAIN,
    RC,
    REALS,
    SLOTS,
    TERMS,
)  # fmt: skip
from tests.quick import every

pytestmark = pytest.mark.portability


def choices(name, i):
    """Return the choices of the i-th specialisation of a loop, without its type."""
    return list(itertools.product(*problems.FACTORS[name][:-1]))[i]


@pytest.fixture(scope="module", autouse=True)
def compiled(where):
    """Compile the specialisations of every run in parallel."""
    units = [engine.kernel(where[name], name) for name in PLAIN]
    for name, chosen in SLOTS.items():
        for i, slots in enumerate(chosen):
            reals = REALS if name in MIXED else DTYPES
            if name in problems.FACTORS:
                reals = [real for real in reals if problems.in_turn(name, *choices(name, i), real)]
            types = (MIXED[name] if real == "mixed" else {"real": real} for real in reals)
            units += [engine.kernel(where[name], name, **of, **slots) for of in types]
    engine.compile_all(units)


@pytest.fixture(params=DTYPES)
def real(request):
    return request.param


@pytest.fixture
def unit(where, real):
    """Return a function that gives a compiled workunit by its name and place in the table."""

    def get(name, i=0):
        types = MIXED[name] if real == "mixed" else {"real": real}
        return engine.kernel(where[name], name, **types, **SLOTS[name][i])

    return get


@pytest.fixture
def plain(where):
    return lambda name: engine.kernel(where[name], name)


def test_every_workunit_is_here(where):
    """Check the list: trees, treecodes and steps are in other files, fast multipole methods have tests of their own."""
    elsewhere = "left_out close_pairs own_field virial modes glue bricks trees rows proxy clusters interchange m2l"
    elsewhere = f"{elsewhere} matrix surfaces translate m2l_block p2p_half mutual".split()
    here = {name for name, file in where.items() if file not in elsewhere}
    assert here == {*SLOTS, *PLAIN}
    text = Path(__file__).read_text("utf-8")
    assert all(f"def test_{name}(" in text for name in here if name not in (*P2P, *P2G, *G2P))


def test_cell_index(space, real, unit, rng):
    x = (np.array(BOX)[:, None] * rng.random((3, 300))).astype(real)
    x[:, :3] = np.array(BOX)[:, None]
    cell = np.empty(300, np.int32)
    scale = [n / side for n, side in zip(CELLS, BOX, strict=True)]
    counts = {f"n{d}": n for d, n in enumerate(CELLS)} | {f"s{d}": s for d, s in enumerate(scale)}
    launching.parallel_for(RangePolicy(space, 300), unit("cell_index"), x=x, cell=cell, **counts)
    index = (x * np.array(scale, real)[:, None]).astype(int)
    expected = np.ravel_multi_index(tuple(np.minimum(index, np.array(CELLS)[:, None] - 1)), CELLS)
    np.testing.assert_array_equal(cell, expected)


def test_chunk_count(space, plain, rng):
    cell = rng.integers(0, 10, 100).astype(np.int32)
    count = np.zeros((3, 10), np.int32)
    launching.parallel_for(TeamPolicy(space, 3), plain("chunk_count"), cell=cell, count=count, n=100, chunk=40)
    np.testing.assert_array_equal(count, [np.bincount(cell[i : i + 40], minlength=10) for i in (0, 40, 80)])


def test_count_scan(space, plain, rng):
    count = rng.integers(0, 5, (3, 5000)).astype(np.int32)
    begin = np.empty(5000, np.int32)
    policy = RangePolicy(space, 5000)
    assert launching.parallel_reduce(policy, plain("count_scan"), count=count, begin=begin, chunks=3) == count.sum()
    np.testing.assert_array_equal(begin, np.cumsum(count.sum(axis=0)) - count.sum(axis=0))


def test_chunk_begin(space, plain, rng):
    count, begin = rng.integers(0, 5, (3, 70)).astype(np.int32), rng.integers(0, 90, 70).astype(np.int32)
    expected = begin + np.cumsum(count, axis=0) - count
    launching.parallel_for(RangePolicy(space, 70), plain("chunk_begin"), count=count, begin=begin, chunks=3)
    np.testing.assert_array_equal(count, expected)


def test_chunk_place(space, plain, rng):
    cell = rng.integers(0, 10, 100).astype(np.int32)
    count = np.array([np.bincount(cell[i : i + 40], minlength=10) for i in (0, 40, 80)])
    whole = count.sum(axis=0)
    at = (np.cumsum(whole) - whole + np.cumsum(count, axis=0) - count).astype(np.int32)
    order = np.empty(100, np.int32)
    launching.parallel_for(TeamPolicy(space, 3), plain("chunk_place"), cell=cell, at=at, order=order, n=100, chunk=40)
    np.testing.assert_array_equal(order, np.argsort(cell, kind="stable"))


def test_gather_points(space, real, unit, rng):
    x, order = rng.random((3, 77)).astype(real), rng.permutation(77).astype(np.int32)
    out = np.empty_like(x)
    launching.parallel_for(RangePolicy(space, 77), unit("gather_points"), x=x, order=order, out=out)
    np.testing.assert_array_equal(out, x[:, order])


def test_gather_sources(space, real, unit, rng):
    x, strength, order = rng.random((3, 77)).astype(real), rng.random((3, 77)).astype(real), rng.permutation(77)
    out = np.empty((77, 6), real)
    given = {"x": x, "strength": strength, "order": order.astype(np.int32)}
    launching.parallel_for(RangePolicy(space, 77), unit("gather_sources"), **given, out=out)
    np.testing.assert_array_equal(out, np.concatenate([x, strength[:, order]]).T)


def test_batch_bounds(space, real, unit, rng):
    x = rng.random((3, 60)).astype(real)
    batch = np.array([[0, 1], [1, 9], [9, 40], [40, 60]], np.int32)
    bound = np.empty((4, 6), real)
    launching.parallel_for(RangePolicy(space, 4), unit("batch_bounds"), x=x, batch=batch, bound=bound)
    parts = [x[:, b:e] for b, e in batch]
    np.testing.assert_array_equal(bound, [np.concatenate([p.min(axis=1), p.max(axis=1)]) for p in parts])


@pytest.mark.parametrize("real", [*DTYPES, "mixed"], indirect=True)
@pytest.mark.parametrize("far_sorted", [True, False])
def test_scatter_sum(far_sorted, space, real, unit, rng):
    real, far = ("float64", "float32") if real == "mixed" else (real, real)
    a, b = rng.random((3, 50)).astype(real), rng.random((3, 50)).astype(far)
    order, out = rng.permutation(50).astype(np.int32), np.empty((3, 50), real)
    given = {"a": a, "b": b, "order": order, "out": out, "components": 3}
    given["constant"] = constant = np.array([0.25, 0.5, -1.0], real)
    given["factor"] = factor = np.array([[0.5, 4.0], [1.0, 1.0], [-2.0, 0.5]], real)
    launching.parallel_for(RangePolicy(space, 50), unit("scatter_sum", int(not far_sorted)), **given)
    total = a + (b if far_sorted else b[:, order]) + constant[:, None]
    close(out[:, order], total * factor.prod(axis=1)[:, None])


@pytest.mark.parametrize(("loop", "name", "skew", "real"), problems.combinations(["convolve"]), indirect=["real"])
def test_convolve(loop, name, skew, space, real, unit, rng):
    """Test the second to the fourth of four planes, with two right-hand sides and room for one more."""
    (taken, made), rows, length = MULTIPLIERS[name], 6, 5
    spec = rng.standard_normal((2, max(taken, made), 4, rows, length, 2)).astype(real)
    wave = [rng.standard_normal(n).astype(real) for n in (4, rows, length)]
    wave[0][2] = wave[1][0] = wave[2][0] = 0.0
    table = rng.standard_normal((4, rows, length) if skew else (4, rows // 2 + 1, length // 2 + 1)).astype(real)
    s01, s02, s12 = (0.2, -0.4, 0.3) if skew else (0.0, 0.0, 0.0)
    k = np.array(np.meshgrid(wave[0][1:], *wave[1:], indexing="ij"), float)
    k = np.array([k[0] + s01 * k[1] + s02 * k[2], k[1] + s12 * k[2], k[2]])
    b, j = np.arange(rows)[:, None], np.arange(length)
    g = table[1:] if skew else table[1:, np.minimum(b, rows - b), np.minimum(j, length - j)]
    v = spec[..., 0].astype(float) + 1j * spec[..., 1]
    expected = v.copy()
    for r in range(2):
        expected[r, :made, :3] = formulas.convolved(name, k, g.astype(float), v[r, :taken, :3])
    given = {"green": table, "kx": wave[0], "ky": wave[1], "kz": wave[2], "first": 1, "count": 4}
    given |= {"rows": rows, "length": length, "s01": s01, "s02": s02, "s12": s12}
    flat = spec.reshape(2 * max(taken, made), 4, rows, 2 * length)
    which = unit(loop, 2 * list(MULTIPLIERS).index(name) + skew)
    launching.parallel_for(TeamPolicy(space, 4 * rows), which, spec=flat, **given)
    found = spec.astype(float)[..., 0] + 1j * spec[..., 1]
    assert np.abs(found - expected).max() <= {"float64": 1e-14, "float32": 4e-6}[real] * 3 * np.abs(expected).max()


def test_planes_gather(space, real, unit, rng):
    """Test modes 3, 1 and −1, padded to 5 rows of 9, with room for one more plane and one more component."""
    full, grid, given = problems.planes(rng, real)
    spec = np.full((6, 4, 5, 18), 7.0, real)
    given |= {"first": 1, "count": 4, "planes": 4, "rows": 5, "length": 9}
    launching.parallel_for(TeamPolicy(space, 4 * 4 * 5), unit("planes_gather"), grid=grid, spec=spec, **given)
    expected = np.zeros((4, 4, 5, 9), complex)
    expected[:, :3, :3, :6] = full[:, [3, 1, 7]]
    close(spec[[0, 1, 3, 4]], problems.as_pairs(expected, "float64"), 3)
    np.testing.assert_array_equal(spec[[2, 5]], 7.0)


@pytest.mark.parametrize("both", [True, False])
def test_planes_scatter(both, space, real, unit, rng):
    """Test the reverse of `planes_gather` for modes 0 and 3, with their images or without."""
    full, expected, given = problems.planes(rng, real)
    spec = np.full((6, 2, 5, 9), 7.0 + 7.0j)
    spec[[0, 1, 3, 4], :, :3, :6] = full[:, [0, 3]]
    grid = np.full(expected.shape, 5.0, real)
    given |= {"first": 0, "count": 4, "planes": 2}
    which = unit("planes_scatter", int(not both))
    launching.parallel_for(TeamPolicy(space, 4 * 2 * 3), which, grid=grid, spec=problems.as_pairs(spec, real), **given)
    written = [0, 3, 5] if both else [0, 3]
    close(grid[:, written], expected[:, written].astype(float), 3)
    np.testing.assert_array_equal(np.delete(grid, written, axis=1), 5.0)


@pytest.mark.parametrize("pair", PAIRS)
def test_direct_sum(pair, space, real, unit, rng):
    ns, nu, nf = PAIRS[pair]
    xt, src = rng.standard_normal((3, 70)).astype(real), rng.standard_normal((33, 3 + ns)).astype(real)
    xt[:, 5] = src[7, :3]
    u = np.empty((nu, 70), real)
    given = {"xt": xt, "src": src, "u": u, "nt": 70, "ns": 33, "chunk": 32, "tiny": 0.0}
    launching.parallel_for(TeamPolicy(space, 3), unit("direct_sum", list(PAIRS).index(pair)), **given)
    close(u, formulas.pair_sum(pair, xt, src, np.zeros((nf, 1)), np.inf), 10)


def near_field(name, pair, given, space, unit):
    u = given["u"].copy()
    if name.startswith("p2p_list"):
        given = given | {"xs": np.ascontiguousarray(given["src"][:, :3].T)}
    policy = TeamPolicy(space, 5, *P2P[name])
    launching.parallel_for(policy, unit(name, list(PAIRS).index(pair)), **given | {"u": u})
    return u


@pytest.mark.parametrize(("name", "pair", "real"), problems.combinations(P2P), indirect=["real"])
def test_p2p(name, pair, space, real, unit, rng):
    given = problems.near_setting(pair, rng, real)
    far = given["coef"].reshape(-1, TERMS)
    exact = formulas.pair_sum(pair, given["xt"], given["src"], far, RC, BOX)
    close(near_field(name, pair, given, space, unit), exact, 30)


def spread(name, setting, space, unit):
    """Return the grid after one P2G loop; GRID and TILE store to it, the others add."""
    src, begin, given, shape = setting
    which = unit(name, shape[0] - 3)
    grid = np.full(shape, np.nan if name in ("p2g_grid", "p2g_tile") else 0, given["window"].dtype)
    given = {"src": src, "grid": grid} | given
    cells = {f"n{d}": n for d, n in enumerate(CELLS)}
    if name == "p2g_block":
        del cells["n0"]
        block = np.array([[0, 2, 0, 4, 0, 5], [2, 3, 0, 3, 0, 5], [2, 3, 3, 4, 0, 5]], np.int32)
        for first in range(3):
            given |= {"block": block, "cell_begin": begin, "first": first} | cells
            launching.parallel_for(TeamPolicy(space, shape[0], 4, 8), which, **given)
    elif name == "p2g_atomic":
        launching.parallel_for(RangePolicy(space, len(src)), which, **given)
    elif name in ("p2g_grid", "p2g_tile"):
        widths = {f"h{d}": side / n for d, (n, side) in enumerate(zip(CELLS, BOX, strict=True))}
        given |= {"cell_begin": begin} | cells | widths | problems.extent(name, shape)
        launching.parallel_for(TeamPolicy(space, problems.teams(name, shape), 32), which, **given)
    else:
        batch = np.array([[0, 8], [8, 9], [9, 27], [27, 40]], np.int32)
        bound = problems.bounds(src.T[:3], batch).astype(src.dtype)
        launching.parallel_for(TeamPolicy(space, 4, 32), which, batch=batch, bound=bound, **given)
    return grid


@pytest.mark.parametrize(("name", "components", "real"), problems.combinations(P2G), indirect=["real"])
def test_p2g(name, components, space, real, unit, rng):
    src, _, given, shape = setting = problems.spread_setting(components, rng, *problems.types_of(real))
    scale = [given[f"s{d}"] for d in range(3)]
    exact = formulas.spread(src, given["window"], given["slope"], scale, components, shape[1:])
    close(spread(name, setting, space, unit), exact, 10)


def interpolate(name, setting, space, unit, taken=0):
    begin, given = setting
    given = given | {"u": np.full(((3, 12, 9)[taken], 37), np.nan, given["grid"].dtype)}
    if name == "g2p_base":
        launching.parallel_for(RangePolicy(space, 37), unit(name, taken), **given)
    elif name == "g2p_tile":
        given |= problems.tiles(begin, given["grid"].shape[1:])
        launching.parallel_for(TeamPolicy(space, given["tiles"], 4, 8), unit(name, taken), **given)
    else:
        batch = np.array([[16, 32], [0, 16], [37, 37], [32, 37]], np.int32)
        launching.parallel_for(TeamPolicy(space, 4, 4, 8), unit(name, taken), batch=batch, batches=4, **given)
    return given["u"]


@pytest.mark.parametrize(("name", "taken", "real"), problems.combinations(G2P), indirect=["real"])
def test_g2p(name, taken, space, real, unit, rng):
    _, given = setting = problems.gather_setting(rng, *problems.types_of(real))
    scale = [given[f"s{d}"] for d in range(3)]
    u, g = formulas.interpolated(*(given[name] for name in ("xt", "grid", "window", "slope")), scale)
    tilted = np.array([[1, 0.2, -0.4], [0, 1, 0.3], [0, 0, 1]]) @ g
    exact = (u, np.concatenate([u, g.reshape(9, -1)]), tilted.reshape(9, -1))[taken]
    close(interpolate(name, setting, space, unit, taken), exact, 20)


def test_all_variants_agree(space, real, unit, rng):
    """Compare each loop with the first of its kind: they differ only by the order of sums."""
    for pair in PAIRS:
        given = problems.near_setting(pair, rng, real)
        loops = [name for name in P2P if problems.in_turn(name, pair, real)]
        first, *others = (near_field(name, pair, given, space, unit) for name in loops)
        assert others
        for u in others:
            close(u, first, 10)
    for components in (3, 4):
        setting = problems.spread_setting(components, rng, real)
        loops = [name for name in P2G if problems.in_turn(name, components, real)]
        first, *others = (spread(name, setting, space, unit) for name in loops)
        assert others
        for grid in others:
            close(grid, first, 3)


@pytest.fixture(params=[3, 2, 1])
def margins(request):
    """Return widths below, inside and above three axes, the last ones without margins, and numbers to pass."""
    inside = (6, 5, 8)
    low, high = ([w * (axis < request.param) for axis in range(3)] for w in (2, 3))
    given = {
        f"{name}{axis}": n for name, v in (("low", low), ("high", high), ("m", inside)) for axis, n in enumerate(v)
    }
    return low, inside, high, given


def test_halo_clear(space, real, unit, rng):
    memory = rng.standard_normal((2, 6, 5, 9)).astype(real)
    grid = memory[..., :7]
    launching.parallel_for(TeamPolicy(space, 2 * 6 * 5), unit("halo_clear"), grid=grid, e0=6, e1=5, e2=7)
    assert not grid.any()
    assert memory[..., 7:].all()


def test_halo_fold(space, real, unit, rng, margins):
    low, inside, high, given = margins
    grid = rng.standard_normal((2, *map(sum, zip(*margins[:3], strict=True)))).astype(real)
    expected = np.zeros((2, *inside))
    axes = [(np.arange(a + m + b) - a) % m for a, m, b in zip(low, inside, high, strict=True)]
    place = np.meshgrid(*axes, indexing="ij")
    for c in range(2):
        np.add.at(expected[c], tuple(place), grid[c].astype(np.float64))
    launching.parallel_for(TeamPolicy(space, 2 * 6 * 5), unit("halo_fold"), grid=grid, **given)
    close(grid[(slice(None), *(slice(a, a + m) for a, m in zip(low, inside, strict=True)))], expected)


def within(margins, rng, real):
    """Return a box of numbers, within margins of NaN."""
    low, inside, high, given = margins
    widths = list(zip(low, high, strict=True))
    box = rng.standard_normal((2, *inside)).astype(real)
    return box, widths, np.pad(box, [(0, 0), *widths], constant_values=np.nan), given


def test_halo_ends(space, real, unit, rng, margins):
    """Test ends along z alone."""
    box, widths, grid, given = within(margins, rng, real)
    given = {name: n for name, n in given.items() if name not in ("high0", "high1")}
    launching.parallel_for(TeamPolicy(space, 2 * 6 * 5), unit("halo_ends"), grid=grid, **given)
    expected = np.pad(box, [(0, 0)] * 3 + widths[2:], mode="wrap")
    expected = np.pad(expected, [(0, 0), *widths[:2], (0, 0)], constant_values=np.nan)
    np.testing.assert_array_equal(grid, expected)


def test_halo_rows(space, real, unit, rng, margins):
    """Test rows along x and y, whole rows with their ends."""
    box, widths, grid, given = within(margins, rng, real)
    given = {name: given[name] for name in ("low0", "low1", "m0", "m1")}
    given |= {f"e{axis}": n for axis, n in enumerate(grid.shape[1:])}
    expected = np.pad(box, [(0, 0)] * 3 + widths[2:], constant_values=np.nan)
    expected = np.pad(expected, [(0, 0), *widths[:2], (0, 0)], mode="wrap")
    launching.parallel_for(TeamPolicy(space, 2 * grid.shape[1] * grid.shape[2]), unit("halo_rows"), grid=grid, **given)
    np.testing.assert_array_equal(grid, expected)


@pytest.mark.parametrize(
    ("kernel", "real"),
    every(2, [(k, d) for k, way in (("laplace", -1), ("stokes_sl", 1), ("stokes_comb", 1)) for d in DTYPES[::way]]),
    indirect=["real"],
)
def test_ewald(kernel, space, real, root):
    with np.load(root / "tests" / "data" / "ewald_cases.npz") as file:
        get = {name.removeprefix("brick_plain_"): a for name, a in file.items()}
    strengths = {"laplace": ["charges"], "stokes_sl": ["dens"], "stokes_comb": ["dens", "normals"]}[kernel]
    given = [get[name].astype(real) for name in ("targets", "sources", *strengths)]
    if kernel == "stokes_sl":
        given[2] = given[2][:3]
    u = getattr(parki.ewald, kernel)(*given, box=tuple(get["box"]), tolerance=1e-3, execution_space=space)
    assert u.dtype == real
    exact = get[f"{kernel}_3p"]
    assert np.linalg.norm(u - exact) <= 1e-3 * np.linalg.norm(exact)
