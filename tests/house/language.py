"""Measures of docstrings, and numbers of lines."""

import ast
import re
from pathlib import Path

from tests.house.code import Module
from tests.house.process import ROOT

FIRST_WORDS = {"what", "how", "whether", "those", "the", "as", "all"}
PER = 10_000  # words per which "what" is counted


def docstrings(of: tuple[Module, ...]) -> list[str]:
    """Return the docstrings of modules, classes and functions."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    texts = (ast.get_docstring(node) for module in of for node in ast.walk(module.tree) if isinstance(node, kinds))
    return [text for text in texts if text]


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return re.findall(r"[a-z]+(?:['’][a-z]+)?", text.lower())


def whats(of: tuple[Module, ...]) -> float:
    """Return the frequency of "what" per 10,000 words of docstrings."""
    every = [word for text in docstrings(of) for word in words(text)]
    return PER * every.count("what") / len(every)


def vague_openings(of: tuple[Module, ...]) -> float:
    """Return the share of docstrings that begin with one of `FIRST_WORDS`."""
    openings = [words(text)[:1] for text in docstrings(of)]
    return sum(bool(opening and opening[0] in FIRST_WORDS) for opening in openings) / len(openings)


def lines(*folders: str, root: Path = ROOT) -> int:
    """Return the number of lines of Python files and headers."""
    files = [path for folder in folders for end in ("*.py", "*.h") for path in (root / folder).rglob(end)]
    return sum(len(path.read_text("utf-8").splitlines()) for path in files)
