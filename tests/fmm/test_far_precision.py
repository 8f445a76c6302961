"""Boxes that meet in single precision: where tolerances allow it, on request, and not beyond its range."""

import numpy as np
import pytest

import parki
from parki import samples
from parki.direct import direct_sum
from parki.fmm.surface_expansion import _transforms
from parki.pairs import find
from tests.methods.sums import relative


def plan(kernel, n=1500, **options):
    x = samples.plummer(n, 4)
    return parki.fmm.plan(kernel, x, x, execution_space="Serial", **({"leaf_size": 30} | options))


def spectra(made):
    """Return the type of the points, and of the arrays between which boxes meet."""
    arrays = {a.dtype.name for a in made.structure.expansion.steps.handles if a.name.endswith("_spectra")}
    (found,) = arrays
    assert made.structure.expansion.spectra == found
    return found


@pytest.mark.parametrize(
    ("kernel", "options", "expected"),
    [
        ("coulomb", {"tolerance": 1e-6}, "float32"),
        ("coulomb", {"tolerance": 8e-7}, "float64"),
        ("coulomb", {"order": 5}, "float32"),
        ("coulomb", {"order": 9}, "float64"),
        ("coulomb", {"tolerance": 1e-5, "gradient": True}, "float32"),
        ("coulomb", {"tolerance": 1e-6, "gradient": "only"}, "float64"),
        ("laplace_dipole", {"tolerance": 1e-6}, "float64"),
        ("coulomb", {"tolerance": 1e-4, "far_precision": "double"}, "float64"),
        ("coulomb", {"order": 9, "far_precision": "single"}, "float32"),
    ],
)
def test_types(kernel, options, expected):
    made = plan(kernel, **options)
    assert spectra(made) == made.parameters.far == expected


@pytest.mark.parametrize("gradient", [False, "only"])
@pytest.mark.parametrize("shape", ["uniform", "plummer"])
def test_rounding_stays_below_the_tolerance(shape, gradient):
    """Sum charges of one sign, whose gradients nearly cancel."""
    x, q = getattr(samples, shape)(6000, 4), samples.charges(6000, 5)
    for charges in (q, abs(q) + 0.1):
        made = [
            parki.fmm.plan("coulomb", x, x, gradient=gradient, order=7, leaf_size=30, far_precision=precision)(charges)
            for precision in ("single", "double")
        ]
        assert 1e-9 < relative(made[0], made[1]) < (4e-6 if gradient else 4e-7)


def test_points_in_single_precision_may_meet_in_double():
    x, q = samples.plummer(1500, 4).astype(np.float32), samples.charges(1500, 5).astype(np.float32)
    made = parki.fmm.plan("coulomb", x, x, order=5, leaf_size=30, execution_space="Serial", far_precision="double")
    assert spectra(made) == "float64"
    u = made(q)
    assert u.dtype == np.float32
    assert relative(u, direct_sum("coulomb", x.astype(float), x.astype(float), q.astype(float))) < 1e-4


def test_a_range_that_is_too_short():
    pair = find("yukawa", kappa=100.0)
    near, apart = (_transforms(pair, half, 4, "float32") for half in (0.05, 1.0))  # from e^-10 and e^-200 on
    assert near.size > apart.size == 0
    np.testing.assert_allclose(near, _transforms(pair, 0.05, 4, "float64"), atol=1e-6 * np.abs(near).max())
    wide = _transforms(pair, 0.18, 4, "float32")  # from e^-36 to e^-180
    sizes = np.abs(wide[wide != 0])
    assert 1e-30 < sizes.min() < 1e-28 < 1e-20 < sizes.max()
    made = plan("yukawa", kappa=100.0, tolerance=1e-3)
    assert (made.parameters.far, spectra(made)) == ("float32", "float64")
    x, q = samples.plummer(1500, 4), samples.charges(1500, 5)
    assert relative(made(q), direct_sum("yukawa", x, x, q, kappa=100.0)) < 1e-3


@pytest.mark.parametrize(("gradient", "least"), [(False, 9e-7), (True, 9e-6)])
def test_tolerances_out_of_reach_are_said(gradient, least):
    options = {"gradient": gradient, "far_precision": "single"}
    text = f"a far field in single precision reaches here, about {least:g}; use far_precision='double'"
    with pytest.warns(parki.error.PrecisionWarning, match=text):
        plan("coulomb", tolerance=0.9 * least, **options)
    plan("coulomb", tolerance=least, **options)


def test_interpolation_has_the_precision_of_the_points():
    assert plan("coulomb", method="chebyshev", tolerance=1e-3).parameters.far == "float64"
    with pytest.raises(ValueError, match="far_precision is 'single' with method='chebyshev'; expected method='kifmm'"):
        plan("coulomb", method="chebyshev", far_precision="single")
