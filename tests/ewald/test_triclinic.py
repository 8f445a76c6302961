"""Triclinic cells, against the reference in the rectangular box that eight of them fill, and other lattice vectors."""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import parki
from parki.ewald import geometry, kernels
from tests import reference
from tests.ewald import sums
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


@pytest.mark.parametrize(
    ("kernel", "tolerance"), every(5, itertools.product(["laplace", "stokes_sl", "stokes_comb"], [1e-3, 1e-9]))
)
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
    """Any three vectors that span the lattice, turned in space, give the same sum; of a rectangular lattice, too."""
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    mix = np.array([[1, 1, 0], [0, 1, -1], [1, 1, 1]])
    for cell in (CELL, np.diag(SIDES)):
        x, strengths = (rng.random((N, 3)) @ cell).T, given(kernel, rng)
        box = tuple(SIDES) if cell is not CELL else CELL
        u = parki.ewald.plan(kernel, x, x, box=box, tolerance=1e-9)(*strengths)
        turned = [s if s.ndim == 1 else np.concatenate([turn @ v for v in np.split(s, len(s) // 3)]) for s in strengths]
        other = parki.ewald.plan(kernel, turn @ x, turn @ x, box=mix @ cell @ turn.T, tolerance=1e-9)
        v = other(*turned)
        assert reference.relative_rms(v if kernel == "laplace" else turn.T @ v, u) <= 2e-5
        assert (other.parameters.skew is None) is (cell is not CELL)


def test_points_anywhere_are_wrapped(rng):
    x, strengths = (rng.random((N, 3)) @ CELL).T, given("laplace", rng)
    moved = x + (rng.integers(-5, 6, (N, 3)) @ CELL).T
    u = parki.ewald.laplace(x, x, *strengths, box=CELL, tolerance=1e-9)
    np.testing.assert_allclose(parki.ewald.laplace(moved, moved, *strengths, box=CELL, tolerance=1e-9), u, rtol=1e-9)


def test_single_precision(rng):
    x, strengths = (rng.random((N, 3)) @ CELL).T, given("stokes_sl", rng)
    u = parki.ewald.stokes_sl(*(a.astype("float32") for a in (x, x, *strengths)), box=CELL, tolerance=1e-3)
    assert u.dtype == np.float32
    assert reference.relative_rms(u, exact("stokes_sl", x, strengths)) <= 1e-3


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


# Free directions ------------------------------------------------------------------------------------------------------
FLAT = np.array([[1.0, 0.3, 0.0], [0.0, 0.8, 0.0], [0.0, 0.0, 0.7]])  # lattice vectors, and a height
KERNELS = [name for name, kernel in kernels.KERNELS.items() if {1, 2} <= set(kernel.periodicities)]


def turned(turn, v):
    """Rotate vectors, three or six rows, and tensors, nine rows; scalars stay."""
    if v.ndim == 1:
        return v
    if len(v) == 9:
        return np.einsum("ai,bj,ijn->abn", turn, turn, v.reshape(3, 3, -1)).reshape(9, -1)
    return np.concatenate([turn @ part for part in np.split(v, len(v) // 3)])


@pytest.mark.parametrize("periodicity", [1, 2])
@pytest.mark.parametrize("kernel", every(5, KERNELS))
def test_slabs_and_wires(kernel, periodicity, rng):
    """Compare slabs and wires in any orientation to the slow sums."""
    tolerance = 1e-9
    found, cell = kernels.KERNELS[kernel], FLAT if periodicity == 2 else np.diag(np.diag(FLAT))
    box, turn = np.diag(cell), Rotation.random(random_state=1).as_matrix()
    more = sums.PARAMETERS.get(kernel, {})
    x = rng.random((3, N)) * box[:, None]
    strengths = [rng.standard_normal((found.dens, N) if found.dens > 1 else N)]
    strengths[0] -= strengths[0].mean(axis=-1, keepdims=True)
    strengths += [rng.standard_normal((3, N))] if found.normals else []
    normals = strengths[1] if found.normals else None
    given = {"box": box, "periodicity": periodicity, "skew": (cell[0, 1], 0.0, 0.0)} | more
    exact = turned(turn, sums.periodic(kernel, x, x, strengths[0], normals, **given))
    order = [2, 0, 1] if periodicity == 2 else [1, 0, 2]  # rows of the cell in another order
    mask = tuple(i < periodicity for i in order)
    y, cell = np.ascontiguousarray(turn @ x), cell[order] @ turn.T
    plan = parki.ewald.plan(kernel, y, y, box=cell, periodicity=mask, tolerance=tolerance, **more)
    assert reference.relative_rms(plan(*(turned(turn, s) for s in strengths)), exact) <= tolerance


def test_many_cells_of_a_slab(rng):
    """Results with many cells in the near field do not depend on the cutoff."""
    x, q = FLAT.T @ rng.random((3, 2000)), rng.standard_normal(2000)
    given = {"box": FLAT, "periodicity": 2, "tolerance": 1e-9}
    a, b = (parki.ewald.plan("laplace", x, x, rc=rc, **given)(q - q.mean()) for rc in (0.1, 0.4))
    assert reference.relative_rms(a, b) <= 2e-8


def test_slabs_that_move(rng):
    x, q = FLAT.T @ rng.random((3, 50)), rng.standard_normal(50)
    plan = parki.ewald.plan("laplace", x, x, box=FLAT, periodicity=2, tolerance=1e-9)
    for stretch in (np.eye(3), np.array([[1.0, 0.02, 0.0], [0.01, 1.03, 0.0], [0.0, 0.0, 1.01]])):
        y, cell = stretch @ x, FLAT @ stretch.T
        plan.move(y, box=cell)
        again = parki.ewald.plan("laplace", y, y, box=cell, periodicity=2, tolerance=1e-10)
        assert reference.relative_rms(plan(q), again(q)) <= 1e-9


def test_walls(rng):
    turn = Rotation.random(random_state=1).as_matrix()
    x = turn @ (FLAT.T @ rng.random((3, 20)))
    on_walls = turn @ (FLAT.T @ np.array([[0.1, 0.6], [0.2, 0.9], [0.0, 1.0]]))
    given = {"box": FLAT @ turn.T, "periodicity": 2, "tolerance": 1e-3}
    assert np.isfinite(parki.ewald.plan("laplace", on_walls, on_walls, **given)(np.array([1.0, -1.0]))).all()
    x[:, 7] += turn[:, 2]
    with pytest.raises(ValueError, match=r"sources has 1 points outside the box, .* \(first: index 7\)"):
        parki.ewald.plan("laplace", x, x, **given)
    for periodicity, text in ((0, "periodicity is 0"), (2, "at right angles to all others")):
        with pytest.raises(ValueError, match=text):
            parki.ewald.EwaldOptions(box=CELL, periodicity=periodicity)
