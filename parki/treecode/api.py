"""Calls of `parki.treecode`: one-shot sums, each a plan used once."""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

from numpy.typing import NDArray

from parki import per_particle, ranks
from parki.arguments import renamed
from parki.arrays import AnyArray, Real
from parki.docstrings import FREE_PLAN, FREE_SUM
from parki.exclusions import Excluded
from parki.freespace import check_reports, find
from parki.keywords import KernelParameters, TreecodeAlone, TreecodeKeywords, TreecodeReported, shows
from parki.method import Method
from parki.names import Gradient, TreecodeMethod, TreecodeVariant
from parki.pairs import KernelLike
from parki.plan import Plan, make, once
from parki.spheres.flow import SIZED
from parki.treecode.method import Treecode
from parki.treecode.options import TreecodeOptions

VARIANTS = ("pc", "cp")
MAIN = ("tolerance", "theta", "degree", "gradient")  # options that most calls name


@overload
def bldtt(
    targets: NDArray[Real], sources: NDArray[Real], density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, gradient: Literal[False, "only"] = False, **keywords: Unpack[TreecodeAlone],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def bldtt(
    targets: NDArray[Real], sources: NDArray[Real], density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, gradient: Literal[True], **keywords: Unpack[TreecodeAlone],
) -> tuple[NDArray[Real], NDArray[Real]]: ...  # fmt: skip
@overload
def bldtt(
    targets: AnyArray, sources: AnyArray, density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, gradient: Gradient = False, **keywords: Unpack[TreecodeReported],
) -> Any: ...  # fmt: skip
@renamed(charges="density")
@shows(TreecodeOptions, parameters=KernelParameters, without=("method", "timed"), first=MAIN, like=FREE_SUM)
def bldtt(
    targets: AnyArray, sources: AnyArray, density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, return_walltime: bool = False, return_params: bool = False,
    return_error: bool = False, **keywords: Any,
) -> Any:  # fmt: skip
    """Sum u(x_i) = Σ_j K(x_i − y_j) q_j over all pairs by barycentric Lagrange dual tree traversal.

    The work grows as the number of points.  Clusters of targets and of sources that are far for their size interact
    through interpolation at Chebyshev points, which requires only that a kernel is smooth away from r = 0.

    See Also
    --------
    bltc : Sum by batches of particles against clusters.
    plan : Sum for many densities or moving points.
    parki.fmm.kifmm : Sum kernels of Laplace, Yukawa and Stokes problems by a fast multipole method.
    parki.direct.direct_sum : Sum without approximation; its table has all kernels.

    References
    ----------
    L. Wilson, N. Vaughn, R. Krasny, Comput. Phys. Commun. 265 (2021) 108017.  New here: the degree falls with distance.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x, q = parki.samples.uniform(2000, seed=1), parki.samples.charges(2000, seed=2)
    >>> u = parki.treecode.bldtt(x, x, q, tolerance=1e-6)
    >>> exact = parki.direct.direct_sum("coulomb", x, x, q)
    >>> bool(np.linalg.norm(u - exact) < 1e-6 * np.linalg.norm(exact))
    True
    """
    reports = (return_walltime, return_params, return_error)
    return _once("dual", (kernel, targets, sources, density, normals), reports, keywords)


@overload
def bltc(
    targets: NDArray[Real], sources: NDArray[Real], density: AnyArray, kernel: KernelLike = "coulomb", *,
    variant: TreecodeVariant = "pc", normals: AnyArray | None = None, gradient: Literal[False, "only"] = False,
    **keywords: Unpack[TreecodeAlone],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def bltc(
    targets: NDArray[Real], sources: NDArray[Real], density: AnyArray, kernel: KernelLike = "coulomb", *,
    variant: TreecodeVariant = "pc", normals: AnyArray | None = None, gradient: Literal[True],
    **keywords: Unpack[TreecodeAlone],
) -> tuple[NDArray[Real], NDArray[Real]]: ...  # fmt: skip
@overload
def bltc(
    targets: AnyArray, sources: AnyArray, density: AnyArray, kernel: KernelLike = "coulomb", *,
    variant: TreecodeVariant = "pc", normals: AnyArray | None = None, gradient: Gradient = False,
    **keywords: Unpack[TreecodeReported],
) -> Any: ...  # fmt: skip
@renamed(charges="density")
@shows(TreecodeOptions, parameters=KernelParameters, without=("method", "timed"), first=MAIN, like=FREE_SUM)
def bltc(
    targets: AnyArray, sources: AnyArray, density: AnyArray, kernel: KernelLike = "coulomb", *,
    variant: TreecodeVariant = "pc", normals: AnyArray | None = None, return_walltime: bool = False,
    return_params: bool = False, return_error: bool = False, **keywords: Any,
) -> Any:  # fmt: skip
    """Sum over all pairs by the barycentric Lagrange treecode: batches of particles against clusters.

    The work grows as N log N; the sum is that of `bldtt`.

    Parameters
    ----------
    variant : {"pc", "cp"}, default "pc"
        Batches of targets against clusters of sources, or clusters of targets against batches of sources: better where
        there are many more targets than sources.

    See Also
    --------
    bldtt : Sum by dual tree traversal.
    plan : Sum for many densities or moving points.

    References
    ----------
    N. Vaughn, L. Wilson, R. Krasny, IPDPS Workshops (2020); Wilson et al. (2021), section 4.5, for ``"cp"``.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> print(parki.treecode.bltc(x, x, np.array([1.0, 4.0])))
    [2.  0.5]
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant is {variant!r}; expected one of {', '.join(map(repr, VARIANTS))}.")
    reports = (return_walltime, return_params, return_error)
    return _once(variant, (kernel, targets, sources, density, normals), reports, keywords)


@overload
def plan(
    kernel: KernelLike, targets: NDArray[Real], sources: NDArray[Real], *, method: TreecodeMethod = "dual",
    gradient: Literal[False, "only"] = False, timed: bool = False, exclude: Excluded = None,
    **keywords: Unpack[TreecodeKeywords],
) -> Plan[NDArray[Real]]: ...  # fmt: skip
@overload
def plan(
    kernel: KernelLike, targets: NDArray[Real], sources: NDArray[Real], *, method: TreecodeMethod = "dual",
    gradient: Literal[True], timed: bool = False, exclude: Excluded = None, **keywords: Unpack[TreecodeKeywords],
) -> Plan[tuple[NDArray[Real], NDArray[Real]]]: ...  # fmt: skip
@overload
def plan(
    kernel: KernelLike, targets: AnyArray, sources: AnyArray, *, method: TreecodeMethod = "dual",
    gradient: Gradient = False, timed: bool = False, exclude: Excluded = None, **keywords: Unpack[TreecodeKeywords],
) -> Plan[Any]: ...  # fmt: skip
@shows(TreecodeOptions, parameters=KernelParameters, first=MAIN, like=FREE_PLAN)
def plan(
    kernel: KernelLike, targets: AnyArray, sources: AnyArray, *, method: TreecodeMethod = "dual",
    exclude: Excluded = None, **keywords: Any,
) -> Plan[Any]:  # fmt: skip
    """Prepare a treecode for fixed points: ``u = plan(density)``.

    Parameters
    ----------
    method : {"dual", "pc", "cp"}, default "dual"
        Dual tree traversal, or the variants of `bltc`.

    See Also
    --------
    bldtt : Sum once, without a plan.
    parki.plan.Plan : The methods of a plan.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> plan = parki.treecode.plan("yukawa", x, x, kappa=0.5)
    >>> print(plan(np.array([0.0, 2.0])).round(6))
    [0.367879 0.      ]
    """
    return make(_method("parki.treecode.plan", kernel, exclude, method=method, **keywords), targets, sources, exclude)


def _method(call: str, kernel: KernelLike, exclude: Excluded = None, **keywords: Any) -> Method:
    """Return the method of a kernel and the keywords of a call."""
    comm = keywords.get("comm")
    with ranks.ALONE if comm is None else ranks.together(comm, f"calling {call}", call=call):
        options, parameters = TreecodeOptions.split(keywords)
        kernel, parameters, lengths = per_particle.of_call(kernel, SIZED, parameters)
        method = per_particle.over(Treecode(find(kernel, options, parameters), options), lengths, exclude)
    if options.comm is not None:
        from parki.distributed.treecode.method import over

        return over(method)
    return method


def _once(method: str, arguments: tuple[Any, ...], reports: tuple[bool, bool, bool], keywords: dict[str, Any]) -> Any:
    kernel, targets, sources, density, normals = arguments
    comm = keywords.get("comm")
    with ranks.ALONE if comm is None else ranks.together(comm, "a treecode sum", call=method):
        check_reports(*reports)
    free_method = _method("parki.treecode", kernel, method=method, **{"timed": reports[0]} | keywords)
    return once(free_method, (targets, sources), density, normals, reports)
