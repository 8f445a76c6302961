"""Launches: checks of the arguments, and prepared launches that cost microseconds."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from parki.engine import counting, ir, spaces
from parki.engine.calls.gpu import shared_memory
from parki.engine.calls.host import ALIGN, HostCall
from parki.engine.errors import LaunchError
from parki.engine.lower.common import DTYPE
from parki.engine.policy import RangePolicy, TeamPolicy
from parki.engine.workunit import Workunit


class Prepared:
    """A launch bound to its arrays: `run` repeats it, `set` changes single arguments."""

    def __init__(self, policy: RangePolicy | TeamPolicy, workunit: Workunit, args: dict[str, object]) -> None:
        self.workunit, self.policy = workunit, policy
        counting.add("prepares")
        self._xp = spaces.array_module(policy.space)
        k = workunit.ir
        if k.policy != policy.kind:
            raise LaunchError(f"{k.name} needs a {k.policy} policy, found a {policy.kind} policy")
        _names(k, args)
        self._params = {p.name: p for p in k.params}
        self._arrays = {p.name: _view(k, p, args[p.name], self._xp) for p in k.params if p.rank}
        self._layouts = {name: layout(a) for name, a in self._arrays.items()}
        _overlap(k, self._arrays, self._arrays)
        self._scalars = {p.name: _scalar(k, p, args[p.name]) for p in k.params if not p.rank}
        self._call = _call(policy, workunit, self._layouts, self._arrays)
        for name, a in self._arrays.items():
            self._call.bind(name, a)
        self._call.numbers(self._scalars)
        self._sent = True  # the numbers; False while they change, and after a change that was interrupted

    def set(self, **args: object) -> None:
        """Replace arguments; an array must have the type, rank and layout of the one it replaces.

        Raises
        ------
        LaunchError
            Then nothing has been replaced.
        """
        k, arrays, numbers = self.workunit.ir, {}, {}
        for name, value in args.items():
            p = self._params.get(name)
            if p is None:
                raise LaunchError(f"{k.name} has no argument '{name}'")
            if not p.rank:
                numbers[name] = _scalar(k, p, value)
                continue
            arrays[name] = _view(k, p, value, self._xp)
            if layout(value) != self._layouts[name]:
                raise LaunchError(f"{k.name}: '{name}' has another layout than the array it was prepared with")
        if arrays:
            _overlap(k, self._arrays | arrays, arrays)
        scalars = self._scalars | numbers
        if scalars != self._scalars or not self._sent:
            self._sent = False
            self._call.numbers(scalars)
            self._scalars, self._sent = scalars, True
        for name, a in arrays.items():
            self._call.bind(name, a)
        self._arrays.update(arrays)

    def release(self, *names: str) -> None:
        """Let go of arrays: `set` must give others before the next launch."""
        for name in names:
            self._arrays.pop(name, None)

    def _refuse_released(self) -> None:
        """Raise LaunchError if an array was released and not set again."""
        if len(self._arrays) < len(self._layouts):
            released = sorted(self._layouts.keys() - self._arrays.keys())
            raise LaunchError(f"{self.workunit.ir.name}: {released} were released and not set again")

    @property
    def arrays(self) -> list[Any]:
        """The arrays that it keeps alive, its scratch among them."""
        return [*self._arrays.values(), *self.own]

    @property
    def own(self) -> list[Any]:
        """The arrays that the launch has for itself: scratch, and partial results of reductions."""
        own = (getattr(self._call, name, None) for name in ("_arena", "_partial", "partial"))
        return [a for a in own if a is not None]

    def launch(self) -> None:
        """Launch; on a device without waiting, in the order of CuPy's current stream."""
        self._refuse_released()
        if self.policy.league:
            self._call.run()

    def run(self) -> float | int | None:
        """Launch.  Returns the result of a reduction, which waits for it; None otherwise."""
        self.launch()
        if not self.workunit.ir.acc:
            return None
        return self._call.total() if self.policy.league else np.zeros((), DTYPE[self.workunit.ir.acc_type]).item()

    def part(self, first: int, count: int, *, shared: bool = True) -> "Part":
        """Return a launch of the teams, or iterations, first … first + count − 1, with the arguments of now.

        Parameters
        ----------
        first, count : int
            A range of the league.
        shared : bool
            Whether parts run beside each other, so that additions of one are atomic on hosts.

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
        if self.policy.space.engine != "parki":
            raise LaunchError(f"{name}: {self.policy.space.engine} launches as a whole, expected engine 'parki'")
        self._refuse_released()
        return Part(self, self._call.part(first, count, shared), first, count)

    def range(self, first: int, count: int) -> "Part":
        """Return a launch on a host of the teams first … first + count − 1 by all threads, with the arguments of now.

        Such launches share their scratch: one runs at a time.
        """
        self._refuse_released()
        return Part(self, self._call.range(first, count), first, count)

    def rest(self) -> None:
        """Leave the cores of a host to others until the next launch, if its threads would not do so by themselves."""
        if isinstance(self._call, HostCall):
            self._call.rest()


class Part:
    """A range of a launch's teams or iterations, on a host by one thread: `run` may be called by any thread.

    Attributes
    ----------
    first, count : int
    scratch_bytes : int
        Bytes that `take_scratch` must be given on a host before the first run, 0 for none.
    """

    def __init__(self, whole: Prepared, call: Any, first: int, count: int) -> None:
        self.whole, self._call, self.first, self.count = whole, call, first, count  # `whole` keeps the arrays
        needed = call.scratch_bytes + ALIGN if isinstance(call, HostCall) and call.scratch_bytes else 0
        self.scratch_bytes: int = needed

    def take_scratch(self, arena: np.ndarray) -> None:
        """Use the bytes of a worker as scratch: an array of uint8 with at least `scratch_bytes` entries."""
        if self.scratch_bytes:
            self._call.take_scratch(arena)

    def run(self) -> None:
        """Launch; a device goes on by itself."""
        if self.count:
            self._call.run()


def _call(policy: RangePolicy | TeamPolicy, workunit: Workunit, layouts: dict[str, str], arrays: dict[str, Any]) -> Any:
    """Return the call of this kind of space; the code of the others is not even imported."""
    if policy.space.engine == "pykokkos":
        from parki.engine import upstream

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
        How many iterations or teams, and where.
    workunit : Workunit
        What `kernel` returned.
    **args
        One entry per parameter of the workunit: arrays of its dtypes and ranks (NumPy's on hosts, CuPy's on devices;
        any layout with strides that are not negative; used in place, and kept alive) and numbers.

    Raises
    ------
    LaunchError
        A name is missing or unknown; an array's type, rank or strides do not fit the workunit; a written array is
        read-only or overlaps another; a number does not fit its type; the policy is of the other kind.
    BuildError
        There is no compiler, or it failed.
    """
    return Prepared(policy, workunit, args)


def parallel_for(policy: RangePolicy | TeamPolicy, workunit: Workunit, /, **args: object) -> None:
    """Launch `workunit` over `policy` once; a device goes on by itself.  Arguments and errors as for `prepare`.

    Raises
    ------
    LaunchError
        The workunit declares more scratch than its decorator asks for.
    CheckedFault
        In a checked build (``PARKI_DEBUG=1``), an index is out of bounds.
    """
    prepare(policy, workunit, **args).launch()


def parallel_reduce(policy: RangePolicy, workunit: Workunit, /, **args: object) -> float | int:
    """Launch a workunit with an accumulator, and return the total.  Arguments and errors as for `parallel_for`.

    Raises
    ------
    LaunchError
        The workunit has no accumulator.
    """
    if not workunit.ir.acc:
        raise LaunchError(f"{workunit.ir.name} has no accumulator: use parallel_for")
    return prepare(policy, workunit, **args).run()


def _names(k: ir.KernelTree, args: dict[str, object]) -> None:
    want = {p.name for p in k.params}
    missing, unknown = sorted(want - args.keys()), sorted(args.keys() - want)
    if missing or unknown:
        raise LaunchError(f"{k.name}: missing arguments {missing}, unknown arguments {unknown}")


def _view(k: ir.KernelTree, p: ir.Param, a: Any, xp: Any) -> Any:
    if not isinstance(a, xp.ndarray):
        found, expected = type(a), "NumPy" if xp is np else "CuPy"
        name = found.__name__ if found.__module__ == "builtins" else f"{found.__module__}.{found.__name__}"
        raise LaunchError(f"{k.name}: '{p.name}' is a {name}, expected a {expected} array")
    if a.dtype != DTYPE[p.type] or a.ndim != p.rank:
        want = f"{p.rank} dimension(s) of {DTYPE[p.type]}"
        raise LaunchError(f"{k.name}: '{p.name}' has {a.ndim} dimension(s) of {a.dtype}, expected {want}")
    flags = a.flags if xp is np else None
    gaps = flags is None or not flags.c_contiguous
    odd = gaps and any(s < 0 or s % a.itemsize for s in a.strides)
    odd = odd or (flags is not None and not flags.aligned)
    if a.size and (odd or max(a.shape) >= 2**31):
        raise LaunchError(f"{k.name}: '{p.name}' has strides {a.strides}, shape {a.shape}: not supported")
    if p.written and flags is not None and not flags.writeable:
        raise LaunchError(f"{k.name}: '{p.name}' is written, but the array is read-only")
    if p.written and gaps and a.size and any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape, strict=True)):
        raise LaunchError(f"{k.name}: '{p.name}' is written, but elements of the array share memory")
    return a


def taken(a: Any) -> bool:
    """Return whether launches take an array as it is: with unit stride along its first or last axis, and aligned."""
    whole = all(s >= 0 and s % a.itemsize == 0 for s in a.strides)
    return whole and layout(a) != "S" and getattr(a.flags, "aligned", True)


def layout(a: Any) -> str:
    """Return C, F or S, by the index of an array that has unit stride: the last, the first or none."""
    if a.size == 0 or a.strides[-1] == a.itemsize or a.shape[-1] == 1:
        return "C"
    return "F" if a.strides[0] == a.itemsize else "S"


def _scalar(k: ir.KernelTree, p: ir.Param, v: object) -> float | int:
    if p.type in ir.REALS:
        if isinstance(v, int | float | np.floating | np.integer) and not isinstance(v, bool):
            return float(v)
    elif p.type == "bool":
        if isinstance(v, bool | np.bool_):
            return int(v)
    elif isinstance(v, int | np.integer) and not isinstance(v, bool):
        bits = 31 if p.type == "int32" else 63
        if -(2**bits) <= v < 2**bits:
            return int(v)
    raise LaunchError(f"{k.name}: '{p.name}' is {v!r}, expected a value of type {p.type}")


def _overlap(k: ir.KernelTree, arrays: Mapping[str, Any], changed: Mapping[str, Any]) -> None:
    """Raise LaunchError where an array that is written overlaps another, and one of both has changed."""
    for p in k.params:
        if p.written and p.name in arrays:
            against = arrays if p.name in changed else changed
            for other, b in against.items():
                if other != p.name and shared_memory(arrays[p.name], b):
                    raise LaunchError(f"{k.name}: '{p.name}' is written and overlaps '{other}'")
