"""Wrong input of treecodes: errors name the argument, the value found and the value expected."""

import numpy as np
import pytest

import parki

WRONG = [
    ({"theta": 0.0}, "theta is 0.0; expected a number between 0 and 1"),
    ({"theta": 1}, "theta is 1; expected a number between 0 and 1"),
    ({"theta": np.nan}, "theta is nan; expected a number between 0 and 1"),
    ({"theta": "0.5"}, "theta is '0.5'; expected a number between 0 and 1"),
    ({"degree": 0}, "degree is 0; expected a positive whole number up to 23"),
    ({"degree": 24}, "degree is 24; expected a positive whole number up to 23"),
    ({"degree": 4.0}, "degree is 4.0; expected a positive whole number up to 23"),
    ({"degree": True}, "degree is True; expected a positive whole number up to 23"),
    ({"batch_size": 2.5}, "batch_size is 2.5; expected a positive whole number"),
    ({"tolerance": 1e-3, "degree": 3}, "tolerance was given with theta or degree, which it chooses"),
    ({"tolerance": 1e-3, "theta": 0.5}, "tolerance was given with theta or degree, which it chooses"),
    ({"far_precision": "half"}, "far_precision is 'half'; expected one of None, 'double', 'single'"),
    ({"variant": "cc"}, "variant is 'cc'; expected one of 'pc', 'cp'"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[text for _, text in WRONG])
def test_wrong_input(change, message):
    good = {"targets": np.zeros((3, 2)), "sources": np.eye(3, 4), "density": np.ones(4)}
    with pytest.raises(ValueError, match=message):
        parki.treecode.bltc(**(good | change))
    if "variant" not in change:
        with pytest.raises(ValueError, match=message):
            parki.treecode.bldtt(**(good | change))


def test_unknown_methods():
    x = np.zeros((3, 2))
    with pytest.raises(ValueError, match="method is 'bldtt'; expected one of 'dual', 'pc', 'cp'"):
        parki.treecode.plan("coulomb", x, x, method="bldtt")
