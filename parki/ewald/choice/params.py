"""Parameters of a sum: the numbers that its stages depend on."""

import math
from dataclasses import dataclass, replace

import numpy as np

from parki.ewald.kernel import Kernel
from parki.hints import OWN_TERMS

#: Best relative error of each type.
REACH = {"float64": 5e-14, "float32": 1e-6}


@dataclass(frozen=True)
class Parameters:
    """Hold the numbers that fix an Ewald sum, besides the points.

    Parameters
    ----------
    kernel : Kernel
        The kernel with its parameters.
    box : tuple of three floats
        Sides; of a triclinic cell those of the brick that tiles space like it.
    tolerance : float
        Relative RMS error.
    dtype, far : {"float64", "float32"}
        Types of the sum and of its far field.
    split : {"prolate", "gaussian"}
        Profile that divides the sum into near and far field.
    rc, c, kmax, xi : float
        Cutoff of the near field, c = kmax rc, largest wave number, splitting parameter of the Gaussian (of the prolate:
        of the Gaussian with equal tails, √(c/2)/rc).
    grid, h : tuple of three ints, tuple of three floats
        Grid points over the sides, and spacings; kmax < π/h.  In a free direction the grid has P points more.
    P, beta : int, float
        Width of the window in grid points, and its shape.
    window_degree, radial_degree : int
        Degrees of the window's polynomials and of the near-field tables.
    periodicity : int, default 3
        Number of periodic axes, the first ones.
    skew : tuple of three floats, optional
        Entries t01, t02, t12 of a triclinic cell: its lattice vectors are (l0, t01, t02), (0, l1, t12), (0, 0, l2).
    near_error : float, optional
        Relative error for which roots of near pairs have enough digits; by default the tolerance.

    See Also
    --------
    parki.plan.Plan.parameters : The parameters of a plan.
    parki.ewald.report.Params : The same by their published names.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.random.default_rng(1).random((3, 100))
    >>> parameters = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), rc=0.4).parameters
    >>> parameters.rc, parameters.split
    (0.4, 'prolate')
    """

    kernel: Kernel
    box: tuple[float, float, float]
    tolerance: float
    dtype: str
    far: str
    split: str
    rc: float
    c: float
    kmax: float
    xi: float
    grid: tuple[int, int, int]
    h: tuple[float, float, float]
    P: int
    beta: float
    window_degree: int
    radial_degree: int
    periodicity: int = 3
    skew: tuple[float, float, float] | None = None
    near_error: float | None = None

    @property
    def pair_error(self) -> float:
        """Return the relative error that near pairs may have."""
        return self.tolerance if self.near_error is None else self.near_error

    @property
    def root_error(self) -> float:
        """Return the relative error of a sum for which roots of near pairs have enough digits.

        Fields of narrow blobs at themselves are nearly the whole sum, and callers take them off.
        """
        return min(self.pair_error, OWN_TERMS) if "epsilon" in self.kernel.names else self.pair_error

    @property
    def itemsizes(self) -> tuple[int, int]:
        """Return the bytes of a real number of the sum, and of the far field."""
        return np.dtype(self.dtype).itemsize, np.dtype(self.far).itemsize

    @property
    def reach(self) -> float:
        """Return the best relative error of these types."""
        return max(REACH[self.dtype], REACH[self.far])

    def scaled(self, power: int) -> "Parameters":
        """Return the same parameters for lengths times 2^power."""
        if not power:
            return self
        times, inverse = ((lambda x, exponent=sign * power: math.ldexp(x, exponent)) for sign in (1, -1))
        lengths = {name: tuple(map(times, getattr(self, name))) for name in ("box", "h")}
        skew = self.skew and tuple(map(times, self.skew))
        waves = {"kmax": inverse(self.kmax), "xi": inverse(self.xi)}
        return replace(self, kernel=self.kernel.scaled(power), rc=times(self.rc), skew=skew, **lengths, **waves)

    def stretched(
        self, box: tuple[float, float, float], skew: tuple[float, float, float] | None
    ) -> "Parameters | None":
        """Return the parameters of the same grid over another box; None if the cutoff would be too long for that box.

        Cutoff and largest wave number follow the edge that grows most, or shrinks least, so that errors are no larger.

        Parameters
        ----------
        box, skew : tuple of three floats
            Parameters of the other box, in the same unit; `skew` is None for a rectangular box.

        Returns
        -------
        Parameters or None
            Parameters with other lengths.
        """
        old, new = edges(self.box, self.skew), edges(box, skew)
        growth = max(b / a for a, b in zip(old, new, strict=True))
        rc = self.rc * growth
        if rc > most_cutoff(box, self.periodicity):
            return None
        h = tuple(h * side / old_side for h, side, old_side in zip(self.h, box, self.box, strict=True))
        waves = {"kmax": self.kmax / growth, "xi": self.xi / growth}
        return replace(self, box=box, skew=skew, h=h, rc=rc, **waves)

    def serves(self, kernel: Kernel) -> bool:
        """Tell whether parameters chosen for their kernel serve another one as well."""
        return kernel.layers == self.kernel.layers and kernel.spectrum.profile == self.kernel.spectrum.profile

    def type_of(self, phase: str) -> str:
        """Return the type that a phase computes in."""
        return self.dtype if phase == "p2p" else self.far


def edges(box: tuple[float, float, float], skew: tuple[float, float, float] | None) -> tuple[float, float, float]:
    """Return the lengths of the lattice vectors."""
    t01, t02, t12 = skew or (0.0, 0.0, 0.0)
    return float(np.hypot(np.hypot(box[0], t01), t02)), float(np.hypot(box[1], t12)), box[2]


def most_cutoff(box: tuple[float, float, float], periodicity: int) -> float:
    """Return the longest useful rc: the shortest periodic side, or in free space the diagonal."""
    return min(box[:periodicity]) if periodicity else float(np.linalg.norm(box))
