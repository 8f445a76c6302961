"""The cutoff of an Ewald sum over ranks: longer than on one where messages are slow, as fewer grid points travel."""

from __future__ import annotations

from dataclasses import replace

from parki.distributed.bricks import division, volumes
from parki.engine.spaces import Space
from parki.ewald.choice import choose, params, predict
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.perfmodels.network import Network

LONGER = (1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.2)  # cutoffs than that of one rank
EXCHANGES = 4  # of margins and lines, there and back, each of a message to most ranks


def parameters(asked: Question, space: Space, ranks: int, network: Network | None) -> Parameters:
    """Return the parameters that are predicted to take the least time on a network; those of one rank without one."""
    first = choose.parameters(asked)
    if network is None or asked.rc is not None or asked.cell_size is not None:
        return first
    tries = [first, *(choose.parameters(replace(asked, rc=rc)) for rc in longer(first))]
    return min(tries, key=lambda p: seconds(p, asked, space, ranks, network))


def longer(p: Parameters) -> list[float]:
    """Return cutoffs that are longer, up to the longest worth having."""
    most = params.most_cutoff(p.box, p.periodicity)
    return sorted({min(p.rc * factor, most) for factor in LONGER})


def seconds(p: Parameters, asked: Question, space: Space, ranks: int, network: Network) -> float:
    """Predict the time of a call on evenly spread points, whose exchanges of the grid the near field hides."""
    crowding = () if asked.arrangement is None else asked.arrangement.crowding
    phases = predict.predict(p, asked.n_targets, asked.n_sources, space, 0, crowding).phases
    n = max(asked.n_targets, asked.n_sources)
    shape = division.shape(p, ranks, n)
    sent = volumes.by_formula(p, shape, n, asked.rhs)
    count = shape[0] * shape[1]
    exchanged = network.seconds(EXCHANGES * count, sent.ghost_grid + sent.exchange)
    near = phases["near"] / count
    return sum(phases.values()) / count + max(0.0, exchanged - near) + network.seconds(0, sent.sort + sent.ghost_source)
