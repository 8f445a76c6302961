"""Calls of `parki.ewald`: plans, and one-shot sums, each a plan used once; `stokes` has the sums of Stokes flow."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Literal, Unpack, overload

from numpy.typing import NDArray

from parki import per_particle, ranks
from parki.arguments import PUBLISHED, renamed
from parki.arrays import AnyArray, Real
from parki.ewald import kernels
from parki.ewald.kernel import Kernel
from parki.ewald.method import Ewald
from parki.ewald.options import MAIN, EwaldOptions
from parki.exclusions import Excluded
from parki.keywords import EwaldAlone, EwaldReported, Lengths, shows
from parki.names import EwaldKernelName, Gradient
from parki.plan import Plan, make
from parki.plan import once as sum_once


@overload
def plan(
    kernel: EwaldKernelName | Kernel, targets: NDArray[Real], sources: NDArray[Real],
    options: EwaldOptions | None = None, *, kappa: float | None = None, radius: Lengths | None = None,
    epsilon: float | None = None, gradient: Literal[False, "only"] = False, exclude: Excluded = None,
    **keywords: Unpack[EwaldReported],
) -> Plan[NDArray[Real]]: ...  # fmt: skip
@overload
def plan(
    kernel: EwaldKernelName | Kernel, targets: AnyArray, sources: AnyArray, options: EwaldOptions | None = None, *,
    kappa: float | None = None, radius: Lengths | None = None, epsilon: float | None = None,
    gradient: Literal[False, "only"] = False, exclude: Excluded = None, **keywords: Unpack[EwaldReported],
) -> Plan[Any]: ...  # fmt: skip
@overload
def plan(
    kernel: EwaldKernelName | Kernel, targets: NDArray[Real], sources: NDArray[Real],
    options: EwaldOptions | None = None, *, kappa: float | None = None, radius: Lengths | None = None,
    epsilon: float | None = None, gradient: Literal[True], exclude: Excluded = None, **keywords: Unpack[EwaldReported],
) -> Plan[tuple[NDArray[Real], NDArray[Real]]]: ...  # fmt: skip
@overload
def plan(
    kernel: EwaldKernelName | Kernel, targets: AnyArray, sources: AnyArray, options: EwaldOptions | None = None, *,
    kappa: float | None = None, radius: Lengths | None = None, epsilon: float | None = None, gradient: Gradient,
    exclude: Excluded = None, **keywords: Unpack[EwaldReported],
) -> Plan[Any]: ...  # fmt: skip
@renamed(trg="targets", src="sources")
@shows(EwaldOptions, first=MAIN)
def plan(
    kernel: EwaldKernelName | Kernel, targets: AnyArray, sources: AnyArray, options: EwaldOptions | None = None, *,
    kappa: float | None = None, radius: Lengths | None = None, epsilon: float | None = None, gradient: Gradient = False,
    exclude: Excluded = None, **keywords: Any,
) -> Plan[Any]:  # fmt: skip
    """Prepare a sum for fixed points: ``u = plan(density[, normals])``.

    A plan serves any number of densities, and points that move: choosing parameters, sorting points and compiling
    kernels happen once.

    Parameters
    ----------
    kernel : str or Kernel
        ``"laplace"``, ``"laplace_grad"``, ``"laplace_dipole"``, ``"stokes_sl"``, ``"stokes_dl"``, ``"stokes_comb"``,
        ``"stokes_pressure"``, ``"stokes_grad"``, ``"stokes_dipole"``, ``"yukawa"``, ``"rotlet"``,
        ``"regularised_stokeslet"``, ``"regularised_dipole"``, ``"rpy"``, ``"rpy_rotation"``, or a kernel of your own
        (`parki.ewald.Kernel`).
    targets, sources : array (3, Nt), (3, Ns)
        Points, float32 or float64: NumPy or CuPy arrays, or anything with DLPack.  They are wrapped along periodic
        directions, and lie in ``[0, side]`` along free ones.
    options : EwaldOptions, optional
        Single options may be given or replaced by keywords: ``box=(1, 1, 1), tolerance=1e-6``.
    kappa : float, optional
        Inverse screening length κ of ``"yukawa"``, in the inverse of the points' unit of length.
    radius : float or array (N,), or a tuple of two arrays, optional
        Radius of the spheres of ``"rpy"`` and ``"rpy_rotation"``, in the points' unit of length; for ``"rpy"`` also one
        for each sphere, as in `rpy`.
    epsilon : float, optional
        Width ε of the blobs of ``"regularised_stokeslet"`` and ``"regularised_dipole"``, in the points' unit of length.
    gradient : False, True or "only", default False
        With True, sum ``"laplace"`` or ``"yukawa"`` and its gradient in one pass; with ``"only"`` the gradient alone,
        also of ``"stokes_sl"``.
    exclude : array (2, M) or tuple, optional
        Pairs of particles that the sum leaves out, one pair per column, each once; if targets are not the sources,
        pairs of a target and a source.  A tuple is (pairs, scale), with the factor or factors (M,) by which these pairs
        are kept, or lists by target (begin, partners) or (begin, partners, scale).  In a periodic cell the nearest
        image of a pair is left out.  The tolerance is relative to the remaining sum, for which the first call may
        choose parameters anew.

    Returns
    -------
    Plan
        A callable that sums densities at these points.

    Raises
    ------
    ValueError, TypeError
        For input that does not fit, naming the argument, the value found and the value expected.
    MemoryError
        If the plan would need more memory of the host than is free, naming the options that lower the need.

    Warns
    -----
    PrecisionWarning
        For a tolerance below the reach of the points' type; the best possible is computed.

    See Also
    --------
    laplace : Sum once, without a plan.
    parki.plan.Plan : The methods of a plan.
    parki.treecode.plan, parki.fmm.plan : Plan other sums in free space.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 0.5], [0.0, 0.5], [0.0, 0.5]])
    >>> plan = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-9)
    >>> print(f"{plan(np.array([1.0, -1.0]))[0] * np.sqrt(0.75):.6f}")  # Madelung constant of CsCl
    -1.762675
    """
    with _together(options, keywords, "parki.ewald.plan"):
        points = {"targets": targets, "sources": sources}
        call_options = EwaldOptions.resolve(options, points, (*kernels.PARAMETERS, "gradient"), **keywords)
        parameters = {"kappa": kappa, "radius": radius, "epsilon": epsilon}
        kernel, parameters, lengths = per_particle.of_call(kernel, kernels.FAXEN, parameters)
        method = Ewald(kernels.gradient(kernels.find(kernel, **parameters), gradient), call_options, gradient=gradient)
        method = per_particle.over(method, lengths, exclude)
    return make(over(method), targets, sources, exclude)


@overload
def laplace(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, options: None = None, **keywords: Unpack[EwaldAlone]
) -> NDArray[Real]: ...
@overload
def laplace(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Unpack[EwaldReported]
) -> Any: ...
@shows(EwaldOptions, first=MAIN)
def laplace(trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Any) -> Any:
    """Return the Laplace potential Σ q/r, coincident pairs skipped.

    With three periodic directions its average over the box is zero; the user guide on boxes lists the constants for
    other periodicities.  There is no factor 1/4π: results are in units of the charges over the points' unit of length.

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
    array (Nt,) or (k, Nt), or a tuple
        The sum at all targets, in the points' dtype: a CuPy array for arrays on a GPU, where nothing is copied to the
        host; otherwise an array of the library of `dens`.  A tuple ``(u[, WallTime][, Params][, ErrorEstimate])`` if
        the options ask for reports.

    Raises
    ------
    ValueError, TypeError
        For input that does not fit, naming the argument, the value found and the value expected.
    MemoryError
        If the sum would need more memory of the host than is free, naming the options that lower the need.

    Warns
    -----
    PrecisionWarning
        For a tolerance below the reach of the points' type; the best possible is computed.
    NetDensityWarning
        For a net charge or force in a fully periodic box; the warning names the convention by which the sum converges.
    CancellationWarning
        With `return_error`, if the sum is so small compared with its parts that its relative error says little.

    See Also
    --------
    laplace_grad : The gradient of this potential.
    plan : Sum for many densities or moving points.
    parki.treecode.bldtt, parki.fmm.kifmm : Sum without periodic directions and box.
    parki.torch.laplace : Differentiate the sum by PyTorch.

    References
    ----------
    Lindbo and Tornberg, J. Comput. Phys. 230 (2011); Liang et al. (2025) for the prolate split; Shamshirgar, Bagge and
    Tornberg, J. Chem. Phys. 154 (2021) for free directions; Kosmacher et al. (2026) for the published variants.

    Examples
    --------
    The Madelung constant of rock salt, nearest distance 1:

    >>> import numpy as np, parki
    >>> x = np.array([(i, j, k) for i in range(2) for j in range(2) for k in range(2)], float).T
    >>> q = (-1.0) ** x.sum(axis=0)
    >>> print(f"{parki.ewald.laplace(x, x, q, box=(2, 2, 2), tolerance=1e-9)[0]:.6f}")
    -1.747565
    """
    return once("laplace", trg, src, (dens,), options, keywords)


@overload
def laplace_grad(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, options: None = None, **keywords: Unpack[EwaldAlone]
) -> NDArray[Real]: ...
@overload
def laplace_grad(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Unpack[EwaldReported]
) -> Any: ...
@shows(EwaldOptions, first=MAIN, like=laplace)
def laplace_grad(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Any
) -> Any:
    """Return the gradient of the Laplace potential, Σ −q r/r³ with r = target − source.

    The force on a charge q of the sources is −q times the gradient.

    Returns
    -------
    array (3, Nt) or (k, 3, Nt), or a tuple
        The gradient at all targets; a tuple as by `laplace`.

    See Also
    --------
    laplace : The potential, and all that both have in common.
    plan : Sum for many densities or moving points.

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
    return once("laplace_grad", trg, src, (dens,), options, keywords)


@overload
def laplace_dipole(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, options: None = None, **keywords: Unpack[EwaldAlone]
) -> NDArray[Real]: ...
@overload
def laplace_dipole(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Unpack[EwaldReported]
) -> Any: ...
@shows(EwaldOptions, first=MAIN, like=laplace)
def laplace_dipole(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Any
) -> Any:
    """Return the potential of dipoles, Σ d·r/r³ with r = target − source.

    With three periodic directions the potential has no surface term: a conductor surrounds the crystal.

    Parameters
    ----------
    dens : array (3, Ns), or (k, 3, Ns) for k right-hand sides
        Dipole moments d.

    See Also
    --------
    laplace : The potential of charges, and all that both have in common.
    plan : Sum for many densities or moving points.

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
    return once("laplace_dipole", trg, src, (dens,), options, keywords)


@overload
def yukawa(
    trg: NDArray[Real], src: NDArray[Real], dens: AnyArray, kappa: float, options: None = None,
    **keywords: Unpack[EwaldAlone],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def yukawa(
    trg: AnyArray, src: AnyArray, dens: AnyArray, kappa: float, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldReported],
) -> Any: ...  # fmt: skip
@shows(EwaldOptions, first=MAIN, like=laplace)
def yukawa(
    trg: AnyArray, src: AnyArray, dens: AnyArray, kappa: float, options: EwaldOptions | None = None, **keywords: Any
) -> Any:
    """Return the screened Coulomb potential Σ q exp(−κr)/r, coincident pairs skipped.

    There is no background: the mean over a periodic box of volume V is
    4π Σq/(κ²V).

    Parameters
    ----------
    dens : array (Ns,), or (k, Ns) for k right-hand sides
        Charges; they need not be neutral.
    kappa : float
        Inverse screening length κ > 0, in the inverse of the points' unit of length.

    See Also
    --------
    laplace : The potential without screening, and all that both have in common.
    plan : Sum for many densities or moving points.

    References
    ----------
    Salin and Caillol, J. Chem. Phys. 113 (2000) for the Ewald sum; `parki.ewald.split.profiles` for the split.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    >>> print(f"{parki.ewald.yukawa(x, x, np.array([1.0, 0.0]), 2.0, periodicity=0, tolerance=1e-9)[1]:.6f}")
    0.135335
    """
    return once("yukawa", trg, src, (dens,), options, keywords, {"kappa": kappa})


def once(
    name: str, trg: AnyArray, src: AnyArray, strengths: tuple[AnyArray, ...], options: EwaldOptions | None,
    keywords: dict[str, Any], parameters: Mapping[str, Any] = MappingProxyType({}),
) -> Any:  # fmt: skip
    """Sum once by a plan of the named kernel; return the sum, in a tuple with the reports that options ask for."""
    arguments = dict(zip(("trg", "src", "dens", "normals"), (trg, src, *strengths), strict=False))
    with _together(options, keywords, name):
        call_options = EwaldOptions.resolve(options, {k: a for k, a in arguments.items() if a is not None}, **keywords)
        kernel, parameters, lengths = per_particle.of_call(name, kernels.FAXEN, parameters)
        method = Ewald(kernels.find(kernel, **parameters), call_options, names=PUBLISHED)
        method = per_particle.over(method, lengths)
    dens, normals = (*strengths, None)[:2]
    reports = (call_options.return_walltime, call_options.return_params, call_options.return_error)
    return sum_once(over(method), (trg, src), dens, normals, reports)


def _together(options: EwaldOptions | None, keywords: dict[str, Any], call: str) -> AbstractContextManager[Any]:
    """Return the context of a call's checks, which raises errors on all ranks if there is a communicator."""
    comm = keywords.get("comm", options.comm if isinstance(options, EwaldOptions) else None)
    return ranks.ALONE if comm is None else ranks.together(comm, f"calling {call}", call=call)


def over(method: Ewald) -> Ewald:
    """Return a method over the ranks of its options' communicator, or itself without one or with a single rank."""
    if method.options.comm is None:
        return method
    from parki.distributed.bricks import method as bricks

    return bricks.over(method)
