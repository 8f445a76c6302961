"""Pair interactions: kernels and their gradients against plain formulas, files of callers."""

import dataclasses
import math
import pickle

import numpy as np
import pytest

import parki
from parki import pairs
from parki.direct import direct_sum
from parki.ewald import kernels
from parki.ewald.stages import reference_kernels
from parki.pairs import PAIRS, Pair
from tests import rotation
from tests.ewald import sums


def spline(r, e):
    """Return φ of Hernquist and Katz's spline, h = 2.8 ε, as Springel, Yoshida and White's eq. 71 has it."""
    u = r / (2.8 * e)
    inner = 14 / 5 - 16 / 3 * u**2 + 48 / 5 * u**4 - 32 / 5 * u**5
    outer = 16 / 5 - 1 / (15 * u) - 32 / 3 * u**2 + 16 * u**3 - 48 / 5 * u**4 + 32 / 15 * u**5
    return np.where(np.real(u) < 0.5, inner, np.where(np.real(u) < 1, outer, 1 / u)) / (2.8 * e)


#: φ(r) of the radial kernels, and their values at r = 0.
PHI = {
    "coulomb": (lambda r: 1 / r, lambda: 0),
    "yukawa": (lambda r, kappa: np.exp(-kappa * r) / r, lambda kappa: 0),
    "regularised_coulomb": (lambda r, e: 1 / np.sqrt(r**2 + e**2), lambda e: 1 / e),
    "spline_coulomb": (spline, lambda e: 1 / e),
    "regularised_yukawa": (
        lambda r, kappa, e: np.exp(-kappa * np.sqrt(r**2 + e**2)) / np.sqrt(r**2 + e**2),
        lambda kappa, e: math.exp(-kappa * e) / e,
    ),
    "oscillatory": (lambda r, k: np.sin(k * r) / r, lambda k: k),
    "gaussian": (lambda r, c: np.exp(-((r / c) ** 2)), lambda c: 1),
    "multiquadric": (lambda r, c: np.sqrt(r**2 + c**2), lambda c: c),
    "inverse_quadratic": (lambda r, c: 1 / (r**2 + c**2), lambda c: 1 / c**2),
    "biharmonic": (lambda r: r, lambda: 0),
    "thin_plate": (lambda r, unit: r**2 * np.log(r / unit), lambda unit: 0),
}
QUICK = ("coulomb", "oscillatory", "thin_plate", "rpy")  # kernels that are tested in single precision in every run, too
BOUND = {np.float64: 1e-14, np.float32: 4e-6}


def rotlet(r, length, t):
    return np.cross(t, r) / length**3


def regularised_stokeslet(r, length, f, e):
    return ((length**2 + 2 * e**2) * f + (f @ r) * r) / (length**2 + e**2) ** 1.5


def regularised_dipole(r, length, d, e):
    return ((2 * e**2 - length**2) * d + 3 * (d @ r) * r) / (length**2 + e**2) ** 2.5


def rpy(r, length, f, a):
    along = (f @ r) * r
    if length > 2 * a:
        return (1 / length + 2 * a**2 / (3 * length**3)) * f + (1 / length**3 - 2 * a**2 / length**5) * along
    return 4 / (3 * a) * ((1 - 9 * length / (32 * a)) * f + 3 / (32 * a * length) * along)


def stokes_dipole(r, length, dipole):
    d = dipole.reshape(3, 3)
    return ((d - d.T) @ r - np.trace(d) * r) / length**3 + 3 * (r @ d @ r) * r / length**5


#: u of the vector kernels for one pair, and their values at r = 0.
VECTOR = {
    "stokes_dipole": (stokes_dipole, lambda d: np.zeros(3)),
    "rotlet": (rotlet, lambda t: 0 * t),
    "regularised_stokeslet": (regularised_stokeslet, lambda f, e: 2 * f / e),
    "regularised_dipole": (regularised_dipole, lambda d, e: 2 * d / e**3),
    "rpy": (rpy, lambda f, a: 4 * f / (3 * a)),
    "rpy_rotation": (rotation.of_one, rotation.of_itself),
}


def exact(name, x, y, dens, parameters):
    """Return the sum of all pairs in double precision."""
    x, y, dens = (a.astype(float) for a in (x, y, dens))
    if name in PHI:
        phi, at_zero = PHI[name]
        r = np.linalg.norm(x[:, :, None] - y[:, None], axis=0)
        values = np.where(r > 0, phi(np.where(r > 0, r, 1), *parameters), at_zero(*parameters))
        return values @ dens
    (formula, at_zero), u = VECTOR[name], np.zeros((PAIRS[name].result, x.shape[1]))
    for i, target in enumerate(x.T):
        for source, f in zip(y.T, dens.T, strict=True):
            r = target - source
            length = math.hypot(*r)
            u[:, i] += formula(r, length, f, *parameters) if length else at_zero(f, *parameters)
    return u


def exact_gradient(name, x, y, dens, parameters):
    """Return the gradient by complex steps, which lose no digits; 0 for a coincident pair."""
    x, y, dens = (a.astype(float) for a in (x, y, dens))
    r = x[:, :, None] - y[:, None]
    apart = np.any(r != 0, axis=0)
    slopes = []
    for d in range(3):
        moved = np.where(apart, r, 1).astype(complex)
        moved[d] += 1e-40j
        phi = PHI[name][0](np.sqrt(np.sum(moved**2, axis=0)), *parameters)
        slopes.append(np.where(apart, phi.imag / 1e-40, 0) @ dens)
    return np.array(slopes)


def problem(name, rng, nt, ns, dtype=np.float64):
    """Return targets, sources, strengths and parameters; the first targets are sources."""
    y, x = rng.standard_normal((3, ns)), rng.standard_normal((3, nt))
    same = min(nt, ns) // 3
    x[:, :same] = y[:, :same]
    pair = PAIRS[name]
    dens = rng.standard_normal((pair.dens, ns) if pair.dens > 1 else ns)
    parameters = dict(zip(pair.names, (float(dtype(p)) for p in 0.2 + 1.5 * rng.random(2)), strict=False))
    return [a.astype(dtype) for a in (x, y, dens)], parameters


def error(u, expected):
    return np.linalg.norm(u - expected) / np.linalg.norm(expected)


def both_precisions(names):
    single = (pytest.param(name, np.float32, marks=[] if name in QUICK else pytest.mark.slow) for name in names)
    return pytest.mark.parametrize(("name", "dtype"), [*((name, np.float64) for name in names), *single])


# Values


@both_precisions([*PHI, *VECTOR])
def test_formulas(name, dtype, rng):
    for nt, ns in ((1, 40), (40, 1), (67, 53)):
        given, parameters = problem(name, rng, nt, ns, dtype)
        u = direct_sum(name, *given, **parameters)
        assert u.dtype == dtype
        expected = exact(name, *given, parameters.values())
        size = np.linalg.norm(exact(name, *given[:2], np.abs(given[2]), parameters.values()))  # terms may cancel
        assert np.linalg.norm(u - expected) < BOUND[dtype] * size


@both_precisions(list(PHI))
def test_gradients(name, dtype, rng):
    pair = PAIRS[name].with_gradient()
    assert (pair.dens, pair.result, pair.names) == (1, 4, PAIRS[name].names)
    given, parameters = problem(name, rng, 67, 53, dtype)
    u = direct_sum(pair, *given, **parameters)
    assert error(u[0], exact(name, *given, parameters.values())) < BOUND[dtype]
    assert error(u[1:], exact_gradient(name, *given, parameters.values())) < 2 * BOUND[dtype]


@pytest.mark.parametrize("name", ["coulomb", "yukawa", "oscillatory"])
def test_gradients_alone(name, rng):
    given, parameters = problem(name, rng, 30, 50)
    alone = PAIRS[name].with_gradient(only=True)
    assert alone.result == 3
    u = direct_sum(alone, *given, **parameters)
    np.testing.assert_allclose(
        u, direct_sum(PAIRS[name].with_gradient(), *given, **parameters)[1:], rtol=1e-13, atol=1e-13
    )
    assert alone.with_gradient() == PAIRS[name].with_gradient()
    if name == "coulomb":
        np.testing.assert_allclose(u, direct_sum("laplace_grad", *given), rtol=1e-13, atol=1e-13)


def test_the_gradient_of_stokes_is_another_kernel():
    assert PAIRS["stokeslet"].with_gradient(only=True) is PAIRS["stokes_grad"]


def test_gradients_of_kernels_with_values_of_parameters():
    pair = pairs.find("yukawa", kappa=2.0).with_gradient()
    assert pair.parameters == (2.0,)
    x = np.array([[0.0], [0.0], [0.5]])
    u = direct_sum(pair, x, 0 * x, np.ones(1))
    assert u[:, 0] == pytest.approx([2 / math.e, 0, 0, -8 / math.e], rel=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["oscillatory", "rpy"])
def test_the_two_formulas_of_a_kernel_meet(name, dtype, rng):
    """Check from r = 0 across the place where the formulas meet; single points, so that no sum hides an error."""
    pair = PAIRS[name].with_gradient() if name in PHI else PAIRS[name]
    parameters = {"oscillatory": {"k": 2.0}, "rpy": {"radius": 0.75}}[name]
    bend = {"oscillatory": 0.25, "rpy": 1.5}[name]
    r = bend * np.array([1e-18, 1e-12, 1e-7, 1e-3, 0.1, 0.5, 1 - 1e-6, 1 - 1e-14, 1.0, 1 + 1e-14, 1 + 1e-6, 1.2, 3.0])
    direction = np.array([0.48, -0.6, 0.64])
    x = (direction[:, None] * r).astype(dtype)
    y = np.zeros((3, 1), dtype)
    dens = rng.standard_normal((pair.dens, 1) if pair.dens > 1 else 1).astype(dtype)
    u = direct_sum(pair, x, y, dens, **parameters)
    if name == "rpy":
        expected = exact(name, x, y, dens, parameters.values())
    else:
        z = (2.0 * np.linalg.norm(x.astype(float), axis=0)) ** 2
        series = [sum((-z) ** n / math.factorial(2 * n + 1) for n in range(20))]
        slope = sum((-1) ** n * 2 * n * z ** (n - 1) / math.factorial(2 * n + 1) for n in range(1, 20))
        expected = dens[0].astype(float) * np.concatenate([2.0 * np.array(series), 8.0 * slope * x.astype(float)])
    # Compare each component with the largest at the pair's place.
    largest = np.maximum(np.abs(expected[:1]), np.abs(expected[1:]).max(axis=0))
    assert np.all(np.abs(u[1:] - expected[1:]) <= 8 * BOUND[dtype] * np.abs(expected[1:]).max(axis=0))
    assert np.all(np.abs(u - expected) <= BOUND[dtype] * largest)


@pytest.mark.parametrize("name", ["regularised_yukawa", "regularised_stokeslet"])
def test_every_space(name, space, rng):
    given, parameters = problem(name, rng, 70, 30)
    u = direct_sum(name, *given, execution_space=space, **parameters)
    assert error(u, exact(name, *given, parameters.values())) < 1e-14


# Properties of a pair


def test_every_kernel_is_there():
    assert {"coulomb", "stokeslet", "stresslet", *PHI, *VECTOR, *kernels.KERNELS} == set(PAIRS)
    for name, pair in PAIRS.items():
        assert f"``{name}``" in direct_sum.__doc__
        assert pickle.loads(pickle.dumps(pair)) == pair
        assert {pair: 1}[pair] == 1
    for further, name in {"coulomb": "laplace", "stokeslet": "stokes_sl", "stresslet": "stokes_dl"}.items():
        assert PAIRS[further] == PAIRS[name]
        assert str(PAIRS[further]) == further


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_kernels_of_ewald_sums_are_the_same_pairs(name):
    kernel = kernels.KERNELS[name]
    assert isinstance(kernel, Pair)
    for field in dataclasses.fields(Pair):
        assert getattr(kernel, field.name) == getattr(PAIRS[name], field.name)
    parameters = sums.PARAMETERS.get(name, {})
    assert pairs.find(kernel, **parameters) == kernels.find(name, **parameters)


def test_numbers_of_a_source():
    assert (PAIRS["stokes_comb"].given, PAIRS["stokes_comb"].strengths) == (9, 9)
    assert (PAIRS["regularised_yukawa"].given, PAIRS["regularised_yukawa"].strengths) == (1, 1)
    assert pairs.find("regularised_yukawa", kappa=1.0, epsilon=0.5).strengths == 3


@pytest.mark.parametrize("name", PAIRS)
def test_singular_kernels_skip_coincident_pairs(name):
    pair = PAIRS[name]
    x = np.ones((3, 1))
    dens = np.full((pair.dens, 1) if pair.dens > 1 else 1, 3.0)
    normals = [np.ones((3, 1))] if pair.normals else []
    u = direct_sum(name, x, x, dens, *normals, **dict.fromkeys(pair.names, 0.5))
    if pair.singular:
        assert not u.any()
    else:
        assert u == pytest.approx(exact(name, x, x, dens, [0.5] * len(pair.names)), rel=1e-14)
        assert u.all() == (name not in ("biharmonic", "thin_plate"))


def test_smoothness():
    assert {name for name, pair in PAIRS.items() if not pair.smooth} == {"oscillatory", "gaussian"}
    assert not Pair("mine", 1, 1, "mine.py").smooth
    assert PAIRS["laplace"].separation() == 0
    assert PAIRS["rpy"].separation((0.3,)) == 0.6
    assert PAIRS["spline_coulomb"].separation((0.5,)) == 1.4
    assert pairs.find("rpy", radius=0.25).separation() == 0.5


# Kernels of callers

RADIAL = '''"""A radial kernel of one's own: phi = (r^2 + 1)^p."""

from typing import List

import pykokkos as pk

real = pk.double
NP = 1


@pk.function
def radial(r2: real, w: real, p: List[real], out: List[real]) -> None:
    """phi, phi'/r."""
    out[0] = pk.pow(r2 + 1.0, p[0])
    out[1] = 2.0 * p[0] * pk.pow(r2 + 1.0, p[0] - 1.0)
'''


def test_a_radial_kernel_of_ones_own(rng, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(RADIAL, "utf-8")
    mine = Pair("mine", 1, 1, "pair/radial", names=("p",), slots=(("radial", str(path)),), singular=False)
    x, y, q = rng.standard_normal((3, 6)), rng.standard_normal((3, 9)), rng.standard_normal(9)
    r = x[:, :, None] - y[:, None]
    s = np.sum(r**2, axis=0) + 1
    assert direct_sum(mine, x, y, q, p=0.3) == pytest.approx(s**0.3 @ q, rel=1e-12)
    u = direct_sum(mine.with_gradient(), x, y, q, p=0.3)
    assert u[0] == pytest.approx(s**0.3 @ q, rel=1e-12)
    assert u[1:] == pytest.approx(0.6 * np.einsum("dij,ij,j->di", r, s**-0.7, q), rel=1e-12, abs=1e-12)


def test_files_of_ones_own(root):
    path = root / "examples" / "regularised_stokeslet.py"
    mine = pairs.find(path)
    assert mine == pairs.own(str(path)) == pairs.find(str(path))
    assert (str(mine), mine.dens, mine.result, mine.names) == ("regularised_stokeslet.py", 4, 3, ())
    with pytest.raises(ValueError, match=r"regularised_stokeslet.py has no gradient; expected one of 'laplace'"):
        mine.with_gradient()


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "marked"])
def test_files_are_found_by_path_whatever_their_names(mark, root, tmp_path, rng):
    path, x, q = tmp_path / "mine", rng.standard_normal((3, 6)), rng.standard_normal(6)
    path.write_text(mark + (root / "kernels" / "pair" / "laplace.py").read_text("utf-8"), "utf-8")
    exact = direct_sum("laplace", x, x, q)
    for kernel in (path, str(path), Pair("mine", 1, 1, path)):
        assert direct_sum(kernel, x, x, q) == pytest.approx(exact, rel=1e-12)
    near = reference_kernels.function(pairs.find(path).pair, "pair", SCREENED=False)
    near(0.0, 0.0, 2.0, 4.0, 0.5, [], [3.0], found := [0.0])
    assert found == [1.5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pairs.find("laplacian"), "kernel is 'laplacian'; expected one of 'laplace', .*rotation', 'coulomb'"),
        (lambda: pairs.find("regularised_yukawa", kappa=1.0), "epsilon is missing; regularised_yukawa expects a pos"),
        (lambda: pairs.find("rpy", radius=0.0), "radius is 0.0; expected a positive number"),
        (lambda: pairs.find("rpy", radius="large"), "radius is 'large'; expected a positive number"),
        (lambda: pairs.find("rpy", engine="parki"), "engine was given, but rpy takes radius"),
        (lambda: pairs.find("gaussian", epsilon=1.0), "epsilon was given, but gaussian takes width"),
        (lambda: pairs.find("stokeslet", mu=1.0), "mu was given, but stokeslet takes no parameters"),
        (lambda: PAIRS["rpy"].with_gradient(), "rpy has no gradient; expected one of 'laplace', 'yukawa', .*'coulomb'"),
        (lambda: PAIRS["stokes_sl"].with_gradient(), "stokes_sl has its gradient alone; expected only=True"),
        (lambda: Pair("own", 3, 3, "own.py", normals=True).linear(), "own has normals .* stokes_dl and stokes_comb"),
    ],
)
def test_wrong_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_things_that_are_no_kernels():
    with pytest.raises(TypeError, match=r"kernel is a int; expected a name, the path of a file, a function or a Pair"):
        pairs.find(3)
    with pytest.raises(TypeError, match="kernel is a NoneType"):
        direct_sum(None, *[np.zeros((3, 1))] * 2, np.ones(1))


def test_the_wave_number_has_a_default():
    x = np.array([[0.5], [0.0], [0.0]])
    assert direct_sum("oscillatory", x, 0 * x, np.ones(1)) == pytest.approx([2.0], rel=1e-15)
    assert direct_sum("oscillatory", x, 0 * x, np.ones(1), k=math.pi / 3) == pytest.approx([1.0], rel=1e-15)


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        (
            Pair("a", 3, 1, "pair/stokeslet"),
            "kernel a has 3 numbers of a source .* and 1 of a result; expected 3 and 3",
        ),
        (Pair("a", 1, 3, "pair/laplace"), "kernel a has 1 numbers of a source .* and 3 of a result; expected 1 and 1"),
        (Pair("a", 3, 3, "pair/stokeslet", normals=True), "kernel a has 6 numbers of a source .*normals 3"),
        (Pair("a", 1, 1, "pair/yukawa"), "kernel a has 1 numbers of a source .*; expected 2 and 1"),
        (Pair("a", 1, 1, "pair/radial", slots=(("radial", "radial/gaussian"),)), "expected 2 and 1, NS and NU"),
        (Pair("a", 1, 1, "pair/yukawa", names=("k",), parameters=(math.nan,)), "k is nan; expected a positive number"),
        (Pair("a", 1, 1, "pair/yukawa", names=("k",), parameters=(1.0, 2.0)), "kernel a has 2 parameters for 1 names"),
    ],
)
def test_counts_that_are_not_those_of_the_file(pair, text, rng):
    """Check everywhere that takes a pair: the kernel would read beyond the given arrays."""
    x = rng.random((3, 8))
    for enter in (
        lambda: direct_sum(pair, x, x, np.ones((pair.dens, 8)) if pair.dens > 1 else np.ones(8)),
        lambda: parki.treecode.plan(pair, x, x),
        lambda: parki.fmm.plan(pair, x, x),
        lambda: parki.fmm.plan(pair, x, x, method="chebyshev"),
    ):
        with pytest.raises(ValueError, match=text):
            enter()


def test_counts_of_an_ewald_kernel_are_those_of_the_file():
    kernel = dataclasses.replace(parki.ewald.kernels.STOKES_SL, pair="pair/laplace")
    with pytest.raises(ValueError, match=r"kernel stokes_sl has 3 numbers of a source .*; expected 1 and 1"):
        parki.ewald.plan(kernel, np.ones((3, 2)), np.ones((3, 2)), box=(2, 2, 2))
