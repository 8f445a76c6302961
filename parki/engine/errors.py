"""Errors of the engine, and the one format in which they are shown."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Loc:
    """Place in a kernel file as written by a person (L1): path, 1-based line, 1-based column."""

    file: str
    line: int
    col: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}"


class KernelError(ValueError):
    """Raise for a kernel outside the workunit subset.

    Messages read ``file:line:col: Knnn: reason. Advice``.

    Parameters
    ----------
    code : str
        Code of the rule, ``"K001"`` and so on.
    loc : Loc
        Place in the kernel's file.
    reason, advice : str
        Sentences for a reader; no advice by default.
    """

    def __init__(self, code: str, loc: Loc, reason: str, advice: str = "") -> None:
        self.code, self.loc, self.reason, self.advice = code, loc, reason, advice
        super().__init__(f"{loc}: {code}: {reason}" + (f". {advice}" if advice else ""))


class BuildError(RuntimeError):
    """Raise where the C++ compiler is missing, or refused generated code."""


class SpaceUnavailable(ValueError):
    """Raise for an execution space that is unknown, or not available on this machine."""


class LaunchError(ValueError):
    """Raise for arguments that do not fit a workunit: names, types, ranks, layouts, extents, overlap."""


class CheckedFault(IndexError):
    """Raise for a fault found by a checked build (``PARKI_DEBUG=1``), with kernel file and line."""
