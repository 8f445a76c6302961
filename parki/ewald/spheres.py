"""One-shot sums of the flows of blobs, and of the mobilities of spheres, in `parki.ewald`."""

from __future__ import annotations

from typing import Any, Unpack, overload

from numpy.typing import NDArray

from parki.arrays import AnyArray, Real
from parki.ewald.api import once
from parki.ewald.options import MAIN, EwaldOptions
from parki.ewald.stokes import stokes_sl
from parki.keywords import EwaldAlone, EwaldReported, Lengths, shows


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
    regularised_dipole : Sum the flows of source dipoles on blobs.
    rpy : Sum velocities of spheres.
    parki.direct.direct_sum, parki.treecode.plan, parki.fmm.plan : Sum ``"regularised_stokeslet"`` in free space.

    References
    ----------
    Cortez, SIAM J. Sci. Comput. 23 (2001); Cortez, Fauci and Medovikov, Phys. Fluids 17 (2005).

    Examples
    --------
    >>> import numpy as np, parki
    >>> x, f = np.array([[0.0, 3.0], [0.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    >>> u = parki.ewald.regularised_stokeslet(x, x, f, 4.0, periodicity=0, tolerance=1e-9)
    >>> print(f"{u[0, 0]:.6f} {u[0, 1]:.6f}")
    0.500000 0.400000
    """
    return once("regularised_stokeslet", trg, src, (dens,), options, keywords, {"epsilon": epsilon})


@overload
def regularised_dipole(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, epsilon: float, options: None = None,
    **keywords: Unpack[EwaldAlone],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def regularised_dipole(
    trg: AnyArray, src: AnyArray, dens: AnyArray, epsilon: float, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldReported],
) -> Any: ...  # fmt: skip
@shows(EwaldOptions, first=MAIN, like=stokes_sl)
def regularised_dipole(
    trg: AnyArray, src: AnyArray, dens: AnyArray, epsilon: float, options: EwaldOptions | None = None, **keywords: Any
) -> Any:  # fmt: skip
    """Return the flow of source dipoles on blobs, Σ ((2ε² − r²) d + 3 (r·d) r)/(r² + ε²)^(5/2), r = target − source.

    With s² = r² + ε² each dipole has the flow (∇∇ − I∇²)(1/s) d, which has no divergence; coincident pairs count, with
    2d/ε³.  The blob is that of `regularised_stokeslet` for images at walls, 3ε²/(4πs⁵), not the one of the forces.  Far
    beyond ε the flow is that of a point dipole, −d/r³ + 3 (r·d) r/r⁵, and half the Laplacian of `stokes_sl` with the
    sign changed: a sphere of radius a that a force f drags has the flow of f and, with d = −a²f/3, of a dipole.  With
    three periodic directions the mean flow is zero.

    Parameters
    ----------
    dens : array (3, Ns), or (k, 3, Ns) for k right-hand sides
        Dipoles d.
    epsilon : float
        Width ε, in the points' unit of length, at most half of a side along periodic directions.

    Returns
    -------
    array (3, Nt), with k right-hand sides (k, 3, Nt), or a tuple
        The flow at all targets; a tuple as by `parki.ewald.laplace`.

    Notes
    -----
    The tolerance is relative to the flow of other dipoles: that of a narrow blob at itself does not count.

    See Also
    --------
    regularised_stokeslet : Sum the flows of forces on blobs.
    laplace_dipole : Sum the potentials of dipoles.
    parki.direct.direct_sum, parki.treecode.plan, parki.fmm.plan : Sum ``"regularised_dipole"`` in free space.

    References
    ----------
    Ainley, Durkin, Embid, Boindala and Cortez, J. Comput. Phys. 227 (2008), for walls; Cortez and Varela, J. Comput.
    Phys. 285 (2015).  Cortez, Fauci and Medovikov, Phys. Fluids 17 (2005), have another blob.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x, d = np.array([[0.0, 3.0], [0.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    >>> u = parki.ewald.regularised_dipole(x, x, d, 4.0, periodicity=0, tolerance=1e-9)
    >>> print(f"{u[0, 0]:.6f} {u[0, 1]:.6f}")
    0.031250 0.016000
    """
    return once("regularised_dipole", trg, src, (dens,), options, keywords, {"epsilon": epsilon})


@overload
def rpy(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, radius: Lengths, options: None = None,
    **keywords: Unpack[EwaldAlone],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def rpy(
    trg: AnyArray, src: AnyArray, dens: AnyArray, radius: Lengths, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldReported],
) -> Any: ...  # fmt: skip
@shows(EwaldOptions, first=MAIN, like=stokes_sl)
def rpy(
    trg: AnyArray, src: AnyArray, dens: AnyArray, radius: Lengths, options: EwaldOptions | None = None, **keywords: Any
) -> Any:  # fmt: skip
    """Return velocities of spheres of radius a by the Rotne–Prager–Yamakawa tensor, overlapping spheres included.

    Spheres further apart than 2a have (1 + a²∇²/3)(I/r + rrᵀ/r³) f, a sphere by itself 4f/(3a): velocities are 8πμ
    times those of forces f in a fluid of viscosity μ.  The matrix of all spheres and their images is symmetric and
    positive definite.  With three periodic directions the mean flow is zero.  Spheres of radii a and b have the flow
    (1 + (a² + b²)∇²/6)(I/r + rrᵀ/r³) f beyond a + b.

    Parameters
    ----------
    dens : array (3, Ns), or (k, 3, Ns) for k right-hand sides
        Forces f.
    radius : float or array (N,), or a tuple of two arrays
        Radius a, in the points' unit of length; along periodic directions at most half of a side.  With an array each
        sphere has its own, up to a quarter of a side: one array if targets are the sources, else a tuple, those of the
        targets and of the sources.  Targets of radius 0 are points of the fluid.

    Returns
    -------
    array (3, Nt), with k right-hand sides (k, 3, Nt), or a tuple
        Velocities at all targets; a tuple as by `parki.ewald.laplace`.

    See Also
    --------
    rotlet : Sum the flows of torques.
    stokes_sl : Sum the flows of point forces.
    parki.direct.direct_sum, parki.treecode.plan, parki.fmm.plan : Sum ``"rpy"`` in free space.

    References
    ----------
    Rotne and Prager, J. Chem. Phys. 50 (1969); Yamakawa, J. Chem. Phys. 53 (1970); Wajnryb, Mizerski, Zuk and Szymczak,
    J. Fluid Mech. 731 (2013) R3; Zuk, Wajnryb, Mizerski and Szymczak, J. Fluid Mech. 741 (2014) R5, for several radii;
    Fiore, Balboa Usabiaga, Donev and Swan, J. Chem. Phys. 146 (2017) 124116.

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
def rpy_rotation(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, radius: float, options: None = None,
    **keywords: Unpack[EwaldAlone],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def rpy_rotation(
    trg: AnyArray, src: AnyArray, dens: AnyArray, radius: float, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldReported],
) -> Any: ...  # fmt: skip
@shows(EwaldOptions, first=MAIN, like=stokes_sl)
def rpy_rotation(
    trg: AnyArray, src: AnyArray, dens: AnyArray, radius: float, options: EwaldOptions | None = None, **keywords: Any
) -> Any:  # fmt: skip
    """Return velocities and angular velocities of spheres of radius a, due to forces and torques on them.

    Velocities due to forces are those of `rpy`.  Spheres further apart than 2a have velocities t × r/r³ due to torques,
    angular velocities f × r/r³ due to forces and (3 (r·t) r/r² − t)/2r³ due to torques, a sphere by itself the angular
    velocity t/a³: all are 8πμ times those in a fluid of viscosity μ.  The matrix of all spheres and their images is
    symmetric and positive definite.  The tolerance is that of velocities and of angular velocities, each.

    Parameters
    ----------
    dens : array (6, Ns), or (k, 6, Ns) for k right-hand sides
        Forces f, and below them torques t.
    radius : float
        Radius a, in the points' unit of length; along periodic directions at most half of a side.

    Returns
    -------
    array (6, Nt), with k right-hand sides (k, 6, Nt), or a tuple
        Velocities, and below them angular velocities, at all targets; a tuple as by `parki.ewald.laplace`.

    See Also
    --------
    rpy : Sum velocities due to forces alone.

    References
    ----------
    Wajnryb, Mizerski, Zuk and Szymczak, J. Fluid Mech. 731 (2013) R3.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x, load = np.array([[0.0, 3.0], [0.0, 0.0], [0.0, 0.0]]), np.zeros((6, 2))
    >>> load[5, 0] = 1.0
    >>> u = parki.ewald.rpy_rotation(x, x, load, 1.0, periodicity=0, tolerance=1e-9)
    >>> print(f"{u[5, 0]:.4f} {u[1, 1]:.4f} {u[5, 1]:.4f}")
    1.0000 0.1111 -0.0185
    """
    return once("rpy_rotation", trg, src, (dens,), options, keywords, {"radius": radius})
