"""`parki model ewald --ranks`: work, bytes, messages and times of an Ewald sum over ranks, by phase, on a network.

Work is that of one machine's model for the whole sum, shared evenly; bytes are those of
`parki.distributed.bricks.volumes`, for points that are uniform at random.  Messages take α each and their bytes over β.
Exchanges of the grid are hidden behind the near field, as far as that lasts; densities, results and ghosts are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from parki.distributed.bricks import cutoff, division, volumes
from parki.distributed.bricks.volumes import Volumes
from parki.ewald.choice.question import Question
from parki.perfmodels import model
from parki.perfmodels.machine import Machine
from parki.perfmodels.model import Model
from parki.perfmodels.network import Network

AROUND = 8  # neighbours of a brick that is cut along two axes; two along one
HIDDEN = ("ghost_grid", "exchange")


class TooManyRanks(ValueError):
    """More ranks than a grid has bricks for."""


@dataclass(frozen=True)
class Shared:
    """A predicted sum over ranks.

    Attributes
    ----------
    whole : Model
        Of all points on one machine.
    ranks : int
    shape : tuple of int
        Bricks along y and z.
    volumes : Volumes
        Bytes of a rank.
    messages : dict of int
        Of a rank, by phase.
    network : Network
    """

    whole: Model
    ranks: int
    shape: tuple[int, int]
    volumes: Volumes
    messages: dict[str, int]
    network: Network

    @property
    def work(self) -> float:
        """Return the seconds of a rank's own work."""
        return self.whole.seconds / self.ranks

    def exchanged(self, *names: str) -> float:
        """Return the seconds of messages of some phases, by default of all."""
        sent = self.volumes._asdict()
        return sum(self.network.seconds(self.messages[name], sent[name]) for name in names or sent)

    @property
    def apart(self) -> float:
        """Return the seconds of a call, one phase after the other."""
        return self.work + self.exchanged()

    @property
    def seconds(self) -> float:
        """Return the seconds of a call that exchanges the grid while the near field is summed."""
        near = self.whole.phases["p2p"].bound.seconds / self.ranks
        hidden = min(near, self.exchanged(*HIDDEN))
        return self.apart - hidden


def predict(question: Question, machine: Machine, network: Network, ranks: int) -> Shared:
    """Predict a sum over ranks, each a machine of its own, with the cutoff that is best on this network."""
    first = shared(question, machine, network, ranks)
    if question.rc is not None:
        return first
    cutoffs = cutoff.longer(first.whole.parameters)
    others = [shared(replace(question, rc=rc), machine, network, ranks) for rc in cutoffs]
    return min([first, *others], key=lambda one: one.seconds)


def shared(question: Question, machine: Machine, network: Network, ranks: int) -> Shared:
    """Predict a sum over ranks with the parameters of one."""
    whole = model.predict(question, machine)
    p, n = whole.parameters, question.n_sources
    shape = division.shape(p, ranks, n)
    if math.prod(shape) < ranks:
        raise TooManyRanks(f"--ranks {ranks}: expected at most {math.prod(shape)}, as many as the grid has bricks for")
    around = AROUND if min(shape) > 1 else 2 * (ranks > 1)
    others = ranks - 1
    messages = {"sort": 2 * others, "ghost_source": around, "ghost_grid": 2 * around, "exchange": 2 * others}
    return Shared(whole, ranks, shape, volumes.by_formula(p, shape, n), messages, network)


def strong(question: Question, machine: Machine, network: Network, most: int) -> Iterator[Shared]:
    """Yield predictions of one sum over 1, 2, 4, … ranks, as many as it has bricks for."""
    for ranks in _doubled(most):
        try:
            yield predict(question, machine, network, ranks)
        except TooManyRanks:
            return


def weak(question: Question, machine: Machine, network: Network, most: int) -> Iterator[Shared]:
    """Yield predictions of sums with as many points a rank, in boxes that grow with them."""
    for ranks in _doubled(most):
        n, box = question.n_sources * ranks, tuple(side * ranks ** (1 / 3) for side in question.box)
        yield predict(replace(question, n_targets=n, n_sources=n, box=box), machine, network, ranks)


def _doubled(most: int) -> list[int]:
    return sorted({*(2**i for i in range(most.bit_length())), most})


def text(question: Question, machine: Machine, network: Network, ranks: int) -> str:
    """Return the tables of weak and strong scaling, and the phases of the largest weak one."""
    name, n = question.kernel.name, question.n_sources
    lines = [f"{name}, tolerance {question.tolerance:g}, on ranks of {machine.name}, {network.name}: {network}"]
    rows = list(weak(question, machine, network, ranks))
    lines += ["", f"weak: {n:,} points a rank", *_table(rows, [rows[0].work] * len(rows))]
    last = rows[-1]
    rows = list(strong(question, machine, network, ranks))
    lines += ["", f"strong: {n:,} points", *_table(rows, [rows[0].work / row.ranks for row in rows])]
    lines += [
        "",
        f"{last.ranks} ranks, {n:,} points each: bricks {last.shape[0]} × {last.shape[1]} along y and z, a rank",
    ]
    for name, nbytes in last.volumes._asdict().items():
        said = f"{nbytes / 1e6:>10.2f} MB in {last.messages[name]:>4} messages"
        lines.append(f"  {name:<14}{said}{1e3 * last.exchanged(name):>10.3f} ms")
    for name, phase in last.whole.phases.items():
        lines.append(f"  {name:<14}{1e3 * phase.bound.seconds / last.ranks:>40.3f} ms")
    return "\n".join(lines)


def _table(rows: list[Shared], ideal: list[float]) -> list[str]:
    lines = [f"{'ranks':>7}{'grid':>18}{'work':>12}{'messages':>12}{'call':>12}{'efficiency':>12}{'apart':>8}"]
    for row, best in zip(rows, ideal, strict=True):
        grid = "×".join(str(m) for m in row.whole.parameters.grid)
        times = "".join(f"{1e3 * s:>9.2f} ms" for s in (row.work, row.exchanged(), row.seconds))
        lines.append(f"{row.ranks:>7}{grid:>18}{times}{best / row.seconds:>12.3f}{best / row.apart:>8.3f}")
    return lines
