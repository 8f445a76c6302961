"""Points of an Ewald sum over ranks: brought to the ranks of their bricks, with ghosts around; and sums over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from parki import scaling
from parki.arrays import Array, module_of
from parki.distributed.bricks.division import Division
from parki.distributed.bricks.exchange import GridExchanges, total
from parki.distributed.bricks.ghosts import ghosts
from parki.distributed.comm import Comm
from parki.distributed.delivery import NOTHING, Delivery, to_owners
from parki.distributed.overlap import Meanwhile
from parki.engine import Space
from parki.ewald.problem import EwaldProblem
from parki.ewald.report import WallTime
from parki.ewald.stages.brick import Share
from parki.ewald.stages.points import Points
from parki.ewald.stages.sums import Stages
from parki.scaling import Powers


@dataclass(eq=False)
class BrickStructure:
    """Points of a rank's brick.

    Attributes
    ----------
    comm : Comm
    division : Division
    problem : EwaldProblem
        Problem with the caller's points of this rank.
    to_targets, to_sources : Delivery
        Deliveries of the caller's points to the ranks of their bricks.
    to_ghosts : Delivery
        Delivery of a brick's sources to the bricks around.
    targets, sources : array (3, …)
        Points of the brick; one array if they are the same points.
    around : array (3, …)
        Ghosts.
    """

    comm: Comm
    division: Division
    problem: EwaldProblem
    to_targets: Delivery
    to_sources: Delivery
    to_ghosts: Delivery
    targets: Array
    sources: Array
    around: Array
    points: Points | None = None

    @classmethod
    def of(cls, comm: Comm, division: Division, problem: EwaldProblem, space: Space) -> BrickStructure:
        """Bring points to the ranks of their bricks; collective."""
        to_sources = to_owners(comm, division.owners(problem.sources), "sort", space)
        sources = to_sources.there(problem.sources)
        source_copy = problem.sources.copy()  # the caller's array may change
        problem = problem.with_points(source_copy if problem.same else problem.targets.copy(), source_copy)
        to_targets, targets = to_sources, sources
        if not problem.same:
            to_targets = to_owners(comm, division.owners(problem.targets), "sort", space)
            targets = to_targets.there(problem.targets)
        index, places = ghosts(division, comm.rank, sources)
        to_ghosts, ghost_points = Delivery.known_by(comm, index, places, sources[:, :0].T, "ghost_source", space)
        ghost_points = module_of(sources).ascontiguousarray(ghost_points.T)
        return cls(comm, division, problem, to_targets, to_sources, to_ghosts, targets, sources, ghost_points)

    def share(self, space: Space, bits: int) -> Share | None:
        """Return the brick, its exchanges and number of ghosts; None for a rank without a brick.

        Numbers of the far field have `bits` bits in messages.
        """
        brick = self.division.brick(self.comm.rank)
        if brick is None or self.points is None:
            return None
        exchanges = GridExchanges(self.division, self.comm, space, self.points.tiny, bits)
        return Share(brick, exchanges, self.around.shape[1])

    @property
    def counts(self) -> tuple[int, int, bool]:
        """Return the numbers of targets and sources of the brick, and whether they are the same points."""
        return self.targets.shape[1], self.sources.shape[1], self.problem.same

    @property
    def arrays(self) -> list[Array]:
        """Return every array of the points."""
        own_arrays = [self.targets, self.sources, self.around, *self.problem.arrays]
        own_arrays += [a for delivery in (self.to_targets, self.to_sources, self.to_ghosts) for a in delivery.arrays]
        return [*own_arrays, *(self.points.arrays if self.points is not None else [])]

    def originals(self) -> tuple[Array, Array]:
        """Return the caller's targets and sources of this rank, one array if they are the same."""
        return self.problem.targets, self.problem.sources


class BrickSum:
    """Sums over the points of all bricks.

    Parameters
    ----------
    structure : BrickStructure
    stages : Stages or None
        Stages of the brick; None for a rank without one.
    share : Share or None
    kernel : Kernel
    power : int
        Power of two of the stages, as in `BrickStructure.problem`.
    """

    def __init__(
        self, structure: BrickStructure, stages: Stages | None, share: Share | None, kernel: Any, power: int
    ) -> None:
        self._share = share
        self._structure, self.stages, self._kernel, self._power = structure, stages, kernel, power
        self._room: tuple[Array, Array]

    @property
    def placed(self) -> Any:
        """Return the placed steps of the brick."""
        return self.stages.placed if self.stages is not None else NOTHING

    @property
    def beside(self) -> Meanwhile | None:
        """Return the near field whose parts are summed while messages are under way."""
        return None if self._share is None else self._share.others.meanwhile

    def run(self, dens: Array, normals: Array | None, out: Array, times: WallTime) -> None:
        """Sum densities ``(rhs, components, N)`` with normals ``(3, N)`` into `out` ``(rhs, components, Nt)``."""
        structure, kernel = self._structure, self._kernel
        old_traffic = structure.comm.traffic.copy()
        comm, rhs = structure.comm, len(dens)
        with times.phase("agree"):
            powers = self._powers(dens, normals)
        n, ghosts = structure.to_sources.received, structure.to_ghosts.received
        strengths, u = self._room
        with times.phase("sort"):
            densities = [dens.reshape(rhs * kernel.dens, dens.shape[-1]), *([] if normals is None else [normals])]
            structure.to_sources.there(*densities, out=strengths[:, :n])
        with times.phase("ghost_source"):
            structure.to_ghosts.there(strengths[:, :n], out=strengths[:, n:])
        if self.stages is not None:
            overlap = self.beside
            if overlap is not None:
                overlap.reset()
            values = strengths[: rhs * kernel.dens].reshape(rhs, kernel.dens, n + ghosts)
            self.stages.run(values, None if normals is None else strengths[-3:], u, times, powers)
            for phase, seconds in (overlap.worked if overlap is not None else {}).items():
                times.shift(seconds, phase, "p2p.kernel")
        elif kernel.mean:
            total(comm, np.zeros(rhs * kernel.fields))
        with times.phase("sort"):
            out[...] = structure.to_targets.back(u)
        times.sent(comm.traffic, old_traffic)

    def take_room(self, xp: Any, rhs: int, dtype: np.dtype) -> None:
        """Allocate memory for densities and normals of a brick's sources and ghosts, and for its results."""
        kernel, structure = self._kernel, self._structure
        n = structure.to_sources.received + structure.to_ghosts.received
        strengths = xp.empty((rhs * kernel.dens + 3 * kernel.normals, n), dtype)
        self._room = strengths, xp.zeros((rhs, kernel.result, structure.targets.shape[1]), dtype)

    def _powers(self, dens: Array, normals: Array | None) -> Powers:
        """Return the powers of two by which all ranks multiply."""
        sizes = scaling.largest(dens).ravel()
        axes = np.array([] if normals is None else [scaling.largest(normals).max()])
        maxima = self._structure.comm.allreduce(np.concatenate([sizes, axes]), "max")
        largest = maxima[: sizes.size].reshape(dens.shape[:2])
        steep = None if normals is None else float(maxima[-1])
        return Powers.of_largest(self._kernel.law, self._power, largest, steep, self._kernel.result)
