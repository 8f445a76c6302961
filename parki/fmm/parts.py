"""Steps of a sum in their order: of the whole of a tree, and what a part of it asks for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from parki.engine.steps import Handle, Step
from parki.engine.steps.listing import Call
from parki.fmm.expansion import Particles
from parki.trees.nodes import Ints
from parki.trees.octlists import OctLists

Listed = Sequence[Step | Call]
Near = Callable[[OctLists], list[Step]]  # of the U lists among lists


@dataclass(frozen=True, eq=False)
class BoxValues:
    """Values of boxes that their sources make.

    Attributes
    ----------
    array : Handle
    place : tuple of arrays (boxes,) or None
        Of each axis of the array the place of each box; None is the axis of a box's values.
    """

    array: Handle
    place: tuple[Ints | None, ...]


class Part(Protocol):
    """A rank's part of a sum over ranks, whose tree has boxes of other ranks and whose sources are those of several.

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
        """Return the steps of the sum, with those of messages between."""


def steps(
    part: Part | None, particles: Particles, lists: OctLists, values: BoxValues | None, upward: Listed, far: Listed,
    near: Near,
) -> Listed:  # fmt: skip
    """Return the steps of a sum in their order.

    Parameters
    ----------
    part : Part or None
        None of the whole.
    particles : Particles
    lists : OctLists
    values : BoxValues or None
        None of boxes without values.
    upward : list of steps
        Values of boxes from particles.
    far : list of steps
        All that boxes have to do with them.
    near : function
    """
    if part is not None:
        return part.steps(particles, lists, values, upward, far, near)
    return [*particles.load("upward"), *upward, *far, *near(lists), *particles.store("near")]
