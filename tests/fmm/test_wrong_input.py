"""Wrong input of fast multipole methods: errors tell its name, the value found and the value expected."""

import numpy as np
import pytest

import parki
from parki.pairs import PAIRS

WRONG = [
    ({"order": 2}, "order is 2; expected 3 to 16"),
    ({"order": 17}, "order is 17; expected a positive whole number up to 16"),
    ({"order": 0}, "order is 0; expected a positive whole number up to 16"),
    ({"order": 6.0}, "order is 6.0; expected a positive whole number up to 16"),
    ({"order": True}, "order is True; expected a positive whole number up to 16"),
    ({"order": 6, "tolerance": 1e-3}, "tolerance was given with order, which it chooses; expected one or the other"),
    ({"theta": 0.5}, "theta was given, but coulomb takes no parameters"),
    ({"degree": 5}, "degree was given, but coulomb takes no parameters"),
    ({"batch_size": 50}, "batch_size was given, but coulomb takes no parameters"),
    ({"periodic": True}, "periodic was given, but fast multipole methods sum in free space; parki.ewald"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[text for _, text in WRONG])
def test_wrong_input(change, message):
    good = {"targets": np.zeros((3, 2)), "sources": np.eye(3, 4), "density": np.ones(4)}
    for call in (parki.fmm.kifmm, parki.fmm.chebyshev):
        with pytest.raises(ValueError, match=message):
            call(**(good | change))


def test_unknown_methods():
    x = np.zeros((3, 2))
    for method in ("fmm", None, 1):
        with pytest.raises(ValueError, match=f"method is {method!r}; expected one of 'kifmm', 'chebyshev'"):
            parki.fmm.plan("coulomb", x, x, method=method)


@pytest.mark.parametrize("kernel", [name for name, pair in PAIRS.items() if "width" in pair.names])
def test_kernels_of_the_other_method_alone(kernel):
    """Refuse these kernels when points are given, before any charges; the other method takes them."""
    x = np.zeros((3, 2))
    with pytest.raises(ValueError, match=rf"kernel is {kernel}: no sources on a surface.*parki\.fmm\.chebyshev"):
        parki.fmm.plan(kernel, x, x, width=1.0)
    assert parki.fmm.plan(kernel, x, x, width=1.0, method="chebyshev")(np.ones(2)).shape == (2,)


def test_a_pair_with_normals_of_ones_own(tmp_path):
    text = parki.engine.text.source.locate("pair/stresslet").path.read_text("utf-8")
    (tmp_path / "own.py").write_text(text, "utf-8")
    own = parki.pairs.Pair("own", 3, 3, str(tmp_path / "own.py"), normals=True)
    for method in ("kifmm", "chebyshev"):
        with pytest.raises(ValueError, match="own has normals and no form that is linear in its sources"):
            parki.fmm.plan(own, np.zeros((3, 2)), np.zeros((3, 2)), method=method)
