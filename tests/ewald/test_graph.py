"""Sums whose launches are recorded as a CUDA graph, on a stand-in for CuPy: not run on a GPU."""

import gc
import logging

import numpy as np
import pytest

import parki
from parki import prediction
from parki.engine.run import devices
from parki.ewald.options import EwaldOptions, quiet
from parki.perfmodels.machine import Costs
from tests.catalogue import COMPONENTS
from tests.ewald import cupy_standin as standin
from tests.ewald.fields import launch

streams = standin.streams
BOX = (1.0, 1.3, 0.8)


@pytest.fixture
def cupy(monkeypatch, all_digits):
    """Return the stand-in, with the parameters of a host and exact roots there: results are compared to rounding."""
    monkeypatch.setattr(prediction, "H200", Costs())
    monkeypatch.setattr(prediction, "device_name", lambda *_: "")
    made = standin.install(monkeypatch)
    streams.Stream.told.clear()
    yield made
    assert gc.isenabled()
    assert not streams.Stream.current
    assert not streams.Stream.recorded


def points(rng, nt=50, ns=60):
    return [np.array(BOX)[:, None] * rng.random((3, n)) for n in (nt, ns)]


def strengths(kernel, rng, ns=60, shape=()):
    dens = rng.standard_normal((*shape, ns) if COMPONENTS[kernel] == 1 else (*shape, COMPONENTS[kernel], ns))
    return [dens, *([rng.standard_normal((3, ns))] if kernel == "stokes_comb" else [])]


def plans(cupy, kernel, trg, src, **options):
    """Return a plan with a graph, and one of the host."""
    options = {"box": BOX, "tolerance": 1e-5} | options
    there = parki.ewald.plan(kernel, cupy.asarray(trg), cupy.asarray(src), graph=True, **options)
    return there, parki.ewald.plan(kernel, trg, src, execution_space="Serial", **options)


def right(cupy, plan, host, *given):
    """Return whether a plan's result is the host's, to rounding."""
    u, exact = plan(*map(cupy.asarray, given)).get(), host(*given)
    return np.linalg.norm(u - exact) <= (2e-5 if u.dtype == np.float32 else 1e-12) * np.linalg.norm(exact)


def told(*names):
    """Return the requests to streams since the last call, of these kinds, and clear them."""
    found = [each for each in streams.Stream.told if not names or each[0] in names]
    streams.Stream.told.clear()
    return found


def passes(run):
    """Run a pass; tell if it was plain (launch by launch), recorded, or one launch of a graph."""
    told()
    run()
    return {(): "plain", ("begin", "end", "upload", "launch"): "recorded", ("launch",): "graph"}[
        tuple(name for name, *_ in told("begin", "end", "upload", "launch"))
    ]


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_the_first_pass_is_plain_the_second_recorded_the_others_one_launch(kernel, cupy, rng):
    plan, host = plans(cupy, kernel, *points(rng))
    for how in ("plain", "recorded", "graph", "graph"):
        given = strengths(kernel, rng)  # other strengths in each pass
        assert passes(lambda given=given: right(cupy, plan, host, *given) or pytest.fail("wrong")) == how


@pytest.fixture
def copied(monkeypatch):
    """Let transforms along x take memory, as they do of a box that is not aligned."""
    monkeypatch.setattr("parki.fft._misaligned", lambda x: True)


def test_streams_wait_for_each_other(cupy, copied, rng):
    plan, host = plans(cupy, "laplace", *points(rng))
    side, given = plan.sums[1].placed.side.stream.ptr, [strengths("laplace", rng) for _ in range(3)]
    beside = lambda at: [("record", at), ("wait", side, at), ("record", side), ("wait", at, side)]  # noqa: E731
    told()  # the first plan of a process verifies its kernels by a sum
    right(cupy, plan, host, *given[0])
    assert told() == beside(0)
    mine = cupy.cuda.Stream(non_blocking=True)
    with mine:
        assert right(cupy, plan, host, *given[1])
    found = told()
    own = found[1][1]
    assert len({0, side, mine.ptr, own}) == 4
    assert found == [
        ("record", mine.ptr), ("wait", own, mine.ptr),
        *beside(own), *beside(own),  # a pass that takes memory, and one that has enough
        ("record", own), ("wait", mine.ptr, own),
        ("begin", own), *beside(own), ("end", own),
        ("upload", mine.ptr), ("launch", mine.ptr),
    ]  # fmt: skip
    assert right(cupy, plan, host, *given[2])
    assert told() == [("launch", 0)]


@pytest.mark.parametrize(
    "options",
    [
        {"periodicity": 0},
        pytest.param({"periodicity": 1}, marks=pytest.mark.slow),
        {"layout": "nd"},
        {"fft_type": "C2C"},
        {"periodicity": (False, True, True)},
        pytest.param({"p2g_method": "BLOCK", "p2p_method": "LIST"}, marks=pytest.mark.slow),
        pytest.param({"p2g_method": "BASE", "g2p_method": "BASE", "p2p_method": "SM-2D"}, marks=pytest.mark.slow),
        pytest.param({"box": [[1.0, 0.0, 0.0], [0.3, 1.2, 0.0], [0.1, 0.2, 0.9]]}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_whatever_is_summed(options, cupy, rng):
    trg, src = points(rng)
    turn = (lambda a: np.ascontiguousarray(a.T)) if "layout" in options else (lambda a: a)
    plan, host = plans(cupy, "stokes_comb", turn(0.8 * trg), turn(0.8 * src), **options)
    for how in ("plain", "recorded", "graph", "graph"):
        given = [turn(a) for a in strengths("stokes_comb", rng)]
        assert passes(lambda given=given: right(cupy, plan, host, *given) or pytest.fail("wrong")) == how


def test_single_precision_and_a_place_for_the_result(cupy, rng):
    plan, host = plans(cupy, "laplace", *(a.astype(np.float32) for a in points(rng)))
    for _ in range(3):
        (dens,) = strengths("laplace", rng)
        out = cupy.empty(50, np.float32)
        assert plan(cupy.asarray(dens.astype(np.float32)), out=out) is out
        np.testing.assert_allclose(out.get(), host(dens.astype(np.float32)), rtol=2e-4, atol=2e-3)


def test_arrays_of_the_host(cupy, rng):
    trg, src = points(rng)
    plan = parki.ewald.plan("laplace", trg, src, box=BOX, tolerance=1e-5, execution_space="Cuda", graph=True)
    host = parki.ewald.plan("laplace", trg, src, box=BOX, tolerance=1e-5)
    for how in ("plain", "recorded", "graph"):
        (dens,) = strengths("laplace", rng)
        assert passes(lambda dens=dens: np.testing.assert_allclose(plan(dens), host(dens), rtol=1e-9, atol=1e-9)) == how


def test_each_number_of_right_hand_sides_has_a_graph(cupy, rng):
    plan, host = plans(cupy, "stokes_sl", *points(rng))
    for shape in ((), (2,), (), (2,), (), (2,)):
        assert right(cupy, plan, host, *strengths("stokes_sl", rng, shape=shape))
    assert len(told("begin")) == 2
    assert passes(lambda: plan(*map(cupy.asarray, strengths("stokes_sl", rng, shape=(2,))))) == "graph"
    assert passes(lambda: plan(*map(cupy.asarray, strengths("stokes_sl", rng)))) == "graph"


@pytest.mark.parametrize("kernel", ["laplace", "stokes_comb"])
def test_points_that_move_keep_the_graph(kernel, cupy, rng):
    plan, host = plans(cupy, kernel, *points(rng))
    for moved, how in enumerate(("plain", "recorded", "graph", "graph")):
        if moved:
            # Points in a corner of the box have other batches and runs, and fewer.
            trg, src = (x / 2 ** (moved - 1) for x in points(rng))
            plan.move(sources=cupy.asarray(src), targets=cupy.asarray(trg))
            host.move(sources=src, targets=trg)
        given = strengths(kernel, rng)
        assert passes(lambda given=given: right(cupy, plan, host, *given) or pytest.fail("wrong")) == how


def test_a_box_made_around_the_points_and_left_begins_anew(cupy, rng):
    x, given = rng.random((3, 60)), cupy.asarray(rng.standard_normal(60))
    there = cupy.asarray(x)
    plan = parki.ewald.plan("laplace", there, there, periodicity=0, tolerance=1e-5, graph=True)
    host = parki.ewald.plan("laplace", x, x, periodicity=0, tolerance=1e-5)
    assert [passes(lambda: plan(given)) for _ in range(3)] == ["plain", "recorded", "graph"]
    plan.move(cupy.asarray(7 * x))
    host.move(7 * x)
    for how in ("plain", "recorded", "graph"):
        assert passes(lambda: right(cupy, plan, host, given.get()) or pytest.fail("wrong")) == how


def test_memory_is_the_graph_s_own_and_given_back(cupy, copied, rng):
    plan, _ = plans(cupy, "laplace", *points(rng))
    given = cupy.asarray(*strengths("laplace", rng))
    plan(given)
    before = plan.memory, standin.PlanNd.made
    plan(given)
    pool = plan.sums[1].placed.replays[0]._pool
    assert plan.memory - before[0] == plan.sums[1].placed.replays[0].nbytes == pool.total_bytes() > 0
    assert standin.PlanNd.made == before[1]  # the graph uses the transforms of the first pass
    assert not streams.allocators
    plan(given)
    assert plan.memory - before[0] == pool.total_bytes()
    del plan
    gc.collect()
    assert pool.total_bytes() == 0


def test_a_pass_copies_nothing_to_the_host(cupy, rng):
    plan, _ = plans(cupy, "stokes_comb", *points(rng))
    given = [cupy.asarray(a) for a in strengths("stokes_comb", rng)]
    plan(*given)  # the first call checks whether strengths are neutral
    for _ in range(3):
        standin.counts.clear()
        plan(*given)
        # Checks of dens and of normals: are all entries finite, and how large are they?
        assert standin.counts == {"scalar": 2, "to host": 2, "to device": 1}


def test_a_transposed_operator_has_a_graph_of_its_own(cupy, rng):
    plan, host = plans(cupy, "stokes_sl", *points(rng))
    back = [(made.transposed()) for made in (plan, host)]
    v = rng.standard_normal((3, 50))
    assert [passes(lambda: right(cupy, *back, v) or pytest.fail("wrong")) for _ in range(3)] == [
        "plain", "recorded", "graph",
    ]  # fmt: skip
    assert passes(lambda: plan(*map(cupy.asarray, strengths("stokes_sl", rng)))) == "plain"
    trg, src = points(rng)
    plan.move(sources=cupy.asarray(src), targets=cupy.asarray(trg))
    assert passes(lambda: back[0](cupy.asarray(v))) == "graph"


@pytest.mark.parametrize("asked", [{"return_walltime": True}, {"verbose": True}])
def test_phases_that_are_timed_are_not_recorded(asked, cupy, rng):
    plan, host = plans(cupy, "laplace", *points(rng), **asked)
    for _ in range(3):
        assert passes(lambda: right(cupy, plan, host, *strengths("laplace", rng)) or pytest.fail("wrong")) == "plain"


def test_without_the_option_nothing_is_recorded(cupy, rng):
    plan = parki.ewald.plan("laplace", *map(cupy.asarray, points(rng)), box=BOX, tolerance=1e-5)
    given = cupy.asarray(*strengths("laplace", rng))
    assert [passes(lambda: plan(given)) for _ in range(3)] == ["plain"] * 3


def test_one_call_is_a_first_pass(cupy, rng):
    trg, src = points(rng)
    given = cupy.asarray(trg), cupy.asarray(src), cupy.asarray(*strengths("laplace", rng))
    options = {"box": BOX, "tolerance": 1e-5, "graph": True, "return_error": True}
    assert passes(lambda: parki.ewald.laplace(*given, **options)) == "plain"
    assert not quiet(EwaldOptions(**options)).graph  # options of sums that measure errors or are timed


def refuses(*_):
    raise streams.CUDARuntimeError("cudaErrorNotSupported")


def reads_back(plan):
    """Make the far field read from the device, which a recorded stream does not allow."""
    made, spread = plan.sums[1], launch(plan, "p2g")
    run = spread.run

    def reading(*given):
        run(*given)
        made.placed[made.sum.far.grid][0, 0, 0, 0].item()

    return spread, "run", reading


def takes_memory(plan):
    """Make the far field hold on to memory at every pass, so that there is never enough."""
    spread, held = launch(plan, "p2g"), []
    run = spread.run

    def taking(*given):
        run(*given)
        held.append(standin.empty(5000))

    return spread, "run", taking


def no_memory(*_):
    raise MemoryError("out of memory")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda plan: (streams.Stream, "begin_capture", refuses), "cudaErrorNotSupported"),
        (lambda plan: (streams.Graph, "upload", refuses), "cudaErrorNotSupported"),
        (lambda plan: (streams.MemoryPool, "malloc", no_memory), "out of memory"),
        (lambda plan: (plan.sums[1].placed.side, "join", lambda: None), "Unjoined"),
        (reads_back, "cudaErrorStreamCaptureUnsupported"),
        (takes_memory, "cudaErrorStreamCaptureUnsupported"),
    ],
    ids=["begin", "upload", "memory", "fork", "read", "allocation"],
)
def test_where_nothing_can_be_recorded_a_warning_says_so_and_sums_go_on(
    fault, message, cupy, copied, rng, monkeypatch, caplog
):
    plan, host = plans(cupy, "laplace", *points(rng))
    with caplog.at_level(logging.INFO, "parki"):
        assert right(cupy, plan, host, *strengths("laplace", rng))
        assert not caplog.records
        monkeypatch.setattr(*fault(plan))
        for _ in range(3):
            assert right(cupy, plan, host, *strengths("laplace", rng))
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("parki.engine", logging.WARNING)
    assert record.getMessage().startswith("no CUDA graph could be recorded, so that launches go on one by one: ")
    assert message in record.getMessage()
    assert not told("launch")
    (replay,) = plan.sums[1].placed.replays
    assert replay.nbytes == 0
    assert not replay._release.alive  # memory has been given back
    monkeypatch.undo()
    standin.install(monkeypatch)
    assert passes(lambda: plan(*map(cupy.asarray, strengths("laplace", rng)))) == "plain"  # not tried again
    trg, src = points(rng)
    plan.move(sources=cupy.asarray(src), targets=cupy.asarray(trg))
    assert passes(lambda: plan(*map(cupy.asarray, strengths("laplace", rng)))) == "plain"


def test_after_a_failure_what_was_launched_aside_is_waited_for(cupy, rng, monkeypatch, caplog):
    plan, _ = plans(cupy, "laplace", *points(rng))
    given = [cupy.asarray(a) for a in strengths("laplace", rng)]
    plan(*given)
    monkeypatch.setattr(plan.sums[1].sum.far.transforms.library, "run", refuses)
    told()
    with pytest.raises(streams.CUDARuntimeError, match="NotSupported"):
        plan(*given)  # this pass fails without a graph, too
    found = told()
    own = found[1][1]
    assert ("wait", 0, own) in found
    assert found.index(("wait", 0, own)) < found.index(("wait", plan.sums[1].placed.side.stream.ptr, 0))
    assert len(caplog.records) == 1


def test_errors_that_are_not_the_driver_s_are_raised(cupy, rng, monkeypatch):
    plan, host = plans(cupy, "laplace", *points(rng))
    assert right(cupy, plan, host, *strengths("laplace", rng))
    spread = launch(plan, "p2g")
    run = spread.run

    def fails(*given):
        assert streams.recording() is None or 1 / 0
        run(*given)

    monkeypatch.setattr(spread, "run", fails)
    with pytest.raises(ZeroDivisionError):
        plan(*map(cupy.asarray, strengths("laplace", rng)))
    assert told("begin", "end")[-1][0] == "end"
    (replay,) = plan.sums[1].placed.replays
    assert not replay._release.alive
    monkeypatch.setattr(spread, "run", run)
    assert right(cupy, plan, host, *strengths("laplace", rng))


def test_no_garbage_is_collected_meanwhile(cupy, copied, rng, monkeypatch):
    plan, _ = plans(cupy, "laplace", *points(rng))
    spread, found = launch(plan, "p2g"), []
    run = spread.run

    def looking(*given):
        found.append((streams.recording() is not None, gc.isenabled()))
        run(*given)

    monkeypatch.setattr(spread, "run", looking)
    given = [cupy.asarray(a) for a in strengths("laplace", rng)]
    for _ in range(3):
        plan(*given)
    assert found == [(False, True)] * 3 + [(True, False)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"graph is True and execution_space is 'OpenMP'; expected 'Cuda', or graph=False"),
        ({"execution_space": "Serial"}, r"graph is True and execution_space is 'Serial'; expected 'Cuda'"),
        ({"execution_space": "GpuSim"}, r"graph is True and execution_space is 'GpuSim'; expected 'Cuda'"),
        ({"fft": "torch"}, r"graph is True and fft is 'torch'; expected at most one of them"),
        ({"torch_fft": True}, r"graph is True and torch_fft is True; expected at most one of them"),
        ({"graph": "yes"}, r"graph is 'yes'; expected True or False"),
    ],
)
def test_what_has_no_graphs_says_so(options, message, rng):
    x = rng.random((3, 20))
    with pytest.raises(ValueError, match=message):
        parki.ewald.laplace(x, x, x[0], **({"box": (1, 1, 1), "graph": True} | options))


def test_only_parki_s_own_engine_on_nvidia_s_gpus(cupy, rng, monkeypatch):
    x = cupy.asarray(rng.random((3, 20)))
    given = {"trg": x, "src": x}
    assert EwaldOptions.resolve(None, given, box=(1, 1, 1), graph=True).graph
    assert not EwaldOptions.resolve(None, given, box=(1, 1, 1)).graph
    with pytest.raises(ValueError, match=r"graph is True and engine is 'pykokkos'; expected 'parki', or graph=False"):
        EwaldOptions.resolve(None, given, box=(1, 1, 1), graph=True, engine="pykokkos")
    monkeypatch.setattr(devices, "platform", lambda: "HIP")
    monkeypatch.setattr(devices, "missing", lambda kind: None if kind == "HIP" else "It is not here.")
    with pytest.raises(ValueError, match=r"graph is True and execution_space is 'HIP'; expected 'Cuda'"):
        EwaldOptions.resolve(None, given, box=(1, 1, 1), graph=True)
