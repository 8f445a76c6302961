"""Layout of generated code: indented, at most 160 columns, and the same words as before."""

import pytest

from parki.engine.lower import gpu, host, layout
from tests.engine import kernel_cases

LONG = ["void f(" + ", ".join(f"const double number_{k}" for k in range(40)) + ") {", "g(number_1);", "}"]


def test_lines_are_indented_by_their_braces():
    lines = [
        "void f() {",
        "if (a) {",
        "g();",
        "} else {",
        "{ const int b = 1;",
        "h(b); }",
        "}",
        "}",
        "#line 3",
        "",
        "int c;",
    ]
    assert layout.laid_out(lines) == (
        "void f() {\n  if (a) {\n    g();\n  } else {\n    { const int b = 1;\n      h(b); }\n  }\n}\n#line 3\nint c;\n"
    )


def test_long_lines_are_broken_between_words():
    text = layout.laid_out(LONG)
    assert max(map(len, text.splitlines())) <= layout.WIDTH
    assert text.split() == " ".join(LONG).split()
    first, second, *_ = text.splitlines()
    assert first.endswith(",")
    assert second.startswith(4 * " " + "const")


def test_a_word_longer_than_a_line_stays_whole():
    word = "a" * 200
    assert layout.broken(f"int {word} = 1;", 0) == ["int", f"    {word}", "    = 1;"]


@pytest.mark.parametrize("directive", ["#define A " + "b " * 100, '#line 7 "a file.py"'])
def test_directives_stay_as_they_are(directive):
    assert layout.laid_out(["{", directive, "}"]).splitlines()[1] == directive


@pytest.mark.parametrize("lower", [host.lower, gpu.lower])
def test_code_of_every_kernel_is_laid_out(lower):
    last = {case.workunit: (case, real) for case, real in kernel_cases.ALL.values()}
    for case, real in last.values():
        unit = case.unit(real)
        lines = lower(unit.ir, unit.default_layouts()).source.splitlines()
        assert max(map(len, lines)) <= layout.WIDTH
        assert sum(line.count("{") - line.count("}") for line in lines) == 0
        assert lines[-1] == "}" or lines[-1].startswith("PK_ENTRY(")
