"""Wall-clock time of work that may have been launched and not yet done."""

import contextlib
import time
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def timed(add: Callable[[float], None], wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Give the seconds that the body takes to `add`, also if it fails.

    With `wait`, which returns when everything launched before is done, the time starts and ends there.
    """
    if wait is not None:
        wait()
    began = time.perf_counter()
    try:
        yield
    finally:
        if wait is not None:
            wait()
        add(time.perf_counter() - began)
