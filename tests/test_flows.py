"""Parts of Stokes flows, against the file of the pair function and its values."""

import numpy as np
import pytest

from parki import engine, flows
from parki.fmm import representations
from parki.pairs import Pair

PARTS = [
    ("FORCE", "VELOCITY"), ("FORCE", "FLOW", "VELOCITY", "PRESSURE"), ("FORCE", "FLOW", "GRADIENT"),
    ("TORQUE", "VELOCITY"), ("TENSOR", "VELOCITY"), ("FORCE", "TENSOR", "VELOCITY", "PRESSURE"),
]  # fmt: skip


@pytest.mark.parametrize("parts", PARTS, ids="-".join)
def test_numbers_are_those_of_the_file(parts):
    fields = flows.of(*parts)
    counts = engine.constants("matrix", "entries", ("NS", "NU"), pair=fields["pair"], **dict(fields["slots"]))
    assert counts == (fields["dens"], fields["result"])
    assert flows.parts(dict(fields["slots"])) == list(parts)


@pytest.mark.parametrize("parts", PARTS, ids="-".join)
def test_powers_of_length(parts, rng):
    """Compare values at twice the distances, bit for bit."""
    pair, r = Pair("flow", **flows.of(*parts)), rng.standard_normal((20, 3))
    powers = np.add.outer(pair.law.result, pair.law.dens)
    a, b = representations.block(pair, r), representations.block(pair, 2 * r)
    assert a.shape == (20, pair.result, pair.dens)
    np.testing.assert_array_equal(np.ldexp(a, powers), b)
