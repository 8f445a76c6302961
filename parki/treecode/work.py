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
        found = times(structure, parameters, dtype, prediction.machine_of(space), workers(space))
        phases = {name: found[name].bound.seconds for name in phases}
    return Prediction(phases, memory)


def times(
    structure: TreecodeStructure, parameters: Parameters, dtype: np.dtype, machine: Machine, units: int
) -> dict[str, Phase]:
    """Return the work and the time of each phase of making a plan and of one sum, on some cores of a machine."""
    counted = counts(structure, parameters, machine)
    bounds = clusters.predict(counted, machine, dtype.name, parameters.far, units)
    return {name: Phase(counted[name], bounds[name], clusters.share(machine, name)) for name in clusters.PHASES}


def counts(structure: TreecodeStructure, parameters: Parameters, machine: Machine) -> dict[str, Counts]:
    """Count all phases of making a plan and of one sum, as if they ran on this machine."""
    real, far = structure.kernels.real.itemsize, np.dtype(parameters.far).itemsize
    lanes = {size: machine.lanes[name] for size, name in NAMES.items()}
    return clusters.count(texts(structure), sizes(structure, parameters), real, far, lanes, machine.is_gpu)


def texts(structure: TreecodeStructure) -> TreecodeTexts:
    """Return the texts of the kernels of a sum, with `grids` for each number of points per direction in its lists."""
    units, read = structure.kernels, engine.operations
    linear, kinds = units.linear, {m for lists in structure.every for of in (lists.pc, lists.cc) for m in of}
    charges, potentials = units.particles_to_charges(), units.potentials_to_particles()
    return TreecodeTexts(
        read(units.source_rows()), read(units.ranges()), {m: read(units.grids(m)) for m in kinds}, read(charges),
        read(potentials), read(units.transfer(True)), read(units.transfer(False)), units.charges,
        len(linear.parameters), linear.result, (_block(charges), _block(potentials)),
    )  # fmt: skip


def _block(unit: Workunit) -> int:
    return int(dict(unit.l0.slots)["BLOCK"])


def sizes(structure: TreecodeStructure, parameters: Parameters) -> TreecodeSizes:
    """Return the numbers of points, nodes and list entries of a sum."""
    n_targets, n_sources = structure.target.n, structure.particles
    targets, sources = structure.targets.nodes, structure.sources.nodes
    moved = sum(float(nodes.count[~nodes.is_leaf].sum()) for nodes in {id(n): n for n in (targets, sources)}.values())
    every = structure.every
    of = [one for lists in every for one in (lists.pp, lists.cp, *lists.pc.values(), *lists.cc.values())]
    listed = sum(lists.clusters for lists in every) + sum(one.pairs for one in of)
    points, up, down = parameters.degree + 1, structure.up, structure.down
    active = _below(targets, down)
    sums = {name: {0: _joined([_ranges(getattr(lists, name), n_sources) for lists in every])} for name in ("pp", "cp")}
    for name in ("pc", "cc"):
        grids = [getattr(lists, name) for lists in every]
        kinds = set().union(*grids)
        sums[name] = {m: _joined([_grids(one[m], m) for one in grids if m in one]) for m in sorted(kinds)}
    return TreecodeSizes(
        n_targets, n_sources, points, moved, float(listed),
        sources.count[sources.leaves] if up else np.empty(0), targets.count[targets.leaves[active[targets.leaves]]],
        _upward(structure, points), _downward(targets, down, active, points),
        {name: {m: one for m, one in of.items() if len(one.targets)} for name, of in sums.items()},
    )  # fmt: skip


def _below(nodes: ClusterNodes, used: dict[int, np.ndarray]) -> np.ndarray:
    """Return whether each node, or one above it, has potentials."""
    active = np.zeros(len(nodes.begin), bool)
    for node in used.values():
        active[node] = True
    for first, end in zip(nodes.level_begin[1:-1], nodes.level_begin[2:], strict=True):
        active[first:end] |= active[nodes.parent[first:end]]
    return active


def _upward(structure: TreecodeStructure, points: int) -> list[Transfers]:
    """Return transfers from children to parents, up to the highest level in use, and to fewer points."""
    nodes, makes = structure.sources.nodes, structure.makes
    used = {m: node[makes[node]] for m, node in structure.up.items()}
    if not used:
        return []
    top = int(np.concatenate([nodes.level[node] for node in used.values()]).min(initial=nodes.depth))
    node = np.flatnonzero(~nodes.is_leaf & (nodes.level >= top) & makes)
    levels = len(np.unique(nodes.level[node]))
    up = Transfers(points, points, len(node), int(nodes.n_children[node].sum()), levels)
    return [up, *(Transfers(points, m, len(node), len(node)) for m, node in used.items() if m != points)]


def _downward(nodes: ClusterNodes, used: dict[int, np.ndarray], active: np.ndarray, points: int) -> list[Transfers]:
    """Return transfers from fewer points, and from parents to children."""
    if not used:
        return []
    taking = np.flatnonzero(active & (nodes.parent >= 0))
    taking = taking[active[nodes.parent[taking]]]
    down = Transfers(points, points, len(taking), len(taking), len(np.unique(nodes.level[taking])))
    return [*(Transfers(m, points, len(node), len(node)) for m, node in used.items() if m != points), down]


def _joined(parts: list[clusters.Lists]) -> clusters.Lists:
    """Return the lists of several sets of sources as one."""
    if len(parts) == 1:
        return parts[0]
    counts = [float(one.targets.sum()) for one in parts]
    share = sum(n * one.proxies for n, one in zip(counts, parts, strict=True)) / max(sum(counts), 1.0)
    arrays = (np.concatenate([getattr(one, name) for one in parts]) for name in ("targets", "places", "met"))
    return clusters.Lists(*arrays, share, sum(one.distinct for one in parts))


def _ranges(of: InteractionLists, n: int) -> clusters.Lists:
    size = (of.sources[:, 1] - of.sources[:, 0]).astype(float) if len(of.sources) else np.empty(0)
    return _of(of, size, float(n))


def _grids(of: InteractionLists, m: int) -> clusters.Lists:
    return _of(of, np.full(len(of.sources), float(m**3)), float(m**3 * len(np.unique(of.sources))))


def _of(of: InteractionLists, size: np.ndarray, distinct: float) -> clusters.Lists:
    """Return items with the sizes of their sources."""
    items = of.items
    total = np.concatenate([[0.0], np.cumsum(size)])
    met = total[items[:, 5]] - total[items[:, 4]]
    targets, places = items[:, 2].astype(np.int64), (items[:, 5] - items[:, 4]).astype(np.int64)
    every = float(targets.sum())
    return clusters.Lists(targets, places, met, float(targets[items[:, 3] > 0].sum()) / max(every, 1.0), distinct)
