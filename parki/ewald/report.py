"""The reports of a sum: wall-clock times by phase, and parameters by their published names."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from parki.arrays import Array
from parki.ewald.choice.params import Parameters
from parki.ewald.stages import multipliers
from parki.timing import timed

# phase, its title, the count that its rate is of, the unit of that count
PHASES = (
    ("p2p", "near field (P2P)", "N_out", "targets"),
    ("p2g", "spread (P2G)", "N_in", "sources"),
    ("fft", "FFT", "N_grid", "grid points"),
    ("cnv", "multiply (CNV)", "N_grid", "grid points"),
    ("ifft", "inverse FFT", "N_grid", "grid points"),
    ("g2p", "interpolate (G2P)", "N_out", "targets"),
)


class WallTime:
    """Seconds of wall-clock time of each phase of one or more sums; they add up.

    Attributes
    ----------
    time_p2p, time_p2g, time_fft, time_cnv, time_ifft, time_g2p : dict
        ``"tot"``, and for phases over particles also its parts ``"sort"`` and ``"kernel"``.
    time_ewald : float
        The whole sum.
    time_cell_list : float
        Making cell lists.
    N_in, N_out, N_grid, N_fft : int
        Sources, targets, grid points, and values that one forward transform of all components takes in.
    flop_p2p, flop_p2g, flop_fft, flop_cnv, flop_ifft, flop_g2p : int
        Arithmetic operations of one sum in each phase, as `parki.ewald.stages.work` counts them; zero where it has not.
    mop_p2p, mop_p2g, mop_fft, mop_cnv, mop_ifft, mop_g2p : int
        Bytes that it reads and writes.
    N_pairs : int
        Pairs of a target and a source that the near field looks at.

    With `wait`, which returns when everything launched before is done, a phase lasts until its launches are done;
    without, until they are made.  If `watch` is set, it is called with the name of each phase as that begins.
    """

    def __init__(
        self, N_in: int = 0, N_out: int = 0, N_grid: int = 0, N_fft: int = 0, wait: Callable[[], None] | None = None
    ) -> None:
        self._wait = wait
        self.watch: Callable[[str], None] | None = None
        self.N_in, self.N_out, self.N_grid, self.N_fft, self.N_pairs = N_in, N_out, N_grid, N_fft, 0
        for name, *_ in PHASES:
            setattr(self, f"flop_{name}", 0)
            setattr(self, f"mop_{name}", 0)
        self.reset()

    @property
    def apart(self) -> bool:
        """Tell whether each phase is waited for, so that none may go on beside another."""
        return self._wait is not None

    def take(self, flop: Mapping[str, int], mop: Mapping[str, int], pairs: int, values: int) -> None:
        """Set the counts of one sum: operations and bytes by phase, near pairs, and values of a transform."""
        self.N_fft, self.N_pairs = values, pairs
        for name, *_ in PHASES:
            setattr(self, f"flop_{name}", flop[name])
            setattr(self, f"mop_{name}", mop[name])

    def reset(self, keep_cell_list: bool = False) -> None:
        """Set all times to zero, but for that of the cell lists where a plan keeps them."""
        self.time_ewald = 0.0
        self.time_cell_list = self.time_cell_list if keep_cell_list else 0.0
        for name, *_ in PHASES:
            parts = ("tot", "sort", "kernel") if name in ("p2p", "p2g", "g2p") else ("tot",)
            setattr(self, f"time_{name}", dict.fromkeys(parts, 0.0))

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time that the body takes to a phase, and to a part of it, as ``"p2p.kernel"``.

        The phases ``"p2p"``, ``"p2g"``, ``"fft"``, ``"cnv"``, ``"ifft"``, ``"g2p"`` keep a total and parts, others are
        ``"ewald"`` and ``"cell_list"``.
        """
        name, _, part = name.partition(".")
        attribute = f"time_{name}"
        times = getattr(self, attribute)  # before the clock starts: a wrong name fails without running the body
        if part and (not isinstance(times, dict) or part not in times):
            raise KeyError(f"phase {name!r} has no part {part!r}")
        if self.watch is not None:
            self.watch(name)

        def add(spent: float) -> None:
            if isinstance(times, dict):
                times["tot"] += spent
                if part and part != "tot":
                    times[part] += spent
            else:
                setattr(self, attribute, getattr(self, attribute) + spent)

        with timed(add, self._wait):
            yield

    @contextlib.contextmanager
    def members(self, size: int) -> Iterator[list["WallTime"]]:
        """Give times to as many threads that work side by side; the body's time is shared out as theirs together."""
        members = [WallTime() for _ in range(size)]
        members[0].watch = self.watch
        began = time.perf_counter()
        try:
            yield members
        finally:
            spent = time.perf_counter() - began
            sums = {name: sum(getattr(m, f"time_{name}")["tot"] for m in members) for name, *_ in PHASES}
            worked = sum(sums.values())
            for name, seconds in sums.items():
                getattr(self, f"time_{name}")["tot"] += spent * seconds / worked if worked else 0.0

    def table(self) -> str:
        """Return a table of the phases: time, share of the whole, rate."""
        phases = [
            (title, getattr(self, f"time_{name}")["tot"], getattr(self, n), unit) for name, title, n, unit in PHASES
        ]
        accounted = sum(seconds for _, seconds, _, _ in phases)
        whole = self.time_ewald or accounted
        lines = [f"{'phase':<20}{'time':>12}{'share':>8}   rate"]
        lines += [_row(title, seconds, whole, n, unit) for title, seconds, n, unit in phases]
        lines.append(_row("other", max(whole - accounted, 0.0), whole))
        lines.append(_row("total", whole, whole, self.N_out, "targets"))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<WallTime {self.time_ewald:.3g} s, {self.N_in} sources, {self.N_out} targets>"


def _row(title: str, seconds: float, whole: float, n: int = 0, unit: str = "") -> str:
    share = f"{100 * seconds / whole:.1f} %" if whole > 0 else "–"
    rate = f"{n / seconds / 1e6:.3g} M {unit}/s" if n and seconds > 0 else ""
    return f"{title:<20}{1e3 * seconds:>9.2f} ms{share:>8}   {rate}".rstrip()


class Params:
    """The parameters of a sum by their published names, read only.

    Attributes
    ----------
    rc : float
        Cut-off radius of the near field.
    xi : float or None
        Parameter of the Gaussian split; None for another split.
    kmax, c : float
        Largest wave number of the far field, and the bandwidth ``c = rc kmax``.
    split : str
        ``"prolate"`` or ``"gaussian"``.
    window_P : int
        Width of the spreading window in grid points.
    h, grid_res : float
        Largest of the three grid spacings, and its inverse.
    grid_shape_ext, box_ext : array (3,)
        Grid points and side lengths, with the window's width more in free directions.
    actual_upsampling : array (2,)
        How many times as long transforms along free directions are, at most: of the modes that are constant along the
        periodic ones, and of all others; ones in a fully periodic sum.
    far_precision : str
        ``"double"`` or ``"single"``, that of the far field.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.rc, self.xi = float(parameters.rc), parameters.xi
        self.kmax, self.c = float(parameters.kmax), float(parameters.c)
        self.split, self.window_P = str(parameters.split), int(parameters.P)
        free = np.arange(3) >= parameters.periodicity
        self.grid_shape_ext: Array = np.array(parameters.grid, dtype=int) + free * self.window_P
        spacing = np.array(parameters.h, dtype=float)
        self.box_ext: Array = np.where(free, spacing * self.grid_shape_ext, parameters.box)
        self.h = float(spacing.max())
        self.grid_res = 1.0 / self.h
        self.far_precision = "single" if parameters.far == "float32" else "double"
        self.actual_upsampling: Array = self._upsampling(parameters) if free.any() else np.ones(2)

    def _upsampling(self, parameters: Parameters) -> Array:
        classes = multipliers.planes(parameters)
        lengths = np.array([(multipliers.period(parameters), c.rows, c.length) for c in classes])
        factors = (lengths / self.grid_shape_ext)[:, parameters.periodicity :].max(axis=1)
        return np.array([factors[0], factors[1:].max(initial=1.0) if parameters.periodicity else factors[0]])

    def __str__(self) -> str:
        grid = " × ".join(str(n) for n in self.grid_shape_ext)
        sizes = f"rc {self.rc:.4g}, kmax {self.kmax:.4g}, grid {grid}, window {self.window_P} points"
        return f"{self.split} split, {sizes}, far field in {self.far_precision} precision"

    def __repr__(self) -> str:
        return f"<Params: {self}>"
