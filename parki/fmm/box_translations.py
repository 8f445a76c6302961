"""Steps between boxes and their parents and children: class values of octets, and small matrices of the classes.

All arrays are (octets, rows, 8 siblings): surface values have rows component · points + point, class values have
the rows of `parki.fmm.symmetry.Classes`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from parki import engine
from parki.engine import Workunit
from parki.engine.steps import Handle, Step
from parki.fmm import symmetry
from parki.fmm.box_operators import Operators
from parki.fmm.class_matrices import TILE, ClassMatrices
from parki.fmm.expansion import table
from parki.fmm.symmetry import Classes

TEAM = (16, 8)  # threads of a team on a device, and lanes, which are siblings
SMALL = (4, 8)  # threads and lanes of a team that has few tiles of a matrix
OCTETS = 2  # octets that share an entry of a matrix after one read

Tables = dict[str, Handle]


def folding(name: str, real: DTypeLike, group: int) -> Workunit:
    """Return a workunit between surface values and class values of `group` reflections, by its name."""
    return engine.kernel("translate", name, real=np.dtype(real), G=group)


def products(real: DTypeLike, *, add: bool) -> Workunit:
    """Return the workunit that multiplies class values by matrices; with `add` it adds to class values."""
    return engine.kernel("translate", "products", real=np.dtype(real), ADD=add, OCTETS=OCTETS)


def solves(real: DTypeLike) -> Workunit:
    """Return the workunit that multiplies class values by the two factors of an inverse."""
    return engine.kernel("translate", "solve", real=np.dtype(real), OCTETS=OCTETS)


@dataclass(frozen=True, eq=False)
class BoxTranslations:
    """Steps of boxes of one size.

    Attributes
    ----------
    operators : Operators
    real : dtype
        Type of all values.
    classes : dict
        Tables of check values and of equivalents, by "check" and "equivalent".
    matrices : dict
        Tables of the matrices, by "up", "down", "to_parent", "to_children".
    scratch : float
        Bytes of scratch of a team.
    """

    operators: Operators
    real: np.dtype[Any]
    classes: dict[str, Tables]
    matrices: dict[str, list[Tables]]
    scratch: float

    @classmethod
    def of(cls, operators: Operators, real: DTypeLike, scratch: float) -> "BoxTranslations":
        """Return the translations of these operators, in one precision."""
        o, real = operators, np.dtype(real)
        classes = {name: _class_tables(getattr(o, name), real) for name in ("check", "equivalent")}
        factors = {"up": o.up, "down": o.down, "to_parent": (o.to_parent,), "to_children": (o.to_children,)}
        matrices = {name: [_matrix_tables(name, factor, real) for factor in pair] for name, pair in factors.items()}
        for way in ("up", "down"):
            parts = np.stack([factor.part for factor in factors[way]])
            matrices[way][0]["both"] = table(f"{way}_parts", parts, np.int32)
        return cls(operators, real, classes, matrices, scratch)

    def fold(self, phase: str, side: str, value: Handle, result: Handle) -> Step:
        """Return the step from surface values to class values; `side` is "check" or "equivalent"."""
        tables = {name: self.classes[side][name] for name in ("orbit", "row", "weight")}
        return self._folding(phase, "fold", side, value, {"made": result} | tables)

    def unfold(self, phase: str, side: str, operand: Handle, value: Handle) -> Step:
        """Return the step from class values to surface values."""
        tables = {name: self.classes[side][name] for name in ("own", "row", "weight")}
        return self._folding(phase, "unfold", side, value, {"given": operand} | tables)

    def solve(self, phase: str, way: str, operand: Handle, buffer: Handle, result: Handle) -> list[Step]:
        """Return steps from class values of check values to those of equivalents; `way` is "up" or "down".

        If a team's scratch is too small, `buffer` holds the values between the two factors: at least
        `between_rows` rows for each octet.
        """
        (first, second), factor = self.matrices[way], getattr(self.operators, way)[0]
        n_rows = TILE * math.ceil(int(factor.part[:, 3].max()) / TILE)
        if OCTETS * 8 * n_rows * self.real.itemsize > self.scratch:
            buffer = buffer.view(0, (len(operand), factor.rows, 8), self.real)
            return [self._product(phase, first, operand, buffer), self._product(phase, second, buffer, result)]
        groups = math.ceil(len(operand) / OCTETS)
        args = {
            "part": first["both"],
            "left": first["table"],
            "right": second["table"],
            "given": operand,
            "made": result,
        }
        args |= {"octets": len(operand), "groups": groups, "most": n_rows}
        return [Step(phase, solves(self.real), len(factor.part) * groups, args, shape=SMALL)]

    @property
    def between_rows(self) -> int:
        """Return the number of rows of the values between the two factors of an inverse."""
        return max(self.operators.up[0].rows, self.operators.down[0].rows)

    def to_parent(self, phase: str, value: Handle, children: Handle, buffer: Handle, result: Handle) -> list[Step]:
        """Return steps that add the parents' check values of their children's equivalents `value` to `result`.

        Parameters
        ----------
        phase : str
        value : Handle (octets of children, equivalent rows, 8)
            Values at surface points.
        children : Handle (octets, 8) int32
            The octet of each box's children, −1 for none.
        buffer : Handle (any number, 8 x equivalent rows, 8)
            Overwritten; its length is the number of octets that are handled together.
        result : Handle (octets, check rows, 8)
            Class values.
        """
        steps, (matrix,) = [], self.matrices["to_parent"]
        for octets in _pieces(len(result), len(buffer)):
            part, target = buffer[: octets.stop - octets.start], result[octets]
            steps.append(self._children(phase, "fold_children", "equivalent", value, children[octets], {"made": part}))
            steps.append(self._product(phase, matrix, part, target, add=True))
        return steps

    def to_children(self, phase: str, operand: Handle, children: Handle, buffer: Handle, value: Handle) -> list[Step]:
        """Return steps that add the children's check values of their parents' equivalents `operand` to `value`.

        `operand` (octets, equivalent rows, 8) are class values, `value` are values at surface points; `buffer` is (any
        number, 8 x check rows, 8).
        """
        steps, (matrix,) = [], self.matrices["to_children"]
        for octets in _pieces(len(operand), len(buffer)):
            part = buffer[: octets.stop - octets.start]
            steps.append(self._product(phase, matrix, operand[octets], part))
            steps.append(self._children(phase, "unfold_children", "check", value, children[octets], {"given": part}))
        return steps

    def _folding(self, phase: str, name: str, side: str, value: Handle, args: dict[str, Handle]) -> Step:
        classes: Classes = getattr(self.operators, side)
        orbits = len(classes.orbits)
        numbers = {"points": classes.points, "orbits": orbits, "work": classes.components * orbits}
        unit = folding(name, self.real, classes.group)
        return Step(phase, unit, len(value), {"value": value, **args, **numbers}, shape=TEAM)

    def _children(
        self, phase: str, name: str, side: str, value: Handle, children: Handle, args: dict[str, Handle]
    ) -> Step:  # fmt: skip
        classes, tables = getattr(self.operators, side), self.classes[side]
        unit = folding(name, self.real, classes.group)
        args = {"value": value, "below": children, **args, "image": tables["image"], "row": tables["octet_row"]}
        numbers = {"points": classes.points, "work": classes.components * classes.points}
        return Step(phase, unit, len(children), args | numbers, shape=TEAM)

    def _product(self, phase: str, matrix: Tables, operand: Handle, result: Handle, *, add: bool = False) -> Step:
        groups, part = math.ceil(len(operand) / OCTETS), matrix["part"]
        args = {"part": part, "table": matrix["table"], "given": operand, "made": result}
        args |= {"octets": len(operand), "groups": groups}
        return Step(phase, products(self.real, add=add), len(part) * groups, args, shape=SMALL)


def _class_tables(classes: Classes, real: np.dtype[Any]) -> Tables:
    arrays = {
        "orbit": classes.orbits,
        "own": np.where(classes.first, classes.orbits, -1),
        "row": classes.row.reshape(-1, classes.group),
        "image": symmetry.images(classes.p, 8 if classes.group == 8 else 1).repeat(8 // classes.group, axis=0),
        "octet_row": classes.octet_rows(),
    }
    root = np.sqrt(classes.size)
    tables = {name: table(name, a, np.int32) for name, a in arrays.items()}
    return tables | {"weight": table("weight", [root / classes.group, 1 / root], real)}


def _matrix_tables(name: str, matrices: ClassMatrices, real: np.dtype[Any]) -> Tables:
    entries = matrices.table
    if np.abs(entries).max(initial=0) > np.finfo(real).max:  # fields that are nothing in this precision
        entries = np.zeros_like(entries)
    return {"part": table(f"{name}_part", matrices.part, np.int32), "table": table(f"{name}_table", entries, real)}


def _pieces(n: int, limit: int) -> list[slice]:
    """Return slices of 0 … n, each of at most `limit`."""
    return [slice(begin, min(begin + limit, n)) for begin in range(0, n, max(limit, 1))]
