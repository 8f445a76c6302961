"""Fast multipole sums on every available space against those of Serial; their kernels compile for a GPU.

Tests of each workunit against plain NumPy are in the fmm folder.
"""

import numpy as np
import pytest

import parki
from parki import pairs, samples
from parki.engine.calls import device as calls
from parki.engine.compile import rtc
from parki.engine.run import devices, spaces
from parki.fmm import limits, representations
from parki.fmm.chebyshev_expansion import chebyshev_expansion
from parki.fmm.surface_expansion import surface_expansion
from parki.trees import octlists, octree
from tests.methods.sums import FMM as METHODS
from tests.quick import but

SLOW = pytest.mark.slow
KERNELS = {"coulomb": {}, "yukawa": {"kappa": 0.5}, "stokes_sl": {}, "stokes_comb": {}, "rpy": {"radius": 1e-3}}
KERNELS |= {name: {"epsilon": 1e-3} for name in ("regularised_coulomb", "spline_coulomb")}
ROUNDING = {"float64": 1e-11, "float32": 1e-3}  # relative differences; inverses of equivalents amplify rounding
IN_DOUBLE = pytest.mark.parametrize("real", ["float64", pytest.param("float32", marks=SLOW)])


def crowded(rng, real):
    """Return targets and sources whose lists are all in use."""
    x = np.concatenate([rng.random((3, 80)), 0.1 * rng.random((3, 60)), [[3.0], [2.5], [0.2]]], axis=1).astype(real)
    y = np.concatenate([rng.random((3, 90)), 0.9 + 0.1 * rng.random((3, 60))], axis=1).astype(real)
    x[:, :20] = y[:, :20]
    return x, y


def shortest(lists):
    return min(len(getattr(lists, name)) for name in ("u_t", "v_t", "w_t", "x_t"))


@pytest.mark.usefixtures("all_digits")
@pytest.mark.portability
@IN_DOUBLE
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", [name if name == "coulomb" else pytest.param(name, marks=SLOW) for name in KERNELS])
def test_sums(kernel, method, space, real, rng):
    """Check that each list takes part, and that spaces differ by rounding alone."""
    pair, parameters = pairs.PAIRS[kernel], KERNELS[kernel]
    x, y = crowded(rng, real)
    dens = rng.standard_normal(150 if pair.dens == 1 else (pair.dens, 150)).astype(real)
    normals = rng.standard_normal((3, 150)).astype(real) if pair.normals else None
    options = {"method": method, "order": 3, "leaf_size": 5} | parameters
    plan = parki.fmm.plan(kernel, x, y, execution_space=space, **options)
    assert shortest(plan.structure.lists) > 0
    u = plan(dens, normals)
    assert u.dtype == real
    wide = [None if a is None else a.astype(np.float64) for a in (x, y, dens, normals)]
    exact = parki.direct.direct_sum(kernel, *wide, **parameters)
    assert np.linalg.norm(u - exact) <= 0.05 * np.linalg.norm(exact)
    ours = parki.fmm.plan(kernel, x, y, execution_space="Serial", **options)(dens, normals)
    assert np.linalg.norm(u - ours) <= ROUNDING[real] * np.linalg.norm(exact)


@pytest.mark.usefixtures("all_digits")
@pytest.mark.portability
@pytest.mark.parametrize("method", but("chebyshev", of=METHODS))
def test_gradients(method, space):
    x, q = samples.plummer(120, 1), samples.charges(120, 2)
    u, g = (
        np.concatenate([a[None], b])
        for a, b in (
            parki.fmm.plan("coulomb", x, x, method=method, order=3, leaf_size=5, gradient=True, execution_space=s)(q)
            for s in (space, "Serial")
        )
    )
    assert np.linalg.norm(u - g) <= ROUNDING["float64"] * np.linalg.norm(g)


# Compiled for GPUs ----------------------------------------------------------------------------------------------------
@pytest.fixture
def boxes(dtype, rng):
    """Return a tree whose lists are all in use, and these lists."""
    x, y = crowded(rng, dtype)
    tree = octree.build(y, x, 5, spaces.get("Serial"))
    lists = octlists.lists(tree.nodes).only
    assert shortest(lists) > 0
    return tree, lists


def by_equivalents(boxes, pair, order):
    return surface_expansion(*boxes, representations.find(pair), order, limits.DEVICE, tolerance=1e-3)


def by_interpolation(boxes, pair, order):
    return chebyshev_expansion(*boxes, pair.linear()[0], order, eps=0.1)


SETTINGS = [("stokes_sl", 5, "float64"), ("coulomb", 6, "float32")]
SETTINGS += [
    pytest.param(kernel, order, "float64", marks=SLOW)
    for kernel, order in (("coulomb", 6), ("coulomb", 12), ("stokes_comb", 9), ("yukawa", 8))
]


@pytest.mark.parametrize(("kernel", "order", "dtype"), SETTINGS)
@pytest.mark.parametrize("method", [by_equivalents, by_interpolation])
def test_nothing_spills(method, kernel, order, dtype, boxes, record_property):
    """Test the launches of a sum on a device, for sources other than targets."""
    why = devices.missing_compiler("Cuda")
    if why is not None:
        pytest.skip(why)
    device = devices.Device(0, "", "sm_90", 0, "", 227 << 10, 32, 132)
    units = method(boxes, pairs.find(kernel, **KERNELS[kernel]), order).steps.units()
    paths = rtc.build_many(
        calls.unit(w, layouts, device, threads or calls.RANGE_BLOCK) for w, layouts, threads in units
    )
    found = {w.label: (w, rtc.usage(path)) for (w, _, _), path in zip(units, paths, strict=True)}
    for w, used in found.values():
        record_property("usage", (device.arch, dtype, w.ir.name, used.registers, used.shared))
    assert {label: used for label, (_, used) in found.items() if used.spill_stores or used.spill_loads} == {}
