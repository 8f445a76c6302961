"""Checks by `parki doctor --check`: right sums pass, and wrong sums are found."""

from dataclasses import replace

import numpy as np
import pytest

from parki import cli, fmm, pairs
from parki.app import checks
from parki.engine.run import spaces
from parki.ewald import kernels

#: Madelung constants of the chain, the square layer and rock salt.
MADELUNG = {1: -2 * np.log(2), 2: -1.6155426267128247, 3: -1.7475645946331822}


@pytest.fixture(autouse=True)
def one_space(monkeypatch):
    monkeypatch.setattr(spaces, "available", lambda: {"Serial": None, "Cuda": "there is no GPU"})


def checked(capsys, *arguments):
    """Return the status, the last line, and the rows of the table by method."""
    status = cli.main(["doctor", "--check", *arguments])
    _, *rows, last = capsys.readouterr().out.splitlines()
    return status, last, {row[2:27].strip(): row[27:] for row in rows}


def test_every_method_is_right(capsys):
    status, last, rows = checked(capsys)
    assert (status, last) == (0, "9 of 9 sums are right")
    assert "skipped: there is no GPU" in rows.pop("–")
    methods = [f"ewald, {k} periodic" for k in (3, 2, 1, 0)]
    assert list(rows) == [*methods, "treecode bldtt", "treecode bltc", "fmm kifmm", "fmm chebyshev", "direct"]
    for name, row in rows.items():
        space, error, tolerance, verdict = row.split()
        assert (space, verdict) == ("Serial", "ok")
        # An approximate sum with only rounding errors would not have used its approximation.
        assert (float(error) < 1e-13) is (name == "direct")
        assert float(error) < float(tolerance)


@pytest.mark.parametrize("periodicity", MADELUNG)
def test_the_reference_itself(periodicity, monkeypatch):
    monkeypatch.setattr(checks, "SIDES", (2.0, 2.0, 2.0))
    u = checks.direct_periodic(np.zeros((3, 1)), np.ones(1), periodicity)
    np.testing.assert_allclose(u, MADELUNG[periodicity], rtol=3e-7)


@pytest.fixture
def wrong(tmp_path, root):
    """Return the path of a pair function that is off by 1e-4."""
    text = (root / "kernels" / "pair" / "laplace.py").read_text("utf-8")
    assert text.count("u[0] += s[0] * a") == 1
    path = tmp_path / "wrong.py"
    path.write_text(text.replace("s[0] * a", "s[0] * a * 1.0001"))
    return path


def test_a_wrong_pair_is_found(wrong, capsys, monkeypatch):
    monkeypatch.setitem(pairs.PAIRS, "coulomb", pairs.own(wrong))
    status, last, rows = checked(capsys)
    assert status == 1
    failed = {name for name, row in rows.items() if "FAILED" in row}
    assert failed == {"treecode bldtt", "treecode bltc", "fmm kifmm", "fmm chebyshev", "direct"}
    assert last == "4 of 9 sums are right, 5 FAILED"


def test_a_wrong_ewald_kernel_is_found(capsys, monkeypatch):
    """Check a kernel whose far field has a wrong factor."""
    monkeypatch.setitem(kernels.KERNELS, "laplace", replace(kernels.LAPLACE, scale=1.001))
    status, _, rows = checked(capsys)
    assert status == 1
    failed = {name for name, row in rows.items() if "FAILED" in row}
    assert {f"ewald, {k} periodic" for k in (3, 2, 1)} <= failed
    assert "direct" not in failed


def test_an_error_is_a_failure(capsys, monkeypatch):
    def plan(*_, method, **__):
        raise ArithmeticError(f"no {method}\nand more")

    monkeypatch.setattr(fmm, "plan", plan)
    status, last, rows = checked(capsys)
    assert status == 1
    assert rows["fmm kifmm"].endswith("FAILED: ArithmeticError: no kifmm")
    assert last == "7 of 9 sums are right, 2 FAILED"
