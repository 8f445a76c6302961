"""Sums over processes under MPI, as far as there is one: one launch a number of ranks runs many cases."""

import os
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
    command = [MPIRUN, "-n", str(ranks), sys.executable, "-W", "ignore", "-m", "mpi4py", program]
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
