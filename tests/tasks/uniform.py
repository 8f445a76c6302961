"""Graphs of sums over trees whose leaves are all on one level, cut into tasks as those of plans."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from parki.tasks.durations import Durations
from parki.tasks.graph import Graph, IntLists

KINDS = ("P2M", "M2M", "FFT", "M2L", "P2L", "L2L", "L2P", "M2P", "P2P")
#: Launches on a device, and items that fill the device (docs of the tasks; assumed).
LAUNCHES = {"M2M": 5, "M2L": 2, "L2L": 5}
FILL = {"P2M": 512, "M2M": 64, "FFT": 64, "M2L": 16, "P2L": 512, "L2L": 64, "L2P": 512, "M2P": 512,
        "P2P": 512}  # fmt: skip


def interleave(a):
    """Return Morton keys of corners (3, n)."""
    return sum((a[2 - c] >> b & 1) << 3 * b + c for b in range(20) for c in range(3))


def corners(keys):
    """Return the corners (3, n) of Morton keys."""
    return np.array([sum((keys >> 3 * b + c & 1) << b for b in range(20)) for c in (2, 1, 0)])


def neighbours(keys, width, itself):
    """Return pairs (row, row of a neighbour) among sorted Morton keys."""
    at, out = corners(keys), []
    for d in np.ndindex(3, 3, 3):
        b = at + np.array(d)[:, None] - 1
        ok = np.flatnonzero(((b >= 0) & (b < width)).all(axis=0) & (itself or d != (1, 1, 1)))
        wanted = interleave(b[:, ok])
        i = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        out.append(np.column_stack([ok, i])[keys[i] == wanted])
    return np.concatenate(out)


@dataclass(frozen=True)
class Leaves:
    """Leaves on one level: their Morton keys in ascending order, and the points in each."""

    depth: int
    keys: np.ndarray
    count: np.ndarray

    @classmethod
    def cube(cls, n, depth, seed=0):
        """Return the leaves of n points that are uniform in a cube; with seed None all leaves have as many."""
        boxes = 8**depth
        if seed is None:
            return cls(depth, np.arange(boxes), np.full(boxes, n / boxes))
        count = np.random.default_rng(seed).multinomial(n, np.full(boxes, 1 / boxes))
        return cls(depth, np.flatnonzero(count), count[count > 0])

    @classmethod
    def shell(cls, n, depth, seed=0):
        """Return the leaves of n points on an ellipsoid 1:5:1."""
        x = np.random.default_rng(seed).normal(size=(3, n))
        x *= np.array([[1.0], [5.0], [1.0]]) / np.sqrt((x * x).sum(0))
        low = x.min(axis=1)
        size = (x.max(axis=1) - low).max() * (1 + 1e-9)
        keys, count = np.unique(interleave(((x - low[:, None]) / size * 2**depth).astype(int)), return_counts=True)
        return cls(depth, keys, count)


class Cut:
    """Leaves and the octets above them, in groups of octets and parts of leaves with about equal near work.

    With a seed `drawn`, some parts meet groups of octets, and groups meet parts, as in lists W and X of other trees.
    """

    def __init__(self, of, octets, leaves, points=218, itemsize=8, drawn=None):
        keys, depth = of.keys, of.depth
        levels = [np.unique(keys >> 3 * (depth - level + 1)) for level in range(2, depth + 1)]
        self.start = np.cumsum([0] + [len(some) for some in levels])
        self._group(levels, octets)
        pairs = neighbours(keys, 2**depth, True)
        self.octet = self.start[-2] + np.searchsorted(levels[-1], keys >> 3)
        work = np.bincount(pairs[:, 0], of.count[pairs[:, 1]], len(keys)) * of.count
        self._part(work, leaves)
        self._count(of.count, work)
        self._meet(levels, pairs)
        self._draw(points, np.random.default_rng(drawn), 0.0 if drawn is None else 0.4)
        self.nbytes = np.concatenate([self.size * 8 * points] * 3 + [self.points] * 3) * float(itemsize)

    def _group(self, levels, octets):
        """Number the groups of octets, level by level."""
        n, glevel = self.start[-1], []
        self.group = np.zeros(n, int)
        for level, some in enumerate(levels, 2):
            many = -(-len(some) // octets)
            at = np.arange(len(some))
            self.group[self.start[level - 2] + at] = len(glevel) + at * many // len(some)
            glevel += [level] * many
        self.level = np.array(glevel)
        self.groups = len(glevel)

    def _part(self, work, leaves):
        self.parts = max(1, -(-len(work) // leaves))
        total = np.cumsum(work + 1.0)
        self.part = np.minimum((total / total[-1] * self.parts).astype(int), self.parts - 1)

    def _count(self, count, work):
        """Count octets, leaves, points and pairs of groups and parts."""
        leaf = self.group[self.octet]
        self.size = np.bincount(self.group, minlength=self.groups)
        self.sources, self.leaves = (np.bincount(leaf, w, self.groups) for w in (count, None))
        self.points, self.pairs = (np.bincount(self.part, w, self.parts) for w in (count, work))
        self.part_leaves = np.bincount(self.part, minlength=self.parts)

    def _meet(self, levels, pairs):
        """List the groups and parts that each group or part meets."""
        G, P, group, part = self.groups, self.parts, self.group, self.part
        inner = np.arange(self.start[1], self.start[-1])
        above = [np.searchsorted(up, low >> 3) for up, low in pairwise(levels)]
        parent = np.concatenate([a + s for a, s in zip(above, self.start, strict=False)] or [inner])
        near = [neighbours(some, 2 ** (i + 1), False) + self.start[i] for i, some in enumerate(levels)]
        v = group[np.concatenate(near)]
        self.translations = np.bincount(v[:, 0], minlength=G)
        self.v = IntLists.of(v[:, 0], v[:, 1], G)
        self.below, self.above = (
            IntLists.of(group[parent], group[inner], G),
            IntLists.of(group[inner], group[parent], G),
        )
        leaf = group[self.octet]
        self.of_part, self.of_group = IntLists.of(part, leaf, P), IntLists.of(leaf, part, G)
        self.u = IntLists.of(part[pairs[:, 0]], part[pairs[:, 1]], P)

    def _draw(self, points, rng, share):
        """Draw groups that parts meet, and parts that groups meet, with the numbers of evaluations."""
        G, P = self.groups, self.parts
        (group, part), (up, of) = (np.nonzero(rng.random(shape) < share / 4) for shape in ((G, P), (P, G)))
        self.x, self.w = IntLists.of(group, part, G), IntLists.of(up, of, P)
        x, w = (points * rng.integers(1, 40 * points, len(some)) for some in (group, up))
        self.x_work, self.w_work = np.bincount(group, x, G), np.bincount(up, w, P)

    def graph(self):
        """Return the graph of the sum."""
        G, P = self.groups, self.parts
        # data: multipoles, spectra and locals of groups; charges, far and near fields of parts
        M, S, L, Q, F, N = 0, G, 2 * G, 3 * G, 3 * G + P, 3 * G + 2 * P
        rows = []
        for g in range(G - 1, -1, -1):
            if self.leaves[g]:
                rows.append(("P2M", g, self.sources[g], self.leaves[g], Q + self.of_group[g], M + g))
            rows.append(("M2M", g, self.size[g], self.size[g], [*(M + self.below[g]), M + g], M + g))
        rows += [("FFT", g, self.size[g], self.size[g], [M + g], S + g) for g in range(G)]
        for g in range(G):
            many = self.translations[g]
            if many:
                rows.append(("M2L", g, many, many, S + self.v[g], L + g))
            if self.x_work[g]:
                rows.append(("P2L", g, self.x_work[g], self.size[g], [*(Q + self.x[g]), L + g], L + g))
            rows.append(("L2L", g, self.size[g], self.size[g], [*(L + self.above[g]), L + g], L + g))
        for p in range(P):
            rows.append(("P2P", p, self.pairs[p], self.part_leaves[p], Q + self.u[p], N + p))
            if self.w_work[p]:
                rows.append(("M2P", p, self.w_work[p], self.part_leaves[p], M + self.w[p], F + p))
            if len(self.of_part[p]):
                reads = [*(L + self.of_part[p]), F + p]
                rows.append(("L2P", p, self.points[p], self.part_leaves[p], reads, F + p))
        return self._graph(rows)

    def _graph(self, rows):
        names, group, work, items, reads, writes = zip(*rows, strict=True)
        kind, group, n = np.array([KINDS.index(name) for name in names]), np.array(group), len(rows)
        first, many = np.unique(self.level, return_index=True)[1], np.bincount(self.level)[2:]
        boxes = np.isin(kind, [KINDS.index(name) for name in ("P2M", "M2M", "FFT", "M2L", "P2L", "L2L")])
        level = np.where(boxes, self.level[np.where(boxes, group, 0)] - 2, 0)
        place = np.where(boxes, (group - first[level]) / many[level], group / self.parts)
        owner = np.repeat(np.arange(n), [len(some) for some in reads])
        return Graph(
            kinds=KINDS, kind=kind.astype(np.uint8), group=group.astype(np.int32), work=np.array(work, float),
            items=np.array(items, float), reads=IntLists.of(owner, np.concatenate(reads), n),
            writes=IntLists.of(np.arange(n), writes, n), nbytes=self.nbytes, place=place,
        )  # fmt: skip

    def seconds(self, graph, unit: Mapping[str, float]):
        """Return the seconds of each task: its work times the seconds of a unit; M2L transforms its octets back."""
        found = graph.work * np.array([unit.get(name, np.inf) for name in graph.kinds])[graph.kind]
        back = graph.kind == KINDS.index("M2L")
        found[back] += self.size[graph.group[back]] * unit.get("FFT", 0.0)
        return found

    def durations(self, graph, core, device):
        """Return the durations of the tasks, by seconds of a unit on a core and on a device."""
        core, device = (self.seconds(graph, unit) for unit in (core, device))
        return Durations.of(graph, core, device, LAUNCHES, FILL)
