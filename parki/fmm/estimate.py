"""Estimate of the memory of a fast multipole sum, from its tree and lists before its arrays are made.

Operators, which depend on the kernel and the order only and are kept for other plans, are not counted.
"""

import numpy as np

from parki import memory
from parki.engine.spaces import Space
from parki.fmm import m2l, spectra, surfaces, translations
from parki.fmm.expansion import TOP
from parki.fmm.kinds import Kind
from parki.pairs import Pair
from parki.trees.octlists import OctLists
from parki.trees.octree import OctNodes, Octree

LISTED = 12  # bytes of a near range of sources, or of a pair of boxes that meet, in a launch


def require(tree: Octree, lists: OctLists, pair: Pair, kind: Kind | None, order: int, space: Space) -> None:
    """Refuse a sum, by equivalent sources of a kind or by interpolation, that takes more memory than is free.

    Raises
    ------
    MemoryError
        Naming the bytes needed and free, and the options that lower them.
    """
    if space.kind != "device":
        advice = "A larger leaf_size, a smaller order or a larger tolerance takes less."
        memory.require(held(tree, lists, pair, kind, order), f"an octree of {tree.nodes.n} boxes", advice)


def held(tree: Octree, lists: OctLists, pair: Pair, kind: Kind | None, order: int) -> float:
    """Return the bytes of sources, results, boxes, their expansions, and buffers of translations."""
    nodes, real = tree.nodes, tree.sources.points.dtype.itemsize
    linear = pair if kind is None else kind.pair
    particles = (tree.sources.n * (3 + linear.strengths) + tree.targets.n * linear.result) * real
    near = LISTED * len(lists.u_t) + 24 * int(np.count_nonzero(nodes.is_leaf))
    boxes = 160 * nodes.n
    far = nodes.depth >= TOP and len(lists.v_t) + len(lists.w_t) + len(lists.x_t)
    if kind is None:
        return particles + near + boxes + _interpolated(nodes, linear, order, real)
    return particles + near + boxes + (_equivalent(nodes, lists, kind, order, real) if far else 0)


def _interpolated(nodes: OctNodes, pair: Pair, order: int, real: int) -> float:
    """Charges and potentials of all boxes, copies of those of the largest level, and what is made of these."""
    largest = int(np.diff(nodes.level_begin).max())
    columns = max(min(translations.COLUMNS, translations.COMPRESSED // (largest * real)), 1)
    return ((nodes.n + largest) * order**3 * (pair.dens + pair.result) + largest * columns) * real


def _equivalent(nodes: OctNodes, lists: OctLists, kind: Kind, order: int, real: int) -> float:
    """Check values and equivalents, as they are and reflected, spectra of as many as fit, and tables of these."""
    octets, largest = len(nodes.octet_parent), int(np.diff(nodes.octet_begin).max())
    values = octets * (kind.check + 2 * kind.equivalent) + largest * kind.check
    meeting = 0.0
    if len(lists.v_t):
        used_s, used_t = (len(np.unique(octets)) for octets in (lists.v_s, lists.v_t))
        each = 16 * (kind.equivalent * used_s + kind.check * used_t) * real
        planes = spectra.plane_sizes(order)
        meeting = each * max(int(planes.max()), min(int(planes.sum()), m2l.SPECTRA // each)) + LISTED * len(lists.v_t)
        levels = nodes.depth - TOP + 1 if kind.per_level else 1
        meeting += levels * int(planes.sum()) * kind.check * kind.equivalent * 2 * spectra.COLUMNS * real
    return 8 * surfaces.count(order) * values * real + meeting
