"""Error estimates of kernels by layer of a boundary: cut at rc, tables, window.

Errors are for random strengths at random points.  Q is the sum of |q|², |f|² or, for the double layer, |q|²|n|².
Dipoles and the pressure have 1/√3 and 2/√3 of the errors of `LAPLACE_GRAD`, and so has their size U.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parki.ewald.split import far_parts, profiles
from parki.ewald.split.far_parts import D, E, F, FarPart, G, H, K
from parki.ewald.split.profiles import Profile

Values = NDArray[np.float64]
Rest = Callable[[FarPart], Values]

_LEAST_C = 3.0  # least bandwidth c


@dataclass(frozen=True)
class Layer:
    """Error estimates of kernels that are singular in the same way.

    Attributes
    ----------
    name
        Name of the kernel that the estimates are fitted to.
    prolate_tail
        ln of `truncation` with the prolate split, plus c, as a combination of 1, ln c, 1/c, 1/c²; fitted to the
        integral of the near field on 3 <= c <= 24, 27, 36 with errors below 0.5 %.
    gaussian_tail
        `truncation` with the Gaussian split: factor and power of ξ rc before exp(−(ξ rc)²).
    table_error
        RMS error of the near field, from a function that returns the coefficients left out of a far part, by degree.
    alias
        Four rows of weights from c and the integrals of Φ²/k, Φ/k and Φ²/k³: see `window.alias`.
    profile
        Φ, a function of `profiles`.
    modes
        RMS of the modes over directions, for the Gaussian and kernels with the profile Φs; 0 for other kernels.
    size
        U l/√Q of a kernel that falls as 1/r.
    own
        Remaining share of the error from a coincident source's own field, if targets are the sources and its largest
        wave is subtracted.
    turned
        True for the angular velocity by torques, whose modes have one more wave number than the estimates.
    steep
        Mean square of r² times the kernel over directions, times 22.8, for a kernel that falls as 1/r²; else 0.  The
        closest pairs dominate, and 4π ∫ r⁻² dr from the mean distance d of the closest source is 22.8/d.
    cubic
        True for a kernel that falls as 1/r³ beyond its first parameter ε; then `steep` is not 0, but not used.
    width
        ε over rc, by which the profile of a cubic kernel depends on it.
    """

    name: str
    prolate_tail: tuple[float, float, float, float]
    gaussian_tail: tuple[float, int]
    table_error: Callable[[Rest], Values]
    alias: Callable[[float, Values, Values, Values], list[Values]]
    profile: Profile = profiles.phi
    modes: float = 0.0
    size: float = 1.0
    own: float = 1.0
    turned: bool = False
    steep: float = 0.0
    cubic: bool = False
    width: float = 0.0

    def unit(self, rc: NDArray | float, volume: float) -> NDArray | float:
        """Return the unit of `truncation` over √Q."""
        return np.sqrt(rc ** (-3 if self.cubic else -1 if self.steep else 1) / volume)

    def degree(self, split: str, c: float, xi: float, level: float) -> int:
        """Return the least degree at which the tables' RMS error is `level`, relative as in `truncation`.

        The error is half the sum of the coefficients left out, for the mean over the ball.
        """

        def rest(part: FarPart) -> Values:
            left_out = far_parts.coefficients(part, split, c, xi if split == "gaussian" else 0.0, 0.0)
            return np.cumsum(np.abs(left_out)[::-1])[::-1][1:]

        return int(np.count_nonzero(0.5 * self.table_error(rest) > level))

    def truncation(self, split: str, c: ArrayLike, xi: ArrayLike) -> Values:
        """Return the RMS of the near field dropped beyond rc.

        The result is relative to √(Q rc/V) for kernels that fall as 1/r, to √(Q/(V rc)) for those like 1/r², and to
        √(Q/(V rc³)) for cubic ones.  It is a fit for the prolate split, and the leading term for the Gaussian.
        """
        c, xi = np.asarray(c, np.float64), np.asarray(xi, np.float64)
        if split == "prolate":
            fit = self.prolate_tail
            return np.exp(fit[0] + fit[1] * np.log(c) + fit[2] / c + fit[3] / c**2 - c)
        return self.gaussian_tail[0] * xi ** self.gaussian_tail[1] * np.exp(-(xi**2))

    def bandwidth(self, split: str, level: ArrayLike) -> tuple[Values, Values]:
        """Return c and ξ rc (0 for the prolate) at which `truncation` is `level`, an array.

        For the Gaussian the modes dropped beyond kmax add half of `level`.
        """
        log = np.log(level)
        if split == "prolate":
            fit = self.prolate_tail
            c = np.full_like(log, 12.0)
            for _ in range(6):
                value = fit[0] + fit[1] * np.log(c) + fit[2] / c + fit[3] / c**2 - c - log
                c = np.maximum(c - value / (fit[1] / c - fit[2] / c**2 - 2 * fit[3] / c**3 - 1.0), _LEAST_C)
            return c, np.zeros_like(c)
        xi = np.full_like(log, 3.0)
        lead, power = self.gaussian_tail
        for _ in range(12):
            xi = np.sqrt(np.maximum(np.log(lead) + power * np.log(xi) - log, 1.0))
        ratio = np.full_like(log, 3.0)  # kmax / 2ξ
        for _ in range(12):
            modes = np.sqrt(0.75 / (xi * ratio**5))
            if self.modes:
                modes = modes * (1 + ratio**2) * self.modes
            if self.steep:
                modes = modes * (2 * xi * ratio) ** (2 if self.cubic else 1)
            ratio = np.sqrt(np.maximum(np.log(2 * modes) - log, 1.0))
        return 2 * xi * ratio, xi

    def units(
        self, rc: NDArray | float, length: float, n: int, is_same: bool, kappa: float = 0.0
    ) -> tuple[NDArray | float, NDArray | float]:
        """Return the units of `truncation` and of the second estimate of `window.alias`, over the predicted size U.

        U is √Q/l for laplace and 1.7 √Q/l for the single layer, for n random sources in a box of mean side l; Yukawa
        kernels reach only some of them, and U is √(2πQ/(κV)) if that is less.  For the double layer and gradients U is
        √(S Q/(V d)), d = l/n^(1/3) and S = `steep`, where the closest pairs dominate, and √(S Q)/l² far from all
        sources; the former is used if targets are the sources (`is_same`), else the geometric mean.  Screening
        multiplies both by ((1 + κd/2) exp(−2κd))^(1/2).  Cubic layers have their units in `choice.sizes.Size`.

        Parameters
        ----------
        rc
            Cutoffs.
        length, n, same
            l, the number of sources, and True if they are the targets.
        kappa
            κ of a Yukawa kernel.
        """
        n = max(n, 1)
        if self.steep:
            crowding = n ** (1 / 6 if is_same else 1 / 12)
            decay = kappa * length / n ** (1 / 3)
            size = np.sqrt(self.steep * (1 + 0.5 * decay)) * np.exp(-decay) * crowding
            return np.sqrt(length / rc) / size, (length / rc) ** 2 / (np.sqrt(n) * size)
        size = self.size * min(1.0, np.sqrt(2 * np.pi / max(kappa * length, 1e-9)))
        return np.sqrt(rc / length) / size, length / (rc * np.sqrt(n)) / size

    def __str__(self) -> str:
        return self.name


def _tables_laplace(rest: Rest) -> Values:
    return np.sqrt(4 * np.pi / 3) * rest(F)


def _tables_laplace_grad(rest: Rest) -> Values:
    return np.sqrt(4 * np.pi / 5) * 2 * rest(H)


def _tables_stokes_sl(rest: Rest) -> Values:
    return np.sqrt(4 * np.pi / 3) * (rest(D) + 1.5 * rest(E))


def _tables_stokes_dl(rest: Rest) -> Values:
    return np.sqrt(4 * np.pi / 5) * (1.8 * (3 * rest(E) + 2 * rest(G)) + 4 / 3 * rest(G))


def _tables_stokes_grad(rest: Rest) -> Values:
    return np.sqrt(4 * np.pi / 5) * (5.7 * rest(E) + 3.2 * rest(G))


def _tables_stokes_dipole(rest: Rest) -> Values:
    return _tables_stokes_grad(rest) / np.sqrt(3)


# Aliases of spreading the strengths themselves; the third row is for coincident points.
def _alias_laplace(c: float, w0: Values, w1: Values, w2: Values) -> list[Values]:
    zeros = np.zeros_like(w0)
    return [48 * 1.0 / c * w2, zeros, 1.0 * np.sqrt(24.0) / np.pi * c * w1, zeros]


def _alias_stokes_sl(c: float, w0: Values, w1: Values, w2: Values) -> list[Values]:
    zeros = np.zeros_like(w0)
    return [48 * (8 / 3) / c * w2, zeros, 4 / 3 * np.sqrt(24.0) / np.pi * c * w1, zeros]


# Modes times k.  These kernels are odd, and the aliases of spreading and gathering are equal, so a source has no field
# at itself.
def _alias_laplace_grad(c: float, w0: Values, w1: Values, w2: Values) -> list[Values]:
    zeros = np.zeros_like(w0)
    return [48 * 1.0 * c * w0, zeros, zeros, zeros]


def _alias_laplace_slopes(c: float, w0: Values, w1: Values, w2: Values) -> list[Values]:
    """Return the rows of a sum whose gradient is gathered with the window's slopes.

    A gathered mode has the wave number of its alias along one axis.  A source's own field would cancel if the modes
    were multiplied by k; here the difference of the two wave numbers is left.
    """
    row = np.sqrt(24.0) / (2 * np.pi) * c**2 * w1
    return [48 * c * w0, 24 * c * w2, row, row]


def _alias_stokes_grad(c: float, w0: Values, w1: Values, w2: Values) -> list[Values]:
    """Return the rows of a sum whose gradient is gathered with the window's slopes, as `_alias_laplace_slopes`."""
    row = 4 / 3 * np.sqrt(24.0) / (2 * np.pi) * c**2 * w1
    return [48 * (8 / 3) * c * w0, 24 * (8 / 3) * c * w2, row, row]


def _alias_stokes_dipole(c: float, w0: Values, w1: Values, w2: Values) -> list[Values]:
    """Return the rows of force dipoles: odd, as `_alias_laplace_grad`."""
    zeros = np.zeros_like(w0)
    return [48 * (8 / 9) * c * w0, zeros, zeros, zeros]


def _alias_spin(c: float, w0: Values, w1: Values, w2: Values) -> list[Values]:
    """Return the rows of half the curl of the single layer: odd, as `_alias_laplace_grad`."""
    zeros = np.zeros_like(w0)
    return [48 * (2 / 3) * c * w0, zeros, zeros, zeros]


def _alias_spin_of_torques(c: float, w0: Values, w1: Values, w2: Values) -> list[Values]:
    """Return the rows for angular velocities by torques, over a wave number: even, at most k²/3 of `_alias_laplace`."""
    zeros = np.zeros_like(w0)
    return [48 * (2 / 3) * c * w0, zeros, 2 / 3 * np.sqrt(24.0) / np.pi * c**2 * w1, zeros]


def _tables_spin(rest: Rest) -> Values:
    return np.sqrt(4 * np.pi / 5) * 2 * np.sqrt(2 / 3) * rest(H)


def _alias_dipole(c: float, w0: Values, w1: Values, w2: Values) -> list[Values]:
    """Return the rows of source dipoles from the integrals of Φ²k and Φk: two thirds of k² times `_alias_laplace`."""
    zeros = np.zeros_like(w0)
    return [48 * (2 / 3) * c**3 * w0, zeros, 2 / 3 * np.sqrt(24.0) / np.pi * c**3 * w1, zeros]


def _tables_dipole(rest: Rest) -> Values:
    return np.sqrt(4 * np.pi) * (4 / np.sqrt(3) * rest(H) + 4 * np.sqrt(2 / 21) * rest(K))


def _alias_stokes_dl(c: float, w0: Values, w1: Values, w2: Values) -> list[Values]:
    """Return the rows of a sum that is spread with the window's slopes.

    Means over random directions of q and n: 7/9 of the kernel's square, 16/27 of that of q (n·k) + n (q·k) projected
    across k, and its root 0.77; of the projection itself 2/3.
    """
    zeros = np.zeros_like(w0)
    return [96 * 7 / 9 * c * w0, 96 * 16 / 27 * c * w2, zeros, np.sqrt(1.5) * 4 / np.pi * 0.77 * c**2 * w1]


LAPLACE = Layer(
    "laplace", (1.22709225, -0.43302799, 1.47783474, -3.41173375), (1.0, -2), _tables_laplace, _alias_laplace,
)  # fmt: skip
LAPLACE_GRAD = Layer(
    "laplace_grad", (1.90735336, 0.49866589, -0.13066828, -0.04657372), (2.0, 0), _tables_laplace_grad,
    _alias_laplace_grad, steep=22.8,
)  # fmt: skip
LAPLACE_SLOPES = replace(LAPLACE_GRAD, name="laplace_slopes", alias=_alias_laplace_slopes, own=0.2)
STOKES_SL = Layer(
    "stokes_sl", (1.59742622, 1.03955506, -0.69034805, 1.16075614), (np.sqrt(8 / 3), 0), _tables_stokes_sl,
    _alias_stokes_sl, profiles.phi_stokes, np.sqrt(8 / 3), size=1.7,
)  # fmt: skip
STOKES_DL = Layer(
    "stokes_dl", (0.51516654, 3.0181837, -2.07648842, 7.58332316), (np.sqrt(112 / 9), 2), _tables_stokes_dl,
    _alias_stokes_dl, profiles.phi_stokes, np.sqrt(28 / 9), steep=91.0,
)  # fmt: skip
#: Velocity by torques, or angular velocity by forces: at most half of the gradient's square.
SPIN = Layer(
    "spin", (0.07095694, 3.02364259, -2.01462036, 7.1919357), (np.sqrt(16 / 3), 2), _tables_spin, _alias_spin,
    profiles.phi_stokes, np.sqrt(2 / 3), steep=15.2,
)  # fmt: skip
SPIN_OF_TORQUES = replace(SPIN, name="spin of torques", alias=_alias_spin_of_torques, turned=True)
#: Source dipoles: beyond ε the gradient of the dipole of laplace.
REGULARISED_DIPOLE = Layer(
    "regularised_dipole", (1.72513178, 2.00794824, -0.65697966, 1.05983379), (np.sqrt(32 / 3), 2), _tables_dipole,
    _alias_dipole, profiles.phi_softened_dipole, steep=1.0, cubic=True,
)  # fmt: skip
#: Force dipoles: a third of the gradient's square, for as large a sum of squares.
STOKES_DIPOLE = Layer(
    "stokes_dipole", (-0.13177511, 3.02364259, -2.01462036, 7.1919357), (np.sqrt(32 / 9), 2), _tables_stokes_dipole,
    _alias_stokes_dipole, profiles.phi_stokes, np.sqrt(8 / 9), steep=25.3,
)  # fmt: skip
STOKES_GRAD = Layer(
    "stokes_grad", (0.41753103, 3.02364259, -2.01462036, 7.1919357), (np.sqrt(32 / 3), 2), _tables_stokes_grad,
    _alias_stokes_grad, profiles.phi_stokes, np.sqrt(8 / 3), steep=76.0,
)  # fmt: skip
