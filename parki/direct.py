"""Direct sums in free space: every source for every target, no box and no cutoff."""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

from numpy.typing import NDArray

from parki import per_particle, ranks
from parki.all_pairs import direct_sum
from parki.arrays import AnyArray, Real
from parki.direct_method import Direct
from parki.docstrings import FREE_PLAN
from parki.exclusions import Excluded
from parki.freespace import find
from parki.keywords import DirectKeywords, KernelParameters, shows
from parki.names import Gradient
from parki.options import FreeOptions
from parki.pairs import KernelLike
from parki.plan import Plan, make
from parki.spheres.flow import SIZED

__all__ = ["direct_sum", "plan"]


def __dir__() -> list[str]:
    return sorted(__all__)


@overload
def plan(
    kernel: KernelLike, targets: NDArray[Real], sources: NDArray[Real], *, gradient: Literal[False, "only"] = False,
    timed: bool = False, exclude: Excluded = None, **keywords: Unpack[DirectKeywords],
) -> Plan[NDArray[Real]]: ...  # fmt: skip
@overload
def plan(
    kernel: KernelLike, targets: NDArray[Real], sources: NDArray[Real], *, gradient: Literal[True],
    timed: bool = False, exclude: Excluded = None, **keywords: Unpack[DirectKeywords],
) -> Plan[tuple[NDArray[Real], NDArray[Real]]]: ...  # fmt: skip
@overload
def plan(
    kernel: KernelLike, targets: AnyArray, sources: AnyArray, *, gradient: Gradient = False, timed: bool = False,
    exclude: Excluded = None, **keywords: Unpack[DirectKeywords],
) -> Plan[Any]: ...  # fmt: skip
@shows(FreeOptions, parameters=KernelParameters, first=("gradient",), like=FREE_PLAN)
def plan(
    kernel: KernelLike, targets: AnyArray, sources: AnyArray, *, exclude: Excluded = None, **keywords: Any
) -> Plan[Any]:
    """Prepare direct sums for fixed points: ``u = plan(density)``.

    See Also
    --------
    direct_sum : Sum once, without a plan; its table has all kernels.
    parki.plan.Plan : The methods of a plan.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> print(parki.direct.plan("coulomb", x, x)(np.array([1.0, 4.0])))
    [2.  0.5]
    """
    with ranks.together(keywords.get("comm"), "making a plan", call="parki.direct.plan"):
        options, parameters = FreeOptions.split(keywords)
        kernel, parameters, lengths = per_particle.of_call(kernel, SIZED, parameters)
        method = per_particle.over(Direct(find(kernel, options, parameters), options), lengths, exclude)
    if options.comm is not None:
        from parki.distributed.direct import over

        method = over(method)
    return make(method, targets, sources, exclude)
