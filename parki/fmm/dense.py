"""Launches of the dense steps: class values of octets, solves, to parents and to children.

All arrays are (octets, rows, 8 siblings): surface values have rows component · points + point, class values those of
`parki.fmm.symmetry.Classes`.
"""

import math
from typing import Any

import numpy as np

from parki import engine
from parki.arrays import Array
from parki.engine import Prepared, TeamPolicy, Workunit, spaces
from parki.engine.spaces import Space
from parki.fmm import symmetry
from parki.fmm.blocks import TILE, Blocks
from parki.fmm.factors import Operators
from parki.fmm.symmetry import Classes

TEAM = (16, 8)  # threads of a team on a device and their lanes, which are siblings
SMALL = (4, 8)  # where a team has few tiles of a matrix
OCTETS = 2  # that share an entry of a matrix once read
ROOM = 40960  # bytes of scratch that a team has on any device


def units(symmetric: bool, real: Any) -> list[Workunit]:
    """All workunits, to be compiled ahead, for kernels with or without reflection symmetry."""
    group = 8 if symmetric else 1
    folds = [_unit(name, real, group) for name in ("fold", "unfold", "fold_children", "unfold_children")]
    return [*folds, _products(real, False), _products(real, True), _solve(real)]


def _unit(name: str, real: Any, group: int) -> Workunit:
    return engine.kernel("translate", name, real=real, G=group)


def _products(real: Any, add: bool) -> Workunit:
    return engine.kernel("translate", "products", real=real, ADD=add, OCTETS=OCTETS)


def _solve(real: Any) -> Workunit:
    return engine.kernel("translate", "solve", real=real, OCTETS=OCTETS)


class Dense:
    """Dense steps of boxes of one size.

    Parameters
    ----------
    operators : Operators
    space : Space
    real : dtype
        Of all values.
    """

    def __init__(self, operators: Operators, space: Space, real: Any) -> None:
        self.operators, self.space, self.real = operators, space, np.dtype(real)
        self._xp = spaces.array_module(space)
        self._classes = {name: self._tables(getattr(operators, name)) for name in ("check", "equivalent")}
        o = operators
        blocks = {"up": o.up, "down": o.down, "to_parent": (o.to_parent,), "to_children": (o.to_children,)}
        self._blocks = {name: [self._block(b) for b in many] for name, many in blocks.items()}

    @property
    def memory(self) -> int:
        """Bytes of all tables."""
        tables = [*self._classes.values(), *(b for many in self._blocks.values() for b in many)]
        return sum(a.nbytes for table in tables for a in table.values())

    def fold(self, of: str, value: Array, made: Array) -> Prepared:
        """Class values of surface values; `of` is "check" or "equivalent"."""
        tables = {name: self._classes[of][name] for name in ("orbit", "row", "weight")}
        return self._fold("fold", getattr(self.operators, of), value, made, tables)

    def unfold(self, of: str, given: Array, value: Array) -> Prepared:
        """Surface values of class values."""
        tables = {name: self._classes[of][name] for name in ("own", "row", "weight")}
        return self._fold("unfold", getattr(self.operators, of), value, given, tables)

    def solve(self, way: str, given: Array, made: Array) -> list[Prepared]:
        """Class values of equivalents from those of check values; `way` is "up" or "down"."""
        (first, second), left = self._blocks[way], getattr(self.operators, way)[0]
        most = TILE * math.ceil(int(left.part[:, 3].max()) / TILE)
        if self.space.kind != "host" and OCTETS * 8 * most * self.real.itemsize > ROOM:
            between = self._xp.zeros((len(given), left.rows, 8), self.real)
            return [self._product(first, given, between), self._product(second, between, made)]
        groups = math.ceil(len(given) / OCTETS)
        part = self._xp.stack([first["part"], second["part"]])
        return [
            engine.prepare(
                self._policy(len(left.part) * groups, SMALL),
                _solve(self.real),
                part=part,
                left=first["table"],
                right=second["table"],
                given=given,
                made=made,
                octets=len(given),
                groups=groups,
                most=most,
            )
        ]

    def to_parent(self, value: Array, below: Array, between: Array, made: Array) -> list[Prepared]:
        """Add to class values `made` of check values what the children's equivalents `value` (at surface points) give.

        Parameters
        ----------
        value : array (octets of children, equivalent rows, 8)
        below : array (octets, 8) int32
            The octet of each box's children, −1 for none.
        between : array (any number, 8 x equivalent rows, 8)
            Overwritten; so many octets are done together.
        made : array (octets, check rows, 8)
        """
        launches, (block,) = [], self._blocks["to_parent"]
        for octets in _pieces(len(made), len(between)):
            part, here = between[: octets.stop - octets.start], made[octets]
            launches.append(self._children("fold", "equivalent", value, below[octets], part))
            launches.append(self._product(block, part, here, add=True))
        return launches

    def to_children(self, given: Array, below: Array, between: Array, value: Array) -> list[Prepared]:
        """Add to the children's check values `value` (at surface points) what class values of equivalents give.

        `given` is (octets, equivalent rows, 8), `between` (any number, 8 x check rows, 8).
        """
        launches, (block,) = [], self._blocks["to_children"]
        for octets in _pieces(len(given), len(between)):
            part = between[: octets.stop - octets.start]
            launches.append(self._product(block, given[octets], part))
            launches.append(self._children("unfold", "check", value, below[octets], part))
        return launches

    # Parts of it ------------------------------------------------------------------------------------------------------
    def _array(self, a: Any, dtype: Any) -> Array:
        return self._xp.ascontiguousarray(self._xp.asarray(a, dtype))

    def _tables(self, classes: Classes) -> dict[str, Array]:
        whole = {
            "orbit": classes.orbits,
            "own": np.where(classes.first, classes.orbits, -1),
            "row": classes.row.reshape(-1, classes.group),
            "image": symmetry.images(classes.p, 8 if classes.group == 8 else 1).repeat(8 // classes.group, axis=0),
            "octet_row": classes.octet_rows(),
        }
        root = np.sqrt(classes.size)
        tables = {name: self._array(a, np.int32) for name, a in whole.items()}
        return tables | {"weight": self._array([root / classes.group, 1 / root], self.real)}

    def _block(self, block: Blocks) -> dict[str, Array]:
        table = block.table
        if np.abs(table).max(initial=0) > np.finfo(self.real).max:  # of fields that are nothing in this precision
            table = np.zeros_like(table)
        return {"part": self._array(block.part, np.int32), "table": self._array(table, self.real)}

    def _policy(self, league: int, shape: tuple[int, int]) -> TeamPolicy:
        return TeamPolicy(self.space, league, *(() if self.space.kind == "host" else shape))

    def _fold(self, name: str, classes: Classes, value: Array, made: Array, tables: dict[str, Array]) -> Prepared:
        orbits = len(classes.orbits)
        numbers = {"points": classes.points, "orbits": orbits, "work": classes.components * orbits}
        arrays = {"value": value, "made" if name == "fold" else "given": made}
        unit = _unit(name, self.real, classes.group)
        return engine.prepare(self._policy(len(value), TEAM), unit, **arrays, **tables, **numbers)

    def _children(self, name: str, of: str, value: Array, below: Array, made: Array) -> Prepared:
        classes, tables = getattr(self.operators, of), self._classes[of]
        arrays = {"value": value, "below": below, "made" if name == "fold" else "given": made}
        unit = _unit(f"{name}_children", self.real, classes.group)
        return engine.prepare(
            self._policy(len(below), TEAM), unit, **arrays, image=tables["image"], row=tables["octet_row"],
            points=classes.points, work=classes.components * classes.points,
        )  # fmt: skip

    def _product(self, block: dict[str, Array], given: Array, made: Array, add: bool = False) -> Prepared:
        groups = math.ceil(len(given) / OCTETS)
        return engine.prepare(
            self._policy(len(block["part"]) * groups, SMALL), _products(self.real, add), given=given, made=made,
            octets=len(given), groups=groups, **block,
        )  # fmt: skip


def _pieces(n: int, most: int) -> list[slice]:
    """0 … n in pieces of at most `most`."""
    return [slice(begin, min(begin + most, n)) for begin in range(0, n, max(most, 1))]
