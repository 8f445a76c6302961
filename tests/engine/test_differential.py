"""Generated programs mean the same to the interpreter and to compiled host code, on every vector width and space.

Without libm and without contraction of ``a * b + c`` the results agree to the bit, reductions included: terms are
multiples of 1/4, so sums are exact in any order.
"""

from dataclasses import replace

import pytest

from parki.engine.compile import compiler
from tests.engine.programs import batch
from tests.engine.programs.batch import Host, compare
from tests.engine.programs.by_hand import BY_HAND, SINGLES
from tests.engine.programs.drawn import random_program, random_programs

WIDTHS = compiler.WIDTHS
EXACT = ("-ffp-contract=off",)


@pytest.fixture(params=WIDTHS)
def target(request):
    """Return the target with this vector width; skip where the CPU has no such vectors."""
    for target in batch.targets():
        if target.vector_bytes == request.param:
            return target
    return pytest.skip(f"no {request.param}-byte vectors here")


def test_bitwise(target):
    compare(random_programs(14, target.vector_bytes), Host(target, (*EXACT, "-O2")), batch.bitwise)


def test_checked_builds_are_clean():
    """Check that no valid program faults, and that checks change no result."""
    compare(random_programs(9, 1), Host(compiler.target(), (*EXACT, "-O1"), checked=True), batch.bitwise)


def test_mathematics():
    """Check the shipped flags: functions agree within a few ulp, and results made from them within a few more."""
    compare(random_programs(9, 2, libm=True), Host(compiler.target(), ()), batch.within(64))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_bitwise_at_length(target, part):
    compare(random_programs(100, 100 + part), Host(target, EXACT), batch.bitwise)


@pytest.mark.slow
def test_mathematics_at_length(target):
    compare(random_programs(100, 200, libm=True), Host(target, EXACT), batch.within(1000))


# Programs that generated ones do not reach ---------------------------------------------------------------------------
def test_by_hand(target):
    place = Host(target, (*EXACT, "-O2"))
    compare(list(BY_HAND.values()), place, batch.bitwise)
    compare([replace(p, league=0) for p in BY_HAND.values()][:2], place, batch.bitwise)


def test_64_bit_comparisons_without_an_instruction():
    """Check a program at which g++ 12 once ended with an internal error, where SSE2 is all there is."""
    compare([random_program(100_000_030)], Host(batch.targets()[0], EXACT), batch.bitwise)


def test_a_return_leaves_only_the_single(target):
    """Check that lanes return from the body of `pk.single` one by one, and go on after the call."""
    compare([SINGLES], Host(target, EXACT), batch.bitwise)
    _, args = batch.interpreted(SINGLES, batch.Batched(SINGLES))
    assert list(args["x"][:6]) == [100, 101, 102, 103, 114, 114]
