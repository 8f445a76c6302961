"""Calls of `parki.sum` and `parki.fastest`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Unpack, overload

from numpy.typing import NDArray

from parki import pairs
from parki.arguments import renamed
from parki.arrays import AnyArray, Real
from parki.automatic import candidates
from parki.automatic.options import SumOptions
from parki.docstrings import FREE_PLAN, FREE_SUM
from parki.exclusions import Excluded
from parki.freespace import REPORTS, check_reports
from parki.keywords import FastestKeywords, KernelParameters, SumAlone, SumReported, shows
from parki.names import Gradient
from parki.pairs import KernelLike
from parki.plan import Plan, make, reported

MAIN = ("tolerance", "box", "periodicity", "method", "gradient")  # options that most calls name
ALONE = ("comm", "timed")  # options of single methods


@overload
def sum(
    targets: NDArray[Real], sources: NDArray[Real], density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, gradient: Literal[False, "only"] = False, **keywords: Unpack[SumAlone],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def sum(
    targets: NDArray[Real], sources: NDArray[Real], density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, gradient: Literal[True], **keywords: Unpack[SumAlone],
) -> tuple[NDArray[Real], NDArray[Real]]: ...  # fmt: skip
@overload
def sum(
    targets: AnyArray, sources: AnyArray, density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, gradient: Gradient = False, **keywords: Unpack[SumReported],
) -> Any: ...  # fmt: skip
@renamed(charges="density")
@shows(SumOptions, parameters=KernelParameters, without=(*ALONE, "calls", "rhs"), first=MAIN, like=FREE_SUM)
def sum(
    targets: AnyArray, sources: AnyArray, density: AnyArray, kernel: KernelLike = "coulomb", *,
    normals: AnyArray | None = None, return_walltime: bool = False, return_params: bool = False,
    return_error: bool = False, **keywords: Any,
) -> Any:  # fmt: skip
    """Sum u(x_i) = Σ_j K(x_i − y_j) q_j by the method that is predicted to be the fastest one.

    With periodic axes that is an Ewald sum.  In free space direct sums, Ewald sums, fast multipole methods and
    treecodes are compared, by the same models as `parki.plan.Plan.predict`, for the kernel, the tolerance, the number
    of points, and how they crowd.  A sum like an earlier one of the process mostly takes its method.

    Warns
    -----
    PrecisionWarning, NetDensityWarning
        As `parki.ewald.laplace` does, by whichever method sums.

    See Also
    --------
    fastest : Plan for many densities or moving points.
    parki.ewald.plan, parki.fmm.plan, parki.treecode.plan, parki.direct.plan : Plan a sum by a method of your choice.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x, q = parki.samples.uniform(500, seed=1), parki.samples.charges(500, seed=2)
    >>> u = parki.sum(x, x, q, tolerance=1e-5)
    >>> exact = parki.direct.direct_sum("coulomb", x, x, q)
    >>> bool(np.linalg.norm(u - exact) < 1e-5 * np.linalg.norm(exact))
    True

    The Madelung constant of rock salt, nearest distance 1:

    >>> x = np.array([(i, j, k) for i in range(2) for j in range(2) for k in range(2)], float).T
    >>> q = (-1.0) ** x.sum(axis=0)
    >>> print(f"{parki.sum(x, x, q, box=(2, 2, 2), tolerance=1e-9)[0]:.6f}")
    -1.747565
    """
    check_reports(return_walltime, return_params, return_error)
    reports = (return_walltime, return_params, return_error)
    options, parameters = SumOptions.split({"timed": return_walltime} | keywords)
    plan = _plan(kernel, targets, sources, options, parameters)
    return reported(plan, density, normals, reports)


@overload
def fastest(
    kernel: KernelLike, targets: NDArray[Real], sources: NDArray[Real], *, gradient: Literal[False, "only"] = False,
    exclude: Excluded = None, **keywords: Unpack[FastestKeywords],
) -> Plan[NDArray[Real]]: ...  # fmt: skip
@overload
def fastest(
    kernel: KernelLike, targets: NDArray[Real], sources: NDArray[Real], *, gradient: Literal[True],
    exclude: Excluded = None, **keywords: Unpack[FastestKeywords],
) -> Plan[tuple[NDArray[Real], NDArray[Real]]]: ...  # fmt: skip
@overload
def fastest(
    kernel: KernelLike, targets: AnyArray, sources: AnyArray, *, gradient: Gradient = False, exclude: Excluded = None,
    **keywords: Unpack[FastestKeywords],
) -> Plan[Any]: ...  # fmt: skip
@shows(SumOptions, parameters=KernelParameters, without=ALONE, first=("calls", *MAIN), like=FREE_PLAN)
def fastest(
    kernel: KernelLike, targets: AnyArray, sources: AnyArray, *, exclude: Excluded = None, **keywords: Any
) -> Plan[Any]:
    """Prepare a sum for fixed points by the method that is predicted to be the fastest one: ``u = plan(density)``.

    Warns
    -----
    PrecisionWarning
        As `parki.ewald.plan` does, by whichever method sums.

    See Also
    --------
    sum : Sum once, without a plan.
    parki.plan.Plan : The methods of a plan; its attribute `method` tells which one was chosen.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> plan = parki.fastest("coulomb", x, x, calls=100)
    >>> print(plan(np.array([1.0, 4.0])), plan.method.name)
    [2.  0.5] direct
    """
    options, parameters = SumOptions.split(keywords)
    return _plan(kernel, targets, sources, options, parameters, exclude)


def _plan(
    kernel: KernelLike, targets: AnyArray, sources: AnyArray, options: SumOptions, parameters: dict[str, Any],
    exclude: Excluded = None,
) -> Plan[Any]:  # fmt: skip
    """Return the plan of the options' method, or of the fastest one."""
    pair = pairs.find(kernel, (*options.names(), *REPORTS, "normals"), **parameters)
    if options.method == "auto":
        pick = candidates.fastest(pair, targets, sources, options)
        method = replace(pick.method, served=False)
        return make(method, targets, sources, exclude, pick.cost.draft or pick.parameters)
    points = {"targets": targets, "sources": sources}
    return make(candidates.named(options.method, pair, options, points), targets, sources, exclude)
