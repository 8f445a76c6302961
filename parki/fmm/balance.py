"""Sizes of leaves: the near field's cost against the far field's, by the models of `parki.perfmodels`.

Points that fill their box evenly get k³ boxes of equal size, for the k that costs least by the lists of trees of such
boxes.  Others get leaves that are larger by a factor: in 42 sums of seven distributions they served as well as the best
of two sizes by the lists of their trees, which took most of the time of making a plan.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parki import engine, prediction, scaling
from parki.arrays import Array, module_of, to_host
from parki.engine import Space
from parki.fmm import surfaces
from parki.fmm.chebyshev_tables import offsets
from parki.fmm.representations import Representation
from parki.pairs import Pair
from parki.perfmodels.counts import clusters
from parki.perfmodels.machine import Machine
from parki.proxies import ProxyKernels
from parki.trees import octlists, octree
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes

Floats = NDArray[np.float64]
SAMPLE, CELLS = 20_000, 4  # points in a sample, and cells across each axis, to test whether points are even
UNEVEN = 1.6  # least variance of numbers in cells, relative to uniform points, of points that are not even
SPREAD = 5.0  # standard deviations above the mean that a box of uniform points may hold
FEWEST = 8  # points of a leaf of a sample, at least
LARGER = 2.5  # size of the leaves of points that are not even, relative to that which suits a cube
#: Shares of the machine's rates that pairs, products of spectra, transforms, and dense steps reach.
PAIRS, PRODUCTS, TRANSFORMS, DENSE = 0.9, 0.5, 0.3, 0.3
#: Time of a sum over the counted one: of points that are even and others, and by interpolation.
TAKEN = {"even": 1.7, "uneven": 1.0, "interpolation": 0.4}


class LeafSizes(NamedTuple):
    """Points of a leaf at most, and boxes across for even points."""

    size: int
    fill: float | None


@dataclass(frozen=True)
class FmmCosts:
    """Seconds on one core: per pair of particles, per pair of octets, per octet, and per particle in its leaf."""

    pair: float
    octet_pair: float
    octet: float
    particle: float

    def of(self, near: float, octet_pairs: float, octets: float, n: float) -> float:
        """Return the seconds of a sum with these numbers of pairs, octet pairs, octets, and particles."""
        return self.pair * near + self.octet_pair * octet_pairs + self.octet * octets + self.particle * n


@lru_cache(maxsize=64)
def costs(representation: Representation, p: int, dtype: str) -> FmmCosts:
    """Return the costs of an expansion with p points per edge, on the host; devices have much the same ratios."""
    pair, flop = _rates(representation.pair, dtype)
    f, m, kt, ks = 2 * p - 1, surfaces.count(p), representation.check, representation.equivalent
    frequencies = (f**3 + 1) / 2
    transforms = 8 * (kt + ks) * (4 * p**4 + 8 * p**3 * f + 8 * p**2 * f**2)
    dense = 8 * 12 * (m * kt) * (m * ks) / 8
    octet = flop * (transforms / TRANSFORMS + dense / DENSE)
    return FmmCosts(pair, flop * 512 * frequencies * kt * ks / PRODUCTS, octet, 2 * m * pair)


@lru_cache(maxsize=64)
def interpolation_costs(linear: Pair, order: int, dtype: str) -> FmmCosts:
    """Return the costs of interpolation with `order` points per direction; W and X pairs cost as many pairs."""
    pair, flop = _rates(linear, dtype)
    points, components = order**3, linear.dens + linear.result
    n_values = len(offsets()) * order**2  # compressed values of a box for all its targets, about
    octet = 8 * flop * components * points * (2 * n_values / DENSE + 12 * order)
    return FmmCosts(pair, 0.0, octet, points * max(pair, 2 * flop * components))


def taken(seconds: float, kind: str, pair: Pair, dtype: str, space: Space) -> float:
    """Return the seconds that a sum takes in a space, from the counted ones on a core of a host."""
    share = _pair_seconds(pair, dtype, prediction.machine_of(space)) / _pair_seconds(pair, dtype, Machine.load("host"))
    return TAKEN[kind] * share * seconds / engine.workers(space)


def _pair_seconds(pair: Pair, dtype: str, machine: Machine) -> float:
    """Return the seconds of a pair of particles in the loops over sources of a machine."""
    real = np.dtype(dtype)
    return clusters.time_of(engine.operations(ProxyKernels(pair, real, real, 1).ranges()), machine, dtype)


def _rates(pair: Pair, dtype: str) -> tuple[float, float]:
    """Return the seconds of a pair of particles, and of an operation."""
    machine = Machine.load("host")
    seconds = _pair_seconds(pair, dtype, machine)
    return seconds * clusters.share(machine, "pp") / PAIRS, 0.5 / machine.operations[dtype]["fma"]


@dataclass(frozen=True)
class TreeSizes:
    """Pairs of particles in near lists, meetings of particles with surfaces, octets, and pairs of octets."""

    near: float
    alone: float
    octets: float
    octet_pairs: float

    @classmethod
    def of(cls, nodes: OctNodes, lists: OctLists, mask: NDArray[np.bool_]) -> "TreeSizes":
        """Return the sizes of a tree, of boxes in `mask`."""
        n_trg, n_src = nodes.targets.count.astype(float), nodes.sources.count.astype(float)
        x = mask[lists.x_t]
        octets = nodes.octet_parent[nodes.octet_begin[min(1, nodes.depth)] :]
        return cls(
            float(n_trg[lists.u_t] @ n_src[lists.u_s]),
            float(n_trg[lists.w_t].sum() + n_src[lists.x_s[x]].sum()),
            float(np.count_nonzero(mask[octets])),
            float(np.count_nonzero(mask[nodes.octet_parent[lists.v_t]])),
        )


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points of one process, with methods that answer questions about them.

    Attributes
    ----------
    points : array (3, n)
    """

    points: Array

    @property
    def n(self) -> int:
        """Return the number of points."""
        return int(self.points.shape[1])

    @cached_property
    def corners(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lowest and highest coordinates; without points infinity and minus infinity."""
        return scaling.corners(self.points)

    def sample(self, stride: int) -> Array:
        """Return every `stride`-th point."""
        return module_of(self.points).ascontiguousarray(self.points[:, ::stride])

    def ends(self, stride: int) -> tuple[Floats, Floats]:
        """Return the lowest and highest coordinates of a sample."""
        return scaling.corners(self.sample(stride))

    def cells(self, low: Floats, side: Floats, stride: int) -> NDArray[np.int64]:
        """Return the numbers of points of a sample in cells of a box."""
        points = to_host(self.sample(stride)).astype(np.float64)
        cell = np.minimum((CELLS * (points - low[:, None]) / side[:, None]).astype(np.int64), CELLS - 1)
        return np.bincount(cell[0] * CELLS**2 + cell[1] * CELLS + cell[2], minlength=CELLS**3)


def leaves(x: Cloud, y: Cloud, goal: int, cost: FmmCosts | None, limit: float = math.inf) -> LeafSizes:
    """Return the size of leaves, and boxes across for even points.

    Parameters
    ----------
    x, y : Cloud
        Targets and sources, one object if they are the same.
    goal : int
        Points of a leaf that suit a cube of uniform points.
    cost : FmmCosts, optional
        Without it, the size is `goal`.
    limit : float
        Boxes across, at most.
    """
    n = max(x.n, y.n)
    lengths = sides(x, y)
    if n < 8 * goal or max(lengths) <= 0:
        return LeafSizes(goal, None)
    if min(lengths) > 0 and _even(x) and (x is y or _even(y)):
        share = _filled(lengths)
        k = max(1, round((n / (goal * share)) ** (1 / 3)))
        if cost is not None:
            candidates = range(max(1, math.floor(0.65 * k)), math.ceil(1.6 * k) + 1)
            k = min(candidates, key=lambda k: _grid_cost(cost, k, n / share))
        k = max(1, min(k, math.floor(min(limit, n))))
        mean = n / (share * k**3)
        return LeafSizes(math.ceil(mean + SPREAD * math.sqrt(mean)), float(k))
    return LeafSizes(goal if cost is None else round(LARGER * goal), None)


def seconds(
    x: Cloud, y: Cloud, sizes: LeafSizes, cost: FmmCosts, space: Space, shape: Mapping[str, Any] = MappingProxyType({})
) -> float:  # fmt: skip
    """Return the seconds of a sum on one core by its costs, of points of one process.

    Those of even points follow from their boxes, those of others from the lists of a tree of a sample.

    Parameters
    ----------
    x, y : Cloud
    sizes : LeafSizes
    cost : FmmCosts
    space : Space
        Where the tree is built.
    shape : mapping
        Keywords `fill` and `deepest` of `octree.build`, for points that are not even.
    """
    if sizes.fill is not None:
        share = _filled(sides(x, y))
        return share * _grid_cost(cost, round(sizes.fill), max(x.n, y.n) / share)
    times = max(1, min(sizes.size // FEWEST, max(x.n, y.n) // SAMPLE))
    targets = None if x is y else x.sample(times)
    nodes = octree.build(y.sample(times), targets, max(1, sizes.size // times), space, **shape).nodes
    counts = TreeSizes.of(nodes, octlists.lists(nodes).only, np.ones(nodes.n, bool))
    meetings = x.n + y.n + counts.alone * times  # each particle meets a surface
    return cost.of(counts.near * times**2, counts.octet_pairs, counts.octets, meetings)


def _filled(lengths: list[float]) -> float:
    """Return the share of a cube that a box with these sides fills."""
    return math.prod(side / max(lengths) for side in lengths)


def _grid_cost(cost: FmmCosts, k: int, n: float) -> float:
    """Return the seconds of n points in k³ boxes of equal size."""
    pairs = octets = 0.0
    near = (3 * k - 2) ** 3 * (n / k**3) ** 2
    while k >= 4:
        parents = math.ceil(k / 2)
        pairs += (3 * parents - 2) ** 3 - parents**3
        octets += parents**3
        k = parents
    return cost.of(near, pairs, octets, n)


def sides(x: Cloud, y: Cloud) -> list[float]:
    """Return the sides of the box around all points."""
    (low, high), (other_low, other_high) = x.corners, y.corners
    return (np.maximum(high, other_high) - np.minimum(low, other_low)).tolist()


def _even(x: Cloud) -> bool:
    """Return whether the numbers of points in cells vary no more than those of uniform random points do."""
    stride = max(1, x.n // SAMPLE)
    low, high = x.ends(stride)
    if not (high > low).all():
        return False
    count = x.cells(low, high - low, stride)
    return float(count.var()) <= UNEVEN * float(count.mean())
