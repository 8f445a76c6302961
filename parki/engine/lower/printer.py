"""Printer of lowered trees as C++: a table of spellings per target has all that it knows of nodes."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from parki.engine.tree import ir

FIELD = re.compile(r"\$(\w+)")

Node = ir.Expr | ir.Stmt
Spelling = str | Callable[[Node], str]


@dataclass(frozen=True)
class SpellingTable:
    """Spellings of a target's nodes.

    `nodes` has a template by the class of a node, or a function that chooses the template of a node.  In a template
    ``$name`` is a field of the node, or an entry of `fields`, whose functions get the printer and the node.  A line
    ``$name`` of its own holds statements.
    """

    nodes: Mapping[type, Spelling]
    fields: Mapping[str, Callable[["Printer", Node], str]] = field(default_factory=dict)


@lru_cache(maxsize=1024)
def _pieces(template: str) -> tuple[tuple[str, str], ...]:
    """Return a template as (text, name of the field after it); the last name is empty."""
    pieces = FIELD.split(template)
    return tuple(zip(pieces[::2], [*pieces[1::2], ""], strict=True))


class Printer:
    """Printer that collects lines.

    `strides` has the stride of each index as C++ text for every view that a kernel gets; scratch and tables have one
    index, of unit stride.
    """

    def __init__(self, target: SpellingTable, strides: Mapping[str, list[str]]) -> None:
        self.target, self.views = target, strides
        self.lines: list[str] = []
        self.at: tuple[str, int] | None = None

    def out(self, text: str) -> None:
        """Print a line."""
        self.lines.append(text)

    def strides(self, view: str) -> list[str]:
        """Return the strides of a view, scratch or table."""
        return self.views.get(view, ["1"])

    def text(self, e: Node) -> str:
        """Return the text of an expression."""
        return self.filled(self.spelling(e), e)

    def spelling(self, node: Node) -> str:
        """Return the template of a node."""
        spelling = self.target.nodes[type(node)]
        return spelling if isinstance(spelling, str) else spelling(node)

    def filled(self, template: str, node: Node) -> str:
        """Return a template with its fields filled in."""
        return "".join([text + (self.field(name, node) if name else "") for text, name in _pieces(template)])

    def field(self, name: str, node: Node) -> str:
        """Return the text of one field."""
        special = self.target.fields.get(name)
        if special is not None:
            return special(self, node)
        value = getattr(node, name)
        if isinstance(value, tuple):
            return ", ".join(self.text(v) if isinstance(v, ir.Expr) else str(v) for v in value)
        return self.text(value) if isinstance(value, ir.Expr) else str(value)

    def block(self, body: tuple[ir.Stmt, ...]) -> None:
        """Print statements in order."""
        for s in body:
            self.place(s)
            for line in self.spelling(s).splitlines():
                nested = getattr(s, line[1:], None) if line.startswith("$") else None
                if isinstance(nested, tuple):
                    self.block(nested)
                else:
                    self.out(self.filled(line, s))

    def place(self, s: ir.Stmt) -> None:
        """Print a #line directive, so that compiler and debugger name the kernel file."""
        if s.loc.line and self.at != (s.loc.file, s.loc.line):
            self.at = (s.loc.file, s.loc.line)
            file = s.loc.file.replace("\\", "\\\\").replace('"', '\\"')
            self.out(f'#line {s.loc.line} "{file}"')
