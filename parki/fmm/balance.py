"""Sizes of leaves: the near field's cost against the far field's, by the models of `parki.perfmodels`.

Points that fill their box evenly get k³ boxes of equal size, for the k that costs least by the lists of trees of such
boxes.  Others get the size of leaves and of the root that cost least by the occupied boxes of a sample.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parki import engine, prediction, scaling
from parki.arrays import Array, module_of, to_host
from parki.engine import Space
from parki.fmm import limits, surfaces
from parki.fmm.chebyshev_tables import offsets
from parki.fmm.occupied_boxes import OccupiedBoxes, TreeSizes
from parki.fmm.representations import Representation
from parki.pairs import Pair
from parki.perfmodels.counts import clusters
from parki.perfmodels.machine import Machine
from parki.proxies import ProxyKernels, meets_once
from parki.trees import octree

Floats = NDArray[np.float64]
SAMPLE, CELLS = 20_000, 4  # points in a sample, and cells across each axis, to test whether points are even
UNEVEN = 1.6  # least variance of numbers in cells, relative to uniform points, of points that are not even
SPREAD = 5.0  # standard deviations above the mean that a box of uniform points may hold
# Of points that are not even: sizes of leaves, relative to that which suits a cube, and shares of a root's side that
# all points take.  Boxes of a surface hold a quarter of their parents' points: those of another root may suit better.
FACTORS, SHARES = (1.25, 1.6, 2.0, 2.5, 3.2, 4.0), (1.0, 0.8, 0.64)
FEWEST, ENOUGH, MOST = 4, 10_000, 1 << 19  # points of a leaf of a sample, at least; of a sample, mostly, and at most
LARGER = 2.5  # factor without a sample
#: Time of two opposite pairs of particles that meet once, relative to two that meet apart: with one number of a field,
#: and with several.
ONCE, ONCE_OF_MANY = 0.7, 0.85
#: Shares of the machine's rates that pairs, products of spectra, transforms, dense steps and compressed tables reach.
PAIRS, PRODUCTS, TRANSFORMS, DENSE, TABLES = 0.9, 0.5, 0.2, 0.2, 0.3
GAUSS = 0.8  # time of complex products by three real ones, relative to that by four
OCTET = 50e-6  # seconds of an octet besides, with its lists and its share of a plan
#: Time of a sum over the counted one: of points that are even and others, and by interpolation.
TAKEN = {"even": 0.7, "uneven": 0.9, "interpolation": 0.4}
VECTORS = 1.5  # time of sums of vectors over the counted one, relative to those of numbers


class LeafSizes(NamedTuple):
    """Points of a leaf at most, boxes across all points, and whether these fill their boxes evenly.

    Boxes across are those of the last level for even points, and of some level for others; None: a power of 2.  The
    sizes of a tree are there where a sample told them.
    """

    size: int
    fill: float | None
    is_even: bool = False
    tree: TreeSizes | None = None


@dataclass(frozen=True)
class FmmCosts:
    """Seconds on one core: per pair of particles, per pair of octets, per octet, and per particle in its leaf."""

    pair: float
    octet_pair: float
    octet: float
    particle: float

    def of(self, counts: TreeSizes, n: float) -> float:
        """Return the seconds of a sum of n particles over a tree of these sizes."""
        far = self.octet_pair * counts.octet_pairs + self.octet * counts.octets
        return self.pair * counts.near + far + self.particle * n


@lru_cache(maxsize=64)
def costs(representation: Representation, linear: Pair, p: int, dtype: str, far: str) -> FmmCosts:
    """Return the costs of an expansion with p points per edge, on the host; devices have much the same ratios.

    Near pairs are those of `linear`, with gradients if these are asked for.  Spectra, by which boxes meet, have a type
    of their own, `far`.
    """
    flop, far_flop = _flop(dtype), _flop(far)
    f, m, kt, ks = 2 * p - 1, surfaces.count(p), representation.check, representation.equivalent
    frequencies = (f**3 + 1) / 2
    products = frequencies * kt * ks * (GAUSS if limits.has_gauss(Machine.load("host"), far) else 1.0) / PRODUCTS
    transforms = 8 * (kt + ks) * (4 * p**4 + 8 * p**3 * f + 8 * p**2 * f**2)
    dense = 8 * 12 * (m * kt) * (m * ks) / 8
    octet = OCTET + far_flop * transforms / TRANSFORMS + flop * dense / DENSE
    particle = 2 * m * _near_seconds(representation.pair, dtype)
    return FmmCosts(_near_seconds(linear, dtype), far_flop * 512 * products, octet, particle)


def of_one_set(cost: FmmCosts, pair: Pair) -> FmmCosts:
    """Return the costs of targets that are the sources, whose leaves meet once if that takes less time."""
    if not meets_once(pair):
        return cost
    return replace(cost, pair=(ONCE if pair.result == 1 else ONCE_OF_MANY) * cost.pair)


@lru_cache(maxsize=64)
def interpolation_costs(linear: Pair, order: int, dtype: str) -> FmmCosts:
    """Return the costs of interpolation with `order` points per direction; W and X pairs cost as many pairs."""
    pair, flop = _near_seconds(linear, dtype), _flop(dtype)
    points, components = order**3, linear.dens + linear.result
    n_values = len(offsets()) * order**2  # compressed values of a box for all its targets, about
    octet = 8 * flop * components * points * (2 * n_values / TABLES + 12 * order)
    return FmmCosts(pair, 0.0, octet, points * max(pair, 2 * flop * components))


def taken(seconds: float, kind: str, pair: Pair, dtype: str, space: Space) -> float:
    """Return the seconds that a sum takes in a space, from the counted ones on a core of a host."""
    share = _pair_seconds(pair, dtype, prediction.machine_of(space)) / _pair_seconds(pair, dtype, Machine.load("host"))
    vectors = VECTORS if pair.dens > 1 and kind != "interpolation" else 1.0
    return TAKEN[kind] * vectors * share * seconds / engine.workers(space)


def _pair_seconds(pair: Pair, dtype: str, machine: Machine) -> float:
    """Return the seconds of a pair of particles in the loops over sources of a machine."""
    real = np.dtype(dtype)
    return clusters.time_of(engine.operations(ProxyKernels(pair, real, real, 1).ranges()), machine, dtype)


def _near_seconds(pair: Pair, dtype: str) -> float:
    """Return the seconds of a pair of particles on the host."""
    machine = Machine.load("host")
    return _pair_seconds(pair, dtype, machine) * clusters.share(machine, "pp") / PAIRS


def _flop(dtype: str) -> float:
    """Return the seconds of an operation."""
    return 0.5 / Machine.load("host").operations[dtype]["fma"]


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

    def on_host(self, stride: int) -> Floats:
        """Return every `stride`-th point in the host's memory, in double precision."""
        return to_host(self.sample(stride)).astype(np.float64)

    def ends(self, stride: int) -> tuple[Floats, Floats]:
        """Return the lowest and highest coordinates of a sample."""
        return scaling.corners(self.sample(stride))

    def cells(self, low: Floats, side: Floats, stride: int) -> NDArray[np.int64]:
        """Return the numbers of points of a sample in cells of a box."""
        points = self.on_host(stride)
        cell = np.minimum((CELLS * (points - low[:, None]) / side[:, None]).astype(np.int64), CELLS - 1)
        return np.bincount(cell[0] * CELLS**2 + cell[1] * CELLS + cell[2], minlength=CELLS**3)


def leaves(x: Cloud, y: Cloud, goal: int, cost: FmmCosts | None, limit: float = math.inf) -> LeafSizes:
    """Return the size of leaves, and boxes across.

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
    if min(lengths) > 0 and even(x) and (x is y or even(y)):
        share = _filled(lengths)
        k = max(1, round((n / (goal * share)) ** (1 / 3)))
        if cost is not None:
            candidates = range(max(1, math.floor(0.65 * k)), math.ceil(1.6 * k) + 1)
            k = min(candidates, key=lambda k: cost.of(_grid(k, n / share), n / share))
        k = max(1, min(k, math.floor(min(limit, n))))
        mean = n / (share * k**3)
        return LeafSizes(math.ceil(mean + SPREAD * math.sqrt(mean)), float(k), is_even=True)
    if cost is None:
        return LeafSizes(goal, None)
    sizes = [round(factor * goal) for factor in FACTORS]
    if math.isfinite(limit) or n * FEWEST > MOST * sizes[0]:
        return LeafSizes(round(LARGER * goal), None)
    sample, fits = CloudSample.of(x, y, sizes[0] / FEWEST), []
    for share in SHARES:
        boxes = sample.boxes(share, sizes[0])
        trees = [boxes.sizes(size) for size in sizes]
        fits += [(cost.of(tree, n), size, share, tree) for size, tree in zip(sizes, trees, strict=True)]
    _, size, share, tree = min(fits)
    return LeafSizes(size, None if share == 1 else 2 * share, tree=tree)


def counted(x: Cloud, y: Cloud, sizes: LeafSizes) -> TreeSizes:
    """Return the sizes of a tree: of boxes of equal size, or by the boxes of a sample."""
    if sizes.tree is not None:
        return sizes.tree
    n = max(x.n, y.n)
    if sizes.is_even and sizes.fill is not None:
        share = _filled(sides(x, y))
        near, octets, octet_pairs, levels = _grid(round(sizes.fill), n / share)
        return TreeSizes(share * near, share * octets, share * octet_pairs, levels)
    sample = CloudSample.of(x, y, max(sizes.size / FEWEST, n / MOST))
    return sample.boxes(octree.share(sizes.fill), sizes.size).sizes(sizes.size)


@dataclass(frozen=True)
class CloudSample:
    """Some targets and some sources, or some of both, the points for each of them, and the box of all.

    Attributes
    ----------
    points : list of arrays (3, n)
    strides : list of int
    low : array (3,)
    side : float
    """

    points: list[Floats]
    strides: list[int]
    low: Floats
    side: float

    @classmethod
    def of(cls, x: Cloud, y: Cloud, limit: float) -> "CloudSample":
        """Return a sample with a point for at most `limit`."""
        clouds = [y] if x is y else [x, y]
        strides = [max(1, math.floor(min(cloud.n / ENOUGH, limit))) for cloud in clouds]
        points = [cloud.on_host(stride) for cloud, stride in zip(clouds, strides, strict=True)]
        return cls(points, strides, np.minimum(x.corners[0], y.corners[0]), max(sides(x, y)))

    def boxes(self, share: float, limit: float) -> OccupiedBoxes:
        """Return the occupied boxes of a root of whose side all points take a share."""
        return OccupiedBoxes.of(self.points, [float(k) for k in self.strides], self.low, self.side / share, limit)


def _filled(lengths: list[float]) -> float:
    """Return the share of a cube that a box with these sides fills."""
    return math.prod(side / max(lengths) for side in lengths)


def _grid(k: int, n: float) -> TreeSizes:
    """Return the sizes of a tree of n points in k³ boxes of equal size."""
    near, pairs, octets, levels = (3 * k - 2) ** 3 * (n / k**3) ** 2, 0.0, 0.0, 0
    while k >= 4:
        parents = math.ceil(k / 2)
        pairs += (3 * parents - 2) ** 3 - parents**3
        octets += parents**3
        levels += 1
        k = parents
    return TreeSizes(near, octets, pairs, levels)


def sides(x: Cloud, y: Cloud) -> list[float]:
    """Return the sides of the box around all points."""
    (low, high), (other_low, other_high) = x.corners, y.corners
    return (np.maximum(high, other_high) - np.minimum(low, other_low)).tolist()


def even(x: Cloud) -> bool:
    """Return whether the numbers of points in cells vary no more than those of uniform random points do."""
    stride = max(1, x.n // SAMPLE)
    low, high = x.ends(stride)
    if not (high > low).all():
        return False
    count = x.cells(low, high - low, stride)
    return float(count.var()) <= UNEVEN * float(count.mean())
