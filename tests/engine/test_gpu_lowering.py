"""GPU text against the interpreter: generated programs and all kernels, simulated."""

import pytest

from tests.engine.programs import batch
from tests.engine.programs.by_hand import BY_HAND, SINGLES
from tests.engine.programs.drawn import random_programs

EXACT = batch.Simulator(("-ffp-contract=off",))


def test_generated_programs():
    """Compare to the bit: terms are multiples of 1/4, so sums are exact in any order."""
    batch.compare(random_programs(30, 300), EXACT, batch.bitwise)


def test_mathematics():
    batch.compare(random_programs(15, 301, libm=True), batch.Simulator(()), batch.within(64))


def test_by_hand():
    batch.compare([*BY_HAND.values(), SINGLES], EXACT, batch.bitwise)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_generated_programs_at_length(part):
    batch.compare(random_programs(100, 310 + part), EXACT, batch.bitwise)
