"""Estimate of the memory of a treecode's stages, from trees and lists before the arrays are made."""

from typing import TYPE_CHECKING

from parki import memory
from parki.treecode.interactions import Interactions
from parki.trees.cluster import ClusterTree

if TYPE_CHECKING:
    from parki.treecode.stages import Stages


def require(stages: "Stages", found: Interactions) -> None:
    """Refuse stages, whose nodes with proxy points are known, that take more memory of the host than is free.

    Raises
    ------
    MemoryError
        Naming the bytes needed and free, and the options that lower them.
    """
    if stages.space.kind != "device":
        advice = "A larger leaf_size and batch_size, a smaller degree or theta, or a larger tolerance takes less."
        clusters = f"{_nodes(stages.sources)} and {_nodes(stages.targets)} clusters"
        memory.require(held(stages, found) - _lists(found), f"a treecode of {clusters}", advice)


def held(stages: "Stages", found: Interactions) -> float:
    """Return the bytes of the arrays of stages: strengths, proxy values, results and lists."""
    units, targets, sources = stages.units, stages.targets, stages.sources
    real, far = units.real.itemsize, units.far.itemsize
    apart = 0 if units.real == units.far else far  # of what is there in both types
    pair, most = units.linear, units.points
    up = {m: len(node) for m, node in stages.up.items()}
    down = {m: len(node) for m, node in stages.down.items()}
    charges = sum(n * m**3 for m, n in up.items()) * apart
    charges += sum(n * m**3 for m, n in (up | ({most: _nodes(sources)} if up else {})).items()) * real
    values = sum(n * m**3 for m, n in (down | ({most: _nodes(targets)} if down else {})).items()) * (real + apart)
    particles = (3 + 2 * pair.strengths) * sources.sorted.n * real + pair.result * targets.sorted.n * real
    particles += (pair.result * targets.sorted.n * apart + 3 * targets.sorted.n * far) if found.pc else 0
    boxes = 48 * (_nodes(targets) + _nodes(sources) + sum(up.values()) + sum(down.values()))
    return charges * pair.dens + values * pair.result + particles + boxes + _lists(found)


def _lists(found: Interactions) -> int:
    """Return the bytes of lists, which are there already."""
    lists = [found.pp, found.cp, *found.pc.values(), *found.cc.values()]
    return sum(one.items.nbytes + one.sources.nbytes for one in lists)


def _nodes(tree: ClusterTree) -> int:
    return tree.nodes.n
