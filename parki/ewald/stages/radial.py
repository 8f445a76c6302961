"""Near-field tables of a sum: the far parts of its kernel as polynomials in r²."""

import numpy as np
from numpy.typing import NDArray

from parki.ewald.choice.params import Parameters
from parki.ewald.split import far_parts, series


def tables(p: Parameters) -> NDArray:
    """Return the near-field tables of a sum.

    Returns
    -------
    array (NF, p.radial_degree + 1)
        Coefficients in t = 2r²/rc² − 1 on [−1, 1], highest power first, in `p.dtype`; one row per far part of the
        kernel.
    """
    xi = p.xi * p.rc if p.split == "gaussian" else 0.0
    parameter = p.kernel.parameter(p.rc)
    rows = [
        far_parts.coefficients(part, p.split, p.c, xi, parameter)[: p.radial_degree + 1] * p.rc ** -(1.0 + part.power)
        for part in p.kernel.far
    ]
    return np.ascontiguousarray(series.powers(np.array(rows)), dtype=p.dtype)
