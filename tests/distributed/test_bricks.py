"""Divisions into bricks, ghosts, and bytes of messages."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import parki
from parki.distributed.bricks import division, volumes
from parki.distributed.bricks.division import Division
from parki.distributed.bricks.ghosts import ghosts
from parki.distributed.simulated import World
from parki.ewald import geometry
from parki.ewald.stages import brick
from tests.distributed.shares import BOX, CELL, Case, part
from tests.quick import every


def parameters(periodicity=3, box=BOX, kernel="stokes_sl", tolerance=1e-4):
    x = np.random.default_rng(0).random((3, 500)) * 0.8
    return parki.ewald.plan(kernel, x, x, box=box, periodicity=periodicity, tolerance=tolerance).chosen.parameters


def equal(p, shape):
    """Return a division into bricks of nearly equal numbers of rows."""
    _, n1, n2 = brick.rows(p)
    z = tuple(n2 * j // shape[1] // 2 * 2 for j in range(shape[1]))
    return Division(p, (*(n1 * i // shape[0] for i in range(shape[0])), n1), ((*z, n2),) * shape[0])


@pytest.mark.parametrize("weights", ["even", "one row", "none", "steep"])
@pytest.mark.parametrize(("n", "parts", "step"), [(20, 1, 1), (20, 3, 1), (21, 5, 2), (40, 10, 2), (7, 3, 1)])
def test_rows_are_cut_by_weight(weights, n, parts, step):
    w = {"even": np.ones(n), "one row": np.eye(n)[n // 2], "none": np.zeros(n), "steep": 2.0 ** np.arange(n)}[weights]
    cuts = division.balanced(w, parts, step)
    assert (cuts[0], cuts[-1], len(cuts)) == (0, n, parts + 1)
    assert min(np.diff(cuts)) >= division.LEAST_ROWS * step - (n % step)
    assert all(cut % step == 0 for cut in cuts[:-1])
    if weights == "even":
        assert max(np.diff(cuts)) - min(np.diff(cuts)) <= 2 * step


@pytest.mark.parametrize("periodicity", [3, 2, 1, 0])
@pytest.mark.parametrize("shape", [(1, 2), (3, 2), (2, 1)])
def test_every_row_point_and_mode_has_one_rank(periodicity, shape):
    p = parameters(periodicity)
    cut = equal(p, shape)
    rows = np.zeros(brick.rows(p)[1:], int)
    for one in cut.bricks:
        rows[one.first[1] : one.end[1], one.first[2] : one.end[2]] += 1
    assert (rows == 1).all()
    assert cut.brick(cut.size) is None
    modes = sorted(m for own in cut.modes for m in own)
    assert modes == list(range(len(modes)))
    x = np.random.default_rng(1).random((3, 300)) * np.array(p.box)[:, None]
    edge = np.array([[0.0, p.box[0], 0.0], [0.0, p.box[1], 0.5 * p.box[1]], [0.0, p.box[2], 0.0]])
    x = np.concatenate([x, edge * (1 - 1e-16)], axis=1)
    for q, at in itertools.product(range(cut.size), range(x.shape[1])):
        if cut.owners(x)[at] == q:
            near = cut.bricks[q].far(p, x[:, at : at + 1])
            assert (near >= 0).all()
            assert (near[:, 0] <= np.array(cut.bricks[q].sides(p)) * (1 + 1e-14)).all()


@pytest.mark.parametrize("seed", every(5, range(5)))
@pytest.mark.parametrize(("periodicity", "box"), [(3, BOX), (2, BOX), (0, BOX), (3, CELL)])
def test_all_pairs_within_the_cutoff_meet(periodicity, box, seed):
    """Find each image of a source within rc of a target once on the target's rank."""
    p = parameters(periodicity, box)
    cut = equal(p, [(1, 2), (2, 1), (2, 2), (3, 1), (1, 3)][seed])
    rng = np.random.default_rng(seed)
    x = rng.random((3, 100)) * np.array(p.box)[:, None]
    owner = cut.owners(x)
    around = [[] for _ in range(cut.size)]
    for rank in range(cut.size):
        own = np.flatnonzero(owner == rank)
        index, places = ghosts(cut, rank, np.ascontiguousarray(x[:, own]))
        for to, at in index.items():
            around[to] += [(own[i], tuple(place)) for i, place in zip(at, places[to], strict=True)]
    t01, t02, t12 = p.skew or (0.0, 0.0, 0.0)
    l0, l1, l2 = p.box
    vectors = np.array([[l0, t01, t02], [0, l1, t12], [0, 0, l2]])[:periodicity]
    images = [np.array(i) @ vectors for i in itertools.product(range(-2, 3), repeat=periodicity)] or [np.zeros(3)]
    for rank, one in enumerate(cut.bricks):
        own = np.flatnonzero(owner == rank)
        home = brick.unwrapped(p, geometry.lattice(p, x))
        if p.skew is None:
            home = x
        repeats = [axis for axis, on in enumerate(one.holds(p)) if on and p.skew is None]
        there = [(s, home[:, s]) for s in own] + [(s, np.array(place)) for s, place in around[rank]]
        for t in own[:20]:
            expected = [
                (s, shift) for s in range(x.shape[1]) for shift in images
                if np.linalg.norm(home[:, t] - home[:, s] - shift) < p.rc * (1 - 1e-12)
            ]  # fmt: skip
            found = 0
            for _, place in there:
                moves = itertools.product(*(range(-2, 3) if axis in repeats else (0,) for axis in range(3)))
                for move in moves:
                    r = home[:, t] - place - np.array(move) * np.array(p.box)
                    found += np.linalg.norm(r) < p.rc * (1 - 1e-12)
            assert found == len(expected)


@pytest.mark.parametrize(
    ("ranks", "bits"),
    [
        pytest.param(ranks, bits, marks=[pytest.mark.slow] * (ranks == 64 or (ranks == 27 and bits != 40)))
        for ranks in (2, 3, 5, 8, 27, 64)
        for bits in (64, 40, 32)
    ],
)
def test_bytes_are_those_of_the_indices(ranks, bits):
    case = Case("stokes_sl", options={"tolerance": 1e-6, "rc": 0.2, "exchange_bits": bits})
    _, plans = case.over(ranks)
    cut = plans[0].structure.division
    assert cut.size > ranks // 2
    for rank, plan in enumerate(plans):
        sent = plan.walltime.nbytes
        expected = volumes.of_grid(cut, rank, bits=bits) if rank < cut.size else (0, 0)
        assert (sent["ghost_grid"], sent["exchange"]) == expected


@pytest.mark.parametrize(("kernel", "periodicity"), [("laplace", 3), ("stokes_sl", 2)])
def test_bytes_of_slabs_are_those_of_the_indices(kernel, periodicity, monkeypatch):
    monkeypatch.setattr(division, "pairs", lambda p, ranks, points: [(1, ranks)])
    _, plans = Case(kernel, periodicity, options={"rc": 0.2}).over(5)
    assert plans[0].structure.division.single
    for rank, plan in enumerate(plans):
        sent = plan.walltime.nbytes
        assert (sent["ghost_grid"], sent["exchange"]) == volumes.of_grid(plan.structure.division, rank)


@pytest.mark.parametrize("bits", [64, 40, 32])
@pytest.mark.parametrize(("shape", "kernel"), [((2, 2), "stokes_comb"), ((1, 4), "laplace"), ((4, 2), "stokes_sl")])
def test_bytes_of_equal_bricks_are_the_formula(shape, kernel, bits):
    p = parameters(3, (1.0, 1.0, 1.0), kernel)
    p = replace(p, grid=(24, 32, 32), h=(1 / 24, 1 / 32, 1 / 32))
    cut = equal(p, shape)
    told = volumes.by_formula(p, shape, 1000, bits=bits)
    found = np.array([volumes.of_grid(cut, rank, bits=bits) for rank in range(cut.size)])
    assert (found[:, 0] == told.ghost_grid).all()
    assert found[:, 1].mean() == pytest.approx(told.exchange, rel=1e-3 if bits == 40 else 1e-12)  # whole words


def test_slabs_send_a_disc_of_modes():
    p = parameters(3, (1.0, 1.0, 1.0))
    p = replace(p, grid=(96,) * 3, h=(1 / 96,) * 3, kmax=0.83 * np.pi * 96)
    planes, _ = division.lines_across(p, (1, 4), disc=False)
    lines, _ = division.lines_across(p, (1, 4))
    assert planes / 96 == pytest.approx(0.83, abs=0.01)
    assert lines / 96**2 == pytest.approx(0.545, abs=0.01)
    waves = division.Division(p, (0, 96), ((0, 24, 48, 72, 96),)).waves
    assert len({(x, y) for x, y in waves} | {(-x % 96, -y % 96) for x, y in waves}) == lines


@pytest.mark.parametrize(("kernel", "ranks"), [("laplace", 4), ("stokes_sl", 8), ("stokes_comb", 8)])
def test_memory_is_the_formula(kernel, ranks):
    case = Case(kernel, 3, (1.0, 1.0, 1.0), n=40_000, same=True)
    own = np.array_split(np.arange(case.n), ranks)

    def work(comm):
        x, q = part(case.targets, own[comm.rank]), part(case.density, own[comm.rank])
        plan = case.plan(x, x, comm=comm, execution_space="Serial")
        plan(q, *case.given(own[comm.rank]))
        return plan.memory, plan.chosen.parameters, plan.structure.division.shape

    found = World(ranks).run(work)
    told = volumes.memory(found[0][1], found[0][2], case.n)
    assert np.mean([held for held, *_ in found]) == pytest.approx(told, rel=0.1)


def test_the_published_grid():
    """64 ranks of 4e6 points each, h = 1/256: the published scheme moves 14.5 GB a rank."""
    p = parameters(3, (1.0, 1.0, 1.0), "stokes_comb")
    p = replace(
        p, box=(4.0,) * 3, grid=(1024,) * 3, h=(1 / 256,) * 3, P=8, rc=0.038, kmax=0.83 * np.pi * 256, far="float64"
    )
    cut = equal(p, (8, 8))
    exchanged = [volumes.of_grid(cut, rank)[1] for rank in (0, 1, 63)]
    assert np.mean(exchanged) == pytest.approx(783e6, rel=0.03)


def test_bricks_stay_while_they_are_good():
    rng = np.random.default_rng(6)
    x, drift = rng.random((3, 4000)), 0.01 * rng.standard_normal((3, 4000))
    crowd = np.clip(0.3 + 0.06 * rng.standard_normal((3, 4000)), 0, 0.999)

    def work(comm):
        own = np.arange(comm.rank, 4000, comm.size)
        y = part(x, own)
        plan = parki.ewald.plan("laplace", y, y, box=(1, 1, 1), tolerance=1e-6, rc=0.1, comm=comm)
        cuts = [plan.structure.division]
        for moved in (x + drift, crowd, crowd + drift / 100):
            y = part(parki.utils.wrap(moved, (1, 1, 1)), own)
            plan.move(y)
            cuts.append(plan.structure.division)
        counts = comm.allgather(plan.structure.targets.shape[1])
        return cuts, counts

    (first, after, crowded, still), counts = World(8).run(work)[0]
    assert after is first
    assert crowded != first
    assert still is crowded
    assert max(counts) < 1200  # equal bricks would have up to 4000


def test_crowded_points_are_cut_into_bricks_of_equal_work():
    rng = np.random.default_rng(4)
    radius = 0.05 / np.sqrt(rng.random(4000) ** (-2 / 3) - 1)
    direction = rng.standard_normal((3, 4000))
    x = np.clip(0.5 + np.minimum(radius, 0.49) * direction / np.linalg.norm(direction, axis=0), 0, 0.999)

    def work(comm):
        own = np.ascontiguousarray(x[:, comm.rank :: comm.size])
        plan = parki.ewald.plan("laplace", own, own, box=(1, 1, 1), tolerance=1e-6, rc=0.08, comm=comm)
        plan(np.ones(own.shape[1]))
        return plan.n_targets, plan.structure.counts[0]

    counts = np.array(World(8).run(work))
    assert counts[:, 0].sum() == counts[:, 1].sum() == 4000
    assert counts[:, 1].max() < 1500  # equal bricks would have 0 and 3000
