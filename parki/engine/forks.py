"""Locks that are free in a forked process: the parent's threads that held them do not exist there to release them."""

import os
import threading
import weakref

_all: weakref.WeakSet = weakref.WeakSet()


def lock() -> threading.RLock:
    """Return a reentrant lock that is free in a forked process unless the forking thread holds it."""
    result = threading.RLock()  # without a wrapper: an interrupt must not come between taking and holding
    _all.add(result)
    return result


def _renew() -> None:
    for mutex in list(_all):
        if mutex.acquire(blocking=False):
            mutex.release()
        else:
            mutex._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
