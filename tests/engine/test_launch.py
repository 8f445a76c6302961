"""Launches: accepted arguments, layouts, scratch, reductions, scans, threads, repeated runs."""

import os
import timeit
import warnings
from dataclasses import replace

import numpy as np
import pytest

from parki import engine
from parki.engine import LaunchError, RangePolicy, TeamPolicy
from parki.engine.run import fit, spaces
from parki.engine.run.launch import Prepared
from parki.engine.run.spaces import Space
from tests.engine.launch_kernels import KERNELS


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """Return a function that gives a workunit by its name."""
    path = tmp_path_factory.mktemp("kernels") / "mine.py"
    path.write_text(KERNELS)
    return lambda name, **slots: engine.kernel(path, name, **slots)


def rows(x, y, **changes):
    return {"x": x, "y": y, "a": 1.5, "n": x.shape[1], "flag": False} | changes


def refused(match, call, *args, **kwargs):
    with pytest.raises(LaunchError, match=match):
        call(*args, **kwargs)


# Arguments -----------------------------------------------------------------------------------------------------------
def test_names(kernels):
    x, y = np.ones((3, 4)), np.zeros((3, 4))
    args = rows(x, y)
    refused(r"scale: missing arguments \['a'\], unknown arguments \['b'\]", engine.prepare, RangePolicy("Serial", 3),
            kernels("scale"), **{k: v for k, v in args.items() if k != "a"}, b=1.0)  # fmt: skip
    prepared = engine.prepare(RangePolicy("Serial", 3), kernels("scale"), **args)
    refused("scale has no argument 'z'", prepared.set, z=1)


def test_names_of_our_own_parameters(kernels):
    x, y = np.zeros(3), np.ones(3)
    engine.parallel_for(RangePolicy("Serial", 3), kernels("named"), policy=x, workunit=y)
    assert list(x) == [1, 1, 1]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (
            {"x": np.ones((3, 4), np.float32)},
            r"'x' has 2 dimension\(s\) of float32, expected 2 dimension\(s\) of float64",
        ),
        ({"x": np.ones((3, 4), ">f8")}, "'x' has 2"),
        ({"x": np.ones(12)}, "'x' has 1"),
        ({"x": [[1.0]]}, "'x' is a list, expected a NumPy array"),
        ({"x": np.ones((3, 4))[::-1]}, "'x' has strides"),
        ({"x": np.frombuffer(bytes(12 * 8 + 1), np.uint8)[1:].view(np.float64).reshape(3, 4)}, "'x' has strides"),
        ({"y": np.broadcast_to(0.0, (3, 4))}, "'y' is written, but the array is read-only"),
        ({"y": np.lib.stride_tricks.as_strided(np.zeros(4), (3, 4), (0, 8))}, "'y' is written, but elements"),
        ({"a": "1"}, "'a' is '1', expected a value of type double"),
        ({"a": True}, "'a' is True"),
        ({"a": 1j}, "'a' is 1j"),
        ({"n": 2.0}, "'n' is 2.0, expected a value of type int32"),
        ({"n": True}, "'n' is True"),
        ({"n": 2**31}, "'n' is 2147483648"),
        ({"n": -(2**31) - 1}, "'n' is -2147483649"),
        ({"flag": 1}, "'flag' is 1, expected a value of type bool"),
    ],
)
def test_arguments_that_do_not_fit(kernels, changes, match):
    args = rows(np.ones((3, 4)), np.zeros((3, 4)))
    refused(match, engine.prepare, RangePolicy("Serial", 3), kernels("scale"), **(args | changes))
    prepared = engine.prepare(RangePolicy("Serial", 3), kernels("scale"), **args)
    refused(match, prepared.set, **changes)
    prepared.run()
    np.testing.assert_array_equal(args["y"], 1.5)


def test_numbers_of_numpy_and_all_element_types(kernels):
    x, k = np.zeros(5), np.arange(5, dtype=np.int32) - 2
    w, b = np.zeros(5, np.int64), np.array([0, 1, 127, 128, 255], np.uint8)
    engine.parallel_for(RangePolicy(None, np.int64(5)), kernels("counted"), x=x, k=k, w=w, b=b, n=np.int64(2**40))
    np.testing.assert_array_equal(x, k + b.astype(float))
    np.testing.assert_array_equal(w, 2**40)
    y = np.zeros((3, 4))
    args = rows(np.ones((3, 4)), y, a=np.float32(0.5), n=np.int32(4), flag=np.True_)
    engine.parallel_for(RangePolicy("Serial", 3), kernels("scale"), **args)
    np.testing.assert_array_equal(y, 1.0)


def test_read_only_arrays_are_read(kernels):
    x, y = np.ones((3, 4)), np.zeros((3, 4))
    x.flags.writeable = False
    engine.parallel_for(RangePolicy("Serial", 3), kernels("scale"), **rows(x, y))
    np.testing.assert_array_equal(y, 1.5)


def test_overlap(kernels):
    base = np.ones((4, 4))
    for x, y in ((base, base), (base[:3], base[1:]), (base[:, ::2], base[:, 1:3])):
        refused("'y' is written and overlaps 'x'", engine.prepare, RangePolicy("Serial", len(y)), kernels("scale"),
                **rows(x, y))  # fmt: skip
    # interleaved, but without a common element
    engine.parallel_for(RangePolicy("Serial", 4), kernels("scale"), **rows(base[:, ::2], base[:, 1::2]))
    np.testing.assert_array_equal(base, [[1, 1.5, 1, 1.5]] * 4)
    prepared = engine.prepare(RangePolicy("Serial", 4), kernels("scale"), **rows(base, np.zeros((4, 4))))
    refused("overlaps", prepared.set, y=base)


def test_overlap_of_replaced_arrays(kernels):
    """Check overlaps after either array of a pair is replaced; a released array no longer counts."""
    base, x, y = np.ones((5, 4)), np.ones((4, 4)), np.zeros((4, 4))
    prepared = engine.prepare(RangePolicy("Serial", 4), kernels("scale"), **rows(x, y))
    refused("'y' is written and overlaps 'x'", prepared.set, x=y)
    prepared.set(y=base[1:])
    refused("'y' is written and overlaps 'x'", prepared.set, x=base[:4])
    refused("'y' is written and overlaps 'x'", prepared.set, x=y, y=y)
    prepared.run()
    np.testing.assert_array_equal(base[1:], 1.5)  # the refused calls changed nothing
    prepared.release("y")
    refused(r"scale: \['y'\] were released", prepared.run)
    prepared.set(x=base[:4])
    refused("'y' is written and overlaps 'x'", prepared.set, y=base[1:])
    prepared.set(y=y)
    prepared.run()
    np.testing.assert_array_equal(y[1:], 2.25)


def test_only_pairs_with_a_replaced_array_are_compared(kernels, monkeypatch):
    x, y = np.ones((3, 4)), np.zeros((3, 4))
    prepared, compared = engine.prepare(RangePolicy("Serial", 3), kernels("scale"), **rows(x, y)), []
    monkeypatch.setattr(fit, "shared_memory", lambda a, b: compared.append((a, b)))
    prepared.set(a=2.0, flag=True)
    assert compared == []
    prepared.set(x=x)
    ((a, b),) = compared
    assert a is y
    assert b is x


LAYOUTS = {
    "C": lambda a: a.copy(order="C"),
    "F": lambda a: a.copy(order="F"),
    "rows apart": lambda a: np.repeat(a, 2, axis=0)[::2],
    "strided": lambda a: np.repeat(a, 3, axis=1)[:, ::3],
    "one repeated row": lambda a: np.broadcast_to(a[0], a.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("written", ["C", "F", "strided"])
def test_layouts(kernels, layout, written):
    values = np.arange(19.0 * 5).reshape(19, 5)
    x, y = LAYOUTS[layout](values), LAYOUTS[written](np.zeros((19, 5)))
    engine.parallel_for(RangePolicy("OpenMP", 19), kernels("scale"), **rows(x, y, a=2.0))
    np.testing.assert_array_equal(y, 2.0 * x)


# Policies ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [-1, 2**31, 1.0, True, "3", None])
def test_counts(n):
    refused("expected an integer", RangePolicy, "Serial", n)
    refused("expected an integer", TeamPolicy, "Serial", n)
    if n is not None:
        refused("expected an integer", RangePolicy, "Serial", 1, n)


@pytest.mark.parametrize("n", [-1, 0, 2**31, 1.0, True, "3"])
def test_team_sizes(n):
    refused("expected an integer", TeamPolicy, "Serial", 1, n)
    refused("expected an integer", TeamPolicy, "Serial", 1, 1, n)


@pytest.mark.parametrize("lanes", [3, 12, 64])
def test_vector_lengths(lanes):
    refused("expected 1, 2, 4, 8, 16 or 32", TeamPolicy, "Serial", 1, 1, lanes)


def test_policies_do_not_fit(kernels):
    refused("threads is 1025, expected at most 1024", RangePolicy, "Serial", 1, 1025)
    refused("team_size \\* vector_length is 2048, expected at most 1024", TeamPolicy, "Serial", 1, 64, 32)
    refused("nothing needs a team policy, found a range policy", engine.prepare, RangePolicy("Serial", 1),
            kernels("nothing"), n=1)  # fmt: skip
    refused("scale has no accumulator", engine.parallel_reduce, RangePolicy("Serial", 3), kernels("scale"),
            **rows(np.ones((3, 4)), np.zeros((3, 4))))  # fmt: skip


def test_an_empty_league(kernels):
    y = np.zeros((3, 4))
    engine.parallel_for(RangePolicy("OpenMP", 0), kernels("scale"), **rows(np.ones((3, 4)), y))
    assert not y.any()
    empty = np.zeros(0)
    assert repr(engine.parallel_reduce(RangePolicy("OpenMP", 0), kernels("total"), x=empty)) == "0.0"
    assert repr(engine.parallel_reduce(RangePolicy("OpenMP", 0), kernels("total_int"), k=np.zeros(0, np.int32))) == "0"


# Scratch -------------------------------------------------------------------------------------------------------------
def test_scratch(kernels, rng):
    for space in (Space("Serial"), Space("OpenMP", 2)):
        for n in (1, 7, 64, 1000):
            x = rng.standard_normal((9, n))
            expected = x[:, ::-1].copy()
            engine.parallel_for(TeamPolicy(space, 9), kernels("reversed_by_scratch"), x=x, n=n, asked=n)
            np.testing.assert_array_equal(x, expected)


def test_scratch_that_does_not_fit(kernels):
    unit, x = kernels("reversed_by_scratch"), np.ones((3, 40))
    # the decorator asks for 8 * 20 + 4 * 41 bytes, rounded up; the views take 8 * 40 + 4 * 40
    with pytest.raises(LaunchError, match=r"declares \d+ bytes of scratch, its decorator asks for 336"):
        engine.parallel_for(TeamPolicy("OpenMP", 3), unit, x=x, n=40, asked=20)
    refused("a scratch size is -1", engine.prepare, TeamPolicy("Serial", 3), unit, x=x, n=4, asked=-1)
    refused("declares -5 bytes", engine.parallel_for, TeamPolicy("Serial", 3), unit, x=x, n=-5, asked=4)
    np.testing.assert_array_equal(x, 1.0)


def test_scratch_grows_with_its_arguments(kernels, rng):
    x = rng.standard_normal((3, 9000))
    expected = x[:, ::-1].copy()
    prepared = engine.prepare(TeamPolicy("OpenMP", 3), kernels("reversed_by_scratch"), x=x, n=1, asked=1)
    refused("a scratch size", prepared.set, asked=-1)
    prepared.set(n=9000, asked=9000)
    prepared.run()
    np.testing.assert_array_equal(x, expected)


# Repeated launches ---------------------------------------------------------------------------------------------------
def test_set(kernels):
    x, y, z = np.ones((3, 4)), np.zeros((3, 4)), np.zeros((3, 4))
    prepared = engine.prepare(RangePolicy("Serial", 3), kernels("scale"), **rows(x, y))
    prepared.run()
    prepared.set(y=z, a=3.0, flag=True)
    prepared.run()
    np.testing.assert_array_equal(y, 1.5)
    np.testing.assert_array_equal(z, 6.0)
    wide = np.zeros((3, 20))
    prepared.set(y=wide[:, :4])
    prepared.run()
    np.testing.assert_array_equal(wide.sum(axis=1), 24.0)
    refused("'y' has another layout", prepared.set, y=np.zeros((3, 4), order="F"))
    # a refused call changes nothing
    refused("'n' is None", prepared.set, a=7.0, n=None)
    prepared.run()
    np.testing.assert_array_equal(wide[:, :4], 6.0)


def test_arrays_of_several_shapes_in_turn(kernels):
    x, wide, narrow = np.ones((3, 4)), np.zeros((3, 20)), np.zeros((3, 4))
    prepared = engine.prepare(RangePolicy("Serial", 3), kernels("scale"), **rows(x, narrow))
    for y in (wide[:, :4], narrow, wide[:, 8:12], wide[:, 16:], narrow):
        y[...] = 0
        prepared.set(y=y)
        prepared.run()
        np.testing.assert_array_equal(y, 1.5)
    assert wide.sum() == 3 * 12 * 1.5


def test_a_change_of_numbers_that_was_interrupted_is_made_again(kernels, monkeypatch):
    x, y = np.ones((3, 4)), np.zeros((3, 4))
    prepared = engine.prepare(RangePolicy("Serial", 3), kernels("scale"), **rows(x, y))
    send = prepared._call.numbers

    def interrupted(scalars):
        send(scalars)
        raise KeyboardInterrupt

    monkeypatch.setattr(prepared._call, "numbers", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepared.set(a=7.0)
    monkeypatch.setattr(prepared._call, "numbers", send)
    prepared.set(a=1.5)  # as it was before
    prepared.run()
    np.testing.assert_array_equal(y, 1.5)


def test_arrays_are_kept_alive(kernels):
    prepared = engine.prepare(
        RangePolicy("Serial", 3), kernels("scale"), **rows(np.full((3, 4), 2.0), np.zeros((3, 4)))
    )
    junk = [np.zeros((3, 4)) for _ in range(50)]
    y = np.ones((3, 4))
    prepared.set(y=y)
    prepared.run()
    np.testing.assert_array_equal(y, 3.0)
    assert not any(a.any() for a in junk)


def test_the_cost_of_a_launch(kernels, record_property):
    prepared = engine.prepare(TeamPolicy("Serial", 1), kernels("nothing"), n=1)
    assert isinstance(prepared, Prepared)
    seconds = min(timeit.repeat(prepared.run, number=2000, repeat=5)) / 2000
    record_property("microseconds", seconds * 1e6)
    assert seconds < 100e-6


# Reductions and scans over a league ----------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [1, 8, 4096, 4097, 20011])
@pytest.mark.parametrize("real", ["double", "float"])
def test_reductions_do_not_depend_on_threads(kernels, rng, n, real):
    x = rng.standard_normal(n).astype("float64" if real == "double" else "float32")
    totals = {
        engine.parallel_reduce(RangePolicy(Space("OpenMP", threads), n), kernels("total", real=real), x=x)
        for threads in (1, 2, 3)
    } | {engine.parallel_reduce(RangePolicy("Serial", n), kernels("total", real=real), x=x)}
    assert len(totals) == 1
    exact = float(np.sum(x, dtype=np.float64))
    assert totals.pop() == pytest.approx(exact, abs=20 * float(np.finfo(x.dtype).eps) * float(np.abs(x).sum()))


def test_reductions_of_integers(kernels):
    k = np.arange(20011, dtype=np.int32)
    total = engine.parallel_reduce(RangePolicy("OpenMP", len(k)), kernels("total_int"), k=k)
    assert (type(total), total) == (int, len(k) * (len(k) - 1) // 2)


def test_scans(kernels, rng):
    x = rng.integers(-4, 5, 9001).astype(float)
    for space in ("Serial", Space("OpenMP", 2)):
        y = np.zeros_like(x)
        total = engine.parallel_reduce(RangePolicy(space, len(x)), kernels("running"), x=x, y=y)
        np.testing.assert_array_equal(y, np.cumsum(x))
        assert total == y[-1]


def test_a_launch_at_rest_goes_on_when_asked(kernels, rng, monkeypatch):
    """Check that GNU OpenMP's idle threads end in between; nothing happens where OpenMP knows no rest."""
    x = rng.integers(0, 9, 9001).astype(float)
    for space in ("Serial", Space("OpenMP", 3)):
        prepared = engine.prepare(RangePolicy(space, len(x)), kernels("total"), x=x)
        for pause in (prepared._call._object.pause, None, prepared._call._object.pause):
            monkeypatch.setattr(prepared._call, "_object", replace(prepared._call._object, pause=pause))
            assert prepared.run() == x.sum()
            prepared.rest()
    monkeypatch.setattr(spaces, "_forked", True)
    monkeypatch.setattr(prepared._call, "_object", replace(prepared._call._object, pause=lambda *_: 1 / 0))
    prepared.rest()  # in a fork there are no threads to end


# Processes and environment -------------------------------------------------------------------------------------------
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_runs_on_one_thread_and_says_so(kernels, rng):
    x = rng.integers(0, 9, 9001).astype(float)
    prepared = engine.prepare(RangePolicy(Space("OpenMP", 2), len(x)), kernels("total"), x=x)
    total = prepared.run()  # the parent has used OpenMP: a child's parallel region would hang
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ignores Python's own warning that a process with threads forks
        child = os.fork()
    if child == 0:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            same = prepared.run() == total == prepared.run()
        said = [str(w.message) for w in caught]
        os.write(write, b"ok" if same and len(said) == 1 and "fork" in said[0] else repr((same, said)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        assert pipe.read() == "ok"
    os.waitpid(child, 0)


def test_source_is_shown_on_request(kernels, monkeypatch, capfd):
    monkeypatch.setenv("PARKI_DEBUG", "source")
    unit = kernels("nothing", real="float")  # compiled by no other test
    for _ in range(2):
        engine.parallel_for(TeamPolicy("Serial", 1), unit, n=1)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("def nothing(team: pk.TeamMember, n: int):") == 1
    assert err.count('extern "C" void pk_run(') == 1
    monkeypatch.setenv("PARKI_DEBUG", "")
    engine.parallel_for(RangePolicy("Serial", 0), kernels("total_int"), k=np.zeros(0, np.int32))
    assert capfd.readouterr().err == ""
