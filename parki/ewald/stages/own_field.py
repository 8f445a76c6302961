"""Correction of a source's own field in the slopes of an Ewald sum: its largest wave on the grid is subtracted.

A mode k that is spread as itself and gathered as its alias k + 2π/h along an axis, and a mode that is spread as the
alias and gathered as itself, have slopes i (k + 2π/h) and i k.  At the source, at x on the axis, the sum of both and of
their images is −(4π/h) B sin(2πx/h) with B = (2π)⁻³ ∫ g(k) ŵ(k + 2π/h)/ŵ(k) d³k.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_legendre

from parki import engine
from parki.engine.steps import Handle, Step, constant
from parki.ewald.choice.params import Parameters
from parki.ewald.split import window
from parki.ewald.stages import green


def taken_off(p: Parameters, is_same: bool) -> bool:
    """Tell whether the own field of sources is subtracted: if targets are the sources, in boxes that are not skew."""
    return is_same and p.skew is None and any(layer.own < 1 for layer in p.kernel.layers)


@lru_cache(maxsize=64)
def sizes(p: Parameters) -> NDArray[np.float64]:
    """Return (4π/h) B of each axis (3,)."""
    nodes, weights = roots_legendre(96)
    t, half_weights = 0.5 * (nodes + 1.0), 0.5 * weights
    result = []
    for h in p.h:
        k = p.kmax * t
        k2 = k[:, None] ** 2 + (p.kmax**2 - k[:, None] ** 2) * t  # across the axis at each k
        modes = green.whole(p, k2) * green.factor(p, k2)
        integrals = 0.5 * (p.kmax**2 - k**2) * (modes @ half_weights)
        wave = 2 * math.pi / h
        base = window.transform(p.P, p.beta, k, h)
        aliases = sum(window.transform(p.P, p.beta, wave + sign * k, h) / base for sign in (1, -1))
        result.append(
            2 * wave * p.kernel.scale * p.kmax * float(half_weights @ (integrals * aliases)) / (2 * math.pi) ** 2
        )
    return np.array(result)


def step(p: Parameters, x: Handle, strengths: Handle, order: Handle, slopes: Handle) -> Step:
    """Return the step that subtracts the own field from slopes (3, n) of one right-hand side at sources order[j]."""
    unit = engine.kernel("own_field", "take_off", real=p.far, coord=p.dtype)
    args = {
        "x": x,
        "strength": strengths,
        "order": order,
        "u": slopes,
        "size": constant("own field", sizes(p).astype(p.far)),
    }
    args |= {f"s{d}": 1.0 / h for d, h in enumerate(p.h)}
    return Step("g2p.kernel", unit, slopes.shape[1], args, lane="far")
