"""A CUDA driver in CuPy's place: modules are host objects of the same text, launches run in the simulator.

Tests look at the arguments that a launch hands to the driver: grid, block, shared memory, stream, and one structure
passed by value.
"""

import ctypes
import hashlib
import json
import types

import numpy as np

from parki.engine.calls import sim
from parki.engine.compile import cache, objects, rtc
from parki.engine.compile.compiler import target
from parki.engine.run import devices, gpusim, spaces
from parki.engine.run.spaces import Space

SHARED = 227 << 10
STREAM = 7
CUDA = Space("Cuda")
MAX_DYNAMIC_SHARED = 8


class ndarray:
    """Device array: a NumPy array with the attributes that a launch reads."""

    def __init__(self, inner, device=0):
        self.inner, self.device = inner, types.SimpleNamespace(id=device)
        self.data = types.SimpleNamespace(ptr=inner.ctypes.data)

    dtype = property(lambda self: self.inner.dtype)
    shape = property(lambda self: self.inner.shape)
    strides = property(lambda self: self.inner.strides)
    ndim = property(lambda self: self.inner.ndim)
    size = property(lambda self: self.inner.size)
    itemsize = property(lambda self: self.inner.itemsize)

    def __getitem__(self, index):
        return ndarray(np.asarray(self.inner[index]))

    def __setitem__(self, index, value):
        self.inner[index] = value.inner

    def __sub__(self, other):
        return ndarray(self.inner - other.inner)

    def sum(self, dtype):
        return ndarray(self.inner.sum(dtype=dtype, keepdims=True))

    def item(self):
        return self.inner.item()


class Driver:
    """Driver that runs launches in the simulator and records them."""

    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = MAX_DYNAMIC_SHARED

    def __init__(self):
        self.functions, self.launches, self.attributes = {}, [], []

    def load(self, code, name):
        path, symbol = code.decode().split("\n")
        assert name == symbol
        run = ctypes.CDLL(path).pk_run
        run.argtypes, run.restype = [ctypes.c_void_p, ctypes.c_void_p], None
        self.functions[len(self.functions) + 100] = run
        return types.SimpleNamespace(ptr=len(self.functions) + 99)

    def funcSetAttribute(self, function, attribute, value):
        self.attributes.append((function, attribute, value))

    def launchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        assert (gy, gz, bz, extra) == (1, 1, 1, 0)
        self.launches.append({"grid": gx, "block": (bx, by), "shared": shared, "stream": stream})
        structure = ctypes.cast(parameters, ctypes.POINTER(ctypes.c_void_p))[0]
        record = gpusim.SimLaunch(grid=gx, block_x=bx, block_y=by, warp=32, shared_bytes=shared, seed=3, order=0)
        self.functions[function](ctypes.addressof(record), structure)
        assert record.fault[0] == 0


class Module:
    """Module of the driver `driver`."""

    driver = None

    def load(self, code):
        self.code = code

    def get_function(self, name):
        return self.driver.load(self.code, name)


def install(monkeypatch, folder):
    """Put the stand-in in CuPy's place; return the driver and the list of compiled units."""
    driver, units = Driver(), []
    cuda = types.SimpleNamespace(
        Module=type("OwnModule", (Module,), {"driver": driver}),
        driver=driver,
        get_current_stream=lambda: types.SimpleNamespace(ptr=STREAM),
    )
    xp = types.SimpleNamespace(
        ndarray=ndarray,
        cuda=cuda,
        zeros=lambda shape, dtype: ndarray(np.zeros(shape, dtype)),
        cumsum=lambda a, dtype: ndarray(np.cumsum(a.inner, dtype=dtype)),
        __name__="cupy",
    )

    def compiled(wanted):
        paths = []
        for unit in wanted:
            units.append(unit)
            flags = (*sim.FLAGS[:3], f"-DPK_BLOCK={unit.block}", f"-DPK_WIDE={int(unit.wide)}")
            made = objects.Unit(unit.name, unit.label, unit.source, gpusim.HEADERS, target(), flags)
            home = folder / str(len(units))
            home.mkdir()
            (home / "kernel.cubin").write_text(f"{objects.build(made)}\nparki_{unit.name.rpartition('_')[0]}")
            data = (home / "kernel.cubin").read_bytes()
            meta = {"key": home.name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            (home / cache.META).write_text(json.dumps(meta))
            paths.append(home / "kernel.cubin")
        return paths

    one = devices.Device(0, "stand-in", "sm_90", 1 << 30, "none", SHARED, 32, 4)
    monkeypatch.setattr(devices, "cupy", lambda: xp)
    monkeypatch.setattr(devices, "current", lambda: one)
    monkeypatch.setattr(devices, "missing", lambda kind: None if kind == "Cuda" else "no HIP")
    monkeypatch.setattr(rtc, "build_many", compiled)
    assert spaces.array_module(CUDA) is xp
    return driver, units
