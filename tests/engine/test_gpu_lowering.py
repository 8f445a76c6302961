"""GPU text against the interpreter: generated programs and all kernels, simulated."""

import pytest

from tests.engine import host_batch as host
from tests.engine import programs
from tests.engine import programs_by_hand as by_hand
from tests.engine import sim_batch as batch

EXACT = ("-ffp-contract=off",)
PER_OBJECT = 25


def compare(drawn, flags, same):
    wrong = []
    for first in range(0, len(drawn), PER_OBJECT):
        some = drawn[first : first + PER_OBJECT]
        units = batch.compile_batch(some, flags)
        for n, (program, unit) in enumerate(zip(some, units, strict=True)):
            wrong += batch.disagreements(program, unit, n, same)
    assert wrong == [], f"{len(wrong)} disagreements; the first:\n{wrong[0]}"


def draw(count, seed, **kwargs):
    return [programs.random_program(seed * 1_000_000 + k, **kwargs) for k in range(count)]


def test_generated_programs():
    """Compare to the bit: terms are multiples of 1/4, so sums are exact in any order."""
    compare(draw(50, 300), EXACT, host.bitwise)


def test_mathematics():
    compare(draw(15, 301, libm=True), (), host.within(64))


def test_by_hand():
    compare([*by_hand.BY_HAND.values(), by_hand.singles()], EXACT, host.bitwise)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_generated_programs_at_length(part):
    compare(draw(100, 310 + part), EXACT, host.bitwise)
