"""Every script in examples/ runs as its users run it, and prints a number that is right."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
NUMBER = r"(-?\d[\d.]*(?:e[-+]\d+)?)"

# script: its key number after this text, the right value and how far it may be off, and whether it draws
RESULTS = {
    "backends.py": (rf"(?m)^Serial +5000 .* s +{NUMBER}$", 0.0, 0.0, False),
    "madelung.py": (rf"(?m)^ +1e-12 +{NUMBER}", -1.7475645946331822, 2e-12, True),
    "sedimentation.py": (rf"a/L = 0.01: {NUMBER} of", 1 - 0.0283729747948062, 1e-10, True),
    "squirmers.py": (rf"in front of it: {NUMBER} of", 1.0, 1e-5, True),
    "tolerance.py": (rf"largest measured error: {NUMBER} of", 0.5, 0.5, True),
}


def run(path, folder, *arguments):
    command = [sys.executable, str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, check=False)


def main(name, folder, monkeypatch, *arguments):
    """Run a script in this process, from another folder than its own; warnings are errors here."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(FOLDER / name), run_name="__main__")


def test_every_example_is_here():
    assert {path.name for path in FOLDER.glob("*.py")} == {"water.py", *RESULTS}


@pytest.mark.parametrize("name", RESULTS)
def test_example_prints_its_number(name, tmp_path, monkeypatch, capfd):
    """Where matplotlib is missing, too: the user is told, and nothing is written."""
    pattern, right, off, draws = RESULTS[name]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    main(name, tmp_path, monkeypatch, "--small", *(("-o", "picture.png") if draws else ()))
    said = capfd.readouterr()
    assert said.err == ""
    found = re.search(pattern, said.out)
    assert found, said.out
    assert abs(float(found[1]) - right) <= off
    assert ("no picture: pip install" in said.out) == draws
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [name for name, (*_, draws) in RESULTS.items() if draws])
def test_example_draws_its_picture(name, tmp_path, monkeypatch, capsys):
    image = pytest.importorskip("matplotlib.image")
    main(name, tmp_path, monkeypatch, "--small", "-o", "picture.png")
    assert "picture in picture.png" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]
    assert (tmp_path / "picture.png").stat().st_size > 5000
    pixels = image.imread(tmp_path / "picture.png")
    assert min(pixels.shape[:2]) > 400
    assert pixels[..., :3].std() > 0.05  # not one colour
    assert "pyplot" not in (FOLDER / name).read_text(encoding="utf-8")  # no global state, no window


def test_water_runs_from_any_folder(tmp_path):
    """In a process of its own, without a word on the error stream."""
    done = run(FOLDER / "water.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.strip()


@pytest.mark.parametrize("tolerance", ["1e-3", "1e-9"])
def test_water_states_an_error_below_the_tolerance(tolerance, tmp_path):
    done = run(FOLDER / "water.py", tmp_path, tolerance)
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("relative RMS error"))
    assert float(line.split()[3]) <= float(tolerance)
