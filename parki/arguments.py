"""Arguments and results of calls: their names, old ones among them, and in plans their shapes, dtype and place."""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from parki import arrays
from parki.arrays import Array, module_of
from parki.engine import shared_memory
from parki.pairs import Pair

F = TypeVar("F", bound=Callable[..., Any])


class ArgumentNames(NamedTuple):
    """Names of a call's arguments, for messages."""

    targets: str = "targets"
    sources: str = "sources"
    density: str = "density"


TARGETS = ArgumentNames()
PUBLISHED = ArgumentNames("trg", "src", "dens")  # names in the published calls of `parki.ewald`


class Density(NamedTuple):
    """A checked density ``(rhs, components, Ns)``, its normals ``(3, Ns)``; `many` if right-hand sides had an axis."""

    values: Array
    normals: Array | None
    many: bool


@dataclass(frozen=True, eq=False)
class Arguments:
    """Arguments that a plan's calls take.

    Attributes
    ----------
    kernel : Pair
    names : ArgumentNames
    layout : {"dn", "nd"}
    gradient : bool or "only"
        With True a call has two results.
    n_targets, n_sources : int
    dtype : dtype
    on_gpu : bool
        Whether the caller's arrays are on a GPU.
    xp : module
        Module of the arrays that the sum works on, NumPy or CuPy.
    """

    kernel: Pair
    names: ArgumentNames
    layout: str
    gradient: bool | str
    n_targets: int
    n_sources: int
    dtype: np.dtype
    on_gpu: bool
    xp: Any

    def in_place(self, **values: Any) -> None:
        """Refuse arrays, given by name, that are not where the points are."""
        name = next(iter(values))
        if (arrays.on_gpu(**values) is not None) is not self.on_gpu:
            place, convert = ("on the GPU", "cupy.asarray") if self.on_gpu else ("on the host", "cupy.asnumpy")
            raise ValueError(f"{name} is not {place}, where the points of this plan are. Pass {convert}({name}).")

    def density(self, density: Any, normals: Any = None) -> Density:
        """Check a density and its normals; components come first, whatever the layout."""
        n, name, kernel = self.n_sources, self.names.density, self.kernel
        self.in_place(**({name: density} | ({} if normals is None else {"normals": normals})))
        checked = {name: self._array(name, density, kernel.dens, many=True)}
        if kernel.normals:
            if normals is None:
                raise ValueError(f"normals is missing; {kernel} expects (3, {n}), one normal for each source.")
            checked["normals"] = self._array("normals", normals, 3)
        elif normals is not None:
            raise ValueError(f"normals was given, but {kernel} takes none.")
        arrays.check_like_points(self.names[:2], self.dtype, **checked)
        values = self.xp.asarray(checked[name])
        many = values.ndim == (2 if kernel.dens == 1 else 3)
        values = values if many else values[None]
        axes = self.xp.asarray(checked["normals"]) if kernel.normals else None
        return Density(values[:, None] if kernel.dens == 1 else values, axes, many)

    def normals(self, normals: Any) -> Array | None:
        """Check the normals of an operator, with components first."""
        n, kernel = self.n_sources, self.kernel
        if kernel.normals is not (normals is not None):
            expected = f"{kernel} expects (3, {n})" if kernel.normals else f"{kernel} takes none"
            raise ValueError(f"normals is {'missing' if normals is None else 'given'}; {expected}.")
        if normals is None:
            return None
        checked = self._array("normals", normals, 3)
        arrays.check_like_points(self.names[:2], self.dtype, normals=checked)
        return checked

    def _array(self, name: str, a: Any, components: int, many: bool = False) -> Array:
        n, checks = self.n_sources, {"contiguous": False, "promoted": self.dtype}
        return arrays.density(name, a, components, n, self.layout, many=many, **checks)

    def points(self, name: str, x: Any, box: Any = None, free: tuple[int, ...] = ()) -> Array:
        """Check points that a plan moves to: as `parki.arrays.points`, in the plan's dtype and place."""
        self.in_place(**{name: x})
        x = arrays.points(name, x, box, self.layout, free)
        if x.dtype != self.dtype:
            raise ValueError(f"{name} has dtype {x.dtype}; expected {self.dtype}, that of this plan.")
        return x

    # Results ----------------------------------------------------------------------------------------------------------
    def shape(self, rhs: int, many: bool) -> tuple[int, ...]:
        """Return the shape of the result of a number of right-hand sides."""
        n, count = self.n_targets, self.kernel.result
        shape = (n,) if count == 1 else (n, count) if self.layout == "nd" and self.gradient is not True else (count, n)
        return (rhs, *shape) if many else shape

    def result(self, inputs: Density, out: Any = None) -> Array:
        """Return the array that a sum is written to: `out` where a sum can write to it, else a new one.

        Raises
        ------
        ValueError
            For an `out` that does not fit, or that shares memory with the input.
        """
        shape = self.shape(len(inputs.values), inputs.many)
        if out is None:
            return self.xp.empty(shape, self.dtype)
        if self.gradient is True:
            raise ValueError("out was given with gradient=True, which has two results; expected None.")
        kind, module = ("a CuPy", self.xp) if self.on_gpu else ("a NumPy", np)
        if not isinstance(out, module.ndarray) or out.shape != shape or out.dtype != self.dtype:
            description = (
                f"{type(out).__name__} of shape {getattr(out, 'shape', None)} and {getattr(out, 'dtype', None)}"
            )
            raise ValueError(f"out is a {description}; expected {kind} array of shape {shape} and {self.dtype}.")
        if module is np and not out.flags.writeable:
            raise ValueError("out is read-only; expected an array to write to.")
        if any(a is not None and shared_memory(out, a) for a in inputs[:2]):
            raise ValueError(f"out shares memory with {self.names.density} or normals; expected an array apart.")
        direct = module is self.xp and out.flags.c_contiguous
        return out if direct else self.xp.empty(shape, self.dtype)

    def rows(self, u: Array, rhs: int) -> Array:
        """Return a result as ``(rhs, components, Nt)``, a view."""
        n, count = self.n_targets, self.kernel.result
        if self.layout == "nd" and count > 1 and self.gradient is not True:
            return u.reshape(rhs, n, count).swapaxes(1, 2)
        return u.reshape(rhs, count, n)

    def finished(self, u: Array, many: bool, out: Any = None, like: Any = None) -> Any:
        """Return the result of a call in the caller's place: `out`, an array, or with ``gradient=True`` two.

        On the host, arrays are of the library of `like`.
        """
        if self.gradient is True:
            u = u if many else u[None]
            potential, gradient = u[:, 0], u[:, 1:].swapaxes(1, 2) if self.layout == "nd" else u[:, 1:]
            return tuple(self.home(a if many else a[0], like) for a in (potential, gradient))
        if out is None:
            return self.home(u, like)
        if out is not u:
            out[...] = u if self.on_gpu else arrays.to_host(u)
        return out

    def home(self, u: Array, like: Any = None) -> Any:
        """Return a contiguous array in the caller's place, on the host in the library of `like`."""
        u = u if self.on_gpu else arrays.to_host(u)
        return arrays.like(like)(module_of(u).ascontiguousarray(u))

    def taken(self, u: Any, rhs: int, many: bool) -> Array:
        """Check a caller's result of a call, and return it as ``(rhs, components, Nt)``."""
        if self.gradient is True:
            raise ValueError("u was given with gradient=True, which has two results; expected None.")
        array = arrays.taken("u", u)
        if array.shape != (shape := self.shape(rhs, many)):
            raise ValueError(f"u has shape {array.shape}; expected {shape}, that of the result.")
        return self.rows(self.xp.asarray(array), rhs)

    # Flattened arrays -------------------------------------------------------------------------------------------------
    def columns(self, x: Array, function: Callable[[Array], Array], components: int, n: int) -> Array:
        """Apply a function of arrays ``(columns, components, n)`` to columns of flattened arrays."""
        rows = self.layout == "nd"
        columns = x.T.astype(self.dtype).reshape(-1, *((n, components) if rows else (components, n)))
        sums = function(columns.swapaxes(1, 2) if rows else columns)
        sums = sums.swapaxes(1, 2) if rows else sums
        return sums.reshape(len(sums), -1).T

    def given(self, values: Array) -> Array:
        """Return a density ``(rhs, components, Ns)`` in the form that a caller passes."""
        if self.kernel.dens == 1:
            return values[:, 0]
        return values.swapaxes(1, 2) if self.layout == "nd" else values


# Old names ------------------------------------------------------------------------------------------------------------
def renamed(**names: str) -> Callable[[F], F]:
    """Return a decorator that takes keywords by their old names, too.

    Parameters
    ----------
    **names : str
        New name by old name.

    Raises
    ------
    TypeError
        From the decorated function, for an argument that is given by both names.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*values: Any, **keywords: Any) -> Any:
            if keywords and not names.keys().isdisjoint(keywords):
                keywords = _translated(function.__name__, names, keywords)
            return function(*values, **keywords)

        return call  # type: ignore[return-value]

    return decorate


def _translated(function: str, names: dict[str, str], keywords: dict[str, Any]) -> dict[str, Any]:
    result = {}
    for name, value in keywords.items():
        new = names.get(name, name)
        if new != name:
            deprecated(f"argument {name} of {function} is now {new}", 4)
        if new in result or (new != name and new in keywords):
            raise TypeError(f"{function}: found both {name} and {new}, expected {new} alone.")
        result[new] = value
    return result


def deprecated(text: str, level: int = 3) -> None:
    """Warn a caller of this package of an old way to call, which the next release drops."""
    warnings.warn(f"{text}; the old way ends with the next release", DeprecationWarning, stacklevel=level)
