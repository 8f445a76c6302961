"""Tables of scalar multipliers that a space fills in, beside those that the host computes."""

from dataclasses import replace

import numpy as np
import pytest

from parki.arrays import to_host
from parki.engine import spaces
from parki.engine.steps import Steps
from parki.ewald import kernels
from parki.ewald.choice import choose
from parki.ewald.choice.question import Question
from parki.ewald.stages import multipliers
from tests.quick import every

GIVEN = {"yukawa": {"kappa": 2.0}, "rpy": {"radius": 0.05}, "regularised_stokeslet": {"epsilon": 0.2}}
GIVEN |= {"regularised_dipole": {"epsilon": 0.2}}
NAMES = ["laplace", "yukawa", "stokes_sl", "rpy", "laplace root", "regularised_stokeslet", "regularised_dipole"]
SKEW = (0.3, -0.2, 0.1)
PLACES = [(1, None), (2, None), (3, None), (3, SKEW)]
TYPES = ("float64", "float32")
#: Every name and place in one type in every run, and in the other in slow ones.
CASES = [
    (name, *place, TYPES[(i + j + k) % 2])
    for i, name in enumerate(NAMES)
    for j, place in enumerate(PLACES)
    for k in range(2)
]


@pytest.mark.portability
@pytest.mark.parametrize(("name", "periodicity", "skew", "dtype"), every(2, CASES))
def test_filled_tables(name, periodicity, skew, dtype, space, monkeypatch):
    """Every table is filled in, except where modes have no periodic part, and is that of the host."""
    monkeypatch.setattr(multipliers, "LARGE", 2)
    name, _, root = name.partition(" ")
    kernel = kernels.find(name, **GIVEN.get(name, {}))
    p = choose.parameters(
        Question(kernel, (1.3, 0.8, 1.1), 500, 500, 1e-5, far=dtype, periodicity=periodicity, skew=skew)
    )
    p = replace(p, kernel=replace(p.kernel, root=bool(root)))
    filled, classes = 0, multipliers.planes(p)
    for planes in classes:
        tables, first = multipliers.tables(p, planes)
        expected, green = multipliers.table(p, planes), tables["green"]
        found = to_host(Steps([], first).place(spaces.get(space))[green]) if first else green.values
        filled += len(first)
        assert found.dtype == expected.dtype == dtype
        close = {"float64": 1e-12, "float32": 1e-6}[dtype]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=close * np.abs(expected).max())
    assert filled == len(classes) - (periodicity < 3)
