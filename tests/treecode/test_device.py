"""Treecodes on a GPU, if there is one, and on a stand-in that counts copies between host and device."""

import numpy as np
import pytest

import parki
from tests.ewald import cupy_standin as standin
from tests.methods.sums import TREECODES

pytestmark = pytest.mark.usefixtures("all_digits")
OPTIONS = {"theta": 0.8, "degree": 2, "leaf_size": 20}
ROUNDING = {"float64": 1e-12, "float32": 2e-5}


def arguments(rng, kernel="coulomb", dtype="float64"):
    """Return targets, sources, strengths and normals: groups far apart, and some targets that are sources."""
    x = np.concatenate([rng.random((3, 200)), rng.random((3, 68)) + 4, rng.random((3, 2)) * 0.1 - 2], axis=1)
    y = np.concatenate([rng.random((3, 250)), rng.random((3, 2)) * 0.1 + 3], axis=1)
    x[:, :50] = y[:, :50]
    pair = parki.pairs.PAIRS[kernel]
    given = [x, y, rng.standard_normal((pair.dens, 252) if pair.dens > 1 else 252)]
    given += [rng.standard_normal((3, 252))] if pair.normals else []
    return [a.astype(dtype) for a in given]


def total(kernel, method, given, **options):
    """Return a sum by a plan."""
    x, y, *strengths = given
    return parki.treecode.plan(kernel, x, y, method=method, **OPTIONS | options)(*strengths)


def close(u, exact):
    assert u.dtype == exact.dtype
    assert np.linalg.norm(u - exact) <= ROUNDING[exact.dtype.name] * np.linalg.norm(exact)


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", TREECODES)
def test_arrays_on_a_gpu_stay_there(method, dtype, cupy, rng):
    given = arguments(rng, dtype=dtype)
    precision = {"far_precision": {"float64": "double", "float32": "single"}[dtype]}
    u = total("coulomb", method, [cupy.asarray(a) for a in given], **precision)
    assert isinstance(u, cupy.ndarray)
    close(u.get(), total("coulomb", method, given, **precision))


@pytest.mark.parametrize("kernel", ["coulomb", pytest.param("stokes_comb", marks=pytest.mark.slow)])
@pytest.mark.parametrize("one_call", [parki.treecode.bldtt, parki.treecode.bltc])
def test_arrays_of_the_host_are_copied_there_and_back(kernel, one_call, cupy, rng):
    x, y, dens, *normals = arguments(rng, kernel)
    options = OPTIONS | {"far_precision": "double"} | ({"normals": normals[0]} if normals else {})
    u = one_call(x, y, dens, kernel, execution_space="GPU", **options)
    assert type(u) is np.ndarray
    close(u, one_call(x, y, dens, kernel, execution_space="Serial", **options))


def test_a_far_field_in_single_precision(cupy, rng):
    """Sums over grids are float32, other sums float64: both are added on the GPU."""
    given = arguments(rng)
    u = total("coulomb", "dual", [cupy.asarray(a) for a in given], far_precision="single")
    exact = total("coulomb", "dual", given, far_precision="single")
    assert u.dtype == np.float64
    assert np.linalg.norm(u.get() - exact) <= ROUNDING["float32"] * np.linalg.norm(exact)


def test_layouts_and_right_hand_sides(cupy, rng):
    x, y, dens = arguments(rng)
    both = np.array([dens, -3 * dens])
    plan = parki.treecode.plan("coulomb", cupy.asarray(x.T), cupy.asarray(y.T), layout="nd", **OPTIONS)
    first, second = plan(cupy.asarray(both)).get()
    expected = total("coulomb", "dual", (x, y, dens))
    assert np.linalg.norm(first - expected) <= ROUNDING["float32"] * np.linalg.norm(expected)
    np.testing.assert_allclose(second, -3 * first, rtol=0, atol=1e-5 * np.abs(second).max())


@pytest.mark.parametrize("method", TREECODES)
def test_a_sum_copies_nothing(method, counted):
    x, y, dens = map(counted.cupy.asarray, arguments(np.random.default_rng(5)))
    plan = parki.treecode.plan("coulomb", x, y, method=method, **OPTIONS)
    counted.counts.clear()
    u = plan(dens)
    assert isinstance(u, counted.cupy.ndarray)
    del counted.counts["wait"]  # before and after each phase
    assert counted.counts == {"scalar": 1, "to host": 1}  # are all entries finite, and how large are they?


def test_a_plan_copies_tables_alone(counted, monkeypatch):
    """Boxes and counts of the trees' pieces come to the host, but no array with a number for each point."""
    x, y, _ = map(counted.cupy.asarray, arguments(np.random.default_rng(5)))
    parki.treecode.plan("coulomb", x, y, **OPTIONS)  # fields of a unit charge are kept
    got, get = [], standin.ndarray.get
    monkeypatch.setattr(standin.ndarray, "get", lambda self: got.append(self.size) or get(self))
    plan = parki.treecode.plan("coulomb", x, y, **OPTIONS)
    trees = (plan.structure.targets, plan.structure.sources)
    levels = sum(len(tree.nodes.level_begin) - 1 for tree in trees)
    # For each tree the root's box, and counts and boxes below each level but the last; extents, largest coordinates.
    assert len(got) == 2 * levels - 2 + 4
    assert sum(got) < 50 * sum(len(tree.nodes.begin) for tree in trees)
    assert all(isinstance(tree.sorted.points, counted.cupy.ndarray) for tree in trees)
    assert all(isinstance(tree.sorted.order, counted.cupy.ndarray) for tree in trees)
    assert all(isinstance(a, counted.cupy.ndarray) for a in plan.sums[1].placed.arrays)
    assert plan.memory > 0


def test_the_sampled_error(cupy, rng):
    x, y, dens = (cupy.asarray(a) for a in arguments(rng))
    plan = parki.treecode.plan("coulomb", x, y, **OPTIONS)
    plan(dens)
    assert 0 < plan.error().value < 1e-2


def test_results_in_place(cupy, rng):
    x, y, dens = (cupy.asarray(a) for a in arguments(rng))
    plan, out = parki.treecode.plan("coulomb", x, y, **OPTIONS), cupy.zeros(270, np.float64)
    assert plan(dens, out=out) is out
    np.testing.assert_array_equal(out.get(), plan(dens).get())
    with pytest.raises(ValueError, match=r"out is a ndarray of shape .*; expected a CuPy array of shape"):
        plan(dens, out=np.zeros(270))


def test_points_and_charges_in_two_places(cupy, rng):
    x, y, dens = arguments(rng)
    with pytest.raises(ValueError, match=r"targets is on the GPU \(CuPy\) and sources is on the host"):
        parki.treecode.plan("coulomb", cupy.asarray(x), y, **OPTIONS)
    plan = parki.treecode.plan("coulomb", cupy.asarray(x), cupy.asarray(y), **OPTIONS)
    with pytest.raises(ValueError, match=r"density is not on the GPU, where .* Pass cupy\.asarray\(density\)"):
        plan(dens)
    with pytest.raises(ValueError, match=r"targets is on the GPU \(CuPy\) and execution_space is 'Serial'"):
        parki.treecode.plan("coulomb", cupy.asarray(x), cupy.asarray(y), execution_space="Serial", **OPTIONS)


def test_input_is_not_written_to(cupy, rng):
    given = arguments(rng)
    there = [cupy.asarray(a) for a in given]
    for method in TREECODES:
        total("coulomb", method, there)
        for a, kept in zip(there, given, strict=True):
            np.testing.assert_array_equal(a.get(), kept)


def test_nothing_to_sum(cupy):
    nothing, x = cupy.zeros((3, 0), np.float64), cupy.asarray(np.ones((3, 4)))
    u = parki.treecode.bldtt(x, nothing, cupy.zeros(0, np.float64))
    assert isinstance(u, cupy.ndarray)
    np.testing.assert_array_equal(u.get(), np.zeros(4))
    assert parki.treecode.bldtt(nothing, x, cupy.asarray(np.ones(4))).shape == (0,)
