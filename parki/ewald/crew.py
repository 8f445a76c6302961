"""A crew: threads of Python that go through stages of work side by side.

The transforms and kernels that they call let go of the interpreter meanwhile.  Each has pieces of its own, so nobody
waits but at the end of a stage.
"""

import _thread
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence

from parki.ewald.report import WallTime

MOST = 8  # members: more would wait for the interpreter
WORTH = 1 << 20  # bytes of a grid that are worth a thread, which takes as long to begin as some planes
Piece = Callable[[int, WallTime], None]  # of the member's number and its times


class Crew:
    """The caller's thread and others, which live as long as `run`: nothing idles afterwards, and forks find nothing.

    Parameters
    ----------
    threads, nbytes
        Threads that there may be, and the bytes that they work on.
    several
        Whether the pieces may be done by several threads of Python; else one has all of them.

    Attributes
    ----------
    size : int
        Members.
    each : int
        Threads that each may use.
    """

    def __init__(self, threads: int, nbytes: int, several: bool) -> None:
        used = min(threads, max(nbytes // WORTH, 1)) if several else threads
        self.each = -(-used // MOST) if several else threads
        self.size = used // self.each

    def run(self, stages: Sequence[Sequence[Piece]], times: WallTime) -> None:
        """Do all pieces of a stage, in any order, then those of the next.

        Raises
        ------
        BaseException
            The first that a piece raises, when everyone has stopped; pieces that nobody has begun are not done.
        """
        if self.size == 1:
            for piece in (piece for pieces in stages for piece in pieces):
                piece(0, times)
            return
        with times.crew(self.size) as members:
            shift = _Shift(stages, self.size)
            try:
                with contextlib.suppress(RuntimeError):  # no more threads here: those that there are do it all
                    for i in range(1, self.size):
                        shift.send(i, members[i])
                shift.work(0, members[0])
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

    def send(self, member: int, times: WallTime) -> None:
        """Let another one begin: `threading.Thread` would wait until it has."""
        gone = _locked()

        def work() -> None:
            try:
                self.work(member, times)
            except BaseException as error:  # the caller's thread raises it
                self.fail(error)
            finally:
                gone.release()

        _thread.start_new_thread(work, ())
        self.gone.append(gone)

    def work(self, member: int, times: WallTime) -> None:
        """Take pieces until there are none, or one has failed."""
        for stage, left in enumerate(self.left):
            if stage:
                self.gates[stage - 1][member].acquire()
            while self.failed is None:
                try:
                    piece = left.popleft()
                except IndexError:
                    break
                piece(member, times)
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
