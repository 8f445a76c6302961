"""One-shot sums of regularised forces in `parki.ewald`."""

from __future__ import annotations

from typing import Any, Unpack, overload

from numpy.typing import NDArray

from parki.arrays import AnyArray, Real
from parki.ewald.api import once
from parki.ewald.options import MAIN, EwaldOptions
from parki.ewald.stokes import stokes_sl
from parki.keywords import EwaldAlone, EwaldReported, shows


@overload
def regularised_stokeslet(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, epsilon: float, options: None = None,
    **keywords: Unpack[EwaldAlone],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def regularised_stokeslet(
    trg: AnyArray, src: AnyArray, dens: AnyArray, epsilon: float, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldReported],
) -> Any: ...  # fmt: skip
@shows(EwaldOptions, first=MAIN, like=stokes_sl)
def regularised_stokeslet(
    trg: AnyArray, src: AnyArray, dens: AnyArray, epsilon: float, options: EwaldOptions | None = None, **keywords: Any
) -> Any:  # fmt: skip
    """Return the flow of forces on blobs of width ε, Σ ((r² + 2ε²) f + (r·f) r)/(r² + ε²)^(3/2), r = target − source.

    Coincident pairs count, with 2f/ε.  The flow is that of point forces at distances far beyond ε, for any number of
    periodic directions; with three of them the mean flow is zero.  There is no factor 1/8πμ.

    Parameters
    ----------
    dens : array (3, Ns), or (k, 3, Ns) for k right-hand sides
        Forces f.
    epsilon : float
        Width ε, in the points' unit of length; along periodic directions at most half of a side.

    Returns
    -------
    array (3, Nt), with k right-hand sides (k, 3, Nt), or a tuple
        The velocity at all targets; a tuple as by `parki.ewald.laplace`.

    See Also
    --------
    stokes_sl : Sum the flows of point forces.
    rpy : Sum velocities of spheres.
    parki.direct.direct_sum, parki.treecode.plan, parki.fmm.plan : Sum ``"regularised_stokeslet"`` in free space.

    References
    ----------
    Cortez, SIAM J. Sci. Comput. 23 (2001); Cortez, Fauci and Medovikov, Phys. Fluids 17 (2005); for an Ewald sum Leiderman,
    Bouzarth, Cortez and Layton, J. Comput. Phys. 236 (2013).

    Examples
    --------
    >>> import numpy as np, parki
    >>> x, f = np.array([[0.0, 3.0], [0.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    >>> u = parki.ewald.regularised_stokeslet(x, x, f, 4.0, periodicity=0, tolerance=1e-9)
    >>> print(f"{u[0, 0]:.6f} {u[0, 1]:.6f}")
    0.500000 0.400000
    """
    return once("regularised_stokeslet", trg, src, (dens,), options, keywords, {"epsilon": epsilon})
