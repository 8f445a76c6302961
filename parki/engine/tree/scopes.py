"""Names of a workunit: their visibility, their meaning, and the code that may assign them."""

import ast
from dataclasses import dataclass

from parki.engine.errors import KernelError, Loc
from parki.engine.text.grammar import is_reserved
from parki.engine.tree import ir


@dataclass
class Symbol:
    """Meaning of a name.

    `kind`: ``local index param view scratch table acc last def team``; `frame` numbers the body that declared it.
    """

    kind: str
    type: str
    rank: int = 0
    frame: int = 0


def dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` for a name or attribute chain, ``?`` for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return "?"


class Scopes:
    """Block scopes as in C++, and the error that carries a place in the L1 file."""

    def __init__(self, linemap: tuple[tuple[str, int], ...] | None, name: str) -> None:
        self.linemap, self.display = linemap, name
        self.functions: dict[str, ir.Function] = {}
        self.uses: set[str] = set()
        self.blocks: list[dict[str, Symbol]] = [{}]
        self.once: list[dict[str, str]] = [{}]  # per function: type of each declared name
        self.planned: list[set[str]] = [set()]  # per frame: all names that its statements declare
        self.visible: list[frozenset[str] | None] = [None]  # per frame: outer names visible to its definition
        self.team = ""
        self.reading_acc = False

    @property
    def frame(self) -> int:
        """Number of the body being parsed: 0 for the workunit itself."""
        return len(self.visible) - 1

    def loc(self, node: ast.AST) -> Loc:
        """Return the L1 place of a node."""
        line, col = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
        if self.linemap and line <= len(self.linemap) and self.linemap[line - 1][1]:
            file, source_line = self.linemap[line - 1]
            return Loc(file, source_line, col)
        return Loc(self.display, line, col)

    def error(self, code: str, node: ast.AST, reason: str, advice: str = "") -> KernelError:
        """Return a KernelError at `node`, for the caller to raise."""
        return KernelError(code, self.loc(node), reason, advice)

    def find(self, name: str) -> Symbol | None:
        """Return the innermost visible symbol called `name`, or None."""
        for block in reversed(self.blocks):
            if name in block:
                return block[name]
        return None

    def lookup(self, node: ast.Name) -> Symbol:
        """Return the symbol of a name that is read."""
        s = self.find(node.id)
        if s is None:
            declared = node.id in self.once[-1] or any(node.id in names for names in self.planned)
            code = "K002" if declared else "K003"
            reason = "is used outside the block that declares it, or before it" if code == "K002" else "is unknown"
            raise self.error(code, node, f"name '{node.id}' {reason}")
        seen = self.visible[-1]
        if seen is not None and s.frame < self.frame and node.id not in seen:
            raise self.error("K002", node, f"'{node.id}' is declared after the inner def that reads it")
        return s

    def declare(self, name: str, symbol: Symbol, node: ast.AST) -> None:
        """Make `name` visible in the innermost block."""
        if is_reserved(name):
            reason = "a C++ keyword or macro, or it begins with pk"
            raise self.error("K003", node, f"'{name}' is reserved: {reason}", "Rename it")
        old = self.find(name)
        if old is not None:
            code = "K011" if old.kind in ("param", "view") and self.frame else "K002"
            code = "K003" if code == "K002" and (old.frame != self.frame or old.kind != "local") else code
            raise self.error(code, node, f"'{name}' is declared a second time, or hides a visible name")
        first_type = self.once[-1].setdefault(name, symbol.type)
        if first_type != symbol.type:
            raise self.error("K003", node, f"'{name}' has two types: {first_type} and {symbol.type}")
        symbol.frame = self.frame
        self.blocks[-1][name] = symbol

    def assignable(self, node: ast.Name) -> Symbol:
        """Return the symbol of a local that is assigned."""
        s = self.lookup(node)
        if s.kind == "index":
            raise self.error("K007", node, f"loop or range index '{node.id}' is assigned", "Copy it into a local")
        if s.kind in ("param", "view", "last", "team", "def", "scratch", "table"):
            raise self.error("K011", node, f"'{node.id}' is read-only", "Copy it into a local")
        if s.kind == "local" and s.frame != self.frame:
            raise self.error("K011", node, f"an inner body assigns the outer local '{node.id}'", "Store through a view")
        return s
