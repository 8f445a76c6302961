"""Tuned plans over ranks: one choice everywhere, by the slowest rank's times, remembered by the first rank."""

import json

import numpy as np
import pytest

from parki.distributed.simulated import World
from parki.engine.errors import BuildError
from parki.ewald.choice import tuning, tuning_cache
from parki.ewald.stages.points import Points
from tests.distributed.shares import BOX, Case, far
from tests.ewald import sums
from tests.quick import but

RANKS = 3


@pytest.fixture(autouse=True)
def memory(tmp_path, monkeypatch):
    """Keep tuned choices in an empty folder."""
    monkeypatch.setattr(tuning_cache, "folder", lambda: tmp_path / "tuned")
    return tmp_path / "tuned"


@pytest.fixture
def clock(monkeypatch):
    """Return a function that sets the seconds of plans by cutoff and rank, 1 for others; no sum is timed."""

    def tell(times):
        def seconds(plan, given):
            return times.get(plan.parameters.rc, [1.0] * RANKS)[plan.comm.rank]

        monkeypatch.setattr(tuning, "seconds", seconds)

    return tell


def case(**options):
    return Case("laplace", options={"tune": True} | options)


def told(comm, plan, to, source):
    """Return a rank's choice: the report, parameters, variants and trials."""
    return str(plan.chosen.tuned), plan.parameters, plan.chosen.variants, plan.chosen.tuned.trials


def cutoffs(size=RANKS):
    """Return the cutoffs of the candidates, the model's choice first."""
    _, plans = case(tune=False).over(size)
    chosen = plans[0].chosen
    return [one.parameters.rc for one in tuning.candidates(chosen.question, plans[0].method.options)]


def same_everywhere(found):
    assert len({repr(one) for one in found}) == 1
    return found[0]


@pytest.mark.parametrize("kernel", but("stokes_sl", of=["laplace", "stokes_sl"]))
def test_every_candidate_meets_the_tolerance_over_ranks(kernel, clock):
    one = Case(kernel, options={"tune": True})
    exact = sums.periodic(kernel, one.targets[:, :40], one.sources, one.density, box=BOX)
    _, plans = Case(kernel).over(RANKS)
    found = tuning.candidates(plans[0].chosen.question, plans[0].method.options)
    assert len(found) >= 3
    for candidate in found:
        rc = candidate.parameters.rc
        clock({rc: [0.5] * RANKS})
        u, told_by = one.over(RANKS, told)
        assert same_everywhere(told_by)[1].rc == rc
        assert far(u[..., :40], exact) < 1e-6
        tuning_cache.forget()


def test_the_slowest_rank_decides(clock):
    first, *others = cutoffs()
    clock({others[0]: [0.1, 0.1, 1.2], others[1]: [0.7, 0.8, 0.8], first: [1.0, 0.2, 0.3]})
    _, found = case().over(RANKS, told)
    text, parameters, _, trials = same_everywhere(found)
    assert parameters.rc == others[1]
    assert "1.25 times as fast as the model's choice" in text
    ratios = {one.parameters.rc: one.ratio for one in trials}
    assert (ratios[others[0]], ratios[others[1]]) == (1.2, 0.8)


def test_what_was_found_is_taken_without_measuring(clock, memory, monkeypatch):
    """Reuse a choice on as many ranks; the first rank reads and writes the file."""
    rc, asked = cutoffs()[1], []
    clock({rc: [0.5] * RANKS})
    recall, remember = tuning_cache.recall, tuning_cache.remember
    monkeypatch.setattr(tuning_cache, "recall", lambda key: asked.append("recall") or recall(key))
    monkeypatch.setattr(tuning_cache, "remember", lambda *given: asked.append("remember") or remember(*given))
    case().over(RANKS, told)
    assert asked == ["recall", "remember"]
    (file,) = memory.iterdir()
    assert json.loads(file.read_text("utf-8"))["question"][-1] == [RANKS, RANKS]

    def measure(bench):
        raise AssertionError("measured")

    monkeypatch.setattr(tuning, "measure", measure)
    _, found = case().over(RANKS, told, seed=4)
    text, parameters, _, trials = same_everywhere(found)
    assert (parameters.rc, trials) == (rc, ())
    assert text.startswith("tuned, measured 20")
    with pytest.raises(AssertionError, match="measured"):
        case().over(2)
    with pytest.raises(AssertionError, match="measured"):
        case().alone()


def test_times_of_sums_decide(monkeypatch):
    """Measure real times, on ranks with and without points."""
    monkeypatch.setattr(tuning, "NEAR", (0.25,))
    monkeypatch.setattr(tuning, "ENOUGH_SECONDS", 0.0)
    one = case()
    _, expected = case(tune=False).alone()
    u, found = one.over(4, told, seed=5)
    trials = same_everywhere(found)[3]
    assert len(trials) >= 2
    assert all(0 < trial.seconds < np.inf for trial in trials)
    assert far(u, expected) < 1e-6


def test_what_one_rank_cannot_make_is_left_out_by_all(clock, monkeypatch):
    _, bad, good, *_ = cutoffs()
    clock({bad: [0.1] * RANKS, good: [0.5] * RANKS})
    place, made = Points.__init__, []

    def fails(self, p, *given):
        made.extend([1] * (p.rc == bad))
        if p.rc == bad and len(made) == 2:
            raise BuildError("no compiler here")
        place(self, p, *given)

    monkeypatch.setattr(Points, "__init__", fails)
    _, found = case().over(RANKS, told)
    _, parameters, _, trials = same_everywhere(found)
    assert parameters.rc == good
    assert {one.parameters.rc: one.ratio for one in trials}[bad] == np.inf


def test_errors_of_the_first_rank_are_everyones(clock, monkeypatch):
    clock({})

    def recall(key):
        raise PermissionError("not for you")

    def work(comm):
        own = np.arange(200) + 200 * comm.rank
        points, strengths = case().of(own, own)
        with pytest.raises(PermissionError, match="not for you") as caught:
            case().plan(*points, comm=comm)
        assert "recalling a tuned sum; raised on all ranks" in caught.value.__notes__[0]
        return case(tune=False).plan(*points, comm=comm)(*strengths)

    monkeypatch.setattr(tuning_cache, "recall", recall)
    assert far(np.concatenate(World(RANKS).run(work)), case(tune=False).alone()[1]) < 1e-12
