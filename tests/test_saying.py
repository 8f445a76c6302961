"""Messages of plans: parameters and times, for callers who ask for them."""

import subprocess
import sys

import numpy as np
import pytest

import parki
from parki.ewald import report

X, Q = np.random.default_rng(1).random((3, 50)), np.ones(50)
MAKERS = {
    "ewald": lambda **more: parki.ewald.plan("laplace", X, X, box=(1, 1, 1), tolerance=1e-3, **more),
    "treecode": lambda **more: parki.treecode.plan("coulomb", X, X, tolerance=1e-3, **more),
    "fmm": lambda **more: parki.fmm.plan("coulomb", X, X, tolerance=1e-3, **more),
}
SCRIPT = """
import numpy as np, parki
x = np.random.default_rng(1).random((3, 50))
plan = parki.{method}.plan("laplace", x, x, tolerance=1e-3, verbose={verbose}, **{more})
print(end="made", flush=True)
import sys; print("--", file=sys.stderr, flush=True)
plan(np.repeat([1.0, -1.0], 25))
"""


def said(method, verbose):
    """Return the output of a plain script on stdout, and on stderr when a plan is made and when it is called."""
    more = {"box": (1, 1, 1)} if method == "ewald" else {}
    text = SCRIPT.format(method=method, verbose=verbose, more=more)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, encoding="utf-8", check=True)
    return done.stdout, *done.stderr.split("--\n")


@pytest.mark.parametrize("method", MAKERS)
def test_a_plain_script_says_parameters_and_times_if_asked(method):
    plan = MAKERS[method]()
    parameters = report.Params(plan.parameters) if method == "ewald" else plan.parameters
    out, made, called = said(method, True)
    assert out == "made"
    assert str(parameters) in made
    assert "total" not in made
    assert "<Plan" in called
    assert [line.split()[0] for line in called.splitlines()[1:]][:1] == ["phase"]
    assert " ms" in called.splitlines()[-1]


def test_a_plain_script_says_nothing_else():
    assert said("treecode", False) == ("made", "", "")


@pytest.mark.parametrize("method", MAKERS)
def test_handlers_get_what_is_said(method, caplog, capsys):
    with caplog.at_level("INFO", "parki"):
        MAKERS[method](verbose=True)(Q)
    assert "total" in caplog.text
    assert capsys.readouterr().err == ""
