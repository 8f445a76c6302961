"""Many right-hand sides in one pass: the loops' result of each is its result alone."""

import numpy as np
import pytest

from parki import engine
from parki.cells import CellGrid, SortedCells
from parki.engine import RangePolicy, TeamPolicy
from parki.engine.run.spaces import Space
from parki.ewald.choice import choose, variants
from parki.ewald.choice.question import Question
from tests.catalogue import PAIRS
from tests.ewald import loops
from tests.ewald.fields import near_field

NEAR = (("laplace", 8), ("stokeslet", 4), ("stokes_comb", 2))
# Slots, numbers of strengths and of spread components, and of right-hand sides.
LAYERS = {
    "charges": ({"NC": 1}, 1, 1, 8),
    "charges and a parameter": ({"NC": 1, "NS": 2}, 2, 1, 2),
    "forces": ({"NC": 3}, 3, 3, 4),
    "both layers": ({"NC": 4, "COMB": True}, 9, 4, 2),
    "double layer": ({"NC": 4, "COMB": True, "SINGLE": False}, 6, 4, 2),
}


def close(found, exact):
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-13 * np.abs(exact).max())


def parts(strengths, rhs):
    """Return the strengths of each right-hand side."""
    return np.split(strengths, rhs)


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Compile the loops of every test, side by side."""
    units = [loops.near_kernel("p2p_gm_1d", pair=f"pair/{pair}", RHS=r) for pair, n in NEAR for r in (1, n)]
    for slots, _, _, n in LAYERS.values():
        units += [loops.spread_kernel("BLOCK", RHS=r, **slots) for r in (1, n)]
    engine.compile_all(list(dict.fromkeys(units)))


def near_fields(space, loop, pair, rhs, rng, n=60, nt=40):
    """Return near fields of all right-hand sides at once, and of one at a time."""
    ns, nu, nf = PAIRS[pair]
    x, begin = loops.cloud(rng, n)
    xt = np.concatenate([loops.cloud(rng, nt)[0], x[:, :3]], axis=1)
    s, coef = rng.standard_normal((rhs * ns, n)), rng.standard_normal(nf * loops.TERMS)
    together = loops.near_kernel(loop, pair=f"pair/{pair}", RHS=rhs)
    alone = loops.near_kernel(loop, pair=f"pair/{pair}")
    found = loops.near(space, together, rhs * nu, xt, loops.rows(x, s), begin, coef, 0.5)
    ones = [loops.near(space, alone, nu, xt, loops.rows(x, one), begin, coef, 0.5) for one in parts(s, rhs)]
    return found, np.concatenate(ones)


def slow_but(default, names):
    """Mark all names but the default as slow: each takes a compilation."""
    return [name if name == default else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize(("pair", "rhs"), NEAR)
@pytest.mark.parametrize("loop", slow_but("p2p_gm_1d", loops.NEAR))
def test_near_fields_are_those_of_one_at_a_time(loop, pair, rhs, rng):
    close(*near_fields(Space("OpenMP", 2), loop, pair, rhs, rng))


@pytest.mark.parametrize("loop", ["p2p_gm_1d", "p2p_sm_2d"])
def test_near_fields_on_a_simulated_gpu(loop, rng):
    close(*near_fields("GpuSim", loop, "stokeslet", 4, rng, 12, 9))


def spreads(space, variant, layer, rng, n=40):
    """Return grids of all right-hand sides at once, and of one at a time."""
    slots, ns, nc, rhs = LAYERS[layer]
    x, begin = loops.cloud(rng, n)
    s, window = rng.standard_normal((rhs * ns, n)), loops.window(rng)
    together, alone = loops.spread_kernel(variant, RHS=rhs, **slots), loops.spread_kernel(variant, **slots)
    found = loops.spread(space, variant, together, rhs * nc, loops.rows(x, s), begin, window)
    ones = [loops.spread(space, variant, alone, nc, loops.rows(x, one), begin, window) for one in parts(s, rhs)]
    return found, np.concatenate(ones)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("variant", slow_but("BLOCK", loops.SPREAD))
def test_grids_are_those_of_one_at_a_time(variant, layer, rng):
    close(*spreads(Space("OpenMP", 2), variant, layer, rng))


@pytest.mark.parametrize(("variant", "layer"), [("HYBRID", "both layers"), ("BASE", "forces"), ("BLOCK", "charges")])
def test_grids_on_a_simulated_gpu(variant, layer, rng):
    close(*spreads("GpuSim", variant, layer, rng, 8))


@pytest.mark.parametrize("variant", slow_but("BLOCK", loops.SPREAD))
def test_the_double_layer_alone_is_that_without_forces(variant, rng):
    x, begin = loops.cloud(rng, 40)
    s, window = rng.standard_normal((6, 40)), loops.window(rng)
    with_forces = np.concatenate([np.zeros((3, 40)), s])
    single, both = (loops.spread_kernel(variant, NC=4, COMB=True, SINGLE=single) for single in (False, True))
    found = loops.spread("Serial", variant, single, 4, loops.rows(x, s), begin, window)
    close(found, loops.spread("Serial", variant, both, 4, loops.rows(x, with_forces), begin, window))
    exact = loops.double_layer(loops.rows(x, s), s[:3], s[3:], s[:3], s[3:], window)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12 * np.abs(exact).max())


@pytest.mark.parametrize(
    ("name", "rhs"), [("g2p_target", 8), ("g2p_base", 2), pytest.param("g2p_base", 8, marks=pytest.mark.slow)]
)
def test_interpolation_of_many_components_is_that_of_each(name, rhs, rng):
    slots = {"real": "double", "P": loops.P, "DEGREE": loops.DEGREE}
    xt = loops.cloud(rng, 37)[0]
    grid = rng.standard_normal((3 * rhs, *(m + loops.P for m in loops.POINTS)))
    given = {"xt": xt, **loops.window(rng), **loops.scales(), "s01": 0.0, "s02": 0.0, "s12": 0.0}
    policy = RangePolicy("OpenMP", 37)
    if name == "g2p_target":
        batch = np.array([[0, 16], [16, 32], [32, 37]], np.int32)
        policy, given = TeamPolicy("OpenMP", 3), {**given, "batch": batch, "batches": 3}
    found, alone = np.empty((3 * rhs, 37)), np.empty((3, 37))
    engine.parallel_for(policy, engine.kernel("g2p", name, NC=3 * rhs, **slots), grid=grid, u=found, **given)
    for r in range(rhs):
        part = grid[3 * r : 3 * r + 3].copy()
        engine.parallel_for(policy, engine.kernel("g2p", name, NC=3, **slots), grid=part, u=alone, **given)
        close(found[3 * r : 3 * r + 3], alone)


@pytest.mark.parametrize(("space", "n", "rhs"), [(Space("OpenMP", 2), 300, 4), (Space("GpuSim"), 60, 8)], ids=str)
def test_a_prepared_near_field_takes_many_right_hand_sides(space, n, rhs, rng):
    """On GPUs two teams share a batch of targets: not all of their sums fit in scratch."""
    p = choose.parameters(Question("stokes_sl", loops.BOX, n, n, 1e-6, rc=0.4))
    v = variants.choose(space, p.dtype)
    points = np.array(loops.BOX)[:, None] * rng.random((3, n))
    cells = SortedCells(points, CellGrid(loops.BOX, (3, 4, 9)), space)
    s = rng.standard_normal((rhs * 3, n))
    field = near_field(p, cells, loops.rows(cells.points, s), v, rhs)
    assert field.shape == (rhs * 3, n)
    for r, one in enumerate(parts(s, rhs)):
        close(field[3 * r : 3 * r + 3], near_field(p, cells, loops.rows(cells.points, one), v))
