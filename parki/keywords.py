"""Keywords of the public calls: their types for type checkers, and their place in signatures at run time.

A call takes its options as ``**keywords`` and passes them on.  Type checkers and editors read a `TypedDict` there;
``help`` and completion in a shell read the signature and the docstring that `shows` sets.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypedDict, TypeVar

from numpy.typing import NDArray

from parki import docstrings, names
from parki.arrays import AnyArray
from parki.engine import Space
from parki.names import Layout, Precision, SpaceName

Box = Sequence[float] | Sequence[Sequence[float]] | NDArray[Any]
Call = TypeVar("Call", bound=Callable[..., Any])


class NoReports(TypedDict, total=False):
    """Flags of a call that returns its result alone."""

    return_walltime: Literal[False]
    return_params: Literal[False]
    return_error: Literal[False]


class Reports(TypedDict, total=False):
    """Flags of a call that returns a tuple of its result and reports."""

    return_walltime: bool
    return_params: bool
    return_error: bool


#: One length, those of the points, or those of targets and of sources.
Lengths = float | AnyArray | tuple[AnyArray, AnyArray]


class KernelParameters(TypedDict, total=False):
    """Parameters of the kernels of `parki.pairs.PAIRS`.

    A pair of one's own with parameters of other names takes them from `parki.pairs.find`.

    Parameters
    ----------
    kappa, epsilon, k, width, unit, radius : float, optional
        Parameters of the kernels that have one of this name, as in the table of `parki.direct.direct_sum`; positive,
        in the points' unit of length or its inverse.  Plans and sums by a method also take one `radius` for each
        sphere, as `parki.ewald.rpy`, and one `epsilon` for each particle of ``"regularised_coulomb"`` and
        ``"spline_coulomb"``: an array of up to 8 different numbers, or a tuple of two, for targets and sources.  The
        larger one counts in a pair.
    **parameters : float, optional
        Parameters of a kernel of one's own, by name.
    """

    kappa: float | None
    epsilon: Lengths | None
    k: float | None
    width: float | None
    unit: float | None
    radius: Lengths | None


class DirectSumKeywords(KernelParameters, total=False):
    """Options of a one-shot direct sum."""

    execution_space: SpaceName | Space | None
    threads: int | None
    comm: Any


class DirectKeywords(KernelParameters, total=False):
    """Options of direct sums, `gradient` apart."""

    layout: Layout
    execution_space: SpaceName | Space | None
    threads: int | None
    verbose: bool
    rhs: int
    comm: Any
    own_term: bool


class FreeKeywords(DirectKeywords, total=False):
    """Options of all other sums in free space, `gradient` apart."""

    tolerance: float | None
    leaf_size: int | None


class TreecodeKeywords(FreeKeywords, total=False):
    """Options of a treecode."""

    theta: float | None
    degree: int | None
    batch_size: int | None
    far_precision: Precision | None
    schedule: names.TaskSchedule


class TreecodeAlone(TreecodeKeywords, NoReports):
    """Keywords of a treecode that returns its result alone."""


class TreecodeReported(TreecodeKeywords, Reports):
    """Keywords of a treecode."""


class FmmKeywords(FreeKeywords, total=False):
    """Options of a fast multipole method."""

    order: int | None
    far_precision: Precision | None
    execution_space: SpaceName | Space | Sequence[SpaceName | Space] | None
    schedule: names.FmmSchedule
    devices: Sequence[int] | Literal["all"] | None
    deterministic: bool


class FmmAlone(FmmKeywords, NoReports):
    """Keywords of a fast multipole method that returns its result alone."""


class FmmReported(FmmKeywords, Reports):
    """Keywords of a fast multipole method."""


class SumKeywords(KernelParameters, total=False):
    """Options of a sum whose method is chosen, `gradient` apart."""

    method: names.SumMethod
    box: Box | None
    periodicity: int | Sequence[bool] | None
    tolerance: float
    layout: Layout
    execution_space: SpaceName | Space | None
    threads: int | None
    verbose: bool
    own_term: bool


class FastestKeywords(SumKeywords, total=False):
    """Options of a plan whose method is chosen, `gradient` apart."""

    calls: int
    rhs: int


class SumAlone(SumKeywords, NoReports):
    """Keywords of a sum by a chosen method that returns its result alone."""


class SumReported(SumKeywords, Reports):
    """Keywords of a sum by a chosen method."""


class EwaldKeywords(TypedDict, total=False):
    """Fields of `parki.ewald.EwaldOptions`, the flags of reports apart."""

    box: Box | None
    periodicity: int | Sequence[bool]
    tolerance: float
    execution_space: SpaceName | Space | None
    p2p_method: names.P2PMethod
    p2g_method: names.P2GMethod
    g2p_method: names.G2PMethod
    fft_type: names.TransformKind
    torch_fft: bool
    p2p_threads_x: int
    p2p_threads_y: int
    p2g_threads: int
    g2p_threads: int
    cell_size: float | None
    rc: float | None
    split: names.SplitName
    far_precision: Precision | None
    exchange_bits: names.ExchangeBits | None
    threads: int | None
    layout: Layout
    verbose: bool
    engine: names.EngineName | None
    fft: names.TransformLibrary | None
    tune: bool
    graph: bool
    rhs: int
    comm: Any


class EwaldAlone(EwaldKeywords, NoReports):
    """Keywords of an Ewald sum that returns its result alone."""


class EwaldReported(EwaldKeywords, Reports):
    """Keywords of an Ewald sum."""


def shows(
    options: Callable[..., Any] | None = None, *, parameters: type[Any] | None = None, without: Iterable[str] = (),
    first: Sequence[str] = (), like: Callable[..., Any] | str | None = None,
) -> Callable[[Call], Call]:  # fmt: skip
    """Return a decorator that lists options by name in the signature and docstring of a call with ``**keywords``.

    Parameters
    ----------
    options : callable, optional
        A class or function that takes the options; a name that the call itself has is not repeated.
    parameters : TypedDict, optional
        Keywords of default None that follow, and after them any others: the parameters of a caller's own kernel.
    without : iterable of str
        Options that the call does not take.
    first : sequence of str
        Options that most callers need: they stand before the others.
    like : callable or str, optional
        A call, or the text of a docstring, with the arguments, results and errors that the call's docstring lacks.
    """

    def decorate(call: Call) -> Call:
        signature = inspect.signature(call)
        parameter_of = {name: p for name, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}
        parameters_of_options = inspect.signature(options).parameters if options is not None else {}
        for name in (*first, *parameters_of_options):
            if name not in (*parameter_of, *without):
                parameter_of[name] = parameters_of_options[name].replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, annotation in (parameters.__annotations__ if parameters else {}).items():
            parameter_of[name] = inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
            )
        rest = [inspect.Parameter("parameters", inspect.Parameter.VAR_KEYWORD, annotation="float | None")]
        shown = [*parameter_of.values(), *(rest if parameters else [])]
        call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
        if call.__doc__ is not None:  # None under python -OO
            names = [*parameter_of, *(["**parameters"] if parameters else [])]
            like_text = like if like is None or isinstance(like, str) else like.__doc__
            tables = [table for table in (options, parameters) if table is not None]
            call.__doc__ = docstrings.assembled(call.__doc__, names, like_text, tables, first)
        return call

    return decorate
