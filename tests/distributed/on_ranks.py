"""Cases that run under MPI: ``mpirun -n 4 python -m mpi4py tests/distributed/on_ranks.py sums``; rank 0 reports."""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse.linalg
from mpi4py import MPI

import parki
from parki import cli
from parki.distributed import communicators
from parki.distributed.bricks import division
from parki.distributed.exchange import choice
from parki.distributed.exchange.census import Census
from parki.ewald.choice import tuning_cache
from tests.distributed import faults
from tests.distributed.free import FreeCase
from tests.distributed.nodes import SHELVES, Nodes
from tests.distributed.shares import BOX, CELL, Case, cuts, far, part
from tests.ewald import cupy_standin as standin
from tests.ewald import stream_standin as streams
from tests.ewald import sums as exact_sums

WORLD = MPI.COMM_WORLD
BAD = min(1, WORLD.size - 1)


def share(case, comm, seed=0):
    of_targets = cuts(case.n, comm.size, seed)[comm.rank]
    return of_targets, of_targets if case.same else cuts(case.n, comm.size, seed + 1)[comm.rank]


def alone(case, comm):
    """Return the parameters and the sum of one process, the first."""
    found = None
    if comm.rank == 0:
        plan, u = case.alone()
        found = plan.parameters, u
    return comm.bcast(found)


def whole(comm, u):
    return np.concatenate(comm.allgather(u), axis=-1)


def sums(comm):
    """Compare sums with those of one process."""
    ranks = communicators.of(comm)
    assert communicators.of(comm) is ranks
    ranks.longest = 1 << 10  # messages are cut
    cases = [
        *(Case(kernel, p) for kernel, p in (("laplace", 3), ("stokes_comb", 3), ("stokes_sl", 1), ("laplace_grad", 0))),
        Case("stokes_dl", box=CELL), Case("laplace", 2, same=True), Case("yukawa", dtype="float32"),
    ]  # fmt: skip
    for case in cases if comm.size < 8 else cases[:3]:  # ranks share the cores of a test
        parameters, expected = alone(case, comm)
        to, source = share(case, comm)
        x = part(case.targets, to)
        shared = case.plan(x, x if case.same else part(case.sources, source), comm=comm)
        u = whole(comm, shared(part(case.density, source), *case.given(source)))
        assert far(u, expected) < (1e-12 if case.dtype == "float64" else 1e-5), (case.kernel, far(u, expected))
        assert comm.size == 1 or sum(shared.walltime.nbytes.values()) > 0
        assert shared.parameters == parameters
        error = shared.error(40).value
        assert error < 1e-5
        assert comm.allreduce(error, MPI.MAX) == error
    case = Case("laplace")
    to, source = share(case, comm)
    one = parki.direct.direct_sum("laplace", case.targets, case.sources, case.density)
    given = part(case.targets, to), part(case.sources, source), part(case.density, source)
    assert far(whole(comm, parki.direct.direct_sum("laplace", *given, comm=comm)), one) < 1e-13


def multipoles(comm):
    """Compare fast multipole sums with those of one process."""
    for method, kernel, targets in (
        ("kifmm", "coulomb", None), ("kifmm", "stokes_comb", "plummer"), ("chebyshev", "gaussian", None),
    ):  # fmt: skip
        more = {"width": 0.7} if kernel == "gaussian" else {}
        case = FreeCase(parki.fmm, kernel, targets=targets, n=3000, options={"method": method, "order": 4} | more)
        expected = comm.bcast(case.alone()[1] if comm.rank == 0 else None)
        mine = [of[comm.rank] for of in case.shares(comm.size)]
        (x, y), strengths = case.of(*mine)
        shared = case.plan(x, y, comm=comm)
        for _ in range(2):
            assert far(whole(comm, shared(*strengths)), expected) < 1e-12, (method, kernel)
        shared.move(targets=x if targets is None else 0.5 * x, sources=x if targets is None else 0.5 * y)
        shared(*strengths)
        assert comm.size == 1 or shared.walltime.nbytes["exchange"] + shared.walltime.nbytes["ghost_source"] > 0


def plans(comm):
    """Move a plan, keep points where it put them, use communicators of other ranks."""
    case = Case("stokes_sl", same=True)
    _, expected = alone(case, comm)
    to, _ = share(case, comm)
    x, f = part(case.targets, to), part(case.density, to)
    plan = case.plan(x, x, comm=comm)
    other = case.plan(2 * x % np.array(BOX)[:, None], part(case.targets, to), comm=comm)
    for _ in range(2):
        assert far(whole(comm, plan(f)), expected) < 1e-12
        other(f)  # calls of two plans in turns
    theirs = plan.theirs(x), plan.theirs(f)
    stay = case.plan(theirs[0], theirs[0], comm=comm)
    assert far(whole(comm, plan.ours(stay(theirs[1]))), expected) < 1e-12
    assert stay.walltime.nbytes.get("sort", 0) == 0
    half = comm.Split(comm.rank % 2, -comm.rank)
    small = Case("laplace", n=200)
    to, source = share(small, half)
    u = small.plan(part(small.targets, to), part(small.sources, source), comm=half)(part(small.density, source))
    assert far(whole(half, u), alone(small, half)[1]) < 1e-12
    half.Free()
    without = comm.Split(MPI.UNDEFINED if comm.rank == 0 else 1)
    if comm.rank == 0:
        with pytest.raises(ValueError, match=r"comm is MPI\.COMM_NULL; expected a communicator"):
            small.plan(small.targets, small.sources, comm=without)
    single = small.plan(small.targets, small.sources, comm=MPI.COMM_SELF)
    np.testing.assert_array_equal(single(small.density), small.alone()[1])


def exchanges(comm):
    """Exchange values that several ranks make parts of."""
    ranks = communicators.of(comm)
    for scheme, make in choice.SCHEMES.items():
        for seed in range(3):
            nodes = Nodes(comm.size, seed)
            rounds = make(Census(ranks, *nodes.of(comm.rank), len(SHELVES), scheme), SHELVES)
            for call in range(3):
                before = ranks.traffic.nbytes.get(scheme, 0)
                shelves = nodes.shelves(comm.rank, call)
                rounds.start(shelves)
                while call and not rounds.test():
                    time.sleep(1e-4 * (comm.rank % 2))
                rounds.finish()
                nodes.check(comm.rank, call, shelves)
                assert ranks.traffic.nbytes.get(scheme, 0) - before == rounds.nbytes


def agreed(comm):
    """Raise the same error everywhere, and go on."""
    case = Case("laplace", n=400)
    _, expected = alone(case, comm)
    rank = faults.Rank.of(comm, comm.rank == BAD, case, *share(case, comm))
    faults.check(rank, comm, expected)
    faults.accepted(rank, comm, expected)


def files(comm):
    """Run the command for all files that are named."""
    for name in sys.argv[2:]:
        path = Path(name)
        more = ["--box", "1", "1", "1"] if path.suffix == ".npy" else []
        out = ["-o", str(path.with_name(f"out{path.suffix}"))]
        assert cli.main(["run", name, "--kernel", "laplace", "--tolerance", "1e-6", *out, *more]) == 0


def gpus(comm):
    """Sum in the simulator of GPUs, and on arrays of a stand-in for CuPy's, which MPI takes as they are or not."""
    pinned = {"tolerance": 1e-3, "rc": 0.3, "far_precision": "double"}
    for kernel, periodicity in (("laplace", 3), ("stokes_comb", 1)):
        case = Case(kernel, periodicity, n=80, options=pinned | {"execution_space": "GpuSim"})
        (x, y), given = case.of(*share(case, comm))
        _, expected = alone(case, comm)
        assert far(whole(comm, case.plan(x, y, comm=comm)(*given)), expected) < 1e-12
    with pytest.MonkeyPatch.context() as patch:
        cupy = standin.install(patch)
        for aware in ("0", "1"):
            patch.setenv("PARKI_MPI_GPU", aware)
            own = comm.Dup()
            messages_of_a_device(cupy, communicators.of(own))
            for kernel in ("laplace", "stokes_comb"):
                case = Case(kernel, n=80, options=pinned, put=cupy.asarray)
                _, expected = alone(case, comm)
                (x, y), given = case.of(*share(case, comm))
                plan = case.plan(x, y, comm=own)
                for _ in range(2):
                    u = plan(*given)
                    assert isinstance(u, cupy.ndarray)
                    assert far(whole(comm, u.get()), expected) < 1e-12, (kernel, aware)
            own.Free()


def tuned(comm):
    """Measure candidates, and take what was found for the next plan."""
    case = Case("laplace", options={"tune": True})
    points, given = case.of(*share(case, comm))
    exact, found = exact_sums.periodic("laplace", case.targets[:, :40], case.sources, case.density, box=BOX), []
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(tuning_cache, "folder", lambda: Path(folder))
        for _ in range(2):
            plan = case.plan(*points, comm=comm)
            assert far(whole(comm, plan(*given))[:40], exact) < 1e-6
            report = str(plan.chosen.tuned), plan.parameters, plan.chosen.tuned.trials
            assert len(set(map(repr, comm.allgather(report)))) == 1
            found.append(report)
        assert len(list(Path(folder).iterdir())) == (comm.rank == 0)
    assert found[0][1] == found[1][1]
    assert found[0][0].startswith("tuned among")
    assert found[1][0].startswith("tuned, measured")


def messages_of_a_device(cupy, ranks):
    """Send what a kernel has still to write, and receive over what another has still to read."""
    n, read = 50_000, []
    after, before = (ranks.rank + 1) % ranks.size, (ranks.rank - 1) % ranks.size
    a, b = (cupy.asarray(np.full(n, first)) for first in (-1.0, 7.0))
    streams.later(lambda: a.inner.fill(ranks.rank))  # a kernel that has not run
    streams.later(lambda: read.append(b.inner.copy()))
    ranks.exchange({after: a}, {before: b}, "test").finish()
    assert (b.get() == before).all()
    assert (read[0] == 7).all()


def ends(comm):
    """End one rank in the middle, in the way that is named: the launcher must end the others."""
    case, how = Case("laplace"), sys.argv[2]
    (x, y), (q,) = case.of(*share(case, comm))
    plan = case.plan(x, y, comm=comm)
    some = comm.Split(MPI.UNDEFINED if comm.rank == 0 else 1)
    comm.Barrier()
    if comm.rank == BAD:
        sys.stdout.write(f"at {time.time()}\n")
        sys.stdout.flush()
        fault(how, plan, q)
    if how == "subset":
        plan = plan if comm.rank == 0 else case.plan(x, y, comm=some)
    if how == "callback":
        out_of_order = scipy.sparse.linalg.aslinearoperator(scipy.sparse.csr_array((len(x[0]), len(y[0]))))
        out_of_order._matvec = out_of_order._matmat = lambda v: 1 // int(comm.rank != BAD) * np.zeros(len(x[0]))
        plan.operator(correction=out_of_order) @ q
    plan(q)
    if how == "slow" and comm.rank == 0:
        sys.stdout.write("slow ranks are waited for\n")


def fault(how, plan, q):
    """Let this rank go, or come late."""
    if how == "raise":
        raise RuntimeError("in the caller's code")
    if how == "exit":
        sys.exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "_exit":
        os._exit(4)
    if how == "interrupt":
        plan.sums[1]._powers = lambda *given: os.kill(os.getpid(), signal.SIGINT)
    if how == "no memory":
        plan.structure.to_sources.there = lambda *given, **named: bytearray(1 << 60)
    time.sleep({"hang": 600, "slow": 2}.get(how, 0))


if __name__ == "__main__":
    division.LEAST_POINTS = 1
    began = time.perf_counter()
    for work in sys.argv[1].split(","):
        globals()[work](WORLD)
    if WORLD.rank == 0:
        sys.stdout.write(f"done on {WORLD.size} ranks in {time.perf_counter() - began:.1f} s\n")
