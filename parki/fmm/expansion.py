"""What expansions on an octree share: sources in rows, sums at targets, launches by phase, and the near field."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import direct, engine
from parki.arrays import Array, index32
from parki.engine import Prepared, TeamPolicy, spaces
from parki.engine.spaces import Space
from parki.engine.workunit import Workunit
from parki.fmm.memory import aligned
from parki.pairs import Pair
from parki.proxies import THREADS
from parki.trees.octlists import OctLists, near
from parki.trees.octree import Octree

FEWER = "Take a larger leaf_size, or a lower order."
TOP = 2  # level of the largest boxes that have expansions
PHASES = ("upward", "across", "uneven", "downward", "near")


class Expansion(ABC):
    """Arrays and launches of a sum, phase by phase.

    Parameters
    ----------
    tree : Octree
    lists : OctLists
    pair : Pair
        Linear in what sources carry.
    space : Space
    ranges : Workunit
        ``clusters.ranges`` of the pair.

    Attributes
    ----------
    rows : array (n_src, 3 + strengths)
        Sources in the order of the tree: place, charges, parameters.
    u : array (result, n_trg)
        The sum at the targets in the order of the tree.
    tiny : float
        Squared distance up to which points coincide, over that from the origin.
    """

    def __init__(self, tree: Octree, lists: OctLists, pair: Pair, space: Space, ranges: Workunit) -> None:
        self.tree, self.pair, self.space = tree, pair, space
        self.real = np.dtype(tree.sources.points.dtype)
        self.xp = spaces.array_module(space)
        self._held: list[Array] = []
        self._launches: dict[str, list[Prepared]] = {phase: [] for phase in PHASES}
        self.rows = self._empty((tree.sources.n, 3 + pair.strengths))
        self.rows[:, :3] = tree.sources.points.T
        for k, value in enumerate(pair.parameters):
            self.rows[:, 3 + pair.dens + k] = value
        self.u = self._empty((pair.result, tree.targets.n))
        met = pair.singular and len(lists.u_t) + len(lists.x_t)
        self.tiny = direct.coincident(self.real) if met else 0.0
        self._direct(lists, ranges)

    @property
    def memory(self) -> int:
        """Bytes of all arrays, those of the tree apart."""
        return sum(a.nbytes for a in self._held)

    def run(self, charges: Array) -> Array:
        """The whole sum at the targets, from charges (dens, n_src), both in the order of the tree."""
        self.begin(charges)
        for phase in PHASES:
            getattr(self, phase)()
        return self.u

    def begin(self, charges: Array) -> None:
        """Set the charges (dens, n_src), in the order of the tree, and clear the sums."""
        self.rows[:, 3 : 3 + self.pair.dens] = charges.reshape(self.pair.dens, -1).T
        self.u.fill(0)

    def upward(self) -> None:
        """P2M and M2M: what stands for the sources of all boxes."""
        self._run("upward")

    @abstractmethod
    def across(self) -> None:
        """M2L: list V."""

    def uneven(self) -> None:
        """P2L and M2P: lists X and W."""
        self._run("uneven")

    def downward(self) -> None:
        """L2L and L2P: the field of all that is far, at the targets."""
        self._run("downward")

    def near(self) -> None:
        """P2P: list U."""
        self._run("near")

    def _run(self, phase: str) -> None:
        for one in self._launches[phase]:
            one.launch()

    def _array(self, a: NDArray[Any]) -> Array:
        self._held.append(self.xp.ascontiguousarray(self.xp.asarray(a)))
        return self._held[-1]

    def _empty(self, shape: tuple[int, ...]) -> Array:
        self._held.append(aligned(self.xp, shape, self.real))
        return self._held[-1]

    def _prepare(
        self, phase: str, unit: Workunit, item: NDArray[Any], name: str = "item", shape: tuple[int, int] = THREADS,
        **given: Any,
    ) -> None:  # fmt: skip
        """Add a launch of a team for each item, if there are any."""
        if len(item):
            policy = TeamPolicy(self.space, len(item), *(() if self.space.kind == "host" else shape))
            given[name] = self._array(index32("the number of points of expansions", item, FEWER))
            self._launches[phase].append(engine.prepare(policy, unit, **given))

    def _direct(self, lists: OctLists, ranges: Workunit) -> None:
        """Prepare list U."""
        if not len(lists.u_t):
            return
        items, spans = near(self.tree.nodes, self.tree.nodes.sources, lists)
        count, nothing = items[:, 1] - items[:, 0], np.zeros(len(items), np.int32)
        item = np.column_stack([nothing, items[:, 0], count, nothing, items[:, 2], items[:, 3]])
        given = {"box": self.xp.zeros((1, 6)), "place": self.xp.zeros((1, 1), self.real), "src": self.rows}
        given |= {"span": self._array(spans), "tiny": self.tiny, "xt": self.tree.targets.points, "u": self.u}
        self._prepare("near", ranges, item, **given)
