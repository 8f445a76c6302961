"""Reflection classes of values on surfaces."""

import numpy as np
import pytest

from parki import pairs
from parki.fmm import representations, surfaces, symmetry
from parki.fmm.symmetry import SIGNS, Classes


@pytest.mark.parametrize("p", [2, 3, 4, 5, 6])
def test_surfaces(p):
    x = surfaces.points(p, 2.0)
    assert len(x) == surfaces.count(p) == len(np.unique(x, axis=0))
    assert (np.abs(x).max(axis=1) == 2.0).all()
    assert (np.diff(surfaces.grid(p) @ [p * p, p, 1]) > 0).all()  # x slowest
    with pytest.raises(ValueError, match="p is 1"):
        surfaces.points(1)


@pytest.mark.parametrize("p", [4, 5])
def test_images(p):
    x = surfaces.points(p)
    for g, image in enumerate(symmetry.images(p, 8)):
        np.testing.assert_allclose(x[image], x * np.where([g & 4, g & 2, g & 1], -1, 1), atol=1e-15)


def test_sizes_of_classes():
    """Even p has orbits of 8 points only."""
    assert np.diff(Classes(6, (0,), 1).begin).tolist() == [19] * 8
    assert sorted(np.diff(Classes(7, (0,), 1).begin).tolist()) == [19, 24, 24, 24, 30, 30, 30, 37]
    assert np.diff(Classes(7, (4, 2, 1), 3).begin).sum() == 3 * 218
    assert Classes(7, None, 3).begin.tolist() == [0, 3 * 218]


@pytest.mark.parametrize("masks", [None, (0,), (4, 2, 1, 0), (3, 5, 6)])
@pytest.mark.parametrize("p", [4, 5])
def test_classes_are_orthonormal_coefficients(p, masks, rng):
    classes = Classes(p, masks, len(masks) if masks else 2)
    values = rng.standard_normal((classes.components * classes.points, 3))
    made = classes.fold(values)
    assert made.shape == values.shape
    np.testing.assert_allclose(np.sum(made**2, axis=0), np.sum(values**2, axis=0))
    np.testing.assert_allclose(classes.unfold(made), values, atol=1e-14)


@pytest.mark.parametrize("masks", [(0,), (4, 2, 1, 0), (3, 5, 6)])
def test_a_class_has_its_signs(masks, rng):
    """A reflection multiplies values of one class by the sign of the class."""
    classes = Classes(5, masks, len(masks))
    image = symmetry.images(5, 8)
    for c in range(8):
        made = np.zeros((classes.begin[-1], 1))
        here = slice(classes.begin[c], classes.begin[c + 1])
        made[here] = rng.standard_normal(made[here].shape)
        values = classes.unfold(made).reshape(len(masks), -1)
        for g in range(8):
            turned = np.empty_like(values)
            turned[:, image[g]] = SIGNS[g, list(masks)][:, None] * values
            np.testing.assert_allclose(turned, SIGNS[g, c] * values, atol=1e-14)


def test_parities():
    def of(name):
        pair = pairs.find(name)
        return symmetry.parities(lambda r: representations.block(pair, r))

    assert of("laplace") == ((0,), (0,))
    assert of("laplace_grad") == ((4, 2, 1), (0,))
    assert of("stokeslet") == ((4, 2, 1), (4, 2, 1))
    velocity, torque = of("rotlet")  # one is of a vector, the other of a torque, in either order
    assert {velocity, torque} == {(4, 2, 1), (3, 5, 6)}


def test_parities_of_what_has_none():
    assert symmetry.parities(lambda r: (r[:, :1] + 0.1 * r[:, 1:2])[:, :, None]) is None
    slanted = np.array([[1.0, 0.2], [0.3, 1.0]])
    assert symmetry.parities(lambda r: r[:, 0, None, None] * slanted + np.eye(2)) is None
    crossed = symmetry.parities(lambda r: r[:, [[0, 1], [1, 0]]])  # x y; y x: each sign fits, and all together
    assert crossed is not None
    assert symmetry.parities(lambda r: r[:, [[0, 1], [1, 2]]]) is None
