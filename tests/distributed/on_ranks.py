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
from tests.distributed import faults, free
from tests.distributed.free import FreeCase
from tests.distributed.nodes import SHELVES, Nodes
from tests.distributed.shares import BOX, CELL, Case, far, part
from tests.ewald import cupy_standin as standin
from tests.ewald import stream_standin as streams
from tests.ewald import sums as exact_sums

WORLD = MPI.COMM_WORLD
BAD = min(1, WORLD.size - 1)


def share(case, comm, seed=0):
    """Return the indices of the targets and of the sources of this rank."""
    return tuple(of[comm.rank] for of in case.shares(comm.size, seed))


def alone(case, comm):
    """Return, on all ranks, the parameters and the sum that rank 0 finds by itself."""
    found = None
    if comm.rank == 0:
        plan, u = case.alone()
        found = plan.parameters, u
    return comm.bcast(found)


def whole(comm, u):
    return free.whole(comm.allgather(u))


def compare(comm, case, most):
    """Compare a sum and its parameters with those of one process, and its error with a bound."""
    parameters, expected = alone(case, comm)
    points, strengths = case.of(*share(case, comm))
    shared = case.plan(*points, comm=comm)
    u = whole(comm, shared(*strengths))
    assert far(u, expected) < (1e-12 if case.dtype == "float64" else 1e-5), (case, far(u, expected))
    assert comm.size == 1 or sum(shared.walltime.nbytes.values()) > 0
    assert shared.parameters == parameters
    error = shared.error(40).value
    assert error < most
    assert comm.allreduce(error, MPI.MAX) == error


def sums(comm):
    """Compare sums with those of one process."""
    ranks = communicators.of(comm)
    assert communicators.of(comm) is ranks
    ranks.longest = 1 << 10  # bytes of a message: longer ones are cut
    cases = [
        *(Case(kernel, p) for kernel, p in (("laplace", 3), ("stokes_comb", 3), ("stokes_sl", 1), ("laplace_grad", 0))),
        Case("stokes_dl", box=CELL), Case("laplace", 2, same=True), Case("yukawa", dtype="float32"),
    ]  # fmt: skip
    for case in cases[{3: slice(0, None, 3), 8: slice(3)}.get(comm.size, slice(None))]:  # every run has three ranks
        compare(comm, case, 1e-5)
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
    """Call two plans in turns, keep points where a plan put them, use communicators of fewer ranks."""
    case = Case("stokes_sl", same=True)
    _, expected = alone(case, comm)
    to, _ = share(case, comm)
    x, f = part(case.targets, to), part(case.density, to)
    plan = case.plan(x, x, comm=comm)
    other = case.plan(2 * x % np.array(BOX)[:, None], part(case.targets, to), comm=comm)
    for _ in range(2):
        assert far(whole(comm, plan(f)), expected) < 1e-12
        other(f)  # calls of two plans in turns
    stays(comm, case, plan, (x, f), expected)
    small = Case("laplace", n=200)
    splits(comm, small)
    without = comm.Split(MPI.UNDEFINED if comm.rank == 0 else 1)
    if comm.rank == 0:
        with pytest.raises(ValueError, match=r"comm is MPI\.COMM_NULL; expected a communicator"):
            small.plan(small.targets, small.sources, comm=without)


def stays(comm, case, plan, given, expected):
    """Check that points and densities that stay where a plan has put them are not sent."""
    x, f = (plan.theirs(a) for a in given)
    stay = case.plan(x, x, comm=comm)
    assert far(whole(comm, plan.ours(stay(f))), expected) < 1e-12
    assert stay.walltime.nbytes.get("sort", 0) == 0


def splits(comm, case):
    """Sum over half of the ranks, and over one alone."""
    half = comm.Split(comm.rank % 2, -comm.rank)
    points, strengths = case.of(*share(case, half))
    u = case.plan(*points, comm=half)(*strengths)
    assert far(whole(half, u), alone(case, half)[1]) < 1e-12
    half.Free()
    points, strengths = case.of(slice(None), slice(None))
    np.testing.assert_array_equal(case.plan(*points, comm=MPI.COMM_SELF)(*strengths), case.alone()[1])


def free_sums(comm):
    """Compare sums in free space with those of one process: all methods, with messages cut into pieces."""
    communicators.of(comm).longest = 1 << 10
    for module, methods in free.METHODS.items():
        cases = [FreeCase(module, "stokes_sl", points, n=600, options=methods[0]) for points in ("uniform", "plummer")]
        cases += [FreeCase(module, "stokes_sl", "sphere", "plummer", 600, options=options) for options in methods]
        cases.append(FreeCase(module, "stokes_comb", n=400, options=methods[0]))
        cases.append(FreeCase(module, n=600, options=methods[0] | {"gradient": True}))
        cases.append(FreeCase(module, "yukawa", n=600, dtype="float32", options=methods[-1]))
        # Every run has three ranks, and each method there; ranks share the cores of a test.
        some = {3: slice(2, -3), 4: slice(-3, None), 8: slice(1, 3)}.get(comm.size, slice(None))
        for case in cases[some]:
            compare(comm, case, 2e-2)


def free_plans(comm):
    """Move a plan in free space, keep points where it put them, use communicators of fewer ranks."""
    for module, (options, *_) in free.METHODS.items():
        case, other, fewer = (
            FreeCase(module, points=points, n=n, options=options)
            for points, n in (("uniform", 600), ("plummer", 600), ("sphere", 250))
        )
        _, expected = alone(case, comm)
        points, (q,) = case.of(*share(case, comm))
        plan, one = case.plan(*points, comm=comm), case.plan(case.y, case.y)
        stays(comm, case, plan, (points[0], q), expected)
        for there in (other, fewer, case):
            one.move(there.y)
            (x, _), (q,) = there.of(*share(there, comm, seed=5))
            plan.move(x)
            assert far(whole(comm, plan(q)), one(there.density)) < 1e-12
        both = np.stack([q, 2 * q])
        assert far(whole(comm, plan(both))[1], 2 * expected) < 1e-12
        assert far(whole(comm, plan.operator() @ q), expected) < 1e-12
        splits(comm, fewer)


def exchanges(comm):
    """Exchange values to which several ranks add parts."""
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
    """Raise the same errors on all ranks, and go on."""
    goes_on(comm, Case("laplace", n=400))


def free_agreed(comm):
    """Raise the same errors on all ranks in free space, and go on."""
    for module in free.METHODS:
        goes_on(comm, FreeCase(module, "laplace", targets="uniform", n=400, options={"tolerance": 1e-4}))


def goes_on(comm, case):
    """Cause all faults on one rank, and check that its plan goes on."""
    _, expected = alone(case, comm)
    rank = faults.Rank.of(comm, comm.rank == BAD, case, *share(case, comm))
    faults.check(rank, comm, expected)
    faults.accepted(rank, comm, expected)


def files(comm):
    """Run `parki run` for all files named on the command line."""
    for name in sys.argv[2:]:
        path = Path(name)
        more = ["--box", "1", "1", "1"] if path.suffix == ".npy" else []
        out = ["-o", str(path.with_name(f"out{path.suffix}"))]
        assert cli.main(["run", name, "--kernel", "laplace", "--tolerance", "1e-6", *out, *more]) == 0


def gpus(comm):
    """Sum in the simulator of GPUs, and on arrays of a stand-in for CuPy, with MPI that takes these or does not."""
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
    """Measure candidates for one plan, and take the same choice for the next."""
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
    """Send an array that a kernel has still to write, and receive into one that a kernel has still to read."""
    n, read = 50_000, []
    after, before = (ranks.rank + 1) % ranks.size, (ranks.rank - 1) % ranks.size
    a, b = (cupy.asarray(np.full(n, first)) for first in (-1.0, 7.0))
    streams.later(lambda: a.inner.fill(ranks.rank))  # a kernel that has not run
    streams.later(lambda: read.append(b.inner.copy()))
    ranks.exchange({after: a}, {before: b}, "test").finish()
    assert (b.get() == before).all()
    assert (read[0] == 7).all()


def ends(comm):
    """End one rank before or during a sum, in the way named on the command line; the launcher must end the others."""
    how, of = sys.argv[2:]
    module = next((module for module in free.METHODS if module.__name__ == of), None)
    case = Case("laplace") if module is None else FreeCase(module, targets="uniform", options=free.METHODS[module][0])
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
    """End or delay this rank, or let its next sum fail."""
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
