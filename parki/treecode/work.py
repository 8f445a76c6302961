"""Work of a treecode sum by phase, counted for `parki.perfmodels.counts.clusters`, and its predicted time."""

import numpy as np

from parki import engine, prediction
from parki.engine import Space, Workunit, workers
from parki.perfmodels.counts import clusters
from parki.perfmodels.counts.clusters import Transfers, TreecodeSizes, TreecodeTexts
from parki.perfmodels.counts.totals import Counts
from parki.perfmodels.machine import Machine
from parki.perfmodels.roofline import Phase
from parki.prediction import Prediction
from parki.treecode.interactions import InteractionLists
from parki.treecode.params import Parameters
from parki.treecode.report import PHASES, PLANNED
from parki.treecode.structure import TreecodeStructure
from parki.trees.cluster import ClusterNodes

NAMES = {8: "float64", 4: "float32"}


def predict(
    structure: TreecodeStructure | None, parameters: Parameters, dtype: np.dtype, space: Space, memory: int
) -> Prediction:
    """Predict a sum of one right-hand side on the machine of a space.

    Parameters
    ----------
    structure : TreecodeStructure, optional
        None if there are no points: the sum takes no time.
    parameters : Parameters
    dtype : dtype
        Type of the particles.
    space : Space
        Threads of OpenMP share the work evenly, or as measured.
    memory : int
        Bytes that the plan holds.
    """
    phases = dict.fromkeys((name for name in PHASES if name not in PLANNED), 0.0)
    if structure is not None:
        estimates = times(structure, parameters, dtype, prediction.machine_of(space), workers(space))
        phases = {name: estimates[name].bound.seconds for name in phases}
    return Prediction(phases, memory)


def times(
    structure: TreecodeStructure, parameters: Parameters, dtype: np.dtype, machine: Machine, units: int
) -> dict[str, Phase]:
    """Return the work and the time of each phase of making a plan and of one sum, on some cores of a machine."""
    phase_counts = counts(structure, parameters, machine)
    bounds = clusters.predict(phase_counts, machine, dtype.name, parameters.far, units)
    return {name: Phase(phase_counts[name], bounds[name], clusters.share(machine, name)) for name in clusters.PHASES}


def counts(structure: TreecodeStructure, parameters: Parameters, machine: Machine) -> dict[str, Counts]:
    """Count all phases of making a plan and of one sum, as if they ran on this machine."""
    real, far = structure.kernels.real.itemsize, np.dtype(parameters.far).itemsize
    lanes = {size: machine.lanes[name] for size, name in NAMES.items()}
    return clusters.count(texts(structure), sizes(structure, parameters), real, far, lanes, machine.is_gpu)


def texts(structure: TreecodeStructure) -> TreecodeTexts:
    """Return the texts of the kernels of a sum, with `grids` for each number of points per direction in its lists."""
    units, text = structure.kernels, engine.operations
    linear, kinds = units.linear, {m for lists in structure.every for grids in (lists.pc, lists.cc) for m in grids}
    charges, potentials = units.particles_to_charges(), units.potentials_to_particles()
    return TreecodeTexts(
        text(units.source_rows()), text(units.ranges()), {m: text(units.grids(m)) for m in kinds}, text(charges),
        text(potentials), text(units.transfer(True)), text(units.transfer(False)), units.charges,
        len(linear.parameters), linear.result, (_block(charges), _block(potentials)),
    )  # fmt: skip


def _block(unit: Workunit) -> int:
    return int(dict(unit.l0.slots)["BLOCK"])


def sizes(structure: TreecodeStructure, parameters: Parameters) -> TreecodeSizes:
    """Return the numbers of points, nodes and list entries of a sum."""
    n_targets, n_sources = structure.target.n, structure.particles
    targets, sources = structure.targets.nodes, structure.sources.nodes
    moves = sum(float(nodes.count[~nodes.is_leaf].sum()) for nodes in {id(n): n for n in (targets, sources)}.values())
    all_lists = structure.every
    sections = [
        section for lists in all_lists for section in (lists.pp, lists.cp, *lists.pc.values(), *lists.cc.values())
    ]
    n_entries = sum(lists.clusters for lists in all_lists) + sum(section.pairs for section in sections)
    points, senders, receivers = parameters.degree + 1, structure.up, structure.down
    active = _below(targets, receivers)
    sums = {
        name: {0: _joined([_ranges(getattr(lists, name), n_sources) for lists in all_lists])} for name in ("pp", "cp")
    }
    for name in ("pc", "cc"):
        grids = [getattr(lists, name) for lists in all_lists]
        kinds = set().union(*grids)
        sums[name] = {m: _joined([_grids(grid[m], m) for grid in grids if m in grid]) for m in sorted(kinds)}
    return TreecodeSizes(
        n_targets, n_sources, points, moves, float(n_entries),
        sources.count[sources.leaves] if senders else np.empty(0),
        targets.count[targets.leaves[active[targets.leaves]]],
        _upward(structure, points), _downward(targets, receivers, active, points),
        {name: {m: section for m, section in by_m.items() if len(section.targets)} for name, by_m in sums.items()},
    )  # fmt: skip


def _below(nodes: ClusterNodes, nodes_by_m: dict[int, np.ndarray]) -> np.ndarray:
    """Return whether each node, or one above it, has potentials."""
    active = np.zeros(len(nodes.begin), bool)
    for node in nodes_by_m.values():
        active[node] = True
    for first, end in zip(nodes.level_begin[1:-1], nodes.level_begin[2:], strict=True):
        active[first:end] |= active[nodes.parent[first:end]]
    return active


def _upward(structure: TreecodeStructure, points: int) -> list[Transfers]:
    """Return transfers from children to parents, up to the highest level in use, and to fewer points."""
    nodes, mask = structure.sources.nodes, structure.makes
    nodes_by_m = {m: node[mask[node]] for m, node in structure.up.items()}
    if not nodes_by_m:
        return []
    top = int(np.concatenate([nodes.level[node] for node in nodes_by_m.values()]).min(initial=nodes.depth))
    node = np.flatnonzero(~nodes.is_leaf & (nodes.level >= top) & mask)
    levels = len(np.unique(nodes.level[node]))
    transfers = Transfers(points, points, len(node), int(nodes.n_children[node].sum()), levels)
    return [transfers, *(Transfers(points, m, len(node), len(node)) for m, node in nodes_by_m.items() if m != points)]


def _downward(
    nodes: ClusterNodes, nodes_by_m: dict[int, np.ndarray], active: np.ndarray, points: int
) -> list[Transfers]:
    """Return transfers from fewer points, and from parents to children."""
    if not nodes_by_m:
        return []
    receivers = np.flatnonzero(active & (nodes.parent >= 0))
    receivers = receivers[active[nodes.parent[receivers]]]
    transfers = Transfers(points, points, len(receivers), len(receivers), len(np.unique(nodes.level[receivers])))
    return [*(Transfers(m, points, len(node), len(node)) for m, node in nodes_by_m.items() if m != points), transfers]


def _joined(parts: list[clusters.Lists]) -> clusters.Lists:
    """Return the lists of several sets of sources as one."""
    if len(parts) == 1:
        return parts[0]
    counts = [float(part.targets.sum()) for part in parts]
    share = sum(n * part.proxies for n, part in zip(counts, parts, strict=True)) / max(sum(counts), 1.0)
    arrays = (np.concatenate([getattr(part, name) for part in parts]) for name in ("targets", "places", "met"))
    return clusters.Lists(*arrays, share, sum(part.distinct for part in parts))


def _ranges(section: InteractionLists, n: int) -> clusters.Lists:
    size = (section.sources[:, 1] - section.sources[:, 0]).astype(float) if len(section.sources) else np.empty(0)
    return _of(section, size, float(n))


def _grids(section: InteractionLists, m: int) -> clusters.Lists:
    return _of(section, np.full(len(section.sources), float(m**3)), float(m**3 * len(np.unique(section.sources))))


def _of(section: InteractionLists, size: np.ndarray, distinct: float) -> clusters.Lists:
    """Return items with the sizes of their sources."""
    items = section.items
    total = np.concatenate([[0.0], np.cumsum(size)])
    n_sources = total[items[:, 5]] - total[items[:, 4]]
    targets, places = items[:, 2].astype(np.int64), (items[:, 5] - items[:, 4]).astype(np.int64)
    n_targets = float(targets.sum())
    return clusters.Lists(
        targets, places, n_sources, float(targets[items[:, 3] > 0].sum()) / max(n_targets, 1.0), distinct
    )
