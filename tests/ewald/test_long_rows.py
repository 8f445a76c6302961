"""Sums and bounds of long rows: in two steps on a device, and without rounding where they are multiplied."""

import math

import numpy as np
import pytest

from parki.arrays import along_rows
from parki.ewald.stages import sums


@pytest.mark.parametrize("shape", [(3,), (2, 1024), (1, 2, 5000), (2, 0, 3000), (1, 2, 4096)])
def test_sums_and_bounds_of_long_rows(counted, rng, shape):
    """A device reduces them in two steps; there may be no rows."""
    x = rng.standard_normal(shape).astype(np.float32)
    on_device = counted.cupy.asarray(x)
    for operation in ("max", "min"):
        np.testing.assert_array_equal(along_rows(operation, on_device).get(), along_rows(operation, x))
    found = along_rows("sum", on_device, dtype=np.float64)
    np.testing.assert_allclose(found.get(), x.sum(axis=-1, dtype=np.float64), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [5, 1024, 4099])
def test_screened_sums_have_exact_net_densities(rng, n):
    """Halves are added with their errors, so that densities of 16 powers of ten that cancel leave their small rest."""
    x = rng.standard_normal((2, n)) * 10.0 ** rng.integers(-8, 8, (2, n))
    x[:, -1] -= x.sum(axis=1)
    exact = [math.fsum(row) for row in x.tolist()]
    halved = sums._halved(x)
    assert halved.shape[1] <= 4 * 1024
    np.testing.assert_allclose([math.fsum(row) for row in halved.tolist()], exact, rtol=1e-12)
