"""Every script in examples/ runs as its users run it."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def run(path, folder, *arguments):
    command = [sys.executable, str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, check=False)


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_example(path, tmp_path):
    """From another folder than its own, without a word on the error stream."""
    done = run(path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.strip()


def test_examples_are_there():
    assert "water.py" in [path.name for path in EXAMPLES]


@pytest.mark.parametrize("tolerance", ["1e-3", "1e-9"])
def test_water_states_an_error_below_the_tolerance(tolerance, tmp_path):
    done = run(EXAMPLES[[path.name for path in EXAMPLES].index("water.py")], tmp_path, tolerance)
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("relative RMS error"))
    assert float(line.split()[3]) <= float(tolerance)
