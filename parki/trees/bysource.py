"""Lists of one tree of targets with several sources."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T, S, L, M = TypeVar("T"), TypeVar("S"), TypeVar("L"), TypeVar("M")


@dataclass(frozen=True)
class ListsBySource(Generic[T, S, L]):
    """Lists of targets with each of their sources: (targets, [sources, …]).

    A tree in one process has a single source.  Nodes that arrive from elsewhere, with points or only with expansions,
    are another source, whose lists are appended.  Every pair of a target and a source point belongs to one list.

    Attributes
    ----------
    targets : ClusterNodes or OctNodes
        Nodes of the targets.
    sources : tuple of ClusterNodes or Spans
        Nodes of each source: a tree of clusters, or the places of source points in the boxes of the targets' octree.
    lists : tuple of Pairs, Interactions or OctLists
        lists[k] are between `targets` and sources[k], with numbers of nodes and points of sources[k].
    """

    targets: T
    sources: tuple[S, ...]
    lists: tuple[L, ...]

    def __post_init__(self) -> None:
        if len(self.sources) != len(self.lists):
            raise ValueError(f"lists are {len(self.lists)}; expected one for each of {len(self.sources)} sources.")

    @classmethod
    def of(cls, targets: T, sources: S, lists: L) -> "ListsBySource[T, S, L]":
        """Return the lists of a single source."""
        return cls(targets, (sources,), (lists,))

    def appended(self, sources: S, lists: L) -> "ListsBySource[T, S, L]":
        """Return these lists and those of one more source."""
        return ListsBySource(self.targets, (*self.sources, sources), (*self.lists, lists))

    def replaced(self, lists: "list[M]") -> "ListsBySource[T, S, M]":
        """Return other lists of the same targets and sources."""
        return ListsBySource(self.targets, self.sources, tuple(lists))

    @property
    def only(self) -> L:
        """Return the lists of the single source.

        Raises
        ------
        ValueError
            If there are several sources.
        """
        if len(self.lists) != 1:
            raise ValueError(f"sources are {len(self.sources)}; expected a single one.")
        return self.lists[0]
