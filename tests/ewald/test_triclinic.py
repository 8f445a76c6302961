"""Triclinic cells: against the oracle in the rectangular box that eight of them fill, and in other lattice vectors."""

import numpy as np
import pytest

import parki
from parki.ewald import geometry
from tests import reference
from tests.quick import every

SIDES = np.array([1.0, 1.2, 0.9])
CELL = np.array([[SIDES[0], SIDES[1] / 2, SIDES[2] / 2], [0, SIDES[1], SIDES[2] / 2], [0, 0, SIDES[2]]])
SUPERCELL = (4 * SIDES[0], 2 * SIDES[1], SIDES[2])  # 4 a₀ − 2 a₁ − a₂, 2 a₁ − a₂, a₂
N = 30


def given(kernel, rng):
    f, n = rng.normal(size=(6, N)), rng.normal(size=(3, N))
    return {"laplace": (f[0],), "stokes_sl": (f[:3],), "stokes_comb": (f, n)}[kernel]


def exact(kernel, x, strengths):
    moves = [i * CELL[0] + j * CELL[1] for i in range(4) for j in range(2)]
    copies = np.concatenate([x + move[:, None] for move in moves], axis=1)
    return reference.potential(
        kernel, x, parki.utils.wrap(copies, SUPERCELL), *(np.concatenate([s] * 8, axis=-1) for s in strengths),
        box=SUPERCELL,
    )  # fmt: skip


@pytest.mark.parametrize("tolerance", [1e-3, 1e-8])
@pytest.mark.parametrize("kernel", every(2, ["laplace", "stokes_sl", "stokes_comb"]))
def test_cell_against_its_supercell(kernel, tolerance, rng):
    x, strengths = (rng.random((N, 3)) @ CELL).T, given(kernel, rng)
    plan = parki.ewald.plan(kernel, x, x, box=CELL, tolerance=tolerance)
    assert plan.parameters.skew is not None
    assert reference.relative_rms(plan(*strengths), exact(kernel, x, strengths)) <= tolerance


@pytest.mark.parametrize(
    "variant", [{"p2p_method": "SM-1D", "p2g_method": "SOURCE"}, {"p2g_method": "BASE", "g2p_method": "BASE"}], ids=str
)
def test_variants(variant, rng):
    x, strengths = (rng.random((N, 3)) @ CELL).T, given("stokes_comb", rng)
    u = parki.ewald.stokes_comb(x, x, *strengths, box=CELL, tolerance=1e-3, far_precision="double", **variant)
    again = parki.ewald.stokes_comb(x, x, *strengths, box=CELL, tolerance=1e-3, far_precision="double")
    assert reference.relative_rms(u, again) <= 1e-10


@pytest.mark.parametrize("kernel", ["laplace", "stokes_comb"])
def test_other_vectors_of_the_same_lattice(kernel, rng):
    """Any three vectors that span the lattice, turned in space: a cell that is a rectangular box in disguise, too."""
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    mix = np.array([[1, 1, 0], [0, 1, -1], [1, 1, 1]])
    for cell in (CELL, np.diag(SIDES)):
        x, strengths = (rng.random((N, 3)) @ cell).T, given(kernel, rng)
        box = tuple(SIDES) if cell is not CELL else CELL
        u = parki.ewald.plan(kernel, x, x, box=box, tolerance=1e-5)(*strengths)
        turned = [s if s.ndim == 1 else np.concatenate([turn @ v for v in np.split(s, len(s) // 3)]) for s in strengths]
        other = parki.ewald.plan(kernel, turn @ x, turn @ x, box=mix @ cell @ turn.T, tolerance=1e-5)
        v = other(*turned)
        assert reference.relative_rms(v if kernel == "laplace" else turn.T @ v, u) <= 2e-5
        assert (other.parameters.skew is None) is (cell is not CELL)


def test_points_anywhere_are_wrapped(rng):
    x, strengths = (rng.random((N, 3)) @ CELL).T, given("laplace", rng)
    moved = x + (rng.integers(-5, 6, (N, 3)) @ CELL).T
    u = parki.ewald.laplace(x, x, *strengths, box=CELL, tolerance=1e-5)
    np.testing.assert_allclose(parki.ewald.laplace(moved, moved, *strengths, box=CELL, tolerance=1e-5), u, rtol=1e-9)


def test_single_precision(rng):
    x, strengths = (rng.random((N, 3)) @ CELL).T, given("stokes_sl", rng)
    u = parki.ewald.stokes_sl(*(a.astype("float32") for a in (x, x, *strengths)), box=CELL, tolerance=1e-4)
    assert u.dtype == np.float32
    assert reference.relative_rms(u, exact("stokes_sl", x, strengths)) <= 1e-4


def test_brick_of_a_cell():
    made = geometry.of_cell(np.array([[0.0, 2.0, 0.0], [0.3, 0.1, 1.5], [1.0, 0.0, 0.2]]))
    assert np.prod(made.box) == pytest.approx(
        8.0**made.power * abs(np.linalg.det([[0.0, 2.0, 0.0], [0.3, 0.1, 1.5], [1.0, 0.0, 0.2]]))
    )
    assert all(
        2 * abs(t) <= side * (1 + 1e-12) for t, side in zip(made.skew, (made.box[1], *made.box[2:] * 2), strict=True)
    )


@pytest.mark.parametrize(
    ("box", "text"),
    [
        (np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0.0]]), "lie in a plane"),
        (np.full((3, 3), np.nan), "finite"),
    ],
)
def test_refused_cells(box, text):
    with pytest.raises(ValueError, match=text):
        parki.ewald.EwaldOptions(box=box)


def test_cells_are_fully_periodic():
    with pytest.raises(ValueError, match="triclinic cell, and periodicity is 2; expected 3"):
        parki.ewald.EwaldOptions(box=CELL, periodicity=2)
