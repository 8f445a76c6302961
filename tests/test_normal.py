"""Normal random numbers on the host, and by a generator of a GPU in CuPy's place."""

import types

import numpy as np

from parki import normal


def on_gpu(seeds):
    """Return a module in CuPy's place, whose generators take the seeds that they are given down."""

    def generator(bits):
        seeds.append(bits)
        return types.SimpleNamespace(standard_normal=lambda shape, dtype: np.full(shape, 0.5, dtype))

    return types.SimpleNamespace(random=types.SimpleNamespace(Generator=generator, Philox4x3210=int))


def test_numbers_of_a_host_are_the_generator_s_own():
    for dtype in (np.float32, np.float64):
        found = normal.numbers(np.random.default_rng(3), (2, 5), dtype, np)
        np.testing.assert_array_equal(found, np.random.default_rng(3).standard_normal((2, 5), dtype))


def test_a_gpu_draws_by_seeds_that_a_generator_draws():
    seeds = []
    for rng in (np.random.default_rng(3), np.random.default_rng(3), np.random.default_rng(4)):
        for _ in range(2):
            found = normal.numbers(rng, (2, 5), np.float32, on_gpu(seeds))
            assert (found.shape, found.dtype) == ((2, 5), np.float32)
    assert seeds[:2] == seeds[2:4]
    assert len(set(seeds)) == 4
