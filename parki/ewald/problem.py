"""Problem of an Ewald sum: its points in the coordinates of the stages, and the question for its parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from parki.arrays import PRECISIONS, Array
from parki.engine import Space
from parki.ewald.choice.arrangement import Arrangement
from parki.ewald.choice.question import Question
from parki.ewald.geometry import Geometry
from parki.ewald.kernel import Kernel
from parki.ewald.options import EwaldOptions
from parki.method import Cell, Problem


@dataclass(frozen=True, eq=False)
class EwaldProblem(Problem):
    """Points of an Ewald sum in the box of the stages.

    Attributes
    ----------
    geometry : Geometry
    reach : tuple of float
        Largest coordinate of targets and of sources before they were wrapped, see `Geometry.points`.
    outer : tuple of arrays or None
        Copies of the caller's targets and sources, if a box around both may have to grow with one of them.
    """

    geometry: Geometry
    reach: tuple[float, float] = (0.0, 0.0)
    outer: tuple[Array, Array] | None = None

    @classmethod
    def of(
        cls, geometry: Geometry, names: tuple[str, str], targets: Array, sources: Array, on_gpu: bool, xp: Any,
        grows: bool,
    ) -> EwaldProblem:  # fmt: skip
        """Return the problem of a caller's checked points, one array if targets are the sources.

        `grows` is True if the box is made around the points.
        """
        is_same = targets is sources
        y, far = geometry.points(names[1], xp.asarray(sources))
        x, far_targets = (y, 0.0) if is_same else geometry.points(names[0], xp.asarray(targets))
        outer = (targets.copy(), sources.copy()) if grows and not is_same else None
        counts = targets.shape[1], sources.shape[1], is_same, sources.dtype
        return cls(x, y, *counts, on_gpu, geometry.power, geometry, (far_targets, far), outer)

    @property
    def empty(self) -> bool:
        """Tell whether there are no targets or no sources."""
        return 0 in (self.n_targets, self.n_sources)

    @property
    def cell(self) -> Cell | None:
        """Return the periodic cell."""
        if not self.geometry.periodicity:
            return None
        axes = range(3)
        sides = [self.geometry.box[i] if i < self.geometry.periodicity else float("inf") for i in axes]
        return Cell(sides, self.geometry.skew or (0.0, 0.0, 0.0))

    @property
    def arrays(self) -> list[Array]:
        """Return every array that the problem holds."""
        return [a for a in (self.targets, self.sources, *(self.outer or ())) if a is not None]

    def with_points(self, targets: Array | None, sources: Array | None) -> EwaldProblem:
        """Return the same problem with these points, in the box of the stages."""
        return replace(self, targets=targets, sources=sources)

    def at(self, targets: Array, sources: Array) -> EwaldProblem:
        """Return the problem of the same sum with other targets, and sources in another dtype."""
        counts = {"n_targets": targets.shape[1], "same": False, "dtype": sources.dtype, "outer": None}
        return replace(self, targets=targets, sources=sources, **counts)

    def transposed(self) -> EwaldProblem:
        """Return the problem with targets and sources exchanged."""
        counts = {"n_targets": self.n_sources, "n_sources": self.n_targets}
        outer = None if self.outer is None else self.outer[::-1]
        points = {"targets": self.sources, "sources": self.targets, "reach": self.reach[::-1], "outer": outer}
        return replace(self, **counts, **points)


def question(
    kernel: Kernel, options: EwaldOptions, space: Space, problem: EwaldProblem, measured: bool = True
) -> Question:
    """Return the question of a sum in the stages' units, without an arrangement unless its points are `measured`."""
    place = problem.geometry
    rc = None if options.rc is None else place.inner(options.rc)
    arrangement = Arrangement.of(problem.targets, problem.sources, place.box) if measured else None
    return Question(
        kernel.scaled(place.power), place.box, problem.n_targets, problem.n_sources, options.tolerance,
        problem.dtype.name, options.split, rc, options.cell_size, PRECISIONS.get(options.far_precision),
        place.periodicity, place.skew, int(options.rhs), arrangement, space,
    )  # fmt: skip
