"""Counts of operations and bytes, against the kernels' texts, counts by hand, and pairs visited one by one."""

import math
from dataclasses import replace

import numpy as np
import pytest

import parki
from parki import cells, engine
from parki.cells import CellGrid, SortedCells
from parki.engine.text.source import constant
from parki.ewald.choice import variants
from parki.ewald.choice.variants import Variants
from parki.ewald.kernels import KERNELS
from parki.ewald.stages import far, loop_counts, multipliers, planes, work
from parki.ewald.stages.near import near_kernel
from parki.ewald.stages.spread import spread_kernel, tile_of
from parki.perfmodels.counts.p2g import Spreading
from tests.ewald import one_call
from tests.quick import every

BOX = (1.0, 1.3, 0.8)


@pytest.fixture(scope="module")
def plans():
    """Return a function that gives a plan of a kernel over few points, made once."""
    made = {}

    def get(kernel, **options):
        key = (kernel, *options.items())
        if key not in made:
            rng = np.random.default_rng(3)
            x = np.array(BOX)[:, None] * rng.random((3, 700))
            x[:, :300] *= 0.4  # a cloud, and a thin rest
            options = {
                "box": BOX,
                "tolerance": 1e-4,
                "execution_space": "Serial",
                "rc": 0.31,
                "far_precision": "double",
            } | options
            made[key] = parki.ewald.plan(kernel, x[:, 200:], x[:, :600], **options)
        return made[key]

    return get


def counted(plan, **changes):
    chosen = Variants(**{**vars(plan.chosen.variants), **changes})
    return work.count(plan.parameters, chosen, plan.structure.points.targets, plan.structure.points.sources)


# The kernels' own texts


NEAR = ("LIST", "LIST-2D", "GM-1D", "GM-2D", "SM-1D", "SM-2D")


@pytest.mark.parametrize(("kernel", "p2p"), every(5, [(kernel, p2p) for kernel in KERNELS for p2p in NEAR]))
def test_every_loop_of_the_near_field_is_told(kernel, p2p, plans):
    plan = plans("laplace")
    p, v = replace(plan.parameters, kernel=KERNELS[kernel]), replace(plan.chosen.variants, p2p=p2p)
    n = work.meets(p, v, plan.structure.points.targets, plan.structure.points.sources)
    for whole in (False, True):
        told = loop_counts.near(p2p, n, 4, 1, v.targets, v.lanes, whole)
        assert engine.operations(near_kernel(p, v)).missing(told.of) == []
        assert min(told.of.values()) >= 0


@pytest.mark.parametrize(
    "kernel", ["laplace", "laplace_and_grad", "stokes_sl", "stokes_dl", "stokes_comb", "stokes_grad"]
)
def test_every_loop_of_the_far_field_is_told(kernel, plans):
    plan = plans("laplace")
    p, cells = replace(plan.parameters, kernel=one_call.find(kernel)), plan.structure.points.sources.grid
    s = Spreading(600, 3 + p.kernel.strengths, p.kernel.spread, p.P, 40**3, (4.0, 5.0, 2.0))
    for name in ("BASE", "SOURCE", "GRID", "HYBRID", "BLOCK", "TILE"):
        v = replace(plan.chosen.variants, p2g=name)
        if name == "TILE":
            told = loop_counts.tiles(s, cells, (40, 40, 40), tile_of(p, v), 1 + p.kernel.slopes)
        else:
            told = loop_counts.spread(name, s, cells, (40, 40, 40), loop_counts.Runs(20.0, (3.0, 3.0, 9.0)))
        unit = spread_kernel(p, v)
        assert engine.operations(unit).missing(told.of) == [], name
    for name in ("BASE", "TARGET", "TILE"):
        v = replace(plan.chosen.variants, g2p=name)
        found = loop_counts.gather(name, s, cells, p.kernel, 16, v.tile(p))
        assert engine.operations(far.gather_kernel(p, v, plan.space)).missing(found.of) == [], name
    assert engine.operations(planes.convolve_kernel(p)).missing(loop_counts.modes(8.0, 4.0).of) == []


# Operations of a pair within rc by hand, fused ones as two: tests/engine/test_operations.py counts them by class.
def pair_flops(kernel, terms):
    tables = {"laplace": 1, "stokes_sl": 2, "stokes_comb": 3}[kernel]
    own = {"laplace": 1 + 2, "stokes_sl": 2 + 6 + 5 + 7, "stokes_comb": 2 * 16 + 8 + 20}[kernel]
    # 1/r; t = r2 scale - 1 and its square; the polynomials in it
    return 1 + 2 + 1 + tables * (2 * (terms - 2) + 2) + own


# Counts by hand


def line(n):
    return 5 * n * math.log2(n)


def test_a_small_sum_by_hand(plans):
    plan = plans("stokes_comb")
    p, found = plan.parameters, counted(plan, p2g="HYBRID", g2p="TARGET")
    m0, m1, m2 = p.grid
    points, kmax = m0 * m1 * m2, [p.kmax * side / (2 * math.pi) for side in p.box]
    number = int(kmax[0]) + 1
    # A target has 3 offsets, a fused operation and two sums each; 3 windows of P polynomials; for each component's
    # first tap 3 fused operations; P³ taps, of which the first of each P is a product; a sum for each plane; and a
    # product and a sum for each point along z.
    windows = 3 * 4 + 3 * p.P * 2 * p.window_degree
    assert found.flop["g2p"] == 500 * (windows + 3 * (3 * 2 + 2 * p.P**3 - p.P**2 + 2 * p.P**2 + p.P + p.P))
    # Two neighbours along z are one line along x; planes of kx have lines along z, and along y where they reach kmax.
    transform = m1 * m2 / 2 * line(m0)
    for mode in range(number):
        reach = int(kmax[2] * math.sqrt(1 - (mode / kmax[0]) ** 2))
        columns = 2 * reach + 1 if 2 * reach + 1 <= 0.9 * m2 else m2
        transform += m1 * line(m2) + columns * line(m1)
    assert found.flop["fft"] == pytest.approx(4 * transform, abs=1)
    assert found.flop["ifft"] == pytest.approx(3 * transform, abs=1)
    # |k|² and its inverse root, 3 products; n.v; v - n (n.v) + i k v3, times g; for every row its ky² + kx² once.
    mode = (2 + 1) + 3 + 2 * (1 + 2 * 2) + 6 * (2 * 2 + 1)
    assert found.flop["cnv"] == number * m1 * (m2 * mode + 3)
    assert found.mop["p2p"] == 8 * (600 * 12 + 500 * 6)
    assert found.mop["p2g"] == 8 * (600 * 12 + 600 * p.P**3 * 4 * 2)
    # Along x all reals in and out; of each plane the grid's lines at kx and -kx in, and m1 m2 complex numbers out.
    assert found.mop["fft"] == 8 * 4 * (2 * points + number * (2 * m1 * m2 + 2 * m1 * m2))
    assert found.mop["cnv"] == 8 * (4 + 3) * 2 * number * m1 * m2
    assert found.mop["ifft"] == 8 * 3 * (2 * points + number * (2 * m1 * m2 + 2 * m1 * m2))
    assert found.mop["g2p"] == 8 * (500 * 6 + 500 * p.P**3 * 3)
    assert found.values == 4 * points


@pytest.mark.parametrize("periodicity", [0, 1, 2])
def test_padded_planes_are_counted(periodicity, plans):
    """Counts use the padded planes that are transformed; padding is largest for modes that vary little."""
    plan = plans("laplace", periodicity=periodicity, rc=None)
    p, found = plan.parameters, counted(plan)
    mesh, classes = plan._placed(1).sum.far.mesh, multipliers.planes(p)
    assert found.values == math.prod(mesh.box)
    modes = sum(len(c.modes) * c.rows * c.length for c in classes)
    assert found.flop["cnv"] == modes * 2  # a scalar multiplier takes no direction
    lines = sum(len(c.modes) * (mesh.box[1] * line(c.length) + c.length * line(c.rows)) for c in classes)
    along = mesh.box[1] * mesh.box[2] / 2 * line(mesh.box[0])
    assert along + 0.5 * lines < found.flop["fft"] <= along + lines + 1
    assert all(c.length >= mesh.inside[2] for c in classes)


@pytest.mark.parametrize("kernel", ["laplace", "stokes_sl", "stokes_comb"])
def test_variants_differ_in_what_they_compute_again(kernel, plans):
    plan = plans(kernel)
    p, layers, c = plan.parameters, 2 if kernel == "stokes_comb" else 1, KERNELS[kernel].spread
    P, polynomial = p.P, 2 * p.window_degree * layers + (kernel == "stokes_comb")

    def flop(name):
        return counted(plan, p2g=name).flop["p2g"] / 600

    # Windows along x and y for every row (BASE), or every tap (GRID); a product for each component and tap.  Atomic
    # additions are not counted, but GRID's own additions are.
    again = (2 * P**2 + P) * polynomial
    assert flop("BASE") == flop("SOURCE")
    per_row = {"laplace": 1 + c, "stokes_sl": 1 + c, "stokes_comb": 3 + 3 * (1 + 4 + 1) + 1}[kernel]
    taps = P**3 * {"laplace": 1, "stokes_sl": 3, "stokes_comb": 3 * 3 + 1}[kernel]
    # q.n; of qn + nq three with two products, and three with one twice, of which q.n has computed one by itself
    moments = {"laplace": 0, "stokes_sl": 0, "stokes_comb": 5 + 3 * 3 + 1 + 2 + 2}[kernel]
    assert flop("BASE") == again + P**2 * per_row + taps + 3 * (2 + 2) + moments
    assert flop("GRID") > 3 * P**3 * polynomial
    # BLOCK: three windows for each component, a product and a sum for every tap, with slopes two products.
    least = c * 3 * P * 2 * p.window_degree * layers + 2 * layers * c * P**3
    assert least < flop("BLOCK") < 1.6 * least
    # HYBRID: rows along z with zeros to either side, a product and a sum for each point; with slopes two.
    taps = p.P**2 * (p.P + constant("p2g_hybrid", "ZT") - 1) * 2 * (c + 3 * (layers - 1))
    least = taps + 3 * p.P * 2 * p.window_degree * layers
    assert least < flop("HYBRID") < 1.4 * least
    per_target = [counted(plan, g2p=name).flop["g2p"] / 500 for name in ("BASE", "TARGET")]
    assert per_target[0] > per_target[1] * 0.8
    points = math.prod(m + p.P for m in p.grid)
    row = 3 + {"laplace": 1, "stokes_sl": 3, "stokes_comb": 9}[kernel]
    assert counted(plan, p2g="GRID").mop["p2g"] == 8 * (600 * p.P**3 * row + KERNELS[kernel].spread * points)


def test_complex_transforms_take_the_other_planes_too(plans):
    plan = plans("laplace")
    p, (m0, m1, m2) = plan.parameters, plan.parameters.grid
    real = counted(plan)
    both = work.count(p, plan.chosen.variants, plan.structure.points.targets, plan.structure.points.sources, real=False)
    number = int(p.kmax * p.box[0] / (2 * math.pi)) + 1
    # All planes but that of kx = 0 have an image; transforms along x add nothing.
    assert both.flop["cnv"] * number == real.flop["cnv"] * (2 * number - 1)
    along = m1 * m2 / 2 * line(m0)
    assert real.flop["fft"] < both.flop["fft"] < 2 * real.flop["fft"] - along
    assert both.mop["fft"] == 8 * (2 * m0 * m1 * m2 + (2 * number - 1) * 4 * m1 * m2)
    # Each plane writes its own lines alone.
    assert both.mop["ifft"] == 8 * (2 * m0 * m1 * m2 + (2 * number - 1) * 3 * m1 * m2)
    assert both.values == real.values


def test_float32_halves_the_bytes():
    rng = np.random.default_rng(1)
    x = rng.random((3, 50))
    found = {}
    for dtype in (np.float32, np.float64):
        plan = parki.ewald.plan("laplace", *[x.astype(dtype)] * 2, box=(1, 1, 1), tolerance=1e-3, rc=0.5)
        lists = [plan.structure.points.targets] * 2
        found[dtype] = work.count(plan.parameters, plan.chosen.variants, *lists).mop["p2p"]
    assert found[np.float64] == 2 * found[np.float32] == 8 * 50 * (4 + 4)


@pytest.mark.parametrize("p2g", ["BLOCK", "BASE", "GRID"])
def test_a_far_field_in_single_precision_halves_its_bytes(p2g, plans):
    plan = plans("stokes_comb")
    p, v, points = plan.parameters, replace(plan.chosen.variants, p2g=p2g), plan.structure.points
    whole, half = (
        work.count(replace(p, far=name), v, points.targets, points.sources) for name in ("float64", "float32")
    )
    assert whole.flop == half.flop
    assert [whole.mop[name] / half.mop[name] for name in ("p2p", "fft", "cnv", "ifft")] == [1, 2, 2, 2]
    # Sources, here for each tap, and the places of targets stay what they are.
    sources = 8 * 600 * 12 * (p.P**3 if p2g == "GRID" else 1)
    for name, kept in (("p2g", sources), ("g2p", 8 * 500 * 3)):
        assert whole.mop[name] - kept == 2 * (half.mop[name] - kept) > 0
    for name in ("p2g", "g2p"):
        assert half.counts[name].bytes["dram"] < whole.counts[name].bytes["dram"] < 2 * half.counts[name].bytes["dram"]


# Pairs


def by_one(plan):
    """Count pairs that the loops of kernels/p2p.py visit, and estimate pairs within rc from the cells they reach."""
    targets, sources = plan.structure.points.targets, plan.structure.points.sources
    batch, bound = targets.batches(plan.chosen.variants.targets)
    rc, (h0, h1, h2), (n0, n1, n2) = plan.parameters.rc, sources.grid.widths, sources.grid.shape
    begin, found, estimate = sources.begin, 0, 0.0

    def gap(a, h, lo, hi):
        return max(0.0, a * h - hi, lo - (a + 1) * h)

    for (first, end), (x0, y0, z0, x1, y1, z1) in zip(batch.tolist(), bound.tolist(), strict=True):
        held = cells = 0
        for a in range(math.floor((x0 - rc) / h0), math.floor((x1 + rc) / h0) + 1):
            for b in range(math.floor((y0 - rc) / h1), math.floor((y1 + rc) / h1) + 1):
                left = rc**2 - gap(a, h0, x0, x1) ** 2 - gap(b, h1, y0, y1) ** 2
                if left <= 0:
                    continue
                reach = math.sqrt(left)
                for c in range(math.floor((z0 - reach) / h2), math.floor((z1 + reach) / h2) + 1):
                    cell = (a % n0 * n1 + b % n1) * n2 + c % n2
                    held += int(begin[cell + 1] - begin[cell])
                    cells += 1
        found += (end - first) * held
        estimate += (end - first) * held * min(1.0, 4 / 3 * math.pi * rc**3 / (cells * h0 * h1 * h2))
    return found, estimate


@pytest.mark.parametrize("rc", [0.12, 0.31, 0.75])
def test_pairs_are_those_that_the_kernel_looks_at(rc, plans):
    plan = plans("laplace", rc=rc)
    found, within = by_one(plan)
    assert work.pairs(
        plan.parameters, plan.chosen.variants, plan.structure.points.targets, plan.structure.points.sources
    ) == (
        found,
        round(within),
    )
    total = counted(plan, p2p="GM-1D")
    assert total.pairs == found
    pairs = 8 * found + within * pair_flops("laplace", plan.parameters.radial_degree // 2 * 2 + 2)
    # The rest finds the pairs: batches, slabs, columns, and shifts of images, subtracted from each target.
    assert (
        pairs
        < total.flop["p2p"]
        < pairs
        + 500 * 200
        + 60
        * work.meets(
            plan.parameters, plan.chosen.variants, plan.structure.points.targets, plan.structure.points.sources
        ).columns
        * plan.chosen.variants.targets
    )


def test_many_batches_are_sampled(plans, monkeypatch):
    plan = plans("laplace")
    given = plan.parameters, plan.chosen.variants, plan.structure.points.targets, plan.structure.points.sources
    every = work.pairs(*given)
    monkeypatch.setattr(work, "SAMPLE", 20)
    some = work.pairs(*given)
    assert some != every
    assert np.allclose(some, every, rtol=0.3)


def test_uniform_points_have_as_many_pairs_within_rc_as_estimated(rng):
    x = rng.random((3, 3000))
    plan = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-3, rc=0.15)
    _, within = work.pairs(plan.parameters, plan.chosen.variants, *[plan.structure.points.targets] * 2)
    apart = x[:, :, None] - x[:, None]
    true = ((apart - np.round(apart)) ** 2).sum(axis=0) < 0.15**2
    assert within == pytest.approx(true.sum(), rel=0.05)


def test_default_variants_of_every_space_are_counted(plans):
    plan = plans("stokes_sl")
    for space in ("Serial", "GpuSim"):
        v = variants.choose(parki.utils.get_execution_space(space), "float64")
        found = work.count(plan.parameters, v, plan.structure.points.targets, plan.structure.points.sources)
        assert min(*found.flop.values(), *found.mop.values(), found.pairs) > 0
        assert found.flop["g2p"] >= 500 * 2 * KERNELS["stokes_sl"].result * plan.parameters.P**3
        for name, phase in found.counts.items():
            assert round(phase.flops) == found.flop[name]
            assert 0 < phase.fill <= 1
            assert phase.launches > 0
            assert phase.bytes["dram"] > 0
        assert found.counts["p2g"].atomics == 0


# Models of uniform points


@pytest.mark.parametrize("kind", ["host", "device"])
@pytest.mark.parametrize(("kernel", "options"), [("stokes_comb", {}), ("laplace", {"periodicity": 1, "rc": None})])
def test_uniform_points_are_counted_without_them(kernel, options, kind, rng):
    x = np.array(BOX)[:, None] * rng.random((3, 6000))
    space = "Serial" if kind == "host" else "GpuSim"
    v = variants.choose(parki.utils.get_execution_space(space), "float64")
    given = {"box": BOX, "tolerance": 1e-5, "execution_space": "Serial", **options}
    plan = parki.ewald.plan(kernel, x[:, ::2], x, **given)
    p = plan.parameters
    grid = CellGrid.for_points(
        p.box, 6000, p.rc, cells.PER_BATCH if kind == "host" else v.targets, [axis < p.periodicity for axis in range(3)]
    )
    lists = [SortedCells(y, grid, plan.space) for y in (x[:, ::2], x)]
    for chosen in (v, replace(v, p2p="SM-1D", p2g="GRID", g2p="BASE"), replace(v, p2g="BASE")):
        true, found = work.count(p, chosen, *lists), work.modelled(p, chosen, 3000, 6000, kind)
        if kind == "host":  # the lists are of a host, too
            for name, phase in true.counts.items():
                assert found.counts[name].flops == pytest.approx(phase.flops, rel=0.1), name
                assert found.counts[name].fill == pytest.approx(phase.fill, rel=0.1), name
                for level, size in phase.bytes.items():
                    assert found.counts[name].bytes[level] == pytest.approx(size, rel=0.15), (name, level)
        assert ("shared" in found.counts["p2g"].bytes) == (kind == "device")
        assert found.pairs == pytest.approx(true.pairs, rel=0.1)
        assert (found.values, found.mop) == (true.values, true.mop)


@pytest.mark.parametrize("targets", [8, 32])
def test_sources_that_a_batch_lists_are_those_within_rc_of_one_target(targets, rng):
    x = rng.random((3, 4000))
    plan = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-3, rc=0.15, execution_space="Serial")
    n = work.meets(
        plan.parameters, replace(plan.chosen.variants, targets=targets), *[plan.structure.points.targets] * 2
    )
    batch, _ = plan.structure.points.targets.batches(targets)
    listed = 0
    for first, end in batch:
        apart = plan.structure.points.targets.points[:, first:end, None] - x[:, None]
        listed += (((apart - np.round(apart)) ** 2).sum(axis=0) < 0.15**2).any(axis=0).sum()
    assert n.listed == pytest.approx(listed, rel=0.05)
    assert n.batches == len(batch)
    assert n.within / targets < n.listed < n.met
