"""Work of a fast multipole sum by interpolation, and its predicted time.

Particles, boxes and their points meet in the kernels of treecodes: `perfmodels.counts.clusters` adds their texts up.
Lists V are matrix products, which take the time of their operations, and passes over compressed values, which take
the time of their bytes.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from parki import engine
from parki.engine import Workunit
from parki.fmm.chebyshev_expansion import ChebyshevExpansion
from parki.fmm.chebyshev_translations import LevelTranslations
from parki.fmm.expansion import TOP_LEVEL
from parki.fmm.meetings import meetings
from parki.fmm.structure import FmmStructure
from parki.perfmodels import roofline
from parki.perfmodels.counts import clusters
from parki.perfmodels.counts.clusters import Lists, Transfers
from parki.perfmodels.counts.totals import Counts
from parki.perfmodels.machine import Machine
from parki.proxies import ProxyKernels
from parki.trees.nodes import Spans
from parki.trees.octree import OctNodes

PRODUCTS_SHARE = 0.6  # share of the rate of fused operations: OpenBLAS at orders 5 and 7, 45 of 76 Gflop/s of a core
PHASES = {"upward": "upward", "downward": "downward", "pp": "near", "cp": "p2l_m2p", "pc": "p2l_m2p"}  # by treecodes'


def seconds(structure: FmmStructure, machine: Machine, dtype: np.dtype, units: int) -> dict[str, float]:
    """Return the predicted seconds of a sum by phase, on `units` cores."""
    sums = dict.fromkeys((*PHASES.values(), "m2l"), 0.0)
    for name, bound in clusters.predict(counts(structure, machine), machine, dtype.name, units=units).items():
        sums[PHASES[name]] += bound.seconds
    levels = structure.expansion.translations.levels
    share = PRODUCTS_SHARE * machine.together("p2p", units)
    sums["m2l"] += roofline.time(products(levels), machine, dtype.name, units, share).seconds
    share = machine.reached["cnv"] * machine.together("cnv", units)
    sums["m2l"] += roofline.time(passes(levels, dtype.itemsize), machine, dtype.name, units, share).seconds
    return sums


def counts(structure: FmmStructure, machine: Machine) -> dict[str, Counts]:
    """Count the steps between particles and boxes, by phase of a treecode (`perfmodels.counts.clusters.PHASES`)."""
    expansion: ChebyshevExpansion = structure.expansion
    real, pair, m = expansion.particles.real, expansion.particles.pair, expansion.translations.order
    tree, nodes, text_of = structure.tree, structure.tree.nodes, engine.operations
    kernels, row, points = ProxyKernels(pair, real, real, m), 3 + pair.strengths, m**3
    facts = real.itemsize, machine.lanes[real.name], machine.is_gpu
    sizes = meetings(tree, structure.lists, points, far=True)
    no_lists = Lists(np.empty(0, int), np.empty(0, int), np.empty(0), 0.0, 0.0)

    def summed(text: Workunit, lists: Lists, source: float) -> Counts:
        return clusters.interacting(text_of(text), lists, source, pair.result, *facts)

    p2m, l2p = kernels.particles_to_charges(), kernels.potentials_to_particles()
    src, trg = sizes.get("p2m", no_lists).met, sizes.get("l2p", no_lists).targets
    result = {"upward": clusters.streamed(float(tree.sources.n * (real.itemsize * 2 * row + 4)), 0)}
    result["upward"] += clusters.leaves(text_of(p2m), src, _block(p2m), 3 + pair.dens, 2 * points * pair.dens, *facts)
    result["upward"] += clusters.transferred(
        text_of(kernels.transfer(True)), _upward(nodes, m), True, pair.dens, *facts
    )
    result["downward"] = Counts()
    if len(structure.lists.v_t) + len(structure.lists.x_t):
        n_values = points * pair.result
        result["downward"] += clusters.leaves(text_of(l2p), trg, _block(l2p), 3 + 2 * pair.result, n_values, *facts)
        transfers = _downward(nodes, m)
        result["downward"] += clusters.transferred(
            text_of(kernels.transfer(False)), transfers, False, pair.result, *facts
        )
    result["pp"] = summed(kernels.ranges(), sizes.get("p2p", no_lists), row)
    result["cp"] = summed(kernels.ranges(), replace(sizes.get("p2l", no_lists), proxies=1.0), row)
    result["pc"] = summed(kernels.grids(m), sizes.get("m2p", no_lists), pair.dens + 6 / points)
    return result


def _block(unit: Workunit) -> int:
    return int(dict(unit.l0.slots)["BLOCK"])


def _upward(nodes: OctNodes, m: int) -> Transfers:
    """Return the M2M transfers: from children to their parents."""
    node = _filled(nodes, nodes.own, TOP_LEVEL)
    node = node[nodes.n_children[node] > 0]
    return Transfers(m, m, len(node), int(nodes.n_children[node].sum()), len(np.unique(nodes.level[node])))


def _downward(nodes: OctNodes, m: int) -> Transfers:
    """Return the L2L transfers: from parents to their children."""
    node = _filled(nodes, nodes.targets, TOP_LEVEL + 1)
    return Transfers(m, m, len(node), len(node), len(np.unique(nodes.level[node])))


def _filled(nodes: OctNodes, spans: Spans, first: int) -> np.ndarray:
    """Return the boxes with points on level `first` and below."""
    return np.flatnonzero((nodes.level >= first) & (spans.count > 0))


def products(levels: Iterable[LevelTranslations]) -> Counts:
    """Count the matrix products of lists V: from values of sources to compressed ones, and on to values of targets."""
    fmas, launches = 0, 0
    for level in levels:
        fmas += level.columns * sum(math.prod(side.values.shape) for side in (level.sources, level.targets))
        launches += 2 * len(level.parts) + 2
    return Counts({"fma": float(fmas)}, launches=launches)


def passes(levels: Iterable[LevelTranslations], itemsize: int) -> Counts:
    """Count the bytes of compressed values of lists V: written by sources, collected by targets, and read there."""
    n_values = sum(level.columns * level.sources.blocks.boxes.size for level in levels)
    n_reads = sum(level.columns * level.targets.blocks.boxes.size for level in levels)
    dram = float(itemsize * (n_values + n_reads))
    return Counts(bytes={"l2": dram + 2.0 * itemsize * n_reads, "dram": dram})
