"""An Ewald sum for given points: the stages in their order."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Any, Generic, overload

import numpy as np
from numpy.typing import NDArray

from parki import arrays, cells, engine, plans
from parki.arrays import AnyArray, Array, Real, Result
from parki.checks import refuse_half_moved
from parki.engine import forks, spaces
from parki.engine.calls.gpu import shared_memory
from parki.ewald import checks, estimate, idle, operator, setup
from parki.ewald.choice import choose, tuning, variants
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.tuning import Bench
from parki.ewald.kernels import Kernel
from parki.ewald.options import EwaldOptions
from parki.ewald.queries import Queries
from parki.ewald.report import Params, WallTime
from parki.ewald.setup import Setup
from parki.ewald.stages import work
from parki.ewald.stages.points import Points
from parki.ewald.stages.sums import Stages, SumSteps
from parki.ewald.stages.verify import verify

log = logging.getLogger("parki.ewald")


class Plan(Queries, plans.OfOneProcess, Generic[Result]):
    """A sum over given targets and sources: made once, applied to any number of densities.

    After the first call nothing is compiled, and nothing is allocated but the result.  A plan may be used from several
    threads: its calls take turns.

    Attributes
    ----------
    kernel : parki.ewald.kernels.Kernel
    parameters : parki.ewald.choice.params.Parameters
        In the caller's unit of length.
    chosen : parki.ewald.choice.params.Parameters
        The same in the unit of length of the stages, in which the longest side is about one.
    question : parki.ewald.choice.question.Question
        The sum that the parameters were chosen for, in the unit of the stages.
    variants : parki.ewald.choice.variants.Variants
    tuned : parki.ewald.choice.tuning.Tuned or None
        With ``tune=True``, the choice and its candidates.
    space : parki.engine.spaces.Space
    n_targets, n_sources : int
    walltime : WallTime
        Times of the last call; its making is in `time_cell_list`.  A GPU works on while the next launches are made:
        there the phases are timed, by waiting for each, only if `return_walltime` or `verbose` asks for it.

    Examples
    --------
    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 0.5], [0.0, 0.5], [0.0, 0.5]])
    >>> plan = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-9)
    >>> print(f"{plan(np.array([1.0, -1.0]))[0] * np.sqrt(0.75):.6f}")  # Madelung constant of CsCl
    -1.762675
    """

    @overload
    def __init__(
        self: Plan[NDArray[Real]], kernel: Kernel, trg: NDArray[Real], src: NDArray[Real], options: EwaldOptions
    ) -> None: ...
    @overload
    def __init__(self: Plan[Any], kernel: Kernel, trg: AnyArray, src: AnyArray, options: EwaldOptions) -> None: ...
    def __init__(self, kernel: Kernel, trg: AnyArray, src: AnyArray, options: EwaldOptions) -> None:
        self._begin(Setup.of(kernel, trg, src, options))

    def _begin(self, of: Setup) -> None:
        """Take the setup, and prepare for its points."""
        self.kernel, self.options, self.variants = of.kernel, of.options, of.variants
        self.space, self.on_gpu, self.dtype = of.space, of.on_gpu, of.dtype
        self.xp, self.geometry, self.given = spaces.array_module(of.space), of.geometry, of.targets
        self._reach, self._moving = of.reach, False
        self._warned = of.served  # whether the first density was looked at for a net charge or force
        self._lock = forks.lock()
        self._prepare(of.trg, of.src, of.parameters)

    @property
    def parameters(self) -> Parameters:
        """Return the parameters in the caller's unit of length."""
        return self.chosen.scaled(-self.geometry.power)

    @engine.settled()
    def _prepare(self, trg: Array, src: Array, parameters: Parameters | None = None) -> None:
        """Choose parameters for points in the stages' coordinates; compile, sort, and make the stages."""
        options = self.options
        self.n_targets, self.n_sources, self.same = trg.shape[1], src.shape[1], trg is src
        self.question = setup.question(
            self.kernel, options, self.space, self.dtype, self.geometry, trg, src, measured=parameters is None
        )
        self.chosen, self.tuned = parameters or choose.parameters(self.question), None
        estimate.require(self.question, self.chosen, options)
        if options.tune and parameters is None and self.n_targets and self.n_sources:
            self.tuned = tuning.tune(self.bench(trg, src))
            self.chosen, self.variants = self.tuned.choice.parameters, self.tuned.choice.variants
        p = self.chosen
        timed = options.return_walltime or options.verbose
        self.walltime = WallTime(
            self.n_sources, self.n_targets, int(np.prod(p.grid)), wait=spaces.waiter(self.space) if timed else None
        )
        plans.say(log, options.verbose, "%s: %s", self.kernel, Params(self.parameters))
        self.points: Points | None = None
        self.stages: dict[int, Stages] = {}
        self._last: tuple[Any, Any] | None = None
        self.others: dict[str, Plan] = {}
        if self.n_targets and self.n_sources:
            self._first_stages(trg, src)
            self._count()

    def _first_stages(self, trg: Array, src: Array) -> None:
        """Make the stages for one right-hand side, or take over some that nobody uses any more."""
        stages = idle.take(self._key())
        steps = None if stages is not None else self._compiled(1)
        with self.walltime.phase("cell_list"):
            if stages is None:
                self.points = Points(self.chosen, trg, src, self.space, self.variants)
            else:
                self.points = stages.points
                self.points.move(None if self.same else trg, src)
        self.stages[1] = self._placed(steps) if stages is None else stages

    def _key(self) -> Hashable:
        """Return the facts that stages are made from."""
        o, counts = self.options, (self.n_targets, self.n_sources, self.same)
        chosen = self.chosen, self.variants, self.geometry, self.space, spaces.workers(self.space)
        return (*chosen, counts, o.layout, o.fft_type, o.transform(), o.graph)

    def retire(self) -> None:
        """Leave the stages to other sums: this plan must not be used any more."""
        if self.points is not None and not self.space.own_memory:
            idle.keep(self._key(), self.stages[1])
        self.stages, self.points, self._moving = {}, None, True

    def _count(self) -> None:
        if self.options.return_walltime:
            points = self.points.targets, self.points.sources
            counted = work.count(self.chosen, self.variants, *points, self.options.fft_type != "C2C")
            self.walltime.take(counted.flop, counted.mop, counted.pairs, counted.values)

    def _compiled(self, rhs: int) -> SumSteps:
        """Return the steps of `rhs` right-hand sides at once, whose workunits are compiled and verified.

        Raises
        ------
        MemoryError
            Where their arrays would take more memory of the host than is free.
        """
        p, space = self.chosen, self.space
        counts = self.n_targets, self.n_sources, self.same
        sum_ = SumSteps(p, self.variants, counts, space, self.options, rhs, self.geometry)
        estimate.require_steps(sum_, self.options)
        units = sum_.steps.units()
        sorting = [(unit, unit.default_layouts(), None) for unit in cells.workunits(p.dtype, space).values()]
        engine.compile_for([*sorting, *units], space)
        if space.kind != "sim":  # which checks every access itself
            verify(p, space, self.variants, list(dict.fromkeys(unit for unit, *_ in units)), rhs)
        return sum_

    def _placed(self, sum_: SumSteps) -> Stages:
        return Stages(sum_, self.points, graph=self.options.graph)

    def _prepared(self, rhs: int) -> Stages:
        """Return the stages for `rhs` right-hand sides at once, made when first asked for."""
        if rhs not in self.stages:
            self.stages[rhs] = self._placed(self._compiled(rhs))
        return self.stages[rhs]

    def __call__(self, dens: AnyArray, normals: AnyArray | None = None, *, out: Result | None = None) -> Result:
        """Return the sum at all targets.

        Parameters
        ----------
        dens : array
            ``(N,)`` charges, ``(3, N)`` forces, or ``(6, N)`` forces over double-layer densities; with an axis of
            right-hand sides in front: up to 8 in one pass, fewer where their grid would take more than 1 GiB.
        normals : array (3, N), optional
            Normals of the double layer; required for kernels with one, and only there.
        out : array, optional
            Where to put the result: C-contiguous, of the result's shape, dtype and place, apart from the input.

        Returns
        -------
        array
            ``(Nt,)`` or ``(components, Nt)``, in the points' dtype, with the axis of right-hand sides if there is one:
            a CuPy array for points on a GPU, else a NumPy array.

        Raises
        ------
        ValueError
            For arrays that do not fit, naming the argument, what was found and what was expected.

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
        with self._lock:
            refuse_half_moved(self._moving)
            strengths, axes, many = checks.strengths(self, dens, normals)
            if not self._warned:
                self._warned = True
                checks.warn_of_net(self, strengths)
            u = checks.result(self, len(strengths), many, out)
            parts = checks.split(self, u, len(strengths))
            if out is not None and any(shared_memory(u, a) for a in (strengths, axes) if a is not None):
                raise ValueError("out shares memory with dens or normals; expected an array apart from them.")
            self.walltime.reset()
            with self.walltime.phase("ewald"):
                if self.points is None:
                    parts[...] = 0
                else:
                    reach = max(self._reach.values())
                    for first, count in checks.groups(self, len(strengths)):
                        at = slice(first, first + count)
                        self._prepared(count).run(strengths[at], axes, parts[at], self.walltime, reach)
            plans.say_times(log, self.options.verbose, self)
            self._last = dens, normals
            if self.on_gpu or not self.space.own_memory:
                return u
            if out is None:
                return arrays.to_host(u)
            out[...] = arrays.to_host(u)
            return out

    def move(self, src: AnyArray, trg: AnyArray | None = None) -> None:
        """Move the points: as many as before, which are sorted anew; nothing is compiled, and no array is replaced.

        Parameters stay, also if the new points resemble a crystal and the old ones did not.  Only a box that was not
        given but made around the points is made again, with all that follows, if one of them leaves it.

        Parameters
        ----------
        src : array (3, Ns)
            New sources; they are the new targets, too, if the plan was made with the same array for both.
        trg : array (3, Nt), optional
            New targets of a plan that has them apart; without it they stay where they are.

        Raises
        ------
        ValueError
            For points that do not fit, as `parki.ewald.plan`, another number of them, or targets apart where the plan
            has none; the plan is then as it was.

        A move that is interrupted, or finds no memory, leaves a plan that refuses calls until the next complete one.

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
            same = self.same
            if trg is src:
                trg = None if same else trg
            elif trg is not None and same:
                raise ValueError("trg was given, but the targets of this plan are its sources; expected src alone.")
            if self._moving and not same and trg is None:
                raise RuntimeError("the last move of this plan did not finish; expected src and trg, not src alone.")
            checks.in_place(self, **({"src": src} if trg is None else {"src": src, "trg": trg}))
            src = checks.moved(self, "src", src, self.n_sources)
            trg = trg if trg is None else checks.moved(self, "trg", trg, self.n_targets)
            there = [x for x in (src, trg) if x is not None and x.shape[1]]
            out = self.options.box is None and (self._moving or not all(checks.inside(self.geometry, x) for x in there))
            if out:
                targets = src if same else self.given if trg is None else trg
                place = checks.place(self.options, self.kernel, targets, src)
            elif self.points is not None:
                given = {name: x for name, x in (("trg", trg), ("src", src)) if x is not None}
                to = {name: self.geometry.points(name, self.xp.asarray(x)) for name, x in given.items()}
            self._moving = True
            if self.given is not None and trg is not None:
                self.given[...] = trg
            if out:
                self.geometry = place
                inside, self._reach = setup.inside_box(place, targets, src, self.xp)
                self._prepare(*inside)
            elif self.points is not None:
                self._reach |= {name: reach for name, (_, reach) in to.items()}
                self._place(*(to.get(name, (None,))[0] for name in ("trg", "src")))
            self._moving = False

    def _place(self, trg: Array | None, src: Array | None) -> None:
        """Move points in the stages' coordinates, those of the plans that this one has made, too."""
        self._moving = True
        with self.walltime.phase("cell_list"):
            self.points.move(trg, src)
        self._count()
        for other in self.others.values():
            other.take_reach(self)
            other._place(src, trg)
        self._moving = False

    def turned(self, kernel: Kernel) -> Plan[Result]:
        """Return the plan of another kernel from targets to sources, of the same parameters if they serve it."""
        with self._lock:
            refuse_half_moved(self._moving)
            return operator.turned(self, kernel)

    def take_reach(self, other: Plan) -> None:
        """Take how far points were from the box from the plan that gave this one its points."""
        self._reach = dict.fromkeys(("trg", "src"), max(other._reach.values()))

    def like(
        self, kernel: Kernel, trg: Array, src: Array, options: EwaldOptions, dtype: np.dtype,
        parameters: Parameters | None = None,
    ) -> Plan:  # fmt: skip
        """Plan another sum with points in the stages' coordinates of this one; its calls take the caller's axes."""
        place = {"space": self.space, "on_gpu": self.on_gpu, "geometry": self.geometry}
        points = {"trg": trg, "src": src, "reach": {"trg": 0.0, "src": 0.0}}
        chosen = variants.choose(self.space, dtype.name, options)
        return Related(Setup(kernel, options, dtype, chosen, **place, **points, parameters=parameters, served=True))

    def bench(self, trg: Array, src: Array) -> Bench:
        """Return the bench that measures this sum with other parameters, points in the stages' coordinates."""

        def make(options: EwaldOptions, parameters: Parameters) -> Plan:
            return self.like(self.kernel, trg, src, options, self.dtype, parameters)

        xp = self.xp if self.on_gpu else np
        return Bench(self.question, self.options, make, xp, self.geometry.power, trg is src)


class Related(Plan):
    """A plan that serves another one, with points in the stages' coordinates of that one."""

    def __init__(self, of: Setup) -> None:
        self._begin(of)
