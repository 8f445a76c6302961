"""`parki model treecode --ranks`: sums of treecodes over ranks, from trees and lists that are made here.

The tree is that of all points, its lists are those of one process, and shares of ranks are counted
(`parki.perfmodels.ranks.treecode_shares`).  A phase of a rank takes its share of the time that one machine takes for
the whole sum; launches take every rank as long as one machine.  Of more than `MOST` points one in k is made, and
stands for k: leaves of k times fewer points give nearly the same tree, whose nodes then have k times the points.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from parki import all_pairs, memory, samples
from parki.engine import Space
from parki.freespace import find
from parki.hints import short
from parki.perfmodels.counts import clusters
from parki.perfmodels.machine import Machine
from parki.perfmodels.network import Network
from parki.perfmodels.published import trees
from parki.perfmodels.ranks import planning, shares, sums
from parki.perfmodels.ranks.sums import RankedSum, Sent
from parki.perfmodels.ranks.treecode_shares import ListRows, TreecodeShares, by_points, share
from parki.proxies import ProxyKernels
from parki.treecode import costs, interactions, work
from parki.treecode.method import Treecode, traverse
from parki.treecode.options import TreecodeOptions
from parki.treecode.params import Parameters
from parki.treecode.structure import TreecodeStructure
from parki.trees import cluster
from parki.trees.bysource import ListsBySource
from parki.trees.cluster import ClusterTree
from parki.trees.points import Sorted

MOST = 16_000_000  # points of a tree; of more points one in k is made
NEEDED = 450  # bytes of memory for each point of a tree
LARGEST = 2_000_000_000  # points of a sum, at most: places are int32
SETS = ("uniform", "gaussian", "plummer")  # point sets of `parki.samples`
ALONE = Space("Serial")


@dataclass(frozen=True)
class RankedTreecode:
    """A sum whose targets are its sources.

    Attributes
    ----------
    kernel, method, dtype : str
    options : tuple of pairs
        Options of `TreecodeOptions` (tolerance, or theta and degree), and parameters of the kernel.
    points : str
        One of `SETS`.
    """

    kernel: str = "coulomb"
    method: str = "dual"
    dtype: str = "float64"
    options: tuple[tuple[str, float], ...] = (("theta", 0.7), ("degree", 8))
    points: str = "uniform"


@dataclass(frozen=True)
class TreecodeModel:
    """Tree and lists of a sum, and its time on one machine.

    Attributes
    ----------
    n : int
    structure : TreecodeStructure
    parameters : Parameters
    lists : ListRows
    grid : float
        Time of an evaluation with a proxy point as the source, over that with a particle.
    phases : dict of float
        Seconds of a call by phase on one machine.
    launched : float
        Seconds of the launches of a call.
    machine : Machine
    """

    n: int
    structure: TreecodeStructure
    parameters: Parameters
    lists: ListRows
    grid: float
    phases: dict[str, float]
    launched: float
    machine: Machine

    @classmethod
    def of(cls, case: RankedTreecode, n: int, machine: Machine) -> TreecodeModel:
        """Return the model of a sum of n points.

        Raises
        ------
        ValueError
            If there are more points than places.
        MemoryError
            If the tree takes more memory than is free.
        """
        if n > LARGEST:
            raise ValueError(f"--n: found {n}, expected at most {LARGEST} with treecode")
        memory.require(NEEDED * min(n, MOST), f"a tree for --n {n}", "A smaller --n takes less.")
        structure, parameters, grid = _structure(case, n)
        counts = work.counts(structure, parameters, machine)
        bounds = clusters.predict(counts, machine, case.dtype, parameters.far)
        seconds = {name: bound.seconds for name, bound in bounds.items() if name not in ("tree", "lists")}
        launch_seconds = machine.launch * sum(counts[name].launches for name in seconds)
        rows = ListRows.of(structure.lists)
        return cls(n, structure, parameters, rows, grid, seconds, launch_seconds, machine)

    @property
    def seconds(self) -> float:
        """Return the seconds of a call on one machine."""
        return sum(self.phases.values())

    def over(self, ranks: int, network: Network) -> RankedSum:
        """Return the prediction of the sum over ranks."""
        nodes, kernels = self.structure.targets.nodes, self.structure.kernels
        division = share(nodes, self.lists, ranks, self.grid, kernels.charges, np.dtype(self.parameters.far).itemsize)
        parts, exchange_messages = division.exchange
        evaluations, cuts = division.evaluations, division.target_cuts
        pairs_of_sum = dict(zip(("pp", "pc", "cp", "cc"), self.structure.lists.pairs, strict=True))
        fraction = np.maximum(cuts.own / self.n, division.nodes_of(nodes, cuts) / nodes.n)
        near_seconds = self.phases["pp"] * evaluations["own"] / pairs_of_sum["pp"]
        rest = (self.phases["upward"] + self.phases["downward"]) * fraction - near_seconds
        for name, pairs in pairs_of_sum.items():
            rest += self.phases[name] * evaluations[name] / max(pairs, 1.0)
        rest += self.launched * (1 - 1 / ranks)
        exchange = float(parts.seconds(network).max(initial=0) + exchange_messages.seconds(network).max(initial=0))
        components = kernels.charges + kernels.linear.result
        traffic = {"sort": sums.sorted_to(ranks, cuts.own.max(), self.n, components)}
        for name, messages in (("parts", parts), ("exchange", exchange_messages)):
            nbytes = np.maximum(messages.sent, messages.received)
            traffic[name] = Sent(float(nbytes.max()), float(messages.messages.max()), float(messages.sent.mean()))
        partners = shares.partners(ranks, [parts, exchange_messages])
        return RankedSum(
            ranks, self.n, self.seconds, near_seconds, rest, exchange, traffic, "owners", division.imbalance,
            int(partners.max()), self._plan(division, network, int(partners.max())), self._alone(network), self.machine,
            network,
        )  # fmt: skip

    def _work(self) -> dict[str, float]:
        nodes = self.structure.targets.nodes
        points = float(nodes.count[~nodes.is_leaf].astype(float).sum())
        return {"n": self.n, "moved": points, "pairs": float(self.structure.lists.clusters)}

    def _alone(self, network: Network) -> dict[str, float]:
        return planning.treecode(network, 1, self._work())

    def _plan(self, division: TreecodeShares, network: Network, partners: int) -> dict[str, float]:
        """Return the seconds of the parts of making the plan, each on the rank with most of it."""
        nodes, cuts, work_of_sum = division.targets, division.target_cuts, self._work()
        first = by_points(nodes, cuts.ranks)
        staying = np.minimum(first.first[1:], cuts.first[1:]) - np.maximum(first.first[:-1], cuts.first[:-1])
        rows = division.rows
        share_of_n, share_of_rows = cuts.own.max() / self.n, float(rows.max() / rows.sum())
        # Rows of shared targets are on several ranks: their sum over ranks exceeds the rows of one process.
        growth = float(rows.sum()) / sum(len(item.target) for _, _, item in self.lists.each())
        amounts = {
            "n": float(cuts.own.max()),
            "moved": work_of_sum["moved"] * share_of_n,
            "pairs": work_of_sum["pairs"] * share_of_rows * growth,
            "again": float((first.first != cuts.first).any()),
            "recut": float((cuts.own - np.maximum(staying, 0)).max()),
            "skeleton": float(division.skeleton().max()),
            "partners": float(partners),
            "wanted": float(division.wanted.max()),
            "ghosts": float(division.ghosts.received.max() / (8 * division.components)),
        }
        return planning.treecode(network, cuts.ranks, amounts)


def _structure(case: RankedTreecode, n: int) -> tuple[TreecodeStructure, Parameters, float]:
    """Return trees and lists of n points (one in k is made), parameters, and the relative cost of a proxy point."""
    thinning = math.ceil(n / MOST)
    x = getattr(samples, case.points)(n // thinning, seed=1).astype(case.dtype)
    options, constants = TreecodeOptions.split({"method": case.method, **dict(case.options)})
    method = Treecode(find(case.kernel, options, constants), options, ALONE)
    problem = replace(method.problem(x, x), n_targets=n, n_sources=n)
    p = method.choose(problem)
    tree = _standing(cluster.build(problem.sources, max(1, p.leaf_size // thinning), ALONE), thinning)
    nodes, linear = tree.nodes, problem.linear
    pairs = traverse(nodes, nodes, p, problem.kernel.separation())
    kernels = ProxyKernels(linear, problem.dtype, np.dtype(p.far), p.degree + 1, short(p.expected, linear.ours))
    grid = costs.grid(kernels)
    rule = method.question(problem, 0.0).rule(p, grid)
    interaction_lists = interactions.build(ListsBySource.of(nodes, nodes, pairs), rule).only
    tiny = all_pairs.coincident(problem.dtype) if problem.kernel.singular else 0.0
    return TreecodeStructure(kernels, tree, tree, interaction_lists, tiny, True), p, grid


def _standing(tree: ClusterTree, thinning: int) -> ClusterTree:
    """Return a tree without points, whose nodes have `thinning` times as many."""
    nodes = replace(tree.nodes, begin=tree.nodes.begin * thinning, end=tree.nodes.end * thinning)
    n = nodes.n_points
    return ClusterTree(nodes, Sorted(np.broadcast_to(np.zeros((3, 1)), (3, n)), np.broadcast_to(np.int32(0), n)))


def strong(case: RankedTreecode, n: int, machine: Machine, network: Network, largest: int) -> list[RankedSum]:
    """Return predictions of one sum over 1, 2, 4, … ranks."""
    model = TreecodeModel.of(case, n, machine)
    return [model.over(ranks, network) for ranks in sums.doubled(largest)]


def weak(case: RankedTreecode, n: int, machine: Machine, network: Network, largest: int) -> Iterator[RankedSum]:
    """Yield predictions of sums with a fixed number of points a rank, n points over `largest` ranks."""
    for ranks in sums.doubled(largest):
        yield TreecodeModel.of(case, n * ranks // largest, machine).over(ranks, network)


def text(args: argparse.Namespace, machine: Machine, options: dict[str, float]) -> str:
    """Return tables of strong and weak scaling, and of published sums if asked."""
    network, kernel = Network.load(args.network), args.kernel or "coulomb"
    case = RankedTreecode(kernel, args.method, args.dtype, tuple(options.items()))
    rows = strong(case, args.n, machine, network, args.ranks)
    description = ", ".join(f"{name} {value:g}" for name, value in options.items())
    lines = [f"{kernel}, {args.method}, {description}, on ranks of {machine.name}, {network.name}: {network}"]
    lines += ["", f"strong: {args.n:,} points", *sums.table(rows)]
    weak_rows = list(weak(case, args.n, machine, network, args.ranks))
    head = f"weak: {args.n // args.ranks:,} points a rank"
    lines += ["", head, *sums.table(weak_rows, weak_rows[0].seconds())]
    lines += ["", *sums.parts(rows[-1]), "", *sums.NOTES]
    if args.published:
        lines += ["", *trees.treecodes(lambda points, method: _beside(points, method, machine, network))]
    return "\n".join(lines)


def _beside(points: str, method: str, machine: Machine, network: Network) -> RankedSum:
    """Return the prediction of the sum of a published figure."""
    n, ranks, options = trees.TREECODES
    return TreecodeModel.of(RankedTreecode(method=method, options=options, points=points), n, machine).over(
        ranks, network
    )
