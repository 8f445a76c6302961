"""Loops written by hand in C++, with vector types and as plain scalars, that the benchmarks compare with."""

import ctypes
import time

import numpy as np

from parki.engine import HOST_HEADERS, loading, objects, target

# Laplace, all pairs: lanes are targets, sources are broadcast, 1/r by the engine's own rsqrt.
VECTOR_LAPLACE = """
#define PK_LANE_BYTES 8
#include "pk_host.h"
typedef pk_vec<double, PK_BYTES / 8> V;
extern "C" void pk_run(const double* xt, long nt, const double* src, long ns, double* u) {
  const int L = PK_BYTES / 8;
  for (long i = 0; i + L <= nt; i += L) {
    const V x = pk_load<V>(xt + i, pk_true{}), y = pk_load<V>(xt + nt + i, pk_true{});
    const V z = pk_load<V>(xt + 2 * nt + i, pk_true{});
    V acc = {};
    for (long j = 0; j < ns; j++) {
      const V dx = x - src[4 * j], dy = y - src[4 * j + 1], dz = z - src[4 * j + 2];
      const V r2 = dx * dx + dy * dy + dz * dz;
      const V w = pk_rsqrt(r2);
      acc += src[4 * j + 3] * pk_select(r2 > 0.0, w, V{});
    }
    pk_store(u + i, acc, pk_true{});
  }
}
"""

# Near fields over 27 cells, as the formulas stand (Gaussian split, erfc and exp).  A source is a row of WIDTH numbers:
# its position and strengths.
_SCALAR = """
extern "C" double erfc(double); extern "C" double exp(double); extern "C" double sqrt(double);
extern "C" void pk_run(const double* x, const double* s, const int* begin, const int* n, const double* box, double rc,
                       double xi, long targets, double* u) {
  const double w[3] = {box[0] / n[0], box[1] / n[1], box[2] / n[2]}, root = 1.1283791670955126 * xi;
  for (long i = 0; i < targets; i++) {
    int c[3];
    for (int d = 0; d < 3; d++) { c[d] = (int)(x[3 * i + d] / w[d]); if (c[d] >= n[d]) c[d] = n[d] - 1; }
    double ux = 0, uy = 0, uz = 0;
    for (int a = -1; a <= 1; a++) for (int b = -1; b <= 1; b++) for (int e = -1; e <= 1; e++) {
      const int o[3] = {c[0] + a, c[1] + b, c[2] + e};
      int m[3]; double shift[3];
      for (int d = 0; d < 3; d++) {
        const int image = o[d] < 0 ? -1 : o[d] >= n[d] ? 1 : 0;
        m[d] = o[d] - image * n[d]; shift[d] = image * box[d];
      }
      const int cell = (m[0] * n[1] + m[1]) * n[2] + m[2];
      for (int j = begin[cell]; j < begin[cell + 1]; j++) {
        const double dx = x[3 * i] - s[WIDTH * j] - shift[0], dy = x[3 * i + 1] - s[WIDTH * j + 1] - shift[1],
                     dz = x[3 * i + 2] - s[WIDTH * j + 2] - shift[2], r2 = dx * dx + dy * dy + dz * dz;
        if (r2 >= rc * rc || r2 == 0) continue;
        const double* f = s + WIDTH * j + 3;
        const double r = sqrt(r2), A = erfc(xi * r) / r;
        PAIR
      }
    }
    STORE
  }
}
"""
_VECTOR = "u[3 * i] = ux; u[3 * i + 1] = uy; u[3 * i + 2] = uz;"
_STOKESLET = """const double B = root * exp(-xi * xi * r2), rf = dx * f[0] + dy * f[1] + dz * f[2];
        const double along = (A + B) / r2 * rf;
        ux += (A - B) * f[0] + along * dx;
        uy += (A - B) * f[1] + along * dy;
        uz += (A - B) * f[2] + along * dz;"""
_BOTH_LAYERS = """const double *q = f + 3, *nn = f + 6, B = root * exp(-xi * xi * r2), C = 2 * xi * xi * B;
        const double rf = dx * f[0] + dy * f[1] + dz * f[2], rq = dx * q[0] + dy * q[1] + dz * q[2],
                     rn = dx * nn[0] + dy * nn[1] + dz * nn[2], qn = q[0] * nn[0] + q[1] * nn[1] + q[2] * nn[2];
        const double along = (A + B) / r2 * rf + C * qn - (6 * (A + B) / r2 + 2 * C) * rq * rn / r2;
        ux += (A - B) * f[0] + along * dx + C * (rn * q[0] + rq * nn[0]);
        uy += (A - B) * f[1] + along * dy + C * (rn * q[1] + rq * nn[1]);
        uz += (A - B) * f[2] + along * dz + C * (rn * q[2] + rq * nn[2]);"""


def _scalar(width: int, pair: str, store: str = _VECTOR) -> str:
    return _SCALAR.replace("WIDTH", str(width)).replace("PAIR", pair).replace("STORE", store)


SCALAR = {
    "laplace": _scalar(4, "ux += f[0] * A;", "u[i] = ux;"),
    "stokes_sl": _scalar(6, _STOKESLET),
    "stokes_comb": _scalar(12, _BOTH_LAYERS),
}

# All pairs as published treecodes write them: the compiler makes vectors of sources, with one division and one root for
# each pair.
_TREECODE = """
#include <math.h>
extern "C" void pk_run(const double* x, long nt, const double* s, long ns, double kappa, double* u) {
  const double *sx = s, *sy = s + ns, *sz = s + 2 * ns, *q = s + 3 * ns;
  for (long i = 0; i < nt; i++) {
    const double tx = x[i], ty = x[nt + i], tz = x[2 * nt + i];
    double sum = 0.0;
    for (long j = 0; j < ns; j++) {
      const double dx = tx - sx[j], dy = ty - sy[j], dz = tz - sz[j];
      const double r2 = dx * dx + dy * dy + dz * dz;
      if (r2 > 2.2250738585072014e-308) { const double r = sqrt(r2); sum += VALUE; }
    }
    u[i] = sum;
  }
}
"""
# The same, as by compilers that take estimates for reciprocal roots; ns is a multiple of the lanes.
_ESTIMATED = """
#define PK_LANE_BYTES 8
#include "pk_host.h"
typedef pk_vec<double, PK_BYTES / 8> V;
extern "C" void pk_run(const double* x, long nt, const double* s, long ns, double kappa, double* u) {
  constexpr int L = PK_BYTES / 8;
  for (long i = 0; i < nt; i++) {
    V acc = {};
    for (long j = 0; j < ns; j += L) {
      const V dx = x[i] - pk_load<V>(s + j, pk_true{}), dy = x[nt + i] - pk_load<V>(s + ns + j, pk_true{});
      const V dz = x[2 * nt + i] - pk_load<V>(s + 2 * ns + j, pk_true{});
      const V r2 = dx * dx + dy * dy + dz * dz;
      const V w = pk_rsqrt(r2);
      acc += pk_load<V>(s + 3 * ns + j, pk_true{}) * pk_select(r2 > 0.0, w, V{});
    }
    double sum = 0.0;
    for (int l = 0; l < L; l++) sum += acc[l];
    u[i] = sum;
  }
}
"""
TREECODES = {
    "coulomb": (_TREECODE.replace("VALUE", "q[j] / r"), _ESTIMATED),
    "yukawa": (_TREECODE.replace("VALUE", "q[j] * exp(-kappa * r) / r"),),
}
#: Flags that published codes are compiled with; the compiler chooses the width of vectors for the processor.
# They are those of -ffast-math without its start-up code, which makes the process flush subnormal numbers to zero.
FAST = (
    "-O3", "-mprefer-vector-width=none", "-fno-math-errno", "-ffinite-math-only", "-fassociative-math",
    "-freciprocal-math", "-fno-signed-zeros", "-fno-trapping-math",
)  # fmt: skip


def yardstick(runs: int = 60) -> list[float]:
    """Return the seconds of each run of a fixed piece of work, 4 million pairs: the machine's speed at present."""
    rng = np.random.default_rng(0)
    xt, src, u = rng.random((3, 2048)), rng.random((2000, 4)), np.empty(2048)
    run, times = compiled("bench_vector_laplace", VECTOR_LAPLACE), []
    for _ in range(runs):
        start = time.perf_counter()
        call(run, xt, 2048, src, 2000, u)
        times.append(time.perf_counter() - start)
    return times


def compiled(name: str, source: str, flags: tuple[str, ...] = ()) -> ctypes._CFuncPtr:
    """Return the function ``pk_run`` of a text, compiled with the engine's own flags and `flags`."""
    headers = HOST_HEADERS if "pk_host.h" in source else ()
    properties = {"name": name, "label": f"{name} (for comparison)", "headers": headers, "target": target()}
    unit = objects.Unit(source=source, flags=flags, **properties)
    run = loading.load(objects.build(unit)).pk_run
    run.restype = None
    return run


def call(run: ctypes._CFuncPtr, *args: object) -> None:
    """Call a function with arrays as pointers, floats as double and integers as long."""
    arguments = []
    for a in args:
        if hasattr(a, "ctypes"):
            arguments.append(ctypes.c_void_p(a.ctypes.data))
        else:
            arguments.append(ctypes.c_double(a) if isinstance(a, float) else ctypes.c_long(a))
    run(*arguments)
