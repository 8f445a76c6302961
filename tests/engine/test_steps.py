"""Lists of steps: handles, their parts and spans, runs in every space, blocks, lanes, numbers, errors."""

import threading
import time

import numpy as np
import pytest

from parki import engine
from parki.engine import LaunchError
from parki.engine.run import spaces
from parki.engine.steps import (
    Block,
    Blocks,
    Call,
    Index,
    Number,
    Step,
    Steps,
    argument,
    constant,
    glue,
    handles,
    result,
    scratch,
    state,
)
from parki.engine.steps import workers as crews
from parki.timing import PhaseTimes

SPACES = ("Serial", "OpenMP", "GpuSim")


def gather(x, order, out, phase="sort", lane=None):
    unit = engine.kernel("cells", "gather_points", real="double")
    return Step(phase, unit, out.shape[1], {"x": x, "order": order, "out": out}, lane=lane)


# Handles -------------------------------------------------------------------------------------------------------------
def parts(a):
    """Return parts of an array of shape (4, 6, 8), of a handle or of NumPy."""
    return [a, a[1], a[1:3], a[..., 2:5], a[:, 3], a[2, 1:4, ::2], a.T, a[1:3, 2].T, a[1:1], a[-1], a[0:4:3]]


def test_parts_are_those_of_arrays(rng):
    whole = rng.random((4, 6, 8))
    for handle, array in zip(parts(state("a", whole.shape, float)), parts(whole), strict=True):
        assert (handle.shape, handle.ndim, handle.size) == (array.shape, array.ndim, array.size)
        assert handle.layout.strides == array.strides
        assert np.array_equal(handle.of(whole), array)
        assert np.shares_memory(handle.of(whole), whole) or not handle.size


def test_spans():
    whole, handle = np.zeros((4, 6, 8)), state("a", (4, 6, 8), float)
    for some, array in zip(parts(handle), parts(whole), strict=True):
        if not some.size:
            continue
        low, high = np.lib.array_utils.byte_bounds(array)
        start = whole.__array_interface__["data"][0]
        assert some.extent == (low - start, high - start)


def test_views_are_bytes_of_a_whole(rng):
    whole, handle = rng.random((6, 4)), state("a", (6, 4), float)
    some = handle[2:4].view(16, (2, 3), np.float64)
    assert np.array_equal(some.of(whole), whole[2:4].ravel()[2:8].reshape(2, 3))
    assert some.extent == (64 + 16, 64 + 64)
    numbers = handle.view(8, (5,), np.complex128)
    assert np.array_equal(numbers.of(whole), whole.ravel()[1:11].view(complex))
    assert np.array_equal(handle[1:].reshape(4, 5).of(whole), whole[1:].reshape(4, 5))
    with pytest.raises(ValueError, match="a has gaps; expected an array without"):
        handle[:, :2].reshape(12)
    with pytest.raises(ValueError, match="a has 192 bytes; expected at least 200"):
        handle.view(8, (24,), float)
    with pytest.raises(ValueError, match="a has 192 bytes; expected as many"):
        handle.reshape(23)
    with pytest.raises(TypeError, match="expected whole numbers, slices or an ellipsis"):
        handle[np.array([1])]


def test_constants_have_strides_of_their_own(rng):
    values = rng.random((5, 3)).T
    assert constant("c", values).layout.strides == values.strides
    assert constant("c", values)[1].extent == (8, 8 + 4 * 24 + 8)


# Lists ---------------------------------------------------------------------------------------------------------------
def chain(n):
    """Return two gathers: from an argument to a state, and from the state to a result."""
    x, u, between = argument("x", (3, n), float), result("u", (3, n), float), state("between", (3, n), float)
    order = constant("order", np.arange(n, dtype=np.int32)[::-1].copy())
    swap = constant("swap", np.roll(np.arange(n, dtype=np.int32), 1))
    return x, u, Steps([gather(x, order, between), gather(between, swap, u, "back")])


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("turned", [False, True])
def test_a_list_runs_with_what_it_is_bound_to(space, turned, rng):
    x, u, steps = chain(20)
    placed = steps.place(spaces.get(space))
    for _ in range(3):
        given = rng.random((20, 3)).T if turned else rng.random((3, 20))
        out = np.full((20, 3), np.nan).T if turned else np.full((3, 20), np.nan)
        placed.run({x: given, u: out})
        assert np.array_equal(out, given[:, np.roll(np.arange(20)[::-1], 1)])
    assert given.flags.c_contiguous is not turned


def test_a_placed_list_keeps_no_array_of_a_run(rng):
    x, u, steps = chain(9)
    placed = steps.place(spaces.get("Serial"))
    given, out = rng.random((3, 9)), np.zeros((3, 9))
    placed.run({x: given, u: out})
    assert not any(np.shares_memory(a, b) for a in placed.arrays for b in (given, out))


@pytest.mark.parametrize("wrong", [None, np.zeros((3, 8)), np.zeros((3, 9), np.float32)])
def test_what_is_bound_must_fit(wrong):
    x, u, steps = chain(9)
    bound = {u: np.zeros((3, 9))} | ({} if wrong is None else {x: wrong})
    with pytest.raises(LaunchError, match=r"argument 'x' is bound to .*, expected one of \(3, 9\) and float64"):
        steps.place(spaces.get("Serial")).run(bound)


def test_units_are_every_launch_once():
    _, u, steps = chain(9)
    layouts = {"x": "C", "order": "C", "out": "C"}
    assert steps.units() == [(engine.kernel("cells", "gather_points", real="double"), layouts, None)]
    other = Steps([gather(constant("y", np.zeros((9, 3)).T), steps.steps[0].args["order"], u)])
    assert other.units()[0][1] == {"x": "F", "order": "C", "out": "C"}


def test_units_of_calls_are_compiled_with_those_of_steps():
    _, u, steps = chain(9)
    unit = engine.kernel("cells", "chunk_place")
    own = unit, unit.default_layouts(), 64
    call = Call("sort", lambda context, a: None, [u], units=[own, own])
    assert Steps([call, *steps]).units() == [own, *steps.units()]
    inside = Steps([Blocks([(lambda workers: [Block()], [call])])])
    assert inside.units() == [own]


@pytest.mark.parametrize("space", ["Serial", "GpuSim"])
def test_what_calls_launch_is_there_before_the_first_run(space, monkeypatch):
    unit = engine.kernel("glue", "fill", real="float")
    monkeypatch.setattr(unit, "objects", {})
    out, before = state("out", (4,), np.float32, zero=False), []

    def function(context, a):
        before.append(set(unit.objects))
        engine.parallel_for(engine.RangePolicy(context.space, len(a)), unit, out=a, value=2.0)

    call = Call("a", function, [], [out], units=[(unit, unit.default_layouts(), None)])
    placed = Steps([call]).place(spaces.get(space))
    placed.run()
    assert before[0]
    assert before[0] == set(unit.objects)
    assert (placed[out] == 2).all()


def test_memory_is_what_a_list_has_of_its_own():
    _, _, steps = chain(1000)
    expected = 3 * 8000 + 2 * 4000
    assert steps.nbytes() == expected
    held = steps.place(spaces.get("Serial")).memory
    assert expected <= held <= expected + 2000


def test_names_are_those_of_the_workunit():
    x, u, _ = chain(9)
    unit = engine.kernel("cells", "gather_points", real="double")
    with pytest.raises(LaunchError, match=r"missing arguments \['order'\], unknown arguments \['to'\]"):
        Step("sort", unit, 9, {"x": x, "to": 1, "out": u})
    with pytest.raises(ValueError, match="lane is 'middle'; expected None or one of 'near', 'far'"):
        gather(x, constant("o", np.zeros(9, np.int32)), u, lane="middle")
    with pytest.raises(ValueError, match="role is 'input'; expected one of"):
        handles.Handle("a", (1,), float, "input")


def test_what_a_step_reads_and_writes():
    _, _, steps = chain(9)
    assert [a.name for a in steps.steps[0].reads] == ["x", "order"]
    assert [a.name for a in steps.steps[0].writes] == ["between"]
    assert {a.name for a in steps.handles} == {"x", "u", "between", "order", "swap"}


def test_a_constant_may_come_when_a_list_is_placed(rng):
    x, u = constant("x", rng.random((3, 5))), result("u", (3, 5), float)
    order = handles.placed("order", (5,), np.int32)
    steps, out = Steps([gather(x, order, u)]), np.zeros((3, 5))
    for space in SPACES:
        where = rng.permutation(5).astype(np.int32)
        placed = steps.place(spaces.get(space), {order: where})
        placed.run({u: out})
        assert np.array_equal(out, x.values[:, where])
        assert placed[order] is where  # used in place
    with pytest.raises(LaunchError, match="constant 'order' is bound to nothing, expected one of"):
        steps.place(spaces.get("Serial"))
    with pytest.raises(LaunchError, match=r"constant 'order' is bound to an array of .* int64, expected one of"):
        steps.place(spaces.get("Serial"), {order: np.zeros(5, np.int64)})


def test_first_steps_run_once():
    a, u = state("a", (2, 3), float), result("u", (2, 3), float)
    steps = Steps([*glue.copy("a", a, u), *glue.add("a", u, a)], first=glue.fill("a", a[1], 4.0))
    placed, out = steps.place(spaces.get("Serial")), np.zeros((2, 3))
    for expected in (4, 8, 16):
        placed.run({u: out})
        assert out.tolist() == [[0] * 3, [expected] * 3]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("space", SPACES)
def test_glue(space, dtype, rng, monkeypatch):
    monkeypatch.setattr(glue, "MAX_LEAGUE", 7)  # several launches per array
    a, other = rng.random((4, 5)).astype(dtype), rng.random((4, 5)).astype(np.float32)
    order = rng.permutation(5).astype(np.int32)
    at = constant("order", order)
    whole, sums, there, back = (state(name, (4, 5), dtype, zero=False) for name in ("whole", "sums", "there", "back"))
    rows = state("rows", (5, 6), dtype)
    steps = Steps([
        *glue.fill("a", whole, 3.0),
        *glue.copy("a", constant("x", other), sums), *glue.add("a", constant("a", a), sums),
        glue.gather("a", constant("a", a), at, there), glue.scatter("a", there, at, back),
        glue.gather_columns("a", constant("a", a), at, rows, 1),
    ])  # fmt: skip
    placed = steps.place(spaces.get(space))
    placed.run()
    assert (placed[whole] == 3).all()
    assert np.array_equal(placed[sums], other.astype(dtype) + a)
    assert np.array_equal(placed[there], a[:, order])
    assert np.array_equal(placed[back], a)
    assert np.array_equal(placed[rows][:, 1:5], a[:, order].T)
    assert not placed[rows][:, [0, 5]].any()
    with pytest.raises(ValueError, match=r"x has shape \(2, 5\); expected that of whole, \(4, 5\)"):
        glue.copy("a", constant("x", a[:2]), whole)


def test_sums_are_rounded_once(rng):
    a, b = rng.random(1000), rng.random(1000).astype(np.float32)
    u = state("u", (1000,), np.float32)
    placed = Steps([*glue.copy("a", constant("b", b), u), *glue.add("a", constant("a", a), u)]).place(
        spaces.get("Serial")
    )
    placed.run()
    assert np.array_equal(placed[u], (b.astype(float) + a).astype(np.float32))
    assert not np.array_equal(placed[u], b + a.astype(np.float32))


def test_numbers_are_bound(rng):
    n, number = 4, Number("scale", 1.0)
    unit = engine.kernel("cells", "cell_index", real="double")
    cell = result("cell", (n,), np.int32)
    x = constant("x", rng.random((3, n)))
    steps = Steps([Step("a", unit, n, {"x": x, "cell": cell, "n0": 100, "n1": 1, "n2": 1, "s0": number, "s1": 1.0,
                                       "s2": 1.0})])  # fmt: skip
    placed, found = steps.place(spaces.get("Serial")), np.zeros(n, np.int32)
    placed.run({cell: found, number: 10.0})
    assert found.tolist() == (x.values[0] * 10).astype(int).tolist()
    placed.run({cell: found})
    assert found.tolist() == [0] * n


def test_arrays_that_overlap_are_refused_in_each_run(rng):
    """Check overlaps again after a run with other arrays, and overlaps with the list's own arrays."""
    n, unit, a = 4, engine.kernel("cells", "gather_points", real="double"), rng.random((3, 4))
    x, out, order = (
        argument("x", (3, n), float),
        result("out", (3, n), float),
        constant("order", np.int32([3, 2, 1, 0])),
    )
    placed, b = Steps([Step("a", unit, n, {"x": x, "order": order, "out": out})]).place(spaces.get("Serial")), a.copy()
    for _ in range(2):
        placed.run({x: a, out: b})
        assert np.array_equal(b, a[:, ::-1])
        with pytest.raises(LaunchError, match="'out' is written and overlaps 'x'"):
            placed.run({x: a, out: a})
    x, u, steps = chain(n)
    (own,) = (handle for handle in steps.handles if handle.name == "between")
    placed = steps.place(spaces.get("Serial"))
    with pytest.raises(LaunchError, match="'out' is written and overlaps 'x'"):
        placed.run({x: a, u: placed[own]})


def test_scratch_of_calls_alone_is_made_by_the_first_run():
    buffer, out, seen = scratch("buffer", (100,), float), state("out", (100,), float), []

    def call(context, into, buffer):
        seen.append(buffer)
        buffer[...] = 2.0
        into += buffer

    steps = Steps([Call("a", call, [], [out, buffer[:]])])
    placed = steps.place(spaces.get("Serial"))
    assert [a.shape for a in placed.arrays] == [(100,)]
    assert steps.nbytes() == placed.memory == 1600  # memory of both arrays
    for turn in (1, 2):
        placed.run()
        assert (placed[out] == 2.0 * turn).all()
        assert placed.memory == 1600
    assert np.shares_memory(*seen)


# Blocks, calls and times ---------------------------------------------------------------------------------------------
PHASES = {"sort": "sort", "back": "back", "add": "add"}


def blocked(n, count, barrier=None):
    """Return steps that copy each block of a grid to scratch, double it there, and copy it back."""
    grid, buffer = state("grid", (count, n), float), scratch("buffer", (n,), float)

    def load(context, a, b):
        if barrier is not None:
            barrier.wait(timeout=60)
        b[...] = a[context.block["first"]] + context.block["plus"]

    def store(context, b, a):
        a[context.block["first"]] = 2 * b

    body = [
        Call("sort", load, [grid], [buffer], threadsafe=True),
        Call("back", store, [buffer], [grid], threadsafe=True),
    ]
    blocks = Blocks([(lambda workers: [Block(first=i, plus=i) for i in range(count)], body)])
    return grid, Steps([blocks, blocks], workers=lambda space: (2, 1))


@pytest.mark.parametrize("space", ["Serial", "OpenMP"])
def test_blocks_are_done_once_each(space):
    grid, steps = blocked(5, 7)
    placed = steps.place(spaces.get(space))
    placed.run()
    first = 2 * np.arange(7.0)
    assert np.array_equal(placed[grid], np.tile(2 * (first + np.arange(7))[:, None], 5))
    assert placed.size == 2


def test_workers_work_beside_each_other():
    _, steps = blocked(5, 2, threading.Barrier(2))  # a single worker would wait at the barrier for ever
    steps.place(spaces.get("Serial")).run()


def test_calls_that_are_not_safe_have_one_worker():
    grid, steps = blocked(5, 3)
    body = [Call("sort", lambda context, a: a.__iadd__(1), [], [grid])]
    steps = Steps([Blocks([(lambda workers: [Block()] * 3, body)])], workers=lambda space: (2, 1))
    placed = steps.place(spaces.get("Serial"))
    placed.run()
    assert placed.size == 1
    assert (placed[grid] == 3).all()


def test_the_numbers_of_a_block_are_those_of_its_steps():
    n, unit = 12, engine.kernel("cells", "chunk_place")
    cell = constant("cell", np.zeros(n, np.int32))
    at, into = state("at", (3, 1), np.int32), state("into", (n,), np.int32)
    body = [Step("sort", unit, 3, {"cell": cell, "at": at, "order": into, "n": Index("n"), "chunk": 4})]
    steps = Steps([Blocks([(lambda workers: [Block(n=0), Block(n=2)], body)])])
    placed = steps.place(spaces.get("Serial"))
    placed.run()
    assert placed[at][:, 0].tolist() == [2, 0, 0]


def test_times_are_those_of_phases():
    x, u, steps = chain(50)
    times = PhaseTimes(PHASES)
    steps.place(spaces.get("Serial")).run({x: np.zeros((3, 50)), u: np.zeros((3, 50))}, times)
    assert times.time["sort"] > 0
    assert times.time["back"] > 0
    assert times.time["add"] == 0


def test_times_of_workers_are_shares_of_the_time_that_passed():
    _, steps = blocked(100, 50)
    times, began = PhaseTimes(PHASES), time.perf_counter()
    steps.place(spaces.get("Serial")).run(times=times)
    passed = time.perf_counter() - began
    assert 0 < times.time["sort"] + times.time["back"] <= passed


def test_an_error_in_a_block_ends_the_run():
    def fail(context):
        raise ZeroDivisionError("here")

    before = threading.active_count()
    body = [Call("sort", fail, threadsafe=True)]
    steps = Steps([Blocks([(lambda workers: [Block()] * 9, body)])], workers=lambda space: (3, 1))
    with pytest.raises(ZeroDivisionError, match="here"):
        steps.place(spaces.get("Serial")).run()
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("threads", "nbytes", "expected"),
    [(1, 1 << 30, (1, 1)), (4, 0, (1, 1)), (4, 3 << 20, (3, 1)), (16, 1 << 30, (8, 2)), (20, 1 << 30, (6, 3))],
)
def test_workers_and_their_threads(threads, nbytes, expected):
    assert crews.share(threads, nbytes) == expected
