"""Steps from charges in the caller's order to proxy charges of clusters."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from parki.engine.steps import ArraysOf, Handle, Step, constant, state
from parki.proxies import WARPS
from parki.treecode.structure import TreecodeStructure
from parki.treecode.transfers import ranges, transfer

PIECE = 128  # sources of a crowd that are summed at once, at most
EVEN = 8  # partial sums of a piece: halves of a crowd are multiples of this

Pieces = list[tuple[int, int, int]]


def rows(s: TreecodeStructure, charges: Handle) -> tuple[Handle, list[Step]]:
    """Return rows (x, y, z, charges, constants) of sources, then one for each crowd, and the steps to them."""
    kernels, side, exchange = s.kernels, s.source, s.elsewhere
    src = state("rows", (s.particles + len(s.lists.lumps), 3 + kernels.linear.strengths), kernels.real, zero=False)
    constants = constant("constants of rows", np.array([*kernels.linear.parameters, 0.0], kernels.real))
    args = {"x": side.points, "charge": charges, "constant": constants, "order": side.order}
    args["src"] = src if exchange is None else src[exchange.here]
    own_lumps = slice(None if exchange is None else exchange.lumps)
    return src, [Step("upward", kernels.source_rows(), side.n, args), *crowds(s, src, own_lumps)]


def crowds(s: TreecodeStructure, src: Handle, selection: slice) -> list[Step]:
    """Return the steps that sum crowds of sources in one place, each to one source."""
    kernels, lumps = s.kernels, s.lists.lumps[selection]
    if not len(lumps):
        return []
    nodes = s.sources.nodes
    places = zip(nodes.begin[lumps].tolist(), nodes.end[lumps].tolist(), strict=True)
    pieces, rows = cut(places, kernels.charges)
    part = state("sums of crowds", (len(pieces), kernels.charges), kernels.real, zero=False)
    args = {"piece": constant("pieces of crowds", pieces), "src": src, "part": part}
    crowd = {"crowd": constant("crowds", rows), "place": s.particles + (selection.start or 0)}
    return [
        Step("upward", kernels.crowd_sums(), len(pieces), args),
        Step("upward", kernels.crowd_rows(), len(rows), args | crowd),
    ]


def cut(crowds: Iterable[tuple[int, int]], charges: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Cut crowds into pieces whose sums add up as in NumPy along the first axis: one charge by halves, else in turn.

    Parameters
    ----------
    crowds : iterable of (begin, end)
    charges : int
        Charges of a source.

    Returns
    -------
    pieces : array (P, 3)
        Begin, end, and the number of pairs of sums that are added after the piece.
    crowds : array (K, 3)
        First source, and pieces begin … end − 1.
    """
    pieces: Pieces = []
    rows = []
    for begin, end in crowds:
        start = len(pieces)
        pieces += _halves(begin, end) if charges == 1 else [(begin, end, 0)]
        rows.append((begin, start, len(pieces)))
    return np.array(pieces, np.int32), np.array(rows, np.int32)


def _halves(begin: int, end: int) -> Pieces:
    """Return the pieces of a crowd, each with the number of pairs of sums that are added after it."""
    if end - begin <= PIECE:
        return [(begin, end, 0)]
    half = (end - begin) // 2
    middle = begin + half - half % EVEN
    *head, (first, last, merges) = _halves(begin, middle) + _halves(middle, end)
    return [*head, (first, last, merges + 1)]


def proxy_charges(s: TreecodeStructure, src: Handle, parts: ArraysOf) -> tuple[dict[int, Handle], list[Step]]:
    """Return proxy charges by points per direction, in the far precision, and the steps to them.

    For the largest number of points, row c is cluster c, made from particles or children; for others, made from
    these, row k is the k-th cluster that has them.
    """
    if not s.up:
        return {}, []
    kernels, side, m_max = s.kernels, s.source, s.kernels.points
    count = {m: len(nodes) for m, nodes in s.up.items() if m != m_max} | {m_max: side.nodes}
    shapes = {f"charges of {m}": (n, m**3 * kernels.charges) for m, n in count.items()}
    near = parts("proxy charges", shapes, kernels.real)
    charge = dict(zip(count, near.arrays, strict=True))
    steps = near.zeros("upward")
    steps += [_leaves(s, src, charge[m_max]), *_parents(s, charge[m_max])]
    for m, nodes in s.up.items():
        if m != m_max:
            rows = np.flatnonzero(s.makes[nodes])
            items, boxes = ranges(rows, nodes[rows]), (side.box, side.boxes(nodes))
            steps += transfer(s, True, (m_max, m), items, boxes, (charge[m_max], charge[m]))
    if kernels.far == kernels.real:
        return charge, steps
    far = near.alike("far", kernels.far)
    return dict(zip(count, far.arrays, strict=True)), [*steps, *near.copied("upward", far)]


def _leaves(s: TreecodeStructure, src: Handle, charge: Handle) -> Step:
    leaf = s.source.leaves(s.sources.nodes.leaves)
    args = {"leaf": leaf, "src": src, "box": s.source.box, "charge": charge, **s.tables}
    return Step("upward", s.kernels.particles_to_charges(), len(leaf), args, WARPS)


def _parents(s: TreecodeStructure, charge: Handle) -> list[Step]:
    """Return the steps from children to parents, level by level, up to the highest level that is used."""
    tree, side, m_max, steps = s.sources.nodes, s.source, s.kernels.points, []
    levels = np.concatenate([tree.level[nodes[s.makes[nodes]]] for nodes in s.up.values()])
    top = int(levels.min(initial=side.levels))
    for level in range(side.levels - 2, top - 1, -1):
        parents, children = side.level(level), side.level(level + 1)
        node = np.arange(parents.start, parents.stop, dtype=np.int32)
        node = node[(tree.n_children[node] > 0) & s.makes[node]]
        items = ranges(node - parents.start, tree.first_child[node] - children.start, tree.n_children[node])
        boxes, values = (side.box[children], side.box[parents]), (charge[children], charge[parents])
        steps += transfer(s, True, (m_max, m_max), items, boxes, values)
    return steps
