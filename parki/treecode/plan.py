"""A treecode sum for fixed points, and what it can tell about itself."""

import logging
import math
import threading
import warnings
from typing import Any

import numpy as np

from parki import arrays, direct, engine, error, pairs
from parki.arrays import Array, module_of
from parki.engine import spaces
from parki.engine.runtime import devices
from parki.engine.spaces import Space
from parki.error import ErrorEstimate, PrecisionWarning
from parki.treecode import costs, interactions, operator, params
from parki.treecode.report import WallTime
from parki.treecode.stages import Stages, Units
from parki.trees import cluster, dual, lists

log = logging.getLogger("parki")
METHODS = ("dual", "pc", "cp")
SHORT = 1e-9  # tolerance from which roots may err by 1.5e-13


class Plan:
    """A sum over pairs in free space for fixed points, by a treecode: ``u = plan(charges)``.

    Parameters
    ----------
    kernel : str, path or Pair
        As in `parki.treecode.bldtt`.
    targets, sources : array (3, Nt), (3, Ns)
        Points anywhere; ``(N, 3)`` with ``layout="nd"``.
    method : {"dual", "pc", "cp"}
        Dual tree traversal; batches of targets against clusters of sources; clusters of targets against batches of
        sources.
    timed : bool
        On a device, wait for each phase, so that its time is that of its work, not of its launches.
    **keywords
        As in `parki.treecode.bldtt`.

    Attributes
    ----------
    pair : Pair
    parameters : Parameters
    walltime : WallTime
        Times of making the plan and of its last sum.
    n_targets, n_sources : int

    Raises
    ------
    ValueError, TypeError
        For input that does not fit, naming the argument, what was found and what was expected.
    """

    def __init__(
        self, kernel: Any, targets: Any, sources: Any, *, method: str = "dual", theta: float | None = None,
        degree: int | None = None, tolerance: float | None = None, leaf_size: int | None = None,
        batch_size: int | None = None, gradient: bool | str = False, far_precision: str | None = None,
        layout: str = "dn", execution_space: Any = None, threads: int | None = None, verbose: bool = False,
        timed: bool = False, **parameters: float,
    ) -> None:  # fmt: skip
        _check(method, theta, degree, tolerance, leaf_size, batch_size, gradient, far_precision, layout, parameters)
        pair = pairs.find(kernel, **parameters)
        self.pair = pair.with_gradient(only=gradient == "only") if gradient else pair
        self.gradient, self.layout = gradient, layout
        given = {"targets": targets, "sources": sources}
        self.space = arrays.space_of(execution_space, threads, **given)
        self.on_gpu = arrays.on_gpu(**given) is not None
        same = targets is sources
        y = arrays.points("sources", sources, layout=layout)
        x = y if same else arrays.points("targets", targets, layout=layout)
        self.dtype = arrays.same_dtype(targets=x, sources=y)
        self.n_targets, self.n_sources = x.shape[1], y.shape[1]
        self.xp = spaces.array_module(self.space)
        self.linear, self._charges = self.pair.linear()
        self.walltime = WallTime(devices.wait if self.space.kind == "device" and timed else None)
        self._points, self._lock, self._last = (x, y), threading.RLock(), None
        self._turned: Plan | None = None
        asked = {"theta": theta, "degree": degree, "tolerance": tolerance, "leaf_size": leaf_size}
        asked |= {"batch_size": batch_size, "far": _PRECISION[far_precision]}
        asked |= {"fewest": min(self.n_targets, self.n_sources), "space": self._probe()}
        extent = _extent(x, y)
        self.parameters = params.choose(self.linear, method, extent, dtype=self.dtype, **asked)
        floor = params.REACH[self.dtype.name]
        if tolerance is not None and tolerance < floor:
            text = f"tolerance={tolerance:g} is below what {self.dtype} reaches here, about {floor:g}"
            warnings.warn(f"{text}; use float64 or a larger tolerance", PrecisionWarning, stacklevel=4)
        log.log(logging.INFO if verbose else logging.DEBUG, "%s: %s", self.pair, self.parameters)
        self.stages: Stages | None = None
        if self.n_targets and self.n_sources:
            self._prepare(self.xp.asarray(x), self.xp.asarray(y), same, extent)

    def _probe(self) -> Space | None:
        """Where a few small sums say how well the kernel is interpolated: on a device, or on the host as it is."""
        return self.space if self.space.kind == "device" else None

    def _prepare(self, x: Array, y: Array, same: bool, extent: float) -> None:
        """Trees, lists, kernels and arrays."""
        p, times = self.parameters, self.walltime
        t_size, s_size = (p.leaf_size, p.batch_size) if p.method == "cp" else (p.batch_size, p.leaf_size)
        with times.phase("tree"):
            sources = cluster.build(y, s_size, self.space)
            targets = sources if same and t_size == s_size else cluster.build(x, t_size, self.space)
        with times.phase("lists"):
            tiny = direct.coincident(x, y) if self.pair.singular else 0.0
            separation = max(self.pair.separation(), math.sqrt(tiny))  # grids skip no pairs
            apart = {"separation": separation, "cubes": p.tolerance is not None}
            match p.method:
                case "dual":
                    found = dual.traverse(targets, sources, p.theta, **apart)
                case "pc":
                    found = lists.traverse(targets, sources, p.theta, **apart)
                case _:
                    found = lists.traverse(sources, targets, p.theta, **apart).swapped()
            units = Units(self.linear, self.dtype, np.dtype(p.far), p.degree + 1, (p.tolerance or 0) >= SHORT)
            fields = params.strength(self.linear, extent, self._probe())
            rule = p.rule(fields, costs.grid(units))
            chosen = interactions.build(targets, sources, found, rule)
        times.pairs = dict(zip(("pp", "pc", "cp", "cc"), chosen.pairs, strict=True))
        engine.compile_all(units.needed(chosen), self.space)
        self.stages = Stages(units, targets, sources, chosen, self.space, tiny)

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
            rows = self.pair.result
            u = self.xp.zeros((len(dens), rows, self.n_targets), self.dtype)
            if self.stages is not None:
                order = self.stages.targets.order
                for one, result in zip(dens, u, strict=True):
                    made = self._charges(one if self.pair.dens > 1 else one[0], axes)
                    result[:, order] = self.stages.run(made.reshape(-1, self.n_sources), self.walltime)
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
        return operator.make(self, correction)

    def turned(self) -> "Plan":
        """The plan with targets and sources exchanged, for transposed sums."""
        if self._turned is None:
            p, (x, y) = self.parameters, self._points
            x, y = (x.T, y.T) if self.layout == "nd" else (x, y)
            asked = {"tolerance": p.tolerance} if p.tolerance is not None else {"theta": p.theta, "degree": p.degree}
            asked |= {"leaf_size": p.leaf_size, "batch_size": p.batch_size, "layout": self.layout}
            asked |= {"far_precision": "single" if p.far == "float32" else "double", "execution_space": self.space}
            self._turned = Plan(self.pair, y, x, method={"pc": "cp", "cp": "pc"}.get(p.method, p.method), **asked)
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
        if self.stages is None:
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

    @property
    def memory(self) -> int:
        """Bytes of the plan's own arrays."""
        if self.stages is None:
            return 0
        trees = {id(tree): tree for tree in (self.stages.targets, self.stages.sources)}.values()
        return self.stages.memory + sum(tree.points.nbytes + tree.order.nbytes for tree in trees)

    def __str__(self) -> str:
        return f"{self.pair}, {self.parameters.method}, {self.parameters}"

    def __repr__(self) -> str:
        return f"<Plan: {self.n_sources} sources, {self.n_targets} targets, {self}>"


_PRECISION = {None: None, "double": "float64", "single": "float32"}


def _check(
    method: Any, theta: Any, degree: Any, tolerance: Any, leaf_size: Any, batch_size: Any, gradient: Any,
    far_precision: Any, layout: Any, parameters: dict[str, Any],
) -> None:  # fmt: skip
    """Refuse options that are not in range."""
    for name in ("box", "periodicity", "periodic"):
        if name in parameters:
            raise ValueError(f"{name} was given, but treecodes sum in free space; parki.ewald has periodic boxes.")
    for name, value, allowed in (
        ("method", method, METHODS), ("gradient", gradient, (False, True, "only")),
        ("far_precision", far_precision, tuple(_PRECISION)), ("layout", layout, ("dn", "nd")),
    ):  # fmt: skip
        if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
            raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(repr, allowed))}.")
    if tolerance is not None:
        if theta is not None or degree is not None:
            raise ValueError("tolerance was given with theta or degree, which it chooses; expected one or the other.")
        if not _is_number(tolerance) or not 0 < tolerance < 1:
            raise ValueError(f"tolerance is {tolerance!r}; expected a number between 0 and 1.")
    if theta is not None and (not _is_number(theta) or not 0 < theta < 1):
        raise ValueError(f"theta is {theta!r}; expected a number between 0 and 1.")
    for name, value, most in (
        ("degree", degree, params.MOST_DEGREE), ("leaf_size", leaf_size, None), ("batch_size", batch_size, None),
    ):  # fmt: skip
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if value is not None and (not whole or value < 1 or (most is not None and value > most)):
            upto = f" up to {most}" if most is not None else ""
            raise ValueError(f"{name} is {value!r}; expected a positive whole number{upto}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _extent(x: Array, y: Array) -> float:
    """Half the longest side of the box around all points."""
    some = [a for a in (x, y) if a.shape[1]]
    if not some:
        return 0.0
    low = [min(float(a[d].min()) for a in some) for d in range(3)]
    high = [max(float(a[d].max()) for a in some) for d in range(3)]
    return max(0.5 * b - 0.5 * a for a, b in zip(low, high, strict=True))
