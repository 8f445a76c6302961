"""Threads of Python that go through stages of pieces side by side.

The transforms and kernels that pieces call let go of the interpreter meanwhile.  Each piece has entries of its own, so
nobody waits but at the end of a stage.
"""

import _thread
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

MOST = 8  # workers: more would wait for the interpreter
WORTH = 1 << 20  # bytes that are worth a thread, which takes as long to begin as some planes
Piece = Callable[[int, Any], None]  # of the worker's number and its times


def share(threads: int, nbytes: int) -> tuple[int, int]:
    """Return how many workers go through `nbytes`, and the threads that each of them may use."""
    used = min(threads, max(nbytes // WORTH, 1))
    each = -(-used // MOST)
    return used // each, each


def run(stages: Sequence[Sequence[Piece]], times: Sequence[Any]) -> None:
    """Do all pieces of a stage, in any order, then those of the next, by a worker for each of `times`.

    The caller's thread is one of the workers.  The others live as long as this call: nothing idles afterwards, and
    forks find nothing.

    Raises
    ------
    BaseException
        The first that a piece raises, when everyone has stopped; pieces that nobody has begun are not done.
    """
    if len(times) == 1:
        for piece in (piece for pieces in stages for piece in pieces):
            piece(0, times[0])
        return
    shift = _Shift(stages, len(times))
    try:
        with contextlib.suppress(RuntimeError):  # no more threads here: those that there are do it all
            for worker in range(1, len(times)):
                shift.send(worker, times[worker])
        shift.work(0, times[0])
    except BaseException as error:
        shift.fail(error)
    shift.end()
    if shift.failed is not None:
        raise shift.failed


class _Shift:
    """One run: what is left and what is done of each stage, and who waits.

    Everyone waits for locks of his own, which are all open after a failure: an interrupt of the caller's thread, which
    may come anywhere, leaves nobody waiting.
    """

    def __init__(self, stages: Sequence[Sequence[Piece]], size: int) -> None:
        self.left = [deque(pieces) for pieces in stages if pieces]
        self.number = [len(pieces) for pieces in self.left]
        self.done: list[list[Piece]] = [[] for _ in self.left]
        self.gates = [[_locked() for _ in range(size)] for _ in self.left[1:]]
        self.gone: list[threading.Lock] = []
        self.failed: BaseException | None = None

    def send(self, worker: int, times: Any) -> None:
        """Let another one begin: `threading.Thread` would wait until it has."""
        gone = _locked()

        def work() -> None:
            try:
                self.work(worker, times)
            except BaseException as error:  # the caller's thread raises it
                self.fail(error)
            finally:
                gone.release()

        _thread.start_new_thread(work, ())
        self.gone.append(gone)

    def work(self, worker: int, times: Any) -> None:
        """Take pieces until there are none, or one has failed."""
        for stage, left in enumerate(self.left):
            if stage:
                self.gates[stage - 1][worker].acquire()
            while self.failed is None:
                try:
                    piece = left.popleft()
                except IndexError:
                    break
                piece(worker, times)
                self.done[stage].append(piece)
                if len(self.done[stage]) == self.number[stage]:
                    self._open(stage)

    def fail(self, error: BaseException) -> None:
        """Stop everyone after the piece at hand."""
        if self.failed is None:
            self.failed = error
        for stage in range(len(self.gates)):
            self._open(stage)

    def end(self) -> None:
        """Wait for the others, whatever comes."""
        while self.gone:
            try:
                with self.gone[-1]:
                    pass
                self.gone.pop()
            except BaseException as error:
                self.fail(error)

    def _open(self, stage: int) -> None:
        """Let everyone into the next stage, if there is one; two who finish together may both do so."""
        for gate in self.gates[stage] if stage < len(self.gates) else ():
            with contextlib.suppress(RuntimeError):  # it is open
                gate.release()


def _locked() -> threading.Lock:
    made = threading.Lock()
    made.acquire()
    return made
