"""Counts of operations and bytes: against the kernels' texts, counts by hand, and pairs looked at one by one."""

import ast
import math

import numpy as np
import pytest

import parki
from parki.ewald import variants, work
from parki.ewald.kernels import KERNELS
from parki.ewald.variants import Variants

BOX = (1.0, 1.3, 0.8)
FILES = {"laplace": "laplace", "stokes_sl": "stokeslet", "stokes_comb": "stokes_comb"}


@pytest.fixture(scope="module")
def plans():
    """A plan of each kernel over few points, made once."""
    made = {}

    def get(kernel, **options):
        key = (kernel, *options.items())
        if key not in made:
            rng = np.random.default_rng(3)
            x = np.array(BOX)[:, None] * rng.random((3, 700))
            x[:, :300] *= 0.4  # a cloud, and a thin rest
            options = {"box": BOX, "tolerance": 1e-4, "execution_space": "Serial", "rc": 0.31} | options
            made[key] = parki.ewald.plan(kernel, x[:, 200:], x[:, :600], **options)
        return made[key]

    return get


def counted(plan, **changes):
    at = plan.stages
    chosen = Variants(**{**vars(plan.variants), **changes})
    return work.count(plan.parameters, chosen, at.targets, sources_of(plan))


def sources_of(plan):
    """Its list of sources, made again."""
    at = plan.stages
    given = np.random.default_rng(3).random((3, 700)) * np.array(BOX)[:, None]
    given[:, :300] *= 0.4
    return type(at.targets)(given[:, :600].copy(), at.targets.grid, plan.space)


# The kernels' own texts


def operations(node, names):
    """Operations in a piece of a kernel, not those of indices; branches and loops by what `names` says."""
    if isinstance(node, list):
        return sum(operations(part, names) for part in node)
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
        return operations(node.body if names[node.test.id] else node.orelse, names)
    if isinstance(node, ast.For):
        times = len(eval(ast.unparse(node.iter), {"range": range, **names}))
        return times * operations(node.body, names)
    if isinstance(node, ast.Subscript | ast.Compare):
        return 0
    own = isinstance(node, ast.AugAssign) or (isinstance(node, ast.BinOp) and not isinstance(node.left, ast.List))
    own += isinstance(node, ast.Call) and ast.unparse(node.func) == "pk.rsqrt"
    return own + sum(operations(child, names) for child in ast.iter_child_nodes(node))


def function(root, file, name):
    tree = ast.parse((root / "kernels" / file).read_text("utf-8"))
    return next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name).body[1:]


@pytest.mark.parametrize("kernel", FILES)
def test_operations_of_a_pair_are_those_of_its_text(kernel, root, plans):
    p = plans(kernel).parameters
    terms = p.radial_degree + 1 + (p.radial_degree + 1) % 2
    names = {"SCREENED": True, "NF": work.FAR_PARTS[kernel], "TERMS": terms, "NS": 0, "RHS": 1}
    pair = operations(function(root, f"pair/{FILES[kernel]}.py", "pair"), names)
    assert pair == work.SCREENED[kernel]
    add_source = function(root, "near.py", "add_source")
    assert operations(add_source[:4], names) == work.DISTANCE
    rest = operations(add_source[4:], names) + operations(function(root, "near.py", "far_parts"), names)
    rest += operations(function(root, "scalar.py", "rinv_or_zero"), names)
    assert work.pair_operations(p) == rest + pair


@pytest.mark.parametrize("kernel", FILES)
def test_operations_of_a_mode_are_those_of_its_text(kernel, root):
    name = "convolve_laplace" if kernel == "laplace" else "convolve_stokes"
    row = function(root, "convolve.py", name)
    mode = next(node for node in row if isinstance(node, ast.FunctionDef)).body
    for degree in (5, 12):
        found = operations(mode, {"COMB": kernel == "stokes_comb", "DEGREE": degree})
        assert found == work.MODE[kernel] + 2 * degree


# Counts by hand


def test_a_small_sum_by_hand(plans):
    plan = plans("stokes_comb")
    p, found = plan.parameters, counted(plan, p2g="HYBRID", g2p="TARGET")
    points = p.grid[0] * p.grid[1] * p.grid[2]
    half = p.grid[0] * p.grid[1] * (p.grid[2] // 2 + 1)
    # 4 components with a product and a sum each, and the slopes' in three of them; 6 tables of P polynomials.
    assert found.flop["p2g"] == 600 * ((4 + 3) * 2 * p.P**3 + 6 * p.P * 2 * p.window_degree)
    assert found.flop["g2p"] == 500 * (3 * 2 * p.P**3 + 3 * p.P * 2 * p.window_degree)
    assert found.flop["fft"] == pytest.approx(4 * 2.5 * points * math.log2(points), abs=1)
    assert found.flop["ifft"] == pytest.approx(3 * 2.5 * points * math.log2(points), abs=1)
    assert found.mop["p2p"] == 8 * (600 * 12 + 500 * 6)
    assert found.mop["p2g"] == 8 * (600 * 12 + 600 * p.P**3 * 4 * 2)
    assert found.mop["fft"] == 8 * (4 * points + 4 * 2 * half)
    assert found.mop["cnv"] == 8 * (4 + 3) * 2 * half
    assert found.mop["ifft"] == 8 * (3 * points + 3 * 2 * half)
    assert found.mop["g2p"] == 8 * (500 * 6 + 500 * p.P**3 * 3)
    assert found.values == 4 * points


@pytest.mark.parametrize("kernel", FILES)
def test_variants_differ_in_what_they_compute_again(kernel, plans):
    plan = plans(kernel)
    p, layers = plan.parameters, 2 if kernel == "stokes_comb" else 1
    polynomial = 2 * p.window_degree * layers

    def flop(name):
        return counted(plan, p2g=name).flop["p2g"] / 600

    base = flop("HYBRID")
    assert flop("BASE") == flop("SOURCE") == base + (2 * p.P**2 - 2 * p.P) * polynomial
    assert flop("GRID") == base + (3 * p.P**3 - 3 * p.P) * polynomial
    assert flop("BLOCK") == base + (2 * p.P**3 if layers == 2 else 0)
    per_target = [counted(plan, g2p=name).flop["g2p"] / 500 for name in ("BASE", "TARGET")]
    assert per_target[0] - per_target[1] == (p.P**2 - p.P) * 2 * p.window_degree
    points = math.prod(p.grid)
    row = 3 + {"laplace": 1, "stokes_sl": 3, "stokes_comb": 9}[kernel]
    assert counted(plan, p2g="GRID").mop["p2g"] == 8 * (600 * p.P**3 * row + KERNELS[kernel].spread * points)


def test_complex_transforms_are_twice_the_work(plans):
    plan = plans("laplace")
    p, points = plan.parameters, math.prod(plan.parameters.grid)
    real = counted(plan)
    both = work.count(p, plan.variants, plan.stages.targets, sources_of(plan), real=False)
    assert both.flop["fft"] == pytest.approx(2 * real.flop["fft"], abs=1)
    assert both.mop["fft"] == both.mop["ifft"] == 8 * 4 * points  # complex values in and out
    assert both.flop["cnv"] == real.flop["cnv"]  # of half the modes


def test_float32_halves_the_bytes():
    rng = np.random.default_rng(1)
    x = rng.random((3, 50))
    found = {}
    for dtype in (np.float32, np.float64):
        plan = parki.ewald.plan("laplace", *[x.astype(dtype)] * 2, box=(1, 1, 1), tolerance=1e-3, rc=0.5)
        lists = [plan.stages.targets] * 2
        found[dtype] = work.count(plan.parameters, plan.variants, *lists).mop["p2p"]
    assert found[np.float64] == 2 * found[np.float32] == 8 * 50 * (4 + 4)


# Pairs


def by_one(plan):
    """Pairs looked at, as the loops of kernels/p2p.py go; and cells they reach."""
    targets, sources = plan.stages.targets, sources_of(plan)
    batch, bound = targets.batches(plan.variants.targets)
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
    assert work.pairs(plan.parameters, plan.variants, plan.stages.targets, sources_of(plan)) == (found, round(within))
    flop = counted(plan)
    assert flop.pairs == found
    assert flop.flop["p2p"] == 8 * found + round(within) * work.pair_operations(plan.parameters)


def test_many_batches_are_sampled(plans, monkeypatch):
    plan = plans("laplace")
    given = plan.parameters, plan.variants, plan.stages.targets, sources_of(plan)
    every = work.pairs(*given)
    monkeypatch.setattr(work, "SAMPLE", 20)
    some = work.pairs(*given)
    assert some != every
    assert np.allclose(some, every, rtol=0.3)


def test_uniform_points_have_as_many_pairs_within_rc_as_estimated(rng):
    x = rng.random((3, 3000))
    plan = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-3, rc=0.15)
    _, within = work.pairs(plan.parameters, plan.variants, *[plan.stages.targets] * 2)
    apart = x[:, :, None] - x[:, None]
    true = ((apart - np.round(apart)) ** 2).sum(axis=0) < 0.15**2
    assert within == pytest.approx(true.sum(), rel=0.05)


def test_default_variants_of_every_space_are_counted(plans):
    plan = plans("stokes_sl")
    for space in ("Serial", "GpuSim"):
        v = variants.choose(parki.utils.get_execution_space(space), "float64")
        found = work.count(plan.parameters, v, plan.stages.targets, sources_of(plan))
        assert min(*found.flop.values(), *found.mop.values(), found.pairs) > 0
        assert found.flop["g2p"] >= 500 * 2 * KERNELS["stokes_sl"].result * plan.parameters.P**3
