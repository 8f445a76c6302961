"""Words of the command line: they are the words of the library, and reading them does not import NumPy."""

import json
import subprocess
import sys

import pytest

from parki import cli, pairs
from parki.app import parser, words
from parki.ewald import kernels
from parki.tasks import policy


def test_words_are_those_of_the_library():
    assert tuple(pairs.PAIRS) == words.KERNELS
    assert tuple(policy.POLICIES) == words.SCHEDULES
    assert tuple(kernels.KERNELS) == words.EWALD_KERNELS


def test_every_command_does_something():
    assert cli.ACTIONS.keys() == {name for name in parser.of_commands(parser.parser()) if " " not in name}


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]])
def test_help_imports_no_numpy(arguments):
    code = f"""
import json, sys
from parki.cli import main
try:
    main({arguments})
finally:
    print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}
    assert "parki" in loaded
    assert not loaded & {"numpy", "scipy", "mpi4py", "shtab", "matplotlib"}


@pytest.mark.parametrize(
    ("given", "joined"),
    [
        ("run --box 1 2 3 in", ["run", "--box=1,2,3", "in"]),
        ("--box 1 -2e-1 3", ["--box=1,-2e-1,3"]),
        ("--bo 1 2", ["--box=1,2"]),
        ("--box --rc 1", ["--box", "--rc", "1"]),
        ("--box=1,2,3 4", ["--box=1,2,3", "4"]),
        ("--box", ["--box"]),
        ("-b 1 -- 2", ["-b", "1", "--", "2"]),
    ],
)
def test_numbers_behind_box_are_one_argument(given, joined):
    assert words.joined(given.split()) == joined
    assert words.joined(joined) == joined


def test_boxes():
    assert words.box("1,2.5 3") == (1, 2.5, 3)
    assert words.box("1 0 0 .5 1 0 0 0 -1e0") == ((1, 0, 0), (0.5, 1, 0), (0, 0, -1))
    assert words.sides("1,1,2") == (1, 1, 2)
