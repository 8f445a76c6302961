"""Cache of compiled objects: entries found, made and removed, and messages while compiling."""

import io
import json
import logging
import os
import sys
import tempfile
import time
from dataclasses import replace

import pytest

from parki.engine.compile import cache, compiler, objects
from parki.engine.errors import BuildError
from tests.engine import compiling as tools

folder, counter, make, value_of = tools.folder, tools.counter, tools.make, tools.value_of


def test_a_second_build_compiles_nothing(counter, monkeypatch):
    path = objects.build(make(41))
    assert value_of(path) == 41
    assert counter() == 1
    tools.forget(monkeypatch)
    assert objects.build(make(41)) == path
    assert counter() == 1


def test_an_entry_holds_what_a_person_needs(folder):
    unit = make(5, flags=("-DPK_CHECKED=1",))
    home = objects.build(unit).parent
    assert home == folder / "v1" / objects.key(unit)[:2] / objects.key(unit)
    assert {path.name for path in home.iterdir()} == {"kernel.cpp", "kernel.so", "l0.py", "log.txt", "meta.json"}
    assert (home / "kernel.cpp").read_text() == unit.source
    assert (home / "l0.py").read_text() == "# L0 5\n"
    meta = json.loads((home / "meta.json").read_text())
    assert meta["label"] == "k5 (int, double)"
    assert meta["flags"][-1] == "-DPK_CHECKED=1"
    assert meta["flags"][0] == "-O3"
    assert meta["size"] == (home / "kernel.so").stat().st_size
    assert abs(meta["time"] - time.time()) < 60
    assert "-ffp-contract=fast" in (home / "log.txt").read_text()
    assert [path.name for path in home.parent.iterdir()] == [home.name]  # no lock, no working folder left


def test_the_key_follows_everything_that_changes_the_object(tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "INCLUDE", tmp_path)
    header = tmp_path / "pk_one.h"
    header.write_text("#define ONE 1\n")
    unit = make(1, headers=("pk_one.h",))
    native = unit.target
    keys = [
        objects.key(unit),
        objects.key(replace(unit, source=tools.source(2))),
        objects.key(replace(unit, headers=())),
        objects.key(replace(unit, flags=("-DA",))),
        objects.key(replace(unit, flags=("-DA", "-DB"))),
        objects.key(replace(unit, flags=("-DA-DB",))),
        objects.key(replace(unit, target=replace(native, resolved="another-machine"))),
        objects.key(replace(unit, target=compiler.target(vector_bytes=16 if native.vector_bytes > 16 else 32))),
        objects.key(replace(unit, target=replace(native, openmp=not native.openmp))),
        objects.key(unit, replace(compiler.find_compiler(), version="g++ 99")),
        objects.key(unit, replace(compiler.find_compiler(), path="/elsewhere/g++")),
        objects.key(unit, replace(compiler.find_compiler(), words=compiler.ZIG)),
    ]
    header.write_text("#define ONE 2\n")
    keys.append(objects.key(unit))
    assert len(set(keys)) == len(keys)
    assert objects.key(replace(unit, name="other", label="other")) == keys[-1]


def test_the_key_does_not_follow_the_place_of_a_kernel():
    unit = make(1)
    moved = replace(unit, source=f'// k: generated from elsewhere.py\n#line 3 "elsewhere.py"\n{unit.source}')
    assert objects.key(moved) == objects.key(unit)
    debugged = (replace(u, flags=("-g",)) for u in (unit, moved))
    assert len({objects.key(u) for u in debugged}) == 2  # debuggers read the places


def test_a_changed_header_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "INCLUDE", tmp_path)
    unit = make(1, source='#include "pk_one.h"\nextern "C" int pk_value() { return ONE; }\n', headers=("pk_one.h",))
    for one in (11, 12):
        (tmp_path / "pk_one.h").write_text(f"#define ONE {one}\n")
        assert value_of(objects.build(unit)) == one


def test_flags_of_the_unit_come_last():
    given = objects.flags(make(1, flags=("-ffp-contract=off",)))
    assert given[-1] == "-ffp-contract=off"
    assert given.index("-ffp-contract=fast") < len(given) - 1


def test_many_units_keep_their_order_and_are_compiled_once_each(counter):
    paths = objects.build_many([make(value) for value in (3, 1, 2, 1, 3)])
    assert [value_of(path) for path in paths] == [3, 1, 2, 1, 3]
    assert counter() == 3
    assert objects.build_many([]) == []


def test_an_unwritable_folder_is_replaced_with_one_warning(tmp_path, monkeypatch, counter):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.warns(RuntimeWarning, match=r"cannot be written.*PARKI_CACHE_DIR") as seen:
        path = objects.build(make(6))
    assert len(seen) == 1
    assert value_of(path) == 6
    assert path.is_relative_to(tmp_path / f"parki-{os.getuid()}")
    assert objects.build(make(6)) == path
    assert counter() == 1
    assert [entry.path for entry in cache.entries()] == [path.parent]


def test_a_temporary_folder_that_others_may_write_is_not_trusted(tmp_path, monkeypatch):
    trap = tmp_path / f"parki-{os.getuid()}"
    trap.mkdir()
    trap.chmod(0o777)
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        used = cache.folder()
    assert used != trap
    assert used.stat().st_mode & 0o077 == 0


def test_a_read_only_cache_serves_what_it_has_without_a_warning(monkeypatch, counter):
    path = objects.build(make(4))

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache, "_try_writing", refuse)
    monkeypatch.setattr(cache, "_usable", {})
    tools.forget(monkeypatch)
    assert objects.build(make(4)) == path
    assert counter() == 1


def test_prune_and_clear(folder):
    units = [make(value) for value in (1, 2, 3)]
    homes = [path.parent for path in objects.build_many(units)]
    for age, home in zip((30, 20, 10), homes, strict=True):
        used = time.time() - age * 86400
        os.utime(home / "meta.json", (used, used))
    found = cache.entries()
    assert [entry.key for entry in found] == [home.name for home in homes]
    assert found[0].label == "k1 (int, double)"
    assert found[0].size == sum(path.stat().st_size for path in homes[0].iterdir())
    assert cache.size() >= sum(entry.size for entry in found)

    assert cache.prune(max_age_days=40, max_bytes=10**9) == []
    assert [entry.label[:2] for entry in cache.prune(max_age_days=25)] == ["k1"]
    assert [entry.label[:2] for entry in cache.prune(max_bytes=found[2].size)] == ["k2"]
    assert [entry.label[:2] for entry in cache.entries()] == ["k3"]
    with pytest.raises(BuildError):
        objects.build(make(1, source="wrong"))
    table = cache.folder() / cache.FORMAT / cache.TABLES / "any.operators"
    table.parent.mkdir()
    table.touch()
    assert [entry.label[:2] for entry in cache.clear()] == ["k3"]
    assert cache.entries() == []
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert value_of(objects.build(units[0])) == 1


def test_use_makes_an_entry_young_again(monkeypatch):
    path = objects.build(make(1))
    os.utime(path.with_name("meta.json"), (1e9, 1e9))
    tools.forget(monkeypatch)
    objects.build(make(1))
    assert time.time() - cache.entries()[0].time < 60


def test_the_second_name_of_the_folder_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("PARKI_CACHE", str(tmp_path / "second"))
    assert cache.folder() == tmp_path / "cache"
    monkeypatch.delenv("PARKI_CACHE_DIR")
    assert cache.folder() == tmp_path / "second"
    monkeypatch.delenv("PARKI_CACHE")
    assert cache.configured().name == "parki"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_one_line_for_people_at_a_terminal(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    objects.build_many([make(1), make(2)])
    objects.build(make(3, label="p2p_cells (stokes_comb, float)"))
    space = make().space
    first, second = screen.getvalue().splitlines()
    assert first.startswith(f"parki: compiling 2 kernels ({space}, double) … ")
    assert first.endswith(" s, cached")
    assert second.startswith(f"parki: compiling p2p_cells ({space}, stokes_comb, float) … ")
    objects.build_many([make(1), make(2)])
    assert len(screen.getvalue().splitlines()) == 2  # only cached objects: no message
    with pytest.raises(BuildError):
        objects.build(make(4, source="wrong"))
    assert screen.getvalue().endswith(" s, failed\n")


@pytest.mark.parametrize("way", ["no terminal", "variable", "level", "logged"])
def test_silence_where_it_was_asked_for(monkeypatch, caplog, way):
    screen = io.StringIO() if way == "no terminal" else Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    if way == "variable":
        monkeypatch.setenv("PARKI_QUIET", "1")
    if way == "level":
        caplog.set_level(logging.WARNING, "parki")
    if way == "logged":
        caplog.set_level(logging.INFO)
    objects.build(make(1))
    assert screen.getvalue() == ""
    assert (way == "logged") == ("compiled k1 (int, double) for" in caplog.text)
