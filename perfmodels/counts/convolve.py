"""Counts of the convolution: every mode of every component is read, multiplied and written, once."""

from parki.perfmodels.counts.totals import Counts, TextTotals, levels


def counts(
    text: TextTotals, modes: int, spread: int, result: int, itemsize: int, launches: int = 1, device: bool = False
) -> Counts:
    """Count the multiplication of all modes.

    Parameters
    ----------
    text
        Totals of the text.
    modes
        Complex numbers of one component, with those whose multipliers are zero.
    spread, result
        Components that are read, and that are written.
    itemsize
        Bytes of a real number; the scalar multiplier is one for each mode.
    launches
        Kernels launched: each takes some of the planes.
    device
        Whether scratch is apart from memory.
    """
    nbytes = itemsize * modes * (2 * (spread + result) + 1)
    return Counts(text.operations, levels(text, nbytes, nbytes, device), text.atomics, launches)
