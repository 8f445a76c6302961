"""HTML of plans, times and errors: the cells of the text form, escaped, and no colours."""

from html.parser import HTMLParser

import numpy as np
import pytest

import parki
from parki import tables
from parki.error import ErrorEstimate
from parki.pairs import Pair
from parki.timing import PhaseTimes

X, Q = np.random.default_rng(1).random((3, 60)), np.ones(60)
PLANS = {
    "ewald": lambda: parki.ewald.plan("laplace", X, X, box=(1, 1, 2), periodicity=2, tolerance=1e-3),
    "treecode": lambda: parki.treecode.plan("yukawa", X, X, kappa=2.0, tolerance=1e-3),
    "fmm": lambda: parki.fmm.plan("coulomb", X, X, tolerance=1e-3),
    "direct": lambda: parki.direct.plan("laplace", X, X),
}


class Reader(HTMLParser):
    """Parser for caption and rows of a table; tags must close in order, and only scope and alignment are attributes."""

    def __init__(self, text):
        super().__init__()
        self.caption, self.rows, self._open = "", [], []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        assert tag in ("table", "caption", "thead", "tbody", "tr", "th", "td")
        assert {name: value.split(":")[0] for name, value in attributes}.items() <= {
            ("scope", "col"), ("scope", "row"), ("style", "text-align"),
        }  # fmt: skip
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open[-1] == "caption":
            self.caption += data
        else:
            assert self._open[-1] in ("th", "td")
            self.rows[-1][-1] += data.replace("\u2003", "  ")


@pytest.mark.parametrize("name", PLANS)
def test_plans(name):
    plan = PLANS[name]()
    read = Reader(plan._repr_html_())
    assert read.caption == repr(plan)
    (_, kernel), (_, points), *rest = read.rows
    assert "\n".join([f"{kernel}: {points}", *(line for _, line in rest)]) == str(plan)
    assert [title for title, _ in rest] == (["box", "parameters", "call"] if name == "ewald" else ["method", "call"])


@pytest.mark.parametrize("name", PLANS)
def test_times(name):
    plan = PLANS[name]()
    plan(Q)
    times = plan.walltime
    read = Reader(times._repr_html_())
    assert read.caption == repr(times)
    lines = times.table().splitlines()
    assert len(read.rows) == len(lines) > 4
    for cells, line in zip(read.rows, lines, strict=True):
        assert "".join(cells).replace(" ", "") == line.replace(" ", "")
        assert line.startswith(cells[0])
        assert len(cells) == len(read.rows[0])


def test_errors():
    _, error = parki.treecode.bldtt(X, X, Q, tolerance=1e-3, return_error=True)
    plan = PLANS["treecode"]()
    plan(Q)
    for found in (error, plan.error(), ErrorEstimate(1.23e-5, 1e-5, 2e-5, 100)):
        read = Reader(found._repr_html_())
        (_, value), (_, bounds), (_, n), (_, median), (_, most), (_, largest) = read.rows
        each = f"median {median}, 99 % {most}, largest {largest}"
        assert f"{read.caption} {value} ({bounds} at 95 %, {n} targets; {each})" == str(found)


def test_text_is_escaped():
    plan = parki.direct.plan(Pair("<b>&'x'", 1, 1, "pair/laplace"), X, X)
    text = plan._repr_html_()
    assert "<b>" not in text
    assert Reader(text).rows[0][1] == "<b>&'x'"
    times = PhaseTimes({"a": "one", "a.b": "<i>part"})
    assert [cells[0] for cells in Reader(times._repr_html_()).rows] == ["phase", "one", "  <i>part", "total"]
    assert Reader(tables.TextTable(("<", "&"), [("x", "y")], "{} {}").html("<c>")).rows == [["<", "&"], ["x", "y"]]
