"""What plans of all methods share: they say what they do if asked, and are not copied."""

import contextlib
import logging
import sys
from typing import Any, Never


def say(log: logging.Logger, asked: bool, text: str, *values: Any) -> None:
    """Log a message at level INFO if a caller asked for it by ``verbose=True``, else at DEBUG.

    What was asked for goes to stderr where no logger has a handler, as in a plain script.
    """
    if not asked or log.hasHandlers():
        log.log(logging.INFO if asked else logging.DEBUG, text, *values)
    elif sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # stderr is closed: nobody reads
            sys.stderr.write(f"{log.name}: {text % values}\n")
            sys.stderr.flush()


def say_times(log: logging.Logger, asked: bool, plan: Any) -> None:
    """Log the times of a plan's last call, a table with a line for each phase, if a caller asked for them."""
    if asked:
        say(log, asked, "%r\n%s", plan, plan.walltime.table())


class OfOneProcess:
    """A mixin for what holds compiled kernels and their arrays: pickling and copying raise TypeError."""

    def __reduce_ex__(self, protocol: Any) -> Never:
        raise TypeError(
            "a plan cannot be pickled or copied: its kernels and arrays belong to one process. "
            "Pickle the points, the kernel's name and the options, and make the plan anew of them."
        )
