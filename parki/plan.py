"""Plan of a sum: made once for given points, applied to any number of densities, by every method alike."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic

from parki import arrays, engine, exclusions, moves, own_terms, ranks, saying
from parki.arguments import Arguments, Density, renamed
from parki.arrays import AnyArray, Array, Result
from parki.engine import forks, spaces
from parki.excluding import ALONE
from parki.exclusions import Exclusions
from parki.fluctuations import Fluctuating
from parki.method import Method, Problem, Structure, Sum
from parki.prediction import Draft
from parki.ranks import OverRanks
from parki.timing import PhaseTimes

BROKEN = (
    "the last move of this plan did not finish, and its points are neither the old nor the new ones; "
    "expected a complete move, or a new plan."
)

BROKEN_OVER_RANKS = (
    "a call or a move of this plan did not finish on this rank, and messages of others may be under way; "
    "expected a new plan."
)


class Plan(Fluctuating, OverRanks, Generic[Result]):
    """Sum over given targets and sources: ``u = plan(density)``.

    Plans are made by `parki.ewald.plan`, `parki.treecode.plan`, `parki.fmm.plan` and `parki.direct.plan`.  After the
    first call no code is compiled, and only the result is allocated.  A plan may be used from several threads:
    its calls take turns.  A plan that is pickled or copied is made anew, with the same parameters.

    Parameters
    ----------
    method : Method
        The method, with its kernel and the caller's options.
    problem : Problem
        The checked points, in the unit of length that the method works in.
    parameters : object, optional
        Parameters of the method, or a `Draft` of a plan for these points; by default the method chooses parameters.
    exclusions : Exclusions, optional
        Pairs that the sum leaves out, or scales.

    Attributes
    ----------
    method : Method
        The method, with its kernel and the caller's options.
    kernel : Pair
        The kernel, a `parki.pairs.Pair` or a `parki.ewald.Kernel`.
    structure : Structure or None
        Sorted points, trees and lists; None without targets or sources.
    walltime : PhaseTimes
        Times of making the plan and of its last call; of an Ewald sum a `parki.ewald.report.WallTime`.
    space : Space
        The execution space.
    n_targets, n_sources : int
        Numbers of points, over ranks those of this rank.
    dtype : dtype
        Type of the points and of results.

    See Also
    --------
    parki.ewald.plan, parki.treecode.plan, parki.fmm.plan, parki.direct.plan : Make a plan.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> plan = parki.direct.plan("coulomb", x, x)
    >>> print(plan(np.array([1.0, 4.0])))
    [2.  0.5]
    """

    def __init__(
        self, method: Method, problem: Problem, parameters: Any = None, exclusions: Exclusions | None = None
    ) -> None:
        self.exclusions = exclusions
        self.method, self.kernel, self.space = method, method.kernel, method.space
        self.xp, self.comm = spaces.array_module(method.space), getattr(method, "comm", None)
        self._lock, self._broken, self._inspected, self._retired = forks.lock(), True, False, False
        self._arrange(problem, parameters)
        self._broken = False

    @engine.settled()
    def _arrange(self, problem: Problem, parameters: Any = None) -> None:
        """Choose parameters, if none are given; arrange the points; place the steps of one right-hand side."""
        method, watch = self.method, getattr(getattr(self, "walltime", None), "watch", None)
        self.structure: Structure | None = None
        self.sums: dict[int, Sum] = {}
        self.energies = self._left_out = self._sampler = None
        self._related: dict[Hashable, Plan[Any]] = {}
        self._last: tuple[Any, Any] | None = None
        self._take(problem)
        self._own_terms = method.own_terms(problem)
        draft = parameters if isinstance(parameters, Draft) else None
        parameters = draft.parameters if draft else parameters
        self.chosen = method.choose(problem) if parameters is None else parameters
        self.walltime = draft.times if draft else method.times(problem, self.chosen)
        self.walltime.watch = watch
        if not problem.empty:
            arranged = method.finish(draft) if draft else method.arrange(problem, self.chosen, self.walltime)
            self.chosen, self.structure = arranged
            self.sums[1] = method.place(problem, self.chosen, self.structure, 1, self.walltime)
            self._most_rhs = method.most_rhs(self.chosen, self.structure)
            self.problem = problem.with_points(None, None)
        log, report = logging.getLogger(method.logger), method.report(self.parameters)
        saying.say(log, method.options.verbose, "%s: %s", self.kernel, report)

    def _take(self, problem: Problem) -> None:
        """Take numbers and names from a problem."""
        self.problem, options = problem, self.method.options
        self.n_targets, self.n_sources, self.dtype = problem.n_targets, problem.n_sources, problem.dtype
        self.arguments = Arguments(
            self.kernel, self.method.names, options.layout, self.method.gradient, self.n_targets, self.n_sources,
            self.dtype, problem.on_gpu, self.xp,
        )  # fmt: skip

    def _placed(self, rhs: int) -> Sum:
        """Return the sum of `rhs` right-hand sides at once, made when first asked for."""
        if rhs not in self.sums:
            self.sums[rhs] = self.method.place(self.problem, self.chosen, self.structure, rhs, self.walltime)
        return self.sums[rhs]

    # Calls ------------------------------------------------------------------------------------------------------------
    @renamed(charges="density", dens="density")
    def __call__(self, density: AnyArray, normals: AnyArray | None = None, *, out: Result | None = None) -> Result:
        """Return the sum at all targets.

        Parameters
        ----------
        density : array
            ``(Ns,)`` for kernels of one component, else ``(components, Ns)``, with ``layout="nd"``
            ``(Ns, components)``, in the points' dtype or integers; with an axis of right-hand sides in front.
        normals : array (3, Ns), optional
            Normals of the double layer; required for kernels with one, and only there.
        out : array, optional
            Array for the result, of its shape, dtype and place, apart from the input.  Not with ``gradient=True``.

        Returns
        -------
        array
            ``(Nt,)`` or ``(components, Nt)``, in the points' dtype, with the axis of right-hand sides if there is one;
            a CuPy array for points on a GPU, else one of the library of `density`.  With ``gradient=True`` a tuple of
            the potential and its gradient ``(3, Nt)``.

        Raises
        ------
        ValueError
            For arrays that do not fit, naming the argument, the value found and the value expected.
        RuntimeError
            After a move that did not finish.

        Examples
        --------
        Charges 1 and 4 at distance 2, and then twice as large, in one pass:

        >>> import numpy as np, parki
        >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
        >>> plan, u = parki.ewald.plan("laplace", x, x, periodicity=0, tolerance=1e-9), np.empty((2, 2))
        >>> plan(np.array([[1.0, 4.0], [2.0, 8.0]]), out=u) is u
        True
        >>> print(u.round(6))
        [[2.  0.5]
         [4.  1. ]]
        """
        return self._called(density, normals, out, self._sum)

    def _called(
        self, density: AnyArray, normals: AnyArray | None, out: Any, work: Callable[[Density, Array, PhaseTimes], None]
    ) -> Any:
        """Check the arguments of a call, and return the result that `work` sums to rows ``(rhs, components, Nt)``."""
        with self._whole(at_door=True):
            arguments = self.arguments
            with ranks.ALONE if self.comm is None else ranks.together(self.comm, "a call", call="a call") as check:
                self._present()
                inputs = arguments.density(density, normals)
                u = arguments.result(inputs, out)
                if check is not None:
                    check.same = {"call": "a call", "right-hand sides": len(inputs.values)}
            if not self._inspected:
                self.method.inspect(self.problem, inputs)
                self._inspected = True
            rows = arguments.rows(u, len(inputs.values))
            self.walltime.reset()
            if self.comm is not None:
                self._over_ranks(len(inputs.values))
            with self.walltime.whole():
                work(inputs, rows, self.walltime)
            if self._own_terms is not None and self.exclusions is None:
                self._warn_of_rounding(rows)
            while self.exclusions is not None and self._refined(inputs, rows):
                with self.walltime.whole():
                    work(inputs, rows, self.walltime)
            self._broken = False
            if self.method.options.verbose:
                saying.say_times(logging.getLogger(self.method.logger), self)
            self._last = density, normals
            return arguments.finished(u, inputs.many, out, density)

    def _over_ranks(self, rhs: int) -> None:
        """Place the steps of a call, and mark the plan as broken until the messages of all ranks have come."""
        for _, count in self._groups(rhs):
            self._placed(count)
        self._broken = True

    def _sum(self, inputs: Density, rows: Array, times: PhaseTimes) -> None:
        """Sum a checked density to rows ``(rhs, components, Nt)``."""
        if self.structure is None:
            rows[...] = 0
        for first, count in self._groups(len(inputs.values)):
            part = slice(first, first + count)
            self._placed(count).run(inputs.values[part], inputs.normals, rows[part], times)
        if self._own_terms is not None and self.structure is not None:
            self._norms = exclusions.norms(rows)
            own_terms.take_off(self._own_terms, inputs.values, rows)
        if self.exclusions is not None and self.structure is not None:
            self._norms = self._excluded().take_off(inputs, rows)

    def _groups(self, count: int) -> Iterator[tuple[int, int]]:
        """Yield the first and the number of each run of right-hand sides, a power of two."""
        if self.structure is None:
            return
        first, limit = 0, self._most_rhs
        while first < count:
            size = min(limit, 1 << (count - first).bit_length() - 1)
            yield first, size
            first += size

    @contextlib.contextmanager
    def _whole(self, *, at_door: bool = False) -> Iterator[None]:
        """Hold the lock of a plan that is not broken; `at_door` lets a retired plan pass, for `_present` to refuse."""
        with self._lock:
            if self._broken and not (at_door and self._retired):
                raise RuntimeError(BROKEN if self.comm is None else BROKEN_OVER_RANKS)
            yield

    def _present(self) -> None:
        """Raise RuntimeError for a plan that was retired."""
        if self._retired:
            raise RuntimeError("this plan was retired; expected a new plan.")

    # Points that move -------------------------------------------------------------------------------------------------
    @renamed(trg="targets", src="sources")
    def move(
        self, points: AnyArray | None = None, *old: AnyArray, targets: AnyArray | None = None,
        sources: AnyArray | None = None, box: Any = None,
    ) -> None:  # fmt: skip
        """Take other points, for the same kernel and options.

        With as many points as before, parameters stay, and an Ewald sum keeps every array: no code is compiled and no
        memory allocated, unless a box that was made around the points has to grow.  In another box, grid and cutoff
        are stretched with the box, and no code is compiled, until its edges have changed by a tenth.  With another
        number of points, or an `rc` of the caller's in another box, parameters are chosen and arrays are made anew.
        A move that is interrupted, or finds no memory, leaves a plan that refuses calls until the next complete move.

        Parameters
        ----------
        points : array (3, N)
            Targets and sources of a plan that was made with one array for both.
        *old : array (3, N)
            Sources behind targets by position, an old way to call that ends with the next release.
        targets, sources : array (3, Nt), (3, Ns), optional
            Points by keyword, for a plan that has them apart; points that are not given stay where they are.
        box : list, tuple or array, optional
            The new box of an Ewald sum, as in `parki.ewald.EwaldOptions`; all points must be given with it.

        Raises
        ------
        ValueError
            For points that do not fit; the plan is then as it was.
        RuntimeError
            For some of the points after a move that did not finish.

        Examples
        --------
        >>> import numpy as np, parki
        >>> x, q = np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]), np.array([1.0, 4.0])
        >>> plan = parki.ewald.plan("laplace", x, x, periodicity=0, box=(4, 4, 4), tolerance=1e-9)
        >>> plan.move(2 * x)
        >>> print(plan(q).round(6))
        [2.  0.5]
        """
        with self._lock:
            with ranks.together(self.comm, "a move", call="move", retired=self._retired):
                new_points = moves.given(self.method, self.problem.same, (points, *old), targets, sources)
                is_complete = all(x is not None for x in new_points)
                if self._broken and not is_complete:
                    names = " and ".join(self.method.names[:2])
                    raise RuntimeError(f"the last move of this plan did not finish; expected {names}, not one alone.")
                if box is not None and not is_complete:
                    raise ValueError("box was given without all points; expected the points in the new box, too.")
            old_problem = self.problem
            if self.exclusions is not None:
                exclusions.check_moved(self.exclusions, new_points, self.arguments.layout)
            method, problem = self.method.moved(self.arguments, old_problem, self.full, new_points, box)
            intact = not self._broken and self.structure is not None
            last = self._last if problem.n_sources == old_problem.n_sources else None
            self._broken = True
            if intact and method is self.method and method.in_place(old_problem, problem):
                self._rearrange(problem)
            else:
                self.method = method
                self._arrange(problem, method.kept(old_problem, problem, self.chosen) if intact else None)
            self._last, self._broken, self._retired = last, False, False

    def _rearrange(self, problem: Problem) -> None:
        """Move the points within the arrays of the structure, and also the points of the plans made by this one."""
        self.method.rearrange(problem, self.chosen, self.structure, self.walltime)
        if self._left_out is not None:
            complete = problem.sources is not None and problem.targets is not None
            if not (complete and self._left_out.move(self.method.outer(problem))):
                self._left_out = None
        if self._sampler:
            self._sampler.move(problem)
        self.problem = problem.with_points(None, None)
        for relative in self._related.values():
            with relative._lock:
                relative._broken = True
                relative._rearrange(problem.transposed())
                relative._broken = False

    # Lifetime ---------------------------------------------------------------------------------------------------------
    def retire(self) -> None:
        """Leave the arrays to other sums.

        The plan refuses all calls from then on, until a complete move.
        """
        with self._whole():
            self._broken = self._retired = True
            if self.structure is not None:
                self.method.retire(self.problem, self.chosen, self.structure, self.sums)
            self.structure, self.sums, self.energies, self._left_out, self._sampler = None, {}, None, None, None

    def __reduce__(self) -> tuple[Any, ...]:
        if self.comm is not None:
            raise NotImplementedError("a plan over ranks has a communicator, which cannot be copied or pickled.")
        with self._whole():
            return Plan, (self.method, self.full(), self.chosen, self.exclusions)


def make(method: Method, targets: Any, sources: Any, exclude: Any = None, parameters: Any = None) -> Plan[Any]:
    """Return the plan of a method for a caller's points, in the space of its options, or where the points are.

    The method chooses its parameters, if neither these nor a draft are given.
    """
    if method.options.comm is not None:
        ranks.check(method)
        if exclude is not None and getattr(method, "comm", None) is not None:
            raise NotImplementedError(ALONE)
    method, problem = placed(method, targets, sources)
    counts = problem.n_targets, problem.n_sources, problem.same
    pairs = None if exclude is None else exclusions.of(exclude, *counts)
    return Plan(method, problem, parameters, pairs)


def placed(method: Method, targets: Any, sources: Any) -> tuple[Method, Problem]:
    """Return a method in its space, and its problem of a caller's points."""
    points, options = dict(zip(method.names[:2], (targets, sources), strict=True)), method.options
    with ranks.ALONE if options.comm is None else ranks.together(options.comm, "finding a space"):
        request = getattr(method, "asked_space", None)  # of a method that shares its work among units
        place = (options.execution_space, options.threads) if request is None else request(targets)
        space = arrays.space_of(*place, **points)
        if options.comm is not None:
            ranks.take_gpu(options.comm, space, **points)
        method_in_space = method.in_space(space)
    return method_in_space, method_in_space.problem(targets, sources)


def once(method: Method, points: tuple[Any, Any], density: Any, normals: Any, reports: tuple[bool, bool, bool]) -> Any:
    """Return the sum of a plan that is used once, in a tuple with times, parameters and error if these are asked for.

    Parameters
    ----------
    method : Method
    points : tuple of arrays
        Targets and sources.
    density, normals : array
    reports : tuple of bool
        Whether to return the times, the parameters, and the error at 100 targets.
    """
    return reported(make(method, *points), density, normals, reports)


def reported(plan: Plan[Any], density: Any, normals: Any, reports: tuple[bool, bool, bool]) -> Any:
    """Return the sum of a plan that is used once, as `once` does, and retire the plan."""
    u = plan(density, normals)
    times, parameters, with_error = reports
    results = [u, *([plan.walltime] * times), *([plan.method.report(plan.parameters)] * parameters)]
    if with_error:
        at_hand = None if plan.method.gradient is True else u
        results.append(plan.error(density=density, normals=normals, u=at_hand))
    plan.retire()
    return tuple(results) if len(results) > 1 else u
