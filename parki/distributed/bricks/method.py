"""Spectral Ewald sums over ranks as a method."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from parki import all_pairs, arrays, ranks, scaling
from parki.arguments import Arguments, Density
from parki.arrays import Array, module_of
from parki.distributed import agreement, communicators, network
from parki.distributed.agreement import agreed
from parki.distributed.bricks import cutoff, cutting, wire
from parki.distributed.bricks.balance import Seconds
from parki.distributed.bricks.division import Division
from parki.distributed.bricks.structure import BrickStructure, BrickSum
from parki.distributed.comm import Comm
from parki.engine import Space, spaces
from parki.ewald import checks
from parki.ewald.choice import arrangement, tuning, variants
from parki.ewald.choice.arrangement import Arrangement
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.ewald.choice.variants import Variants
from parki.ewald.method import Ewald, EwaldChoice
from parki.ewald.options import EwaldOptions
from parki.ewald.problem import EwaldProblem, question
from parki.ewald.report import WallTime
from parki.ewald.stages.brick import Share
from parki.ewald.stages.points import Points
from parki.ewald.stages.sums import Stages, SumSteps
from parki.prediction import Prediction


def over(method: Ewald) -> Ewald:
    """Return Ewald sums over the ranks of their options' communicator; for a single rank, sums without one."""
    comm = communicators.of(method.options.comm)
    if comm.size == 1:
        options = copy.copy(method.options)
        options.comm = None
        return replace(method, options=options)
    place = method.kernel, method.options, method.space, method.names
    return BrickEwald(*place, method.served, method.gradient, comm)


@dataclass(frozen=True, eq=False)
class BrickProblem(EwaldProblem):
    """Points of one rank.

    Attributes
    ----------
    totals : tuple of int
        Targets and sources of all ranks.
    """

    totals: tuple[int, int] = (0, 0)

    def original(self, x: Array) -> Array:
        """Return points of a box that was made around all points in the caller's coordinates."""
        origin = module_of(x).asarray(np.array(self.geometry.origin or (0.0,) * 3), x.dtype)
        return scaling.times(x + origin[:, None], -self.power)

    @property
    def empty(self) -> bool:
        """Tell whether there are no targets or no sources at all."""
        return not all(self.totals)

    def at(self, targets: Array, sources: Array) -> Self:
        """Return the problem of the same sources at other targets, of which some rank has one."""
        return replace(super().at(targets, sources), totals=(1, self.totals[1]))

    def transposed(self) -> Self:
        """Return the problem with targets and sources exchanged."""
        return replace(super().transposed(), totals=self.totals[::-1])


@dataclass(frozen=True, eq=False)
class BrickChoice(EwaldChoice):
    """Parameters and variants of a sum over ranks.

    Attributes
    ----------
    bits : int
        Bits of a number of the far field in messages.
    division : Division or None
        The bricks, once points lie in them.
    """

    bits: int = 64
    division: Division | None = None


@dataclass(frozen=True, eq=False)
class BrickEwald(Ewald):
    """Spectral Ewald sums over the ranks of a communicator; every rank calls every method."""

    comm: Comm | None = None

    def times(self, problem: EwaldProblem, choice: EwaldChoice) -> WallTime:
        """Return the times of all phases, exchanges included, set to zero."""
        is_timed = self.options.return_walltime or self.options.verbose
        wait = spaces.waiter(self.space) if is_timed else None
        counts = problem.n_sources, problem.n_targets, math.prod(choice.parameters.grid)
        return WallTime(*counts, wait=wait, comm=self.comm)

    def in_space(self, space: Space) -> Self:
        """Return the method in a space; on a host, with this rank's share of the threads."""
        return super().in_space(ranks.shared_threads(self.comm, space))

    # Points -----------------------------------------------------------------------------------------------------------
    def problem(self, targets: Any, sources: Any) -> BrickProblem:
        """Check every rank's points and options, and take the points to the box of the stages."""
        facts = {**agreement.kernel_facts(self.kernel), "space": self.space.kind, **agreement.shown(self.options)}
        with agreed(self.comm, "checking points", facts) as check:
            refuse(self.options)
            x, y, on_gpu = self._checked(targets, sources)
            check.same = facts | {"dtype": x.dtype.name, "targets are the sources": x is y, "on a GPU": on_gpu}
        return self._problem(x, y, on_gpu)

    def _problem(self, x: Array, y: Array, on_gpu: bool) -> BrickProblem:
        totals = agreement.totals(self.comm, x.shape[1], y.shape[1])
        corners = self._corners(x, y) if self.options.box is None else None
        xp = spaces.array_module(self.space)
        with agreed(self.comm, "placing points in the box"):
            clouds = (x, y) if corners is None else (corners, corners)
            geometry = checks.place(self.options, self.kernel, self.names, *clouds)
            problem = EwaldProblem.of(geometry, self.names[:2], x, y, on_gpu, xp, False)
        reach = tuple(self.comm.allreduce(np.array(problem.reach, np.float64), "max").tolist())
        fields = {name: getattr(problem, name) for name in EwaldProblem.__dataclass_fields__}
        return BrickProblem(**fields | {"reach": reach}, totals=totals)

    def _corners(self, x: Array, y: Array) -> np.ndarray:
        """Return the lowest and highest coordinates (3, 2) of all points; without points an array (3, 0)."""
        ends = [a for cloud in (x, y) if cloud.shape[1] for a in (cloud.min(axis=1), cloud.max(axis=1))]
        all_ends = [end for rank_ends in self.comm.allgather([arrays.to_host(a) for a in ends]) for end in rank_ends]
        if not all_ends:
            return np.empty((3, 0), x.dtype)
        return np.stack([np.min(all_ends, axis=0), np.max(all_ends, axis=0)], axis=1)

    def moved(
        self, arguments: Arguments, old: EwaldProblem, full: Callable[[], EwaldProblem], points: tuple[Any, Any],
        box: Any,
    ) -> tuple[Self, EwaldProblem]:  # fmt: skip
        """Check points that a plan moves to; None means that they stay."""
        method, (trg, src), (targets, sources) = self, self.names[:2], points
        facts = {"box": repr(box), trg: targets is not None, src: sources is not None, "one array": targets is sources}
        with agreed(self.comm, "checking points", facts):
            if box is not None:
                method = replace(self, options=EwaldOptions.resolve(self.options, box=box))
            axes = [axis for axis, is_periodic in enumerate(method.options.periodic) if not is_periodic]
            y = None if sources is None else arguments.points(src, sources, method.options.box, axes)
            is_same = targets is sources
            x = y if is_same else None if targets is None else arguments.points(trg, targets, method.options.box, axes)
        if box is None and self.options.box is not None:
            return self, self._in_box(old, full(), x, y)
        if x is None or y is None:
            full_problem = full()
            x, y = (
                full_problem.original(a) if b is None else b
                for a, b in zip((full_problem.targets, full_problem.sources), (x, y), strict=True)
            )
        return method, method._problem(x, y, old.on_gpu)

    def _in_box(self, old: BrickProblem, full_problem: EwaldProblem, x: Array | None, y: Array | None) -> BrickProblem:
        """Return the problem of points in the plan's box; None means that points stay."""
        xp, place, names = spaces.array_module(self.space), old.geometry, self.names[:2]
        points, reach = [full_problem.targets, full_problem.sources], list(old.reach)
        with agreed(self.comm, "placing points in the box"):
            for i, (name, a) in enumerate(zip(names, (x, y), strict=True)):
                if a is not None:
                    points[i], reach[i] = place.points(name, xp.asarray(a))
        if x is not None and x is y:
            points[0] = points[1]
        counts = tuple(a.shape[1] for a in points)
        totals = agreement.totals(self.comm, *counts)
        reach = tuple(self.comm.allreduce(np.array(reach, np.float64), "max").tolist())
        is_same = points[0] is points[1]
        new = {"n_targets": counts[0], "n_sources": counts[1], "same": is_same, "totals": totals, "reach": reach}
        return replace(old, targets=points[0], sources=points[1], **new)

    def in_place(self, old: EwaldProblem, new: EwaldProblem) -> bool:
        """Return False: after a move each brick has other points, so arrays are not reused."""
        return False

    def kept(self, old: BrickProblem, new: BrickProblem, choice: EwaldChoice) -> EwaldChoice | None:
        """Return the parameters if the box and the numbers of points are the same, else None."""
        return choice if old.totals == new.totals and old.geometry == new.geometry else None

    # Parameters -------------------------------------------------------------------------------------------------------
    def choose(self, problem: BrickProblem) -> EwaldChoice:
        """Choose parameters on the first rank for all, by the models or, with ``tune=True``, by measurement."""
        options, space, comm = self.options, self.space, self.comm
        whole_problem = replace(problem, n_targets=problem.totals[0], n_sources=problem.totals[1])
        measurement = self._arrangement(problem)
        with agreed(comm, "choosing parameters"):
            sum_question = replace(question(self.kernel, options, space, whole_problem, False), arrangement=measurement)
        known_network, result = network.kept(), None
        work = partial(cutoff.parameters, sum_question, space, comm.size, known_network, options.exchange_bits)
        parameters, bits = ranks.of_first(comm, "choosing parameters", work)
        if options.tune and not problem.empty:
            facts = comm.size, len(comm.node), *((known_network.alpha, known_network.beta) if known_network else ())
            changes = {"comm": comm, "own": problem.n_sources, "model": parameters, "about": facts}
            result = tuning.tune(replace(self.bench(problem, sum_question), **changes))
            parameters, options = result.choice.parameters, replace(options, **result.choice.shape)
        return BrickChoice(
            sum_question,
            parameters,
            variants.choose(space, problem.dtype.name, options, parameters),
            result,
            bits=bits,
        )

    def choice(
        self, problem: BrickProblem, sum_question: Question, parameters: Parameters, selection: Variants
    ) -> BrickChoice:
        """Return the choice with given parameters and variants."""
        bits = wire.at_most(self.options.exchange_bits or 64, parameters.far)
        return BrickChoice(sum_question, parameters, selection, bits=bits)

    def _arrangement(self, problem: BrickProblem) -> Arrangement:
        """Measure all points by samples, the same as one process takes, in the order of ranks."""
        y = self._sample(problem.sources, problem.totals[1], problem.totals[1])
        x = y if problem.same else self._sample(problem.targets, *problem.totals)
        return Arrangement.of_samples(x, y, *problem.totals, problem.geometry.box)

    def _sample(self, x: Array, n: int, n_sources: int) -> np.ndarray:
        index, first = arrangement.sampled(n, n_sources), self.first(x.shape[1])
        if index is not None:
            index = index[(index >= first) & (index < first + x.shape[1])] - first
        return np.concatenate(self.comm.allgather(arrangement.sample(x, index)), axis=1)

    def first(self, n: int) -> int:
        """Return the global number of this rank's first entry, where it has n."""
        return int(sum(self.comm.allgather(n)[: self.comm.rank]))

    # Stages -----------------------------------------------------------------------------------------------------------
    def arrange(
        self, problem: BrickProblem, choice: BrickChoice, times: WallTime
    ) -> tuple[BrickChoice, BrickStructure]:
        """Cut the grid into bricks, and bring points to them."""
        p = choice.parameters
        with times.phase("sort"):
            old = choice.division
            new_division = self.divided(p, problem, old if old is not None and old.p == p else None)
            structure = BrickStructure.of(self.comm, new_division, problem, self.space)
        with times.phase("cell_list"), agreed(self.comm, "sorting points"):
            brick = structure.division.brick(self.comm.rank)
            if brick is not None:
                ends = (structure.targets, structure.sources, self.space, choice.variants)
                structure.points = Points(p, *ends, brick, structure.around)
                structure.points.wrapped_from(max(problem.reach))
        return replace(choice, division=new_division), structure

    def divided(self, p: Parameters, problem: BrickProblem, old: Division | None) -> Division:
        """Return the bricks, cut by the work that the models predict; old ones are kept while they are good."""
        known_network = network.kept()
        work = partial(Seconds.of, p, problem.totals, self.space, known_network.beta if known_network else None)
        seconds = ranks.of_first(self.comm, "predicting work", work)
        return cutting.divided(self.comm, p, seconds, (problem.targets, problem.sources), problem.totals, old)

    def place(
        self, problem: BrickProblem, choice: BrickChoice, structure: BrickStructure, rhs: int, times: WallTime
    ) -> BrickSum:
        """Compile, verify and place the stages of a brick for a number of right-hand sides."""
        share, stages = structure.share(self.space, choice.bits), None
        with times.phase("cell_list"), agreed(self.comm, "compiling and allocating"):
            if share is not None:
                steps = self._steps(problem, choice, structure, rhs, share)
                stages = Stages(steps, structure.points)
            brick_sum = BrickSum(structure, stages, share, choice.parameters.kernel, problem.power)
            brick_sum.take_room(spaces.array_module(self.space), rhs, problem.dtype)
        return brick_sum

    def _steps(
        self, problem: BrickProblem, choice: BrickChoice, structure: BrickStructure, rhs: int, share: Share
    ) -> SumSteps:
        p, options = choice.parameters, replace(self.options, layout="dn")
        steps = SumSteps(p, choice.variants, structure.counts, self.space, options, rhs, problem.geometry, share)
        return self.ready(steps, choice, rhs)

    def most_rhs(self, choice: BrickChoice, structure: BrickStructure) -> int:
        """Return the largest number of right-hand sides that pass at once, on any rank."""
        p = choice.parameters
        grid = math.prod(p.grid) * p.kernel.components * np.dtype(p.far).itemsize // structure.division.size
        return checks.most_rhs(self.kernel, grid)

    def retire(self, *facts: Any) -> None:
        """Keep nothing for other sums."""

    # Queries ----------------------------------------------------------------------------------------------------------
    def predict(
        self, problem: BrickProblem, choice: BrickChoice, structure: BrickStructure | None, memory: int
    ) -> Prediction:
        """Predict the time of a call without its exchanges: an even share of the whole sum."""
        whole = replace(problem, n_targets=problem.totals[0], n_sources=problem.totals[1])
        phases = super().predict(whole, choice, structure, memory).phases
        bricks = self.comm.size if structure is None else structure.division.size
        return Prediction({part: seconds / bricks for part, seconds in phases.items()}, memory)

    def inspect(self, problem: BrickProblem, density: Density) -> None:
        """Warn on the first rank of a net charge or force in a box that is periodic in all directions."""
        if self.served or self.kernel.net is None:
            return
        own_net = checks.NetDensity.of(self.kernel, density.values)
        values, largest = self.comm.allreduce(own_net.values), float(self.comm.allreduce(own_net.largest, "max"))
        if self.comm.rank == 0:
            net_density = checks.NetDensity(values, largest, problem.totals[1])
            checks.warn_of_net(self.kernel, problem.geometry.periodicity, problem.dtype, net_density)

    def direct(self, targets: Array, sources: Array, density: Array, normals: Array | None) -> np.ndarray:
        """Return direct sums ``(rhs, components, Nt)`` of all ranks' sources."""
        return all_pairs.direct_sums(self.kernel, targets, sources, density, normals, self.space, self.comm)


def refuse(options: Any) -> None:
    """Raise for options that sums over ranks do not have."""
    for name, value in (("graph", False), ("fft_type", "R2C")):
        if getattr(options, name) not in (value, "AUTO"):
            raise NotImplementedError(f"{name} is {getattr(options, name)!r} with comm; expected {value!r} over ranks.")
