"""Far field of kernels that derive from s = √(r² + ε²), for modes without a periodic part.

A kernel of s differs from one of r at all distances, so its transform is no finite part of known functions.  The far
field, the kernel less the near field, is known in space: with D and E of `far_parts` at s the Laplacian of its
biharmonic function across the free directions is

    3/2 D + r²E                                                             in three free directions
    −2 − 4 ln(rc + X) − 2r²/(rc² + rc X) + 2 ∫ (D + r²E) dx over [0, X]     around a line, s² = r² + ε² + x²
    −2π (b + r²D/2) with b(rc) = rc and b' = sD/2                           beside a plane

where X² = rc² − r² − ε², and beyond s = rc that of the kernel: 3/s − r²/s³, −4 ln s − 2 − 2r²/s², −2π (s + r²/s).  A
window cuts it smoothly, beyond all pairs, and the transform is a quadrature.  Its bandwidth is that of the split,
because the window is the integral of a prolate of this bandwidth, and falls where the kernel is smooth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import j0, roots_legendre

from parki.ewald.split import far_parts
from parki.ewald.split.far_parts import D, E, FarPart
from parki.ewald.split.profiles import Prolate, Split

if TYPE_CHECKING:
    from scipy.interpolate import BSpline

Values = NDArray[np.float64]

DEGREE, PER_WAVE = 9, 24  # of the table's spline, and points of the table in a wave of the far field's end
END = 12  # points of the table beyond its ends, where splines are less accurate
INNER = 48  # points of quadratures within rc
AT_ONCE = 1 << 21  # waves at points that are computed together


@dataclass(frozen=True)
class SoftenedField:
    """Far field of a softened kernel around a point, a line or a plane, cut smoothly at a radius.

    Attributes
    ----------
    split, rc
        Profile of the split, cutoff of the near field.
    epsilon
        ε.
    periodicity
        Directions in which the field is constant.
    radius
        Radius at which the window is a half; it falls from 1 to 0 within rc on both sides.
    """

    split: Split
    rc: float
    epsilon: float
    periodicity: int
    radius: float

    @cached_property
    def _nodes(self) -> tuple[Values, Values, Values]:
        """Return radii, the Laplacian there, and weights of integrals over the free directions with the window."""
        end = self.radius + self.rc
        if self.periodicity == 1:
            nodes, weights = roots_legendre(int(self.split.kmax * end) + 64)
            r, weights = 0.5 * end * (nodes + 1.0), 0.5 * end * weights
        else:  # even functions of r that vanish at the end: equal steps are exact, and keep the weight of r = 0
            n = int(0.5 * self.split.kmax * end) + 64
            r, weights = end / n * np.arange(n), np.full(n, end / n)
            weights[0] *= 0.5
        area = (4 * np.pi * r**2, 2 * np.pi * r, 2.0)[self.periodicity]
        return r, self._laplacian(r), weights * area * self._window(r)

    @cached_property
    def shift(self) -> float:
        """Return the constant that is subtracted from the Laplacian before the cut.

        In two and three free directions the integral is then zero, so that no field is left beyond the cut.
        """
        return self._mean if self.periodicity < 2 else float(self._kernel(np.array([self.radius]))[0])

    @property
    def _mean(self) -> float:
        """Return the mean of the Laplacian up to the cut."""
        _, values, weights = self._nodes
        return float(weights @ values / weights.sum())

    def modes(self, k2: Values, period: float, height: float) -> Values:
        """Return the transform at squares of wave numbers.

        Beside a plane its value at 0 undoes the shift for a period, and adds the constant 4π `height`/3.
        """
        values = self._table(np.sqrt(k2))
        if self.periodicity == 2:
            at_zero = float(self._transform(np.zeros(1))[0])
            values = np.where(k2 > 0, values, at_zero + period * (self.shift + 4 * np.pi * height / 3))
        return values

    @cached_property
    def _table(self) -> BSpline:
        """Return the transform as a function of wave numbers up to kmax."""
        from scipy.interpolate import make_interp_spline  # takes a fifth of a second, and most sums are not softened

        step = 2 * np.pi / ((self.radius + self.rc) * PER_WAVE)
        k = step * np.arange(-END, self.split.kmax / step + END)
        return make_interp_spline(k, self._transform(k), DEGREE)

    def _transform(self, k: Values) -> Values:
        """Return the transform of the cut Laplacian by quadrature."""
        r, values, weights = self._nodes
        waves: Callable[[Values], Values] = (lambda x: np.sinc(x / np.pi), j0, np.cos)[self.periodicity]
        field, rows = weights * (values - self.shift), max(1, AT_ONCE // len(r))
        return np.concatenate([waves(np.outer(k[i : i + rows], r)) @ field for i in range(0, len(k), rows)])

    def _window(self, r: Values) -> Values:
        """Return 1 up to the radius less rc, 0 beyond the radius plus rc, and between the integral of a prolate.

        The prolate has the bandwidth of the split, also of a Gaussian, whose own integral has larger tails.
        """
        x, window = np.clip(r - self.radius, -self.rc, self.rc), Prolate(self.split.kmax * self.rc, self.split.kmax)
        nodes, weights = roots_legendre(int(0.5 * self.split.kmax * self.rc) + 40)
        k, weights = 0.5 * self.split.kmax * (nodes + 1.0), 0.5 * self.split.kmax * weights
        step = np.sin(np.outer(x, k)) @ (weights * window.phi(k) / k) / np.pi
        return np.where(x > -self.rc, 0.5 - step, 1.0)

    def _laplacian(self, r: Values) -> Values:
        """Return the Laplacian of the far field's biharmonic function."""
        s = np.hypot(r, self.epsilon)
        inside, values = s < self.rc, self._kernel(r)
        if inside.any():
            values[inside] = self._far(r[inside], s[inside])
        return values

    def _kernel(self, r: Values) -> Values:
        """Return the Laplacian of the kernel's biharmonic function."""
        s = np.hypot(r, self.epsilon)
        if self.periodicity == 0:
            return 3 / s - r**2 / s**3
        return -4 * np.log(s) - 2 - 2 * r**2 / s**2 if self.periodicity == 1 else -2 * np.pi * (s + r**2 / s)

    def _far(self, r: Values, s: Values) -> Values:
        """Return the Laplacian for s < rc."""
        nodes, weights = roots_legendre(INNER)
        nodes, weights, rc = 0.5 * (nodes + 1.0), 0.5 * weights, self.rc
        if self.periodicity == 0:
            return 1.5 * self._part(D, s) + r**2 * self._part(E, s)
        if self.periodicity == 1:
            reach = np.sqrt(rc**2 - s**2)
            distance = np.hypot(s[:, None], reach[:, None] * nodes)
            line = (self._part(D, distance) + r[:, None] ** 2 * self._part(E, distance)) @ weights
            return -2 - 4 * np.log(rc + reach) - 2 * r**2 / (rc**2 + rc * reach) + 2 * reach * line
        outer = s[:, None] + (rc - s)[:, None] * nodes
        biharmonic = rc - (rc - s) * ((0.5 * outer * self._part(D, outer)) @ weights)
        return -2 * np.pi * (biharmonic + 0.5 * r**2 * self._part(D, s))

    def _part(self, part: FarPart, s: Values) -> Values:
        """Return a far part of r at s, of any shape."""
        return far_parts.values(part, self.split, s.ravel()).reshape(s.shape)


@lru_cache(maxsize=16)
def softened_field(
    kind: type[SoftenedField], split: Split, rc: float, epsilon: float, periodicity: int, radius: float
) -> SoftenedField:
    """Return a field of a class with its tables, which neighbouring calls share."""
    return kind(split, rc, epsilon, periodicity, radius)
