"""Own terms: fields of particles at themselves, by a kernel's limit at r = 0, which sums count or leave out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parki import all_pairs, scaling
from parki.arrays import Array, module_of
from parki.dimensions import Dimensions
from parki.pairs import Pair

Floats = NDArray[np.float64]


def known(kernel: Pair) -> bool:
    """Tell whether particles may have fields at themselves: pairs at r = 0 are not skipped."""
    return not (kernel.normals or (kernel.ours and kernel.singular))


def of(kernel: Pair) -> Floats | None:
    """Return K(0) (result, dens, 1) of a kernel in its unit of length; None where a particle has no field at itself."""
    if not known(kernel):
        return None
    law, power = kernel.law or Dimensions(), 0
    if kernel.law is not None and kernel.parameters:  # in a unit of length in which squares are in range
        power = law.parameters[0] * scaling.exponent(kernel.parameters[0])
    unit, origin, columns = kernel.scaled(power), np.zeros((3, 1)), np.eye(kernel.dens)
    terms = np.empty((kernel.result, kernel.dens, 1))
    for k in range(kernel.dens):
        density = columns[k] if kernel.dens == 1 else columns[:, k : k + 1]
        field = all_pairs.direct_sum(unit, origin, origin, density, execution_space="Serial")
        terms[:, k] = field.reshape(kernel.result, 1)
    powers = np.add.outer(np.broadcast_to(law.result, kernel.result), np.broadcast_to(law.dens, kernel.dens))
    return np.ldexp(terms, -power * powers[:, :, None]) if terms.any() else None


def take_off(terms: Floats, density: Array, rows: Array) -> None:
    """Subtract own terms from sums at the particles of a density.

    Parameters
    ----------
    terms : array (result, dens, 1) or (result, dens, N)
        K(0) of all particles, or of each.
    density : array (rhs, dens, N)
    rows : array (rhs, result, N)
        The sums, changed in place.
    """
    xp = module_of(rows)
    for k, column in np.ndindex(terms.shape[:2]):
        entries = terms[k, column]
        if entries.any():  # a float32 may hold the product and not its factor
            power = -scaling.exponent(float(np.abs(entries).max()))
            factors = xp.asarray(np.ldexp(entries, -power), rows.dtype)
            rows[:, k] -= scaling.times(density[:, column] * factors, power)
