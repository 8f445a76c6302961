"""Choice for a network: a longer cutoff than on one rank, as fewer points of the grid travel, and single precision."""

from __future__ import annotations

from dataclasses import replace

from parki.distributed.bricks import division, volumes, wire
from parki.engine import Space
from parki.ewald import predict
from parki.ewald.choice import choose, params
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.perfmodels.network import Network

LONGER = (1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.2)  # cutoffs that are tried, relative to the cutoff of one rank
#: Least far-field part of the tolerance for numbers of so few bits in messages; they round to about 1e-8 and to a few
#: 1e-11 of it.
LEAST = {32: 2e-7, 40: 2e-10}
EXCHANGES = 4  # exchanges of margins and lines, there and back; each sends a message to most ranks


def parameters(
    question: Question, space: Space, ranks: int, network: Network | None, bits: int | None = None
) -> tuple[Parameters, int]:
    """Return the parameters that are predicted to take the least time on a network, those of one rank without one.

    Returns
    -------
    parameters : Parameters
    bits : int
        Bits of a far-field number in messages: by default on a network as few as the tolerance allows.
    """
    first = choose.parameters(question)
    if network is None or question.rc is not None or question.cell_size is not None:
        return first, wire.at_most(bits or 64, first.far)
    bits = wire.at_most(bits or enough(question), first.far)
    tries = [first, *(choose.parameters(replace(question, rc=rc)) for rc in longer(first))]
    return min(tries, key=lambda p: seconds(p, question, space, ranks, network, bits)), bits


def enough(question: Question) -> int:
    """Return the bits of a number in messages whose rounding is far below the tolerance."""
    error = choose.far_error(question)
    return next((bits for bits, bound in LEAST.items() if error >= bound), 64)


def longer(p: Parameters) -> list[float]:
    """Return cutoffs that are longer, up to the longest worth having."""
    limit = params.most_cutoff(p.box, p.periodicity)
    return sorted({min(p.rc * factor, limit) for factor in LONGER})


def seconds(p: Parameters, question: Question, space: Space, ranks: int, network: Network, bits: int = 64) -> float:
    """Predict the time of a call on evenly spread points by costs; the near field hides exchanges of the grid."""
    counts = question.n_targets, question.n_sources
    parts, n = predict.as_chosen(p, counts, space, question.crowding), max(counts)
    shape = division.shape(p, ranks, n)
    traffic = volumes.by_formula(p, shape, n, question.rhs, bits)
    count = shape[0] * shape[1]
    exchanged = network.seconds(EXCHANGES * count, traffic.ghost_grid + traffic.exchange)
    near = parts["near"] / count
    return (
        sum(parts.values()) / count
        + max(0.0, exchanged - near)
        + network.seconds(0, traffic.sort + traffic.ghost_source)
    )
