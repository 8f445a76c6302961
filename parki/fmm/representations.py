"""Representations of pair interactions: sources on surfaces, equivalent to those of a box, and check values.

Equivalent sources on a box's surface must be able to make the field of any source inside.  Laplace and Yukawa
fields are those of charges.  Stokes flows are those of forces and point flows, checked by velocity and pressure: a
double layer has a flux that forces do not have, and forces normal to a surface make a pressure but no velocity.

A softened charge has the field of a point charge from some distance on, exactly or up to an error that falls as 1/r².
Its near pairs are softened ones, and expansions are those of point charges, in boxes that are further apart than that.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parki import engine, flows, pairs
from parki.engine import RangePolicy, Workunit
from parki.fmm import symmetry
from parki.pairs import LAPLACE, Charges, Pair

Floats = NDArray[np.float64]
HOMOGENEOUS = 1e-11  # error of exponents, at most
FAR = 1e-7  # relative error of values at other scales, at most
SOFTENING = 0.5  # share of the tolerance that expansions of point charges in place of softened ones may take


def unit(pair: Pair) -> Workunit:
    """Return the workunit of `block`."""
    return engine.kernel("matrix", "entries", pair=pair.pair, NP=len(pair.parameters), **dict(pair.slots))


def workunits(pair: Pair) -> list[Workunit]:
    """Return the workunits of the host that find the representation of a pair and make its operators.

    Raises
    ------
    ValueError
        As `find` does.
    """
    linear, _ = pair.linear()
    if not linear.ours:
        return [unit(linear)]
    representation = find(pair)
    return list(dict.fromkeys([unit(representation.up), unit(representation.target)]))


def block(pair: Pair, r: Floats) -> Floats:
    """Return K(r) (n, result, dens) at the differences r (n, 3) = target − source, in double precision on the host."""
    values = np.zeros((pair.result, pair.dens, len(r)))
    if len(r):
        engine.parallel_for(
            RangePolicy("Serial", len(r)), unit(pair), r=np.ascontiguousarray(r.T, np.float64), out=values,
            constant=np.array([*pair.parameters, 0.0]),
        )  # fmt: skip
    return values.transpose(2, 0, 1)


@functools.lru_cache(maxsize=64)
def exponents(pair: Pair) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Return exponents a (result), b (dens) with K(λ r)_ts = λ^−(a_t + b_s) K(r)_ts and a_0 = 0, or None without any.

    A kernel with exponents is expanded at one scale for boxes of any size.
    """
    if pair.parameters:  # lengths, or inverses of lengths
        return None
    numerator, denominator = (block(pair, scale * symmetry.GENERIC) for scale in (1.0, 3.0))
    size = symmetry.SAME * np.abs(numerator).max()
    mask = (np.abs(numerator) > size).all(axis=0)
    if (
        not mask.any()
        or ((np.abs(numerator) > size).any(axis=0) != mask).any()
        or not np.abs(denominator[:, mask]).all()
    ):
        return None
    ratio = np.ones(numerator.shape)
    ratio[:, mask] = numerator[:, mask] / denominator[:, mask]
    if (ratio <= 0).any() or np.ptp(ratio[:, mask], axis=0).max(initial=0) > HOMOGENEOUS * ratio.max():
        return None
    power = np.log(ratio[0]) / np.log(3.0)
    n, i = numerator.shape[1], np.argwhere(mask)
    rows = np.zeros((len(i), sum(numerator.shape[1:])))
    rows[np.arange(len(i)), i[:, 0]] = rows[np.arange(len(i)), n + i[:, 1]] = 1
    powers = np.linalg.lstsq(rows, power[mask], rcond=None)[0]
    if np.abs(rows @ powers - power[mask]).max(initial=0) > HOMOGENEOUS * 10:
        return None
    powers = np.round(np.where(np.arange(len(powers)) < n, powers - powers[0], powers + powers[0]), 9) + 0.0
    power = powers[:n, None] + powers[n:]
    for scale in symmetry.SCALES:  # a length may be far from 1
        expected = numerator * scale**-power
        size = FAR * np.where(mask, np.abs(expected), np.abs(expected).max())
        if not (np.abs(block(pair, scale * symmetry.GENERIC) - expected) <= size).all():
            return None
    return tuple(powers[:n].tolist()), tuple(powers[n:].tolist())


def half_side(pair: Pair, half: float) -> float:
    """Return the half side of the boxes whose tables serve boxes of a half side: 1 for kernels with exponents."""
    return half if exponents(pair) is None else 1.0


def scaled(pair: Pair, powers: tuple[int, ...], half: float) -> Pair:
    """Return a pair with its parameters times these powers of `half`."""
    if not any(powers):
        return pair
    values = zip(pair.parameters, powers, strict=True)
    return replace(pair, parameters=tuple(v * half**power for v, power in values))


@dataclass(frozen=True)
class Representation:
    """Pair interaction represented by sources on surfaces.

    Attributes
    ----------
    pair
        The interaction itself, linear in the strengths of sources: for pairs that are near each other.
    charges
        Function (dens, normals) → charges (dens of `pair`, N) of its sources.
    up, down
        Check values ← equivalents, upward and downward.
    source
        Check values ← charges.
    target
        Result ← equivalents.
    a, b
        Exponents of check values and of equivalents.  Those of a box of half side h, times h^a and h^−b, are those of
        the box of half side 1.  None: boxes are expanded at their true size, with operators of their own.
    powers
        Powers of h by which the parameters of `up` change if a box of half side h becomes one of half side 1.
    softening
        Length l: beyond `Pair.separation` `pair` has the field of the expansions up to a relative error of l²/r².
    """

    pair: Pair
    charges: Charges
    up: Pair
    down: Pair
    source: Pair
    target: Pair
    a: tuple[float, ...] | None
    b: tuple[float, ...] | None
    powers: tuple[int, ...] = ()
    softening: float = 0.0

    def separation(self, tolerance: float) -> float:
        """Return the distance that particles which meet through expansions must exceed for a relative error of sums."""
        return max(self.pair.separation(), self.softening / math.sqrt(SOFTENING * tolerance))

    @property
    def check(self) -> int:
        """Return the number of components of check values."""
        return self.up.result

    @property
    def equivalent(self) -> int:
        """Return the number of components of equivalents."""
        return self.up.dens

    @property
    def per_level(self) -> bool:
        """Tell whether boxes of each size need operators of their own."""
        return self.a is None or any(self.powers)

    @property
    def masks(self) -> symmetry.Masks | None:
        """Return masks of check values and of equivalents, see `parki.fmm.symmetry`; None without symmetry."""
        return _masks(self.up)

    def size(self, half: float) -> float:
        """Return the half side for which operators of boxes of half side `half` are made: 1 if there are exponents."""
        return float(half) if self.a is None else 1.0

    def at(self, half: float) -> Pair:
        """Return `up` with the parameters of a box of half side `half` that is scaled to `size`."""
        return scaled(self.up, self.powers, half)

    def scales(self, half: float) -> tuple[Floats, Floats]:
        """Return the factors of check values (check,) and equivalents (equivalent,) of a box of this half side.

        Factors h^a and h^−b give the values of the unit box; they are 1 if boxes keep their size.
        """
        if self.a is None or self.b is None:
            return np.ones(self.check), np.ones(self.equivalent)
        return half ** np.array(self.a), half ** -np.array(self.b)


@functools.lru_cache(maxsize=64)
def field_exponents(representation: Representation) -> Floats:
    """Return exponents of the result (result,), by which fields of boxes scale.

    Fields of a box of half side h are h^−exponent times those of the unit box.  Zeros if boxes keep their size.
    """
    if representation.a is None or representation.b is None:
        return np.zeros(representation.target.result)
    mild = tuple(
        0.1 if power else value
        for value, power in zip(representation.target.parameters, representation.powers, strict=False)
    )
    target = replace(representation.target, parameters=mild or representation.target.parameters)
    numerator = block(scaled(target, representation.powers, 3.0), symmetry.GENERIC)
    denominator = block(target, 3.0 * symmetry.GENERIC)
    mask = np.abs(numerator) > symmetry.SAME * np.abs(numerator).max()
    ratio = np.where(mask, numerator, 1.0) / np.where(mask, denominator, 1.0)
    powers = np.log(np.abs(ratio)) / np.log(3.0) - np.array(representation.b)
    return np.round([row[u].mean() for row, u in zip(powers.swapaxes(0, 1), mask.swapaxes(0, 1), strict=True)], 6) + 0.0


@functools.lru_cache(maxsize=64)
def _masks(pair: Pair) -> symmetry.Masks | None:
    return symmetry.parities(lambda r: block(pair, r))


def _flow(*parts: str, **keywords: Any) -> Pair:
    """Return a pair of `pair/stokes_flow` with these parts, and no others."""
    return Pair("stokes_flow", **flows.of(*parts), **keywords)


# Parts of `pair/stokes_flow` with the field of another pair file away from its sources.
_STOKES: dict[Any, tuple[str, ...]] = {
    "pair/stokeslet": ("FORCE", "VELOCITY"),
    "pair/stokes_pressure": ("FORCE", "PRESSURE"),
    "pair/stokes_grad": ("FORCE", "GRADIENT"),
    "pair/rotlet": ("TORQUE", "VELOCITY"),
    "pair/rpy": ("FORCE", "SPHERE", "VELOCITY"),
    "pair/faxen": ("FORCE", "DOUBLET", "VELOCITY", "LAPLACIAN"),
    "pair/rpy_rotation": ("FORCE", "TORQUE", "SPHERE", "VELOCITY", "SPIN"),
}
_RADIAL = {"radial/coulomb": LAPLACE, "radial/yukawa": pairs.PAIRS["yukawa"]}
# Radial functions of softened charges, by the squares of l/ε for the potential and for its gradient, see `softening`.
_SOFTENED = {"radial/regularised_coulomb": (0.5, 1.5), "radial/spline_coulomb": (0.0, 0.0)}


def softened(pair: Pair) -> bool:
    """Tell whether a pair is softened: expansions must be further apart the less error is allowed."""
    return dict(pair.slots).get("radial") in _SOFTENED


def known(pair: Pair) -> bool:
    """Tell whether a pair of parki's has a representation."""
    try:
        find(pair)
    except ValueError:
        return False
    return pair.ours


def find(pair: Pair) -> Representation:
    """Return the representation of a pair interaction whose parameters are set.

    Raises
    ------
    ValueError
        For a kernel whose fields no sources on a surface can make, and for a caller's kernel that is not linear.
    """
    linear, charges = pair.linear()
    if linear.pair == flows.PAIR or linear.pair in _STOKES:
        return _stokes(linear, charges)
    if not linear.ours:
        powers = exponents(linear) or (None, None)
        return Representation(linear, charges, linear, linear, linear, linear, *powers)
    representation: Callable[..., Representation] = functools.partial(
        Representation, linear, charges, a=(0.0,), b=(1.0,)
    )
    if linear.pair in ("pair/laplace", "pair/laplace_grad"):
        return representation(up=LAPLACE, down=LAPLACE, source=LAPLACE, target=linear)
    if linear.pair == "pair/dipole":
        return representation(up=LAPLACE, down=LAPLACE, source=linear, target=LAPLACE)
    if linear.pair == "pair/yukawa":
        return representation(up=linear, down=linear, source=linear, target=linear, powers=(1,))
    radial = dict(linear.slots).get("radial")
    if linear.pair == "pair/radial" and radial in _RADIAL:
        equivalent = _RADIAL[radial]
        equivalent = replace(equivalent, parameters=linear.parameters)
        return representation(
            up=equivalent, down=equivalent, source=equivalent, target=linear, powers=(1,) * len(equivalent.names)
        )
    if linear.pair == "pair/radial" and radial in _SOFTENED:
        slots = dict(linear.slots)
        squares = _SOFTENED[radial][bool(slots.get("GRADIENT", False))]
        point_slots = tuple((slots | {"radial": "radial/coulomb"}).items())
        target = replace(linear, names=(), parameters=(), core=(), slots=point_slots)
        softening = math.sqrt(squares) * linear.parameters[0]
        return representation(up=LAPLACE, down=LAPLACE, source=LAPLACE, target=target, softening=softening)
    raise ValueError(
        f"kernel is {pair}: no sources on a surface around a box make the field of any source inside; "
        "expected another kernel, or expansions by parki.fmm.chebyshev, which take this one."
    )


def _stokes(linear: Pair, charges: Charges) -> Representation:
    """Return the representation of a Stokes flow, by forces and point flows that make its velocity and pressure."""
    parts = flows.parts(dict(linear.slots)) if linear.pair == flows.PAIR else _STOKES[linear.pair]
    results = [part for part in parts if part in flows.RESULTS]
    sources = [part for part in parts if part not in flows.RESULTS]
    field_pair = _flow("FORCE", "FLOW", "VELOCITY", "PRESSURE")
    size = {"names": linear.names, "parameters": linear.parameters} if "SPHERE" in sources else {}
    source = _flow(*sources, "VELOCITY", "PRESSURE", **size)
    target = _flow("FORCE", "FLOW", *results)
    a, b = (0.0, 0.0, 0.0, 1.0), (1.0, 1.0, 1.0, 2.0)
    return Representation(linear, charges, field_pair, field_pair, source, target, a, b)
