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
    required, executed = (
        of_teams(text, _turns(lists_), len(lists.targets), lanes, device)
        for lists_ in (lists, lists.rounded(TEAM if device else lanes))
    )
    ends = itemsize * (3 + 2 * result) * float(lists.targets.sum())
    nbytes_past, nbytes_once = (itemsize * source * float(n) + ends for n in (lists.met.sum(), lists.distinct))
    amount, lanes_done = sum(required.operations.values()), sum(executed.operations.values())
    return Counts(
        required.operations,
        levels(required, nbytes_past, nbytes_once, device),
        required.atomics,
        1,
        amount / lanes_done,
    )


def _turns(lists: Lists) -> dict[str, float]:
    """Return the turns of the loops of `ranges` and `grids`, as averages over items, targets and places."""
    targets = lists.targets.astype(float)
    n, visits = float(targets.sum()), float(targets @ lists.places)
    size = lists.pairs / visits
    return {"t": n / len(targets), "t:j": visits / n, "t:j:e": size, "at_proxies": lists.proxies}


def leaves(text: LoopText, sizes: NDArray[Any], block: int, row: int, stored: int, itemsize: int, lanes: int,
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
    total = of_teams(text, trips, len(sizes), lanes, device)
    nbytes = itemsize * len(sizes) * (n * row + stored)
    return Counts(total.operations, levels(total, nbytes, nbytes, device), total.atomics, 1)


def transferred(
    text: LoopText, transfers: Transfers, upward: bool, components: int, itemsize: int, lanes: int, device: bool = False
) -> Counts:
    """Count transfers of all components: charges up, or potentials down."""
    if not transfers.items:
        return Counts()
    m, n = transfers.given, transfers.made
    # Three loops of one name each make a plane's values of one more direction; the average of their turns is given.
    direction = (m * m + n * m + n * n) / 3
    trips = {
        "c": transfers.clusters / transfers.items,
        "c:e": 3 * m * n,
        "j0": n,
        "j0:e": direction,
        "i": m,
        "k": n if upward else m,
    }
    trips |= {"has_extent": 1.0, "other_made": 1 - 1 / n, "other_given": 1 - 1 / m}
    total = of_teams(text, trips, transfers.items, lanes, device)
    nbytes = itemsize * components * (transfers.clusters * m**3 + 2 * transfers.items * n**3)
    return Counts(total.operations, levels(total, nbytes, nbytes, device), total.atomics, transfers.launches)


def of_teams(text: LoopText, trips: Mapping[str, float], teams: float, lanes: int, device: bool) -> Added:
    """Return the totals of all teams.

    Every thread of a device computes for itself, but a warp loads the same number once.
    """
    total = text.total(trips, 1 if device else lanes, otherwise=1.0)
    loaded = text.total(trips, WARP, otherwise=1.0) if device else total
    nbytes = teams * loaded.memory, teams * loaded.scratch, teams * total.atomics
    return Added(times(total.operations, teams), *nbytes)


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
    widths, wide = (itemsize, lanes[itemsize], device), (far, lanes[far], device)
    record = 3 * itemsize
    counts_of_phases = {
        "tree": streamed(n.moved * (3 * record + 10), 6),  # codes, numbers and records: counted, then moved
        "lists": streamed(n.listed * 16 * PASSES, 0),
        "upward": _gathered(texts.gather, n.n_sources, row + 3 + texts.dens, itemsize, lanes[itemsize], device)
        + leaves(texts.charges, n.up, texts.blocks[0], 3 + texts.dens, 2 * proxies * texts.dens, *widths),
        "downward": leaves(texts.potentials, n.down, texts.blocks[1], 3 + 2 * result, proxies * result, *widths),
    }
    for transfers in n.charges:
        counts_of_phases["upward"] += transferred(texts.up, transfers, True, texts.dens, *widths)
    for transfers in n.potentials:
        counts_of_phases["downward"] += transferred(texts.down, transfers, False, result, *widths)
    for name, by_points in n.sums.items():
        counts_of_phases[name] = Counts()
        for m, lists in by_points.items():
            text, source = (texts.grids[m], texts.dens + 6 / m**3) if m else (texts.ranges, row)
            counts_of_phases[name] += interacting(text, lists, source, result, *(wide if m else widths))
    return {name: counts_of_phases.get(name, Counts()) for name in PHASES}


def _gathered(text: LoopText, n: int, numbers: int, itemsize: int, lanes: int, device: bool) -> Counts:
    """Count the gather of charges from scattered places into rows: `numbers` numbers in and out for each source."""
    total = of_teams(text, {}, n, lanes, device)
    nbytes = float(n * (itemsize * numbers + 4))
    return Counts(total.operations, levels(total, nbytes, nbytes, device), launches=1)


def streamed(nbytes: float, launches: int) -> Counts:
    """Count bytes that go through memory, and launches, without operations."""
    return Counts(bytes={"l2": float(nbytes), "dram": float(nbytes)}, launches=launches) if nbytes else Counts()


def predict(counts_of_phases: Mapping[str, Counts], machine: Machine, dtype: str = "float64", far: str | None = None,
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
    bounds = {}
    for name, counts in counts_of_phases.items():
        kind = far if far and name in ("pc", "cc") else dtype
        units_used = 1 if name == "lists" else units
        efficiency = share(machine, name) * machine.together(ASSUMED[SHARES[name]], units_used)
        bounds[name] = roofline.time(counts, machine, kind, units_used, efficiency)
    return bounds


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
    points_each = float(points**3 if points else MANY)
    targets = np.full(machine.multiprocessors * TEAM if device else 1, TEAM if device else 8 * lanes)
    places = np.full(len(targets), max(1.0, MANY / points_each))
    lists = Lists(targets, places, points_each * places, 0.0, points_each)
    counts = interacting(text, lists, 4.0, 1, 4 if dtype == "float32" else 8, lanes, device)
    near_bytes = {level: count for level, count in counts.bytes.items() if level in roofline.PER_LANE}
    counts = replace(counts, bytes=near_bytes, launches=0)  # each source is met by many targets
    efficiency = share(machine, "pc" if points else "pp")
    return roofline.time(counts, machine, dtype, 1, efficiency).seconds / lists.pairs
