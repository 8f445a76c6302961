"""Mistrust of files and folders of others, of objects in the place of others, and of answers that no compiler gave."""

import json
import os
import shutil
import tempfile

import pytest

from parki.engine.compile import cache, compiler, loading, objects, trust
from parki.engine.errors import BuildError
from tests.engine import compiling as tools

folder, counter, make = tools.folder, tools.counter, tools.make
pytestmark = pytest.mark.skipif(os.name == "nt", reason="access is by lists there")


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Return an empty folder for temporary files, which is used in place of an untrusted cache."""
    place = tmp_path / "temporary"
    place.mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.fixture
def strangers(monkeypatch):
    """Return a function that gives a file or folder to another user."""

    def give(path):
        if os.geteuid() == 0:
            os.chown(path, 12345, -1)
            return
        real = os.stat(path).st_ino
        shared = trust._shared
        monkeypatch.setattr(
            trust, "_shared", lambda found: "it belongs to another user" if found.st_ino == real else shared(found)
        )

    return give


def again(monkeypatch):
    """Forget the folders and objects that this process has checked, as if it were a new one."""
    tools.forget(monkeypatch)
    monkeypatch.setattr(cache, "_usable", {})
    monkeypatch.setattr(cache, "_trusted", {})


def spoil(path, value):
    """Put another object with a matching description into an entry, as someone with write access can."""
    other = objects.build(make(value))
    meta = json.loads(path.with_name("meta.json").read_text())
    told = json.loads(other.with_name("meta.json").read_text())
    shutil.copyfile(other, path)
    path.with_name("meta.json").write_text(json.dumps(meta | {name: told[name] for name in ("size", "sha256")}))


def value_of(path):
    return loading.load(path).pk_value()


@pytest.mark.parametrize("way", ["mode", "owner", "link", "above"])
def test_a_folder_that_others_may_write_is_ignored_with_a_warning(folder, strangers, monkeypatch, tmp_path, way):
    if way == "above":
        monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path / "open" / "cache"))
        (tmp_path / "open").mkdir()
    path = objects.build(make(1))
    spoil(path, 66)
    if way == "owner":
        strangers(folder)
    elif way == "above":
        (tmp_path / "open").chmod(0o777)
    else:
        folder.chmod(0o775)
    if way == "link":
        (tmp_path / "link").symlink_to(folder)
        monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path / "link"))
    again(monkeypatch)
    said = {"owner": "another user", "above": "everyone may rename"}.get(way, "others may write")
    with pytest.warns(RuntimeWarning, match=rf"is not used: .*{said}.*PARKI_CACHE_DIR") as seen:
        made = objects.build(make(1))
    assert len(seen) == 1
    assert value_of(made) == 1
    assert made.is_relative_to(tmp_path / "temporary")
    assert objects.build(make(1)) == made


def test_a_folder_below_one_for_everyones_files_is_used(folder, monkeypatch, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setenv("PARKI_CACHE_DIR", str(shared / "mine"))
    assert objects.build(make(1)).is_relative_to(shared / "mine")


def test_nothing_that_is_made_is_open_to_a_group(folder, counter, monkeypatch):
    before = os.umask(0)
    try:
        path = objects.build(make(1))
    finally:
        os.umask(before)
    made = [folder, *(at for at in folder.rglob("*") if at.name != path.name)]
    assert {at.name: oct(at.stat().st_mode) for at in (*made, path) if at.stat().st_mode & trust.OTHERS} == {}
    again(monkeypatch)
    assert objects.build(make(1)) == path
    assert counter() == 1


@pytest.mark.parametrize("name", ["kernel.so", "meta.json"])
@pytest.mark.parametrize("way", ["mode", "owner"])
def test_a_file_of_others_is_made_again(strangers, monkeypatch, counter, name, way):
    path = objects.build(make(1))
    spoil(path, 66)
    bad = path.with_name(name)
    strangers(bad) if way == "owner" else bad.chmod(0o666)
    again(monkeypatch)
    assert value_of(objects.build(make(1))) == 1
    assert counter() == 3


def test_an_entry_in_the_place_of_another_is_made_again(monkeypatch, counter):
    one, two = (path.parent for path in objects.build_many([make(1), make(2)]))
    one.rename(one.with_name("between"))
    shutil.move(two, one)
    shutil.move(one.with_name("between"), two)
    again(monkeypatch)
    assert [value_of(path) for path in objects.build_many([make(1), make(2)])] == [1, 2]
    assert counter() == 4


def test_an_object_that_is_changed_after_it_was_found_is_not_loaded():
    path, other = objects.build_many([make(1), make(66)])
    os.replace(other, path)
    with pytest.raises(BuildError, match=r"does not match its meta\.json"):
        loading.load(path)


@pytest.mark.parametrize("named", [loading.OPEN_FILES, "/nowhere/at/all"])
def test_objects_are_loaded_one_by_one(monkeypatch, named):
    monkeypatch.setattr(loading, "OPEN_FILES", named)
    held = [loading.load(path) for path in objects.build_many([make(value) for value in range(1, 6)])]
    assert [one.pk_value() for one in held] == [1, 2, 3, 4, 5]
    assert len(os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd") else []) < 200


@pytest.mark.parametrize(
    "planted",
    [
        {"flag": "-fplugin=/evil.so"},
        {"runtime": "-B/evil"},
        {"flag": "-march=x86-64-v4"},
        {"x86": "yes"},
        {"widest": 48},
        {"resolved": 3},
    ],
)
def test_answers_that_no_compiler_gives_are_asked_for_again(folder, planted):
    clean = asked_again()
    (kept,) = folder.glob("v1/probes/*.json")
    told = kept.read_text()
    for name, value in planted.items():
        assert f'"{name}"' in told
        kept.write_text(json.dumps(changed(json.loads(told), name, value)))
    assert asked_again() == clean
    assert json.loads(kept.read_text()) == json.loads(told)


def test_answers_of_others_are_asked_for_again(folder, strangers):
    clean = asked_again()
    (kept,) = folder.glob("v1/probes/*.json")
    strangers(kept)
    inode = kept.stat().st_ino
    assert asked_again() == clean
    assert kept.stat().st_ino != inode


def asked_again():
    compiler._probe.cache_clear()
    compiler._target.cache_clear()
    return compiler.target()


def changed(found, name, value):
    """Return a copy with a value replaced at any depth."""
    if not isinstance(found, dict):
        return found
    return {key: value if key == name else changed(old, name, value) for key, old in found.items()}
