"""Module in CuPy's place whose arrays lie on the host, but are refused by NumPy, as CuPy's are.

Nothing converts implicitly, NumPy's functions refuse the arrays, and every copy between host and device and every wait
for the device is counted, so that a test on a machine without a GPU shows the work that a device would have.  While a
stream is recorded nothing runs, as on a GPU, and operations other than copies, fills, transforms and launches raise.
"""

import sys
import types

import numpy as np

from parki.engine.calls import device, sim
from parki.engine.calls.sim import SimCall
from parki.engine.run import devices
from tests.ewald import stream_standin as streams

Stream, get_current_stream = streams.Stream, streams.get_current_stream
counts = streams.counts  # numbers: array copies "to host" and "to device", reads of a "scalar", each "wait"


def _own(value):
    """Return the NumPy array or scalar inside an argument; raise for NumPy's own arrays."""
    if isinstance(value, ndarray):
        return value.inner
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, tuple | list):
        return type(value)(_own(v) for v in value)
    return value


def _wrapped(value):
    streams.unrecorded()
    return ndarray(value) if isinstance(value, np.ndarray | np.generic) else value


def _scalar(kind):
    def method(self):
        streams.unrecorded()
        counts["scalar"] += 1
        return kind(self.inner)

    return method


def _operator(name):
    return lambda self, *others: _wrapped(getattr(self.inner, name)(*map(_own, others)))


class ndarray:
    """Wrapper of a NumPy array, which NumPy's functions refuse."""

    __array_ufunc__ = None  # NumPy's operators leave the operation to this class, NumPy's functions refuse it
    __hash__ = None

    def __init__(self, inner):
        self.inner, self.device = np.asarray(inner), Device()

    def __array__(self, *arguments, **keywords):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")

    def __array_function__(self, *arguments):
        return NotImplemented

    dtype = property(lambda self: self.inner.dtype)
    shape = property(lambda self: self.inner.shape)
    strides = property(lambda self: self.inner.strides)
    ndim = property(lambda self: self.inner.ndim)
    size = property(lambda self: self.inner.size)
    itemsize = property(lambda self: self.inner.itemsize)
    flags = property(lambda self: types.SimpleNamespace(c_contiguous=self.inner.flags.c_contiguous))
    T = property(lambda self: ndarray(self.inner.T))
    data = property(lambda self: types.SimpleNamespace(ptr=self.inner.ctypes.data))
    __cuda_array_interface__ = property(lambda self: self.inner.__array_interface__ | {"stream": None})

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        return ndarray(self.inner[_own(asarray(index) if isinstance(index, np.ndarray) else index)])

    def __setitem__(self, index, value):
        into, index, value = streams.lasting(self.inner), _own(index), streams.lasting(_own(value))
        streams.perform(lambda: into.__setitem__(index, value))

    def fill(self, value):
        self[...] = value

    def __iadd__(self, other):
        streams.unrecorded()
        self.inner += _own(other)
        return self

    @property
    def nbytes(self):
        return self.inner.nbytes

    def get(self, out=None, blocking=True):
        counts["to host"] += 1
        into, of = np.empty_like(self.inner) if out is None else out, self.inner
        there = streams.lasting(into)
        streams.later(lambda: np.copyto(there, of), blocking)
        return into

    def set(self, a):
        counts["to device"] += 1
        into, of = self.inner, streams.lasting(a)
        streams.later(lambda: np.copyto(into, of), blocking=of is a)

    item = _scalar(lambda inner: inner.item())
    __bool__, __int__, __float__ = _scalar(bool), _scalar(int), _scalar(float)
    __index__ = None

    def astype(self, dtype, copy=True):
        return self if not copy and self.dtype == dtype else ndarray(self.inner.astype(dtype))

    def copy(self):
        return ndarray(self.inner.copy())

    def view(self, dtype):
        return ndarray(self.inner.view(dtype))

    def reshape(self, *shape):
        return ndarray(self.inner.reshape(*shape))

    def ravel(self):
        return ndarray(self.inner.ravel())

    def swapaxes(self, first, second):
        return ndarray(self.inner.swapaxes(first, second))


for _name in ("sum", "min", "max", "all", "any"):
    setattr(ndarray, _name, lambda self, _name=_name, **given: ndarray(getattr(self.inner, _name)(**given)))
_OPERATORS = "add radd sub rsub mul rmul matmul truediv rtruediv floordiv mod pow neg eq ne lt le gt ge and or invert"
for _name in _OPERATORS.split():
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))


class Device:
    """A device by its number; without a number the current one."""

    now = 0

    def __init__(self, number=None):
        self.id = Device.now if number is None else number

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id

    __hash__ = None

    def use(self):
        Device.now = self.id

    def __enter__(self):
        self.before, Device.now = Device.now, self.id

    def __exit__(self, *_):
        Device.now = self.before


def asarray(x, dtype=None):
    if isinstance(x, ndarray):
        return x if dtype is None else x.astype(dtype, copy=False)
    streams.unrecorded()
    counts["to device"] += 1
    return ndarray(np.array(x, dtype))  # a copy, as from host to device


def empty(shape, dtype=float):
    if not streams.allocators:
        streams.unrecorded()  # without a pool others may get the memory next
        made = np.empty(shape, dtype)
        made.reshape(-1).view(np.uint8).fill(0xFF)  # no number: memory on a device holds anything
        return ndarray(made)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return ndarray(np.asarray(streams.allocators[-1](size))[:size].view(dtype).reshape(shape))


def ascontiguousarray(x):
    return x if x.inner.flags.c_contiguous else ndarray(np.ascontiguousarray(x.inner))


def asnumpy(x):
    return x.get()


def from_dlpack(x):
    if x.__dlpack_device__()[0] != 2:
        raise TypeError("CuPy only accepts arrays on a GPU")
    return ndarray(x.inner)


def concatenate(arrays, axis=0, out=None):
    found = np.concatenate([_own(a) for a in arrays], axis=axis, out=None if out is None else out.inner)
    return ndarray(found) if out is None else out


def _function(name):
    return lambda *given, **named: _wrapped(getattr(np, name)(*map(_own, given), **named))


class PlanNd:
    """A plan of cuFFT: transforms of one type, in place, from the first number of an array on, whatever its shape."""

    CUFFT_C2C, CUFFT_Z2Z, CUFFT_FORWARD, CUFFT_INVERSE = 0x29, 0x69, -1, 1
    made = 0

    def __init__(self, shape, inner, stride, apart, inner_out, stride_out, apart_out, kind, count, order, *rest):
        PlanNd.made += 1
        assert (shape, stride, apart, order) == (inner_out, stride_out, apart_out, "C")
        assert inner == shape
        assert stride == 1 or len(shape) == 1
        self.dtype = {self.CUFFT_C2C: np.dtype(np.complex64), self.CUFFT_Z2Z: np.dtype(np.complex128)}[kind]
        within = [stride * int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
        self.shape, self.strides = (count, *shape), [self.dtype.itemsize * step for step in (apart, *within)]

    def fft(self, a, out, direction):
        first = streams.lasting(a.inner)
        assert a.dtype == self.dtype
        assert out is a
        assert first.ctypes.data % self.dtype.itemsize == 0
        transform = np.fft.ifftn if direction == self.CUFFT_INVERSE else np.fft.fftn
        axes, norm = tuple(range(1, len(self.shape))), "forward" if direction == self.CUFFT_INVERSE else "backward"
        lines = np.lib.stride_tricks.as_strided(first, self.shape, self.strides)

        def transformed():
            with np.errstate(over="ignore", invalid="ignore"):  # in gaps, which hold anything
                np.copyto(lines, transform(lines, axes=axes, norm=norm), casting="same_kind")

        streams.perform(transformed)


def argsort(a, axis=-1, kind=None):
    if kind not in (None, "stable"):
        raise ValueError("sort kind must be stable")
    return ndarray(np.argsort(a.inner, axis=axis, kind="stable"))


FUNCTIONS = "zeros arange isfinite where stack cumsum searchsorted minimum maximum floor full clip flatnonzero"


def modules():
    """Return the modules to put into `sys.modules`."""
    cupy, fft = types.ModuleType("cupy"), types.ModuleType("cupyx.scipy.fft")
    for made in (ndarray, asarray, empty, ascontiguousarray, asnumpy, from_dlpack, concatenate, argsort):
        setattr(cupy, made.__name__, made)
    for name in FUNCTIONS.split():
        setattr(cupy, name, _function(name))
    cupy.cuda = types.SimpleNamespace(
        Device=Device, Stream=Stream, get_current_stream=streams.get_current_stream, MemoryPool=streams.MemoryPool,
        using_allocator=streams.using_allocator, runtime=types.SimpleNamespace(),
    )  # fmt: skip
    cupy.cuda.runtime.streamCaptureModeThreadLocal, cupy.cuda.runtime.getDevice = "thread", lambda: Device.now
    numbers = {name: getattr(PlanNd, name) for name in vars(PlanNd) if name.startswith("CUFFT")}
    cupy.cuda.cufft = types.SimpleNamespace(PlanNd=PlanNd, **numbers)
    found = {name: types.ModuleType(name) for name in ("cupyx", "cupyx.scipy")}
    found["cupyx"].empty_pinned = streams.empty_pinned
    return found | {"cupy": cupy, "cupyx.scipy.fft": fft}


class StandInCall(SimCall):
    """A launch on the stand-in's arrays, in the simulator."""

    limit = devices.SCRATCH["Cuda"]

    def __init__(self, *arguments):
        self.xp = devices.cupy()
        super().__init__(*arguments)

    def address(self, a):
        return a.inner.ctypes.data

    def launch(self):
        given = type(self.struct).from_buffer_copy(self.struct)  # by value, as the driver takes it

        def run():
            now, self.struct = self.struct, given
            try:
                SimCall.launch(self)
            finally:
                self.struct = now

        streams.perform(run)


def install(monkeypatch):
    """Put the stand-in in CuPy's place, with one device; return it."""
    for name, module in (made := modules()).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(devices, "cupy", lambda: made["cupy"])
    monkeypatch.setattr(devices, "platform", lambda: "Cuda")
    monkeypatch.setattr(devices, "current", lambda: None)
    monkeypatch.setattr(devices, "missing", lambda kind: None if kind == "Cuda" else "It is not here.")
    monkeypatch.setattr(device, "DeviceCall", StandInCall)
    monkeypatch.setattr(device, "load_all", sim.load_all)
    return made["cupy"]


ndarray.__module__ = "cupy"
