"""Rules of the workunit subset: each violation is rejected with its code, at its place; valid texts are accepted."""

import re

import pytest

from parki import engine
from parki.engine import KernelError
from parki.engine.tree.check import check
from parki.engine.tree.parse import parse
from tests.engine.programs.drawn import random_program
from tests.engine.programs.faults import AGAIN, BARRIER, DRAIN, FAULTS, FILL, SCRATCH, VIEWS, team_text
from tests.engine.programs.program import L1, indent, write

CODES = {f"K{n:03d}" for n in range(1, 21)} - {"K009"}  # K021 belongs to specialising
SHOWN = re.compile(r"^program\.py:(\d+):(\d+): (K\d{3}): (.+)$")


def accept(text):
    check(parse(text, name="program.py"))


def rejected(text):
    with pytest.raises(KernelError) as caught:
        accept(text)
    return caught.value


@pytest.mark.parametrize("n", range(len(FAULTS)))
def test_faults(n):
    code, text = FAULTS[n]
    error = rejected(text)
    assert error.code == code, f"{error}\n{text}"
    shown = SHOWN.match(str(error))
    assert shown, str(error)
    line, col = int(shown[1]), int(shown[2])
    assert 1 <= line <= text.count("\n")
    assert 1 <= col <= len(text.splitlines()[line - 1])


def test_every_code_is_hit():
    assert {code for code, _ in FAULTS} == CODES


def test_messages_are_whole():
    """Check that a message is one sentence of reason, then one of advice."""
    error = rejected(write("i: int, x: pk.View1D[pk.double], n: int", ["x[i] = 1.0 if n > 2 else 2.0"]))
    assert str(error) == (
        "program.py:5:12: K001: a conditional expression is not in the workunit subset. Use an if statement"
    )
    assert (error.loc.line, error.loc.col) == (5, 12)


def test_places_are_those_of_the_file_people_wrote(tmp_path):
    """Check that an error names the line of the L1 file after constants, inlining and unrolling."""
    path = tmp_path / "mine.py"
    fill = [
        "@pk.function",
        "def fill(a: List[real], v: real) -> None:",
        "    for k in range(N):",
        "        a[k] = v + k",
    ]
    lines = ["a: List[real] = [0.0] * N", "fill(a, 2.0)", "x[i] = a[0]"]
    path.write_text(write("i: int, x: pk.View1D[real]", lines, ["N = 3", *fill], head=L1))
    with pytest.raises(KernelError, match=r"mine\.py:8:\d+: K004: .*mixes double and int32") as caught:
        engine.kernel(path, "w")
    assert caught.value.loc.line == 8


# Texts that look like faults and are valid -------------------------------------------------------------------------
VALID = {
    "a barrier in a loop that runs": ["for r in range(2):", f"    {BARRIER}", *DRAIN],
    "a barrier at the end of a loop that may not run": [BARRIER, *DRAIN, "for r in range(n):", f"    {BARRIER}"],
    "a barrier on each path": ["if n > 2:", f"    {BARRIER}", "else:", f"    {BARRIER}", *DRAIN],
    "a path that ends": ["if n > 2:", "    return", BARRIER, *DRAIN],
    "a break after the barrier": ["for r in range(2):", f"    {BARRIER}", "    if n > 2:", "        break", *DRAIN],
    "fill, barrier, drain, barrier in a loop": [
        BARRIER,
        "for r in range(n):",
        *indent([*AGAIN, BARRIER, *DRAIN, BARRIER]),
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
    accept(team_text(SCRATCH, *FILL, *VALID[name]))


@pytest.mark.parametrize("name", ["new", "unix", "int64_t", "PK_W", "_Name", "pk_m1"])
def test_reserved_names(name):
    assert rejected(write(f"i: int, {VIEWS}, n: int", [f"{name}: int = n", f"x[i] = pk.double({name})"])).code == "K003"


@pytest.mark.parametrize(
    "signature",
    [
        "team: pk.TeamMember, acc: pk.Acc[pk.double]",
        "i: int, n: int, acc: pk.Acc[pk.double]",
        "i: int, acc: pk.Acc[pk.double], other: pk.Acc[pk.double]",
    ],
)
def test_accumulators_follow_the_index_of_a_range(signature):
    assert rejected(write(signature, ["acc += 1.0"])).code == "K015"


def test_integer_literals():
    accept(write("i: int, k: pk.View1D[pk.int32]", ["k[i] = -2147483648"]))
    assert rejected(write("i: int, k: pk.View1D[pk.int32]", ["k[i] = 2147483648"])).code == "K004"
    assert rejected(write("i: int, k: pk.View1D[pk.int64]", ["k[i] = 9223372036854775808"])).code == "K004"


def test_generated_programs_are_accepted():
    for seed in range(300):
        accept(random_program(seed).text)
