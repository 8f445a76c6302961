"""Numbers of the plan of a fast multipole sum, for `parki.perfmodels.fmm`."""

import math

import numpy as np
from numpy.typing import NDArray

from parki import engine
from parki.fmm import box_translations, limits, m2l, spectra, surfaces
from parki.fmm.class_matrices import TILE, ClassMatrices
from parki.fmm.expansion import TOP_LEVEL
from parki.fmm.plan import Plan
from parki.fmm.surface_expansion import OCTETS_AT_ONCE, SurfaceExpansion, SurfaceKernels
from parki.freespace import short
from parki.perfmodels import fmm
from parki.perfmodels.clusters import Lists
from parki.perfmodels.counts import Counts
from parki.perfmodels.fmm import FmmSizes, FmmTexts, Matrix, OctetLevel, TranslationLevel
from parki.perfmodels.machine import Machine
from parki.trees import octlists
from parki.trees.lists import csr, merge_ranges

Ints = NDArray[np.int32]
FOLDINGS = ("fold", "unfold", "fold_children", "unfold_children")


def counts(plan: Plan, machine: Machine) -> dict[str, Counts]:
    """Count all steps of a plan and one sum, as if its lists were summed on this machine.

    Raises
    ------
    ValueError
        For a plan by interpolation, and for one without points.
    """
    if not isinstance(plan.expansion, SurfaceExpansion):
        raise ValueError(f"plan: found {plan}, expected one of method 'kifmm' that has points")
    return fmm.count(
        texts(plan), numbers(plan), plan.dtype.itemsize, machine.lanes[plan.dtype.name], machine.kind == "device"
    )


def texts(plan: Plan) -> FmmTexts:
    """The texts of a plan's kernels."""
    representation, p, real, read = plan.representation, plan.parameters.order, plan.dtype, engine.operations
    kernels, dens, result = SurfaceKernels(representation, real, short(plan.parameters.expected)), *_components(plan)
    steps = {name: box_translations.folding(name, real, 1 if representation.masks is None else 8) for name in FOLDINGS}
    steps |= {
        name: box_translations.products(real, add=name == "products_add") for name in ("products", "products_add")
    }
    steps["solve"] = box_translations.solves(real)
    return FmmTexts(
        read(kernels.check_values()), read(kernels.fields()), read(kernels.ranges()),
        {name: read(unit) for name, unit in steps.items()}, read(m2l.forward(p, dens, real)),
        read(m2l.backward(p, result, real)), 3 + plan.linear.strengths, plan.linear.result,
    )  # fmt: skip


def _components(plan: Plan) -> tuple[int, int]:
    """Components of equivalents and of check values."""
    return plan.representation.equivalent, plan.representation.check


def numbers(plan: Plan) -> FmmSizes:
    """What a plan holds."""
    it, tree, nodes, lists = plan.expansion, plan.tree, plan.tree.nodes, plan.lists
    p, (equivalent, check) = it.p, _components(plan)
    sorted_twice = 1 if tree.sources is tree.targets else 2
    src, trg = (float(spans.count[~nodes.is_leaf].sum()) for spans in (nodes.sources, nodes.targets))
    moved = src + (sorted_twice - 1) * trg
    listed = float(sum(len(a) for a in (lists.u_t, lists.w_t, lists.x_t, lists.v_t)))
    found = {"n_sources": plan.n_sources, "order": p, "points": surfaces.count(p)}
    found |= {
        "check": check,
        "equivalent": equivalent,
        "moved": moved,
        "listed": listed,
        "lists": _meetings(plan),
        "frequencies": _frequencies(p),
    }
    together = (box_translations.OCTETS, OCTETS_AT_ONCE)
    found |= {"levels": (), "translation_levels": (), "matrices": {}, "orbits": 1, "together": together}
    if it.far:
        operators = it.operators[TOP_LEVEL]
        ways = {"up": operators.up, "down": operators.down}
        ways |= {"to_parent": (operators.to_parent,), "to_children": (operators.to_children,)}
        found |= {"matrices": {name: tuple(_matrix(b) for b in many) for name, many in ways.items()}}
        found |= {"orbits": len(operators.check.orbits), "levels": _levels(plan)}
        found |= {"translation_levels": _translation_levels(plan)}
    return FmmSizes(**found)


def _frequencies(p: int) -> int:
    return int(spectra.plane_sizes(p).sum())


def _matrix(blocks: ClassMatrices) -> Matrix:
    columns, rows = blocks.part[:, 1].astype(int), blocks.part[:, 3].astype(int)
    tiles = -(-rows // TILE)
    return Matrix(len(rows), int(tiles.sum()), int(tiles @ columns), blocks.rows, blocks.columns)


def _levels(plan: Plan) -> list[OctetLevel]:
    nodes = plan.tree.nodes
    octets, boxes = np.diff(nodes.octet_begin), np.diff(nodes.level_begin)
    return [
        OctetLevel(int(octets[level - 1]), int(boxes[level]), level < nodes.depth)
        for level in range(TOP_LEVEL, nodes.depth + 1)
    ]


def _translation_levels(plan: Plan) -> list[TranslationLevel]:
    """Return translations of all levels together, or of each."""
    nodes, lists, it = plan.tree.nodes, plan.lists, plan.expansion
    if not len(lists.v_t):
        return []
    level = nodes.level[nodes.octet_parent[lists.v_t]] + 1
    kept = [level == one for one in np.unique(level)] if it.representation.per_level else [np.ones(len(level), bool)]
    return [_translated(plan, *(a[some] for a in (lists.v_t, lists.v_s, lists.v_direction))) for some in kept]


def _translated(plan: Plan, t: Ints, s: Ints, direction: Ints) -> TranslationLevel:
    it, nodes = plan.expansion, plan.tree.nodes
    found, (equivalent, check) = m2l.blocks(t, s, direction), _components(plan)
    sources, targets, count = len(found.sources), len(found.targets), len(found.begin)
    each = 16 * (equivalent * sources + check * targets) * plan.dtype.itemsize
    groups = len(m2l.plane_groups(it.p, each, m2l.SPECTRA))
    block = np.searchsorted(found.rows, found.pairs[:, 0], side="right") - 1
    met = len(np.unique(block.astype(np.int64) * sources + found.pairs[:, 1]))
    boxes = nodes.n_children[nodes.octet_parent[found.targets]].sum() / (8 * targets)
    return TranslationLevel(
        sources, targets, len(found.pairs), met, count, math.ceil(count / limits.HOST.blocks), groups, float(boxes)
    )  # fmt: skip


def _meetings(plan: Plan) -> dict[str, Lists]:
    """Of steps between particles and surfaces: items with numbers of targets, of lists, and of sources in these."""
    it, tree, nodes, lists = plan.expansion, plan.tree, plan.tree.nodes, plan.lists
    found, m = {}, surfaces.count(it.p)
    if it.far:
        leaf = nodes.is_leaf & (nodes.level >= TOP_LEVEL)
        src, trg = (count[leaf & (count > 0)] for count in (nodes.sources.count, nodes.targets.count))
        found["p2m"] = _lists(np.full(len(src), m), np.ones(len(src)), src, tree.sources.n)
        found["l2p"] = _lists(trg, np.ones(len(trg)), np.full(len(trg), m), m * len(trg))
        if len(lists.x_t):
            t, begin, end = merge_ranges(lists.x_t, nodes.sources.begin[lists.x_s], nodes.sources.end[lists.x_s])
            box, row = np.unique(t, return_inverse=True)
            met = np.bincount(row, (end - begin).astype(float))
            found["p2l"] = _lists(np.full(len(box), m), np.bincount(row), met, tree.sources.n)
        if len(lists.w_t):
            many = np.diff(csr(lists.w_t, lists.w_s, nodes.n)[0])
            box = np.flatnonzero(many)
            distinct = m * len(np.unique(lists.w_s))
            found["m2p"] = _lists(nodes.targets.count[box], many[box], m * many[box], distinct)
    if len(lists.u_t):
        items, ranges = octlists.near(nodes, nodes.sources, lists)
        total = np.append(0, np.cumsum(ranges[:, 1] - ranges[:, 0], dtype=np.int64))
        met = total[items[:, 3]] - total[items[:, 2]]
        found["p2p"] = _lists(items[:, 1] - items[:, 0], items[:, 3] - items[:, 2], met, tree.sources.n)
    return {name: one for name, one in found.items() if len(one.targets)}


def _lists(targets: NDArray, places: NDArray, met: NDArray, distinct: float) -> Lists:
    return Lists(targets.astype(np.int64), places.astype(np.int64), met.astype(float), 0.0, float(distinct))
