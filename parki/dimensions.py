"""Powers of length of kernels: the change of their results when all lengths are multiplied by a number."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from parki import flows


@dataclass(frozen=True)
class Dimensions:
    """State the powers of length of a kernel's parameters, results and densities.

    With all lengths times λ, K(λ r; λ^a p)_ij = λ^(b_i + d_j) K(r; p)_ij for component i of the result and j of the
    density.

    Parameters
    ----------
    parameters : tuple of int, optional
        Numbers a, a power for each parameter: 1 for a length, −1 for an inverse length.
    result : tuple of int, default (0,)
        Numbers b, a power for each component of the result, or one for all: (−1,) for 1/r.
    dens : tuple of int, default (0,)
        Numbers d, a power for each component of the density, or one for all.

    See Also
    --------
    parki.pairs.Pair : Take them as `dimensions`.

    Examples
    --------
    Of q exp(−κr)/r, with the inverse length κ:

    >>> import parki
    >>> parki.pairs.PAIRS["yukawa"].law
    Dimensions(parameters=(-1,), result=(-1,), dens=(0,))
    """

    parameters: tuple[int, ...] = ()
    result: tuple[int, ...] = (0,)
    dens: tuple[int, ...] = (0,)

    def alike(self, components: int) -> int:
        """Return the number of first components of a result that have the power of length of the first.

        Parameters
        ----------
        components : int
            Components of the result.

        Returns
        -------
        int
            The number: 1 of a potential and its gradient, all of a vector.
        """
        return next((row for row, power in enumerate(self.result) if power != self.result[0]), components)


_INVERSE, _SQUARE = Dimensions(result=(-1,)), Dimensions(result=(-2,))
_SIZED, _SCREENED = Dimensions((1,), (-1,)), Dimensions((-1,), (-1,))
#: Powers of length by pair function, and by the `radial` slot of ``pair/radial``.
_PAIRS = {
    "pair/laplace": _INVERSE,
    "pair/laplace_grad": _SQUARE,
    "pair/dipole": _SQUARE,
    "pair/yukawa": _SCREENED,
    "pair/stokeslet": _INVERSE,
    "pair/stresslet": _SQUARE,
    "pair/stokes_comb": Dimensions(result=(-1,), dens=(0,) * 3 + (-1,) * 3),
    "pair/stokes_pressure": _SQUARE,
    "pair/stokes_grad": _SQUARE,
    "pair/stokes_dipole": _SQUARE,
    "pair/rotlet": _SQUARE,
    "pair/regularised_stokeslet": _SIZED,
    "pair/regularised_dipole": Dimensions((1,), (-3,)),
    "pair/rpy": _SIZED,
    "pair/faxen": _SIZED,  # doublets and Laplacians in the unit of length of the sum
    "pair/rpy_rotation": Dimensions((1,), (-1,) * 3 + (-2,) * 3, (0,) * 3 + (-1,) * 3),
}
_RADIAL = {
    "radial/coulomb": _INVERSE,
    "radial/yukawa": _SCREENED,
    "radial/regularised_coulomb": _SIZED,
    "radial/spline_coulomb": _SIZED,
    "radial/regularised_yukawa": Dimensions((-1, 1), (-1,)),
    "radial/oscillatory": _SCREENED,
    "radial/gaussian": Dimensions((1,), (0,)),
    "radial/multiquadric": Dimensions((1,), (1,)),
    "radial/inverse_quadratic": Dimensions((1,), (-2,)),
    "radial/biharmonic": Dimensions(result=(1,)),
    "radial/thin_plate": Dimensions((1,), (2,)),
}


def of(pair: Hashable, slots: Mapping[str, Any]) -> Dimensions | None:
    """Return the powers of length of a pair function of parki with these slots; None for any other."""
    if pair == flows.PAIR:
        sphere = (1,) if slots.get("SPHERE") else ()
        return Dimensions(sphere, flows.powers(flows.RESULTS, slots), flows.powers(flows.SOURCES, slots))
    if pair != "pair/radial":
        return _PAIRS.get(pair) if isinstance(pair, str) else None
    dimensions = _RADIAL.get(slots.get("radial", "radial/coulomb"))
    if dimensions is None:
        return None
    power = dimensions.result[0]
    value, gradient = bool(slots.get("VALUE", True)), bool(slots.get("GRADIENT", False))
    return replace(dimensions, result=(power,) * value + (power - 1,) * (3 * gradient))
