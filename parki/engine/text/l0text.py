"""Printer of L0 files: readable text, and for each of its lines the L1 line it came from."""

import ast

from parki.engine.text.routines import Routine

INDENT = "    "


class TracedText:
    """Lines of text with their origins (``("", 0)`` where there is none)."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.origins: list[tuple[str, int]] = []

    def add(self, line: str, origin: tuple[str, int] = ("", 0)) -> None:
        """Add a line."""
        self.lines.append(line)
        self.origins.append(origin)

    def definition(self, name: str, routine: Routine, body: list[ast.stmt], doc: str | None) -> None:
        """Add a function or workunit, after two blank lines and a comment that names its origin."""
        display, first = routine.source.display, (routine.source.display, routine.line)
        self.add("")
        self.add("")
        self.add(f"# {routine.source.title or f'{display}:{routine.line}'}", first)
        self.add(routine.decorator, first)
        result = f" -> {ast.unparse(routine.returns)}" if routine.returns is not None else ""
        self.add(f"def {name}({ast.unparse(routine.args)}){result}:", (display, routine.node.lineno))
        if doc:
            self._docstring(doc, (display, routine.node.body[0].lineno))
        self._block(body, INDENT)
        if not body:
            self.add(f"{INDENT}pass", (display, routine.node.lineno))

    def _docstring(self, doc: str, origin: tuple[str, int]) -> None:
        safe = doc.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        if safe.endswith('"'):
            safe = safe[:-1] + '\\"'
        for k, line in enumerate(f'"""{safe}"""'.split("\n")):
            self.add(INDENT + line if line.strip() else "", (origin[0], origin[1] + k))

    def _block(self, body: list[ast.stmt], indent: str) -> None:
        for s in body:
            self._statement(s, indent, "if")

    def _statement(self, s: ast.stmt, indent: str, keyword: str) -> None:
        origin = (s.origin, s.lineno)  # type: ignore[attr-defined]
        match s:
            case ast.If():
                self.add(f"{indent}{keyword} {ast.unparse(s.test)}:", origin)
            case ast.While():
                self.add(f"{indent}while {ast.unparse(s.test)}:", origin)
            case ast.For():
                self.add(f"{indent}for {s.target.id} in {ast.unparse(s.iter)}:", origin)
            case ast.FunctionDef():
                result = f" -> {ast.unparse(s.returns)}" if s.returns is not None else ""
                self.add(f"{indent}def {s.name}({ast.unparse(s.args)}){result}:", origin)
            case _:
                self.add(indent + ast.unparse(s), origin)
                return
        self._block(s.body, indent + INDENT)
        orelse = getattr(s, "orelse", [])
        if isinstance(s, ast.If) and len(orelse) == 1 and isinstance(orelse[0], ast.If):
            self._statement(orelse[0], indent, "elif")
        elif orelse:
            self.add(f"{indent}else:", (orelse[0].origin, orelse[0].lineno))
            self._block(orelse, indent + INDENT)
