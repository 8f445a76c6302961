"""One-shot sums of Stokes flow in `parki.ewald`."""

from __future__ import annotations

from typing import Any, Unpack, overload

from numpy.typing import NDArray

from parki.arrays import AnyArray, Real
from parki.ewald.api import laplace, once
from parki.ewald.options import MAIN, EwaldOptions
from parki.keywords import EwaldAlone, EwaldReported, shows


@overload
def stokes_sl(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, options: None = None, **keywords: Unpack[EwaldAlone]
) -> NDArray[Real]: ...
@overload
def stokes_sl(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Unpack[EwaldReported]
) -> Any: ...
@shows(EwaldOptions, first=MAIN, like=laplace)
def stokes_sl(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Any
) -> Any:
    """Return the Stokes single layer Σ (I/r + rrᵀ/r³) f, coincident pairs skipped.

    With three periodic directions the mean flow is zero.  There is no factor 1/8πμ: velocities are in units of the
    forces over the points' unit of length.

    Parameters
    ----------
    dens : array (3, Ns), or (k, 3, Ns) for k right-hand sides
        Forces f.

    Returns
    -------
    array (3, Nt) or (k, 3, Nt), or a tuple
        The velocity at all targets; a tuple as by `parki.ewald.laplace`.

    See Also
    --------
    stokes_pressure, stokes_grad : The pressure and the velocity gradient of this flow.
    stokes_comb : Sum the single and the double layer at once.
    plan : Sum for many densities or moving points.

    References
    ----------
    Hasimoto, J. Fluid Mech. 5 (1959); af Klinteberg and Tornberg, Int. J. Numer. Methods Fluids 76 (2014).

    Examples
    --------
    The reduction of each force's velocity in a periodic array of forces: Hasimoto's −(4/3) 2.837297 in a unit cube.

    >>> import numpy as np, parki
    >>> x, f = np.full((3, 1), 0.5), np.array([[1.0], [0.0], [0.0]])
    >>> print(f"{parki.ewald.stokes_sl(x, x, f, box=(1, 1, 1), tolerance=1e-9)[0, 0] * 0.75:.6f}")
    -2.837297
    """
    return once("stokes_sl", trg, src, (dens,), options, keywords)


@overload
def stokes_dl(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, normals: AnyArray, options: None = None,
    **keywords: Unpack[EwaldAlone],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def stokes_dl(
    trg: AnyArray, src: AnyArray, dens: AnyArray, normals: AnyArray, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldReported],
) -> Any: ...  # fmt: skip
@shows(EwaldOptions, first=MAIN, like=stokes_sl)
def stokes_dl(
    trg: AnyArray, src: AnyArray, dens: AnyArray, normals: AnyArray, options: EwaldOptions | None = None,
    **keywords: Any,
) -> Any:  # fmt: skip
    """Return the Stokes double layer Σ −6 r (r·q)(r·n)/r⁵, r = target − source, coincident pairs skipped.

    Over a closed surface, with outward n whose length is the area element, constant q gives 8πq inside and 0 outside;
    with three periodic directions and without the surface term 8πq(1 − φ) and −8πqφ, φ the enclosed fraction of the
    volume.

    Parameters
    ----------
    dens : array (3, Ns), or (k, 3, Ns) for k right-hand sides
        Densities q.
    normals : array (3, Ns)
        Normals n, of any length.

    See Also
    --------
    stokes_comb : Sum the single and the double layer at once.
    parki.plan.Plan.operator : Solve a boundary integral equation.

    References
    ----------
    Pozrikidis (1992); af Klinteberg and Tornberg, Int. J. Numer. Methods Fluids 76 (2014).

    Examples
    --------
    >>> import numpy as np, parki
    >>> trg, src = np.array([[1.0], [1.0], [0.0]]), np.zeros((3, 1))
    >>> q, n = np.array([[1.0], [0.0], [0.0]]), np.array([[0.0], [1.0], [0.0]])
    >>> print(f"{parki.ewald.stokes_dl(trg, src, q, n, periodicity=0, tolerance=1e-9)[0, 0] * 2**2.5:.6f}")
    -6.000000
    """
    return once("stokes_dl", trg, src, (dens, normals), options, keywords)


@overload
def stokes_comb(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, normals: AnyArray, options: None = None,
    **keywords: Unpack[EwaldAlone],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def stokes_comb(
    trg: AnyArray, src: AnyArray, dens: AnyArray, normals: AnyArray, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldReported],
) -> Any: ...  # fmt: skip
@shows(EwaldOptions, first=MAIN, like=stokes_dl)
def stokes_comb(
    trg: AnyArray, src: AnyArray, dens: AnyArray, normals: AnyArray, options: EwaldOptions | None = None,
    **keywords: Any,
) -> Any:  # fmt: skip
    """Return the Stokes single and double layer, Σ (I/r + rrᵀ/r³) f − 6 r (r·q)(r·n)/r⁵, r = target − source.

    With three periodic directions the mean flow is zero.

    Parameters
    ----------
    dens : array (6, Ns), or (k, 6, Ns) for k right-hand sides
        Forces f of the single layer over densities q of the double layer.

    See Also
    --------
    stokes_sl, stokes_dl : Sum one of the layers.

    References
    ----------
    Kosmacher et al. (2026), the published ParkiPy; af Klinteberg and Tornberg (2014).

    Examples
    --------
    >>> import numpy as np, parki
    >>> trg, src = np.array([[1.0], [1.0], [0.0]]), np.zeros((3, 1))
    >>> dens, n = np.array([[0.0], [1.0], [0.0], [1.0], [0.0], [0.0]]), np.array([[0.0], [1.0], [0.0]])
    >>> print(f"{parki.ewald.stokes_comb(trg, src, dens, n, periodicity=0, tolerance=1e-9)[0, 0] * 2**2.5:.6f}")
    -4.000000
    """
    return once("stokes_comb", trg, src, (dens, normals), options, keywords)


@overload
def stokes_pressure(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, options: None = None, **keywords: Unpack[EwaldAlone]
) -> NDArray[Real]: ...
@overload
def stokes_pressure(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Unpack[EwaldReported]
) -> Any: ...
@shows(EwaldOptions, first=MAIN, like=laplace)
def stokes_pressure(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Any
) -> Any:
    """Return the pressure of the Stokes single layer, Σ 2 r·f/r³, r = target − source.

    The pressure belongs to the flow of `stokes_sl` for viscosity 1: ∇p = ∇²u away from the sources.  With three
    periodic directions its average is zero; the mean gradient that balances a net force is not included.

    Parameters
    ----------
    dens : array (3, Ns), or (k, 3, Ns) for k right-hand sides
        Forces f of the flow.

    See Also
    --------
    stokes_sl : The velocity of this flow.
    stokes_grad : The velocity gradient, for stresses.

    References
    ----------
    Pozrikidis (1992).

    Examples
    --------
    >>> import numpy as np, parki
    >>> trg, src = np.array([[0.0], [0.0], [2.0]]), np.zeros((3, 1))
    >>> p = parki.ewald.stokes_pressure(trg, src, np.array([[0.0], [0.0], [1.0]]), periodicity=0, tolerance=1e-9)
    >>> print(f"{p[0]:.6f}")
    0.500000
    """
    return once("stokes_pressure", trg, src, (dens,), options, keywords)


@overload
def stokes_grad(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, options: None = None, **keywords: Unpack[EwaldAlone]
) -> NDArray[Real]: ...
@overload
def stokes_grad(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Unpack[EwaldReported]
) -> Any: ...
@shows(EwaldOptions, first=MAIN, like=stokes_sl)
def stokes_grad(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Any
) -> Any:
    """Return the velocity gradient of the Stokes single layer: row 3i + j is ∂u_i/∂x_j.

    The stress is −p δ_ij + ∂u_i/∂x_j + ∂u_j/∂x_i, with the pressure of `stokes_pressure`.

    Returns
    -------
    array (9, Nt) or (k, 9, Nt), or a tuple
        The nine entries of the gradient at all targets; a tuple as by `parki.ewald.laplace`.

    See Also
    --------
    stokes_sl : The velocity of this flow.
    stokes_pressure : The pressure of this flow.

    References
    ----------
    Pozrikidis (1992).

    Examples
    --------
    >>> import numpy as np, parki
    >>> trg, src = np.array([[0.0], [0.0], [2.0]]), np.zeros((3, 1))
    >>> u = parki.ewald.stokes_grad(trg, src, np.array([[0.0], [0.0], [1.0]]), periodicity=0, tolerance=1e-9)
    >>> print(f"{u[8, 0]:.6f}")
    -0.500000
    """
    return once("stokes_grad", trg, src, (dens,), options, keywords)


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
    dens : array (3, Ns), or (k, 3, Ns)
        Torques t, or those of k right-hand sides.

    Returns
    -------
    array (3, Nt) or (k, 3, Nt), or a tuple
        The velocity at targets; a tuple as by `parki.ewald.laplace`.

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


@overload
def stokes_dipole(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, options: None = None, **keywords: Unpack[EwaldAlone]
) -> NDArray[Real]: ...
@overload
def stokes_dipole(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Unpack[EwaldReported]
) -> Any: ...
@shows(EwaldOptions, first=MAIN, like=stokes_sl)
def stokes_dipole(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Any
) -> Any:
    """Return the flow of force dipoles D, −∂_j (I/r + rrᵀ/r³)_ik D_kj, coincident pairs skipped.

    Forces f and −f at the ends of a short vector d, the first at its head, are the dipole D = f dᵀ.  Its antisymmetric
    part is a torque, as of `rotlet`; its trace has no flow.  There is no factor 1/8πμ.

    Parameters
    ----------
    dens : array (9, Ns), or (k, 9, Ns) for k right-hand sides
        Dipoles by rows: row 3k + j is D_kj.

    See Also
    --------
    stokes_dl : Sum the flows of stresslets q nᵀ + n qᵀ, with sources of volume by their traces.
    stokes_grad : The transposed sum.

    References
    ----------
    Pozrikidis (1992); Batchelor, J. Fluid Mech. 41 (1970).

    Examples
    --------
    A swimmer that pushes along z, seen from the side at a distance of 2:

    >>> import numpy as np, parki
    >>> trg, src = np.array([[2.0], [0.0], [0.0]]), np.zeros((3, 1))
    >>> pusher = np.diag([0.0, 0.0, 1.0]).reshape(9, 1)
    >>> u = parki.ewald.stokes_dipole(trg, src, pusher, periodicity=0, tolerance=1e-9)
    >>> print(f"{u[0, 0]:.6f}")
    -0.250000
    """
    return once("stokes_dipole", trg, src, (dens,), options, keywords)
