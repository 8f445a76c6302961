"""Far field of the regularised source dipole, (∇∇ − I∇²) of 1/s with s = √(r² + ε²), for modes without a periodic part.

With F, H and K of `far_parts` at s, and minus the kernel's biharmonic function 1/s in the place of r, the Laplacian
across the free directions is

    −6H − 4r²K                                                                     in three free directions
    4/(rc² + rc X) − 2r² (2 + X/rc)/(rc² + rc X)² − 8 ∫ (H + r²K) dx over [0, X]   around a line, s² = r² + ε² + x²
    2πF + 4πr²H                                                                    beside a plane

where X² = rc² − r² − ε², and beyond s = rc that of the kernel: 3ε²/s⁵, 4ε²/s⁴, 2πε²/s³.
"""

from functools import cached_property

import numpy as np
from scipy.special import roots_legendre

from parki.ewald.split.far_parts import F, H, K
from parki.ewald.split.softened import INNER, SoftenedField, Values


class SoftenedDipoleField(SoftenedField):
    """Far field of regularised source dipoles around a point, a line or a plane, cut smoothly at a radius."""

    @cached_property
    def shift(self) -> float:
        """Return the constant that is subtracted from the Laplacian before the cut.

        Beside a plane there is none: across it nothing but the Laplacian is left, which falls off.
        """
        return self._mean if self.periodicity < 2 else 0.0

    def modes(self, k2: Values, period: float, height: float) -> Values:
        """Return the transform at squares of wave numbers."""
        values = self._table(np.sqrt(k2))
        return values if self.periodicity == 2 else np.where(k2 > 0, values, 0.0)

    def _kernel(self, r: Values) -> Values:
        """Return the Laplacian of minus 1/s, integrated over the other directions."""
        factor, power = ((3.0, -5), (4.0, -4), (2 * np.pi, -3))[self.periodicity]
        return factor * self.epsilon**2 * np.hypot(r, self.epsilon) ** power

    def _far(self, r: Values, s: Values) -> Values:
        """Return the Laplacian for s < rc."""
        if self.periodicity == 0:
            return -6 * self._part(H, s) - 4 * r**2 * self._part(K, s)
        if self.periodicity == 2:
            return 2 * np.pi * self._part(F, s) + 4 * np.pi * r**2 * self._part(H, s)
        nodes, weights = roots_legendre(INNER)
        rc, reach = self.rc, np.sqrt(self.rc**2 - s**2)
        distance = np.hypot(s[:, None], 0.5 * reach[:, None] * (nodes + 1.0))
        line = (self._part(H, distance) + r[:, None] ** 2 * self._part(K, distance)) @ (0.5 * weights)
        area = rc**2 + rc * reach
        return 4 / area - 2 * r**2 * (2 + reach / rc) / area**2 - 8 * reach * line
