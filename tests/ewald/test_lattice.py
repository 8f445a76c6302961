"""Points anywhere in a lattice: a point moved by any lattice vector is the same point, on faces, too."""

import itertools

import numpy as np
import pytest

import parki
from tests.quick import every

TOLERANCE = {"float64": 1e-9, "float32": 1e-4}
CELLS = {
    "fcc": np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]),
    "bcc": np.array([[-0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.5, 0.5, -0.5]]),
    "hexagonal": np.array([[1.0, 0.0, 0.0], [-0.5, np.sqrt(0.75), 0.0], [0.0, 0.0, 1.633]]),
    "rhombohedral": np.array([[1.0, 0.2, 0.2], [0.2, 1.0, 0.2], [0.2, 0.2, 1.0]]),
    "monoclinic": np.array([[1.0, 0.0, 0.0], [0.3, 1.1, 0.0], [0.0, 0.0, 0.9]]),
    "box": np.diag([1.0, 1.3, 0.8]),
}


def error(found, exact):
    return np.linalg.norm(found.astype(float) - exact) / np.linalg.norm(exact)


def sites(cuts):
    """Return fractions of all sites of a grid of a cell, with sites on faces."""
    return np.array(np.meshgrid(*[np.arange(cuts) / cuts] * 3)).reshape(3, -1)


@pytest.mark.parametrize("name", CELLS)
def test_sites_on_faces_are_in_the_crystal(name, rng):
    """Primitive cells have sites on faces; the sum is that of the same sites a little off."""
    cell, c = CELLS[name], sites(4)
    q = rng.standard_normal(c.shape[1])
    q -= q.mean()
    exact = parki.ewald.laplace(*[cell.T @ (c + 0.01)] * 2, q, box=cell, tolerance=1e-9)
    u, measured = parki.ewald.laplace(*[cell.T @ c] * 2, q, box=cell, tolerance=1e-3, return_error=True)
    assert error(u, exact) < 1e-3
    assert measured.value < 1e-3


#: Cells in both types, of which every second one has the other type first.
BOTH = [(name, dtype) for k, name in enumerate(CELLS) for dtype in sorted(TOLERANCE, reverse=k % 2 == 0)]


@pytest.mark.parametrize(("name", "dtype"), every(2, BOTH))
def test_a_lattice_vector_moves_nothing(name, dtype, rng):
    """Moved points give the same sum, exact or rounded."""
    cell, most = CELLS[name], 3 if dtype == "float32" else 1000
    c = np.concatenate([sites(3), rng.random((3, 27))], axis=1)
    x = (cell.T @ c).astype(dtype)
    q = rng.standard_normal(c.shape[1]).astype(dtype)
    q -= q.mean()
    shift = cell.T @ rng.integers(-most, most + 1, c.shape)
    options = {"box": cell, "tolerance": TOLERANCE[dtype]}
    exact = parki.ewald.laplace(*[x.astype(float)] * 2, q.astype(float), box=cell, tolerance=1e-11)
    for moved in ((x + shift).astype(dtype), np.nextafter((x + shift).astype(dtype), np.inf, dtype=dtype)):
        assert error(parki.ewald.laplace(moved, moved, q, **options), exact) < 3 * TOLERANCE[dtype]


@pytest.mark.parametrize(("name", "dtype"), every(2, BOTH[::-1]))
def test_images_of_sources_are_coincident(name, dtype, rng):
    """A target that is an image of a source skips it, although wrapping rounds the two apart."""
    cell = CELLS[name]
    x = (cell.T @ rng.random((3, 50))).astype(dtype)
    images = (x + cell.T @ rng.integers(-4, 5, (3, 50))).astype(dtype)
    q = rng.standard_normal(50).astype(dtype)
    options = {"box": cell, "tolerance": TOLERANCE[dtype]}
    exact = parki.ewald.laplace(*[x.astype(float)] * 2, q.astype(float), box=cell, tolerance=1e-11)
    plan = parki.ewald.plan("laplace", images, x, **options)
    assert error(plan(q), exact) < 10 * TOLERANCE[dtype]
    plan.move(sources=x, targets=images)
    assert error(plan(q), exact) < 10 * TOLERANCE[dtype]
    if name != "box":  # cells other than boxes wrap points in every move
        return
    # After a move into the box, close points are told apart again.
    close = x.copy()
    close[:, 0] = x[:, 1]
    close[0, 0] = np.nextafter(np.float32(x[0, 1]), np.float32(2)) if dtype == "float32" else x[0, 1] + 1e-13
    plan.move(sources=x, targets=close)
    assert abs(plan(q)[0]) > 1e-2 * abs(q[1]) / max(abs(float(close[0, 0]) - float(x[0, 1])), 1e-300)


PLACES = {"3": {}, "1": {"periodicity": 1}, "cell": {"box": CELLS["fcc"]}}
BEYOND = {"float64": ("1e+12", 3e12), "float32": ("2000", 1e4)}


@pytest.mark.parametrize(("dtype", "place"), every(2, itertools.product(BEYOND, PLACES)))
def test_points_beyond_all_boxes_are_refused(dtype, place):
    (boxes, far), options = BEYOND[dtype], PLACES[place] | {"tolerance": TOLERANCE[dtype]}
    x = np.full((3, 2), 0.25, dtype)
    x[0, 1] = far
    with pytest.raises(
        ValueError, match=rf"src has points .* boxes away; expected at most {boxes.replace('+', '[+]')} "
    ):
        parki.ewald.laplace(np.full((3, 1), 0.5, dtype), x, np.ones(2, dtype), **({"box": (1, 1, 1)} | options))
    plan = parki.ewald.plan("laplace", x[:, :1], x[:, :1], **({"box": (1, 1, 1)} | options))
    with pytest.raises(ValueError, match="boxes away"):
        plan.move(sources=x[:, 1:], targets=x[:, 1:])
    assert np.isfinite(plan(np.ones(1, dtype))).all()
