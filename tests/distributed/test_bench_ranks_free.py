"""`parki bench treecode --mpi` and `fmm` on simulated ranks, against one process with as many threads."""

import argparse

import numpy as np
import pytest

from parki.distributed.freespace import EXCHANGES
from parki.distributed.simulated import World
from parki.engine.run import spaces
from parki.perfmodels.bench import measure_ranks, ranks, ranks_free
from tests.quick import every

OPTIONS = {"tolerance": 1e-4, "execution_space": spaces.Space("Serial")}
METHODS = {name: method for name, method in ranks.METHODS.items() if method is not None}


@pytest.fixture(autouse=True)
def cores(monkeypatch):
    """Let the machine have two cores."""
    monkeypatch.setattr(ranks_free, "cpus", lambda: 2)


def measured(comm, name="treecode", kernel="coulomb", points="uniform", repeat=2):
    return ranks_free.measured(METHODS[name], kernel, points, 900, comm, OPTIONS, repeat)


@pytest.mark.parametrize("points", ranks_free.POINTS)
def test_shares_are_as_many_as_asked_and_each_its_own(points):
    shares = [ranks_free.share("stokes_sl", points, 1003, rank, 4) for rank in range(4)]
    x, f = (np.concatenate(some, axis=1) for some in zip(*shares, strict=True))
    assert x.shape == f.shape == (3, 1003)
    assert len(np.unique(x, axis=1).T) == len(np.unique(f)) / 3 == 1003
    assert np.abs(x).max() > 5 if points == "plummer" else np.abs(x).max() <= 1


@pytest.mark.parametrize(
    ("ranks", "threads", "name"),
    every(2, [(*of, name)
              for of in ((2, "2 threads"), (1, "1 thread"), (3, "2 threads for want of cores"))
              for name in (METHODS if of[0] != 1 else reversed(METHODS))]),
)  # fmt: skip
def test_a_sum_over_ranks_beside_one_process(name, ranks, threads):
    found = World(ranks).run(measured, name, "stokes_sl", "plummer")
    rows, summary = found[0]
    title = "stokes_sl, plummer, N = 900, 0.0001"
    for step, (one, many) in zip(("plan", "call", "both"), zip(rows[::2], rows[1::2], strict=True), strict=True):
        assert one["what"] == f"{title}: {step}, one process of {threads}"
        assert many["what"] == f"{title}: {step}, {ranks} rank{'s' * (ranks > 1)} of 1 thread"
        assert many["against"] == one["what"]
        assert len(one["times"]) == len(many["times"]) == 2
        assert ("error" in many) is (step == "call")
    for side in (0, 1):
        np.testing.assert_allclose(rows[4 + side]["times"], np.add(rows[side]["times"], rows[2 + side]["times"]))
    assert 0 < rows[3]["error"] < 1e-4
    assert len({(rows[1]["seconds"], rows[3]["seconds"], summary) for rows, summary in found}) == 1  # the slowest's
    assert "busy: largest over mean" in summary
    for phase in EXCHANGES.values():
        assert (phase in summary) is (ranks > 1)


def test_one_process_has_the_threads_of_all(monkeypatch):
    """Plans of one process have a thread per rank; plans over ranks keep their own space."""
    plans, make = [], ranks_free.FreeSteps.plan
    monkeypatch.setattr(ranks_free.FreeSteps, "plan", lambda self: plans.append(make(self)) or plans[-1])
    World(2).run(measured, "treecode", "coulomb", "uniform", 1)
    assert {plan.space for plan in plans if plan.comm is None} == {spaces.Space("OpenMP", 2)}
    assert {plan.space for plan in plans if plan.comm is not None} == {spaces.Space("Serial")}


def test_spaces_of_one_process(monkeypatch):
    device, two, one = spaces.Space("GpuSim"), spaces.Space("OpenMP", 2), spaces.Space("OpenMP", 1)
    assert ranks_free.one_space(device, 8) == (device, "")
    assert ranks_free.one_space(one, 1) == (one, "")
    assert ranks_free.one_space(one, 4) == (two, " for want of cores")
    monkeypatch.setattr(ranks_free, "cpus", lambda: 1)
    assert ranks_free.one_space(one, 4) == (one, " for want of cores")
    monkeypatch.setattr(spaces, "available", lambda: {"OpenMP": "There is none."})
    monkeypatch.setattr(ranks_free, "cpus", lambda: 8)
    serial = OPTIONS["execution_space"]
    assert ranks_free.one_space(serial, 4) == (serial, " for want of OpenMP")


def test_one_process_is_spared_large_sums(monkeypatch):
    monkeypatch.setattr(measure_ranks, "ALONE", 899)
    rows = World(2).run(measured, "treecode", "coulomb", "uniform", 1)[0][0]
    assert {row["absent"] for row in rows[::2]} == {"more than 899 particles"}
    assert not any("against" in row for row in rows)


def test_an_error_of_one_process_is_everyones(monkeypatch):
    make = ranks_free.FreeSteps.plan

    def full(self):
        if "comm" not in self._options:
            raise MemoryError("no room for one process")
        return make(self)

    monkeypatch.setattr(ranks_free.FreeSteps, "plan", full)

    def work(comm):
        with pytest.raises(MemoryError, match="no room for one process"):
            measured(comm)

    World(3).run(work)


def test_the_command_prints_a_table_of_each_kernel(capsys):
    asked = {"name": "treecode", "json": None, "compare": None, "plot": None, "n": 300, "tolerance": 1e-3, "repeat": 1}
    asked |= {"space": "Serial", "threads": None, "points": "sphere"}
    assert World(1).run(lambda comm: ranks.main(argparse.Namespace(comm=comm, **asked))) == [0]
    said = capsys.readouterr().out
    for kernel in ranks_free.KERNELS:
        assert said.count(f"{kernel}, sphere, N = 300, 0.001: both, 1 rank of 1 thread ") == 1
    assert said.count("busy: largest over mean") == 2
