"""Tiles of grid points in spreading (TILE): their shapes, their scratch, and the counts of their loops."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import parki
from parki import engine
from parki.ewald.choice import choose, spread_tiles
from parki.ewald.choice.question import Question
from parki.ewald.stages import loop_counts
from parki.ewald.stages.spread import spread_kernel, tile_of
from parki.perfmodels.counts import p2g
from parki.perfmodels.counts.p2g import Spreading

ZS = engine.kernel_constant("p2g_tile", "ZS")
LIMITS = {"GH100": 226 << 10, "GA100": 162 << 10, "AD102": 98 << 10, "MI300X": 63 << 10, "GpuSim": 64 << 10}


@pytest.mark.parametrize(("kernel", "tolerance"), [("laplace", 1e-4), ("stokes_sl", 1e-7), ("stokes_comb", 1e-9)])
@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_shapes_fit(kernel, tolerance, limit, plan_of_gpu):
    p, v = plan_of_gpu(kernel, tolerance)
    v = replace(v, scratch=limit)
    shape, unit = tile_of(p, v), spread_kernel(p, v)
    assert engine.scratch_bytes(unit.ir, {}) <= limit
    assert shape["TY"] % (shape["YT"] * shape["LINE"]) == 0
    assert shape["TX"] * shape["TY"] // shape["YT"] <= spread_tiles.MOST_THREADS
    moments = {"laplace": 1, "stokes_sl": 3, "stokes_comb": 10}[kernel]
    window = p.P, p.window_degree
    size = spread_tiles.scratch_bytes(
        shape, p.kernel.spread, p.kernel.slopes, moments, window, p.itemsizes[1], shape["CAP"]
    )
    assert size == engine.scratch_bytes(unit.ir, {})
    more = tile_of(p, replace(v, scratch=2 * limit))
    assert more["TX"] * more["TY"] * more["CAP"] >= shape["TX"] * shape["TY"] * shape["CAP"]


@pytest.fixture
def plan_of_gpu():
    """Return a function that chooses parameters and variants of a GPU for a million points."""

    def chosen(kernel, tolerance):
        p = choose.parameters(Question(kernel, (1.0, 1.0, 1.0), 10**6, 10**6, tolerance))
        return p, parki.ewald.choice.variants.choose(engine.Space("GpuSim"), p.dtype)

    return chosen


def test_no_tile_fits_little_scratch():
    shape = spread_tiles.tile(4, True, 10, (16, 12), 8, 8 << 10)
    assert (shape["TX"], shape["TY"], shape["CAP"]) == (8, 8, 4)


def test_counts_are_those_of_random_points(rng):
    """Count the candidates and members of all tiles for random sources, and the rows that their windows meet."""
    P, extent, cells, n = 6, (40, 37, 45), (5.0, 6.0, 2.0), 4000
    tile = {"TX": 16, "TY": 8, "TZ": 8, "YT": 2, "LINE": 4, "CAP": 32}
    box = np.array(extent) - P
    first = np.floor(rng.random((n, 3)) * box).astype(int)  # first taps, in a grid with margins
    cell = (first + 0.5) / cells
    shape = tuple(int(-(-b // c)) for b, c in zip(box, cells, strict=True))
    sides = tile["TX"], tile["TY"], tile["TZ"]
    members = candidates = rows = parts = n_tiles = 0
    for corner in itertools.product(*(range(0, e, side) for e, side in zip(extent, sides, strict=True))):
        low, high = np.array(corner) - P + 1, np.array(corner) + sides
        near = (np.floor(low / cells) <= np.floor(cell)) & (np.floor(cell) <= np.floor((high - 1) / cells))
        touches = ((first >= low) & (first < high)).all(axis=1)
        n_tiles, members, candidates = n_tiles + 1, members + touches.sum(), candidates + near.all(axis=1).sum()
        for i, j in first[touches, :2] - corner[:2]:
            in_x = min(i + P, tile["TX"]) - max(i, 0)
            in_y = (min(j + P, tile["TY"]) + 1) // 2 - max(j, 0) // 2
            rows += in_x * in_y
        for k in first[touches, 2] - corner[2]:
            parts += (min(k + P, tile["TZ"]) + ZS - 1) // ZS - max(k, 0) // ZS
    spreading = Spreading(n, 4, 1, P, math.prod(extent), cells)
    cell_grid = parki.cells.CellGrid((1.0, 1.0, 1.0), shape)
    turns = loop_counts.tiles(spreading, cell_grid, extent, tile, 1)
    of = turns.of
    lists = of["first_column"] * of["list_number"]
    assert turns.teams == n_tiles
    assert turns.teams * lists * of["candidate"] == pytest.approx(candidates, rel=0.25)
    met = turns.teams * lists * of["batch"] * of["t"]
    assert met == pytest.approx(members, rel=0.15)
    owners = tile["TX"] * tile["TY"] // tile["YT"]
    assert of["q"] == pytest.approx(of["t"] * of["in_reach"])
    assert met * owners * of["in_reach"] * of["in_window"] == pytest.approx(rows, rel=0.1)
    assert of["z_in_window"] == pytest.approx(parts / members / (tile["TZ"] // ZS), rel=0.1)
    assert of["touches"] == pytest.approx(members / candidates, rel=0.2)


@pytest.mark.parametrize(("line", "rows"), [(8, 1), (4, 2), (4, 4)])
def test_lanes_that_a_source_meets(line, rows):
    """Compare with all places of a window of 9 × 9 beside rows of 32 lanes."""
    P, across = 9, 32 // line
    met = executed = 0
    for i, j in itertools.product(range(across), range(line * rows)):
        columns = {(i + a, (j + b) // rows) for a in range(P) for b in range(P)}
        met += len(columns)
        executed += 32 * len({(x // across, y // line) for x, y in columns})
    assert p2g.met(P, 32, line, rows) == pytest.approx(met / executed, rel=0.02)


def test_the_same_bits_on_any_number_of_threads(rng):
    x, q = rng.random((3, 3000)), rng.standard_normal(3000)
    options = {"box": (1.0, 1.0, 1.0), "tolerance": 1e-3, "p2g_method": "TILE", "rc": 0.2, "far_precision": "double"}
    results = [parki.ewald.laplace(x, x, q, execution_space="OpenMP", threads=n, **options) for n in (1, 2, 2)]
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[1], results[2])
    assert engine.operations(spread_kernel(*_of(x, options))).total(otherwise=1.0).updates == {}


def _of(x, options):
    plan = parki.ewald.plan("laplace", x, x, **options)
    return plan.parameters, plan.chosen.variants
