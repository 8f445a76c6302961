"""The engine's errors, and the one format in which they are shown."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Loc:
    """A place in a kernel file as a person wrote it (L1): path, 1-based line, 1-based column."""

    file: str
    line: int
    col: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}"


class KernelError(ValueError):
    """A kernel outside the workunit subset.  Shown as ``file:line:col: Knnn: reason. Advice``."""

    def __init__(self, code: str, loc: Loc, reason: str, advice: str = "") -> None:
        self.code, self.loc, self.reason, self.advice = code, loc, reason, advice
        super().__init__(f"{loc}: {code}: {reason}" + (f". {advice}" if advice else ""))


class BuildError(RuntimeError):
    """The C++ compiler is missing, or refused generated code."""


class SpaceUnavailable(ValueError):
    """An execution space that is unknown, or not available on this machine."""


class LaunchError(ValueError):
    """Arguments that do not fit a workunit: names, types, ranks, layouts, extents, overlap."""


class CheckedFault(IndexError):
    """A fault found by a checked build (``PARKI_DEBUG=1``), with kernel file and line."""
