"""Rates of machines, from data sheets or measured here, and costs of the parts of an Ewald sum on one of them."""

import difflib
import functools
import hashlib
import importlib.resources
import os
import platform
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import platformdirs
from numpy.typing import ArrayLike

from parki.perfmodels import window_rows
from parki.perfmodels.window_rows import GATHERING, SPREADING, TAPS, WARP

HOST, GENERIC = "host", "xeon"  # the machine at hand; its stand-in until it is calibrated
FEW = 16.0  # sources in a cube of side rc at which a target finds half as many columns of cells as among many more
CROWD = 224.0  # sources in a cube of side rc, for which a pair's time is stated
OFF = ("0", "no", "off")  # values of PARKI_CALIBRATION

# Operations of a near-field pair of laplace: differences, distance, 1/r, a polynomial for about 1e-7, sums.
PAIR = {"add": 3, "mul": 3, "fma": 26, "rsqrt": 1}
# Of a grid point and a real transform: POINTS, for 2.5 log2(POINTS) operations; the share of these that is left, as two
# axes of three see only the modes of σ = 1.2; added bytes that planes, margins and multipliers move, of 8-byte numbers.
POINTS, PRUNED, MOVED = 2.0**23, (1 + 2 / 1.2) / 3, 24.0
SYSTEM = 2 << 10  # bytes of shared memory that a block leaves to the system and to sums over a team
LISTS = 1.15  # all near work over that of pairs: the rest is finding them
# Of a near field with lists for each target on a GPU: tests for a pair, in pairs of laplace, as an H200 took for three
# kernels by both; fused operations in the time of the rest of a target (tests/perfmodels/test_near_instructions.py).
LISTING, TARGET = 2.0, 9600


@dataclass(frozen=True)
class Costs:
    """Calibrated times in seconds; the defaults are one AVX-512 core at 2.5–3 GHz, double precision.

    Only ratios matter for a selection, so more threads need no other numbers as long as all parts scale alike.
    """

    near: float = 3.1e-9  # a pair within rc, of laplace
    differ: float = 1.0  # share of the extra time in `Kernel.near` of others: less where pairs out of reach count, too
    near_overhead: float = 1.15  # all near work over that of the pairs within rc, at 224 sources in a cube of side rc
    listing: float = (
        0.0  # finding a pair by a list for each target, in pairs of laplace; 0 where there are no such lists
    )
    target: float = 1.5e-7  # a target among many sources: its share of finding the columns of cells in reach
    lanes: int = 8  # targets of one vector in double precision, or of one group on a GPU
    fft: float = 16e-9  # a grid point and one real transform of one component, with its share of the scaling
    spread: float = 1.34e-9  # a row of the window (P² rows) and component, as `rows` weights them
    gather: float = 1.08e-9
    slopes: float = 1.4  # time of spreading with the window's slopes over that without
    sparse: float = 0.07  # relative cost that each grid point per particle adds to rows of a window of 8 points
    single: float = 0.6  # time in single precision over double, of pairs, on GPUs of windows too
    single_fft: float = 0.7  # the same of transforms
    rhs: int = 1  # right-hand sides at once, which share the part of a pair that does not depend on strengths

    def near_pair(self, relative: float, crowd: ArrayLike) -> ArrayLike:
        """Return the time of one pair within rc, `relative` to laplace, where `crowd` sources lie in a cube of side rc.

        A vector of targets serves all sources within rc of its bounding cube: few sources waste most lanes.  Lanes that
        share a target and list its sources waste none.
        """
        at_crowd = _waste(self.lanes / CROWD)
        waste = _waste(self.lanes / np.maximum(crowd, 1e-3)) / at_crowd
        seconds = self.near_overhead * self.near * relative * waste
        if self.listing:
            ratio = 1 + (relative - 1) / self.differ
            seconds = np.minimum(seconds, self.near / at_crowd * (ratio + self.listing))
        return seconds

    def near_target(self, crowd: ArrayLike) -> ArrayLike:
        """Return the time of a target besides its pairs, where `crowd` sources lie in a cube of side rc."""
        return self.target * np.asarray(crowd) / (np.asarray(crowd) + FEW)

    def rows(self, phase: str, P: ArrayLike, per_particle: ArrayLike = 0.0, itemsize: int = 8) -> ArrayLike:
        """Return the P² rows of a window, weighted by their cost in ``"spread"`` or ``"gather"`` (`window_rows`)."""
        return window_rows.rows(phase, P, self.lanes, itemsize, self.sparse * np.minimum(per_particle, 32.0)) * (
            self.single if itemsize == 4 and self.lanes >= WARP else 1.0
        )

    @classmethod
    def of(cls, machine: "Machine") -> "Costs":
        """Return the costs of one core of a host, or of a GPU: measured where there are any, else from its rates.

        From rates, each part takes the time of its limit, over the share of the limit that is reached: a pair that of
        its operations in the lanes that are not wasted; a transform that of its operations, and of its other traffic; a
        row of the window that of its taps, in and out of the first-level cache, on a GPU that of tiles (`SPREADING`).
        """
        if machine.costs is not None:
            return machine.costs
        device, rates, level = machine.is_gpu, machine.operations, machine.bandwidth
        lanes, share = machine.lanes["float64"], machine.reached
        near_cost = sum(count / rates["float64"][name] for name, count in PAIR.items()) * _waste(lanes / CROWD)
        transform = 2.5 * np.log2(POINTS) * PRUNED / machine.fft["float64"] / share["fft"]
        if device:
            spread = SPREADING / TAPS**2 / rates["float64"]["fma"] / machine.share("p2g", "TILE")
            gather = GATHERING / TAPS**2 / level["shared"] / machine.share("g2p", "TILE")
        else:
            unit_costs = cls(lanes=lanes, sparse=0.0)
            weight = {phase: float(unit_costs.rows(phase, TAPS)) / TAPS**2 for phase in ("spread", "gather")}
            spread = 2 * 8.0 * TAPS / weight["spread"] / level["l1"] / share["p2g"]
            gather = 8.0 * TAPS / weight["gather"] / level["l1"] / share["g2p"]
        single = 0.5 * rates["float64"]["fma"] / rates["float32"]["fma"] + 0.25  # traffic halves
        return cls(
            near=float(near_cost) / share["p2p"],
            near_overhead=LISTS,
            differ=0.5 if device else cls.differ,
            listing=LISTING if device else cls.listing,
            target=TARGET / rates["float64"]["fma"] / share["p2p"] if device else cls.target,
            lanes=lanes,
            fft=float(transform) + MOVED / level["dram"] / share["cnv"],
            spread=spread,
            gather=gather,
            slopes=1.83 if device else cls.slopes,
            sparse=0.0 if device else cls.sparse,
            single=min(1.0, 1.1 * single),
            single_fft=min(1.0, 1.1 * single),
        )


@dataclass(frozen=True)
class Machine:
    """Rates of one core of a host, or of a GPU as a program sees it.

    Attributes
    ----------
    name, source : str
        Name of the machine, and origin of the numbers: a data sheet, or the day of the measurement.
    kind : str
        ``"host"`` or ``"device"``.
    units : int
        Cores; 1 for a GPU.
    operations : dict
        By type, ``"float64"`` and ``"float32"``, then by class, as `perfmodels.counts.totals` has them: operations
        a second of one unit, every lane of a vector counted.
    bandwidth : dict
        Bytes a second of one unit from ``"l1"``, ``"l2"``, ``"l3"`` (hosts), ``"shared"`` (GPUs) and ``"dram"``; and of
        all units together ``"dram_all"``.
    atomics, launch : float
        Atomic additions a second of one unit; seconds of a launch.
    fft : dict
        By type, operations a second of one unit in complex transforms, 5 n log2 n of each.
    lanes : dict
        By type, of a vector, or the threads of a warp.
    registers, shared_bytes, threads, multiprocessors : int
        Of a GPU's multiprocessor: 32-bit registers, bytes of shared memory, resident threads; and how many there are.
    reached : dict
        The share of its limit that each of ``"p2p"``, ``"p2g"``, ``"fft"``, ``"cnv"``, ``"ifft"``, ``"g2p"`` reaches:
        measured, or a stated assumption.  Where measured, also those of `parki.perfmodels.counts.clusters.ASSUMED`; of
        a GPU also ``"atomics"``, the share of their rate, and those of variants that differ (``"p2g_tile"``).
    links : dict
        Of a GPU, bytes a second each way: ``"host"``, and ``"peer"`` where copies go from one such GPU to another.
    parallel : dict
        By phase, of a host: the speedup of all units over one, divided by their number; empty where not measured.
    costs : Costs, optional
        Of the parts of a sum, measured.
    """

    name: str
    kind: str
    units: int
    operations: Mapping[str, Mapping[str, float]]
    bandwidth: Mapping[str, float]
    atomics: float
    launch: float
    fft: Mapping[str, float]
    lanes: Mapping[str, int]
    reached: Mapping[str, float]
    registers: int = 0
    shared_bytes: int = 0
    threads: int = 0
    multiprocessors: int = 0
    links: Mapping[str, float] = field(default_factory=dict)
    parallel: Mapping[str, float] = field(default_factory=dict)
    costs: Costs | None = None
    source: str = ""

    PHASES: ClassVar[tuple[str, ...]] = ("p2p", "p2g", "fft", "cnv", "ifft", "g2p")
    TEXTS: ClassVar[tuple[str, ...]] = ("name", "kind", "source")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names that `load` takes: the machine at hand, and the known machines."""
        files = importlib.resources.files("parki.perfmodels.machines").iterdir()
        return (HOST, *sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")))

    @classmethod
    def load(cls, name: str) -> "Machine":
        """Return a machine by its name, in any case: ``"host"`` as it was calibrated, else as many generic cores.

        Raises
        ------
        ValueError
            For a name that is not in `names`.
        """
        key, names = name.lower().replace(" ", "").replace("-", ""), cls.names()
        if key not in names:
            matches = difflib.get_close_matches(key, names, n=1)
            advice = f" Did you mean {matches[0]!r}?" if matches else ""
            raise ValueError(f"machine: found {name!r}, expected one of {', '.join(names)}.{advice}")
        if key == HOST:
            return calibrated() or replace(_known(GENERIC), units=os.cpu_count() or 1)
        return _known(key)

    @classmethod
    def of_device(cls, name: str) -> "Machine | None":
        """Return the GPU that a driver calls `name` (``"NVIDIA A100-SXM4-80GB"``), None if it is not known."""
        key = name.lower().replace(" ", "").replace("-", "")
        candidates = [candidate for candidate in cls.names() if candidate in key]
        candidates = [candidate for candidate in candidates if candidate != HOST and _known(candidate).is_gpu]
        return _known(max(candidates, key=len)) if candidates else None

    @classmethod
    def parse(cls, text: str) -> "Machine":
        """Return the machine that a TOML text describes.

        Raises
        ------
        ValueError
            If the text is no TOML, or if an entry is missing, unknown or of another kind.
        """
        table = tomllib.loads(text)
        costs = table.pop("costs", None)
        try:
            result = cls(costs=None if costs is None else Costs(**costs), **table)
        except TypeError as error:
            raise ValueError(f"machine: {error}") from error
        for name, value in _leaves(table) + _leaves(costs or {}):
            if name not in cls.TEXTS and not (isinstance(value, int | float) and 0 <= value < np.inf):
                raise ValueError(f"machine: {name} is {value!r}; expected a number that is finite and not negative")
        if missing := [phase for phase in cls.PHASES if phase not in result.reached]:
            raise ValueError(f"machine: found no share that {', '.join(missing)} reach")
        return result

    @property
    def is_gpu(self) -> bool:
        """Return whether this is a GPU: threads stand for lanes."""
        return self.kind == "device"

    @property
    def scratch(self) -> int:
        """Return the bytes of scratch that a team on a GPU may ask for; 0 on a host."""
        return self.shared_bytes - SYSTEM if self.is_gpu else 0

    def share(self, phase: str, variant: str = "") -> float:
        """Return the share of its limit that a phase reaches, of a variant of its kernel if that differs."""
        return self.reached.get(f"{phase}_{variant.lower()}", self.reached[phase])

    def some(self, units: int | None) -> int:
        """Return the number of cores that is asked for, all if none is given.

        Raises
        ------
        ValueError
            For more cores than there are, and for fewer than one.
        """
        if units is None:
            return self.units
        if not 0 < units <= self.units:
            raise ValueError(f"threads: found {units}, expected 1 to {self.units}, the cores of {self.name}")
        return units

    def together(self, phase: str, units: int) -> float:
        """Return the share of their rates that `units` cores reach together.

        The loss grows linearly from none of one core to that of all cores, which is measured.
        """
        short = 1.0 - self.parallel.get(phase, 1.0)
        return 1.0 - short * min(1.0, (units - 1) / max(1, self.units - 1))

    def text(self) -> str:
        """Return the machine as TOML, which `parse` reads."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.costs is None:
            del values["costs"]
        else:
            values["costs"] = {f.name: getattr(self.costs, f.name) for f in fields(Costs)}
        return toml(values)


def toml(values: Mapping[str, Any], table: str = "") -> str:
    """Return strings, numbers and nested tables of them as TOML."""
    items = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    lines = [f"{key} = {_literal(value)}" for key, value in items.items()]
    if table and (lines or not values):
        lines.insert(0, f"\n[{table}]")
    text = "".join(f"{line}\n" for line in lines)
    nested = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    return text + "".join(toml(value, f"{table}.{key}" if table else key) for key, value in nested.items())


def _literal(value: str | float) -> str:
    if isinstance(value, str):
        body = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else " " for c in body) + '"'
    return repr(int(value)) if isinstance(value, int | np.integer) else repr(float(value))


def _leaves(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return all entries of nested tables."""
    result: list[tuple[str, Any]] = []
    for name, value in values.items():
        result += _leaves(value) if isinstance(value, Mapping) else [(name, value)]
    return result


@functools.cache
def _known(name: str) -> Machine:
    file = importlib.resources.files("parki.perfmodels.machines").joinpath(f"{name}.toml")
    return Machine.parse(file.read_text("utf-8"))


@functools.cache
def hardware() -> str:
    """Return the hardware that a calibration holds for, as text: processor, instructions, number of cores."""
    prefixes = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU ", "isa", "cpu\t")
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
        lines_kept = sorted({line for line in lines if line.startswith(prefixes)})
    except OSError:
        lines_kept = [platform.node(), platform.machine(), platform.processor()]
    return "\n".join([*lines_kept, str(os.cpu_count())])


def stored() -> Path:
    """Return the path of this machine's calibration, stored or not: below the folder of compiled kernels."""
    path = os.environ.get("PARKI_CACHE_DIR") or os.environ.get("PARKI_CACHE")
    folder = Path(path).expanduser().absolute() if path else Path(platformdirs.user_cache_dir("parki"))
    return folder / "v1" / "machines" / f"{hashlib.blake2b(hardware().encode(), digest_size=10).hexdigest()}.toml"


def ignored() -> str:
    """Return the value of ``PARKI_CALIBRATION`` if it says that calibrations are not to be used, else ""."""
    value = os.environ.get("PARKI_CALIBRATION", "")
    return value if value.lower() in OFF else ""


def calibrated(built: str | None = None) -> Machine | None:
    """Return the machine at hand as `parki calibrate` has measured it, or None: also if ``PARKI_CALIBRATION=off``.

    Parameters
    ----------
    built : str, optional
        Compiler and target of the kernels: a calibration by another compiler, or for other vectors, does not count.
    """
    if ignored():
        return None
    path = stored()
    try:
        stamp = path.stat()
    except OSError:
        return None
    record = _read(path, stamp.st_mtime_ns, stamp.st_size)
    return record[0] if record and built in (None, record[1]) else None


@functools.lru_cache(maxsize=8)
def _read(path: Path, mtime: int, size: int) -> tuple[Machine, str] | None:
    """Return a stored machine, and the compiler and target of its kernels; None for a file that cannot be read."""
    try:
        first, _, text = path.read_text("utf-8").partition("\n")
        return Machine.parse(text), first.removeprefix("# ")
    except (OSError, ValueError):
        return None


def _waste(share: ArrayLike) -> ArrayLike:
    """Return the volume within 1 of a cube of volume `share`, over that of the unit ball."""
    w = np.cbrt(share)
    return (w**3 + 6 * w**2 + 3 * np.pi * w + 4 * np.pi / 3) / (4 * np.pi / 3)


# Costs of an NVIDIA H200 in double precision, by measured rates and shares.
H200 = Costs.of(Machine.load("h200"))
