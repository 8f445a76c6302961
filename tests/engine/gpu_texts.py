"""Kernels written by hand in the vocabulary of pk_gpu.h, and helpers that compile them and run them on the host."""

import ctypes
import functools
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parki.engine.compile import objects
from parki.engine.run.gpusim import Fault, SimLaunch, fault_of
from parki.perfmodels.machinecode import amd

TYPES = {"double": np.float64, "float": np.float32, "int32_t": np.int32, "int64_t": np.int64}
FLAGS = (
    "-std=gnu++17",
    "-shared",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Werror",
    "-DPK_BLOCK=1024",
    "-DPK_WIDE=0",
)

ARGS = """#include "pk_gpu.h"
struct pk_args {
  const double* xd; const float* xf; const int32_t* xi; const int64_t* xl;
  double* ud; float* uf; int32_t* ui; int64_t* ul;
  int64_t pk_len_x, pk_len_u;
  int32_t mode, n;
};
#define VIEWS                                      \\
  const pk_in<double> xd(pk_a.xd, pk_a.pk_len_x);  \\
  const pk_in<float> xf(pk_a.xf, pk_a.pk_len_x);   \\
  const pk_in<int32_t> xi(pk_a.xi, pk_a.pk_len_x); \\
  const pk_in<int64_t> xl(pk_a.xl, pk_a.pk_len_x); \\
  const pk_out<double> ud(pk_a.ud, pk_a.pk_len_u); \\
  const pk_out<float> uf(pk_a.uf, pk_a.pk_len_u);  \\
  const pk_out<int32_t> ui(pk_a.ui, pk_a.pk_len_u); \\
  const pk_out<int64_t> ul(pk_a.ul, pk_a.pk_len_u)
"""

# For every thread and type: sum of its row, sum of its block, exclusive prefix sum in the block, total of the scan, the
# same two of its row, and of the row's count of positive numbers.
SUMS = (
    ARGS
    + """
#define ONE(x, u, T)                                        \\
  {                                                         \\
    const T v = x.get(at, 1);                               \\
    u.set(8 * at, pk_row_sum(v, 2), 3);                     \\
    u.set(8 * at + 1, pk_team_sum(v, 4), 5);                \\
    T total, row_total, count;                              \\
    const T before = pk_team_scan(v, total, 6);             \\
    u.set(8 * at + 2, before, 7);                           \\
    u.set(8 * at + 3, total, 8);                            \\
    const T row_before = pk_row_scan(v, row_total, 9);      \\
    u.set(8 * at + 4, row_before, 10);                      \\
    u.set(8 * at + 5, row_total, 11);                       \\
    const T listed = pk_row_count((T)(v > 0), count, 12);   \\
    u.set(8 * at + 6, listed, 13);                          \\
    u.set(8 * at + 7, count, 14);                           \\
  }
PK_KERNEL(sums) {
  VIEWS;
  const pk_index at = PK_BLOCK_RANK * PK_THREADS + PK_THREAD;
  ONE(xd, ud, double) ONE(xf, uf, float) ONE(xi, ui, int32_t) ONE(xl, ul, int64_t)
}
PK_ENTRY(sums)
"""
)

# Allowed accesses that might be taken for a race; u[i] is filled block by block, 8 elements a thread.
ALLOWED = (
    ARGS
    + """
PK_CONSTANT const double weights[] = {1.0, 0.5, 0.25, 0.125};
PK_FUNCTION double weighted(const double v, const int32_t k) { return v * weights[k & 3]; }
#define OWN(k) ((at) + (k)*PK_THREADS)
#define UPDATES(u, T)                                                  \\
  pk_atomic<pk_op_add>(u, shared, (T)(PK_THREAD + 1), 20);             \\
  pk_atomic<pk_op_sub>(u, shared + 1, (T)(PK_THREAD + 1), 21);         \\
  pk_atomic<pk_op_max>(u, shared + 2, (T)((PK_THREAD * 7) % 50), 22);  \\
  pk_atomic<pk_op_min>(u, shared + 3, (T)(-((PK_THREAD * 7) % 50)), 23);
PK_KERNEL(allowed) {
  VIEWS;
  PK_SCRATCH_BEGIN;
  PK_SCRATCH(int32_t, ranks, 1, 1);
  PK_SCRATCH(double, tile, PK_THREADS, 2);
  PK_SCRATCH(float, heads, PK_TEAM_SIZE, 3);
  const int32_t threads = PK_THREADS, me = PK_THREAD, lane = PK_LANE, row = PK_TEAM_RANK;
  const pk_index at = PK_BLOCK_RANK * threads * 8 + me, shared = PK_BLOCK_RANK * 4;
  // 0: the tile reversed, twice over, with a barrier on each side of what is written
  double v = xd.get(PK_BLOCK_RANK * threads + me, 4);
  for (int32_t turn = 0; turn < 2; turn++) {
    tile.set(me, v, 5);
    PK_BARRIER(6);
    v = 2.0 * tile.get(threads - 1 - me, 7);
    PK_BARRIER(8);
  }
  ud.set(OWN(0), weighted(v, 2), 9);
  // 1: from one lane to the others of its row, and back
  if (lane == 0) heads.set(row, (float)row, 10);
  PK_ROW_SYNC(11);
  ud.set(OWN(1), heads.get(row, 12), 13);
  PK_ROW_SYNC(14);
  if (lane == PK_LANES - 1) heads.set(row, (float)(row + 1), 15);
  PK_ROW_SYNC(16);
  ud.set(OWN(2), ud.get(OWN(1), 17) + heads.get(row, 18), 19);
  // 3: atomics among themselves, then what they left
  UPDATES(uf, float) UPDATES(ui, int32_t) UPDATES(ul, int64_t)
  if (me == 0) ranks.set(0, 0, 24);
  PK_BARRIER(25);
  const int32_t rank = pk_atomic<pk_op_add>(ranks, 0, 1, 26);
  PK_BARRIER(27);
  tile.set(rank, 3.0, 28);  // scattered, but every element once
  PK_BARRIER(29);
  ud.set(OWN(3), tile.get(me, 30) + ranks.get(0, 31), 32);
  const float ends = uf.get(shared, 33) + uf.get(shared + 3, 34);
  ud.set(OWN(4), ends + ui.get(shared + 1, 35) + (double)ul.get(shared + 2, 36), 37);
  // 5: rows do as many turns as they like
  double s = 0;
  for (int32_t turn = 0; turn <= (pk_a.mode == 1 ? 0 : row % 3); turn++) s += pk_row_sum(1.0, 38);
  ud.set(OWN(5), s, 39);
  // 6: what one block writes at the end another writes as well
  ud.set(OWN(6), pk_sqrt(2.0) + pk_rsqrt(4.0f) + pk_floor(pk_fmax(-0.5, 1.5)) + pk_pow(2.0f, 3.0f), 40);
  ud.set(OWN(7), pk_inf<double>() > 1e300 && pk_inf<float>() > 1e38f ? 1.0 : 0.0, 41);
  ud.set(pk_a.pk_len_u - 1 - me, 0.0, 42);
}
PK_ENTRY(allowed)
"""
)

# One fault for each mode; site n is written at line n of a file named in `SITES`.
FAULTS = (
    ARGS
    + """
PK_KERNEL(faults) {
  VIEWS;
  PK_SCRATCH_BEGIN;
  PK_SCRATCH(double, tile, pk_a.mode == 6 ? pk_a.n : 64, 1);
  PK_SCRATCH(float, rest, 3, 2);
  const int32_t me = PK_THREAD, next = (me + 1) % PK_THREADS, lane = PK_LANE;
  switch (pk_a.mode) {
    case 1: ud.set(8 * PK_BLOCK_RANK + me, xd.get(PK_BLOCK_RANK == 2 && me == 5 ? pk_a.pk_len_x : 0, 3), 4); break;
    case 2: ud.set(me - (PK_BLOCK_RANK == 2 && me == 0), 1.0, 5); break;
    case 3: if (me == 3) rest.set(3, 1.0f, 6); break;
    case 4: if (me == 4) rest.set(-1, 1.0f, 7); break;
    case 5: if (me == 2) pk_atomic<pk_op_add>(ui, (pk_index)pk_a.pk_len_u, 1, 8); break;
    case 6: break;
    case 7: if (me == 3) { PK_BARRIER(9); } else { PK_BARRIER(10); } break;
    case 8: if (me == 5) return; PK_BARRIER(11); break;
    case 9: if (me != 6) pk_team_sum(1.0, 12); break;
    case 10:  // the neighbour's element, without a barrier
      tile.set(me, 0.0, 13);
      PK_BARRIER(14);
      tile.set(me, 1.0 + me, 15);
      ud.set(me, tile.get(next, 16), 17);
      break;
    case 11: tile.set(0, 1.0, 18); break;
    case 12:
      if (me == 0) tile.set(0, 1.0, 19);
      PK_BARRIER(20);
      pk_atomic<pk_op_add>(tile, 0, 1.0, 21);
      if (me == 1) ud.set(0, tile.get(0, 22), 23);
      break;
    case 13: ud.set(me, ud.get(next, 24) + 1.0, 25); break;
    case 14: ud.set(7, 1.0, 26); break;
    case 15: pk_atomic<pk_op_max>(ud, 3, 1.0, 27); if (me == 2) ud.set(3, 5.0, 28); break;
    case 16: ud.set(me, tile.get(me, 29), 30); break;
    case 17: if (me < 7) tile.set(me, 1.0, 31); PK_BARRIER(32); pk_atomic<pk_op_add>(tile, me, 1.0, 33); break;
    case 18: if (me != 5) pk_row_sum(1.0, 34); break;
    case 19: if (me == 6) { PK_BARRIER(35); } PK_ROW_SYNC(36); if (me != 6) { PK_BARRIER(35); } break;
    case 20: if (lane == 1) { PK_ROW_SYNC(37); } else { PK_ROW_SYNC(38); } break;
    case 21: if (lane == 0) ud.set(PK_TEAM_RANK, 1.0, 39); ud.set(8 + me, ud.get(PK_TEAM_RANK, 40), 41); break;
    case 22: PK_ROW_SYNC(42); if (lane == 0) ud.set(0, 1.0, 43); PK_ROW_SYNC(44); break;
    case 23: ud.get(0, 45); PK_ROW_SYNC(46); if (me == pk_a.n) ud.set(0, 1.0, 47); break;
    // One updates, one reads or writes; waiting often enough, but once too few; among many others.
    case 25: if (me == 0) tile.set(0, 1.0, 48); if (me == 1) tile.set(0, 1.0, 49); break;
    case 26: if (me == 0) pk_atomic<pk_op_add>(ud, 0, 1.0, 50); if (me == 1) ud.get(0, 51); break;
    case 27: if (me == 0) pk_atomic<pk_op_add>(ud, 0, 1.0, 52); if (me == 1) ud.set(0, 1.0, 53); break;
    case 28: for (int32_t turn = 0; turn < (me == 5 ? 1 : 2); turn++) PK_BARRIER(54); break;
    case 29: for (int32_t turn = 0; turn < (me == 5 ? 1 : 2); turn++) PK_ROW_SYNC(55); break;
    case 30:
      for (int32_t k = 0; k < 1500; k++)
        if (me == 0) ud.get(k * (k + 1) / 2 % 4000, 56);
      if (me == 1) ud.set(pk_a.n, 1.0, 57);
      break;
    // Not through views, so not checked: what is wrong shows in the result only.
    case 24: pk_a.ud[me] = pk_a.ud[next] + 1.0; break;
  }
}
PK_ENTRY(faults)
"""
)
SITES = tuple((f"site{n}", f"kernel.py:{n}") for n in range(1, 58))

# pk_gpu.h as CUDA reads it, on the fibres of pk_threads.h: all threads of a block do the same shuffles, so that a
# shuffle involves the whole block.  A lane that a mask names must exist, and the mask must name the caller.
CUDA_ON_HOST = """
#include "pk_threads.h"
#include <math.h>
#define __device__
#define __global__
#define __constant__
#define __forceinline__ inline __attribute__((unused))
#define __launch_bounds__(n)
#define __shared__ thread_local
thread_local long long pk_all[4096];
struct pk_three { unsigned x, y; };
struct double2 { double x, y; };
struct float2 { float x, y; };
#define threadIdx (pk_three{(unsigned)pk_sim.now->lane, (unsigned)pk_sim.now->row})
#define blockDim (pk_three{(unsigned)pk_sim.lanes, (unsigned)pk_sim.rows})
#define blockIdx (pk_three{(unsigned)pk_sim.block, 0u})
static void __syncthreads() { pk_sim_barrier(1); }
static void check(unsigned mask) {
  const int first = pk_sim.now->id / 32 * 32, left = pk_sim.threads - first;
  if (!(mask >> (pk_sim.now->id % 32) & 1) || (left < 32 && mask >> left))
    pk_sim_fault((pk_sim_kind)99, 1, -1, mask, left, pk_sim.now->id, -1);
}
static void __syncwarp(unsigned mask) { check(mask); __syncthreads(); }
template <class T>
static T shuffle(unsigned mask, T v, int from) {  // from: thread of the block; itself where there is none
  check(mask);
  __builtin_memcpy(pk_sim.value + pk_sim.now->id, &v, sizeof v);
  __syncthreads();
  if (from >= pk_sim.threads) v = (T)77;  // any value: the lane does not exist
  else __builtin_memcpy(&v, pk_sim.value + from, sizeof v);
  __syncthreads();
  return v;
}
template <class T>
static T __shfl_xor_sync(unsigned mask, T v, int lane, int) { return shuffle(mask, v, pk_sim.now->id ^ lane); }
template <class T>
static T __shfl_down_sync(unsigned mask, T v, int d, int) {
  const int me = pk_sim.now->id;
  return shuffle(mask, v, me % 32 + d < 32 ? me + d : me);
}
template <class T>
static T __shfl_up_sync(unsigned mask, T v, int d, int) {
  const int me = pk_sim.now->id;
  return shuffle(mask, v, me % 32 >= d ? me - d : me);
}
template <class T>
static T __shfl_sync(unsigned mask, T v, int lane, int lanes) {
  return shuffle(mask, v, pk_sim.now->id / lanes * lanes + lane);
}
static inline unsigned __ballot_sync(unsigned mask, bool v) {
  unsigned bits = 0;
  for (int lane = 0; lane < 32; lane++) {
    const int from = pk_sim.now->id / 32 * 32 + lane;
    if (shuffle(mask, (int)v, from < pk_sim.threads ? from : pk_sim.now->id) && (mask >> lane & 1)) bits |= 1u << lane;
  }
  return bits;
}
#define __popc(v) __builtin_popcount(v)
template <class T>
static T __ldg(const T* p) { return *p; }
template <class T>
static T atomicAdd(T* p, T v) { const T old = *p; *p = old + v; return old; }
static inline int atomicSub(int* p, int v) { return atomicAdd(p, -v); }
template <class T>
static T atomicMax(T* p, T v) { const T old = *p; *p = v > old ? v : old; return old; }
template <class T>
static T atomicMin(T* p, T v) { const T old = *p; *p = v < old ? v : old; return old; }
template <class T>
static T atomicCAS(T* p, T seen, T made) { const T old = *p; if (old == seen) *p = made; return old; }
template <class To, class From>
static To bits(From v) { To w; __builtin_memcpy(&w, &v, sizeof w); return w; }
#define __float_as_int(v) bits<int>((float)(v))
#define __int_as_float(v) bits<float>((int)(v))
#define __double_as_longlong(v) bits<long long>((double)(v))
#define __longlong_as_double(v) bits<double>((long long)(v))
static inline double rsqrt(double v) { return 1 / sqrt(v); }
static inline float rsqrtf(float v) { return 1 / sqrtf(v); }
"""
CUDA_ENTRY = """
static void body() { {name}(*(const pk_args*)pk_sim.args); }
extern "C" void pk_run(pk_sim_launch* launch, const void* args) {
  if (pk_threads_open(launch, args, body)) pk_threads_run();
  pk_threads_close();
}
"""


class Arguments(ctypes.Structure):
    """Structure ``pk_args`` of all texts."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("xd", "xf", "xi", "xl", "ud", "uf", "ui", "ul")),
        ("pk_len_x", ctypes.c_int64),
        ("pk_len_u", ctypes.c_int64),
        ("mode", ctypes.c_int32),
        ("n", ctypes.c_int32),
    )


@dataclass
class Result:
    """Results of one launch: arrays by the names of `TYPES`, and the fault, if any."""

    u: dict[str, np.ndarray]
    fault: Fault | None


@dataclass
class Program:
    """Compiled text."""

    path: Path

    @functools.cached_property
    def entry(self) -> Any:
        run = ctypes.CDLL(str(self.path)).pk_run
        run.argtypes, run.restype = [ctypes.c_void_p, ctypes.c_void_p], None
        return run

    def run(self, block=(4, 2), grid=1, x=None, size=4096, mode=0, n=0, shared=2048, warp=32, seed=0, order=0):
        """Launch the kernel on copies of `x` in every type, and on outputs of `size` zeros in every type."""
        xs = {name: np.asarray(np.zeros(1) if x is None else x).astype(kind) for name, kind in TYPES.items()}
        us = {name: np.zeros(size, kind) for name, kind in TYPES.items()}
        pointers = [a.ctypes.data for a in (*xs.values(), *us.values())]
        arguments = Arguments(*pointers, len(xs["double"]), size, mode, n)
        launch = SimLaunch(grid, *block, warp, shared, seed, order)
        self.entry(ctypes.addressof(launch), ctypes.addressof(arguments))
        return Result(us, fault_of(launch))


def compile_text(compiler: str, text: str, path: Path, *flags: str) -> Program:
    """Compile a text for the host; every warning is an error.  Add ``-DPK_SIM`` to `flags` for the simulator."""
    source = path.with_suffix(".cpp")
    source.write_text(text)
    command = [compiler, *FLAGS, "-O1", *flags, f"-I{objects.INCLUDE}", str(source), "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return Program(path)


# Device compilers -----------------------------------------------------------------------------------------------------
DEVICE_FLAGS = ("--std=c++17", "-DPK_BLOCK=1024", "-DPK_WIDE=1")

# Compiles argv[1] with the header argv[2] and the options that follow; 77 if there is no hipRTC.
HIPRTC = """
import ctypes, sys
def text(size, get):
    n = ctypes.c_size_t()
    size(program, ctypes.byref(n))
    made = ctypes.create_string_buffer(n.value + 1)
    get(program, made)
    return made.value.decode()
for name in ("hiprtc", "amdhip64"):
    for end in (".so", ".so.7", ".so.6", ".so.5"):
        try:
            rtc = ctypes.CDLL(f"lib{name}{end}")
            rtc.hiprtcCreateProgram
        except (OSError, AttributeError):
            continue
        break
    else:
        continue
    break
else:
    sys.exit(77)
source, header = (open(path, "rb").read() for path in sys.argv[1:3])
strings = lambda *parts: (ctypes.c_char_p * len(parts))(*parts)
program, options = ctypes.c_void_p(), [part.encode() for part in sys.argv[3:]]
assert rtc.hiprtcCreateProgram(ctypes.byref(program), source, b"k.hip", 1, strings(header), strings(b"pk_gpu.h")) == 0
bad = rtc.hiprtcCompileProgram(program, len(options), strings(*options))
print(text(rtc.hiprtcGetProgramLogSize, rtc.hiprtcGetProgramLog))
sys.exit(1 if bad else 0)
"""


def hip_command() -> list[str] | str:
    """Return the command of the newest clang that compiles HIP with the runtime's headers, or the last error."""
    found = amd.command()
    return found if isinstance(found, str) else [*found, "-DPK_HIP", "-Wall", "-Wextra", "-O2", *DEVICE_FLAGS]


def compile_hip(command: list[str], text: str, arch: str) -> subprocess.CompletedProcess[str]:
    """Compile a text to assembler on stdout."""
    return amd.run([*command, f"--offload-arch={arch}"], text)
