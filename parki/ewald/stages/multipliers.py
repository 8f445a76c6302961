"""Fourier side of a sum: the modes, their padding, and their scalar multipliers.

With the spread strengths φ̂, the far field is u = Σ w w w · F⁻¹[K̂(k) d₀ d₁ d₂ φ̂], K̂ as in `kernels/multiplier` with

    g = green(k) · profile(k) · d₀ d₁ d₂,     d = h / (T ŵ²) on an axis of T points

Stokes kernels with a double layer spread the four components

    F = Σ_j [f_j W + (q_j (n_j·∇) + n_j (q_j·∇)) W](g − y_j),     τ = Σ_j (q_j·n_j) W(g − y_j),

∇ with respect to g, and multiply them by g [F̂ − k (k·F̂)/k² + i k τ̂].  Modes with k² > kmax² are dropped, always
including those at the Nyquist wave number, because kmax < π/h on every axis.

Planes of modes with one kx are transformed in y and z together.  In free directions each class of planes has its own
period.  Images of a mode that decays as exp(−κ|z|) must be further away than the box is wide by s/κ, s = ln 1/ε + 3, or
for Stokes kernels, whose modes have a factor 1 + κ|z|, by (s + ln(1 + s))/κ; images of a truncated Green's function by
R + rc.

Sources: Hasimoto 1959 (single layer); the identity T(q, n) = (n·∇)S q + (q·∇)S n + 2(q·n)∇(1/r) (double layer);
Shamshirgar, Bagge, Tornberg 2021 (periods of the modes).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from parki import engine
from parki.engine.steps import Handle, Step, constant, state
from parki.ewald.choice.params import Parameters
from parki.ewald.split import window
from parki.ewald.stages import green
from parki.perfmodels import select

WASTE = 1.12  # largest ratio of a plane's points to the points that it needs, for planes that share a class
AT_ONCE = 1 << 14  # modes of a table that NumPy computes together: their numbers stay in a cache
LARGE = 1 << 14  # modes of a table that takes NumPy longer than a launch of a workunit


@dataclass(frozen=True)
class Planes:
    """Planes of modes with the same lengths.

    Attributes
    ----------
    modes
        Indices along x, neighbours of each other.
    rows, length
        Points along y and along z, padded.
    """

    modes: tuple[int, ...]
    rows: int
    length: int


@dataclass(frozen=True)
class Columns(Planes):
    """Single lines of modes along z, with numbers `modes` and indices `waves` (lines, 2) along x and y."""

    waves: NDArray[np.int64]


class Some(NamedTuple):
    """Classes of planes, or of single lines along z, and the places of their modes' lines in a grid.

    The line of a mode's image is as far before the end as the mode's own line is after the beginning.
    """

    classes: Sequence[Planes]
    place: Mapping[int, int]

    @classmethod
    def of(cls, classes: Sequence[Planes]) -> Self:
        """Return planes whose lines have the places of their modes' indices."""
        return cls(classes, {m: m for c in classes for m in c.modes})


def period(p: Parameters) -> int:
    """Return the number of points along x, with padding in a free direction."""
    return p.grid[0] if p.periodicity else _even(_needed(p, 0, 0.0))


def planes(p: Parameters, with_images: bool = False) -> list[Planes]:
    """Return all planes of modes in their classes; `with_images` adds those of negative kx, next to their images."""
    points = period(p)
    step = 2 * math.pi / (points * p.h[0])
    last = min(int(p.kmax / step), (points - 1) // 2)
    if p.skew is not None:  # k² is not the sum of squares
        last = (points - 1) // 2
    classes: list[Planes] = []
    if p.periodicity in (0, 3):
        sizes = tuple(p.grid[1:]) if p.periodicity else tuple(_even(_needed(p, axis, 0.0)) for axis in (1, 2))
        classes.append(Planes(tuple(range(last + 1)), *sizes))
    else:
        k_min = step / math.hypot(1.0, reciprocal(p)[0])  # least wave number along both periodic axes, for any ky
        plane_sizes = [_sizes(p, k_min * mode) for mode in range(last + 1)]
        first = 0
        while first <= last:
            end = first + 1
            # The mode with kx = 0 is alone, because its multiplier differs.
            while first and end <= last and math.prod(plane_sizes[first]) <= WASTE * math.prod(plane_sizes[end]):
                end += 1
            classes.append(Planes(tuple(range(first, end)), *plane_sizes[first]))
            first = end
    if with_images:
        zero_plane = Planes((0,), classes[0].rows, classes[0].length)  # the only plane that is its own image
        pairs = [Planes(tuple(i for m in c.modes if m for i in (m, points - m)), c.rows, c.length) for c in classes]
        classes = [zero_plane, *(c for c in pairs if c.modes)]
    return classes


def disc(p: Parameters) -> NDArray[np.int64]:
    """Return the indices (lines, 2) along x and y of modes of two periodic axes that have multipliers.

    A mode and its image are listed once; the constant mode is the first.
    """
    kx, ky = (wave_numbers(count, h) for count, h in zip((period(p), p.grid[1]), p.h, strict=False))
    last = max(planes(p)[-1].modes)
    inside = kx[: last + 1, None] ** 2 + ky**2 <= p.kmax**2
    inside[0, p.grid[1] // 2 + 1 :] = False
    return np.argwhere(inside)


def columns(p: Parameters, waves: NDArray[np.int64], numbers: NDArray[np.int64]) -> list[Columns]:
    """Return single lines of modes (lines, 2) by their numbers, in classes with the lengths of planes."""
    classes = []
    for c in planes(p):
        mask = (waves[:, 0] >= c.modes[0]) & (waves[:, 0] <= c.modes[-1])
        if mask.any():
            classes.append(Columns(tuple(numbers[mask].tolist()), 1, c.length, waves[mask]))
    return classes


def _sizes(p: Parameters, kx: float) -> tuple[int, int]:
    """Return the points along y and z of a plane."""
    if p.periodicity == 1:
        return _even(_needed(p, 1, kx)), _even(_needed(p, 2, kx))
    # The plane with kx = 0 has a row with ky = 0, and one with the least ky.
    points = max(_needed(p, 2, 0.0), _needed(p, 2, 2 * math.pi / p.box[1])) if kx == 0 else _needed(p, 2, kx)
    return p.grid[1], _even(points)


def _needed(p: Parameters, axis: int, kappa: float) -> float:
    """Return the points of a free axis for a mode that decays as exp(−κ|z|), or is truncated, κ = 0."""
    side = p.box[axis]
    decay = math.log(1 / max(p.tolerance, 1e-15)) + 3
    if p.kernel.spectrum.growing:
        decay += math.log(1 + decay)  # (1 + κ|z|) exp(−κ|z|)
    reach = decay / kappa if kappa else green.radius(p) + p.rc
    return max((side + reach) / p.h[axis], p.grid[axis] + p.P)


def _even(points: float) -> int:
    """Return the next number of points that transforms well.

    Raises
    ------
    ValueError
        If the grid would be longer than all such numbers.
    """
    sizes = select.even_sizes()
    if points > sizes[-1]:
        raise ValueError(
            f"rc is so short that a side of the grid has {points:.3g} points; expected at most {sizes[-1]}."
        )
    return int(sizes[np.searchsorted(sizes, math.ceil(points - 1e-9))])


def wave_numbers(count: int, spacing: float) -> NDArray[np.float64]:
    """Return the wave numbers of `count` points, in the order of transforms."""
    return np.fft.fftfreq(count, spacing / (2 * np.pi))


class Factors(NamedTuple):
    """Wave numbers of a class along the three axes, and the window's factors there, by mode number.

    The axes are mode, |ky| and |kz|; in a triclinic cell, where k² mixes them, mode, ky and kz.  Single lines have wave
    numbers along x and y by line.  `waves` are the wave numbers of all modes.
    """

    k: tuple[NDArray[np.float64], ...]
    d: tuple[NDArray[np.float64], ...]
    waves: list[NDArray]
    modes: int

    @classmethod
    def of(cls, p: Parameters, c: Planes) -> Self:
        """Return the wave numbers and factors of a class."""
        lengths = (period(p), p.grid[1] if isinstance(c, Columns) else c.rows, c.length)
        k = [wave_numbers(count, h) for count, h in zip(lengths, p.h, strict=True)]
        factors = []
        for axis, (count, h) in enumerate(zip(lengths, p.h, strict=True)):
            factor = h / (count * window.transform(p.P, p.beta, k[axis], h) ** 2)
            factor[count // 2] *= count % 2  # no Nyquist mode
            factors.append(factor)
        half = p.skew is None
        x, y, z = np.array(c.modes), *(slice(n // 2 + 1 if half else None) for n in (c.rows, c.length))
        if isinstance(c, Columns):
            x, y = c.waves.T
        k_of_axes, d = ([a[index] for a, index in zip(values, (x, y, z), strict=True)] for values in (k, factors))
        waves = (k_of_axes[0], k_of_axes[1] if isinstance(c, Columns) else k[1], k[2])
        return cls(tuple(k_of_axes), tuple(d), [np.ascontiguousarray(a, p.far) for a in waves], math.prod(lengths))


def tables(p: Parameters, c: Planes) -> tuple[dict[str, Handle], list[Step]]:
    """Return the scalar multipliers of a class as ``"green"``, its wave numbers, and the steps that fill in large ones.

    Modes without a periodic part have another Green's function, which only the host knows.
    """
    factors = Factors.of(p, c)
    waves = {name: constant(name, a) for name, a in zip(("kx", "ky", "kz"), factors.waves, strict=True)}
    shape = (len(factors.k[0]), 1 if isinstance(c, Columns) else len(factors.k[1]), len(factors.k[2]))
    is_whole = p.periodicity == 3 or (p.periodicity > 0 and bool(np.all(factors.k[0] != 0)))
    if math.prod(shape) < LARGE or not is_whole:
        return waves | {"green": constant("green", table(p, c))}, []
    multipliers = state("green", shape, p.far, zero=False)
    spectrum, power = p.kernel.spectrum, constant("profile", green.profile(p))
    kappa = p.kernel.kappa if spectrum.screened else 0.0
    numbers = [p.kernel.scale * spectrum.weight, kappa**2, p.kmax**2, 1 / factors.modes, *reciprocal(p)]
    args: dict[str, Any] = {
        "green": multipliers,
        "power": power,
        "number": constant("numbers of modes", np.array(numbers)),
    }
    for name, k, d in zip("xyz", factors.k, factors.d, strict=True):
        args |= {
            f"k{name}": constant(f"wave numbers along {name}", k),
            f"d{name}": constant(f"window along {name}", d),
        }
    slots = {"SINGLE": isinstance(c, Columns), "SKEW": p.skew is not None, "ROOT": p.kernel.root}
    slots |= {"SOFTENED": True} if spectrum.softened else {}
    slots |= {"FLAT": True} if spectrum.flat else {}
    unit = engine.kernel("modes", "plane_multipliers", real=p.far, **slots)
    args |= {"rows": shape[1], "columns": shape[2], "terms": len(power)}
    return waves | {"green": multipliers}, [Step("cnv", unit, shape[0] * shape[1], args)]


def table(p: Parameters, c: Planes, slope: bool = False) -> NDArray:
    """Return the scalar multipliers of a class, by the axes of `Factors`, in `p.far`.

    With `slope` return their derivatives by k², without that of the window, and 0 for modes without a periodic part.
    For noise return the square roots that take white noise on the grid to the modes' noise.
    """
    factors, column = Factors.of(p, c), np.s_[:, None, None] if isinstance(c, Columns) else np.s_[None, :, None]
    (kx, ky, kz), (dx, dy, dz) = factors.k, factors.d
    scalars = np.empty((len(kx), 1 if isinstance(c, Columns) else len(ky), len(kz)), p.far)
    step = max(1, AT_ONCE // scalars[0].size)
    for modes in (slice(first, first + step) for first in range(0, len(kx), step)):
        along_y = modes if isinstance(c, Columns) else slice(None)
        part = _scalars(p, c, kx[modes, None, None], ky[along_y][column], kz[None, None, :], slope)
        part *= dx[modes, None, None] * dy[along_y][column] * dz[None, None, :]
        if p.kernel.root:  # transforms there and back multiply by the number of points
            part = np.sqrt(np.maximum(part, 0.0) / factors.modes)
        scalars[modes] = part
    return scalars


def _scalars(
    p: Parameters, c: Planes, kx: NDArray, ky: NDArray, kz: NDArray, slope: bool = False
) -> NDArray[np.float64]:
    """Return the Green's function times the profile, or the derivative by k², 0 beyond kmax."""
    if p.skew is not None:
        s01, s02, s12 = reciprocal(p)
        kx, ky = kx + s01 * ky + s02 * kz, ky + s12 * kz
    k2 = kx**2 + ky**2 + kz**2
    inside = k2 <= p.kmax**2
    values = k2[inside]
    flat = np.zeros(len(values), bool)  # modes without a periodic part
    if p.periodicity < 3:
        flat = np.logical_and.reduce([k == 0 for k in np.broadcast_arrays(kx, ky, kz)[: p.periodicity]] or [inside])[
            inside
        ]
    spectrum, rest = np.zeros_like(values), values[~flat]
    if slope:
        derivative = green.polynomial(np.polyder(green.profile(p)), 2 * rest / p.kmax**2 - 1)
        profile_part = 2 / p.kmax**2 * derivative * green.whole(p, rest)
        spectrum[~flat] = profile_part + green.factor(p, rest) * p.kernel.spectrum.slope(rest, p.kernel.kappa)
    else:
        spectrum[~flat] = green.whole(p, rest) * green.factor(p, rest)
        if flat.any():
            spectrum[flat] = green.truncated(p, values[flat], c.length * p.h[2])
    scalars = np.zeros(k2.shape)
    scalars[inside] = p.kernel.scale * spectrum
    return scalars


def reciprocal(p: Parameters) -> tuple[float, float, float]:
    """Return s01, s02, s12 of `kernels/convolve.py` for the lattice (l0, t01, t02), (0, l1, t12), (0, 0, l2)."""
    if p.skew is None:
        return 0.0, 0.0, 0.0
    (l0, l1, _), (t01, t02, t12) = p.box, p.skew
    s12 = -t12 / l1
    return -t01 / l0, -(t02 + t01 * s12) / l0, s12
