"""Table of kernels and methods on the site's page "Which method": equals the kernels and methods that calls take."""

from pathlib import Path

import numpy as np
import pytest

import parki
from parki.ewald.kernels import PARAMETERS
from parki.pairs import PAIRS

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "choosing.md"
HEAD = ["kernel", "K s", "parameters", "Ewald", "trees", "kifmm", "gradient", "at r = 0"]
VALUES = {"kappa": 1.0, "epsilon": 0.1, "width": 0.5, "radius": 0.1}  # the others have defaults
NOWHERE = np.empty((3, 0))
TREES = (
    lambda kernel, **given: parki.treecode.plan(kernel, NOWHERE, NOWHERE, tolerance=1e-4, **given),
    lambda kernel, **given: parki.fmm.plan(kernel, NOWHERE, NOWHERE, method="chebyshev", tolerance=1e-4, **given),
    lambda kernel, **given: parki.direct.plan(kernel, NOWHERE, NOWHERE, **given),
)


def kifmm(kernel, **given):
    return parki.fmm.plan(kernel, NOWHERE, NOWHERE, tolerance=1e-4, **given)


def ewald(kernel, periodicity, parameters):
    parameters = {name: value for name, value in parameters.items() if name in PARAMETERS}
    return parki.ewald.plan(kernel, NOWHERE, NOWHERE, box=(1, 1, 1), periodicity=periodicity, **parameters)


def takes(call, *arguments, **given):
    try:
        call(*arguments, **given)
    except ValueError:
        return False
    return True


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def rows():
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")]
    heads = [i for i, line in enumerate(lines) if cells(line) == HEAD]
    assert len(heads) == 1
    return {row[0].strip("`"): row for row in map(cells, lines[heads[0] + 2 :]) if len(row) == len(HEAD)}


def test_every_kernel_has_a_row():
    assert list(rows()) == [name for name, pair in PAIRS.items() if not pair.alias]


def test_aliases_are_named():
    text = PAGE.read_text("utf-8")
    for name, pair in PAIRS.items():
        assert not pair.alias or (f"`{name}`" in text and f"`{pair.name}`" in text)


@pytest.mark.parametrize("name", [name for name, pair in PAIRS.items() if not pair.alias])
def test_the_row_of_a_kernel(name):
    pair, row = PAIRS[name], dict(zip(HEAD, rows()[name], strict=True))
    given = {parameter: VALUES[parameter] for parameter in pair.names if parameter in VALUES}
    assert row["parameters"] == ", ".join(f"`{parameter}`" for parameter in pair.names)
    periodic = ", ".join(str(count) for count in range(4) if takes(ewald, name, count, given))
    assert row["Ewald"] == {"": "no", "0, 1, 2, 3": "0–3"}.get(periodic, periodic)
    assert row["trees"] == "yes"
    assert all(takes(call, name, **given) for call in TREES)
    assert row["kifmm"] == ("yes" if takes(kifmm, name, **given) else "no")
    assert row["at r = 0"] == ("skipped" if pair.singular else "counts")


@pytest.mark.parametrize("name", [name for name, pair in PAIRS.items() if not pair.alias])
def test_gradients_in_a_row(name):
    given = {parameter: VALUES[parameter] for parameter in PAIRS[name].names if parameter in VALUES}
    methods = (*TREES, kifmm) if rows()[name][5] == "yes" else TREES
    for gradient, shown in ((True, "`True`"), ("only", '`"only"`')):
        taken = {takes(call, name, gradient=gradient, **given) for call in methods}
        assert taken == {shown in rows()[name][6].split(", ")}


def test_a_kernel_that_varies_too_much_is_refused_by_chebyshev():
    x = parki.samples.uniform(2000, seed=1)
    with pytest.raises(ValueError, match=r"more than 16 points per direction.*parki\.treecode"):
        parki.fmm.plan("oscillatory", x, x, method="chebyshev", k=200.0, tolerance=1e-8, leaf_size=20)
