"""Parser of L0 expressions: syntax tree to typed tree."""

import ast
import math

from parki.engine.text.grammar import CONSTRUCTS, MATH, type_kind
from parki.engine.tree import ir
from parki.engine.tree.scopes import Scopes, dotted

BINARY = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


class Expressions(Scopes):
    """Expression half of the parser: methods return typed nodes or raise KernelError."""

    def expr(self, node: ast.expr, want: str | None = None) -> ir.Expr:
        """Type `node`; `want` is the type that a literal may take."""
        method = getattr(self, "expr_" + type(node).__name__, None)
        if method is None:
            construct, advice = CONSTRUCTS.get(type(node).__name__, (type(node).__name__, ""))
            raise self.error("K001", node, f"{construct} is not in the workunit subset", advice)
        return method(node, want)

    def value(self, node: ast.expr, want: str, label: str) -> ir.Expr:
        """Type `node` as a value of type `want`; int32 widens to int64, nothing else converts."""
        return self.as_type(self.expr(node, want), want, node, label)

    def as_type(self, e: ir.Expr, want: str, node: ast.AST, label: str) -> ir.Expr:
        """Return `e` as type `want`, or raise K004."""
        if e.type == want:
            return e
        if (e.type, want) == ("int32", "int64"):
            return self.widen(e)
        advice = f"Write pk.{want}(…)" if type_kind(want) == "real" else "Write int(…) or an annotated local"
        raise self.error("K004", node, f"{label} has type {e.type}, expected {want}", advice)

    def widen(self, e: ir.Expr) -> ir.Expr:
        """Widen an int32 to int64."""
        if isinstance(e, ir.Const):
            return ir.Const(value=e.value, type="int64", loc=e.loc)
        return ir.Cast(arg=e, type="int64", loc=e.loc)

    def index(self, node: ast.expr, label: str = "an index") -> ir.Expr:
        """Type an index, loop bound or extent."""
        e = self.expr(node, "int32")
        if type_kind(e.type) != "int":
            raise self.error("K010", node, f"{label} has type {e.type}, expected an integer", "Write int(…)")
        return e

    def condition(self, node: ast.expr) -> ir.Expr:
        """Type a condition."""
        e = self.expr(node, "bool")
        if e.type != "bool":
            raise self.error("K006", node, f"a condition has type {e.type}", "Compare it with something")
        return e

    # One method per syntax node ---------------------------------------------------------------------------------------
    def expr_Constant(self, node: ast.Constant, want: str | None) -> ir.Expr:
        """Type a literal, which takes the type of the expression it stands in."""
        v, loc = node.value, self.loc(node)
        if isinstance(v, bool):
            return ir.Const(value=v, type="bool", loc=loc)
        if isinstance(v, int):
            return self.integer(v, node, want)
        if isinstance(v, float):
            if not math.isfinite(v):
                raise self.error("K001", node, f"the literal {v} is not finite")
            return ir.Const(value=v, type=want if want in ir.REALS else "double", loc=loc)
        raise self.error("K001", node, f"the literal {v!r} is not in the workunit subset")

    def integer(self, v: int, node: ast.AST, want: str | None) -> ir.Expr:
        """Type an integer literal, sign included: int32 unless it does not fit, or an int64 is wanted."""
        if not -(2**63) <= v < 2**63:
            raise self.error("K004", node, f"the literal {v} does not fit int64")
        small = -(2**31) <= v < 2**31 and want != "int64"
        return ir.Const(value=v, type="int32" if small else "int64", loc=self.loc(node))

    def expr_Name(self, node: ast.Name, want: str | None) -> ir.Expr:
        """Type a scalar name."""
        s = self.lookup(node)
        if s.kind in ("view", "scratch", "table"):
            raise self.error("K010", node, f"view '{node.id}' is used without an index", f"Index it {s.rank} time(s)")
        if s.kind == "acc" and not self.reading_acc:
            raise self.error("K015", node, f"accumulator '{node.id}' is read outside a scan's 'if last:'")
        if s.kind in ("def", "team"):
            raise self.error("K001", node, f"'{node.id}' is not a value")
        return ir.Name(name=node.id, type=s.type, loc=self.loc(node))

    def expr_UnaryOp(self, node: ast.UnaryOp, want: str | None) -> ir.Expr:
        """Type ``- + ~ not``."""
        loc, literal = self.loc(node), getattr(node.operand, "value", None)
        if isinstance(node.op, ast.USub) and isinstance(literal, int) and not isinstance(literal, bool):
            return self.integer(-literal, node, want)
        if isinstance(node.op, ast.Not):
            return ir.Unary(op="not", arg=self.condition(node.operand), type="bool", loc=loc)
        e = self.expr(node.operand, want)
        kind = type_kind(e.type)
        if kind == "bool":
            raise self.error("K004", node, "arithmetic on a bool", "Use not, and, or")
        if isinstance(node.op, ast.Invert):
            if kind != "int":
                raise self.error("K004", node, "'~' on a real")
            return ir.Unary(op="~", arg=e, type=e.type, loc=loc)
        if isinstance(node.op, ast.UAdd):
            return e
        if isinstance(e, ir.Const):
            return ir.Const(value=-e.value, type=e.type, loc=loc)
        return ir.Unary(op="-", arg=e, type=e.type, loc=loc)

    def expr_BinOp(self, node: ast.BinOp, want: str | None) -> ir.Expr:
        """Type arithmetic of two operands of one kind."""
        op = BINARY.get(type(node.op))
        if op is None:
            sign = {"Pow": "**", "MatMult": "@"}.get(type(node.op).__name__, "?")
            raise self.error("K001", node, f"'{sign}' is not in the workunit subset", "Multiply, or use pk.pow")
        left, right = self.pair(node.left, node.right, want)
        kind = type_kind(left.type)
        if "bool" in (left.type, right.type):
            code = "K006" if isinstance(node.left, ast.BoolOp) or isinstance(node.right, ast.BoolOp) else "K004"
            raise self.error(code, node, f"'{op}' on a bool", "Use not, and, or")
        if op in ("<<", ">>"):
            if kind != "int" or type_kind(right.type) != "int":
                raise self.error("K004", node, f"'{op}' on reals")
            self.not_negative(node.left, left, op)
            return ir.Binary(op=op, left=left, right=right, type=left.type, loc=self.loc(node))
        left, right = self.join(left, right, node, f"'{op}'")
        if kind == "int":
            if op == "/":
                raise self.error("K004", node, "'/' on integers", "Use //, or cast to a real first")
            if op == "//" and left.type == "int64":
                raise self.error("K004", node, "'//' on int64 is truncated to 32 bits by PyKokkos")
            if op in ("//", "%"):
                self.not_negative(node.left, left, op)
                self.not_negative(node.right, right, op)
        elif op in ("//", "%", "&", "|", "^"):
            raise self.error("K004", node, f"'{op}' on reals", "Use pk.floor for floors" if op in ("//", "%") else "")
        return ir.Binary(op=op, left=left, right=right, type=left.type, loc=self.loc(node))

    def not_negative(self, node: ast.expr, e: ir.Expr, op: str) -> None:
        """Raise K005 where an operand of ``// % >>`` is certainly negative."""
        negative = (isinstance(e, ir.Const) and e.value < 0) or (isinstance(e, ir.Unary) and e.op == "-")
        if negative and op != "<<":
            raise self.error("K005", node, f"a negative operand of '{op}'", "Add a multiple of the divisor first")

    def pair(self, a: ast.expr, b: ast.expr, want: str | None) -> tuple[ir.Expr, ir.Expr]:
        """Type two operands; a literal takes the type of the other operand."""
        if isinstance(a, ast.Constant) and not isinstance(b, ast.Constant):
            right = self.expr(b, want)
            return self.expr(a, right.type), right
        left = self.expr(a, want)
        right = self.expr(b, left.type)
        if self.is_literal(left) and right.type != left.type:
            left = self.expr(a, right.type)
        return left, right

    @staticmethod
    def is_literal(e: ir.Expr) -> bool:
        """Return whether an expression has literals alone, and so may take another type of its kind."""
        if isinstance(e, ir.Binary):
            return Expressions.is_literal(e.left) and Expressions.is_literal(e.right)
        return isinstance(e, ir.Const) and e.type != "bool"

    def join(self, left: ir.Expr, right: ir.Expr, node: ast.AST, label: str) -> tuple[ir.Expr, ir.Expr]:
        """Return both operands in one type, or raise K004."""
        if left.type == right.type:
            return left, right
        if {left.type, right.type} == {"int32", "int64"}:
            return (self.widen(left) if left.type == "int32" else left), (
                self.widen(right) if right.type == "int32" else right
            )
        raise self.error("K004", node, f"{label} mixes {left.type} and {right.type}", "Convert one of them explicitly")

    def expr_Compare(self, node: ast.Compare, want: str | None) -> ir.Expr:
        """Type one comparison of numbers."""
        if len(node.ops) > 1:
            raise self.error(
                "K001", node, "a chained comparison is not in the workunit subset", "Write a < b and b < c"
            )
        op = COMPARE.get(type(node.ops[0]))
        if op is None:
            raise self.error("K001", node, "'in' and 'is' are not in the workunit subset")
        left, right = self.pair(node.left, node.comparators[0], None)
        if "bool" in (left.type, right.type):
            raise self.error("K006", node, f"a condition as an operand of '{op}'", "Name it first: ok: bool = …")
        left, right = self.join(left, right, node, f"'{op}'")
        return ir.Compare(op=op, left=left, right=right, type="bool", loc=self.loc(node))

    def expr_BoolOp(self, node: ast.BoolOp, want: str | None) -> ir.Expr:
        """Type ``and`` and ``or`` of conditions."""
        op = "and" if isinstance(node.op, ast.And) else "or"
        for v in node.values:
            if op == "and" and isinstance(v, ast.BoolOp) and isinstance(v.op, ast.Or):
                raise self.error(
                    "K006", v, "'or' inside 'and' loses its parentheses in PyKokkos", "Name it first: ok: bool = a or b"
                )
        args = tuple(self.condition(v) for v in node.values)
        return ir.Bool(op=op, args=args, type="bool", loc=self.loc(node))

    def expr_Subscript(self, node: ast.Subscript, want: str | None) -> ir.Expr:
        """Type an element of a view, a scratch view or a table."""
        name, indices, kind = self.element(node)
        kind = "int32" if kind == "uint8" else kind
        return ir.Load(view=name, indices=indices, type=kind, loc=self.loc(node))

    def element(self, node: ast.Subscript) -> tuple[str, tuple[ir.Expr, ...], str]:
        """Return the view name, typed indices and element type of ``v[i][j]``."""
        chain = []
        base: ast.expr = node
        while isinstance(base, ast.Subscript):
            chain.append(base.slice)
            base = base.value
        if not isinstance(base, ast.Name):
            raise self.error("K001", node, "only views are indexed")
        s = self.lookup(base)
        if s.kind not in ("view", "scratch", "table"):
            raise self.error("K010", node, f"'{base.id}' is not a view")
        indices = []
        for i in reversed(chain):
            if isinstance(i, ast.Tuple):
                raise self.error("K010", node, f"'{base.id}[i, j]'", f"Write {base.id}[i][j]")
            e = self.index(i)
            if isinstance(e, ir.Const) and e.value < 0:
                raise self.error("K010", i, f"negative index {e.value}", "Indices count from 0 upwards")
            indices.append(e)
        if len(indices) != s.rank:
            raise self.error("K010", node, f"'{base.id}' has rank {s.rank}, found {len(indices)} index(es)")
        return base.id, tuple(indices), s.type

    def expr_Attribute(self, node: ast.Attribute, want: str | None) -> ir.Expr:
        """Type ``math.pi``, the only attribute of the subset."""
        if dotted(node) == "math.pi":
            kind = want if want in ir.REALS else "double"
            return ir.Const(value=math.pi, type=kind, loc=self.loc(node))
        raise self.error("K001", node, f"'{dotted(node)}' is not in the workunit subset")

    def expr_Call(self, node: ast.Call, want: str | None) -> ir.Expr:
        """Type a call: casts, mathematics, extents, the league rank, and the kernel's own functions."""
        name, loc = dotted(node.func), self.loc(node)
        if node.keywords:
            raise self.error("K008", node, f"keyword arguments in a call of '{name}'", "PyKokkos drops them silently")
        if name in ("int", "pk.double", "pk.float"):
            return self.cast(node, name)
        if name == "float":
            raise self.error("K004", node, "float(…) is single precision in PyKokkos", "Write pk.double(…)")
        if name.startswith("pk.") and name[3:] in MATH:
            return self.math(node, name[3:], want)
        if name.endswith(".league_rank") and name.split(".")[0] == self.team:
            return ir.LeagueRank(type="int32", loc=loc)
        if name.endswith(".extent") and name.count(".") == 1:
            return self.extent(node, name.split(".")[0])
        if name in self.functions:
            return self.call(node, name)
        if name.startswith(("pk.", self.team + "." if self.team else "pk.")):
            raise self.error("K001", node, f"'{name}' is not in the workunit subset here")
        hint = {"abs": "Use pk.fabs", "min": "Use pk.fmin or if", "max": "Use pk.fmax or if", "round": "Use pk.floor"}
        code = "K001" if name in hint or name in ("len", "print", "sum", "bool") else "K003"
        raise self.error(code, node, f"unknown function '{name}'", hint.get(name, ""))

    def cast(self, node: ast.Call, name: str) -> ir.Expr:
        """Type ``int(real)``, ``pk.double(x)`` or ``pk.float(x)``."""
        if len(node.args) != 1:
            raise self.error("K004", node, f"{name} takes one argument, found {len(node.args)}")
        want = {"int": "int32", "pk.double": "double", "pk.float": "float"}[name]
        e = self.expr(node.args[0], None)
        if e.type == "bool" or (name == "int" and type_kind(e.type) != "real"):
            raise self.error("K004", node, f"{name} of type {e.type}", "int(…) takes a real")
        return ir.Cast(arg=e, type=want, loc=self.loc(node))

    def math(self, node: ast.Call, name: str, want: str | None) -> ir.Expr:
        """Type ``pk.NAME(...)``."""
        self.uses.add("math")
        if len(node.args) != MATH[name]:
            raise self.error("K004", node, f"pk.{name} takes {MATH[name]} argument(s), found {len(node.args)}")
        if MATH[name] == 2:
            args = self.join(*self.pair(*node.args, want), node, f"pk.{name}")
        else:
            args = (self.expr(node.args[0], want),)
        if type_kind(args[0].type) != "real":
            raise self.error("K004", node, f"pk.{name} of type {args[0].type}", "Cast to a real first")
        return ir.Math(name=name, args=tuple(args), type=args[0].type, loc=self.loc(node))

    def extent(self, node: ast.Call, view: str) -> ir.Expr:
        """Type ``view.extent(dim)``."""
        base = ast.copy_location(ast.Name(id=view), node)
        s = self.lookup(base)
        dim = node.args[0] if len(node.args) == 1 else None
        if s.kind != "view" or not (isinstance(dim, ast.Constant) and isinstance(dim.value, int)):
            raise self.error("K001", node, f"'{view}.extent' needs a view and one literal dimension")
        if not 0 <= dim.value < s.rank:
            raise self.error("K010", node, f"dimension {dim.value} of '{view}', which has rank {s.rank}")
        return ir.Extent(view=view, dim=dim.value, type="int32", loc=self.loc(node))

    def call(self, node: ast.Call, name: str) -> ir.Expr:
        """Type a call of one of the kernel's own functions."""
        f = self.functions[name]
        if len(node.args) != len(f.params):
            raise self.error("K004", node, f"{name} takes {len(f.params)} argument(s), found {len(node.args)}")
        args = tuple(
            self.value(a, kind, f"argument '{p}' of {name}") for a, (p, kind) in zip(node.args, f.params, strict=True)
        )
        return ir.FunctionCall(name=name, args=args, type=f.type, loc=self.loc(node))
