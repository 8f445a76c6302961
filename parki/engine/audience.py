"""Streams that a person reads while they are written: of a terminal, or of a notebook's cell."""

import sys
from typing import TextIO


def watches(stream: TextIO | None) -> bool:
    """Tell whether a stream is a terminal, or belongs to a Jupyter kernel, which shows it below the cell at once.

    A Jupyter kernel's stream says that it is no terminal.  Such a stream exists only where ipykernel has been loaded.
    """
    if stream is None:
        return False
    kernel = sys.modules.get("ipykernel.iostream")
    return stream.isatty() or (kernel is not None and isinstance(stream, kernel.OutStream))
