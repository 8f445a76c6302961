"""Layout of generated C++: lines indented by their braces, and at most `WIDTH` columns long."""

from collections.abc import Iterable

WIDTH = 160  # columns
STEP = 2  # columns of a level of braces
MOST = 24  # levels that are indented further


def laid_out(lines: Iterable[str]) -> str:
    """Return lines of C++ as a text.  Directives of the preprocessor stay as they are.

    A line that is too long is broken at spaces, none of which stands in a literal of generated code.
    """
    out: list[str] = []
    depth = 0
    for line in lines:
        code = line.strip()
        if not code:
            continue
        if code.startswith("#"):
            out.append(line)
            continue
        opened = code.count("{") - code.count("}")
        closing = code[: len(code) - len(code.lstrip("} "))].count("}")
        out += broken(code, STEP * min(depth - closing, MOST))
        depth += opened
    return "\n".join([*out, ""])


def broken(code: str, indent: int) -> list[str]:
    """Return a line of code as lines of at most `WIDTH` columns; further lines stand two levels to the right."""
    out, rest, margin = [], code, indent
    while margin + len(rest) > WIDTH:
        room = WIDTH - margin
        space = rest.rfind(", ", room // 2, room) + 1 or rest.rfind(" ", 0, room + 1)
        if space <= 0:  # one word is longer than a line
            space = rest.find(" ")
        if space <= 0:
            break
        out.append(" " * margin + rest[:space])
        rest, margin = rest[space + 1 :], indent + 2 * STEP
    return [*out, " " * margin + rest]
