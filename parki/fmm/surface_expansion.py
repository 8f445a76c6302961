"""Kernel-independent method: equivalent sources on surfaces around the boxes of an octree.

Check values of a box are fields of its sources on a surface around it, upward on the outer one, downward on the inner
one; equivalents on the other surface make the same values.  Boxes pass them on to their parents and children
(`box_translations`) and to boxes of their level that are apart (`m2l`).  Particles and surfaces meet in the kernels of
`surfaces`, particles and particles in the kernels of treecodes.

Source: L. Ying, G. Biros, D. Zorin, J. Comput. Phys. 196 (2004) 591–626.  I. Lashuk et al., SC09.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parki import engine
from parki.engine import Workunit
from parki.engine.steps import Handle, Step, Steps, glue, scratch, state
from parki.fmm import box_operators, m2l, memory, representations, spectra, surfaces
from parki.fmm.box_operators import Operators
from parki.fmm.box_translations import BoxTranslations
from parki.fmm.expansion import TOP_LEVEL, BoxValues, Expansion, Particles, ordered, part_of, table, teams
from parki.fmm.limits import TeamLimits
from parki.fmm.representations import Representation
from parki.fmm.surface_tasks import SurfaceCuts
from parki.hints import short
from parki.pairs import Pair
from parki.proxies import AT_ONCE, ProxyKernels
from parki.trees.lists import csr, joined_ranges
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes, Octree

SOLVED = 0.1  # error of fields at surfaces relative to that of a sum: solving for equivalents makes it larger
OCTETS_AT_ONCE = 64  # octets whose children are folded together: they stay in a second-level cache
RADII = {"inner": surfaces.INNER, "outer": surfaces.OUTER}
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class SurfaceKernels:
    """Workunits between particles and surfaces.

    Attributes
    ----------
    representation : Representation
    real : dtype
    error : float
        Relative error of the sum, for which fewer digits of roots and exponentials may be enough.
    far : {"float64", "float32"}
        Type of spectra, if its range is enough.
    """

    representation: Representation
    real: DTypeLike
    error: float = 0.0
    far: str = "float64"

    def check_values(self) -> Workunit:
        """Return the sum over particles at surface points."""
        return self._unit("check_values", self.representation.source, CENTRED=True)

    def fields(self) -> Workunit:
        """Return the sum over equivalents at particles."""
        target, true_size = self.representation.target, self.representation.a is None
        return self._unit("fields", target, NP=len(target.parameters), TRUE_SIZE=true_size)

    @property
    def near(self) -> ProxyKernels:
        """Return the workunits between particles."""
        real, pair = np.dtype(self.real), self.representation.pair
        return ProxyKernels(pair, real, real, 1, short(self.error, pair.ours))

    def _unit(self, name: str, pair: Pair, **constants: Any) -> Workunit:
        slots, hints = dict(pair.slots) | constants, (*pair.hints, *short(SOLVED * self.error, pair.ours), AT_ONCE)
        if pair.ours:
            hints = (*hints, "ordinary_rsqrt")  # particles are as far from surfaces as a box is wide, about
        return engine.kernel("surfaces", name, real=np.dtype(self.real), pair=pair.pair, hints=hints, **slots)


@dataclass(frozen=True, eq=False)
class SurfaceExpansion(Expansion):
    """Sum by equivalent sources as a list of steps.

    Attributes
    ----------
    representation : Representation
    p : int
        Points per edge of a surface.
    operators : dict
        Operators of each level by its number, one object where levels share them; empty if no boxes have expansions.
    spectra : dtype
        Type of the spectra by which boxes meet.
    """

    representation: Representation
    p: int
    operators: Mapping[int, Operators]
    spectra: np.dtype[Any]

    @property
    def far(self) -> bool:
        """Tell whether boxes have expansions."""
        return bool(self.operators)


def surface_expansion(
    tree: Octree, lists: OctLists, representation: Representation, p: int, limits: TeamLimits, *, tolerance: float,
    error: float = 0.0, far: str = "float64",
) -> SurfaceExpansion:  # fmt: skip
    """Return a sum by equivalent sources.

    Parameters
    ----------
    tree : Octree
    lists : OctLists
    representation : Representation
    p : int
        Points per edge of a surface.
    limits : TeamLimits
    tolerance : float
        Relative error of the sum; singular values that matter less are left out.
    error : float
        Relative error of the sum, for which fewer digits of roots and exponentials may be enough.
    far : {"float64", "float32"}
        Type of the transforms by which boxes meet; double where the range of single precision is too short.
    """
    particles, part = Particles.of(tree, representation.pair), part_of(tree)
    kernels = SurfaceKernels(representation, particles.real, error, far)
    boxes, upward, far = None, [], []
    if any_far(tree, lists) if part is None else part.far and tree.nodes.depth >= TOP_LEVEL:
        boxes = _SurfaceBoxes(tree, lists, particles, kernels, p, limits, tolerance)
        upward, far = boxes.upward(), [*boxes.m2l(), *boxes.p2l_m2p(lists), *boxes.downward()]
    near = partial(particles.near, tree, kernels.near, parts=limits.parts if limits.tasks is None else 0)
    if limits.tasks is None:
        steps = ordered(tree, particles, lists, boxes and boxes.values, (upward, far), near)
    else:
        cuts = SurfaceCuts.of(tree, lists, surfaces.count(p), limits.tasks)
        steps = cuts.steps([*particles.load("upward"), *upward, *far, *particles.apart(near(lists))])
    of_boxes = ({}, particles.real) if boxes is None else (boxes.operators, boxes.spectra)
    return SurfaceExpansion(Steps(steps), particles, representation, p, *of_boxes)


def any_far(tree: Octree, lists: OctLists) -> bool:
    """Return whether particles meet through expansions of boxes."""
    return tree.nodes.depth >= TOP_LEVEL and bool(len(lists.v_t) + len(lists.w_t) + len(lists.x_t))


class _SurfaceBoxes:
    """Handles of the boxes of a tree, and the steps between boxes, and between boxes and particles."""

    def __init__(
        self, tree: Octree, lists: OctLists, particles: Particles, kernels: SurfaceKernels, p: int, limits: TeamLimits,
        tolerance: float,
    ) -> None:  # fmt: skip
        self.tree, self.particles, self.kernels, self.p, self.limits = tree, particles, kernels, p, limits
        self.representation, self.real = kernels.representation, particles.real
        self.points, octets = surfaces.count(p), len(tree.nodes.octet_parent)
        check, equivalent = self.representation.check * self.points, self.representation.equivalent * self.points
        sparse = part_of(tree) is not None  # boxes of other ranks that send nothing have zeros
        self.check = state("check", (octets, check, 8), self.real, zero=False)
        self.equivalent = state("equivalent", (octets, equivalent, 8), self.real, zero=sparse)
        self.surface = {name: table(name, surfaces.points(p, r).T.astype(self.real)) for name, r in RADII.items()}
        halves = {level: half for level, half in enumerate(_halves(tree.nodes)) if level >= TOP_LEVEL}
        #: Half side of the boxes of each level, or that of the largest boxes if all levels share their operators.
        self.half = halves if self.representation.per_level else dict.fromkeys(halves, halves[TOP_LEVEL])
        operators_by_half = {
            h: box_operators.operators(self.representation, p, tolerance, h) for h in {*self.half.values()}
        }
        self.operators = {level: operators_by_half[h] for level, h in self.half.items()}
        translations = {
            h: BoxTranslations.of(operators, self.real, limits.scratch) for h, operators in operators_by_half.items()
        }
        self.translations = {level: translations[h] for level, h in self.half.items()}
        self.pair_lists = self._pair_lists(lists)
        self.spectra = self.pair_lists[0].table.dtype if self.pair_lists else self.real
        self._families()
        self._scales()

    def _pair_lists(self, lists: OctLists) -> list[m2l.PairList]:
        """Return lists V by half sides of boxes that share operators."""
        if not len(lists.v_t):
            return []
        nodes, v = self.tree.nodes, (lists.v_t, lists.v_s, lists.v_direction)
        level = nodes.level[nodes.octet_parent[lists.v_t]] + 1
        size = np.array([self.half.get(k, 0.0) for k in range(nodes.depth + 1)])[level]
        masks = {half: size == half for half in dict.fromkeys(self.half.values())}
        halves = [half for half, mask in masks.items() if mask.any()]
        of_boxes = [(self.representation.at(half), self.representation.size(half), self.p) for half in halves]
        arrays = [_transforms(*size, self.kernels.far) for size in of_boxes]
        if not all(a.size for a in arrays):
            arrays = [_transforms(*size, "float64") for size in of_boxes]
        return [
            m2l.PairList(table("transforms", array), *(a[masks[half]] for a in v))
            for half, array in zip(halves, arrays, strict=True)
        ]

    def _families(self) -> None:
        """Make handles of the steps between boxes, their parents and their children."""
        nodes, octets = self.tree.nodes, len(self.tree.nodes.octet_parent)
        self.below = {way: table("below", self._below(way)) for way in ("up", "down")}
        operators, limit = self.operators[TOP_LEVEL], int(np.diff(nodes.octet_begin).max())
        rows = 8 * self.points * max(self.representation.check, self.representation.equivalent)
        factors = max(translation.between_rows for translation in self.translations.values())
        handle: Callable[..., Handle] = partial(state, zero=False)
        if self.limits.tasks is not None:  # each worker has its own
            limit = octets = min(limit, self.limits.tasks.octets)
            handle = scratch
        self.folded = handle("folded", (limit, int(operators.check.begin[-1]), 8), self.real)
        self.solved = handle("solved", (octets, int(operators.equivalent.begin[-1]), 8), self.real)
        self.children = handle("children", (min(OCTETS_AT_ONCE, limit), rows, 8), self.real)
        self.between = handle("between_factors", (limit, factors, 8), self.real)

    def _scales(self) -> None:
        """Make handles of boxes in the caller's unit, for check values, and as unit boxes, for fields."""
        nodes, representation = self.tree.nodes, self.representation
        factor = np.array([representation.scales(h)[0] for h in _halves(nodes)])[nodes.level]
        box = np.column_stack([nodes.centre, nodes.half])
        self.physical = {"box": table("box", box), "factor": table("factor", factor, self.real)}
        size = nodes.half[:, None] if representation.a is not None else np.ones((nodes.n, 1))
        field = size ** -representations.field_exponents(representation)
        pairs = [representations.scaled(representation.target, representation.powers, h) for h in _halves(nodes)]
        parameters = np.array([[*pair.parameters, 0.0] for pair in pairs])
        self.unit = {
            "box": table("unit_box", np.column_stack([nodes.centre, 1 / nodes.half, nodes.half])),
            "factor": table("field_factor", field, self.real),
            "slot": table("slot", nodes.slot),
            "constant": table("parameters", parameters[nodes.level], self.real),
            "value": self.equivalent,
        }

    # Between boxes ----------------------------------------------------------------------------------------------------
    def upward(self) -> list[Step]:
        """Return the steps of P2M and M2M: upward equivalents of all boxes."""
        nodes, steps = self.tree.nodes, [*glue.fill("upward", self.check), *self._cleared()]
        node = np.flatnonzero(nodes.is_leaf & (nodes.level >= TOP_LEVEL) & (nodes.own.count > 0))
        spans = np.stack([nodes.sources.begin, nodes.sources.end], axis=1)[node]
        steps += self._checks("upward", "outer", node, np.arange(len(node) + 1), spans)
        for level, octets in self._runs(range(nodes.depth, TOP_LEVEL - 1, -1), "up"):
            t, values, equivalents = (
                self.translations[level],
                self.folded[: octets.stop - octets.start],
                self._solved(octets),
            )
            steps.append(t.fold("upward", "check", self.check[octets], values))
            if level < nodes.depth:
                children = self._children(self.representation.equivalent)
                steps += t.to_parent("upward", self.equivalent, self.below["up"][octets], children, values)
            steps += t.solve("upward", "up", values, self.between, equivalents)
            steps.append(t.unfold("upward", "equivalent", equivalents, self.equivalent[octets]))
        return steps

    def _cleared(self) -> list[Step]:
        """Return steps that clear downward equivalents of the last sum where upward ones do not replace them."""
        ranges = []
        for level in range(TOP_LEVEL, self.tree.nodes.depth + 1):
            up_octets, down_octets = (self._octets(level, way) for way in ("up", "down"))
            ranges += [
                (down_octets.start, min(down_octets.stop, up_octets.start)),
                (max(down_octets.start, up_octets.stop), down_octets.stop),
            ]
        return [s for begin, end in ranges if begin < end for s in glue.fill("upward", self.equivalent[begin:end])]

    def m2l(self) -> list[Step]:
        """Return the steps of M2L: list V."""
        steps, representation = glue.fill("m2l", self.check), self.representation
        if not self.pair_lists:
            return steps
        shape = self.p, representation.equivalent, representation.check
        values = m2l.OctetValues(*shape, self.equivalent, self.check, self.spectra)
        return steps + m2l.steps("m2l", values, self.pair_lists, self.limits)

    def downward(self) -> list[Step]:
        """Return the steps of L2L and L2P: the far field at the targets."""
        nodes, steps = self.tree.nodes, []
        for level, octets in self._runs(range(TOP_LEVEL, nodes.depth + 1), "down"):
            t, values, equivalents = (
                self.translations[level],
                self.folded[: octets.stop - octets.start],
                self._solved(octets),
            )
            steps.append(t.fold("downward", "check", self.check[octets], values))
            steps += t.solve("downward", "down", values, self.between, equivalents)
            steps.append(t.unfold("downward", "equivalent", equivalents, self.equivalent[octets]))
            if level < nodes.depth:
                children = self._children(self.representation.check)
                steps += t.to_children("downward", equivalents, self.below["down"][octets], children, self.check)
        node = np.flatnonzero(nodes.is_leaf & (nodes.level >= TOP_LEVEL) & (nodes.targets.count > 0))
        return steps + self._fields("downward", "outer", node, np.arange(len(node) + 1), node)

    @property
    def values(self) -> BoxValues:
        """Return the upward equivalents of boxes."""
        slot = self.tree.nodes.slot
        return BoxValues(self.equivalent, (slot // 8, None, slot % 8))

    def _runs(self, levels: Iterable[int], way: str) -> Iterator[tuple[int, slice]]:
        """Yield each level with its octets: all together, or in runs that are one task each."""
        tasks = self.limits.tasks
        for level in levels:
            octets = self._octets(level, way)
            length = octets.stop - octets.start if tasks is None else tasks.octets
            for begin in range(octets.start, octets.stop, max(length, 1)):
                yield level, slice(begin, min(begin + length, octets.stop))

    def _solved(self, octets: slice) -> Handle:
        """Return the class values of the equivalents of octets."""
        return self.solved[octets] if self.limits.tasks is None else self.solved[: octets.stop - octets.start]

    def _octets(self, level: int, way: str) -> slice:
        """Return the octets of a level whose boxes have own sources, or own targets."""
        begin, end = (int(first) for first in self.tree.nodes.octet_begin[level - 1 : level + 1])
        mask = self._some(way)
        if mask is None:
            return slice(begin, end)
        octets = begin + np.flatnonzero(mask[self.tree.nodes.octet_parent[begin:end]])
        return slice(int(octets[0]), int(octets[-1]) + 1) if len(octets) else slice(begin, begin)

    def _below(self, way: str) -> Ints:
        """Return the octets (octets, 8) below the boxes of each octet, −1 for none."""
        nodes = self.tree.nodes
        children = np.full((len(nodes.octet_parent), 8), -1, np.int32)
        mask = self._some(way)
        octet = nodes.octet if mask is None else np.where(mask, nodes.octet, -1)
        children.reshape(-1)[nodes.slot[1:]] = octet[1:]
        return children

    def _some(self, way: str) -> NDArray[np.bool_] | None:
        """Return whether each box of a rank's tree has own sources, or own targets; None for other trees."""
        nodes = self.tree.nodes
        if nodes.part is None:
            return None
        return (nodes.own if way == "up" else nodes.targets).count > 0

    def _children(self, components: int) -> Handle:
        """Return memory for the values of 8 children, with a number of components, for several octets."""
        octets = len(self.children)
        return self.children.view(0, (octets, 8 * self.points * components, 8), self.real)

    # Between boxes and particles --------------------------------------------------------------------------------------
    def p2l_m2p(self, lists: OctLists) -> list[Step]:
        """Return the steps of P2L and M2P: lists X and W."""
        nodes, steps = self.tree.nodes, []
        if len(lists.x_t):
            starts, spans = joined_ranges(lists.x_t, lists.x_s, nodes.sources.begin, nodes.sources.end, nodes.n)
            node = np.flatnonzero(np.diff(starts))
            steps += self._checks("p2l_m2p", "inner", node, starts[np.append(node, nodes.n)], spans)
        if len(lists.w_t):
            starts, source = csr(lists.w_t, lists.w_s, nodes.n)
            node = np.flatnonzero(np.diff(starts))
            steps += self._fields("p2l_m2p", "inner", node, starts[np.append(node, nodes.n)], source)
        return steps

    def _checks(self, phase: str, surface: str, node: Ints, starts: Ints, spans: Ints) -> list[Step]:
        """Return the steps that sum sources in ranges at the surfaces of boxes."""
        slot = self.tree.nodes.slot[node]
        item = np.column_stack([node, slot // 8, slot % 8, starts[:-1], starts[1:]])
        args = {"surface": self.surface[surface], "span": table("spans", spans, np.int32), "src": self.particles.rows}
        args |= {"value": self.check, "points": self.points, **self.physical}
        return teams(phase, self.kernels.check_values(), item, args)

    def _fields(self, phase: str, surface: str, node: Ints, starts: Ints, source: Ints) -> list[Step]:
        """Return the steps that sum fields of equivalents of boxes at the targets of leaves."""
        nodes, particles = self.tree.nodes, self.particles
        order = np.argsort(nodes.targets.begin[node], kind="stable")  # neighbours in turn; tasks are runs of targets
        node, first, end = node[order], starts[:-1][order], starts[1:][order]
        item = np.column_stack([nodes.targets.begin[node], nodes.targets.count[node], first, end])
        args = {"surface": self.surface[surface], "other": table("boxes", source, np.int32), "u": particles.sums}
        args |= {"xt": particles.targets, "points": self.points, **self.unit}
        return teams(phase, self.kernels.fields(), item, args)


@memory.kept()
def _transforms(pair: Pair, half: float, p: int, dtype: str) -> NDArray[Any]:
    """Return the transforms of a kernel between boxes of half side `half`; nothing if float32 has too short a range."""
    return spectra.table(lambda r: representations.block(pair, half * r), p, dtype)


def _halves(nodes: OctNodes) -> list[float]:
    return [float(nodes.width * 0.5 ** (level + 1)) for level in range(nodes.depth + 1)]
