"""README and site: their Python code prints the text below the code.

Blocks marked ``python`` run one after another in one namespace for each page, and a block of ``text`` directly below
must be what they print.  Blocks marked ``py`` are shown and not run: they need a device, PyTorch or MPI.
"""

import io
import linecache
import re
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from tests.quick import but

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
# These take five seconds or more; README and the others run every time.
LONG = (
    "docs/fields/gravity.md", "docs/fields/molecular-dynamics.md", "docs/fields/suspensions.md",
    "docs/guide/operators.md", "docs/guide/own-kernels.md", "docs/guide/performance.md",
)  # fmt: skip
DIGITS = 1e-4  # of the largest number printed; the pages' own sums are asked for 1e-6


def blocks_of(text):
    """Return the blocks of a page in order: language, text, and the prose between a block and the next."""
    fences = list(FENCE.finditer(text))
    ends = [*(match.start() for match in fences[1:]), len(text)][: len(fences)]
    return [(m[1], m[2], text[m.end() : end].strip()) for m, end in zip(fences, ends, strict=True)]


def same(printed, shown):
    """Return whether texts are equal, with numbers equal up to a few digits."""
    numbers = [np.array([float(n) for n in NUMBER.findall(text)]) for text in (printed, shown)]
    words = [NUMBER.sub("#", text).replace(" ]", "]").split() for text in (printed, shown)]  # NumPy pads numbers
    if words[0] != words[1]:
        return False
    scale = np.abs(numbers[1]).max(initial=0.0)
    return bool(np.allclose(*numbers, rtol=0, atol=DIGITS * scale))


def has_python(page):
    return any(language == "python" for language, *_ in blocks_of((ROOT / page).read_text("utf-8")))


@pytest.mark.parametrize("page", but(*LONG, of=[page for page in PAGES if has_python(page)]))
def test_python_blocks_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    blocks, names = blocks_of((ROOT / page).read_text("utf-8")), {"__name__": "__main__"}
    monkeypatch.chdir(tmp_path)
    for i, (language, code, between) in enumerate(blocks):
        if language != "python":
            continue
        out, name = io.StringIO(), f"{page}, block {i}"
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)  # as a notebook keeps its cells
        with redirect_stdout(out):
            exec(compile(code, name, "exec"), names)
        printed = out.getvalue()
        follows = i + 1 < len(blocks) and blocks[i + 1][0] == "text" and not between
        if printed:
            assert follows, f"{page} shows no ```text block with the output of\n{code}It prints\n{printed}"
        if follows:
            assert same(printed, blocks[i + 1][1]), f"{page} shows\n{blocks[i + 1][1]}but the code prints\n{printed}"


def test_there_are_pages_with_python():
    assert sum(map(has_python, PAGES)) >= 2


@pytest.mark.parametrize(
    ("shown", "equal"),
    [("[1.00001 -2.5]", True), ("[1.0 -2.6]", False), ("[1.0 -2.5 3]", False), ("u [1.0 -2.5]", False), ("", False)],
)
def test_the_comparison_itself(shown, equal):
    assert same("[1.00002 -2.5]\n", shown) is equal
