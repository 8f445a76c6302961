"""parki.utils: spaces, dtypes, wrapping."""

import hypothesis
import hypothesis.extra.numpy
import hypothesis.strategies as st
import numpy as np
import pytest

import parki
from parki.engine.run import spaces


@pytest.mark.parametrize("name", [None, "CPU", "host", "Serial", "serial", "SERIAL", "OpenMP", "openmp"])
def test_names_of_spaces(name):
    found = parki.utils.get_execution_space(name)
    assert isinstance(found, spaces.Space)
    assert found.name.lower() == (name or "").lower() or name in (None, "CPU", "host")
    assert parki.utils.get_execution_space(found) == found
    assert parki.utils.get_array_module(found) is np
    assert parki.utils.get_array_module(name) is np


@pytest.mark.parametrize("name", ["GPU", "Cuda", "HIP", "gpusim"])
def test_a_space_is_here_or_says_why(name):
    names = ("Cuda", "HIP") if name == "GPU" else [known for known in spaces.NAMES if known.lower() == name.lower()]
    reasons = [spaces.available()[choice] for choice in names]
    if None in reasons:
        found = parki.utils.get_execution_space(name)
        assert found.name in names
        assert parki.utils.get_array_module(name).__name__ == ("cupy" if found.kind == "device" else "numpy")
        return
    with pytest.raises(ValueError, match=rf"'{name}': .*(install|update|shows|may hide).*Or use 'OpenMP' or 'Serial'"):
        parki.utils.get_execution_space(name)
    with pytest.raises(ValueError, match=name):
        parki.utils.get_array_module(name)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("fp32", np.float32),
        ("FP64", np.float64),
        ("float32", np.float32),
        (np.float64, np.float64),
        (np.dtype(np.float32), np.float32),
        (float, np.float64),
    ],
)
def test_dtypes(given, expected):
    assert parki.utils.get_dtype(given) == np.dtype(expected)


@pytest.mark.parametrize("given", ["fp16", "int32", int, None, "double precision", complex, 3])
def test_wrong_dtypes(given):
    with pytest.raises(ValueError, match=r'dtype is .*; expected "fp32", "fp64"'):
        parki.utils.get_dtype(given)


@pytest.mark.parametrize(
    ("n", "factor", "up"), [(0, 4, 0), (1, 4, 4), (4, 4, 4), (5, 4, 8), (127, 128, 128), (-3, 2, -2)]
)
def test_round_up(n, factor, up):
    assert parki.utils.round_up(n, factor) == up


def test_round_up_wants_a_positive_factor():
    with pytest.raises(ValueError, match="factor is 0"):
        parki.utils.round_up(3, 0)


@hypothesis.given(
    x=hypothesis.extra.numpy.arrays(
        st.sampled_from([np.float32, np.float64]),
        st.tuples(st.just(3), st.integers(0, 5)),
        elements=st.one_of(st.floats(-100, 100, width=32), st.sampled_from([-1e-30, 0.0, 1e-30])),
    ),
    box=st.tuples(*[st.floats(0.1, 10)] * 3),
)
def test_wrapped_points_are_the_same_points_in_the_box(x, box):
    before = x.copy()
    wrapped = parki.utils.wrap(x, box)
    sides = np.array(box, dtype=x.dtype)[:, None]
    assert wrapped.dtype == x.dtype
    assert ((wrapped >= 0) & (wrapped < sides)).all()
    turns = (x.astype(float) - wrapped) / sides.astype(float)
    assert np.allclose(turns, np.rint(turns), atol=1e-4 if x.dtype == np.float32 else 1e-10)
    assert np.array_equal(parki.utils.wrap(wrapped, box), wrapped)
    assert np.array_equal(parki.utils.wrap(x.T, box, layout="nd"), wrapped.T)
    assert np.array_equal(x, before)


@pytest.mark.parametrize("box", [(1, 1), (1, 1, 0), (1, 1, -1), (1, 1, np.nan), (1, 1, np.inf)])
def test_wrap_checks_the_box(box):
    with pytest.raises(ValueError, match=r"box is .*; expected three positive"):
        parki.utils.wrap(np.zeros((3, 4)), box)


def test_wrap_checks_the_points():
    with pytest.raises(ValueError, match=r"x has shape \(4, 3\); expected \(3, N\)"):
        parki.utils.wrap(np.zeros((4, 3)), (1, 1, 1))
