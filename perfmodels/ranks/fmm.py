"""`parki model fmm --ranks`: fast multipole sums over ranks, of points uniform in a cube.

Up to `COUNTED` points the tree of the points themselves is cut, and shares of ranks are counted
(`parki.perfmodels.ranks.fmm_shares`).  Larger sums follow **surface laws**.  Let s = (boxes of a rank's part on the
level of leaves)^(1/3).  The boxes in a layer of fixed width around a cube are a polynomial of degree 2 in s, and so
is their sum over levels, because s halves from level to level.  The lattices that are counted have the sum's leaves
across over powers of 2, so that ranks' parts have nearly the same shapes; the largest has at most `ACROSS` leaves
across, after k halvings.  Let P' = P/8^k for P ranks.  For each quantity X (bytes, ghosts, and the seconds by which
the slowest rank's work exceeds an equal share) the law is

- if k = 0 or P' < `MANY`: the parabola in s through three lattices over P ranks;
- else: X(P', s), and its growth to P ranks, counted at the smaller s' that lattices over P ranks allow: the mean of
  X + ΔX' and X (1 + ΔX'/X').  Growth comes from the levels above the ranks' parts, which do not depend on s, and from
  messages handed on, which do.

For sums that could be counted (up to 140 leaves across) the laws were off by 15 % at most.  Work of the whole sum is
counted in closed form.

The seconds of a unit of work come from the model of one machine, for a sum of as many points as a rank has (within
`REFERENCE`), so that launches and small parts are included.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from parki import samples
from parki.engine import Space
from parki.fmm import api, balance, params, representations, surfaces
from parki.perfmodels.machine import Machine
from parki.perfmodels.models import fmm
from parki.perfmodels.network import Network
from parki.perfmodels.published import trees
from parki.perfmodels.ranks import fmm_shares, planning, shares, sums
from parki.perfmodels.ranks.fmm_shares import FmmShares, Units
from parki.perfmodels.ranks.shares import Cuts
from parki.perfmodels.ranks.sums import RankedSum, Sent
from parki.trees import octlists, octree
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes

COUNTED = 10_000_000  # points, at most, of a sum whose tree is counted; larger sums follow surface laws
REFERENCE = 20_000, 1_000_000  # points, at least and at most, of the sum that gives the seconds of a unit
ACROSS = 144  # leaves across a lattice that laws are taken from, at most
ALONE = Space("Serial")
MANY = 64  # ranks; among so many, some have neighbours on all sides
SCHEMES = ("owners", "hypercube")


@dataclass(frozen=True)
class RankedFmm:
    """A sum whose targets are its sources.

    Attributes
    ----------
    kernel, dtype : str
    options : tuple of pairs
        Options of `FmmOptions` (tolerance or order), and parameters of the kernel.
    """

    kernel: str = "coulomb"
    dtype: str = "float64"
    options: tuple[tuple[str, float], ...] = (("tolerance", 1e-5),)


@dataclass(frozen=True)
class Reference:
    """Figures of a sum on one machine, from which other sums are predicted.

    Attributes
    ----------
    costs : Units
        Seconds of a unit of work.
    leaf : float
        Mean number of points of a leaf.
    points : int
        Points of a surface.
    nbytes : int
        Bytes of a box's expansion.
    charges, results : int
        Components of a particle's density and of its result.
    wanted : tuple
        Points of a leaf that suit a cube, and costs, as `parki.fmm.balance.leaves` takes them; whether the root's
        side is rounded.
    """

    costs: Units
    leaf: float
    points: int
    nbytes: int
    charges: int
    results: int
    wanted: tuple[int, balance.FmmCosts, bool]


def reference(case: RankedFmm, n: int, machine: Machine) -> Reference:
    """Return the figures of a sum of n points, from which other sums are predicted.

    Raises
    ------
    ValueError
        For softened charges, whose boxes have a least size.
    """
    x = samples.uniform(n, seed=1).astype(case.dtype)
    plan = api.plan(case.kernel, x, x, execution_space="Serial", **dict(case.options))
    p, structure = plan.parameters, plan.structure
    nodes, lists, representation = structure.tree.nodes, structure.lists, structure.representation
    if representations.softened(representation.pair):
        raise ValueError(f"kernel is {case.kernel}, whose boxes have a least size; expected one without softening.")
    seconds = {name: step.bound.seconds for name, step in fmm.predict(plan, machine).items()}
    units = FmmShares(nodes, lists, Cuts(np.array([0, n]))).units
    steps = (("p2p",), ("m2l",), ("transforms",), ("m2m", "l2l"), ("p2m", "l2p"), ("p2l", "m2p"))
    times = [sum(seconds.get(name, 0.0) for name in names) for names in steps]
    costs = Units(*(time / max(float(amounts[0]), 1.0) for time, amounts in zip(times, units, strict=True)))
    points, pair = surfaces.count(p.order), structure.expansion.particles.pair
    nbytes = points * representation.equivalent * np.dtype(case.dtype).itemsize
    size = params.leaf_size("kifmm", p.order, representation.check)
    of_both = balance.costs(representation, pair, p.order, case.dtype, structure.expansion.spectra.name)
    costs_of_tree = balance.of_one_set(of_both, pair)
    targets = size, costs_of_tree, representation.per_level
    return Reference(costs, n / np.count_nonzero(nodes.is_leaf), points, nbytes, pair.dens, pair.result, targets)


def tree(x: NDArray[np.floating], reference: Reference) -> tuple[OctNodes, OctLists]:
    """Return the tree and lists that a plan of points would make."""
    size, costs, is_rounded = reference.wanted
    cloud = balance.Cloud(x)
    sizes = balance.leaves(cloud, cloud, size, costs)
    nodes = octree.build(x, None, sizes.size, ALONE, fill=sizes.fill, is_rounded=is_rounded).nodes
    return nodes, octlists.lists(nodes, reference.points).only


@lru_cache(maxsize=2)
def lattice(width: int) -> tuple[OctNodes, OctLists]:
    """Return the tree and lists of a cube that is `width` leaves wide, with a point in each."""
    axis = np.arange(width, dtype=float)
    x = np.ascontiguousarray(np.stack(np.meshgrid(axis, axis, axis, indexing="ij")).reshape(3, -1))
    nodes = octree.build(x, None, 1, ALONE, fill=float(width)).nodes
    return nodes, octlists.lists(nodes).only


def cube(width: int, leaf: float) -> Units:
    """Return the work of a cube that is `width` leaves wide, with `leaf` points in each (`Units` of numbers)."""
    pairs = octets = 0.0
    k = width
    while k >= 4:
        parents = math.ceil(k / 2)
        pairs += (3 * parents - 2) ** 3 - parents**3
        octets += parents**3
        k = parents
    return Units((3 * width - 2) ** 3 * leaf**2, pairs, 2 * octets, octets, width**3 * leaf, 0.0)


def counted(fmm_parts: FmmShares, costs: Units, ref: Reference, points_each: float = 1.0) -> dict[str, float]:
    """Return the counted quantities by name, each of the rank that has most unless its name says otherwise.

    Parameters
    ----------
    fmm_parts : FmmShares
    costs : Units
        Seconds of a unit of work.
    ref : Reference
    points_each : float
        Particles that a point of the tree stands for.
    """
    ranks, nodes, cuts = fmm_parts.cuts.ranks, fmm_parts.nodes, fmm_parts.cuts
    seconds = fmm_parts.units.seconds(costs)
    serial = float(FmmShares(nodes, fmm_parts.lists, Cuts(cuts.first[[0, -1]])).units.seconds(costs)[0])
    values, ghosts = fmm_parts.expansions(ref.nbytes), fmm_parts.ghosts(ref.charges)
    parts, users = shares.owners(values)
    steps = shares.hypercube(values)
    first = fmm_shares.on_leaves(nodes, nodes.is_leaf * nodes.sources.count.astype(float))
    begin = nodes.sources.begin[first[0]]
    old_cuts = Cuts.by_work(begin, first[1], nodes.sources.n_points, ranks)
    staying = np.minimum(old_cuts.first[1:], cuts.first[1:]) - np.maximum(old_cuts.first[:-1], cuts.first[:-1])
    of_leaf = nodes.sources.n_points / np.count_nonzero(nodes.is_leaf)
    remote = np.bincount(values.rank, minlength=ranks) + ghosts.received / (8 * ref.charges * of_leaf)
    return {
        "excess": float(seconds.max()) - serial / ranks,
        "imbalance": fmm_parts.imbalance,
        "near": float((fmm_parts.units.pairs * costs.pairs).min()) - whole_near(fmm_parts, costs) / ranks,
        "own": float(cuts.own.max()) * points_each,
        "recut": float((cuts.own - np.maximum(staying, 0)).max()) * points_each,
        "boxes": float(remote.max()),
        "ghosts": _most(ghosts) * points_each,
        "ghosts most": _most(ghosts) * points_each,
        "ghosts mean": float(ghosts.sent.mean()) * points_each,
        "ghosts messages": float(ghosts.messages.max(initial=0)),
        "owners": _most(users) + _most(parts),
        "owners most": float((np.maximum(users.sent, users.received) + np.maximum(parts.sent, parts.received)).max()),
        "owners mean": float((users.sent + parts.sent).mean()),
        "owners messages": float(users.messages.max(initial=0) + parts.messages.max(initial=0)),
        "owners partners": float(shares.partners(ranks, [parts, users, ghosts]).max()),
        "hypercube": sum(_most(step) for step in steps),
        "hypercube most": float(sum(np.maximum(step.sent, step.received) for step in steps).max()) if steps else 0.0,
        "hypercube mean": float(sum(step.sent for step in steps).mean()) if steps else 0.0,
        "hypercube messages": float(sum(step.messages.max(initial=0) for step in steps)),
        "hypercube partners": float(shares.partners(ranks, [*steps, ghosts]).max()),
    }


def whole_near(fmm_parts: FmmShares, costs: Units) -> float:
    """Return the seconds of all pairs of particles."""
    return float(fmm_parts.units.pairs.sum()) * costs.pairs


def _most(messages: shares.RankTraffic) -> float:
    return float(np.maximum(messages.sent, messages.received).max(initial=0))


def halvings(width: int) -> int:
    """Return the halvings of a cube's leaves across after which a lattice of that width can be counted."""
    return max(0, math.ceil(math.log2(width / ACROSS)))


@lru_cache(maxsize=64)
def of_lattice(ranks: int, ref: Reference, width: int) -> Mapping[str, float]:
    """Return the counted quantities of a lattice whose points each stand for a leaf."""
    costs = ref.costs
    of_leaf = costs._replace(pairs=costs.pairs * ref.leaf**2, particles=costs.particles * ref.leaf)
    return counted(fmm_shares.share(*lattice(width), ranks, of_leaf), of_leaf, ref, ref.leaf)


def law(ranks: int, ref: Reference, width: int) -> Mapping[str, float]:
    """Return the quantities by surface laws (see the module) of a cube that is `width` leaves wide."""
    times = halvings(width)
    largest = round(width / 2**times)
    last = of_lattice(ranks, ref, largest)
    fewer_ranks = ranks // 8**times
    if times and fewer_ranks >= MANY:
        wide_counts = of_lattice(fewer_ranks, ref, largest)
        narrow_counts = of_lattice(fewer_ranks, ref, round(width / 4**times))
        result = {name: grown(wide_counts[name], narrow_counts[name], value) for name, value in last.items()}
    else:
        sizes = np.array([round(largest / k) for k in (4, 2, 1)])
        samples_ = [of_lattice(ranks, ref, int(k)) for k in sizes]
        result = {name: parabola(sizes, np.array([sample[name] for sample in samples_]), width) for name in last}
    result |= {name: value for name, value in last.items() if name.endswith(("messages", "partners"))}
    points, leaves = ref.leaf * width**3 / ranks, largest**3 / ranks
    result |= {name: points * last[name] / (ref.leaf * leaves) for name in ("own", "recut")}
    # The work of a few leaves, whatever the size.
    result["imbalance"] = 1 + (last["imbalance"] - 1) * (largest / width) ** 3
    return result


def grown(wide: float, narrow: float, extra: float) -> float:
    """Return a quantity of many ranks with large parts.

    `wide` and `narrow` are its values for few ranks with large and with small parts, `extra` for many with small parts.
    """
    total = wide + extra - narrow
    return 0.5 * (total + wide * extra / narrow) if narrow > 0 < wide else total


def parabola(s: NDArray[np.integer], values: NDArray[np.float64], position: float) -> float:
    """Return the parabola through three values at a place, but at least the last value."""
    return max(float(np.polyval(np.polyfit(s, values, 2), position)), float(values[-1]))


@dataclass(frozen=True, eq=False)
class FmmModel:
    """Model of sums over ranks that are machines of one kind.

    Attributes
    ----------
    case : RankedFmm
    machine : Machine
    network : Network
    references : dict of Reference
        References made so far, by points.
    """

    case: RankedFmm
    machine: Machine
    network: Network
    references: dict[int, Reference] = field(default_factory=dict)

    def reference(self, n: int) -> Reference:
        """Return the reference of n points, with n limited to `REFERENCE`."""
        n = min(max(n, REFERENCE[0]), REFERENCE[1])
        if n not in self.references:
            self.references[n] = reference(self.case, n, self.machine)
        return self.references[n]

    def predict(self, n: int, ranks: int) -> RankedSum:
        """Predict a sum of n points over ranks."""
        return predicted(self, n, ranks)


def predicted(model: FmmModel, n: int, ranks: int) -> RankedSum:
    """Predict a sum of n points over ranks."""
    case, machine, network = model.case, model.machine, model.network
    whole_reference, ref = model.reference(n), model.reference(n // ranks)
    if n <= COUNTED:
        nodes, lists = _made(case, n, whole_reference)
        whole_units = FmmShares(nodes, lists, Cuts(np.array([0, n]))).units
        whole_units = Units(*(float(np.sum(amounts)) for amounts in whole_units))
        counts = counted(fmm_shares.share(nodes, lists, ranks, ref.costs), ref.costs, ref)
        leaves, depth = float(np.count_nonzero(nodes.is_leaf)), nodes.depth
        entries = float(sum(len(a) for a in (lists.u_t, lists.w_t, lists.x_t, lists.v_t)))
    else:
        width = round((n / whole_reference.leaf) ** (1 / 3))
        whole_units = cube(width, n / width**3)
        counts = law(ranks, ref, width)
        leaves, depth = float(width**3), math.ceil(math.log2(width))
        entries = (3.0 * width - 2) ** 3 + whole_units.octet_pairs
    serial = float(whole_units.seconds(whole_reference.costs))
    share = float(whole_units.seconds(ref.costs)) / ranks  # seconds of a rank, at the costs of a sum of its size
    near_time = whole_units.pairs * ref.costs.pairs / ranks + counts["near"]
    times = {name: network.seconds(counts[f"{name} messages"], counts[name]) for name in SCHEMES}
    scheme = min(times, key=times.get)
    exchange = times[scheme] + network.seconds(counts["ghosts messages"], counts["ghosts"])
    traffic = {"sort": sums.sorted_to(ranks, counts["own"], n, ref.charges + ref.results)}
    for name in (scheme, "ghosts"):
        traffic[name] = Sent(counts[f"{name} most"], counts[f"{name} messages"], counts[f"{name} mean"])
    work = {"n": float(n), "moved": float(n) * depth, "pairs": entries, "boxes": 8 / 7 * leaves, "skeleton": 0.0}
    own_share = counts["own"] / n  # 1 on one rank, where both works are equal to the bit
    own_work = {name: value * own_share for name, value in work.items()}
    own_work |= {
        "recut": counts["recut"],
        "skeleton": counts["boxes"],
        "partners": counts["ghosts messages"],
        "wanted": counts["boxes"],
    }
    own_work["ghosts"] = counts["ghosts"] / (8 * ref.charges)
    return RankedSum(
        ranks, n, serial, np.array([near_time]), np.array([share + counts["excess"] - near_time]), exchange, traffic,
        scheme, counts["imbalance"], int(counts[f"{scheme} partners"]),
        planning.fmm(network, ranks, own_work), planning.fmm(network, 1, work), machine, network,
    )  # fmt: skip


@lru_cache(maxsize=2)
def _made(case: RankedFmm, n: int, reference: Reference) -> tuple[OctNodes, OctLists]:
    return tree(samples.uniform(n, seed=1).astype(case.dtype), reference)


def text(args: argparse.Namespace, machine: Machine, options: dict[str, float]) -> str:
    """Return tables of weak and strong scaling, and of published sums if asked."""
    network, kernel = Network.load(args.network), args.kernel or "coulomb"
    model = FmmModel(RankedFmm(kernel, args.dtype, tuple(options.items())), machine, network)
    description = ", ".join(f"{name} {value:g}" for name, value in options.items())
    lines = [f"{kernel}, kifmm, {description}, on ranks of {machine.name}, {network.name}: {network}"]
    rank_counts = sums.doubled(args.ranks, 4)
    weak_rows = [model.predict(args.n * ranks, ranks) for ranks in rank_counts]
    lines += ["", f"weak: {args.n:,} points a rank", *sums.table(weak_rows, weak_rows[0].seconds())]
    strong_rows = [model.predict(args.n, ranks) for ranks in rank_counts]
    lines += ["", f"strong: {args.n:,} points", *sums.table(strong_rows)]
    lines += ["", *sums.parts(weak_rows[-1]), "", *sums.NOTES]
    if args.published:
        lines += ["", *trees.sc09(model.predict)]
    return "\n".join(lines)
