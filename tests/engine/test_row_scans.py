"""Scans over vector ranges: lists that lanes of a row make together, and sums before each lane."""

import numpy as np
import pytest

from parki import engine

TEXT = """import pykokkos as pk

CAP = 64


@pk.workunit(scratch=[(pk.int32, lambda p: 4 * CAP)])
def lists(
    team: pk.TeamMember, x: pk.View2D[pk.double], y: pk.View2D[pk.int32], before: pk.View2D[pk.int32],
    count: pk.View1D[pk.int32], n: int,
):
    b: int = team.league_rank()
    found: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), 4 * CAP)

    def row(t: int):
        def keep(j: int, acc: pk.Acc[int], last: bool):
            inside: bool = x[4 * b + t][j] > 0.5
            if inside:
                if last:
                    found[t * CAP + acc] = j
                acc += 1

        kept: int = pk.parallel_scan(pk.ThreadVectorRange(team, n), keep)

        def copy(q: int):
            y[4 * b + t][q] = found[t * CAP + q]

        pk.parallel_for(pk.ThreadVectorRange(team, kept), copy)

        def weigh(j: int, acc: pk.Acc[int], last: bool):
            if last:
                before[4 * b + t][j] = acc
            acc += j * 3

        total: int = pk.parallel_scan(pk.ThreadVectorRange(team, n), weigh)

        def store():
            count[4 * b + t] = kept + 1000 * total

        pk.single(pk.PerThread(team), store)

    pk.parallel_for(pk.TeamThreadRange(team, 4), row)
"""
SHAPES = [("Serial", ()), ("OpenMP", ()), *(("GpuSim", shape) for shape in ((4, 8), (2, 32), (4, 1), (1, 16)))]
N = 50


@pytest.mark.parametrize(("space", "shape"), SHAPES, ids=str)
def test_lists_and_sums(space, shape, tmp_path, rng):
    path = tmp_path / "work.py"
    path.write_text(TEXT)
    x = rng.random((12, N))
    y, before, count = -np.ones((12, 64), np.int32), np.zeros((12, N), np.int32), np.zeros(12, np.int32)
    policy = engine.TeamPolicy(space, 3, *shape)
    engine.parallel_for(policy, engine.kernel(path, "lists"), x=x, y=y, before=before, count=count, n=N)
    for row, kept in zip(y, x > 0.5, strict=True):
        places = np.flatnonzero(kept)
        np.testing.assert_array_equal(row[: len(places)], places)
        assert np.all(row[len(places) :] == -1)
    terms = 3 * np.arange(N)
    np.testing.assert_array_equal(before, np.broadcast_to(np.cumsum(terms) - terms, before.shape))
    np.testing.assert_array_equal(count, (x > 0.5).sum(axis=1) + 1000 * terms.sum())


def test_terms_of_lists_are_counted_by_votes(tmp_path):
    path = tmp_path / "work.py"
    path.write_text(TEXT)
    unit = engine.kernel(path, "lists")
    text = unit.gpu(unit.default_layouts()).source
    assert text.count("pk_row_count(") == 1
    assert text.count("pk_row_scan(") == 1


def test_rows_of_known_lanes(tmp_path, rng):
    """Compile for one number of lanes: launches with another one are refused, on GPUs."""
    path = tmp_path / "work.py"
    path.write_text(TEXT)
    unit = engine.kernel(path, "lists", hints=("lanes_8",))
    assert (unit.lanes, unit.gpu_macros) == (8, ("-DPK_ROW=8",))
    args = {"x": rng.random((12, N)), "y": np.zeros((12, 64), np.int32), "before": np.zeros((12, N), np.int32)}
    args |= {"count": np.zeros(12, np.int32), "n": N}
    for space, lanes in (("Serial", 1), ("GpuSim", 8)):
        engine.parallel_for(engine.TeamPolicy(space, 3, 4, lanes), unit, **args)
    with pytest.raises(engine.LaunchError, match="lists: found 16 lanes; compiled for 8"):
        engine.parallel_for(engine.TeamPolicy("GpuSim", 3, 4, 16), unit, **args)
