"""Checks of a caller's arrays and of their place, and results in the caller's form.

Arrays are neither reinterpreted nor written to.  An array that does not fit raises an error that names the argument,
the value found and the value expected.  Unless they say otherwise, functions return a C-contiguous array in
``(components, N)`` order: a NumPy array for arrays on the host, a CuPy array for arrays on a GPU, without a copy to the
host.  If the caller's array already has this form, its own memory is returned.  CuPy is imported only for arrays on a
GPU.  Results on the host go back in the library of the density, see `like`.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parki.engine import Space, devices, spaces

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Result = TypeVar("Result", default=Any)  # of a plan: an array, or a tuple of a potential and its gradient
else:
    from typing import TypeVar

    Result = TypeVar("Result")

Array = NDArray[Any]  # or a CuPy array, which has the same methods
Real = TypeVar("Real", bound=np.floating[Any])  # dtype of the points, and so of the result


class HasDLPack(Protocol):
    """An array of another library, on the host or on a GPU."""

    def __dlpack__(self) -> Any:
        """Return the array as a capsule."""
        ...


AnyArray = ArrayLike | HasDLPack  # as a caller gives it

LAYOUTS = ("dn", "nd")
#: Types by the names of `far_precision`.
PRECISIONS = {"double": "float64", "single": "float32"}
DLPACK_HOST = (1, 3)  # DLPack's codes of plain and of pinned host memory


#: Modules of functions by the libraries of arrays.
_FUNCTIONS = {"torch": "torch", "jax": "jax.numpy", "jaxlib": "jax.numpy"}

ROW = 1024  # numbers of a row that a team of a device reduces
INDICES = 2**31  # least number beyond the indices of kernels, which are int32


def index32(name: str, values: NDArray[np.int64], advice: str) -> NDArray[np.int32]:
    """Return whole numbers as int32, the type of kernels' indices.

    Raises
    ------
    ValueError
        Naming the numbers, where one is beyond int32, with `advice` on how to have fewer.
    """
    largest_index = int(values.max(initial=0))
    if largest_index >= INDICES or values.min(initial=0) < -INDICES:
        raise ValueError(
            f"{name} reaches {largest_index}; expected less than {INDICES}, the range of kernels' indices. {advice}"
        )
    return values.astype(np.int32)


def module_of(x: Array) -> ModuleType:
    """Return the module of functions for an array: CuPy, PyTorch or JAX for their own arrays, else NumPy."""
    if isinstance(x, np.ndarray):
        return np
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(x, cupy.ndarray):
        return cupy
    return sys.modules.get(_FUNCTIONS.get(type(x).__module__.partition(".")[0], ""), np)


def like(x: Any) -> Callable[[Array], Any]:
    """Return the function that converts NumPy arrays to the library of x.

    For x on a GPU, CuPy arrays stay as they are.
    """
    if isinstance(x, np.ndarray) or _gpu_kind(x):
        return lambda u: u
    library = module_of(x)
    if library is not np:
        return library.from_numpy if library.__name__ == "torch" else library.asarray
    return x.__array_namespace__().asarray if hasattr(x, "__array_namespace__") else lambda u: u


def along_rows(operation: str, x: Array, **options: Any) -> Array:
    """Return the ``"sum"``, ``"max"`` or ``"min"`` along the last axis, with options of the array's method.

    A device reduces many short rows faster than few long ones.
    """
    whole = x.shape[-1] - x.shape[-1] % ROW
    if isinstance(x, np.ndarray) or not whole or not x.size:
        return getattr(x, operation)(axis=-1, **options)
    parts = getattr(x[..., :whole].reshape(*x.shape[:-1], -1, ROW), operation)(axis=-1, **options)
    if whole < x.shape[-1]:
        rest = getattr(x[..., whole:], operation)(axis=-1, **options)
        parts = module_of(x).concatenate([parts, rest[..., None]], axis=-1)
    return getattr(parts, operation)(axis=-1, **options)


def to_host(x: Array) -> Array:
    """Return a NumPy array: the array itself, or a host copy of an array on a GPU."""
    return x if isinstance(x, np.ndarray) else x.get()


def taken(name: str, x: Any, promoted: np.dtype | None = None) -> Array:
    """Return anything like an array as a NumPy or CuPy array, float32 or float64, in the same place.

    Integers are accepted only if there is a dtype that they are `promoted` to.

    Raises
    ------
    ValueError
        For an array that cannot be read, is masked, has another dtype or integers that `promoted` does not hold
        exactly, or is on a GPU that is not CuPy's current device.
    """
    array = _from_gpu(name, x) if _gpu_kind(x) else _from_host(name, x)
    if promoted is not None and array.dtype.kind in "iu":
        return _promoted(name, array, promoted)
    native = array.dtype.newbyteorder("=")
    if native not in (np.float32, np.float64):
        advice = f" Pass {name}.astype(float)." if array.dtype.kind in "iub" or native == np.float16 else ""
        raise ValueError(f"{name} has dtype {array.dtype}; expected float32 or float64.{advice}")
    return array.astype(native, copy=False)


def on_gpu(**values: Any) -> str | None:
    """Return the name of the first of these arrays if they are all on a GPU, None if they are all on the host.

    Raises
    ------
    ValueError
        For arrays in both places, naming one of each.
    """
    kinds = {name: _gpu_kind(x) for name, x in values.items()}
    gpu_name = next((name for name, kind in kinds.items() if kind), None)
    host_name = next((name for name, kind in kinds.items() if not kind), None)
    if gpu_name and host_name:
        raise ValueError(
            f"{gpu_name} is on the GPU ({kinds[gpu_name]}) and {host_name} is on the host; expected all arrays in "
            f"one place. Pass cupy.asarray({host_name}), or cupy.asnumpy({gpu_name})."
        )
    return gpu_name


def space_of(request: str | Space | None, threads: int | None = None, /, **values: Any) -> Space:
    """Return the execution space of a call: `request`, or by default the space where the arrays are.

    Parameters
    ----------
    request : str, Space or None
    threads : int, optional
        Number of threads; only ``"OpenMP"`` takes a number other than 1.
    **given
        The call's arrays by name, as they came in.

    Raises
    ------
    ValueError
        For a space that is not available, arrays in two places, arrays on a GPU with a space of the host, and a number
        of threads that the space does not take.
    """
    gpu_name = on_gpu(**values)
    space = spaces.get("GPU" if gpu_name and request is None else request)
    if gpu_name and not space.own_memory:
        raise ValueError(
            f"{gpu_name} is on the GPU ({_gpu_kind(values[gpu_name])}) and execution_space is {space.name!r}, which "
            f"computes on the host. Pass cupy.asnumpy({gpu_name}), or leave execution_space out."
        )
    if threads is None:
        return space
    if space.name != "OpenMP" and threads != 1:
        text = f"threads is {threads} with execution_space {space.name!r}, which"
        raise ValueError(f"{text} {'has its own' if space.own_memory else 'has one'}; expected 1 or None.")
    return replace(space, threads=threads)


def points(
    name: str, x: Any, box: Sequence[float] | None = None, layout: str = "dn", free: Sequence[int] = (0, 1, 2)
) -> Array:
    """Return points as a C-contiguous ``(3, N)`` array.

    Parameters
    ----------
    name : str
        The argument's name, for messages.
    x : array_like
        ``(3, N)``, or ``(N, 3)`` with ``layout="nd"``; float32 or float64, finite.
    box : sequence of three floats, optional
        If given, every point must lie in ``[0, box]`` along the axes `free`; the upper faces belong to the box.
    layout : {"dn", "nd"}
    free : sequence of int

    Raises
    ------
    ValueError
        For a wrong shape or dtype, values that are not finite, points outside the box.
    """
    checked = _components(name, taken(name, x), 3, None, layout)
    _check_finite(name, checked, layout)
    if box is not None and len(free):
        _check_inside(name, checked, box, layout, free)
    return checked


def density(
    name: str, d: Any, components: int, n: int, layout: str = "dn", many: bool = False, contiguous: bool = True,
    promoted: np.dtype | None = None,
) -> Array:  # fmt: skip
    """Return strengths or normals of `n` sources: ``(n,)`` for one component, else ``(components, n)``.

    With `many` there may be an axis of right-hand sides in front.  If the result need not be `contiguous`, arrays are
    not copied, except that integers are always `promoted` to that dtype, if there is one.

    Raises
    ------
    ValueError
        As `points`, and where the number of columns is not `n`.
    """
    array = taken(name, d, promoted)
    if many and array.ndim == (2 if components == 1 else 3):
        if array.shape[0] == 0:
            raise ValueError(f"{name} has shape {array.shape}; expected at least one right-hand side.")
        xp = module_of(array)
        rows = [density(f"{name}[{i}]", a, components, n, layout, False, contiguous) for i, a in enumerate(array)]
        if contiguous:
            return xp.stack(rows)
        return array.swapaxes(1, 2) if layout == "nd" and components != 1 else array
    if components != 1:
        array = _components(name, array, components, n, layout, contiguous)
    elif array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}; expected ({n},), one value for each source.")
    _check_finite(name, array, layout)
    return module_of(array).ascontiguousarray(array) if contiguous else array


def same_dtype(**arrays: Array) -> np.dtype[Any]:
    """Return the one dtype of checked arrays, given by name.

    Raises
    ------
    ValueError
        Naming each array's dtype, where they differ.
    """
    dtypes = {name: array.dtype for name, array in arrays.items()}
    if len(set(dtypes.values())) > 1:
        listing = ", ".join(f"{name} {dtype}" for name, dtype in dtypes.items())
        single = next(name for name, dtype in dtypes.items() if dtype == np.float32)
        raise ValueError(
            f'dtypes differ: {listing}; expected one for all. Pass {single}.astype("float64"), for instance.'
        )
    return next(iter(dtypes.values()))


def check_like_points(names: Sequence[str], dtype: np.dtype, **arrays: Array) -> None:
    """Refuse checked arrays, given by name, whose dtype is not that of the points, the arguments of these names.

    Raises
    ------
    ValueError
        Naming all arguments and their dtypes.
    """
    name_of_first = next((name for name, array in arrays.items() if array.dtype != dtype), None)
    if name_of_first is not None:
        listing = ", ".join(f"{name} {array.dtype}" for name, array in arrays.items())
        raise ValueError(
            f"dtypes differ: {' and '.join(names)} {dtype}, {listing}; expected one for all. "
            f'Pass {name_of_first}.astype("{dtype}"), for instance.'
        )


def _promoted(name: str, array: Array, dtype: np.dtype) -> Array:
    """Convert integers to floating-point numbers; raise if a number changes."""
    result, exact = array.astype(dtype), 2 ** (np.finfo(dtype).nmant + 1)
    candidates = to_host(array[(array > exact) | (array < -exact)] if array.dtype.kind == "i" else array[array > exact])
    misfit = next((value for value in candidates.ravel() if int(dtype.type(value)) != int(value)), None)
    if misfit is not None:
        raise ValueError(
            f"{name} has the integer {misfit}, which {dtype} does not hold exactly; expected {dtype} values."
        )
    return result


def _gpu_kind(x: Any) -> str:
    """Return the library of an array on a GPU, for messages; an empty text for anything else."""
    if isinstance(x, np.ndarray):
        return ""
    library = type(x).__module__.partition(".")[0]
    if library == "cupy":
        return "CuPy"
    device = getattr(x, "__dlpack_device__", None)  # asked first: the other attribute of PyTorch may raise anything
    is_gpu = hasattr(x, "__cuda_array_interface__") if device is None else device()[0] not in DLPACK_HOST
    return library if is_gpu else ""


def _from_host(name: str, x: Any) -> Array:
    if np.ma.isMaskedArray(x):
        raise ValueError(f"{name} is a masked array; its mask would be lost. Pass the wanted entries as a plain array.")
    try:
        by_dlpack = hasattr(x, "__dlpack__") and not hasattr(x, "__array__")
        return np.from_dlpack(x) if by_dlpack else np.asarray(x)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise ValueError(f"{name} cannot be read as an array ({error}); expected float32 or float64.") from error


def _from_gpu(name: str, x: Any) -> Array:
    try:
        cupy = devices.cupy()
    except ImportError as error:
        raise ValueError(f"{name} is on the GPU ({_gpu_kind(x)}), which needs CuPy: {error}.") from error
    if not isinstance(x, cupy.ndarray):
        try:
            x = cupy.from_dlpack(x) if hasattr(x, "__dlpack__") else cupy.asarray(x)
        except Exception as error:  # any error of another library
            raise ValueError(f"{name} cannot be read as an array on the GPU ({error}).") from error
    if x.device != cupy.cuda.Device():
        raise ValueError(
            f"{name} is on {x.device}, and the current device is {cupy.cuda.Device()}; expected the same. "
            f"Call within `with {name}.device:`, for instance."
        )
    return x


def _components(name: str, array: Array, components: int, n: int | None, layout: str, contiguous: bool = True) -> Array:
    """Check a two-dimensional array and return it as ``(components, n)``; `n` None allows any number."""
    columns = "N" if n is None else str(n)
    expected = f"({components}, {columns})" if layout == "dn" else f"({columns}, {components})"
    rows = array.T if layout == "nd" and array.ndim == 2 else array
    if rows.ndim == 2 and rows.shape[0] == components and n in (None, rows.shape[1]):
        return module_of(rows).ascontiguousarray(rows) if contiguous else rows
    text = f"{name} has shape {array.shape}; expected {expected}."
    if rows.ndim == 2 and rows.shape[1] == components and n in (None, rows.shape[0]):
        text += f' Pass {name}.T, or layout="{"nd" if layout == "dn" else "dn"}".'
    elif rows.ndim == 2 and rows.shape[0] == components:
        text += f" There are {n} sources, and each needs its values."
    elif array.shape == (components,) and n in (None, 1):
        text += f" Pass {name}.reshape{(components, 1) if layout == 'dn' else (1, components)}."
    raise ValueError(text)


def _check_finite(name: str, array: Array, layout: str) -> None:
    if isinstance(array, np.ndarray):
        # An entry that is NaN or infinite makes the sum so; only then are entries checked one by one.
        with np.errstate(all="ignore"):
            if np.isfinite(array.sum()):
                return
    elif bool(module_of(array).isfinite(array).all()):
        return
    array = to_host(array)
    finite = np.isfinite(array)
    if finite.all():
        return
    places = np.argwhere(~finite)
    place = tuple(int(i) for i in places[0])
    shown = place[::-1] if layout == "nd" else place
    index = ", ".join(str(i) for i in shown)
    raise ValueError(
        f"{name} has {len(places)} of {array.size} values that are NaN or infinite "
        f"(first: {name}[{index}] = {array[place]}); expected finite values."
    )


def _check_inside(name: str, x: Array, box: Sequence[float], layout: str, free: Sequence[int]) -> None:
    sides = np.asarray(box, dtype=x.dtype)  # a face in the points' own precision, so that x == side is inside
    if x.shape[1] == 0:
        return
    xp, axes = module_of(x), list(free)
    is_inside = (x[axes].min(axis=1) >= 0) & (x[axes].max(axis=1) <= xp.asarray(sides[axes]))
    if bool(is_inside.all()):
        return
    x = to_host(x)
    is_outside = ((x < 0) | (x > sides[:, None])) & np.isin(np.arange(3), axes)[:, None]
    indices = np.flatnonzero(is_outside.any(axis=0))
    first = int(indices[0])
    axis = int(np.flatnonzero(is_outside[:, first])[0])
    raise ValueError(
        f"{len(indices)} of {x.shape[1]} points of {name} lie outside the box, which is not periodic along "
        f"{' and '.join('xyz'[a] for a in axes)} (first: index {first}, {'xyz'[axis]} = {x[axis, first]:.9g}, expected "
        f"0 to {sides[axis]:.6g}). Move them into it, or take a larger box."
    )


def spread(first: NDArray[np.integer], count: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the count[k] numbers first[k], first[k] + 1, … for each k in turn."""
    ends = np.cumsum(count, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(first - (ends - count), count)
