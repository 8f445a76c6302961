"""Words and numbers of the command line, and functions that read them: without NumPy, so that ``--help`` is quick."""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, get_args

from parki.names import EwaldKernelName, KernelName

#: Methods of `parki run`: the package, and the method of its plans.
METHODS = {
    "ewald": ("ewald", ""),
    "treecode": ("treecode", "dual"),
    "bldtt": ("treecode", "dual"),
    "bltc": ("treecode", "pc"),
    "fmm": ("fmm", "kifmm"),
    "kifmm": ("fmm", "kifmm"),
    "chebyshev": ("fmm", "chebyshev"),
    "direct": ("direct", ""),
}
EWALD_KERNELS: tuple[str, ...] = get_args(EwaldKernelName)
KERNELS: tuple[str, ...] = get_args(KernelName)
REPORTS = ("quick", "standard", "full")  # sets of benchmarks, for parki bench report
POINTS = ("uniform", "plummer", "sphere")
#: Policies of schedules of tasks, for parki model fmm.
SCHEDULES = ("drain", "acceleration", "heteroprio", "heteroprio-halves", "heft", "fifo", "phases")
SHELLS = ("bash", "zsh", "fish", "tcsh")

Box = tuple[float, ...] | tuple[tuple[float, ...], ...]


class Parser(argparse.ArgumentParser):
    """A parser whose option ``--box`` takes 3 or 9 numbers, also where other arguments follow."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments, by default those of the process."""
        return super().parse_known_args(joined(sys.argv[1:] if args is None else args), namespace)


def joined(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the numbers after ``--box`` joined to it, so that they are not taken for others."""
    result: list[str] = []
    numbers: list[str] | None = None
    for word in arguments:
        if numbers is not None and is_number(word):
            numbers.append(word)
            result[-1] = f"--box={','.join(numbers)}"
        else:
            numbers = [] if len(word) > 2 and "--box".startswith(word) else None
            result.append(word)
    return result


def count(text: str) -> int:
    """Read a positive whole number, 1e6 included."""
    value = float(text)
    if not value.is_integer() or value < 1:
        raise ValueError(text)
    return int(value)


def box(text: str) -> Box:
    """Read three side lengths, or the nine numbers of three lattice vectors, one after the other."""
    numbers = _numbers(text, (3, 9), "3 side lengths, or the 9 numbers of three lattice vectors")
    return tuple(numbers[start : start + 3] for start in (0, 3, 6)) if len(numbers) == 9 else numbers


def sides(text: str) -> tuple[float, ...]:
    """Read three side lengths."""
    return _numbers(text, (3,), "3 side lengths")


def periodicity(text: str) -> int | tuple[bool, bool, bool]:
    """Read the periodic directions: their number, their names as ``xz``, or three digits as ``101``."""
    if re.fullmatch(r"[0-3]", text):
        return int(text)
    if re.fullmatch(r"[01]{3}", text):
        return text[0] == "1", text[1] == "1", text[2] == "1"
    if re.fullmatch(r"[xyz]+", text) and len(set(text)) == len(text):
        return "x" in text, "y" in text, "z" in text
    raise argparse.ArgumentTypeError(f"found {text!r}; expected 0, 1, 2 or 3, directions as xz, or digits as 101")


def parameter(text: str) -> tuple[str, float]:
    """Read a kernel's parameter, as ``epsilon=0.1``."""
    name, _, value = text.partition("=")
    if not (name.isidentifier() and is_number(value)):
        raise argparse.ArgumentTypeError(f"found {text!r}; expected a name and a number, as epsilon=0.1")
    return name, float(value)


def _numbers(text: str, counts: Sequence[int], expected: str) -> tuple[float, ...]:
    words = [word for word in re.split(r"[,\s]+", text) if word]
    if len(words) not in counts or not all(map(is_number, words)):
        raise argparse.ArgumentTypeError(f"found {' '.join(words) or 'nothing'!r}; expected {expected}")
    return tuple(float(word) for word in words)


def is_number(text: str) -> bool:
    """Tell whether a text is a number, NaN and infinities included."""
    try:
        float(text)
    except ValueError:
        return False
    return True
