"""Lists of a part of the targets, in a sum whose other parts are elsewhere: with sources here, and with others."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.treecode.interactions import PP, FarPairs, Interactions, allowed_error, as_rows, sorted_lists
from parki.trees.dual import Pairs


def choose(
    far: FarPairs, counted: NDArray[np.bool_], total: Callable[[float, float], tuple[float, float]]
) -> None:  # fmt: skip
    """Choose kinds and numbers of proxy points as `interactions.build` does, for the pairs of all parts.

    Parameters
    ----------
    far : FarPairs
    counted : array of bool
        Target nodes whose pairs count here, where several parts have a node.
    total : function
        Sums weight and work over all parts.
    """
    blocks = list(far.weights_and_work(counted))
    sums = total(float(sum(weight for weight, _ in blocks)), float(sum(work for _, work in blocks)))
    far.choose(allowed_error(*sums, far.rule) if far.rule.vary else 0.0)


def work(far: FarPairs, pairs: Pairs) -> NDArray[np.float64]:
    """Return the work of each target node, in pairs of particles."""
    n_trg, (_, begin, end) = far.targets.count.astype(float), as_rows(far.sources)
    found = np.zeros(far.targets.n)
    found += np.bincount(pairs.far_t, far.cost, far.targets.n)
    found += np.bincount(pairs.near_t, n_trg[pairs.near_t] * (end - begin)[pairs.near_s], far.targets.n)
    return found


@dataclass(frozen=True)
class SharedPairs:
    """Pairs of a part of the targets, with sources in one set of nodes, in two lists.

    Attributes
    ----------
    own, others : Interactions
        With sources that are here, and with sources that are elsewhere, or in parts.
    lumps : int
        Number of crowds that are here; they come first.
    """

    own: Interactions
    others: Interactions
    lumps: int

    @classmethod
    def of(cls, far: FarPairs, pairs: Pairs, elsewhere: NDArray[np.bool_]) -> "SharedPairs":
        """Sort chosen pairs into two lists; `elsewhere` marks source nodes with points elsewhere."""
        met = np.zeros(far.sources.n, bool)
        met[pairs.near_s] = met[pairs.far_s[far.kind == PP]] = True
        rank = np.where(elsewhere, np.where(met, 1, 2), 0)
        lists = []
        for there in (False, True):
            at = np.flatnonzero(elsewhere[pairs.far_s] == there)
            near = elsewhere[pairs.near_s] == there
            these = Pairs(pairs.far_t[at], pairs.far_s[at], pairs.near_t[near], pairs.near_s[near])
            lists.append(sorted_lists(far.only(at), these, rank))
        return cls(*lists, int(np.count_nonzero(~elsewhere[as_rows(far.sources, rank)[0]])))
