"""Unrolling of loops and splitting of local arrays: loops that stay, arrays that become scalars, and all faults."""

import pytest

from tests.engine import l1_files as l1

files, body = l1.files, l1.body

ARRAY = "a: List[real] = [0.0] * 3"
SUM = "x[i] = a[0] + a[1] + a[2]"
BODY = l1.FIRST + 2  # line number of the first line of a workunit's body in a file without other lines


def declared(n, name="a", kind="pk.double"):
    return [f"{name}_{k}: {kind} = 0.0" for k in range(n)]


# Unrolling -----------------------------------------------------------------------------------------------------------
def test_a_loop_over_a_local_array_is_unrolled(body):
    lines = [ARRAY, "for k in range(3):", "    t: real = x[n + k] * 2.0", "    a[k] = t + real(k)", SUM]
    assert body(lines) == [
        *declared(3),
        "t_1: pk.double = x[n + 0] * 2.0", "a_0 = t_1 + 0.0", "t_2: pk.double = x[n + 1] * 2.0", "a_1 = t_2 + 1.0",
        "t_3: pk.double = x[n + 2] * 2.0", "a_2 = t_3 + 2.0",
        "x[i] = a_0 + a_1 + a_2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("bounds", "turns"), [("3", [0, 1, 2]), ("1, 3", [1, 2]), ("2, -1, -2", [2, 0]), ("N - 1", [0, 1]), ("2, 2", [])]
)
def test_bounds_of_unrolled_loops(body, bounds, turns):
    out = body([ARRAY, f"for k in range({bounds}):", "    a[k] = x[i]", SUM], "N = 3")
    assert out[3:-1] == [f"a_{k} = x[i]" for k in turns]


def test_sums_around_an_unrolled_loop_keep_their_names(body):
    lines = [
        ARRAY, "v: real = 0.0", "for j in range(n):", "    w: real = 1.0", "    for k in range(2):",
        "        w += a[k]", "        t: real = x[k] * w", "        v += t", "        a[k] = t",
        "x[i] = v + a[0] + a[1]",
    ]  # fmt: skip
    assert body(lines)[2:] == [
        "v: pk.double = 0.0", "for j in range(n):", "    w: pk.double = 1.0",
        "    w += a_0", "    t_1: pk.double = x[0] * w", "    v += t_1", "    a_0 = t_1",
        "    w += a_1", "    t_2: pk.double = x[1] * w", "    v += t_2", "    a_1 = t_2", "x[i] = v + a_0 + a_1",
    ]  # fmt: skip


def test_other_loops_stay_with_their_bounds_folded(body):
    lines = [ARRAY, "for d in range(1, DEGREE + 1):", "    a[0] = a[0] * x[d] + 1.0", SUM]
    assert body(lines, "DEGREE = 15", DEGREE=7)[3:5] == ["for d in range(1, 8):", "    a_0 = a_0 * x[d] + 1.0"]


def test_indices_fold_to_constants(body):
    lines = ["far: List[real] = [0.0] * 4", "for m in range(2):", "    far[2 * m + 1] = x[m]", "x[i] = far[1] + far[3]"]
    assert body(lines) == [
        "far_1: pk.double = 0.0", "far_3: pk.double = 0.0", "far_1 = x[0]", "far_3 = x[1]", "x[i] = far_1 + far_3",
    ]  # fmt: skip


def test_the_outer_loop_is_unrolled_and_the_inner_stays(body):
    lines = [
        "a: List[real] = [0.0] * 2", "for f in range(2):", "    v: real = x[f]", "    for d in range(1, DEGREE + 1):",
        "        v = v * x[i] + x[d]", "    a[f] = v", "x[i] = a[0] + a[1]",
    ]  # fmt: skip
    assert body(lines, "DEGREE = 15")[2:-1] == [
        "v_1: pk.double = x[0]", "for d_1 in range(1, 16):", "    v_1 = v_1 * x[i] + x[d_1]", "a_0 = v_1",
        "v_2: pk.double = x[1]", "for d_2 in range(1, 16):", "    v_2 = v_2 * x[i] + x[d_2]", "a_1 = v_2",
    ]  # fmt: skip


def test_nested_loops_with_bounds_that_depend_on_the_outer_index(body):
    lines = [
        ARRAY,
        "for j in range(3):",
        "    for k in range(j):",
        "        if k == 1:",
        "            a[k] += x[j]",
        SUM,
    ]
    assert body(lines)[3:-1] == ["a_1 += x[2]"]


def test_an_index_held_in_a_local(body):
    lines = [
        "a: List[real] = [0.0] * 4",
        "for k in range(2):",
        "    m: int = 2 * k + 1",
        "    a[m] = x[m]",
        "x[i] = a[3]",
    ]
    assert body(lines)[-2:] == ["a_3 = x[3]", "x[i] = a_3"]


def test_unrolling_reaches_through_inlining(body):
    head = [
        "@pk.function", "def put(m: int, v: real, u: List[real]) -> None:", "    u[m] = v", "@pk.function",
        "def fill(v: real, u: List[real]) -> None:", "    for k in range(N):", "        put(2 - k, v, u)",
    ]  # fmt: skip
    assert body([ARRAY, "fill(x[i], a)", SUM], "N = 2", *head)[4:-1] == ["a_2 = v_1", "a_1 = v_1"]


def test_arrays_in_loops_start_anew_every_turn(body):
    lines = [
        "for j in range(n):", "    s: List[real] = [0.0] * 2", "    for k in range(2):", "        s[k] += x[j + k]",
        "    x[j] = s[0] - s[1]",
    ]  # fmt: skip
    assert body(lines) == [
        "for j in range(n):", "    s_0: pk.double = 0.0", "    s_1: pk.double = 0.0", "    s_0 += x[j + 0]",
        "    s_1 += x[j + 1]", "    x[j] = s_0 - s_1",
    ]  # fmt: skip


def test_names_of_elements_avoid_what_is_taken(body):
    out = body(["a_1: real = 4.0", ARRAY, "for k in range(3):", "    a[k] = a_1", SUM])
    assert out[-1] == "x[i] = a__0 + a__1 + a__2"
    assert out[-2] == "a__2 = a_1"


def test_entries_and_types_of_arrays(body):
    lines = [
        "y: real = x[i]",
        "a: List[real] = [y, -1.0, 2.0]",
        "c: List[int] = [0] * 2",
        "a[1] += y",
        "c[1] = n",
        "x[c[1]] = a[0] + a[1]",
    ]
    assert body(lines) == [
        "y: pk.double = x[i]", "a_0: pk.double = y", "a_1: pk.double = -1.0", "c_1: int = 0", "a_1 += y", "c_1 = n",
        "x[c_1] = a_0 + a_1",
    ]  # fmt: skip


def test_limits_of_unrolling(body):
    fits = ["a: List[real] = [0.0] * 64", "for k in range(64):", "    a[k] = x[k]", "    x[k] = a[k]"]
    assert sum(line.startswith("x[") for line in body(fits)) == 64
    l1.rejects("K021", BODY + 1, body, [fits[0], "for k in range(65):", "    a[k % 64] = x[k]"])
    deep = ["a: List[real] = [0.0] * 64", "for j in range(64):", "    for k in range(64):", "        a[j] += x[k + j]",
            "        a[k] += x[j]"]  # fmt: skip
    error = l1.rejects("K021", BODY + 1, body, deep)
    assert "4096" in error.reason
    two = [fits[0], *("for k in range(64):", *["    a[k] += x[k]"] * 33) * 2]
    l1.rejects("K021", BODY + 1 + 34, body, two)


@pytest.mark.parametrize(
    ("lines", "code", "line"),
    [
        (["for k in range(n):", "    a[k] = 1.0"], "K021", 2),
        (["a[n] = 1.0"], "K021", 1),
        (["a[3] = 1.0"], "K010", 1),
        (["x[i] = a[-1]"], "K010", 1),
        (["for k in range(3):", "    if x[i] > 1.0:", "        break", "    a[k] = 1.0"], "K021", 3),
        (["for k in range(3):", "    k = 2", "    a[k] = 1.0"], "K011", 2),
        (["x[i] = a"], "K001", 1),
        (["b: List[real] = [0.0] * n", "b[0] = 1.0"], "K021", 1),
        (["b: List[real] = [x[i] + 1.0] * 2", "b[0] = 1.0"], "K001", 1),
        (["b: List[real] = 0.0", "b[0] = 1.0"], "K001", 1),
        (["b: List[real] = [0.0] * 5000", "b[0] = 1.0"], "K021", 1),
        (["b: List[real] = [0.0] * 0", "x[i] = b[0]"], "K021", 1),
    ],
)
def test_faults_of_arrays(body, lines, code, line):
    l1.rejects(code, BODY + line, body, [ARRAY, *lines, "a[1] = 2.0"])


# Constant tables -----------------------------------------------------------------------------------------------------
def test_a_list_that_is_only_read_is_a_table(body):
    lines = ["t: List[real] = [1.0, 0.5]", "for k in range(2):", "    x[n + k] = t[k]", "x[i] = 3.0 * t[1]"]
    assert body(lines) == ["t: List[pk.double] = [1.0, 0.5]", *lines[1:3], "x[i] = 1.5"]
    assert body([lines[0], lines[3]]) == ["x[i] = 1.5"]


def test_a_table_may_index_an_array(body):
    lines = [ARRAY, "p: List[int] = [2, 0, 1]", "for k in range(3):", "    a[p[k]] = x[k]", SUM]
    assert body(lines)[3:-1] == ["a_2 = x[0]", "a_0 = x[1]", "a_1 = x[2]"]
    assert body([ARRAY, *lines[2:3], "    a[P[k]] = x[k]", SUM], "P = (2, 0, 1)")[3:-1] == body(lines)[3:-1]


def test_tables_pass_through_inline_calls(body):
    head = [
        "T = (1.0, 0.5, 0.25)", "@pk.function", "def horner(x: real, c: List[real]) -> real:", "    y: real = c[0]",
        "    for k in range(1, len(c)):", "        y = y * x + c[k]", "    return y",
    ]  # fmt: skip
    assert body(["x[i] = horner(x[i], T)"], *head) == [
        "T: List[pk.double] = [1.0, 0.5, 0.25]", "x_1: pk.double = x[i]", "y_1: pk.double = 1.0",
        "for k_1 in range(1, 3):", "    y_1 = y_1 * x_1 + T[k_1]", "x[i] = y_1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "code"),
    [("x[i] = T[2]", "K010"), ("x[i] = T", "K004"), ("T[0] = 1.0", "K011"), ("x[i] = T[-1]", "K010")],
)
def test_faults_of_tables(body, line, code):
    l1.rejects(code, BODY + 1, body, [line], "T = (1.0, 2.0)")
