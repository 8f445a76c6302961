"""Tables, in text and in HTML for notebooks, from the same cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

NUMBERS = ' style="text-align: right"'


@dataclass(frozen=True)
class TextTable:
    """Rows of text in columns.

    Attributes
    ----------
    head : sequence of str
        Titles of the columns.
    rows : sequence of sequences of str
    line : str
        Format of a line of cells, for `str.format`; blanks at the end of a line are left out.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    line: str

    def __str__(self) -> str:
        return "\n".join(self.line.format(*cells).rstrip() for cells in (self.head, *self.rows))

    def html(self, caption: str) -> str:
        """Return the table in HTML, all columns but the first aligned to the right."""
        titles = "".join(f'<th scope="col"{NUMBERS * (i > 0)}>{escape(cell)}</th>' for i, cell in enumerate(self.head))
        rows = "".join(_row(cells, NUMBERS) for cells in self.rows)
        return f"<table>{_caption(caption)}<thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"


def facts(values: Mapping[str, str], caption: str) -> str:
    """Return a table in HTML with a row for each value, below its caption."""
    rows = "".join(_row(pair, ' style="text-align: left"') for pair in values.items())
    return f"<table>{_caption(caption)}<tbody>{rows}</tbody></table>"


def _caption(text: str) -> str:
    return f"<caption>{escape(text)}</caption>"


def _row(cells: Sequence[str], style: str) -> str:
    """Return a row; its title stays indented, because the indentation tells parts from phases."""
    title = escape(cells[0].lstrip())
    indent = "&emsp;" * (cells[0] != cells[0].lstrip())
    rest = "".join(f"<td{style}>{escape(cell)}</td>" for cell in cells[1:])
    return f'<tr><th scope="row" style="text-align: left">{indent}{title}</th>{rest}</tr>'
