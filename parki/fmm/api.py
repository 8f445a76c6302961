"""Calls of `parki.fmm`: one-shot sums, each a plan used once."""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

from numpy.typing import NDArray

from parki import per_particle, ranks
from parki.arguments import renamed
from parki.arrays import AnyArray, Real
from parki.docstrings import FREE_PLAN, FREE_SUM
from parki.exclusions import Excluded
from parki.fmm.kinds import KINDS
from parki.fmm.options import FmmOptions
from parki.freespace import check_reports, find
from parki.keywords import FmmAlone, FmmKeywords, FmmReported, KernelParameters, shows
from parki.method import Method
from parki.names import FmmMethod, Gradient
from parki.pairs import KernelLike
from parki.plan import Plan, make, once
from parki.spheres.flow import FAXEN, SIZED

MAIN = ("tolerance", "order", "gradient")  # options that most calls name


@overload
def kifmm(
    targets: NDArray[Real], sources: NDArray[Real], density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, gradient: Literal[False, "only"] = False, **keywords: Unpack[FmmAlone],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def kifmm(
    targets: NDArray[Real], sources: NDArray[Real], density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, gradient: Literal[True], **keywords: Unpack[FmmAlone],
) -> tuple[NDArray[Real], NDArray[Real]]: ...  # fmt: skip
@overload
def kifmm(
    targets: AnyArray, sources: AnyArray, density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, gradient: Gradient = False, **keywords: Unpack[FmmReported],
) -> Any: ...  # fmt: skip
@renamed(charges="density")
@shows(FmmOptions, parameters=KernelParameters, without=("method", "timed"), first=MAIN, like=FREE_SUM)
def kifmm(
    targets: AnyArray, sources: AnyArray, density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, return_walltime: bool = False, return_params: bool = False,
    return_error: bool = False, **keywords: Any,
) -> Any:  # fmt: skip
    """Sum u(x_i) = Σ_j K(x_i − y_j) q_j over all pairs by the kernel-independent fast multipole method.

    The work grows as the number of points.  Sources of the boxes of an adaptive octree are replaced by equivalent ones
    on surfaces around them, found by solving small systems, so the method needs only values of the kernel.  It is for
    kernels of Laplace, Yukawa and Stokes problems and similar kernels of a caller; `chebyshev` takes all that are
    smooth.

    Parameters
    ----------
    kernel : str, path, function or Pair
        ``"coulomb"``, ``"yukawa"``, ``"laplace_grad"``, ``"laplace_dipole"``, ``"stokes_sl"``, ``"stokes_dl"``,
        ``"stokes_comb"``, ``"stokes_pressure"``, ``"stokes_grad"``, ``"stokes_dipole"``, ``"rotlet"``, ``"rpy"``, a
        `parki.pairs.Pair`, the path of a file with a function ``pair`` as in ``kernels/pair``, or a Python function.
        Pairs at distance zero are skipped.

    See Also
    --------
    chebyshev : Sum any smooth kernel by interpolation in boxes.
    plan : Sum for many densities or moving points.
    parki.treecode.bldtt : Sum by a treecode.
    parki.direct.direct_sum : Sum without approximation; its table has all kernels.

    References
    ----------
    L. Ying, G. Biros, D. Zorin, J. Comput. Phys. 196 (2004) 591–626; I. Lashuk et al., SC09.  New here: singular values
    are cut by the tolerance, Stokes flows have velocity and pressure as check values, operators fall into classes by
    reflection, transforms have the least length.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x, q = parki.samples.uniform(2000, seed=1), parki.samples.charges(2000, seed=2)
    >>> u = parki.fmm.kifmm(x, x, q, tolerance=1e-5)
    >>> exact = parki.direct.direct_sum("coulomb", x, x, q)
    >>> bool(np.linalg.norm(u - exact) < 1e-5 * np.linalg.norm(exact))
    True
    """
    reports = (return_walltime, return_params, return_error)
    return _once("kifmm", (kernel, targets, sources, density, normals), reports, keywords)


@overload
def chebyshev(
    targets: NDArray[Real], sources: NDArray[Real], density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, gradient: Literal[False, "only"] = False, **keywords: Unpack[FmmAlone],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def chebyshev(
    targets: NDArray[Real], sources: NDArray[Real], density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, gradient: Literal[True], **keywords: Unpack[FmmAlone],
) -> tuple[NDArray[Real], NDArray[Real]]: ...  # fmt: skip
@overload
def chebyshev(
    targets: AnyArray, sources: AnyArray, density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, gradient: Gradient = False, **keywords: Unpack[FmmReported],
) -> Any: ...  # fmt: skip
@renamed(charges="density")
@shows(FmmOptions, parameters=KernelParameters, without=("method", "timed"), first=MAIN, like=FREE_SUM)
def chebyshev(
    targets: AnyArray, sources: AnyArray, density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, return_walltime: bool = False, return_params: bool = False,
    return_error: bool = False, **keywords: Any,
) -> Any:  # fmt: skip
    """Sum over all pairs by the black-box fast multipole method: interpolation at Chebyshev points of boxes.

    The method takes every kernel of `parki.pairs.PAIRS` and a caller's own that is smooth away from r = 0.

    See Also
    --------
    kifmm : Sum kernels of Laplace, Yukawa and Stokes problems by equivalent sources.
    plan : Sum for many densities or moving points.

    References
    ----------
    W. Fong, E. Darve, J. Comput. Phys. 228 (2009) 8712–8725; E. Agullo et al., Inria RR-8513 (2014).  New here: boxes
    are reflected into one octant, so that 189 offsets stand for all, and their sums are inside one matrix product.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> print(parki.fmm.chebyshev(x, x, np.array([1.0, 4.0]), "multiquadric", width=1.5))
    [11.5  8.5]
    """
    reports = (return_walltime, return_params, return_error)
    return _once("chebyshev", (kernel, targets, sources, density, normals), reports, keywords)


@overload
def plan(
    kernel: KernelLike, targets: NDArray[Real], sources: NDArray[Real], *, method: FmmMethod = "kifmm",
    gradient: Literal[False, "only"] = False, timed: bool = False, exclude: Excluded = None,
    **keywords: Unpack[FmmKeywords],
) -> Plan[NDArray[Real]]: ...  # fmt: skip
@overload
def plan(
    kernel: KernelLike, targets: NDArray[Real], sources: NDArray[Real], *, method: FmmMethod = "kifmm",
    gradient: Literal[True], timed: bool = False, exclude: Excluded = None, **keywords: Unpack[FmmKeywords],
) -> Plan[tuple[NDArray[Real], NDArray[Real]]]: ...  # fmt: skip
@overload
def plan(
    kernel: KernelLike, targets: AnyArray, sources: AnyArray, *, method: FmmMethod = "kifmm",
    gradient: Gradient = False, timed: bool = False, exclude: Excluded = None, **keywords: Unpack[FmmKeywords],
) -> Plan[Any]: ...  # fmt: skip
@shows(FmmOptions, parameters=KernelParameters, first=MAIN, like=FREE_PLAN)
def plan(
    kernel: KernelLike, targets: AnyArray, sources: AnyArray, *, method: FmmMethod = "kifmm",
    exclude: Excluded = None, **keywords: Any,
) -> Plan[Any]:  # fmt: skip
    """Prepare a fast multipole method for fixed points: ``u = plan(density)``.

    Parameters
    ----------
    method : {"kifmm", "chebyshev"}, default "kifmm"
        Equivalent sources on surfaces around boxes, or interpolation at Chebyshev points in them.

    See Also
    --------
    kifmm, chebyshev : Sum once, without a plan.
    parki.plan.Plan : The methods of a plan.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> plan = parki.fmm.plan("yukawa", x, x, kappa=0.5)
    >>> print(plan(np.array([0.0, 2.0])).round(6))
    [0.367879 0.      ]
    """
    return make(_method(kernel, exclude, method=method, **keywords), targets, sources, exclude)


def _method(kernel: KernelLike, exclude: Excluded = None, **keywords: Any) -> Method:
    """Return the method of a kernel and a call's keywords, over ranks if these have a communicator."""
    comm = keywords.get("comm")
    with ranks.ALONE if comm is None else ranks.together(comm, "making a plan", call="parki.fmm.plan"):
        options, parameters = FmmOptions.split(keywords)
        flow = FAXEN if options.method == "kifmm" else SIZED
        kernel, parameters, lengths = per_particle.of_call(kernel, flow, parameters)
        method = per_particle.over(KINDS[options.method](find(kernel, options, parameters), options), lengths, exclude)
    if options.comm is None:
        return method
    from parki.distributed.fmm.method import over

    return over(method)


def _once(method: str, arguments: tuple[Any, ...], reports: tuple[bool, bool, bool], keywords: dict[str, Any]) -> Any:
    kernel, targets, sources, density, normals = arguments
    with ranks.ALONE if keywords.get("comm") is None else ranks.together(keywords["comm"], "reading flags"):
        check_reports(*reports)
    free_method = _method(kernel, method=method, **{"timed": reports[0]} | keywords)
    return once(free_method, (targets, sources), density, normals, reports)
