"""Methods that can sum a kernel, and the one that is predicted to take the least time.

Costs are those of `Method.cost`: of making a plan and of a call, before points are arranged.  The methods whose costs
are known soonest come first, and a method is looked at only while the best one before it takes longer than looking.
A sum like an earlier one mostly takes its method, and others are not looked at.
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
    comparison = MethodComparison(pair, options, points)
    if options.periodic:
        for name in names(pair, options):
            comparison.look(name)
        return comparison.best
    method, problem = quiet("direct", pair, options, points)
    if problem.n_targets * problem.n_sources <= FEW_PAIRS:
        return Candidate("direct", method, method.choose(problem), PlanCost(0.0, 0.0))
    facts = picks.key(pair, options, problem)
    pick = picks.earlier(facts)
    again = None
    if pick is not None and pick.name == "direct":  # with about as many pairs
        again = Candidate("direct", method, method.choose(problem), PlanCost(pick.seconds, 0.0))
    elif pick is not None:
        again = comparison.again(pick)
    if again is None:
        for name in names(pair, options):
            comparison.look(name, problem.points)
    elif not pick.due:
        return again
    else:
        comparison.resume(pick, again)
        for name in pick.due:
            comparison.look(name, problem.points)
    best = comparison.best
    picks.keep(facts, comparison.pick)
    return best


class MethodComparison:
    """Methods of a sum that are looked at one after another.

    Parameters
    ----------
    pair : Pair
    options : SumOptions
    points : dict
        Targets and sources.

    Attributes
    ----------
    looked_at : dict of Candidate
    rivals : dict of float
        Numbers of sums alike from which methods that are not the best may take less time.
    sums : int
        Number of sums alike up to this one: each takes a share of tables that are kept.
    """

    def __init__(self, pair: Pair, options: SumOptions, points: dict[str, Any]) -> None:
        self.pair, self.options, self.points = pair, options, points
        self.looked_at: dict[str, Candidate] = {}
        self.rivals: dict[str, float] = {}
        self.sums = 1
        self._error = MemoryError("no method has enough memory.")

    def resume(self, pick: Pick, candidate: Candidate) -> None:
        """Go on from the comparison of an earlier sum and its candidate, as it is now, with methods that are due."""
        self.sums, self.looked_at = pick.sums, {pick.name: candidate}
        self.rivals = {name: sums for name, sums in pick.rivals.items() if name not in pick.due}

    @property
    def best(self) -> Candidate:
        """Return the candidate of the least time; without one, raise MemoryError."""
        if not self.looked_at:
            raise self._error
        return min(self.looked_at.values(), key=self._seconds)

    @property
    def pick(self) -> Pick:
        """Return the pick that sums alike may take."""
        best, calls = self.best, self.options.calls
        least = best.cost.again(calls)
        for name, candidate in self.looked_at.items():
            if candidate is not best:
                gain = least - candidate.cost.again(calls)
                self.rivals[name] = candidate.cost.once / gain if gain > 0 else math.inf
        return Pick(best.name, least, self.sums, self.rivals)

    def look(self, name: str, n: int = 0) -> None:
        """Look at a method for n points, unless the best one takes less time than looking."""
        limit = None
        if self.looked_at:
            seconds = self._seconds(self.best)
            limit = self.sums * seconds
            if name in LOOK and limit < _looking(name, n):
                self.rivals[name] = _looking(name, n) / seconds
                return
        method, problem = quiet(name, self.pair, self.options, self.points)
        try:
            candidate = _candidate(name, method, problem, limit)
        except MemoryError as error:
            self._error = error
            return
        if candidate is None:
            self.rivals[name] = 2 * self.sums
            return
        saying.say(log, self.options.verbose, "%s: %s", name, candidate.cost)
        self.looked_at[name] = candidate
        for other in self.looked_at.keys() - {self.best.name}:  # trees and lists take memory
            loser = self.looked_at[other]
            self.looked_at[other] = loser._replace(cost=replace(loser.cost, draft=None))

    def again(self, pick: Pick) -> Candidate | None:
        """Return the method of an earlier sum, None unless it is predicted to take as long again."""
        method, problem = quiet(pick.name, self.pair, self.options, self.points)
        try:
            candidate = _candidate(pick.name, method, problem, None)
        except (ValueError, MemoryError):
            return None
        if candidate is None or not pick.suits(candidate.cost.again(self.options.calls)):
            return None
        saying.say(log, self.options.verbose, "%s, as an earlier sum: %s", pick.name, candidate.cost)
        return candidate

    def _seconds(self, candidate: Candidate) -> float:
        return candidate.cost.of(self.options.calls, self.sums)


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
