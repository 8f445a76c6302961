"""Making plans of treecodes and fast multipole sums over ranks: seconds of each part, by counted work.

Work is counted, and takes the seconds of a unit that were measured on one core (`parki bench plans` measures them
again): no part is assumed to run on a GPU or on several cores.  Parts follow each other, none is hidden.

- ``sort``: points go to the ranks that have their part of the tree.
- ``top``: the tree's highest levels, by counts summed over ranks.  Every rank does all of this: the serial part.
- ``tree``: a rank's points are sorted level by level.
- ``weights``: pairs and their kinds, for the work of leaves, by which these are cut again; the points between the first
  and the second cuts move.
- ``lists``: pairs of the rank's targets.
- ``geometry``: boxes of other ranks, from which a rank's lists are made: found by their owners, sent, and merged.
- ``wishes``: names of wanted boxes go back to their owners, and positions of ghost particles come.
- ``steps``: tables of launches of the call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from parki.perfmodels.network import Network

TOP = 32  # nodes for each rank, below which a rank grows its part of the tree alone
OUTLINE = 64  # boxes by which a rank outlines its targets to others
ABOVE = 1.5  # boxes sent for an outline over boxes needed, at most (1.0 to 1.3 were counted)
ROW, NAME, POINT = 80, 16, 24  # bytes of a box, of a wish, of a particle's position
TESTED = 8  # boxes looked at for each box sent
PARTS = ("sort", "top", "tree", "weights", "lists", "geometry", "wishes", "steps")


@dataclass(frozen=True)
class PlanCosts:
    """Seconds of a unit of work on one core.

    Measured by `parki bench plans --n 4e6` on one virtual core of an Intel Xeon (AVX-512), shared with other work.

    Attributes
    ----------
    point : float
        A point of a node that is split, sorted by child.
    node : float
        A node of a level: choosing, counting, joining.
    pair : float
        A pair of clusters that a traversal finds.
    choice, listed : float
        Choosing the kind of such a pair; choosing the kind and writing its places in lists.
    entry : float
        An entry of the lists of an octree.
    placed, step : float
        A point of a treecode, and a box of an octree, in tables of launches.
    row : float
        A row of a table of boxes, merged.
    ordered : float
        A point, put in the order of the ranks that points go to.
    nbyte : float
        A byte that is gathered for a message, or put to its place.
    """

    point: float = 10e-9
    node: float = 550e-9
    pair: float = 29e-9
    choice: float = 14e-9
    listed: float = 67e-9
    entry: float = 14e-9
    placed: float = 80e-9
    step: float = 1.5e-6
    row: float = 200e-9
    ordered: float = 42e-9
    nbyte: float = 0.8e-9

    def messages(self, network: Network, number: float, nbytes: float) -> float:
        """Return the seconds of messages, packed and put to their places."""
        return network.seconds(number, nbytes) + 2 * nbytes * self.nbyte


COSTS = PlanCosts()


def steps_of(ranks: int) -> int:
    """Return the steps of a collective call."""
    return math.ceil(math.log2(ranks)) if ranks > 1 else 0


def agreement(network: Network, ranks: int) -> float:
    """Return the seconds of an allreduce of a few bytes."""
    return 2 * network.alpha * steps_of(ranks)


def arrival(network: Network, ranks: int, n: float) -> dict[str, float]:
    """Return the seconds of sorting points to ranks, and of the top of the tree; none on one rank.

    Parameters
    ----------
    network : Network
    ranks : int
    n : float
        Points of a rank.
    """
    if ranks == 1:
        return {"sort": 0.0, "top": 0.0}
    nodes = TOP * ranks
    levels = math.ceil(math.log(nodes, 8))
    nbytes = 8 / 7 * nodes * ROW  # bytes of all levels, reduced and given back
    top = levels * agreement(network, ranks) + 2 * nbytes / network.beta + 8 / 7 * nodes * COSTS.node
    exchange = COSTS.messages(network, ranks - 1, n * (1 - 1 / ranks) * (POINT + 4))
    return {"sort": n * COSTS.ordered + exchange, "top": top}


def treecode(network: Network, ranks: int, work: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each part of a treecode's plan, on the slowest rank.

    Parameters
    ----------
    network : Network
    ranks : int
    work : mapping
        Amounts of a rank: ``n`` points, ``moved`` points of nodes that are split, over all levels, ``pairs`` of
        clusters, ``again`` 1 if lists are made for cuts by points and again for cuts by their work, else 0, ``recut``
        points that move between the first and the second cuts, ``skeleton`` remote nodes, ``partners``, ``wanted``
        remote clusters and ``ghosts``.
    """
    cost_of_pair = COSTS.pair + COSTS.listed
    seconds = arrival(network, ranks, work["n"])
    seconds |= {
        "tree": work["moved"] * COSTS.point,
        "lists": work["pairs"] * cost_of_pair,
        "steps": work["n"] * COSTS.placed,
    }
    if ranks > 1:
        partners, rows = work["partners"], ABOVE * work["skeleton"]
        weighing = work["pairs"] * (COSTS.pair + COSTS.choice)
        seconds["weights"] = work["again"] * (weighing + COSTS.messages(network, partners, work["recut"] * (POINT + 4)))
        walk = rows * (TESTED * COSTS.pair + COSTS.row)
        outlines = network.seconds(steps_of(ranks), ranks * OUTLINE * 48)
        seconds["geometry"] = (1 + work["again"]) * (walk + outlines + COSTS.messages(network, partners, rows * ROW))
        seconds["wishes"] = _wishes(network, work)
    return {name: seconds.get(name, 0.0) for name in PARTS}


def _wishes(network: Network, work: Mapping[str, float]) -> float:
    request = COSTS.messages(network, work["partners"], work["wanted"] * NAME) + work["wanted"] * COSTS.row
    return request + COSTS.messages(network, work["partners"], work["ghosts"] * POINT)


def fmm(network: Network, ranks: int, work: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of each part of the plan of a fast multipole sum, on the slowest rank.

    Parameters
    ----------
    network : Network
    ranks : int
    work : mapping
        Amounts of a rank, as for `treecode`; ``pairs`` are entries of lists, ``boxes`` all boxes of its own,
        ``skeleton`` ghost boxes.
    """
    seconds = arrival(network, ranks, work["n"])
    seconds |= {"tree": work["moved"] * COSTS.point, "lists": work["pairs"] * COSTS.entry}
    seconds["steps"] = (work["boxes"] + work["skeleton"]) * COSTS.step
    if ranks > 1:
        rows = work["skeleton"]
        exchange = COSTS.messages(network, work["partners"], work["recut"] * (POINT + 4))
        seconds["weights"] = seconds["lists"] + exchange
        seconds["geometry"] = 2 * (rows * COSTS.row + COSTS.messages(network, work["partners"], rows * ROW))
        seconds["wishes"] = _wishes(network, work)
    return {name: seconds.get(name, 0.0) for name in PARTS}
