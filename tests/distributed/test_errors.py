"""Errors of sums over simulated ranks: all ranks raise them, and plans go on."""

import numpy as np
import pytest

import parki
from parki.distributed.bricks import structure
from parki.distributed.simulated import World
from parki.ewald.stages import sums
from parki.fmm.kinds import Kifmm
from parki.fmm.options import FmmOptions
from parki.pairs import PAIRS
from parki.plan import make
from tests.distributed import faults, free
from tests.distributed.shares import Case, cuts, part


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda rank, o: {"tolerance": 1e-3 if rank == 1 else 1e-6}, "tolerance is '0.001' on rank 1"),
        (lambda rank, o: {"tolerance": 2.0 if rank == 1 else 1e-6}, "tolerance is 2.0; expected"),
        (lambda rank, o: {"tune": True, "rc": 0.2}, "rc is 0.2 and tune is True"),
        (lambda rank, o: {"tune": rank == 1}, "tune is 'True' on rank 1; expected 'False'"),
        (lambda rank, o: {"fft_type": "C2C"}, "fft_type is 'C2C' with comm"),
        (lambda rank, o: {"speed": 1} if rank == 1 else {}, "unknown option 'speed'"),
    ],
)
def test_options_that_differ_or_do_not_fit(change, text):
    def work(comm):
        x = np.random.default_rng(comm.rank).random((3, 50))
        with pytest.raises((ValueError, TypeError, NotImplementedError), match=text):
            parki.ewald.plan("laplace", x, x, box=(1, 1, 1), comm=comm, **change(comm.rank, None))
        return parki.ewald.plan("laplace", x, x, box=(1, 1, 1), comm=comm)(np.ones(50)).shape

    assert World(3).run(work) == [(50,)] * 3


@pytest.mark.parametrize("bad", [0, 2])
def test_faults_on_one_rank_are_everyones(bad):
    case = Case("laplace", n=400, options={"threads": 1})
    _, expected = case.alone()

    def work(comm):
        ends = [cuts(case.n, comm.size, seed)[comm.rank] for seed in (1, 2)]
        rank = faults.Rank.of(comm, comm.rank == bad, case, *ends)
        faults.check(rank, comm, expected)
        faults.accepted(rank, comm, expected)

    World(4).run(work)


@pytest.mark.parametrize("module", free.METHODS)
@pytest.mark.parametrize("bad", [0, 2])
def test_faults_in_free_space_on_one_rank_are_everyones(module, bad):
    options = {"tolerance": 1e-4, "threads": 1}
    case = free.FreeCase(module, "laplace", targets="uniform", n=400, options=options)
    _, expected = case.alone()

    def work(comm):
        rank = faults.Rank.of(comm, comm.rank == bad, case, *(of[comm.rank] for of in case.shares(comm.size, 1)))
        faults.check(rank, comm, expected)
        faults.accepted(rank, comm, expected)

    World(4).run(work)


def test_a_call_that_does_not_finish_breaks_a_plan(monkeypatch):
    kept = []

    def work(comm, plan, to, source):
        kept.append((plan, part(case.density, source)))
        if comm.rank == 1:
            monkeypatch.setattr(structure.BrickSum, "_powers", interrupted)
        return plan(part(case.density, source))

    def interrupted(self, dens, normals):
        raise KeyboardInterrupt

    case = Case("laplace")
    with pytest.raises(KeyboardInterrupt):
        case.over(3, work)
    broken = [plan for plan, _ in kept if plan._broken]
    assert broken
    with pytest.raises(RuntimeError, match="messages of others may be under way; expected a new plan"):
        broken[0].error(density=np.ones(broken[0].n_sources))


@pytest.mark.parametrize(("owner", "name"), [(sums.Stages, "__init__"), (structure.BrickSum, "take_room")])
def test_no_memory_on_one_rank(owner, name, monkeypatch):
    case, place = Case("laplace"), getattr(owner, name)
    ranks = []

    def fails(self, *given, **named):
        ranks.append(len(ranks))
        if len(ranks) == 2:
            raise MemoryError("no room")
        place(self, *given, **named)

    monkeypatch.setattr(owner, name, fails)
    with pytest.raises(MemoryError, match="no room") as caught:
        case.over(4)
    assert "raised on all ranks" in caught.value.__notes__[0]


def test_methods_that_do_not_sum_over_ranks():
    def work(comm):
        x = np.random.default_rng(comm.rank).random((3, 50))
        alone = Kifmm(PAIRS["coulomb"], FmmOptions(comm=comm))
        with pytest.raises(NotImplementedError, match=r"comm was given to .* kifmm, which does not sum over ranks"):
            make(alone, x, x)

    World(2).run(work)
    x = np.random.default_rng(0).random((3, 50))
    parki.treecode.plan("coulomb", x, x, comm=World(1).comms[0])(np.ones(50))


def test_gradients_by_pytorch_are_of_one_process():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    def work(comm):
        x, q = torch.rand(3, 50, dtype=torch.float64), torch.ones(50, dtype=torch.float64)
        with pytest.raises(NotImplementedError, match=r"comm was given to .*, which does not sum over ranks"):
            parki.torch.laplace(x, x, q, box=(1, 1, 1), comm=comm)

    World(2).run(work)
