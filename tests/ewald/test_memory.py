"""Peak memory of a large sum, in a process of its own."""

import subprocess
import sys

import pytest

N = 200_000
LIMIT = 2048  # bytes a particle
RUN = f"""
import resource, sys
from pathlib import Path
import numpy as np, scipy.fft, parki
from parki.ewald import api

def peak():
    status = Path("/proc/self/status")  # of this program; ru_maxrss also counts the process that started it
    if status.exists():
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

def call(n):
    rng = np.random.default_rng(0)
    x, dens, normals = rng.random((3, n)), rng.standard_normal((6, n)), rng.standard_normal((3, n))
    return parki.ewald.stokes_comb(x, x, dens, normals, box=(1, 1, 1), tolerance=1e-9)

before = peak()
call({N})
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the standard library tells no process's peak memory there")
def test_bytes_a_particle():
    """Peak memory includes the input, of 96 bytes a particle, and the compiled kernels."""
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, timeout=600, check=True)
    assert 100 * N < int(done.stdout) < LIMIT * N
