"""Advice on names that nobody knows: the known one that is spelled almost like it."""

import difflib
from collections.abc import Iterable

ALIKE = 0.7  # share of letters in the same order; of theta and threads two thirds are


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is spelled most like `name`, None if there is none like it."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=ALIKE)), None)


def advice(name: str, known: Iterable[str]) -> str:
    """Return a question with the known name that is spelled most like `name`; nothing if there is none like it."""
    near = meant(name, known)
    return f"Did you mean {near!r}?" if near else ""
