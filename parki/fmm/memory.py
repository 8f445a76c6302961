"""Tables that are kept for the next plan as long as there is room for them."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from cachetools import LRUCache, cached

from parki.engine import forks

ROOM = 1 << 29  # bytes of tables that one function keeps


def kept(room: int = ROOM) -> Callable[[Callable], Callable]:
    """Decorate a function of hashable arguments: of its results those used last are kept, `room` bytes of arrays."""
    return cached(LRUCache(room, getsizeof=_bytes), lock=forks.lock())


def _bytes(made: Any) -> int:
    """Return the bytes of the arrays in a result, which may be a dataclass or a tuple; at least one."""
    if is_dataclass(made):
        made = tuple(getattr(made, f.name) for f in fields(made))
    if isinstance(made, tuple):
        return 1 + sum(map(_bytes, made))
    return 1 + int(getattr(made, "nbytes", 0))
