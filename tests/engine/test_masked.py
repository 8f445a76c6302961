"""pk_masked.h for every length, element and mask: compiled for each kind of x86 processor, run where this one can.

A kernel for AVX-512 must also compile on a machine without it, where nobody would see that it does not.
"""

import ctypes
import itertools
import subprocess

import pytest

from tests.engine.test_vector_math import BUILDS, FLAGS, INCLUDE, X86, compiler, features

PROCESSORS = {
    "AVX-512": (64, "-march=x86-64-v4", {"avx512f", "avx512dq", "avx512vl", "avx512bw", "avx512cd"}),
    "AVX-512, short vectors": (32, "-march=x86-64-v4", {"avx512f", "avx512dq", "avx512vl", "avx512bw", "avx512cd"}),
    "AVX2": (32, "-march=x86-64-v3", {"avx2", "fma", "bmi2"}),
    "SSE": (16, "-march=x86-64", set()),
    "this": (BUILDS["16"][0], "-O1", set()),
}
# Number of the first check that fails for elements T in vectors of V, with masks of LS bytes and L lanes, or 0.
CHECKS = """
#include "pk_host.h"
template <class T, class V, int LS, int L>
PK_NOINLINE int check(unsigned pattern) {
  typedef pk_vec<typename pk_int_of<LS>::type, L> I;
  typedef pk_mask<LS, L> M;
  const M m = ((pk_splat<I>(pattern) >> pk_iota<pk_elem<I>, L>()) & 1) != 0;
  T from[L], into[L], side[L + 1], ends[2 * L];
  for (int l = 0; l < L; l++) from[l] = (T)(l + 3), into[l] = side[l] = ends[l] = ends[L + l] = 99;
  side[L] = 99;
  const V v = pk_load<V>(from, m), all = pk_load<V>(from, pk_true{});
  for (int l = 0; l < L; l++)
    if (pk_get(v, l) != (pattern >> l & 1 ? l + 3 : 0)) return 1;
  pk_store(into, all, m);
  for (int l = 0; l < L; l++)
    if (into[l] != (pattern >> l & 1 ? (T)(l + 3) : (T)99)) return 2;
  int n = 0;
  pk_compress(side, all, m);
  pk_compress_in_scratch(ends, all, m);
  for (int l = 0; l < L; l++)
    if (pattern >> l & 1) {
      if (side[n] != (T)(l + 3) || ends[n] != (T)(l + 3)) return 3;
      n++;
    }
  if (pk_kept(m) != n) return 4;
  for (int l = n; l <= L; l++)
    if (side[l] != 99) return 5;
  return 0;
}
template <class T, class V, int LS, int L>
int checks() {
  const unsigned patterns[] = {0u, ~0u, 1u, 1u << (L - 1), (1u << (L - 1)) - 1, 0xa5a5u, 0x5a5bu};
  for (unsigned p : patterns)
    if (const int e = check<T, V, LS, L>(p)) return 1000 * LS + 10 * L + e;
  return 0;
}
template <int LS, int L>
int kinds() {
  const int e[] = {checks<uint8_t, pk_vec<int64_t, L>, LS, L>(), checks<uint8_t, pk_vec<int32_t, L>, LS, L>(),
                   checks<int32_t, pk_vec<int32_t, L>, LS, L>(), checks<int32_t, pk_vec<int64_t, L>, LS, L>(),
                   checks<int64_t, pk_vec<int64_t, L>, LS, L>(), checks<float, pk_vec<float, L>, LS, L>(),
                   checks<float, pk_vec<double, L>, LS, L>(), checks<double, pk_vec<double, L>, LS, L>()};
  for (int k = 0; k < 8; k++) if (e[k]) return 100000 * (k + 1) + e[k];
  return 0;
}
extern "C" int masked() {
  const int e[] = {kinds<LANE, 2>(), kinds<LANE, PK_BYTES / 8>(), kinds<LANE, PK_BYTES / 4>()};
  for (int x : e) if (x) return x;
  return 0;
}
"""


#: Compilers, processors and bytes of a lane: every run has each processor with both compilers, one for each size.
ALL = list(itertools.product(["g++", "clang++-19"], PROCESSORS, [8, 4]))
TURNS = [0, 1, 1, 0]  # of two compilers and two sizes


@pytest.mark.parametrize(
    ("name", "processor", "lane"),
    [pytest.param(*of, marks=[pytest.mark.slow] * TURNS[k // 10 * 2 + k % 2]) for k, of in enumerate(ALL)],
)
def test_lanes_of_every_element(name, processor, lane, tmp_path):
    size, target, needs = PROCESSORS[processor]
    if not X86 and processor != "this":
        pytest.skip("x86 alone has these processors")
    text = CHECKS.replace("LANE", str(lane))
    (tmp_path / "all.cpp").write_text(f"#define PK_LANE_BYTES {lane}\n#define PK_OPEN_LISTS 1\n{text}", "utf-8")
    flags = [*FLAGS, "-O1", target, f"-DPK_BYTES={size}", f"-I{INCLUDE}", "-shared", "-Wno-unused"]
    subprocess.run([compiler(name), *flags, "-o", tmp_path / "all.so", tmp_path / "all.cpp"], check=True)
    if needs <= features():
        assert ctypes.CDLL(str(tmp_path / "all.so")).masked() == 0
