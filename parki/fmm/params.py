"""Parameters of a fast multipole sum: points per edge, and initial sizes of leaves."""

import math
from dataclasses import dataclass

TOLERANCE = 1e-6  # relative error, if neither a tolerance nor an order is given
LEAST_ORDER, MOST_ORDER = 3, 16  # points per edge of a surface, at least and at most
#: Relative errors from which boxes meet in single precision, which costs 4e-7 at most, and 2.5e-6 of harder kernels.
SINGLE, HARDER_SINGLE = 9e-7, 9e-6
#: Least tolerances that sums reach, by dtype.
REACH = {"float64": 1e-12, "float32": 3e-5}
# Relative errors of equivalents with 3, 4 … points per edge: twice the worst of potentials of points in a cube, in a
# Plummer sphere, and on a sphere, with charges of both signs.
ERRORS = (
    4e-3, 7e-4, 6e-5, 7e-6, 9e-7, 1.3e-7, 1.8e-8, 3e-9, 5e-10, 8e-11, 2e-11, 4.4e-12, 8e-13, 2e-13,
)  # fmt: skip
# Points of a leaf, by points per edge: there the near field costs as much as the far field that it saves.
LEAVES = {3: 24, 4: 30, 5: 42, 6: 54, 7: 72, 8: 94, 9: 120, 10: 135, 11: 160, 12: 180}
CHEBYSHEV_LEAVES = {3: 24, 4: 40, 5: 60, 6: 90, 7: 140, 8: 200, 9: 280, 10: 380}


@dataclass(frozen=True)
class Parameters:
    """Hold the parameters of a fast multipole sum, given or chosen.

    Parameters
    ----------
    method : {"kifmm", "chebyshev"}
        Equivalent sources on surfaces around boxes, or interpolation at Chebyshev points in them.
    order : int
        Points per edge of surfaces, or per direction of boxes.
    leaf_size : int
        Points of a leaf at most.
    tolerance : float or None
        Relative error asked for; None if an order was given.
    fill : float, optional
        Boxes across all points on the level of leaves, for points that are uniform; on some level for others.
        None: a power of 2.
    far : {"float64", "float32"}
        Type of the transforms by which boxes meet.

    See Also
    --------
    kifmm : Return them with `return_params`.
    parki.plan.Plan.parameters : The parameters of a plan.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> parki.fmm.plan("coulomb", x, x, order=6).parameters.order
    6
    """

    method: str
    order: int
    leaf_size: int
    tolerance: float | None
    fill: float | None = None
    far: str = "float64"

    @property
    def expected(self) -> float:
        """Return the relative error of a sum: the tolerance, or the likely error of surfaces of this order."""
        return ERRORS[self.order - LEAST_ORDER] if self.tolerance is None else self.tolerance

    def __str__(self) -> str:
        return f"order {self.order}, leaves {self.leaf_size}"


def order(tolerance: float, increase: int = 0) -> int:
    """Return the points per edge of surfaces for a relative error, `increase` more than for potentials."""
    for p, error in enumerate(ERRORS, LEAST_ORDER):
        if error <= tolerance:
            return min(p + increase, MOST_ORDER)
    return MOST_ORDER


def leaf_size(method: str, points: int, components: int = 1) -> int:
    """Return the points of a leaf for a number of points per edge and of components of the expansion."""
    table = LEAVES if method == "kifmm" else CHEBYSHEV_LEAVES
    size = table.get(points) or table[max(table)] * (points / max(table)) ** 1.7
    return round(size * math.sqrt(components))
