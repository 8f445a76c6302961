"""Transforms of real grids over their last three axes, by the library that is asked for.

Without a name it is SciPy for NumPy arrays (from SciPy 1.18 on it carries the transforms of ducc0) and CuPy for CuPy
arrays.  A library is imported when it is asked for, never before.
"""

import contextlib
import difflib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from parki.arrays import Array, module_of

AXES = (-3, -2, -1)
KINDS = ("R2C", "C2C")
Shape = tuple[int, int, int]


class Library(Protocol):
    """The transforms of one library; each takes what is to be transformed and where the result may go.

    A library that writes `into` arrays fills `out` and returns it; any other gets None and returns a new array.  Input
    of `forward` is strided and kept, that of `inverse` is overwritten, and `complex` works in place where it can.
    Inverse transforms divide by the number of points.
    """

    into: bool

    def forward(self, x: Array, out: Array | None) -> Array:
        """Half spectra of real grids."""
        ...

    def inverse(self, x: Array, out: Array | None) -> Array:
        """The real grid of a half spectrum."""
        ...

    def complex(self, x: Array, inverse: bool) -> Array:
        """Full spectra of complex grids, or the reverse."""
        ...


class Scipy:
    """`scipy.fft`, which takes no output arrays."""

    into = False

    def __init__(self, module: ModuleType, shape: Shape, threads: int) -> None:
        self.module, self.shape, self.own = module, shape, {"workers": threads}

    def forward(self, x: Array, out: Array | None) -> Array:  # noqa: D102
        return self.module.rfftn(x, axes=AXES, **self.own)

    def inverse(self, x: Array, out: Array | None) -> Array:  # noqa: D102
        # In two steps: the first is done in place, where irfftn makes a copy of the spectrum.
        x = self.module.ifftn(x, axes=AXES[:2], overwrite_x=True, **self.own)
        return self.module.irfft(x, self.shape[2], overwrite_x=True, **self.own)

    def complex(self, x: Array, inverse: bool) -> Array:  # noqa: D102
        transform = self.module.ifftn if inverse else self.module.fftn
        return transform(x, axes=AXES, overwrite_x=True, **self.own)


class Cupy(Scipy):
    """`cupyx.scipy.fft`: no output arrays either, but CuPy's pool hands the same memory out again."""

    def __init__(self, module: ModuleType, shape: Shape, threads: int) -> None:
        super().__init__(module, shape, threads)
        self.own = {}

    def inverse(self, x: Array, out: Array | None) -> Array:  # noqa: D102
        return self.module.irfftn(x, s=self.shape, axes=AXES, overwrite_x=True)


class Ducc:
    """`ducc0.fft`."""

    into = True

    def __init__(self, module: ModuleType, shape: Shape, threads: int) -> None:
        self.module, self.shape, self.threads = module, shape, threads

    def forward(self, x: Array, out: Array | None) -> Array:  # noqa: D102
        return self.module.r2c(x, _axes(x), out=out, nthreads=self.threads)

    def inverse(self, x: Array, out: Array | None) -> Array:  # noqa: D102
        more = {"out": out, "nthreads": self.threads, "allow_overwriting_input": True}  # it would copy the spectrum
        return self.module.c2r(x, _axes(x), lastsize=self.shape[2], forward=False, inorm=2, **more)

    def complex(self, x: Array, inverse: bool) -> Array:  # noqa: D102
        more = {"forward": not inverse, "inorm": 2 if inverse else 0, "nthreads": self.threads}
        return self.module.c2c(x, _axes(x), out=x, **more)


class Fftw:
    """`pyfftw`: one plan for each pair of arrays, kept with them.

    FFTW estimates: measuring a plan takes seconds and hardly gained, and it overwrites the arrays.
    """

    into = True

    def __init__(self, module: ModuleType, shape: Shape, threads: int) -> None:
        self.module, self.threads = module, threads
        self.plans: dict[tuple[int, int, bool], Callable[[], Array]] = {}

    def _run(self, x: Array, out: Array, inverse: bool) -> Array:
        key = (x.ctypes.data, out.ctypes.data, inverse)
        if key not in self.plans:
            direction = "FFTW_BACKWARD" if inverse else "FFTW_FORWARD"
            flags = ("FFTW_ESTIMATE", "FFTW_DESTROY_INPUT") if inverse else ("FFTW_ESTIMATE",)
            self.plans[key] = self.module.FFTW(x, out, _axes(x), direction, flags, self.threads)
        return self.plans[key]()

    def forward(self, x: Array, out: Array | None) -> Array:  # noqa: D102
        return self._run(x, out, False)

    def inverse(self, x: Array, out: Array | None) -> Array:  # noqa: D102
        return self._run(x, out, True)

    def complex(self, x: Array, inverse: bool) -> Array:  # noqa: D102
        return self._run(x, x, inverse)


class Torch:
    """`torch.fft`, on the memory of NumPy and of CuPy arrays."""

    into = True

    def __init__(self, module: ModuleType, shape: Shape, threads: int) -> None:
        self.torch, self.shape, self.threads = module, shape, threads

    def forward(self, x: Array, out: Array | None) -> Array:  # noqa: D102
        with self._set(x):
            self.torch.fft.rfftn(self._tensor(x), dim=AXES, out=self._tensor(out))
        return out

    def inverse(self, x: Array, out: Array | None) -> Array:  # noqa: D102
        with self._set(x):
            self.torch.fft.irfftn(self._tensor(x), s=self.shape, dim=AXES, out=self._tensor(out))
        return out

    def complex(self, x: Array, inverse: bool) -> Array:  # noqa: D102
        with self._set(x):
            t = self._tensor(x)
            t.copy_((self.torch.fft.ifftn if inverse else self.torch.fft.fftn)(t, dim=AXES))
        return x

    def _tensor(self, x: Array) -> Any:
        return self.torch.from_numpy(x) if isinstance(x, np.ndarray) else self.torch.from_dlpack(x)

    @contextlib.contextmanager
    def _set(self, x: Array) -> Iterator[None]:
        """On a GPU CuPy's stream, on a host the number of threads, which PyTorch knows for the whole process only."""
        if not isinstance(x, np.ndarray):
            stream = module_of(x).cuda.get_current_stream().ptr
            with self.torch.cuda.stream(self.torch.cuda.ExternalStream(stream)):
                yield
            return
        before = self.torch.get_num_threads()
        self.torch.set_num_threads(self.threads)
        try:
            yield
        finally:
            self.torch.set_num_threads(before)


@dataclass(frozen=True)
class Backend:
    """What is imported, what it makes transforms with, where its arrays may be, and how to get it."""

    module: str
    make: Callable[[ModuleType, Shape, int], Library]
    arrays: tuple[str, ...]
    remedy: str


BACKENDS = {
    "scipy": Backend("scipy.fft", Scipy, ("host",), "pip install scipy"),
    "ducc0": Backend("ducc0.fft", Ducc, ("host",), "pip install ducc0 (licence: GPL 2 or later)"),
    "pyfftw": Backend("pyfftw", Fftw, ("host",), "pip install pyfftw (it brings FFTW, licence: GPL 2 or later)"),
    "cupy": Backend("cupyx.scipy.fft", Cupy, ("GPU",), 'pip install "parki[cuda13]"'),
    "torch": Backend("torch", Torch, ("host", "GPU"), "see https://pytorch.org/get-started, or leave torch_fft out"),
}


def choose(name: str | None, on_gpu: bool) -> str:
    """Return the backend of this name, in any case, or without one that of the arrays.

    Raises
    ------
    ValueError
        For a name that is not in `BACKENDS`, that is not for arrays there, or whose library is not installed.
    """
    where = "GPU" if on_gpu else "host"
    if name is None:
        return "cupy" if on_gpu else "scipy"
    listed = [repr(b) for b, backend in BACKENDS.items() if where in backend.arrays]
    found = name.lower() if isinstance(name, str) else ""
    if found not in BACKENDS:
        near = difflib.get_close_matches(found, BACKENDS, n=1)
        advice = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"fft is {name!r}; expected one of {', '.join(map(repr, BACKENDS))}.{advice}")
    if where not in BACKENDS[found].arrays:
        raise ValueError(f"fft is {found!r}, which takes no arrays on the {where}; expected {' or '.join(listed)}.")
    _load(found)
    return found


def available() -> list[str]:
    """Names of the backends for arrays on the host that are installed; imports them."""
    found = []
    for name, backend in BACKENDS.items():
        with contextlib.suppress(ValueError):
            if "host" in backend.arrays:
                found.append(choose(name, False))
    return found


class Transform:
    """Forward and inverse transforms of the real grids of one array, with the arrays that they need.

    From the second call on, ducc0 and pyfftw allocate nothing of a grid's size; SciPy makes each spectrum and each
    field anew.

    Parameters
    ----------
    grid : array (C, M0, M1, M2)
        float32 or float64; any strides, such as those of a box within margins, which is transformed without a copy
        (CuPy makes one).
    name : str, optional
        A key of `BACKENDS`.
    kind : {"R2C", "C2C"}
        Real transforms, or complex ones of the real grids, of whose spectra half is used: the same to rounding, in 2.5
        times the time and twice the memory.
    threads : int
        Of the library; a GPU has its own.
    """

    def __init__(self, grid: Array, name: str | None = None, kind: str = "R2C", threads: int = 1) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind is {kind!r}; expected one of {', '.join(map(repr, KINDS))}.")
        self.grid, self.kind, self.shape, self.xp = grid, kind, tuple(grid.shape[-3:]), module_of(grid)
        self.name = choose(name, not isinstance(grid, np.ndarray))
        self.library = BACKENDS[self.name].make(_load(self.name), self.shape, threads)
        self._kept: dict[str, Array] = {}

    def forward(self) -> Array:
        """Half spectra ``(C, M0, M1, M2 // 2 + 1)`` of the grids as they are now; the next call overwrites them."""
        shape = (*self.grid.shape[:-1], self.shape[2] // 2 + 1)
        complexes = np.result_type(self.grid.dtype, np.complex64)
        if self.kind == "R2C":
            return self.library.forward(self.grid, self._keep("half", shape, complexes, self.library.into))
        half, full = self._keep("half", shape, complexes), self._keep("full", self.grid.shape, complexes)
        full[...] = self.grid
        self._kept["full"] = full = self.library.complex(full, False)
        half[...] = full[..., : shape[-1]]
        return half

    def inverse(self, spectrum: Array) -> Array:
        """The real grid ``(M0, M1, M2)`` of one half spectrum, which is overwritten; the next call overwrites it."""
        if self.kind == "R2C":
            return self.library.inverse(spectrum, self._keep("real", self.shape, self.grid.dtype, self.library.into))
        real, work = self._keep("real", self.shape, self.grid.dtype), self._keep("work", self.shape, spectrum.dtype)
        bins = spectrum.shape[-1]
        work[..., :bins] = spectrum
        # The real part of the transform of one half, twice, is the transform of both.
        work[..., 1 : (self.shape[2] + 1) // 2] *= 2
        work[..., bins:] = 0
        self._kept["work"] = work = self.library.complex(work, True)
        real[...] = pairs(work)[..., ::2]
        return real

    def _keep(self, use: str, shape: tuple[int, ...], dtype: np.dtype[Any], wanted: bool = True) -> Array | None:
        """An array for this use, made in the first call; None if it is not wanted."""
        if wanted and use not in self._kept:
            self._kept[use] = self.xp.empty(shape, dtype)
        return self._kept.get(use)


def pairs(spectrum: Array) -> Array:
    """A complex array seen as reals, the last axis twice as long."""
    return spectrum.view(np.float32 if spectrum.dtype == np.complex64 else np.float64)


def _axes(x: Array) -> tuple[int, int, int]:
    return (x.ndim - 3, x.ndim - 2, x.ndim - 1)


def _load(name: str) -> ModuleType:
    """The library of a backend, imported."""
    backend = BACKENDS[name]
    try:
        return importlib.import_module(backend.module)
    except ImportError as error:
        raise ValueError(f"fft is {name!r}, but {error}. To get it: {backend.remedy}.") from error
