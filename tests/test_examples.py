"""Scripts in examples/ run as users run them, and print the right numbers."""

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.quick import but

FOLDER = Path(__file__).parent.parent / "examples"
NUMBER = r"(-?\d[\d.]*(?:e[-+]\d+)?)"

# script: pattern of its key number, right value, allowed deviation
RESULTS = {
    "backends.py": (rf"(?m)^GpuSim +50 .* s +{NUMBER}$", 0.0, 1e-7),
    "blobs.py": (rf"largest error: {NUMBER} of", 0.5, 0.5),
    "boundary_integral_2p.py": (rf"a/L = 0.05, .* {NUMBER} of that by", 1.0, 2e-6),
    "brownian_suspension.py": (rf"Hasimoto's .* ratio {NUMBER}", 1.0, 0.02),
    "capacitance.py": (rf" 4000 points, .* capacitance {NUMBER} of", 1.0, 1e-5),
    "drag_of_arrays.py": (rf"over computed: {NUMBER} from", 0.0, 1e-3),
    "elastic_constants.py": (rf"C44 of Kellermann's: {NUMBER}", 1.0, 1e-5),
    "electrolyte.py": (rf"below both walls: {NUMBER} of", 1.0, 1e-6),
    "electrolyte_walls.py": (rf"differences of the energy differ by {NUMBER} of", 0.0, 1e-6),
    "forces.py": (rf"Madelung constant {NUMBER},", 1.7475645946331822, 1e-10),
    "galaxy_fmm.py": (rf"largest error: {NUMBER} of", 0.5, 0.5),
    "galaxy_large.py": (rf"changes by {NUMBER} at most", 0.0, 1e-3),
    "galaxy_over_ranks.py": (rf"(?m)step 4: .* energy has changed by {NUMBER}$", 0.0, 1e-4),
    "gmres.py": (rf" 324 points, .* drag {NUMBER} of", 1.0, 1e-7),
    "madelung.py": (rf"(?m)^ +1e-12 +{NUMBER}", -1.7475645946331822, 2e-12),
    "many_processes.py": (rf"(?m)step 3: .* Madelung constant {NUMBER}$", 1.747564594633182, 2e-9),
    "near_surface.py": (rf"orders on the surface: plain .*, corrected {NUMBER}", 5.0, 0.2),
    "own_kernel.py": (rf"ε = 0.04: {NUMBER} from", 0.0, 1e-10),
    "own_kernel_cells.py": (rf"largest error: {NUMBER} of", 0.5, 0.5),
    "pipe.py": (rf" 552 points .* slowed by {NUMBER} a/R", 2.104443, 1e-3),
    "plummer.py": (rf"energy {NUMBER} of −3π/32", 1.0, 0.03),
    "screened_sphere.py": (rf"charges: {NUMBER} of", 1.0, 1e-5),
    "sedimentation.py": (rf"a/L = 0.01: {NUMBER} of", 1 - 0.0283729747948062, 1e-10),
    "squirmers.py": (rf"in front of it: {NUMBER} of", 1.0, 1e-5),
    "suspension_2p.py": (rf"(?m)^a/L = 0.05: .*, {NUMBER} of the series$", 1.0, 1e-8),
    "tolerance.py": (rf"largest measured error: {NUMBER} of", 0.5, 0.5),
    "trajectory.py": (rf"first frame: relative RMS error {NUMBER} against", 0.0, 1e-5),
    "viscosity_of_arrays.py": (rf"series over computed: {NUMBER} from", 0.0, 1e-5),
    "water.py": (rf"RMS error {NUMBER} at", 5e-7, 5e-7),
    "water_dynamics.py": (rf"drift in .* fs: {NUMBER} of the kinetic", 0.0, 1e-3),
}
MOVING = ["sedimentation.py", "squirmers.py"]
NEEDS = {"elastic_constants.py": "ase", "forces.py": "torch", "trajectory.py": "MDAnalysis"}
# These take five seconds or more; the site's build also runs them.
LONG = {
    "blobs.py", "boundary_integral_2p.py", "brownian_suspension.py", "capacitance.py", "drag_of_arrays.py",
    "elastic_constants.py", "electrolyte.py", "electrolyte_walls.py", "galaxy_fmm.py", "galaxy_large.py",
    "galaxy_over_ranks.py", "gmres.py", "near_surface.py", "own_kernel.py", "own_kernel_cells.py", "pipe.py",
    "plummer.py", "suspension_2p.py", "tolerance.py", "viscosity_of_arrays.py", "water_dynamics.py",
}  # fmt: skip


def run(path, folder, *arguments):
    command = [sys.executable, str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300, check=False)


def main(name, folder, monkeypatch, *arguments):
    """Run a script in this process, from another folder than its own; warnings are errors here."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(FOLDER / name), run_name="__main__")


def test_every_example_is_here():
    assert {path.name for path in FOLDER.glob("*.py")} == {"__init__.py", "regularised_stokeslet.py", *RESULTS}


@pytest.mark.parametrize("name", but(*LONG, of=RESULTS))
def test_example(name, tmp_path, monkeypatch, capfd):
    """Check that the number is right, that only the picture is written, and that the picture shows something."""
    pattern, right, off = RESULTS[name]
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed")
    main(name, tmp_path, monkeypatch, "--small", "-o", "picture.png")
    said = capfd.readouterr()
    assert said.err == ""
    found = re.search(pattern, said.out)
    assert found, said.out
    assert abs(float(found[1]) - right) <= off
    image = pytest.importorskip("matplotlib.image", reason="no picture: matplotlib is not installed")
    assert "picture in picture.png" in said.out
    assert (tmp_path / "picture.png").stat().st_size > 30_000  # axes alone have 20 000 bytes and no colour
    pixels = image.imread(tmp_path / "picture.png")
    assert min(pixels.shape[:2]) > 400
    assert np.mean(np.ptp(pixels[..., :3], axis=2) > 0.05) > 0.05
    assert np.ptp(pixels[..., :3], axis=2).any(axis=0).nonzero()[0][0] < pixels.shape[1] / 4  # no blank third
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]


@pytest.mark.parametrize("name", MOVING)
def test_motion(name, tmp_path, monkeypatch, capfd):
    """Check that one run makes picture and motion, that frames differ, and that the file is small enough for a page."""
    image = pytest.importorskip("PIL.Image", reason="no picture: matplotlib is not installed")
    main(name, tmp_path, monkeypatch, "--small", "-o", "picture.png", "motion.gif")
    assert "picture in motion.gif" in capfd.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"picture.png", "motion.gif"}
    assert (tmp_path / "motion.gif").stat().st_size < 2e6
    with image.open(tmp_path / "motion.gif") as motion:
        assert motion.n_frames > 3
        first = np.array(motion.convert("RGB"), dtype=float)
        motion.seek(motion.n_frames - 1)
        assert np.abs(np.array(motion.convert("RGB")) - first).max() > 100


@pytest.mark.parametrize("name", RESULTS)
def test_docstring_is_the_head_of_a_page(name):
    """Check for a title, a sentence for the thumbnail, and the fields Shows, Run and Expect."""
    text = ast.get_docstring(ast.parse((FOLDER / name).read_text("utf-8")))
    title, line, _, intro = text.splitlines()[:4]
    assert line == "=" * len(title)
    assert intro.endswith(".")
    assert re.findall(r"(?m)^:(\w+):", text) == ["Shows", "Run", "Expect"]
    assert f"python examples/{name} " in text.replace("-m mpi4py ", "")
    assert f"{Path(name).stem}.png" in text


@pytest.mark.parametrize("name", RESULTS)
def test_example_keeps_to_the_public_face(name):
    """Check that an example imports only parki itself, no pyplot, and matplotlib only where a picture is drawn."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert re.findall(r"(?m)^ *(?:import parki.*|from parki.*)", text) == ["import parki"]
    assert "pyplot" not in text
    assert not re.search(r"(?m)^(?:import|from) matplotlib", text)


def test_without_matplotlib_the_user_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    main("madelung.py", tmp_path, monkeypatch, "--small", "-o", "picture.png")
    assert 'no picture: pip install "parki[plot]"' in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_water_runs_from_any_folder(tmp_path):
    """Run in another process, with an empty error stream."""
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
