"""Streams that somebody reads while they are written: of a terminal, or of a notebook's cell."""

import sys
from typing import TextIO


def watches(stream: TextIO | None) -> bool:
    """Tell whether a stream is a terminal, or that of a Jupyter kernel, which shows it below the cell at once.

    A kernel's stream says that it is no terminal.  It can be one only where ipykernel has been loaded.
    """
    if stream is None:
        return False
    kernel = sys.modules.get("ipykernel.iostream")
    return stream.isatty() or (kernel is not None and isinstance(stream, kernel.OutStream))
