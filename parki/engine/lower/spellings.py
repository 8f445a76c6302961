"""Spellings that all targets share: scalar code."""

from parki.engine.lower.common import CTYPES, extent, literal
from parki.engine.lower.printer import Printer
from parki.engine.tree import ir, lanes

OPERATORS = {"not": "!", "//": "/", "and": "&&", "or": "||"}


def branch(s: ir.If) -> str:
    """Return the template of a branch."""
    return "if ($cond) {\n$then\n} else {\n$orelse\n}" if s.orelse else "if ($cond) {\n$then\n}"


def loop(s: lanes.Loop) -> str:
    """Return the template of a counted loop."""
    head = "int32_t $name = $start" if s.end is None else "int32_t $name = $start, $end = $stop"
    pragma = "" if s.turns is None else "#pragma GCC unroll $turns\n"
    last = "$stop" if s.end is None else "$end"
    return f"{pragma}for ({head}; $name $compare {last}; $name += $step) {{\n$body\n}}"


def conditions(printer: Printer, e: ir.Bool) -> str:
    """Return conditions that are joined."""
    return f" {OPERATORS[e.op]} ".join(map(printer.text, e.args))


def values(printer: Printer, s: ir.Table) -> str:
    """Return the literals of a table."""
    return ", ".join(literal(v, s.type) for v in s.values)


NODES = {
    ir.Const: lambda e: literal(e.value, e.type),
    ir.Name: "$name",
    ir.Unary: "($op$arg)",
    ir.Binary: "($left $op $right)",
    ir.Compare: "($left $op $right)",
    ir.Bool: "($conditions)",
    ir.Math: "pk_$name($args)",
    ir.Cast: "(($ctype)$arg)",
    ir.Extent: lambda e: extent(e.view, e.dim),
    ir.Declare: "$ctype $name = $value;",
    ir.Accumulate: "$name += $value;",
    ir.If: branch,
    ir.While: "while ($cond) {\n$body\n}",
    ir.Break: "break;",
    ir.Continue: "continue;",
    ir.Return: lambda s: "return;" if s.value is None else "return $value;",
}
FIELDS = {
    "op": lambda printer, node: OPERATORS.get(node.op, node.op),
    "ctype": lambda printer, node: CTYPES[node.type],
    "acc_ctype": lambda printer, s: CTYPES[s.acc_type],
    "compare": lambda printer, node: "<" if node.step > 0 else ">",
    "conditions": conditions,
    "values": values,
}
