"""pk_vec.h and pk_math.h, compiled for each vector size of this machine, against long double and mpmath."""

import ctypes
import platform
import re
import shutil
import subprocess
from pathlib import Path

import mpmath
import numpy as np
import pytest

import parki.engine.include

INCLUDE = Path(parki.engine.include.__file__).parent
FLAGS = "-std=gnu++17 -fPIC -fno-math-errno -fno-trapping-math -Wall -Werror -Wno-psabi".split()
VECTORISED = ("rsqrt", "exp", "log", "erf", "erfc", "sin", "cos")
BY_LANES = ("expm1", "tan", "sinh", "cosh", "tanh")
EXACT = ("sqrt", "fabs", "floor", "ceil")
UNARY = VECTORISED + BY_LANES + EXACT
BINARY = ("fmin", "fmax", "pow")
SIZES = ("rsqrt", "exp", "log", "erfc", "sin", "floor")  # also compiled for vectors smaller and larger than native
TYPES = {"double": np.float64, "float": np.float32}
LD = np.longdouble
EXTENDED = np.finfo(LD).nmant >= 63

RUN = """
#include "pk_math.h"
template <class T, int L, class F>
PK_INLINE void run(F f, const T* x, T* y, long n) {
  for (long i = 0; i < n; i += L) *(pk_uvec<T, L>*)(y + i) = f((pk_vec<T, L>)*(const pk_uvec<T, L>*)(x + i));
}
#define UNARY(NAME, T, L) \\
  extern "C" void NAME##_##T##_##L(const T* x, T* y, long n) { \\
    run<T, L>([](auto v) __attribute__((always_inline)) { return pk_##NAME(v); }, x, y, n); \\
  }
#define BINARY(NAME, T, L) \\
  extern "C" void NAME##_##T##_##L(const T* x, const T* z, T* y, long n) { \\
    for (long i = 0; i < n; i += L) \\
      *(pk_uvec<T, L>*)(y + i) = pk_##NAME((pk_vec<T, L>)*(const pk_uvec<T, L>*)(x + i), \\
                                           (pk_vec<T, L>)*(const pk_uvec<T, L>*)(z + i)); \\
  }
#define REFERENCE(NAME) \\
  extern "C" void NAME##_reference(const long double* x, long double* y, long n) { \\
    for (long i = 0; i < n; i++) y[i] = __builtin_##NAME##l(x[i]); \\
  }
"""

# Number of the first failing check of pk_vec.h for L lanes and masks of LS bytes, or 0.
CHECKS = """
template <class V> PK_INLINE auto lane(V v, int i) { if constexpr (pk_lanes<V> == 1) return v; else return v[i]; }
template <class M> PK_INLINE bool on(M m, int i) { return lane(m, i) != 0; }
#define CHECK(NUMBER, CONDITION) for (int i = 0; i < L; i++) if (!(CONDITION)) return NUMBER;
template <int LS, int L>
__attribute__((noinline, cold)) int check(unsigned pattern) {
  typedef pk_vec<typename pk_int_of<LS>::type, L> I;
  typedef pk_mask<LS, L> M;
  typedef pk_mask<12 - LS, L> Other;
  static_assert(alignof(pk_uvec<double, L>) == 8 && alignof(pk_uvec<float, L>) == 4, "memory types are unaligned");
  static_assert(pk_lanes<pk_vec<float, L>> == L && pk_same<pk_elem<pk_vec<float, L>>, float>, "traits");
  static_assert(pk_same<pk_lane_int<double>, int64_t> && pk_same<pk_lane_int<float>, int32_t>, "lane integers");
  const I count = pk_iota<pk_elem<I>, L>();
  const M m = ((pk_splat<I>(pattern) >> count) & 1) != 0;
  const unsigned full = (1u << L) - 1;
  const auto bit = [&](int i) { return (pattern >> i & 1) != 0; };
  CHECK(1, lane(count, i) == i && on(m, i) == bit(i))
  if (pk_any(m) != ((pattern & full) != 0) || pk_all(m) != ((pattern & full) == full)) return 2;
  const auto d = pk_convert<double>(count);
  const auto f = pk_convert<pk_vec<float, L>>(d);
  const auto k = pk_convert<int32_t>(f - 0.75f);
  const auto l = pk_convert<int64_t>(k);
  CHECK(3, lane(d, i) == i && lane(f, i) == i && lane(k, i) == (int)(i - 0.75f) && lane(l, i) == lane(k, i))
  CHECK(4, lane(pk_select(m, d, -d - 1), i) == (bit(i) ? i : -i - 1))
  CHECK(5, lane(pk_select(m, f, -f - 1), i) == (bit(i) ? i : -i - 1))
  CHECK(6, lane(pk_select(m, k, k + 9), i) == lane(k, i) + (bit(i) ? 0 : 9))
  CHECK(7, lane(pk_select(pattern > 7, f, -f), i) == (pattern > 7 ? i : -i))
  const Other o = pk_to_mask<Other>(m);
  CHECK(8, on(o, i) == bit(i) && on(pk_not(m), i) == !bit(i))
  if (pk_any(o) != pk_any(m) || pk_all(o) != pk_all(m)) return 9;
  const M first = count < 2;
  CHECK(10, on(pk_and(o, first), i) == (bit(i) && i < 2) && on(pk_or(first, o), i) == (bit(i) || i < 2))
  CHECK(11, on(pk_and(true, m), i) == bit(i) && on(pk_and(m, false), i) == false && on(pk_or(true, m), i))
  const auto big = pk_convert<int64_t>(count) * 0x123456789abcdefll - 0x3456789abcdef12ll;
  CHECK(12, lane(pk_convert<double>(big), i) == (double)lane(big, i))
  CHECK(13, lane(pk_convert<int32_t>(big), i) == (int32_t)lane(big, i))
  return 0;
}
template <int LS, int L>
int checks() {
  const unsigned patterns[] = {0u, ~0u, 1u, 1u << (L - 1), (1u << (L - 1)) - 1, 0xa5a5u, 0x5a5bu};
  for (unsigned p : patterns)
    if (const int e = check<LS, L>(p)) return 1000 * LS + 100 * L + e;
  return 0;
}
extern "C" int vec_checks() {
  const int e[] = {checks<8, 1>(), checks<8, PK_BYTES / 8>(), checks<8, PK_BYTES / 4>(),
                   checks<4, 2>(), checks<4, PK_BYTES / 8>(), checks<4, PK_BYTES / 4>()};
  for (int x : e) if (x) return x;
  return 0;
}
"""


def source(size, everything):
    """Return the C++ text: all functions for one lane and for a native vector; `everything`: more lanes, references."""
    lines = [RUN, CHECKS]
    for name, dtype in TYPES.items():
        native = size // np.dtype(dtype).itemsize
        for lanes in (1, 2, 4, 8, 16) if everything else (1, native):
            some = UNARY if lanes in (1, native) else SIZES
            lines += [f"UNARY({f}, {name}, {lanes})" for f in some]
            lines += [f"BINARY({f}, {name}, {lanes})" for f in BINARY if lanes in (1, native)]
    if everything:
        lines += [f"REFERENCE({f})" for f in UNARY if f != "rsqrt"]
    return "\n".join(lines)


def features():
    """Return the words of /proc/cpuinfo; an empty set where there is no such file."""
    info = Path("/proc/cpuinfo")
    return set(info.read_text().split()) if info.exists() else set()


X86 = platform.machine() in ("x86_64", "AMD64")
# Vector bytes, target, needed CPU features, contraction.
BUILDS = {
    "64": (64, "-march=native", {"avx512f", "avx512dq", "avx512vl"}, "fast"),
    "32": (32, "-march=haswell", {"avx2", "fma"}, "fast"),
    "32-native": (32, "-march=native", {"avx512vl"}, "off"),
    "16": (16, "-march=x86-64" if X86 else "-O3", set(), "fast"),
}


def compiler(name):
    """Return the path of a compiler, or skip."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name} on PATH")
    return path


@pytest.fixture(scope="module", params=BUILDS)
def built(request, tmp_path_factory):
    """Return one of `BUILDS` that this machine can run, compiled once."""
    size, target, needs, contract = BUILDS[request.param]
    cxx = compiler("g++")
    if not needs <= features():
        pytest.skip(f"this CPU lacks one of {', '.join(sorted(needs))}")
    folder = tmp_path_factory.mktemp("vector_math")
    (folder / "all.cpp").write_text(source(size, everything=True))
    options = [*FLAGS, "-O3", target, f"-DPK_BYTES={size}", f"-ffp-contract={contract}", f"-I{INCLUDE}"]
    subprocess.run([cxx, *options, "-shared", "-o", folder / "all.so", folder / "all.cpp"], check=True)
    return Library(ctypes.CDLL(str(folder / "all.so")), size)


class Library:
    """Calls into one build: `vector` and `scalar` take arrays of 16 n elements."""

    def __init__(self, handle, size):
        self.handle, self.size = handle, size

    def run(self, symbol, *arrays):
        arrays = [np.ascontiguousarray(a) for a in arrays]
        out = np.empty_like(arrays[0])
        getattr(self.handle, symbol)(*[ctypes.c_void_p(a.ctypes.data) for a in (*arrays, out)], ctypes.c_long(out.size))
        return out

    def lanes(self, name, lanes, *arrays):
        return self.run(f"{name}_{'double' if arrays[0].itemsize == 8 else 'float'}_{lanes}", *arrays)

    def vector(self, name, *arrays):
        return self.lanes(name, self.size // arrays[0].itemsize, *arrays)

    def scalar(self, name, *arrays):
        return self.lanes(name, 1, *arrays)

    def reference(self, name, x):
        """Return the function in long double, where that is longer than double; else by mpmath."""
        with np.errstate(all="ignore"):
            if name == "rsqrt":
                return 1 / np.sqrt(x.astype(LD)) if EXTENDED else precise(name, x)
            return self.run(f"{name}_reference", x.astype(LD)) if EXTENDED or name in EXACT else precise(name, x)


def precise(name, x):
    """Return the function by mpmath with 40 digits, as long double, for finite arguments in its domain."""
    function = {"rsqrt": lambda v: 1 / mpmath.sqrt(v)}.get(name) or getattr(mpmath, name)
    with mpmath.workdps(40):
        return np.array([LD(mpmath.nstr(function(mpmath.mpf(float(v))), 30)) for v in x])


def ulps(value, exact):
    """Return the errors in units of the last place of the exact results; 0 for equal infinities and NaNs."""
    info = np.finfo(value.dtype)
    with np.errstate(all="ignore"):
        near = np.abs(exact).astype(value.dtype)
        unit = np.spacing(np.minimum(near, info.max)).astype(LD)
        rounded_up = (near.astype(LD) > np.abs(exact)) & (np.frexp(near)[0] == 0.5)
        unit = np.maximum(np.where(rounded_up, unit / 2, unit), LD(info.smallest_subnormal))
        same = (value == exact.astype(value.dtype)) | (np.isnan(value) & np.isnan(exact))
        error = np.abs(value.astype(LD) - exact) / unit
        error = np.where(same & ~(np.isfinite(exact) & np.isfinite(value)), 0, error)
    return np.where(np.isnan(error), np.inf, error)


def apart(a, b):
    """Return the number of representable numbers from a to b; 0 for equal values and for two NaNs."""
    kind = np.int64 if a.itemsize == 8 else np.int32
    steps = np.abs(a.view(kind) - b.view(kind))
    return np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, steps)


def points(name, dtype, count):
    """Return 16 n arguments: over all magnitudes of the function's range, evenly in its bulk, and at its seams."""
    rng = np.random.default_rng(20261121)
    info = np.finfo(dtype)
    double = dtype is np.float64
    low, high = np.log2(float(info.smallest_subnormal)), np.log2(float(info.max))
    seams, bulk = [], rng.uniform(-4, 4, count)
    if name in ("sqrt", "rsqrt", "log"):
        bulk = rng.uniform(0.5, 4, count)
        seams = [info.tiny, 1.2e-38, 2.9e-39, 3.4e38, 1, 2, 4, 0.5**0.5, 2**0.5, 2**-0.25, info.max]
    elif name == "exp":
        low, high = -60, np.log2(710 if double else 89)
        bulk = rng.uniform(-750, 710, count) if double else rng.uniform(-105, 89, count)
        seams = [*(np.arange(-40, 40) * np.log(2) / 32), -708.4, 709.78, -745, -87.4, 88.7, -103.9]
    elif name in ("erf", "erfc"):
        low, high = -60, np.log2(27.5 if double else 10.4)
        bulk = rng.uniform(-6, 2**high, count)
        seams = [0.5, 1, 3, 3.5, 26.5, 26.6, 27.2, 9.2, 10.05]
    elif name in ("sin", "cos"):
        low, high = -60, 60
        bulk = rng.uniform(-1e5, 1e5, count)
        seams = [
            1e5,
            *(np.rint(rng.uniform(-63000, 63000, count // 4)) * (np.pi / 2)),
            *(np.arange(-40, 40) * np.pi / 4),
        ]
    elif name in ("tan", "tanh", "expm1", "sinh", "cosh"):
        low, high = -60, 6
    seams = np.array(seams, dtype)
    sign = 1 if name in ("sqrt", "rsqrt", "log") else np.where(rng.random(count) < 0.5, -1, 1)
    wide = np.exp2(np.minimum(rng.uniform(low, high, count), np.nextafter(high, 0))) * sign
    with np.errstate(invalid="ignore", over="ignore"):
        beside = [seams, np.nextafter(seams, -dtype(np.inf)), np.nextafter(seams, dtype(np.inf))]
        x = np.concatenate([wide.astype(dtype), bulk.astype(dtype), *beside])
    return np.resize(x, -(-x.size // 16) * 16)


def documented():
    """Return {(function, dtype): largest error in ulp} from the table at the top of pk_math.h."""
    bounds = {}
    for names, double, single in re.findall(
        r"^//   ((?:pk_\w+[, ]*)+?) +([\d.]+) +([\d.]+) ", (INCLUDE / "pk_math.h").read_text(), re.M
    ):
        for name in re.findall(r"pk_(\w+)", names):
            bounds[name, np.float64], bounds[name, np.float32] = float(double), float(single)
    return bounds


@pytest.mark.parametrize("dtype", TYPES.values())
@pytest.mark.parametrize("name", UNARY)
def test_error(built, name, dtype):
    x = points(name, dtype, 20000 if EXTENDED else 300)
    exact = built.reference(name, x)
    bound = documented()[name, dtype]
    vector, scalar = built.vector(name, x), built.scalar(name, x)
    for value in (vector, scalar):
        error = ulps(value, exact)
        worst = np.argmax(error)
        assert error[worst] <= bound, f"{name}({x[worst]!r}) = {value[worst]!r}, {exact[worst]!r}"
    assert apart(vector, scalar).max() <= (1 if name in VECTORISED else 0)
    if name in ("fabs", "floor", "ceil"):
        np.testing.assert_array_equal(np.signbit(vector), np.signbit(exact.astype(dtype)))


def test_reference(built):
    """Check that the long double functions of libm are right to far below one ulp of double."""
    for name in UNARY:
        x = points(name, np.float64, 40)
        x = x[(np.abs(x) < 1e5) & (np.abs(x) > 1e-300)]
        x = np.resize(x[:: max(1, x.size // 48)], 48)
        assert ulps(built.reference(name, x).astype(np.float64), precise(name, x)).max() < 0.51, name


SPECIAL = {
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (np.inf, np.inf), (-1.0, np.nan)],
    "rsqrt": [
        (0.0, np.inf),
        (-0.0, -np.inf),
        (np.inf, 0.0),
        (-1.0, np.nan),
        (-np.inf, np.nan),
        (1.0, 1.0),
        (0.25, 2.0),
    ],
    "exp": [
        (0.0, 1.0),
        (-0.0, 1.0),
        (np.inf, np.inf),
        (-np.inf, 0.0),
        (710.0, np.inf),
        (-746.0, 0.0),
        (3e38, np.inf),
        (-3e38, 0.0),
    ],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (np.inf, np.inf), (-np.inf, -1.0)],
    "log": [(0.0, -np.inf), (1.0, 0.0), (np.inf, np.inf), (-1.0, np.nan)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (np.inf, np.nan), (-np.inf, np.nan)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (np.inf, np.nan), (-np.inf, np.nan)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (np.inf, np.nan)],
    "sinh": [(-0.0, -0.0), (np.inf, np.inf), (-np.inf, -np.inf)],
    "cosh": [(0.0, 1.0), (-np.inf, np.inf)],
    "tanh": [(-0.0, -0.0), (np.inf, 1.0), (-np.inf, -1.0)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (np.inf, 1.0), (-np.inf, -1.0), (7.0, 1.0), (-3e38, -1.0)],
    "erfc": [(0.0, 1.0), (-0.0, 1.0), (np.inf, 0.0), (-np.inf, 2.0), (28.0, 0.0), (-28.0, 2.0), (3e38, 0.0)],
    "fabs": [(-0.0, 0.0), (-np.inf, np.inf), (-2.5, 2.5)],
    "floor": [(-0.0, -0.0), (-0.5, -1.0), (2.5, 2.0), (3e38, 3e38), (4194303.5, 4194303.0)],
    "ceil": [(0.0, 0.0), (-0.5, -0.0), (2.5, 3.0), (-3e38, -3e38), (-np.inf, -np.inf)],
}


@pytest.mark.parametrize("dtype", TYPES.values())
def test_special_values(built, dtype):
    for name, table in SPECIAL.items():
        x, expected = np.array([*table, (np.nan, np.nan)], dtype).T
        ordinary = np.full(x.size, 0.75, dtype)
        for mixed in (False, True):  # alone, and in every second lane beside an ordinary number
            full = np.resize(np.column_stack([x, ordinary]).ravel() if mixed else x, 16 * x.size)
            want = np.resize(np.column_stack([expected, ordinary]).ravel() if mixed else expected, 16 * x.size)
            for call in (built.vector, built.scalar):
                got = call(name, full)
                if mixed:
                    np.testing.assert_array_equal(got[1::2], call(name, np.full(16, 0.75, dtype))[0])
                    got, want_here = got[::2], want[::2]
                else:
                    want_here = want
                np.testing.assert_array_equal(got, want_here, err_msg=name)
                assert (np.signbit(got) == np.signbit(want_here))[~np.isnan(want_here)].all(), name


def test_binary(built, rng):
    for dtype in TYPES.values():
        odd = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, np.finfo(dtype).smallest_subnormal, 0.5, 3, -2, 1e30]
        x, y = (a.ravel() for a in np.meshgrid(np.array(odd, dtype), np.array(odd, dtype)))
        with np.errstate(all="ignore"):
            power = np.power(x.astype(LD), y.astype(LD)).astype(dtype)
        for call in (built.vector, built.scalar):
            np.testing.assert_array_equal(call("fmin", x, y), np.fmin(x, y))
            np.testing.assert_array_equal(call("fmax", x, y), np.fmax(x, y))
            np.testing.assert_array_equal(call("pow", x, y), power)
        x, y = rng.uniform(0.1, 9, 4800).astype(dtype), rng.uniform(-9, 9, 4800).astype(dtype)
        exact = np.power(x.astype(LD), y.astype(LD))
        assert ulps(built.vector("pow", x, y), exact).max() <= documented()["pow", dtype]
        np.testing.assert_array_equal(built.vector("fmin", x, y), np.fmin(x, y))


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_other_numbers_of_lanes(built, lanes):
    for dtype in TYPES.values():
        for name in SIZES:
            x = points(name, dtype, 800)
            assert apart(built.lanes(name, lanes, x), built.scalar(name, x)).max() <= 1, name


def test_vectors(built):
    """Check masks, selects and conversions, up to twice the native size; a failure is lane bytes, lanes, check."""
    assert built.handle.vec_checks() == 0


@pytest.mark.parametrize("cxx", ["aarch64-linux-gnu-g++", "clang++"])
def test_other_compilers(cxx, tmp_path):
    (tmp_path / "all.cpp").write_text(source(16, everything=False))
    options = [*FLAGS, "-O0", "-DPK_BYTES=16", f"-I{INCLUDE}", "-c", "-o", tmp_path / "all.o"]
    subprocess.run([compiler(cxx), *options, tmp_path / "all.cpp"], check=True)
    assert (tmp_path / "all.o").stat().st_size > 0


def test_width_must_be_given(tmp_path):
    (tmp_path / "none.cpp").write_text('#include "pk_math.h"\n')
    for options in ([], ["-DPK_BYTES=24"]):
        done = subprocess.run(
            [compiler("g++"), *options, f"-I{INCLUDE}", "-fsyntax-only", tmp_path / "none.cpp"], capture_output=True
        )
        assert done.returncode != 0
        assert b"16, 32 or 64" in done.stderr
