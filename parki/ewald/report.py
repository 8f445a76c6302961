"""Reports of a sum: wall-clock times by phase, and parameters by their published names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from parki.arrays import Array
from parki.ewald.choice.params import Parameters
from parki.ewald.stages import multipliers
from parki.tables import TextTable
from parki.timing import PhaseTimes, row

# phase, its title, the count for its rate, the unit of this count
PHASES = (
    ("p2p", "near field (P2P)", "N_out", "targets"),
    ("p2g", "spread (P2G)", "N_in", "sources"),
    ("fft", "FFT", "N_grid", "grid points"),
    ("cnv", "multiply (CNV)", "N_grid", "grid points"),
    ("ifft", "inverse FFT", "N_grid", "grid points"),
    ("g2p", "interpolate (G2P)", "N_out", "targets"),
)
# parts of phases over particles: packing or sorting back, and kernels
PARTS = {f"{name}.{part}": part for name in ("p2p", "p2g", "g2p") for part in ("sort", "kernel")}
TITLES = {name: title for name, title, *_ in PHASES} | PARTS
EXCHANGES = {
    "sort": "to bricks and back", "ghost_source": "sources around", "ghost_grid": "margins of the grid",
    "exchange": "lines for planes", "agree": "agreement",
}  # fmt: skip
PLANNED = ("cell_list",)


def _published(name: str) -> property:
    """Return the property that gives the seconds of a phase and of its parts, with its docstring."""
    keys = {"tot": name} | {PARTS[part]: part for part in PARTS if part.startswith(f"{name}.")}

    def seconds(self: PhaseTimes) -> dict[str, float]:
        return {key: self.time[part] for key, part in keys.items()}

    return property(seconds, doc=f"Return the seconds of the phase {TITLES[name]} and of its parts.")


class WallTime(PhaseTimes):
    """Add up the wall-clock seconds of each phase of one or more Ewald sums, by their published names.

    In addition to the phases there are ``"ewald"``, the whole sum, and ``"cell_list"``, making cell lists, which
    `reset` keeps.

    Parameters
    ----------
    N_in, N_out, N_grid, N_fft : int, default 0
        Sources, targets, grid points, and input values of one forward transform of all components.
    wait : callable, optional
        Function that returns when all earlier launches are done.
    comm : Comm, optional
        Communicator of a sum over ranks.

    Attributes
    ----------
    time_p2p, time_p2g, time_fft, time_cnv, time_ifft, time_g2p : dict
        Seconds ``"tot"``, and for phases over particles also their parts ``"sort"`` and ``"kernel"``; read only, from
        `time`.
    time_ewald : float
        Seconds of the whole sum.
    time_cell_list : float
        Seconds of making cell lists.
    flop_p2p, flop_p2g, flop_fft, flop_cnv, flop_ifft, flop_g2p : int
        Arithmetic operations of one sum in each phase, counted by `parki.ewald.stages.work`; zero if not counted.
    mop_p2p, mop_p2g, mop_fft, mop_cnv, mop_ifft, mop_g2p : int
        Bytes that each phase of one sum reads and writes.
    N_pairs : int
        Pairs of a target and a source that the near field tests.

    See Also
    --------
    parki.timing.PhaseTimes : The times of all methods.
    parki.ewald.laplace : Return them with `return_walltime`.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.random.default_rng(1).random((3, 100))
    >>> plan = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-4)
    >>> u = plan(np.where(x[0] < 0.5, 1.0, -1.0))
    >>> times = plan.walltime
    >>> times.N_in, sorted(times.time_p2p), times.time_ewald > 0
    (100, ['kernel', 'sort', 'tot'], True)
    """

    def __init__(
        self, N_in: int = 0, N_out: int = 0, N_grid: int = 0, N_fft: int = 0, wait: Callable[[], None] | None = None,
        comm: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(TITLES | {"ewald": "sum", "cell_list": "cell lists"}, PLANNED, wait)
        if comm is not None:
            self.over(comm, EXCHANGES)
        self.whole_phase = "ewald"
        self.N_in, self.N_out, self.N_grid, self.N_fft, self.N_pairs = N_in, N_out, N_grid, N_fft, 0
        for name, *_ in PHASES:
            setattr(self, f"flop_{name}", 0)
            setattr(self, f"mop_{name}", 0)

    def take(self, flop: Mapping[str, int], mop: Mapping[str, int], pairs: int, values: int) -> None:
        """Set the counts of one sum: operations and bytes by phase, near pairs, and values of a transform."""
        self.N_fft, self.N_pairs = values, pairs
        for name, *_ in PHASES:
            setattr(self, f"flop_{name}", flop[name])
            setattr(self, f"mop_{name}", mop[name])

    @property
    def time_ewald(self) -> float:
        """Return the seconds of the whole sum."""
        return self.time["ewald"]

    @property
    def time_cell_list(self) -> float:
        """Return the seconds of making cell lists."""
        return self.time["cell_list"]

    time_p2p = _published("p2p")
    time_p2g = _published("p2g")
    time_fft = _published("fft")
    time_cnv = _published("cnv")
    time_ifft = _published("ifft")
    time_g2p = _published("g2p")

    @property
    def total(self) -> float:
        """Return the seconds of the whole sum, or of all its phases if the sum was not timed."""
        return self.time_ewald or self._accounted

    @property
    def _accounted(self) -> float:
        return sum(self.time[name] for name, *_ in PHASES)

    def cells(self) -> TextTable:
        """Return the cells of `table`: time, share of the whole, rate of each phase.

        Returns
        -------
        TextTable
            One row per phase.
        """
        total, rows = self.total, []
        for name, title, count, unit in PHASES:
            rows.append(_cells(title, self.time[name], total, getattr(self, count), unit))
        rows.append(_cells("other", max(total - self._accounted, 0.0), total))
        rows.append(_cells("total", total, total, self.N_out, "targets"))
        return TextTable(("phase", "time", "share", "rate"), rows, "{:<20}{:>12}{:>8}   {}")

    def __repr__(self) -> str:
        return f"<WallTime {self.time_ewald:.3g} s, {self.N_in} sources, {self.N_out} targets>"


def _cells(title: str, seconds: float, total: float, n: int = 0, unit: str = "") -> tuple[str, str, str, str]:
    return *row(title, seconds, total), f"{n / seconds / 1e6:.3g} M {unit}/s" if n and seconds > 0 else ""


class Params:
    """Hold the parameters of a sum by their published names, read only.

    Parameters
    ----------
    parameters : Parameters
        Parameters of a plan.

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
        Largest factor by which transforms along free directions are longer: for modes that are constant along the
        periodic directions, and for all others; ones in a fully periodic sum.
    far_precision : str
        Precision of the far field, ``"double"`` or ``"single"``.

    See Also
    --------
    parki.ewald.laplace : Return them with `return_params`.
    parki.plan.Plan.parameters : The parameters of a plan.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x, q = np.random.default_rng(1).random((3, 100)), np.ones(100) - 2 * (np.arange(100) % 2)
    >>> u, params = parki.ewald.laplace(x, x, q, box=(1, 1, 1), rc=0.4, return_params=True)
    >>> params.rc, params.split
    (0.4, 'prolate')
    """

    def __init__(self, parameters: Parameters) -> None:
        self.rc, self.xi = float(parameters.rc), parameters.xi
        self.kmax, self.c = float(parameters.kmax), float(parameters.c)
        self.split, self.window_P = str(parameters.split), int(parameters.P)
        mask = np.arange(3) >= parameters.periodicity
        self.grid_shape_ext: Array = np.array(parameters.grid, dtype=int) + mask * self.window_P
        spacing = np.array(parameters.h, dtype=float)
        self.box_ext: Array = np.where(mask, spacing * self.grid_shape_ext, parameters.box)
        self.h = float(spacing.max())
        self.grid_res = 1.0 / self.h
        self.far_precision = "single" if parameters.far == "float32" else "double"
        self.actual_upsampling: Array = self._upsampling(parameters) if mask.any() else np.ones(2)

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


def describe(p: Parameters, periodic: tuple[bool, bool, bool]) -> dict[str, str]:
    """Describe parameters, in the caller's unit of length, in two lines by title."""
    axes = "".join(axis for axis, is_periodic in zip("xyz", periodic, strict=True) if is_periodic) or "no direction"
    shape = "box {:.4g} × {:.4g} × {:.4g}".format(*p.box) if p.skew is None else "triclinic cell"
    return {"box": f"{shape}, periodic in {axes}, tolerance {p.tolerance:g}", "parameters": str(Params(p))}
