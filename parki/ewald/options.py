"""Options of Ewald sums, copied and checked on entry."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from parki import fft, names, spelling
from parki.arrays import LAYOUTS, PRECISIONS, space_of
from parki.engine import spaces
from parki.ewald import geometry
from parki.keywords import Box
from parki.names import Layout, Precision, SpaceName
from parki.options import check_fields, count, flag, option, positive, spelled, whole

COUNTS = ("p2p_threads_x", "p2p_threads_y", "p2g_threads", "g2p_threads")
MAIN = ("box", "periodicity", "tolerance")  # options that most calls name
STRAIGHT = 1e-14  # fraction of the shortest side: lattice vectors that tilt less are along the axes


class PublishedText(str):
    """Published default that the caller has not named: it shows its value and means "AUTO"."""

    __slots__ = ()


class PublishedCount(int):
    """Published default that the caller has not named: it shows its value and means that the best is chosen."""

    __slots__ = ()


def named(value: str | int) -> bool:
    """Tell whether a caller has named this variant or block size; "AUTO" names none."""
    return not isinstance(value, PublishedText | PublishedCount) and value != "AUTO"


def named_option(default: str | None, *names: str | None, kw_only: bool = False) -> Any:
    """Return the field of an option whose value is one of these names, in upper or lower case."""
    return option(default, spelled(*names), choices=names, kw_only=kw_only)


def variant(published: str, *names: str) -> Any:
    """Return the field of a kernel's variant, with the published default."""
    spell = spelled("AUTO", *names)

    def check(name: str, value: Any) -> Any:
        return value if isinstance(value, PublishedText) else spell(name, value)

    return option(PublishedText(published), check, choices=("AUTO", *names))


def required_share(name: str, value: Any) -> Any:
    """Check an option that is a number between 0 and 1."""
    if not 0 < _number(value) < 1:
        raise ValueError(f"{name} is {value!r}; expected a number between 0 and 1, such as 1e-6.")
    return value


@dataclasses.dataclass(slots=True)
class EwaldOptions:
    """Collect the options of a sum of `parki.ewald`.

    All but `box` may be left out; any may also be passed to a call as a keyword.

    Parameters
    ----------
    box : list, tuple or array (3,) or (3, 3), optional
        Side lengths in the points' unit of length, or the lattice vectors of a triclinic cell as rows; a diagonal
        matrix of positive numbers is three side lengths.  Rows of free directions are at right angles to all others.
        Points are wrapped along periodic directions and lie in ``[0, side]`` along free ones.  Without periodic
        directions the box may be left out: then a box is made around the points.
    periodicity : {0, 1, 2, 3} or three bools, default 3
        Number of periodic axes, which are the first ones, or a mask of the axes.
    tolerance : float, default 1e-6
        Relative RMS error of the result, between 0 and 1.
    execution_space : str or Space, optional
        ``"Serial"``, ``"OpenMP"``, ``"Cuda"`` and others, see `parki.utils.get_execution_space`; by default the place
        of the arrays: a GPU for arrays on a GPU, else ``"OpenMP"``.
    p2p_method, p2g_method, g2p_method : str, optional
        Variants of the kernels by the names of the published code, and parki's own: the near fields ``"LIST"`` and
        ``"LIST-2D"`` (a list of sources for a batch of targets, or for each), the spreading ``"BLOCK"`` and ``"TILE"``,
        and the interpolation ``"TILE"`` (``"TARGET"`` in triclinic cells and over ranks).  Results of all variants
        agree to the tolerance; ``"BLOCK"``, ``"TILE"`` and ``"GRID"`` spread in a fixed order, the other ways in any
        order, so that last digits change from run to run.  A variant that is not set, or ``"AUTO"``, is chosen for the
        space, on GPUs the near field for the kernel, too; a default that is named is honoured.
    fft_type : {"R2C", "C2C"}, default "R2C"
        Real transforms, or complex ones of the same real grids: the same result in 2.5 times the time.
    torch_fft : bool, default False
        Transform by PyTorch, another name for ``fft="torch"``.
    p2p_threads_x, p2p_threads_y, p2g_threads, g2p_threads : int, optional
        Threads of a block on a GPU: targets of a batch, lanes that share a target (2D variants), threads for spreading
        and for interpolation.  Values that are not set are chosen; on a host they have no meaning.
    cell_size : float, optional
        Expected number of sources in a cube of side `rc`: another way to give `rc`.
    rc : float, optional
        Cut-off radius of the near field in the points' unit of length, at most the shortest periodic side; chosen for
        speed if neither is given.
    return_walltime, return_params : bool, default False
        Return a tuple ``(potential[, WallTime][, Params][, ErrorEstimate])``.
    split : {"prolate", "gaussian"}, default "prolate"
        Profile that divides the sum into near and far field.
    far_precision : {"double", "single"}, optional
        Precision of the far field: the grid, its transforms and the windows.  By default that of the points, or single
        precision if its rounding, a few 1e-7 of the result, is far below the tolerance: from 1e-5 on, for gradients
        with free directions from 1e-4 on, later for few sources and for those that resemble a crystal.  For points of
        float32 only ``"single"`` is possible.
    exchange_bits : {64, 40, 32}, optional
        Bits of a number of the far field in messages between the ranks of a `comm`.  By default those of its type; or,
        if the network is known (``parki doctor`` under ``mpirun``) and the parameters are chosen for it, the fewest
        bits whose rounding is far below the tolerance: 32, which round to about 1e-8, from 1e-6 on, 40 from 1e-9 on,
        both later for sources that resemble a crystal.
    threads : int, optional
        Number of threads; by default as many as the space has.
    layout : {"dn", "nd"}, default "dn"
        Order of the axes: arrays are ``(3, N)``, or ``(N, 3)``.
    return_error : bool, default False
        Also return the error, measured at 100 targets by a second sum.
    verbose : bool, default False
        Log parameters and times at level INFO (logger ``parki.ewald``); where logging has no handlers, as in a plain
        script, they go to stderr.
    engine : {"parki", "pykokkos"}, optional
        Package that compiles and launches the kernels: by default ``PARKI_ENGINE``, else parki itself.
    fft : {"scipy", "ducc0", "pyfftw", "torch", "cupy"}, optional
        Library of the transforms: on a host ``"scipy"`` unless another is named, on a GPU ``"cupy"`` or ``"torch"``.
        Only the named one is imported.
    tune : bool, default False
        Measure a few candidates for `rc`, the grid and the window, on GPUs also for variants, and keep the fastest.
        The choice is remembered in the cache, where similar sums find it at once.
    graph : bool, default False
        In space ``"Cuda"`` with CuPy's transforms only: a plan's first pass launches as usual, the second is recorded
        as a CUDA graph, which runs that pass and all later ones, also after points have moved; passes of another number
        of right-hand sides have a graph of their own.  If a graph cannot be recorded, a warning says so (logger
        ``parki.engine``); no graph is recorded if phases are timed, by `return_walltime` or `verbose`.
    rhs : int, default 1
        Right-hand sides per call for which parameters are chosen: several share much of the near field, so rc is
        longer.  A plan takes any number, and sums each by the same parameters.
    comm : communicator of mpi4py, optional
        Sum over the points of all ranks of the communicator.  The ranks make the same calls in the same order with the
        same options, each with any number of its own points, densities and results.  An error on one rank is raised on
        all.

    Raises
    ------
    TypeError
        For a box that is no list, tuple or array.
    ValueError
        For any other value that is not listed above.

    See Also
    --------
    parki.ewald.plan : Take options as an object or as keywords.

    Examples
    --------
    >>> import numpy as np, parki
    >>> options = parki.ewald.EwaldOptions(periodicity=0, tolerance=1e-9)
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> print(parki.ewald.laplace(x, x, np.array([1.0, 4.0]), options).round(6))
    [2.  0.5]
    """

    box: Box | None = None
    periodicity: int | Sequence[bool] = 3
    tolerance: float = option(1e-6, required_share)
    execution_space: SpaceName | spaces.Space | None = None
    p2p_method: names.P2PMethod = variant("GM-1D", "LIST", "LIST-2D", "GM-1D", "GM-2D", "SM-1D", "SM-2D")
    p2g_method: names.P2GMethod = variant("HYBRID", "BASE", "SOURCE", "GRID", "HYBRID", "BLOCK", "TILE")
    g2p_method: names.G2PMethod = variant("TARGET", "BASE", "TARGET", "TILE")
    fft_type: names.TransformKind = named_option("R2C", "AUTO", "R2C", "C2C")
    torch_fft: bool = option(False, flag)
    p2p_threads_x: int = option(PublishedCount(128), count)
    p2p_threads_y: int = option(PublishedCount(1), count)
    p2g_threads: int = option(PublishedCount(128), count)
    g2p_threads: int = option(PublishedCount(128), count)
    cell_size: float | None = option(None, positive)
    rc: float | None = option(None, positive)
    return_walltime: bool = option(False, flag)
    return_params: bool = option(False, flag)
    split: names.SplitName = named_option("prolate", "prolate", "gaussian", kw_only=True)
    far_precision: Precision | None = named_option(None, None, *PRECISIONS, kw_only=True)
    exchange_bits: names.ExchangeBits | None = option(None, choices=(None, 64, 40, 32), kw_only=True)
    threads: int | None = option(None, whole(), kw_only=True)
    layout: Layout = named_option("dn", *LAYOUTS, kw_only=True)
    return_error: bool = option(False, flag, kw_only=True)
    verbose: bool = option(False, flag, kw_only=True)
    engine: names.EngineName | None = named_option(None, None, *spaces.ENGINES, kw_only=True)
    fft: names.TransformLibrary | None = named_option(None, None, *fft.BACKENDS, kw_only=True)
    tune: bool = option(False, flag, kw_only=True)
    graph: bool = option(False, flag, kw_only=True)
    rhs: int = option(1, count, kw_only=True)
    comm: Any = option(None, kw_only=True)

    def __post_init__(self) -> None:
        self.check()

    @classmethod
    def resolve(
        cls, options: Self | None = None, arguments: Mapping[str, Any] | None = None,
        other_names: Sequence[str] = (), /, **keywords: Any,
    ) -> Self:  # fmt: skip
        """Return a checked copy of `options` with `keywords` in place of its values.

        In the copy `box` is None, a tuple of floats, or a 3 × 3 array; `periodicity` is a tuple of three booleans;
        `execution_space` is a space with the wanted number of threads, which follows the call's arrays, `arguments` by
        name, unless it is named.  Other arguments of the call, `other_names`, may be meant by an unknown keyword.

        Raises
        ------
        TypeError
            For an `options` of another class, a box that is no list, tuple or array, or an unknown keyword.
        ValueError
            As raised by the class, by `parki.arrays.space_of` and by `parki.fft.choose`.
        """
        if options is not None and not isinstance(options, cls):
            raise TypeError(
                f"options is a {type(options).__name__}; expected EwaldOptions. "
                "Pass single options as keywords: box=(1, 1, 1), tolerance=1e-6."
            )
        field_names = [field.name for field in dataclasses.fields(cls)]
        for name in keywords:
            if name not in field_names:
                advice = spelling.advice(name, (*field_names, *other_names)) or f"Options are {', '.join(field_names)}."
                raise TypeError(f"unknown option {name!r}. {advice}")
        result = cls(**keywords) if options is None else dataclasses.replace(options, **keywords)
        if result.box is not None:
            box = np.array(result.box, np.float64)
            result.box = box if box.ndim == 2 and not _rectangular(box) else tuple(_check_box(box, result.periodic))
        result.periodicity = result.periodic
        space = _space(result.execution_space, result.threads, arguments or {})
        result.execution_space = dataclasses.replace(space, engine=result.engine or space.engine)
        fft.choose(result.transform(), result.execution_space.own_memory)
        if result.graph:
            _check_graph(result.execution_space)
        return result

    @property
    def sides(self) -> tuple[float, float, float] | None:
        """Return the sides of a rectangular box; None for a triclinic cell, or without a box."""
        return None if isinstance(self.box, np.ndarray) else self.box

    @property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Return the mask of periodic axes."""
        if isinstance(self.periodicity, numbers.Integral):
            return tuple(axis < self.periodicity for axis in range(3))
        return tuple(bool(flag) for flag in self.periodicity)

    def transform(self) -> str | None:
        """Return the named library of transforms, a key of `parki.fft.BACKENDS`.

        Returns
        -------
        str or None
            The name; None if the library is to be chosen.
        """
        return "torch" if self.torch_fft else self.fft

    def check(self) -> None:
        """Check all fields, and spell choices as listed.

        Fields may change, so calls check them again.

        Raises
        ------
        TypeError
            For a box that is no list, tuple or array.
        ValueError
            For any other value that is not allowed, or that conflicts with another.
        """
        _check_periodicity(self.periodicity)
        sides = _check_box(self.box, self.periodic)
        check_fields(self)
        if self.torch_fft and self.fft not in (None, "torch"):
            raise ValueError(f"fft is {self.fft!r} and torch_fft is True; expected at most one of them.")
        if self.graph and self.transform() == "torch":
            name = "torch_fft is True" if self.torch_fft else "fft is 'torch'"
            raise ValueError(f"graph is True and {name}; expected at most one of them: PyTorch has memory of its own.")
        named_radius = next((name for name in ("cell_size", "rc") if getattr(self, name) is not None), None)
        if named_radius and self.tune:
            value = getattr(self, named_radius)
            raise ValueError(
                f"{named_radius} is {value!r} and tune is True; expected at most one of them: tune sets rc."
            )
        shortest = min(
            (side for side, is_periodic in zip(sides, self.periodic, strict=True) if is_periodic), default=math.inf
        )
        if self.rc is not None and self.rc > shortest:
            raise ValueError(
                f"rc is {self.rc!r}, longer than the shortest periodic side of the box, {shortest:.6g}; expected "
                "0 < rc <= that side, or None to have it chosen."
            )
        if self.rc is not None and self.cell_size is not None:
            raise ValueError(
                f"rc is {self.rc!r} and cell_size is {self.cell_size!r}; expected at most one of them, because "
                "cell_size sets rc."
            )


def quiet(options: EwaldOptions, **values: Any) -> EwaldOptions:
    """Return options of a sum that serves another one, with `values` in place of its values."""
    flags = ("return_walltime", "return_params", "return_error", "verbose", "tune", "graph")
    return dataclasses.replace(options, **(dict.fromkeys(flags, False) | values))


def _number(value: Any) -> float:
    """Return a real number as a float, and NaN for any other object, so that all comparisons with it fail."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        return math.nan
    return float(value)


def _space(execution_space: Any, threads: int | None, arguments: Mapping[str, Any]) -> spaces.Space:
    if execution_space is not None and not isinstance(execution_space, str | spaces.Space):
        raise ValueError(f"execution_space is {execution_space!r}; expected a name such as 'OpenMP', a space, or None.")
    return space_of(execution_space, None if threads is None else int(threads), **arguments)


def _check_graph(space: spaces.Space) -> None:
    if space.name != "Cuda":
        raise ValueError(f"graph is True and execution_space is {space.name!r}; expected 'Cuda', or graph=False.")
    if space.engine != "parki":
        raise ValueError(f"graph is True and engine is {space.engine!r}; expected 'parki', or graph=False.")


def _check_periodicity(value: Any) -> None:
    if isinstance(value, list | tuple | np.ndarray) and len(value) == 3:
        if all(isinstance(flag, bool | np.bool_) for flag in value):
            return
    elif not isinstance(value, list | tuple | np.ndarray) and _number(value) in (0, 1, 2, 3):
        return
    raise ValueError(f"periodicity is {value!r}; expected 0, 1, 2 or 3, or three booleans such as (True, False, True).")


def _check_box(box: Any, periodic: tuple[bool, bool, bool]) -> list[float]:
    """Return the side lengths; for a triclinic cell those of the brick that tiles space by the same lattice."""
    if box is None:
        if any(periodic):
            raise ValueError("box is missing; expected three side lengths. Pass box=(Lx, Ly, Lz).")
        return [math.inf] * 3
    if not isinstance(box, list | tuple | np.ndarray):
        raise TypeError(f"box is a {type(box).__name__}; expected a list, tuple or array of three side lengths.")
    rows = [] if isinstance(box, np.ndarray) and box.ndim == 0 else list(box)
    if len(rows) == 3 and all(isinstance(row, list | tuple | np.ndarray) and len(row) == 3 for row in rows):
        cell = np.array([[_number(x) for x in row] for row in rows])
        if not _rectangular(cell):
            return _check_cell(box, cell, periodic)
        rows = np.diag(cell).tolist()
    sides = [_number(side) for side in rows]
    if len(sides) != 3 or not all(0 < side < math.inf for side in sides):
        raise ValueError(f"box is {box!r}; expected three positive, finite side lengths.")
    return sides


def _rectangular(cell: np.ndarray) -> bool:
    """Tell whether lattice vectors are sides along x, y, z, up to the rounding of programs that write them."""
    sides = np.diag(cell)
    return bool(np.isfinite(cell).all() and (abs(cell - np.diag(sides)) <= STRAIGHT * sides.min()).all())


def _check_cell(box: Any, cell: np.ndarray, periodic: tuple[bool, bool, bool]) -> list[float]:
    if not np.isfinite(cell).all():
        raise ValueError(f"box is {box!r}; expected three lattice vectors of finite numbers, one a row.")
    if not any(periodic):
        raise ValueError("box is a triclinic cell, and periodicity is 0; expected 1, 2 or 3, or three side lengths.")
    edges = np.linalg.norm(cell, axis=1)
    if abs(np.linalg.det(cell)) <= 1e-6 * np.prod(edges):
        raise ValueError(f"box is {box!r}, whose lattice vectors lie in a plane; expected a cell with a volume.")
    angles = np.abs(cell @ cell.T)[[not is_periodic for is_periodic in periodic]] / np.outer(
        edges[[not is_periodic for is_periodic in periodic]], edges
    )
    if (np.sort(angles, axis=1)[:, :2] > 100 * STRAIGHT).any():
        raise ValueError(
            f"box is {box!r} and periodicity is {sum(periodic)}; expected rows without a period at right angles to all "
            "others."
        )
    return list(geometry.of_cell(cell, periodic).box)
