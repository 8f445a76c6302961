"""Kernels through the front end of an installed PyKokkos; some of them also run through PyKokkos."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from parki import engine
from parki.engine import RangePolicy, TeamPolicy
from parki.engine.run import upstream
from tests.engine import kernel_cases as cases
from tests.engine import pykokkos_standin as standin

KERNELS = Path(__file__).parents[2] / "kernels"
RUN = ["cell_index", "count_scan", "gather_points", "direct_sum", "p2p_sm_2d", "p2g_block", "g2p_target"]

pytestmark = pytest.mark.filterwarnings("default")  # PyKokkos has warnings of its own

prepare = standin.prepare
DEFAULTS = {f"{file}.{name}": (file, name) for file, name in sorted(cases.workunits_of(KERNELS))}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return PyKokkos, in a separate working folder because it builds there; skip where it is missing."""
    why = upstream.available()
    if why is not None:
        pytest.skip(why)
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("upstream"))
    yield sys.modules["pykokkos"]
    os.chdir(before)


@pytest.mark.parametrize("name", [*cases.ALL, *DEFAULTS])
def test_its_front_end_accepts_every_kernel(name, installed):
    if name in DEFAULTS:
        unit = engine.kernel(*DEFAULTS[name])
    else:
        case, real = cases.ALL[name]
        unit = case.unit(real)
    made = upstream.translate(unit)
    assert f"struct pk_functor_{unit.l0.name}" in made
    assert f"wrapper_{unit.l0.name}" in made


@pytest.mark.parametrize("workunit", RUN)
def test_it_computes_what_parki_computes(workunit, installed):
    case = next(case for case, real in cases.ALL.values() if case.workunit == workunit and real == "double")
    unit, found, expected = case.unit("double"), case.fresh(), case.fresh()
    policy = (TeamPolicy if unit.ir.policy == "team" else RangePolicy)("OpenMP", case.league)
    prepared = prepare(policy, unit, found)
    prepared.run()
    engine.prepare(policy, unit, **expected).run()
    for p in unit.ir.params:
        if p.written:
            assert not np.array_equal(found[p.name], case.args[p.name])
            np.testing.assert_allclose(found[p.name], expected[p.name], rtol=1e-12, atol=1e-13)


def test_what_it_takes_differently_comes_out_alike(installed, tmp_path):
    file = tmp_path / "sum.py"
    file.write_text(standin.SUM)

    def run(name, **args):
        return prepare(RangePolicy("Serial", 3), engine.kernel(file, name), args).run()

    x, y, n = np.array([1.0, 16.0, 81.0]), np.zeros(3), np.zeros(3, np.int32)
    run("roots", x=x, y=y)
    np.testing.assert_allclose(y, 2 * x**0.25)
    run("whole", x=x, a=-2.75)
    np.testing.assert_array_equal(x, [1.75, 16.75, 81.75])
    run("rest", x=np.zeros((2, 5)), out=n)
    np.testing.assert_array_equal(n, [2, -3, -8])
    assert run("total", x=x, scale=2.0, even=True) == 2 * x.sum()
    assert run("running", n=n, out=np.zeros(3, np.int32)) == n.sum()
