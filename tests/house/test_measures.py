"""Bounds of the tree's measures, which must not get worse: later commits lower them."""

import ast
import functools
import textwrap
from pathlib import Path

import numpy as np
import pytest

from tests.house import bits, cases, code, language, measures, sources, speed, traces

COUNTS = {
    "circles of imports": 0,
    "modules in circles": 0,
    "workunits named more than once": 0,
    "functions that return lists of workunits": 7,
    "tests of a space's kind, parki": 0,
    "tests of a kind, perfmodels": 16,
    "functions of more than 8 parameters": 0,
    "class names defined more than once": 1,
    "places that repeat 6 lines": 12,
    "places of tests that repeat 6 lines": 9,
}
SHARES = {'"what" in 10,000 words of docstrings': 1.0, "share of vague first words of docstrings": 0.005}
#: Local names that are no nouns, by folder.
NO_NOUNS = {
    "parki/app": 0,
    "parki/distributed": 1,
    "parki/engine": 6,
    "parki/ewald": 1,
    "parki/fmm": 0,
    "parki/tasks": 1,
    "parki/treecode": 0,
    "parki/trees": 0,
    "perfmodels": 5,
}
#: Files that a second call enters, and the number that calls from other files enter more than once.
TRACES = {
    "ewald laplace plan": (10, 7),
    "ewald stokes_comb plan": (10, 7),
    "treecode dual plan": (7, 4),
    "treecode pc plan": (7, 4),
    "fmm kifmm plan": (7, 4),
    "fmm chebyshev plan": (10, 6),
    "ewald laplace once": (39, 24),
    "treecode dual once": (36, 27),
    "treecode pc once": (36, 27),
    "fmm kifmm once": (45, 33),
    "fmm chebyshev once": (40, 29),
    "direct once": (7, 4),
}


@functools.cache
def counts():
    return measures.counts()


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    places = counts()[name]
    assert len(places) <= COUNTS[name], "\n".join(places)


def test_every_count_has_a_bound():
    assert counts().keys() == COUNTS.keys()
    assert measures.shares().keys() == SHARES.keys()


@pytest.mark.parametrize("name", SHARES)
def test_docstrings(name):
    assert measures.shares()[name] <= SHARES[name]


@pytest.mark.parametrize("folder", NO_NOUNS)
def test_local_names_are_nouns(folder):
    places = language.local_names(code.modules(folder))
    assert len(places) <= NO_NOUNS[folder], "\n".join(places)


@functools.cache
def warm():
    return traces.warm()


@pytest.mark.parametrize("name", TRACES)
def test_files_of_a_warm_call(name):
    trace = warm()[name]
    assert (len(trace.files), len(trace.again)) <= TRACES[name], str(trace)
    assert len(trace.again) <= TRACES[name][1], str(trace)


# The measures themselves ----------------------------------------------------------------------------------------------
def module(text, name="parki.a", path="parki/a.py"):
    return code.Module(Path(path), name, text, ast.parse(text))


def test_a_circle_of_type_imports_counts():
    a = module("if TYPE_CHECKING:\n    from parki.b import B\n")
    b, c = module("from parki import c", "parki.b"), module("import parki.a", "parki.c")
    alone = module("from parki import c", "parki.d")
    assert code.circles(code.imports((a, b, c, alone))) == [["parki.a", "parki.b", "parki.c"]]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('space.kind == "host"', 1),
        ('"device" != self.space.kind', 1),
        ('space.kind in ("host", "sim")', 1),
        ('match space.kind:\n    case "sim":\n        pass', 1),
        ('array.dtype.kind == "f"', 0),
        ("option.kind is option.KEYWORD_ONLY", 0),
    ],
)
def test_tests_of_a_kind(text, count):
    assert len(code.kinds((module(text),))) == count


def test_workunits_named_twice():
    text = 'a = engine.kernel("cells", "cell_index")\nb = [engine.kernel("cells", n) for n in names]\nnames = ("{}",)'
    assert code.workunits((module(text.format("cell_index")),)) == {
        "cells.cell_index": ["parki/a.py:1", "parki/a.py:3"]
    }
    assert code.workunits((module(text.format("chunk_count")),)) == {}


def test_many_parameters():
    nine, eight = "a, b, c, d, *, e, f, g, h, i", "a, b, c, d, *, e, f, g, h"
    wide = f"    def __init__(self, {nine}): ...\n    def _own(self, {nine}): ..."
    text = f"class Plan:\n{wide}\n    def few(self, {eight}): ..."
    init = module('from parki.a import Plan\n__all__ = ["Plan"]', "parki", "parki/__init__.py")
    assert [line.split()[1:] for line in code.many_parameters((module(text), init))] == [["Plan._own", "9"]]
    assert len(code.many_parameters((module(text),))) == 2


def test_repeated_lines():
    lines = "\n".join(f"x{i} = {i}" for i in range(9))
    assert code.duplicates((module(f"{lines}\ny = 1\n\n{lines.replace(' ', '  ')}"),)) == ["parki/a.py:12"]
    assert code.duplicates((module(lines), module("\n".join(lines.splitlines()[:5])))) == []
    assert code.duplicates((module("x = 1\n" * 11),)) == []


def test_words_of_docstrings():
    one = (module('"""What is there."""\ndef f():\n    """Return what is left."""'),)
    assert language.whats(one) == 2 * language.PER / 7
    assert language.vague_openings(one) == 0.5


def test_local_names():
    text = """
    found: int
    def f(given, a, *, most=0):
        one = a.made = [of for each in given if (some := each)]
        def g(): nonlocal one; one = 1
    """
    names = [place.split()[1] for place in language.local_names((module(textwrap.dedent(text)),))]
    assert sorted(names) == ["each", "given", "most", "one", "one", "some"]


# Comparison with an earlier commit ------------------------------------------------------------------------------------
def test_bits_tell_the_sign_of_zero_and_every_kind_of_change():
    a = np.array([1.0, 0.0, np.nan])
    assert bits.difference(a, a.copy()) == ""
    assert bits.difference(a, np.array([1.0, -0.0, np.nan])).startswith("1 of 3 differ")
    assert "2.2e-16" in bits.difference(a, np.array([np.nextafter(1.0, 2.0), 0.0, np.nan]))
    assert bits.difference(a, a.astype(np.float32)) == "(3,) float64 became (3,) float32"
    assert bits.difference("ValueError: n", "ValueError: m") == "ValueError: n became ValueError: m"
    assert bits.difference(np.arange(3), np.array([0, 1, 5])) == "1 of 3 integers differ"
    assert bits.compared([("call", a)], [("call", a), ("call warning", "w")]) == [
        "results: call became call, call warning (w)"
    ]


def test_a_ratio_and_its_interval():
    turns = np.array([[2.0, 1.0], [2.2, 1.0], [1.8, 1.0]])
    r = speed.ratio(turns)
    assert (r.median, r.low, r.high, r.old, r.new) == (2.0, 1.8, 2.2, 2.0, 1.0)


def test_cases_have_names_of_their_own():
    names = [str(case) for case in cases.table()]
    assert len(set(names)) == len(names)
    methods = {"ewald": cases.EWALD, "direct": cases.FREE, "kifmm": cases.KIFMM}
    for method, kernels in methods.items():
        assert {case.kernel for case in cases.quick() if case.method == method} >= set(kernels)


def test_modules_are_found_in_one_tree_alone(tmp_path):
    (tmp_path / "code" / "inner").mkdir(parents=True)
    for name in ("__init__", "a", "inner/__init__"):
        (tmp_path / "code" / f"{name}.py").touch()
    (tmp_path / "kernels").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[tool.setuptools.package-dir]\nparki = "code"\n"parki.kernels" = "kernels"\n'
    )
    finder = sources.Finder(tmp_path)
    assert finder.find_spec("numpy") is None
    assert finder.find_spec("parki.a").origin == str(tmp_path / "code" / "a.py")
    assert finder.find_spec("parki.inner").submodule_search_locations == [str(tmp_path / "code" / "inner")]
    assert finder.find_spec("parki.kernels").submodule_search_locations == [str(tmp_path / "kernels")]
    with pytest.raises(ModuleNotFoundError, match=r"parki\.ewald"):
        finder.find_spec("parki.ewald")
    with pytest.raises(RuntimeError, match="expected no module"):
        sources.install(tmp_path)
