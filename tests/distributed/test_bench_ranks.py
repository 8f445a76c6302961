"""`parki bench ewald --mpi` on simulated ranks: numbers of points, rows and summary, errors of all ranks."""

import argparse
import re

import numpy as np
import pytest

from parki.distributed.simulated import World
from parki.engine.run import spaces
from parki.ewald.report import EXCHANGES
from parki.perfmodels.bench import measure_ranks, ranks

OPTIONS = {"box": (1.0, 1.0, 1.0), "tolerance": 1e-6, "execution_space": spaces.Space("Serial")}


def test_shares_are_as_many_as_asked_and_anywhere():
    x = [ranks.share(1003, rank, 4)[0] for rank in range(4)]
    assert sum(own.shape[1] for own in x) == 1003
    assert len(np.unique(np.concatenate(x, axis=1), axis=1).T) == 1003
    assert all(own.min() < 0.05 and own.max() > 0.95 for own in x)


@pytest.mark.parametrize("count", [1, 3])
def test_a_sum_over_ranks_beside_one_process(count):
    found = World(count).run(lambda comm: ranks.measured("stokes_comb", 900, comm, OPTIONS, 2))
    one, many = found[0][0]
    assert one["what"] == "stokes_comb, N = 900, 1e-06: one process of 1 thread"
    assert many["what"] == f"stokes_comb, N = 900, 1e-06: {count} rank{'s' * (count > 1)} of 1 thread"
    assert many["against"] == one["what"]
    assert len(one["times"]) == len(many["times"]) == 2
    assert 0 < many["error"] < 1e-6
    assert len({(rows[1]["seconds"], summary) for rows, summary in found}) == 1  # the slowest rank's
    summary = found[0][1]
    assert "busy: largest over mean" in summary
    for title in EXCHANGES.values():
        assert (title in summary) is (count > 1)
    if count > 1:
        assert re.search(r"lines for planes .* ms   [1-9]\S*, 4\n", summary)


def test_one_process_is_spared_large_sums(monkeypatch):
    monkeypatch.setattr(measure_ranks, "ALONE", 899)
    rows = World(2).run(lambda comm: ranks.measured("laplace", 900, comm, OPTIONS, 1))[0][0]
    assert rows[0]["absent"] == "more than 899 particles"
    assert "against" not in rows[1]


def test_an_error_of_one_process_is_everyones(monkeypatch):
    prepared = ranks.prepared

    def full(kernel, given, options):
        if "comm" not in options:
            raise MemoryError("no room for one process")
        return prepared(kernel, given, options)

    monkeypatch.setattr(ranks, "prepared", full)

    def work(comm):
        with pytest.raises(MemoryError, match="no room for one process"):
            ranks.measured("laplace", 300, comm, OPTIONS, 1)

    World(3).run(work)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "p2p"}, "--mpi was given with p2p; expected ewald"),
        ({"points": "sphere"}, "--points was given with ewald"),
        ({"name": "treecode", "tolerance": 0.0}, "tolerance is 0.0"),
        ({"plot": "x.png"}, "--plot was given with --mpi, which keeps no records"),
        ({"tolerance": 2.0}, "tolerance is 2.0"),
        ({"n": 10**15}, "A smaller --n takes less"),
    ],
)
def test_bad_options_are_everyones_error(change, said):
    asked = {"name": "ewald", "json": None, "compare": None, "plot": None, "n": 300, "tolerance": 1e-4, "repeat": 1}
    asked |= {"points": None}
    asked |= {"space": "Serial", "threads": None} | change

    def work(comm):
        with pytest.raises((ValueError, MemoryError), match=said) as caught:
            ranks.main(argparse.Namespace(comm=comm, **asked))
        assert "raised on all ranks" in "".join(caught.value.__notes__)

    World(2).run(work)
