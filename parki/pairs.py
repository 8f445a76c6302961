"""Pair interactions as data: the properties that sums over pairs need.

A pair interaction is a file of `kernels/pair/`, or a caller's own file, with a function ``pair``, or a Python
function.  Radial ones, u = q φ(r), share ``pair/radial``: its slot `radial` is a file of `kernels/radial/`, and its
constants choose the potential, its gradient, or both.
"""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from parki import charges, counts, dimensions, flows
from parki.arrays import Array
from parki.dimensions import Dimensions
from parki.docstrings import FREE_SUM
from parki.engine import FunctionText, functions, kernel_files
from parki.kernel_parameters import with_parameters
from parki.keywords import KernelParameters, shows
from parki.names import KernelName

__all__ = ["PAIRS", "KernelLike", "Pair", "find"]

#: Ranges of lengths (1) and inverse lengths (−1) that kernels take where the extent or the box is about one.
REACH = {
    "float64": {1: (2.0**-500, 2.0**500), -1: (2.0**-500, 2.0**180)},
    "float32": {1: (2.0**-60, 2.0**60), -1: (2.0**-120, 2.0**60)},
}
Charges = Callable[[Array, Array | None], Array]
P = TypeVar("P", bound="Pair")


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True)
class Pair:
    """Describe a pair interaction: its file, the numbers of a source and of a result, its properties.

    Parameters
    ----------
    name : str
        Name for messages, and in `PAIRS`.
    dens, result : int
        Components of the density and of the result.
    pair : str, path or function
        The pair function: a file of `kernels/`, without suffix, or a path of one's own, as `parki.engine.kernel` takes;
        or a Python function, which is read when the pair is made and is then its text.
    normals : bool, default False
        Whether sources have normals.
    names, parameters : tuple, optional
        Names and values of the numbers that every source carries behind its density and normal, the same for all and
        positive; `find` sets the values.
    slots : tuple of (str, object), optional
        Names and values that are replaced in the pair function's file, as ``("radial", "radial/gaussian")``; values may
        be Python functions, too.
    singular : bool, default True
        Whether a pair at r = 0 has no value and is skipped; else its limit counts.
    smooth : bool, default False
        Whether interpolation at a distance of some cluster sizes has the same relative error at every scale, as for
        powers of r.  False for kernels that oscillate or fall off within a length of their own.
    core : tuple of float, optional
        Factor of each parameter: their products add up to the distance beyond which the kernel is smooth, see
        `separation`.
    dimensions : Dimensions, optional
        Powers of length of the parameters, the result and the density, for a pair of one's own.  Sums are then
        computed in units in which the points' extent is of order one; without it points are taken as they are.
    alias : str, default ""
        Another name of the same pair, for messages; pairs that differ in their alias alone are equal.

    See Also
    --------
    find : Return the pair of a name or a file, with its parameters.
    parki.dimensions.Dimensions : State powers of length of a pair of one's own.

    Examples
    --------
    >>> import parki
    >>> pair = parki.pairs.PAIRS["stokeslet"]
    >>> pair.dens, pair.result, pair.self_adjoint
    (3, 3, True)
    """

    name: str
    dens: int
    result: int
    pair: str | FunctionText
    _: KW_ONLY
    normals: bool = False
    names: tuple[str, ...] = ()
    parameters: tuple[float, ...] = ()
    slots: tuple[tuple[str, Any], ...] = ()
    singular: bool = True
    smooth: bool = False
    core: tuple[float, ...] = ()
    dimensions: Dimensions | None = None
    alias: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.pair, os.PathLike):
            object.__setattr__(self, "pair", os.path.abspath(os.fsdecode(self.pair)))
        elif not isinstance(self.pair, str):
            object.__setattr__(self, "pair", self._read("pair", self.pair, strict=True))
        if any(not isinstance(value, str) for _, value in self.slots):
            slots = tuple((name, self._read(f"slot '{name}'", value)) for name, value in self.slots)
            object.__setattr__(self, "slots", slots)

    def _read(self, argument: str, value: Any, *, strict: bool = False) -> Any:
        """Return the text of a function with the counts of this pair; other values as they are."""
        value = functions.text_of(value, argument)
        if isinstance(value, FunctionText):
            return value.with_counts(**self._counts)
        if strict:
            raise TypeError(f"{argument} is a {type(value).__name__}; expected a name, a path or a Python function.")
        return value

    @property
    def _counts(self) -> dict[str, int]:
        """Return values of module-level names of kernel files that follow from a pair."""
        return {"NS": self.given + len(self.names), "NU": self.result, "NF": 1, "NP": len(self.names)}

    @property
    def ours(self) -> bool:
        """Tell whether the pair function is one of parki's."""
        return isinstance(self.pair, str) and self.pair.startswith("pair/")

    @property
    def law(self) -> Dimensions | None:
        """Return the powers of length: `dimensions`, or those of a pair function of parki; None for unknown ones."""
        return dimensions.of(self.pair, dict(self.slots)) if self.dimensions is None else self.dimensions

    def scaled(self: P, power: int, dtype: str | None = None) -> P:
        """Return the pair for lengths times 2^power.

        Parameters
        ----------
        power : int
        dtype : str, optional
            The points' type, where their extent, or the box, is then about one.

        Raises
        ------
        ValueError
            Naming a parameter that is then outside the `REACH` of a type that is given.
        """
        if not self.parameters or self.law is None:
            return self
        values = []
        for name, value, along in zip(self.names, self.parameters, self.law.parameters, strict=True):
            new = float(np.ldexp(value, power * along))
            low, high = REACH[dtype][along] if dtype else (0.0, math.inf)
            if not low <= new <= high:
                low, high = sorted(float(np.ldexp(v, -power * along)) for v in (low, high))
                raise ValueError(f"{name} is {value!r}; expected {low:.3g} to {high:.3g} for points of this extent.")
            values.append(new)
        return replace(self, parameters=tuple(values))

    @property
    def given(self) -> int:
        """Return the count of a source's numbers that a caller gives."""
        return self.dens + 3 * self.normals

    @property
    def self_adjoint(self) -> bool:
        """Tell whether K(−r)ᵀ = K(r): of even kernels with symmetric components and of the odd antisymmetric rotlet."""
        return self.pair not in _ONE_WAY and self.dens == self.result and self.ours

    @property
    def hints(self) -> tuple[str, ...]:
        """Return hints to compilers on loops over this pair, see `parki.engine.kernel`.

        Pairs of parki are given w, so no root is infinite, and no exponent; lengths are of order one (`parki.scaling`).
        """
        return ("finite_rsqrt", "bounded_rsqrt", "rounded_exp", "long_blocks") if self.ours else ("long_blocks",)

    @property
    def before_slopes(self) -> int:
        """Return the rows of a result before those of another power of length, slopes or rotations."""
        return self.result if self.law is None else self.law.alike(self.result)

    @property
    def strengths(self) -> int:
        """Return the count of a source's numbers besides its position."""
        return self.given + len(self.parameters)

    def separation(self, parameters: Sequence[float] | None = None) -> float:
        """Return the distance up to which a pair may have another formula than beyond: 2a for ``rpy``, 0 for most.

        Parameters
        ----------
        parameters : sequence of float, optional
            Values for `names`, by default the pair's own.

        Returns
        -------
        float
            The distance, in the points' unit of length.
        """
        values = self.parameters if parameters is None else parameters
        return float(sum(c * p for c, p in zip(self.core, values, strict=False)))

    def with_gradient(self, only: bool = False) -> "Pair":
        """Return the pair whose result is the potential and its gradient at the target, or the gradient alone.

        The rows of the result are then u, ∂u/∂x, ∂u/∂y, ∂u/∂z, or with `only` the last three.

        Parameters
        ----------
        only : bool, default False
            Leave the potential out.

        Returns
        -------
        Pair
            The pair with its gradient, and the same parameters.

        Raises
        ------
        ValueError
            For a kernel without a gradient.
        """
        if self.pair == STOKES_SL.pair:
            if only:
                return STOKES_GRAD
            raise ValueError(f"{self} has its gradient alone; expected only=True.")
        if not isinstance(self.pair, str) or self.pair not in _RADIAL:
            names = [name for name, pair in PAIRS.items() if pair.pair in _RADIAL]
            raise ValueError(
                f"{self} has no gradient; expected one of {', '.join(map(repr, names))}, or 'stokes_sl' with only=True."
            )
        slots = {"radial": _RADIAL[self.pair], **dict(self.slots), "VALUE": not only, "GRADIENT": True}
        properties = {name: getattr(self, name) for name in ("names", "parameters", "singular", "smooth", "core")}
        name = self.name.removesuffix("_grad").removesuffix("_and") + ("_grad" if only else "_and_grad")
        return Pair(name, 1, 3 if only else 4, "pair/radial", slots=tuple(slots.items()), **properties)

    def linear(self) -> tuple["Pair", Charges]:
        """Return an equal pair that is linear in the charges of its sources, and the function that makes these charges.

        The function takes `dens` and `normals` as `parki.direct.direct_sum` does; most charges are `dens` itself.  The
        stresslet −6 r (r·q)(r·n)/r⁵ is bilinear in q and n, and becomes −6 r (r·S r)/r⁵ with the six different entries
        xx, xy, xz, yy, yz, zz of S = (q nᵀ + n qᵀ)/2.

        Returns
        -------
        tuple of (Pair, callable)
            The linear pair, and the function that makes its charges.

        Raises
        ------
        ValueError
            For a kernel with normals whose linear form is not known.
        """
        if self.pair in charges.OF_FLOWS:
            parts, function = charges.OF_FLOWS[self.pair]
            return Pair(self.name, **flows.of(*parts, "VELOCITY")), function
        if self.normals:
            names = " and ".join(name for name, pair in PAIRS.items() if pair.normals and name == pair.name)
            raise ValueError(f"{self} has normals and no form that is linear in its sources; only {names} have one.")
        return self, charges.itself

    def __str__(self) -> str:
        return self.alias or self.name


def _pair(name: str, file: str, *names: str, normals: bool = False, smooth: bool = True, **keywords: Any) -> Pair:
    """Return the pair of a pair function of parki, whose file states the numbers of a source and of a result."""
    strengths, result = counts.of_kernel(file)
    dens = strengths - 3 * normals - len(names)
    return Pair(name, dens, result, file, normals=normals, names=names, smooth=smooth, **keywords)


def _radial(name: str, *names: str, **keywords: Any) -> Pair:
    """Return a pair u = q φ(r) with φ in a file of this name."""
    return Pair(name, 1, 1, "pair/radial", names=names, slots=(("radial", f"radial/{name}"),), **keywords)


_FINITE = {"smooth": True, "singular": False}
LAPLACE = _pair("laplace", "pair/laplace")
STOKES_SL = _pair("stokes_sl", "pair/stokeslet")
STOKES_DL = _pair("stokes_dl", "pair/stresslet", normals=True)
STOKES_COMB = _pair("stokes_comb", "pair/stokes_comb", normals=True)
STOKES_GRAD = _pair("stokes_grad", "pair/stokes_grad")

#: Every pair that comes with parki, by name.
PAIRS: dict[str, Pair] = {
    pair.name: pair
    for pair in (
        LAPLACE,
        _pair("laplace_grad", "pair/laplace_grad"),
        _pair("laplace_dipole", "pair/dipole"),
        STOKES_SL,
        STOKES_DL,
        STOKES_COMB,
        _pair("stokes_pressure", "pair/stokes_pressure"),
        STOKES_GRAD,
        _pair("stokes_dipole", "pair/stokes_dipole"),
        _pair("yukawa", "pair/yukawa", "kappa"),
        _radial("regularised_coulomb", "epsilon", **_FINITE),
        _radial("spline_coulomb", "epsilon", core=(2.8,), **_FINITE),
        _radial("regularised_yukawa", "kappa", "epsilon", **_FINITE),
        _radial("oscillatory", "k", parameters=(math.pi,), singular=False),
        _radial("gaussian", "width", singular=False),
        *(_radial(key, "width", **_FINITE) for key in ("multiquadric", "inverse_quadratic")),
        _radial("biharmonic", **_FINITE),
        _radial("thin_plate", "unit", parameters=(1.0,), **_FINITE),
        _pair("rotlet", "pair/rotlet"),
        *(_pair(key, f"pair/{key}", "epsilon", **_FINITE) for key in ("regularised_stokeslet", "regularised_dipole")),
        *(_pair(name, f"pair/{name}", "radius", core=(2.0,), **_FINITE) for name in ("rpy", "rpy_rotation")),
    )
}
for _alias, _named in (("coulomb", LAPLACE), ("stokeslet", STOKES_SL), ("stresslet", STOKES_DL)):
    PAIRS[_alias] = replace(_named, alias=_alias)

_ONE_WAY = {"pair/stresslet", "pair/stokes_comb"}
_RADIAL = {"pair/laplace": "radial/coulomb", "pair/yukawa": "radial/yukawa", "pair/radial": "radial/coulomb"}

#: A kernel as calls take it; at run time also text that is an absolute path or ends in ``.py``.
KernelLike = KernelName | os.PathLike[str] | Callable[..., None] | Pair


@shows(parameters=KernelParameters, like=FREE_SUM)
def find(kernel: KernelLike, options: Iterable[str] = (), /, **parameters: float | None) -> Pair:
    """Return the pair of this name, file or function, or the given pair, with its parameters.

    Parameters that are None are not given.  A parameter that the pair does not have may be meant as one of a call's
    `options`, for messages.

    Parameters
    ----------
    options : iterable of str, optional
        Names that a message may advise for a misspelt parameter.

    Returns
    -------
    Pair
        The pair, with its parameters set.

    Raises
    ------
    ValueError
        For an unknown name, and for missing, surplus or not positive parameters.
    TypeError
        For a kernel that is neither a name, nor a path, nor a function, nor a `Pair`.
    KernelError
        For a file that is not there, or not in the language of the kernels.

    See Also
    --------
    Pair : The fields of a pair.
    parki.direct.direct_sum : The table of kernels and their parameters.

    Examples
    --------
    >>> import parki
    >>> parki.pairs.find("yukawa", kappa=0.5).parameters
    (0.5,)
    """
    path = isinstance(kernel, os.PathLike) or (isinstance(kernel, str) and kernel_files.is_path(kernel))
    if path or functions.is_function(kernel):
        kernel = own(kernel)
    elif isinstance(kernel, str):
        kernel = named(kernel, PAIRS)
    elif not isinstance(kernel, Pair):
        raise TypeError(
            f"kernel is a {type(kernel).__name__}; expected a name, the path of a file, a function or a Pair."
        )
    return with_parameters(kernel, parameters, options)


def named(name: str, kernels: dict[str, P]) -> P:
    """Return the pair of this name.

    Raises
    ------
    ValueError
        For an unknown name.
    """
    if name not in kernels:
        raise ValueError(f"kernel is {name!r}; expected one of {', '.join(map(repr, kernels))}.")
    return kernels[name]


def own(kernel: str | os.PathLike | Callable[..., None]) -> Pair:
    """Return the pair of a caller's file, such as ``kernels/pair/laplace.py``, or of a Python function.

    The file, or the module of the function, has ``NS`` numbers for each source, all of them its density, and ``NU`` in
    the result for each target.  The function is called with ``w = 0`` for a coincident pair.

    Raises
    ------
    ValueError
        Where ``NS`` or ``NU`` is not a positive number there.
    KernelError
        For a file that is not there, or not in the language of the kernels.
    """
    return Pair(*(counts.of_function(kernel) if functions.is_function(kernel) else counts.of_path(kernel)))
