"""Errors of sums over simulated ranks: everyone has them, and plans go on."""

import numpy as np
import pytest

import parki
from parki.distributed.simulated import World
from tests.distributed.shares import Case, far, part

SAME = 1e-12


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


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (lambda q: q * np.nan, "density has 600 of"),
        (lambda q: q[:-1], "density has shape"),
        (lambda q: np.stack([q, q]), "right-hand sides is 2 on rank 2"),
        (lambda q: q.astype(complex), "density has dtype complex"),
        (lambda q: "charges", "density"),
        (lambda q: [[1.0], [1.0, 2.0]], "density"),
    ],
)
def test_a_plan_goes_on_after_bad_densities(bad, text):
    case = Case("laplace")
    _, expected = case.alone()
    text = text.replace("600 of", "")

    def work(comm, plan, to, source):
        q = part(case.density, source)
        with pytest.raises((ValueError, TypeError), match=text):
            plan(bad(q) if comm.rank == 2 else q)
        return plan(q)

    _, found = case.over(4, work, seed=5)
    assert far(np.concatenate(found), expected) < SAME


def test_a_plan_goes_on_after_bad_moves_and_other_calls():
    case = Case("laplace")
    _, expected = case.alone()

    def work(comm, plan, to, source):
        x, y, q = part(case.targets, to), part(case.sources, source), part(case.density, source)
        with pytest.raises(ValueError, match="targets has"):
            plan.move(targets=x * (np.nan if comm.rank == 0 else 1), sources=y)
        with pytest.raises(ValueError, match=r"call is .* on rank 1; expected"):
            plan.move(targets=x, sources=y) if comm.rank == 1 else plan(q)
        with pytest.raises(TypeError, match="found no points"):
            plan.move() if comm.rank == 1 else plan.move(targets=x, sources=y)
        return plan(q)

    _, found = case.over(3, work)
    assert far(np.concatenate(found), expected) < SAME


def test_a_call_that_does_not_finish_breaks_a_plan(monkeypatch):
    from parki.distributed.bricks import structure

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


def test_no_memory_on_one_rank(monkeypatch):
    from parki.ewald.stages import sums

    case, place = Case("laplace"), sums.Stages.__init__
    ranks = []

    def fails(self, *given, **named):
        ranks.append(len(ranks))
        if len(ranks) == 2:
            raise MemoryError("no room")
        place(self, *given, **named)

    monkeypatch.setattr(sums.Stages, "__init__", fails)
    with pytest.raises(MemoryError, match="no room") as caught:
        case.over(4)
    assert "raised on all ranks" in caught.value.__notes__[0]


def test_methods_that_do_not_sum_over_ranks():
    def work(comm):
        x = np.random.default_rng(comm.rank).random((3, 50))
        for call in (parki.treecode.plan, parki.fmm.plan):
            with pytest.raises(NotImplementedError, match=r"comm was given to .*, which does not sum over ranks"):
                call("coulomb", x, x, comm=comm)

    World(2).run(work)
    x = np.random.default_rng(0).random((3, 50))
    parki.treecode.plan("coulomb", x, x, comm=World(1).comms[0])(np.ones(50))
