"""Queries of a plan: its parameters, error, predicted time, memory and near pairs."""

from __future__ import annotations

import contextlib
import numbers
from collections.abc import Hashable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from parki import arrays, error, neighbours, own_terms, ranks, scaling, tables
from parki.arguments import Arguments, Density, deprecated, renamed
from parki.arrays import AnyArray, Array
from parki.engine import Space
from parki.error import ErrorEstimate
from parki.exclusions import Exclusions
from parki.left_out import LeftOut
from parki.method import Method, Problem, Structure, Sum
from parki.prediction import Prediction
from parki.timing import PhaseTimes

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Queries:
    """Part of `parki.plan.Plan` that answers questions and changes nothing."""

    method: Method
    kernel: Any
    space: Space
    xp: Any
    comm: Any
    problem: Problem
    chosen: Any
    structure: Structure | None
    sums: dict[int, Sum]
    energies: Any
    exclusions: Exclusions | None
    _own_terms: np.ndarray | None
    arguments: Arguments
    n_targets: int
    n_sources: int
    dtype: np.dtype[Any]
    _lock: RLock
    _sampler: Any
    _last: tuple[Any, Any] | None
    _related: Mapping[Hashable, Queries]

    def _sum(self, inputs: Density, rows: Array, times: PhaseTimes) -> None:
        """Sum a checked density to rows ``(rhs, components, Nt)``."""
        raise NotImplementedError

    def _whole(self, *, at_door: bool = False) -> contextlib.AbstractContextManager[None]:
        """Hold the lock of a plan that is not broken."""
        raise NotImplementedError

    def _present(self) -> None:
        """Raise RuntimeError for a plan that was retired."""
        raise NotImplementedError

    def full(self) -> Problem:
        """Return the problem with its points."""
        return self.problem if self.structure is None else self.problem.with_points(*self.structure.originals())

    @property
    def parameters(self) -> Any:
        """Return the parameters of the method, in the caller's unit of length.

        Of type `parki.treecode.Parameters`, `parki.fmm.Parameters`, or `parki.ewald.choice.params.Parameters`; None for
        direct sums.
        """
        return self.method.public(self.problem, self.chosen)

    @property
    def pair(self) -> Any:
        """Return `kernel` by its old name."""
        deprecated("attribute pair of a plan is now kernel")
        return self.kernel

    @renamed(charges="density", dens="density")
    def error(
        self, n: int = 100, seed: int = 0, *, density: AnyArray | None = None, normals: AnyArray | None = None,
        u: AnyArray | None = None,
    ) -> ErrorEstimate:  # fmt: skip
        """Return the relative RMS error, measured at `n` random targets against an independent sum.

        In free space that is the direct sum; in a periodic box an Ewald sum of the other split, another near-field
        radius and a hundredth of the tolerance.

        Parameters
        ----------
        n, seed : int
            Number of targets, and the seed by which they are drawn.
        density, normals : array, optional
            Arguments of a call; by default those of the last call, which the plan has not copied: they must not have
            changed.
        u : array, optional
            The result of that call, if it is at hand.

        Returns
        -------
        ErrorEstimate
            The error with its bounds, and the median, the 99th percentile and the largest of single targets.  Of a
            plan with ``gradient=True`` the larger one of potential and gradient.

        Raises
        ------
        ValueError
            If there has been no call, or there are no points, or if the sum is zero at all sampled targets.

        Warns
        -----
        CancellationWarning
            For a sum that is so small for its parts that its relative error says little.

        Examples
        --------
        >>> import numpy as np, parki
        >>> x = np.random.default_rng(1).random((3, 200))
        >>> plan = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-4)
        >>> u = plan(np.where(x[0] < 0.5, 1.0, -1.0))
        >>> measured = plan.error(n=50)
        >>> measured.n, measured.low <= measured.value <= measured.high < 1e-4
        (50, True)
        """
        if not isinstance(n, numbers.Number | str):  # old order of arguments of treecodes and FMM
            deprecated("error takes density and normals by keyword", 4)
            n, seed, density, normals = 100, 0, n, None if isinstance(seed, int) else seed
        with self._whole(at_door=True):
            facts = {"call": "error", "n": n, "seed": seed, "u is given": u is not None}
            with ranks.together(self.comm, "measuring an error", **facts) as check:
                self._present()
                if self.structure is None:
                    raise ValueError("this plan has no targets or no sources; expected points to measure an error at.")
                if density is None:
                    if self._last is None:
                        name = self.method.names.density
                        raise ValueError(f"{name} is missing: this plan has not been called; call it, or pass {name}.")
                    density, normals = self._last
                inputs, arguments = self.arguments.density(density, normals), self.arguments
                count = len(inputs.values)
                if u is None:
                    rows = arguments.rows(arguments.result(inputs), count)
                else:
                    rows = arguments.taken(u, count, inputs.many)
                if check is not None:
                    check.same = facts | {"right-hand sides": count}
            sample = ranks.sample(self.comm, self.n_targets, n, seed)
            if u is None:
                self._sum(inputs, rows, self.method.times(self.problem, self.chosen))
            sums = arrays.to_host(rows[..., self.xp.asarray(sample)]).astype(np.float64)
            signed_values = self.xp.asarray(error.signed(arrays.to_host(inputs.values)).astype(self.dtype))
            doubled = inputs._replace(values=self.xp.concatenate([inputs.values, signed_values]))
            sums, references = ranks.gathered(self.comm, sums, self._reference(sample, doubled))
            exact, random = np.split(references, 2)
            error.warn_of_cancellation(exact, random, self.method.expected(self.chosen))
            count, first = ranks.total(self.comm, self.n_targets), self.kernel.before_slopes
            return error.estimate(sums, exact, count, seed, 1 if self.method.gradient is True else first)

    def _reference(self, sample: Array, density: Density) -> np.ndarray:
        """Return the sum at chosen targets by other means, without the pairs that are left out."""
        problem = self.full()
        sums = self.method.reference(problem, self.chosen, sample, density)
        if (terms := self._own_terms) is not None:
            values = arrays.to_host(density.values)[..., sample].astype(np.float64)
            own_terms.take_off(terms if terms.shape[2] == 1 else terms[..., sample], values, sums)
        if self.exclusions is not None:
            wide = np.float64
            place = self.method.outer(problem)
            y = place.sources.astype(wide)
            place = place._replace(targets=y if problem.same else place.targets.astype(wide), sources=y)
            left_out = LeftOut(self.exclusions, self.kernel, place, self.space)
            normals = None if density.normals is None else density.normals.astype(wide)
            wide_density = density._replace(values=density.values.astype(wide), normals=normals)
            rows = self.xp.zeros((len(wide_density.values), self.kernel.result, self.n_targets), wide)
            left_out.take_off(wide_density, rows)
            sums = sums + arrays.to_host(rows[..., self.xp.asarray(sample)])
        return sums

    def predict(self) -> Prediction:
        """Return the predicted time of a call by its phases, and the bytes that the plan holds.

        Returns
        -------
        Prediction
            Seconds of the machine as ``parki calibrate`` has measured it, else of a generic one.

        Examples
        --------
        >>> import numpy as np, parki
        >>> x = np.random.default_rng(1).random((3, 1000))
        >>> prediction = parki.ewald.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-4).predict()
        >>> prediction.seconds == sum(prediction.phases.values()) > 0
        True
        """
        return self.method.predict(self.problem, self.chosen, self.structure, self.memory)

    @property
    def schedule(self) -> Any:
        """Return the tasks of a sum on the cores of a host, with the times of the last call.

        Returns
        -------
        parki.tasks.schedule.Schedule or None
            None for a sum that runs phase by phase, and without points.

        Examples
        --------
        >>> import numpy as np, parki
        >>> x = parki.samples.uniform(2000, seed=1)
        >>> plan = parki.fmm.plan("coulomb", x, x, schedule="drain", threads=2)
        >>> plan.schedule.workers
        2
        """
        schedule = getattr(self.method, "schedule", None)
        return schedule(self.sums[1]) if schedule is not None and self.sums else None

    @property
    def memory(self) -> int:
        """Return the bytes of all arrays that the plan and the plans that it has made hold."""
        sizes: dict[int, int] = {}
        replays = deferred = 0
        arrays_kept = [*(self.structure.arrays if self.structure else ()), *self.problem.arrays]
        drawn = self._sampler.sums if self._sampler else []
        for kernel_sum in (*self.sums.values(), *([] if self.energies is None else [self.energies]), *drawn):
            arrays_kept += kernel_sum.placed.arrays
            deferred += kernel_sum.placed.memory_of.unmade
            replays += sum(replay.nbytes for replay in kernel_sum.placed.replays)
        for a in arrays_kept:
            while getattr(a, "base", None) is not None and hasattr(a.base, "nbytes"):
                a = a.base
            sizes[id(a)] = a.nbytes
        return sum(sizes.values()) + replays + deferred + sum(relative.memory for relative in self._related.values())

    def near_pairs(self, radius: float) -> csr_array:
        """Return the pairs of a target and a source up to a distance apart, in a sparse matrix (Nt, Ns) of distances.

        In a periodic box the nearest image of a source counts.  A quadrature corrects a sum at these pairs, see the
        `correction` of `operator`.

        Parameters
        ----------
        radius : float
            Largest distance in the points' unit of length; in a periodic box at most half its shortest height.

        Returns
        -------
        scipy.sparse.csr_array (Nt, Ns)
            The distances; coincident pairs are entries of value 0.

        Raises
        ------
        ValueError
            For a radius that is not in range.
        NotImplementedError
            For a plan over ranks.

        Examples
        --------
        >>> import numpy as np, parki
        >>> x = np.array([[0.0, 1.0, 3.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        >>> print(parki.treecode.plan("coulomb", x, x).near_pairs(1.5).toarray())
        [[0. 1. 0.]
         [1. 0. 0.]
         [0. 0. 0.]]
        """
        if self.comm is not None:
            raise NotImplementedError("near_pairs is of one process; expected a plan without comm.")
        with self._whole():
            problem = self.full()
            power = -problem.power
            y = scaling.times(arrays.to_host(problem.sources), power)
            x = y if problem.same else scaling.times(arrays.to_host(problem.targets), power)
            if problem.cell is None:
                return neighbours.near_pairs(x, y, radius)
            return neighbours.near_pairs(x, y, radius, *problem.cell.times(power))

    def __str__(self) -> str:
        kernel, *lines = self._facts().values()
        return "\n".join([f"{kernel}: {lines[0]}", *lines[1:]])

    def _repr_html_(self) -> str:
        return tables.facts(self._facts(), repr(self))

    def _facts(self) -> dict[str, str]:
        """Return the lines of the plan's description, by title."""
        arguments = self.arguments
        points = (
            f"{arguments.n_targets} targets, {arguments.n_sources} sources, {arguments.dtype}, {self.method.space.name}"
        )
        lines = self.method.describe(self.problem, self.chosen, self.predict())
        return {"kernel": str(self.method.kernel), "points": points, **lines}

    def __repr__(self) -> str:
        points = f"{self.n_sources} sources, {self.n_targets} targets"
        return f"<Plan: {self.kernel}, {self.method.name}, {points}, {self.space.name}>"
