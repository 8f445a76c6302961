"""Rules of the workunit subset: each violation is rejected with its code, at its place; valid texts are accepted."""

import re

import pytest

from parki import engine
from parki.engine import KernelError
from parki.engine.tree.check import check
from parki.engine.tree.parse import parse
from tests.engine import program_faults as tools
from tests.engine import programs

CODES = {f"K{n:03d}" for n in range(1, 21)} - {"K009"}  # K021 belongs to specialising
SHOWN = re.compile(r"^program\.py:(\d+):(\d+): (K\d{3}): (.+)$")


def accept(text):
    check(parse(text, name="program.py"))


def rejected(text):
    with pytest.raises(KernelError) as caught:
        accept(text)
    return caught.value


@pytest.mark.parametrize("n", range(len(tools.FAULTS)))
def test_faults(n):
    code, text = tools.FAULTS[n]
    error = rejected(text)
    assert error.code == code, f"{error}\n{text}"
    shown = SHOWN.match(str(error))
    assert shown, str(error)
    line, col = int(shown[1]), int(shown[2])
    assert 1 <= line <= text.count("\n")
    assert 1 <= col <= len(text.splitlines()[line - 1])


def test_every_code_is_hit():
    assert {code for code, _ in tools.FAULTS} == CODES


def test_messages_are_whole():
    """Check that a message is one sentence of reason, then one of advice."""
    error = rejected(tools.text("i: int, x: pk.View1D[pk.double], n: int", ["x[i] = 1.0 if n > 2 else 2.0"]))
    assert str(error) == (
        "program.py:5:12: K001: a conditional expression is not in the workunit subset. Use an if statement"
    )
    assert (error.loc.line, error.loc.col) == (5, 12)


def test_places_are_those_of_the_file_people_wrote(tmp_path):
    """Check that an error names the line of the L1 file after constants, inlining and unrolling."""
    path = tmp_path / "mine.py"
    lines = [
        "import pykokkos as pk",
        "from typing import List",
        "real = pk.double",
        "N = 3",
        "@pk.function",
        "def fill(a: List[real], v: real) -> None:",
        "    for k in range(N):",
        "        a[k] = v + k",
        "@pk.workunit",
        "def w(i: int, x: pk.View1D[real]):",
        "    a: List[real] = [0.0] * N",
        "    fill(a, 2.0)",
        "    x[i] = a[0]",
    ]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(KernelError, match=r"mine\.py:8:\d+: K004: .*mixes double and int32") as caught:
        engine.kernel(path, "w")
    assert caught.value.loc.line == 8


# Texts that look like faults and are valid -------------------------------------------------------------------------
VIEWS = "x: pk.View1D[pk.double], k: pk.View1D[pk.int32], n: int, a: pk.double"
SCRATCH, FILL, DRAIN, BARRIER = tools.SCRATCH, tools.FILL, tools.DRAIN, tools.BARRIER
AGAIN = [line.replace("fill", "refill") for line in FILL]
VALID = {
    "a barrier in a loop that runs": ["for r in range(2):", f"    {BARRIER}", *DRAIN],
    "a barrier at the end of a loop that may not run": [BARRIER, *DRAIN, "for r in range(n):", f"    {BARRIER}"],
    "a barrier on each path": ["if n > 2:", f"    {BARRIER}", "else:", f"    {BARRIER}", *DRAIN],
    "a path that ends": ["if n > 2:", "    return", BARRIER, *DRAIN],
    "a break after the barrier": ["for r in range(2):", f"    {BARRIER}", "    if n > 2:", "        break", *DRAIN],
    "fill, barrier, drain, barrier in a loop": [
        BARRIER,
        "for r in range(n):",
        *tools.indented([*AGAIN, BARRIER, *DRAIN, BARRIER]),
    ],
    "reads need no barrier between them": [
        BARRIER,
        *DRAIN[:1],
        "    k[t] = int(s[7 - t])",
        DRAIN[2],
        *[line.replace("drain", "other") for line in DRAIN],
    ],
    "one body, launched twice alike": [BARRIER, *DRAIN[:2], DRAIN[2], BARRIER, DRAIN[2]],
}


@pytest.mark.parametrize("name", VALID)
def test_barriers_that_suffice(name):
    text = tools.text(f"team: pk.TeamMember, {VIEWS}", [SCRATCH, *FILL, *VALID[name]], scratch="(float, lambda p: 8)")
    accept(text)


INVALID = {
    "a while loop may not run": ("K016", ["r: int = 0", "while r < n:", f"    {BARRIER}", "    r += 1", *DRAIN]),
    "no barrier on one of three paths": (
        "K016",
        ["if n > 2:", f"    {BARRIER}", "elif n > 1:", "    c: int = 2", "else:", f"    {BARRIER}", *DRAIN],
    ),
    "the second turn meets the end of the first": (
        "K016",
        [BARRIER, "for r in range(n):", *tools.indented([*DRAIN, BARRIER, *AGAIN])],
    ),
    "a break out of an inner loop": (
        "K016",
        [
            "for r in range(2):",
            "    for q in range(2):",
            "        if n > 2:",
            "            break",
            f"        {BARRIER}",
            *DRAIN,
        ],
    ),
    "one body, two meanings": (
        "K012",
        [BARRIER, *DRAIN, "c: pk.double = pk.parallel_reduce(pk.TeamThreadRange(team, n), drain)"],
    ),
    "an inner body reads what is declared below": (
        "K002",
        ["def early(t: int):", "    x[t] = later", "later: pk.double = a",
         "pk.parallel_for(pk.TeamThreadRange(team, n), early)"],
    ),
    "an inner body reads what is declared after its use": (
        "K002",
        ["def early(t: int):", "    x[t] = later", "pk.parallel_for(pk.TeamThreadRange(team, n), early)",
         "later: pk.double = a"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID)
def test_more_faults(name):
    code, lines = INVALID[name]
    text = tools.text(f"team: pk.TeamMember, {VIEWS}", [SCRATCH, *FILL, *lines], scratch="(float, lambda p: 8)")
    assert rejected(text).code == code, text


@pytest.mark.parametrize(
    "entry",
    [
        "(float, lambda p: 8.0)",
        "(float, lambda p: p.n ** 2)",
        "(float, lambda p: p.a)",
        "(float, lambda p: p.team_size)",
        "(float, lambda p: q.n)",
        "(float, lambda p: __import__('os').getpid())",
        "(float, lambda p: p.n.real)",
        "(bool, lambda p: 8)",
        "8",
    ],
)
def test_scratch_sizes_are_integer_arithmetic(entry):
    text = tools.text(f"team: pk.TeamMember, {VIEWS}", [SCRATCH, *FILL, BARRIER, *DRAIN], scratch=entry)
    assert rejected(text).code == "K018"


@pytest.mark.parametrize("name", ["new", "unix", "int64_t", "PK_W", "_Name", "pk_m1"])
def test_reserved_names(name):
    assert rejected(tools.text(f"i: int, {VIEWS}", [f"{name}: int = n", f"x[i] = pk.double({name})"])).code == "K003"


@pytest.mark.parametrize(
    "signature",
    [
        "team: pk.TeamMember, acc: pk.Acc[pk.double]",
        "i: int, n: int, acc: pk.Acc[pk.double]",
        "i: int, acc: pk.Acc[pk.double], other: pk.Acc[pk.double]",
    ],
)
def test_accumulators_follow_the_index_of_a_range(signature):
    assert rejected(tools.text(signature, ["acc += 1.0"])).code == "K015"


def test_integer_literals():
    accept(tools.text("i: int, k: pk.View1D[pk.int32]", ["k[i] = -2147483648"]))
    assert rejected(tools.text("i: int, k: pk.View1D[pk.int32]", ["k[i] = 2147483648"])).code == "K004"
    assert rejected(tools.text("i: int, k: pk.View1D[pk.int64]", ["k[i] = 9223372036854775808"])).code == "K004"


def test_generated_programs_are_accepted():
    for seed in range(300):
        accept(programs.random_program(seed).text)
