"""Checks of options that calls of several methods share."""

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from parki import spelling


def check_choice(name: str, value: Any, allowed: Iterable[Any]) -> None:
    """Raise ValueError for an option that is not among the allowed ones; True and False are not 1 and 0."""
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


def check_positive(name: str, value: Any) -> None:
    """Raise ValueError for anything but a positive, finite number."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number or not 0 < value < math.inf:
        raise ValueError(f"{name} is {value!r}; expected a positive number.")


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError for an option that is neither True nor False."""
    if not isinstance(value, bool | np.bool_ | int) or value not in (0, 1):
        raise ValueError(f"{name} is {value!r}; expected True or False.")


def check_spelling(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return the name that an option spells in any case.

    Raises
    ------
    ValueError
        With the allowed name that is spelled most like the value.
    """
    known = {choice.upper(): choice for choice in allowed}
    found = value.upper() if isinstance(value, str) else ""
    if found in known:
        return known[found]
    near = spelling.meant(found, known)
    advice = f" Did you mean {known[near]!r}?" if near else ""
    raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(repr, known.values()))}.{advice}")
