"""Workers: threads of Python that run stages of pieces side by side.

Transforms and kernels that pieces call release the interpreter meanwhile.  Each piece has entries of its own, so
workers wait only at the end of a stage.
"""

import _thread
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

MOST = 8  # workers: more would wait for the interpreter
WORTH = 1 << 20  # bytes per worker, at least: a thread takes as long to begin as some planes
Piece = Callable[[int, Any], None]  # function of the worker's number and its times


def share(threads: int, nbytes: int) -> tuple[int, int]:
    """Return the number of workers for `nbytes`, and the threads that each of them may use."""
    threads_used = min(threads, max(nbytes // WORTH, 1))
    per_worker = -(-threads_used // MOST)
    return threads_used // per_worker, per_worker


def run(stages: Sequence[Sequence[Piece]], times: Sequence[Any]) -> None:
    """Run all pieces of a stage, in any order, then the pieces of the next, with one worker for each of `times`.

    The caller's thread is one of the workers.  The others end with this call: no thread idles afterwards, or is there
    at a fork.

    Raises
    ------
    BaseException
        The first error of a piece, when all workers have stopped; pieces that are not begun by then are not run.
    """
    if len(times) == 1:
        for piece in (piece for pieces in stages for piece in pieces):
            piece(0, times[0])
        return
    shift = _Shift(stages, len(times))
    try:
        with contextlib.suppress(RuntimeError):  # no more threads: the workers that have begun do all pieces
            for worker in range(1, len(times)):
                shift.send(worker, times[worker])
        shift.work(0, times[0])
    except BaseException as error:
        shift.fail(error)
    shift.end()
    if shift.failed is not None:
        raise shift.failed


class _Shift:
    """A run: the pieces of each stage that are left and that are done, and the locks that workers wait for.

    Each worker waits for locks of its own.  A failure opens all: an interrupt of the caller's thread, which may come
    anywhere, leaves no worker waiting.
    """

    def __init__(self, stages: Sequence[Sequence[Piece]], size: int) -> None:
        self.left = [deque(pieces) for pieces in stages if pieces]
        self.number = [len(pieces) for pieces in self.left]
        self.done: list[list[Piece]] = [[] for _ in self.left]
        self.gates = [[_locked() for _ in range(size)] for _ in self.left[1:]]
        self.gone: list[threading.Lock] = []
        self.failed: BaseException | None = None

    def send(self, worker: int, times: Any) -> None:
        """Start another worker; `threading.Thread` would wait until the worker has begun."""
        leave = _locked()

        def work() -> None:
            try:
                self.work(worker, times)
            except BaseException as error:  # the caller's thread raises it
                self.fail(error)
            finally:
                leave.release()

        _thread.start_new_thread(work, ())
        self.gone.append(leave)

    def work(self, worker: int, times: Any) -> None:
        """Run pieces until none is left, or one has failed."""
        for stage, remaining in enumerate(self.left):
            if stage:
                self.gates[stage - 1][worker].acquire()
            while self.failed is None:
                try:
                    piece = remaining.popleft()
                except IndexError:
                    break
                piece(worker, times)
                self.done[stage].append(piece)
                if len(self.done[stage]) == self.number[stage]:
                    self._open(stage)

    def fail(self, error: BaseException) -> None:
        """Stop all workers after their current pieces."""
        if self.failed is None:
            self.failed = error
        for stage in range(len(self.gates)):
            self._open(stage)

    def end(self) -> None:
        """Wait for the other workers, even if interrupted."""
        while self.gone:
            try:
                with self.gone[-1]:
                    pass
                self.gone.pop()
            except BaseException as error:
                self.fail(error)

    def _open(self, stage: int) -> None:
        """Open the next stage to all workers, if there is one; two that finish together may both do so."""
        for gate in self.gates[stage] if stage < len(self.gates) else ():
            with contextlib.suppress(RuntimeError):  # the gate is open
                gate.release()


def _locked() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock
