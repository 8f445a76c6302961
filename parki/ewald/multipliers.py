"""The Fourier side of a fully periodic sum: wave numbers, deconvolution factors, the profile as a polynomial.

With the spread strengths φ̂ = rfftn(φ), the far field is u = Σ w w w · irfftn(v̂), v̂ = K̂(k) d₀ d₁ d₂ φ̂ and

    laplace       K̂ φ̂ = (4π/k²) Φ q̂
    stokes_sl     K̂ φ̂ = (8π/k²) Φs [f̂ − k (k·f̂)/k²]
    stokes_comb   K̂ φ̂ = (8π/k²) Φs [F̂ − k (k·F̂)/k² + i k τ̂]

where stokes_comb spreads the four components

    F = Σ_j [f_j W + (q_j (n_j·∇) + n_j (q_j·∇)) W](g − y_j),     τ = Σ_j (q_j·n_j) W(g − y_j),

∇ with respect to g: minus the derivative by the source position that `window.fit` returns.  Modes with k = 0 and with
k² > kmax² are dropped.  As kmax < π/h on every axis, the bins at the Nyquist wave number are always among them, and
their factors are 0 too.

Sources: Hasimoto 1959 (single layer); the identity T(q, n) = (n·∇)S q + (q·∇)S n + 2(q·n)∇(1/r) (double layer).
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_legendre

from parki.ewald import profiles, radial, series, window

if TYPE_CHECKING:
    from parki.ewald.params import Parameters

Axis = tuple[NDArray, NDArray]


def axes(p: "Parameters") -> tuple[Axis, Axis, Axis]:
    """Return wave numbers and deconvolution factors h/ŵ² of each axis, in `p.dtype`.

    The lengths are M0, M1 and M2//2 + 1: the last axis is the half spectrum of `scipy.fft.rfftn`.
    """
    found = []
    for axis, (count, spacing) in enumerate(zip(p.grid, p.h, strict=True)):
        frequencies = np.fft.rfftfreq if axis == 2 else np.fft.fftfreq
        index = np.rint(frequencies(count, 1.0 / count))
        k = index * (2 * np.pi / (count * spacing))
        factor = spacing / window.transform(p.P, p.beta, k, spacing) ** 2
        factor[2 * np.abs(index) == count] = 0.0
        found.append((k.astype(p.dtype), factor.astype(p.dtype)))
    return tuple(found)


def profile(p: "Parameters") -> NDArray:
    """Return the profile as a polynomial in t = 2k²/kmax² − 1 on [−1, 1], highest power first, in `p.dtype`.

    It is Φ for laplace and Φs for the Stokes kernels, to a hundredth of the tolerance or to rounding.
    """
    split = profiles.profile(p.split, p.c, p.rc, p.xi)
    k = split.kmax * np.sqrt(0.5 * (series.points(int(0.4 * p.c) + 24) + 1.0))
    found = series.coefficients(split.phi(k) if p.kernel == "laplace" else split.phi_stokes(k))
    needed = series.degree(found, max(0.01 * p.tolerance, float(np.finfo(p.dtype).eps)))
    return np.ascontiguousarray(series.powers(found[: needed + 1]), dtype=p.dtype)


def background(p: "Parameters") -> float:
    """Return the constant that, times the sum of the strengths, is added to every result.

    It makes the mean over the box of near and far field zero (laplace: the uniform neutralising background; Stokes: no
    mean flow) exactly as the near field is cut at rc: −(1/V) ∫ K_near dV over the ball.  Up to the dropped tail this is
    2πΦ''(0)/V for laplace (times the net charge) and 0 for the Stokes kernels (times the net force Σ f; the double
    layer is odd and has none).  With equal strengths the tail is coherent, and this constant removes it.
    """
    nodes, weights = roots_legendre(48)
    r = 0.5 * p.rc * (nodes + 1.0)
    F, D, E, _ = radial.far_parts(profiles.profile(p.split, p.c, p.rc, p.xi), r)
    mean = 1 / r - F if p.kernel == "laplace" else 1 / r - D - r**2 * E + (1 / r + r**2 * E) / 3
    return float(-2 * np.pi * p.rc * np.sum(weights * r**2 * mean) / math.prod(p.box))
