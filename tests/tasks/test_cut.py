"""Lists of steps as tasks: blocks, joins, memory of workers, faults."""

import numpy as np
import pytest

from parki import engine
from parki.engine import LaunchError
from parki.engine.run.spaces import Space
from parki.engine.steps import Cut, RowBlocks, RowByRow, Step, Steps, Touched, argument, glue, result, scratch, state
from parki.tasks.cut import JOIN, cut
from parki.tasks.scheduled import Scheduled
from parki.tasks.sizes import TaskSizes

SPACE = Space("OpenMP", threads=2)
N = 30
THREES, HALVES = RowBlocks(np.array([0, 10, 20, 30])), RowBlocks(np.array([0, 15, 30]))
REVERSED = '''import pykokkos as pk
real = pk.double


@pk.workunit(scratch=[(real, lambda p: p.asked)])
def turned(team: pk.TeamMember, x: pk.View1D[real], n: int, asked: int):
    """Reverse each run of n numbers, by scratch."""
    first: int = team.league_rank() * n
    s: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), n)

    def keep(i: int):
        s[i] = x[first + i]

    pk.parallel_for(pk.TeamThreadRange(team, n), keep)
    team.team_barrier()

    def store(i: int):
        x[first + i] = s[n - 1 - i]

    pk.parallel_for(pk.TeamThreadRange(team, n), store)
'''


def along(step, kind, blocks, reads=(), writes=()):
    """Return a step that is cut along the blocks of the array that it writes, or of the one that it reads."""
    return Step(
        step.phase, step.unit, step.items, step.args,
        cut=Cut(kind, 1.0, [RowByRow(a, blocks) for a in reads], [RowByRow(a, blocks) for a in writes],
                RowByRow(writes[0], blocks) if writes else RowByRow(reads[0], blocks)),
    )  # fmt: skip


def doubled(second):
    """Return steps from x to twice x: a copy along thirds, an addition along other blocks, and the way back."""
    x, y = argument("x", (N,), float), result("y", (N,), float)
    a, b = state("a", (N,), float, zero=False), state("b", (N,), float, zero=False)
    (first,), (again,), (more,), (out,) = (glue.copy("p", x, a), glue.copy("p", a, b), glue.add("p", a, b),
                                           glue.copy("p", b, y))  # fmt: skip
    steps = [
        along(first, "IN", THREES, writes=[a]), along(again, "COPY", THREES, reads=[a], writes=[b]),
        along(more, "ADD", second, reads=[a], writes=[b]), along(out, "OUT", second, reads=[b]),
    ]  # fmt: skip
    return x, y, Steps(steps)


@pytest.mark.parametrize("second", [THREES, HALVES])
def test_tasks_meet_in_blocks(second, rng):
    x, y, steps = doubled(second)
    graph = cut(list(steps)).graph
    kinds = [graph.kinds[kind] for kind in graph.kind]
    assert kinds.count("IN") == 3
    assert kinds.count("OUT") == len(second)
    assert kinds.count(JOIN) == (0 if second is THREES else 2)  # one for each array that is used in other blocks
    placed = Scheduled(steps, SPACE)
    for _ in range(3):
        given, out = rng.random(N), np.empty(N)
        placed.run({x: given, y: out})
        np.testing.assert_array_equal(out, 2 * given)
    if second is THREES:  # each third by itself
        assert all(len(graph.before[task]) <= 2 for task in range(len(graph)))
        assert graph.critical_path(np.ones(len(graph))) == 4


def test_sizes_of_data_and_work():
    _, _, steps = doubled(HALVES)
    graph = cut(list(steps)).graph
    sizes = {name: graph.nbytes[graph.writes[k][0]] for k, name in ((0, "a"), (3, "b"))}
    assert sizes == {"a": 80, "b": 80}
    assert graph.work[:3].tolist() == [10, 10, 10]
    assert graph.items[:3].tolist() == [10, 10, 10]


def test_a_step_without_a_cut_is_refused():
    x, y = argument("x", (N,), float), result("y", (N,), float)
    with pytest.raises(ValueError, match=r"copy .* in phase 'p' has no cut; expected one of each step"):
        cut(glue.copy("p", x, y))
    two = glue.copy("p", x, y) * 2
    how = Cut("IN", 1.0, (), [RowByRow(y, THREES)], RowByRow(y, THREES))
    with pytest.raises(ValueError, match="2 steps have one cut along rows"):
        cut([Step(step.phase, step.unit, step.items, step.args, cut=how) for step in two])


def groups(folder, asked, n=8, runs=40):
    """Return steps in tasks of three: a copy of a run to a worker's memory, its reversal there, and a copy back."""
    (folder / "turned.py").write_text(REVERSED)
    unit = engine.kernel(folder / "turned.py", "turned")
    x, room = state("x", (runs * n,), float), scratch("room", (n,), float)
    blocks = RowBlocks(np.arange(runs + 1) * n)
    y, steps = result("y", (runs * n,), float), []
    for k in range(runs):
        part = x[k * n : (k + 1) * n]
        rows = [Touched.each(x, blocks, k * n, n)]
        rows = [Touched(x, blocks, rows[0].low, rows[0].high, np.array([0, 1]))]
        how = Cut("TURN", 1.0, rows, rows)
        (into,), (back,) = glue.copy("p", part, room), glue.copy("p", room, part)
        turn = Step("p", unit, 1, {"x": room, "n": n, "asked": asked if k == 7 else n})
        steps += [Step(s.phase, s.unit, s.items, s.args, cut=how) for s in (into, turn, back)]
    (out,) = glue.copy("p", x, y)
    steps.append(
        Step("p", out.unit, out.items, out.args, cut=Cut("OUT", 1.0, [RowByRow(x, blocks)], (), RowByRow(x, blocks)))
    )
    return x, y, Steps(steps)


def test_workers_have_rooms_and_scratch_of_their_own(tmp_path, rng):
    x, y, steps = groups(tmp_path, 8)
    placed, out = Scheduled(steps, Space("OpenMP", threads=4)), np.empty(320)
    values = rng.random(320)
    for _ in range(5):
        placed[x][:] = values
        placed.run({y: out})
        np.testing.assert_array_equal(out, values.reshape(-1, 8)[:, ::-1].ravel())


def test_the_fault_of_a_kernel_names_its_task(tmp_path):
    _, y, steps = groups(tmp_path, 5)
    placed, out = Scheduled(steps, SPACE), np.empty(320)
    for _ in range(3):
        with pytest.raises(
            LaunchError, match="turned declares 64 bytes of scratch, its decorator asks for 48"
        ) as found:
            placed.run({y: out})
        assert found.value.__notes__ == ["in task TURN 7, one of 80"]


def test_bound_arrays_are_checked(rng):
    x, y, steps = doubled(THREES)
    placed = Scheduled(steps, SPACE)
    with pytest.raises(LaunchError, match="result 'y' is bound to nothing"):
        placed.run({x: rng.random(N)})
    with pytest.raises(LaunchError, match=r"argument 'x' is bound to an array of \(3,\)"):
        placed.run({x: rng.random(3), y: np.empty(N)})
    with pytest.raises(NotImplementedError, match="schedule='phases'"):
        placed.again("p")


def test_sizes_follow_the_units():
    assert [TaskSizes.of(cores, 1900).octets for cores in (1, 2, 16, 64)] == [64, 64, 14, 8]
    assert TaskSizes.of(2, 10).octets == 8
    assert [TaskSizes.of(16, octets, 1).octets for octets in (1900, 19000, 10**6)] == [32, 148, 256]
    assert [TaskSizes.of(16, 1900, devices).parts(1e9, 1e4, 8) for devices in (0, 1)] == [10**5, 64 * 17]
    assert TaskSizes.of(16, 1900).parts(1.0, 1e4, 8) == 8 * 16
