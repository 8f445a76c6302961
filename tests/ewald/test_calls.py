"""Forms of a call: layouts, memory order, single precision, results, threads, plans."""

import numpy as np
import pytest

import parki
from parki.engine.run import spaces
from parki.ewald import EwaldOptions
from tests.catalogue import COMPONENTS
from tests.quick import every

OPTIONS = {"box": (1.0, 2.0, 3.0), "tolerance": 1e-3}


@pytest.fixture(params=COMPONENTS)
def kernel(request):
    return request.param


def arguments(kernel, nt=45, ns=60, dtype=np.float64):
    """Return targets, sources, densities and normals."""
    rng = np.random.default_rng(8)
    sides = np.array(OPTIONS["box"])[:, None]
    dens = rng.standard_normal((COMPONENTS[kernel], ns) if COMPONENTS[kernel] > 1 else ns)
    given = [sides * rng.random((3, nt)), sides * rng.random((3, ns)), dens]
    given += [rng.standard_normal((3, ns))] if kernel == "stokes_comb" else []
    return [a.astype(dtype) for a in given]


def total(kernel, given, **options):
    return getattr(parki.ewald, kernel)(*given, **(OPTIONS | options))


def test_one_point_a_row(kernel):
    given = arguments(kernel)
    u = total(kernel, given)
    turned = total(kernel, [np.ascontiguousarray(a.T) for a in given], layout="nd")
    assert turned.flags.c_contiguous
    np.testing.assert_array_equal(turned, u.T)


def test_memory_order(kernel):
    given = arguments(kernel)
    u = total(kernel, given)
    np.testing.assert_array_equal(total(kernel, [np.asfortranarray(a) for a in given]), u)
    spread = [np.repeat(a, 3, axis=-1)[..., ::3] for a in given]
    assert not any(a.flags.c_contiguous for a in spread)
    np.testing.assert_array_equal(total(kernel, spread), u)
    np.testing.assert_array_equal(total(kernel, [a[..., ::-1].copy()[..., ::-1] for a in given]), u)


def test_input_is_not_written_to(kernel):
    given = arguments(kernel)
    given[1][:, 0] = OPTIONS["box"]  # a corner of the box, which is wrapped to the opposite one
    before = [a.copy() for a in given]
    for a in given:
        a.flags.writeable = False
    total(kernel, given)
    total(kernel, [given[1], *given[1:]])
    for array, kept in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, kept)


@pytest.mark.parametrize("tolerance", every(4, [1e-3, 1e-2, 1e-4, 1e-5]))
def test_single_precision(kernel, tolerance):
    given = arguments(kernel, dtype=np.float32)
    u = total(kernel, given, tolerance=tolerance)
    assert u.dtype == np.float32
    exact = total(kernel, [a.astype(np.float64) for a in given], tolerance=1e-9)
    assert np.linalg.norm(u - exact) <= tolerance * np.linalg.norm(exact)


def test_what_is_returned(kernel):
    given = arguments(kernel)
    u = total(kernel, given)
    assert isinstance(u, np.ndarray)
    potential, times = total(kernel, given, return_walltime=True)
    np.testing.assert_array_equal(potential, u)
    assert (times.N_in, times.N_out) == (60, 45)
    phases = ("p2p", "p2g", "fft", "cnv", "ifft", "g2p")
    assert all(getattr(times, f"time_{name}")["tot"] > 0 for name in phases)
    assert sum(getattr(times, f"time_{name}")["tot"] for name in phases) <= times.time_ewald
    potential, params = total(kernel, given, return_params=True)
    np.testing.assert_array_equal(potential, u)
    assert 0 < params.rc <= 1.0
    assert np.prod(params.grid_shape_ext) == times.N_grid
    potential, times, again = total(kernel, given, return_walltime=True, return_params=True)
    assert times.time_cell_list > 0
    assert str(again) == str(params)


def test_options_by_object_and_by_name(kernel):
    given = arguments(kernel)
    options = EwaldOptions(box=list(OPTIONS["box"]), periodicity=3, tolerance=0.5, p2p_method="LIST")
    u = getattr(parki.ewald, kernel)(*given, options, tolerance=1e-3)
    np.testing.assert_array_equal(u, total(kernel, given))


def test_the_transform_of_the_published_code_does_not_change_the_result(kernel):
    given = arguments(kernel)
    u = total(kernel, given, far_precision="double")
    other = total(kernel, given, fft_type="C2C", far_precision="double")
    np.testing.assert_allclose(other, u, rtol=0, atol=1e-12 * np.abs(u).max())


def test_the_result_depends_on_neither_threads_nor_space(kernel):
    given = arguments(kernel, 40_000, 70_000)  # the counting sort takes three chunks
    one = total(kernel, given, threads=1)
    np.testing.assert_array_equal(total(kernel, given, threads=2), one)
    np.testing.assert_array_equal(total(kernel, given, execution_space="Serial"), one)


def test_a_plan_equals_separate_calls(kernel):
    trg, src, dens, *normals = arguments(kernel)
    other = np.random.default_rng(1).standard_normal(dens.shape)
    plan = parki.ewald.plan(kernel, trg, src, **OPTIONS)
    expected = [total(kernel, (trg, src, d, *normals)) for d in (dens, other)]
    for d, u in zip((dens, other, dens), (*expected, expected[0]), strict=True):
        np.testing.assert_array_equal(plan(d, *normals), u)


def test_a_plan_keeps_its_points(kernel):
    trg, src, dens, *normals = arguments(kernel)
    expected = total(kernel, (trg, src, dens, *normals))
    plan = parki.ewald.plan(kernel, trg, src, **OPTIONS)
    trg[...], src[...] = 0.25, 0.5
    np.testing.assert_array_equal(plan(dens, *normals), expected)


def test_unavailable_spaces_say_why():
    kernel = "laplace"
    given = arguments(kernel)
    for name, why in spaces.available().items():
        if why is None:
            assert np.isfinite(total(kernel, given, execution_space=name)).all()
        else:
            with pytest.raises(ValueError, match=name) as found:
                total(kernel, given, execution_space=name)
            assert why in str(found.value)
