"""Counts: their arithmetic, and the bytes of the paper's Tables 2 and 4 by hand (Kosmacher et al. 2026, section 5)."""

import ast
import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from parki import engine
from parki.cells import CellGrid
from parki.ewald.choice import gather_tiles
from parki.ewald.kernels import KERNELS
from parki.ewald.stages import loop_counts, near, spread
from parki.perfmodels.counts import clusters, convolve, fft, fmm, g2p, p2g, p2p
from parki.perfmodels.counts.p2g import Spreading
from parki.perfmodels.counts.p2p import Near
from parki.perfmodels.counts.totals import Counts

TEXT = SimpleNamespace(operations={"fma": 10.0, "add": 2.0, "exp": 1.0, "integer": 7.0}, memory=100.0, scratch=40.0,
                       atomics=3.0)  # fmt: skip


# Counts


def test_flops_are_two_of_a_fused_operation_and_one_of_others():
    assert Counts({"fma": 3, "div": 2, "rsqrt": 1, "fft": 100, "compare": 50, "integer": 50}).flops == 6 + 2 + 1 + 100


def test_counts_add_up_one_after_the_other():
    a = Counts({"fma": 6.0}, {"l1": 8.0}, 1.0, 1, fill=0.5)
    b = Counts({"fma": 2.0, "mul": 2.0}, {"dram": 4.0}, 2.0, 3)
    both = a + b
    assert both.operations == {"fma": 8.0, "mul": 2.0}
    assert both.bytes == {"l1": 8.0, "dram": 4.0}
    assert (both.atomics, both.launches) == (3.0, 4)
    assert both.fill == pytest.approx(10 / (6 / 0.5 + 4))  # all lanes over the lanes that work
    assert (a + Counts({}, {"l1": 1.0}, launches=1)).fill == 0.5
    assert a.scaled(3.0) == Counts({"fma": 18.0}, {"l1": 24.0}, 3.0, 1, fill=0.5)


@pytest.mark.parametrize("module", [loop_counts, clusters, fmm])
def test_loops_and_conditions_are_counted_by_name(module):
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    keys = [k.value for n in ast.walk(tree) if isinstance(n, ast.Dict) for k in n.keys if isinstance(k, ast.Constant)]
    assert keys
    assert [key for key in keys if not all(part.isidentifier() for part in key.split(":"))] == []


# P2P, Table 2: stokes_comb, sources of 12 numbers.  Each of 27 cells has s sources, all of which count as within rc.
NT, NS, S, BX, BY, TILE = 4096, 4096, 128, 32, 4, 64


def near_total(variant):
    batches = NT / BX
    n = Near(NT, NS, batches, 9 * batches, 9 * batches, 27 * batches, 27 * batches * S / TILE,
             27 * S * batches, 27 * S * batches, 27 * S * NT, 27 * S * NT)  # fmt: skip
    slots = {"TARGETS": BX, "LANES": BY} if variant.endswith("2D") else {}
    slots |= {"TILE": TILE} if variant.startswith("SM") else {}
    unit = engine.kernel(*near.LOOPS[variant], pair="pair/stokes_comb", SCREENED=True, TERMS=16, **slots)
    block = engine.operations(unit)
    told = loop_counts.near(variant, n, 12, 3, BX, BY)
    return block.total(told.of).scaled(told.teams), n


def test_gm_1d_moves_what_table_2_says():
    found, _ = near_total("GM-1D")
    # m_G = Nt (48 + 96 * 27 s): a target in and out, 12 numbers of each source; m_S = 0
    assert found.bytes("xt") + found.bytes("src") + found.bytes("u") == pytest.approx(NT * (48 + 96 * 27 * S))
    assert found.scratch == 0
    # terms that the paper's closed forms do not need: 3 tables of 16 numbers for a pair, and the cells of each run
    assert found.bytes("coef") == pytest.approx(NT * 27 * S * 3 * 16 * 8)
    assert found.bytes("cell_begin") == pytest.approx(NT * 27 * 2 * 4)


def test_gm_2d_moves_what_table_2_says_but_for_targets():
    found, _ = near_total("GM-2D")
    # m_G = Nt (24 by + 24 + 96 * 27 s) in the paper; here a target is read once for its by lanes, and not by each,
    assert found.bytes("xt") + found.bytes("src") + found.bytes("u") == pytest.approx(NT * (24 + 24 + 96 * 27 * S))
    # and lanes are summed in scratch: three numbers of each, in and out.
    assert found.scratch == pytest.approx(NT * 2 * 24 * BY)


def test_sm_1d_moves_what_table_2_says_and_targets_for_every_tile():
    found, _ = near_total("SM-1D")
    tiles = 27 * S / TILE
    # m_G = Nt (48 + 96 * 27 s / bx): the sources once for the bx targets of a block,
    assert found.bytes("src") == pytest.approx(NT * 96 * 27 * S / BX)
    # but targets are read for every tile, and its results are added to u, which was set to zero.
    assert found.bytes("xt") + found.bytes("u") == pytest.approx(NT * ((24 + 48) * tiles + 24))
    # m_S = Nt (24 + 96 * 27 s): all sources for every target; here no targets, but the sources' way into scratch.
    assert found.scratch == pytest.approx(NT * (96 * 27 * S + 96 * 27 * S / BX))


def test_sm_2d_moves_what_table_2_says_and_targets_for_every_tile():
    found, _ = near_total("SM-2D")
    tiles = 27 * S / TILE
    assert found.bytes("src") == pytest.approx(NT * 96 * 27 * S / BX)
    assert found.bytes("xt") + found.bytes("u") == pytest.approx(NT * (24 * tiles + 24))
    # m_S = Nt (24 by + 96 * 27 s): sums of by lanes; here they are set, added to for every tile, and read.
    sums = 24 * BY * (1 + 2 * tiles + 1)
    assert found.scratch == pytest.approx(NT * (96 * 27 * S + 96 * 27 * S / BX + sums))


def test_the_near_field_takes_sources_past_the_first_level_once_for_a_batch():
    found, n = near_total("SM-1D")
    counts = p2p.counts(found, found, n, 12, 3, 8, device=True)
    # m = 48 Nt + 96 Ns, and with bx targets a block m_G = Nt (48 + 96 * 27 s / bx)
    assert counts.bytes["dram"] == 48 * NT + 96 * NS
    assert counts.bytes["l2"] == pytest.approx(NT * (48 + 96 * 27 * S / BX))
    assert counts.bytes["l1"] == found.memory
    assert counts.bytes["shared"] == found.scratch
    assert (counts.launches, counts.fill, counts.atomics) == (1, 1.0, 0)
    host = p2p.counts(found, found, n, 12, 3, 8)
    assert host.bytes["l1"] == found.memory + found.scratch
    assert "shared" not in host.bytes


def test_lanes_whose_targets_are_far_are_not_filled():
    n = Near(10, 10, 2, 1, 1, 1, 1, met=20, listed=10, looked_at=100, within=40)
    done = SimpleNamespace(operations={"fma": 40.0}, memory=0.0, scratch=0.0, atomics=0.0)
    counts = p2p.counts(TEXT, done, n, 4, 1, 4)
    assert (counts.fill, counts.flops) == (0.5, 23.0)
    assert n.size == 5


# P2G, Table 4: 4 components here for the paper's 12, of sources with 12 numbers.  Cells are P / 2 grid points wide.
N, P, DEGREE, RUN, ZT = 2000, 8, 6, 16, 8


def spread_total(variant, e=(64, 64, 64), runs=None):
    slots = {"NC": 4, "COMB": True, "NS": 9, "P": P, "DEGREE": DEGREE}
    block = engine.operations(engine.kernel(*spread.LOOPS[variant], **slots))
    s = Spreading(N, 12, 4, P, math.prod(e), (P / 2, P / 2, P / 2))
    cells = SimpleNamespace(shape=tuple(2 * m // P for m in e))
    told = loop_counts.spread(variant, s, cells, e, runs or loop_counts.Runs(1.0))
    return block.total(told.of).scaled(told.teams), s


def test_base_and_source_move_what_table_4_says():
    found, s = spread_total("SOURCE")
    # m_G = 24 Ns + 168 Ns P^3 in the paper: 9 numbers of the source and 12 of the grid for every tap.  Here a source's
    # 12 numbers are read once, and 4 numbers of the grid are updated for every tap.
    assert found.bytes("src") == 96 * N
    assert found.updates == {"grid": 4 * N * P**3}
    # Windows: P taps along z, and two for every row; values and slopes have DEGREE + 1 coefficients each.
    assert found.bytes("window") == found.bytes("slope") == 8 * N * (P + 2 * P**2) * (DEGREE + 1)
    counts = p2g.counts("SOURCE", found, s, device=True)
    # m = 96 Ns + 32 Ng to write, and as much to read: the paper writes alone
    assert counts.bytes["dram"] == 96 * N + 2 * 32 * s.touched
    # a column of cells 4 points wide is in reach of 4 + 8 points along x and y: each grid point is met 9 times
    assert counts.bytes["l2"] == 96 * N + 2 * 32 * s.touched * 9
    # in any order, P^2 rows of whole cache lines of 8 numbers: a row of 8 begins in one of 8 places
    lines = 4 * N * P**2 * (8 * 8 + 7 * 8)
    assert p2g.counts("BASE", found, s, cache=1e5).bytes["dram"] == 96 * N + 2 * lines
    assert p2g.counts("BASE", found, s, cache=1e9).bytes["dram"] == counts.bytes["dram"]
    assert (counts.atomics, counts.launches) == (4 * N * P**3, 1)


def test_grid_moves_what_table_4_says():
    found, s = spread_total("GRID")
    # m_G = 96 * 27 Ns (P/2)^3 + 96 Ng: every source for all grid points of 27 cells.  Here its 3 coordinates; the other
    # 9 numbers where the source is within reach; and 4 numbers of each grid point.
    near = 27 * (P / 2) ** 3
    assert found.bytes("src") == pytest.approx(N * (24 * near + 72 * P**3))
    assert found.bytes("grid") == pytest.approx(32 * s.touched)
    assert found.atomics == found.scratch == 0
    counts = p2g.counts("GRID", found, s)
    assert counts.bytes["dram"] == 96 * N + 32 * s.touched
    # a row of grid points reads the sources on its own: the sources of 12 x 12 rows
    assert counts.bytes["l2"] == 96 * N * (3 * P / 2) ** 2 + 32 * s.touched


def test_hybrid_moves_what_table_4_says():
    runs = N / RUN
    found, s = spread_total("HYBRID", runs=loop_counts.Runs(runs, (P / 2, P / 2, P / 2)))
    # m_G = 96 Ns + 96 * 27 Ns (P/2)^3 / bx: a run of bx sources adds to the points of a box of 3 P/2, here 4 numbers of
    # the reached points.  16 sources anywhere in a cell reach all but a few points.
    box = 27 * (P / 2) ** 3
    reached = 1 - (1 - P**3 / box) ** RUN
    assert found.updates["grid"] == pytest.approx(4 * box * runs * reached)
    assert 0.99 < reached < 1
    # Sources: 3 coordinates for the anchors, 3 for every value of a window along z with its zeros, and 9 strengths.
    zp = P + 2 * (ZT - 1)
    assert found.bytes("src") == pytest.approx(8 * N * (3 + 3 * zp + 9))
    # m_S = 96 Ns P^3 + 12 * 27 Ns (P/2)^3: three anchors for every source and grid point of the box; here for every ZT
    # points along z, of a box that is a multiple of ZT on average.
    items = (3 * P / 2) ** 2 * (3 * P / 2 / ZT + (ZT - 1) / (2 * ZT))
    assert found.loads["first"] == pytest.approx(3 * N * items)
    # The paper loads 12 numbers for each tap; here 10 moments, 4 values along x and y and 2 along z for ZT taps.
    meets = P**2 * (P + ZT - 1) / ZT
    assert found.loads["moment"] == pytest.approx(N * meets * 10)
    assert found.loads["win"] == pytest.approx(N * meets * (4 + 2 * ZT))
    counts = p2g.counts("HYBRID", found, s, device=True)
    assert counts.bytes["shared"] == found.scratch
    assert counts.bytes["l2"] == pytest.approx(96 * N + 2 * 8 * found.updates["grid"])
    assert counts.fill == 1.0
    assert p2g.counts("HYBRID", found, s, device=True, fill=0.7).fill == 0.7


@pytest.mark.parametrize(("lanes", "nx", "ny"), [(8, 12, 16), (32, 20, 16), (32, 9, 8), (4, 30, 40)])
def test_lanes_of_hybrid_that_a_source_reaches(lanes, nx, ny):
    """Compare with all places of a window of 8 x 8 in a box, in vectors of rows that are neighbours along y."""
    reached = executed = 0
    for x in range(nx - P + 1):
        for y in range(ny - P + 1):
            hit = {(x + i) * ny + y + j for i in range(P) for j in range(P)}
            reached += len(hit)
            executed += lanes * len({item // lanes for item in hit})
    assert p2g.reached(P, lanes, nx, ny) == pytest.approx(reached / executed, rel=0.2)


def test_block_adds_without_atomics_and_fills_lanes_with_taps():
    found, s = spread_total("BLOCK")
    assert found.atomics == 0
    # 4 components; a tap is loaded and stored
    assert found.bytes("grid") == pytest.approx(2 * 8 * 4 * N * P**3)
    assert p2g.counts("BLOCK", found, s, launches=8).launches == 8
    assert [p2g.filled(taps, 8) for taps in (8, 16, 12, 6, 7, 3)] == [1.0, 1.0, 0.75, 6 / 16, 7 / 24, 3 / 16]
    assert [p2g.filled(taps, 8, halves=False) for taps in (8, 12, 7)] == [1.0, 0.75, 7 / 8]
    assert p2g.filled(P, 16, halves=False) == 0.5
    with pytest.raises(ValueError, match="variant: found 'block', expected one of BASE, SOURCE, GRID, HYBRID, BLOCK"):
        p2g.counts("block", found, s)


# G2P, convolution, FFT


def test_g2p_moves_what_section_5_3_says():
    # f = 8 Nt P^3 in the paper; here 3 components of a product and a sum, rows' weights shared.  m_0 = 24 Nt P^3.
    s = Spreading(N, 6, 3, P, 64**3, (4.0, 4.0, 4.0))
    for variant, name in (("BASE", "g2p_base"), ("TARGET", "g2p_target")):
        block = engine.operations(engine.kernel("g2p", name, NC=3, P=P, DEGREE=DEGREE))
        told = loop_counts.gather(variant, s, CellGrid((64.0, 64.0, 64.0), (16, 16, 192)), KERNELS["stokes_sl"], 16)
        assert told.teams == {"BASE": N, "TARGET": 16 * 16 * 2 * min(1.0, N / 512)}[variant]
        found = block.total(told.of).scaled(told.teams)
        assert found.bytes("grid") == pytest.approx(24 * N * P**3)
        taps = 2 * 3 * N * P**3
        assert taps < found.flops < 1.8 * taps
        counts = g2p.counts(variant, found, s, lanes=8)
        assert counts.bytes["dram"] == 48 * N + 24 * s.touched  # m = 48 Nt + 24 Ng
        assert counts.fill == 1.0
    assert g2p.counts("BASE", found, s, cache=1e5).bytes["dram"] == 48 * N + 3 * N * P**2 * (8 * 8 + 7 * 8)
    assert g2p.counts("TARGET", found, s, lanes=16).fill == 0.5
    with pytest.raises(ValueError, match="variant: found 'GRID', expected one of BASE, TARGET"):
        g2p.counts("GRID", found, s)


def test_tiles_are_copied_with_their_margins_and_windows_read_from_the_copies():
    tile = gather_tiles.best(P, 8, 1, False, 98 << 10)
    s, cells = Spreading(N, 6, 3, P, 64**3, (4.0, 4.0, 4.0)), CellGrid((64.0, 64.0, 64.0), (16, 16, 16))
    block = engine.operations(engine.kernel("g2p_tile", "g2p_tile", NC=3, P=P, DEGREE=DEGREE, **tile.slots()))
    told = loop_counts.gather("TILE", s, cells, KERNELS["stokes_sl"], 16, tile)
    assert told.teams == 64**3 / math.prod(tile.sides)
    found = block.total(told.of).scaled(told.teams)
    copies = 3 * told.teams * math.prod(tile.extent) * min(1.0, N / told.teams)
    assert found.bytes("grid") == pytest.approx(8 * copies)
    assert found.bytes("tile") == pytest.approx(8 * (copies + 3 * N * math.prod(tile.taps)))
    counts = g2p.counts("TILE", found, s, True, tiles=g2p.Tiles(tile.sides, tile.extent, tile.fill, tile.wide(8)))
    assert counts.bytes["l2"] > 8 * 3 * told.teams * math.prod(tile.extent)
    assert counts.bytes["dram"] == 48 * N + 24 * s.touched
    assert counts.bytes["shared"] == pytest.approx(found.scratch)
    assert found.flops > 2 * 3 * N * P**3


def test_the_convolution_reads_and_writes_every_mode():
    slots = {"multiply": "multiplier/stokes_comb", "STRIDE": 4}
    block = engine.operations(engine.kernel("convolve", "convolve", **slots))
    told = loop_counts.modes(32.0, 10.0)
    found = block.total(told.of).scaled(told.teams)
    assert found.bytes("spec") == 320 * 8 * 2 * (4 + 3)
    counts = convolve.counts(found, 320, 4, 3, 8, launches=5)
    assert counts.bytes["dram"] == 320 * 8 * (2 * (4 + 3) + 1)  # and the multiplier
    assert counts.launches == 5
    # |k|: x² + y² once for a row; z², inverse root, 3 products; n.v twice; 6 numbers of 2 fused operations, a product
    assert counts.flops == 10 * 3 + 320 * (2 + 1 + 3 + 2 * 5 + 6 * 5)


def test_transforms_take_5_n_log2_n():
    assert fft.line(8) == 5 * 8 * 3
    assert fft.line(1) == fft.line(0) == 0
    counts = fft.counts({8: 2.0, 16: 0.5}, 1000.0, components=3, launches=2)
    assert counts.operations == {"fft": 3 * (2 * 120 + 0.5 * 320)}
    assert counts.flops == counts.operations["fft"]
    assert counts.bytes == {"l2": 3000.0, "dram": 3000.0}
    assert counts.launches == 2
