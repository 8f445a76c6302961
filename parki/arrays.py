"""Checks at the door: what a caller's arrays must be, and results back in the caller's form.

Nothing is reinterpreted and nothing is written to: an array that does not fit raises an error that names the argument,
says what was found and what was expected.  Every function returns a C-contiguous host array in ``(components, N)``
order, which is the caller's own memory where that already has this form.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LAYOUTS = ("dn", "nd")
DLPACK_HOST = (1, 3)  # DLPack's codes of plain and of pinned host memory


def points(name: str, x: Any, box: Sequence[float] | None = None, layout: str = "dn") -> Array:
    """Points as a C-contiguous ``(3, N)`` array.

    Parameters
    ----------
    name : str
        The argument's name, for messages.
    x : array_like
        ``(3, N)``, or ``(N, 3)`` with ``layout="nd"``; float32 or float64, finite.
    box : sequence of three floats, optional
        If given, every point must lie in ``[0, box]``; the upper faces belong to the box.
    layout : {"dn", "nd"}

    Raises
    ------
    ValueError
        For a wrong shape or dtype, values that are not finite, points outside the box, arrays on a GPU.
    """
    checked = _components(name, _host(name, x), 3, None, layout)
    if box is not None:
        _check_inside(name, checked, box, layout)
    return checked


def density(name: str, d: Any, components: int, n: int, layout: str = "dn") -> Array:
    """Strengths of `n` sources: ``(n,)`` for one component, else ``(components, n)``; also normals (3 components).

    Raises
    ------
    ValueError
        As `points`, and where the number of columns is not `n`.
    """
    array = _host(name, d)
    if components != 1:
        return _components(name, array, components, n, layout)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}; expected ({n},), one value for each source.")
    return _finite(name, array, layout)


def same_dtype(**arrays: Array) -> np.dtype[Any]:
    """Return the one dtype of checked arrays, given by name.

    Raises
    ------
    ValueError
        Naming each array's dtype, where they differ.
    """
    found = {name: array.dtype for name, array in arrays.items()}
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {dtype}" for name, dtype in found.items())
        odd = next(name for name, dtype in found.items() if dtype == np.float32)
        raise ValueError(f'dtypes differ: {listed}; expected one for all. Pass {odd}.astype("float64"), for instance.')
    return next(iter(found.values()))


def in_layout(u: Array, layout: str = "dn") -> Array:
    """Return a result ``(N,)`` or ``(components, N)`` in the caller's layout, C-contiguous."""
    return np.ascontiguousarray(u.T) if layout == "nd" and u.ndim > 1 else u


def _host(name: str, x: Any) -> Array:
    """Return `x` as a float32 or float64 ndarray in host memory."""
    if not isinstance(x, np.ndarray) and _on_gpu(x):
        kind = type(x).__module__.partition(".")[0]
        advice = f"cupy.asnumpy({name})" if kind == "cupy" else "a NumPy array"
        raise ValueError(
            f"{name} is on the GPU ({'CuPy' if kind == 'cupy' else kind}), and this version computes on the host. "
            f"Pass {advice}; parki does not copy between devices."
        )
    if np.ma.isMaskedArray(x):
        raise ValueError(f"{name} is a masked array; its mask would be lost. Pass the wanted entries as a plain array.")
    try:
        by_dlpack = hasattr(x, "__dlpack__") and not hasattr(x, "__array__")
        array = np.from_dlpack(x) if by_dlpack else np.asarray(x)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise ValueError(f"{name} cannot be read as an array ({error}); expected float32 or float64.") from error
    native = array.dtype.newbyteorder("=")
    if native not in (np.float32, np.float64):
        advice = f" Pass {name}.astype(float)." if array.dtype.kind in "iub" or native == np.float16 else ""
        raise ValueError(f"{name} has dtype {array.dtype}; expected float32 or float64.{advice}")
    return array.astype(native, copy=False)


def _on_gpu(x: Any) -> bool:
    if type(x).__module__.partition(".")[0] == "cupy" or hasattr(x, "__cuda_array_interface__"):
        return True
    device = getattr(x, "__dlpack_device__", None)
    return device is not None and device()[0] not in DLPACK_HOST


def _components(name: str, array: Array, components: int, n: int | None, layout: str) -> Array:
    """Check a two-dimensional array and return it as ``(components, n)``; `n` None allows any number."""
    columns = "N" if n is None else str(n)
    expected = f"({components}, {columns})" if layout == "dn" else f"({columns}, {components})"
    turned = array.T if layout == "nd" and array.ndim == 2 else array
    if turned.ndim == 2 and turned.shape[0] == components and n in (None, turned.shape[1]):
        return _finite(name, np.ascontiguousarray(turned), layout)
    text = f"{name} has shape {array.shape}; expected {expected}."
    if turned.ndim == 2 and turned.shape[1] == components and n in (None, turned.shape[0]):
        text += f' Pass {name}.T, or layout="{"nd" if layout == "dn" else "dn"}".'
    elif turned.ndim == 2 and turned.shape[0] == components:
        text += f" There are {n} sources, and each needs its values."
    elif array.shape == (components,) and n in (None, 1):
        text += f" Pass {name}.reshape{(components, 1) if layout == 'dn' else (1, components)}."
    raise ValueError(text)


def _finite(name: str, array: Array, layout: str) -> Array:
    # A sum is NaN or infinite where an entry is; only then are the entries looked at one by one.
    with np.errstate(all="ignore"):
        suspicious = not np.isfinite(array.sum())
    if suspicious and not (finite := np.isfinite(array)).all():
        bad = np.argwhere(~finite)
        place = tuple(int(i) for i in bad[0])
        shown = place[::-1] if layout == "nd" else place
        index = ", ".join(str(i) for i in shown)
        raise ValueError(
            f"{name} has {len(bad)} of {array.size} values that are NaN or infinite "
            f"(first: {name}[{index}] = {array[place]}); expected finite values."
        )
    return np.ascontiguousarray(array)


def _check_inside(name: str, x: Array, box: Sequence[float], layout: str) -> None:
    sides = np.asarray(box, dtype=x.dtype)  # a face in the points' own precision, so that x == side is inside
    if x.shape[1] == 0 or ((x.min(axis=1) >= 0).all() and (x.max(axis=1) <= sides).all()):
        return
    outside = (x < 0) | (x > sides[:, None])
    indices = np.flatnonzero(outside.any(axis=0))
    first = int(indices[0])
    axis = int(np.flatnonzero(outside[:, first])[0])
    region = " × ".join(f"[0, {side:.6g}]" for side in box)
    hint = "" if layout == "dn" else ', layout="nd"'
    raise ValueError(
        f"{len(indices)} of {x.shape[1]} points of {name} lie outside the box {region} "
        f"(first: index {first}, {'xyz'[axis]} = {x[axis, first]:.9g}). "
        f"Wrap them with parki.utils.wrap({name}, box{hint})."
    )
