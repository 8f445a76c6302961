"""Counts and times of a treecode: totals of its kernels' texts over trees, lists and proxy points.

Sums over lists have two kernels: `ranges` (source particles; of PP and CP) and `grids` (tensor grids of proxy points;
of PC and CC).  Their items are numbers of targets and of sources.  Charges go up and potentials down by one kernel each
for leaves, and by transfers between clusters.  Trees and lists move through memory.  The share of its bandwidth that
they reach is measured, as rates of processors do not give it: they are limited by sorting in steps of one, and by
NumPy's passes over arrays.

Totals of texts are given by loops (`parki.engine.tree.operations`), which have the names of the kernel files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from parki.perfmodels import roofline
from parki.perfmodels.counts.totals import Counts, levels, times
from parki.perfmodels.machine import Machine
from parki.perfmodels.roofline import Bound

PHASES = ("tree", "lists", "upward", "pp", "pc", "cp", "cc", "downward")
#: Phase → name of the share of its limit that it reaches; if not measured, `ASSUMED` names a phase of Ewald sums.
SHARES = {"tree": "tree", "lists": "lists", "upward": "upward", "downward": "downward",
          "pp": "ranges", "cp": "ranges", "pc": "grids", "cc": "grids"}  # fmt: skip
ASSUMED = {"ranges": "p2p", "grids": "p2p", "upward": "g2p", "downward": "g2p", "tree": "p2g", "lists": "p2g"}
WARP, TEAM = 32, 128  # threads of a device that load a number at once; threads of one item
PASSES = 40  # passes of NumPy over each pair of clusters, 8 bytes in and out: criteria, children, kinds, sorting
MANY = 1000  # sources of a target, for which the time of a pair is stated


class LoopText(Protocol):
    """A kernel's text by loops (`parki.engine.tree.operations.CodeBlock`)."""

    def total(self, trips: Mapping[str, float], lanes: int = 1, otherwise: float | None = None) -> Any:
        """Return the totals of one turn, as `counts.TextTotals`."""


@dataclass(frozen=True)
class Added:
    """A text's totals over all teams: see `counts.TextTotals`."""

    operations: Mapping[str, float]
    memory: float
    scratch: float
    atomics: float


@dataclass(frozen=True)
class Lists:
    """Lists of one kernel, item by item.

    Attributes
    ----------
    targets, places, met
        Of each item: targets; ranges or clusters of its list; source particles or proxy points in these (I,).
    proxies
        Share of the targets that are proxy points.
    distinct
        Distinct sources of all items together.
    """

    targets: NDArray[Any]
    places: NDArray[Any]
    met: NDArray[Any]
    proxies: float
    distinct: float

    @property
    def pairs(self) -> float:
        """Evaluations of the kernel."""
        return float(self.targets.astype(float) @ self.met)

    def rounded(self, group: int) -> "Lists":
        """Return the lists with targets rounded up to whole groups."""
        return replace(self, targets=-(-self.targets // group) * group)


@dataclass(frozen=True)
class Transfers:
    """Launches from `given` to `made` points per direction: in all `items` clusters take and `clusters` give."""

    given: int
    made: int
    items: int
    clusters: int
    launches: int = 1


@dataclass(frozen=True)
class TreecodeSizes:
    """Sizes of a treecode plan: points, lists and transfers.

    Attributes
    ----------
    n_targets, n_sources, points
        Particles, and proxy points per direction of all that go up and down.
    moved
        Points that were moved to children, of all levels.
    listed
        Pairs of clusters that were found, and entries of the lists.
    up, down
        Particles of each leaf that has charges, and of each that has potentials; none without proxy points.
    charges, potentials
        Transfers between clusters.
    sums
        By phase, ``"pp"`` to ``"cc"``, points per direction of a source (0: particles) and lists.
    """

    n_targets: int
    n_sources: int
    points: int
    moved: float
    listed: float
    up: NDArray[Any]
    down: NDArray[Any]
    charges: Sequence[Transfers]
    potentials: Sequence[Transfers]
    sums: Mapping[str, Mapping[int, Lists]]


@dataclass(frozen=True)
class TreecodeTexts:
    """Texts of the kernels of a pair, `grids` by points per direction; numbers of charges, constants and results.

    `blocks` are the particles of a leaf that `charges` and `potentials` take at once.
    """

    gather: LoopText
    ranges: LoopText
    grids: Mapping[int, LoopText]
    charges: LoopText
    potentials: LoopText
    up: LoopText
    down: LoopText
    dens: int
    constants: int
    result: int
    blocks: tuple[int, int]


def interacting(
    text: LoopText, lists: Lists, source: float, result: int, itemsize: int, lanes: int, device: bool = False
) -> Counts:
    """Count one launch of `ranges` or `grids`.

    Parameters
    ----------
    text
        Text of the kernel.
    lists
        Lists that the kernel goes over.
    source, result
        Numbers of a source particle or proxy point, and of the result at a target.
    itemsize
        Bytes of a number.
    lanes
        Lanes of a host's vectors.
    device
        Whether threads stand for lanes, and `TEAM` of them for one item.
    """
    if not lists.pairs:
        return Counts()
    useful, done = (
        of_teams(text, _turns(some), len(lists.targets), lanes, device)
        for some in (lists, lists.rounded(TEAM if device else lanes))
    )
    ends = itemsize * (3 + 2 * result) * float(lists.targets.sum())
    past, once = (itemsize * source * float(n) + ends for n in (lists.met.sum(), lists.distinct))
    amount, lanes_done = sum(useful.operations.values()), sum(done.operations.values())
    return Counts(useful.operations, levels(useful, past, once, device), useful.atomics, 1, amount / lanes_done)


def _turns(lists: Lists) -> dict[str, float]:
    """Return the turns of the loops of `ranges` and `grids`, as averages over items, targets and places."""
    targets = lists.targets.astype(float)
    n, looked = float(targets.sum()), float(targets @ lists.places)
    size = lists.pairs / looked
    return {"t": n / len(targets), "t:j": looked / n, "t:j:e": size, "at_proxies": lists.proxies}


def leaves(text: LoopText, sizes: NDArray[Any], block: int, row: int, held: int, itemsize: int, lanes: int,
           device: bool = False) -> Counts:  # fmt: skip
    """Count one launch over leaves: charges of proxy points, or potentials of particles.

    Parameters
    ----------
    text
        Text of either kernel.
    sizes
        Particles of each leaf.
    block
        Particles that are taken at once.
    row, held
        Numbers of a particle, and of a cluster.
    itemsize, lanes, device
        As in `interacting`.
    """
    if not len(sizes):
        return Counts()
    n, blocks = float(sizes.mean()), float((-(-sizes // block)).mean())
    trips = {"begin": blocks, "t": n / blocks, "e": n / blocks, "has_extent": 1.0}
    found = of_teams(text, trips, len(sizes), lanes, device)
    moved = itemsize * len(sizes) * (n * row + held)
    return Counts(found.operations, levels(found, moved, moved, device), found.atomics, 1)


def transferred(
    text: LoopText, it: Transfers, up: bool, components: int, itemsize: int, lanes: int, device: bool = False
) -> Counts:
    """Count transfers of all components: charges up, or potentials down."""
    if not it.items:
        return Counts()
    m, n = it.given, it.made
    # Three loops of one name each make a plane's values of one more direction; the average of their turns is given.
    direction = (m * m + n * m + n * n) / 3
    trips = {"c": it.clusters / it.items, "c:e": 3 * m * n, "j0": n, "j0:e": direction, "i": m, "k": n if up else m}
    trips |= {"has_extent": 1.0, "other_made": 1 - 1 / n, "other_given": 1 - 1 / m}
    found = of_teams(text, trips, it.items, lanes, device)
    moved = itemsize * components * (it.clusters * m**3 + 2 * it.items * n**3)
    return Counts(found.operations, levels(found, moved, moved, device), found.atomics, it.launches)


def of_teams(text: LoopText, trips: Mapping[str, float], teams: float, lanes: int, device: bool) -> Added:
    """Return the totals of all teams.

    Every thread of a device computes for itself, but a warp loads the same number once.
    """
    found = text.total(trips, 1 if device else lanes, otherwise=1.0)
    loaded = text.total(trips, WARP, otherwise=1.0) if device else found
    moved = teams * loaded.memory, teams * loaded.scratch, teams * found.atomics
    return Added(times(found.operations, teams), *moved)


def count(
    texts: TreecodeTexts, n: TreecodeSizes, itemsize: int, far: int, lanes: Mapping[int, int], device: bool = False
) -> dict[str, Counts]:
    """Count all phases of a plan and one sum.

    Parameters
    ----------
    texts
        Texts of the kernels.
    n
        Sizes of the plan.
    itemsize, far
        Bytes of the particles' numbers, and of the numbers in sums over proxy points.
    lanes
        Lanes of a host's vectors, by bytes of a number.
    device
        Whether the machine is a device.
    """
    row, result, proxies = 3 + texts.dens + texts.constants, texts.result, n.points**3
    about, wide = (itemsize, lanes[itemsize], device), (far, lanes[far], device)
    record = 3 * itemsize
    found = {
        "tree": streamed(n.moved * (3 * record + 10), 6),  # codes, numbers and records: counted, then moved
        "lists": streamed(n.listed * 16 * PASSES, 0),
        "upward": _gathered(texts.gather, n.n_sources, row + 3 + texts.dens, itemsize, lanes[itemsize], device)
        + leaves(texts.charges, n.up, texts.blocks[0], 3 + texts.dens, 2 * proxies * texts.dens, *about),
        "downward": leaves(texts.potentials, n.down, texts.blocks[1], 3 + 2 * result, proxies * result, *about),
    }
    for it in n.charges:
        found["upward"] += transferred(texts.up, it, True, texts.dens, *about)
    for it in n.potentials:
        found["downward"] += transferred(texts.down, it, False, result, *about)
    for name, by_points in n.sums.items():
        found[name] = Counts()
        for m, lists in by_points.items():
            text, source = (texts.grids[m], texts.dens + 6 / m**3) if m else (texts.ranges, row)
            found[name] += interacting(text, lists, source, result, *(wide if m else about))
    return {name: found.get(name, Counts()) for name in PHASES}


def _gathered(text: LoopText, n: int, numbers: int, itemsize: int, lanes: int, device: bool) -> Counts:
    """Count the gather of charges from scattered places into rows: `numbers` numbers in and out for each source."""
    found = of_teams(text, {}, n, lanes, device)
    moved = float(n * (itemsize * numbers + 4))
    return Counts(found.operations, levels(found, moved, moved, device), launches=1)


def streamed(moved: float, launches: int) -> Counts:
    """Count bytes that go through memory, and launches, without operations."""
    return Counts(bytes={"l2": float(moved), "dram": float(moved)}, launches=launches) if moved else Counts()


def predict(found: Mapping[str, Counts], machine: Machine, dtype: str = "float64", far: str | None = None,
            units: int | None = None) -> dict[str, Bound]:  # fmt: skip
    """Predict seconds by phase: the limit of each over the share of it that is reached.

    Parameters
    ----------
    found
        As `count` gives it.
    machine, units
        The machine, and the cores that are used, all if not given.  Lists are made on one.
    dtype, far
        Types of the particles, and of sums over proxy points, the same if not given.
    """
    units = machine.units if units is None else units
    made = {}
    for name, counts in found.items():
        kind = far if far and name in ("pc", "cc") else dtype
        many = 1 if name == "lists" else units
        reached = share(machine, name) * machine.together(ASSUMED[SHARES[name]], many)
        made[name] = roofline.time(counts, machine, kind, many, reached)
    return made


def share(machine: Machine, phase: str) -> float:
    """Return the share of its limit that a phase reaches: measured, or that of the phase in `ASSUMED`."""
    name = SHARES[phase]
    return machine.reached.get(name, machine.reached[ASSUMED[name]])


def time_of(text: LoopText, machine: Machine, dtype: str = "float64", points: int = 0) -> float:
    """Return the seconds of one pair of a target and a source on one core, or on a GPU.

    Parameters
    ----------
    text
        Text of `ranges`, or of `grids` for this number of points per direction.
    machine
        The machine.
    dtype
        Type of the kernel.
    points
        Points per direction of a source cluster, whose points³ proxy points are the sources; 0 for particles.
    """
    device, lanes = machine.is_gpu, machine.lanes[dtype]
    each = float(points**3 if points else MANY)
    targets = np.full(machine.multiprocessors * TEAM if device else 1, TEAM if device else 8 * lanes)
    places = np.full(len(targets), max(1.0, MANY / each))
    lists = Lists(targets, places, each * places, 0.0, each)
    counts = interacting(text, lists, 4.0, 1, 4 if dtype == "float32" else 8, lanes, device)
    near = {level: count for level, count in counts.bytes.items() if level in roofline.PER_LANE}
    counts = replace(counts, bytes=near, launches=0)  # each source is met by many targets
    reached = share(machine, "pc" if points else "pp")
    return roofline.time(counts, machine, dtype, 1, reached).seconds / lists.pairs
