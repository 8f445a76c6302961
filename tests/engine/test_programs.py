"""Generated programs are valid, and give the same results for all team sizes and orders of iterations."""

import numpy as np
import pytest

from parki.engine.interpreter.launching import run
from parki.engine.tree.check import check
from parki.engine.tree.parse import parse
from tests.engine.programs.drawn import POLICIES, random_programs


@pytest.mark.parametrize("policy", POLICIES)
def test_generated_programs_do_not_depend_on_the_order(policy):
    changed = []
    for program in random_programs(25, 0, policies=(policy,)):
        kernel = parse(program.text, name="program.py")
        check(kernel)
        assert {p.name for p in kernel.params if p.written} <= set(program.written)
        results = []
        for team, seed in ((1, None), (3, 1), (8, 2)):
            args = program.fresh_args()
            total = run(kernel, league=program.league, team=team, seed=seed, args=args)
            results.append((total, args))
        total, first = results[0]
        assert (total is None) == (program.acc is None)
        for other, args in results[1:]:
            assert other == total
            for name in program.written:
                np.testing.assert_array_equal(args[name], first[name])
        for name in set(program.args) - set(program.written):
            np.testing.assert_array_equal(first[name], program.args[name])
        changed.append(any(not np.array_equal(first[n], program.args[n]) for n in program.written))
    # a generator of programs that do nothing would prove nothing
    assert sum(changed) > len(changed) // 3
