"""Methods that can sum a kernel, and the one that is predicted to take the least time.

Costs are those of `Method.cost`: of making a plan and of a call, before points are arranged.  The methods whose costs
are known soonest come first, and a method is looked at only while the best one before it takes longer than looking.
Of a sum like an earlier one only the method that this one took is looked at.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from parki import prediction, saying
from parki.automatic import picks
from parki.automatic.options import SumOptions
from parki.automatic.picks import Pick
from parki.direct_method import Direct
from parki.ewald import kernels
from parki.ewald.kernel import Kernel
from parki.ewald.method import Ewald
from parki.ewald.options import EwaldOptions
from parki.fmm import representations
from parki.fmm.kinds import KINDS
from parki.fmm.options import FmmOptions
from parki.method import Method, Problem
from parki.options import FreeOptions
from parki.pairs import Pair
from parki.plan import placed
from parki.prediction import PlanCost
from parki.treecode.method import Treecode
from parki.treecode.options import TreecodeOptions

#: Least time of the best method at which another one is looked at, in times of making a plan (`prediction.making`).
LOOK = {
    "ewald": ("ewald", 1.5), "kifmm": ("uneven fmm", 2.0), "bldtt": ("treecode of lengths", 2.0),
    "chebyshev": ("uneven fmm", 8.0),
}  # fmt: skip
FEW_PAIRS = 4_000_000  # pairs that take less time than other methods' plans: their sum is direct
TREECODES = {"bldtt": "dual", "bltc": "pc"}
log = logging.getLogger("parki")


class Candidate(NamedTuple):
    """Method by its name among the options, with the parameters that it chose for a problem, and its cost."""

    name: str
    method: Method
    parameters: Any
    cost: PlanCost


def named(name: str, pair: Pair, options: SumOptions, points: dict[str, Any]) -> Method:
    """Return the named method for a pair.

    Raises
    ------
    ValueError
        For a kernel that the method does not sum.
    """
    common = options.common()
    if name == "ewald":
        return _ewald(pair, options, points)
    slope = pair.with_gradient(only=options.gradient == "only") if options.gradient else pair
    if name == "direct":
        return Direct(slope, FreeOptions(**common))
    if name in TREECODES:
        return Treecode(slope, TreecodeOptions(method=TREECODES[name], tolerance=options.tolerance, **common))
    return KINDS[name](slope, FmmOptions(method=name, tolerance=options.tolerance, **common))


def _ewald(pair: Pair, options: SumOptions, points: dict[str, Any]) -> Ewald:
    kernel = ewald_kernel(pair)
    if kernel is None:
        found = f"kernel is {str(pair)!r} with {'periodic axes' if options.periodic else repr('ewald')}"
        raise ValueError(f"{found}; expected one of {', '.join(map(repr, kernels.KERNELS))}, or a parki.ewald.Kernel.")
    if not _serves_own_terms(kernel, options):
        raise NotImplementedError(f"own_term is False, and Ewald sums of {kernel} count own terms; expected True.")
    names = ("layout", "execution_space", "threads", "verbose", "box", "tolerance", "rhs")
    keywords = {name: getattr(options, name) for name in names} | {"periodicity": options.axes}
    resolved = EwaldOptions.resolve(None, points, **keywords)
    return Ewald(kernels.gradient(kernel, options.gradient), resolved, gradient=options.gradient)


def ewald_kernel(pair: Pair) -> Kernel | None:
    """Return the kernel of Ewald sums that a pair is, with its parameters, or None."""
    if isinstance(pair, Kernel):
        return pair
    kernel = kernels.KERNELS.get(pair.name) if pair.ours else None
    return None if kernel is None else replace(kernel, parameters=pair.parameters)


def names(pair: Pair, options: SumOptions) -> Iterator[str]:
    """Yield the methods that may be the fastest for a pair, the ones whose costs are known soonest first."""
    if options.periodic:
        yield "ewald"
        return
    yield "direct"
    kernel = ewald_kernel(pair)
    in_free_space = kernel is not None and 0 in kernel.periodicities and _has_gradient(kernel, options.gradient)
    if in_free_space and _serves_own_terms(kernel, options):
        yield "ewald"
    has_surfaces = pair.ours and representations.known(pair)
    if has_surfaces:
        yield "kifmm"
    if not has_surfaces or representations.softened(pair):
        yield from ("bldtt", "chebyshev")


def _serves_own_terms(kernel: Kernel, options: SumOptions) -> bool:
    return options.own_term or kernel.singular


def _has_gradient(kernel: Kernel, gradient: bool | str) -> bool:
    return not gradient or gradient in kernels.SLOPES.get(kernel.name, {})


def fastest(pair: Pair, targets: Any, sources: Any, options: SumOptions) -> Candidate:
    """Return the method that is predicted to take the least time for the options' number of calls.

    Few pairs are summed directly, without a prediction: their cost here is zero.  Sums like an earlier one mostly take
    its method (`picks`).

    Raises
    ------
    ValueError, TypeError
        For points that do not fit the options.
    MemoryError
        If no method has enough memory.
    """
    points = {"targets": targets, "sources": sources}
    best, seconds, sums, facts = None, math.inf, 1, None
    problem: Problem | None = None
    memory_error: MemoryError | None = None
    for name in names(pair, options):
        if problem is not None and name in LOOK and sums * seconds < _looking(name, problem.points):
            continue
        method, problem = quiet(name, pair, options, points)
        if name == "direct":
            if problem.n_targets * problem.n_sources <= FEW_PAIRS:
                return Candidate(name, method, method.choose(problem), PlanCost(0.0, 0.0))
            facts = picks.key(pair, options, problem)
            pick = picks.earlier(facts)
            if pick is not None and pick.is_due:
                sums = pick.sums
            elif pick is not None and (again := _again(pick, pair, options, points)) is not None:
                return again
        try:
            candidate = _candidate(name, method, problem, None if best is None else sums * seconds)
        except MemoryError as error:
            memory_error = error
            continue
        if candidate is None:
            continue
        saying.say(log, options.verbose, "%s: %s", name, candidate.cost)
        if candidate.cost.of(options.calls, sums) < seconds:
            best, seconds = candidate, candidate.cost.of(options.calls, sums)
    if best is None:
        raise memory_error or MemoryError("no method has enough memory.")
    if facts is not None:
        picks.keep(facts, Pick(best.name, seconds - best.cost.once / sums, sums))
    return best


def _again(pick: Pick, pair: Pair, options: SumOptions, points: dict[str, Any]) -> Candidate | None:
    """Return the method of an earlier sum, None unless it is predicted to take as long again."""
    method, problem = quiet(pick.name, pair, options, points)
    try:
        candidate = _candidate(pick.name, method, problem, None)
    except (ValueError, MemoryError):
        return None
    if not pick.suits(candidate.cost.of(options.calls) - candidate.cost.once):
        return None
    saying.say(log, options.verbose, "%s, as an earlier sum: %s", candidate.name, candidate.cost)
    return candidate


def _looking(name: str, n: int) -> float:
    """Return the seconds of a sum from which looking for a method of less time may pay."""
    kind, times = LOOK[name]
    return times * prediction.making(kind, n)


def quiet(name: str, pair: Pair, options: SumOptions, points: dict[str, Any]) -> tuple[Method, Problem]:
    """Return the named method in its space, without warnings, which the plan itself gives, and its problem."""
    return placed(replace(named(name, pair, options, points), served=True), **points)


def _candidate(name: str, method: Method, problem: Problem, limit: float | None) -> Candidate | None:
    """Return the method with its parameters and cost.

    None if it cannot sum the kernel, or takes more than the seconds of a method that can, the limit.
    """
    try:
        parameters = method.choose(problem)
        return Candidate(name, method, parameters, method.cost(problem, parameters, limit))
    except ValueError:  # interpolation would take too many points, for instance
        if limit is None:
            raise
        return None
