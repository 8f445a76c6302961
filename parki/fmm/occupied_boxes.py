"""Occupied boxes of octrees, from a sample of points: the sizes of trees with any leaves, without making them.

A box with c occupied children has points of log2 c dimensions around it, d.  Those of a child meet the points of 3^d
boxes directly, which hold as many as the child.  The boxes that are cut on a level are k^d, about, of which a pair of
neighbours meets through expansions: (3k − 2)^d − k^d.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEVELS, HALF = 20, 10  # levels below the root, and those of half a key
CROWD = 24  # points of a sample, at least, whose dimensions show in their boxes


class TreeSizes(NamedTuple):
    """Pairs of particles in near lists, octets, pairs of octets, and levels of octets."""

    near: float
    octets: float
    octet_pairs: float
    levels: int


@dataclass(frozen=True)
class OccupiedBoxes:
    """Occupied boxes of an octree, level after level, each with the estimated numbers of its points.

    Attributes
    ----------
    targets, sources : arrays (B,)
    level : array (B,)
    parent : array (B,)
        The root's is the root.
    dimensions : array (B,)
        Of the points around a box.
    weight : float
        Points for each of a sample of targets that are the sources; else 1.
    """

    targets: Floats
    sources: Floats
    level: Ints
    parent: Ints
    dimensions: Floats
    weight: float

    @classmethod
    def of(cls, samples: Sequence[Floats], weights: Sequence[float], low: Floats, width: float, limit: float) -> (
        "OccupiedBoxes"
    ):  # fmt: skip
        """Return the boxes whose parents have more than `limit` targets or sources.

        Parameters
        ----------
        samples : sequence of arrays (3, n)
            Some of the targets, and of the sources; one array if they are the same.
        weights : sequence of float
            Points for each of a sample.
        low : array (3,)
            Lowest corner of the root.
        width : float
            Side of the root.
        limit : float
        """
        keys, totals = _in_order(samples, weights, low, width)
        bits = np.frexp((keys[1:] ^ keys[:-1]).astype(np.float64))[1]
        change = np.concatenate([[0], LEVELS + 1 - (bits + 2) // 3, [0]])  # first level at which a box is another
        start, stop, first = np.zeros(1, np.int64), np.array([len(keys)]), 0
        counts, parents, crowds = [totals[:, stop]], [start], [stop]
        for level in range(1, LEVELS + 1):
            is_large = counts[-1].max(axis=0) > limit
            if not is_large.any():
                break
            edges = np.flatnonzero(change <= level)
            parent = np.maximum(np.searchsorted(start, edges[:-1], side="right") - 1, 0)
            is_child = is_large[parent] & (edges[:-1] >= start[parent]) & (edges[:-1] < stop[parent])
            parents.append(first + parent[is_child])
            first += len(start)
            start, stop = edges[:-1][is_child], edges[1:][is_child]
            counts.append(totals[:, stop] - totals[:, start])
            crowds.append(stop - start)
        level = np.repeat(np.arange(len(crowds)), [len(crowd) for crowd in crowds])
        count, parent, crowd = np.concatenate(counts, axis=1), np.concatenate(parents), np.concatenate(crowds)
        dimensions = np.log2(np.maximum(np.bincount(parent[1:], minlength=len(parent)), 1))
        for box in np.split(np.arange(len(level)), np.flatnonzero(np.diff(level)) + 1)[1:]:
            sparse = box[crowd[box] < CROWD]
            dimensions[sparse] = dimensions[parent[sparse]]
        return cls(count[0], count[-1], level, parent, dimensions, weights[0] if len(weights) == 1 else 1.0)

    def sizes(self, leaf_size: float) -> TreeSizes:
        """Return the sizes of a tree with at most `leaf_size` points in a leaf."""
        is_cut = (np.maximum(self.targets, self.sources) > leaf_size) & (self.level < LEVELS)
        if not is_cut[0]:
            return TreeSizes(float(self.targets[0] * self.sources[0]), 0.0, 0.0, 0)
        is_leaf = ~is_cut & is_cut[self.parent]
        near = self.targets[is_leaf] @ self.reached[is_leaf]
        level, dimensions = self.level[is_cut], self.dimensions[is_cut]
        across = np.bincount(level)[level] ** (1 / np.maximum(dimensions, 1))
        meetings = np.maximum(3 - 2 / across, 1) ** dimensions - 1
        return TreeSizes(float(near), float(len(level)), float(meetings.sum()), int(level[-1]))

    @cached_property
    def reached(self) -> Floats:
        """Return the sources that meet each target of a box directly if the box is a leaf."""
        neighbours = 3.0 ** self.dimensions[self.parent]
        repeated = np.minimum(self.weight - 1, self.sources)  # by the targets' own places in a sample
        return np.minimum(neighbours * (self.sources - repeated), self.sources[0])


def _in_order(samples: Sequence[Floats], weights: Sequence[float], low: Floats, width: float) -> tuple[Ints, Floats]:
    """Return the sorted keys of all samples, and the numbers of points (samples, keys + 1) that each key follows."""
    keys = np.concatenate([_keys(points, low, width) for points in samples])
    order = np.argsort(keys)
    of_sample = np.repeat(np.arange(len(samples)), [points.shape[1] for points in samples])[order]
    totals = np.zeros((len(samples), len(keys) + 1))
    totals[of_sample, np.arange(1, len(keys) + 1)] = np.take(weights, of_sample)
    return keys[order], np.cumsum(totals, axis=1)


def _keys(points: Floats, low: Floats, width: float) -> Ints:
    """Return the keys of points' boxes on the last level, of which three bits more are those of each level."""
    cell = np.clip((points - low[:, None]) / width * 2**LEVELS, 0, 2**LEVELS - 1).astype(np.int64)
    table = _spread_bits()
    x, y, z = table[cell >> HALF] << 3 * HALF | table[cell & (1 << HALF) - 1]
    return x << 2 | y << 1 | z


@lru_cache(maxsize=1)
def _spread_bits() -> Ints:
    """Return the numbers of half a key's bits with their bits three places apart."""
    number = np.arange(1 << HALF)
    return sum((number >> bit & 1) << 3 * bit for bit in range(HALF)).astype(np.int64)
