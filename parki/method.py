"""Protocol of a method: the questions that `parki.plan.Plan` asks of a way to sum over pairs.

A method is one small object: a kernel, the options of a caller, and a space.  A method keeps no state of a plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from parki.adjoints import Adjoint
from parki.arguments import ArgumentNames, Arguments, Density
from parki.arrays import Array
from parki.engine import Space
from parki.engine.steps import Placed
from parki.pairs import Pair
from parki.prediction import Draft, PlanCost, Prediction
from parki.timing import PhaseTimes


class Cell(NamedTuple):
    """A periodic cell: sides, infinite along free axes, and the tilts of a triclinic one."""

    sides: Sequence[float]
    skew: Sequence[float] = (0.0, 0.0, 0.0)

    def times(self, power: int) -> Cell:
        """Return the cell with lengths times 2^power."""
        return Cell(*([math.ldexp(length, power) for length in lengths] for lengths in self))


class Place(NamedTuple):
    """Points in the caller's unit of length.

    Attributes
    ----------
    targets, sources : array (3, Nt), (3, Ns)
        One array if they are the same.
    vectors : array (3, 3) or None
        Lattice vectors as rows, zero along free directions; None in free space.
    frame : array (3, 3) or None
        Axes of these points and vectors, as rows in the caller's axes; None if they are the same.
    """

    targets: Array
    sources: Array
    vectors: np.ndarray | None = None
    frame: np.ndarray | None = None


class Options(Protocol):
    """Options of every method."""

    execution_space: Any
    threads: int | None
    layout: str
    verbose: bool


@dataclass(frozen=True, eq=False)
class Problem:
    """Points of a sum in the coordinates of a method.

    Attributes
    ----------
    targets, sources : array (3, Nt), (3, Ns), or None
        One array if the targets are the sources.  None for points that are where they were, and in the problem that a
        plan keeps, whose structure has them.
    n_targets, n_sources : int
    same : bool
        Whether the targets are the sources.
    dtype : dtype
    on_gpu : bool
        Whether the caller's points are on a GPU.
    power : int
        Lengths here are the caller's times 2^power.
    """

    targets: Array | None
    sources: Array | None
    n_targets: int
    n_sources: int
    same: bool
    dtype: np.dtype[Any]
    on_gpu: bool
    power: int

    @property
    def points(self) -> int:
        """Return the number of points, targets and sources together if they differ."""
        return self.n_sources if self.same else self.n_targets + self.n_sources

    @property
    def cell(self) -> Cell | None:
        """Return the periodic cell, None in free space."""
        raise NotImplementedError

    @property
    def empty(self) -> bool:
        """Tell whether there are no targets or no sources, in a sum over ranks on all ranks together."""
        raise NotImplementedError

    @property
    def arrays(self) -> list[Array]:
        """Return every array that the problem holds."""
        raise NotImplementedError

    def with_points(self, targets: Array | None, sources: Array | None) -> Problem:
        """Return the same problem with these points, in its coordinates."""
        raise NotImplementedError

    def transposed(self) -> Problem:
        """Return the problem with targets and sources exchanged, for methods that move points in place."""
        raise NotImplementedError


class Structure(Protocol):
    """Trees, lists and sorted points that a method arranges."""

    @property
    def arrays(self) -> list[Array]:
        """Arrays of the points."""

    def originals(self) -> tuple[Array, Array]:
        """Return targets and sources in the caller's order, one array if they are the same, as they were arranged."""


class Sum(Protocol):
    """Placed steps of a number of right-hand sides."""

    placed: Placed

    def run(self, density: Array, normals: Array | None, out: Array, times: PhaseTimes) -> None:
        """Sum a density ``(rhs, components, Ns)`` to `out` ``(rhs, components, Nt)``."""


class Method(Protocol):
    """A way to sum over pairs.

    Attributes
    ----------
    name : str
    kernel : Pair
    options : Options
    names : ArgumentNames
        Names of the arguments in messages.
    space : Space or None
    positional : tuple of str
        The order of points that are given to `Plan.move` by position.
    gradient : bool or "only"
    logger : str
    excludes : bool
        Whether pairs may be left out: all have the field of `kernel`.
    """

    name: str
    kernel: Pair
    options: Options
    names: ArgumentNames
    space: Space | None
    positional: tuple[str, str]
    gradient: bool | str
    logger: str
    excludes: bool

    def in_space(self, space: Space) -> Method:
        """Return the method in a space."""

    def times(self, problem: Problem, parameters: Any) -> PhaseTimes:
        """Return the times of a plan's phases, all zero."""

    def problem(self, targets: Any, sources: Any) -> Problem:
        """Check a caller's points and take them to the coordinates of the method."""

    def moved(
        self, arguments: Arguments, old: Any, full: Callable[[], Any], points: tuple[Any, Any], box: Any
    ) -> tuple[Method, Any]:
        """Check points that a plan moves to; points that are None stay, and the problem from `full` has them."""

    def in_place(self, old: Any, new: Any) -> bool:
        """Tell whether points move within the existing arrays."""

    def kept(self, old: Any, new: Any, parameters: Any) -> Any:
        """Return the parameters of moved points, None to have new ones chosen."""

    def choose(self, problem: Problem) -> Any:
        """Choose parameters."""

    def arrange(self, problem: Problem, parameters: Any, times: PhaseTimes) -> tuple[Any, Structure]:
        """Sort points, make trees and lists; return the parameters, which may be refined, and the structure."""

    def finish(self, draft: Draft) -> tuple[Any, Structure]:
        """Go on from the draft of a prediction; return parameters and structure as `arrange` does."""

    def rearrange(self, problem: Any, parameters: Any, structure: Any, times: PhaseTimes) -> None:
        """Move the points of a structure within its arrays."""

    def place(self, problem: Problem, parameters: Any, structure: Structure, rhs: int, times: PhaseTimes) -> Sum:
        """Compile, verify and place the steps of a number of right-hand sides."""

    def most_rhs(self, parameters: Any, structure: Structure) -> int:
        """Return the most right-hand sides that pass at once, a power of two."""

    def retire(self, problem: Problem, parameters: Any, structure: Structure, sums: dict[int, Sum]) -> None:
        """Keep the arrays that a plan no longer uses, for other sums."""

    def inspect(self, problem: Problem, density: Density) -> None:
        """Warn of a density whose sum follows a convention."""

    def own_terms(self, problem: Problem) -> Array | None:
        """Return the fields (result, dens, 1 or N) of particles at themselves that sums leave out; None for none."""

    def adjoint(self) -> Adjoint | None:
        """Return the transposed sum by sums of other kernels, None where none is known."""

    def transposed(self, problem: Problem, parameters: Any, kernel: str | None) -> tuple[Method, Problem, Any]:
        """Return the method, problem and parameters (or None) of a kernel's sum from the targets to the sources."""

    def serves_energies(self, problem: Problem, stress: bool) -> bool:
        """Tell whether this sum gives energies and forces, and the `stress` if that is asked for, to the tolerance."""

    def with_gradient(self, problem: Problem, stress: bool) -> tuple[Method, Problem]:
        """Return the method and problem of the same sum with its gradient, and for the stress."""

    def sampler(self, problem: Problem, parameters: Any) -> Any:
        """Return an object that draws random results of the sum's matrix, None where Lanczos' method is to do so."""

    def outer(self, problem: Problem) -> Place:
        """Return the points in the caller's unit of length, and their cell."""

    def refined(
        self, problem: Problem, parameters: Any, density: Density, whole: Array, rows: Array
    ) -> tuple[Method, Any] | None:
        """Return the method and parameters for a sum smaller than these were chosen for; None if these still do.

        `rows` ``(rhs, components, Nt)`` are the sum, `whole` the norms of its rows before pairs were left out.
        """

    def reference(self, problem: Problem, parameters: Any, chosen: Array, density: Density) -> Array:
        """Return an independent sum at chosen targets, ``(rhs, components, n)``, as a reference."""

    def expected(self, parameters: Any) -> float:
        """Return the relative error that a sum is expected to have."""

    def predict(self, problem: Problem, parameters: Any, structure: Structure | None, memory: int) -> Prediction:
        """Predict the time of a call."""

    def cost(self, problem: Problem, parameters: Any, limit: float | None = None) -> PlanCost:
        """Predict the seconds of making a plan and of a call, before points are arranged.

        A method may raise ValueError as soon as it knows that a plan takes more than `limit` seconds.
        """

    def report(self, parameters: Any) -> Any:
        """Return public parameters as calls return them."""

    def public(self, problem: Problem, parameters: Any) -> Any:
        """Return the parameters in the caller's unit of length."""

    def describe(self, problem: Problem, parameters: Any, prediction: Prediction | None) -> dict[str, str]:
        """Describe a plan: lines by title, without its kernel and points."""
