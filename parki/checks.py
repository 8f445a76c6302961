"""Checks of options that calls of several methods share."""

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from parki import spelling


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Raise ValueError for an option that is not among the allowed ones; True and False are not 1 and 0."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(repr, choices))}.")


def check_whole(name: str, value: Any, maximum: int | None = None) -> None:
    """Raise ValueError for an option, if it is given, that is not a positive whole number up to `maximum`."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if value is not None and (not is_whole or value < 1 or (maximum is not None and value > maximum)):
        bound = f" up to {maximum}" if maximum is not None else ""
        raise ValueError(f"{name} is {value!r}; expected a positive whole number{bound}.")


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


def check_not_negative(name: str, value: Any) -> None:
    """Raise ValueError for anything but a finite number that is not negative."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:
        raise ValueError(f"{name} is {value!r}; expected a number that is not negative.")


def check_flag(name: str, value: Any) -> None:
    """Raise ValueError for an option that is neither True nor False."""
    if not isinstance(value, bool | np.bool_ | int) or value not in (0, 1):
        raise ValueError(f"{name} is {value!r}; expected True or False.")


def check_spelling(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return the name that an option spells in any case.

    Raises
    ------
    ValueError
        With the allowed name that is spelled most like the value.
    """
    spellings = {choice.upper(): choice for choice in choices}
    key = value.upper() if isinstance(value, str) else ""
    if key in spellings:
        return spellings[key]
    match = spelling.meant(key, spellings)
    advice = f" Did you mean {spellings[match]!r}?" if match else ""
    raise ValueError(f"{name} is {value!r}; expected one of {', '.join(map(repr, spellings.values()))}.{advice}")
