"""The error of an Ewald sum, measured at some targets by a second sum that shares none of its parameters."""

import dataclasses
from typing import Any

import numpy as np

from parki import arrays, direct
from parki.arrays import Array, module_of
from parki.ewald import api, geometry
from parki.ewald.options import EwaldOptions

FINEST = 1e-13  # tolerance of the second sum where a hundredth of the first one is out of reach of double precision
LARGE, SMALL = 0.45, 0.3  # near-field radius of the second sum in shortest sides; few targets make a large one cheap


def sampled_error(
    kernel: str,
    trg: Any,
    src: Any,
    dens: Any,
    normals: Any,
    u: Array,
    options: EwaldOptions,
    n: int = 100,
    seed: int = 0,
    rc: float | None = None,
    **parameters: float,
) -> float:
    """Return the relative RMS error of the result `u`, measured at `n` random targets.

    The second sum is in double precision, with the other split, a hundredth of the tolerance and another near-field
    radius, so that the two agree only where both are right.  Without periodic directions it is over all pairs, exact.

    Parameters
    ----------
    kernel : str
        A key of `parki.ewald.kernels.KERNELS`.
    trg, src, dens, normals : array_like
        What the first sum was given, on a host or on a GPU; `normals` is None for kernels without.
    u : array
        Its result, in the layout of `options`.
    options : EwaldOptions
        Its options.
    n, seed : int
        Number of targets, and the seed by which they are drawn.
    rc : float, optional
        Near-field radius of the first sum; by default that of `options`, if it is given there.
    **parameters
        Parameters of the kernel, as ``kappa`` of ``"yukawa"``.

    Raises
    ------
    ValueError
        If there are no targets, or if the second sum is zero at all of them.
    """
    layout = options.layout
    targets, sources = arrays.points("trg", trg, layout=layout), arrays.points("src", src, layout=layout)
    if targets.shape[1] == 0:
        raise ValueError("trg has no points; expected at least one to measure an error at.")
    chosen = np.random.default_rng(seed).permutation(targets.shape[1])[:n]
    chosen = module_of(targets).asarray(chosen)
    # Points in double precision that came from single precision are the same points: self pairs stay self pairs.
    given = {"dens": dens} if normals is None else {"dens": dens, "normals": normals}
    strengths = [_in_double(name, array, layout) for name, array in given.items()]
    some, sources = _in_double("trg", targets)[:, chosen], _in_double("src", sources)
    if not any(options.periodic):
        exact = direct.direct_sum(kernel, some, sources, *strengths, **parameters)
    else:
        second = _second(options, options.rc if rc is None else rc)
        exact = api.plan(kernel, some, sources, second, **parameters)(*strengths)
    result = _in_double("u", u, layout)[..., chosen]
    size = float((exact**2).sum())
    if size == 0:
        raise ValueError("the sum is zero at all sampled targets; it has no relative error.")
    return float((((result - exact) ** 2).sum() / size) ** 0.5)


def _second(options: EwaldOptions, rc: float | None) -> EwaldOptions:
    box = np.array(options.box, dtype=float)
    sides = geometry.of_cell(box).box if box.ndim == 2 else box
    shortest = min(float(side) for side, on in zip(sides, options.periodic, strict=True) if on)
    # At least a fifth away from the first sum's radius.
    radius = (LARGE if rc is None or not LARGE / 1.25 < rc / shortest < LARGE * 1.25 else SMALL) * shortest
    return dataclasses.replace(
        options,
        tolerance=max(options.tolerance / 100, FINEST),
        split="gaussian" if options.split == "prolate" else "prolate",
        rc=radius,
        cell_size=None,
        layout="dn",
        return_walltime=False,
        return_params=False,
        verbose=False,
    )


def _in_double(name: str, array: Any, layout: str = "dn") -> Array:
    """Return an array in double precision, ``(components, N)`` or ``(N,)``."""
    double = arrays.taken(name, array).astype(np.float64)
    return double.T if layout == "nd" and double.ndim > 1 else double
