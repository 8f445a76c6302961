"""The argument structure of a launch, as the generated text declares it."""

import ctypes
from typing import Any

from parki.engine.lower.common import extent, stride


def set_shape(s: ctypes.Structure, name: str, a: Any) -> None:
    """Set those strides and extents of an array that the structure has, in elements."""
    for d in range(a.ndim):
        if hasattr(s, stride(name, d)):
            setattr(s, stride(name, d), a.strides[d] // a.itemsize)
        if hasattr(s, extent(name, d)):
            setattr(s, extent(name, d), a.shape[d])
