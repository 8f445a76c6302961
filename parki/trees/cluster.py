"""Trees of clusters, built level by level: bounds, children, and a stable sort of a level's points, all at once.

Source: L. Wilson, N. Vaughn, R. Krasny, "A GPU-accelerated fast summation method based on barycentric Lagrange
interpolation and dual tree traversal", Comput. Phys. Commun. 265 (2021) 108017, section 2.3.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import engine
from parki.arrays import Array, to_host
from parki.engine import RangePolicy, TeamPolicy
from parki.engine.spaces import Space, array_module

ASPECT = math.sqrt(2)
PIECE = {"host": 1 << 14}  # points of a piece, at most: enough to hide its launch, counted in 16 bits
DEVICE_PIECE = 1 << 12  # more pieces, as a device has more multiprocessors than a host has cores
MAX_LEVELS = 100  # points spaced by powers of 2 would make a level for each
MOST_POINTS = 2**31 - 1
SHIFTS = np.arange(0, 64, 16)


@dataclass(frozen=True)
class ClusterTree:
    """Points in the order of nested clusters; M nodes, level by level, the children of a node next to each other.

    Attributes
    ----------
    points : array (3, N)
        The points, sorted: a node holds the places begin to end − 1.  Where the points given were.
    order : array (N,) of int32
        points[:, j] is the point order[j] of those given.
    begin, end, parent, first_child, n_children, level : arrays (M,) of int32
        Node by node; the root's parent is −1, and first_child is −1 for leaves.
    low, high : arrays (M, 3) of float64
        Minimal boxes.
    level_begin : array (L + 1,) of int32
        Level l holds the nodes level_begin[l] to level_begin[l + 1] − 1.
    leaves : array of int32
        Nodes without children, by the points that they hold.

    Everything but `points` and `order` are NumPy arrays.
    """

    points: Array
    order: Array
    begin: NDArray[np.int32]
    end: NDArray[np.int32]
    parent: NDArray[np.int32]
    first_child: NDArray[np.int32]
    n_children: NDArray[np.int32]
    level: NDArray[np.int32]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    level_begin: NDArray[np.int32]
    leaves: NDArray[np.int32]

    @property
    def n(self) -> int:
        """Number of points."""
        return int(self.points.shape[1])

    @cached_property
    def count(self) -> NDArray[np.int32]:
        """Number of points of each node ``(M,)``."""
        return self.end - self.begin

    @cached_property
    def centre(self) -> NDArray[np.float64]:
        """Centres of the boxes ``(M, 3)``."""
        return 0.5 * self.low + 0.5 * self.high  # the sum itself may overflow

    @cached_property
    def half(self) -> NDArray[np.float64]:
        """Half side lengths of the boxes ``(M, 3)``."""
        return 0.5 * self.high - 0.5 * self.low

    @cached_property
    def radius(self) -> NDArray[np.float64]:
        """Half diagonals of the boxes ``(M,)``."""
        return np.hypot(np.hypot(self.half[:, 0], self.half[:, 1]), self.half[:, 2])

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether a node has no children ``(M,)``."""
        return self.n_children == 0


def build(x: Array, leaf_size: int, space: Space, *, aspect: float = ASPECT) -> ClusterTree:
    """Build a tree of clusters with minimal boxes.

    A node of more than `leaf_size` points is cut at the middle of its box along its longest axis, and along those
    whose side is longer than the longest over `aspect`: along one axis only if it has no more than twice `leaf_size`
    points, along two if it has no more than four times as many.  Children without points are left out.  A node whose
    points are all equal is a leaf, and so is one on the hundredth level.  Without points there is one empty leaf.  The
    tree does not depend on the space or its threads.

    Parameters
    ----------
    x : array (3, N)
        Finite, float32 or float64: CuPy's where `space` is a GPU, else NumPy's.  Not written to.
    leaf_size : int
        Most points of a leaf, at least 1.
    space : Space
        Where passes over the points run.
    aspect : float
        At least 1.

    Raises
    ------
    ValueError
        If an argument does not fit.
    """
    if x.ndim != 2 or x.shape[0] != 3 or x.dtype not in (np.float32, np.float64) or x.shape[1] > MOST_POINTS:
        raise ValueError(
            f"x has shape {x.shape} and dtype {x.dtype}; expected (3, N), N at most {MOST_POINTS}, float32 or float64."
        )
    if isinstance(leaf_size, bool) or not isinstance(leaf_size, int | np.integer) or leaf_size < 1:
        raise ValueError(f"leaf_size is {leaf_size!r}; expected an integer of at least 1.")
    if not aspect >= 1:
        raise ValueError(f"aspect is {aspect!r}; expected a number of at least 1.")
    passes, nodes = _Passes(x, space), _Nodes()
    begin, end, parent = (np.array([v], np.int32) for v in (0, x.shape[1], -1))
    low, high = passes.root_box() if x.shape[1] else (np.zeros((1, 3)),) * 2
    while True:
        first = nodes.append(begin, end, parent, low, high)
        split = (end - begin > leaf_size) & (low < high).any(axis=1) & (nodes.levels < MAX_LEVELS)
        passes.finish(begin[~split], end[~split])
        at = np.flatnonzero(split)
        if not len(at):
            break
        middle = _middles(low[at], high[at], end[at] - begin[at], int(leaf_size), aspect, x.dtype)
        begin, end, low, high, owner = passes.split(begin[at], end[at], middle)
        parent = (first + at[owner]).astype(np.int32)
    return nodes.tree(*passes.result())


def workunits(real: np.dtype[Any], space: Space) -> list[engine.Workunit]:
    """All workunits that `build` launches in a space, for compiling ahead."""
    names = ("piece_bounds", "piece_count", "piece_place", "piece_copy", "unpack")
    return [engine.kernel("trees", name, real=real, **_slots(name, space)) for name in names]


def _middles(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    count: NDArray[np.int32],
    leaf_size: int,
    aspect: float,
    dtype: np.dtype[Any],
) -> Array:
    """Where each node is cut, (nodes, 3): points not below go to the upper child; infinite where it is not cut."""
    side = 0.5 * high - 0.5 * low  # halves do not overflow
    most = np.where(count <= 2 * leaf_size, 1, np.where(count <= 4 * leaf_size, 2, 3))
    by_length = np.argsort(-side, axis=1, kind="stable")
    rank = np.argsort(by_length, axis=1, kind="stable")
    longest = side.max(axis=1, keepdims=True)
    cut = (rank == 0) | ((rank < most[:, None]) & (side > longest / aspect))
    middle = (0.5 * low + 0.5 * high).astype(dtype)
    middle = np.where(middle > low, middle, high)  # neighbouring numbers: the upper one is the middle
    return np.where(cut & (low < high), middle, np.inf).astype(dtype)


def _cut(begin: Array, end: Array, size: int) -> tuple[Array, Array]:
    """Cut ranges into pieces: (P, 3) int32 of first place, number of places, range; and the first piece of each."""
    begin, count = begin.astype(np.int64), (end - begin).astype(np.int64)
    pieces = -(-count // size)
    first = np.cumsum(pieces) - pieces
    owner = np.repeat(np.arange(len(begin)), pieces)
    within = (np.arange(len(owner)) - first[owner]) * size
    made = np.stack([begin[owner] + within, np.minimum(count[owner] - within, size), owner], axis=1)
    return np.ascontiguousarray(made, np.int32), first


class _Passes:
    """The records of the points, in one of two pairs of arrays, and the launches that move them to and fro."""

    def __init__(self, x: Array, space: Space) -> None:
        self.n, self.space, self.real, self.xp = x.shape[1], space, x.dtype, array_module(space)
        self.size = PIECE.get(space.kind, DEVICE_PIECE)
        self.x = self.xp.ascontiguousarray(x)
        self.now = self.x.T, self.xp.arange(self.n, dtype=np.int32)
        self.spare: tuple[Array, Array] | None = None
        self.code = self.xp.empty(self.n, np.uint8)
        self.rounds = 0
        self.done: list[tuple[Array, Array, int]] = []  # ranges of leaves, and the round when they were left

    def _launch(self, name: str, piece: Array, **args: Array) -> None:
        kernel = engine.kernel("trees", name, real=self.real, **_slots(name, self.space))
        engine.parallel_for(TeamPolicy(self.space, len(piece)), kernel, piece=piece, **args)

    def root_box(self) -> tuple[Array, Array]:
        """The minimal box of all points: low and high, (1, 3)."""
        piece = _cut(np.array([0]), np.array([self.n]), self.size)[0]
        bound = self.xp.empty((len(piece), 6), self.real)
        self._launch("piece_bounds", self.xp.asarray(piece), x=self.x, bound=bound)
        return _box(to_host(bound).min(axis=0, keepdims=True))

    def split(self, begin: Array, end: Array, middle: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Sort the points of ranges by child.

        Returns begin, end, low and high of the children that have points, and the index of the range of each.
        """
        piece, first = _cut(begin, end, self.size)
        on_space, packed = self.xp.asarray(piece), self.xp.empty((len(piece), 2), np.int64)
        made = {"middle": self.xp.asarray(middle), "code": self.code, "count": packed}
        self._launch("piece_count", on_space, record=self.now[0], **made)
        count = (to_host(packed)[:, :, None] >> SHIFTS & 0xFFFF).reshape(-1, 8).astype(np.int32)

        total = np.add.reduceat(count, first, axis=0, dtype=np.int32)
        child = begin[:, None] + np.cumsum(total, axis=1, dtype=np.int32) - total
        before = np.cumsum(count, axis=0, dtype=np.int32) - count
        at = child[piece[:, 2]] + before - before[first][piece[:, 2]]

        record, order = self.spare or (self.xp.empty((self.n, 3), self.real), self.xp.empty(self.n, np.int32))
        bound = self.xp.empty((len(piece), 8, 6), self.real)
        made = {"at": self.xp.asarray(at), "count": self.xp.asarray(count), "code": self.code, "bound": bound}
        moved = {"out": record.reshape(-1), "order_out": order}
        self._launch("piece_place", on_space, record=self.now[0], order=self.now[1], **made, **moved)
        self.spare = self.now if self.rounds else None  # the first round's are the caller's
        self.now = record, order
        self.rounds += 1

        full, bound = total > 0, to_host(bound)
        bound[count == 0] = np.inf
        low, high = _box(np.minimum.reduceat(bound, first, axis=0)[full])
        return child[full], child[full] + total[full], low, high, np.nonzero(full)[0]

    def finish(self, begin: Array, end: Array) -> None:
        """Note ranges that are not moved any more."""
        if len(begin):
            self.done.append((begin, end, self.rounds))

    def result(self) -> tuple[Array, Array]:
        """The sorted points and their order."""
        if self.rounds == 0:
            return self.x.copy(), self.now[1]
        spare = self.spare or (self.xp.empty((self.n, 3), self.real), self.now[1])
        last, before = [], []
        for begin, end, rounds in self.done:
            (before if (self.rounds - rounds) % 2 else last).append((begin, end))
        from_, to, moved = self.now, spare, last
        if sum(int((end - begin).sum()) for begin, end in last) >= self.n // 2:
            from_, to, moved = spare, self.now, before
        if moved:
            begin, end = (np.concatenate(part) for part in zip(*moved, strict=True))
            piece = self.xp.asarray(_cut(begin, end, self.size)[0])
            self._launch("piece_copy", piece, record=from_[0], order=from_[1], out=to[0], order_out=to[1])
        points = from_[0].reshape(3, self.n)  # its records are not needed any more
        kernel = engine.kernel("trees", "unpack", real=self.real)
        engine.parallel_for(RangePolicy(self.space, self.n), kernel, record=to[0], x=points)
        return points, to[1]


def _box(bound: Array) -> tuple[Array, Array]:
    """Low and high from bounds (…, 6) as workunits give them."""
    bound = bound.astype(np.float64)
    return np.ascontiguousarray(bound[:, :3]), -bound[:, 3:]


def _slots(name: str, space: Space) -> dict[str, object]:
    return {"AT_ONCE": space.kind != "host"} if name == "piece_place" else {}


class _Nodes:
    """Nodes, level by level."""

    def __init__(self) -> None:
        self.levels, self.count = 0, 0
        self.parts: list[tuple[Array, ...]] = []

    def append(self, begin: Array, end: Array, parent: Array, low: Array, high: Array) -> int:
        """Add a level; return the number of its first node."""
        first = self.count
        self.parts.append((begin, end, parent, low, high))
        self.levels += 1
        self.count += len(begin)
        return first

    def tree(self, points: Array, order: Array) -> ClusterTree:
        """The tree of all levels."""
        begin, end, parent, low, high = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        sizes = [len(part[0]) for part in self.parts]
        n_children = np.bincount(parent[1:], minlength=self.count).astype(np.int32)
        first_child = np.full(self.count, -1, np.int32)
        first_child[parent[:0:-1]] = np.arange(self.count - 1, 0, -1)  # the last one to be written is the first child
        leaves = np.flatnonzero(n_children == 0)
        return ClusterTree(
            points,
            order,
            begin,
            end,
            parent,
            first_child,
            n_children,
            np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
            low,
            high,
            np.cumsum([0, *sizes], dtype=np.int32),
            leaves[np.argsort(begin[leaves], kind="stable")].astype(np.int32),
        )
