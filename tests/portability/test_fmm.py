"""Fast multipole sums on every space that is here against those of Serial; what they launch compiles for a GPU.

What each of their workunits computes is in the tests of the fmm folder, against plain NumPy.
"""

import numpy as np
import pytest

import parki
from parki import pairs, samples
from parki.engine.calls import device as calls
from parki.engine.runtime import devices, rtc
from parki.fmm import dense, equivalents, kinds, m2l, translations
from parki.proxies import THREADS, WARPS, ProxyKernels

SLOW = pytest.mark.slow
METHODS = ("kifmm", "chebyshev")
KERNELS = {"coulomb": {}, "yukawa": {"kappa": 0.5}, "stokes_sl": {}, "stokes_comb": {}, "rpy": {"radius": 1e-3}}
ROUNDING = {"float64": 1e-11, "float32": 1e-3}  # inverses of equivalents amplify it
IN_DOUBLE = pytest.mark.parametrize("real", ["float64", pytest.param("float32", marks=SLOW)])


@pytest.mark.portability
@IN_DOUBLE
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", [name if name == "coulomb" else pytest.param(name, marks=SLOW) for name in KERNELS])
def test_sums(kernel, method, space, real, rng):
    """Each list takes part, and the spaces differ by rounding alone."""
    pair, parameters = pairs.PAIRS[kernel], KERNELS[kernel]
    x = np.concatenate([rng.random((3, 80)), 0.1 * rng.random((3, 60)), [[3.0], [2.5], [0.2]]], axis=1).astype(real)
    y = np.concatenate([rng.random((3, 90)), 0.9 + 0.1 * rng.random((3, 60))], axis=1).astype(real)
    x[:, :20] = y[:, :20]
    dens = rng.standard_normal(150 if pair.dens == 1 else (pair.dens, 150)).astype(real)
    normals = rng.standard_normal((3, 150)).astype(real) if pair.normals else None
    options = {"method": method, "order": 3, "leaf_size": 5} | parameters
    plan = parki.fmm.plan(kernel, x, y, execution_space=space, **options)
    assert min(len(getattr(plan.lists, name)) for name in ("u_t", "v_t", "w_t", "x_t")) > 0
    u = plan(dens, normals)
    assert u.dtype == real
    wide = [None if a is None else a.astype(np.float64) for a in (x, y, dens, normals)]
    exact = parki.direct.direct_sum(kernel, *wide, **parameters)
    assert np.linalg.norm(u - exact) <= 0.05 * np.linalg.norm(exact)
    ours = parki.fmm.plan(kernel, x, y, execution_space="Serial", **options)(dens, normals)
    assert np.linalg.norm(u - ours) <= ROUNDING[real] * np.linalg.norm(exact)


@pytest.mark.portability
@pytest.mark.parametrize("method", METHODS)
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
def threads(shape):
    return shape[0] * shape[1]


def by_equivalents(kernel, order, dtype):
    """What a plan launches, with the threads of its blocks."""
    kind, real = kinds.find(pairs.find(kernel, **KERNELS[kernel])), np.dtype(dtype)
    units = equivalents.units(kind, order, real, ())
    found = [(units["check"], THREADS), (units["fields"], THREADS), (units["ranges"], THREADS)]
    of = m2l.Units(order, kind.equivalent, kind.check, real)
    found += [(of.forward(), m2l.TRANSFORM), (of.products(), (m2l.ROWS, 8)), (of.backward(), m2l.TRANSFORM)]
    shapes = {"products": dense.SMALL, "solve": dense.SMALL}
    found += [(w, shapes.get(w.ir.name, dense.TEAM)) for w in dense.units(kind.masks is not None, real)]
    assert {w for w, _ in found} == set(equivalents.workunits(kind, order, real, ()))
    return found


def by_interpolation(kernel, order, dtype):
    real = np.dtype(dtype)
    units = ProxyKernels(pairs.find(kernel, **KERNELS[kernel]).linear()[0], real, real, order)
    found = [units.potentials_to_particles(), units.transfer(True), units.transfer(False), units.ranges()]
    collect = parki.engine.kernel("interchange", "collect", real=real)
    return [
        (units.particles_to_charges(), WARPS), *((w, THREADS) for w in (*found, units.grids(order))),
        (collect, translations.TEAM),
    ]  # fmt: skip


SETTINGS = [("coulomb", 6, "float64"), ("stokes_sl", 5, "float64"), ("coulomb", 6, "float32")]
SETTINGS += [pytest.param(k, p, "float64", marks=SLOW) for k, p in (("coulomb", 12), ("stokes_comb", 9), ("yukawa", 8))]


@pytest.mark.parametrize(("kernel", "order", "dtype"), SETTINGS)
@pytest.mark.parametrize("method", [by_equivalents, by_interpolation])
def test_nothing_spills(method, kernel, order, dtype, record_property):
    """With what is launched by default, and for a sum with other sources than targets."""
    why = devices.missing_compiler("Cuda")
    if why is not None:
        pytest.skip(why)
    device = devices.Device(0, "", "sm_90", 0, "", 227 << 10, 32, 132)
    units = list(dict.fromkeys(method(kernel, order, dtype)))
    paths = rtc.build_many(calls.unit(w, w.default_layouts(), device, threads(shape)) for w, shape in units)
    found = {w.label: (w, rtc.usage(path)) for (w, _), path in zip(units, paths, strict=True)}
    for w, used in found.values():
        record_property("usage", (device.arch, dtype, w.ir.name, used.registers, used.shared))
    assert {label: used for label, (_, used) in found.items() if used.spill_stores or used.spill_loads} == {}
