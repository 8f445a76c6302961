"""Hints of a workunit: their flags for the compiler, and sums that stay within their errors."""

import ctypes
import subprocess

import numpy as np
import pytest

from parki import engine
from parki.engine import TeamPolicy
from parki.engine.compile import objects
from parki.engine.workunit import HINTS
from tests.engine import test_vector_math as MATH

YUKAWA = {"pair": "pair/radial", "radial": "radial/yukawa"}
#: Relative errors of roots of doubles by the last hint on them, and the hint on exponentials they are tested with.
ROOTS = {
    "finite_rsqrt": (4e-16, "rounded_exp"),
    "short_rsqrt": (1.5e-13, "short_exp"),
    "shorter_rsqrt": (1.5e-10, "shorter_exp"),
    "brief_rsqrt": (5.7e-9, "shorter_exp"),
    "shortest_rsqrt": (2.1e-7, "shortest_exp"),
}
#: Relative errors of exponentials of doubles and of floats, by hint; None: 1.5 units in the last place.
EXPONENTIALS = {
    "rounded_exp": (None, None),
    "short_exp": (2.6e-12, None),
    "shorter_exp": (1.6e-9, None),
    "shortest_exp": (4.3e-7, 5.5e-7),
}


def test_hints_are_flags_of_hosts():
    plain, hinted = (engine.kernel("direct", "direct_sum", hints=h) for h in ((), HINTS))
    assert hinted is engine.kernel("direct", "direct_sum", hints=[*HINTS, *HINTS])
    assert plain is engine.kernel("direct", "direct_sum")
    units = [w.unit(w.default_layouts(), False)[0] for w in (plain, hinted)]
    assert units[0].source == units[1].source
    assert units[0].flags == ()
    assert sorted(units[1].flags) == sorted(flag for flags in HINTS.values() for flag in flags)
    assert objects.key(units[0]) != objects.key(units[1])
    assert plain.gpu(plain.default_layouts()) == hinted.gpu(hinted.default_layouts())


def test_an_unknown_hint():
    with pytest.raises(ValueError, match="hints: found 'fast', expected some of finite_rsqrt"):
        engine.kernel("direct", "direct_sum", hints=("fast",))


def arguments(rng, real, ns, counted):
    """Return the arguments for `counted` sources and 21 targets, of which 0 … 7 and 17 … 20 are sources, too."""
    dtype = {"double": np.float64, "float": np.float32}[real]
    src = rng.random((counted, 3 + ns)).astype(dtype)
    xt = rng.random((3, 21)).astype(dtype)
    at = [*range(8), *range(17, 21)]
    xt[:, at] = src[np.arange(len(at)) * 2 % counted, :3].T
    return {"xt": xt, "src": src, "u": np.zeros((1, 21), dtype)}


def expected(xt, src, slots, **_):
    """Return the sum in double precision; coincident pairs are skipped."""
    r = np.linalg.norm(xt.T[:, None].astype(float) - src[None, :, :3], axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        w = np.where(r > 0, np.exp(-src[:, 4] * r if slots else 0 * r) / r, 0)
    return w @ src[:, 3].astype(float)


@pytest.mark.parametrize("counted", [12, 23])
@pytest.mark.parametrize(
    ("real", "slots"),
    [
        pytest.param("double", {}, id="double-coulomb"),
        pytest.param("double", YUKAWA, id="double-yukawa", marks=pytest.mark.slow),
        pytest.param("float", {}, id="float-coulomb", marks=pytest.mark.slow),
        pytest.param("float", YUKAWA, id="float-yukawa"),
    ],
)
def test_coincident_pairs_count_nothing(real, slots, counted, rng):
    given = arguments(rng, real, 1 + len(slots) // 2, counted)
    want = expected(slots=slots, **given)
    span = np.array([[0, 5], [5, counted]], np.int32)
    item = np.array([[0, 0, 21, 0, 0, 2]], np.int32)
    more = {"item": item, "span": span, "box": np.zeros((1, 6)), "place": np.zeros((1, 1), given["u"].dtype)}
    whole = {"nt": 21, "ns": counted, "chunk": 21}
    rough = {"shorter_exp", "shortest_exp", "shorter_rsqrt", "brief_rsqrt", "shortest_rsqrt"}
    for hints, error in (((), 3e-12), ({*HINTS} - rough, 3e-12), (HINTS, 1e-6)):
        for space in ("Serial", "GpuSim") if hints is HINTS and counted == 23 else ("Serial",):
            for file, name, own in (("clusters", "ranges", more), ("direct", "direct_sum", whole)):
                given["u"][:] = 0
                policy = TeamPolicy(space, 1) if space == "Serial" else TeamPolicy(space, 1, 32, 1)
                unit = engine.kernel(file, name, real=real, hints=hints, **slots)
                engine.parallel_for(policy, unit, tiny=0.0, **given, **own)
                np.testing.assert_allclose(given["u"][0], want, rtol=error if real == "double" else 1e-5)


def test_a_pair_alone_is_exactly_zero(rng):
    x = rng.random((1, 3))
    given = {"xt": np.repeat(x.T, 21, axis=1).copy(), "src": np.repeat(np.c_[x, 1.0], 7, axis=0), "u": np.ones((1, 21))}
    unit = engine.kernel("direct", "direct_sum", hints=HINTS)
    engine.parallel_for(TeamPolicy("Serial", 1), unit, nt=21, ns=7, chunk=21, tiny=0.0, **given)
    np.testing.assert_array_equal(given["u"], 0)


ROOT_OR_ZERO = """import pykokkos as pk

real = pk.double


@pk.function
def root(x: real, least: real) -> real:
    w: real = pk.rsqrt(x)
    if x COMPARE least:
        w = VALUE
    return w


@pk.workunit
def roots(i: int, x: pk.View1D[real], least: pk.View1D[real], w: pk.View1D[real]):
    w[i] = root(x[i], least[i])
"""


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize(("compare", "value"), [("<=", 0.0), ("<", 0.0), ("<=", 2.0)])
def test_roots_that_a_branch_replaces(compare, value, real, tmp_path, rng):
    """Check roots beside a least argument: small, huge, equal to it and not a number, in every lane."""
    (tmp_path / "roots.py").write_text(ROOT_OR_ZERO.replace("COMPARE", compare).replace("VALUE", str(value)))
    dtype = np.float64 if real == "double" else np.float32
    x = (10.0 ** rng.uniform(-44 if real == "double" else -37, 30, 4000)).astype(dtype)
    least = np.where(rng.random(4000) < 0.5, x * rng.choice([0.5, 1, 2], 4000), 0).astype(dtype)
    x[::37], x[5::41] = 0, np.nan
    is_replaced = x <= least if compare == "<=" else x < least
    with np.errstate(divide="ignore"):
        want = np.where(is_replaced, value, 1 / np.sqrt(x.astype(float)))
    for hints in ((), ("bounded_rsqrt",), ("finite_rsqrt", "bounded_rsqrt")):
        unit, w = engine.kernel(tmp_path / "roots.py", "roots", real=real, hints=hints), np.empty(4000, dtype)
        engine.parallel_for(engine.RangePolicy("Serial", 4000), unit, x=x, least=least, w=w)
        known = np.isfinite(want) | ("finite_rsqrt" not in hints)
        np.testing.assert_allclose(w[known], want[known], rtol=1e-15 if real == "double" else 2e-7)


def test_huge_numbers_have_roots_beside_a_least_one(tmp_path):
    (tmp_path / "roots.py").write_text(ROOT_OR_ZERO.replace("COMPARE", "<=").replace("VALUE", "0.0"))
    unit, x, w = engine.kernel(tmp_path / "roots.py", "roots"), np.full(13, 1e44), np.empty(13)
    engine.parallel_for(engine.RangePolicy("Serial", 13), unit, x=x, least=np.zeros(13), w=w)
    np.testing.assert_allclose(w, 1e-22, rtol=1e-15)


SCALED = """
#define SCALED(T, L) \\
  extern "C" void scaled_##T##_##L(const T* x, T* y, long n) { \\
    run<T, L>([](auto v) __attribute__((always_inline)) { return pk_exp_of<decltype(v)>(T(0.75), v); }, x, y, n); \\
  }
"""


def up_to(hint, hints):
    """Return the hints from the first one to `hint`."""
    return list(hints)[: list(hints).index(hint) + 1]


RANGES = {"all": (), "ordinary": ("ordinary_rsqrt",)}
#: Vectors, roots and their ranges: every run has each root on each kind of vector, with one of both ranges.
SHORTER = [
    pytest.param(form, root, RANGES[of], id=f"{form}-{root}-{of}", marks=[pytest.mark.slow] * ((i + j + k) % 2))
    for i, form in enumerate(MATH.BUILDS)
    for j, root in enumerate(ROOTS)
    for k, of in enumerate(RANGES)
]


@pytest.mark.parametrize(("form", "root", "range_of_roots"), SHORTER)
def test_shorter_forms(form, root, range_of_roots, tmp_path):
    """Check errors of rsqrt, exp and exp of a product as documented in pk_math.h, underflow to 0, and NaN."""
    size, target, needs, contract = MATH.BUILDS[form]
    cxx = MATH.compiler("g++")
    if not needs <= MATH.features():
        pytest.skip(f"this CPU lacks one of {', '.join(sorted(needs))}")
    lines = [MATH.RUN, SCALED, "REFERENCE(exp)"]
    for name, dtype in MATH.TYPES.items():
        lanes = (1, size // dtype().nbytes)
        lines += [f"UNARY({f}, {name}, {n})" for f in ("rsqrt", "exp") for n in lanes]
        lines += [f"SCALED({name}, {n})" for n in lanes]
    (tmp_path / "all.cpp").write_text("\n".join(lines))
    root_error, hint = ROOTS[root]
    given = [*range_of_roots, *up_to(root, ROOTS), *up_to(hint, EXPONENTIALS)]
    hinted = [flag for name in given for flag in HINTS[name]]
    options = ["-O3", target, f"-DPK_BYTES={size}", f"-ffp-contract={contract}", f"-I{MATH.INCLUDE}", *hinted]
    command = [cxx, *MATH.FLAGS, *options, "-shared", "-o", tmp_path / "all.so", tmp_path / "all.cpp"]
    subprocess.run(command, check=True)
    library = MATH.Library(ctypes.CDLL(str(tmp_path / "all.so")), size)
    count = 20000 if MATH.EXTENDED else 300
    for dtype in MATH.TYPES.values():
        single = dtype is np.float32
        for call in (library.vector, library.scalar):
            x = MATH.points("rsqrt", dtype, count)
            x = np.where(np.isfinite(x) & (not range_of_roots or (x > 1e-36) & (x < 1e36)), x, 1)
            error = np.abs(call("rsqrt", x).astype(MATH.LD) / library.reference("rsqrt", x) - 1).max()
            assert error < max(root_error, 1.1e-7 if single else 0)
            x = MATH.points("exp", dtype, count)
            x = np.where(np.abs(x) <= (87 if single else 708), x, 1)
            exact = library.reference("exp", x)
            # 0.75 y is x up to rounding; the rounding of 0.75 log2(e) counts as well
            y = (x / dtype(0.75)).astype(dtype)
            product = library.reference("exp", (y.astype(MATH.LD) * 0.75).astype(np.float64))
            bound = EXPONENTIALS[hint][single]
            for value, right, rounded in ((call("exp", x), exact, 0.5), (call("scaled", y), product, 1.5)):
                if bound is None:
                    assert (MATH.ulps(value, right) - rounded * np.abs(x)).max() < 1.5
                else:
                    share = np.abs(value.astype(MATH.LD) / right - 1) - rounded * np.abs(x) * np.finfo(dtype).eps
                    assert share.max() < bound
            below = np.resize(np.array([-800, -1e4, -1e9, -1e15, -1e20 if single else -1e60], dtype), 80)
            np.testing.assert_array_equal(call("exp", below), 0)
            least, some = np.finfo(dtype).smallest_normal, np.linspace(*((-104, -86) if single else (-746, -707)), 4000)
            results = call("exp", some.astype(dtype))
            assert np.all((results == 0) | (results >= least))  # subnormal results take long
            assert np.all(results[some > (-87 if single else -708)] > 0)
            assert np.isnan(call("exp", np.full(16, np.nan, dtype))).all()
            assert np.isnan(call("rsqrt", np.full(16, -1, dtype))).all()
