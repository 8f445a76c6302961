"""Sums over pairs in free space: the points, the steps and the reference that all methods share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from parki import adjoints, all_pairs, arrays, error, exclusions, hints, own_terms, pairs, scaling
from parki.adjoints import Adjoint
from parki.arguments import TARGETS, Arguments, Density
from parki.arrays import Array
from parki.checks import check_flag
from parki.dimensions import Dimensions
from parki.engine import Space, spaces
from parki.engine.steps import Handle, Placed
from parki.error import PrecisionWarning
from parki.method import Method, Place, Problem, Structure, Sum
from parki.options import FreeOptions, ToleranceOptions
from parki.pairs import PAIRS, Pair
from parki.prediction import Prediction
from parki.scaling import Powers
from parki.timing import PhaseTimes

REPORTS = ("return_walltime", "return_params", "return_error")  # flags of the calls that use a plan once


def find(kernel: Any, options: FreeOptions, parameters: dict[str, float | None]) -> Pair:
    """Return the pair of a kernel, with its parameters and the gradient that the options ask for."""
    pair = pairs.find(kernel, (*options.names(), *REPORTS, "normals"), **parameters)
    return pair.with_gradient(only=options.gradient == "only") if options.gradient else pair


def check_reports(*flags: Any) -> None:
    """Raise ValueError for a flag of a report that is neither True nor False."""
    for name, flag in zip(REPORTS, flags, strict=True):
        check_flag(name, flag)


@dataclass(frozen=True, eq=False)
class FreeProblem(Problem):
    """Points of a sum in free space, in a unit of length in which their extent is about one.

    Attributes
    ----------
    extent : float
        Half the longest side of the box around all points.
    kernel : Pair
        In this unit of length.
    linear : Pair
        The same pair, linear in the charges of sources.
    law : Dimensions or None
        Powers of length of the kernel.
    charges : function or None
        Charges (components, Ns) of `linear` from densities and normals; None where these are the densities.
    """

    extent: float
    kernel: Pair
    linear: Pair
    law: Dimensions | None
    charges: Callable[[Array, Array | None], Array] | None

    cell = None

    @classmethod
    def of(cls, kernel: Pair, space: Space, x: Array, y: Array, on_gpu: bool, extent: float) -> FreeProblem:
        """Return the problem of checked targets x and sources y, one array if they are the same, of an `extent`."""
        power = 0 if kernel.law is None else scaling.exponent(extent)
        scaled_kernel, xp = kernel.scaled(power, y.dtype.name), spaces.array_module(space)
        sources = scaling.times(xp.asarray(y), power)
        targets = sources if x is y else scaling.times(xp.asarray(x), power)
        counts = x.shape[1], y.shape[1], x is y, y.dtype
        linear, charges = scaled_kernel.linear()
        extent = float(np.ldexp(extent, power))
        source_charges = None if linear is scaled_kernel else charges
        return cls(
            targets, sources, *counts, on_gpu, power, extent, scaled_kernel, linear, scaled_kernel.law, source_charges
        )

    @property
    def arrays(self) -> list[Array]:
        """Return the points that the problem holds."""
        return [a for a in (self.targets, self.sources) if a is not None]

    @property
    def empty(self) -> bool:
        """Tell whether there are no targets or no sources."""
        return not (self.n_targets and self.n_sources)

    def with_points(self, targets: Array | None, sources: Array | None) -> FreeProblem:
        """Return the same problem with these points."""
        return replace(self, targets=targets, sources=sources)


class FreeSum:
    """Placed steps from charges of a linear pair to its sums, for one right-hand side.

    Parameters
    ----------
    placed : Placed
    charges, result : Handle
        The argument (charges, Ns) and the result (components, Nt).
    problem : FreeProblem
    """

    def __init__(self, placed: Placed, charges: Handle, result: Handle, problem: FreeProblem) -> None:
        self.placed, self._charges, self._result, self._problem = placed, charges, result, problem

    def run(self, density: Array, normals: Array | None, out: Array, times: PhaseTimes) -> None:
        """Sum a density ``(rhs, components, Ns)`` with normals ``(3, Ns)`` to `out` ``(rhs, components, Nt)``."""
        problem, xp = self._problem, arrays.module_of(density)
        powers = Powers.of(problem.law, problem.power, density, normals, problem.kernel.result)
        directions = None if normals is None else scaling.times(normals, powers.normals)
        for row, u, density_powers, result_powers in zip(density, out, powers.dens, powers.result, strict=True):
            charges = scaling.multiplied(row, density_powers)
            if problem.charges is not None:
                charges = problem.charges(charges, directions)
            charges = xp.ascontiguousarray(charges)
            target = u if u.flags.c_contiguous else xp.empty(u.shape, u.dtype)
            self.placed.run({self._charges: charges, self._result: target}, times)
            scaling.multiply(target, result_powers)
            if target is not u:
                u[...] = target


@dataclass(frozen=True, eq=False)
class FreeMethod:
    """A method of summation in free space.

    Attributes
    ----------
    kernel : Pair
        In the caller's unit of length, with the gradient that the options ask for.
    options : FreeOptions
    space : Space, optional
    served : bool
        Whether the sum serves another plan, and gives no warnings.
    net : float, optional
        The caller's tolerance, if that of the options is smaller, for a whole sum from which pairs are left out.
    """

    kernel: Pair
    options: Any
    space: Space | None = None
    served: bool = False
    net: float | None = None

    names = TARGETS
    positional = ("targets", "sources")
    logger = "parki"
    excludes = True

    phases: ClassVar[Mapping[str, str]]  # titles by name
    planned: ClassVar[Sequence[str]]  # names of phases of making a plan

    @property
    def name(self) -> str:
        """Return the name of the method."""
        return self.options.method

    @property
    def gradient(self) -> bool | str:
        """Return the option `gradient`: False for the potential, "only" for its gradient, True for both."""
        return self.options.gradient

    def times(self, problem: FreeProblem, parameters: Any) -> PhaseTimes:
        """Return the times of all phases, zero."""
        wait = spaces.waiter(self.space) if self.options.reports_times else None
        return PhaseTimes(self.phases, self.planned, wait)

    def in_space(self, space: Space) -> Self:
        """Return the method in a space."""
        return replace(self, space=space)

    def problem(self, targets: Any, sources: Any) -> FreeProblem:
        """Check a caller's points, and take them to the method's unit of length."""
        return self.of(*self.checked(targets, sources))

    def checked(self, targets: Any, sources: Any) -> tuple[Array, Array, bool]:
        """Return a caller's checked points, one array if they are the same, and whether they are on a GPU."""
        layout, points = self.options.layout, dict(zip(self.names[:2], (targets, sources), strict=True))
        y = arrays.points("sources", sources, layout=layout)
        x = y if targets is sources else arrays.points("targets", targets, layout=layout)
        arrays.same_dtype(targets=x, sources=y)
        self.warn_below(y.dtype.name)
        return x, y, arrays.on_gpu(**points) is not None

    def of(self, x: Array, y: Array, on_gpu: bool) -> FreeProblem:
        """Return the problem of checked points."""
        return FreeProblem.of(self.kernel, self.space, x, y, on_gpu, scaling.extent(x, y))

    def warn_below(self, dtype: str) -> None:
        """Warn of a tolerance that a dtype, or a far field in single precision, cannot give."""
        tolerance, floor, kind, use = getattr(self.options, "tolerance", None), self.reach[dtype], dtype, "float64"
        if getattr(self.options, "far_precision", None) == "single" and floor < self.single_reach:
            floor, kind, use = self.single_reach, "a far field in single precision", "far_precision='double'"
        if tolerance is not None and tolerance < floor and not self.served:
            text = f"tolerance={tolerance:g} is below what {kind} reaches here, about {floor:g}"
            error.warn(f"{text}; use {use} or a larger tolerance", PrecisionWarning)

    @property
    def reach(self) -> dict[str, float]:
        """Return the least relative error by dtype."""
        return {"float64": 0.0, "float32": 0.0}

    @property
    def single_reach(self) -> float:
        """Return the least relative error with a far field in single precision."""
        return self.reach["float32"]

    def moved(
        self, arguments: Arguments, old: FreeProblem, full: Callable[[], FreeProblem], points: tuple[Any, Any], box: Any
    ) -> tuple[Self, FreeProblem]:
        """Check points that a plan moves to; points that are None stay, and `full` has them."""
        return self, self.of(*self.checked_move(arguments, full, points, box), old.on_gpu)

    def checked_move(
        self, arguments: Arguments, full: Callable[[], FreeProblem], points: tuple[Any, Any], box: Any
    ) -> tuple[Array, Array]:
        """Return the checked targets and sources of a move, in the caller's unit of length."""
        if box is not None:
            self.options.refuse(["box"])
        targets, sources = points
        y = None if sources is None else arguments.points("sources", sources)
        x = y if targets is sources else None if targets is None else arguments.points("targets", targets)
        if x is None or y is None:
            problem = full()
            x = scaling.times(problem.targets, -problem.power) if x is None else x
            y = scaling.times(problem.sources, -problem.power) if y is None else y
        return x, y

    def in_place(self, old: FreeProblem, new: FreeProblem) -> bool:
        """Tell whether points move within the existing arrays: they do not, because trees are made anew."""
        return False

    def kept(self, old: FreeProblem, new: FreeProblem, parameters: Any) -> Any:
        """Return the parameters of moved points, None to have new ones chosen."""
        return parameters if (old.n_targets, old.n_sources) == (new.n_targets, new.n_sources) else None

    def rearrange(self, problem: FreeProblem, parameters: Any, structure: Structure, times: PhaseTimes) -> None:
        """Move the points of a structure within its arrays."""
        raise NotImplementedError

    def most_rhs(self, parameters: Any, structure: Structure) -> int:
        """Return the number of right-hand sides that pass at once."""
        return 1

    def retire(self, problem: FreeProblem, parameters: Any, structure: Structure, sums: dict[int, Sum]) -> None:
        """Leave arrays to the garbage collector."""
        return

    def inspect(self, problem: FreeProblem, density: Density) -> None:
        """Accept every density."""
        return

    def own_terms(self, problem: FreeProblem) -> np.ndarray | None:
        """Return the fields (result, dens, 1 or N) of particles at themselves that sums leave out; None for none.

        Raises
        ------
        ValueError
            Where they are to be left out, and targets are not the sources.
        """
        if self.options.own_term:
            return None
        if not problem.same:
            raise ValueError("own_term is False and targets are not the sources; expected one array for both.")
        return own_terms.of(self.kernel)

    def rounding(self, error: float) -> float:
        """Return the relative error, of a sum with own terms, that roots and exponentials may have."""
        return error if self.options.own_term or not own_terms.known(self.kernel) else min(error, hints.OWN_TERMS)

    def adjoint(self) -> Adjoint | None:
        """Return the transposed sum by sums of other kernels, None where none is known."""
        return adjoints.of(self.kernel)

    def transposed(self, problem: FreeProblem, parameters: Any, kernel: str) -> tuple[Method, FreeProblem, Any]:
        """Return the method, problem and parameters of a kernel's sum from the targets to the sources."""
        pair = self.kernel if kernel == self.kernel.name else PAIRS[kernel]
        x, y = (scaling.times(a, -problem.power) for a in (problem.targets, problem.sources))
        gradient = self.gradient if pair is self.kernel else False
        options = replace(self.transposed_options(parameters), gradient=gradient, verbose=False)
        method = replace(self, kernel=pair, options=options, served=True)
        return method, method.of(y, y if problem.same else x, problem.on_gpu), None

    def sampler(self, problem: FreeProblem, parameters: Any) -> None:
        """Return None: free sums have no sampler of their own."""

    def serves_energies(self, problem: FreeProblem, stress: bool) -> bool:
        """Tell whether this sum gives energies and forces."""
        return self.gradient is True

    def with_gradient(self, problem: FreeProblem, stress: bool) -> tuple[Self, FreeProblem]:
        """Return the method and problem of the same sum with its gradient.

        Raises
        ------
        ValueError
            For a kernel without a gradient.
        """
        x, y = (scaling.times(a, -problem.power) for a in (problem.targets, problem.sources))
        options = replace(self.options, gradient=True, layout="dn", verbose=False)
        method = replace(self, kernel=self.kernel.with_gradient(), options=options, served=True)
        return method, method.of(y if problem.same else x, y, problem.on_gpu)

    def outer(self, problem: FreeProblem) -> Place:
        """Return targets and sources in the caller's unit of length."""
        y = scaling.times(problem.sources, -problem.power)
        return Place(y if problem.same else scaling.times(problem.targets, -problem.power), y)

    def refined(
        self, problem: FreeProblem, parameters: Any, density: Density, whole: Array, rows: Array
    ) -> tuple[Self, None] | None:
        """Return the method with a tolerance of the whole sum at which the remaining sum meets the caller's, or None.

        None if the remaining sum meets it already, or if options name the parameters, not the tolerance.
        """
        tolerance = getattr(self.options, "tolerance", None)
        if tolerance is None:
            return None
        share = min(1.0, exclusions.least_share(rows, whole, self.gradient is True))
        target = (self.net or tolerance) * share
        if target > exclusions.ENOUGH * tolerance:
            return None
        method = replace(self, net=self.net or tolerance)
        method = replace(method, options=replace(self.options, tolerance=exclusions.rounded(target)))
        return method, None

    def transposed_options(self, parameters: Any) -> Any:
        """Return the options of the transposed sum."""
        return self.options

    def reference(self, problem: FreeProblem, parameters: Any, chosen: Array, density: Density) -> np.ndarray:
        """Return the direct sum in double precision at chosen targets: ``(rhs, components, n)``."""
        xp, wide = arrays.module_of(problem.sources), np.float64
        x, y = (scaling.times(xp.asarray(a, wide), -problem.power) for a in (problem.targets, problem.sources))
        x = xp.ascontiguousarray(x[:, xp.asarray(chosen)])
        axes = None if density.normals is None else density.normals.astype(wide)
        return all_pairs.direct_sums(self.kernel, x, y, density.values.astype(wide), axes, self.space)

    def expected(self, parameters: Any) -> float:
        """Return the relative error that a sum is expected to have."""
        return float(parameters.expected)

    def public(self, problem: FreeProblem, parameters: Any) -> Any:
        """Return the parameters, which have no lengths."""
        return parameters

    def report(self, parameters: Any) -> Any:
        """Return the parameters as calls return them."""
        return parameters

    def describe(self, problem: FreeProblem, parameters: Any, prediction: Prediction) -> dict[str, str]:
        """Describe a plan: lines by title, without its kernel and points."""
        return {"method": f"{self.name}, {parameters}", "call": str(prediction)}


class TaskMethod(FreeMethod):
    """A method of summation in free space whose sums may run as tasks."""

    options: ToleranceOptions
    runtimes: ClassVar[Mapping[str, Callable[[str, int], None]]] = {}  # checks of schedule and workers by prefix

    def in_space(self, space: Space) -> Self:
        """Return the method in a space.

        Raises
        ------
        ValueError
            For a schedule of tasks where there are none, and for one whose runtime system is missing.
        """
        schedule = self.options.schedule
        if self.options.tasks and not (space.pick(True, False) and space.engine == "parki"):
            raise ValueError(f"schedule is {schedule!r} in {space.name!r}; expected a host, or schedule='phases'.")
        for prefix, check in self.runtimes.items():
            if schedule.startswith(prefix):
                check(schedule, spaces.workers(space))
        return super().in_space(space)

    def describe(self, problem: FreeProblem, parameters: Any, prediction: Prediction) -> dict[str, str]:
        """Describe a plan in a few lines."""
        lines = super().describe(problem, parameters, prediction)
        if self.options.tasks:
            lines["schedule"] = f"tasks on {spaces.workers(self.space)} cores, {self.options.schedule}"
        return lines
