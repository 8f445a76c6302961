"""Small helpers for scripts: execution spaces, array modules, dtypes, wrapping points into a box."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parki.arrays import LAYOUTS, AnyArray, Real, module_of, points
from parki.engine import spaces
from parki.names import DtypeName, Layout, SpaceName

__all__ = ["get_array_module", "get_dtype", "get_execution_space", "round_up", "wrap"]

DTYPES = {"fp32": np.float32, "float32": np.float32, "fp64": np.float64, "float64": np.float64}


def __dir__() -> list[str]:
    return sorted(__all__)


def get_execution_space(s: SpaceName | spaces.Space | None = None) -> spaces.Space:
    """Return the execution space named `s` (any case), `s` itself if it is one, or the default for None.

    Raises
    ------
    ValueError
        For an unknown space, and for one that is not available here, with the reason and the remedy.
    """
    return spaces.get(s)


def get_array_module(space: SpaceName | spaces.Space | None = None) -> ModuleType:
    """Return the array module of a space or of its name: NumPy for host spaces, CuPy for Cuda and HIP.

    Raises
    ------
    ValueError
        As `get_execution_space` does.
    """
    return spaces.array_module(get_execution_space(space))


def get_dtype(dtype: DtypeName | DTypeLike) -> np.dtype[Any]:
    """Return the dtype for ``"fp32"``, ``"fp64"`` or anything that NumPy takes for float32 or float64.

    Raises
    ------
    ValueError
        For any other dtype.
    """
    try:
        found = np.dtype(DTYPES.get(dtype.lower(), dtype) if isinstance(dtype, str) else dtype)
    except TypeError as error:
        raise ValueError(f'dtype is {dtype!r}; expected "fp32", "fp64", float32 or float64.') from error
    if dtype is None or found not in (np.float32, np.float64):
        raise ValueError(f'dtype is {dtype!r}; expected "fp32", "fp64", float32 or float64.')
    return found


def round_up(n: int, factor: int) -> int:
    """Return the smallest multiple of `factor` that is at least `n`.

    Raises
    ------
    ValueError
        For a factor that is not positive.
    """
    if factor <= 0:
        raise ValueError(f"factor is {factor!r}; expected a positive number.")
    return -(-n // factor) * factor


@overload
def wrap(x: NDArray[Real], box: Sequence[float] | NDArray[Any], layout: Layout = "dn") -> NDArray[Real]: ...
@overload
def wrap(x: AnyArray, box: Sequence[float] | NDArray[Any], layout: Layout = "dn") -> Any: ...
def wrap(x: AnyArray, box: Sequence[float] | NDArray[Any], layout: Layout = "dn") -> Any:
    """Return a copy of points with each coordinate moved by multiples of the side lengths into ``[0, box)``.

    Parameters
    ----------
    x : array_like
        ``(3, N)``, or ``(N, 3)`` with ``layout="nd"``; float32 or float64, finite.
    box : sequence of three positive floats

    Raises
    ------
    ValueError
        For a wrong shape or dtype, values that are not finite, or a box that is not three positive numbers.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}; expected one of {', '.join(map(repr, LAYOUTS))}.")
    inside = points("x", x, layout=layout)
    xp = module_of(inside)
    try:
        sides = np.asarray(box, dtype=inside.dtype).reshape(-1, 1)
    except (TypeError, ValueError):
        sides = np.empty((0, 1))
    if sides.shape != (3, 1) or not (np.isfinite(sides).all() and (sides > 0).all()):
        raise ValueError(f"box is {box!r}; expected three positive, finite side lengths.")
    sides = xp.asarray(sides)
    inside = inside % sides
    # The remainder of a tiny negative number rounds to the side itself.
    inside = xp.where(inside >= sides, xp.zeros_like(sides), inside)
    return xp.ascontiguousarray(inside.T) if layout == "nd" else inside
