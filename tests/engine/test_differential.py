"""Generated programs mean the same to the interpreter and to compiled host code, on every vector width and space.

Without libm and without contraction of ``a * b + c`` the results agree to the bit, reductions included: terms are
multiples of 1/4, so sums are exact in any order.
"""

from dataclasses import replace

import pytest

from parki.engine.compile import compiler
from tests.engine import host_batch as batch
from tests.engine import programs
from tests.engine import programs_by_hand as by_hand

WIDTHS = compiler.WIDTHS
EXACT = ("-ffp-contract=off",)
PER_OBJECT = 25


@pytest.fixture(params=WIDTHS)
def target(request):
    """Return the target with this vector width; skip where the CPU has no such vectors."""
    for made in batch.targets():
        if made.vector_bytes == request.param:
            return made
    return pytest.skip(f"no {request.param}-byte vectors here")


def compare(drawn, target, flags, same, checked=False):
    where = f"{target.arch}, {target.vector_bytes} bytes"
    wrong = []
    for first in range(0, len(drawn), PER_OBJECT):
        some = drawn[first : first + PER_OBJECT]
        units = batch.compile_batch(some, target, flags, checked)
        for program, unit in zip(some, units, strict=True):
            wrong += batch.disagreements(program, unit, where, same)
    assert wrong == [], f"{len(wrong)} disagreements; the first:\n{wrong[0]}"


def draw(count, seed, **kwargs):
    return [programs.random_program(seed * 1_000_000 + k, **kwargs) for k in range(count)]


def test_bitwise(target):
    compare(draw(24, target.vector_bytes), target, (*EXACT, "-O2"), batch.bitwise)


def test_checked_builds_are_clean():
    """Check that no valid program faults, and that checks change no result."""
    compare(draw(15, 1), compiler.target(), (*EXACT, "-O1"), batch.bitwise, checked=True)


def test_mathematics():
    """Check the shipped flags: functions agree within a few ulp, and results made from them within a few more."""
    compare(draw(15, 2, libm=True), compiler.target(), (), batch.within(64))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_bitwise_at_length(target, part):
    compare(draw(100, 100 + part), target, EXACT, batch.bitwise)


@pytest.mark.slow
def test_mathematics_at_length(target):
    compare(draw(100, 200, libm=True), target, EXACT, batch.within(1000))


# Programs that generated ones do not reach ---------------------------------------------------------------------------
def test_by_hand(target):
    compare(list(by_hand.BY_HAND.values()), target, (*EXACT, "-O2"), batch.bitwise)
    compare([replace(p, league=0) for p in by_hand.BY_HAND.values()][:2], target, (*EXACT, "-O2"), batch.bitwise)


def test_64_bit_comparisons_without_an_instruction():
    """Check a program at which g++ 12 once ended with an internal error, where SSE2 is all there is."""
    compare([programs.random_program(100_000_030)], batch.targets()[0], EXACT, batch.bitwise)


def test_a_return_leaves_only_the_single(target):
    """Check that lanes return from the body of `pk.single` one by one, and go on after the call."""
    program = by_hand.singles()
    compare([program], target, EXACT, batch.bitwise)
    expected = batch.expected(program)[1]["x"]
    assert list(expected[:6]) == [100, 101, 102, 103, 114, 114]
