"""Mobility of two spheres of any radii, after Rotne, Prager, Yamakawa: u = A f + B n (n·f), times 8πμ.

Source: Zuk, Wajnryb, Mizerski and Szymczak, J. Fluid Mech. 741 (2014) R5.
"""

import numpy as np
from numpy.typing import NDArray

from parki import scaling

Values = NDArray[np.float64]


def exact(r: Values, a: Values, b: Values) -> tuple[Values, Values]:
    """Return A and B of spheres of radii a and b at the distances r: apart, in part or wholly inside each other."""
    power = scaling.exponent(max(np.max(a, initial=0.0), np.max(b, initial=0.0)))  # fourth powers stay in range
    along, across = _exact(*(np.ldexp(lengths, power) for lengths in (r, a, b)))
    return np.ldexp(along, power), np.ldexp(across, power)


def _exact(r: Values, a: Values, b: Values) -> tuple[Values, Values]:
    """Return A and B as `exact`, of radii up to about one."""
    total, difference = a + b, np.abs(a - b)
    apart, inside = r > total, r <= difference
    safe = np.where(apart, r, 1.0)
    square = (a**2 + b**2) / safe**2
    a_apart, b_apart = (1 + square / 3) / safe, (1 - square) / safe
    part = ~(apart | inside)
    r3 = np.where(part, 32 * r**3, 1.0)
    unit = 4 / (3 * np.where(part, a * b, 1.0))
    a_part = unit * (16 * r**3 * total - (difference**2 + 3 * r**2) ** 2) / r3
    b_part = unit * 3 * (difference**2 - r**2) ** 2 / r3
    a_inside = 4 / (3 * np.maximum(a, b))
    return (
        np.where(apart, a_apart, np.where(inside, a_inside, a_part)),
        np.where(apart, b_apart, np.where(inside, 0.0, b_part)),
    )


def flow(r: Values, a: Values, b: Values, largest: float) -> tuple[Values, Values]:
    """Return A and B that sums over `pair/faxen` have for pairs closer than two of the `largest` radius."""
    v = 0.5 / largest
    square = (v * a) ** 2 + (v * b) ** 2
    return v * (1 + square / 3), v * (v * r) ** 2 * (1 - square)
