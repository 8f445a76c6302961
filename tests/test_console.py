"""Command line with streams that are closed, full or limited to few characters."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import parki
from parki import console
from tests.quick import but

COMMAND = [sys.executable, "-m", "parki"]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Return the arguments of a small sum, and the path of its result."""
    rng, folder = np.random.default_rng(5), tmp_path_factory.mktemp("particles")
    q = rng.random(30)
    np.savez(folder / "in.npz", src=rng.random((3, 30)), dens=q - q.mean(), box=np.ones(3))
    return ["run", str(folder / "in.npz"), "--kernel", "laplace", "-o", str(folder / "out.npz")], folder / "out.npz"


def ran(command, **more):
    """Run a command and return the finished process; a text is run by a shell."""
    more = {"capture_output": True, "encoding": "utf-8", "check": False, "shell": isinstance(command, str)} | more
    return subprocess.run(command, **more)


def test_the_module_is_the_command():
    done = ran([*COMMAND, "--version"])
    assert (done.returncode, done.stdout, done.stderr) == (0, f"parki {parki.__version__}\n", "")


@pytest.mark.parametrize(
    ("encoding", "arrow"), [("ascii", "potential ->"), ("latin-1", "potential ->"), ("utf-8", "potential →")]
)
def test_characters_that_cannot_be_encoded_are_plain(encoding, arrow, asked):
    arguments, result = asked
    result.unlink(missing_ok=True)
    done = ran([*COMMAND, *arguments, "-v"], env=os.environ | {"PYTHONIOENCODING": encoding}, encoding=encoding)
    assert done.returncode == 0
    assert arrow in done.stdout
    assert "\\u" not in done.stderr
    assert result.exists()


def test_a_warning_is_one_line(tmp_path):
    np.savez(tmp_path / "in.npz", src=np.random.default_rng(5).random((3, 30)), dens=np.ones(30), box=np.ones(3))
    done = ran([*COMMAND, "run", str(tmp_path / "in.npz"), "--kernel", "laplace", "-o", str(tmp_path / "out.npz")])
    assert done.returncode == 0
    assert done.stderr == (
        "parki: periodicity is 3 and the total charge is 30: a uniform neutralising background is assumed "
        "(Boxes and conventions)\n"
    )


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
def test_nobody_reads(asked):
    arguments, _ = asked
    read, write = os.pipe()
    os.close(read)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for command in ([*COMMAND, *arguments], [*COMMAND, "doctor"], [*COMMAND, "--help"]):
        done = ran(command, stdout=write, stderr=subprocess.PIPE, capture_output=False, env=buffered)
        assert (done.returncode, done.stderr) == (console.CLOSED, "")
    os.close(write)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_nobody_has_room(asked):
    with open("/dev/full", "w") as full:
        done = ran([*COMMAND, *asked[0]], stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize("closed", but("1>&-", "1>&- 2>&-", of=["2>&-", "1>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"]))
def test_closed_streams(closed, asked):
    arguments, result = asked
    result.unlink(missing_ok=True)
    text = " ".join(f"'{word}'" for word in (*COMMAND, *arguments))
    done = ran(f"{text} -v {closed}")
    assert done.returncode == 0
    assert result.exists()
    assert (done.stdout == "") is ("1>" in closed)
    wrong = ran(f"{text} --tolerance 2 {closed}")
    assert (wrong.returncode, wrong.stdout) == (2, "")


def test_streams_are_as_before():
    buffer = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with contextlib.redirect_stdout(buffer):
        with console.ready():
            buffer.write("a → b × ☃")
        assert buffer.errors == "strict"
    assert buffer.buffer.getvalue() == b"a -> b x ?"
