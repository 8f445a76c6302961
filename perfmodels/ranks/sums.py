"""Predicted sums of treecodes and fast multipole methods over ranks: times of a call and of a plan, and tables.

A call takes max over ranks of [sort + max(near, exchange) + rest].  `sort` sends densities to the ranks that have their
points, and results back; a caller that keeps points where the plan put them needs none.  `near`, the lists of particles
with the rank's own sources, is summed while values and ghosts are exchanged; `rest` comes before or after.  The
exchange of every rank is taken to last as long as that of the rank that waits longest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.perfmodels.machine import Machine
from parki.perfmodels.network import Network
from parki.perfmodels.ranks import planning

Floats = NDArray[np.float64]
MOVED = 3  # passes of a byte of a message through memory on each side: read, written, read


@dataclass(frozen=True)
class Sent:
    """Bytes and messages of the rank that has most of them, and the mean bytes, in one phase of a call."""

    nbytes: float
    messages: float
    mean: float


@dataclass(frozen=True)
class RankedSum:
    """A predicted sum over ranks.

    Attributes
    ----------
    ranks, n : int
        Number of ranks, and points of all ranks.
    whole : float
        Seconds of a call on one machine.
    near, rest : arrays (P,)
        Seconds of each rank's work beside the exchange, and of all other work; or of one rank that stands for all.
    exchange : float
        Seconds of the exchange.
    sent : dict of Sent
        Messages by phase: ``sort``, and the phases of the exchange.
    scheme : str
        Way of exchanging values.
    imbalance : float
        Largest over mean work of a rank, by the work that the tree was cut by.
    partners : int
        Most ranks that one rank sends to or receives from in a call, without ``sort``.
    plan, alone : dict of float
        Seconds of the parts of making the plan (`parki.perfmodels.ranks.planning`), over ranks and in one process.
    machine, network : Machine, Network
    """

    ranks: int
    n: int
    whole: float
    near: Floats
    rest: Floats
    exchange: float
    sent: Mapping[str, Sent]
    scheme: str
    imbalance: float
    partners: int
    plan: Mapping[str, float]
    alone: Mapping[str, float]
    machine: Machine
    network: Network

    @property
    def sort(self) -> float:
        """Return the seconds of sending densities to ranks and results back."""
        traffic = self.sent["sort"]
        return self.network.seconds(traffic.messages, traffic.nbytes)

    @property
    def handled(self) -> float:
        """Return the seconds of gathering messages of the exchange and putting them to their places."""
        nbytes = sum(traffic.nbytes for name, traffic in self.sent.items() if name != "sort")
        return MOVED * nbytes / self.machine.bandwidth["dram_all"]

    def seconds(self, *, placed: bool = True, hidden: bool = True) -> float:
        """Return the seconds of a call.

        Parameters
        ----------
        placed : bool
            Whether the caller keeps points where the plan put them.
        hidden : bool
            Whether lists of own particles are summed while values are exchanged.
        """
        overlap = np.maximum(self.near, self.exchange) if hidden else self.near + self.exchange
        agreement = planning.agreement(self.network, self.ranks)
        return float((overlap + self.rest).max()) + self.handled + agreement + (0.0 if placed else self.sort)

    def efficiency(self, *, placed: bool = True, hidden: bool = True) -> float:
        """Return the efficiency of a call: its time on one machine over ranks times its time on the ranks."""
        return self.whole / (self.ranks * self.seconds(placed=placed, hidden=hidden))

    @property
    def with_plan(self) -> float:
        """Return the efficiency of making a plan and one call whose densities come from anywhere."""
        serial = self.whole + sum(self.alone.values())
        return serial / (self.ranks * (self.seconds(placed=False) + sum(self.plan.values())))


def sorted_to(ranks: int, points: float, n: float, components: int) -> Sent:
    """Return the messages that bring densities to ranks and results back, in numbers of 8 bytes."""
    share = 8.0 * components * (1 - 1 / ranks)
    return Sent(share * points, 2.0 * (ranks - 1), share * n / ranks)


def doubled(largest: int, times: int = 2) -> list[int]:
    """Return the powers of `times` that are at most `largest`, and `largest`."""
    steps = range(int(math.log(largest, times) + 1e-9) + 1)
    return sorted({*(times**k for k in steps), largest})


def table(rows: Sequence[RankedSum], first: float | None = None) -> list[str]:
    """Return a line for each sum over ranks.

    Parameters
    ----------
    rows : sequence of RankedSum
    first : float, optional
        Seconds of one rank's call, for weak scaling; the last column is this time over that of each call.
    """
    head = (
        f"{'ranks':>6}{'points':>12}{'work':>12}{'exchange':>12}{'call':>12}{'efficiency':>11}{'apart':>7}{'sorted':>8}"
    )
    head += f"{'imbalance':>11}{'partners':>10}{'MB':>8}{'plan':>11}{'with plan':>11}"
    lines = [head + (f"{'of one':>8}" if first else "")]
    for row in rows:
        nbytes = sum(traffic.nbytes for name, traffic in row.sent.items() if name != "sort")
        times = "".join(f"{1e3 * s:>9.2f} ms" for s in (row.whole / row.ranks, row.exchange, row.seconds()))
        shares = f"{row.efficiency():>11.3f}{row.efficiency(hidden=False):>7.3f}{row.efficiency(placed=False):>8.3f}"
        plan = f"{sum(row.plan.values()):>9.3f} s{row.with_plan:>11.3f}"
        line = (
            f"{row.ranks:>6}{row.n:>12.5g}{times}{shares}{row.imbalance:>11.3f}{row.partners:>10}{nbytes / 1e6:>8.2f}"
        )
        lines.append(line + plan + (f"{first / row.seconds():>8.3f}" if first else ""))
    return lines


def parts(row: RankedSum) -> list[str]:
    """Return lines on the messages of a rank and on the parts of its plan."""
    lines = [f"{row.ranks} ranks, {row.n:.5g} points: a rank's messages, most and mean; expansions by {row.scheme}"]
    for name, traffic in row.sent.items():
        seconds = row.network.seconds(traffic.messages, traffic.nbytes)
        traffic_text = (
            f"{traffic.nbytes / 1e6:>10.3f} MB ({traffic.mean / 1e6:.3f}) in {traffic.messages:>5.0f} messages"
        )
        lines.append(f"  {name:<12}{traffic_text}{1e3 * seconds:>10.3f} ms")
    lines.append("making the plan, on one core a rank: seconds, and of one process")
    for name, seconds in row.plan.items():
        lines.append(f"  {name:<12}{seconds:>10.4f} s{row.alone[name]:>12.4f} s")
    return lines


NOTES = (
    "efficiency: the sum's time on one machine over ranks times that of a call, points kept where the plan put them;",
    "apart: nothing hidden; sorted: densities and results come and go; with plan: with its making, on one core a rank.",
)
