"""Expansions on an octree as lists of steps: handles of particles, their order in the tree and back, the near field."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from parki import all_pairs, engine
from parki.arrays import index32
from parki.engine import Space, Workunit
from parki.engine.steps import Call, Handle, Placed, Step, Steps, argument, constant, glue, result, state
from parki.pairs import Pair
from parki.proxies import THREADS, ProxyKernels, meets_once
from parki.tasks.scheduled import Scheduled
from parki.tasks.units import NodeUnits
from parki.trees import mutual
from parki.trees.mutual import MutualLists
from parki.trees.octlists import OctLists, near
from parki.trees.octree import Octree

FEWER = "Take a larger leaf_size, or a lower order."
FEWEST_PAIRS = 2e7  # pairs of particles, at least, for which lists of meetings pay
TOP_LEVEL = 2  # level of the largest boxes that have expansions

Listed = Sequence[Step | Call]
Near = Callable[[OctLists], list[Step]]


@dataclass(frozen=True, eq=False)
class Particles:
    """Handles of the particles of a sum.

    Attributes
    ----------
    pair : Pair
        Linear in the strengths of sources.
    charges : Handle (dens, n_own)
        Argument, in the caller's order: charges of this process's own sources.
    result : Handle (result, n_trg)
        Result, in the caller's order.
    sources, targets : Handle (3, n)
        Points in the order of the tree.
    source_order, target_order : Handle (n_own,), (n_trg,)
        Number of each point in the caller's order.
    own : slice
        Range of own sources among all.
    rows : Handle (n_src, 3 + strengths)
        Sources in the order of the tree: place, charges, parameters; see `Expansion.place`.
    sums : Handle (result, n_trg)
        Results in the order of the tree.
    """

    pair: Pair
    charges: Handle
    result: Handle
    sources: Handle
    targets: Handle
    source_order: Handle
    target_order: Handle
    own: slice
    rows: Handle
    sums: Handle

    @classmethod
    def of(cls, tree: Octree, pair: Pair) -> "Particles":
        """Return the handles of the particles of a tree."""
        real, n_src, n_trg = tree.sources.points.dtype, tree.sources.n, tree.targets.n
        part = part_of(tree)
        own_rows = slice(0, n_src) if part is None else part.own
        sources, source_order = constant("sources", tree.sources.points), constant("source_order", tree.sources.order)
        is_same = tree.targets is tree.sources
        return cls(
            pair=pair,
            charges=argument("charges", (pair.dens, len(tree.sources.order)), real),
            result=result("result", (pair.result, n_trg), real),
            sources=sources,
            targets=sources if is_same else constant("targets", tree.targets.points),
            source_order=source_order,
            target_order=source_order if is_same else constant("target_order", tree.targets.order),
            own=own_rows,
            rows=state("rows", (n_src, 3 + pair.strengths), real, zero=False),
            sums=state("sums", (pair.result, n_trg), real, zero=False),
        )

    @property
    def real(self) -> np.dtype[Any]:
        """Return the type of points, charges and results."""
        return self.rows.dtype

    def load(self, phase: str) -> list[Step]:
        """Return steps that bring the charges into the order of the tree, and clear the sums."""
        rows = self.rows if len(self.source_order) == len(self.rows) else self.rows[self.own]
        steps = [glue.gather_columns(phase, self.charges, self.source_order, rows, 3)] if len(rows) else []
        return [*steps, *glue.fill(phase, self.sums)]

    def store(self, phase: str) -> list[Step]:
        """Return steps that bring the sums into the caller's order."""
        return [glue.scatter(phase, self.sums, self.target_order, self.result)] if len(self.target_order) else []

    def apart(self, near: Sequence[Step]) -> list[Step]:
        """Return the steps of list U, with separate sums, and the steps that store both in the caller's order.

        Near and far field are added in one order, whichever is finished first.
        """
        if not len(self.target_order):
            return []
        near_sums = state("near_sums", self.sums.shape, self.real, zero=False)
        steps = [replace(step, args={**step.args, "u": near_sums}) for step in near]
        unit = engine.kernel("glue", "scatter_both", real=self.real)
        args = {"a": self.sums, "b": near_sums, "order": self.target_order, "out": self.result, "rows": len(near_sums)}
        return [*glue.fill("near", near_sums), *steps, Step("near", unit, len(self.target_order), args)]

    def coincident(self, lists: OctLists) -> float:
        """Return the squared distance up to which points coincide, relative to that from the origin."""
        meet = self.pair.singular and len(lists.u_t) + len(lists.x_t)
        return all_pairs.coincident(self.real) if meet else 0.0

    def near(self, tree: Octree, kernels: ProxyKernels, lists: OctLists, parts: int = 0) -> list[Step]:
        """Return the steps of P2P: list U.

        With some `parts` of particles different leaves meet each other once, if targets are the sources, charges are
        numbers, and there are many pairs.
        """
        if not len(lists.u_t):
            return []
        tiny, met = self.coincident(lists), None
        if parts and self.is_mutual(tree) and mutual.pairs(tree.nodes, lists) >= FEWEST_PAIRS:
            met = mutual.meetings(tree.nodes, lists, parts)
            diagonal = lists.u_t == lists.u_s
            lists = replace(lists, u_t=lists.u_t[diagonal], u_s=lists.u_s[diagonal])
        items, spans = near(tree.nodes, tree.nodes.sources, lists)
        count, zeros = items[:, 1] - items[:, 0], np.zeros(len(items), np.int32)
        item = np.column_stack([zeros, items[:, 0], count, zeros, items[:, 2], items[:, 3]])
        args = {"box": table("no_box", np.zeros((1, 6))), "place": table("no_place", np.zeros((1, 1)), self.real)}
        args |= {"src": self.rows, "span": table("near_spans", spans), "tiny": tiny}
        steps = teams("near", kernels.ranges(), item, args | {"xt": self.targets, "u": self.sums})
        return steps if met is None else [*steps, *self._mutual(kernels.mutual(), met, tiny)]

    def is_mutual(self, tree: Octree) -> bool:
        """Return whether targets are the sources, and pairs take less time together."""
        return tree.targets is tree.sources and part_of(tree) is None and meets_once(self.pair)

    def _mutual(self, unit: Workunit, met: MutualLists, tiny: float) -> list[Step]:
        """Return the steps of pairs that meet once, by round."""
        charge = state("charges of the tree", self.charges.shape, self.real, zero=False)
        args = {"item": table("mutual_items", met.items), "span": table("mutual_spans", met.ranges), "tiny": tiny}
        args |= {"meeting": table("meetings", met.meeting), "charge": charge, "src": self.rows}
        args |= {"xt": self.targets, "u": self.sums}
        steps = [glue.gather("near", self.charges, self.source_order, charge)]
        for first, end in itertools.pairwise(met.rounds):
            if first < end:
                steps.append(Step("near", unit, end - first, args | {"first": first}, shape=(1, 1)))
        return steps


@dataclass(frozen=True, eq=False)
class BoxValues:
    """Values of boxes that result from their sources.

    Attributes
    ----------
    array : Handle
    place : tuple of arrays (boxes,) or None
        Place of each box along each axis of the array; None for the axis of a box's values.
    """

    array: Handle
    place: tuple[NDArray[np.int32] | None, ...]


class TreePart(Protocol):
    """Part of a sum on one rank.

    Attributes
    ----------
    far : bool
        Whether particles of any rank meet through expansions.
    own : slice
        The sources whose charges are given here.
    """

    far: bool
    own: slice

    def steps(
        self, particles: Particles, lists: OctLists, values: BoxValues | None, upward: Listed, far: Listed, near: Near
    ) -> Listed:  # fmt: skip
        """Return the steps of the sum, with those of messages in between: see `ordered`."""


@dataclass(frozen=True)
class RankOctree(Octree):
    """Octree of a rank, with boxes and sources of other ranks that its own boxes meet."""

    part: TreePart


def part_of(tree: Octree) -> TreePart | None:
    """Return the part of a sum over ranks that a tree belongs to; None for a sum in one process."""
    return tree.part if isinstance(tree, RankOctree) else None


def ordered(
    tree: Octree, particles: Particles, lists: OctLists, values: BoxValues | None, far: tuple[Listed, Listed],
    near: Near,
) -> Listed:  # fmt: skip
    """Return the steps of a sum in their order.

    Parameters
    ----------
    tree : Octree
    particles : Particles
    lists : OctLists
    values : BoxValues or None
        None if boxes have no values.
    far : (steps, steps)
        Steps from particles to values of boxes, and all other steps of boxes.
    near : function
        Returns the steps of lists U.
    """
    part = part_of(tree)
    if part is not None:
        return part.steps(particles, lists, values, *far, near)
    return [*particles.load("upward"), *far[0], *far[1], *near(lists), *particles.store("near")]


@dataclass(frozen=True, eq=False)
class Expansion:
    """Sum over an octree as a list of steps.

    Attributes
    ----------
    steps : Steps
        From `particles.charges` to `particles.result`, in the phases upward, m2l, p2l_m2p, downward, near.
    particles : Particles
    """

    steps: Steps
    particles: Particles

    def place(self, space: Space, order: str | None = None, units: NodeUnits | None = None) -> Placed | Scheduled:
        """Return the steps in a space, with the rows of all sources set except for their charges.

        With an order they are tasks, which units take in that order: see `Scheduled`.
        """
        placement = self.steps.place(space) if order is None else Scheduled(self.steps, space, order, units)
        p = self.particles
        rows = placement[p.rows]
        rows[:, :3] = placement[p.sources].T
        for k, value in enumerate(p.pair.parameters):
            rows[:, 3 + p.pair.dens + k] = value
        return placement


def table(name: str, a: ArrayLike, dtype: DTypeLike = None) -> Handle:
    """Return a contiguous constant."""
    return constant(name, np.ascontiguousarray(a, dtype))


def teams(
    phase: str, unit: Workunit, item: NDArray[Any], args: dict[str, Any], name: str = "item",
    shape: tuple[int, int] = THREADS,
) -> list[Step]:  # fmt: skip
    """Return the step of a team for each item; items are an argument called `name`.  No step without items."""
    if not len(item):
        return []
    items = table(name, index32("the number of points of expansions", item, FEWER))
    return [Step(phase, unit, len(item), {**args, name: items}, shape=shape)]
