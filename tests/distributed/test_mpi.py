"""Sums over processes under MPI, if it is installed: one launch for each number of ranks runs many cases."""

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import parki
from parki.engine.compile.compiler import cpus
from tests.distributed.free import METHODS
from tests.quick import but, every

pytest.importorskip("mpi4py", reason="mpi4py, of parki[mpi], is not installed")
ROOT = Path(__file__).parents[2]
MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
LIMIT = 150  # seconds of one launch
SLOW = pytest.mark.slow
NUMBERS = but(1, 2, 4, 8, of=[1, 2, 3, 4, 8])  # numbers of ranks
COMMON = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PARKI_MPI_TIMEOUT": "60"}
# Ranks that wait must yield, because others share their cores.
MPICH = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_pml": "ob1", "OMPI_MCA_osc": "^ucx",
    "OMPI_MCA_mpi_yield_when_idle": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}  # fmt: skip
pytestmark = [
    pytest.mark.skipif(MPIRUN is None, reason="there is no mpirun on the path"),
    pytest.mark.xdist_group("mpi"),
]


@functools.cache
def settings():
    """Return the environment variables for the installed MPI."""
    told = subprocess.run([MPIRUN, "--version"], capture_output=True, text=True, timeout=LIMIT).stdout
    return COMMON | (OPEN_MPI if "Open MPI" in told or "OpenRTE" in told else MPICH)


def launch(ranks, *given, **environment):
    """Run cases on ranks; return the output, the exit status and the seconds taken."""
    program = str(ROOT / "tests/distributed/on_ranks.py")
    return begin(ranks, "-W", "ignore", "-m", "mpi4py", program, *given, **environment)


def begin(ranks, *given, **environment):
    """Run Python on ranks; return the output, the exit status and the seconds taken."""
    command = [MPIRUN, "-n", str(ranks), sys.executable]
    env = os.environ | settings() | environment
    began = time.monotonic()
    done = subprocess.run([*command, *given], env=env, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
    return done.stdout + done.stderr, done.returncode, time.monotonic() - began


@pytest.mark.parametrize("ranks", NUMBERS)
def test_sums_plans_and_agreed_errors(ranks):
    fewer = {1: "sums,plans", 8: "sums,exchanges"}
    said, status, _ = launch(ranks, fewer.get(ranks, "sums,plans,exchanges,agreed"))
    assert status == 0, said
    assert f"done on {ranks} ranks" in said


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_multipoles_devices_and_tuning(ranks):
    said, status, _ = launch(ranks, "multipoles" if ranks in (1, 8) else "multipoles,gpus,tuned")
    assert status == 0, said
    assert f"done on {ranks} ranks" in said


@pytest.mark.parametrize("ranks", NUMBERS)
def test_sums_plans_and_agreed_errors_in_free_space(ranks):
    works = {4: "free_sums,free_plans,free_agreed", 8: "free_sums"}
    said, status, _ = launch(ranks, works.get(ranks, "free_sums,free_plans"))
    assert status == 0, said
    assert f"done on {ranks} ranks" in said


@pytest.mark.parametrize(
    ("how", "of"),
    [
        *((how, "parki.ewald") for how in ("raise", "kill")),
        *(pytest.param(how, "parki.ewald", marks=SLOW) for how in ("interrupt", "callback", "exit", "_exit")),
        pytest.param("no memory", "parki.ewald", marks=SLOW),
        *(pytest.param(how, "parki.treecode", marks=SLOW) for how in ("raise", "kill", "interrupt")),
        *(pytest.param("no memory", module.__name__, marks=[SLOW] * k) for k, module in enumerate(METHODS)),
    ],
)
def test_a_rank_that_goes_ends_the_job(how, of):
    said, status, _ = launch(3, "ends", how, of)
    ended(said, status)


@pytest.mark.parametrize(
    ("how", "of"),
    [
        ("hang", "parki.ewald"),
        pytest.param("subset", "parki.ewald", marks=SLOW),
        *(pytest.param("hang", module.__name__, marks=SLOW) for module in METHODS),
    ],
)
def test_a_rank_that_is_waited_for_too_long_ends_the_job(how, of):
    said, status, _ = launch(3, "ends", how, of, PARKI_MPI_TIMEOUT="4")
    ended(said, status)
    assert "has waited 4 s (PARKI_MPI_TIMEOUT) in" in said
    assert "the job ends" in said


def ended(said, status):
    """Check that a job has failed within ten seconds of its fault; ranks that wait would do so for a minute."""
    assert status != 0, said
    assert "done on" not in said
    assert time.time() - float(re.search(r"^at (\S+)$", said, re.M)[1]) < 10


def test_a_slow_rank_is_waited_for():
    said, status, _ = launch(2, "ends", "slow", "parki.ewald")
    assert status == 0, said
    assert "slow ranks are waited for" in said


# Commands -------------------------------------------------------------------------------------------------------------
def test_the_demo_sums_over_all_ranks():
    said, status, _ = begin(2, "-m", "parki", "demo", "--n", "5000", "--no-picture")
    assert status == 0, said
    assert said.count("5000 random particles") == 1
    assert re.search(r"lines for planes .* [1-9].*, 2\n", said)
    assert float(re.search(r"error +(\S+) relative", said)[1]) < 1e-7


def test_an_error_of_all_ranks_is_said_once():
    said, status, seconds = begin(2, "-m", "parki", "demo", "--tolerance", "3")
    assert status == 2
    assert said.count("tolerance is 3.0; expected a number between 0 and 1") == 1
    assert seconds < 60


def test_a_command_that_fails_on_one_rank_ends_all_ranks(tmp_path):
    picture = tmp_path / "none" / "flow.png"  # drawn by the first rank, while the other has ended or waits
    pytest.importorskip("matplotlib")
    said, status, seconds = begin(2, "-m", "parki", "demo", "--n", "300", "--tolerance", "1e-3", "-o", str(picture))
    assert status != 0
    assert said.count("parki demo: ") == 1
    assert f"{picture} cannot be written" in said
    assert seconds < 60


def test_a_file_is_summed_over_all_ranks(tmp_path):
    """Run the command for all kinds of files in a single launch."""
    rng = np.random.default_rng(7)
    x, q = rng.random((3, 203)), rng.standard_normal(203)
    np.savez(tmp_path / "in.npz", src=x, dens=q, box=np.ones(3), trg=x[:, :50])
    np.save(tmp_path / "in.npy", np.vstack([x, q]).T)
    names = ["in.npz", "in.npy"]
    if importlib.util.find_spec("h5py") is not None:
        import h5py

        names.append("in.h5")
        with h5py.File(tmp_path / "in.h5", "w") as file:
            file.update({"src": x, "dens": q, "box": np.ones(3), "trg": x[:, :50]})
    said, status, _ = launch(3, "files", *(str(tmp_path / name) for name in names))
    assert status == 0, said
    assert said.count("laplace: 203 sources, ") == len(names)
    assert said.count("busy: largest over mean") == len(names)
    all_of_them, some = (parki.ewald.laplace(t, x, q, box=(1, 1, 1), tolerance=1e-6) for t in (x, x[:, :50].copy()))
    for name in names:
        written = tmp_path / f"out{name[2:]}"
        expected = all_of_them if written.suffix == ".npy" else some
        if written.suffix == ".h5":
            with h5py.File(written) as file:
                found = file["potential"][()]
        else:
            loaded = np.load(written)
            found = loaded if written.suffix == ".npy" else loaded["potential"]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("bad", ["NaN on one rank", "no file"])
def test_bad_files_are_an_error_of_all_ranks(bad, tmp_path):
    path, out = tmp_path / "in.npz", tmp_path / "out.npz"
    q = np.ones(50)
    q[40] = np.nan
    if bad != "no file":
        np.savez(path, src=np.random.default_rng(0).random((3, 50)), dens=q, box=np.ones(3))
    said, status, seconds = begin(2, "-m", "parki", "run", str(path), "--kernel", "laplace", "-o", str(out))
    assert status == 2
    assert said.count("parki run: ") == 1
    expected = {"no file": "No such file", "NaN on one rank": r"dens\[15\] = nan\).* Found by rank 1 of 2"}[bad]
    assert re.search(expected, said)
    assert "Traceback" not in said
    assert seconds < 60
    assert not out.exists()


def test_the_benchmark_measures_all_ranks():
    options = ["--n", "2000", "--repeat", "1", "--tolerance", "1e-6"]
    said, status, _ = begin(2, "-m", "parki", "bench", "ewald", "--mpi", *options)
    assert status == 0, said
    for kernel in ("laplace", "stokes_sl", "stokes_comb"):
        assert said.count(f"{kernel}, N = 2,000, 1e-06: one process of 1 thread ") == 1
        assert said.count(f"{kernel}, N = 2,000, 1e-06: 2 ranks of 1 thread ") == 1
    assert len(re.findall(r"lines for planes .* [1-9].*, 2\n", said)) == 3
    assert said.count("busy: largest over mean") == 3


@pytest.mark.parametrize("name", every(2, [module.__name__.partition(".")[2] for module in METHODS]))
def test_the_benchmark_measures_plans_in_free_space(name):
    options = ["--n", "2000", "--repeat", "1", "--tolerance", "1e-4", "--points", "sphere"]
    said, status, _ = begin(2, "-m", "parki", "bench", name, "--mpi", *options)
    assert status == 0, said
    threads = "2 threads" if cpus() > 1 else "1 thread for want of cores"
    for kernel in ("coulomb", "stokes_sl"):
        for step in ("plan", "call", "both"):
            title = f"{kernel}, sphere, N = 2,000, 0.0001: {step}"
            assert said.count(f"{title}, one process of {threads} ") == 1
            assert said.count(f"{title}, 2 ranks of 1 thread ") == 1
    for kernel in said.split("busy: largest over mean")[:2]:
        assert re.search(r"(values of others|charges of ghosts) .* ms   [1-9]\S*, \S+\n", kernel)
    assert said.count("busy: largest over mean") == 2


def test_a_galaxy_keeps_its_energy():
    said, status, _ = begin(2, "-m", "mpi4py", str(ROOT / "examples/galaxy_over_ranks.py"), "--small")
    assert status == 0, said
    assert float(re.search(r"(?m)^step 4: .* of 1500 stars here, the energy has changed by (\S+)$", said)[1]) < 1e-4
    assert said.count("step ") == 4


def test_the_doctor_measures_messages(tmp_path):
    said, status, _ = begin(2, "-m", "parki", "doctor", PARKI_CACHE_DIR=str(tmp_path))  # not in the user's folder
    assert status == 0, said
    assert len(list(tmp_path.rglob("*.network.json"))) == 1
    assert re.search(r"ranks +2 on 1 machine, 1 thread each ", said)
    assert re.search(r"network +\S+ µs a message, \S+ GB/s a rank", said)
    assert said.count("matplotlib") == 1
