"""Loops that measure a host's rates: arithmetic as kernels compute it, memory, atomics."""

import ctypes
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, thread_time

import numpy as np

from parki.perfmodels.bench import handwritten

#: Classes of operations that are measured in registers, and over an array in the first-level cache.
CHAINS = ("fma", "add", "mul", "compare", "integer")
ARRAYS = (
    "div", "sqrt", "rsqrt", "exp", "expm1", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "erf", "erfc", "pow",
)  # fmt: skip
STEPS, CHAIN_LENGTH, LENGTH = 12, 256, 512  # independent chains, operations of each in a turn; numbers of an array
CTYPES = {"float64": "double", "float32": "float"}
LEAST = 2e-3  # seconds that a single measurement should last, to be longer than the clock's and the system's noise
FALLBACK = {"l1": 32 << 10, "l2": 1 << 20, "l3": 16 << 20}  # bytes of caches, where the system does not say
MOST = 256 << 20  # most bytes of an array beyond all caches

# Chains: vectors that depend on themselves only, more of them than a pipe's latency.  Twelve and their two operands fit
# the 16 registers that some machines have.
_ARITHMETIC = """
#define PK_LANE_BYTES SIZE
#include "pk_host.h"
typedef pk_vec<REAL, PK_BYTES / sizeof(REAL)> V;
typedef pk_uints<V> U;
#define TWELVE _Pragma("GCC unroll 12") for (int k = 0; k < 12; k++)
template <class T, class F>
PK_NOINLINE void chain(long turns, REAL* data, F step) {
  T a[12];
  const T b = pk_bits<T>(pk_splat<V>(data[0])), c = pk_bits<T>(pk_splat<V>(data[1]));
  TWELVE a[k] = pk_bits<T>(pk_splat<V>(data[2 + k]));
  for (long i = 0; i < turns * 256; i++) { TWELVE a[k] = step(a[k], b, c); }
  T sum = {};
  TWELVE sum += a[k];
  data[14] = pk_bits<V>(sum)[0];
}
template <class F>
PK_NOINLINE void array(long turns, REAL* data, F value) {
  for (long i = 0; i < turns; i++) {
    for (int k = 0; k < 512; k += pk_lanes<V>)
      pk_store(data + 512 + k, value(pk_load<V>(data + k, pk_true{})), pk_true{});
    asm volatile("" : : "r"(data) : "memory");
  }
}
extern "C" void pk_run(long which, long turns, REAL* data) {
  switch (which) {
#define CHAIN(N, T, VALUE) case N: chain<T>(turns, data, [](T a, T b, T c) PK_LAMBDA { return VALUE; }); break;
#define ARRAY(N, VALUE) case N: array(turns, data, [](V x) PK_LAMBDA { return VALUE; }); break;
CASES
  }
}
"""
_VALUES = {
    "fma": "a * b + c",
    "add": "a + c",
    "mul": "a * b",
    "compare": "pk_greater(pk_lesser(a, b), c)",
    "integer": "(a ^ b) + c",
    "div": "REAL(1) / x",
    "pow": "pk_pow(x, pk_splat<V>(1.7))",
}

# One pass that reads, one that updates in place: three times the bytes of the array move.
_MEMORY = """
#define PK_LANE_BYTES 8
#include "pk_host.h"
typedef pk_vec<double, PK_BYTES / 8> V;
PK_NOINLINE void stream(double* data, long n) {
  constexpr int L = pk_lanes<V>;
  V a = {}, b = {}, c = {}, d = {};
  for (long i = 0; i + 4 * L <= n; i += 4 * L) {
    a += pk_load<V>(data + i, pk_true{});
    b += pk_load<V>(data + i + L, pk_true{});
    c += pk_load<V>(data + i + 2 * L, pk_true{});
    d += pk_load<V>(data + i + 3 * L, pk_true{});
  }
  const V s = pk_splat<V>(1e-300) * ((a + b) + (c + d));
  for (long i = 0; i + L <= n; i += L) pk_store(data + i, pk_load<V>(data + i, pk_true{}) + s, pk_true{});
}
PK_NOINLINE void atomics(double* data, long n) {
  for (long i = 0; i < n; i++) pk_atomic<pk_op_add>(data + i, 1e-300, 2);
}
extern "C" void pk_run(long which, long turns, double* data, long n) {
  for (long t = 0; t < turns; t++) {
    which ? atomics(data, n) : stream(data, n);
    asm volatile("" : : "r"(data) : "memory");
  }
}
"""
STREAM, ATOMICS = 0, 1


@dataclass
class Probe:
    """A rate to be measured: `run(turns)` does `amount` in each turn; `rate` is the best found, per second.

    `clock` is by default this thread's processor time, which stands still while others have the core.
    """

    name: tuple[str, ...]
    run: Callable[[int], object]
    amount: float
    clock: Callable[[], float] = thread_time
    data: np.ndarray | None = None  # array that `run` works on
    turns: int = 1
    seconds: float = field(default=np.inf)  # of a turn

    @property
    def rate(self) -> float:
        """Amount per second."""
        return self.amount / self.seconds

    def plan(self, duration: float = LEAST) -> None:
        """Find the number of turns that last long enough; a pause of the system in one of three runs does not count."""
        while True:
            seconds = min(self.once() for _ in range(3))
            if seconds >= 0.5 * duration or self.turns >= 1 << 24:
                return
            self.turns = max(2 * self.turns, int(self.turns * duration / max(seconds, 1e-7)))

    def once(self) -> float:
        """Measure once more and return the seconds that passed."""
        start = self.clock()
        self.run(self.turns)
        seconds = max(self.clock() - start, 1e-9)
        self.seconds = min(self.seconds, seconds / self.turns)
        return seconds


def arithmetic(dtype: str, lanes: int) -> list[Probe]:
    """Return a probe for each class of operations, in vectors of this number of lanes."""
    cases = [f"CHAIN({n}, {'U' if name == 'integer' else 'V'}, {_VALUES[name]})" for n, name in enumerate(CHAINS)]
    cases += [f"ARRAY({n}, {_VALUES.get(name, f'pk_{name}(x)')})" for n, name in enumerate(ARRAYS, len(CHAINS))]
    head = f"#define REAL {CTYPES[dtype]}\n#define SIZE {np.dtype(dtype).itemsize}\n"
    source = f"{head}{_ARITHMETIC}".replace("CASES", "\n".join(cases))
    function = handwritten.compiled(f"calibrate_{dtype}", source)
    chain, array = np.full(16, 1e-30, dtype), _aligned(2 * LENGTH, dtype)
    chain[0], chain[2:14], array[:LENGTH] = 1.0, 1.0, np.linspace(1e-3, 7.0, LENGTH)
    probes = []
    for n, name in enumerate((*CHAINS, *ARRAYS)):
        amount = float(LENGTH)
        if name in CHAINS:
            amount = float((2 if name in ("compare", "integer") else 1) * STEPS * CHAIN_LENGTH * lanes)
        data = chain if name in CHAINS else array
        probes.append(Probe((dtype, name), _call(function, n, data), amount, data=data))
    return probes


def memory(threads: int) -> list[Probe]:
    """Return probes of each level of memory, of memory with all threads at once, and of atomic additions."""
    function = handwritten.compiled("calibrate_memory", _MEMORY)
    sizes = caches()
    last = max(sizes.values())
    bytes_of = {"l1": sizes["l1"] // 2, "l2": min(sizes["l2"] // 2, 8 * sizes["l1"])}
    bytes_of["l3"] = min(max(4 * sizes["l2"], 2 << 20), max(sizes["l3"] // 4, 2 * sizes["l2"]))
    bytes_of["dram"] = min(4 * last, MOST)
    probes = []
    for level, size in bytes_of.items():
        data = _aligned(size // 8, "float64")
        probes.append(Probe(("bandwidth", level), _call(function, STREAM, data, data.size), 3.0 * data.nbytes))
    if threads > 1:
        share = data.size // threads // 64 * 64
        parts = [data[k * share : (k + 1) * share] for k in range(threads)]
        runs = [_call(function, STREAM, part, part.size) for part in parts]
        run = functools.partial(together, runs)
        probes.append(Probe(("bandwidth", "dram_all"), run, 24.0 * share * threads, perf_counter))
    numbers = _aligned(LENGTH, "float64")
    probes.append(Probe(("atomics",), _call(function, ATOMICS, numbers, LENGTH), float(LENGTH)))
    return probes


def everywhere(probe: Probe, threads: int) -> Probe:
    """Return a probe of the same work on `threads` cores at once: below `threads` times the rate, others use some."""
    run = functools.partial(together, [probe.run] * threads)
    return Probe(("everywhere",), run, threads * probe.amount, perf_counter, turns=probe.turns)


def caches() -> dict[str, int]:
    """Return the bytes of the first three levels of data caches, as the system says or as is usual."""
    sizes = dict(FALLBACK)
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError:
            continue
        unit = {"K": 10, "M": 20, "G": 30}.get(size[-1:], 0)
        if kind != "Instruction" and f"l{level}" in sizes and size.rstrip("KMG").isdecimal():
            sizes[f"l{level}"] = int(size.rstrip("KMG")) << unit
    return sizes


def _aligned(size: int, dtype: str) -> np.ndarray:
    """Return an array of ones that begins with a cache line, so that vectors do not cross lines."""
    array = np.ones(size + 64, dtype)
    offset = -array.ctypes.data % 64 // array.itemsize
    return array[offset : offset + size]


def _call(function: ctypes._CFuncPtr, index: int, data: np.ndarray, *counts: int) -> Callable[[int], None]:
    return lambda turns: handwritten.call(function, index, turns, data, *counts)


def together(runs: list[Callable[[int], None]], turns: int) -> None:
    """Run all at once, each in a thread of its own; foreign functions run without Python's lock."""
    gate = threading.Barrier(len(runs))

    def one(run: Callable[[int], None]) -> None:
        gate.wait()
        run(turns)

    with ThreadPoolExecutor(len(runs)) as pool:
        list(pool.map(one, runs))
