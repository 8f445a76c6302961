"""Fixtures for tests of specialising: small kernel files, the L0 lines that they give, and their faults."""

import pytest

from parki.engine.errors import KernelError
from parki.engine.text import source
from parki.engine.text.specialise import specialise
from parki.engine.tree.parse import parse
from tests.engine.programs.program import L1, write

FIRST = len(L1) + 1  # line number of the first line after the head


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write kernel files: ``files("a.py", "line", …)`` gives the path; the package's kernels are in the same folder."""
    monkeypatch.setattr(source, "kernels_root", lambda: tmp_path)

    def write(name, *lines):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join([*L1, *lines]) + "\n")
        return path

    return write


@pytest.fixture
def body(files):
    """Return a function that gives the L0 lines of a body: ``body(["line", …], "module level", …, slot=value)``."""

    def make(lines, *head, args="i: int, x: pk.View1D[real], n: int", **slots):
        path = files("k.py", write(args, lines, head, head=()))
        l0 = specialise(path, "w", **slots)
        parse(l0.text, l0.linemap)
        text = l0.text.splitlines()
        start = next(i for i, line in enumerate(text) if line.startswith("def w("))
        return [line[4:] for line in text[start + 1 :]]

    return make


def rejects(code, line, call, *args, **kwargs):
    """Return the KernelError that the call raises, after checking its code and line."""
    with pytest.raises(KernelError) as caught:
        call(*args, **kwargs)
    assert (caught.value.code, caught.value.loc.line) == (code, line), str(caught.value)
    return caught.value
