"""Sums over pairs in free space for fixed points: what plans of all methods share.

A plan checks points once and charges at every call, gives results in the caller's order and axes, measures its error
against the direct sum, and is a linear operator.  What a method adds is how it sums.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from parki import arrays, direct, error, operators, pairs
from parki.arrays import Array, module_of
from parki.engine import forks, spaces
from parki.engine.runtime import devices
from parki.error import ErrorEstimate, PrecisionWarning
from parki.timing import PhaseTimes

#: Relative errors of a sum from which hints apply: its roots may err by 1.5e-13, its exponentials by 2.6e-12, 1.6e-9
#: and 4.3e-7 (in single precision 5.5e-7).
SHORT = ((1e-9, "short_rsqrt"), (1e-9, "short_exp"), (1e-8, "shorter_exp"), (3e-6, "shortest_exp"))


def short(error: float) -> tuple[str, ...]:
    """Hints for roots and exponentials of a sum with this relative error (`parki.engine.kernel`)."""
    return tuple(hint for least, hint in SHORT if error >= least)


class FreePlan(ABC):
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

    def __init__(
        self, kernel: Any, targets: Any, sources: Any, *, gradient: bool | str, layout: str, execution_space: Any,
        threads: int | None, times: Callable[[Any], PhaseTimes], timed: bool, parameters: dict[str, float],
    ) -> None:  # fmt: skip
        pair = pairs.find(kernel, **parameters)
        self.pair = pair.with_gradient(only=gradient == "only") if gradient else pair
        self.gradient, self.layout = gradient, layout
        given = {"targets": targets, "sources": sources}
        self.space = arrays.space_of(execution_space, threads, **given)
        self.on_gpu = arrays.on_gpu(**given) is not None
        self.xp = spaces.array_module(self.space)
        self.n_targets, self.n_sources, self.dtype, self._points = self._taken(targets, sources)
        self.linear, self._charges = self.pair.linear()
        self.walltime = times(devices.wait if self.space.kind == "device" and timed else None)
        self._lock, self._last, self._turned = forks.lock(), None, None

    def _warn_below(self, tolerance: float | None, reach: dict[str, float]) -> None:
        """Warn the caller of a call of the package of a tolerance that the points' dtype cannot give."""
        floor = reach[self.dtype.name]
        if tolerance is not None and tolerance < floor:
            text = f"tolerance={tolerance:g} is below what {self.dtype} reaches here, about {floor:g}"
            warnings.warn(f"{text}; use float64 or a larger tolerance", PrecisionWarning, stacklevel=5)

    def _taken(self, targets: Any, sources: Any) -> tuple[int, int, np.dtype, tuple[Array, Array]]:
        """Numbers of points, their dtype, and themselves, checked."""
        y = arrays.points("sources", sources, layout=self.layout)
        x = y if targets is sources else arrays.points("targets", targets, layout=self.layout)
        return x.shape[1], y.shape[1], arrays.same_dtype(targets=x, sources=y), (x, y)

    def move(self, targets: Any, sources: Any) -> None:
        """Take other points, as many as they may be, for the same kernel and parameters.

        Parameters
        ----------
        targets, sources : array (3, Nt), (3, Ns)
            As when the plan was made: in the same dtype and place.

        Raises
        ------
        ValueError
            For points that do not fit; the plan is then as it was.
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
            self.n_targets, self.n_sources, self.dtype, self._points = taken
            self._last = self._turned = None
            self._place()

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

    def __call__(self, charges: Any, normals: Any = None, *, out: Array | None = None) -> Any:
        """The sum at all targets.

        Parameters
        ----------
        charges : array
            ``(Ns,)`` for kernels of one component, else ``(components, Ns)``, in the points' dtype; with an axis of
            right-hand sides in front.
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
            dens, axes, many = self._strengths(charges, normals)
            self.walltime.reset()
            u = self.xp.zeros((len(dens), self.pair.result, self.n_targets), self.dtype)
            if self.some:
                for one, result in zip(dens, u, strict=True):
                    made = self._charges(one if self.pair.dens > 1 else one[0], axes)
                    self._add(made.reshape(-1, self.n_sources), result)
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
        dens = arrays.density("charges", charges, components, n, self.layout, many=True, contiguous=False)
        checked = {"charges": dens}
        if self.pair.normals:
            if normals is None:
                raise ValueError(f"normals is missing; {self.pair} expects (3, {n}), one normal for each source.")
            checked["normals"] = arrays.density("normals", normals, 3, n, self.layout)
        elif normals is not None:
            raise ValueError(f"normals was given, but {self.pair} takes none.")
        arrays.same_dtype(points=np.empty(0, self.dtype), **checked)
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

    def operator(self, correction: Any = None) -> Any:
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
        """The plan with targets and sources exchanged, for transposed sums."""
        if self._turned is None:
            x, y = self._points
            x, y = (x.T, y.T) if self.layout == "nd" else (x, y)
            self._turned = self._made_turned(y, x)
        return self._turned

    def error(self, charges: Any = None, normals: Any = None, *, n: int = 100, seed: int = 0) -> ErrorEstimate:
        """The relative RMS error, measured at `n` random targets against the direct sum.

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
        exact = [self._exact(self.xp.ascontiguousarray(x[:, at]), y, one.astype(np.float64), wide) for one in dens]
        return error.estimate(sampled, np.stack(exact), self.n_targets, seed)

    @classmethod
    def once(
        cls, method: str, targets: Any, sources: Any, charges: Any, kernel: Any, normals: Any,
        returned: tuple[bool, bool, bool], keywords: dict[str, Any],
    ) -> Any:  # fmt: skip
        """A plan used once: its result, in a tuple with times, parameters and error where these are `returned`."""
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


def check_choice(name: str, value: Any, allowed: Iterable[Any]) -> None:
    """Raise ValueError for an option that is not one of those allowed; True and False are not 1 and 0."""
    if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
        raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(repr, allowed))}.")


def check_whole(name: str, value: Any, most: int | None = None) -> None:
    """Raise ValueError for an option, if it is given, that is not a positive whole number up to `most`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if value is not None and (not whole or value < 1 or (most is not None and value > most)):
        upto = f" up to {most}" if most is not None else ""
        raise ValueError(f"{name} is {value!r}; expected a positive whole number{upto}.")


def check_share(name: str, value: Any) -> None:
    """Raise ValueError for an option, if it is given, that is not a number between 0 and 1."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if value is not None and (not number or not 0 < value < 1):
        raise ValueError(f"{name} is {value!r}; expected a number between 0 and 1.")


def refuse_boxes(parameters: dict[str, Any], method: str) -> None:
    """Raise ValueError for options of periodic boxes."""
    for name in ("box", "periodicity", "periodic"):
        if name in parameters:
            raise ValueError(f"{name} was given, but {method} sum in free space; parki.ewald has periodic boxes.")
