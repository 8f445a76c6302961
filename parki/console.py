"""Standard streams of a command: plain characters where they cannot encode others, no output where they are closed."""

import codecs
import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from typing import TextIO

CLOSED = 141  # exit status if the reader of stdout has gone: that of programs ended by the signal of a broken pipe
PLAIN = {
    "→": "->", "×": "x", "–": "-", "−": "-", "…": "...", "·": "*", "≤": "<=", "≥": ">=", "≈": "~", "±": "+-", "µ": "u",
    "°": " deg", "√": "sqrt", "²": "^2", "³": "^3", "⁵": "^5", "⁶": "^6", "⁷": "^7", "θ": "theta", "κ": "kappa",
    "ξ": "xi", "β": "beta", "σ": "sigma", "π": "pi", "ε": "eps", "Σ": "sum", "“": '"', "”": '"', "’": "'",
}  # fmt: skip


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Return substitutes for characters that a stream cannot encode."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(c, "?") for c in error.object[error.start : error.end]), error.end


codecs.register_error("parki.plain", _plain)


@contextlib.contextmanager
def ready() -> Iterator[None]:
    """Write plain characters where a stream cannot encode others, and nothing where one is closed; flush at the end.

    Warnings are printed in one line.

    Raises
    ------
    BrokenPipeError
        When the reader of stdout has gone; then no more is written there.
    OSError
        When stdout cannot be written to for another reason; likewise.
    """
    with contextlib.ExitStack() as stack:
        for name, redirect in (("stdout", contextlib.redirect_stdout), ("stderr", contextlib.redirect_stderr)):
            if getattr(sys, name) is None:  # closed from the start: a file opened later must not take its place
                stack.enter_context(redirect(stack.enter_context(open(os.devnull, "w", encoding="utf-8"))))
            stack.enter_context(_legible(getattr(sys, name)))
        stack.callback(setattr, warnings, "formatwarning", warnings.formatwarning)
        warnings.formatwarning = lambda message, *_, **__: f"parki: {message}\n"  # without file and line
        try:
            yield
        finally:
            _flush(sys.stdout)


@contextlib.contextmanager
def _legible(stream: TextIO) -> Iterator[None]:
    errors = getattr(stream, "errors", None)
    if errors is None or not hasattr(stream, "reconfigure"):
        yield
        return
    stream.reconfigure(errors="parki.plain")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # reconfiguring flushes, too
            stream.reconfigure(errors=errors)


def _flush(stream: TextIO) -> None:
    """Flush a stream; if that fails, redirect it to the null device, so that a later flush succeeds."""
    try:
        stream.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "w", encoding="utf-8") as sink:
            os.dup2(sink.fileno(), stream.fileno())
        raise
