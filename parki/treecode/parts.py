"""Lists of a part of the targets, in a sum whose other parts are elsewhere: with sources here, and with others."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parki.treecode.interactions import PP, FarPairs, Interactions, allowed_error, as_rows, sorted_lists
from parki.trees.dual import Pairs


def choose(
    far: FarPairs, mask: NDArray[np.bool_], total: Callable[[float, float], tuple[float, float]]
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
    blocks = list(far.weights_and_work(mask))
    sums = total(float(sum(weight for weight, _ in blocks)), float(sum(work for _, work in blocks)))
    far.choose(allowed_error(*sums, far.rule) if far.rule.vary else 0.0)


def work(far: FarPairs, pairs: Pairs) -> NDArray[np.float64]:
    """Return the work of each target node, in pairs of particles."""
    n_trg, (_, begin, end) = far.targets.count.astype(float), as_rows(far.sources)
    total = np.zeros(far.targets.n)
    total += np.bincount(pairs.far_t, far.cost, far.targets.n)
    total += np.bincount(pairs.near_t, n_trg[pairs.near_t] * (end - begin)[pairs.near_s], far.targets.n)
    return total


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
    def of(cls, far: FarPairs, pairs: Pairs, mask: NDArray[np.bool_]) -> "SharedPairs":
        """Sort chosen pairs into two lists; `mask` marks source nodes with points elsewhere."""
        direct = np.zeros(far.sources.n, bool)
        direct[pairs.near_s] = direct[pairs.far_s[far.kind == PP]] = True
        rank = np.where(mask, np.where(direct, 1, 2), 0)
        lists = []
        for flag in (False, True):
            index = np.flatnonzero(mask[pairs.far_s] == flag)
            near = mask[pairs.near_s] == flag
            selection = Pairs(pairs.far_t[index], pairs.far_s[index], pairs.near_t[near], pairs.near_s[near])
            lists.append(sorted_lists(far.only(index), selection, rank))
        return cls(*lists, int(np.count_nonzero(~mask[as_rows(far.sources, rank)[0]])))
