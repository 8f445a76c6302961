"""Work of a fast multipole sum by step, counted for `parki.perfmodels.counts.fmm`, and its predicted time."""

import math

import numpy as np
from numpy.typing import NDArray

from parki import engine, prediction
from parki.engine import Space, workers
from parki.fmm import box_translations, chebyshev_work, limits, m2l, spectra, staging, surfaces
from parki.fmm.class_matrices import TILE, ClassMatrices
from parki.fmm.expansion import TOP_LEVEL
from parki.fmm.meetings import meetings
from parki.fmm.params import Parameters
from parki.fmm.report import PHASES, PLANNED
from parki.fmm.staging import Staged
from parki.fmm.structure import FmmStructure
from parki.fmm.surface_expansion import OCTETS_AT_ONCE, SurfaceExpansion, SurfaceKernels
from parki.perfmodels.counts import fmm
from parki.perfmodels.counts.fmm import FmmSizes, FmmTexts, Matrix, OctetLevel, TranslationLevel
from parki.perfmodels.counts.totals import Counts
from parki.perfmodels.machine import Machine
from parki.perfmodels.roofline import Phase
from parki.prediction import Prediction

Ints = NDArray[np.int32]
FOLDINGS = ("fold", "unfold", "fold_children", "unfold_children")


def predict(
    structure: FmmStructure | None, parameters: Parameters, dtype: np.dtype, space: Space, memory: int
) -> Prediction:
    """Predict a sum of one right-hand side on the machine of a space.

    Parameters
    ----------
    structure : FmmStructure, optional
        None if there are no points: the sum takes no time.
    parameters : Parameters
    dtype : dtype
        Type of all numbers.
    space : Space
        Threads of OpenMP share the work evenly, or as measured.
    memory : int
        Bytes that the plan holds.
    """
    names = [name for name in PHASES if name not in PLANNED]
    if structure is None:
        return Prediction(dict.fromkeys(names, 0.0), memory)
    machine, units = prediction.machine_of(space), workers(space)
    if isinstance(structure.expansion, SurfaceExpansion):
        steps = times(structure, parameters, dtype, machine, units)
        phases = fmm.by_phase({name: step.bound for name, step in steps.items()})
    else:
        phases = chebyshev_work.seconds(structure, machine, dtype, units)
    return Prediction({name: phases[name] for name in names}, memory)


def times(
    structure: FmmStructure, parameters: Parameters, dtype: np.dtype, machine: Machine, units: int
) -> dict[str, Phase]:
    """Return the work and the time of each step of making a plan and of one sum, on some cores of a machine.

    Raises
    ------
    ValueError
        For a sum by interpolation.
    """
    phase_counts = counts(structure, parameters, machine)
    bounds = fmm.predict(phase_counts, machine, dtype.name, units)
    return {name: Phase(phase_counts[name], bound, fmm.share(machine, name)) for name, bound in bounds.items()}


def counts(
    structure: FmmStructure, parameters: Parameters, machine: Machine, is_mixed: bool = False
) -> dict[str, Counts]:
    """Count all steps of making a plan and of one sum by equivalent sources, as if they ran on this machine.

    In a mixed sum, by cores and devices, cores have spectra as devices have them.

    Raises
    ------
    ValueError
        For a sum by interpolation.
    """
    if not isinstance(structure.expansion, SurfaceExpansion):
        raise ValueError(f"structure: found {type(structure.expansion).__name__}, expected one of method 'kifmm'")
    expansion = structure.expansion
    is_gauss = not is_mixed and limits.has_gauss(machine, expansion.spectra.name)
    sums = sizes(structure, staging.shape(machine.scratch, expansion.spectra.itemsize), is_gauss)
    dtype = expansion.particles.real.name
    return fmm.count(texts(structure, parameters, is_gauss), sums, dtype, machine.lanes, machine.is_gpu)


def texts(structure: FmmStructure, parameters: Parameters, is_gauss: bool = False) -> FmmTexts:
    """Return the texts of the kernels of a sum."""
    representation, particles, p = structure.representation, structure.expansion.particles, parameters.order
    real, text, pair = particles.real, engine.operations, particles.pair
    types = structure.expansion.spectra, real
    forward = m2l.forward(p, representation.equivalent, *types, is_gauss)
    kernels = SurfaceKernels(representation, real, parameters.expected)
    steps = {name: box_translations.folding(name, real, 1 if representation.masks is None else 8) for name in FOLDINGS}
    steps |= {
        name: box_translations.products(real, add=name == "products_add") for name in ("products", "products_add")
    }
    steps["solve"] = box_translations.solves(real)
    return FmmTexts(
        text(kernels.check_values()), text(kernels.fields()), text(kernels.near.ranges()),
        {name: text(unit) for name, unit in steps.items()}, text(forward),
        text(m2l.backward(p, representation.check, *types)), 3 + pair.strengths, pair.result,
    )  # fmt: skip


def sizes(structure: FmmStructure, staged: Staged | None = None, is_gauss: bool = False) -> FmmSizes:
    """Return the numbers of points, boxes and list entries of a sum.

    Blocks of octets are those of a shape, or of a host, where a complex product may take three real ones.
    """
    expansion, tree, lists, representation = (
        structure.expansion,
        structure.tree,
        structure.lists,
        structure.representation,
    )
    nodes, points = tree.nodes, surfaces.count(expansion.p)
    sorted_twice = 1 if tree.sources is tree.targets else 2
    src, trg = (float(spans.count[~nodes.is_leaf].sum()) for spans in (nodes.own, nodes.targets))
    sums = {
        "n_sources": tree.sources.n,
        "order": expansion.p,
        "points": points,
        "check": representation.check,
        "equivalent": representation.equivalent,
        "moved": src + (sorted_twice - 1) * trg,
        "listed": float(sum(len(a) for a in (lists.u_t, lists.w_t, lists.x_t, lists.v_t))),
        "lists": meetings(tree, lists, points, expansion.far),
        "frequencies": _frequencies(expansion.p),
        "spectra": expansion.spectra.name,
        "is_gauss": is_gauss,
        "together": (box_translations.OCTETS, OCTETS_AT_ONCE),
    }
    if not expansion.far:
        return FmmSizes(levels=(), translation_levels=(), matrices={}, orbits=1, **sums)
    operators = expansion.operators[TOP_LEVEL]
    ways = {"up": operators.up, "down": operators.down}
    ways |= {"to_parent": (operators.to_parent,), "to_children": (operators.to_children,)}
    return FmmSizes(
        levels=_levels(structure),
        translation_levels=_translation_levels(structure, staged, is_gauss),
        matrices={name: tuple(_matrix(blocks) for blocks in factors) for name, factors in ways.items()},
        orbits=len(operators.check.orbits),
        **sums,
    )


def _frequencies(p: int) -> int:
    return int(spectra.plane_sizes(p).sum())


def _matrix(blocks: ClassMatrices) -> Matrix:
    columns, rows = blocks.part[:, 1].astype(int), blocks.part[:, 3].astype(int)
    tiles = -(-rows // TILE)
    return Matrix(len(rows), int(tiles.sum()), int(tiles @ columns), blocks.rows, blocks.columns)


def _levels(structure: FmmStructure) -> list[OctetLevel]:
    nodes = structure.tree.nodes
    mask = np.ones(nodes.n, bool) if nodes.part is None else (nodes.own.count > 0) | (nodes.targets.count > 0)
    parents = nodes.octet_parent[mask[nodes.octet_parent]]
    octets, boxes = (np.bincount(nodes.level[index], minlength=nodes.depth + 1) for index in (parents, mask))
    return [
        OctetLevel(int(octets[level - 1]), int(boxes[level]), bool(octets[level]))
        for level in range(TOP_LEVEL, nodes.depth + 1)
        if octets[level - 1]
    ]


def _translation_levels(structure: FmmStructure, staged: Staged | None, is_gauss: bool) -> list[TranslationLevel]:
    """Return translations of all levels together, or of each level."""
    nodes, lists, representation = structure.tree.nodes, structure.lists, structure.representation
    if not len(lists.v_t):
        return []
    level = nodes.level[nodes.octet_parent[lists.v_t]] + 1
    masks = [level == value for value in np.unique(level)] if representation.per_level else [np.ones(len(level), bool)]
    pairs, run = (lists.v_t, lists.v_s, lists.v_direction), staged.run if staged else m2l.RUN
    return [_translated(structure, m2l.blocks(*(a[mask] for a in pairs), run), staged, is_gauss) for mask in masks]


def _translated(
    structure: FmmStructure, blocks: m2l.PairBlocks, staged: Staged | None, is_gauss: bool
) -> TranslationLevel:
    expansion, nodes, representation = structure.expansion, structure.tree.nodes, structure.representation
    sources, targets, count = len(blocks.sources), len(blocks.targets), len(blocks.begin)
    n_values = m2l.parts(is_gauss) * representation.equivalent * sources + 16 * representation.check * targets
    nbytes = n_values * expansion.spectra.itemsize
    groups = len(m2l.plane_groups(expansion.p, nbytes, (limits.DEVICE if staged else limits.HOST).spectra))
    n_reads = len(blocks.sources_of_blocks()[0])
    items = count if staged else math.ceil(count / limits.HOST.blocks)
    boxes = nodes.n_children[nodes.octet_parent[blocks.targets]].sum() / (8 * targets)
    return TranslationLevel(
        sources, targets, len(blocks.pairs), n_reads, count, items, groups, float(boxes)
    )  # fmt: skip
