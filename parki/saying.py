"""Messages of plans: parameters and times, for callers who ask for them."""

import contextlib
import logging
import sys
from typing import Any


def say(log: logging.Logger, verbose: bool, text: str, *values: Any) -> None:
    """Log a message at level INFO if a caller asked for it by ``verbose=True``, else at DEBUG.

    A message that was asked for goes to stderr if no logger has a handler, as in a plain script.
    """
    if not verbose or log.hasHandlers():
        log.log(logging.INFO if verbose else logging.DEBUG, text, *values)
    elif sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # stderr is closed: nobody reads
            sys.stderr.write(f"{log.name}: {text % values}\n")
            sys.stderr.flush()


def say_times(log: logging.Logger, plan: Any) -> None:
    """Log the times of a plan's last call, a table with a line for each phase, for a caller who asked for them."""
    say(log, True, "%r\n%s", plan, plan.walltime.table())
