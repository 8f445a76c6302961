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


def count(texts: FmmTexts, n: FmmSizes, itemsize: int, lanes: int, device: bool = False) -> dict[str, Counts]:
    """Count all steps of a plan and one sum, of numbers of `itemsize` bytes in vectors of `lanes`, or on a device."""
    about = (itemsize, lanes, device)
    found = {"tree": streamed(n.moved * SORTED * (9 * itemsize + 10), 6), "lists": streamed(n.listed * 16 * PASSES, 0)}
    of = {
        "p2m": (texts.surfaces, texts.source, n.check), "p2l": (texts.surfaces, texts.source, n.check),
        "m2p": (texts.fields, n.equivalent, texts.result), "l2p": (texts.fields, n.equivalent, texts.result),
        "p2p": (texts.ranges, texts.source, texts.result),
    }  # fmt: skip
    for name, (text, source, result) in of.items():
        some = n.lists.get(name)
        found[name] = interacting(text, some, source, result, *about) if some is not None else Counts()
    if n.levels:
        found["p2m"] += streamed(float(n.n_sources * (itemsize * 2 * texts.source + 4)), 0)
    for name, way, step in (("m2m", "up", "to_parent"), ("l2l", "down", "to_children")):
        found[name] = sum((_dense(texts, n, level, way, step, *about) for level in n.levels), Counts())
    found["transforms"] = sum((_transforms(texts, n, it, *about) for it in n.translation_levels), Counts())
    found["m2l"] = sum((octets(n, it, itemsize, device) for it in n.translation_levels), Counts())
    return {name: found[name] for name in STEPS}


def _dense(
    texts: FmmTexts, n: FmmSizes, level: OctetLevel, way: str, step: str, itemsize: int, lanes: int, device: bool
) -> Counts:
    """Count the dense steps of one level in one direction: fold, solve, unfold, and the step with its children."""
    size, filled = itemsize * SIBLINGS * level.octets, level.boxes / (SIBLINGS * level.octets)
    launch = OctetLaunch(level.octets, filled, lanes, device)
    first, second = n.matrices[way]
    check, equivalent = n.check * n.points, n.equivalent * n.points
    found = _folding(texts.dense["fold"], n, n.check, size * (check + first.columns), launch)
    found += _folding(texts.dense["unfold"], n, n.equivalent, size * (equivalent + second.rows), launch)
    both = Matrix(first.classes, first.tiles + second.tiles, first.turns + second.turns, second.rows, first.columns)
    moved = size * (first.columns + second.rows)
    found += _products(texts.dense["solve"], both, n.together[0], moved, launch, stages=2)
    if level.inner:
        (matrix,) = n.matrices[step]
        up = step == "to_parent"
        components, side = (n.equivalent, equivalent) if up else (n.check, check)
        text = texts.dense["fold_children" if up else "unfold_children"]
        trips = {"e": components * n.points, "has_children": filled}
        moved = size * 2 * SIBLINGS * side
        one = _of_octets(text, trips, level.octets, moved, launch)
        moved = size * (matrix.columns + matrix.rows) * (2 if up else 1)
        one += _products(texts.dense["products_add" if up else "products"], matrix, n.together[0], moved, launch)
        found += replace(one, launches=2 * -(-level.octets // n.together[1]))
    return found


def _folding(text: LoopText, n: FmmSizes, components: int, moved: float, launch: OctetLaunch) -> Counts:
    """Count the conversion of surface values to class values, or back."""
    share = n.points / (SIBLINGS * n.orbits)
    trips = {"e": components * n.orbits, "has_row": share, "is_first": share}
    return _of_octets(text, trips, launch.octets, moved, launch)


def _products(
    text: LoopText, matrix: Matrix, together: int, moved: float, launch: OctetLaunch, stages: int = 1
) -> Counts:
    """Count the products of the matrices of all classes with class values, in `stages` loops of one name."""
    octets = launch.octets
    teams = matrix.classes * -(-octets // together)
    trips = {"t": matrix.tiles / matrix.classes / stages, "j": matrix.turns / matrix.tiles}
    share = octets / (together * -(-octets // together))
    trips |= {"has_octet": share}
    return _of_octets(text, trips, teams, moved, replace(launch, filled=launch.filled * share))


def _of_octets(text: LoopText, trips: Mapping[str, float], teams: float, moved: float, launch: OctetLaunch) -> Counts:
    """Count a launch with siblings in the lanes."""
    filled = launch.filled
    found = of_teams(text, trips, teams, launch.lanes, launch.device)
    bytes_ = levels(found, moved, moved, launch.device)
    near = {level: filled * n if level in roofline.PER_LANE else n for level, n in bytes_.items()}
    return Counts(times(found.operations, filled), near, found.atomics, 1, filled)


def _transforms(texts: FmmTexts, n: FmmSizes, it: TranslationLevel, itemsize: int, lanes: int, device: bool) -> Counts:
    """Count the transforms of equivalents to spectra, and of spectra to check values."""
    p, f = n.order, 2 * n.order - 1
    rim = (4 * p - 4) / p**2
    trips = {"x": p, "ky": ((p - 1) * f + p) / p, "k": p / it.groups, "has_mirror": (p - 1) / p}
    trips |= {"on_rim": rim}
    found = Counts()
    for text, components, octets, teams in (
        (texts.forward, n.equivalent, it.sources, p),
        (texts.backward, n.check, it.targets, it.groups),
    ):
        moved = itemsize * octets * components * (2 * SIBLINGS * n.frequencies + SIBLINGS * n.points)
        launch = OctetLaunch(octets, it.boxes, lanes, device)
        found += _of_octets(text, trips, octets * components * teams, moved, launch)
    return Counts(found.operations, found.bytes, found.atomics, 2 * it.groups, found.fill)


def octets(n: FmmSizes, it: TranslationLevel, itemsize: int, device: bool = False) -> Counts:
    """Count the products of spectra of pairs of octets: by formula, as all loops of their text are known.

    For each frequency and pair of components a pair of octets has 8 × 8 complex products, with targets in the lanes: it
    reads 16 numbers, and reads and writes 16 others.  The 8 × 8 numbers of a direction are read once a block.
    """
    each = n.frequencies * n.check * n.equivalent
    copied = 2 * 16 * SIBLINGS * DIRECTIONS * it.items
    kernels = 16 * SIBLINGS * DIRECTIONS * it.blocks
    spectra = 16 * n.frequencies * (n.equivalent * it.met + n.check * 2 * it.targets)
    once = 16 * n.frequencies * (n.equivalent * it.sources + n.check * it.targets) + each * TABLE
    l2 = spectra + each * it.items * TABLE
    near = {"l1": each * (48 * it.pairs + kernels), "shared": float(each * copied)}
    if not device:
        near = {"l1": near["l1"] + near["shared"]}
    bytes_ = {level: itemsize * it.boxes * total for level, total in near.items()}
    bytes_ |= {"l2": float(itemsize * l2), "dram": float(itemsize * once)}
    fused = 4 * SIBLINGS * SIBLINGS * each * it.pairs
    return Counts({"fma": it.boxes * fused}, bytes_, 0.0, it.groups, it.boxes)


def predict(found: Mapping[str, Counts], machine: Machine, dtype: str = "float64", units: int | None = None
            ) -> dict[str, Bound]:  # fmt: skip
    """Predict seconds by step, of numbers of one type, as `clusters.predict` does by phase."""
    units = machine.units if units is None else units
    made = {}
    for name, counts in found.items():
        many = 1 if name == "lists" else units
        reached = share(machine, name) * machine.together(ASSUMED[STEPS[name][1]][-1], many)
        made[name] = roofline.time(counts, machine, dtype, many, reached)
    return made


def by_phase(steps: Mapping[str, Bound]) -> dict[str, float]:
    """Return the seconds of each phase, summed over its steps."""
    found = dict.fromkeys(PHASES, 0.0)
    for name, bound in steps.items():
        found[STEPS[name][0]] += bound.seconds
    return found


def share(machine: Machine, step: str) -> float:
    """Return the share of its limit that a step reaches: measured, or the first of `ASSUMED` that is known."""
    name = STEPS[step][1]
    return next(machine.reached[known] for known in (name, *ASSUMED[name]) if known in machine.reached)
