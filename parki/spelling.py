"""Advice on unknown names: the known name with almost the same spelling, or one that has the name as a word."""

import difflib
from collections.abc import Iterable

ALIKE = 0.7  # least share of letters in the same order; theta and threads share two thirds


def meant(name: str, names: Iterable[str]) -> str | None:
    """Return the known name that is spelled most like `name`, None if there is none like it."""
    known = list(names)
    longer = (word for word in known if name in word.split("_"))
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=ALIKE)), None) or next(longer, None)


def advice(name: str, names: Iterable[str]) -> str:
    """Return a question with the known name that is spelled most like `name`; an empty text if there is none."""
    match = meant(name, names)
    return f"Did you mean {match!r}?" if match else ""
