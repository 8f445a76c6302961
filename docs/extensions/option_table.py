"""The directive ``option-table``: the options of a class, from its fields and its docstring."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from parki import docstrings
from parki.ewald.options import named

CHOSEN = "chosen"


def default_of(field: dataclasses.Field[Any]) -> str:
    """Return the default of an option as text: values that nobody has named are chosen."""
    value = field.default
    if value is None:
        return "None"
    return f"``{value!r}``" if isinstance(value, bool) or named(value) else CHOSEN


def rows(options: type[Any]) -> list[tuple[str, str, list[str]]]:
    """Return the names, the defaults and the description's lines of the options of a class, in order."""
    fields = {field.name: field for field in dataclasses.fields(options)}
    entry_of = {name: entry for entry in docstrings.options_of(options) for name in entry.names}
    found: dict[tuple[str, ...], tuple[str, str, list[str]]] = {}
    for name in fields:
        entry = entry_of[name]
        names = tuple(other for other in entry.names if entry_of[other] is entry)
        defaults = dict.fromkeys(default_of(fields[other]) for other in names)
        kind = entry.kind.removeprefix(" : ").removesuffix(", optional").partition(", default ")[0]
        text = [f"*{kind}*", "", *(line.strip() for line in entry.description)]
        found[names] = ", ".join(f"``{other}``" for other in names), ", ".join(defaults), text
    return list(found.values())


class OptionTable(SphinxDirective):
    """List the options of a class in a table."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        module, _, name = self.arguments[0].rpartition(".")
        options = getattr(importlib.import_module(module), name)
        lines = [".. list-table::", "   :header-rows: 1", "   :widths: 22 13 65", ""]
        for row in [("Option", "Default", ["Meaning"]), *rows(options)]:
            cells = [row[0].split("\n"), row[1].split("\n"), row[2]]
            for first, cell in zip(("   * - ", "     - ", "     - "), cells, strict=True):
                lines += [first + cell[0], *(f"       {line}".rstrip() for line in cell[1:])]
        node = nodes.container()
        self.state.nested_parse(StringList(lines, source=self.arguments[0]), self.content_offset, node)
        return node.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive to Sphinx."""
    app.add_directive("option-table", OptionTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
