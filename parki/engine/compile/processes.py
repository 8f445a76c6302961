"""Compilers as processes, ended with their child processes after a time, or when no longer waited for."""

import contextlib
import logging
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from parki.engine import config
from parki.engine.errors import BuildError

DEFAULT = 600.0  # seconds that a compiler may take
PAUSE = 0.2  # seconds between checks whether to go on
LONG = 60.0  # seconds after which a running compiler is reported

log = logging.getLogger(config.LOGGER)


def limit() -> float:
    """Return the seconds that a compiler may take, and that others are waited for: ``PARKI_COMPILE_TIMEOUT``, or 600.

    Raises
    ------
    ValueError
        If the variable holds no positive number.
    """
    text = os.environ.get(config.COMPILE_TIMEOUT) or str(DEFAULT)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"{config.COMPILE_TIMEOUT}={text!r}: expected a positive number of seconds.")
    return seconds


def run(
    command: Sequence[str], env: dict[str, str], folder: Path | None = None, stop: threading.Event | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a compiler to its end, without input.

    Parameters
    ----------
    command : sequence of str
    env : dict
        Its environment.
    folder : Path, optional
        Folder to run in; all messages then come in one text, ``stdout``.
    stop : threading.Event, optional
        Set when its object is no longer wanted.

    Raises
    ------
    BuildError
        If it has not ended after `limit` seconds.
    InterruptedError
        If `stop` was set.
    OSError
        If it cannot be started.
    """
    seconds, start, announced = limit(), time.monotonic(), False
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if folder else subprocess.PIPE,
        text=True,
        errors="replace",
        env=env,
        **({} if os.name == "nt" else {"process_group": 0}),
    )
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                out, err = process.communicate(timeout=PAUSE)
                return subprocess.CompletedProcess(command, process.returncode, out, err)
            elapsed = time.monotonic() - start
            if stop is not None and stop.is_set():
                raise InterruptedError(f"{command[0]} is no longer waited for")
            if elapsed > seconds:
                raise BuildError(
                    f"the compiler {command[0]} has not ended after {seconds:g} s and was stopped. "
                    f"Set {config.COMPILE_TIMEOUT} to more seconds if it needs them."
                )
            if elapsed > LONG and not announced:
                announced = True
                log.warning(
                    "waiting for the compiler %s (process %d) since %.0f s: Ctrl-C stops it; so does %s, after %g s",
                    command[0], process.pid, elapsed, config.COMPILE_TIMEOUT, seconds,
                )  # fmt: skip
    finally:
        if process.returncode is None:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill a compiler and the programs that it runs."""
    with contextlib.suppress(ProcessLookupError):
        process.kill() if os.name == "nt" else os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
