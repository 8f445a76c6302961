"""A rank's part of a fast multipole sum: its steps, and the charges of ghosts and values of boxes that travel.

While they travel, the near field of the rank's own particles is summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parki.arrays import Array
from parki.distributed.comm import Comm, Pending
from parki.distributed.exchange import choice
from parki.distributed.exchange.parcels import Arriving, Parcels, Shelf
from parki.distributed.exchange.rounds import Rounds
from parki.distributed.fmm.boxes import RankBoxes
from parki.distributed.fmm.ghosts import GhostPoints
from parki.distributed.fmm.travel import Travelling, places
from parki.distributed.overlap import Meanwhile
from parki.engine import Space
from parki.engine.steps import Call, Context, Step, constant, state
from parki.fmm.expansion import BoxValues, Listed, Near, Particles
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes

CHARGES, VALUES = "ghost_source", "exchange"  # phases
PLACE = 3  # columns of a source's row before its charges


@dataclass(eq=False)
class RankPart:
    """Part of a sum on one rank: see `parki.fmm.expansion.TreePart`.

    Attributes
    ----------
    nodes : OctNodes
    points : GhostPoints
    charges : Parcels
        Messages with charges of own sources to the ranks where they are ghosts.
    travelling : Travelling
    values : Rounds or None
        The exchange of values of boxes; None where no rank has any.
    kind : Shelf
        Kind of the values of a box.
    space : Space
    beside : Meanwhile or None
        The near field of own particles, if it is summed while messages are under way.
    """

    nodes: OctNodes
    points: GhostPoints
    charges: Parcels
    travelling: Travelling
    values: Rounds | None
    kind: Shelf
    space: Space
    beside: Meanwhile | None = None

    @classmethod
    def of(
        cls, comm: Comm, boxes: RankBoxes, nodes: OctNodes, points: GhostPoints, kinds: tuple[Shelf, Shelf],
        space: Space, *, scheme: str | None,
    ) -> RankPart:  # fmt: skip
        """Return the part of a rank; collective.

        Parameters
        ----------
        comm : Comm
        boxes : RankBoxes
        nodes : OctNodes
            Nodes with the places of points.
        points : GhostPoints
        kinds : (Shelf, Shelf)
            Kinds of a source's charges and of a box's values; width 0 where no particles meet through expansions.
        space : Space
        scheme : {"owners", "hypercube"}, optional
            Scheme of the exchange of values; by default the one that is predicted to be faster.
        """
        send, first = {}, 0
        for q, index in sorted(points.send.items()):
            send[q] = [np.arange(first, first + len(index))]
            first += len(index)
        receive = {}
        for q, count in sorted(points.receive.items()):
            receive[q] = [np.arange(first, first + count)]
            first += count
        charges = Parcels(comm, send, receive, kinds[:1], CHARGES)
        travel, values = Travelling.of(boxes), None
        if kinds[1].width:
            values = choice.chosen(comm, None, travel.parts, travel.wishes, kinds[1:], VALUES, scheme)
        return cls(nodes, points, charges, travel, values, kinds[1], space)

    @property
    def far(self) -> bool:
        """Tell whether particles of any rank meet through expansions."""
        return self.values is not None

    @property
    def own(self) -> slice:
        """Return the sources whose charges are given here."""
        return self.points.own

    @property
    def arrays(self) -> list[Array]:
        """Return every array that is kept for messages."""
        return [*self.charges.arrays, *(self.values.arrays if self.values is not None else [])]

    def steps(
        self, particles: Particles, lists: OctLists, values: BoxValues | None, upward: Listed, far: Listed, near: Near
    ) -> Listed:  # fmt: skip
        """Return the steps of the sum."""
        charges = _Charges(self.charges, self.points, particles)
        travel: list[_Charges | _Values] = [charges]
        if self.values is not None:
            travel.append(_Values(self.values, self.kind, self.travelling, values))
        own_lists, ghost_lists = self._near(lists)
        near_start, near_end = self._beside(
            near(own_lists)
        )  # both before the far field: sums do not depend on when messages come
        arrival = Call(travel[-1].phase, self._arrive(travel), writes=[], capturable=False)
        return [
            *particles.load("upward"), charges.begin, *upward, *(item.begin for item in travel[1:]), *near_start,
            arrival, *near_end, *(item.end for item in travel), *far, *near(ghost_lists), *particles.store("near"),
        ]  # fmt: skip

    def _near(self, lists: OctLists) -> tuple[OctLists, OctLists]:
        """Return lists with the U pairs of own sources, and lists with those of ghosts."""
        first = self.nodes.sources.begin[lists.u_s]
        own_mask = (first >= self.own.start) & (first < self.own.stop)
        result = [replace(lists, u_t=lists.u_t[mask], u_s=lists.u_s[mask]) for mask in (own_mask, ~own_mask)]
        return result[0], result[1]

    def _beside(self, near: list[Step]) -> tuple[Listed, Listed]:
        """Return the steps of a near field before and after the messages during which a host sums it."""
        if not (near and self.space.native and self.space.engine == "parki"):
            return near, []
        self.beside = Meanwhile(near[0], {})
        return [self.beside.begin], [self.beside.rest]

    def _arrive(self, travel: Sequence[_Charges | _Values]) -> Callable[..., None]:
        """Return the function that waits for all messages, and works on the near field meanwhile."""

        def arrive(context: Context) -> None:
            messages = _All([item.pending for item in travel])
            if self.beside is None:
                messages.finish()
            else:
                self.beside.until(messages, travel[-1].phase)

        return arrive


class _All:
    """Messages of several exchanges: see `parki.distributed.comm.Pending`."""

    def __init__(self, items: Sequence[Pending]) -> None:
        self._some = items

    def test(self) -> bool:
        """Let messages progress, and tell whether all have come and gone."""
        flags = [item.test() for item in self._some]
        return all(flags)

    def finish(self) -> None:
        """Wait until all messages have come and gone."""
        for item in self._some:
            item.finish()


class _Charges:
    """Steps that bring charges of ghosts."""

    phase = CHARGES

    def __init__(self, parcels: Parcels, points: GhostPoints, particles: Particles) -> None:
        self._parcels, self._own, self._dens = parcels, points.own, particles.pair.dens
        index = [index for _, index in sorted(points.send.items())]
        index = np.concatenate([np.empty(0, np.int32), *index]) + np.int32(points.own.start)
        self._sent = len(index)
        n_ghosts = sum(points.receive.values())
        self._shelf = state("ghost_charges", (self._sent + n_ghosts, self._dens), particles.real)
        reads = [particles.rows, constant("sent_sources", index)]
        self.pending: Arriving
        self.begin = Call(self.phase, self._begin, reads, [self._shelf], capturable=False)
        self.end = Call(self.phase, self._end, [self._shelf], [particles.rows], capturable=False)

    def _begin(self, context: Context, rows: Array, index: Array, shelf: Array) -> None:
        shelf[: self._sent] = rows[index, PLACE : PLACE + self._dens]
        self.pending = self._parcels.start([shelf])

    def _end(self, context: Context, shelf: Array, rows: Array) -> None:
        own_range, ghost_charges = self._own, shelf[self._sent :]
        rows[: own_range.start, PLACE : PLACE + self._dens] = ghost_charges[: own_range.start]
        rows[own_range.stop :, PLACE : PLACE + self._dens] = ghost_charges[own_range.start :]


class _Values:
    """Steps that exchange values of boxes: parts of this rank go to others, complete values come here.

    Values of a box may lie anywhere in an array; values that travel have rows of their own.
    """

    phase = VALUES

    def __init__(self, rounds: Rounds, kind: Shelf, travel: Travelling, values: BoxValues | None) -> None:
        self.pending, self._kind = rounds, kind
        self._shelf = state("travelling", (len(travel.boxes), kind.width), kind.dtype)
        wish_rows = np.sort(travel.wishes.row)
        if values is None:  # a rank without boxes still passes messages of others
            self.begin = Call(self.phase, self._begin_alone, writes=[self._shelf], capturable=False)
            self.end = Call(self.phase, lambda context: None, capturable=False)
            return
        self._axes = [axis is not None for axis in values.place]
        send_places, receive_places = (
            [constant("travelling_boxes", a) for a in places(boxes, values.place) if a is not None]
            for boxes in (travel.boxes, travel.boxes[wish_rows])
        )
        rows = constant("wished", wish_rows)
        self.begin = Call(self.phase, self._begin, [values.array, *send_places], [self._shelf], capturable=False)
        self.end = Call(self.phase, self._end, [self._shelf, rows, *receive_places], [values.array], capturable=False)

    def _place(self, index: Sequence[Array]) -> tuple[Any, ...]:
        """Return the places of boxes in the array of values."""
        indices = iter(index)
        return tuple(next(indices) if axis else slice(None) for axis in self._axes)

    def _begin(self, context: Context, array: Array, *arrays: Array) -> None:
        *index, shelf = arrays
        shelf[...] = array[self._place(index)]
        self.pending.start([shelf])

    def _begin_alone(self, context: Context, shelf: Array) -> None:
        self.pending.start([shelf])

    def _end(self, context: Context, shelf: Array, rows: Array, *arrays: Array) -> None:
        *index, array = arrays
        array[self._place(index)] = shelf[rows]
