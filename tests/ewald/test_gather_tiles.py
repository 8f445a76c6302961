"""Interpolation by tiles: their shapes, where they are taken, and results that depend on neither tile nor threads."""

from dataclasses import replace

import numpy as np
import pytest

from parki import engine
from parki.engine import Space, TeamPolicy
from parki.ewald.choice import choose, gather_tiles, variants
from parki.ewald.choice.question import Question
from parki.ewald.options import EwaldOptions
from parki.ewald.stages import far
from tests.ewald import loops

BOX = (1.0, 1.0, 1.0)
CUDA = 98 << 10
WINDOWS = [(P, itemsize, sloped) for P in (4, 5, 8, 11, 12, 16, 18) for itemsize in (8, 4) for sloped in (False, True)]


@pytest.mark.parametrize(("P", "itemsize", "sloped"), WINDOWS)
def test_tiles_fit_and_lanes_read_from_different_banks(P, itemsize, sloped):
    tile = gather_tiles.best(P, itemsize, 1 + 3 * sloped, sloped, CUDA)
    assert tile.nbytes(itemsize) <= CUDA
    assert all(taps >= P for taps in tile.taps)
    assert tile.row >= tile.extent[2]
    banks = gather_tiles.BANKS // itemsize
    y, z = np.indices(tile.lanes).reshape(2, -1)
    places = (y * tile.row + z) % banks
    assert all(len(set(part)) == len(part) for part in np.split(places, range(banks, len(places), banks)))
    assert gather_tiles.best(P, itemsize, 1 + 3 * sloped, sloped, 2 * CUDA).copies <= tile.copies


def test_bytes_of_scratch_are_those_of_the_kernel():
    tile = gather_tiles.best(12, 8, 4, True, CUDA)
    unit = engine.kernel("g2p_tile", "g2p_tile", P=12, SLOPES=True, **tile.slots())
    assert engine.scratch_bytes(unit.ir, {}) == tile.nbytes(8)


def test_wide_windows_have_no_tile():
    assert gather_tiles.best(24, 8, 1, False, CUDA) is None


def chosen(kernel="stokes_comb", n=1_000_000, n_targets=None, space="Cuda", **options):
    p = choose.parameters(Question(kernel, BOX, n, n, 1e-9))
    given = EwaldOptions(box=BOX, **options)
    return variants.choose(Space(space), p.dtype, given, p, n if n_targets is None else n_targets)


def test_tiles_are_taken_for_many_targets_on_gpus():
    assert chosen().g2p == "TILE"
    assert chosen(n_targets=1000).g2p == "TARGET"
    assert chosen(n_targets=1000, g2p_method="TILE").g2p == "TILE"
    assert chosen(g2p_method="TARGET").g2p == "TARGET"
    assert chosen(space="OpenMP").g2p == "TARGET"
    assert chosen(space="OpenMP", g2p_method="TILE").g2p == "TILE"


def test_no_tiles_in_triclinic_cells_and_for_wide_windows():
    p = choose.parameters(Question("laplace", BOX, 1000, 1000, 1e-6))
    named = EwaldOptions(box=BOX, g2p_method="TILE")
    for other in (replace(p, skew=(0.1, 0.0, 0.0)), replace(p, P=30)):
        assert variants.choose(Space("Cuda"), p.dtype, named, other, 1000).g2p == "TARGET"
    v = variants.choose(Space("Cuda"), p.dtype, named)
    with pytest.raises(ValueError, match="g2p_method is 'TILE', and a window of 30 points is too wide"):
        far.tile_of(replace(p, P=30), v)


def test_half_of_much_scratch_is_for_one_team():
    p = choose.parameters(Question("laplace", BOX, 1000, 1000, 1e-6))
    for size, of_team in ((63, 63), (99, 99), (163, 80.5), (227, 112.5)):
        v = variants.choose(Space("Cuda"), "float64", scratch=size << 10)
        assert v.tile(p).nbytes(8) <= of_team * 1024
        assert v.tile(p) == gather_tiles.best(p.P, p.itemsizes[1], 1, False, int(of_team * 1024))


# The kernel -----------------------------------------------------------------------------------------------------------
SLOTS = {"real": "double", "P": loops.P, "DEGREE": loops.DEGREE, "NC": 2, "SLOPES": True}
TILES = (
    {"BX": 3, "BY": 4, "BZ": 5, "YL": 3, "ZL": 2, "ROW": 10, "CAP": 2, "PIECE": 3},
    {"BX": 9, "BY": 2, "BZ": 7, "YL": 3, "ZL": 2, "ROW": 13, "CAP": 40, "PIECE": 64},
)


def interpolated(space, xt, begin, grid, tile, team, given):
    """Return values and slopes at targets in their cells."""
    sides = [tile[side] for side in ("BX", "BY", "BZ")]
    counts = [m // side + 1 for m, side in zip(loops.POINTS, sides, strict=True)]
    given = given | {"tiles": int(np.prod(counts)), "tiles1": counts[1], "tiles2": counts[2], "cell_begin": begin}
    for d, (n, side, m) in enumerate(zip(loops.CELLS, loops.BOX, loops.POINTS, strict=True)):
        given |= {f"n{d}": n, f"h{d}": side / n, f"e{d}": m + loops.P}
    u = np.full((8, xt.shape[1]), np.nan)
    unit = engine.kernel("g2p_tile", "g2p_tile", **SLOTS, **tile)
    engine.parallel_for(TeamPolicy(space, given["tiles"], *team), unit, xt=xt, grid=grid, u=u, **given)
    return u


@pytest.mark.parametrize("is_crowded", [False, True])
def test_results_are_those_of_targets_and_depend_on_neither_tile_nor_threads(is_crowded, rng):
    xt, begin = loops.cloud(rng, 60)
    if is_crowded:  # all targets in one tile, and in the last cell
        xt = np.array(loops.BOX)[:, None] * (1 - 1e-3 * rng.random((3, 60)))
        begin = np.where(np.arange(len(begin)) == len(begin) - 1, 60, 0).astype(np.int32)
    grid = rng.standard_normal((2, *(m + loops.P for m in loops.POINTS)))
    given = {**loops.window(rng), **loops.scales(), "s01": 0.0, "s02": 0.0, "s12": 0.0}
    exact, unit = np.empty((8, 60)), engine.kernel("g2p", "g2p_target", BATCH=60, **SLOTS)
    batch = np.array([[0, 60]], np.int32)
    engine.parallel_for(TeamPolicy("Serial", 1), unit, xt=xt, grid=grid, u=exact, batch=batch, batches=1, **given)
    teams = {"Serial": [(1, 1)], "GpuSim": [(4, 8), (1, 2)]}
    for space, shapes in teams.items():
        first, *others = (interpolated(space, xt, begin, grid, tile, team, given) for tile in TILES for team in shapes)
        for other in others:
            np.testing.assert_array_equal(other, first)
        np.testing.assert_allclose(first, exact, rtol=0, atol=1e-13 * np.abs(exact).max())
