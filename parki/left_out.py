"""Sum over excluded pairs, which is taken off the whole sum, in the caller's order and units."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cached_property

import numpy as np

from parki import all_pairs, engine, exclusions, scaling
from parki.arguments import Density
from parki.arrays import Array, module_of, to_host
from parki.engine import Space
from parki.engine.steps import Handle, Step, Steps, argument, constant, glue, result, state
from parki.exclusions import Exclusions
from parki.freespace import FreeProblem, FreeSum
from parki.method import Cell, Place
from parki.pairs import Pair
from parki.timing import PhaseTimes

PHASES = {"lists": "launches", "pack": "packing of sources", "pairs": "pairs"}
SYMMETRIC = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])  # indices of a matrix's entries among xx xy xz yy yz zz


class LeftOut:
    """Sum over excluded pairs at the points of a plan, nearest images in a periodic cell.

    Parameters
    ----------
    pairs : Exclusions
    kernel : Pair
        In the caller's unit of length.
    place : Place
    space : Space
    """

    def __init__(self, pairs: Exclusions, kernel: Pair, place: Place, space: Space) -> None:
        self.pairs, self.kernel, self.place, self.space = pairs, kernel, place, space
        self._room: Array | None = None
        self._made: list[tuple[FreeSum, Handle, Handle, int]] = []

    def move(self, place: Place) -> bool:
        """Take new points, as many as before, in the same cell; return False if they need another unit of length."""
        self.place = place
        for kernel_sum, targets, rows, power in self._made:
            if power != self._power(place):
                return False
            handles = kernel_sum.placed
            y = scaling.times(place.sources, power)
            handles[rows][:, :3] = y.T
            handles[targets][...] = y if place.targets is place.sources else scaling.times(place.targets, power)
        return True

    def _power(self, place: Place) -> int:
        """Return the power of two of the sums' unit of length: by the cell, or the extent of all points."""
        if self.kernel.law is None:
            return 0
        return scaling.exponent(self._extent(place))

    @staticmethod
    def _extent(place: Place) -> float:
        if place.vectors is not None:
            return float(np.abs(place.vectors).max())
        return scaling.extent(place.targets, place.sources)

    @cached_property
    def _sum(self) -> FreeSum:
        return self._placed(self.kernel)

    @cached_property
    def _virial(self) -> FreeSum:
        law = self.kernel.law
        changes = {"result": self.kernel.result + 6, "slots": (*self.kernel.slots, ("VIRIAL", True))}
        changes["dimensions"] = replace(law, result=(*law.result, *law.result[:1] * 6))
        values = {f.name: getattr(self.kernel, f.name) for f in fields(Pair)}
        return self._placed(Pair(**values | changes))

    def take_off(self, inputs: Density, rows: Array) -> np.ndarray:
        """Subtract the sum of a checked density from rows ``(rhs, components, Nt)``; return the rows' old norms."""
        norms = exclusions.norms(rows)
        for r in range(len(rows)):
            sums = self._buffer(rows)[:, : rows.shape[1]]
            density, normals = (self._turned(a, vectors(a)) for a in (inputs.values[r], inputs.normals))
            self._sum.run(density[None], normals, sums, PhaseTimes(PHASES, ()))
            rows[r] -= self._turned(sums[0], result_vectors(self.kernel), inverse=True)
        return norms

    def take_off_with_virial(self, density: Array, rows: Array) -> np.ndarray:
        """Subtract the sum of one density ``(1, 1, N)`` from rows ``(1, 4, N)``; return its ∂E/∂ε (3, 3)."""
        sums = self._buffer(rows)
        self._virial.run(density, None, sums, PhaseTimes(PHASES, ()))
        components = rows.shape[1]
        rows[0] -= self._turned(sums[0, :components], result_vectors(self.kernel), inverse=True)
        moments = to_host(sums[0, components:].astype(np.float64) @ density[0, 0].astype(np.float64))[SYMMETRIC]
        frame = np.eye(3) if self.place.frame is None else self.place.frame
        return 0.5 * frame.T @ moments @ frame

    def _turned(self, rows: Array | None, vector_rows: list[slice], inverse: bool = False) -> Array | None:
        """Return rows with their vectors turned to the axes of the points, or with `inverse` to the caller's."""
        if rows is None or self.place.frame is None or not vector_rows:
            return rows
        xp, rows = module_of(rows), rows.copy()
        matrix = xp.asarray(self.place.frame.T if inverse else self.place.frame, rows.dtype)
        for vector in vector_rows:
            rows[vector] = matrix @ rows[vector]
        return rows

    def _buffer(self, rows: Array) -> Array:
        """Return an array (1, components and six more, Nt), the same for each call."""
        if self._room is None:
            self._room = module_of(rows).empty((1, rows.shape[1] + 6, rows.shape[2]), rows.dtype)
        return self._room

    def _placed(self, kernel: Pair) -> FreeSum:
        """Place the steps of a kernel: rows of places, charges and parameters, and the sum over listed pairs."""
        x, y, lattice = self.place.targets, self.place.sources, self.place.vectors
        pairs, space = self.pairs, self.space
        problem = FreeProblem.of(kernel, space, x, y, False, self._extent(self.place))
        pair, dtype, n, nt = problem.linear, problem.dtype, problem.n_sources, problem.n_targets
        charges, u = argument("charges", (pair.dens, n), dtype), result("u", (pair.result, nt), dtype)
        targets, order = constant("targets", problem.targets), constant("order", np.arange(n, dtype=np.int32))
        sources = targets if problem.same else constant("sources", problem.sources)
        rows, numbers = state("rows", (n, 3 + pair.strengths), dtype), len(pair.parameters)
        first = [glue.gather_columns("lists", sources, order, rows, 0)]
        if numbers:
            parameters = np.repeat(np.array(pair.parameters, dtype)[:, None], n, axis=1)
            first.append(glue.gather_columns("lists", constant("parameters", parameters), order, rows, 3 + pair.dens))
        cell = np.zeros((3, 3)) if lattice is None else np.ldexp(lattice, problem.power)
        args = {
            "xt": targets, "src": rows, "u": u, "tiny": all_pairs.coincident(dtype),
            "begin": constant("begin", pairs.begin), "partner": constant("partners", pairs.partner),
            "weight": constant("weights", pairs.weight.astype(dtype)), "cell": constant("cell", cell.astype(dtype)),
            "inverse": constant("inverse", np.linalg.pinv(cell).astype(dtype)),
        }  # fmt: skip
        slots = {"pair": pair.pair, **dict(pair.slots), "PERIODIC": lattice is not None}
        unit = engine.kernel("left_out", "left_out", real=dtype, hints=pair.hints, **slots)
        steps = [glue.gather_columns("pack", charges, order, rows, 3), Step("pairs", unit, nt, args)]
        kernel_sum = FreeSum(Steps(steps, first).place(space), charges, u, problem.with_points(None, None))
        self._made.append((kernel_sum, targets, rows, problem.power))
        return kernel_sum


def vectors(rows: Array | None) -> list[slice]:
    """Return the rows of each vector of a density or of normals, as of three rows, or of six."""
    return [] if rows is None else threes(0, len(rows))


def result_vectors(kernel: Pair) -> list[slice]:
    """Return the rows of each vector of a result, among them rows and columns of matrices."""
    return [*threes(0, kernel.before_slopes), *threes(kernel.before_slopes, kernel.result)]


def threes(first: int, end: int) -> list[slice]:
    """Return the vectors among rows first … end: none for one row, rows and then columns for a matrix."""
    count = end - first
    if count % 3:
        return []
    rows = [slice(first + k, first + k + 3) for k in range(0, count, 3)]
    return [*rows, *(slice(first + k, end, 3) for k in range(3))] if count == 9 else rows


def vectors_of(cell: Cell | None, power: int) -> np.ndarray | None:
    """Return a cell's lattice vectors as rows in the caller's unit of length, zero along free directions."""
    if cell is None:
        return None
    t01, t02, t12 = cell.skew
    rows = np.array([[cell.sides[0], t01, t02], [0.0, cell.sides[1], t12], [0.0, 0.0, cell.sides[2]]])
    return np.ldexp(np.where(np.isfinite(rows), rows, 0.0), -power)
