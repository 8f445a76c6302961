"""Every library of transforms that is here against NumPy's, what they keep, and whole sums with each of them."""

import contextlib
import importlib.util
import subprocess
import sys
import tracemalloc
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parki
from parki import fft

HERE = fft.available()
ROUNDING = {"float64": 1e-14, "float32": 3e-6}
BOX, TOLERANCE = (1.0, 1.3, 0.8), {"float64": 1e-7, "float32": 1e-4}


def _standin():
    path = Path(__file__).with_name("ewald") / "cupy_standin.py"
    spec = importlib.util.spec_from_file_location("cupy_standin", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


standin = _standin()


@pytest.fixture
def cupy(monkeypatch):
    """A stand-in for CuPy whose transforms include the complex ones."""
    cupy = standin.install(monkeypatch)
    for name in ("fftn", "ifftn"):
        full = getattr(np.fft, name)
        monkeypatch.setattr(
            sys.modules["cupyx.scipy.fft"],
            name,
            lambda x, axes, overwrite_x, full=full: standin.ndarray(full(x.inner, axes=axes).astype(x.dtype)),
            raising=False,
        )
    return cupy


class Tensor:
    """A tensor over the memory of an array."""

    def __init__(self, array):
        self.array = array

    def copy_(self, other):
        self.array[...] = other.array


@pytest.fixture
def torch(monkeypatch):
    """A stand-in for PyTorch over NumPy, with what was set in it."""
    made, found = types.ModuleType("torch"), types.SimpleNamespace(threads=7, seen=[], streams=[])

    def transform(name):
        def run(x, s=None, dim=None, out=None):
            found.seen.append((name, found.threads))
            result = getattr(np.fft, name)(x.array, s=s, axes=dim)
            if out is None:
                return Tensor(result)
            out.array[...] = result
            return out

        return run

    @contextlib.contextmanager
    def stream(number):
        found.streams.append(number)
        yield

    made.fft = types.SimpleNamespace(**{name: transform(name) for name in ("rfftn", "irfftn", "fftn", "ifftn")})
    made.from_numpy, made.from_dlpack = Tensor, lambda x: Tensor(x.inner)
    made.get_num_threads, made.set_num_threads = lambda: found.threads, lambda n: setattr(found, "threads", n)
    made.cuda = types.SimpleNamespace(stream=stream, ExternalStream=lambda pointer: ("stream", pointer))
    monkeypatch.setitem(sys.modules, "torch", made)
    return found


def within_margins(rng, components, shape, dtype, margins=(2, 1, 3)):
    """Random real grids inside larger ones, and the larger ones."""
    whole = rng.standard_normal((components, *(m + 2 * w for m, w in zip(shape, margins, strict=True)))).astype(dtype)
    return whole[(slice(None), *(slice(w, w + m) for m, w in zip(shape, margins, strict=True)))], whole


def close(found, exact, dtype):
    assert found.dtype == np.result_type(dtype, np.complex64 if np.iscomplexobj(exact) else dtype)
    assert found.shape == exact.shape
    assert np.linalg.norm(found - exact) <= ROUNDING[dtype] * np.linalg.norm(exact)


def exactly(grid):
    return np.fft.rfftn(grid.astype(float), axes=fft.AXES)


@pytest.mark.parametrize("kind", fft.KINDS)
@pytest.mark.parametrize("name", HERE)
@given(
    shape=st.tuples(*[st.integers(1, 20)] * 3),
    components=st.integers(1, 3),
    dtype=st.sampled_from(sorted(ROUNDING)),
    threads=st.integers(1, 2),
    seed=st.integers(0, 2**32 - 1),
)
def test_libraries_agree_with_numpy(name, kind, shape, components, dtype, threads, seed):
    rng = np.random.default_rng(seed)
    grid, whole = within_margins(rng, components, shape, dtype)
    before = whole.copy()
    transform = fft.Transform(grid, name, kind, threads)
    spectra = transform.forward()
    close(spectra, exactly(grid), dtype)
    assert fft.pairs(spectra).shape == (*spectra.shape[:-1], 2 * spectra.shape[-1])
    for c in range(components):
        close(transform.inverse(spectra[c]), grid[c].astype(float), dtype)
    np.testing.assert_array_equal(whole, before)


@pytest.mark.parametrize("kind", fft.KINDS)
@pytest.mark.parametrize("name", HERE)
def test_a_transform_follows_its_grid(name, kind, rng):
    grid, _ = within_margins(rng, 2, (12, 10, 14), "float64")
    transform = fft.Transform(grid, name, kind)
    for _ in range(3):
        grid[...] = rng.standard_normal(grid.shape)
        spectra = transform.forward()
        close(spectra, exactly(grid), "float64")
        spectra[1] *= 3.0
        close(transform.inverse(spectra[1]), 3.0 * grid[1], "float64")


@pytest.mark.parametrize(("name", "grids"), [("scipy", 4.2 + 1.1), ("ducc0", 0.1), ("pyfftw", 0.1)])
def test_what_is_allocated_after_the_first_call(name, grids, rng):
    """SciPy: two spectra, of two grids each, and a field, at once; the others: nothing."""
    if name not in HERE:
        pytest.skip(f"{name} is not installed")
    grid, _ = within_margins(rng, 4, (32, 32, 32), "float64")
    transform = fft.Transform(grid, name)

    def run():
        for spectrum in transform.forward()[:3]:
            transform.inverse(spectrum)

    run()
    tracemalloc.start()
    try:
        run()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < grids * grid[0].size * 8 + 20_000


@pytest.mark.parametrize("name", sorted({"ducc0", "pyfftw"} & set(HERE)))
def test_arrays_are_used_again(name, rng):
    grid, _ = within_margins(rng, 2, (8, 8, 8), "float64")
    transform = fft.Transform(grid, name)
    first = transform.forward()
    field = transform.inverse(first[0])
    assert transform.forward() is first
    assert np.shares_memory(transform.inverse(first[1]), field)


@pytest.mark.parametrize("kind", fft.KINDS)
@pytest.mark.parametrize("name", sorted({"scipy", "ducc0", "pyfftw"} & set(HERE)))
def test_a_library_is_told_its_threads(name, kind, rng, monkeypatch):
    told = []
    grid, _ = within_margins(rng, 1, (6, 6, 6), "float64")
    transform = fft.Transform(grid, name, kind, threads=2)
    module = transform.library.module

    class Spy:
        def __getattr__(self, function):
            def call(*given, **named):
                told.extend([named.get("workers", named.get("nthreads"))] if name != "pyfftw" else [given[5]])
                return getattr(module, function)(*given, **named)

            return call

    transform.library.module = Spy()
    transform.inverse(transform.forward()[0])
    assert len(told) >= 2
    assert set(told) == {2}


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
    transform = plan.stages.far.transform
    assert (transform.name, transform.kind) == (name, "C2C" if fft_type == "C2C" else "R2C")
    for scale in (1.0, 2.0, 1.0):
        equal(plan(scale * given[2], given[3]), scale * exact)


def test_threads_are_those_of_the_plan(monkeypatch):
    given = problem("laplace")
    for options, expected in (({"threads": 2}, 2), ({"threads": 1}, 1), ({"execution_space": "Serial"}, 1)):
        plan = parki.ewald.plan("laplace", *given[:2], box=BOX, tolerance=1e-3, **options)
        assert plan.stages.far.transform.library.own == {"workers": expected}
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    plan = parki.ewald.plan("laplace", *given[:2], box=BOX, tolerance=1e-3)
    assert plan.stages.far.transform.library.own == {"workers": 3}


@pytest.mark.parametrize("asked", [{"torch_fft": True}, {"fft": "torch"}, {"torch_fft": True, "fft": "Torch"}], ids=str)
@pytest.mark.parametrize("fft_type", fft.KINDS)
def test_torch(asked, fft_type, torch):
    given = problem("stokes_sl")
    exact = total("stokes_sl", given)
    equal(total("stokes_sl", given, threads=2, fft_type=fft_type, **asked), exact)
    names = ["fftn", "ifftn"] if fft_type == "C2C" else ["rfftn", "irfftn"]
    assert torch.seen == [(names[0], 2), *[(names[1], 2)] * 3]
    assert torch.threads == 7  # those of the process are back


@pytest.mark.parametrize("fft_type", fft.KINDS)
def test_torch_on_a_gpu_takes_the_stream_of_cupy(fft_type, torch, cupy, monkeypatch):
    monkeypatch.setitem(parki.ewald.Plan.__init__.__globals__, "H200", None)  # the parameters of a host
    given = problem("stokes_sl")
    u = total("stokes_sl", [cupy.asarray(a) for a in given], torch_fft=True, fft_type=fft_type)
    equal(u.get(), total("stokes_sl", given))
    assert torch.streams == [("stream", 0)] * 4
    assert {threads for _, threads in torch.seen} == {7}


@pytest.mark.parametrize("asked", [{}, {"fft": "cupy"}, {"fft_type": "C2C"}], ids=str)
def test_arrays_on_a_gpu(asked, cupy, monkeypatch):
    monkeypatch.setitem(parki.ewald.Plan.__init__.__globals__, "H200", None)
    given = problem("stokes_comb")
    there = [cupy.asarray(a) for a in given]
    plan = parki.ewald.plan("stokes_comb", *there[:2], box=BOX, tolerance=1e-7, **asked)
    standin.counts.clear()
    u = plan(*there[2:])
    assert standin.counts["to host"] == standin.counts["to device"] == 0
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
    grid = np.zeros((1, 4, 4, 4))
    with pytest.raises(ValueError, match=r"fft is 'duck0'; expected one of 'scipy', .*Did you mean 'ducc0'"):
        fft.Transform(grid, "duck0")
    with pytest.raises(ValueError, match=r"fft is 3; expected one of 'scipy'"):
        fft.Transform(grid, 3)
    with pytest.raises(ValueError, match=r"kind is 'C2R'; expected one of 'R2C', 'C2C'"):
        fft.Transform(grid, kind="C2R")


def test_only_what_is_asked_for_is_imported(tmp_path):
    code = """
import sys, numpy as np, parki
x = np.random.default_rng(0).random((3, 20))
parki.ewald.laplace(x, x, x[0], box=(1, 1, 1), tolerance=1e-3)
print(sorted({"ducc0", "pyfftw", "torch", "cupy", "cupyx"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
