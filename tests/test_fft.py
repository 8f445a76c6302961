"""Libraries of transforms that are installed, against NumPy; their allocations, and whole sums with each of them."""

import contextlib
import subprocess
import sys
import tracemalloc
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parki
from parki import fft, prediction
from parki.engine.steps import workers
from parki.ewald.stages import multipliers
from parki.perfmodels.machine import Costs
from tests.ewald import cupy_standin as standin

HERE = fft.available()
ROUNDING = {"float64": 1e-14, "float32": 3e-6}
BOX, TOLERANCE = (1.0, 1.3, 0.8), {"float64": 1e-7, "float32": 1e-4}


@pytest.fixture
def cupy(monkeypatch):
    """Return a stand-in for CuPy."""
    return standin.install(monkeypatch)


class Tensor:
    """Stand-in for a tensor over the memory of an array."""

    def __init__(self, array):
        self.array = array

    def copy_(self, other):
        self.array[...] = other.array


@pytest.fixture
def torch(monkeypatch):
    """Return a stand-in for PyTorch over NumPy, with a record of its settings."""
    made, found = types.ModuleType("torch"), types.SimpleNamespace(threads=7, seen=[], streams=[])

    def transform(name):
        def run(x, dim, norm=None):
            found.seen.append((name, found.threads))
            return Tensor(getattr(np.fft, name)(x.array, axis=dim, norm=norm).astype(x.array.dtype))

        return run

    @contextlib.contextmanager
    def stream(number):
        found.streams.append(number)
        yield

    made.fft = types.SimpleNamespace(**{name: transform(name) for name in ("fft", "ifft")})
    made.from_numpy, made.from_dlpack = Tensor, lambda x: Tensor(x.inner)
    made.get_num_threads, made.set_num_threads = lambda: found.threads, lambda n: setattr(found, "threads", n)
    made.cuda = types.SimpleNamespace(stream=stream, ExternalStream=lambda pointer: ("stream", pointer))
    monkeypatch.setitem(sys.modules, "torch", made)
    return found


def within_margins(rng, shape, dtype, margins=((0, 0), (2, 2), (1, 3), (3, 4))):
    """Return a random complex box ``(C, …)`` of pairs within a larger real grid, as in a sum, and the whole grid."""
    n = [*shape[:-1], 2 * shape[-1]]
    whole = rng.standard_normal([m + sum(w) for m, w in zip(n, margins, strict=True)]).astype(dtype)
    return box_of(whole, n, margins), whole


def box_of(whole, n, margins):
    return fft.complexes(whole[tuple(slice(w, w + m) for m, (w, _) in zip(n, margins, strict=True))])


def close(found, exact, dtype):
    assert found.dtype == np.result_type(dtype, np.complex64)
    assert found.shape == exact.shape
    assert np.linalg.norm(found - exact) <= ROUNDING[dtype] * np.linalg.norm(exact)


def exactly(x, axis, inverse):
    """Return NumPy's transform of an array in double precision."""
    if inverse:
        return np.fft.ifft(x.astype(complex), axis=axis, norm="forward")
    return np.fft.fft(x.astype(complex), axis=axis)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("name", HERE)
@given(
    shape=st.tuples(st.integers(1, 3), *[st.integers(1, 20)] * 3),
    axis=st.integers(1, 3),
    margins=st.tuples(*[st.tuples(st.integers(0, 4), st.integers(0, 4))] * 4),
    dtype=st.sampled_from(sorted(ROUNDING)),
    threads=st.integers(1, 2),
    seed=st.integers(0, 2**32 - 1),
)
def test_libraries_agree_with_numpy(name, inverse, shape, axis, margins, dtype, threads, seed):
    """Transform in place, in a box of any alignment; numbers around the box do not change."""
    x, whole = within_margins(np.random.default_rng(seed), shape, dtype, margins)
    exact, before = exactly(x, axis, inverse), whole.copy()
    assert fft.library(name, threads=threads).run(x, axis, inverse) is None
    close(x, exact, dtype)
    x[...] = box_of(before, (*shape[:-1], 2 * shape[-1]), margins)
    np.testing.assert_array_equal(whole, before)


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("columns", [slice(0, 4), slice(7, None), slice(0, 1)], ids=str)
def test_some_columns_of_planes(name, columns, rng):
    """Transform some columns of a contiguous buffer, along an axis that is not the last, as the planes of modes do."""
    x = rng.standard_normal((2, 3, 12, 10)) + 1j * rng.standard_normal((2, 3, 12, 10))
    exact = x.copy()
    exact[..., columns] = exactly(x[..., columns], 2, False)
    fft.library(name).run(x[..., columns], 2, False)
    close(x, exact, "float64")


@pytest.mark.parametrize("name", HERE)
def test_a_transform_there_and_back_is_that_many_times_the_array(name, rng):
    x, _ = within_margins(rng, (2, 12, 10, 14), "float64")
    before, library = x.copy(), fft.library(name)
    for scale in (1.0, -3.0):  # twice in the same memory
        x[...] = scale * before
        library.run(x, 1, False)
        library.run(x, 1, True)
        close(x, 12 * scale * before, "float64")


@pytest.mark.parametrize("dtype", ROUNDING)
def test_cupy_takes_boxes_within_margins(dtype, cupy, rng):
    for margins in ([(0, 0)] * 4, ((0, 0), (2, 2), (1, 3), (3, 4))):
        x, _ = within_margins(rng, (2, 6, 5, 4), dtype, margins)
        exact, standin.counts["to host"] = exactly(x, 1, False), 0
        there = standin.ndarray(x)  # an array over the same memory
        library = fft.library(None, on_gpu=True)
        library.run(there, 1, False)
        close(x, exact, dtype)
        exact = exactly(x, 3, True)
        library.run(there, 3, True)
        close(x, exact, dtype)
        assert standin.counts["to host"] == 0


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("lead", [0, 1])
def test_cupy_changes_nothing_but_gaps_between_rows(lead, dtype, cupy, rng):
    """Transform in place where complex numbers are whole, by copies elsewhere; margins outside the box stay."""
    margins = ((0, 0), (2, 2), (1, 3), (2 + lead, 4 - lead))
    x, whole = within_margins(rng, (2, 6, 5, 4), dtype, margins)
    exact, before, library = exactly(x, 1, False), whole.copy(), fft.library(None, on_gpu=True)
    library.run(standin.ndarray(x), 1, False)
    close(x, exact, dtype)
    box_of(before, (2, 6, 5, 8), margins)[...] = x
    if not lead:  # the right margin of a row and the left one of the next lie between them
        whole[:, 2:-2, 1:-3, 10:], before[:, 2:-2, 1:-3, 10:] = 0, 0
        whole[:, 2:-2, 1:-3, :2], before[:, 2:-2, 1:-3, :2] = 0, 0
    np.testing.assert_array_equal(whole, before)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("dtype", ROUNDING)
def test_cupy_transforms_whole_planes(inverse, dtype, cupy, rng):
    x = (rng.standard_normal((3, 6, 5)) + 1j * rng.standard_normal((3, 6, 5))).astype(
        np.result_type(dtype, np.complex64)
    )
    exact = exactly(exactly(x, 1, inverse), 2, inverse)
    library = fft.library(None, on_gpu=True)
    library.run_planes(standin.ndarray(x), inverse)
    close(x, exact, dtype)
    assert len(library.plans) == 1


def test_cupy_runs_by_plans_of_its_own(cupy, rng):
    """Check one plan per layout, number of lines and type, for any array: CuPy's own plans serve other streams, too."""
    x, library = standin.ndarray(rng.standard_normal((2, 6, 5, 4)) + 0j), fft.library(None, on_gpu=True)
    before = standin.PlanNd.made
    for _ in range(2):
        for axis in (1, 3, -1):
            library.run(x, axis, False)
            library.run(x, axis, True)
        library.run(x[:1], 1, False)
        library.run(x.astype(np.complex64), 1, False)
    assert standin.PlanNd.made - before == len(library.plans) == 3


@pytest.mark.parametrize(("name", "arrays"), [("scipy", 0.1), ("ducc0", 0.1), ("pyfftw", 0.1)])
def test_what_is_allocated_after_the_first_call(name, arrays, rng):
    """Check that nothing of a contiguous array's size is allocated: all transforms are in place."""
    if name not in HERE:
        pytest.skip(f"{name} is not installed")
    x = rng.standard_normal((4, 32, 32, 32)) + 0j
    library = fft.library(name)

    def run():
        for axis in (1, 2, 3):
            library.run(x, axis, False)
            library.run(x, axis, True)
        x[...] /= 32**3

    run()
    tracemalloc.start()
    try:
        run()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < arrays * x.nbytes + 20_000


def test_fftw_keeps_a_plan_for_each_array(rng):
    if "pyfftw" not in HERE:
        pytest.skip("pyfftw is not installed")
    x, library = np.zeros((2, 6, 6, 6), complex), fft.library("pyfftw")
    for _ in range(3):
        library.run(x, 1, False)
        library.run(x, 2, False)
        library.run(x, 2, True)
        library.run(x[:, :3], 2, True)
    assert len(library.plans) == 4


@pytest.mark.parametrize("name", sorted({"scipy", "ducc0", "pyfftw"} & set(HERE)))
def test_a_library_is_told_its_threads(name):
    told = []
    library = fft.library(name, threads=2)
    module = library.module

    class Spy:
        def __getattr__(self, function):
            def call(*given, **named):
                told.extend([named.get("workers", named.get("nthreads"))] if name != "pyfftw" else [given[5]])
                return getattr(module, function)(*given, **named)

            return call

    library.module = Spy()
    x = np.ones((1, 6, 6, 6), complex)
    library.run(x, 1, False)
    library.run(x, 1, True)
    assert told == [2, 2]


def test_pairs_and_complexes_are_views(rng):
    for dtype, double in (("complex128", "float64"), ("complex64", "float32")):
        x = np.zeros((2, 3, 4), dtype)
        reals = fft.pairs(x)
        assert (reals.dtype, reals.shape) == (double, (2, 3, 8))
        reals[1, 2, 5] = 7.0
        assert x[1, 2, 2] == 7.0j
        assert fft.complexes(reals).dtype == dtype
        np.testing.assert_array_equal(fft.complexes(reals), x)


def problem(kernel, dtype="float64"):
    rng = np.random.default_rng(3)
    sides = np.array(BOX)[:, None]
    dens = rng.standard_normal({"laplace": (90,), "stokes_sl": (3, 90), "stokes_comb": (6, 90)}[kernel])
    given = [sides * rng.random((3, 70)), sides * rng.random((3, 90)), dens]
    given += [rng.standard_normal((3, 90))] if kernel == "stokes_comb" else []
    return [a.astype(dtype) for a in given]


def total(kernel, given, **options):
    options = {"box": BOX, "tolerance": TOLERANCE[given[0].dtype.name]} | options
    return getattr(parki.ewald, kernel)(*given, **options)


def equal(u, exact):
    assert u.dtype == exact.dtype
    assert np.linalg.norm(u - exact) <= {"float64": 1e-12, "float32": 2e-5}[u.dtype.name] * np.linalg.norm(exact)


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("kernel", ["laplace", "stokes_sl", "stokes_comb"])
@pytest.mark.parametrize("name", HERE)
def test_sums(name, kernel, dtype):
    given = problem(kernel, dtype)
    exact = total(kernel, given)
    for fft_type in ("R2C", "C2C"):
        equal(total(kernel, given, fft=name, fft_type=fft_type), exact)


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("fft_type", ["AUTO", "C2C"])
def test_a_plan_used_again(name, fft_type):
    given = problem("stokes_comb")
    exact = total("stokes_comb", given)
    plan = parki.ewald.plan("stokes_comb", *given[:2], box=BOX, tolerance=1e-7, fft=name, fft_type=fft_type)
    far = plan._placed(1).sum.far
    assert type(far.transforms.library) is fft.BACKENDS[name].make
    # All modes but those of kx = 0 have a mirror image, which C2C transforms, too.
    modes = [m for c in multipliers.planes(plan.chosen.parameters, fft_type == "C2C") for m in c.modes]
    half = [m for m in modes if 2 * m < far.mesh.box[0]]
    mirrored = [far.mesh.box[0] - m for m in half if m] if fft_type == "C2C" else []
    assert sorted(modes) == sorted(half + mirrored)
    for scale in (1.0, 2.0, 1.0):
        equal(plan(scale * given[2], given[3]), scale * exact)


def test_threads_are_those_of_the_plan(monkeypatch):
    given = problem("laplace")

    def shared(**options):
        made = parki.ewald.plan("laplace", *given[:2], box=BOX, tolerance=1e-3, **options)._placed(1)
        transforms = made.sum.far.transforms
        assert transforms.library.threads == transforms.each
        assert made.placed.size == transforms.size
        return transforms.size, transforms.each

    assert shared(threads=2) == (1, 1)  # not enough work to share
    monkeypatch.setattr(workers, "WORTH", 1)
    assert shared(threads=2) == (2, 1)
    assert shared(threads=1) == shared(execution_space="Serial") == (1, 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "12")
    assert shared() == (6, 2)


@pytest.mark.parametrize("asked", [{"torch_fft": True}, {"fft": "torch"}, {"torch_fft": True, "fft": "Torch"}], ids=str)
@pytest.mark.parametrize("fft_type", ["R2C", "C2C"])
def test_torch(asked, fft_type, torch):
    given = problem("stokes_sl")
    exact = total("stokes_sl", given)
    equal(total("stokes_sl", given, threads=2, fft_type=fft_type, **asked), exact)
    assert set(torch.seen) == {("fft", 2), ("ifft", 2)}
    names = [name for name, _ in torch.seen]
    assert (names[0], names[-1]) == ("fft", "ifft")  # along x, before and after all planes
    assert names.count("fft") == names.count("ifft")
    assert torch.threads == 7  # the process has its own number of threads again


@pytest.mark.parametrize("fft_type", ["R2C", "C2C"])
def test_torch_on_a_gpu_takes_the_stream_of_cupy(fft_type, torch, cupy, all_digits, monkeypatch):
    monkeypatch.setattr(prediction, "H200", Costs())  # the parameters of a host
    monkeypatch.setattr(prediction, "device_name", lambda *_: "")
    given = problem("stokes_sl")
    u = total("stokes_sl", [cupy.asarray(a) for a in given], torch_fft=True, fft_type=fft_type)
    equal(u.get(), total("stokes_sl", given))
    assert torch.streams == [("stream", 0)] * len(torch.seen)
    assert {threads for _, threads in torch.seen} == {7}


@pytest.mark.parametrize("asked", [{}, {"fft": "cupy"}, {"fft_type": "C2C"}], ids=str)
def test_arrays_on_a_gpu(asked, cupy, all_digits, monkeypatch):
    monkeypatch.setattr(prediction, "H200", Costs())
    monkeypatch.setattr(prediction, "device_name", lambda *_: "")
    given = problem("stokes_comb")
    there = [cupy.asarray(a) for a in given]
    plan = parki.ewald.plan("stokes_comb", *there[:2], box=BOX, tolerance=1e-7, **asked)
    standin.counts.clear()
    u = plan(*there[2:])
    # Queries per plan: magnitudes of strengths and normals, and, once, neutrality.
    assert (standin.counts["to host"], standin.counts["to device"]) == (4, 1)
    equal(u.get(), total("stokes_comb", given))


@pytest.mark.parametrize("name", ["ducc0", "pyfftw", "torch"])
def test_a_library_that_is_not_installed(name, monkeypatch):
    monkeypatch.setitem(sys.modules, fft.BACKENDS[name].module, None)
    message = rf"fft is '{name}', but .*{name}.*\. To get it: (pip install {name}|see https://pytorch\.org)"
    with pytest.raises(ValueError, match=message):
        total("laplace", problem("laplace"), fft=name)
    assert name not in fft.available()
    if name == "torch":
        with pytest.raises(ValueError, match=message):
            parki.ewald.EwaldOptions.resolve(box=BOX, torch_fft=True)


def test_names_that_do_not_fit(cupy):
    with pytest.raises(
        ValueError, match=r"fft is 'cupy', which takes no arrays on the host; expected 'scipy' or 'ducc"
    ):
        total("laplace", problem("laplace"), fft="cupy")
    with pytest.raises(
        ValueError, match=r"fft is 'scipy', which takes no arrays on the GPU; expected 'cupy' or 'torch"
    ):
        total("laplace", [cupy.asarray(a) for a in problem("laplace")], fft="scipy")
    with pytest.raises(ValueError, match=r"fft is 'duck0'; expected one of 'scipy', .*Did you mean 'ducc0'"):
        fft.library("duck0")
    with pytest.raises(ValueError, match=r"fft is 3; expected one of 'scipy'"):
        fft.library(3)


def test_only_what_is_asked_for_is_imported(tmp_path):
    code = """
import sys, numpy as np, parki
x = np.random.default_rng(0).random((3, 20))
parki.ewald.laplace(x, x, x[0], box=(1, 1, 1), tolerance=1e-3)
print(sorted({"ducc0", "pyfftw", "torch", "cupy", "cupyx"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
