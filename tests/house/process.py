"""Process that has parki from one tree, asked through a pipe."""

import contextlib
import os
import pickle
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Self

from tests.house import caches

ROOT = Path(__file__).resolve().parents[2]
LAST = 5  # lines of a dead process's errors that are shown


class Died(Exception):
    """Error of a process that has ended, with its exit status and last lines."""


@contextlib.contextmanager
def checkout(base: str) -> Iterator[Path]:
    """Yield a temporary folder with the files of a commit.

    Raises
    ------
    SystemExit
        If a name is no commit.
    """
    with tempfile.TemporaryDirectory(prefix="parki-house-") as folder:
        root = Path(folder).resolve() / "tree"
        done = subprocess.run(["git", "archive", base], cwd=ROOT, capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(f"BASE is {base!r}; expected a commit: {done.stderr.decode().strip()}")
        with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
            archive.extractall(root, filter="data")
        yield root


class Tree:
    """Process with the parki of one tree; the first request starts it, and one after its death starts another.

    Parameters
    ----------
    name : str
        "old" or "new", for messages.
    root : Path
    objects : Path
        Cache whose compiled objects are used.
    """

    def __init__(self, name: str, root: Path, objects: Path | None = None) -> None:
        self.name, self.root, self.objects = name, root, objects or caches.usual()
        self.process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix=f"parki-house-{name}-")
        self._home = Path(self._folder.name)
        self._variables = caches.prepare(self._home / "cache", self.objects)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
        self._folder.cleanup()

    def _start(self) -> None:
        environment = os.environ | self._variables
        environment |= {"PARKI_CALIBRATION": "off", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        self._errors = self._home / "errors.txt"
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.house.worker", str(self.root)],
                cwd=self._home, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip

    def send(self, name: str, *arguments: Any) -> None:
        """Ask for a function of `tests.house.worker`; `receive` returns its result."""
        if self.process is None:
            self._start()
        with contextlib.suppress(BrokenPipeError):  # `receive` raises with the reason
            pickle.dump((name, arguments), self.process.stdin)
            self.process.stdin.flush()

    def receive(self) -> Any:
        """Return the result of the last request.

        Raises
        ------
        Died
            If the process ended instead; the next request starts another.
        """
        try:
            return pickle.load(self.process.stdout)
        except (EOFError, pickle.UnpicklingError):
            status = self.process.wait()
            lines = self._errors.read_text("utf-8", "replace").splitlines()[-LAST:]
            self.close()
            raise Died(f"the process ended with status {status}: {' | '.join(lines)}") from None

    def ask(self, name: str, *arguments: Any) -> Any:
        """Return a function's result."""
        self.send(name, *arguments)
        return self.receive()

    def close(self) -> None:
        """End the process; the next request starts another, with the same cache."""
        if self.process is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
            self.process = None
