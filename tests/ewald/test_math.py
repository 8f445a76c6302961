"""Mathematics of the fully periodic sum: profiles, tables, windows, multipliers, and parameters that hold."""

import dataclasses

import numpy as np
import pytest
from numpy.polynomial import polynomial
from scipy.special import erf

from parki.ewald.choice import choose
from parki.ewald.choice.arrangement import Arrangement
from parki.ewald.choice.question import Question
from parki.ewald.split import far_parts, layers, profiles, series, window
from parki.ewald.stages import green, multipliers, radial
from parki.perfmodels import select
from tests import reference
from tests.ewald import prototype, tails

KERNELS = ("laplace", "stokes_sl", "stokes_comb")
LAYERS = (layers.LAPLACE, layers.STOKES_SL, layers.STOKES_DL)

CUBE, BRICK, LONG = (1.0, 1.0, 1.0), (1.3, 0.8, 1.7), (1.0, 2.0, 3.0)


# Profiles


@pytest.mark.parametrize("c", [3.0, 12.0, 25.0, 40.0])
def test_prolate_is_its_own_fourier_transform(c):
    nodes, weights = np.polynomial.legendre.leggauss(80)
    psi = profiles.Prolate(c, 1.0)
    x = np.linspace(0, 1, 17)
    transform = np.cos(c * np.outer(x, nodes)) @ (weights * psi.phi(nodes))
    assert psi.phi(x) == pytest.approx(transform / transform[0], abs=5e-15)


@pytest.mark.parametrize("split", [profiles.Prolate(20.0, 5.0), profiles.Gaussian(1.5, 20.0)])
def test_curvature_and_stokes_profile(split):
    k = np.linspace(0, 0.4, 21)
    fit = polynomial.polyfit(k**2, np.array([split.phi(k), split.phi_stokes(k)]).T, 5)
    assert fit[0] == pytest.approx([1, 1], abs=1e-12)
    assert 2 * fit[1] == pytest.approx([split.curvature, 0], abs=1e-8)
    assert split.phi(1.001 * split.kmax) == 0


def test_unknown_split_is_refused():
    with pytest.raises(ValueError, match="split: found 'none'"):
        profiles.profile("none", 10.0, 1.0, 1.0)


# Near field


def test_gaussian_tables_are_the_kernels_of_ewald_and_hasimoto():
    xi, r = 2.3, np.linspace(0.05, 1, 30)
    F, D, E, G = tails.parts(profiles.Gaussian(xi, 40.0), r)
    a, b = erf(xi * r) / r, 2 * xi / np.sqrt(np.pi) * np.exp(-((xi * r) ** 2))
    assert pytest.approx(a, abs=1e-13) == F
    assert D + r**2 * E == pytest.approx(a + b, abs=1e-13)
    assert -(r**2) * E == pytest.approx(a - b, abs=1e-13)
    # C of the stresslet; the free kernel has none.
    assert -(3 * E + 2 * r**2 * G) == pytest.approx(2 * xi**2 * b, abs=1e-12)


def test_each_table_is_the_derivative_of_the_one_before():
    split = profiles.Prolate(18.0, 18.0)
    tau, step = np.linspace(0.01, 0.99, 15), 1e-4
    E, G = tails.parts(split, np.sqrt(tau))[2:]
    _, above, e_above, _ = tails.parts(split, np.sqrt(tau + step))
    _, below, e_below, _ = tails.parts(split, np.sqrt(tau - step))
    assert (above - below) / (2 * step) == pytest.approx(E, rel=2e-6)
    assert (e_above - e_below) / (2 * step) == pytest.approx(G, rel=2e-6)


@pytest.mark.parametrize("layer", LAYERS, ids=str)
@pytest.mark.parametrize("c", [3.0, 6.0, 12.0, 22.0])
def test_truncation_is_the_integral_of_the_near_field(layer, c):
    exact = np.sqrt(tails.integral(layer, profiles.Prolate(c, c), 1.0))
    assert layer.truncation("prolate", c, 0.0) == pytest.approx(exact, rel=0.01)
    # A cutoff of another length, in the units of the documentation.
    scaled = tails.integral(layer, profiles.Prolate(c, c / 0.3), 0.3)
    assert np.sqrt(scaled / (1 / 0.3 if layer.steep else 0.3)) == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_tables_keep_their_accuracy_in_powers(kernel, dtype, tolerance):
    p = choose.parameters(Question(kernel, CUBE, 1000, 1000, tolerance, dtype))
    r = np.linspace(0, p.rc, 300)
    split = profiles.profile(p.split, p.c, p.rc, p.xi)
    exact = np.array([far_parts.values(part, split, r) for part in p.kernel.far])
    tables = radial.tables(p)
    assert tables.shape == (len(exact), p.radial_degree + 1)
    assert tables.dtype == dtype
    t = (2 * (r / p.rc) ** 2 - 1).astype(dtype)
    for row, values in zip(tables, exact, strict=True):
        assert np.abs(prototype.horner(row, t) - values).max() <= 0.3 * tolerance * np.abs(values).max()


# Windows


@pytest.mark.parametrize(("P", "beta"), [(4, 8.5), (7, 15.0), (13, 27.0), (16, 33.0)])
def test_window_polynomials(P, beta):
    degree = P // 2 + 6
    values, slopes = window.fit(P, beta, degree)
    assert values.shape == slopes.shape == (degree + 1, P)
    y = np.linspace(3.0, 4.0, 40, endpoint=False)
    first = np.ceil(y - P / 2)
    s = first - y + P / 2 - 0.5
    z = (2 / P) * (first + np.arange(P)[:, None] - y)
    got = [prototype.horner(c[:, :, None], s + np.zeros((P, 1))) for c in (values, slopes)]
    step, mean = 1e-6, window.transform(P, beta, 0.0, 1.0)
    taps, slopes = window.value(z, beta), -2 / P * window.slope(z, beta)
    difference = window.value(z - 2 / P * step, beta) - window.value(z + 2 / P * step, beta)
    inside = np.abs(z) < 1 - 4 * step
    assert slopes[inside] == pytest.approx((difference / (2 * step))[inside], abs=3e-6)
    taps *= mean / taps.sum(axis=0)
    slopes -= taps * slopes.sum(axis=0) / mean
    slopes *= mean / (P / 2 * z * slopes).sum(axis=0)
    assert got[0] == pytest.approx(taps, abs=3e-6 if P == 4 else 2e-8)
    assert got[1] == pytest.approx(slopes, abs=3e-6)


def test_long_waves_have_no_aliases():
    P, beta = 8, 16.0
    mean = window.transform(P, beta, 0.0, 1.0)
    s = np.linspace(-0.5, 0.5, 33)
    values, slopes = (prototype.horner(c[:, :, None], s + np.zeros((P, 1))) for c in window.fit(P, beta, 7))
    places = np.arange(P)[:, None] + 0.5 + s - P / 2
    assert values.sum(axis=0) == pytest.approx(mean, rel=1e-14)
    assert slopes.sum(axis=0) == pytest.approx(0, abs=1e-14 * mean)
    assert (places * slopes).sum(axis=0) == pytest.approx(mean, rel=2e-8)


def test_window_transform():
    nodes, weights = np.polynomial.legendre.leggauss(60)
    P, beta, h = 9, 20.0, 0.15
    a = 0.5 * P * h
    k = np.linspace(0, 1.6, 33) * beta / a
    exact = a * np.cos(np.outer(k * a, nodes)) @ (weights * window.value(nodes, beta))
    assert window.transform(P, beta, k, h) == pytest.approx(exact, abs=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
def test_alias_estimate(rng, kernel):
    """Compare the grid's error, measured against a much better window, to the estimate, within a factor of 3."""
    n = 60
    x, dens, normals = rng.random((3, n)), rng.standard_normal((6, n)), rng.standard_normal((3, n))
    layer, dens = {"laplace": (layers.LAPLACE, dens[0]), "stokes_sl": (layers.STOKES_SL, dens[:3])}.get(
        kernel, (layers.STOKES_DL, dens * np.array([0, 0, 0, 1, 1, 1])[:, None])
    )
    p = choose.parameters(Question(kernel, CUBE, n, n, 1e-5, rc=0.5))
    p = dataclasses.replace(p, grid=(14, 14, 14), h=(1 / 14,) * 3, P=6, beta=14.0, window_degree=10)
    q = dataclasses.replace(p, grid=(24, 24, 24), h=(1 / 24,) * 3, P=16, beta=38.0, window_degree=14)
    given = x, x, dens, normals
    error = np.sqrt(np.sum((prototype.far(p, *given) - prototype.far(q, *given)) ** 2) / n)
    everywhere, coincident = window.alias(layer, p.split, p.c, 0.0, 0.1, p.P, p.beta, np.pi * 14 / p.kmax)
    total = np.sum(dens**2 * (np.sum(normals**2, axis=0) if layer.steep else 1.0))
    power = -1 if layer.steep else 1
    estimate = np.hypot(everywhere * p.rc ** (power / 2), coincident / np.sqrt(n) / p.rc ** (1 if power > 0 else 2))
    assert 1 / 3 < error / (np.sqrt(total) * estimate) < 3


# The Fourier side


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kernel", ["laplace", "stokes_sl"])
def test_table(kernel, dtype):
    """A single class of planes holds all modes with 0 <= kx <= kmax; modes beyond kmax are zero."""
    p = choose.parameters(Question(kernel, BRICK, 500, 500, 1e-4, far=dtype))
    (planes,) = multipliers.planes(p)
    table, (kx, ky, kz) = multipliers.table(p, planes), multipliers.Factors.of(p, planes).waves
    assert table.dtype == kx.dtype == dtype
    assert (planes.rows, planes.length) == p.grid[1:]
    assert planes.modes == tuple(range(int(p.kmax * p.box[0] / (2 * np.pi)) + 1))
    axes = prototype.axes(p)
    for (k, _), found in zip(axes[:2], (kx, ky), strict=True):
        assert found == pytest.approx(k[: len(found)], rel=1e-6)
    assert kz[: len(axes[2][0]) - 1] == pytest.approx(axes[2][0][:-1], rel=1e-6)
    k = [axes[0][0][: len(kx)], np.abs(axes[1][0][: p.grid[1] // 2 + 1]), axes[2][0]]
    d = [factor[: len(at)] / m for (_, factor), at, m in zip(axes, k, p.grid, strict=True)]
    kk = sum(np.square(a.astype(float)) for a in np.ix_(*k))
    split = profiles.profile(p.split, p.c, p.rc, p.xi)
    phi = (split.phi if kernel == "laplace" else split.phi_stokes)(np.sqrt(kk))
    exact = (4 if kernel == "laplace" else 8) * np.pi * phi / np.where(kk > 0, kk, np.inf)
    exact = np.where(kk <= p.kmax**2, exact, 0.0) * np.einsum("a,b,c->abc", *d)
    assert np.abs(table - exact).max() <= p.tolerance * np.abs(exact).max()
    assert np.count_nonzero(table) == np.count_nonzero(exact)


@pytest.mark.parametrize("split", profiles.SPLITS)
@pytest.mark.parametrize("kernel", ["laplace", "stokes_sl"])
def test_profile_polynomial(split, kernel):
    p = choose.parameters(Question(kernel, CUBE, 500, 500, 1e-10, split=split))
    x = np.linspace(0, 1, 101)
    exact = profiles.profile(p.split, p.c, p.rc, p.xi)
    exact = (exact.phi if kernel == "laplace" else exact.phi_stokes)(x * p.kmax * (1 - 1e-14))
    assert prototype.horner(green.profile(p), 2 * x**2 - 1) == pytest.approx(exact, abs=2e-12)


@pytest.mark.parametrize("split", profiles.SPLITS)
def test_background_removes_the_mean(split):
    p = choose.parameters(Question("laplace", BRICK, 500, 500, 1e-8, split=split))
    curvature = profiles.profile(p.split, p.c, p.rc, p.xi).curvature
    assert green.constants(p)[0] == pytest.approx(2 * np.pi * curvature / np.prod(BRICK), rel=1e-6)
    q = choose.parameters(Question("stokes_sl", BRICK, 500, 500, 1e-8, split=split))
    assert abs(green.constants(q)[0]) <= 1e-6 * abs(green.constants(p)[0])


# Parameters


def sums(kernel, rng, n, box, spread="uniform"):
    """Return targets, sources, strengths and unit normals."""
    sides = np.array(box)[:, None]
    y = rng.random((3, n)) * sides
    if spread == "cluster":
        y = (0.3 * sides + 0.05 * min(box) * rng.standard_normal((3, n))) % sides
    elif spread == "lattice":
        m = round(n ** (1 / 3))
        y = (np.indices((m, m, m)).reshape(3, -1) + 0.5 + 0.2 * rng.random((3, m**3))) / m * sides
    x = rng.random((3, n // 2)) * sides if spread == "apart" else y
    dens = rng.standard_normal({"laplace": y.shape[1:], "stokes_sl": y.shape}.get(kernel, (6, y.shape[1])))
    normals = rng.standard_normal(y.shape)
    return x, y, dens, normals / np.linalg.norm(normals, axis=0)


def ratio(p, given):
    """Return the measured error over the tolerance."""
    given = [np.asarray(a.astype(p.dtype), np.float64) for a in given]
    exact = reference.potential(p.kernel.name, *given, box=p.box)
    return reference.relative_rms(prototype.ewald(p, *given), exact) / p.tolerance


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("split", profiles.SPLITS)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-9, 1e-12])
def test_tolerance_is_met(rng, tolerance, split, kernel):
    box = CUBE if tolerance in (1e-2, 1e-9) else LONG
    given = sums(kernel, rng, 120, box)
    p = choose.parameters(Question(kernel, box, 120, 120, tolerance, split=split))
    assert 0.003 < ratio(p, given) < 0.7


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("spread", ["cluster", "lattice", "apart"])
def test_tolerance_is_met_for_other_points(rng, spread, kernel):
    given = sums(kernel, rng, 125, BRICK, spread)
    for tolerance in (1e-3, 1e-8):
        assert ratio(choose.parameters(Question(kernel, BRICK, given[0].shape[1], 125, tolerance)), given) < 0.9


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_tolerance_is_met_in_single_precision(rng, tolerance, kernel):
    p = choose.parameters(Question(kernel, BRICK, 150, 150, tolerance, "float32"))
    assert ratio(p, sums(kernel, rng, 150, BRICK)) < 0.7
    assert prototype.ewald(p, *sums(kernel, rng, 5, BRICK)).dtype == "float32"


@pytest.mark.parametrize("cutoff", [{"rc": 0.25}, {"rc": 1.0}, {"cell_size": 3.0}, {"cell_size": 1e6}])
def test_tolerance_is_met_at_a_given_cutoff(rng, cutoff):
    p = choose.parameters(Question("stokes_comb", CUBE, 100, 100, 1e-4, **cutoff))
    assert p.rc == pytest.approx(cutoff.get("rc", min(1.0, (cutoff.get("cell_size", 0) / 100) ** (1 / 3))))
    assert ratio(p, sums("stokes_comb", rng, 100, CUBE)) < 0.7


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [2, 3, 10])
def test_tolerance_is_met_for_few_points(rng, kernel, n):
    assert ratio(choose.parameters(Question(kernel, CUBE, n, n, 1e-6)), sums(kernel, rng, n, CUBE)) < 0.9


def test_equal_forces_leave_no_mean_error(rng):
    """Equal forces make coherent errors beyond rc, which the background corrects."""
    x = rng.random((3, 300))
    p = choose.parameters(Question("stokes_sl", CUBE, 300, 300, 1e-3, split="gaussian", rc=0.45))
    given = x, x, np.ones((3, 300)), x
    assert ratio(p, given) < 0.7


@pytest.mark.parametrize("kernel", KERNELS)
def test_crystals_get_more_bandwidth(kernel):
    plain, regular = (
        choose.parameters(Question(kernel, CUBE, 500, 500, 1e-6, rc=0.3, arrangement=Arrangement(r, (), True)))
        for r in (0.0, 1.0)
    )
    assert plain.c + 1.5 < regular.c < plain.c + 6


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [0, 1, 50, 20_000, 1_000_000])
@pytest.mark.parametrize("box", [CUBE, LONG, (20.0, 1.0, 1.0)])
def test_parameters_fit_together(box, n, kernel):
    for tolerance in (0.3, 1e-6, 1e-15):
        p = choose.parameters(Question(kernel, box, n, n, tolerance))
        assert 0 < p.rc <= min(box)
        assert p.c == pytest.approx(p.kmax * p.rc)
        assert p.xi == pytest.approx(np.sqrt(p.c / 2) / p.rc)
        for m, h, side in zip(p.grid, p.h, box, strict=True):
            assert m in select.even_sizes()
            assert m >= p.P
            assert h == pytest.approx(side / m, rel=1e-14)
            assert p.kmax < np.pi / h
        if n >= select.BUDGET_FROM:
            held = float(np.prod(np.array(p.grid) + p.P))
            assert select.grid_bytes(p.kernel, held, 8) + select.PARTICLE_BYTES * n <= select.BUDGET * n


def test_a_tighter_tolerance_costs_more():
    found = [choose.parameters(Question("laplace", CUBE, 5000, 5000, 10.0**-digits, rc=0.2)) for digits in range(2, 13)]
    for name in ("c", "kmax", "radial_degree", "P"):
        values = [getattr(p, name) for p in found]
        assert values == sorted(values)
        assert values[0] < values[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": "helmholtz"}, "kernel is 'helmholtz'; expected one of 'laplace'"),
        ({"dtype": "int32"}, "dtype: found 'int32'"),
        ({"split": "none"}, "split: found 'none'"),
        ({"box": (1.0, 0.0, 1.0)}, "box: found"),
        ({"n_sources": -1}, "n_targets, n_sources: found 10, -1"),
        ({"tolerance": 0.0}, "tolerance: found 0.0"),
        ({"rc": 1.5}, "rc: found 1.5"),
        ({"rc": 0.2, "cell_size": 5.0}, "rc, cell_size: found both"),
        ({"cell_size": -1.0}, "cell_size: found -1.0"),
        ({"rc": 1e-6}, "a larger rc"),
    ],
)
def test_bad_questions_are_refused(change, message):
    question = {"kernel": "laplace", "box": CUBE, "n_targets": 10, "n_sources": 10, "tolerance": 1e-3}
    with pytest.raises(ValueError, match=message):
        choose.parameters(Question(**question | change))


def test_series_and_powers_are_one_polynomial(rng):
    t = series.points(12)
    values = rng.standard_normal((3, 12))
    found = series.coefficients(values)
    assert prototype.horner(series.powers(found).T[:, :, None], t + np.zeros((3, 1))) == pytest.approx(
        values, abs=1e-11
    )
    assert series.degree(np.array([1.0, 0.1, 1e-3, 1e-5]), 2e-3) == 1
