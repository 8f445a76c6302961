"""Answers that follow from the environment, found once while a plan is made: its hundred launches ask for them each."""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_kept: contextvars.ContextVar[dict[Any, Any] | None] = contextvars.ContextVar("kept", default=None)


@contextlib.contextmanager
def settled() -> Iterator[None]:
    """Keep what functions marked by `once` return in this thread until the end of the body."""
    outer = _kept.get()
    _kept.set({} if outer is None else outer)
    try:
        yield
    finally:
        _kept.set(outer)


def once(function: F) -> F:
    """Mark a function whose result does not change within `settled`."""

    @functools.wraps(function)
    def answer(*given: Any, **named: Any) -> Any:
        kept = _kept.get()
        if kept is None or named:
            return function(*given, **named)
        key = (function, given)
        if key not in kept:
            kept[key] = function(*given)
        return kept[key]

    return answer  # type: ignore[return-value]


def answers() -> dict[Any, Any] | None:
    """Return what is kept in this thread within `settled`, None outside of it."""
    return _kept.get()
