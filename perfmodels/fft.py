"""Counts of Fourier transforms: lines of complex numbers, by length, whatever algorithm a library has for them."""

import math
from collections.abc import Mapping

from parki.perfmodels.counts import Counts


def line(n: int) -> float:
    """Return the operations of a complex transform of n numbers, 5 n log2 n."""
    return 5.0 * n * math.log2(n) if n > 0 else 0.0


def counts(lines: Mapping[int, float], moved: float, components: int = 1, launches: int = 1) -> Counts:
    """Count transforms.

    Parameters
    ----------
    lines
        How many of which length, in complex numbers, one component has; a line of real numbers is half of one.
    moved
        Bytes of one component that go to and from memory.
    components
        How many are transformed.
    launches
        Calls of the library.
    """
    total = sum(number * line(n) for n, number in lines.items())
    return Counts({"fft": components * total}, {"l2": components * moved, "dram": components * moved}, 0.0, launches)
