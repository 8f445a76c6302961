"""Sums in free space over ranks: points and questions that all methods share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from parki import all_pairs, arrays, ranks, scaling
from parki.arguments import Arguments, Density
from parki.arrays import Array, module_of
from parki.distributed import agreement, communicators
from parki.distributed.agreement import agreed
from parki.distributed.comm import Comm
from parki.distributed.delivery import Delivery
from parki.distributed.overlap import Meanwhile
from parki.engine import Space
from parki.engine.steps import Handle, Placed
from parki.freespace import FreeMethod, FreeProblem, FreeSum
from parki.scaling import Powers
from parki.timing import PhaseTimes

#: Phases of exchanges, and their titles.
EXCHANGES = {"sort": "to owners and back", "exchange": "values of others", "agree": "agreement"}


def over(method: FreeMethod, kind: type[FreeOverRanks]) -> FreeMethod:
    """Return a method over the ranks of its options' communicator; the method itself for a single rank."""
    comm = communicators.of(method.options.comm)
    return method if comm.size == 1 else kind(method.kernel, method.options, method.space, method.served, comm=comm)


@dataclass(frozen=True, eq=False)
class RanksProblem(FreeProblem):
    """Points of one rank, and the numbers of targets and sources of all ranks."""

    totals: tuple[int, int] = (0, 0)

    @property
    def empty(self) -> bool:
        """Tell whether there are no targets or no sources at all."""
        return not all(self.totals)

    @property
    def whole(self) -> FreeProblem:
        """Return a problem with the numbers of points of all ranks, and without points."""
        return replace(self, targets=None, sources=None, n_targets=self.totals[0], n_sources=self.totals[1])


@dataclass(frozen=True, eq=False)
class FreeOverRanks(FreeMethod):
    """A method of summation in free space over the ranks of a communicator; every rank calls every method."""

    comm: Comm | None = None

    def in_space(self, space: Space) -> Self:
        """Return the method in a space; on a host, with this rank's share of the threads."""
        return super().in_space(ranks.shared_threads(self.comm, space))

    def times(self, problem: RanksProblem, parameters: Any) -> PhaseTimes:
        """Return the times of all phases, exchanges included, set to zero."""
        phase_times = super().times(problem, parameters)
        phase_times.over(self.comm, EXCHANGES)
        return phase_times

    def problem(self, targets: Any, sources: Any) -> RanksProblem:
        """Check every rank's points and options."""
        facts = {**agreement.kernel_facts(self.kernel), "space": self.space.kind, **agreement.shown(self.options)}
        with agreed(self.comm, "checking points", facts) as check:
            x, y, on_gpu = self.checked(targets, sources)
            check.same = facts | {"dtype": x.dtype.name, "targets are the sources": x is y, "on a GPU": on_gpu}
        return self.of(x, y, on_gpu)

    def of(self, x: Array, y: Array, on_gpu: bool) -> RanksProblem:
        """Return the problem of checked points, in the unit of length of all ranks' points; collective."""
        totals = agreement.totals(self.comm, x.shape[1], y.shape[1])
        low, high = self.corners(x, y)
        with agreed(self.comm, "placing points"):
            problem = FreeProblem.of(self.kernel, self.space, x, y, on_gpu, scaling.longest(low, high))
        fields = {name: getattr(problem, name) for name in FreeProblem.__dataclass_fields__}
        return RanksProblem(**fields, totals=totals)

    def moved(
        self, arguments: Arguments, old: FreeProblem, full: Callable[[], FreeProblem], points: tuple[Any, Any],
        box: Any,
    ) -> tuple[Self, RanksProblem]:  # fmt: skip
        """Check points that a plan moves to; None means that they stay."""
        facts = {
            "targets": points[0] is not None,
            "sources": points[1] is not None,
            "one array": points[0] is points[1],
        }
        with agreed(self.comm, "checking points", facts):
            x, y = self.checked_move(arguments, full, points, box)
        return self, self.of(x, y, old.on_gpu)

    def kept(self, old: RanksProblem, new: RanksProblem, parameters: Any) -> Any:
        """Return the parameters if all ranks together have as many points as before, else None."""
        return parameters if old.totals == new.totals else None

    def reference(self, problem: FreeProblem, parameters: Any, index: Array, density: Density) -> np.ndarray:
        """Return the direct sum in double precision at chosen targets: ``(rhs, components, n)``."""
        xp, wide = module_of(problem.sources), np.float64
        x, y = (scaling.times(a.astype(wide), -problem.power) for a in (problem.targets, problem.sources))
        axes = None if density.normals is None else density.normals.astype(wide)
        x = xp.ascontiguousarray(x[:, xp.asarray(index)])
        return all_pairs.direct_sums(self.kernel, x, y, density.values.astype(wide), axes, self.space, self.comm)

    def corners(self, *clouds: Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest and highest coordinates of the points (3, …) of all ranks; collective."""
        low, high = scaling.corners(*clouds)
        low, high = np.split(self.comm.allreduce(np.concatenate([low, -high]), "min"), 2)
        return low, -high

    def own_sample(self, x: Array, stride: int) -> Array:
        """Return this rank's points of a sample: every `stride`-th of the points (3, …) of all ranks; collective."""
        first = sum(self.comm.allgather(x.shape[1])[: self.comm.rank])
        return module_of(x).ascontiguousarray(x[:, -first % stride :: stride])

    def sample(self, x: Array, stride: int) -> np.ndarray:
        """Return every `stride`-th of the points (3, …) of all ranks, the same on all ranks; collective."""
        return np.concatenate(self.comm.allgather(arrays.to_host(self.own_sample(x, stride))), axis=1)


class Owned(Protocol):
    """Structure of a method, in the form that sums over ranks use.

    Attributes
    ----------
    comm : Comm
    to_targets, to_sources : Delivery
        Deliveries of the caller's points of this rank to the ranks of their places.
    beside : Meanwhile or None
        Work that is done while messages are under way.
    """

    comm: Comm
    to_targets: Delivery
    to_sources: Delivery
    beside: Meanwhile | None


class SumOverRanks(FreeSum):
    """Placed steps from charges of a rank's places to its sums, and deliveries to these places and back.

    Parameters
    ----------
    placed : Placed
    charges, result : Handle
        The argument (charges, n) and the result (components, n), as they are delivered.
    problem : FreeProblem
    structure : Owned
    """

    def __init__(
        self, placement: Placed, charges: Handle, result: Handle, problem: FreeProblem, structure: Owned
    ) -> None:
        super().__init__(placement, charges, result, problem)
        self._structure, xp = structure, placement.memory_of.xp
        self._room = tuple(xp.empty(a.shape, a.dtype) for a in (charges, result))

    def run(self, density: Array, normals: Array | None, out: Array, times: PhaseTimes) -> None:
        """Sum a density ``(rhs, components, Ns)`` with normals ``(3, Ns)`` into `out` ``(rhs, components, Nt)``."""
        problem, structure, (charge_room, result_room) = self._problem, self._structure, self._room
        old_traffic, overlap = structure.comm.traffic.copy(), structure.beside
        if overlap is not None:
            overlap.reset()
        with times.phase("agree"):
            powers = self._powers(density, normals)
        directions = None if normals is None else scaling.times(normals, powers.normals)
        for row, u, in_power, out_power in zip(density, out, powers.dens, powers.result, strict=True):
            with times.phase("sort"):
                charges = scaling.multiplied(row, in_power)
                if problem.charges is not None:
                    charges = problem.charges(charges, directions)
                structure.to_sources.there(charges, out=charge_room)
            self.placed.run({self._charges: charge_room, self._result: result_room}, times)
            with times.phase("sort"):
                scaling.multiply(result_room, out_power)
                u[...] = structure.to_targets.back(result_room)
        for phase, seconds in (overlap.worked if overlap is not None else {}).items():
            times.shift(seconds, phase, overlap.phase)
        times.sent(structure.comm.traffic, old_traffic)

    def _powers(self, density: Array, normals: Array | None) -> Powers:
        """Return the powers of two by which all ranks multiply."""
        problem, sizes = self._problem, scaling.largest(density)
        axes = np.array([] if normals is None else [scaling.largest(normals).max()])
        maxima = self._structure.comm.allreduce(np.concatenate([sizes.ravel(), axes]), "max")
        steep = None if normals is None else float(maxima[-1])
        largest = maxima[: sizes.size].reshape(sizes.shape)
        return Powers.of_largest(problem.law, problem.power, largest, steep, problem.kernel.result)
