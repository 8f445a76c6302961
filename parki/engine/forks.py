"""Locks that a forked process finds free: the threads that hold them in its parent are not there to let go."""

import os
import threading
import weakref

_all: weakref.WeakSet = weakref.WeakSet()


def lock() -> threading.RLock:
    """Return a lock that its thread may take again, and that is free in a fork unless the forking thread holds it."""
    made = threading.RLock()  # itself, and nothing around it: an interrupt must not come between taking and holding
    _all.add(made)
    return made


def _renew() -> None:
    for held in list(_all):
        if held.acquire(blocking=False):
            held.release()
        else:
            held._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
