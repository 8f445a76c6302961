"""Measures of docstrings, and numbers of lines."""

import ast
import re
from pathlib import Path

from tests.house.code import Module
from tests.house.process import ROOT

FIRST_WORDS = {"what", "how", "whether", "those", "the", "as", "all"}
PER = 10_000  # words per which "what" is counted
#: Participles, pronouns and adverbs: names of locals and parameters are nouns.
NO_NOUNS = set(
    """about above after ahead alone along another anew apart around asked at away back before began begun below beside
    between beyond both brought by chosen closed come compressed copied counted crowded done down drawn each elsewhere
    enough every everyone everything everywhere farthest few fewer fewest fixed following found from_ gathered given
    going grown held here how into it kept known least listed little lost made many mine moved more most named needed
    none nothing now of off one ones onto other others over own packed pending placed refused said same sent several
    shifted some still summed taken their theirs then there these they this those told together touched tried turned
    twice until up used wanted was were what when where which who whole whose why within written""".split()
)


def docstrings(of: tuple[Module, ...]) -> list[str]:
    """Return the docstrings of modules, classes and functions."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    texts = (ast.get_docstring(node) for module in of for node in module.nodes if isinstance(node, kinds))
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


def local_names(of: tuple[Module, ...]) -> list[str]:
    """Return the places of parameters and local variables whose names are in `NO_NOUNS`, one for each function."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    places: dict[tuple[str, ast.AST, str], str] = {}

    def visit(module: Module, node: ast.AST, scope: ast.AST | None) -> None:
        if isinstance(node, functions):
            scope = node
        elif isinstance(node, ast.ClassDef):
            scope = None  # fields of classes are attributes
        name = node.arg if isinstance(node, ast.arg) else node.id if isinstance(node, ast.Name) else ""
        if name in NO_NOUNS and scope is not None and not isinstance(getattr(node, "ctx", None), ast.Load):
            places.setdefault((module.name, scope, name), f"{module.path}:{node.lineno} {name}")
        for child in ast.iter_child_nodes(node):
            visit(module, child, scope)

    for module in of:
        visit(module, module.tree, None)
    return sorted(places.values())


def lines(*folders: str, root: Path = ROOT) -> int:
    """Return the number of lines of Python files and headers."""
    files = [path for folder in folders for end in ("*.py", "*.h") for path in (root / folder).rglob(end)]
    return sum(len(path.read_text("utf-8").splitlines()) for path in files)
