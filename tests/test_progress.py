"""Progress of long commands: nothing without a terminal or in the first seconds, then each step with its time."""

import contextlib
import io
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest

from parki import progress
from parki.ewald import api
from parki.ewald.report import PHASES, WallTime


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def soon(monkeypatch):
    """Show progress after a fraction of a second."""
    monkeypatch.setattr(progress, "AFTER", 0.05)


def shown(terminal, words, seconds=5.0):
    """Wait until the timer has written `words`."""
    end = time.monotonic() + seconds
    while words not in terminal.getvalue():
        assert time.monotonic() < end, terminal.getvalue()
        time.sleep(0.005)


def test_plain_lines(soon):
    terminal = Terminal()
    with progress.Progress(terminal, plain=True) as showing:
        showing("reading")
        showing("p2p")
        assert terminal.getvalue() == ""
        shown(terminal, "near field (P2P) …\n")
        for name in ("p2p", "ewald", "cell_list", "p2g"):
            showing(name)
    lines = terminal.getvalue().splitlines()
    assert [re.sub(r"  +\d+\.\d s$", "", line) for line in lines] == [
        "parki: reading",
        "parki: near field (P2P) …",
        "parki: near field (P2P)",
        "parki: spread (P2G)",
    ]
    assert all(re.search(r"\d\.\d s$", line) for line in lines if "…" not in line)


def test_times_are_those_of_the_steps(soon):
    terminal = Terminal()
    with progress.Progress(terminal, plain=True) as showing:
        showing("short")
        showing("long")
        time.sleep(0.25)
    seconds = {line.split()[1]: float(line.split()[2]) for line in terminal.getvalue().splitlines() if "…" not in line}
    assert seconds["short"] == 0.0
    assert seconds["long"] >= 0.2


def test_short_runs_say_nothing():
    terminal = Terminal()
    showing = progress.Progress(terminal)
    for _ in range(2):
        with showing:
            showing("p2p")
            showing("g2p")
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_nothing_off_a_terminal(stream, soon):
    with progress.Progress(stream) as showing:
        showing("p2p")
        time.sleep(0.15)
        showing("g2p")
    assert stream is None or stream.getvalue() == ""


def test_it_may_be_entered_again(soon):
    terminal = Terminal()
    showing = progress.Progress(terminal, plain=True)
    for name in ("first", "second"):
        with showing:
            showing(name)
            shown(terminal, f"{name} …")
    assert len(re.findall("first", terminal.getvalue())) == 2
    assert len(re.findall("second", terminal.getvalue())) == 2


def test_an_error_ends_it(soon):
    terminal = Terminal()
    with contextlib.suppress(KeyError), progress.Progress(terminal, plain=True) as showing:
        showing("reading")
        raise KeyError
    time.sleep(0.1)
    assert terminal.getvalue() == ""


def test_without_rich_lines_are_plain(soon, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.live", None)
    terminal = Terminal()
    with progress.Progress(terminal) as showing:
        showing("fft")
        shown(terminal, "parki: FFT …\n")


def test_with_rich_the_list_is_live_and_goes_away(soon, monkeypatch):
    pytest.importorskip("rich", reason='rich is not installed: pip install "parki[progress]"')
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    with progress.Progress(terminal) as showing:
        showing("reading")
        showing("fft")
        shown(terminal, "FFT")
        text = terminal.getvalue()
        assert re.search(r"reading +0\.0 s\s+FFT +\d+\.\d s", text)
        assert "parki:" not in text
    assert terminal.getvalue().endswith("\x1b[2K")  # the last line is erased
    assert "\x1b[?25h" in terminal.getvalue()  # the cursor is back


def test_a_dumb_terminal_gets_plain_lines(soon, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal()
    with progress.Progress(terminal) as showing:
        showing("fft")
        shown(terminal, "parki: FFT …\n")


def test_a_walltime_tells_each_phase_as_it_begins():
    seen = []
    times = WallTime()
    times.watch = lambda name: seen.append((name, times.time_fft["tot"]))
    with times.phase("fft"):
        assert seen == [("fft", 0.0)]
    with pytest.raises(KeyError), times.phase("fft.kernel"):
        pass
    assert seen == [("fft", 0.0)]


def test_a_sum_goes_through_all_phases(rng):
    x, seen = rng.random((3, 20)), []
    plan = api.plan("laplace", x, x, box=(1, 1, 1), tolerance=1e-3)
    plan.walltime.watch = seen.append
    plan(rng.standard_normal(20))
    assert list(dict.fromkeys(seen)) == ["ewald", *(name for name, *_ in PHASES)]


def read_all(descriptor):
    """Return the output of a pipe or terminal until its other end is closed."""
    parts = []
    with os.fdopen(descriptor, "rb", buffering=0) as file, contextlib.suppress(OSError):  # ends terminals on Linux
        while part := file.read(4096):
            parts.append(part)
    return b"".join(parts).decode()


@pytest.mark.parametrize("command", ["run", "demo"])
@pytest.mark.parametrize("terminal", [True, False])
def test_commands_show_their_steps_on_a_terminal_only(command, terminal, tmp_path):
    """Check that progress goes to an error stream that is a terminal, and never to standard output, a pipe."""
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    x = np.random.default_rng(2).random((3, 50))
    np.savez(tmp_path / "in.npz", src=x, dens=x[0], box=np.ones(3))
    arguments = {
        "run": ["run", "in.npz", "--kernel", "laplace", "-o", "out.npz", "--tolerance", "1e-3", "-v"],
        "demo": ["demo", "--n", "500", "--tolerance", "1e-3", "--no-picture", "-v"],
    }[command]
    # The timer starts at once and the first step waits for it, so that all later steps are shown.
    code = (
        "import sys, time; from parki import cli, progress; progress.AFTER = 0.0\n"
        "call = progress.Progress.__call__\n"
        "progress.Progress.__call__ = lambda self, name: (call(self, name), time.sleep(0.02))\n"
        f"sys.exit(cli.main({arguments!r}))"
    )
    ours, theirs = pty.openpty() if terminal else os.pipe()
    with (tmp_path / "stdout").open("wb") as stdout:
        process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=stdout, stderr=theirs)
    os.close(theirs)
    text = read_all(ours)
    assert process.wait(timeout=120) == 0, text
    assert "parki: near" not in (tmp_path / "stdout").read_text()
    assert bool(re.search(r"parki: preparing +\d+\.\d s", text)) is terminal
    assert bool(re.search(r"parki: near field \(P2P\) +\d+\.\d s", text)) is terminal
