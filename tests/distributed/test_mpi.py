"""Sums over processes under MPI, as far as there is one: one launch a number of ranks runs many cases."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("mpi4py", reason="mpi4py, of parki[mpi], is not installed")
ROOT = Path(__file__).parents[2]
MPIRUN = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
LIMIT = 150  # seconds
# Ranks that wait must not keep from work those that share their cores.
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PARKI_MPI_TIMEOUT": "60",
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_osc": "^ucx", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}  # fmt: skip
pytestmark = [
    pytest.mark.skipif(MPIRUN is None, reason="there is no mpirun on the path"),
    pytest.mark.xdist_group("mpi"),
]


def launch(ranks, *given, **environment):
    """Run cases on ranks; return what is printed, the exit status and seconds."""
    program = str(ROOT / "tests/distributed/on_ranks.py")
    return begin(ranks, "-W", "ignore", "-m", "mpi4py", program, *given, **environment)


def begin(ranks, *given, **environment):
    """Run Python on ranks; return what is printed, the exit status and seconds."""
    command = [MPIRUN, "-n", str(ranks), sys.executable]
    env = os.environ | ENVIRONMENT | environment
    began = time.monotonic()
    done = subprocess.run([*command, *given], env=env, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
    return done.stdout + done.stderr, done.returncode, time.monotonic() - began


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_sums_plans_and_agreed_errors(ranks):
    said, status, _ = launch(ranks, {1: "sums,plans", 8: "sums"}.get(ranks, "sums,plans,agreed"))
    assert status == 0, said
    assert f"done on {ranks} ranks" in said


@pytest.mark.parametrize("how", ["raise", "exit", "kill", "_exit"])
def test_a_rank_that_goes_ends_the_job(how):
    said, status, seconds = launch(3, "ends", how)
    assert status != 0
    assert "done on" not in said
    assert seconds < 60  # with the start of all ranks; those that wait do so for up to 60


def test_a_rank_that_hangs_ends_the_job():
    said, status, _ = launch(3, "ends", "hang", PARKI_MPI_TIMEOUT="4")
    assert status != 0
    assert "has waited 4 s (PARKI_MPI_TIMEOUT) in" in said
    assert "the job ends" in said


def test_a_slow_rank_is_waited_for():
    said, status, _ = launch(3, "ends", "slow")
    assert status == 0, said
    assert "slow ranks are waited for" in said


# Commands -------------------------------------------------------------------------------------------------------------
def test_the_demo_sums_over_all_ranks():
    said, status, _ = begin(2, "-m", "parki", "demo", "--n", "5000", "--no-picture")
    assert status == 0, said
    assert said.count("5000 random particles") == 1
    assert re.search(r"lines for planes .* [1-9].*, 2\n", said)
    assert float(re.search(r"error +(\S+) relative", said)[1]) < 1e-7


def test_a_command_that_fails_ends_all_ranks():
    said, status, seconds = begin(2, "-m", "parki", "demo", "--tolerance", "3")
    assert status != 0
    assert "tolerance is 3.0; expected a number between 0 and 1" in said
    assert seconds < 60


def test_the_doctor_measures_messages():
    said, status, _ = begin(2, "-m", "parki", "doctor")
    assert status == 0, said
    assert re.search(r"ranks +2 on 1 machine, 1 thread each ", said)
    assert re.search(r"network +\S+ µs a message, \S+ GB/s a rank", said)
    assert said.count("matplotlib") == 1
