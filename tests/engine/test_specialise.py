"""Specialising: results of each step on L1 text, and all faults that it reports."""

import gc
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from parki.engine.text import syntax
from parki.engine.text.specialise import specialise
from parki.engine.tree.parse import parse
from tests.engine import l1_files as l1

files, body = l1.files, l1.body


# Constants and branches ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7 // 2 * N", "9"),
        ("2 ** 5 - 1", "31"),
        ("-N + 1", "-2"),
        ("min(N, 2) + max(1, 2, 3)", "5"),
        ("len(T) % 2", "1"),
        ("T[1]", "20"),
        ("math.floor(2.5) + (N - 3)", "2"),
    ],
)
def test_integer_constants(body, expression, value):
    assert body(["x[n + A] = 1.0"], "import math", "N = 3", "T = (10, 20, 30)", f"A = {expression}") == [
        f"x[n + {value}] = 1.0"
    ]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1 / 4", "0.25"),
        ("-math.sqrt(2.0)", "-1.4142135623730951"),
        ("1e300", "1e+300"),
    ],
)
def test_real_constants_are_doubles_printed_in_full(body, expression, value):
    assert body(["x[i] = 3.0 * x[i] - A"], "import math", f"A = {expression}") == [f"x[i] = 3.0 * x[i] - {value}"]


@pytest.mark.parametrize(
    ("expression", "folded"),
    [
        ("x[2 * N - 1 + i]", "x[5 + i]"),
        ("x[i + 2 * N]", "x[i + 6]"),
        ("x[i + 1 + 2]", "x[i + 1 + 2]"),
        ("2.0 * 0.25 + x[i]", "0.5 + x[i]"),
        ("x[i] * 2.0 * 0.5", "x[i] * 2.0 * 0.5"),
        ("real(N) * x[i]", "3.0 * x[i]"),
        ("real(n) * x[i]", "pk.double(n) * x[i]"),
        ("x[i] * -0.5 - -(0.5)", "x[i] * -0.5 - -0.5"),
        ("2.0 * math.pi * x[i]", "6.283185307179586 * x[i]"),
        ("x[i] * math.pi", "x[i] * math.pi"),
    ],
)
def test_folding_keeps_the_order_of_operations(body, expression, folded):
    assert body([f"x[i] = {expression}"], "import math", "N = 3") == [f"x[i] = {folded}"]


def test_math_is_imported_only_where_it_is_used(files):
    path = files("k.py", "import math", "@pk.workunit", "def w(i: int, x: pk.View1D[real]):", "    x[i] = math.pi")
    assert "\nimport math\n" in specialise(path, "w").text
    path = files("k.py", "import math", "@pk.workunit", "def w(i: int, x: pk.View1D[real]):", "    x[i] = 3.0")
    assert "import math" not in specialise(path, "w").text


@pytest.mark.parametrize(
    ("ns", "gradient", "value"), [(3, True, "1.0"), (3, False, "2.0"), (2, True, "2.0"), (1, False, "3.0")]
)
def test_constant_conditions_select_code(body, ns, gradient, value):
    lines = [
        "if NS == 3 and GRADIENT:", "    x[i] = 1.0", "elif NS > 1:", "    x[i] = 2.0", "else:", "    x[i] = 3.0",
    ]  # fmt: skip
    assert body(lines, "NS = 3", "GRADIENT = True", NS=ns, GRADIENT=gradient) == [f"x[i] = {value}"]


def test_dead_branches_need_not_be_valid(body):
    lines = ["if SCREENED:", "    x[i] = TABLE[7] + nothing(2 // ZERO)", "    with open(n): pass", "x[i] += 1.0"]
    assert body(lines, "SCREENED = False", "ZERO = 0", "TABLE = (1.0, 2.0)") == ["x[i] += 1.0"]


def test_partly_constant_conditions_lose_the_constant(body):
    lines = ["if ON and i < n and not OFF:", "    x[i] = 1.0", "if OFF or i > n:", "    x[i] = 2.0"]
    expected = ["if i < n:", "    x[i] = 1.0", "if i > n:", "    x[i] = 2.0"]
    assert body(lines, "ON = True", "OFF = False") == expected


def test_selected_branches_may_declare_a_name_again(body):
    lines = ["if A:", "    t: real = 1.0", "    x[i] = t", "if B:", "    t: real = x[i]", "    x[i] = t"]
    assert body(lines, "A = True", "B = True") == ["t: pk.double = 1.0", "x[i] = t", "t = x[i]", "x[i] = t"]
    assert body(lines, "A = True", "B = True", A=False) == ["t: pk.double = x[i]", "x[i] = t"]


def test_a_condition_that_the_next_line_alone_tests_has_no_local(body):
    lines = ["for k in range(3):", "    near: bool = x[k] < 1.0 or k == 0", "    if near:", "        x[k] = 0.0"]
    assert body(lines) == ["for k in range(3):", "    if x[k] < 1.0 or k == 0:", "        x[k] = 0.0"]
    for more in (["y: bool = near and n > 2"], ["near = n > 2"]):
        kept = ["near: bool = x[i] < 1.0", "if near:", "    x[i] = 0.0", *more]
        assert body(kept)[: len(kept) - len(more)] == kept[: -len(more)]
    apart = ["near: bool = x[i] < 1.0", "x[i] = 0.0", "if near:", "    x[i] = 2.0"]
    assert body(apart) == apart


def test_conditions_on_the_real_type(body):
    lines = ["if real == pk.float:", "    x[i] = x[i] + x[i]", "else:", "    x[i] = x[i] * x[i]"]
    assert body(lines, real="float") == ["x[i] = x[i] + x[i]"]
    assert body(lines) == ["x[i] = x[i] * x[i]"]


def test_locals_hide_constants(body):
    assert body(["N: int = 5 + n", "x[N] = 1.0"], "N = 3") == ["N: int = 5 + n", "x[N] = 1.0"]


# Single precision ----------------------------------------------------------------------------------------------------
def test_float_literals_become_typed_locals(files):
    path = files(
        "k.py",
        "A = 0.25",
        "@pk.function",
        "def f(x: real) -> real:",
        "    return 2.0 * x + 1.0",
        "@pk.workunit",
        "def w(i: int, x: pk.View1D[real], n: int):",
        "    y: real = 0.5",
        "    z: real = 0.5 * x[i] + pk.fmax(x[i], -1.5) * A",
        "    if z > 0.5 and n > 3:",
        "        z = 0.0",
        "    x[i + 2] = f(3.0) + y + z",
        "    pk.atomic_add(x, [i], 0.5)",
    )
    l0 = specialise(path, "w", real=np.dtype("float32"))
    parse(l0.text, l0.linemap)
    lines = [line.strip() for line in l0.text.splitlines()]
    assert lines[lines.index("def f(x: pk.float) -> pk.float:") + 1 :][:3] == [
        "c_0: pk.float = 2.0", "c_1: pk.float = 1.0", "return c_0 * x + c_1",
    ]  # fmt: skip
    assert lines[lines.index("def w(i: int, x: pk.View1D[pk.float], n: int):") + 1 :] == [
        "c_0: pk.float = 0.5", "c_1: pk.float = -1.5", "c_2: pk.float = 0.25", "c_3: pk.float = 0.0",
        "c_4: pk.float = 3.0", "y: pk.float = 0.5", "z: pk.float = c_0 * x[i] + pk.fmax(x[i], c_1) * c_2",
        "if z > c_0 and n > 3:", "z = c_3", "x[i + 2] = f(c_4) + y + z", "pk.atomic_add(x, [i], c_0)",
    ]  # fmt: skip
    assert "c_0" not in specialise(path, "w", real="double").text


def test_literals_of_doubles_in_a_float_kernel_stay(body):
    lines = [
        "s: pk.double = pk.double(x[i]) * 0.1",
        "if s > 0.25:",
        "    s = s + pk.double(0.1)",
        "x[i] = pk.float(s) * 0.1",
    ]
    expected = ["c_0: pk.float = 0.1", *lines[:3], "x[i] = pk.float(s) * c_0"]
    assert body(lines, real="float") == expected


# Tables --------------------------------------------------------------------------------------------------------------
def test_tuples_indexed_by_constants_are_numbers(body):
    lines = ["x[i] = T[1] * x[i] + T[N]", "x[i + K[0]] = T[K[1]]"]
    head = ["N = 2", "T = (1, 0.5, -0.25)", "K = (4, 0)"]
    assert body(lines, *head) == ["x[i] = 0.5 * x[i] + -0.25", "x[i + 4] = 1.0"]


@pytest.mark.parametrize("real", ["double", "float"])
def test_tuples_indexed_in_loops_are_local_tables(body, real):
    lines = ["y: real = 0.0", "for k in range(len(T)):", "    y = y * x[i] + T[k]", "x[i] = y"]
    expected = [f"T: List[pk.{real}] = [1.0, 0.5, 0.25]", f"y: pk.{real} = 0.0", "for k in range(3):", *lines[2:]]
    assert body(lines, "T = (1.0, 0.5, 0.25)", real=real) == expected


def test_a_tuple_may_fill_a_list(body):
    lines = ["t: List[int] = T", "for k in range(n):", "    x[t[k]] = 1.0"]
    assert body(lines, "T = (4, 2)") == ["t: List[int] = [4, 2]", *lines[1:]]


def test_a_tuple_slot(body):
    assert body(["x[i] = T[2]"], "T = (1.0, 2.0, 3.0)", T=(1, 2, 7.5)) == ["x[i] = 7.5"]


# Inlining ------------------------------------------------------------------------------------------------------------
AXPY = [
    "@pk.function", "def axpy(a: real, x: real, y: List[real]) -> None:", "    t: real = a * x", "    y[0] += t",
    "    y[1] -= t",
]  # fmt: skip
POLAR = ["@pk.function", "def polar(x: real, y: real) -> Tuple[real, real]:", "    r: real = pk.sqrt(x * x + y * y)"]


def test_statement_calls_rename_locals_apart(body):
    lines = ["u: List[real] = [0.0] * 2", "axpy(x[i], 2.0, u)", "t: real = 3.0", "axpy(t, t, u)", "x[i] = u[0] + u[1]"]
    assert body(lines, *AXPY) == [
        "u_0: pk.double = 0.0", "u_1: pk.double = 0.0", "a_1: pk.double = x[i]", "t_1: pk.double = a_1 * 2.0",
        "u_0 += t_1", "u_1 -= t_1", "t: pk.double = 3.0", "t_2: pk.double = t * t", "u_0 += t_2", "u_1 -= t_2",
        "x[i] = u_0 + u_1",
    ]  # fmt: skip


def test_tuple_results_declare_or_assign(body):
    head = [*POLAR, "    return r, x / r"]
    lines = ["r: real = 1.0", "r, c = polar(r, x[i])", "x[i] = r + c"]
    assert body(lines, *head) == [
        "r: pk.double = 1.0", "y_1: pk.double = x[i]", "r_1: pk.double = pk.sqrt(r * r + y_1 * y_1)",
        # r is read after the place where the source assigns r
        "r_2: pk.double = r_1", "c_1: pk.double = r / r_1", "r = r_2", "c: pk.double = c_1", "x[i] = r + c",
    ]  # fmt: skip


def test_swapped_results_do_not_overwrite_each_other(body):
    head = ["@pk.function", "def swap(a: real, b: real) -> Tuple[real, real]:", "    return b, a"]
    lines = ["a: real = 1.0", "b: real = 2.0", "a, b = swap(a, b)", "x[i] = a - b"]
    out = body(lines, *head)
    values = {}
    for line in out[:-1]:
        name, value = line.replace(": pk.double", "").split(" = ")
        values[name] = eval(value, {}, values)
    assert (values["a"], values["b"]) == (2.0, 1.0)


def test_results_as_a_whole_right_side(body):
    head = ["@pk.function", "def dot(a: List[real], b: List[real]) -> real:", "    return a[0] * b[0] + a[1] * b[1]"]
    lines = [
        "y: real = x[0]", "a: List[real] = [y, 2.0]", "s: real = dot(a, a)",
        "s = dot(a, a)", "s += dot(a, a)", "x[i] = dot(a, a)", "x[i] += s",
    ]  # fmt: skip
    dot = "a_0 * a_0 + a_1 * a_1"
    assert body(lines, *head)[3:] == [
        f"s: pk.double = {dot}",
        f"s = {dot}",
        f"s += {dot}",
        f"x[i] = {dot}",
        "x[i] += s",
    ]


def test_inline_functions_call_inline_functions_and_branch_on_constant_arguments(body):
    head = [
        "@pk.function", "def part(k: int, on: bool, s: List[real], u: List[real]) -> None:", "    if on:",
        "        u[k] += s[2 * k + 1]", "    else:", "        u[k] = 0.0",
        "@pk.function", "def both(s: List[real], u: List[real]) -> None:", "    for k in range(2):",
        "        part(k, True, s, u)", "    part(0, False, s, u)",
    ]  # fmt: skip
    lines = [
        "s: List[real] = [0.0] * 4", "for k in range(4):", "    s[k] = x[4 * i + k]", "u: List[real] = [0.0] * 2",
        "both(s, u)", "x[i] = u[0] + u[1]",
    ]  # fmt: skip
    out = body(lines, *head)
    assert "s_0" not in " ".join(out), "what nothing reads is dropped"
    assert out[-4:] == ["u_0 += s_1", "u_1 += s_3", "u_0 = 0.0", "x[i] = u_0 + u_1"]


def test_unread_results_of_inlining_are_dropped_but_not_what_people_wrote(body):
    head = [
        "@pk.function",
        "def f(a: real, u: List[real]) -> None:",
        "    b: real = pk.sqrt(a)",
        "    u[0] = a",
        "    u[1] = b",
    ]
    lines = ["mine: real = 1.0", "u: List[real] = [0.0] * 2", "f(x[i], u)", "x[i] = u[0]"]
    assert body(lines, *head) == [
        "mine: pk.double = 1.0",
        "u_0: pk.double = 0.0",
        "a_1: pk.double = x[i]",
        "u_0 = a_1",
        "x[i] = u_0",
    ]


def test_calls_in_inner_bodies(body):
    lines = [
        "def point(j: int):", "    u: List[real] = [0.0] * 2", "    axpy(x[j], 0.5, u)", "    x[j] = u[1]",
        "pk.parallel_for(pk.TeamThreadRange(team, n), point)",
    ]  # fmt: skip
    out = body(lines, *AXPY, args="team: pk.TeamMember, x: pk.View1D[real], n: int")
    assert out[-1] == lines[-1]
    assert out[0] == lines[0]
    assert "    u_1 -= t_1" in out


VIEWS = [
    "@pk.function", "def horner(c: pk.View1D[real], at: int, t: real) -> real:", "    v: real = c[at]",
    "    for k in range(1, 3):", "        v = v * t + c[at + k]", "    return v",
    "@pk.function", "def put(t: pk.ScratchView1D[real], c: pk.View1D[real], n: int) -> Tuple[int, real]:",
    "    t[n] = c[n]", "    pk.atomic_add(c, [n + 1], t[n])", "    return c.extent(0), t[n]",
]  # fmt: skip


def test_views_are_passed_by_name(body):
    lines = [
        "s: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 4)",
        "def point(j: int):", "    v: real = horner(x, 3 * j, 0.5)", "    m, w = put(s, x, j)", "    x[j] = v + w",
        "pk.parallel_for(pk.TeamThreadRange(team, n), point)",
    ]  # fmt: skip
    out = body(lines, *VIEWS, args="team: pk.TeamMember, x: pk.View1D[real], n: int")
    assert out[2:-1] == [
        "    at_1: int = 3 * j", "    v_1: pk.double = x[at_1]", "    for k_1 in range(1, 3):",
        "        v_1 = v_1 * 0.5 + x[at_1 + k_1]", "    v: pk.double = v_1", "    s[j] = x[j]",
        "    pk.atomic_add(x, [j + 1], s[j])", "    m: int = x.extent(0)", "    w: pk.double = s[j]",
        "    x[j] = v + w",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "call", "code", "line"),
    [
        (AXPY, "x[i] = axpy(x[i], 2.0, u) + 1.0", "K001", 8),
        (AXPY, "axpy(x[i], u)", "K004", 8),
        (AXPY, "axpy(x[i], 2.0, 3.0)", "K004", 8),
        (AXPY, "axpy(x[i], 2.0, y=u)", "K008", 8),
        (AXPY, "a: real = axpy(x[i], 2.0, u)", "K004", 8),
        ([*POLAR, "    return r, x / r"], "a, b, c = polar(x[i], x[i])", "K004", 7),
        ([*POLAR, "    return r"], "a, b = polar(x[i], x[i])", "K020", 3),
        ([*POLAR[:2], "    if x > y:", "        return x, y", "    return y, x"], "a, b = polar(x[i], 1.0)", "K020", 3),
        ([*POLAR[:2], "    x = 1.0", "    return y, x"], "a, b = polar(x[i], 1.0)", "K011", 2),
        ([*POLAR[:2], "    return y, n"], "a, b = polar(x[i], 1.0)", "K003", 2),
        (VIEWS, "x[i] = 2.0 * horner(x, i, 0.5)", "K001", 14),
        (VIEWS, "v: real = horner(x[i], i, 0.5)", "K004", 14),
        (["T = (1.0, 2.0)", *VIEWS], "v: real = horner(T, 0, 0.5)", "K004", 15),
        ([*VIEWS[:2], "    c = c", "    return t"], "v: real = horner(x, i, 0.5)", "K011", 2),
        (["@pk.function", "def f(v: pk.View1D) -> None:", "    v[0] = 1.0"], "f(x)", "K020", 1),
        (["@pk.function", "def f(v: pk.View5D[real]) -> real:", "    return 1.0"], "y: real = f(x)", "K020", 1),
        (["@pk.function", "def f(t: pk.TeamMember) -> None:", "    t.team_barrier()"], "f(x)", "K020", 1),
        (["@pk.function", "def f(a: real, u: List[real]):", "    u[0] = a"], "f(1.0, u)", "K002", 1),
        (["@pk.function", "def f(u: List[real], a: real = 1.0) -> None:", "    u[0] = a"], "f(u)", "K008", 1),
        (["@pk.function", "def f(u: List[real]) -> None:", "    f(u)"], "f(u)", "K020", 2),
        (["@pk.function", "def f(a: real) -> real:", "    return f(a)"], "x[i] = f(1.0)", "K020", 2),
    ],
)
def test_faults_of_functions_and_calls(body, function, call, code, line):
    # `line` counts from the first line after the head, from 0.
    l1.rejects(code, l1.FIRST + line, body, ["u: List[real] = [0.0] * 2", call], *function)


# Functions that stay -------------------------------------------------------------------------------------------------
def test_functions_keep_their_names_and_move_aside_on_a_clash(files):
    files("lib.py", *function("g", "2.0 * a"), *function("h", "g(a) + 1.0"), *function("unused", "a"))
    head = ["from parki.kernels.lib import h", *function("g", "3.0 * a")]
    path = files("k.py", *head, "@pk.workunit", "def w(i: int, x: pk.View1D[real]):", "    x[i] = g(h(x[i]))")
    l0 = specialise(path, "w")
    parse(l0.text, l0.linemap)
    lines = l0.text.splitlines()
    results = {line[4:].split("(")[0]: lines[i + 1].strip() for i, line in enumerate(lines) if line.startswith("def ")}
    assert results == {
        "lib__g": "return 2.0 * a",
        "h": "return lib__g(a) + 1.0",
        "g": "return 3.0 * a",
        "w": "x[i] = g(h(x[i]))",
    }
    assert l0.sources == (str(path), "kernels/lib.py")


def test_functions_do_not_take_the_name_of_a_local(files):
    inline = ["@pk.function", "def h(a: real, u: List[real]) -> None:", "    u[0] = g(a)"]
    files("lib.py", *function("g", "2.0 * a"), *inline)
    lines = ["g: real = x[i]", "u: List[real] = [0.0] * 1", "h(g, u)", "x[i] = u[0] + g"]
    head = ["from parki.kernels.lib import h", "@pk.workunit", "def w(i: int, x: pk.View1D[real]):"]
    l0 = specialise(files("k.py", *head, *("    " + line for line in lines)), "w")
    parse(l0.text, l0.linemap)
    assert "    u_0 = lib__g(g)\n" in l0.text


def function(name, result):
    return "@pk.function", f"def {name}(a: real) -> real:", f"    return {result}"


# Threads --------------------------------------------------------------------------------------------------------------
def test_threads_parse_at_the_same_time():
    def wait(phase, info):
        time.sleep(0)  # lets another thread go on in the middle of a tree

    text = Path(syntax.__file__).read_text()
    before, thresholds = sys.getswitchinterval(), gc.get_threshold()
    gc.callbacks.append(wait)
    sys.setswitchinterval(1e-6)
    gc.set_threshold(10)
    try:
        with ThreadPoolExecutor(8) as pool:
            trees = list(pool.map(lambda _: syntax.parsed(text), range(60)))
    finally:
        gc.callbacks.remove(wait)
        sys.setswitchinterval(before)
        gc.set_threshold(*thresholds)
    assert len(trees) == 60
