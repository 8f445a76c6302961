"""Sums over pairs in free space for fixed points: what plans of all methods share.

A plan checks points once and charges at every call, gives results in the caller's order and axes, measures its error
against the direct sum, and is a linear operator.  What a method adds is how it sums.
"""

from __future__ import annotations

import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self

import numpy as np

from parki import arrays, direct, engine, error, operators, pairs, plans, scaling
from parki.arrays import AnyArray, Array, Result, module_of
from parki.checks import check_flag, refuse_half_moved
from parki.engine import forks, spaces
from parki.error import ErrorEstimate, PrecisionWarning
from parki.scaling import Powers
from parki.timing import PhaseTimes

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

log = logging.getLogger("parki")
#: Relative errors of a sum from which hints apply: its roots may err by 1.5e-13, its exponentials by 2.6e-12, 1.6e-9
#: and 4.3e-7 (in single precision 5.5e-7).
SHORT = ((1e-9, "short_rsqrt"), (1e-9, "short_exp"), (1e-8, "shorter_exp"), (3e-6, "shortest_exp"))

ONCE = ("normals", "return_walltime", "return_params", "return_error")  # options of the calls that use a plan once


def short(error: float) -> tuple[str, ...]:
    """Hints for roots and exponentials of a sum with this relative error (`parki.engine.kernel`)."""
    return tuple(hint for least, hint in SHORT if error >= least)


class FreePlan(plans.OfOneProcess, ABC, Generic[Result]):
    """A sum over pairs in free space for fixed points: ``u = plan(charges)``.

    Attributes
    ----------
    pair : Pair
    parameters
        Those of the method.
    walltime : PhaseTimes
        Times of making the plan and of its last sum.
    n_targets, n_sources : int
    """

    parameters: Any
    verbose = False

    def __init__(
        self, kernel: Any, targets: Any, sources: Any, *, gradient: bool | str, layout: str, execution_space: Any,
        threads: int | None, times: Callable[[Any], PhaseTimes], timed: bool, parameters: dict[str, float | None],
    ) -> None:  # fmt: skip
        pair = pairs.find(kernel, self._options(), **parameters)
        self.pair = pair.with_gradient(only=gradient == "only") if gradient else pair
        self.gradient, self.layout = gradient, layout
        given = {"targets": targets, "sources": sources}
        self.space = arrays.space_of(execution_space, threads, **given)
        self.on_gpu = arrays.on_gpu(**given) is not None
        self.xp = spaces.array_module(self.space)
        self._take(self._taken(targets, sources))
        self.walltime = times(spaces.waiter(self.space) if timed else None)
        self._lock, self._last, self._turned = forks.lock(), None, None

    @classmethod
    def _options(cls) -> tuple[str, ...]:
        """Names of all options of the plan, and of the calls that make one."""
        given = inspect.signature(cls).parameters.values()
        return (*(option.name for option in given if option.kind is option.KEYWORD_ONLY), *ONCE)

    def _warn_below(self, tolerance: float | None, reach: dict[str, float]) -> None:
        """Warn the caller of a call of the package of a tolerance that the points' dtype cannot give."""
        floor = reach[self.dtype.name]
        if tolerance is not None and tolerance < floor:
            text = f"tolerance={tolerance:g} is below what {self.dtype} reaches here, about {floor:g}"
            error.warn(f"{text}; use float64 or a larger tolerance", PrecisionWarning)

    def _taken(self, targets: Any, sources: Any) -> tuple[int, int, np.dtype, tuple[Array, Array]]:
        """Numbers of points, their dtype, and themselves, checked."""
        y = arrays.points("sources", sources, layout=self.layout)
        x = y if targets is sources else arrays.points("targets", targets, layout=self.layout)
        return x.shape[1], y.shape[1], arrays.same_dtype(targets=x, sources=y), (x, y)

    def _take(self, taken: tuple[int, int, np.dtype, tuple[Array, Array]]) -> None:
        """Take checked points, and with them the unit of length: a power of two in which their extent is about one."""
        extent = scaling.extent(*taken[3])
        length = 0 if self.pair.law is None else scaling.exponent(extent)
        own = self.pair.scaled(length, taken[2].name)
        self._moving = True  # until `_settle` is done
        self.linear, self._charges = own.linear()
        self.n_targets, self.n_sources, self.dtype, self._points = taken
        self._length, self.separation, self.extent = length, own.separation(), float(np.ldexp(extent, length))

    def _placed(self) -> tuple[Array, Array]:
        """Targets and sources in the plan's unit of length where it computes; one array where they are the same."""
        x, y = self._points
        on_y = scaling.times(self.xp.asarray(y), self._length)
        return (on_y if x is y else scaling.times(self.xp.asarray(x), self._length)), on_y

    def move(self, targets: AnyArray, sources: AnyArray) -> None:
        """Take other points, as many as they may be, for the same kernel and parameters.

        Parameters
        ----------
        targets, sources : array (3, Nt), (3, Ns)
            As when the plan was made: in the same dtype and place.

        Raises
        ------
        ValueError
            For points that do not fit; the plan is then as it was.

        A move that is interrupted, or finds no memory, leaves a plan that refuses calls until the next complete one.
        """
        with self._lock:
            given = {"targets": targets, "sources": sources}
            if (arrays.on_gpu(**given) is not None) is not self.on_gpu:
                here = "on the GPU" if self.on_gpu else "on the host"
                raise ValueError(f"targets and sources are elsewhere; expected points {here}, as those of this plan.")
            taken = self._taken(targets, sources)
            if taken[2] != self.dtype:
                raise ValueError(
                    f"targets and sources have dtype {taken[2]}; expected {self.dtype}, that of this plan."
                )
            self._take(taken)
            self._last = self._turned = None
            self._settle()

    @engine.settled()
    def _settle(self) -> None:
        """Make what depends on where points are; until then the plan refuses calls."""
        self._place()
        self._moving = False

    @abstractmethod
    def _place(self) -> None:
        """Make what depends on where points are."""

    @property
    def some(self) -> bool:
        """Whether there is a pair to sum."""
        return bool(self.n_targets and self.n_sources)

    @abstractmethod
    def _add(self, charges: Array, u: Array) -> None:
        """The sum of charges (NC, Ns) of the linear pair, in the caller's order, to u (NU, Nt)."""

    @abstractmethod
    def _made_turned(self, targets: Any, sources: Any) -> Self:
        """A plan of the same kind between these points, targets and sources exchanged."""

    def __call__(self, charges: AnyArray, normals: AnyArray | None = None, *, out: Result | None = None) -> Result:
        """Return the sum at all targets.

        Parameters
        ----------
        charges : array
            ``(Ns,)`` for kernels of one component, else ``(components, Ns)``, in the points' dtype or integers; with an
            axis of right-hand sides in front.
        normals : array (3, Ns), optional
            Normals of the double layer; required for kernels with one, and only there.
        out : array, optional
            Where to put the result: of its shape, dtype and place, apart from the input.  Not with ``gradient=True``.

        Returns
        -------
        array
            ``(Nt,)`` or ``(components, Nt)``, in the points' dtype, with the axis of right-hand sides if there is one:
            a CuPy array for points on a GPU, else a NumPy array.  With ``gradient=True`` a tuple of the potential and
            its gradient ``(3, Nt)``.

        Raises
        ------
        ValueError
            For arrays that do not fit, naming the argument, what was found and what was expected.

        Examples
        --------
        >>> import numpy as np, parki
        >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
        >>> plan = parki.treecode.plan("coulomb", x, x)
        >>> print(plan(np.array([1.0, 4.0])))
        [2.  0.5]
        """
        with self._lock:
            refuse_half_moved(self._moving)
            dens, axes, many = self._strengths(charges, normals)
            self.walltime.reset()
            u = self.xp.zeros((len(dens), self.pair.result, self.n_targets), self.dtype)
            if self.some:
                powers = Powers.of(self.pair.law, self._length, dens, axes, self.pair.result)
                directions = axes if axes is None else scaling.times(axes, powers.normals)
                for one, result, into, back in zip(dens, u, powers.dens, powers.result, strict=True):
                    rows = scaling.multiplied(one, into)
                    made = self._charges(rows if self.pair.dens > 1 else rows[0], directions)
                    self._add(made.reshape(-1, self.n_sources), result)
                    scaling.multiply(result, back)
            plans.say_times(log, self.verbose, self)
            self._last = charges, normals
            return self._shaped(u if self.on_gpu or self.xp is np else arrays.to_host(u), many, out, (dens, axes))

    def _strengths(self, charges: Any, normals: Any) -> tuple[Array, Array | None, bool]:
        """Checked charges ``(rhs, components, Ns)`` and normals, and whether there was an axis of right-hand sides."""
        given = {"charges": charges} | ({} if normals is None else {"normals": normals})
        name = next(iter(given))
        if (arrays.on_gpu(**given) is not None) is not self.on_gpu:
            kind = ("on the GPU", "cupy.asarray") if self.on_gpu else ("on the host", "cupy.asnumpy")
            raise ValueError(f"{name} is not {kind[0]}, where the points of this plan are. Pass {kind[1]}({name}).")
        n, components = self.n_sources, self.pair.dens
        taken = {"layout": self.layout, "promoted": self.dtype}
        dens = arrays.density("charges", charges, components, n, many=True, contiguous=False, **taken)
        checked = {"charges": dens}
        if self.pair.normals:
            if normals is None:
                raise ValueError(f"normals is missing; {self.pair} expects (3, {n}), one normal for each source.")
            checked["normals"] = arrays.density("normals", normals, 3, n, **taken)
        elif normals is not None:
            raise ValueError(f"normals was given, but {self.pair} takes none.")
        arrays.check_like_points(("targets", "sources"), self.dtype, **checked)
        many = dens.ndim == (2 if components == 1 else 3)
        dens = dens if many else dens[None]
        axes = checked.get("normals")
        axes = None if axes is None else self.xp.asarray(axes)
        return self.xp.asarray(dens[:, None] if components == 1 else dens), axes, many

    def _shaped(self, u: Array, many: bool, out: Array | None, given: tuple[Array | None, ...]) -> Any:
        """Results (rhs, components, Nt) in the caller's axes."""
        if self.gradient is True:
            if out is not None:
                raise ValueError("out was given with gradient=True, which has two results; expected None.")
            return self._one(u[:, :1], many), self._one(u[:, 1:], many)
        u = self._one(u, many)
        if out is None:
            return u
        if getattr(out, "shape", None) != u.shape or out.dtype != u.dtype or module_of(out) is not module_of(u):
            found = f"{type(out).__name__} of shape {getattr(out, 'shape', None)} and {getattr(out, 'dtype', None)}"
            raise ValueError(f"out is a {found}; expected an array like the result, of {u.shape} and {u.dtype}.")
        if any(a is not None and module_of(a) is np and np.shares_memory(out, a) for a in given):
            raise ValueError("out shares memory with charges or normals; expected an array apart from them.")
        out[...] = u
        return out

    def _one(self, u: Array, many: bool) -> Array:
        u = u[:, 0] if u.shape[1] == 1 else u.swapaxes(1, 2) if self.layout == "nd" else u
        return module_of(u).ascontiguousarray(u if many else u[0])

    def operator(self, correction: Any = None) -> LinearOperator:
        """Return the sum as a ``scipy.sparse.linalg.LinearOperator`` of flattened arrays (CuPy's for points on a GPU).

        Parameters
        ----------
        correction : sparse matrix or LinearOperator, optional
            Added to the sum, as quadrature corrections of near pairs; of the operator's shape.

        Raises
        ------
        ValueError
            For a kernel with normals or ``gradient=True``, and a correction of another shape.
        """
        n, pair = self.n_sources, self.pair
        if pair.normals or self.gradient is True:
            found = "normals" if pair.normals else "gradient=True"
            raise ValueError(f"this plan has {found}; expected a kernel that is linear in one array with one result.")
        one = (n,) if pair.dens == 1 else (n, pair.dens) if self.layout == "nd" else (pair.dens, n)

        def columns(x: Array) -> Array:
            found = self(x.T.astype(self.dtype).reshape(-1, *one))
            return found.reshape(len(found), -1).T

        def rows(w: Array) -> Array:
            if not pair.self_adjoint:
                raise NotImplementedError(f"the transpose of {pair} is not known.")
            return self.turned().operator() @ w

        shape = (pair.result * self.n_targets, pair.dens * n)
        return operators.linear(shape, self.dtype, columns, rows, correction, self.on_gpu)

    def turned(self) -> Self:
        """Return the plan with targets and sources exchanged, for transposed sums."""
        refuse_half_moved(self._moving)
        if self._turned is None:
            x, y = self._points
            x, y = (x.T, y.T) if self.layout == "nd" else (x, y)
            self._turned = self._made_turned(y, x)
        return self._turned

    def error(
        self, charges: AnyArray | None = None, normals: AnyArray | None = None, *, n: int = 100, seed: int = 0
    ) -> ErrorEstimate:
        """Return the relative RMS error, measured at `n` random targets against the direct sum.

        Parameters
        ----------
        charges, normals : array, optional
            As in a call; by default those of the last one.
        n : int
            Number of targets, all if there are fewer.
        seed : int
            Of their choice.

        Raises
        ------
        ValueError
            Without points, without charges given or called with, for a sum that is zero, and for `n` not positive.
        """
        refuse_half_moved(self._moving)
        if not self.some:
            raise ValueError("this plan has no targets or no sources; expected points to measure an error at.")
        chosen = error.sample(self.n_targets, n, seed)
        if charges is None:
            if self._last is None:
                raise ValueError("charges is missing: this plan has not been called; call it, or pass charges.")
            charges, normals = self._last
        last, times = self._last, dict(self.walltime.time)
        found = self(charges, normals)
        self._last, self.walltime.time = last, times
        dens, axes, many = self._strengths(charges, normals)
        parts = found if isinstance(found, tuple) else (found,)
        parts = [self._parts(part, many) for part in parts]
        at = self.xp.asarray(chosen)
        sampled = np.concatenate([arrays.to_host(part[..., at]) for part in parts], axis=1).astype(np.float64)
        x, y = (self.xp.asarray(a, np.float64) for a in self._points)
        wide = None if axes is None else axes.astype(np.float64)
        x = self.xp.ascontiguousarray(x[:, at])
        exact = np.stack([self._exact(x, y, one.astype(np.float64), wide) for one in dens])
        random = [self._exact(x, y, self.xp.asarray(error.signed(arrays.to_host(one))), wide) for one in dens]
        error.warn_of_cancellation(exact, np.stack(random), self.parameters.expected)
        return error.estimate(sampled, exact, self.n_targets, seed)

    @classmethod
    def once(
        cls, method: str, targets: Any, sources: Any, charges: Any, kernel: Any, normals: Any,
        returned: tuple[bool, bool, bool], keywords: dict[str, Any],
    ) -> Any:  # fmt: skip
        """A plan used once: its result, in a tuple with times, parameters and error where these are `returned`."""
        for name, asked in zip(ONCE[1:], returned, strict=True):
            check_flag(name, asked)
        plan = cls(kernel, targets, sources, method=method, timed=returned[0], **keywords)
        result = plan(charges, normals)
        if not any(returned):
            return result
        makers = (lambda: plan.walltime, lambda: plan.parameters, plan.error)
        return (result, *(make() for make, asked in zip(makers, returned, strict=True) if asked))

    def _exact(self, x: Array, y: Array, dens: Array, normals: Array | None) -> np.ndarray:
        """The direct sum (components, targets) of one right-hand side, on the host."""
        dens = dens if self.pair.dens > 1 else dens[0]
        u = direct.direct_sum(self.pair, x, y, dens, normals, execution_space=self.space)
        return arrays.to_host(u).reshape(self.pair.result, -1)

    def _parts(self, u: Array, many: bool) -> Array:
        """A result as (rhs, components, Nt)."""
        u = self.xp.asarray(u if many else u[None])
        if u.ndim == 2:
            return u[:, None]
        return u.swapaxes(1, 2) if self.layout == "nd" else u

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n_sources} sources, {self.n_targets} targets, {self}>"
