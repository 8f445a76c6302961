"""Predicted size U of a sum of random strengths at random points, and its modes and pairs.

Kernels like 1/r are long-ranged: in thin boxes the modes along the long sides are most of U.  For sides a <= b <= c

    U² = Q (2.165 c⁴ + 3.776 b³c + 10.34 a²bc) / (π² V²)

with three periodic directions: 16π²/V² Σ 1/k⁴ over the modes along c, those along b, and the others, where each sum but
the first is an integral.  With a free direction of length f over periodic sides p and q the first term is that of the
field of a plane, −2π|z|/pq: 0.05 (2πf/pq)²; with two free directions that of a line, −2 ln ρ/p.  A screened kernel has
1/(k² + κ²), and planes and lines whose fields fall off: at most (2π/κpq)²/κf, and 4π/κ²p² over the area across.
Along a long side one or two modes are most of U, and those of random strengths may be small: of the mean square beyond
that in a cube the `LEAST_SQUARE` is taken that 97 of 100 sums exceed.
In free space U² is the mean of 1/r² over the pairs of a box, with exp(−2κr) if screened.

Regularised source dipoles have at distances r, s² = r² + ε², a field of the mean square (4ε⁴ + 2r⁴) d²/s¹⁰ over
directions.  Its integral between two radii is, with r = ε cot φ, 4π/ε³ times that of 4 cos²φ sin⁶φ + 2 cos⁶φ sin²φ; the
outer radius is that of a ball as large as the box.  The field 2d/ε³ of narrow blobs at themselves would leave fields of
others inaccurate, and does not count.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import k1

from parki.ewald.choice.question import Question
from parki.ewald.kernel import Kernel
from parki.ewald.split import profiles
from parki.ewald.split.layers import Layer
from parki.perfmodels.select import Domain

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
#: Least size of a sum like 1/r² of random points over its estimate, because the closest pairs dominate.
EASE = 1.59
CLOSEST = 0.7  # distance of the closest of sources of density 1: 0.55 of random ones, 0.9 of spheres in a liquid
MOST_CLOSEST = 0.45  # most of it over the side of the box
LEAST_CANCELLING = 1e-6  # least size of dipoles that cancel over that of random ones
LEFT = 0.1  # share of the field of a cluster of dipoles whose sum is zero
NARROW = 0.15  # width of blobs over their distance, below which their own field is larger than that of a crystal
BALL = 0.62  # radius of a ball of volume 1
MOST_DECAY = 30.0  # range of an integrand that falls as exp(−2t)
ALL_MODES = 45 * math.pi**2 / 512  # ∫ t⁴ K₁(t)² dt
ALIKE = 30.0  # squared modes of a body that points of one sign fill, over their estimate beside random ones
LEAST_SQUARE = 0.04  # squared field of planes of random strengths over its mean, exceeded by 97 of 100 sums
LEAST_TURNED = 1e-3  # least factor of a layer whose size is that of spheres by themselves
_LEAST_SHARE = 0.05  # least pairs beyond rc over those of a periodic box, because points may be at the box's ends


@dataclass(frozen=True)
class Size:
    """Scale of a sum's errors: kernel, domain, number of sources `n`; `same` if the targets are the sources.

    `random` is 1 for random points, 0 for a crystal; `found` is the size of each layer over that of random strengths,
    empty if unknown; `height` the share of the free side of two periodic directions that points extend over;
    `clustered` is 1 for targets away from a cluster of sources, 0 for random points.
    """

    kernel: Kernel
    domain: Domain
    n: int
    same: bool
    random: float = 0.0
    found: tuple[float, ...] = ()
    height: float = 1.0
    clustered: float = 0.0

    @classmethod
    def of(cls, question: Question, sizes: tuple[float, ...] = ()) -> Self:
        """Return the scale of the errors of a question that is `resolved`, with `sizes` as `found`."""
        place = question.arrangement
        regular = place.regular if place else 0.0
        random, clustered = 1.0 - max(0.0, regular), 0.0 if question.same else min(1.0, max(0.0, -2.0 * regular))
        height = place.height if place else 1.0
        return cls(
            question.kernel, question.domain, question.n_sources, question.same, random, sizes, height, clustered
        )

    @cached_property
    def length(self) -> float:
        """Return the side of a cube of the same volume, where sides are at least the points' distance."""
        n, distance = max(self.n, 1), 0.0
        for _ in range(30):
            room = float(np.prod(np.maximum(self.domain.box, distance)))
            distance = (room / n) ** (1 / 3)
        return room ** (1 / 3)

    @cached_property
    def potential(self) -> float:
        """Return U²/Q of the kernel 1/r."""
        volume = math.prod(self.domain.box)
        periodic = sorted(self.domain.box[: self.domain.periodicity])
        lengths = sorted(self.domain.box[self.domain.periodicity :])
        match periodic:
            case a, b, c:
                u, v, w = (self._screening(side) for side in periodic)
                longest = 2.165 * _least(c**4, volume ** (4 / 3)) / w**2
                modes = longest + 3.776 * b**3 * c / v**1.5 + 10.34 * a**2 * b * c / u**0.5
                return modes / (np.pi * volume) ** 2
            case p, q:
                (f,) = lengths
                flat = 1.97 * _least((self.height * f / (p * q)) ** 2, 1 / (p * q))
                if self.kernel.kappa:
                    flat = min(flat, 4 * np.pi**2 / (self.kernel.kappa**3 * f * (p * q) ** 2))
                line = 3.29 / p**2 / (1 + 8.6 * f / q) / self._screening(p) ** 1.5
                return flat + line + 1.047 / (q * max(f, p)) / self._screening(q) ** 0.5
            case (p,):
                flat, area = 1 / p**2, math.prod(lengths)
                if self.kernel.kappa:
                    flat = min(flat, 4 * np.pi / ((self.kernel.kappa * p) ** 2 * area))
                return flat + 1 / (p * math.sqrt(area)) / self._screening(p) ** 0.5
        r, weights = 0.5 * (_NODES + 1) * np.linalg.norm(self.domain.box), 0.5 * _WEIGHTS
        pairs = self._share(r) * np.exp(-2 * self.kernel.kappa * r)
        square = 4 * np.pi * float(weights @ pairs) * float(np.linalg.norm(self.domain.box)) / volume
        return max(square, 2 * np.pi / (max(self.kernel.kappa, 1.0) * volume) * _LEAST_SHARE)

    def _screening(self, side: float) -> float:
        """Return 1 + κ²/k² for the least mode along a side."""
        return 1 + (self.kernel.kappa * side / (2 * np.pi)) ** 2

    @cached_property
    def least_mode(self) -> float:
        """Return the radius of the ball in k-space without modes, beyond which an integral replaces their sum."""
        longest = self.length if self.domain.periodicity == 3 else max(self.domain.box)
        wave = (6 * np.pi**2) ** (1 / 3) / longest
        if self.kernel.cubic:
            return wave
        return min(wave, 8 / (math.prod(self.domain.box) * self.potential))

    @property
    def epsilon(self) -> float:
        """Return ε, at most the size of the box: both sums and errors of wider blobs are smaller."""
        return min(self.kernel.parameter(), BALL * self.length)

    @cached_property
    def dipoles(self) -> float:
        """Return U²/Q of regularised source dipoles, without the field of a dipole at itself."""
        return self._random_dipoles * self.cancelling**2

    @cached_property
    def cancelling(self) -> float:
        """Return U of dipoles over that of random ones."""
        crystal, cluster = (min(1.0, square / self._random_dipoles) for square in (self._alternating, self._distant))
        return max(crystal ** (0.5 - 0.5 * self.random) * cluster ** (0.5 * self.clustered), LEAST_CANCELLING)

    @cached_property
    def _random_dipoles(self) -> float:
        """Return U²/Q of random dipoles."""
        volume, epsilon = math.prod(self.domain.box), self.epsilon
        closest = min(CLOSEST / max(1, self.n) ** (1 / 3), MOST_CLOSEST) * self.length
        low, high = math.atan(epsilon / (BALL * self.length)), math.atan(epsilon / closest)
        sine, cosine = (f(low + 0.5 * (high - low) * (_NODES + 1)) ** 2 for f in (np.sin, np.cos))
        integral = 0.5 * (high - low) * float(_WEIGHTS @ (sine * cosine * (4 * sine**2 + 2 * cosine**2)))
        return 4 * np.pi * integral / (epsilon**3 * volume) * _share_beyond(epsilon * self.least_mode)

    @property
    def _distant(self) -> float:
        """Return U²/Q of a cluster of dipoles that nearly cancel, at the far end of the box."""
        reach = np.array(self.domain.box)
        reach[: self.domain.periodicity] *= 0.5
        return float(2 * LEFT**2 / (reach @ reach + self.epsilon**2) ** 3)

    @property
    def _alternating(self) -> float:
        """Return U²/Q of dipoles that alternate along all axes of a crystal."""
        if self.random == 1:
            return math.inf
        density, spacings = self.n / math.prod(self.domain.box), np.array(self.domain.box) / max(1, self.n) ** (1 / 3)
        if self.same and self.epsilon < NARROW * min(spacings):
            return math.inf
        counts = np.arange(-3.0, 3.0) if self.same else np.array([-1.0, 0.0])
        waves = [2 * np.pi * (counts + 0.5) / spacing for spacing in spacings]
        k2 = np.sum(np.square(np.meshgrid(*waves)), axis=0)
        modes = profiles.softened_dipole(k2, self.epsilon)
        sum_ = (2 / 3 * modes.sum()) ** 2 if self.same else 2 / 3 * np.square(modes).sum()
        return float(density**2 / max(1, self.n) * (4 * np.pi) ** 2 * sum_)

    def units(self, layer: Layer, rc: NDArray | float) -> tuple[NDArray | float, NDArray | float]:
        """Return the units of `Layer.truncation` and of the second estimate of `window.alias`, over U."""
        if layer.cubic:
            size = math.sqrt(self.dipoles)
            unit, coincidence = layer.unit(rc, math.prod(self.domain.box)), rc**-3.0 / math.sqrt(max(self.n, 1))
        else:
            unit, coincidence = layer.units(rc, self.length, self.n, self.same, self.kernel.kappa)
            size = self._larger(layer)
        if layer.steep and not self.kernel.steep:
            size *= EASE**self.random
        if self.found:
            size *= self.found[self.kernel.layers.index(layer)]
        if self.same and self.domain.edges in (None, self.domain.box):
            coincidence = layer.own * coincidence
        return unit / size, coincidence / size

    def at(self, layer: Layer, rc: float) -> Layer:
        """Return a layer with the kernel's ε over rc in steps, if it is cubic."""
        return replace(layer, width=2.0 ** (round(4 * math.log2(self.epsilon / rc)) / 4)) if layer.cubic else layer

    def turned(self, layer: Layer, wave: NDArray | float) -> NDArray | float:
        """Return the factor of errors over U of a layer that is `turned`, for errors of a wave number or a rate.

        Half a curl multiplies errors by half of it, and U by half of the inverse distance d of the closest source, or
        apart from the sources of l; a sphere's own angular velocity, 1/a³, adds to U.
        """
        if not layer.turned:
            return 1.0
        distance = self.length / (max(self.n, 1) ** (1 / 3) if self.same else 1.0)
        spin = (distance / self.kernel.parameter()) ** 6 / 2.1 if self.same else 0.0
        return np.maximum(LEAST_TURNED, wave * distance / math.sqrt(1.0 + spin))

    def alike(self, layer: Layer, wave: float) -> float:
        """Return the factor of a window's errors near the wave number kmax if strengths have one sign.

        Points that fill a box with free directions, or a part of a periodic one, have besides their random modes those
        of the body that they fill: along its axes 2N/kL, in a width of 2π/L across.  Potentials are then larger, too;
        gradients are not.
        """
        crowd = max((1.0, *self.domain.crowding[:1]))
        if self.kernel.gather == "values" or not layer.steep or (self.domain.periodicity == 3 and crowd == 1.0):
            return 1.0
        sides = wave * np.array(self.domain.box)
        across = np.minimum(1.0, 2 * np.pi / sides)
        share = float(np.prod(across) * np.sum((2 / sides) ** 2 / across))
        return math.sqrt(1.0 + ALIKE * self.n * share * crowd ** (4 / 3))

    def truncation(self, layer: Layer, rc: NDArray, decay: NDArray | float = 0.0) -> NDArray:
        """Return the unit of `Layer.truncation` for the pairs beyond rc.

        The square of the near field decays beyond rc as exp(−`decay` (r/rc − 1)).  A source's own images at the
        distance of a short side have equal errors: two of them count in addition to its random pairs.
        """
        pairs = np.maximum(self._share(rc), _LEAST_SHARE)
        if not layer.steep and self.same:
            for side in self.domain.box[: self.domain.periodicity]:
                share = np.exp(-decay * np.maximum(side / rc - 1.0, 0.0))
                pairs = pairs + decay / np.pi * math.prod(self.domain.box) / (max(self.n, 1) * rc**3) * share
        return self.units(layer, rc)[0] * np.sqrt(pairs)

    def _larger(self, layer: Layer) -> float:
        """Return U over the U of `Layer.units`, which assumes a cubic box."""
        if layer.steep:
            return self._steeper() if self.domain.periodicity and not self.kernel.kappa else 1.0
        screened = min(1.0, 2 * math.pi / max(self.kernel.kappa * self.length, 1e-9))
        return max(1.0, self.length * math.sqrt(self.potential / screened))

    def _steeper(self) -> float:
        """Return `_larger` for kernels like 1/r², due to planes and lines of images."""
        a, b, _ = sorted(self.domain.box)
        distance = self.length / max(self.n, 1) ** (1 / 3)
        excess = 0.0
        if self.domain.periodicity > 1:
            p, q = (a, b) if self.domain.periodicity == 3 else sorted(self.domain.box[:2])
            excess += 0.58 / (p * q) ** 2
        p = min(self.domain.box[: self.domain.periodicity])
        area = math.prod(self.domain.box) / p
        excess += 0.88 / area * max(0.0, 1 / p**2 - 1 / distance**2)
        crowd = max(self.n, 1) ** (1 / 3 if self.same else 1 / 6)
        return math.sqrt(1 + excess * self.length**4 / crowd)

    def _share(self, rc: NDArray) -> NDArray:
        """Return pairs at distance rc over those of a periodic box; 0 beyond the diagonal in free space."""
        first_axis = self.domain.periodicity
        fractions = np.multiply.outer(rc, _directions()[first_axis:] / np.array(self.domain.box[first_axis:])[:, None])
        return np.prod(np.maximum(1 - fractions, 0.0), axis=-2).mean(axis=-1)


def _least(square: float, square_in_cube: float) -> float:
    """Return a mean square whose part beyond that in a cube is the least one of random strengths."""
    return LEAST_SQUARE * square + (1.0 - LEAST_SQUARE) * min(square, square_in_cube)


def _share_beyond(x: float) -> float:
    """Return ∫ t⁴ K₁(t)² dt from x over that from 0, the share of modes of regularised dipoles with εk > x."""
    t = x + 0.25 * np.square(_NODES + 1) * MOST_DECAY
    values = 0.5 * (_NODES + 1) * MOST_DECAY * t**4 * k1(np.maximum(t, 1e-9)) ** 2
    return float(_WEIGHTS @ values) / ALL_MODES


@lru_cache(maxsize=1)
def _directions() -> NDArray[np.float64]:
    """Return absolute components (3, …) of unit vectors spread evenly over the sphere."""
    i = np.arange(96) + 0.5
    z, angle = 1 - i / 48, np.pi * (1 + 5**0.5) * i
    sine = np.sqrt(1 - z * z)
    return np.abs(np.array([sine * np.cos(angle), sine * np.sin(angle), z]))
