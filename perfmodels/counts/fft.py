"""Counts of Fourier transforms: lines of complex numbers, by length, for any algorithm of a library."""

import math
from collections.abc import Mapping

from parki.perfmodels.counts.totals import Counts


def line(n: int) -> float:
    """Return the operations of a complex transform of n numbers, 5 n log2 n."""
    return 5.0 * n * math.log2(n) if n > 0 else 0.0


def counts(lines: Mapping[int, float], nbytes: float, components: int = 1, launches: int = 1) -> Counts:
    """Count transforms.

    Parameters
    ----------
    lines
        Length in complex numbers → number of lines of one component; a line of real numbers is half of a line.
    moved
        Bytes of one component that go to and from memory.
    components
        Components that are transformed.
    launches
        Calls of the library.
    """
    total = sum(number * line(n) for n, number in lines.items())
    return Counts({"fft": components * total}, {"l2": components * nbytes, "dram": components * nbytes}, 0.0, launches)
