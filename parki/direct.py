"""Direct sums in free space: every source for every target, no box and no cutoff."""

import ast
import math
import os
from typing import Any

import numpy as np

from parki import arrays, engine
from parki.arrays import Array, module_of
from parki.engine import TeamPolicy, source, spaces
from parki.engine.spaces import Space
from parki.ewald import kernels
from parki.ewald.kernels import Kernel

CHUNK = 128  # targets per team; on a GPU each has a thread
COINCIDENT = 1e-14  # of the largest extent: double precision points closer than this are one point


def direct_sum(
    kernel: str | os.PathLike | Kernel,
    targets: Any,
    sources: Any,
    dens: Any,
    normals: Any = None,
    *,
    execution_space: str | Space | None = None,
    threads: int | None = None,
    **parameters: float,
) -> Array:
    """Free-space sum u(x_i) = Σ_j K(x_i − y_j) s_j over all pairs, coincident ones skipped.

    With r = x − y from source to target, r = |r|, and without a factor 1/4π or 1/8πμ, K s is

    ===================  ========  ======  =========================================================
    kernel               dens      result  K s
    ===================  ========  ======  =========================================================
    ``laplace``          q (Ns,)   1       q / r
    ``laplace_grad``     q (Ns,)   3       −q r / r³, the gradient of laplace at x
    ``laplace_dipole``   d (3,Ns)  1       d·r / r³
    ``stokes_sl``        f (3,Ns)  3       f / r + r (r·f) / r³
    ``stokes_dl``        q (3,Ns)  3       −6 r (r·q)(r·n) / r⁵
    ``stokes_comb``      (6,Ns)    3       both Stokes kernels, f = ``dens[:3]``, q = ``dens[3:]``
    ``stokes_pressure``  f (3,Ns)  1       2 f·r / r³, the pressure of stokes_sl
    ``stokes_grad``      f (3,Ns)  9       ∂u_i/∂x_j of stokes_sl in row 3i + j
    ``yukawa``           q (Ns,)   1       q exp(−κr) / r, with κ = ``kappa``
    ===================  ========  ======  =========================================================

    In double precision, points closer than 1e-14 of the largest extent of all points coincide; in single precision,
    equal points do.  The work is proportional to Nt Ns.

    Parameters
    ----------
    kernel : str, path or `parki.ewald.kernels.Kernel`
        A name of the table, or a kernel of one's own.  The path of a file with a function ``pair`` as in
        ``kernels/pair``, an `os.PathLike` or a string that ends in ``.py``, has ``NS`` numbers in `dens` for each
        source and ``NU`` in the result for each target.
    targets, sources : array (3, Nt), (3, Ns)
        Points anywhere, float32 or float64.
    dens : array
        As in the table, in the points' dtype.
    normals : array (3, Ns), optional
        n of the double layer, of any length; required for ``stokes_dl`` and ``stokes_comb``, and only there.
    execution_space : str or space, optional
        ``"Serial"``, ``"OpenMP"``, ``"Cuda"`` and others, see `parki.utils.get_execution_space`; by default where the
        arrays are: a GPU for arrays on a GPU, else ``"OpenMP"``.
    threads : int, optional
        Number of threads, by default as many as the space has; the result does not depend on it.
    **parameters : float
        Parameters of the kernel by name: κ of ``yukawa`` is ``kappa``, positive.

    Returns
    -------
    array (Nt,) for one component, else (components, Nt)
        In the points' dtype: a CuPy array for arrays on a GPU, else a NumPy array.

    Raises
    ------
    ValueError
        For an unknown kernel, arrays of the wrong shape or dtype or in two places, values that are not finite, missing
        or surplus normals or parameters, a space that is not available or does not take arrays on a GPU, and a number
        of threads that is not positive or that the space does not have.
    KernelError
        For a file that is not there, or not in the language of the kernels.

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
    kernel = kernels.find(_own(kernel) if _is_path(kernel) else kernel, **parameters)
    given = {"targets": targets, "sources": sources, "dens": dens} | ({} if normals is None else {"normals": normals})
    space = arrays.space_of(execution_space, threads, **given)
    x, y = arrays.points("targets", targets), arrays.points("sources", sources)
    strengths = _strengths(kernel, y.shape[1], dens, normals)
    dtype = arrays.same_dtype(targets=x, sources=y, **strengths)
    nt, ns = x.shape[1], y.shape[1]
    xp = spaces.array_module(space)
    out = xp.zeros((kernel.result, nt), dtype)
    if nt and ns:
        tiny = _tiny(x, y)
        columns = [xp.asarray(a).reshape(-1, ns) for a in (y, *strengths.values())]
        columns += [xp.full((1, ns), value, dtype) for value in kernel.parameters]
        src = xp.ascontiguousarray(xp.concatenate(columns).T)
        team = (CHUNK, 1) if space.kind != "host" else ()
        engine.parallel_for(
            TeamPolicy(space, math.ceil(nt / CHUNK), *team),
            engine.kernel("direct", "direct_sum", real=dtype, pair=kernel.pair),
            xt=xp.asarray(x), src=src, u=out, nt=nt, ns=ns, chunk=CHUNK, tiny=tiny,
        )  # fmt: skip
    result = out[0] if kernel.result == 1 else out
    return arrays.to_host(result) if module_of(x) is np else result


def _is_path(kernel: Any) -> bool:
    """Whether a kernel is given by a file of the caller's own."""
    return isinstance(kernel, os.PathLike) or (isinstance(kernel, str) and kernel.endswith(".py"))


def _own(path: str | os.PathLike) -> Kernel:
    """The kernel of a file: all that direct sums must know."""
    place = source.locate(path)
    constants = source.read(place).constants
    counts = []
    for name in ("NS", "NU"):
        value = constants.get(name)
        if not (isinstance(value, ast.Constant) and type(value.value) is int and value.value > 0):
            found = "nothing" if value is None else ast.unparse(value)
            raise ValueError(f"{name} is {found} in {place.display}; expected a number of components, as 3.")
        counts.append(value.value)
    return Kernel(os.path.basename(place.display), *counts, place.key, (), "", counts[0], (), ())


def _strengths(kernel: Kernel, n: int, dens: Any, normals: Any) -> dict[str, Array]:
    """Checked strengths by name."""
    checked = {"dens": arrays.density("dens", dens, kernel.dens, n)}
    if kernel.normals:
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
