"""Answers that follow from the environment, found once while a plan is made: its hundred launches ask for them each."""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_answers = threading.local()


@contextlib.contextmanager
def settled() -> Iterator[None]:
    """Keep what functions marked by `once` return in this thread until the end of the body."""
    outer = getattr(_answers, "kept", None)
    _answers.kept = {} if outer is None else outer
    try:
        yield
    finally:
        _answers.kept = outer


def once(function: F) -> F:
    """Mark a function whose result does not change within `settled`."""

    @functools.wraps(function)
    def answer(*given: Any, **named: Any) -> Any:
        kept = getattr(_answers, "kept", None)
        if kept is None or named:
            return function(*given, **named)
        key = (function, given)
        if key not in kept:
            kept[key] = function(*given)
        return kept[key]

    return answer  # type: ignore[return-value]


def answers() -> dict[Any, Any] | None:
    """Return what is kept in this thread within `settled`, None outside of it."""
    return getattr(_answers, "kept", None)
