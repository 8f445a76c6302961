"""Complex transforms along one axis, in place, by a library of the caller's choice.

The default is SciPy for NumPy arrays (from SciPy 1.18 on it carries the transforms of ducc0) and CuPy for CuPy
arrays.  A library is imported when it is asked for, never before.  Neither direction divides by the number of points.
"""

import contextlib
import difflib
import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from parki.arrays import Array, module_of
from parki.engine import forks

MOST_CALLS = 16  # of a library for GPUs that are faster than a copy with all lines beside each other
_process = forks.lock()  # for the state that libraries share among all threads of Python


class Library(Protocol):
    """Transforms of one library."""

    def run(self, x: Array, axis: int, inverse: bool) -> None:
        """Transform a complex array of any strides along an axis, in place."""
        ...


class Scipy:
    """`scipy.fft`, which overwrites a complex array if it may."""

    def __init__(self, module: ModuleType, threads: int) -> None:
        self.module, self.threads = module, threads

    def run(self, x: Array, axis: int, inverse: bool) -> None:  # noqa: D102
        if inverse:
            result = self.module.ifft(x, axis=axis, norm="forward", overwrite_x=True, workers=self.threads)
        else:
            result = self.module.fft(x, axis=axis, overwrite_x=True, workers=self.threads)
        if not np.may_share_memory(result, x):
            x[...] = result


class Cupy:
    """cuFFT or hipFFT by CuPy's plans, in place, kept here: plans in CuPy's cache may be dropped, or run elsewhere.

    Lines beside each other in memory are transformed together, with what lies in gaps between them: margins of a grid,
    whose numbers are not used at that time.
    """

    def __init__(self, module: ModuleType, threads: int) -> None:
        self.plans: dict[tuple, Any] = {}

    def run(self, x: Array, axis: int, inverse: bool) -> None:  # noqa: D102
        axis %= x.ndim
        is_last, n = axis == x.ndim - 1, x.shape[axis]
        if is_last and x.flags.c_contiguous:
            x, axis = x.reshape(-1, n), 1
        strides = [stride // x.dtype.itemsize for stride in x.strides]
        outer = x.shape[: max(axis - 1, 0) if is_last else axis]  # gone through one after another
        if _misaligned(x) or strides[-1] != 1 or math.prod(outer) > MOST_CALLS:
            self._copied(x, axis, inverse)
            return
        if is_last:
            lines, apart = (x.shape[axis - 1], strides[axis - 1]) if axis else (1, n)
        else:
            lines = 1 + sum((m - 1) * s for m, s in zip(x.shape[axis + 1 :], strides[axis + 1 :], strict=True))
            apart = 1
        for index in np.ndindex(outer):
            self._transform(x[index], (n,), (strides[axis], apart), lines, inverse)

    def run_planes(self, x: Array, inverse: bool) -> None:
        """Transform a complex array without gaps along its last two axes, in place."""
        shape = x.shape[-2:]
        self._transform(x, shape, (1, math.prod(shape)), x.size // max(math.prod(shape), 1), inverse)

    def _copied(self, x: Array, axis: int, inverse: bool) -> None:
        """Transform a copy, with the axis last, and copy it back."""
        real = _reals(x).swapaxes(axis, -2)
        work = module_of(x).empty(real.shape[:-1], x.dtype)
        _reals(work)[...] = real
        n = work.shape[-1]
        self._transform(work, (n,), (1, n), work.size // max(n, 1), inverse)
        real[...] = _reals(work)

    def _transform(self, x: Array, shape: tuple[int, ...], layout: tuple[int, int], count: int, inverse: bool) -> None:
        """Transform arrays of a shape from the first number of x on; `layout` has strides within and between them."""
        if not x.size:
            return
        cufft = module_of(x).cuda.cufft
        key = (shape, layout, count, x.dtype)
        if key not in self.plans:
            kind = cufft.CUFFT_C2C if x.dtype == np.complex64 else cufft.CUFFT_Z2Z
            self.plans[key] = cufft.PlanNd(shape, shape, *layout, shape, *layout, kind, count, "C", -1, None)
        self.plans[key].fft(x, x, cufft.CUFFT_INVERSE if inverse else cufft.CUFFT_FORWARD)


class Ducc:
    """`ducc0.fft`."""

    def __init__(self, module: ModuleType, threads: int) -> None:
        self.module, self.threads = module, threads

    def run(self, x: Array, axis: int, inverse: bool) -> None:  # noqa: D102
        with _strided(x) as work:
            self.module.c2c(work, (axis,), forward=not inverse, inorm=0, out=work, nthreads=self.threads)


class Fftw:
    """`pyfftw`: one plan for each array, kept for later transforms.

    Plans are estimated: measuring one takes seconds, hardly gained speed, and overwrites the arrays.  FFTW silently
    rounds strides to whole complex numbers.
    """

    def __init__(self, module: ModuleType, threads: int) -> None:
        self.module, self.threads = module, threads
        self.plans: dict[tuple, Any] = {}

    def run(self, x: Array, axis: int, inverse: bool) -> None:  # noqa: D102
        with _strided(x) as work:
            if work is x:
                key = (x.ctypes.data, x.shape, x.strides, x.dtype, axis, inverse)
                if key not in self.plans:
                    self.plans[key] = self._plan(x, axis, inverse)
                self.plans[key].execute()
            else:
                self._plan(work, axis, inverse).execute()

    def _plan(self, x: Array, axis: int, inverse: bool) -> Any:
        direction = "FFTW_BACKWARD" if inverse else "FFTW_FORWARD"
        with _process:
            return self.module.FFTW(x, x, (axis,), direction, ("FFTW_ESTIMATE",), self.threads)


class Torch:
    """`torch.fft`, on the memory of NumPy and of CuPy arrays."""

    def __init__(self, module: ModuleType, threads: int) -> None:
        self.torch, self.threads = module, threads

    def run(self, x: Array, axis: int, inverse: bool) -> None:  # noqa: D102
        with _strided(x) as work, self._set(work):
            t = self.torch.from_numpy(work) if isinstance(x, np.ndarray) else self.torch.from_dlpack(work)
            t.copy_(self.torch.fft.ifft(t, dim=axis, norm="forward") if inverse else self.torch.fft.fft(t, dim=axis))

    @contextlib.contextmanager
    def _set(self, x: Array) -> Iterator[None]:
        """Set CuPy's stream on a GPU, or on a host the number of threads, which PyTorch has once per process."""
        if not isinstance(x, np.ndarray):
            stream = module_of(x).cuda.get_current_stream().ptr
            with self.torch.cuda.stream(self.torch.cuda.ExternalStream(stream)):
                yield
            return
        with _process:
            threads = self.torch.get_num_threads()
            self.torch.set_num_threads(self.threads)
            try:
                yield
            finally:
                self.torch.set_num_threads(threads)


@dataclass(frozen=True)
class Backend:
    """Module of a library, the maker of its transforms, the places of its arrays, and the way to get the library.

    With `several`, threads of Python may transform different arrays at the same time.
    """

    module: str
    make: Callable[[ModuleType, int], Library]
    arrays: tuple[str, ...]
    remedy: str
    several: bool = True


BACKENDS = {
    "scipy": Backend("scipy.fft", Scipy, ("host",), "pip install scipy"),
    "ducc0": Backend("ducc0.fft", Ducc, ("host",), "pip install ducc0 (licence: GPL 2 or later)"),
    "pyfftw": Backend("pyfftw", Fftw, ("host",), "pip install pyfftw (it brings FFTW, licence: GPL 2 or later)"),
    "cupy": Backend("cupyx.scipy.fft", Cupy, ("GPU",), 'pip install "parki[cuda13]"'),
    "torch": Backend(
        "torch", Torch, ("host", "GPU"), "see https://pytorch.org/get-started, or leave torch_fft out", False
    ),
}


def choose(name: str | None, on_gpu: bool) -> str:
    """Return the backend of this name, in any case, or by default that of the arrays.

    Raises
    ------
    ValueError
        For a name that is not in `BACKENDS`, that is not for arrays there, or whose library is not installed.
    """
    place = "GPU" if on_gpu else "host"
    if name is None:
        return "cupy" if on_gpu else "scipy"
    names = [repr(b) for b, backend in BACKENDS.items() if place in backend.arrays]
    key = name.lower() if isinstance(name, str) else ""
    if key not in BACKENDS:
        matches = difflib.get_close_matches(key, BACKENDS, n=1)
        advice = f" Did you mean {matches[0]!r}?" if matches else ""
        raise ValueError(f"fft is {name!r}; expected one of {', '.join(map(repr, BACKENDS))}.{advice}")
    if place not in BACKENDS[key].arrays:
        raise ValueError(f"fft is {key!r}, which takes no arrays on the {place}; expected {' or '.join(names)}.")
    _load(key)
    return key


def available() -> list[str]:
    """Import the installed backends for arrays on the host, and return their names."""
    names = []
    for name, backend in BACKENDS.items():
        with contextlib.suppress(ValueError):
            if "host" in backend.arrays:
                names.append(choose(name, False))
    return names


def library(name: str | None = None, on_gpu: bool = False, threads: int = 1) -> Library:
    """Return the transforms of a key of `BACKENDS`, or of the arrays' default; `threads` are those of a host.

    Raises
    ------
    ValueError
        As `choose`.
    """
    name = choose(name, on_gpu)
    return BACKENDS[name].make(_load(name), threads)


def pairs(spectrum: Array) -> Array:
    """Return a view of a complex array as reals, the last axis twice as long."""
    return spectrum.view(np.float32 if spectrum.dtype == np.complex64 else np.float64)


def complexes(real: Array) -> Array:
    """Return a view of pairs of reals as complex numbers, the last axis half as long."""
    return real.view(np.complex64 if real.dtype == np.float32 else np.complex128)


def _misaligned(x: Array) -> bool:
    """Tell whether a number lies at an address, or strides apart, that is not a whole number of complex numbers."""
    size = x.dtype.itemsize
    return x.data.ptr % size != 0 or any(stride % size for stride in x.strides)


def _reals(x: Array) -> Array:
    """Return a view of a complex array as reals along one more axis."""
    return pairs(x).reshape(*x.shape, 2)


@contextlib.contextmanager
def _strided(x: Array) -> Iterator[Array]:
    """Yield the array, or a copy that is copied back if strides are half complex numbers: few libraries take these."""
    if all(stride % x.dtype.itemsize == 0 for stride in x.strides):
        yield x
        return
    work = module_of(x).ascontiguousarray(pairs(x)).view(x.dtype)
    yield work
    pairs(x)[...] = pairs(work)


def _load(name: str) -> ModuleType:
    """Import the library of a backend."""
    backend = BACKENDS[name]
    try:
        return importlib.import_module(backend.module)
    except ImportError as error:
        raise ValueError(f"fft is {name!r}, but {error}. To get it: {backend.remedy}.") from error
