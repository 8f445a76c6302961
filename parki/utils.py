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

    Parameters
    ----------
    s : str or Space, optional
        ``"Serial"`` and ``"OpenMP"`` on hosts; ``"Cuda"`` and ``"HIP"`` on GPUs; ``"GpuSim"`` and ``"GpuSim64"``, a
        simulator of GPUs that checks every access; ``"CPU"``, ``"host"`` and ``"GPU"`` for the best of their kind.

    Returns
    -------
    Space
        The space.

    Raises
    ------
    SpaceUnavailable
        A ValueError for an unknown space, and for one that is not available here, with the reason and the remedy.

    See Also
    --------
    get_array_module : Return the array module of a space.
    parki.engine.run.spaces.Space : The properties of a space.

    Examples
    --------
    >>> import parki
    >>> parki.utils.get_execution_space("serial").name
    'Serial'
    """
    return spaces.get(s)


def get_array_module(space: SpaceName | spaces.Space | None = None) -> ModuleType:
    """Return the array module of a space or of its name: NumPy for host spaces, CuPy for Cuda and HIP.

    Parameters
    ----------
    space : str or Space, optional
        A space, as `get_execution_space` takes it.

    Returns
    -------
    module
        The module ``numpy`` or ``cupy``.

    Raises
    ------
    SpaceUnavailable
        A ValueError, as by `get_execution_space`.

    See Also
    --------
    get_execution_space : Return a space by its name.

    Examples
    --------
    >>> import parki
    >>> parki.utils.get_array_module("Serial").__name__
    'numpy'
    """
    return spaces.array_module(get_execution_space(space))


def get_dtype(dtype: DtypeName | DTypeLike) -> np.dtype[Any]:
    """Return the dtype for ``"fp32"``, ``"fp64"`` or anything that NumPy takes for float32 or float64.

    Parameters
    ----------
    dtype : str or dtype
        A name or a type.

    Returns
    -------
    dtype
        The type of NumPy.

    Raises
    ------
    ValueError
        For any other dtype.

    See Also
    --------
    get_array_module : Return the module of arrays in a space.

    Examples
    --------
    >>> import parki
    >>> parki.utils.get_dtype("fp32")
    dtype('float32')
    """
    try:
        result = np.dtype(DTYPES.get(dtype.lower(), dtype) if isinstance(dtype, str) else dtype)
    except TypeError as error:
        raise ValueError(f'dtype is {dtype!r}; expected "fp32", "fp64", float32 or float64.') from error
    if dtype is None or result not in (np.float32, np.float64):
        raise ValueError(f'dtype is {dtype!r}; expected "fp32", "fp64", float32 or float64.')
    return result


def round_up(n: int, factor: int) -> int:
    """Return the smallest multiple of `factor` that is at least `n`.

    Parameters
    ----------
    n, factor : int
        A number, and a positive one.

    Returns
    -------
    int
        The multiple.

    Raises
    ------
    ValueError
        For a factor that is not positive.

    See Also
    --------
    parki.CellList : Pad cells to a multiple of slots.

    Examples
    --------
    >>> import parki
    >>> parki.utils.round_up(13, 8)
    16
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
    x : array (3, N)
        Points, ``(N, 3)`` with ``layout="nd"``; float32 or float64, finite.
    box : sequence of three positive floats
        Side lengths in the points' unit of length.
    layout : {"dn", "nd"}, default "dn"
        Order of the axes.

    Returns
    -------
    array
        The points in the box, in the shape, dtype and place of `x`.

    Raises
    ------
    ValueError
        For a wrong shape or dtype, values that are not finite, or a box that is not three positive numbers.

    See Also
    --------
    parki.CellList : Sort points in a box by cells.

    Examples
    --------
    >>> import numpy as np, parki
    >>> parki.utils.wrap(np.array([[1.25], [-0.25], [0.5]]), (1, 1, 1)).ravel().tolist()
    [0.25, 0.75, 0.5]
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout is {layout!r}; expected one of {', '.join(map(repr, LAYOUTS))}.")
    result = points("x", x, layout=layout)
    xp = module_of(result)
    try:
        sides = np.asarray(box, dtype=result.dtype).reshape(-1, 1)
    except (TypeError, ValueError):
        sides = np.empty((0, 1))
    if sides.shape != (3, 1) or not (np.isfinite(sides).all() and (sides > 0).all()):
        raise ValueError(f"box is {box!r}; expected three positive, finite side lengths.")
    sides = xp.asarray(sides)
    result = result % sides
    # The remainder of a tiny negative number rounds to the side itself.
    result = xp.where(result >= sides, xp.zeros_like(sides), result)
    return xp.ascontiguousarray(result.T) if layout == "nd" else result
