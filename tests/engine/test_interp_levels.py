"""Reference interpreter: reductions, scans, teams, scratch, races between levels, and orders."""

import itertools

import numpy as np
import pytest

from parki.engine.errors import CheckedFault
from parki.engine.interpreter.launching import run
from parki.engine.tree.parse import parse
from tests.engine.programs.program import write


def kernel(signature, *lines, scratch=""):
    """Return a workunit `w(signature)`, whose body begins at line 5 of ``k.py``."""
    return parse(write(signature, lines, scratch=scratch), name="k.py")


# Atomics, reductions, scans ------------------------------------------------------------------------------------------
def test_atomics_give_the_value_before():
    lines = [
        "a: int = pk.atomic_fetch_add(n, [0], i)",
        "b: int = pk.atomic_fetch_max(n, [1], i)",
        "c: int = pk.atomic_fetch_min(n, [2], -i)",
        "d: int = pk.atomic_fetch_sub(n, [3], 2)",
    ]
    lines += [f"out[{k}][i] = {name}" for k, name in enumerate("abcd")]
    work = kernel("i: int, n: pk.View1D[pk.int32], out: pk.View2D[pk.int32]", *lines)
    n, out = np.array([10, 2, 0, 0], np.int32), np.zeros((4, 4), np.int32)
    run(work, league=4, args={"n": n, "out": out})
    assert n.tolist() == [16, 3, -3, -8]
    assert out.tolist() == [[10, 10, 11, 13], [2, 2, 2, 2], [0, 0, -1, -2], [0, -2, -4, -6]]


def test_atomic_overflow():
    work = kernel("i: int, n: pk.View1D[pk.int32]", "pk.atomic_add(n, [0], 2147483647)")
    with pytest.raises(CheckedFault, match="int32"):
        run(work, league=2, args={"n": np.zeros(1, np.int32)})


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_league_reduction_adds_in_index_order(seed):
    work = kernel("i: int, acc: pk.Acc[pk.double], x: pk.View1D[pk.double]", "acc += x[i]", "acc += 0.25")
    x = np.array([1e16, 1.0, -1e16, 1.0])
    expected = 0.0
    for v in x:
        expected = expected + v + 0.25
    total = run(work, league=4, seed=seed, args={"x": x})
    assert (total, type(total)) == (expected, float)


def test_integer_reduction():
    work = kernel("i: int, acc: pk.Acc[pk.int32], k: int", "if i > 0:", "    acc += k")
    total = run(work, league=4, args={"k": 5})
    assert (total, type(total)) == (15, int)
    assert run(work, league=0, args={"k": 5}) == 0
    with pytest.raises(CheckedFault, match="int32"):
        run(work, league=4, args={"k": 2**30})


@pytest.mark.parametrize("seed", [None, 3])
def test_league_scan(seed):
    lines = ["if last:", "    a[i] = acc", "acc += x[i]", "if last:", "    b[i] = acc"]
    work = kernel(
        "i: int, acc: pk.Acc[pk.int32], last: bool, " + ", ".join(f"{v}: pk.View1D[pk.int32]" for v in "xab"), *lines
    )
    x, a, b = np.array([3, 1, 4, 1], np.int32), np.zeros(4, np.int32), np.zeros(4, np.int32)
    assert run(work, league=4, seed=seed, args={"x": x, "a": a, "b": b}) == 9
    assert (a.tolist(), b.tolist()) == ([0, 3, 4, 8], [3, 4, 8, 9])


# Teams ---------------------------------------------------------------------------------------------------------------
TEAM = [
    "b: int = team.league_rank()",
    "s: pk.ScratchView1D[pk.double] = pk.ScratchView1D(team.team_scratch(0), 2 * n)",
    "scale: pk.double = 1.0",
    "def fill(t: int):",
    "    s[t] = x[b][t] * scale",
    "scale = 2.0",
    "pk.parallel_for(pk.TeamThreadRange(team, n), fill)",
    "scale = 3.0",
    "team.team_barrier()",
    "def row(t: int):",
    "    def part(v: int, acc: pk.Acc[pk.double]):",
    "        acc += s[v] * pk.double(t + 1)",
    "    u: pk.double = pk.parallel_reduce(pk.ThreadVectorRange(team, 1, n), part)",
    "    def put():",
    "        out[b][t] = u",
    "    pk.single(pk.PerThread(team), put)",
    "pk.parallel_for(pk.TeamThreadRange(team, n), row)",
    "def prefix(j: int, acc: pk.Acc[pk.int32], last: bool):",
    "    if last:",
    "        pre[b][j] = acc",
    "    acc += j + 1",
    "total: pk.int32 = pk.parallel_scan(pk.TeamThreadRange(team, n), prefix)",
    "team.team_barrier()",
    "def publish():",
    "    pre[b][n] = total",
    "pk.single(pk.PerTeam(team), publish)",
]


@pytest.mark.parametrize(("team", "seed"), [(1, None), (1, 5), (3, 1), (8, 2)])
def test_a_team_kernel(team, seed):
    signature = (
        "team: pk.TeamMember, x: pk.View2D[pk.double], out: pk.View2D[pk.double], pre: pk.View2D[pk.int32], n: int"
    )
    work = kernel(signature, *TEAM, scratch="(float, lambda p: 2 * p.n)")
    n = 4
    x, out, pre = np.arange(8.0).reshape(2, n), np.zeros((2, n)), np.zeros((2, n + 1), np.int32)
    assert run(work, league=2, team=team, seed=seed, args={"x": x, "out": out, "pre": pre, "n": n}) is None
    # bodies capture outer locals as of the call: scale is 2
    assert np.array_equal(out, 2.0 * x[:, 1:].sum(axis=1)[:, None] * np.arange(1, n + 1))
    assert pre.tolist() == [[0, 1, 3, 6, 10]] * 2


def test_scratch_starts_undefined_and_has_bounds():
    body = [
        "s: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), n)",
        "def f(t: int):",
        "    s[t + k] = t",
        "pk.parallel_for(pk.TeamThreadRange(team, n), f)",
        "team.team_barrier()",
        "def g(t: int):",
        "    x[t] = s[t]",
        "pk.parallel_for(pk.TeamThreadRange(team, n), g)",
    ]
    work = kernel(
        "team: pk.TeamMember, x: pk.View1D[pk.int32], n: int, k: int",
        *body,
        scratch="(int, lambda p: p.n)",
    )
    x = np.zeros(3, np.int32)
    run(work, league=1, args={"x": x, "n": 3, "k": 0})
    assert x.tolist() == [0, 1, 2]
    with pytest.raises(CheckedFault, match=r"index 3 of view 's' dim 0 is outside 0..2"):
        run(work, league=1, args={"x": x, "n": 3, "k": 1})
    with pytest.raises(CheckedFault, match="negative size -1"):
        run(work, league=1, args={"x": x, "n": -1, "k": 0})
    partial = [x.replace("team, n), f", "team, 1, n), f") for x in body]
    work = kernel("team: pk.TeamMember, x: pk.View1D[pk.int32], n: int, k: int", *partial)
    with pytest.raises(CheckedFault, match=r"k.py:11: scratch view 's' is read at 0 before it was written"):
        run(work, league=1, args={"x": x, "n": 3, "k": 0})


@pytest.mark.parametrize(("place", "code"), [("vector", "[t]"), ("team", "[v]")])
def test_races_of_both_levels(place, code):
    body = [
        "def f(t: int):",
        "    def g(v: int):",
        f"        x{code} = v",
        "    pk.parallel_for(pk.ThreadVectorRange(team, 3), g)",
        "pk.parallel_for(pk.TeamThreadRange(team, 3), f)",
    ]
    work = kernel("team: pk.TeamMember, x: pk.View1D[pk.int32]", *body)
    with pytest.raises(CheckedFault, match=r"race on view 'x' at .* by another iteration of this range"):
        run(work, league=1, args={"x": np.zeros(3, np.int32)})


def test_a_missing_barrier_is_a_race():
    body = [
        "def f(t: int):",
        "    x[t] = t",
        "def g(t: int):",
        "    y[t] = x[3 - t]",
        "for r in range(2):",
        "    pk.parallel_for(pk.TeamThreadRange(team, 4), f)",
        "    team.team_barrier()",
        "    pk.parallel_for(pk.TeamThreadRange(team, 4), g)",
        "    team.team_barrier()",
    ]
    signature = "team: pk.TeamMember, x: pk.View1D[pk.int32], y: pk.View1D[pk.int32]"
    y = np.zeros(4, np.int32)
    run(kernel(signature, *body), league=1, args={"x": np.zeros(4, np.int32), "y": y})
    assert y.tolist() == [3, 2, 1, 0]
    for line in (6, 8):
        work = kernel(signature, *(x for k, x in enumerate(body) if k != line))
        with pytest.raises(CheckedFault, match="another team-level construct with no barrier between"):
            run(work, league=1, args={"x": np.zeros(4, np.int32), "y": y})


def test_orders_are_those_of_a_team():
    """Check the order of iterations: ascending within each thread, mixed between threads."""
    body = [
        "def f(t: int):",
        "    a: int = pk.atomic_fetch_add(n, [0], 1)",
        "    x[t] = a",
        "pk.parallel_for(pk.TeamThreadRange(team, 8), f)",
    ]
    work = kernel("team: pk.TeamMember, x: pk.View1D[pk.int32], n: pk.View1D[pk.int32]", *body)
    seen = set()
    for team, seed in itertools.product((1, 3, 8), range(5)):
        x = np.zeros(8, np.int32)
        run(work, league=1, team=team, seed=seed, args={"x": x, "n": np.zeros(1, np.int32)})
        assert sorted(x) == list(range(8))
        assert all(np.all(np.diff(x[k::team]) > 0) for k in range(team))
        seen.add((team, tuple(x)))
    assert len([s for s in seen if s[0] == 1]) == 1
    assert len([s for s in seen if s[0] == 3]) > 1


def test_league_order_is_shuffled():
    work = kernel(
        "i: int, x: pk.View1D[pk.int32], n: pk.View1D[pk.int32]", "a: int = pk.atomic_fetch_add(n, [0], 1)", "x[i] = a"
    )
    orders = []
    for seed in (None, 1, 1, 2):
        x = np.zeros(8, np.int32)
        run(work, league=8, seed=seed, args={"x": x, "n": np.zeros(1, np.int32)})
        orders.append(x.tolist())
    assert orders[0] == list(range(8))
    assert orders[1] == orders[2]
    assert orders[1] not in (orders[0], orders[3])
