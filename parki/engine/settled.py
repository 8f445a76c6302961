"""Answers that depend on the environment, found once per plan: each of its hundred launches asks for them."""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_kept: contextvars.ContextVar[dict[Any, Any] | None] = contextvars.ContextVar("kept", default=None)


@contextlib.contextmanager
def settled() -> Iterator[None]:
    """Keep answers that depend on the environment, in this thread until the end of the body.

    The target of the compiler and the variables of the environment are then read once for all launches of the body.

    Yields
    ------
    None
        Nothing.

    See Also
    --------
    prepare : Prepare a launch; a plan prepares many within one such body.

    Examples
    --------
    >>> from parki import engine
    >>> with engine.settled():
    ...     units = [engine.kernel("cells", "gather_points", real="double") for _ in range(2)]
    >>> units[0] is units[1]
    True
    """
    answers_before = _kept.get()
    _kept.set({} if answers_before is None else answers_before)
    try:
        yield
    finally:
        _kept.set(answers_before)


def once(function: F) -> F:
    """Mark a function whose result does not change within `settled`, so that it is found once."""

    @functools.wraps(function)
    def answer(*args: Any, **kwargs: Any) -> Any:
        memo = _kept.get()
        if memo is None or kwargs:
            return function(*args, **kwargs)
        key = (function, args)
        if key not in memo:
            memo[key] = function(*args)
        return memo[key]

    return answer  # type: ignore[return-value]


def answers() -> dict[Any, Any] | None:
    """Return the answers kept in this thread within `settled`, None outside."""
    return _kept.get()
