"""Counts and times of a fast multipole sum by equivalent sources: totals of its kernels' texts over its lists.

Particles meet particles and surfaces in kernels whose items are numbers of targets and of sources, as in treecodes
(`parki.perfmodels.counts.clusters`).  Dense steps are small matrices over octets, with eight siblings in the lanes.
Translations are transforms of octets and, for each frequency, products of 8 × 8 for each pair of octets.

Making operators and launches is not counted: operators come from the process or from the disk.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from parki.perfmodels import roofline
from parki.perfmodels.counts.clusters import Lists, LoopText, interacting, of_teams, streamed
from parki.perfmodels.counts.totals import Counts, levels, times
from parki.perfmodels.machine import Machine
from parki.perfmodels.roofline import Bound

PHASES = ("tree", "lists", "upward", "m2l", "p2l_m2p", "downward", "near")
#: Steps in their order: the phase of each, and the name of the share of its limit that the step reaches.
STEPS = {
    "tree": ("tree", "octree"), "lists": ("lists", "octlists"), "p2m": ("upward", "surfaces"),
    "m2m": ("upward", "dense"), "transforms": ("m2l", "transforms"), "m2l": ("m2l", "octets"),
    "p2l": ("p2l_m2p", "surfaces"), "m2p": ("p2l_m2p", "fields"), "l2l": ("downward", "dense"),
    "l2p": ("downward", "fields"), "p2p": ("near", "ranges"),
}  # fmt: skip
#: Share → shares that stand for it if it is not measured; the last is a phase of Ewald sums, known of all machines.
ASSUMED = {
    "octree": ("p2g",), "octlists": ("p2g",), "ranges": ("p2p",), "surfaces": ("ranges", "p2p"),
    "fields": ("ranges", "p2p"), "dense": ("p2p",), "transforms": ("g2p",), "octets": ("p2p",),
}  # fmt: skip
SIBLINGS = 8  # boxes of an octet, one in each lane
DIRECTIONS = 26  # directions between the octets of a pair
SORTED = 5  # passes over the points of a level of the tree, with their keys
PASSES = 40  # passes of NumPy over each pair of boxes or octets, 8 bytes in and out
#: Numbers that lanes of a device read from scratch for a pair: 16 of its source by 4 lanes, and half a matrix.
STAGED_READS = 16 * 4 + 128 // 2
BYTES = {"float64": 8, "float32": 4}
TABLE = 688  # numbers of a frequency in the table of transformed kernels


@dataclass(frozen=True)
class Matrix:
    """A matrix for each reflection class, in tiles of 8 rows: classes, tiles, columns times tiles, rows, columns."""

    classes: int
    tiles: int
    turns: int
    rows: int
    columns: int


@dataclass(frozen=True)
class OctetLevel:
    """Octets of one level, the boxes in them, and whether any of these has children."""

    octets: int
    boxes: int
    inner: bool


@dataclass(frozen=True)
class TranslationLevel:
    """Translations that share a table of transforms.

    Attributes
    ----------
    sources, targets, pairs
        Octets that give, that take, and pairs of these.
    met
        Octets that give to a block of octets that take, summed over all blocks.
    blocks, items, groups
        Blocks, shares of them that are done together for each frequency, and groups of frequencies.
    boxes
        Share of the places in octets that are boxes.
    """

    sources: int
    targets: int
    pairs: int
    met: int
    blocks: int
    items: int
    groups: int
    boxes: float


@dataclass(frozen=True)
class FmmSizes:
    """Sizes of the plan of a fast multipole sum: points, surfaces, lists and levels.

    Attributes
    ----------
    n_sources, order, points
        Source particles, points per edge of a surface, and points of a surface.
    check, equivalent
        Components of check values and of equivalents.
    moved, listed
        Points that were moved to children, of all levels; entries of all lists.
    lists
        Lists of the steps between particles, or between particles and surfaces.
    levels, translation_levels
        Levels of the dense steps, and of the translations.
    matrices
        By name: ``"up"`` and ``"down"`` two each, ``"to_parent"`` and ``"to_children"`` one.
    orbits
        Orbits of points under reflections.
    together
        Octets for which a matrix is read once, and octets whose children are done together.
    frequencies
        Frequencies of a transform.
    spectra
        Type of the spectra by which boxes meet, ``"float64"`` or ``"float32"``.
    is_gauss
        Whether a complex product takes three real ones, for which sources have a third part.
    """

    n_sources: int
    order: int
    points: int
    check: int
    equivalent: int
    moved: float
    listed: float
    lists: Mapping[str, Lists]
    levels: Sequence[OctetLevel]
    translation_levels: Sequence[TranslationLevel]
    matrices: Mapping[str, Sequence[Matrix]]
    orbits: int
    together: tuple[int, int]
    frequencies: int
    spectra: str
    is_gauss: bool = False


@dataclass(frozen=True)
class FmmTexts:
    """Texts of the kernels of a plan, by name; numbers of a source particle, and of a result."""

    surfaces: LoopText
    fields: LoopText
    ranges: LoopText
    dense: Mapping[str, LoopText]
    forward: LoopText
    backward: LoopText
    source: int
    result: int


@dataclass(frozen=True)
class OctetLaunch:
    """Octets of a launch, with siblings in the lanes.

    Attributes
    ----------
    octets
        Number of octets.
    filled
        Share of the places in octets that are boxes.
    lanes, device
        Lanes of a host's vectors, and whether the machine is a device.
    """

    octets: int
    filled: float
    lanes: int
    device: bool


def count(
    texts: FmmTexts, n: FmmSizes, dtype: str, lanes: Mapping[str, int], device: bool = False
) -> dict[str, Counts]:
    """Count all steps of a plan and one sum, of numbers of a type, in vectors of some lanes by type or on a device."""
    itemsize = BYTES[dtype]
    widths = (itemsize, lanes[dtype], device)
    counts_of_steps = {
        "tree": streamed(n.moved * SORTED * (9 * itemsize + 10), 6),
        "lists": streamed(n.listed * 16 * PASSES, 0),
    }
    interactions = {
        "p2m": (texts.surfaces, texts.source, n.check), "p2l": (texts.surfaces, texts.source, n.check),
        "m2p": (texts.fields, n.equivalent, texts.result), "l2p": (texts.fields, n.equivalent, texts.result),
        "p2p": (texts.ranges, texts.source, texts.result),
    }  # fmt: skip
    for name, (text, source, result) in interactions.items():
        lists_ = n.lists.get(name)
        counts_of_steps[name] = interacting(text, lists_, source, result, *widths) if lists_ is not None else Counts()
    if n.levels:
        counts_of_steps["p2m"] += streamed(float(n.n_sources * (itemsize * 2 * texts.source + 4)), 0)
    for name, way, step in (("m2m", "up", "to_parent"), ("l2l", "down", "to_children")):
        counts_of_steps[name] = sum((_dense(texts, n, level, way, step, *widths) for level in n.levels), Counts())
    counts_of_steps["transforms"] = sum(
        (_transforms(texts, n, level, itemsize, lanes[n.spectra], device) for level in n.translation_levels), Counts()
    )
    counts_of_steps["m2l"] = sum((octets(n, level, device) for level in n.translation_levels), Counts())
    return {name: counts_of_steps[name] for name in STEPS}


def _dense(
    texts: FmmTexts, n: FmmSizes, level: OctetLevel, way: str, step: str, itemsize: int, lanes: int, device: bool
) -> Counts:
    """Count the dense steps of one level in one direction: fold, solve, unfold, and the step with its children."""
    size, occupancy = itemsize * SIBLINGS * level.octets, level.boxes / (SIBLINGS * level.octets)
    launch = OctetLaunch(level.octets, occupancy, lanes, device)
    first, second = n.matrices[way]
    check, equivalent = n.check * n.points, n.equivalent * n.points
    result = _folding(texts.dense["fold"], n, n.check, size * (check + first.columns), launch)
    result += _folding(texts.dense["unfold"], n, n.equivalent, size * (equivalent + second.rows), launch)
    matrices = Matrix(first.classes, first.tiles + second.tiles, first.turns + second.turns, second.rows, first.columns)
    nbytes = size * (first.columns + second.rows)
    result += _products(texts.dense["solve"], matrices, n.together[0], nbytes, launch, stages=2)
    if level.inner:
        (matrix,) = n.matrices[step]
        is_upward = step == "to_parent"
        components, side = (n.equivalent, equivalent) if is_upward else (n.check, check)
        text = texts.dense["fold_children" if is_upward else "unfold_children"]
        trips = {"e": components * n.points, "has_children": occupancy}
        nbytes = size * 2 * SIBLINGS * side
        step_counts = _of_octets(text, trips, level.octets, nbytes, launch)
        nbytes = size * (matrix.columns + matrix.rows) * (2 if is_upward else 1)
        step_counts += _products(
            texts.dense["products_add" if is_upward else "products"], matrix, n.together[0], nbytes, launch
        )
        result += replace(step_counts, launches=2 * -(-level.octets // n.together[1]))
    return result


def _folding(text: LoopText, n: FmmSizes, components: int, nbytes: float, launch: OctetLaunch) -> Counts:
    """Count the conversion of surface values to class values, or back."""
    share = n.points / (SIBLINGS * n.orbits)
    trips = {"e": components * n.orbits, "has_row": share, "is_first": share}
    return _of_octets(text, trips, launch.octets, nbytes, launch)


def _products(
    text: LoopText, matrix: Matrix, block_size: int, nbytes: float, launch: OctetLaunch, stages: int = 1
) -> Counts:
    """Count the products of the matrices of all classes with class values, in `stages` loops of one name."""
    octets = launch.octets
    teams = matrix.classes * -(-octets // block_size)
    trips = {"t": matrix.tiles / matrix.classes / stages, "j": matrix.turns / matrix.tiles}
    share = octets / (block_size * -(-octets // block_size))
    trips |= {"has_octet": share}
    return _of_octets(text, trips, teams, nbytes, replace(launch, filled=launch.filled * share))


def _of_octets(text: LoopText, trips: Mapping[str, float], teams: float, nbytes: float, launch: OctetLaunch) -> Counts:
    """Count a launch with siblings in the lanes."""
    occupancy = launch.filled
    total = of_teams(text, trips, teams, launch.lanes, launch.device)
    bytes_ = levels(total, nbytes, nbytes, launch.device)
    bytes_of_lanes = {level: occupancy * n if level in roofline.PER_LANE else n for level, n in bytes_.items()}
    return Counts(times(total.operations, occupancy), bytes_of_lanes, total.atomics, 1, occupancy)


def _transforms(
    texts: FmmTexts, n: FmmSizes, translations: TranslationLevel, itemsize: int, lanes: int, device: bool
) -> Counts:
    """Count the transforms of equivalents to spectra, and of spectra to check values."""
    p, f = n.order, 2 * n.order - 1
    rim = (4 * p - 4) / p**2
    trips = {"x": p, "ky": ((p - 1) * f + p) / p, "k": p / translations.groups, "has_mirror": (p - 1) / p}
    trips |= {"on_rim": rim}
    result = Counts()
    for text, components, octets, teams in (
        (texts.forward, n.equivalent, translations.sources, p),
        (texts.backward, n.check, translations.targets, translations.groups),
    ):
        nbytes = octets * components * SIBLINGS * (BYTES[n.spectra] * 2 * n.frequencies + itemsize * n.points)
        launch = OctetLaunch(octets, translations.boxes, lanes, device)
        result += _of_octets(text, trips, octets * components * teams, nbytes, launch)
    return replace(result, launches=2 * translations.groups, dtype=n.spectra)


def octets(n: FmmSizes, translations: TranslationLevel, device: bool = False) -> Counts:
    """Count the products of spectra of pairs of octets: by formula, as all loops of their text are known.

    For each frequency and pair of components a pair of octets has 8 × 8 complex products, with targets in the lanes: it
    reads 16 or 24 numbers, and reads and writes 16 others.  The 8 × 8 numbers of a direction are read once a block.

    A team of a device takes to scratch the 8 × 8 numbers of all directions, and the spectra that its block meets.
    """
    itemsize, products = BYTES[n.spectra], n.frequencies * n.check * n.equivalent
    kernels = 16 * SIBLINGS * DIRECTIONS * translations.blocks
    parts = (3 if n.is_gauss else 2) * SIBLINGS
    spectra = n.frequencies * (parts * n.equivalent * translations.met + 16 * n.check * 2 * translations.targets)
    least_numbers = parts * n.equivalent * translations.sources + 16 * n.check * translations.targets
    least_bytes = n.frequencies * least_numbers + products * TABLE
    l2 = spectra + products * translations.items * TABLE
    if device:
        staged = kernels + 16 * translations.met
        bytes_of_lanes = {"l1": products * float(staged + 16 * translations.targets)}
        bytes_of_lanes["shared"] = products * float(staged + STAGED_READS * translations.pairs)
    else:
        copies = 2 * 16 * SIBLINGS * DIRECTIONS * translations.items
        bytes_of_lanes = {"l1": products * ((32 + parts) * translations.pairs + kernels + copies)}
    bytes_ = {level: itemsize * translations.boxes * total for level, total in bytes_of_lanes.items()}
    bytes_ |= {"l2": float(itemsize * l2), "dram": float(itemsize * least_bytes)}
    fmas = (3 if n.is_gauss else 4) * SIBLINGS * SIBLINGS * products * translations.pairs
    operations = {"fma": translations.boxes * fmas}
    return Counts(operations, bytes_, 0.0, translations.groups, translations.boxes, n.spectra)


def predict(counts_of_steps: Mapping[str, Counts], machine: Machine, dtype: str = "float64", units: int | None = None
            ) -> dict[str, Bound]:  # fmt: skip
    """Predict seconds by step, of numbers of one type, as `clusters.predict` does by phase."""
    units = machine.units if units is None else units
    bounds = {}
    for name, counts in counts_of_steps.items():
        units_used = 1 if name == "lists" else units
        efficiency = share(machine, name) * machine.together(ASSUMED[STEPS[name][1]][-1], units_used)
        bounds[name] = roofline.time(counts, machine, dtype, units_used, efficiency)
    return bounds


def by_phase(steps: Mapping[str, Bound]) -> dict[str, float]:
    """Return the seconds of each phase, summed over its steps."""
    seconds = dict.fromkeys(PHASES, 0.0)
    for name, bound in steps.items():
        seconds[STEPS[name][0]] += bound.seconds
    return seconds


def share(machine: Machine, step: str) -> float:
    """Return the share of its limit that a step reaches: measured, or the first of `ASSUMED` that is known."""
    name = STEPS[step][1]
    return next(machine.reached[key] for key in (name, *ASSUMED[name]) if key in machine.reached)
