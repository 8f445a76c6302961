"""Parameters that a caller gives a pair by name, checked, and a pair's counts against those of its file."""

import functools
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from parki import engine, spelling
from parki.engine import kernel_files

P = TypeVar("P", bound=Any)  # a `parki.pairs.Pair`


def with_parameters(pair: P, parameters: dict[str, float | None], options: Iterable[str] = ()) -> P:
    """Return a pair with the parameters that are not None.  `options` are as in `parki.pairs.find`.

    Raises
    ------
    ValueError
        For missing, surplus or not positive parameters.
    """
    numbers = {name: value for name, value in parameters.items() if value is not None}
    for name, value in numbers.items():
        if name not in pair.names:
            if name in options:
                raise ValueError(f"{name} was given; other calls take it, this one does not.")
            text = f"{name} was given, but {pair} takes {' and '.join(pair.names) or 'no parameters'}."
            raise ValueError(f"{text} {spelling.advice(name, (*options, *pair.names))}".rstrip())
        try:
            numbers[name] = math.nan if isinstance(value, bool | str | bytes) else float(value)
        except (TypeError, ValueError):
            numbers[name] = math.nan
        if not 0 < numbers[name] < math.inf:
            raise ValueError(f"{name} is {value!r}; expected a positive number.")
    values = dict(zip(pair.names, pair.parameters, strict=False)) | numbers
    for name in pair.names:
        if name not in values:
            raise ValueError(f"{name} is missing; {pair} expects a positive number.")
        if not 0 < values[name] < math.inf:
            raise ValueError(f"{name} is {values[name]!r}; expected a positive number.")
    result = replace(pair, parameters=tuple(values[name] for name in pair.names)) if numbers else pair
    _check(result, kernel_files.locate(result.pair).stamp())
    return result


@functools.lru_cache(maxsize=256)
def _check(pair: Any, stamp: tuple) -> None:
    """Refuse a pair whose numbers of strengths, results or powers are not those of its file and its names.

    `stamp` changes when the file does.
    """
    if len(pair.parameters) != len(pair.names):
        raise ValueError(
            f"kernel {pair} has {len(pair.parameters)} parameters for {len(pair.names)} names; expected one for each."
        )
    sources, results = engine.constants("clusters", "ranges", ("NS", "NU"), pair=pair.pair, **dict(pair.slots))
    if (sources, results) != (pair.strengths, pair.result):
        raise ValueError(
            f"kernel {pair} has {pair.strengths} numbers of a source (dens {pair.dens}, normals {3 * pair.normals}, "
            f"parameters {len(pair.parameters)}) and {pair.result} of a result; expected {sources} and {results}, "
            f"NS and NU of {pair.pair}."
        )
    law = pair.law
    if law is not None and len(law.parameters) != len(pair.names):
        raise ValueError(
            f"dimensions of kernel {pair} has {len(law.parameters)} powers of parameters; expected {len(pair.names)}."
        )
    for name, number in (("result", pair.result), ("dens", pair.dens)):
        if law is not None and len(getattr(law, name)) not in (1, number):
            raise ValueError(
                f"dimensions of kernel {pair} has {len(getattr(law, name))} powers of {name}; expected 1 or {number}."
            )
