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
        there = to_owners(comm, division.owners(problem.sources), "sort", space)
        sources = there.there(problem.sources)
        kept = problem.sources.copy()  # the caller's array may change
        problem = problem.with_points(kept if problem.same else problem.targets.copy(), kept)
        back, targets = there, sources
        if not problem.same:
            back = to_owners(comm, division.owners(problem.targets), "sort", space)
            targets = back.there(problem.targets)
        index, places = ghosts(division, comm.rank, sources)
        to_ghosts, around = Delivery.known_by(comm, index, places, sources[:, :0].T, "ghost_source", space)
        around = module_of(sources).ascontiguousarray(around.T)
        return cls(comm, division, problem, back, there, to_ghosts, targets, sources, around)

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
        own = [self.targets, self.sources, self.around, *self.problem.arrays]
        own += [a for to in (self.to_targets, self.to_sources, self.to_ghosts) for a in to.arrays]
        return [*own, *(self.points.arrays if self.points is not None else [])]

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
        before = structure.comm.traffic.copy()
        comm, rhs = structure.comm, len(dens)
        with times.phase("agree"):
            powers = self._powers(dens, normals)
        n, ghosts = structure.to_sources.received, structure.to_ghosts.received
        own, u = self._room
        with times.phase("sort"):
            given = [dens.reshape(rhs * kernel.dens, dens.shape[-1]), *([] if normals is None else [normals])]
            structure.to_sources.there(*given, out=own[:, :n])
        with times.phase("ghost_source"):
            structure.to_ghosts.there(own[:, :n], out=own[:, n:])
        if self.stages is not None:
            beside = self.beside
            if beside is not None:
                beside.reset()
            values = own[: rhs * kernel.dens].reshape(rhs, kernel.dens, n + ghosts)
            self.stages.run(values, None if normals is None else own[-3:], u, times, powers)
            for phase, seconds in (beside.worked if beside is not None else {}).items():
                times.shift(seconds, phase, "p2p.kernel")
        elif kernel.mean:
            total(comm, np.zeros(rhs * kernel.fields))
        with times.phase("sort"):
            out[...] = structure.to_targets.back(u)
        times.sent(comm.traffic, before)

    def take_room(self, xp: Any, rhs: int, dtype: np.dtype) -> None:
        """Allocate memory for densities and normals of a brick's sources and ghosts, and for its results."""
        kernel, structure = self._kernel, self._structure
        n = structure.to_sources.received + structure.to_ghosts.received
        own = xp.empty((rhs * kernel.dens + 3 * kernel.normals, n), dtype)
        self._room = own, xp.zeros((rhs, kernel.result, structure.targets.shape[1]), dtype)

    def _powers(self, dens: Array, normals: Array | None) -> Powers:
        """Return the powers of two by which all ranks multiply."""
        sizes = scaling.largest(dens).ravel()
        axes = np.array([] if normals is None else [scaling.largest(normals).max()])
        every = self._structure.comm.allreduce(np.concatenate([sizes, axes]), "max")
        largest = every[: sizes.size].reshape(dens.shape[:2])
        steep = None if normals is None else float(every[-1])
        return Powers.of_largest(self._kernel.law, self._power, largest, steep, self._kernel.result)
