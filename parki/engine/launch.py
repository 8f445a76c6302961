"""Launches: policies, checks of the arguments, and prepared launches that cost microseconds."""

import ctypes
import warnings
from types import SimpleNamespace

import numpy as np

from parki.engine import ir, spaces
from parki.engine.errors import CheckedFault, LaunchError
from parki.engine.lower.common import extent, stride
from parki.engine.lower.host import CHUNK
from parki.engine.spaces import Space
from parki.engine.workunit import Workunit, checking

DTYPE = {"double": "float64", "float": "float32", "int32": "int32", "int64": "int64", "uint8": "uint8"}
ALIGN = 64
_warned_fork = False


class RangePolicy:
    """Iterations ``0 … n - 1`` in a space: ``RangePolicy("OpenMP", 1000)``; None is the best host space."""

    kind = "range"

    def __init__(self, space: str | Space | None, n: int) -> None:
        self.space, self.league = spaces.get(space), _count("n", n)


class TeamPolicy:
    """A league of teams in a space.  On a host a team is one thread; sizes are kept for devices."""

    kind = "team"

    def __init__(self, space: str | Space | None, league: int, team_size: int = 1, vector_length: int = 1) -> None:
        self.space, self.league = spaces.get(space), _count("league", league)
        self.team_size, self.vector_length = _count("team_size", team_size), _count("vector_length", vector_length)
        if self.team_size * self.vector_length > 1024:
            raise LaunchError(f"team_size * vector_length is {team_size * vector_length}, expected at most 1024")


def _count(name: str, n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 0 <= n < 2**31:
        raise LaunchError(f"{name}={n!r}: expected an integer in 0 … 2**31 - 1")
    return int(n)


class Prepared:
    """A launch bound to its arrays: `run` repeats it, `set` changes single arguments."""

    def __init__(self, policy: RangePolicy | TeamPolicy, workunit: Workunit, args: dict[str, object]) -> None:
        self.workunit, self.policy = workunit, policy
        k = workunit.ir
        if k.policy != policy.kind:
            raise LaunchError(f"{k.name} needs a {k.policy} policy, found a {policy.kind} policy")
        _names(k, args)
        self._arrays = {p.name: _view(k, p, args[p.name]) for p in k.params if p.rank}
        layouts = {name: _layout(a) for name, a in self._arrays.items()}
        _overlap(k, self._arrays)
        checked = checking()
        self._object = workunit.compiled(layouts, checked)
        self._struct = self._object.struct()
        self._address = ctypes.addressof(self._struct)
        self._run = self._object.run
        self._layouts = layouts
        self.threads = _threads(policy.space)
        self._fault = np.zeros(4, np.int64)
        self._partial = np.zeros(max(1, -(-policy.league // CHUNK)), DTYPE[k.acc_type or "double"])
        self._may_fault = checked or bool(k.scratch_size)
        for name, a in self._arrays.items():
            self._bind(name, a)
        self._scalars = {p.name: _scalar(k, p, args[p.name]) for p in k.params if not p.rank}
        s = self._struct
        for name, value in self._scalars.items():
            setattr(s, name, value)
        self._reserve(self._scalars)
        s.pk_partial, s.pk_fault_at = self._partial.ctypes.data, self._fault.ctypes.data
        s.pk_league, s.pk_threads = policy.league, self.threads

    def _bind(self, name: str, a: np.ndarray) -> None:
        s = self._struct
        setattr(s, name, a.ctypes.data)
        for d in range(a.ndim):
            if hasattr(s, stride(name, d)):
                setattr(s, stride(name, d), a.strides[d] // a.itemsize)
            if hasattr(s, extent(name, d)):
                setattr(s, extent(name, d), a.shape[d])

    def _reserve(self, scalars: dict[str, float | int]) -> None:
        """Memory for the scratch of every thread, as the decorator and the integer arguments say."""
        k = self.workunit.ir
        if not k.scratch_size:
            return
        p, asked = SimpleNamespace(**scalars), 0
        for kind, text in k.scratch_size:
            n = eval(text, {"__builtins__": {}}, {"p": p})  # integer arithmetic only: the parser saw to it
            if not 0 <= n < 2**31:
                raise LaunchError(f"{k.name}: a scratch size is {n} ({text}), expected 0 … 2**31 - 1")
            asked += (n * (4 if kind == "int" else 8) + 7) // 8 * 8
        each = (asked + 64 * len(k.scratch_size) + 4095) // 4096 * 4096
        self._arena = np.empty(each * self.threads + ALIGN, np.uint8)
        start = self._arena.ctypes.data
        self._struct.pk_scratch = start + -start % ALIGN
        self._struct.pk_scratch_bytes, self._struct.pk_scratch_asked = each, asked

    def set(self, **args: object) -> None:
        """Replace arguments; an array must have the type, rank and layout of the one it replaces.

        Raises
        ------
        LaunchError
            Then nothing has been replaced.
        """
        k, arrays, scalars = self.workunit.ir, dict(self._arrays), dict(self._scalars)
        for name, value in args.items():
            try:
                p = k.param(name)
            except KeyError:
                raise LaunchError(f"{k.name} has no argument '{name}'") from None
            if not p.rank:
                scalars[name] = _scalar(k, p, value)
                continue
            arrays[name] = _view(k, p, value)
            if _layout(arrays[name]) != self._layouts[name]:
                raise LaunchError(f"{k.name}: '{name}' has another layout than the array it was prepared with")
        _overlap(k, arrays)
        if scalars != self._scalars:
            self._reserve(scalars)
        self._arrays, self._scalars = arrays, scalars
        for name in args:
            if name in arrays:
                self._bind(name, arrays[name])
            else:
                setattr(self._struct, name, scalars[name])

    def run(self) -> float | int | None:
        """Launch.  Returns the result of a reduction, which waits for it; None otherwise."""
        if self.policy.league == 0:
            return self._partial[:0].sum(dtype=self._partial.dtype).item() if self.workunit.ir.acc else None
        if spaces.forked():
            self._struct.pk_threads = _threads(self.policy.space)
        self._run(self._address)
        if self._may_fault and self._fault[0]:
            self._raise()
        if self.workunit.ir.acc:
            total = self._partial[0] if self.workunit.ir.last else self._partial.sum(dtype=self._partial.dtype)
            return total.item()
        return None

    def _raise(self) -> None:
        site, dim, index, extent = (int(v) for v in self._fault)
        self._fault[:] = 0
        name = self.workunit.ir.name
        if site < 0:
            asked = self._struct.pk_scratch_asked
            raise LaunchError(f"{name} declares {index} bytes of scratch, its decorator asks for {asked}")
        view, loc = self._object.lowered.sites[site - 1]
        raise CheckedFault(f"{loc}: index {dim} of '{view}' is {index}, outside 0 … {extent - 1} (in {name})")


def prepare(policy: RangePolicy | TeamPolicy, workunit: Workunit, /, **args: object) -> Prepared:
    """Check the arguments once, compile if need be, and return a launch that `run` repeats.

    Parameters
    ----------
    policy : RangePolicy or TeamPolicy
        How many iterations or teams, and where.
    workunit : Workunit
        What `kernel` returned.
    **args
        One entry per parameter of the workunit: NumPy arrays of its dtypes and ranks (any layout with strides that are
        not negative; used in place, and kept alive) and numbers.

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
    """Launch `workunit` over `policy` once, and wait.  Arguments and errors as for `prepare`.

    Raises
    ------
    LaunchError
        The workunit declares more scratch than its decorator asks for.
    CheckedFault
        In a checked build (``PARKI_DEBUG=1``), an index is out of bounds.
    """
    Prepared(policy, workunit, args).run()


def parallel_reduce(policy: RangePolicy, workunit: Workunit, /, **args: object) -> float | int:
    """Launch a workunit with an accumulator, and return the total.  Arguments and errors as for `parallel_for`.

    Raises
    ------
    LaunchError
        The workunit has no accumulator.
    """
    if not workunit.ir.acc:
        raise LaunchError(f"{workunit.ir.name} has no accumulator: use parallel_for")
    return Prepared(policy, workunit, args).run()


def _names(k: ir.Kernel, args: dict[str, object]) -> None:
    want = {p.name for p in k.params}
    missing, unknown = sorted(want - args.keys()), sorted(args.keys() - want)
    if missing or unknown:
        raise LaunchError(f"{k.name}: missing arguments {missing}, unknown arguments {unknown}")


def _view(k: ir.Kernel, p: ir.Param, a: object) -> np.ndarray:
    if not isinstance(a, np.ndarray):
        raise LaunchError(f"{k.name}: '{p.name}' is a {type(a).__name__}, expected a NumPy array")
    if a.dtype != DTYPE[p.type] or a.ndim != p.rank:
        want = f"{p.rank} dimension(s) of {DTYPE[p.type]}"
        raise LaunchError(f"{k.name}: '{p.name}' has {a.ndim} dimension(s) of {a.dtype}, expected {want}")
    odd = any(s < 0 or s % a.itemsize for s in a.strides) or not a.flags.aligned
    if a.size and (odd or max(a.shape) >= 2**31):
        raise LaunchError(f"{k.name}: '{p.name}' has strides {a.strides}, shape {a.shape}: not supported")
    if p.written and not a.flags.writeable:
        raise LaunchError(f"{k.name}: '{p.name}' is written, but the array is read-only")
    if p.written and a.size and any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape, strict=True)):
        raise LaunchError(f"{k.name}: '{p.name}' is written, but elements of the array share memory")
    return a


def _layout(a: np.ndarray) -> str:
    """C, F or S: which index has unit stride."""
    if a.size == 0 or a.strides[-1] == a.itemsize or a.shape[-1] == 1:
        return "C"
    return "F" if a.strides[0] == a.itemsize else "S"


def _scalar(k: ir.Kernel, p: ir.Param, v: object) -> float | int:
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


def _overlap(k: ir.Kernel, arrays: dict[str, np.ndarray]) -> None:
    for p in k.params:
        if p.rank and p.written:
            for other, b in arrays.items():
                if other != p.name and _shares_memory(arrays[p.name], b):
                    raise LaunchError(f"{k.name}: '{p.name}' is written and overlaps '{other}'")


def _shares_memory(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have an element in common; True where that is hard to say."""
    try:
        return np.may_share_memory(a, b) and np.shares_memory(a, b, max_work=10_000)
    except np.exceptions.TooHardError:
        return True


def _threads(space: Space) -> int:
    global _warned_fork
    if space.name == "Serial":
        return 1
    if spaces.forked():
        if not _warned_fork:
            _warned_fork = True
            warnings.warn("OpenMP does not survive a fork: kernels run on one thread here. Use 'spawn'.", stacklevel=3)
        return 1
    return space.threads or spaces.threads()
