"""Wrong input of treecodes and fast multipole methods: errors name the argument, the value and what is expected."""

import numpy as np
import pytest

import parki
from parki.pairs import PAIRS
from tests.methods.sums import FMM, TREECODES, once, plan

RANGE = "expected a positive whole number up to"
TREECODE = [
    ({"theta": 0.0}, "theta is 0.0; expected a number between 0 and 1"),
    ({"theta": 1}, "theta is 1; expected a number between 0 and 1"),
    ({"theta": np.nan}, "theta is nan; expected a number between 0 and 1"),
    ({"theta": "0.5"}, "theta is '0.5'; expected a number between 0 and 1"),
    *(({"degree": n}, f"degree is {n}; {RANGE} 23") for n in (0, 24, 4.0, True)),
    ({"batch_size": 2.5}, "batch_size is 2.5; expected a positive whole number"),
    ({"tolerance": 1e-3, "degree": 3}, "tolerance was given with theta or degree, which it chooses"),
    ({"tolerance": 1e-3, "theta": 0.5}, "tolerance was given with theta or degree, which it chooses"),
    ({"far_precision": "half"}, "far_precision is 'half'; expected one of None, 'double', 'single'"),
]
MULTIPOLE = [
    ({"order": 2}, "order is 2; expected 3 to 16"),
    *(({"order": n}, f"order is {n}; {RANGE} 16") for n in (17, 0, 6.0, True)),
    ({"order": 6, "tolerance": 1e-3}, "tolerance was given with order, which it chooses; expected one or the other"),
    *(({name: 5}, f"{name} was given, but coulomb takes no parameters") for name in ("theta", "degree", "batch_size")),
    ({"periodic": True}, "periodic was given, but fast multipole methods sum in free space; parki.ewald"),
]
GIVEN = {"targets": np.zeros((3, 2)), "sources": np.eye(3, 4), "density": np.ones(4)}


@pytest.mark.parametrize(
    ("methods", "change", "message"),
    [(methods, *row) for methods, rows in ((TREECODES, TREECODE), (FMM, MULTIPOLE)) for row in rows],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_input(methods, change, message):
    for method in methods:
        with pytest.raises(ValueError, match=message):
            once(method, **(GIVEN | change))


@pytest.mark.parametrize(
    ("module", "expected"),
    [(parki.treecode, "expected one of 'dual', 'pc', 'cp'"), (parki.fmm, "expected one of 'kifmm', 'chebyshev'")],
)
def test_unknown_methods(module, expected):
    x = np.zeros((3, 2))
    for method in ("bldtt", "fmm", None, 1):
        with pytest.raises(ValueError, match=f"method is {method!r}; {expected}"):
            module.plan("coulomb", x, x, method=method)


def test_unknown_variants():
    with pytest.raises(ValueError, match="variant is 'cc'; expected one of 'pc', 'cp'"):
        parki.treecode.bltc(**GIVEN, variant="cc")


@pytest.mark.parametrize("kernel", [name for name, pair in PAIRS.items() if "width" in pair.names])
def test_kernels_of_the_other_method_alone(kernel):
    """Refuse these kernels when points are given, before any charges; the other method takes them."""
    x = np.zeros((3, 2))
    with pytest.raises(ValueError, match=rf"kernel is {kernel}: no sources on a surface.*parki\.fmm\.chebyshev"):
        plan("kifmm", kernel, x, x, width=1.0)
    assert plan("chebyshev", kernel, x, x, width=1.0)(np.ones(2)).shape == (2,)


def test_a_pair_with_normals_of_ones_own(tmp_path):
    text = parki.engine.text.source.locate("pair/stresslet").path.read_text("utf-8")
    (tmp_path / "own.py").write_text(text, "utf-8")
    own = parki.pairs.Pair("own", 3, 3, str(tmp_path / "own.py"), normals=True)
    for method in FMM:
        with pytest.raises(ValueError, match="own has normals and no form that is linear in its sources"):
            plan(method, own, np.zeros((3, 2)), np.zeros((3, 2)))
