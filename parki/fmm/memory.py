"""Tables that are kept for later plans, least recently used ones being dropped for room."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from cachetools import LRUCache, cached

from parki.engine import forks

TABLE_BYTES = 1 << 30  # bytes of tables that one function keeps


def kept(room: int = TABLE_BYTES) -> Callable[[Callable], Callable]:
    """Decorate a function of hashable arguments: keep its most recently used results, up to `room` bytes of arrays."""
    return cached(LRUCache(room, getsizeof=_bytes), lock=forks.lock())


def held(function: Any, *args: Any) -> Any:
    """Return the result that a function decorated by `kept` has for these arguments, None if it has none."""
    with function.cache_lock:
        return function.cache.get(function.cache_key(*args))


def _bytes(result: Any) -> int:
    """Return the bytes of the arrays in a result, which may be a dataclass or a tuple; at least one."""
    if is_dataclass(result):
        result = tuple(getattr(result, f.name) for f in fields(result))
    if isinstance(result, tuple):
        return 1 + sum(map(_bytes, result))
    return 1 + int(getattr(result, "nbytes", 0))
