"""Square roots of matrices by Lanczos' method, beside those from all eigenvalues."""

import numpy as np
import pytest

from parki import lanczos


def positive(rng, n, condition, dtype="f8"):
    """Return a matrix with eigenvalues from 1 to `condition`, even in ln, and its square root."""
    vectors = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.geomspace(1.0, condition, n)
    return ((vectors * values) @ vectors.T).astype(dtype), (vectors * np.sqrt(values)) @ vectors.T


def relative(found, exact):
    return np.linalg.norm(found - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("count", [1, 3, 7])
@pytest.mark.parametrize("condition", [10.0, 1e4])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-7])
def test_the_tolerance_is_met(rng, count, condition, tolerance):
    matrix, root = positive(rng, 400, condition)
    z = rng.standard_normal((400, count))
    found = lanczos.square_root(lambda x: matrix @ x, z, tolerance, 400)
    assert relative(found.values, root @ z) <= tolerance
    assert found.error <= tolerance
    assert found.products <= 1 + 400 // count


def test_a_block_takes_fewer_products(rng):
    matrix, _ = positive(rng, 400, 1e4)
    z = rng.standard_normal((400, 8))
    many, one = (lanczos.square_root(lambda x: matrix @ x, a, 1e-5, 400).products for a in (z, z[:, :1]))
    assert many < 0.7 * one


@pytest.mark.parametrize("count", [1, 3, 7])
def test_spaces_that_are_used_up(rng, count):
    """The last block holds fewer vectors where their number does not divide the size of the matrix."""
    matrix, root = positive(rng, 40, 1e3)
    z = rng.standard_normal((40, count))
    assert relative(lanczos.square_root(lambda x: matrix @ x, z, 1e-13, 60).values, root @ z) < 1e-11


def test_vectors_that_depend_on_each_other(rng):
    matrix, root = positive(rng, 60, 30.0)
    z = np.outer(rng.standard_normal(60), [1.0, -2.0, 0.0])
    assert relative(lanczos.square_root(lambda x: matrix @ x, z, 1e-9, 60).values, root @ z) < 1e-9


def test_few_eigenvalues(rng):
    """The identity takes one product: the space is complete."""
    z = rng.standard_normal((50, 2))
    found = lanczos.square_root(lambda x: 4.0 * x, z, 1e-9, 50)
    assert (found.products, relative(found.values, 2.0 * z) < 1e-14) == (1, True)


def test_zero_stays_zero():
    assert not lanczos.square_root(lambda x: 2 * x, np.zeros((5, 2)), 1e-6, 10).values.any()


def test_single_precision(rng):
    matrix, root = positive(rng, 200, 50.0, "f4")
    z = rng.standard_normal((200, 2)).astype("f4")
    found = lanczos.square_root(lambda x: matrix @ x, z, 1e-4, 100)
    assert found.values.dtype == np.float32
    assert relative(found.values, root @ z) <= 1e-4


def test_refusals(rng):
    matrix, _ = positive(rng, 100, 1e6)
    z = rng.standard_normal((100, 1))
    with pytest.raises(ArithmeticError, match=r"5 products give a relative error of .*; expected 1e-06"):
        lanczos.square_root(lambda x: matrix @ x, z, 1e-6, 5)
    with pytest.raises(ValueError, match=r"an eigenvalue of about -\d.*; expected none below zero"):
        lanczos.square_root(lambda x: -(matrix @ x), z, 1e-6, 50)
