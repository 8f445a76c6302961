"""Table 11 of Kosmacher et al. (2026), and its kernels' times with parki's exchanges in place of the published ones."""

from __future__ import annotations

import math
from dataclasses import replace

from parki.distributed.bricks import division, volumes
from parki.ewald.choice import choose
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.perfmodels.network import Network
from parki.perfmodels.published.kosmacher import RANKS, TABLE11

POINTS, ROWS, WINDOW, RC = 4_000_000, 256, 8, 0.038  # points of a rank; grid points a unit of length; taps; cutoff
KEPT = 0.83  # share of the grid's modes along an axis: kmax over π/h
LAYOUTS = {"box grows along x": (1, 1), "cube": (3, 3)}  # periodicity; axes along which the box grows


def parameters(ranks: int, layout: str = "cube") -> Parameters:
    """Return parameters with the published grid of a number of ranks."""
    periodicity, dimensions = LAYOUTS[layout]
    # The even number of rows that is nearest to the growth of the points.
    rows = [2 * round(ROWS * ranks ** (1 / dimensions) / 2) if axis < dimensions else ROWS for axis in range(3)]
    box, n = tuple(m / ROWS for m in rows), POINTS * ranks
    result = choose.parameters(Question("stokes_comb", box, n, n, 1e-9, rc=RC, periodicity=periodicity))
    return replace(result, grid=tuple(rows), h=(1 / ROWS,) * 3, P=WINDOW, kmax=KEPT * math.pi * ROWS)


def published(ranks: int) -> float:
    """Return the published time of a sum, in seconds: all stages of Table 11."""
    return 1e-3 * sum(times[RANKS.index(ranks)] for times in TABLE11.values())


def seconds(ranks: int, network: Network, layout: str = "cube", hidden: bool = True) -> float:
    """Predict the time of a sum: the published times of kernels on one rank, and parki's exchanges."""
    serial = published(1)
    if ranks == 1:
        return serial
    p, n = parameters(ranks, layout), POINTS * ranks
    traffic = volumes.by_formula(p, division.shape(p, ranks, n), n)
    exchange = network.seconds(2 * ranks, traffic.ghost_grid + traffic.exchange)
    overlap = 1e-3 * TABLE11["p2p"][0] if hidden else 0.0
    return serial + network.seconds(2 * ranks, traffic.sort + traffic.ghost_source) + max(0.0, exchange - overlap)


def table(network: Network) -> list[str]:
    """Return a table of times and efficiencies, the published ones first."""
    heads = [*(f"{name}, {mode}" for name in LAYOUTS for mode in ("apart", "hidden"))]
    lines = [
        f"Table 11, {POINTS:,} points a rank, milliseconds and efficiency; its kernels' times with parki's exchanges",
        f"{'ranks':>7}{'published':>20}" + "".join(f"{head:>27}" for head in heads),
    ]
    for ranks in RANKS:
        times = [published(ranks)]
        times += [seconds(ranks, network, name, hidden) for name in LAYOUTS for hidden in (False, True)]
        cells = [f"{1e3 * s:.1f}{published(1) / s:>7.2f}" for s in times]
        lines.append(f"{ranks:>7}{cells[0]:>20}" + "".join(f"{cell:>27}" for cell in cells[1:]))
    return lines
