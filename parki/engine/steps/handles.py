"""Arrays of a list of steps before they have memory: names, shapes, dtypes, and parts of one another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from parki.engine.run.fit import even, layout

LINE = 64  # bytes of a cache line
ROLES = ("argument", "constant", "state", "scratch", "result")
BOUND = ("argument", "result")  # roles whose arrays a run is given
_NOWHERE = np.zeros(1, np.uint8)  # address that shapes are laid out at; nothing is read or written there
_PLACE = _NOWHERE.ctypes.data


@dataclass(eq=False)
class Handle:
    """A named array of a list of steps, or a part of one.

    Attributes
    ----------
    name : str
    shape : tuple of int
    dtype : dtype
    role : str
        ``"argument"`` and ``"result"`` are bound to arrays for each run; a ``"constant"`` has its values from the
        beginning; a ``"state"`` is memory that the list owns; each worker has a ``"scratch"`` of its own.
    values : array or None
        Values of a constant; a constant without values gets its array when the list is placed.
    zero : bool
        Whether a state holds zeros at first; else its values are unknown.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    role: str
    values: Any = None
    zero: bool = False
    _whole: "Handle | None" = None
    _steps: tuple[tuple[str, Any], ...] = ()
    _layout: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.dtype = np.dtype(self.dtype)
        if self.role not in ROLES:
            raise ValueError(f"role is {self.role!r}; expected one of {', '.join(map(repr, ROLES))}.")

    @property
    def whole(self) -> "Handle":
        """Return the array that this one is a part of, or this one if it is no part."""
        return self if self._whole is None else self._whole  # no circle: the last list that has arrays frees them

    @property
    def layout(self) -> Any:
        """Return an array with these strides, whose entries must not be touched."""
        if self._layout is None:
            strides = None if self.values is None else self.values.strides
            self._layout = _laid_out(self.shape, self.dtype, 0, strides)
        return self._layout

    @property
    def order(self) -> str:
        """Return C, F or S, by the index that has unit stride (`parki.engine.run.fit.layout`)."""
        is_whole = self._whole is None and self.values is None
        return "C" if is_whole else layout(self.layout)

    @property
    def even(self) -> bool:
        """Tell whether all rows of memory that the list owns begin at even elements."""
        return self.whole.role not in BOUND and bool(self.size) and even(self.layout, self.extent[0])

    @property
    def fixed(self) -> np.ndarray | None:
        """Return the values of a constant that are known on the host, else None."""
        values = self.whole.values if self.whole.role == "constant" else None
        return self.of(values) if isinstance(values, np.ndarray) else None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the entries."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> "Handle":
        """Return a part by whole numbers and slices, as NumPy's basic indexing has them."""
        keys = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(k, int | np.integer | slice) or k is Ellipsis for k in keys):
            raise TypeError(f"{self.name}: index {key!r}; expected whole numbers, slices or an ellipsis.")
        return self._part(("index", key), self.layout[key])

    @property
    def T(self) -> "Handle":
        """Return the array with its axes in reverse order."""
        return self._part(("transpose", None), self.layout.T)

    def reshape(self, *shape: int) -> "Handle":
        """Return an array without gaps in another shape.

        Raises
        ------
        ValueError
            For an array with gaps, whose entries would have to be copied, and for another number of entries.
        """
        part = self.view(0, shape, self.dtype)
        if part.nbytes != self.nbytes:
            raise ValueError(f"{self.name} has {self.nbytes} bytes; expected as many in shape {shape}.")
        return part

    def view(self, offset: int, shape: tuple[int, ...], dtype: DTypeLike) -> "Handle":
        """Return the bytes of an array without gaps, from `offset` on, as another array.

        Raises
        ------
        ValueError
            For an array with gaps, and for more bytes than there are.
        """
        shape, dtype = tuple(int(n) for n in shape), np.dtype(dtype)
        if not self.layout.flags.c_contiguous:
            raise ValueError(f"{self.name} has gaps; expected an array without, of which parts have another shape.")
        size = offset + prod(shape) * dtype.itemsize
        if offset < 0 or size > self.nbytes:
            raise ValueError(f"{self.name} has {self.nbytes} bytes; expected at least {size} for {shape} {dtype}.")
        return self._part(("view", (offset, shape, dtype)), _laid_out(shape, dtype, self.extent[0] + offset))

    @property
    def extent(self) -> tuple[int, int]:
        """First and end of the bytes that the array spans in its `whole`."""
        a = self.layout
        first = a.__array_interface__["data"][0] - _PLACE if a.size else 0
        if not a.size:
            return first, first
        reach = sum((n - 1) * s for n, s in zip(a.shape, a.strides, strict=True))
        return first, first + reach + a.itemsize

    def of(self, whole: Any) -> Any:
        """Return this part of an array that is bound to the handle's `whole`."""
        a = whole
        for kind, value in self._steps:
            if kind == "index":
                a = a[value]
            elif kind == "transpose":
                a = a.T
            else:
                offset, shape, dtype = value
                size = prod(shape) * dtype.itemsize
                a = a.reshape(-1).view(np.uint8)[offset : offset + size].view(dtype).reshape(shape)
        return a

    def _part(self, step: tuple[str, Any], layout: Any) -> "Handle":
        return Handle(
            self.name, layout.shape, layout.dtype, self.role, zero=self.zero, _whole=self.whole,
            _steps=(*self._steps, step), _layout=layout,
        )  # fmt: skip


@dataclass(eq=False)
class Number:
    """A number that is bound for each run, as arrays of role ``"argument"`` are."""

    name: str
    value: float | int


class _Nowhere:
    """Array interface of memory that does not exist, for NumPy."""

    __slots__ = ("__array_interface__",)

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


def _laid_out(shape: tuple[int, ...], dtype: np.dtype[Any], offset: int, strides: tuple[int, ...] | None = None) -> Any:
    """Return an array of this shape at an address that is never touched: NumPy computes its strides and parts."""
    interface = {"data": (_PLACE + offset, False), "shape": shape, "strides": strides, "typestr": dtype.str}
    return np.asarray(_Nowhere(interface | {"version": 3}))


def argument(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Handle:
    """Return an array that each run gets."""
    return Handle(name, tuple(shape), np.dtype(dtype), "argument")


def result(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Handle:
    """Return an array that each run gets to write to."""
    return Handle(name, tuple(shape), np.dtype(dtype), "result")


def constant(name: str, values: Any) -> Handle:
    """Return an array whose values are known: NumPy's, or CuPy's where it is used."""
    return Handle(name, tuple(values.shape), values.dtype, "constant", values=values)


def placed(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Handle:
    """Return a constant whose array is given when the list is placed."""
    return Handle(name, tuple(int(n) for n in shape), np.dtype(dtype), "constant")


def state(name: str, shape: tuple[int, ...], dtype: DTypeLike, *, zero: bool = True) -> Handle:
    """Return memory that a placed list keeps, which begins with zeros unless `zero` is False."""
    return Handle(name, tuple(int(n) for n in shape), np.dtype(dtype), "state", zero=zero)


def together(name: str, shapes: Mapping[str, tuple[int, ...]], dtype: DTypeLike) -> tuple[Handle, list[Handle]]:
    """Return a state without known values, and named parts of it, each from the beginning of a cache line.

    One step fills, copies or adds all of them.
    """
    item = np.dtype(dtype).itemsize
    ends = np.cumsum([-(-prod(shape) * item // LINE) * LINE for shape in shapes.values()], dtype=np.int64).tolist()
    whole = state(name, (ends[-1] // item,), dtype, zero=False)
    parts = zip(shapes.items(), [0, *ends], strict=False)
    return whole, [replace(whole.view(first, shape, dtype), name=part) for (part, shape), first in parts]


def alike(name: str, whole: Handle, parts: Sequence[Handle], dtype: DTypeLike) -> tuple[Handle, list[Handle]]:
    """Return a state without known values, with as many entries as another one, and the same parts of it."""
    twin = state(name, whole.shape, dtype, zero=False)
    firsts = [a.extent[0] // a.dtype.itemsize * twin.dtype.itemsize for a in parts]
    places = zip(firsts, parts, strict=True)
    return twin, [replace(twin.view(first, a.shape, dtype), name=f"{name}: {a.name}") for first, a in places]


def scratch(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Handle:
    """Return memory of each worker, without known values; the first run makes scratch that only calls use."""
    return Handle(name, tuple(int(n) for n in shape), np.dtype(dtype), "scratch")
