"""Examples by `parki examples`: names and titles, texts, and copies that run in place."""

import subprocess
import sys

import pytest

from parki import cli
from parki.app import examples


def said(capsys, *arguments):
    assert cli.main(["examples", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys, *arguments):
    assert cli.main(["examples", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err


def test_list_has_every_script_with_a_title(root, capsys):
    lines = said(capsys, "list").splitlines()
    titles = dict(line.split(maxsplit=1) for line in lines)
    scripts = {p.stem: p for p in (root / "examples").glob("[!_]*") if p.suffix in examples.SUFFIXES}
    assert titles.keys() == scripts.keys()
    for name, title in titles.items():
        assert len(title) > 5
        assert title in scripts[name].read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('"""A galaxy: stars\\n\\nmore\\n"""\n', "A galaxy: stars"),
        ('"""\nA galaxy\n========\n\nmore\n"""\n', "A galaxy"),
        ('"""One line."""\nx = 1\n', "One line"),
        ('# ruff: noqa\nr"""\n=====\nTitle\n=====\n"""\n', "Title"),
        ('{"cells": [{"source": ["# A kernel\\n", "text"]}]}', "A kernel"),
        ("x = 1\n", ""),
    ],
)
def test_titles(text, title):
    assert examples.title(text) == title


def test_show(root, capsys):
    for name in ("water", "water.py"):
        assert said(capsys, "show", name) == (root / "examples" / "water.py").read_text("utf-8")
    err = refused(capsys, "show", "watr")
    assert "NAME is 'watr'; expected one of " in err
    assert "Did you mean 'water'?" in err


def test_a_copy_runs_with_its_data(tmp_path, capsys):
    folder = tmp_path / "new" / "folder"
    written = said(capsys, "copy", "water", str(folder)).splitlines()
    assert written == [str(folder / "water.py"), str(folder / "data" / "water.npz")]
    assert (folder / "data" / "water.npz").read_bytes()[:2] == b"PK"
    done = subprocess.run([sys.executable, "water.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_all_are_copied(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written = said(capsys, "copy", "--all").splitlines()
    assert set(written) >= {"water.py", "data/water.npz"}
    for place in written:
        assert (tmp_path / place).read_bytes() == (root / "examples" / place).read_bytes()
    scripts = {path.name for path in (root / "examples").glob("[!_]*.py")}
    assert scripts <= set(written)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == sorted(written)


def test_an_example_comes_with_the_files_that_it_reads(tmp_path, monkeypatch, capsys):
    """Check that the example's own kernel file is copied, but no scripts that its docstring only names."""
    folder = tmp_path / "package"
    (folder / "data").mkdir(parents=True)
    (folder / "one.py").write_text('"""See "two.py" and stars.npz."""\nimport three\nopen("four.py"), "data/box.npz"\n')
    for name in ("two", "three", "four"):
        (folder / f"{name}.py").write_text("x = 1\n")
    for name in ("stars", "box"):
        (folder / "data" / f"{name}.npz").write_text(name)
    monkeypatch.setattr(examples.importlib.resources, "files", lambda package: folder)
    written = said(capsys, "copy", "one", str(tmp_path / "out")).split()
    assert {path.removeprefix(f"{tmp_path}/out/") for path in written} == {
        "one.py", "three.py", "four.py", "data/box.npz"
    }  # fmt: skip


def test_files_that_are_there_stay(tmp_path, capsys):
    target = tmp_path / "water.py"
    target.write_text("mine")
    for arguments in (["copy", "water", str(tmp_path)], ["copy", "--all", str(tmp_path)]):
        assert f"{target} is there; expected another folder, or --force" in refused(capsys, *arguments)
        assert [path.name for path in tmp_path.iterdir()] == ["water.py"]
        assert target.read_text() == "mine"
    said(capsys, "copy", "--force", "water", str(tmp_path))
    assert target.read_text() != "mine"
    said(capsys, "copy", "water", str(tmp_path))  # the same bytes may be written again


def test_words_that_do_not_fit(tmp_path, capsys):
    assert "NAME is missing; expected --all, or one of " in refused(capsys, "copy")
    assert "--all was given with the name 'water'" in refused(capsys, "copy", "--all", "water", str(tmp_path))
