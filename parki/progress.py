"""Steps of a command, shown on a terminal or below a notebook's cell after some seconds."""

import threading
import time
from typing import TYPE_CHECKING, Any, Self, TextIO

from parki.engine import audience
from parki.ewald.report import TITLES

if TYPE_CHECKING:
    from rich.live import Live

AFTER = 5.0  # seconds before the first output
WHOLES = ("ewald", "cell_list")  # phases of `parki.ewald.report.WallTime` that hold others


class Progress:
    """List of steps with their seconds, shown in `stream` if somebody watches it, and only after `AFTER` seconds.

    A progress is a context, and may be entered again.  Within, call it with the name of each step as the step begins:
    a phase of a plan's `walltime`, whose `watch` it can be, or free text; `titles` has the titles of phases by name.
    With rich the list is live and goes away at the end; without rich, or with `plain`, each finished step gets a line.
    Times are not estimated, because those of the next steps are not known.  Terminals and the streams of notebooks'
    cells count as watched.
    """

    def __init__(self, stream: TextIO | None, plain: bool = False) -> None:
        self._stream = stream if audience.watches(stream) else None
        self._plain, self._lock = plain, threading.RLock()
        self.titles = dict(TITLES)

    def __enter__(self) -> Self:
        self._done: list[tuple[str, float]] = []
        self._title, self._since, self._printed = "", 0.0, 0
        self._live: Live | None = None
        self._shown = False
        if self._stream is not None:
            self._timer = threading.Timer(AFTER, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._stream is not None:
            self._timer.cancel()
            self._timer.join()  # it may be showing just now
            self("")
            if self._live is not None:
                self._live.stop()

    def __call__(self, name: str) -> None:
        """Show that one step has ended and the next begins."""
        title = self.titles.get(name, name)
        if self._stream is None or name in WHOLES or title == self._title:
            return
        with self._lock:
            time_now = time.perf_counter()
            if self._title:
                self._done.append((self._title, time_now - self._since))
            self._title, self._since = title, time_now
            if self._shown and self._live is None:
                self._print()

    def _show(self) -> None:
        with self._lock:
            self._live = None if self._plain else self._started()
            self._shown = True
            if self._live is None and self._title:
                self._print()
                print(f"parki: {self._title} …", file=self._stream, flush=True)

    def _started(self) -> "Live | None":
        """Return rich's display, or None where there is no rich or the terminal cannot move its cursor."""
        try:
            from rich.console import Console
            from rich.live import Live
        except ImportError:
            return None
        console = Console(file=self._stream)
        if not console.is_terminal or console.is_dumb_terminal:
            return None
        live = Live(
            console=console,
            transient=True,
            get_renderable=self._renderable,
            redirect_stdout=False,  # True would send output meant for a file to the terminal
            redirect_stderr=False,
        )
        live.start()
        return live

    def _renderable(self) -> Any:
        from rich.text import Text

        steps = [*self._done, *([(self._title, time.perf_counter() - self._since)] if self._title else [])]
        return Text("\n".join(f"{title:<20}{seconds:>8.1f} s" for title, seconds in steps))

    def _print(self) -> None:
        for title, seconds in self._done[self._printed :]:
            print(f"parki: {title:<20}{seconds:>8.1f} s", file=self._stream, flush=True)
        self._printed = len(self._done)
