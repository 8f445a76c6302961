"""Options of methods: fields with a default and a check each, in one table per method.

Signatures of calls, their checks and advice on misspelt names are read from the fields of these classes.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self, get_args

import numpy as np

from parki.arrays import LAYOUTS
from parki.checks import check_choice, check_flag, check_share, check_spelling, check_whole
from parki.engine import Space
from parki.names import Gradient, Layout, SpaceName, TaskSchedule

Check = Callable[[str, Any], Any]  # takes the name and value of an option; returns the value in its own spelling


def option(default: Any, check: Check | None = None, *, choices: Sequence[Any] = (), kw_only: bool = False) -> Any:
    """Return a field with a default and a check; the default of a field with `choices` is checked by these."""
    if choices and check is None:
        check = one_of(*choices)
    keywords = {"kw_only": True} if kw_only else {}
    return dataclasses.field(default=default, metadata={"check": check, "choices": tuple(choices)}, **keywords)


def choices(options: type[Any], name: str) -> tuple[Any, ...]:
    """Return the choices of an option of a class."""
    return next(field for field in dataclasses.fields(options) if field.name == name).metadata["choices"]


def check_fields(options: Any) -> None:
    """Check every field of an instance, and set fields that the check spells otherwise."""
    for field in dataclasses.fields(options):
        check, value = field.metadata.get("check"), getattr(options, field.name)
        if check is not None and (checked := check(field.name, value)) is not value:
            object.__setattr__(options, field.name, checked)


def one_of(*values: Any, prefix: str = "") -> Check:
    """Return the check of an option that is one of these, or begins with the prefix if there is one."""

    def check(name: str, value: Any) -> Any:
        if not (prefix and isinstance(value, str) and value.startswith(prefix)):
            check_choice(name, value, values)
        return value

    return check


def spelled(*values: str | None) -> Check:
    """Return the check of an option that is one of these names in any case, or None where that is among them."""
    names = [name for name in values if name is not None]

    def check(name: str, value: Any) -> Any:
        return value if value is None and None in values else check_spelling(name, value, names)

    return check


def flag(name: str, value: Any) -> Any:
    """Check an option that is True or False."""
    check_flag(name, value)
    return value


def share(name: str, value: Any) -> Any:
    """Check an option, None if it is not given, that is between 0 and 1."""
    check_share(name, value)
    return value


def whole(maximum: int | None = None) -> Check:
    """Return the check of an option, None if it is not given, that is a positive whole number up to `maximum`."""

    def check(name: str, value: Any) -> Any:
        check_whole(name, value, maximum)
        return value

    return check


def count(name: str, value: Any) -> Any:
    """Check an option that is a positive whole number."""
    if value is None:
        raise ValueError(f"{name} is None; expected a positive whole number.")
    check_whole(name, value)
    return value


def one_or_several(name: str, value: Any) -> Any:
    """Check an option that is one value or several, which become a tuple."""
    if not isinstance(value, tuple | list):
        return value
    if not value:
        raise ValueError(f"{name} is {value!r}; expected one at least.")
    return value[0] if len(value) == 1 else tuple(value)


def numbers_from_0(name: str, value: Any) -> Any:
    """Check an option that is None, "all", or different whole numbers from 0 on, which become a tuple."""
    if value is None or (isinstance(value, str) and value == "all"):
        return value
    integers = (
        [] if isinstance(value, str) else [number for number in np.atleast_1d(value).tolist() if type(number) is int]
    )
    if not integers or len(integers) != np.size(value) or len(set(integers)) < len(integers) or min(integers) < 0:
        raise ValueError(f"{name} is {value!r}; expected different whole numbers from 0 on, or 'all'.")
    return tuple(integers)


def positive(name: str, value: Any) -> Any:
    """Check an option, None if it is to be chosen, that is a positive finite number."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if value is not None and not (number and 0 < value < math.inf):
        raise ValueError(f"{name} is {value!r}; expected a positive number, or None to have it chosen.")
    return value


@dataclasses.dataclass(frozen=True, kw_only=True)
class FreeOptions:
    """Options of every sum in free space.

    Parameters
    ----------
    gradient : bool or "only", default False
        Return the potential and its gradient, or the gradient alone, for kernels of one component (and the gradient
        alone for the stokeslet).
    layout : {"dn", "nd"}, default "dn"
        Order of the axes: arrays are ``(3, N)``, or ``(N, 3)``.
    execution_space : str or Space, optional
        ``"Serial"``, ``"OpenMP"``, ``"Cuda"`` and others, see `parki.utils.get_execution_space`; by default where the
        arrays are: a GPU for arrays on a GPU, else ``"OpenMP"``.
    threads : int, optional
        Number of threads; by default as many as the space has.
    verbose : bool, default False
        Log parameters and times at level INFO (logger ``parki``); where logging has no handlers they go to stderr.
    timed : bool, default False
        On a device, wait for each phase, so that its time is that of its work, not of its launches.
    rhs : int, default 1
        Right-hand sides of a call that the plan is made for.  They pass one by one: the number changes no parameters.
    comm : communicator of mpi4py, optional
        Sum over the points of all its ranks, which make the same calls in the same order, each with its own points,
        densities and results, as many as it has; options are the same on all.  An error on one rank is raised on all.
    own_term : bool, default True
        Count each particle's own term, the kernel's limit at r = 0, where targets are the sources.  With False the pair
        of a particle and itself is left out; others at the same place count.
    """

    TITLE: ClassVar[str] = "direct sums"
    gradient: Gradient = option(False, choices=(False, True, "only"))
    layout: Layout = option("dn", choices=LAYOUTS)
    execution_space: SpaceName | Space | None = None
    threads: int | None = None
    verbose: bool = option(False, flag)
    timed: bool = option(False, flag)
    rhs: int = option(1, count)
    comm: Any = None
    own_term: bool = option(True, flag)

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of all options."""
        return tuple(field.name for field in dataclasses.fields(cls))

    @classmethod
    def split(cls, keywords: dict[str, Any]) -> tuple[Self, dict[str, Any]]:
        """Return the options among the keywords of a call, checked, and the other keywords: parameters of a kernel."""
        names = cls.names()
        parameters = {name: value for name, value in keywords.items() if name not in names}
        cls.refuse(parameters)
        return cls(**{name: value for name, value in keywords.items() if name in names}), parameters

    @classmethod
    def refuse(cls, parameters: Iterable[str]) -> None:
        """Raise ValueError for keywords that mean another method."""
        for name in ("box", "periodicity", "periodic"):
            if name in parameters:
                raise ValueError(
                    f"{name} was given, but {cls.TITLE} sum in free space; parki.ewald has periodic boxes."
                )

    @property
    def reports_times(self) -> bool:
        """Tell whether a sum waits for each phase, so that its time is that of its work."""
        return self.timed or self.verbose


STARPU = "starpu", "starpu:NAME"  # StarPU says which policies it has when a plan is made


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToleranceOptions(FreeOptions):
    """Options of approximate sums in free space.

    Parameters
    ----------
    tolerance : float, optional
        Relative error, as a 2-norm over all targets.
    leaf_size : int, optional
        Points of a leaf at most; chosen if not given.
    schedule : {"phases", "drain", "fifo", "starpu:NAME"}, default "phases"
        Order of the steps of a sum on the cores of a host: one phase after another, or as tasks, which begin when the
        data that they read are ready.  The first of the ready tasks is the task with the longest way to the end
        (``"drain"``), or the task that has been ready longest (``"fifo"``).  Where StarPU is installed it runs tasks by
        its own policy ``NAME``, as ``"starpu:lws"``; ``"starpu"`` is ``"starpu:prio"``.
    """

    tolerance: float | None = option(None, share)
    leaf_size: int | None = option(None, whole())
    schedule: TaskSchedule = option(
        "phases", one_of("phases", "drain", "fifo", *STARPU, prefix=f"{STARPU[0]}:"), choices=get_args(TaskSchedule)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule == STARPU[0]:
            object.__setattr__(self, "schedule", f"{STARPU[0]}:prio")
        if self.tasks and self.comm is not None:
            raise ValueError(f"schedule is {self.schedule!r} with comm; expected 'phases' over ranks.")

    @property
    def tasks(self) -> bool:
        """Tell whether sums run as tasks."""
        return self.schedule not in ("auto", "phases")
