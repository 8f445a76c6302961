"""Counts of operations and bytes: against the kernels' texts, counts by hand, and pairs looked at one by one."""

import ast
import math
from dataclasses import replace

import numpy as np
import pytest

import parki
from parki.ewald import multipliers, variants, work
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
    chosen = Variants(**{**vars(plan.variants), **changes})
    return work.count(plan.parameters, chosen, plan.points.targets, plan.points.sources)


# The kernels' own texts


CALLS = {"pk.rsqrt": 1, "pk.sqrt": 1, "pk.exp": 1}


def operations(node, names):
    """Operations in a piece of a kernel, not those of indices; branches, loops and calls by what `names` says."""
    if isinstance(node, list):
        return sum(operations(part, names) for part in node)
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
        return operations(node.body if names[node.test.id] else node.orelse, names)
    if isinstance(node, ast.For):
        times = len(eval(ast.unparse(node.iter), {"range": range, **names}))
        return times * operations(node.body, names)
    if isinstance(node, ast.Subscript | ast.Compare) or (
        isinstance(node, ast.BinOp) and isinstance(node.left, ast.List)
    ):
        return 0
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "column":  # an index
        return 0
    own = isinstance(node, ast.AugAssign | ast.BinOp)
    if isinstance(node, ast.Call):
        own += names.get(ast.unparse(node.func), 0)
    return own + sum(operations(child, names) for child in ast.iter_child_nodes(node))


def function(root, file, name):
    tree = ast.parse((root / "kernels" / file).read_text("utf-8"))
    return next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name).body[1:]


@pytest.mark.parametrize("kernel", KERNELS)
def test_operations_of_a_pair_are_those_of_its_text(kernel, root, plans):
    p = plans("laplace").parameters
    p = replace(p, kernel=KERNELS[kernel])
    terms = p.radial_degree + 1 + (p.radial_degree + 1) % 2
    names = {"SCREENED": True, "NF": len(p.kernel.far), "TERMS": terms, "NS": 0, "RHS": 1} | CALLS
    pair = operations(function(root, f"{p.kernel.pair}.py", "pair"), names)
    assert pair == p.kernel.flops
    add_source = function(root, "near.py", "add_source")
    assert operations(add_source[:4], names) == work.DISTANCE
    rest = operations(add_source[4:], names) + operations(function(root, "near.py", "far_parts"), names)
    rest += operations(function(root, "scalar.py", "rinv_or_zero"), names)
    assert work.pair_operations(p) == rest + pair


@pytest.mark.parametrize("skew", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_operations_of_a_mode_are_those_of_its_text(kernel, skew, root):
    row = function(root, "convolve.py", "convolve")
    mode = next(node for node in ast.walk(ast.Module(row, [])) if getattr(node, "name", "") == "mode").body
    names = {"RHS": 1, "SKEW": skew, "NIN": 0, "NOUT": 0} | CALLS
    names["along"] = operations(function(root, "multiplier/stokes.py", "along"), names)
    own = operations(mode, names)
    multiply = operations(function(root, f"{KERNELS[kernel].multiplier}.py", "multiply"), names)
    assert own + multiply == KERNELS[kernel].mode_flops + work.SKEWED * skew


# Counts by hand


def line(n):
    return 5 * n * math.log2(n)


def test_a_small_sum_by_hand(plans):
    plan = plans("stokes_comb")
    p, found = plan.parameters, counted(plan, p2g="HYBRID", g2p="TARGET")
    m0, m1, m2 = p.grid
    points, kmax = m0 * m1 * m2, [p.kmax * side / (2 * math.pi) for side in p.box]
    planes = int(kmax[0]) + 1
    # 4 components with a product and a sum each, and the slopes' in three of them; 6 tables of P polynomials.
    assert found.flop["p2g"] == 600 * ((4 + 3) * 2 * p.P**3 + 6 * p.P * 2 * p.window_degree)
    assert found.flop["g2p"] == 500 * (3 * 2 * p.P**3 + 3 * p.P * 2 * p.window_degree)
    # Two neighbours along z are one line along x; planes of kx have lines along z, and along y where they reach kmax.
    transform = m1 * m2 / 2 * line(m0)
    for mode in range(planes):
        reach = int(kmax[2] * math.sqrt(1 - (mode / kmax[0]) ** 2))
        columns = 2 * reach + 1 if 2 * reach + 1 <= 0.9 * m2 else m2
        transform += m1 * line(m2) + columns * line(m1)
    assert found.flop["fft"] == pytest.approx(4 * transform, abs=1)
    assert found.flop["ifft"] == pytest.approx(3 * transform, abs=1)
    assert found.flop["cnv"] == planes * m1 * m2 * KERNELS["stokes_comb"].mode_flops
    assert found.mop["p2p"] == 8 * (600 * 12 + 500 * 6)
    assert found.mop["p2g"] == 8 * (600 * 12 + 600 * p.P**3 * 4 * 2)
    # All reals in and out along x; of a plane the grid's lines at kx and -kx in, and m1 m2 complex numbers out.
    assert found.mop["fft"] == 8 * 4 * (2 * points + planes * (2 * m1 * m2 + 2 * m1 * m2))
    assert found.mop["cnv"] == 8 * (4 + 3) * 2 * planes * m1 * m2
    assert found.mop["ifft"] == 8 * 3 * (2 * points + planes * (2 * m1 * m2 + 2 * m1 * m2))
    assert found.mop["g2p"] == 8 * (500 * 6 + 500 * p.P**3 * 3)
    assert found.values == 4 * points


@pytest.mark.parametrize("periodicity", [0, 1, 2])
def test_padded_planes_are_counted(periodicity, plans):
    """Those that are transformed: more than the grid has, most for modes that vary little along periodic axes."""
    plan = plans("laplace", periodicity=periodicity, rc=None)
    p, found = plan.parameters, counted(plan)
    mesh, classes = plan._prepared(1).far.mesh, multipliers.planes(p)
    assert found.values == math.prod(mesh.box)
    modes = sum(len(c.modes) * c.rows * c.length for c in classes)
    assert found.flop["cnv"] == modes * KERNELS["laplace"].mode_flops
    lines = sum(len(c.modes) * (mesh.box[1] * line(c.length) + c.length * line(c.rows)) for c in classes)
    along = mesh.box[1] * mesh.box[2] / 2 * line(mesh.box[0])
    assert along + 0.5 * lines < found.flop["fft"] <= along + lines + 1
    assert all(c.length >= mesh.inside[2] for c in classes)


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
    points = math.prod(m + p.P for m in p.grid)
    row = 3 + {"laplace": 1, "stokes_sl": 3, "stokes_comb": 9}[kernel]
    assert counted(plan, p2g="GRID").mop["p2g"] == 8 * (600 * p.P**3 * row + KERNELS[kernel].spread * points)


def test_complex_transforms_take_the_other_planes_too(plans):
    plan = plans("laplace")
    p, (m0, m1, m2) = plan.parameters, plan.parameters.grid
    real = counted(plan)
    both = work.count(p, plan.variants, plan.points.targets, plan.points.sources, real=False)
    planes = int(p.kmax * p.box[0] / (2 * math.pi)) + 1
    # All but the plane of kx = 0 have an image, and along x there is nothing to add.
    assert both.flop["cnv"] * planes == real.flop["cnv"] * (2 * planes - 1)
    along = m1 * m2 / 2 * line(m0)
    assert real.flop["fft"] < both.flop["fft"] < 2 * real.flop["fft"] - along
    assert both.mop["fft"] == 8 * (2 * m0 * m1 * m2 + (2 * planes - 1) * 4 * m1 * m2)
    # Each writes its own lines alone.
    assert both.mop["ifft"] == 8 * (2 * m0 * m1 * m2 + (2 * planes - 1) * 3 * m1 * m2)
    assert both.values == real.values


def test_float32_halves_the_bytes():
    rng = np.random.default_rng(1)
    x = rng.random((3, 50))
    found = {}
    for dtype in (np.float32, np.float64):
        plan = parki.ewald.plan("laplace", *[x.astype(dtype)] * 2, box=(1, 1, 1), tolerance=1e-3, rc=0.5)
        lists = [plan.points.targets] * 2
        found[dtype] = work.count(plan.parameters, plan.variants, *lists).mop["p2p"]
    assert found[np.float64] == 2 * found[np.float32] == 8 * 50 * (4 + 4)


# Pairs


def by_one(plan):
    """Pairs looked at, as the loops of kernels/p2p.py go; and cells they reach."""
    targets, sources = plan.points.targets, plan.points.sources
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
    assert work.pairs(plan.parameters, plan.variants, plan.points.targets, plan.points.sources) == (
        found,
        round(within),
    )
    flop = counted(plan)
    assert flop.pairs == found
    assert flop.flop["p2p"] == 8 * found + round(within) * work.pair_operations(plan.parameters)


def test_many_batches_are_sampled(plans, monkeypatch):
    plan = plans("laplace")
    given = plan.parameters, plan.variants, plan.points.targets, plan.points.sources
    every = work.pairs(*given)
    monkeypatch.setattr(work, "SAMPLE", 20)
    some = work.pairs(*given)
    assert some != every
    assert np.allclose(some, every, rtol=0.3)


def test_uniform_points_have_as_many_pairs_within_rc_as_estimated(rng):
    x = rng.random((3, 3000))
    plan = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-3, rc=0.15)
    _, within = work.pairs(plan.parameters, plan.variants, *[plan.points.targets] * 2)
    apart = x[:, :, None] - x[:, None]
    true = ((apart - np.round(apart)) ** 2).sum(axis=0) < 0.15**2
    assert within == pytest.approx(true.sum(), rel=0.05)


def test_default_variants_of_every_space_are_counted(plans):
    plan = plans("stokes_sl")
    for space in ("Serial", "GpuSim"):
        v = variants.choose(parki.utils.get_execution_space(space), "float64")
        found = work.count(plan.parameters, v, plan.points.targets, plan.points.sources)
        assert min(*found.flop.values(), *found.mop.values(), found.pairs) > 0
        assert found.flop["g2p"] >= 500 * 2 * KERNELS["stokes_sl"].result * plan.parameters.P**3
