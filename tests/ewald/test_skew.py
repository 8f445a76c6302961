"""Triclinic boxes: the near field against sums over lattice images, P2G with gradients along other directions."""

import itertools

import numpy as np
import pytest

from parki.cells import CellGrid, SortedCells
from parki.engine.run.spaces import Space
from parki.ewald.choice import choose, variants
from parki.ewald.choice.question import Question
from parki.ewald.stages import near
from tests.catalogue import PAIRS
from tests.ewald import loops
from tests.ewald.fields import near_field
from tests.portability import formulas
from tests.quick import but

# Tilts t01, t02, t12 of the sides 1.0, 1.3, 0.8.
TILTS = {
    "slight": (0.1, 0.0, -0.05),
    "strong": (0.62, -0.38, 0.4),
    "beyond the sides": (-1.9, 1.7, -1.1),
    "one axis": (0.0, 0.75, 0.0),
}
REACH = 5  # images along an axis, to either side, in the reference sum


def lattice_sum(pair, xt, src, coef, rc, tilts):
    """Sum over all images within the cutoff, by the definition of the lattice."""
    l0, l1, l2 = loops.BOX
    vectors = np.array([[l0, tilts[0], tilts[1]], [0, l1, tilts[2]], [0, 0, l2]])
    shifts = np.array(list(itertools.product((-1, 0, 1), range(-REACH, REACH + 1), range(-2 * REACH, 2 * REACH + 1))))
    d = xt[:, :, None] - src.T[:3, None, :]
    total = 0.0
    for move in shifts @ vectors:
        if np.all(np.abs(move) < np.array(loops.BOX) + rc):  # the box's own extent, and the cutoff
            total = total + formulas.one_image(pair, d - move[:, None, None], src.T[3:], coef, rc)
    return total


def problem(pair, rng, n, nt):
    """Return targets, some of them sources, the rows of the sources, begins of their cells, and tables."""
    ns, _, nf = PAIRS[pair]
    x, begin = loops.cloud(rng, n)
    xt = np.concatenate([loops.cloud(rng, nt)[0], x[:, :2]], axis=1)
    return xt, loops.rows(x, rng.standard_normal((ns, n))), begin, rng.standard_normal((nf, loops.TERMS))


def compare(space, loop, pair, given, rc, tilts):
    xt, src, begin, coef = given
    kernel = loops.near_kernel(loop, pair=f"pair/{pair}", SKEW=True)
    images = near._images(rc, loops.BOX, tilts)
    found = loops.near(space, kernel, PAIRS[pair][1], xt, src, begin, coef.ravel(), rc, tilts, images)
    exact = lattice_sum(pair, xt, src, coef, rc, tilts)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12 * np.abs(exact).max())


@pytest.mark.parametrize("tilts", TILTS)
@pytest.mark.parametrize("loop", loops.NEAR)
def test_near_field_is_the_lattice_sum(loop, tilts, rng):
    for pair, rc, n in (("laplace", 0.3, 300), ("laplace", 0.7999, 3), ("stokes_comb", 0.7999, 40)):
        compare(Space("OpenMP", 2), loop, pair, problem(pair, rng, n, 30), rc, TILTS[tilts])


def test_a_lone_source_meets_its_own_images(rng):
    given = problem("stokes_comb", rng, 1, 1)
    given = (given[1].T[:3].copy(), *given[1:])
    compare("Serial", "p2p_gm_1d", "stokes_comb", given, 0.9, TILTS["strong"])


@pytest.mark.parametrize("loop", ["p2p_gm_1d", "p2p_sm_1d"])
def test_near_field_on_a_simulated_gpu(loop, rng):
    compare("GpuSim", loop, "laplace", problem("laplace", rng, 10, 6), 0.5, TILTS["strong"])


def test_whole_sides_as_tilts_are_no_tilts(rng):
    """Such tilts keep the lattice, so the near field stays the same, with images far along the tilted axes."""
    n, space = 300, Space("OpenMP", 2)
    _, l1, l2 = loops.BOX
    p = choose.parameters(Question("stokes_sl", loops.BOX, n, n, 1e-6, rc=0.7))
    v = variants.choose(space, p.dtype)
    points = np.array(loops.BOX)[:, None] * rng.random((3, n))
    cells = SortedCells(points, CellGrid(loops.BOX, (3, 4, 9)), space)
    src = loops.rows(cells.points, rng.standard_normal((3, n)))
    plain, skew = (near_field(p, cells, src, v, skew=t) for t in (None, (2 * l1, -l2, 3 * l2)))
    assert np.abs(plain).max() > 0
    np.testing.assert_allclose(skew, plain, rtol=0, atol=1e-11 * np.abs(plain).max())


def test_sides_are_those_of_the_cells(rng):
    """A direction along which the cells reach beyond the box by more than the cutoff has no images."""
    n, space = 200, Space("OpenMP", 2)
    p = choose.parameters(Question("laplace", loops.BOX, n, n, 1e-6, rc=0.5))
    v = variants.choose(space, p.dtype)
    points = np.array(loops.BOX)[:, None] * rng.random((3, n))
    q = rng.standard_normal(n)
    longer = (*loops.BOX[:2], loops.BOX[2] + 0.51)
    fields = []
    for box in (longer, (*loops.BOX[:2], 50.0)):
        cells = SortedCells(points, CellGrid(box, (3, 4, 9)), space)
        src = loops.rows(cells.points, q[cells.order][None])
        u = np.empty(n)
        u[cells.order] = near_field(p, cells, src, v)[0]
        fields.append(u)
    np.testing.assert_allclose(fields[0], fields[1], rtol=0, atol=1e-12 * np.abs(fields[1]).max())


GRADIENTS = [("BASE", True), ("BLOCK", False)]
GRADIENTS += [case for case in itertools.product(loops.SPREAD, [True, False]) if case not in GRADIENTS]


@pytest.mark.parametrize(
    ("variant", "single"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (k >= 2)) for k, case in enumerate(GRADIENTS)],
)
def test_gradients_are_along_the_directions_given(variant, single, rng):
    n = 30
    x, begin = loops.cloud(rng, n)
    f, q, m, along_q, along_m = rng.standard_normal((5, 3, n))
    window = loops.window(rng)
    src = loops.rows(x, np.concatenate([*([f] if single else []), q, m, along_q, along_m]))
    kernel = loops.spread_kernel(variant, NC=4, COMB=True, SINGLE=single, SKEW=True)
    found = loops.spread("Serial", variant, kernel, 4, src, begin, window)
    exact = loops.double_layer(src, q, m, along_q, along_m, window)
    if single:
        forces = loops.spread_kernel(variant, NC=3)
        exact[:3] += loops.spread("Serial", variant, forces, 3, loops.rows(x, f), begin, window)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12 * np.abs(exact).max())


@pytest.mark.parametrize("variant", but("HYBRID", of=["BLOCK", "HYBRID"]))
def test_right_hand_sides_have_directions_each(variant, rng):
    x, begin = loops.cloud(rng, 25)
    s, window = rng.standard_normal((2, 15, 25)), loops.window(rng)
    slots = {"NC": 4, "COMB": True, "SKEW": True}
    kernel = loops.spread_kernel(variant, RHS=2, **slots)
    found = loops.spread("Serial", variant, kernel, 8, loops.rows(x, np.concatenate(s)), begin, window)
    alone = loops.spread_kernel(variant, **slots)
    ones = [loops.spread("Serial", variant, alone, 4, loops.rows(x, one), begin, window) for one in s]
    exact = np.concatenate(ones)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-13 * np.abs(exact).max())
