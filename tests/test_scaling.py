"""Units: lengths and strengths times powers of two give results times powers of two, bit for bit."""

import math
import zlib

import numpy as np
import pytest

import parki
from parki import pairs, scaling
from parki.dimensions import Dimensions
from parki.ewald.kernels import KERNELS
from tests import own_pairs

N = 60
MOST = {"float64": 300, "float32": 30}  # largest exponents of two
EXTREMES = ((1, 1), (1, -1), (-1, 1), (-1, -1))  # signs of the exponents of lengths and strengths, times MOST
VALUES = {"kappa": 1.5, "k": 2.0, "unit": 1.0, "width": 0.5, "epsilon": 0.1, "radius": 0.05}
BOX = np.array([1.0, 1.25, 0.75])
CELL = np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])


def ewald(periodicity, box=BOX):
    """Return a function for an Ewald sum with lengths times a unit."""

    def total(pair, x, dens, normals, values, unit):
        more = {"box": box * unit if periodicity else None, "periodicity": periodicity, "tolerance": 1e-4, **values}
        return parki.ewald.plan(pair.name, x, x, **more)(dens, *normals)

    return total


def free(module, call, **options):
    """Return a function for a sum in free space."""

    def total(pair, x, dens, normals, values, unit):
        return getattr(module, call)(
            x, x, dens, pair.name, **({"normals": normals[0]} if normals else {}), **values, **options
        )

    return total


def direct(pair, x, dens, normals, values, unit):
    return parki.direct.direct_sum(pair.name, x, x, dens, *normals, **values)


METHODS = {
    "direct": direct,
    "3P": ewald(3),
    "2P": ewald(2),
    "1P": ewald(1),
    "0P": ewald(0),
    "cell": ewald(3, CELL),
    "bldtt": free(parki.treecode, "bldtt", tolerance=1e-4, leaf_size=8, batch_size=8),
    "bltc": free(parki.treecode, "bltc", theta=0.7, degree=3, leaf_size=8),
    "kifmm": free(parki.fmm, "kifmm", order=4, leaf_size=8),
    "chebyshev": free(parki.fmm, "chebyshev", order=3, leaf_size=8),
}
SURFACES = {  # kernels that can be made by equivalent sources
    "laplace", "laplace_grad", "laplace_dipole", "stokes_sl", "stokes_dl", "stokes_comb", "stokes_pressure",
    "stokes_grad", "stokes_dipole", "yukawa", "rotlet", "rpy", "rpy_rotation",
}  # fmt: skip


def cases():
    """Yield all built-in kernels with the methods that take them; cases that few tests compile are slow."""
    quick = {"direct": pairs.PAIRS, "3P": ("laplace", "stokes_comb"), "1P": ("stokes_sl",), "0P": ("laplace", "yukawa"),
             "bldtt": ("laplace", "yukawa"), "kifmm": ("stokes_sl",)}  # fmt: skip
    for method in METHODS:
        for name, pair in pairs.PAIRS.items():
            if name != pair.name:  # another name of the same kernel
                continue
            if method.endswith(("P", "cell")) and name not in KERNELS:
                continue
            if name == "yukawa" and method in ("1P", "2P"):
                continue
            if method == "kifmm" and name not in SURFACES:
                continue
            for dtype in MOST:
                slow = name not in quick.get(method, ())
                yield pytest.param(method, name, dtype, marks=[pytest.mark.slow] * slow)


def given(name, dtype, method):
    """Return the pair, points, strengths with exactly zero sum, and normals."""
    pair = pairs.PAIRS[name]
    rng = np.random.default_rng(zlib.crc32(f"{method} {name} {dtype}".encode()))
    box = CELL.max() * np.ones(3) if method == "cell" else BOX
    x = (box[:, None] * rng.random((3, N))).astype(dtype)
    dens = rng.integers(-512, 513, (pair.dens, N // 2)) / 256.0
    dens = np.concatenate([dens, -dens], axis=1).astype(dtype)
    normals = [(rng.integers(-512, 513, (3, N)) / 512.0).astype(dtype)] if pair.normals else []
    return pair, x, dens, normals


def powers(law, components, k, m):
    """Return exponents of two of the strengths and of the results, for lengths times 2^k."""
    into = m - k * np.broadcast_to(law.dens, components)
    return into, lambda result: m + k * np.broadcast_to(law.result, result)


@pytest.mark.parametrize(("method", "name", "dtype"), list(cases()))
def test_sums_scale_bit_for_bit(method, name, dtype):
    pair, x, dens, normals = given(name, dtype, method)
    law = pair.law
    values = {n: VALUES[n] for n in pair.names}
    one = METHODS[method](pair, x, dens if pair.dens > 1 else dens[0], normals, values, 1.0)
    one = one.reshape(-1, N)
    assert np.isfinite(one).all()
    assert one.any()
    for signs in EXTREMES:
        k, m = (sign * MOST[dtype] for sign in signs)
        k = 2 * k // max(2, *(abs(power) for power in law.result))  # results that a type holds
        into, back = powers(law, pair.dens, k, m)
        there = {n: math.ldexp(v, k * along) for (n, v), along in zip(values.items(), law.parameters, strict=True)}
        strengths = np.ldexp(dens, into[:, None]).astype(dtype)
        u = METHODS[method](
            pair, np.ldexp(x, k), strengths if pair.dens > 1 else strengths[0], normals, there, math.ldexp(1.0, k)
        ).reshape(-1, N)
        expected = np.ldexp(one, back(len(one))[:, None])
        normal = np.abs(expected) >= np.finfo(dtype).tiny
        np.testing.assert_array_equal(u[normal], expected[normal], err_msg=f"k={k} m={m}")


@pytest.mark.parametrize("kernel", ["laplace", "stokes_sl"])
def test_a_net_charge_along_one_direction_takes_the_callers_unit(kernel):
    """Check logarithms of lengths: −2 ln ρ / L of a net charge Q grows by 2 ln λ Q / L, and a force likewise."""
    pair, x, dens, _ = given(kernel, "float64", "1P")
    dens = np.abs(dens)
    call, k = METHODS["1P"], 12
    one = call(pair, x, dens if pair.dens > 1 else dens[0], [], {}, 1.0).reshape(-1, N)
    u = call(pair, x * 2.0**k, dens if pair.dens > 1 else dens[0], [], {}, 2.0**k).reshape(-1, N) * 2.0**k
    shift = np.array([2.0]) if kernel == "laplace" else np.array([4.0, 2.0, 2.0])
    expected = one - (shift * k * math.log(2) * dens.sum(axis=1) / BOX[0])[:, None]
    np.testing.assert_allclose(u, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_thin_plates_of_any_size_meet_the_tolerance(rng):
    """Check r² log r, which is no power of r and keeps the caller's unit."""
    for k in (-300, -20, 20, 300):
        x, q = rng.random((3, 300)), rng.standard_normal(300)
        r = np.linalg.norm(x[:, :, None] - x[:, None], axis=0)
        exact = (r**2 * (np.log(np.where(r > 0, r, 1.0)) + k * math.log(2))) @ q
        u = np.ldexp(parki.treecode.bldtt(np.ldexp(x, k), np.ldexp(x, k), q, "thin_plate", tolerance=1e-6), -2 * k)
        assert np.linalg.norm(u - exact) < 1e-6 * np.linalg.norm(exact)


@pytest.mark.parametrize("scale", [1e36, 1e-300, 1e300])
def test_single_precision_far_fields_take_any_strength(scale, rng):
    x, q = rng.random((3, 1500)), rng.standard_normal(1500)
    exact = parki.direct.direct_sum("laplace", x, x, q)
    free_ewald = parki.ewald.laplace(x, x, scale * q, periodicity=0, tolerance=1e-4, far_precision="single")
    tree = parki.treecode.bldtt(x, x, scale * q, tolerance=3e-5, far_precision="single", leaf_size=60, batch_size=60)
    for u, tolerance in ((free_ewald, 1e-4), (tree, 3e-5)):
        assert np.linalg.norm(u / scale - exact) < tolerance * np.linalg.norm(exact)


@pytest.mark.parametrize("unit", [1e-7, 1e-6, 1.0, 1e12])
def test_single_precision_points_take_any_unit(unit, rng):
    x, q, n = rng.random((3, 200)), rng.standard_normal((3, 200)), rng.standard_normal((3, 200))
    exact = parki.direct.direct_sum("stokes_dl", x, x, q, n)
    y, q, n = (a.astype(np.float32) for a in (x * unit, q, n))
    for u in (
        parki.direct.direct_sum("stokes_dl", y, y, q, n),
        parki.ewald.stokes_dl(y, y, q, n, periodicity=0, tolerance=1e-4),
    ):
        assert np.linalg.norm(u.astype(float) * unit**2 - exact) < 1e-4 * np.linalg.norm(exact)


@pytest.mark.parametrize("side", [3e-5, 1e60, 1e-60, 1e150])
def test_kernels_with_a_length_in_boxes_of_any_size(side, rng):
    x, q = rng.random((3, 100)), rng.standard_normal(100)
    exact = parki.ewald.yukawa(x, x, q, 0.14, box=(1, 1, 1), tolerance=1e-9)
    u = parki.ewald.yukawa(x * side, x * side, q, 0.14 / side, box=(side,) * 3, tolerance=1e-6) * side
    assert np.linalg.norm(u - exact) < 1e-6 * np.linalg.norm(exact)


@pytest.mark.parametrize("kappa", [1e300, 1e5, 1e-40, 1e-300])
def test_a_length_beyond_all_others(kappa, rng):
    """Check that the result is right, or refused with the name of the argument."""
    x, q = rng.random((3, 50)), rng.standard_normal(50)
    exact = 0 * q if kappa > 1 else parki.direct.direct_sum("laplace", x, x, q)
    for call in (
        lambda: parki.direct.direct_sum("yukawa", x, x, q, kappa=kappa),
        lambda: parki.ewald.yukawa(x, x, q, kappa, periodicity=0, tolerance=1e-6),
        lambda: parki.treecode.bldtt(x, x, q, "yukawa", kappa=kappa, tolerance=1e-6),
        lambda: parki.fmm.kifmm(x, x, q, "yukawa", kappa=kappa, tolerance=1e-6),
    ):
        refused = ""
        try:
            u = call()
        except ValueError as error:
            refused = str(error)
        assert "kappa" in refused or np.linalg.norm(u - exact) <= 1e-6 * np.linalg.norm(exact)


@pytest.mark.parametrize("kappa", [1e-3, 1e-6, 1e-50])
def test_a_neutral_screened_sum_tends_to_the_coulomb_one(kappa, rng):
    """Check that the mean 4π Σq/κ²V makes no rounding error; the term of a skipped pair differs by κ."""
    x, q = rng.random((3, 60)), rng.standard_normal(30)
    q = np.concatenate([q, -q])
    exact = parki.ewald.laplace(x, x, q, box=(1, 1, 1), tolerance=1e-9) + kappa * q
    u = parki.ewald.yukawa(x, x, q, kappa, box=(1, 1, 1), tolerance=1e-8)
    assert np.linalg.norm(u - exact) < (1e-8 + 10 * kappa**2) * np.linalg.norm(exact)
    with pytest.raises(ValueError, match=r"kappa is 1e-300; expected 3\.05e-151 to"):
        parki.ewald.yukawa(x, x, q, 1e-300, box=(1, 1, 1))
    with pytest.raises(ValueError, match="kappa is 20000; expected at most 10000, 10000 over"):
        parki.ewald.yukawa(x, x, q, 2e4, box=(1, 1, 1))


@pytest.mark.parametrize("kappa", [1e2, 1e3, 9e3])
def test_screening_within_the_distance_of_points(kappa, rng):
    x, q = 0.01 * rng.random((3, 60)), rng.standard_normal(60)
    x[:, 0] = 0.9
    exact = parki.direct.direct_sum("yukawa", x, x, q, kappa=kappa)
    u = parki.ewald.yukawa(x, x, q, kappa, box=(1, 1, 1), tolerance=1e-8)
    assert np.linalg.norm(u - exact) < 1e-8 * np.linalg.norm(exact)


def test_kernels_of_ones_own_scale_where_they_say_how(rng):
    """Sum q exp(-r / length) / r, whose second number is the length."""
    path = str(own_pairs.file("u[0] += s[0] * w * pk.exp(-r2 * w / s[1])", sources=2, slots="SCREENED = False"))
    own = pairs.Pair("own", 1, 1, path, names=("length",))
    told = pairs.Pair("own", 1, 1, path, names=("length",), dimensions=Dimensions((1,), (-1,)))
    x, q = rng.random((3, 80)), rng.standard_normal(80)
    exact = parki.direct.direct_sum(own, x, x, q, length=0.1)
    assert np.array_equal(exact, parki.direct.direct_sum(told, x, x, q, length=0.1))
    y, length = np.ldexp(x, 600), math.ldexp(0.1, 600)
    assert np.array_equal(np.ldexp(exact, -600), parki.direct.direct_sum(told, y, y, q, length=length))
    with pytest.raises(ValueError, match="dimensions of kernel own has 0 powers of parameters; expected 1"):
        pairs.find(pairs.Pair("own", 1, 1, own.pair, names=("length",), dimensions=Dimensions()), length=1.0)


def test_powers_of_a_call():
    law = pairs.PAIRS["stokes_comb"].law
    dens = np.ones((2, 6, 3))
    dens[1] *= 0
    found = scaling.Powers.of(law, 4, dens, 8 * np.ones((3, 3)), 3)
    assert found.normals == -3
    # f times 2^e, q times 2^(e + 4) by lengths and 2^3 by normals: the largest of both is 1.
    assert found.dens.tolist() == [[-7] * 3 + [0] * 3, [0] * 3 + [7] * 3]
    assert found.result.tolist() == [[11] * 3, [4] * 3]


def test_factors_beyond_the_type():
    x = np.array([1.5, -3.0])
    assert np.array_equal(scaling.times(scaling.times(x, -900), 900), x)
    assert scaling.times(np.array([2.0**-1000]), 2000)[0] == 2.0**1000
    first, second = scaling.pairs_of_factors((1100, -3), "float64")
    assert first[0] * 2.0**-500 * first[1] == 2.0**600
    assert second.tolist() == [0.125, 1.0]
    with np.errstate(all="ignore"):
        assert scaling.largest(np.array([[1.0, np.nan], [2.0, -3.0]])).tolist()[1] == 3.0
