"""Docstrings of calls that share options: each entry and section is written once, and calls get copies.

`parki.keywords.shows` makes them.  Sections and entries are those of numpydoc.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

Call = TypeVar("Call", bound=Callable[..., Any])

ORDER = (
    "Parameters", "Attributes", "Methods", "Returns", "Yields", "Other Parameters", "Raises", "Warns", "Warnings",
    "See Also", "Notes", "References", "Examples",
)  # fmt: skip
SHARED = ("Returns", "Raises", "Warns", "See Also")  # sections that a call may take from another

_ARGUMENTS = """
Parameters
----------
targets, sources : array (3, Nt), (3, Ns)
    Points anywhere, float32 or float64: NumPy or CuPy arrays, or anything with DLPack, all in one place.  ``(N, 3)``
    with ``layout="nd"``.  Parameters of kernels are in the same unit of length.
density : array (Ns,) or (components, Ns)
    Strengths of the sources, in the points' dtype or integers, with an axis of right-hand sides in front if there are
    many.
kernel : str, path, function or Pair
    A name of `parki.pairs.PAIRS`, a `parki.pairs.Pair`, the path of a file with a function ``pair`` as in
    ``kernels/pair``, or a Python function.  Pairs at distance zero are skipped where the kernel is singular.
normals : array (3, Ns), optional
    Normals of the double layer; required for kernels with one, and only there.
exclude : array (2, M) or tuple, optional
    Pairs of particles that the sum leaves out, as the `exclude` of `parki.ewald.plan`.
return_walltime, return_params, return_error : bool, default False
    Return a tuple ``(u[, PhaseTimes][, Parameters][, ErrorEstimate])``; the error is measured at 100 targets against
    the direct sum.
"""
_RESULT = """
Returns
-------
array (Nt,) or (components, Nt), or a tuple
    The sum at all targets, in the points' dtype: a CuPy array for arrays on a GPU, else one of the library of the
    density, NumPy, PyTorch or JAX for instance.  With ``gradient=True`` the first result is a tuple of the potential
    and its gradient (3, Nt).
"""
_PLAN = """
Returns
-------
Plan
    A callable that sums densities at these points.
"""
_ERRORS = """
Raises
------
ValueError, TypeError
    For input that does not fit, naming the argument, the value found and the value expected.
KernelError
    For a kernel's file that is not there, or not in the language of the kernels.
"""
DIFFERENTIABLE = """
Parameters
----------
kernel : str, path, function or Pair
    As the plan of the method takes it.
targets, sources : array (3, Nt), (3, Ns)
    Points, float32 or float64, arrays of the framework in one place.  If both are the same array, its gradient has both
    parts.
density : array (Ns,) or (components, Ns)
    Strengths, with an axis of right-hand sides in front if there are many.
normals : array (3, Ns), optional
    Normals of a double layer.
**options
    Options of the method's plan, `exclude` among them, and parameters of the kernel.  The `box` of an Ewald sum may be
    an array of the framework, in which ``"laplace"`` and ``"yukawa"`` are differentiable.

Returns
-------
array (Nt,) or (components, Nt)
    The sum at all targets.

Raises
------
ValueError, TypeError
    For input that does not fit, naming the argument, the value found and the value expected.
NotImplementedError
    When a derivative is asked for that there is not.

See Also
--------
parki.plan.Plan : The same sums of arrays.
parki.plan.Plan.energy_forces : Energies, forces and stresses of arrays.
"""  #: sections of sums that a framework differentiates
DIFFERENTIABLE_ENERGY = """
Parameters
----------
kernel : str, path or Pair
    ``"laplace"`` or ``"yukawa"`` in a periodic box; in free space any kernel of charges that has a gradient.
points : array (3, N)
    Float32 or float64.
charges : array (N,)
    In the points' dtype.
by : {"ewald", "treecode", "fmm", "direct"}
    Method of the sum.
**options
    Options of the method's plan, `exclude` among them, and parameters of the kernel.  The `box` of an Ewald sum may be
    an array of the framework.

Returns
-------
array ()
    The energy.
"""  #: sections of energies that a framework differentiates
DIFFERENTIABLE_ENERGY += DIFFERENTIABLE[DIFFERENTIABLE.index("Raises") :]
FREE_SUM = _ARGUMENTS + _RESULT + _ERRORS  #: sections of one-shot sums in free space
FREE_PLAN = _ARGUMENTS + _PLAN + _ERRORS  #: sections of plans in free space


class DocEntry(NamedTuple):
    """Entry of a list of parameters: their names, the rest of that line, and the description's lines."""

    names: tuple[str, ...]
    kind: str
    description: tuple[str, ...]

    def of(self, names: Sequence[str]) -> list[str]:
        """Return the lines of the entry for some of its names."""
        return [", ".join(names) + self.kind, *self.description]


def sections(text: str) -> dict[str, list[str]]:
    """Return the lines of a docstring by the titles of its sections, lines before the first title by ""."""
    result: dict[str, list[str]] = {"": []}
    lines, title = inspect.cleandoc(text).splitlines(), ""
    for line, underline in zip(lines, [*lines[1:], ""], strict=False):
        if line in ORDER and underline == "-" * len(line):
            title = line
            result[title] = []
        elif not (line and title and not result[title] and set(line) == {"-"}):
            result[title].append(line)
    return {title: "\n".join(body).strip().splitlines() for title, body in result.items()}


def entries(lines: Iterable[str]) -> list[DocEntry]:
    """Return the entries of a section of parameters."""
    blocks: list[tuple[str, list[str]]] = []
    for line in lines:
        if line[:1].strip():
            blocks.append((line, []))
        else:
            blocks[-1][1].append(line)
    parts = [(*head.partition(" :"), body) for head, body in blocks]
    return [DocEntry(tuple(names.split(", ")), colon + kind, tuple(body)) for names, colon, kind, body in parts]


@functools.cache
def options_of(options: Any) -> tuple[DocEntry, ...]:
    """Return the entries of a class of options and of its bases, whose texts it replaces, or those of a function."""
    kinds = [kind for kind in getattr(options, "__mro__", (options,)) if kind.__module__.startswith("parki.")]
    texts = [kind.__doc__ or "" for kind in reversed(kinds)]
    return tuple(entry for text in texts for entry in entries(sections(text).get("Parameters", ())))


def _placed(names: Sequence[str], tables: Sequence[Iterable[DocEntry]]) -> tuple[list[str], set[str]]:
    """Return the entries of names in order, each from the first table that has it, and the names that were found."""
    entry_of = {name: entry for table in reversed(tables) for entry in table for name in entry.names}
    lines: list[str] = []
    names_done: set[str] = set()
    for name in names:
        if name in entry_of and name not in names_done:
            entry = entry_of[name]
            names_of_entry = [
                name_of_entry
                for name_of_entry in entry.names
                if name_of_entry in names and entry_of[name_of_entry] is entry
            ]
            lines += entry.of(names_of_entry)
            names_done.update(names_of_entry)
    return lines, names_done


def assembled(text: str, names: Sequence[str], like: str | None, options: Sequence[Any], first: Iterable[str]) -> str:
    """Return a docstring with an entry for each parameter.

    Parameters
    ----------
    text : str
        The call's own docstring, which goes before all others.
    names : sequence of str
        Parameters as the signature shows them, with the stars of ``**parameters``.
    like : str or None
        Docstring of a call with the same meaning of arguments, results and errors.
    options : sequence of classes or functions
        Objects whose docstrings have entries of options.
    first : iterable of str
        Options that stand among the parameters; all others are "Other Parameters".

    Returns
    -------
    str
    """
    own_sections, like_sections = sections(text), sections(like or "")
    tables = [entries(part.get("Parameters", ())) for part in (own_sections, like_sections)]
    entries_of_options = [entry for source in options for entry in options_of(source)]
    tables.append([entry for entry in entries_of_options if any(name in first for name in entry.names)])
    lines, names_done = _placed(names, tables)
    rest, _ = _placed([name for name in names if name not in names_done], [entries_of_options])
    bodies = {title: like_sections[title] for title in SHARED if title in like_sections} | own_sections
    bodies |= {"Parameters": lines, "Other Parameters": rest}
    blocks = ["\n".join(own_sections[""])]
    blocks += ["\n".join((title, "-" * len(title), *bodies[title])) for title in ORDER if bodies.get(title)]
    return "\n\n".join(blocks) + "\n"


def completed(like: str) -> Callable[[Call], Call]:
    """Return a decorator that adds to a function's docstring the entries and sections that only a text has."""

    def decorate(call: Call) -> Call:
        if call.__doc__ is not None:
            shown = inspect.signature(call).parameters.values()
            names = [f"**{p.name}" if p.kind is p.VAR_KEYWORD else p.name for p in shown]
            call.__doc__ = assembled(call.__doc__, names, like, (), ())
        return call

    return decorate
