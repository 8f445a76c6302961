"""What does not fit is refused, with its name, what was found and what was expected."""

import numpy as np
import pytest

import parki
from parki.engine import KernelError

WRONG = [
    ({"targets": np.zeros((4, 2))}, r"targets has shape \(4, 2\); expected \(3, N\)"),
    ({"targets": np.zeros((2, 3))}, r'targets has shape \(2, 3\); expected \(3, N\). Pass targets.T, or layout="nd"'),
    ({"sources": np.zeros((3, 4), int)}, "sources has dtype int64; expected float32 or float64"),
    ({"sources": np.full((3, 4), np.inf)}, "sources has 12 of 12 values that are NaN or infinite"),
    ({"sources": np.zeros((3, 4), np.float32)}, "dtypes differ: targets float64, sources float32"),
    ({"charges": np.zeros(5)}, r"charges has shape \(5,\); expected \(4,\)"),
    ({"charges": np.zeros((0, 4))}, r"charges has shape \(0, 4\); expected at least one right-hand side"),
    ({"charges": np.zeros(4, np.float32)}, "dtypes differ: points float64, charges float32"),
    ({"charges": np.array([0, 1, np.nan, 0])}, r"charges has 1 of 4 .* \(first: charges\[2\] = nan\)"),
    ({"kernel": "stokeslet"}, r"charges has shape \(4,\); expected \(3, 4\)"),
    ({"kernel": "stresslet", "charges": np.ones((3, 4))}, r"normals is missing; stokes_dl expects \(3, 4\)"),
    ({"normals": np.ones((3, 4))}, "normals was given, but laplace takes none"),
    (
        {"kernel": "stresslet", "charges": np.ones((3, 4)), "normals": np.ones((3, 5))},
        r"normals has shape \(3, 5\); expected \(3, 4\)",
    ),
    ({"kernel": "colomb"}, "kernel is 'colomb'; expected one of 'laplace'"),
    ({"kernel": "yukawa"}, "kappa is missing; yukawa expects a positive number"),
    ({"kernel": "yukawa", "kappa": -2.0}, "kappa is -2.0; expected a positive number"),
    ({"kappa": 1.0}, "kappa was given, but laplace takes no parameters"),
    ({"length": 1.0}, "length was given, but laplace takes no parameters"),
    ({"theta": 0.0}, "theta is 0.0; expected a number between 0 and 1"),
    ({"theta": 1}, "theta is 1; expected a number between 0 and 1"),
    ({"theta": np.nan}, "theta is nan; expected a number between 0 and 1"),
    ({"theta": "0.5"}, "theta is '0.5'; expected a number between 0 and 1"),
    ({"degree": 0}, "degree is 0; expected a positive whole number up to 23"),
    ({"degree": 24}, "degree is 24; expected a positive whole number up to 23"),
    ({"degree": 4.0}, "degree is 4.0; expected a positive whole number up to 23"),
    ({"degree": True}, "degree is True; expected a positive whole number up to 23"),
    ({"leaf_size": 0}, "leaf_size is 0; expected a positive whole number"),
    ({"batch_size": 2.5}, "batch_size is 2.5; expected a positive whole number"),
    ({"tolerance": 0}, "tolerance is 0; expected a number between 0 and 1"),
    ({"tolerance": 1.5}, "tolerance is 1.5; expected a number between 0 and 1"),
    ({"tolerance": 1e-3, "degree": 3}, "tolerance was given with theta or degree, which it chooses"),
    ({"tolerance": 1e-3, "theta": 0.5}, "tolerance was given with theta or degree, which it chooses"),
    ({"gradient": "yes"}, "gradient is 'yes'; expected one of False, True, 'only'"),
    ({"gradient": 1}, "gradient is 1; expected one of False, True, 'only'"),
    ({"kernel": "rotlet", "gradient": True}, "rotlet has no gradient; expected one of 'laplace'"),
    ({"kernel": "stokeslet", "gradient": True}, "stokes_sl has its gradient alone; expected only=True"),
    ({"far_precision": "half"}, "far_precision is 'half'; expected one of None, 'double', 'single'"),
    ({"layout": "xyz"}, "layout is 'xyz'; expected one of 'dn', 'nd'"),
    ({"variant": "cc"}, "variant is 'cc'; expected one of 'pc', 'cp'"),
    ({"box": (1, 1, 1)}, "box was given, but treecodes sum in free space; parki.ewald has periodic boxes"),
    ({"periodicity": 3}, "periodicity was given, but treecodes sum in free space; parki.ewald"),
    ({"execution_space": "OpenMPI"}, "'OpenMPI'"),
    ({"execution_space": "Serial", "threads": 2}, "threads is 2 with execution_space 'Serial'"),
    ({"threads": 0}, "threads=0"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[text for _, text in WRONG])
def test_wrong_input(change, message):
    good = {"targets": np.zeros((3, 2)), "sources": np.eye(3, 4), "charges": np.ones(4)}
    with pytest.raises(ValueError, match=message):
        parki.treecode.bltc(**(good | change))
    if "variant" not in change:
        with pytest.raises(ValueError, match=message):
            parki.treecode.bldtt(**(good | change))


def test_other_wrong_input(tmp_path):
    x, q = np.zeros((3, 2)), np.ones(2)
    with pytest.raises(ValueError, match="method is 'bldtt'; expected one of 'dual', 'pc', 'cp'"):
        parki.treecode.plan("coulomb", x, x, method="bldtt")
    with pytest.raises(TypeError, match="kernel is a int; expected a name, the path of a file, or a Pair"):
        parki.treecode.plan(3, x, x)
    with pytest.raises(KernelError, match="no kernel file"):
        parki.treecode.plan(tmp_path / "none.py", x, x)
    with pytest.raises(ValueError, match="out was given with gradient=True, which has two results"):
        parki.treecode.plan("coulomb", x, x, gradient=True)(q, out=np.empty(2))
