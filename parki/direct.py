"""Direct sums in free space: every source for every target, no box and no cutoff."""

import math
from typing import Any

import numpy as np

from parki import arrays, engine
from parki.arrays import Array, module_of
from parki.engine import TeamPolicy, spaces
from parki.engine.spaces import Space

#: The pair interaction of each kernel, components of its density, whether it takes normals, components of its result.
KERNELS = {
    "laplace": ("pair/laplace", 1, False, 1),
    "stokes_sl": ("pair/stokeslet", 3, False, 3),
    "stokes_dl": ("pair/stresslet", 3, True, 3),
    "stokes_comb": ("pair/stokes_comb", 6, True, 3),
}
CHUNK = 128  # targets per team; on a GPU each has a thread
COINCIDENT = 1e-14  # of the largest extent: double precision points closer than this are one point


def direct_sum(
    kernel: str,
    targets: Any,
    sources: Any,
    dens: Any,
    normals: Any = None,
    *,
    execution_space: str | Space | None = None,
    threads: int | None = None,
) -> Array:
    """Free-space sum u(x_i) = Σ_j K(x_i − y_j) s_j over all pairs, coincident ones skipped.

    With r = x − y from source to target, r = |r|, and without a factor 1/4π or 1/8πμ, K s is

    ===============  =======================================================
    ``laplace``      q / r
    ``stokes_sl``    f / r + r (r·f) / r³
    ``stokes_dl``    −6 r (r·q)(r·n) / r⁵
    ``stokes_comb``  both Stokes kernels, f = ``dens[:3]``, q = ``dens[3:]``
    ===============  =======================================================

    In double precision, points closer than 1e-14 of the largest extent of all points coincide; in single precision,
    equal points do.  The work is proportional to Nt Ns.

    Parameters
    ----------
    kernel : {"laplace", "stokes_sl", "stokes_dl", "stokes_comb"}
    targets, sources : array (3, Nt), (3, Ns)
        Points anywhere, float32 or float64.
    dens : array (Ns,), (3, Ns), (3, Ns), (6, Ns)
        q, f, q, and f over q, for the kernels in this order, in the points' dtype.
    normals : array (3, Ns), optional
        n of the double layer, of any length; required for ``stokes_dl`` and ``stokes_comb``, and only there.
    execution_space : str or space, optional
        ``"Serial"``, ``"OpenMP"``, ``"Cuda"`` and others, see `parki.utils.get_execution_space`; by default where the
        arrays are: a GPU for arrays on a GPU, else ``"OpenMP"``.
    threads : int, optional
        Number of threads, by default as many as the space has; the result does not depend on it.

    Returns
    -------
    array (Nt,) for ``laplace``, (3, Nt) otherwise
        In the points' dtype: a CuPy array for arrays on a GPU, else a NumPy array.

    Raises
    ------
    ValueError
        For an unknown kernel, arrays of the wrong shape or dtype or in two places, values that are not finite, missing
        or surplus normals, a space that is not available or does not take arrays on a GPU, and a number of threads that
        is not positive or that the space does not have.

    References
    ----------
    Pozrikidis, Boundary Integral and Singularity Methods for Linearized Viscous Flow (1992), for the Stokes kernels.

    Examples
    --------
    Charges 1 and 4 at distance 2:

    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> print(parki.direct.direct_sum("laplace", x, x, np.array([1.0, 4.0])))
    [2.  0.5]
    """
    if kernel not in KERNELS:
        raise ValueError(f"kernel is {kernel!r}; expected one of {', '.join(map(repr, KERNELS))}.")
    pair, _, _, components = KERNELS[kernel]
    given = {"targets": targets, "sources": sources, "dens": dens} | ({} if normals is None else {"normals": normals})
    space = arrays.space_of(execution_space, threads, **given)
    x, y = arrays.points("targets", targets), arrays.points("sources", sources)
    strengths = _strengths(kernel, y.shape[1], dens, normals)
    dtype = arrays.same_dtype(targets=x, sources=y, **strengths)
    nt, ns = x.shape[1], y.shape[1]
    xp = spaces.array_module(space)
    out = xp.zeros((components, nt), dtype)
    if nt and ns:
        tiny = _tiny(x, y)
        columns = [xp.asarray(a).reshape(-1, ns) for a in (y, *strengths.values())]
        src = xp.ascontiguousarray(xp.concatenate(columns).T)
        team = (CHUNK, 1) if space.kind != "host" else ()
        engine.parallel_for(
            TeamPolicy(space, math.ceil(nt / CHUNK), *team),
            engine.kernel("direct", "direct_sum", real=dtype, pair=pair),
            xt=xp.asarray(x), src=src, u=out, nt=nt, ns=ns, chunk=CHUNK, tiny=tiny,
        )  # fmt: skip
    result = out[0] if components == 1 else out
    return arrays.to_host(result) if module_of(x) is np else result


def _strengths(kernel: str, n: int, dens: Any, normals: Any) -> dict[str, Array]:
    """Checked strengths by name."""
    _, components, takes_normals, _ = KERNELS[kernel]
    checked = {"dens": arrays.density("dens", dens, components, n)}
    if takes_normals:
        if normals is None:
            raise ValueError(f"normals is missing; {kernel} expects (3, {n}), one normal for each source.")
        checked["normals"] = arrays.density("normals", normals, 3, n)
    elif normals is not None:
        raise ValueError(f"normals was given, but {kernel} takes none.")
    return checked


def _tiny(x: Array, y: Array) -> float:
    """Squared distance up to which a pair coincides."""
    if x.dtype == np.float32:
        return 0.0
    xp = module_of(x)
    extent = xp.maximum(x.max(axis=1), y.max(axis=1)) - xp.minimum(x.min(axis=1), y.min(axis=1))
    return (COINCIDENT * float(extent.max())) ** 2
