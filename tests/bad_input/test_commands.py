"""Bad arguments of the command line: one line that names them, status 2, and no result."""

import numpy as np
import pytest

from parki import cli
from tests.bad_input.refused import Q, X

RUN = ["run", "in.npz", "--kernel", "laplace", "-o", "out.npz"]


def without(*words):
    """Return valid arguments of `parki run` without the given ones."""
    return [word for word in RUN if word not in words]


@pytest.fixture(autouse=True)
def particles(tmp_path, monkeypatch):
    """Write a small file to the folder in which the command runs."""
    monkeypatch.chdir(tmp_path)
    np.savez("in.npz", src=X, dens=Q, box=np.ones(3))
    np.savez("free.npz", src=X, dens=Q)
    np.savez("half.npz", src=X.astype("f2"), dens=Q, box=np.ones(3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["sum"], "sum"),
        (["--colour"], "COMMAND"),
        (["demo", "--n", "0"], "--n"),
        (["demo", "--n", "1e400"], "--n"),
        (["demo", "--n", "1e15"], "n = 1000000000000000"),
        (["demo", "--n", "10", "--seed", "x"], "--seed"),
        (["demo", "--n", "10", "--tolerance", "0"], "tolerance is 0"),
        (["demo", "--n", "10", "--tolerance", "small"], "--tolerance"),
        (["demo", "--n", "10", "--space", "Cude"], "execution space 'Cude'"),
        (["demo", "--n", "10", "--threads", "-1"], "threads is -1"),
        (["demo", "--n", "10", "--threads", "two"], "--threads"),
        (["demo", "--N", "10"], "--N"),
        (["run"], "IN"),
        (without("in.npz"), "IN"),
        (without("--kernel", "laplace"), "--kernel"),
        (without("-o", "out.npz"), "--output"),
        (["run", "none.npz", *RUN[2:]], "none.npz"),
        (["run", ".", *RUN[2:]], r"\."),
        (["run", "free.npz", *RUN[2:]], "--box"),
        (["run", "half.npz", *RUN[2:]], "trg has dtype float16"),
        ([*RUN, "--kernel", "laplacian"], "--kernel"),
        ([*RUN, "--kernel", "yukawa"], "kappa is missing"),
        ([*RUN, "--kernel", "stokes_sl"], "dens has shape"),
        ([*RUN, "--kernel", "stokes_dl"], "'normals'"),
        ([*RUN, "-o", "none/out.npz"], "none"),
        ([*RUN, "-o", "out.txt"], "out.txt"),
        ([*RUN, "-o", "in.npz"], "in.npz is the input"),
        ([*RUN, "--box", "1", "1"], "--box"),
        ([*RUN, "--box", "1", "1", "x"], "--box"),
        ([*RUN, "--box", "1", "1", "1"], "--box"),
        (["run", "free.npz", *RUN[2:], "--box", "1", "1", "-1"], "box is"),
        (["run", "free.npz", *RUN[2:], "--box", "1", "1", "nan"], "box is"),
        ([*RUN, "--periodicity", "4"], "--periodicity"),
        ([*RUN, "--kappa", "2"], "kappa was given"),
        ([*RUN, "--kernel", "yukawa", "--kappa", "-2"], "kappa is -2"),
        ([*RUN, "--rc", "3"], "rc is 3"),
        ([*RUN, "--rc", "nan"], "rc is nan"),
        ([*RUN, "--rc", "1e-4"], "larger rc"),
        ([*RUN, "--split", "kaiser"], "--split"),
        ([*RUN, "--dtype", "float16"], "--dtype"),
        ([*RUN, "--tolerance", "nan"], "tolerance is nan"),
        ([*RUN, "--threads", "1.5"], "--threads"),
        (["bench"], "name"),
        (["bench", "p2q"], "p2q"),
        (["bench", "ewald", "--repeat", "0"], "--repeat"),
        (["bench", "ewald", "--n", "1e15"], "--n"),
        (["bench", "ewald", "--n", "100", "--space", "x"], "execution space 'x'"),
        (["bench", "ewald", "--mpi"], "without a launcher of MPI|--mpi needs mpi4py"),
        (["bench", "p2p", "--mpi"], "--mpi was given with p2p; expected ewald"),
        (["bench", "ewald", "--mpi", "--json", "x.json"], "--json was given with --mpi"),
        (["model"], "what"),
        (["model", "pme"], "pme"),
        (["model", "ewald", "--device", "z80"], "z80"),
        (["model", "ewald", "--kernel", "laplacian"], "kernel is 'laplacian'"),
        (["model", "ewald", "--tolerance", "0"], "tolerance"),
        (["model", "ewald", "--box", "1", "1", "0"], "box"),
        (["model", "treecode", "--n", "100", "--theta", "2"], "theta is 2"),
        (["model", "treecode", "--n", "1e15"], "--n"),
        (["model", "fmm", "--n", "100", "--order", "99"], "order is 99"),
        (["calibrate", "--seconds", "x"], "--seconds"),
        (["tune", "--kernel", "x"], "--kernel"),
        (["tune", "--n", "1e15"], "--n"),
        (["tune", "--n", "100", "--box", "1", "0", "1"], "box is"),
        (["tune", "--n", "100", "--kernel", "yukawa"], "kappa is missing"),
        (["cache"], "what"),
        (["cache", "empty"], "empty"),
        (["cache", "prune", "--days", "x"], "--days"),
    ],
    ids=" ".join,
)
def test_arguments(arguments, message, capsys, tmp_path):
    before = sorted(tmp_path.iterdir())
    try:
        status = cli.main(arguments)
    except SystemExit as stop:  # raised by argparse
        status = stop.code
    out, err = capsys.readouterr()
    assert status == 2
    assert out == ""
    assert "Traceback" not in err
    last = err.splitlines()[-1]
    assert last.startswith("parki")
    assert any(part in last for part in message.replace("\\", "").split("|")), last
    assert sorted(tmp_path.iterdir()) == before
