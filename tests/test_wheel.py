"""Wheel in an empty environment: slow, and pip has to reach an index for parki's requirements."""

import os
import subprocess
import sys
import zipfile

import pytest

from tests import builds

SUMS = """
import numpy as np, parki
r = np.random.default_rng(0)
x, q = r.random((3, 2000)), np.resize([1.0, -1.0], 2000)
right = parki.direct.direct_sum("coulomb", x, x, q)
free = {
    "treecode": parki.treecode.bldtt(x, x, q, "coulomb", tolerance=1e-6),
    "fmm": parki.fmm.kifmm(x, x, q, tolerance=1e-6),
    "ewald": parki.ewald.laplace(x, x, q, periodicity=0, tolerance=1e-6),
}
print({name: bool(np.linalg.norm(u - right) < 1e-6 * np.linalg.norm(right)) for name, u in free.items()})
print(parki.ewald.laplace(x, x, q, box=(1, 1, 1), return_error=True)[1].value < 1e-6)
"""


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory):
    source, dist = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    builds.copy(root, source)
    return builds.build("wheel", source, dist)


def test_wheel_holds_what_is_read_at_run_time(root, wheel):
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    assert wheel.name.endswith("-py3-none-any.whl")
    assert {name.split("/")[0] for name in names} == {
        "parki",
        wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info",
    }
    assert "parki/py.typed" in names
    for folder, place in (("kernels", "parki/kernels"), ("perfmodels", "parki/perfmodels"), ("parki", "parki")):
        here = {name.removeprefix(folder) for name in builds.tracked(root) if name.startswith(folder + "/")}
        assert {place + name for name in here} <= names
    assert not [name for name in names if name.endswith((".pyc", ".so"))]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_wheel_in_an_empty_environment(wheel, tmp_path):
    """Run from another folder than the clone, with an empty cache."""
    place, folder = tmp_path / "venv", tmp_path / "elsewhere"
    folder.mkdir()
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    programs = place / ("Scripts" if os.name == "nt" else "bin")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = kept | {"PARKI_CACHE_DIR": str(tmp_path / "cache"), "PARKI_CALIBRATION": "off"}

    def say(program, *arguments):
        command = [str(programs / program), *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    say("python", "-m", "pip", "install", "--quiet", str(wheel))
    assert "Serial      ready" in say("parki", "doctor")
    said = say("python", "-W", "error", "-c", SUMS)
    assert said == "{'treecode': True, 'fmm': True, 'ewald': True}\nTrue\n"
    assert "error" in say("parki", "demo", "--n", "2000")
    assert list(folder.iterdir()) == []
