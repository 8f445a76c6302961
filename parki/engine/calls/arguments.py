"""Argument structure of a launch, as the generated text declares it."""

import ctypes
from functools import lru_cache
from typing import Any

from parki.engine.lower.common import extent, stride


def set_shape(s: ctypes.Structure, name: str, a: Any) -> None:
    """Set the strides and extents of an array that the structure has, in elements."""
    strides, extents = _fields(type(s), name, a.ndim)
    for field, d in strides:
        setattr(s, field, a.strides[d] // a.itemsize)
    for field, d in extents:
        setattr(s, field, a.shape[d])


@lru_cache(maxsize=8192)
def _fields(structure: type, name: str, rank: int) -> tuple[tuple[tuple[str, int], ...], ...]:
    """Return the fields of strides and of extents of a view, with their axes."""
    names = {field for field, _ in structure._fields_}
    return tuple(
        tuple((member, d) for d in range(rank) if (member := spelling(name, d)) in names)
        for spelling in (stride, extent)
    )
