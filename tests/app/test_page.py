"""Page on the command line: names all commands, and its commands run."""

import re
import shlex

import pytest

from parki import cli
from parki.app import parser
from tests.test_pages import blocks_of

RUN_HERE = ("run", "examples")  # the other commands take long, or measure this machine


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs" / "command-line.md").read_text("utf-8")


def commands_of(code):
    return [shlex.split(line)[1:] for line in code.splitlines() if line.startswith("parki ")]


def test_every_command_is_described(page):
    commands = parser.of_commands(parser.parser())
    assert re.findall(r"(?m)^:::\{command-help\} (.+)$", page) == list(commands)
    titles = re.findall(r"(?m)^## (.+)$", page)
    assert titles == [name for name in commands if " " not in name]
    assert re.findall(r"(?m)^\| \[`parki (\w+)`\]\(#(\w+)\)", page) == [(name, name) for name in titles]


def test_commands_can_be_read(page):
    found = [command for language, code, _ in blocks_of(page) if language == "sh" for command in commands_of(code)]
    assert len(found) > 15
    for command in found:
        parser.parser().parse_args(command)


def test_commands_run_in_their_order(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names, ran = {}, 0
    for language, code, _ in blocks_of(page):
        if language == "python":
            exec(compile(code, "command-line.md", "exec"), names)
        for command in commands_of(code) if language == "sh" else ():
            if command[0] in RUN_HERE:
                assert cli.main(command) == 0, command
                ran += 1
    assert ran >= 12
    said = capsys.readouterr().out
    for place in re.findall(r"→ (\S+)", said):
        assert (tmp_path / place).stat().st_size > 0


def test_methods_of_the_page_are_all(page):
    rows = re.findall(r"(?m)^\| (`[a-z`, ]+`) \| `parki\.", page)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(cli.parser.words.METHODS)
