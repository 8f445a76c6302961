"""One-shot sums of the flows of particles in suspension in `parki.ewald`."""

from __future__ import annotations

from typing import Any, Unpack, overload

from numpy.typing import NDArray

from parki.arrays import AnyArray, Real
from parki.ewald.api import laplace, once
from parki.ewald.options import MAIN, EwaldOptions
from parki.ewald.stokes import stokes_sl
from parki.keywords import EwaldAlone, EwaldReported, shows


@overload
def rpy(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, radius: float, options: None = None,
    **keywords: Unpack[EwaldAlone],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def rpy(
    trg: AnyArray, src: AnyArray, dens: AnyArray, radius: float, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldReported],
) -> Any: ...  # fmt: skip
@shows(EwaldOptions, first=MAIN, like=stokes_sl)
def rpy(
    trg: AnyArray, src: AnyArray, dens: AnyArray, radius: float, options: EwaldOptions | None = None, **keywords: Any
) -> Any:  # fmt: skip
    """Return velocities of spheres of radius a by the Rotne–Prager–Yamakawa tensor, overlapping spheres included.

    Spheres further apart than 2a have (1 + a²∇²/3)(I/r + rrᵀ/r³) f, a sphere by itself 4f/(3a): velocities are 8πμ
    times those of forces f in a fluid of viscosity μ.  The matrix of all spheres and their images is symmetric and
    positive definite.  With three periodic directions the mean flow is zero.

    Parameters
    ----------
    dens : array (3, Ns), or (k, 3, Ns) for k right-hand sides
        Forces f.
    radius : float
        Radius a, in the points' unit of length; along periodic directions at most half of a side.

    Returns
    -------
    array (3, Nt) or (k, 3, Nt), or a tuple
        The velocity at all targets; a tuple as by `parki.ewald.laplace`.

    See Also
    --------
    rotlet : Sum the flows of torques.
    stokes_sl : Sum the flows of point forces.
    parki.direct.direct_sum, parki.treecode.plan, parki.fmm.plan : Sum ``"rpy"`` in free space.

    References
    ----------
    Rotne and Prager, J. Chem. Phys. 50 (1969); Yamakawa, J. Chem. Phys. 53 (1970); Wajnryb, Mizerski, Zuk and Szymczak,
    J. Fluid Mech. 731 (2013) R3; Fiore, Balboa Usabiaga, Donev and Swan, J. Chem. Phys. 146 (2017) 124116.

    Examples
    --------
    Spheres on a cubic lattice at a volume fraction φ sediment more slowly than one alone, by 1 − 1.7601 φ^(1/3) + φ:

    >>> import numpy as np, parki
    >>> x, f, phi = np.full((3, 1), 0.5), np.array([[0.0], [0.0], [1.0]]), 0.01
    >>> a = (3 * phi / (4 * np.pi)) ** (1 / 3)
    >>> u = parki.ewald.rpy(x, x, f, a, box=(1, 1, 1), tolerance=1e-8)[2, 0] * 0.75 * a
    >>> print(f"{u:.5f}, {1 - 1.76012 * phi ** (1 / 3) + phi:.5f}")
    0.63079, 0.63079
    """
    return once("rpy", trg, src, (dens,), options, keywords, {"radius": radius})


@overload
def rotlet(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, options: None = None, **keywords: Unpack[EwaldAlone]
) -> NDArray[Real]: ...
@overload
def rotlet(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Unpack[EwaldReported]
) -> Any: ...
@shows(EwaldOptions, first=MAIN, like=laplace)
def rotlet(trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Any) -> Any:
    """Return the flow Σ t × r / r³ of torques, r = target − source, coincident pairs skipped.

    With three periodic directions the mean flow is zero.  There is no factor 1/8πμ.

    Parameters
    ----------
    dens : array (3, Ns), or (k, 3, Ns) for k right-hand sides
        Torques t.

    Returns
    -------
    array (3, Nt) or (k, 3, Nt), or a tuple
        The velocity at all targets; a tuple as by `parki.ewald.laplace`.

    See Also
    --------
    rpy : Sum the flows of forces on spheres.

    References
    ----------
    Blake and Chwang, J. Eng. Math. 8 (1974).

    Examples
    --------
    >>> import numpy as np, parki
    >>> trg, src = np.array([[2.0], [0.0], [0.0]]), np.zeros((3, 1))
    >>> u = parki.ewald.rotlet(trg, src, np.array([[0.0], [0.0], [1.0]]), periodicity=0, tolerance=1e-9)
    >>> print(f"{u[1, 0]:.6f}")
    0.250000
    """
    return once("rotlet", trg, src, (dens,), options, keywords)
