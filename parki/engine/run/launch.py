"""Launches: prepared ones, which cost microseconds, and single ones."""

from typing import Any

import numpy as np

from parki.engine import config, counting
from parki.engine.calls.host import ALIGN, HostCall
from parki.engine.errors import LaunchError
from parki.engine.lower.common import DTYPE, VALUE
from parki.engine.run import fit, spaces
from parki.engine.run.policy import RangePolicy, TeamPolicy
from parki.engine.workunit import Workunit


class Prepared:
    """A launch bound to its arrays: `run` repeats the launch, `set` changes single arguments.

    Parameters
    ----------
    policy : RangePolicy or TeamPolicy
        Number of iterations or teams, and their space.
    workunit : Workunit
        A result of `kernel`.
    args : dict
        Arguments by name.

    See Also
    --------
    prepare : Make a prepared launch.

    Examples
    --------
    >>> import numpy as np
    >>> from parki import engine
    >>> x, order, out = np.arange(6.0).reshape(3, 2), np.array([1, 0], np.int32), np.zeros((3, 2))
    >>> unit = engine.kernel("cells", "gather_points", real="double")
    >>> launch = engine.prepare(engine.RangePolicy("Serial", 2), unit, x=x, order=order, out=out)
    >>> launch.run()
    >>> launch.set(x=10 * x)
    >>> launch.run()
    >>> out[0]
    array([10.,  0.])
    """

    def __init__(self, policy: RangePolicy | TeamPolicy, workunit: Workunit, args: dict[str, object]) -> None:
        self.workunit, self.policy = workunit, policy
        counting.add("prepares")
        self._xp = spaces.array_module(policy.space)
        k = workunit.ir
        if k.policy != policy.kind:
            raise LaunchError(f"{k.name} needs a {k.policy} policy, found a {policy.kind} policy")
        fit.names(workunit, args)
        wrappers = fit.unwrapped(args)
        self._arrays = {p.name: fit.view(k, p, wrappers.args[p.name], self._xp) for p in workunit.views}
        self._layouts = fit.layouts(self._arrays, wrappers, workunit, policy.space)
        fit.overlap(k, self._arrays, self._arrays)
        self._scalars = {p.name: fit.scalar(k, p, wrappers.args[p.name]) for p in workunit.numbers}
        self._call = _call(policy, workunit, self._layouts, self._arrays)
        for name, a in self._arrays.items():
            self._call.bind(name, wrappers.constants[name] if self._layouts[name] == VALUE else a)
        self._call.numbers(self._scalars)
        self._sent = True  # whether the call has the numbers: False during a change, and after an interrupted one

    def set(self, **args: object) -> None:
        """Replace arguments; an array must have the type, rank and layout of the one it replaces.

        Parameters
        ----------
        **args
            New arguments by name.

        Raises
        ------
        LaunchError
            For arguments that do not fit; nothing has been replaced then.
        """
        k, arrays, numbers = self.workunit.ir, {}, {}
        for name, value in args.items():
            p = self.workunit.params.get(name)
            if p is None:
                raise LaunchError(f"{k.name} has no argument '{name}'")
            if not p.rank:
                numbers[name] = fit.scalar(k, p, value)
                continue
            arrays[name] = fit.view(k, p, value, self._xp)
            fit.replacement(k, name, value, self._layouts[name])
        if arrays:
            fit.overlap(k, self._arrays | arrays, arrays)
        scalars = self._scalars | numbers
        if scalars != self._scalars or not self._sent:
            self._sent = False
            self._call.numbers(scalars)
            self._scalars, self._sent = scalars, True
        for name, a in arrays.items():
            self._call.bind(name, a)
        self._arrays.update(arrays)

    def release(self, *names: str) -> None:
        """Drop references to arrays: `set` must give others before the next launch.

        Parameters
        ----------
        *names : str
            Names of arguments.
        """
        for name in names:
            self._arrays.pop(name, None)

    def _refuse_released(self) -> None:
        """Raise LaunchError if an array was released and not set again."""
        if len(self._arrays) < len(self._layouts):
            names = sorted(self._layouts.keys() - self._arrays.keys())
            raise LaunchError(f"{self.workunit.ir.name}: {names} were released and not set again")

    @property
    def arrays(self) -> list[Any]:
        """Return the arrays that the launch keeps alive, its scratch among them."""
        return [*self._arrays.values(), *self.own]

    @property
    def own(self) -> list[Any]:
        """Return the arrays that the launch has for itself: scratch, and partial results of reductions."""
        scratch = (getattr(self._call, name, None) for name in ("_arena", "_partial", "partial"))
        return [a for a in scratch if a is not None]

    def launch(self) -> None:
        """Launch; on a device without waiting, in the order of CuPy's current stream."""
        self._refuse_released()
        if self.policy.league:
            self._call.run()

    def run(self) -> float | int | None:
        """Launch, and wait for the result of a reduction.

        Returns
        -------
        float, int or None
            The result of a reduction; None for other workunits.
        """
        self.launch()
        if not self.workunit.ir.acc:
            return None
        return self._call.total() if self.policy.league else np.zeros((), DTYPE[self.workunit.ir.acc_type]).item()

    def part(self, first: int, count: int, *, shared: bool = True) -> "Part":
        """Return a launch of the teams, or iterations, first … first + count − 1, with the current arguments.

        Parameters
        ----------
        first, count : int
            A range of the league.
        shared : bool, default True
            Whether parts run at the same time; additions are then atomic on hosts.

        Returns
        -------
        Part
            The launch.

        Raises
        ------
        LaunchError
            For a range outside the league, a workunit with an accumulator, and an engine that has no parts.
        """
        name, league = self.workunit.ir.name, self.policy.league
        if not (0 <= first <= first + count <= league):
            raise LaunchError(f"{name}: part {first} … {first + count - 1}, expected teams in 0 … {league - 1}")
        if self.workunit.ir.acc:
            raise LaunchError(f"{name} has an accumulator: expected a launch as a whole, not a part")
        if self.policy.space.engine != config.NAME:
            raise LaunchError(f"{name}: {self.policy.space.engine} launches as a whole, expected engine 'parki'")
        self._refuse_released()
        return Part(self, self._call.part(first, count, shared), first, count)

    def range(self, first: int, count: int) -> "Part":
        """Return a launch on a host of teams first … first + count − 1 by all threads, with the current arguments.

        Such launches share their scratch: one runs at a time.

        Parameters
        ----------
        first, count : int
            A range of the league.

        Returns
        -------
        Part
            The launch.
        """
        self._refuse_released()
        return Part(self, self._call.range(first, count), first, count)

    def rest(self) -> None:
        """End idle threads of a host, which would keep cores busy; the next launch starts new ones."""
        if isinstance(self._call, HostCall):
            self._call.rest()


class Part:
    """A launch of a range of another launch's teams or iterations; any thread may call `run`.

    A host runs a part by one thread (`Prepared.part`) or by all (`Prepared.range`).

    Parameters
    ----------
    whole : Prepared
        The launch.
    call : object
        The call of a range in this kind of space.
    first, count : int
        A range of the league.

    Attributes
    ----------
    scratch_bytes : int
        Bytes of scratch that `take_scratch` must get on a host before the first run, 0 for none.

    See Also
    --------
    Prepared.part : Make a part.

    Examples
    --------
    >>> import numpy as np
    >>> from parki import engine
    >>> order, out, x = np.array([1, 0], np.int32), np.zeros((3, 2)), np.arange(6.0).reshape(3, 2)
    >>> unit = engine.kernel("cells", "gather_points", real="double")
    >>> launch = engine.prepare(engine.RangePolicy("Serial", 2), unit, x=x, order=order, out=out)
    >>> launch.part(0, 1).run()
    >>> out[0]
    array([1., 0.])
    """

    def __init__(self, whole: Prepared, call: Any, first: int, count: int) -> None:
        self.whole, self._call, self.first, self.count = whole, call, first, count  # `whole` keeps arrays alive
        has_scratch = isinstance(call, HostCall) and call.scratch_bytes
        self.scratch_bytes: int = call.scratch_bytes + ALIGN if has_scratch else 0

    def take_scratch(self, arena: np.ndarray) -> None:
        """Use the bytes of a worker as scratch.

        Parameters
        ----------
        arena : array of uint8
            At least `scratch_bytes` entries.
        """
        if self.scratch_bytes:
            self._call.take_scratch(arena)

    def run(self) -> None:
        """Launch, on a device without waiting."""
        if self.count:
            self._call.run()


def _call(policy: RangePolicy | TeamPolicy, workunit: Workunit, layouts: dict[str, str], arrays: dict[str, Any]) -> Any:
    """Return the call for the kind of space; code for kinds other than hosts is imported on first use."""
    if policy.space.engine == "pykokkos":
        from parki.engine.run import upstream

        return upstream.UpstreamCall(policy, workunit)
    match policy.space.kind:
        case "host":
            return HostCall(policy, workunit, layouts)
        case "sim":
            from parki.engine.calls.sim import SimCall

            return SimCall(policy, workunit, layouts, arrays)
        case _:
            from parki.engine.calls.device import DeviceCall

            return DeviceCall(policy, workunit, layouts, arrays)


def prepare(policy: RangePolicy | TeamPolicy, workunit: Workunit, /, **args: object) -> Prepared:
    """Check the arguments once, compile if need be, and return a launch that `run` repeats.

    Parameters
    ----------
    policy : RangePolicy or TeamPolicy
        Iterations or teams, and their space.
    workunit : Workunit
        The workunit to launch.
    **args
        One entry per parameter of the workunit: arrays of its dtypes and ranks (NumPy's on hosts, CuPy's on devices;
        any layout with strides that are not negative; used in place, and kept alive; in `Fixed`, if no value
        changes) and numbers.

    Returns
    -------
    Prepared
        The launch.

    Raises
    ------
    LaunchError
        A name is missing or unknown; an array's type, rank or strides do not fit the workunit; a written array is
        read-only or overlaps another; a number does not fit its type; the policy is of the other kind; the workunit
        declares more scratch than its decorator asks for.
    BuildError
        There is no compiler, or the compiler failed.
    CheckedFault
        In a checked build (``PARKI_DEBUG=1``), by a launch, for an index that is out of bounds.

    See Also
    --------
    parallel_for : Launch once.

    Examples
    --------
    >>> import numpy as np
    >>> from parki import engine
    >>> unit = engine.kernel("cells", "gather_points", real="float")
    >>> x, out = np.arange(6, dtype=np.float32).reshape(3, 2), np.zeros((3, 2), np.float32)
    >>> order = np.array([1, 0], np.int32)
    >>> launch = engine.prepare(engine.RangePolicy("Serial", 2), unit, x=x, order=order, out=out)
    >>> launch.run()
    >>> out[0]
    array([1., 0.], dtype=float32)
    """
    return Prepared(policy, workunit, args)


def parallel_for(policy: RangePolicy | TeamPolicy, workunit: Workunit, /, **args: object) -> None:
    """Launch `workunit` over `policy` once, on a device without waiting.

    Parameters
    ----------
    policy : RangePolicy or TeamPolicy
        Iterations or teams.
    workunit : Workunit
        The workunit to launch.
    **args
        Arguments as for `prepare`.

    Raises
    ------
    LaunchError, BuildError, CheckedFault
        For arguments that do not fit, and others as by `prepare`.

    See Also
    --------
    prepare : Prepare a launch for many runs.
    parallel_reduce : Launch a workunit with an accumulator.

    Examples
    --------
    >>> import numpy as np
    >>> from parki import engine
    >>> x, out = np.arange(9.0).reshape(3, 3), np.zeros((3, 2))
    >>> unit, order = engine.kernel("cells", "gather_points", real="double"), np.array([2, 0], np.int32)
    >>> engine.parallel_for(engine.RangePolicy("Serial", 2), unit, x=x, order=order, out=out)
    >>> out[0]
    array([2., 0.])
    """
    prepare(policy, workunit, **args).launch()


def parallel_reduce(policy: RangePolicy, workunit: Workunit, /, **args: object) -> float | int:
    """Launch a workunit with an accumulator, and return the total.

    Parameters
    ----------
    policy : RangePolicy
        Iterations to add up.
    workunit : Workunit
        A workunit with an accumulator.
    **args
        Its other arguments, as for `prepare`.

    Returns
    -------
    float or int
        The total, in the accumulator's type.

    Raises
    ------
    LaunchError
        As by `prepare`; or the workunit has no accumulator.

    See Also
    --------
    parallel_for : Launch a workunit without an accumulator.

    Examples
    --------
    >>> import numpy as np
    >>> from parki import engine
    >>> scan, count = engine.kernel("cells", "count_scan"), np.array([[2, 0, 1]], np.int32)
    >>> begin = np.zeros(4, np.int32)
    >>> engine.parallel_reduce(engine.RangePolicy("Serial", 3), scan, count=count, begin=begin, chunks=1)
    3
    >>> begin.tolist()
    [0, 2, 2, 0]
    """
    if not workunit.ir.acc:
        raise LaunchError(f"{workunit.ir.name} has no accumulator: use parallel_for")
    return prepare(policy, workunit, **args).run()
