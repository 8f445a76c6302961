"""Checked builds (PARKI_DEBUG=1) report accesses out of bounds: file, line, index, extent; results do not change."""

import re
from pathlib import Path

import numpy as np
import pytest

from parki import engine
from parki.engine import CheckedFault, RangePolicy, TeamPolicy
from tests.engine import kernel_cases as cases
from tests.engine.programs.out_of_bounds import FAULTS, over


@pytest.fixture(autouse=True)
def _checked(monkeypatch):
    monkeypatch.setenv("PARKI_DEBUG", "1")


def launch(program, path):
    policy = TeamPolicy("Serial", program.league) if program.policy == "team" else RangePolicy("Serial", program.league)
    path.write_text(program.text)
    engine.parallel_for(policy, engine.kernel(path, "w"), **program.fresh_args())


@pytest.mark.parametrize("name", FAULTS)
def test_out_of_bounds(name, tmp_path):
    fault = FAULTS[name]
    with pytest.raises(CheckedFault) as caught:
        launch(fault.program, tmp_path / "mine.py")
    text = str(caught.value)
    where = re.match(r"(.*):(\d+):\d+: ", text)
    assert where, text
    assert Path(where[1]).name == "mine.py"
    assert int(where[2]) == fault.line
    assert f"'{fault.view}' is {fault.index}, outside 0 … {fault.extent - 1}" in text


def test_nothing_out_of_bounds_is_touched(tmp_path):
    """Check that the store does not happen, and that the next launch is clean."""
    program, path, padded = over("x[i + n] = 1.0"), tmp_path / "mine.py", np.zeros(10)
    path.write_text(program.text)
    args = {**program.fresh_args(), "x": padded[:5], "n": 2}
    prepared = engine.prepare(RangePolicy("OpenMP", 5), engine.kernel(path, "w"), **args)
    with pytest.raises(CheckedFault):
        prepared.run()
    assert list(padded) == [0, 0, 1, 1, 1, 0, 0, 0, 0, 0]
    prepared.set(x=np.zeros(7))
    prepared.run()


def one_of_each():
    """Return names of cases: the first of every second kernel file is in every run, as each is compiled twice.

    The interpreter finds accesses out of bounds in every case of every run.
    """
    names, seen = [], []
    for name, case in cases.cases("double").items():
        seen += [case.file] * (first := case.file not in seen)
        names.append(name if first and len(seen) % 2 == 1 else pytest.param(name, marks=pytest.mark.slow))
    return names


@pytest.fixture(scope="module")
def plain():
    """Compile the kernels' unchecked objects together, and then the checked objects."""
    quick = [name for name in one_of_each() if isinstance(name, str)]
    units = [cases.cases("double")[name].unit("double") for name in quick]
    engine.compile_all(list(dict.fromkeys(units)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARKI_DEBUG", "1")
        engine.compile_all(list(dict.fromkeys(units)))


@pytest.mark.parametrize("name", one_of_each())
def test_kernels_are_clean_and_give_the_same(name, plain, monkeypatch):
    case = cases.cases("double")[name]
    unit = case.unit("double")
    results = []
    for debug in ("", "1"):
        monkeypatch.setenv("PARKI_DEBUG", debug)
        args = case.fresh()
        policy = (TeamPolicy if unit.ir.policy == "team" else RangePolicy)("OpenMP", case.league)
        results.append((engine.prepare(policy, unit, **args).run(), args))
    (total, expected), (checked_total, found) = results
    assert checked_total == total
    for p in unit.ir.params:
        if p.written:
            size = max(1.0, float(np.max(np.abs(expected[p.name]))))
            np.testing.assert_allclose(found[p.name], expected[p.name], rtol=0, atol=1e-13 * size)
