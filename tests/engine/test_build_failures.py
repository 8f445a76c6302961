"""Failures while compiling: races, kills, damage and refusals, and the state of the cache afterwards."""

import logging
import os
import signal
import threading
import time

import pytest

from parki.engine.compile import cache, compiler, objects, processes
from parki.engine.errors import BuildError
from tests.engine import compiling as tools

folder, counter, make, value_of = tools.folder, tools.counter, tools.make, tools.value_of


def test_eight_racing_processes_compile_once(counter):
    compiler.target()
    racers = tools.children(8, tools.source(8))
    outputs = [racer.communicate(timeout=60) for racer in racers]
    assert [out for out, _ in outputs] == ["8\n"] * 8, outputs
    assert counter() == 1
    assert len(cache.entries()) == 1


def test_a_killed_build_leaves_a_usable_cache(counter, folder):
    (counter.folder / "slow").touch()
    (victim,) = tools.children(1, tools.source(9))
    deadline = time.monotonic() + 30
    while not (counter.folder / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(victim.pid, signal.SIGKILL)  # kills Python and its compiler
    victim.communicate()
    (counter.folder / "slow").unlink()
    left = [path.name for path in folder.glob("v1/[0-9a-f][0-9a-f]/*")]
    assert sorted(name[-5:] == ".lock" for name in left) == [False, True], left
    assert cache.entries() == []

    began = time.monotonic()
    unit = objects.Unit("race", "race (int)", tools.source(9), (), compiler.target())
    assert value_of(objects.build(unit)) == 9
    assert time.monotonic() - began < 10  # nobody waits for the lock of a dead process
    assert counter() == 2

    (abandoned,) = folder.glob("v1/[0-9a-f][0-9a-f]/.*")
    os.utime(abandoned, (1e9, 1e9))
    cache.prune()
    assert not abandoned.exists()
    assert len(cache.entries()) == 1


def test_an_old_lock_of_another_machine_is_taken_over(caplog):
    unit = make(1)
    marker = cache.folder() / "v1" / objects.key(unit)[:2] / f"{objects.key(unit)}.lock"
    marker.parent.mkdir(parents=True)
    marker.write_text("4242\nanother-machine\n")
    past = time.time() - processes.limit() - 1
    os.utime(marker, (past, past))
    assert value_of(objects.build(unit)) == 1
    assert not marker.exists()
    assert "taken for abandoned" in caplog.text


def test_many_units_are_compiled_at_the_same_time(tmp_path, monkeypatch):
    # Each compilation waits until the other has begun: one after the other, both would fail.
    meet = tmp_path / "meet"
    meet.mkdir()
    real = compiler.find_compiler().path
    text = f"""#!/bin/sh
case "$*" in *kernel.cpp*)
  touch {meet}/$$
  n=0; while [ $(ls {meet} | wc -l) -lt 2 ]; do n=$((n+1)); [ $n -gt 100 ] && exit 1; sleep 0.05; done ;;
esac
exec {real} "$@"
"""
    tools.script(tmp_path / "g++", text)
    monkeypatch.setenv("PARKI_CXX", str(tmp_path / "g++"))
    monkeypatch.setattr(objects, "cpus", lambda: 2)
    assert [value_of(path) for path in objects.build_many([make(1), make(2)])] == [1, 2]


def test_damage_done_while_this_process_runs_is_noticed(counter):
    path = objects.build(make(7))
    path.write_bytes(b"")
    assert value_of(objects.build(make(7))) == 7
    assert counter() == 2


def test_only_damaged_entries_are_discarded():
    whole, damaged = objects.build(make(1)), objects.build(make(2))
    damaged.write_bytes(b"")
    for path in (whole, damaged):
        cache.discard_damaged(path.parent.name)
    assert [entry.path for entry in cache.entries()] == [whole.parent]


def test_old_working_folders_go_with_the_next_build():
    unit = make(1)
    shard = cache.folder() / "v1" / objects.key(unit)[:2]
    for name, age in ((".old", 2 * cache.STALE_WORK), (".new", 0.0)):
        (shard / name).mkdir(parents=True)
        os.utime(shard / name, (time.time() - age,) * 2)
    objects.build(unit)
    assert sorted(path.name for path in shard.glob(".*")) == [".new"]


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_waiting_for_others():
    unit = make(1)
    with cache.building(objects.key(unit), threading.Event()):  # as if another process held the lock
        threading.Timer(0.5, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            objects.build(unit)
        assert time.monotonic() - began < 10
    assert value_of(objects.build(unit)) == 1


def test_a_refused_source_raises_and_poisons_nothing(folder, counter):
    bad = make(1, source='#line 12 "kernels/p2p.py"\nextern "C" int pk_value() { return nowhere; }\n', l0="# L0 bad\n")
    for _ in range(2):
        with pytest.raises(BuildError, match=r"k1 \(int, double\): kernels/p2p\.py:12:\d+: error:.*nowhere") as caught:
            objects.build(bad)
    kept = folder / "v1" / "failed" / objects.key(bad)
    assert str(kept) in str(caught.value)
    assert "nowhere" in (kept / "log.txt").read_text()
    assert (kept / "kernel.cpp").read_text() == bad.source
    assert (kept / "l0.py").read_text() == "# L0 bad\n"
    assert counter() == 2
    assert cache.entries() == []
    assert cache.find(objects.key(bad)) is None
    assert value_of(objects.build(make(1))) == 1


def test_one_refused_source_does_not_stop_the_others():
    units = [make(1), make(2, source="first wrong"), make(3), make(4, source="second wrong"), make(5)]
    with pytest.raises(BuildError, match=r"k2 \(int, double\)") as caught:
        objects.build_many(units)
    assert any("1 more of 5" in note for note in caught.value.__notes__)
    assert {entry.label[:2] for entry in cache.entries()} == {"k1", "k3", "k5"}


def test_a_killed_compiler_is_reported(tmp_path, monkeypatch):
    real = compiler.find_compiler().path
    tools.script(tmp_path / "g++", f'#!/bin/sh\ncase "$*" in *kernel.cpp*) kill -9 $$ ;; esac\nexec {real} "$@"\n')
    monkeypatch.setenv("PARKI_CXX", str(tmp_path / "g++"))
    with pytest.raises(BuildError, match=r"signal 9.*memory"):
        objects.build(make(1))


def test_a_compiler_that_fails_itself_is_asked_again_with_fewer_passes(tmp_path, monkeypatch, folder):
    real = compiler.find_compiler().path
    crash = 'echo "kernel.cpp:1:1: internal compiler error: Segmentation fault"; exit 1'
    text = f'#!/bin/sh\ncase "$*" in *no-tree-slp*) ;; *kernel.cpp*) {crash} ;; esac\nexec {real} "$@"\n'
    tools.script(tmp_path / "g++", text)
    monkeypatch.setenv("PARKI_CXX", str(tmp_path / "g++"))
    path = objects.build(make(7))
    assert value_of(path) == 7
    assert "-fno-tree-slp-vectorize" in (path.parent / "meta.json").read_text()


def test_a_full_disk_is_reported(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "publish", full)
    with pytest.raises(BuildError, match=r"No space left on device.*PARKI_CACHE_DIR"):
        objects.build(make(1))


@pytest.mark.parametrize("damage", ["flip", "cut", "no object", "no meta", "not json"])
def test_a_damaged_object_is_built_again(counter, monkeypatch, caplog, damage):
    path = objects.build(make(7))
    meta, before = path.with_name("meta.json"), path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    match damage:
        case "flip":
            path.write_bytes(data)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # the same times: only the hash can tell
        case "cut":
            path.write_bytes(data[:100])
        case "no object":
            path.unlink()
        case "no meta":
            meta.unlink()
        case "not json":
            meta.write_text("[1, 2")
    tools.forget(monkeypatch)
    with caplog.at_level(logging.WARNING, "parki.engine"):
        assert objects.build(make(7)) == path
    assert "damaged" in caplog.text
    assert value_of(path) == 7
    assert counter() == 2
    assert len(cache.entries()) == 1


def test_a_missing_header_is_named():
    with pytest.raises(BuildError, match=r"the header 'pk_none\.h' is missing"):
        objects.build(make(1, headers=("pk_none.h",)))
