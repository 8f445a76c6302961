"""Locks that are free in a forked process: the parent's threads that held them do not exist there to release them."""

import os
import threading
import weakref

_all: weakref.WeakSet = weakref.WeakSet()


def lock() -> threading.RLock:
    """Return a reentrant lock that is free in a forked process unless the forking thread holds it."""
    made = threading.RLock()  # without a wrapper: an interrupt must not come between taking and holding
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
