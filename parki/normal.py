"""Normal random numbers, drawn where the arrays of a sum lie."""

from typing import Any

import numpy as np

from parki.arrays import Array

SEEDS = 1 << 63  # of a GPU's generator


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, xp: Any) -> Array:
    """Return numbers of the unit normal distribution.

    On a GPU a generator there draws them, whose seed `rng` draws: the host would take longer than the sums.

    Parameters
    ----------
    rng : numpy.random.Generator
    shape : tuple of int
    dtype : dtype
        Single or double precision.
    xp : module
        Module of the arrays: NumPy or CuPy.
    """
    if xp is np:
        return rng.standard_normal(shape, dtype)
    random = xp.random
    return random.Generator(random.Philox4x3210(int(rng.integers(SEEDS)))).standard_normal(shape, dtype)
