"""The calls of `parki.ewald`: one-shot sums, each a plan used once."""

from typing import Any

from parki.arrays import Array
from parki.ewald import kernels
from parki.ewald.kernels import Kernel
from parki.ewald.options import EwaldOptions
from parki.ewald.plan import Plan
from parki.ewald.report import Params


def plan(
    kernel: str | Kernel, trg: Array, src: Array, options: EwaldOptions | None = None, *, kappa: float | None = None,
    **keywords: Any,
) -> Plan:  # fmt: skip
    """Prepare a sum for fixed points: ``u = plan(dens[, normals])``.

    Parameters
    ----------
    kernel : str or Kernel
        ``"laplace"``, ``"laplace_grad"``, ``"laplace_dipole"``, ``"stokes_sl"``, ``"stokes_dl"``, ``"stokes_comb"``,
        ``"stokes_pressure"``, ``"stokes_grad"``, ``"yukawa"``, or a kernel of your own (`parki.ewald.kernels`).
    trg, src : array (3, Nt), (3, Ns)
        Points, float32 or float64: NumPy or CuPy arrays, or anything with DLPack.  They are wrapped along periodic
        directions, and lie in ``[0, side]`` along free ones.
    options : EwaldOptions, optional
        Single options may be given or replaced by keywords: ``box=(1, 1, 1), tolerance=1e-6``.
    kappa : float, optional
        Inverse screening length κ of ``"yukawa"``.

    Raises
    ------
    ValueError, TypeError
        For input that does not fit, naming the argument, what was found and what was expected.
    MemoryError
        Where the plan would need more memory of the host than is free, naming the options that lower it.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 0.5], [0.0, 0.5], [0.0, 0.5]])
    >>> plan = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-9)
    >>> print(f"{plan(np.array([1.0, -1.0]))[0] * np.sqrt(0.75):.6f}")  # Madelung constant of CsCl
    -1.762675
    """
    resolved = EwaldOptions.resolve(options, {"trg": trg, "src": src}, ("kappa",), **keywords)
    return _made(kernels.find(kernel, kappa=kappa), trg, src, resolved)


def laplace(trg: Array, src: Array, dens: Array, options: EwaldOptions | None = None, **keywords: Any) -> Any:
    """Laplace potential Σ q/r, coincident pairs skipped.

    Fully periodic, it is zero on average over the box; the README fixes the constants of other periodicities.

    Parameters
    ----------
    trg, src : array (3, Nt), (3, Ns)
        Points, float32 or float64: NumPy or CuPy arrays, or anything with DLPack, all in one place.  They are wrapped
        along periodic directions, and lie in ``[0, side]`` along free ones.
    dens : array (Ns,), or (k, Ns) for k right-hand sides
        Charges; in a fully periodic box a net charge is neutralised by a uniform background.
    options : EwaldOptions, optional
        Single options may be given or replaced by keywords.

    Returns
    -------
    array (Nt,), or a tuple ``(potential[, WallTime][, Params][, ErrorEstimate])`` if the options ask for them
        A CuPy array for arrays on a GPU, where nothing is copied to the host; otherwise a NumPy array.

    Raises
    ------
    ValueError, TypeError
        For input that does not fit, naming the argument, what was found and what was expected.

    References
    ----------
    Lindbo and Tornberg, J. Comput. Phys. 230 (2011); Liang et al. (2025) for the prolate split; Shamshirgar, Bagge and
    Tornberg, J. Chem. Phys. 154 (2021) for free directions.

    Examples
    --------
    The Madelung constant of rock salt, nearest distance 1:

    >>> import numpy as np, parki
    >>> x = np.array([(i, j, k) for i in range(2) for j in range(2) for k in range(2)], float).T
    >>> q = (-1.0) ** x.sum(axis=0)
    >>> print(f"{parki.ewald.laplace(x, x, q, box=(2, 2, 2), tolerance=1e-9)[0]:.6f}")
    -1.747565
    """
    return _sum("laplace", trg, src, (dens,), options, keywords)


def laplace_grad(trg: Array, src: Array, dens: Array, options: EwaldOptions | None = None, **keywords: Any) -> Any:
    """Gradient of the Laplace potential, Σ −q r/r³ with r = target − source: (3, Nt).

    Everything else as in `laplace`.  The force on a charge q of the sources is −q times it.

    References
    ----------
    Shamshirgar, Bagge and Tornberg, J. Chem. Phys. 154 (2021).

    Examples
    --------
    Two charges at distance 2 in free space: the field of the first at the second falls to 1/4.

    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> u = parki.ewald.laplace_grad(x, x, np.array([1.0, 0.0]), periodicity=0, tolerance=1e-9)
    >>> print(f"{u[0, 1]:.6f}")
    -0.250000
    """
    return _sum("laplace_grad", trg, src, (dens,), options, keywords)


def laplace_dipole(trg: Array, src: Array, dens: Array, options: EwaldOptions | None = None, **keywords: Any) -> Any:
    """Potential of dipoles, Σ d·r/r³ with r = target − source, `dens` = d (3, Ns): (Nt,).

    Everything else as in `laplace`; fully periodic without a surface term (a conductor surrounds the crystal).

    References
    ----------
    Tornberg, Adv. Comput. Math. 42 (2016).

    Examples
    --------
    >>> import numpy as np, parki
    >>> trg, src = np.array([[0.0], [0.0], [2.0]]), np.zeros((3, 1))
    >>> u = parki.ewald.laplace_dipole(trg, src, np.array([[0.0], [0.0], [1.0]]), periodicity=0, tolerance=1e-9)
    >>> print(f"{u[0]:.6f}")
    0.250000
    """
    return _sum("laplace_dipole", trg, src, (dens,), options, keywords)


def yukawa(
    trg: Array, src: Array, dens: Array, kappa: float, options: EwaldOptions | None = None, **keywords: Any
) -> Any:
    """Screened Coulomb potential Σ q exp(−κr)/r, coincident pairs skipped, fully periodic or in free space.

    Parameters
    ----------
    kappa : float
        Inverse screening length κ > 0.

    Everything else as in `laplace`, but no background: the mean over a periodic box of volume V is 4π Σq/(κ²V).

    References
    ----------
    Salin and Caillol, J. Chem. Phys. 113 (2000) for the Ewald sum; `parki.ewald.profiles` for the split.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    >>> print(f"{parki.ewald.yukawa(x, x, np.array([1.0, 0.0]), 2.0, periodicity=0, tolerance=1e-9)[1]:.6f}")
    0.135335
    """
    return _sum("yukawa", trg, src, (dens,), options, keywords, kappa)


def stokes_sl(trg: Array, src: Array, dens: Array, options: EwaldOptions | None = None, **keywords: Any) -> Any:
    """Stokes single layer Σ (I/r + rrᵀ/r³) f, coincident pairs skipped; fully periodic with zero mean flow.

    `dens` is (3, Ns), the result (3, Nt); everything else as in `laplace`.  There is no factor 1/8πμ.

    References
    ----------
    Hasimoto, J. Fluid Mech. 5 (1959); af Klinteberg and Tornberg, Int. J. Numer. Methods Fluids 76 (2014).

    Examples
    --------
    The velocity that a periodic array of forces takes from each: Hasimoto's −(4/3) 2.837297 in a unit cube.

    >>> import numpy as np, parki
    >>> x, f = np.full((3, 1), 0.5), np.array([[1.0], [0.0], [0.0]])
    >>> print(f"{parki.ewald.stokes_sl(x, x, f, box=(1, 1, 1), tolerance=1e-9)[0, 0] * 0.75:.6f}")
    -2.837297
    """
    return _sum("stokes_sl", trg, src, (dens,), options, keywords)


def stokes_dl(
    trg: Array, src: Array, dens: Array, normals: Array, options: EwaldOptions | None = None, **keywords: Any
) -> Any:
    """Stokes double layer Σ −6 r (r·q)(r·n)/r⁵, r = target − source, coincident pairs skipped.

    `dens` = q and `normals` = n are (3, Ns), the result (3, Nt); everything else as in `laplace`.  Over a closed
    surface with outward n of length its area element, constant q gives 8πq inside and 0 outside; fully periodic,
    without the surface term, 8πq(1 − φ) and −8πqφ with φ the enclosed share of the volume.

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
    return _sum("stokes_dl", trg, src, (dens, normals), options, keywords)


def stokes_comb(
    trg: Array, src: Array, dens: Array, normals: Array, options: EwaldOptions | None = None, **keywords: Any
) -> Any:
    """Stokes single and double layer, Σ (I/r + rrᵀ/r³) f − 6 r (r·q)(r·n)/r⁵, r = target − source.

    `dens` is (6, Ns), f over q; `normals` is (3, Ns) and need not be of unit length; the result is (3, Nt); fully
    periodic with zero mean flow; everything else as in `laplace`.

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
    return _sum("stokes_comb", trg, src, (dens, normals), options, keywords)


def stokes_pressure(trg: Array, src: Array, dens: Array, options: EwaldOptions | None = None, **keywords: Any) -> Any:
    """Pressure of the Stokes single layer, Σ 2 r·f/r³, r = target − source, `dens` = f (3, Ns): (Nt,).

    It belongs to the flow of `stokes_sl` for viscosity 1: ∇p = ∇²u away from the sources.  Fully periodic it is zero on
    average; the mean gradient that balances a net force is not in it.

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
    return _sum("stokes_pressure", trg, src, (dens,), options, keywords)


def stokes_grad(trg: Array, src: Array, dens: Array, options: EwaldOptions | None = None, **keywords: Any) -> Any:
    """Velocity gradient of the Stokes single layer: row 3i + j of the result (9, Nt) is ∂u_i/∂x_j.

    `dens` is (3, Ns); everything else as in `stokes_sl`.  The stress is −p δ_ij + ∂u_i/∂x_j + ∂u_j/∂x_i, with the
    pressure of `stokes_pressure`.

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
    return _sum("stokes_grad", trg, src, (dens,), options, keywords)


def _made(kernel: Kernel, trg: Array, src: Array, options: EwaldOptions) -> Plan:
    """The plan; warnings that it gives point at the caller of this one's caller, as in `_sum`."""
    return Plan(kernel, trg, src, options)


def _sum(
    name: str, trg: Array, src: Array, strengths: tuple, options: EwaldOptions | None, keywords: dict,
    kappa: float | None = None,
) -> Any:  # fmt: skip
    given = dict(zip(("trg", "src", "dens", "normals"), (trg, src, *strengths), strict=False))
    resolved = EwaldOptions.resolve(options, {k: a for k, a in given.items() if a is not None}, **keywords)
    made = Plan(kernels.find(name, kappa=kappa), trg, src, resolved)
    found = [made(*strengths)]
    if resolved.return_walltime:
        found.append(made.walltime)
    if resolved.return_params:
        found.append(Params(made.parameters))
    if resolved.return_error:
        found.append(made.error(dens=strengths[0], normals=next(iter(strengths[1:]), None), u=found[0]))
    made.retire()
    return tuple(found) if len(found) > 1 else found[0]
