"""Accepted arrays, the form in which they are passed on, and that nobody writes to them."""

import subprocess
import sys

import hypothesis
import hypothesis.extra.numpy
import hypothesis.strategies as st
import numpy as np
import pytest

import parki
from parki import arrays
from parki.engine.run import devices, spaces


class OnGpu:
    """Array of another library on a GPU."""

    @property
    def __cuda_array_interface__(self):
        return {"shape": (3, 5), "typestr": "<f8", "version": 3}


class OnGpuByDlpack:
    def __dlpack__(self):
        raise AssertionError("must not be asked for its data")

    def __dlpack_device__(self):
        return (2, 0)


class WithGradient:
    """Stand-in for a PyTorch tensor that requires its gradient: on the host, and refusing other access."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("requires grad")

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **keywords):
        raise BufferError("requires grad, use detach()")


class OnHostByDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_array_in_order_is_taken_as_it_is(dtype, rng):
    x = rng.random((3, 7)).astype(dtype)
    assert arrays.points("trg", x) is x
    assert arrays.density("dens", x, 3, 7) is x


FORMS = {
    "Fortran order": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed": lambda x: np.ascontiguousarray(x[:, ::-1])[:, ::-1],
    "big endian": lambda x: x.astype(">f8"),
    "list": lambda x: x.tolist(),
    "DLPack": OnHostByDlpack,
    "matrix": lambda x: x.view(type("Sub", (np.ndarray,), {})),
}


@pytest.mark.parametrize("form", FORMS)
def test_other_forms_are_accepted_and_come_out_alike(form, rng):
    x = rng.random((3, 7))
    taken = arrays.points("trg", FORMS[form](x), box=(1, 1, 1))
    assert np.array_equal(taken, x)
    assert type(taken) is np.ndarray or form == "matrix"
    assert taken.flags.c_contiguous
    assert taken.dtype == np.float64
    assert taken.dtype.isnative


def test_a_read_only_array_is_accepted(rng):
    x = rng.random((3, 7))
    x.flags.writeable = False
    assert np.array_equal(arrays.points("trg", x), x)


def test_layout_nd(rng):
    x = rng.random((7, 3))
    taken = arrays.points("trg", x, box=(1, 1, 1), layout="nd")
    assert np.array_equal(taken, x.T)
    assert taken.flags.c_contiguous
    assert np.array_equal(arrays.density("dens", rng.random((7, 6)), 6, 7, layout="nd").shape, (6, 7))
    assert arrays.density("dens", x[:, 0], 1, 7, layout="nd").shape == (7,)


def test_no_points_at_all():
    assert arrays.points("trg", np.empty((3, 0)), box=(1, 1, 1)).shape == (3, 0)
    assert arrays.points("trg", [[], [], []]).shape == (3, 0)
    assert arrays.density("dens", np.empty(0), 1, 0).shape == (0,)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_faces_belong_to_the_box_in_the_points_precision(dtype):
    box = (0.1, 0.7, 3.3)  # none of them is a binary fraction
    corner = np.array(box, dtype=dtype)[:, None]
    assert np.array_equal(arrays.points("trg", np.hstack([corner, 0 * corner]), box), np.hstack([corner, 0 * corner]))
    with pytest.raises(ValueError, match=r"1 of 1 points of trg lie outside"):
        arrays.points("trg", np.nextafter(corner, dtype(9)), box)


def test_large_finite_values_are_no_infinity():
    x = np.full((3, 4), 1e308)
    assert arrays.points("trg", x) is x


@pytest.mark.parametrize(
    ("x", "layout", "message"),
    [
        (np.zeros((10000, 3)), "dn", r'trg has shape \(10000, 3\); expected \(3, N\)\. Pass trg\.T, or layout="nd"\.'),
        (np.zeros((3, 10)), "nd", r'trg has shape \(3, 10\); expected \(N, 3\)\. Pass trg\.T, or layout="dn"\.'),
        (np.zeros((2, 10)), "dn", r"trg has shape \(2, 10\); expected \(3, N\)\.$"),
        (np.zeros(3), "dn", r"trg has shape \(3,\); expected \(3, N\)\. Pass trg\.reshape\(3, 1\)"),
        (np.zeros((3, 4, 5)), "dn", r"trg has shape \(3, 4, 5\)"),
        (1.0, "dn", r"trg has shape \(\)"),
        (np.zeros((3, 10), dtype=int), "dn", r"trg has dtype int64; expected float32 or float64\. Pass trg\.astype"),
        (np.zeros((3, 10), dtype=bool), "dn", r"trg has dtype bool"),
        (np.zeros((3, 10), dtype=np.float16), "dn", r"trg has dtype float16.*trg\.astype\(float\)"),
        (np.zeros((3, 10), dtype=complex), "dn", r"trg has dtype complex128; expected float32 or float64\.$"),
        (np.zeros((3, 10), dtype=np.longdouble), "dn", r"trg has dtype float128|trg has dtype"),
        ([["a", "b"]] * 3, "dn", r"trg has dtype <U1"),
        (None, "dn", r"trg has dtype object"),
        ([[1.0], [1.0, 2.0], [1.0]], "dn", r"trg cannot be read as an array"),
        (np.ma.masked_array(np.zeros((3, 10))), "dn", r"trg is a masked array"),
        (WithGradient(np.zeros((3, 10))), "dn", r"trg cannot be read as an array \(requires grad, use detach\(\)\)"),
    ],
)
def test_wrong_points(x, layout, message):
    if isinstance(x, np.ndarray) and x.dtype == np.longdouble and np.dtype(np.longdouble) == np.float64:
        pytest.skip("long double is double here")
    with pytest.raises(ValueError, match=message):
        arrays.points("trg", x, layout=layout)


@pytest.mark.parametrize("there", [OnGpu(), OnGpuByDlpack()], ids=["CUDA array interface", "DLPack"])
def test_arrays_on_a_gpu_need_cupy(there, monkeypatch):
    def missing():
        raise ImportError("CuPy is not installed")

    monkeypatch.setattr(devices, "cupy", missing)
    with pytest.raises(ValueError, match=r"trg is on the GPU \(.*\), which needs CuPy: CuPy is not installed"):
        arrays.points("trg", there)


def test_where_arrays_are():
    x = np.zeros((3, 4))
    assert arrays.on_gpu(trg=x, src=x.tolist(), dens=OnHostByDlpack(x), normals=None) is None
    assert arrays.on_gpu(trg=OnGpu(), src=OnGpuByDlpack()) == "trg"
    assert arrays.on_gpu() is None
    fake = type("ndarray", (), {"__module__": "cupy"})()
    with pytest.raises(ValueError, match=r"src is on the GPU \(CuPy\) and trg is on the host.*cupy\.asarray\(trg\)"):
        arrays.on_gpu(trg=x, src=fake)


def test_the_space_follows_what_is_asked_for_and_the_arrays(monkeypatch):
    x = np.zeros((3, 4))
    assert arrays.space_of(None, trg=x) == spaces.get()
    assert arrays.space_of("serial", trg=x) == spaces.get("Serial")
    assert arrays.space_of("OpenMP", 3) == spaces.Space("OpenMP", 3)
    assert arrays.space_of(spaces.Space("OpenMP", 2)).threads == 2
    with pytest.raises(ValueError, match="threads is 2 with execution_space 'GpuSim', which has one"):
        arrays.space_of("GpuSim", 2)
    fake = type("ndarray", (), {"__module__": "cupy"})()
    with pytest.raises(ValueError, match=r"src is on the GPU \(CuPy\) and execution_space is 'OpenMP'"):
        arrays.space_of("OpenMP", src=fake)
    monkeypatch.setattr(devices, "missing", lambda kind: f"No {kind} here.")
    with pytest.raises(ValueError, match=r"No Cuda here\..*No HIP here\.|No (Cuda|HIP) here\."):
        arrays.space_of(None, src=fake)


def test_cupy_is_not_imported_for_arrays_of_the_host(tmp_path):
    program = """
import sys
import numpy as np
import parki
x = np.random.default_rng(0).random((3, 20))
parki.ewald.laplace(x, x, x[0], box=(1, 1, 1), tolerance=1e-2)
parki.direct.direct_sum("laplace", x, x, x[0])
sys.exit("cupy" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False).returncode == 0


@pytest.mark.parametrize(("bad", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_values_that_are_not_finite_are_counted_and_located(bad, shown):
    x = np.zeros((3, 9))
    x[1, 4] = x[2, 5] = bad
    with pytest.raises(ValueError, match=rf"trg has 2 of 27 values .* \(first: trg\[1, 4\] = {shown}\)"):
        arrays.points("trg", x)
    with pytest.raises(ValueError, match=rf"\(first: trg\[4, 1\] = {shown}\)"):
        arrays.points("trg", x.T, layout="nd")
    with pytest.raises(ValueError, match=rf"dens has 1 of 9 values .*dens\[4\] = {shown}"):
        arrays.density("dens", x[1], 1, 9)


def test_points_outside_the_box_are_counted_and_located():
    x = np.full((3, 10000), 0.5)
    x[0, 17] = 1.02
    x[2, [40, 41]] = -1e-300
    expected = (
        r"3 of 10000 points of src lie outside the box, which is not periodic along x and y and z "
        r"\(first: index 17, x = 1\.02, expected 0 to 1\)\. Move them into it, or take a larger box\."
    )
    for layout, points in (("dn", x), ("nd", x.T)):
        with pytest.raises(ValueError, match=expected):
            arrays.points("src", points, box=(1, 1, 2), layout=layout)


def test_only_free_axes_are_looked_at():
    x = np.full((3, 9), 0.5)
    x[0, 2], x[2, [4, 5]] = 1.02, -3.0
    assert arrays.points("src", x, box=(1, 1, 2), free=()) is x
    with pytest.raises(ValueError, match=r"1 of 9 points .* not periodic along x and y \(first: index 2, x = 1\.02"):
        arrays.points("src", x, box=(1, 1, 2), free=(0, 1))
    with pytest.raises(
        ValueError, match=r"2 of 9 points .* not periodic along z \(first: index 4, z = -3, expected 0 to 2"
    ):
        arrays.points("src", x, box=(1, 1, 2), free=(2,))


@pytest.mark.parametrize(
    ("shape", "components", "message"),
    [
        ((5,), 1, r"dens has shape \(5,\); expected \(7,\), one value for each source"),
        ((1, 7), 1, r"dens has shape \(1, 7\); expected \(7,\)"),
        ((3, 5), 3, r"dens has shape \(3, 5\); expected \(3, 7\)\. There are 7 sources"),
        ((3, 7), 6, r"dens has shape \(3, 7\); expected \(6, 7\)\.$"),
        ((7, 6), 6, r'dens has shape \(7, 6\); expected \(6, 7\)\. Pass dens\.T, or layout="nd"'),
        ((7,), 3, r"dens has shape \(7,\); expected \(3, 7\)"),
    ],
)
def test_wrong_densities(shape, components, message):
    with pytest.raises(ValueError, match=message):
        arrays.density("dens", np.zeros(shape), components, 7)


def test_one_dtype_for_all():
    single, double = np.zeros((3, 4), np.float32), np.zeros((3, 4))
    assert arrays.same_dtype(trg=single, src=single) == np.float32
    assert arrays.same_dtype(trg=double) == np.float64
    with pytest.raises(ValueError, match=r"dtypes differ: trg float64, src float64, dens float32; .*dens\.astype"):
        arrays.same_dtype(trg=double, src=double, dens=single)


@hypothesis.given(
    x=hypothesis.extra.numpy.arrays(
        st.sampled_from([np.float32, np.float64]),
        st.tuples(st.just(3), st.integers(0, 6)),
        elements=st.floats(-2, 2, width=32),
    )
)
def test_points_are_taken_exactly_where_they_lie_in_the_box(x):
    before = x.copy()
    inside = bool(((x >= 0) & (x <= 1)).all())
    if inside:
        assert np.array_equal(arrays.points("trg", x, (1, 1, 1)), before)
    else:
        with pytest.raises(ValueError, match="lie outside the box"):
            arrays.points("trg", x, (1, 1, 1))
    assert np.array_equal(x, before)


# Integers as strengths ------------------------------------------------------------------------------------------------


class Library:
    """Array library that follows the standard."""

    @staticmethod
    def asarray(u):
        return Standard(u)


class Standard:
    """Array of `Library`."""

    def __init__(self, u):
        self.u = u

    def __array_namespace__(self):
        return Library

    def __array__(self, dtype=None, copy=None):
        return self.u


@pytest.mark.parametrize("library", ["torch", "jax", "standard", "numpy"])
def test_results_are_in_the_library_of_the_density(library, rng):
    x, q = rng.random((3, 20)), rng.standard_normal(20)
    make, kind = (lambda u: u), np.ndarray
    if library == "torch":
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        make, kind = torch.from_numpy, torch.Tensor
    elif library == "jax":
        jax = pytest.importorskip("jax", reason="JAX is not installed")
        make, kind = (lambda u: jax.numpy.asarray(u.astype(np.float32))), jax.Array
    elif library == "standard":
        make, kind = Library.asarray, Standard
    y, charges = make(x), make(q)
    exact = parki.direct.direct_sum("coulomb", *[np.asarray(a) for a in (y, y, charges)])
    plan = parki.ewald.plan("laplace", y, y, periodicity=0, tolerance=1e-3, gradient=True)
    potential, gradient = plan(charges)
    found = [potential, gradient, plan.energy_forces(charges).forces, parki.fmm.kifmm(y, y, charges, "coulomb")]
    found += [parki.direct.direct_sum("coulomb", y, y, charges)]
    assert all(isinstance(u, kind) for u in found)
    np.testing.assert_allclose(np.asarray(found[-1]), exact, rtol=1e-6)
    assert isinstance(plan(np.asarray(charges))[0], np.ndarray)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("integer", [np.int8, np.uint16, np.int64, np.uint64, ">i4"])
def test_integers_are_promoted(dtype, integer):
    given = np.array([0, 1, 100, 3], integer)
    found = arrays.density("q", given, 1, 4, promoted=np.dtype(dtype))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, [0, 1, 100, 3])


@pytest.mark.parametrize(
    ("value", "dtype", "exact"),
    [
        (2**24, np.float32, True),
        (2**24 + 1, np.float32, False),
        (-(2**24) - 1, np.float32, False),
        (2**40, np.float32, True),
        (2**24 + 1, np.float64, True),
        (2**53 + 1, np.float64, False),
        (-(2**63), np.float64, True),
        (2**63 - 1, np.float64, False),
    ],
)
def test_integers_stay_the_same_numbers_or_are_refused(value, dtype, exact):
    given, name = np.array([[7, value]]), np.dtype(dtype).name
    if exact:
        assert [int(x) for x in arrays.density("q", given, 1, 2, many=True, promoted=np.dtype(dtype))[0]] == [7, value]
    else:
        with pytest.raises(ValueError, match=f"q has the integer {value}, which {name} does not hold exactly"):
            arrays.density("q", given, 1, 2, many=True, promoted=np.dtype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_integers_are_those_of_their_numbers(dtype, rng):
    x, q = rng.random((3, 20)).astype(dtype), rng.integers(-3, 4, 20)
    f, n = rng.integers(-3, 4, (3, 20)), rng.integers(-3, 4, (3, 20))
    calls = [
        lambda x, q, f, n: parki.ewald.laplace(x, x, q, box=(1, 1, 1), tolerance=1e-3),
        lambda x, q, f, n: parki.treecode.bldtt(x, x, q),
        lambda x, q, f, n: parki.fmm.kifmm(x, x, np.stack([q, q]), tolerance=1e-3),
        lambda x, q, f, n: parki.direct.direct_sum("stresslet", x, x, f, n),
    ]
    for call in calls:
        found = call(x, q, f, n)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, call(x, *(a.astype(dtype) for a in (q, f, n))))
