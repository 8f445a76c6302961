"""Warnings of sums that mean something by convention only, or whose relative error says little."""

import warnings

import numpy as np
import pytest

import parki
from parki.error import CancellationWarning, NetDensityWarning
from tests.ewald import sums
from tests.quick import but


def warned(call, category):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [w for w in caught if w.category is category]


NET = {
    "laplace": "total charge is 40: a uniform neutralising background",
    "laplace_grad": "total charge is 40: a uniform neutralising background",
    "stokes_sl": "total force is 40, 40, 40: a mean pressure gradient",
    "stokes_comb": "total force is 40, 40, 40: a mean pressure gradient",
    "stokes_grad": "total force is 40, 40, 40: a mean pressure gradient",
    "regularised_stokeslet": "total force is 40, 40, 40: a mean pressure gradient",
    "rpy": "total force is 40, 40, 40: a mean pressure gradient",
    "rpy_rotation": "total force is 40, 40, 40: a mean pressure gradient",
}


NO_NET = ("laplace_dipole", "yukawa", "stokes_dl", "stokes_dipole", "rotlet", "regularised_dipole")
QUICK = ("laplace_dipole", "stokes_dl", "laplace", "stokes_sl", "stokes_comb")


@pytest.mark.parametrize("kernel", but(*{*NO_NET, *NET}.difference(QUICK), of=(*NO_NET, *NET)))
def test_a_net_density_warns_once_a_plan(kernel, rng):
    x, pair = rng.random((3, 40)), parki.pairs.PAIRS[kernel]
    more = sums.PARAMETERS.get(kernel, {})
    plan = parki.ewald.plan(kernel, x, x, box=(1, 1, 1), tolerance=1e-3, **more)
    dens = np.ones((pair.dens, 40))
    normals = [rng.standard_normal((3, 40))] if pair.normals else []
    neutral = dens * np.where(np.arange(40) % 2, 1.0, -1.0)

    def call(values):
        return lambda: plan(values if pair.dens > 1 else values[0], *normals)

    found = warned(call(dens), NetDensityWarning)
    assert len(found) == (kernel in NET)
    for one in found:
        assert NET[kernel] in str(one.message)
        assert str(one.message).startswith("periodicity is 3 and ")
        assert one.filename == __file__
    assert warned(call(dens), NetDensityWarning) == []
    plan.move(x)
    assert warned(call(neutral), NetDensityWarning) == []


@pytest.mark.parametrize("periodicity", [0, 1, 2])
def test_free_directions_have_a_field_of_their_own(periodicity, rng):
    """A net charge has a field outside, too, so no background is added and no warning given."""
    x = rng.random((3, 40))
    options = {"box": (1, 1, 1), "periodicity": periodicity, "tolerance": 1e-3}
    assert not warned(lambda: parki.ewald.laplace(x, x, np.ones(40), **options), NetDensityWarning)


def test_rounding_is_no_charge(rng):
    x = rng.random((3, 3000))
    for dtype in (np.float64, np.float32):
        q = rng.standard_normal(3000)
        q = (q - q.mean()).astype(dtype)
        y = x.astype(dtype)
        assert not warned(
            lambda y=y, q=q: parki.ewald.laplace(y, y, q, box=(1, 1, 1), tolerance=1e-3), NetDensityWarning
        )


def test_second_sums_are_silent(rng):
    """Second sums of measured errors and of transposed operators do not warn."""
    x = rng.random((3, 40))
    plan = parki.ewald.plan("laplace", x, x.copy(), box=(1, 1, 1), tolerance=1e-3)
    plan(np.ones(40))
    assert not warned(lambda: (plan.error(), plan.operator().T @ np.ones(40)), NetDensityWarning)


CALLS = {
    "3P": lambda x, y, q: parki.ewald.laplace(x, y, q, box=(1, 1, 1), tolerance=1e-3, return_error=True),
    "0P": lambda x, y, q: parki.ewald.laplace(x, y, q, periodicity=0, tolerance=1e-3, return_error=True),
    "bldtt": lambda x, y, q: parki.treecode.bldtt(x, y, q, tolerance=1e-3, return_error=True),
    "kifmm": lambda x, y, q: parki.fmm.kifmm(x, y, q, tolerance=1e-3, return_error=True),
}


@pytest.mark.parametrize("method", CALLS)
def test_a_sum_that_cancels_warns(method, rng):
    """Opposite charges lie so close together that their potentials elsewhere cancel."""
    x = rng.random((3, 200))
    sources = np.concatenate([x[:, 50:], x[:, 50:] + 1e-8 * rng.standard_normal((3, 150))], axis=1) % 1
    found = warned(lambda: CALLS[method](x[:, :50], sources, np.repeat([1.0, -1.0], 150)), CancellationWarning)
    assert len(found) == 1
    assert "below the tolerance 0.001" in str(found[0].message)
    assert not warned(lambda: CALLS[method](x[:, :50], sources, rng.standard_normal(300)), CancellationWarning)
