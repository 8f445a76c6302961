"""What the README shows is what happens: its Python prints what stands there."""

import io
import re
from contextlib import redirect_stdout

import numpy as np
import pytest

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
DIGITS = 1e-4  # of the largest number printed; the README's own sums are asked for 1e-6


@pytest.fixture(scope="module")
def readme(root):
    """Blocks of README.md in order: language, text, and what stands between this block and the next."""
    text = (root / "README.md").read_text("utf-8")
    found = list(FENCE.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return [(m[1], m[2], text[m.end() : end].strip()) for m, end in zip(found, ends, strict=True)]


@pytest.fixture
def names():
    """What a reader brings along: the arrays of README's table, for the snippets that go on from there."""
    rng = np.random.default_rng(0)
    box = np.array([[1.0], [1.0], [2.0]])
    made = {"trg": box * rng.random((3, 50)), "src": box * rng.random((3, 60))}
    return made | {"dens": rng.standard_normal((6, 60)), "normals": rng.standard_normal((3, 60))}


def same(printed, shown):
    """Equal text, with numbers equal up to a few digits."""
    numbers = [np.array([float(n) for n in NUMBER.findall(text)]) for text in (printed, shown)]
    words = [NUMBER.sub("#", text).split() for text in (printed, shown)]
    if words[0] != words[1]:
        return False
    scale = np.abs(numbers[1]).max(initial=0.0)
    return bool(np.allclose(*numbers, rtol=0, atol=DIGITS * scale))


def test_python_blocks_run_and_print_what_is_shown(readme, names):
    blocks = [i for i, (language, *_) in enumerate(readme) if language == "python"]
    assert blocks
    for i in blocks:
        _, code, between = readme[i]
        out = io.StringIO()
        with redirect_stdout(out):
            exec(compile(code, f"README.md, block {i}", "exec"), names)
        printed = out.getvalue()
        follows = i + 1 < len(readme) and readme[i + 1][0] == "text" and not between
        if printed:
            assert follows, f"README.md shows no ```text block with the output of\n{code}It prints\n{printed}"
        if follows:
            assert same(printed, readme[i + 1][1]), f"README.md shows\n{readme[i + 1][1]}but the code prints\n{printed}"
    assert np.isfinite(names["u"]).all()


@pytest.mark.parametrize(
    ("shown", "equal"),
    [("[1.00001 -2.5]", True), ("[1.0 -2.6]", False), ("[1.0 -2.5 3]", False), ("u [1.0 -2.5]", False), ("", False)],
)
def test_the_comparison_itself(shown, equal):
    assert same("[1.00002 -2.5]\n", shown) is equal
