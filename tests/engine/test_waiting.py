"""Locks and compilers that never end: messages, and the end of the waiting."""

import logging
import os
import signal
import socket
import threading
import time

import pytest

from parki.engine.compile import cache, compiler, locks, objects, processes
from parki.engine.errors import BuildError
from tests.engine import compiling as tools

folder, make, value_of = tools.folder, tools.make, tools.value_of


def marker_of(unit):
    marker = cache.folder() / "v1" / objects.key(unit)[:2] / f"{objects.key(unit)}.lock"
    marker.parent.mkdir(parents=True)
    return marker


def test_locks_carry_host_and_process():
    unit = make(1)
    with cache.building(objects.key(unit), threading.Event()):
        (marker,) = cache.folder().glob("v1/*/*.lock")
        number, host = marker.read_text().splitlines()[:2]
    assert (int(number), host) == (os.getpid(), socket.gethostname())
    assert not marker.exists()


def test_a_lock_of_another_machine_from_the_future_is_spoken_of_and_given_up(monkeypatch, caplog):
    monkeypatch.setattr(locks, "WORD", 0.1)
    monkeypatch.setenv("PARKI_COMPILE_TIMEOUT", "1")
    unit = make(1)
    marker = marker_of(unit)
    marker.write_text("4242\nanother-machine\n")
    os.utime(marker, (time.time() + 1e6,) * 2)
    assert value_of(objects.build(unit)) == 1
    first, second = (record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
    assert "waiting for process 4242 of another-machine" in first
    assert str(marker) in first
    assert "Ctrl-C" in first
    assert "PARKI_COMPILE_TIMEOUT ends the waiting after 1 s" in first
    assert "taken for abandoned" in second
    assert not marker.exists()


def test_an_empty_lock_is_taken_over(monkeypatch, caplog):
    monkeypatch.setattr(locks, "WORD", 0.1)
    unit = make(1)
    marker = marker_of(unit)
    marker.touch()
    os.utime(marker, (time.time() + 1e6,) * 2)
    assert value_of(objects.build(unit)) == 1
    assert "names no process: taken for abandoned" in caplog.text
    assert not marker.exists()


@pytest.fixture
def hanging(tmp_path, monkeypatch):
    """Use a compiler that runs a program without end; return a function that tells whether the program runs."""
    if not os.path.exists("/proc/self/stat"):
        pytest.skip("no /proc, which tells whether a process runs")
    real = compiler.find_compiler().path
    compiler.target()
    text = f"""#!/bin/sh
case "$*" in *kernel.cpp*) sleep 600 & echo $! > {tmp_path}/child; wait ;; esac
exec {real} "$@"
"""
    tools.script(tmp_path / "g++", text)
    monkeypatch.setenv("PARKI_CXX", str(tmp_path / "g++"))

    def running():
        try:
            number = int((tmp_path / "child").read_text())
            with open(f"/proc/{number}/stat") as file:
                return file.read().split()[2] != "Z"
        except (OSError, ValueError):
            return False

    return running


def ended(running):
    """Return whether a killed program ends: the system may take a moment."""
    until = time.monotonic() + 10
    while running() and time.monotonic() < until:
        time.sleep(0.01)
    return not running()


def test_a_compiler_that_hangs_is_ended_with_all_that_it_runs(hanging, monkeypatch, caplog):
    unit = make(1)
    monkeypatch.setattr(processes, "LONG", 0.1)
    monkeypatch.setenv("PARKI_COMPILE_TIMEOUT", "1.5")
    with pytest.raises(BuildError, match=r"has not ended after 1\.5 s and was stopped.*PARKI_COMPILE_TIMEOUT"):
        objects.build(unit)
    assert "waiting for the compiler" in caplog.text
    assert ended(hanging)
    assert cache.entries() == []


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_a_compiler_and_all_that_it_runs(hanging):
    unit, main = make(1), threading.main_thread().ident

    def interrupt():
        while not hanging():
            time.sleep(0.02)
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        objects.build(unit)
    assert ended(hanging)
    assert cache.entries() == []


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf"])
def test_the_time_must_be_a_number(monkeypatch, value):
    monkeypatch.setenv("PARKI_COMPILE_TIMEOUT", value)
    with pytest.raises(ValueError, match=r"PARKI_COMPILE_TIMEOUT=.*expected a positive number of seconds"):
        processes.limit()
    monkeypatch.delenv("PARKI_COMPILE_TIMEOUT")
    assert processes.limit() == 600.0
