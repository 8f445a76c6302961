"""Examples in docstrings give the shown results."""

import doctest
import importlib
import pkgutil

import pytest

import parki

MODULES = [m.name for m in pkgutil.walk_packages(parki.__path__, "parki.") if not m.name.endswith("__main__")]


def found(name):
    """Return the docstrings with examples of one module; none where the module needs a missing package."""
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if (error.name or "").startswith("parki"):
            raise
        return []
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name, capsys):
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.FAIL_FAST)
    report = []
    for test in found(name):
        runner.run(test, out=report.append)
    assert not report, "".join(report)
    assert capsys.readouterr().out == ""


def test_public_calls_have_examples():
    """Check that sums, plans and methods of plans have examples."""
    names = {test.name.removeprefix("parki.ewald.api.") for test in found("parki.ewald.api")}
    assert {"laplace", "laplace_grad", "laplace_dipole", "yukawa"} <= names
    names = {test.name.removeprefix("parki.ewald.stokes.") for test in found("parki.ewald.stokes")}
    assert {"stokes_sl", "stokes_dl", "stokes_comb"} <= names
    plan = {test.name.removeprefix("parki.plan.") for test in found("parki.plan")}
    assert {"Plan.__call__", "Plan.move"} <= plan
    operable = {test.name.removeprefix("parki.operators.") for test in found("parki.operators")}
    assert {"Operable.transposed", "Operable.operator"} <= operable
    queries = {test.name.removeprefix("parki.queries.") for test in found("parki.queries")}
    assert {f"Queries.{name}" for name in ("predict", "near_pairs", "error")} <= queries
