"""Times of phases and their parts, by a clock that tells given seconds."""

import itertools
import time

import pytest

from parki.timing import PhaseTimes

PHASES = {"tree": "trees", "tree.sort": "sorting", "near": "near field", "near.sort": "sorting", "far": "far field"}


class Clock:
    """Clock that stands still between its steps."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def spend(self, times, **phases):
        for name, seconds in phases.items():
            with times.phase(name.replace("_", ".")):
                self.now += seconds


def test_a_part_is_time_of_its_phase():
    clock = Clock()
    times = PhaseTimes(PHASES, ("tree",), clock=clock)
    clock.spend(times, near_sort=1.0, near=2.0, far=4.0)
    clock.spend(times, near_sort=8.0, tree_sort=16.0)
    assert times.time == {"tree": 16.0, "tree.sort": 16.0, "near": 11.0, "near.sort": 9.0, "far": 4.0}
    assert times.total == 31.0
    times.reset()
    assert times.time == {"tree": 16.0, "tree.sort": 16.0, "near": 0.0, "near.sort": 0.0, "far": 0.0}


def test_a_phase_within_itself_is_counted_once():
    clock = Clock()
    times = PhaseTimes(PHASES, clock=clock)
    with times.phase("near"):
        clock.spend(times, near_sort=1.0)
        clock.now += 2.0
    assert (times.time["near"], times.time["near.sort"]) == (3.0, 1.0)


@pytest.mark.parametrize("name", ["nearer", "far.sort", "", "near."])
def test_unknown_phases_are_refused(name):
    times = PhaseTimes(PHASES)
    times.watch = pytest.fail
    with (
        pytest.raises(KeyError, match=f"phase is '{name}', expected one of tree, tree.sort, near, "),
        times.phase(name),
    ):
        pytest.fail("the body ran")


def test_launches_are_waited_for_on_both_sides():
    clock = Clock()

    def wait():
        clock.now += 1.0

    times = PhaseTimes(PHASES, wait=wait, clock=clock)
    with pytest.raises(ZeroDivisionError), times.phase("near.sort"):
        clock.now += 2.0 / 0
    assert times.time["near"] == times.time["near.sort"] == 1.0  # second wait; the first is for earlier launches
    assert times.apart
    assert not PhaseTimes(PHASES).apart


def test_the_watch_hears_whole_phases():
    times, heard = PhaseTimes(PHASES), []
    times.watch = heard.append
    for name in ("near.sort", "near", "far"):
        with times.phase(name):
            pass
    assert heard == ["near", "near", "far"]


def test_members_share_the_time_that_passes():
    clock = Clock()
    times, heard = PhaseTimes(PHASES, wait=pytest.fail, clock=clock), []
    times.watch = heard.append
    with times.members(2) as members:
        for member in members:
            clock.now = 100.0  # both members work at the same time
            clock.spend(member, near_sort=2.0, near=1.0, far=1.0)
    assert times.time == {"tree": 0.0, "tree.sort": 0.0, "near": 3.0, "near.sort": 2.0, "far": 1.0}
    assert heard == ["near", "near", "far"]  # steps of the first member only


def test_members_that_do_nothing_leave_the_times():
    times = PhaseTimes(PHASES, clock=itertools.count().__next__)
    with times.members(3):
        pass
    assert times.total == 0.0


def test_the_table_has_parts_under_their_phases():
    clock = Clock()
    times = PhaseTimes(PHASES, clock=clock)
    clock.spend(times, near_sort=1.0, near=1.0, far=2.0)
    times.pairs["near"] = 4e9
    lines = times.table().splitlines()
    assert [line[:24].rstrip() for line in lines] == [
        "phase", "trees", "  sorting", "near field", "  sorting", "far field", "total"
    ]  # fmt: skip
    assert lines[3].endswith("2000.00 ms  50.0 %  4.00e+09   2 G/s")
    assert lines[4].endswith("1000.00 ms  25.0 %")
    assert lines[-1].endswith("4000.00 ms")
    assert repr(times) == "<PhaseTimes 4 s>"


def test_seconds_are_those_of_the_wall():
    times = PhaseTimes(PHASES)
    with times.phase("far"):
        time.sleep(0.002)
    assert 0.002 <= times.time["far"] < 1.0
