"""Counts of the convolution: every mode of every component is read, multiplied and written, once."""

from parki.perfmodels.counts import Counts, TextTotals, levels


def counts(
    text: TextTotals, modes: int, spread: int, result: int, itemsize: int, launches: int = 1, device: bool = False
) -> Counts:
    """Count the multiplication of so many modes.

    Parameters
    ----------
    text
        What the text adds up to.
    modes
        Complex numbers of one component, those with zero multipliers among them.
    spread, result
        Components that are read, and that are written.
    itemsize
        Bytes of a real number; the scalar multiplier is one for each mode.
    launches
        Kernels: planes are taken some at a time.
    device
        Whether scratch is apart from memory.
    """
    moved = itemsize * modes * (2 * (spread + result) + 1)
    return Counts(text.operations, levels(text, moved, moved, device), text.atomics, launches)
