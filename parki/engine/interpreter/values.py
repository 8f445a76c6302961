"""Values of the reference interpreter: literals, casts, arithmetic and mathematics, one operation at a time.

An int32, int64 or bool is a Python ``int`` or ``bool``; a double or float is a NumPy scalar of its own width, so every
operation rounds to its type.  Callers silence NumPy (``np.errstate``): ``/`` by zero gives an infinity or NaN.
"""

import math
import operator
from collections.abc import Callable

import numpy as np

from parki.engine.errors import CheckedFault, Loc
from parki.engine.tree.ir import REALS

Value = int | bool | np.floating

LIMITS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1), "uint8": (0, 255)}
BITS = {"int32": 32, "int64": 64}
SCALARS = {"double": np.float64, "float": np.float32, "bool": bool}

INTEGER_OPS: dict[str, Callable] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
REAL_OPS: dict[str, Callable] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
COMPARISONS: dict[str, Callable] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def fault(loc: Loc, reason: str) -> CheckedFault:
    """Return the error of a launch that broke a rule at `loc`, for the caller to raise."""
    return CheckedFault(f"{loc.file}:{loc.line}: {reason}")


def typed(value: object, type: str, loc: Loc, term: str = "") -> Value:
    """Convert `value` to `type`, which an integer must fit; `term` names its origin in the message."""
    if type in SCALARS:
        return SCALARS[type](value)
    low, high = LIMITS[type]
    number = operator.index(value)
    if not low <= number <= high:
        raise fault(loc, f"{term and term + ' = '}{number} does not fit {type}")
    return number


def cast(value: Value, type: str, loc: Loc) -> Value:
    """Cast a value by ``int(x)``, ``pk.double(x)`` or ``pk.float(x)``, or widen int32 to int64.

    A real goes to an integer by truncation and must fit.  An int64 goes to a float with one rounding.
    """
    if type in SCALARS:
        return SCALARS[type](np.int64(value)) if type == "float" and isinstance(value, int) else SCALARS[type](value)
    if isinstance(value, np.floating):
        low, high = LIMITS[type]
        if not math.isfinite(value) or not low <= int(value) <= high:
            raise fault(loc, f"int({value}) does not fit {type}")
        return int(value)
    return typed(value, type, loc)


def unary(op: str, type: str, value: Value, loc: Loc) -> Value:
    """Apply one of ``- + ~ not``; ``-`` of the smallest integer is an overflow."""
    if op == "not":
        return not value
    if op == "~":
        return ~value
    if op == "+":
        return value
    return -value if type in REALS else typed(-value, type, loc, f"-({value})")


def binary(op: str, type: str, left: Value, right: Value, loc: Loc) -> Value:
    """Apply one operation of the subset to two values of `type` (a shift count may have another integer type).

    Raises
    ------
    CheckedFault
        Integers only: overflow, ``//`` or ``%`` with left < 0 or right <= 0, ``>>`` of a negative value, a shift count
        outside 0 .. bits - 1.
    """
    if type in REALS:
        return REAL_OPS[op](left, right)
    if op in ("//", "%") and (left < 0 or right <= 0):
        raise fault(loc, f"{left} {op} {right} is undefined: the left side must be >= 0 and the right side > 0")
    if op == ">>" and left < 0:
        raise fault(loc, f"{left} >> {right} is undefined: the left side must be >= 0")
    if op in ("<<", ">>") and not 0 <= right < BITS[type]:
        raise fault(loc, f"{left} {op} {right} is undefined: the count must be in 0..{BITS[type] - 1}")
    return typed(INTEGER_OPS[op](left, right), type, loc, f"{left} {op} {right}")


def compare(op: str, left: Value, right: Value) -> bool:
    """Apply one of ``< <= > >= == !=``; for NaN all but ``!=`` are false."""
    return bool(COMPARISONS[op](left, right))


def _libm(name: str) -> Callable[[np.float64], float]:
    """Return ``math.name`` with NumPy's IEEE value where it raises (poles, overflow, outside the domain)."""
    exact, fallback = getattr(math, name), getattr(np, name)

    def call(x: np.float64) -> float:
        try:
            return exact(x)
        except (ValueError, OverflowError):
            return fallback(x)

    return call


MATH: dict[str, Callable] = {
    name: _libm(name) for name in ("sqrt", "exp", "expm1", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh")
}
# `**` of two NumPy scalars is the C library's pow, without the exceptions of math.pow.
MATH |= {"erf": math.erf, "erfc": math.erfc, "fabs": np.fabs, "floor": np.floor, "ceil": np.ceil}
MATH |= {"fmin": np.fmin, "fmax": np.fmax, "pow": operator.pow, "rsqrt": lambda x: np.float64(1.0) / np.sqrt(x)}


def mathematics(name: str, type: str, args: list[Value]) -> np.floating:
    """Compute ``pk.name(args)`` in double by the C library; a float result is rounded once at the end."""
    return SCALARS[type](MATH[name](*(np.float64(a) for a in args)))
