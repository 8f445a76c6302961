"""Model of an Ewald sum over ranks: work, bytes, messages and times by phase, on a network.

Work is that of one machine's model for the whole sum, shared evenly; bytes are those of
`parki.distributed.bricks.volumes`, for points that are uniform at random.  Messages take α each and their bytes over β.
Exchanges of the grid are hidden behind the near field while it lasts; densities, results and ghosts are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from parki.distributed.bricks import cutoff, division, volumes, wire
from parki.distributed.bricks.volumes import Volumes
from parki.ewald.choice.question import Question
from parki.ewald.stages import planes
from parki.perfmodels.machine import Machine
from parki.perfmodels.models import ewald
from parki.perfmodels.models.ewald import Model
from parki.perfmodels.network import Network

AROUND = 8  # neighbours of a brick of a box cut along two axes; a box cut along one axis gives two
HIDDEN = ("ghost_grid", "exchange")


class Ways(NamedTuple):
    """Ways to shorten exchanges, each used or not: see `PARTS`."""

    hidden: bool = True
    tuned: bool = True
    disc: bool = True
    fewer: bool = True
    placed: bool = False


EVERY = Ways()
#: Ways added one after the other, by the title of their line.
PARTS = {
    "one rank's parameters, no overlap": Ways(False, False, False, False),
    "exchanges beside the near field": Ways(True, False, False, False),
    "a longer cutoff": Ways(True, True, False, False),
    "slabs that send a disc of modes": Ways(True, True, True, False),
    "fewer bits of a number": EVERY,
    "points kept where the plan put them": Ways(placed=True),
}


class TooManyRanks(ValueError):
    """More ranks than a grid has bricks for."""


@dataclass(frozen=True)
class Shared:
    """A predicted sum over ranks.

    Attributes
    ----------
    question : Question
    whole : Model
        Model of all points on one machine.
    ranks : int
    shape : tuple of int
        Bricks along y and z.
    volumes : Volumes
        Bytes of a rank.
    messages : dict of int
        Messages of a rank, by phase.
    network : Network
    memory : float
        Bytes of a rank.
    ways : Ways
    """

    question: Question
    whole: Model
    ranks: int
    shape: tuple[int, int]
    volumes: Volumes
    messages: dict[str, int]
    network: Network
    memory: float
    ways: Ways

    @property
    def work(self) -> float:
        """Return the seconds of a rank's own work."""
        return self.whole.seconds / self.ranks

    def exchanged(self, *names: str) -> float:
        """Return the seconds of messages of some phases, by default of all."""
        nbytes = self.volumes._asdict()
        if self.ways.placed:
            del nbytes["sort"]
        return sum(self.network.seconds(self.messages[name], nbytes[name]) for name in names or nbytes)

    @property
    def apart(self) -> float:
        """Return the seconds of a call, one phase after the other."""
        return self.work + self.exchanged()

    @property
    def seconds(self) -> float:
        """Return the seconds of a call, which exchanges the grid while the near field is summed."""
        if not self.ways.hidden:
            return self.apart
        near_seconds = self.whole.phases["p2p"].bound.seconds / self.ranks
        overlap = min(near_seconds, self.exchanged(*HIDDEN))
        return self.apart - overlap


def predict(question: Question, machine: Machine, network: Network, ranks: int, ways: Ways = EVERY) -> Shared:
    """Predict a sum over ranks, each a machine of its own, with the cutoff that is best on this network."""
    first = shared(question, machine, network, ranks, ways)
    if question.rc is not None or not ways.tuned:
        return first
    cutoffs = cutoff.longer(first.whole.parameters)
    alternatives = [shared(replace(question, rc=rc), machine, network, ranks, ways) for rc in cutoffs]
    return min([first, *alternatives], key=lambda candidate: candidate.seconds)


def shared(question: Question, machine: Machine, network: Network, ranks: int, ways: Ways = EVERY) -> Shared:
    """Predict a sum over ranks with the parameters of one machine."""
    serial = ewald.predict(question, machine)
    p, n = serial.parameters, question.n_sources
    shape = division.shape(p, ranks, n, ways.disc)
    if math.prod(shape) < ranks:
        raise TooManyRanks(f"--ranks {ranks}: expected at most {math.prod(shape)}, as many as the grid has bricks for")
    neighbours = AROUND if min(shape) > 1 else 2 * (ranks > 1)
    peers = ranks - 1
    messages = {"sort": 2 * peers, "ghost_source": neighbours, "ghost_grid": 2 * neighbours, "exchange": 2 * peers}
    bits = wire.at_most(cutoff.enough(question) if ways.fewer else 64, p.far)
    traffic = volumes.by_formula(p, shape, n, 1, bits, ways.disc)
    batch = planes.BATCH if machine.is_gpu else planes.CACHE
    return Shared(
        question, serial, ranks, shape, traffic, messages, network, volumes.memory(p, shape, n, 1, bits, batch), ways
    )


def strong(question: Question, machine: Machine, network: Network, largest: int) -> Iterator[Shared]:
    """Yield predictions of one sum over 1, 2, 4, … ranks, up to as many as its grid has bricks for."""
    for ranks in _doubled(largest):
        try:
            yield predict(question, machine, network, ranks)
        except TooManyRanks:
            return


def weak(question: Question, machine: Machine, network: Network, largest: int) -> Iterator[Shared]:
    """Yield predictions of sums with a fixed number of points a rank, in boxes that grow with the points."""
    for ranks in _doubled(largest):
        n, box = question.n_sources * ranks, tuple(side * ranks ** (1 / 3) for side in question.box)
        yield predict(replace(question, n_targets=n, n_sources=n, box=box), machine, network, ranks)


def _doubled(largest: int) -> list[int]:
    return sorted({*(2**i for i in range(largest.bit_length())), largest})
