"""Variants of every loop, against the tolerance, on a host and, in the simulator, with the code for GPUs."""

import numpy as np
import pytest

import parki
from parki.engine.run import spaces
from tests import reference
from tests.quick import every

BOX = (1.0, 1.3, 0.8)
TOLERANCE = {"float64": 1e-9, "float32": 1e-3}
VARIANTS = [
    *(("p2p_method", name) for name in ("LIST", "LIST-2D", "GM-1D", "GM-2D", "SM-1D", "SM-2D")),
    *(("p2g_method", name) for name in ("BASE", "SOURCE", "GRID", "HYBRID", "BLOCK", "TILE")),
    *(("g2p_method", name) for name in ("BASE", "TARGET", "TILE")),
]
BLOCKS = [
    {"p2p_threads_x": 128, "p2p_threads_y": 1, "p2g_threads": 128, "g2p_threads": 128},  # as published
    {"p2p_method": "GM-2D", "p2p_threads_x": 16, "p2p_threads_y": 32, "p2g_threads": 32, "g2p_threads": 8},
    {"p2p_method": "SM-2D", "p2p_threads_x": 5, "p2p_threads_y": 2, "p2g_threads": 48, "g2p_threads": 3},
    {"p2p_method": "SM-1D", "p2p_threads_x": 1, "p2g_threads": 1, "g2p_threads": 1},
]


@pytest.fixture(scope="module")
def problem():
    """Return a function that gives a sum by kernel and dtype, with its exact result, made once."""
    made = {}

    def get(kernel, dtype):
        if (kernel, dtype) not in made:
            rng = np.random.default_rng(12)
            sides = np.array(BOX)[:, None]
            src = sides * rng.random((3, 150))
            trg = np.concatenate([src[:, :60], sides * rng.random((3, 60))], axis=1)
            given = [trg, src, rng.standard_normal({"laplace": (150,), "stokes_comb": (6, 150)}[kernel])]
            given += [rng.standard_normal((3, 150))] if kernel == "stokes_comb" else []
            given = [a.astype(dtype) for a in given]
            given[:2] = [np.minimum(x, np.array(BOX, dtype)[:, None]) for x in given[:2]]
            made[kernel, dtype] = given, reference.potential(kernel, *given, box=BOX)
        return made[kernel, dtype]

    return get


def ratio(given, exact, kernel, tolerance=None, **options):
    """Return the error over the tolerance, by default that of the dtype."""
    dtype = given[0].dtype
    tolerance = tolerance or TOLERANCE[dtype.name]
    u = getattr(parki.ewald, kernel)(*given, box=BOX, tolerance=tolerance, **options)
    assert u.dtype == dtype
    return reference.relative_rms(u, exact) / tolerance


#: The kernels and dtypes of which variants take turns in quick runs: single precision with the smaller kernel.
TURNS = [("stokes_comb", "float64"), ("laplace", "float32")]


@pytest.mark.parametrize(
    ("option", "variant", "kernel", "dtype"),
    [
        pytest.param(*row, *case, id=" ".join((*row, *case)), marks=[pytest.mark.slow] * (case != TURNS[k % 2]))
        for k, row in enumerate(VARIANTS)
        for case in (*TURNS, ("stokes_comb", "float32"), ("laplace", "float64"))
    ],
)
def test_in_the_simulator(option, variant, kernel, dtype, problem):
    assert ratio(*problem(kernel, dtype), kernel, execution_space="GpuSim", **{option: variant}) <= 1


@pytest.mark.parametrize(("dtype", "tolerance"), every(3, [("float64", 1e-5), ("float64", 1e-9), ("float32", 1e-3)]))
@pytest.mark.parametrize(("option", "variant"), VARIANTS, ids=[" ".join(row) for row in VARIANTS])
def test_on_a_host(option, variant, dtype, tolerance, problem):
    # laplace alone: the combined kernel takes longest to compile, and runs in the simulator above.
    options = {"execution_space": "OpenMP", option: variant}
    assert ratio(*problem("laplace", dtype), "laplace", tolerance, **options) <= 1


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_block_sizes(blocks, problem):
    given, exact = problem("stokes_comb", "float64")
    assert ratio(given, exact, "stokes_comb", execution_space="GpuSim", **blocks) <= 1


def test_wide_warps(problem):
    given, exact = problem("stokes_comb", "float64")
    for choice in ({}, {"p2p_method": "SM-2D", "p2g_method": "BLOCK"}):
        assert ratio(given, exact, "stokes_comb", execution_space="GpuSim64", **choice) <= 1


def test_names_in_any_case(problem):
    given, _ = problem("laplace", "float64")
    options = {"box": BOX, "tolerance": 1e-5, "execution_space": "gpusim"}
    plan = parki.ewald.plan("laplace", *given[:2], p2p_method="sm-2d", p2g_method="grid", g2p_method="Base", **options)
    assert (plan.chosen.variants.p2p, plan.chosen.variants.p2g, plan.chosen.variants.g2p) == ("SM-2D", "GRID", "BASE")


@pytest.mark.parametrize("name", ["Cuda", "HIP"])
def test_on_the_gpu_that_is_here(name, problem):
    why = spaces.available()[name]
    if why is not None:
        pytest.skip(why)
    for kernel in ("laplace", "stokes_comb"):
        for dtype in TOLERANCE:
            for option, variant in VARIANTS:
                assert ratio(*problem(kernel, dtype), kernel, execution_space=name, **{option: variant}) <= 1


def test_numbers_of_threads_are_honoured_by_every_variant(rng, all_digits):
    """Numbers hold where a thread is a source or a target, too."""
    x, q = rng.random((3, 50)), rng.standard_normal(50)
    options = {"box": (1, 1, 1), "tolerance": 1e-3, "far_precision": "double"}
    options |= {"p2g_method": "BASE", "g2p_method": "BASE"}
    blocks = {"p2g_threads": 64, "g2p_threads": 32}
    plan = parki.ewald.plan("laplace", x, x, execution_space="GpuSim", **blocks, **options)
    launched = {one.step.unit.ir.name: one.ready[0] for one in plan._placed(1).placed.launches if one.ready}
    assert launched["p2g_atomic"]._call.block == (1, 64)
    assert launched["g2p_base"]._call.block == (1, 32)
    u = parki.ewald.laplace(x, x, q, **options)
    assert np.allclose(plan(q), u, rtol=0, atol=1e-9 * np.abs(u).max())
