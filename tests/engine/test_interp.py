"""Reference interpreter: values, memory and control flow, and all faults that it must find."""

import math

import numpy as np
import pytest

from parki.engine.errors import CheckedFault, LaunchError, Loc
from parki.engine.interpreter.launching import run
from parki.engine.text.grammar import MATH
from parki.engine.tree import ir
from parki.engine.tree.parse import parse
from tests.engine.programs.program import write

HERE = Loc("k.py", 7)


def kernel(signature, *lines):
    """Return a workunit `w(signature)`, whose body begins at line 5 of ``k.py``."""
    return parse(write(signature, lines), name="k.py")


def evaluate(expression, kind="pk.double", **args):
    """Return the value of an expression of x, y (of type `kind`) and k, m (int), stored in an array of `kind`."""
    dtype = {"pk.double": np.float64, "pk.float": np.float32, "pk.int32": np.int32, "pk.int64": np.int64}[kind]
    real = "pk.double" if "int" in kind else kind
    text = f"i: int, out: pk.View1D[{kind}], x: {real}, y: {real}, k: int, m: int, big: pk.int64"
    out = np.zeros(1, dtype)
    scalars = {"x": 0.0, "y": 0.0, "k": 0, "m": 0, "big": 0} | args
    run(kernel(text, f"out[i] = {expression}"), league=1, args={"out": out, **scalars})
    return out[0]


# Integers ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("expression", "k", "m", "expected"),
    [
        ("k + m", 2**30, 2**30 - 1, 2**31 - 1),
        ("k - m", -(2**30), 2**30, -(2**31)),
        ("k * m", -46341, 46340, -46341 * 46340),
        ("k // m", 7, 2, 3),
        ("k % m", 7, 4, 3),
        ("k & m", -2, 7, 6),
        ("k | m", 4, 3, 7),
        ("k ^ m", 6, 3, 5),
        ("k << m", 3, 4, 48),
        ("k >> m", 48, 4, 3),
        ("~k", 5, 0, -6),
        ("-k", 5, 0, -5),
    ],
)
def test_integer_operations(expression, k, m, expected):
    assert evaluate(expression, "pk.int32", k=k, m=m) == expected


@pytest.mark.parametrize(
    ("expression", "k", "m", "text"),
    [
        ("k + m", 2**31 - 1, 1, "does not fit int32"),
        ("k - m", -(2**31), 1, "does not fit int32"),
        ("k * m", 46341, 46341, "does not fit int32"),
        ("-k", -(2**31), 0, "does not fit int32"),
        ("k << m", 1, 31, "does not fit int32"),
        ("k << m", 1, 32, "must be in 0..31"),
        ("k >> m", 1, -1, "must be in 0..31"),
        ("k >> m", -1, 1, "-1 >> 1 is undefined"),
        ("k // m", -7, 2, "-7 // 2 is undefined"),
        ("k // m", 7, 0, "7 // 0 is undefined"),
        ("k % m", -7, 2, "-7 % 2 is undefined"),
        ("k % m", 7, -2, "7 % -2 is undefined"),
    ],
)
def test_integer_faults(expression, k, m, text):
    with pytest.raises(CheckedFault, match=r"^k.py:5: ") as caught:
        evaluate(expression, "pk.int32", k=k, m=m)
    assert text in str(caught.value)


def test_int32_widens_to_int64():
    assert evaluate("big * k", "pk.int64", big=2**40, k=4) == 2**42
    with pytest.raises(CheckedFault, match="int64"):
        evaluate("big * k", "pk.int64", big=2**62, k=4)
    # both factors are int32: the product is, too
    with pytest.raises(CheckedFault, match="int32"):
        evaluate("k * m", "pk.int64", k=2**20, m=2**20)


@pytest.mark.parametrize(("x", "expected"), [(2.9, 2), (-2.9, -2), (-0.5, 0), (2147483520.0, 2**31 - 128)])
def test_int_truncates(x, expected):
    assert evaluate("int(x)", "pk.int32", x=x) == expected
    assert evaluate("int(pk.float(x) / 2.0)", "pk.int32", x=2.0 * expected) == expected


@pytest.mark.parametrize("x", [2147483648.0, -2147483649.0, math.inf, math.nan])
def test_int_of_a_real_that_does_not_fit(x):
    with pytest.raises(CheckedFault, match="does not fit int32"):
        evaluate("int(x)", "pk.int32", x=x)


# Reals ---------------------------------------------------------------------------------------------------------------
def test_every_float_operation_rounds():
    x, y = np.float32(0.1), np.float32(0.3)
    assert evaluate("x * y + x", "pk.float", x=x, y=y) == np.float32(x * y) + x
    assert evaluate("x * y + x", "pk.float", x=x, y=y) != np.float32(np.float64(x) * np.float64(y) + np.float64(x))
    assert evaluate("x + 0.1", "pk.float", x=x) == x + np.float32(0.1)
    assert evaluate("pk.double(k) / 3.0", k=1) == 1 / 3
    assert evaluate("pk.float(k)", "pk.float", k=16777217) == 16777216.0
    # one rounding: through double, this would be a tie and go to 2^60
    assert evaluate("pk.float(big)", "pk.float", big=2**60 + 2**36 + 1) == np.float32(2**60 + 2**37)


def test_division_by_zero_and_nan():
    assert evaluate("x / y", x=1.0) == math.inf
    assert evaluate("x / y", x=-1.0) == -math.inf
    assert np.isnan(evaluate("x / y"))
    assert evaluate("x * x", "pk.float", x=1e30) == np.inf
    body = ["if x < y or x > y or x == y:", "    out[i] = 1", "if x != y:", "    out[i] += 2"]
    out = np.zeros(1, np.int32)
    work = kernel("i: int, out: pk.View1D[pk.int32], x: pk.double, y: pk.double", *body)
    run(work, league=1, args={"out": out, "x": math.nan, "y": 1.0})
    assert out[0] == 2


@pytest.mark.parametrize("name", sorted(name for name, count in MATH.items() if count == 1))
def test_mathematics_against_the_c_library(name):
    f = {"rsqrt": lambda v: 1 / math.sqrt(v)}.get(name) or getattr(math, name)
    for v in (0.25, 0.7, 1.5, 2.0):
        assert evaluate(f"pk.{name}(x)", x=v) == f(v)
        single = np.float32(v)
        assert evaluate(f"pk.{name}(x)", "pk.float", x=single) == np.float32(f(float(single)))


@pytest.mark.parametrize(
    ("expression", "x", "y", "expected"),
    [
        ("pk.rsqrt(x)", 0.0, 0.0, math.inf),
        ("pk.rsqrt(x)", math.inf, 0.0, 0.0),
        ("pk.sqrt(x)", -1.0, 0.0, math.nan),
        ("pk.exp(x)", 1000.0, 0.0, math.inf),
        ("pk.sinh(x)", -1000.0, 0.0, -math.inf),
        ("pk.log(x)", 0.0, 0.0, -math.inf),
        ("pk.sin(x)", math.inf, 0.0, math.nan),
        ("pk.floor(x)", -0.5, 0.0, -1.0),
        ("pk.fmin(x, y)", math.nan, 2.0, 2.0),
        ("pk.fmax(x, y)", 3.0, 2.0, 3.0),
        ("pk.pow(x, y)", 2.0, -3.0, 0.125),
        ("pk.pow(x, y)", 0.0, -1.0, math.inf),
        ("pk.pow(x, y)", -2.0, 0.5, math.nan),
    ],
)
def test_mathematics_at_special_values(expression, x, y, expected):
    np.testing.assert_equal(evaluate(expression, x=x, y=y), np.float64(expected))


# Memory --------------------------------------------------------------------------------------------------------------
def test_index_out_of_bounds_names_view_and_dimension():
    work = kernel("i: int, x: pk.View2D[pk.double]", "x[0][i] = 1.0")
    with pytest.raises(CheckedFault) as caught:
        run(work, league=8, args={"x": np.zeros((2, 6))})
    assert str(caught.value) == "k.py:5: index i=6 of view 'x' dim 1 is outside 0..5"
    work = kernel("i: int, x: pk.View1D[pk.double]", "x[i] = x[i - 1]")
    with pytest.raises(CheckedFault, match="index -1 of view 'x' dim 0"):
        run(work, league=1, args={"x": np.zeros(3)})


def test_uint8_elements_are_int32_values():
    work = kernel("i: int, b: pk.View1D[pk.uint8], o: pk.View1D[pk.uint8]", "o[i] = b[i] * 2 - 200")
    o = np.zeros(1, np.uint8)
    run(work, league=1, args={"b": np.array([150], np.uint8), "o": o})
    assert o[0] == 100
    with pytest.raises(CheckedFault, match="uint8"):
        run(work, league=1, args={"b": np.array([10], np.uint8), "o": o})


def test_strided_views_and_extents():
    work = kernel("i: int, x: pk.View2D[pk.double]", "x[i][0] = pk.double(x.extent(0) * 10 + x.extent(1))")
    x = np.zeros((4, 6), order="F")[::2, 1::2]
    run(work, league=2, args={"x": x})
    assert x[:, 0].tolist() == [23.0, 23.0]
    assert not x[:, 1:].any()


def test_constant_tables():
    body = ["t: List[pk.double] = [0.5, 2.0, -1.0]", "x[i] = t[i]"]
    work, x = kernel("i: int, x: pk.View1D[pk.double]", *body), np.zeros(4)
    with pytest.raises(CheckedFault, match=r"'t' dim 0 is outside 0..2"):
        run(work, league=4, args={"x": x})
    assert x.tolist() == [0.5, 2.0, -1.0, 0.0]


def test_store_to_a_read_only_array():
    zero = ir.Const(value=0, type="int32", loc=HERE)
    for params, made in [
        ((ir.Param(name="x", type="int32", rank=1, written=False, loc=HERE),), ()),
        ((), (ir.Table(name="x", type="int32", values=(5,), loc=HERE),)),
    ]:
        body = (*made, ir.Store(view="x", indices=(zero,), op="=", value=zero, loc=HERE))
        work = ir.KernelTree(name="w", policy="range", index="i", params=params, functions=(), body=body, loc=HERE)
        with pytest.raises(CheckedFault, match=r"k.py:7: store to 'x', which is read only"):
            run(work, league=1, args={p.name: np.zeros(2, np.int32) for p in params})


def test_arguments_must_fit():
    work = kernel("i: int, x: pk.View1D[pk.double], y: pk.View1D[pk.double], n: int", "x[i] = y[i]")
    good = {"x": np.zeros(2), "y": np.ones(2), "n": 1}
    run(work, league=2, args=good)
    for bad, text in [
        ({"x": np.zeros(2, np.float32)}, "'x' is float32"),
        ({"y": np.zeros((2, 2))}, "rank 2"),
        ({"y": good["x"]}, "overlap"),
        ({"z": 1}, "unknown: \\['z'\\]"),
        ({"n": 1.0}, "'n' is float"),
    ]:
        with pytest.raises(LaunchError, match=text):
            run(work, league=2, args=good | bad)
    with pytest.raises(LaunchError, match="missing: \\['n'\\]"):
        run(work, league=2, args={"x": good["x"], "y": good["y"]})


# Races ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["x[i // 4] = 1"], "race on view 'x' at [0]: written here and written at k.py:5"),
        (["x[i] = 1", "n[i] = x[(i + 1) % 4]"], "race on view 'x'"),
        (["x[i] += x[3]"], "race on view 'x' at [3]"),
        (["pk.atomic_add(x, [0], 1)", "x[0] = 2"], "atomically updated"),
        (["pk.atomic_add(x, [0], 1)", "n[i] = x[0]"], "atomically updated"),
    ],
)
@pytest.mark.parametrize("seed", [None, 1])
def test_races_between_iterations(lines, text, seed):
    work = kernel("i: int, x: pk.View1D[pk.int32], n: pk.View1D[pk.int32]", *lines)
    with pytest.raises(CheckedFault) as caught:
        run(work, league=4, seed=seed, args={"x": np.zeros(4, np.int32), "n": np.zeros(4, np.int32)})
    assert text in str(caught.value)


def test_what_is_not_a_race():
    lines = ["a: int = y[0]", "x[i] = a", "x[i] += x[i]", "pk.atomic_add(n, [0], x[i])"]
    signature = ", ".join(["i: int", *(f"{v}: pk.View1D[pk.int32]" for v in "xyn")])
    x, y, n = np.zeros(4, np.int32), np.full(1, 3, np.int32), np.zeros(1, np.int32)
    run(kernel(signature, *lines), league=4, args={"x": x, "y": y, "n": n})
    assert x.tolist() == [6] * 4
    assert n[0] == 24


def test_races_between_teams():
    body = ["def f():", "    x[0] = 1.0", "pk.single(pk.PerTeam(team), f)"]
    work = kernel("team: pk.TeamMember, x: pk.View1D[pk.double]", *body)
    run(work, league=1, args={"x": np.zeros(1)})
    with pytest.raises(CheckedFault, match="another team"):
        run(work, league=2, args={"x": np.zeros(1)})


# Control flow --------------------------------------------------------------------------------------------------------
def test_loops():
    lines = [
        "n: int = 3",
        "for j in range(n):",
        "    if j == 1:",
        "        continue",
        "    x[0] = x[0] * 10 + j",
        "for j in range(5, -5, -2):",
        "    if j < 0:",
        "        break",
        "    x[1] = x[1] * 10 + j",
        "c: int = 0",
        "while True:",
        "    c += 1",
        "    if c > 4:",
        "        break",
        "while c > 2:",
        "    c -= 1",
        "    if c == 3:",
        "        continue",
        "    x[2] = x[2] * 10 + c",
        "for j in range(3):",
        "    for k in range(3):",
        "        if k > j:",
        "            break",
        "        x[3] += 1",
        "for j in range(2, 2):",
        "    x[3] = -1",
        "for j in range(10):",
        "    if j == 4:",
        "        return",
        "    x[4] = j",
        "x[4] = -1",
    ]
    x = np.zeros(5, np.int32)
    run(kernel("i: int, x: pk.View1D[pk.int32]", *lines), league=1, args={"x": x})
    assert x.tolist() == [2, 531, 42, 6, 3]


def test_return_ends_one_iteration_only():
    work, x = kernel("i: int, x: pk.View1D[pk.int32]", "if i % 2 == 0:", "    return", "x[i] = i"), np.zeros(5, int)
    x = x.astype(np.int32)
    run(work, league=5, args={"x": x})
    assert x.tolist() == [0, 1, 0, 3, 0]


def test_and_or_short_circuit_and_flags():
    lines = [
        "ok: bool = i < 2 and x[i] > 0",
        "if not ok or flag:",
        "    n[i] = 1",
        "elif i == 1:",
        "    n[i] = 2",
        "else:",
        "    n[i] = 3",
    ]
    work = kernel("i: int, x: pk.View1D[pk.int32], n: pk.View1D[pk.int32], flag: bool", *lines)
    x, n = np.array([4, 4], np.int32), np.zeros(4, np.int32)
    # x has two elements: evaluating x[2] would be a fault
    run(work, league=4, args={"x": x, "n": n, "flag": False})
    assert n.tolist() == [3, 2, 1, 1]
    run(work, league=4, args={"x": x, "n": n, "flag": True})
    assert n.tolist() == [1, 1, 1, 1]


def test_functions():
    functions = """@pk.function
def half(a: pk.float, n: int) -> pk.float:
    w: pk.float = a
    for j in range(n):
        w *= 0.5
    return w
@pk.function
def twice(a: pk.float) -> pk.float:
    return half(a, 1) * 4.0"""
    text = write("i: int, x: pk.View1D[pk.float]", ["x[i] = half(x[i], i) + twice(0.1)"], [functions])
    x = np.ones(3, np.float32)
    run(parse(text, name="k.py"), league=3, args={"x": x})
    assert x.tolist() == [float(np.float32(v) + np.float32(0.1) * np.float32(2)) for v in (1, 0.5, 0.25)]
