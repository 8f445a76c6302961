"""Times add up in the right place; parameters carry their published names."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from parki.ewald.choice import choose
from parki.ewald.choice.question import Question
from parki.ewald.report import PHASES, Params, WallTime


def test_published_attributes():
    times = WallTime(N_in=5, N_out=6, N_grid=7, N_fft=8)
    assert (times.N_in, times.N_out, times.N_grid, times.N_fft) == (5, 6, 7, 8)
    for name in ("p2p", "p2g", "g2p"):
        assert getattr(times, f"time_{name}") == {"tot": 0.0, "sort": 0.0, "kernel": 0.0}
    for name in ("fft", "cnv", "ifft"):
        assert getattr(times, f"time_{name}") == {"tot": 0.0}
    assert (times.time_ewald, times.time_cell_list) == (0.0, 0.0)


def test_phases_accumulate_in_their_part_and_in_the_total():
    times = WallTime()
    for part in ("sort", "kernel", "kernel"):
        with times.phase(f"p2p.{part}"):
            time.sleep(0.002)
    with times.phase("p2p"):
        pass
    assert times.time_p2p["sort"] >= 0.002
    assert times.time_p2p["kernel"] >= 0.004
    assert times.time_p2p["tot"] >= times.time_p2p["sort"] + times.time_p2p["kernel"]
    assert times.time_p2g["tot"] == 0.0


def test_what_a_phase_launched_is_waited_for():
    done = []
    times = WallTime(wait=lambda: (time.sleep(0.002), done.append(times.time_fft["tot"])))
    with times.phase("fft"):
        assert len(done) == 1  # earlier launches are not counted
    assert len(done) == 2
    assert 0.002 <= times.time_fft["tot"] < 1.0


def test_whole_and_cell_lists_are_numbers():
    times = WallTime()
    with times.phase("ewald"), times.phase("cell_list"):
        time.sleep(0.002)
    assert 0.002 <= times.time_cell_list <= times.time_ewald
    made = times.time_cell_list
    times.reset()
    assert (times.time_ewald, times.time_cell_list) == (0.0, made)  # the time of cell lists is the plan's, and stays


def test_a_phase_that_raises_is_counted():
    times = WallTime()
    with pytest.raises(TypeError), times.phase("fft"):
        time.sleep(0.001, "surplus")
    assert times.time_fft["tot"] > 0.0


@pytest.mark.parametrize("name", ["p3p", "fft.sort", "p2p.args", "ewald.tot"])
def test_unknown_phases_do_not_run(name):
    with pytest.raises(KeyError, match=f"phase is '{name}', expected one of p2p, "), WallTime().phase(name):
        pytest.fail("the body ran")


def test_table_shows_time_share_and_rate():
    times = WallTime(N_in=2_000_000, N_out=1_000_000, N_grid=4_000_000)
    times.time |= {"p2p": 0.5, "p2g": 0.25, "ewald": 1.0}
    lines = times.table().splitlines()
    assert [line[:20].strip() for line in lines] == ["phase", *[row[1] for row in PHASES], "other", "total"]
    assert "2 M targets/s" in lines[1]
    assert "500.00 ms" in lines[1]
    assert "50.0 %" in lines[1]
    assert "8 M sources/s" in lines[2]
    assert "25.0 %" in lines[-2]
    assert "1 M targets/s" in lines[-1]
    assert "/s" not in lines[3]  # no time, no rate


def test_the_total_is_the_sum_or_of_its_phases():
    times = WallTime()
    times.time |= {"p2p": 0.5, "p2p.sort": 0.2, "fft": 0.25, "cell_list": 2.0}
    assert times.total == 0.75
    times.time["ewald"] = 1.0
    assert times.total == 1.0


def test_table_of_nothing():
    assert WallTime().table().count("\n") == len(PHASES) + 2


def parameters(**changes):
    facts = {"rc": 0.25, "xi": None, "kmax": 80.0, "c": 20.0, "split": "prolate", "P": 10, "far": "float32"}
    facts |= {"grid": (40, 80, 60), "box": (1.0, 2.0, 3.0), "h": (1 / 40, 2 / 80, 3 / 60), "periodicity": 3}
    return SimpleNamespace(**(facts | changes))


def test_params_by_published_names():
    params = Params(parameters())
    assert (params.rc, params.xi, params.kmax, params.c) == (0.25, None, 80.0, 20.0)
    assert (params.split, params.window_P) == ("prolate", 10)
    assert params.h == 3.0 / 60
    assert params.grid_res == 1.0 / params.h
    assert np.array_equal(params.grid_shape_ext, [40, 80, 60])
    assert np.array_equal(params.box_ext, [1, 2, 3])
    assert np.array_equal(params.actual_upsampling, [1, 1])
    assert params.far_precision == "single"
    sizes = "rc 0.25, kmax 80, grid 40 × 80 × 60, window 10 points"
    assert str(params) == f"prolate split, {sizes}, far field in single precision"


@pytest.mark.parametrize("periodicity", [0, 1, 2])
def test_free_directions_are_extended(periodicity):
    chosen = choose.parameters(Question("laplace", (1.0, 2.0, 3.0), 500, 500, 1e-6, periodicity=periodicity))
    params = Params(chosen)
    for axis, (m, side, h) in enumerate(zip(chosen.grid, chosen.box, chosen.h, strict=True)):
        free = axis >= periodicity
        assert params.grid_shape_ext[axis] == m + free * chosen.P
        assert params.box_ext[axis] == pytest.approx(h * params.grid_shape_ext[axis] if free else side)
        assert params.box_ext[axis] > side - 1e-12
    assert params.h == max(chosen.h)
    constant, others = params.actual_upsampling
    assert 1.0 < constant < 12.0  # to hold a truncated kernel: the box, its diagonal and the cutoff
    assert constant == others if periodicity == 0 else others >= 1.0


def test_params_of_the_gaussian_split_have_xi():
    assert Params(parameters(xi=15.0, split="gaussian")).xi == 15.0


def test_counts_are_zero_until_they_are_taken():
    times = WallTime(N_in=5)
    names = [f"{kind}_{row[0]}" for kind in ("flop", "mop") for row in PHASES]
    assert [getattr(times, name) for name in names] == [0] * 12
    phases = [row[0] for row in PHASES]
    flop, mop = dict(zip(phases, range(1, 7), strict=True)), dict(zip(phases, range(7, 13), strict=True))
    times.take(flop, mop, pairs=20, values=30)
    assert [getattr(times, name) for name in names] == list(range(1, 13))
    assert (times.N_in, times.N_pairs, times.N_fft) == (5, 20, 30)
    times.reset()
    assert times.flop_p2p == 1  # operations of a sum stay when times are reset
