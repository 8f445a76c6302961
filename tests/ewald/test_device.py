"""Sums on a GPU, if there is one, and on a stand-in that counts copies between host and device."""

import numpy as np
import pytest

import parki
from parki import arrays, prediction
from parki.arguments import PUBLISHED
from parki.cells import CellGrid, SortedCells
from parki.engine.run import spaces
from parki.engine.steps import Blocks
from parki.ewald import EwaldOptions
from parki.ewald.choice import arrangement
from parki.ewald.kernels import KERNELS
from parki.ewald.method import Ewald
from parki.perfmodels.machine import Costs
from parki.plan import make
from tests.catalogue import COMPONENTS
from tests.ewald import cupy_standin as standin
from tests.ewald.fields import launch
from tests.quick import every

BOX = (1.0, 1.3, 0.8)
OPTIONS = {"box": BOX, "tolerance": 1e-5}
ROUNDING = {"float64": 1e-12, "float32": 2e-5}


@pytest.fixture(autouse=True)
def same_parameters(monkeypatch, all_digits):
    """Give a GPU the parameters of a host, and hosts exact roots: results are compared to rounding."""
    monkeypatch.setattr(prediction, "H200", Costs())
    monkeypatch.setattr(prediction, "device_name", lambda *_: "")


@pytest.fixture(params=COMPONENTS)
def kernel(request):
    return request.param


def arguments(kernel, rng, nt=70, ns=90, dtype="float64"):
    """Return targets, sources, strengths; some targets are sources, one source lies in the box's upper corner."""
    sides = np.array(BOX)[:, None]
    src = sides * rng.random((3, ns))
    trg = np.concatenate([src[:, : nt // 2], sides * rng.random((3, nt - nt // 2))], axis=1)
    given = [trg, src, rng.standard_normal((COMPONENTS[kernel], ns) if COMPONENTS[kernel] > 1 else ns)]
    given += [rng.standard_normal((3, ns))] if kernel == "stokes_comb" else []
    given = [a.astype(dtype) for a in given]
    given[1][:, -1] = np.array(BOX, dtype)
    return given


def total(kernel, given, **options):
    return getattr(parki.ewald, kernel)(*given, **(OPTIONS | options))


def close(u, exact):
    assert u.dtype == exact.dtype
    assert np.linalg.norm(u - exact) <= ROUNDING[exact.dtype.name] * np.linalg.norm(exact)


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        *(("laplace", "float32"), ("stokes_sl", "float64"), ("stokes_comb", "float64")),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("laplace", "float64"), ("stokes_sl", "float32"))),
        pytest.param("stokes_comb", "float32", marks=pytest.mark.slow),
    ],
)
def test_arrays_on_a_gpu_stay_there(kernel, dtype, cupy, rng):
    given = arguments(kernel, rng, dtype=dtype)
    u = total(kernel, [cupy.asarray(a) for a in given])
    assert isinstance(u, cupy.ndarray)
    close(u.get(), total(kernel, given))


def test_arrays_of_the_host_are_copied_there_and_back(kernel, cupy, rng):
    given = arguments(kernel, rng)
    u = total(kernel, given, execution_space="GPU")
    assert type(u) is np.ndarray
    close(u, total(kernel, given))


def test_layout_and_order(cupy, rng):
    given = arguments("stokes_comb", rng)
    u = total("stokes_comb", given)
    turned = total("stokes_comb", [cupy.asarray(np.ascontiguousarray(a.T)) for a in given], layout="nd")
    assert turned.flags.c_contiguous
    close(turned.get().T, u)
    close(total("stokes_comb", [cupy.asarray(np.ascontiguousarray(a.T)).T for a in given]).get(), u)


def test_a_plan_of_points_on_a_gpu(cupy, rng):
    trg, src, dens = arguments("stokes_sl", rng)
    plan = parki.ewald.plan("stokes_sl", cupy.asarray(trg), cupy.asarray(src), **OPTIONS)
    assert plan.space.kind == "device"
    first = plan(cupy.asarray(dens))
    second = plan(cupy.asarray(2.0 * dens))
    close(first.get(), total("stokes_sl", (trg, src, dens)))
    close(second.get(), 2.0 * first.get())
    with pytest.raises(ValueError, match=r"density is not on the GPU, where .* Pass cupy\.asarray\(density\)"):
        plan(dens)
    ours = parki.ewald.plan("stokes_sl", trg, src, **OPTIONS)
    with pytest.raises(ValueError, match=r"density is not on the host, where .* Pass cupy\.asnumpy\(density\)"):
        ours(cupy.asarray(dens))


@pytest.mark.parametrize(
    "choice",
    every(
        3,  # all run in the simulator, too: tests/ewald/test_variants.py
        [
            {"p2p_threads_x": 128, "p2g_threads": 64, "g2p_threads": 32},
            *({"p2p_method": name} for name in ("LIST", "LIST-2D", "GM-1D", "GM-2D", "SM-1D", "SM-2D")),
            *({"p2g_method": name} for name in ("BASE", "SOURCE", "GRID", "HYBRID", "BLOCK", "TILE")),
            *({"g2p_method": name} for name in ("BASE", "TARGET", "TILE")),
        ],
    ),
    ids=str,
)
def test_variants(choice, cupy, rng):
    given = arguments("stokes_sl", rng)
    close(total("stokes_sl", [cupy.asarray(a) for a in given], **choice).get(), total("stokes_sl", given))


def test_a_sum_copies_nothing_to_the_host_and_waits_only_to_check(counted):
    given = arguments("stokes_comb", np.random.default_rng(5))
    plan = parki.ewald.plan("stokes_comb", *map(counted.cupy.asarray, given[:2]), **OPTIONS)
    strengths = [counted.cupy.asarray(a) for a in given[2:]]
    plan(*strengths)  # the first call checks whether strengths are neutral
    counted.counts.clear()
    u = plan(*strengths)
    # Checks of dens and of normals: are all entries finite, and how large are they?
    assert counted.counts == {"scalar": 2, "to host": 2, "to device": 1}
    assert isinstance(u, counted.cupy.ndarray)


def test_a_plan_copies_samples_of_the_points_to_the_host(counted):
    """Only samples are copied, to look for order in them before parameters are chosen."""
    trg, src = map(counted.cupy.asarray, arguments("laplace", np.random.default_rng(5))[:2])
    parki.ewald.plan("laplace", trg, src, **OPTIONS)  # verified
    counted.counts.clear()
    parki.ewald.plan("laplace", trg, src, **OPTIONS)
    # Samples of targets and sources, and the extents of both along each axis.
    # Checks that targets and sources are finite; number of batches of targets of P2P.
    assert counted.counts["scalar"] == 3
    assert (counted.counts["to host"], counted.counts["wait"]) == (4, 0)
    assert counted.counts["to device"] < 25  # tables
    counted.counts.clear()
    parki.ewald.plan("laplace", src, src, **OPTIONS)
    assert counted.counts["to host"] == 2
    many = counted.cupy.asarray(0.8 * np.random.default_rng(6).random((3, 5000)))
    assert arrangement.sample(many, arrangement.sampled(many.shape[1], 1024)).shape[1] <= 1024


def fields_of(monkeypatch, plan):
    """Log launches of the near field and of both ends of the far field among requests to streams; return the log."""
    told, stream = standin.Stream.told, standin.get_current_stream
    heads = {"near": "p2p", "spread": "p2g", "gather": "g2p", "sum": "scatter_sum"}
    for name, it in ((name, launch(plan, head)) for name, head in heads.items()):

        def logged(*given, name=name, before=it.run):
            told.append((name, stream().ptr))
            before(*given)

        monkeypatch.setattr(it, "run", logged)
    return told


def test_near_and_far_field_go_on_beside_each_other(counted, monkeypatch):
    given = [counted.cupy.asarray(a) for a in arguments("laplace", np.random.default_rng(5))]
    plan = parki.ewald.plan("laplace", *given[:2], **OPTIONS)
    told = fields_of(monkeypatch, plan)
    told.clear()
    u = plan(given[2])
    side = plan.sums[1].placed.side.stream.ptr
    assert side != 0
    assert told == [
        ("record", 0), ("wait", side, 0), ("near", side),  # after the packing of the sources
        ("spread", 0), ("gather", 0),
        ("record", side), ("wait", 0, side), ("sum", 0),
    ]  # fmt: skip
    close(u.get(), total("laplace", arguments("laplace", np.random.default_rng(5)), execution_space="Serial"))


def test_phases_that_are_timed_go_one_after_another(counted, monkeypatch):
    given = [counted.cupy.asarray(a) for a in arguments("laplace", np.random.default_rng(5))]
    plan = parki.ewald.plan("laplace", *given[:2], **OPTIONS, return_walltime=True)
    told = fields_of(monkeypatch, plan)
    told.clear()
    plan(given[2])
    assert told == [("near", 0), ("spread", 0), ("gather", 0), ("sum", 0)]


def test_a_far_field_that_fails_leaves_the_streams_joined(counted, monkeypatch):
    given = [counted.cupy.asarray(a) for a in arguments("laplace", np.random.default_rng(5))]
    plan = parki.ewald.plan("laplace", *given[:2], **OPTIONS)
    monkeypatch.setattr(launch(plan, "p2g"), "run", lambda *_: 1 / 0)
    standin.Stream.told.clear()
    with pytest.raises(ZeroDivisionError):
        plan(given[2])
    side = plan.sums[1].placed.side.stream.ptr
    assert standin.Stream.told[-2:] == [("record", side), ("wait", 0, side)]
    assert not standin.Stream.current


@pytest.mark.parametrize("asked", [{"return_walltime": True}, {"verbose": True}])
def test_times_wait_for_the_device_where_asked_for(asked, counted):
    given = [counted.cupy.asarray(a) for a in arguments("laplace", np.random.default_rng(5))]
    plan = parki.ewald.plan("laplace", *given[:2], **OPTIONS, **asked)
    counted.counts.clear()
    plan(given[2])
    (planes,) = [s for s in plan._placed(1).sum.far.steps if isinstance(s, Blocks) and len(s.parts[0][1]) > 1]
    blocks = sum(len(cut(1)) for cut, _ in planes.parts)
    # Waits before and after each of nine phases, of three for each block of planes, and of the whole.
    assert counted.counts["wait"] == 2 * (10 + 3 * blocks)
    phases = ("p2p", "p2g", "fft", "cnv", "ifft", "g2p")
    assert all(getattr(plan.walltime, f"time_{name}")["tot"] > 0 for name in phases)
    assert sum(getattr(plan.walltime, f"time_{name}")["tot"] for name in phases) <= plan.walltime.time_ewald


def test_nothing_to_sum(cupy, kernel, rng):
    trg, src, *strengths = (cupy.asarray(a) for a in arguments(kernel, rng))
    shape = () if kernel == "laplace" else (3,)
    nothing = total(kernel, (trg, src[:, :0], *(s[..., :0] for s in strengths)))
    assert isinstance(nothing, cupy.ndarray)
    np.testing.assert_array_equal(nothing.get(), np.zeros((*shape, trg.shape[1])))
    assert total(kernel, (trg[:, :0], src, *strengths)).shape == (*shape, 0)


def test_direct_sums(cupy, rng):
    for kernel, normals in (("laplace", 0), ("stokes_dl", 1)):
        x, y = rng.standard_normal((3, 70)), rng.standard_normal((3, 150))
        strengths = [rng.standard_normal(150 if kernel == "laplace" else (3, 150)), *[rng.random((3, 150))] * normals]
        exact = parki.direct.direct_sum(kernel, x, y, *strengths)
        u = parki.direct.direct_sum(kernel, *(cupy.asarray(a) for a in (x, y, *strengths)))
        assert isinstance(u, cupy.ndarray)
        close(u.get(), exact)
        copied = parki.direct.direct_sum(kernel, x, y, *strengths, execution_space="GPU")
        assert type(copied) is np.ndarray
        close(copied, exact)


def test_the_sampled_error(cupy, rng):
    trg, src, dens = (cupy.asarray(a) for a in arguments("stokes_sl", rng))
    plan = parki.ewald.plan("stokes_sl", trg, src, **OPTIONS)
    u = plan(dens)
    assert 0 < plan.error().value <= OPTIONS["tolerance"]
    assert plan.error(u=1.1 * u).value == pytest.approx(0.1, rel=1e-2)


def test_cell_lists_are_those_of_the_host(cupy, rng):
    x = np.array(BOX)[:, None] * rng.random((3, 500))
    x[:, 100:300] *= 0.1  # a cluster, so that most columns are empty
    grid = CellGrid.for_points(BOX, 500, 0.2)
    ours, theirs = SortedCells(x, grid, spaces.get()), SortedCells(cupy.asarray(x), grid, spaces.get("GPU"))
    for name in ("order", "begin", "points"):
        np.testing.assert_array_equal(getattr(theirs, name).get(), getattr(ours, name))
    for size in (1, 7, 32):
        for there, here in zip(theirs.batches(size), ours.batches(size), strict=True):
            np.testing.assert_array_equal(there.get(), here)


def test_mixed_arrays_are_named(cupy, rng):
    trg, src, dens, normals = arguments("stokes_comb", rng)
    there = cupy.asarray(src)
    with pytest.raises(ValueError, match=r"src is on the GPU \(CuPy\) and trg is on the host; expected all arrays in"):
        total("stokes_comb", (trg, there, dens, normals))
    with pytest.raises(ValueError, match=r"trg is on the GPU \(CuPy\) and normals is on the host.*asarray\(normals\)"):
        total("stokes_comb", [*(cupy.asarray(a) for a in (trg, src, dens)), normals])
    with pytest.raises(ValueError, match=r"targets is on the GPU \(CuPy\) and dens is on the host"):
        parki.direct.direct_sum("laplace", there, there, dens[0])


@pytest.mark.parametrize("space", ["OpenMP", "Serial", "GpuSim"])
def test_spaces_of_the_host_do_not_take_arrays_on_a_gpu(space, cupy, rng):
    given = [cupy.asarray(a) for a in arguments("laplace", rng)]
    message = rf"trg is on the GPU \(CuPy\) and execution_space is '{space}'.*cupy\.asnumpy\(trg\), or leave execution_"
    with pytest.raises(ValueError, match=message):
        total("laplace", given, execution_space=space)
    with pytest.raises(ValueError, match=message):
        make(Ewald(KERNELS["laplace"], EwaldOptions(execution_space=space, **OPTIONS), names=PUBLISHED), *given[:2])


def test_threads_are_of_the_host(cupy, rng):
    given = [cupy.asarray(a) for a in arguments("laplace", rng)]
    with pytest.raises(ValueError, match=r"threads is 2 with execution_space '(Cuda|HIP)', which has its own"):
        total("laplace", given, threads=2)


def test_checks_of_arrays_on_a_gpu(cupy):
    x = np.full((3, 9), 0.5)
    good = cupy.asarray(x)
    assert arrays.points("trg", good, BOX) is good
    assert arrays.points("trg", cupy.asarray(np.zeros((3, 0))), BOX).shape == (3, 0)
    edge = cupy.asarray(np.array(BOX, np.float32)[:, None])
    assert arrays.points("trg", edge, BOX) is edge
    for change, message in (
        (lambda x: x.astype(int), r"trg has dtype int64; expected float32 or float64\. Pass trg\.astype\(float\)"),
        (lambda x: x.T, r'trg has shape \(9, 3\); expected \(3, N\)\. Pass trg\.T, or layout="nd"'),
        (lambda x: np.where(np.arange(9) == 4, np.nan, x), r"trg has 3 of 27 values .*trg\[0, 4\] = nan"),
        (
            lambda x: np.where(np.arange(9) > 6, 2.0, x),
            r"2 of 9 points of trg lie outside .*index 7, x = 2, expected 0",
        ),
        (lambda x: -x, r"9 of 9 points of trg lie outside .*index 0, x = -0\.5, expected 0 to 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            arrays.points("trg", cupy.asarray(change(x)), BOX)
    with pytest.raises(ValueError, match=r"dens has 1 of 9 values that are NaN or infinite .*dens\[8\] = inf"):
        arrays.density("dens", cupy.asarray(np.where(np.arange(9) == 8, np.inf, x[0])), 1, 9)
    with pytest.raises(ValueError, match=r"dens has shape \(9,\); expected \(7,\)"):
        arrays.density("dens", cupy.asarray(x[0]), 1, 7)


class OfAnotherLibrary:
    """An array on a GPU that only speaks DLPack."""

    def __init__(self, inner, array=None):
        self.inner, self.array = inner, array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return (2, 0) if self.array is None else self.array.__dlpack_device__()


def test_arrays_by_dlpack(cupy, rng):
    given = arguments("stokes_sl", rng)
    real = cupy.ndarray is not standin.ndarray
    wrapped = [OfAnotherLibrary(a, cupy.asarray(a) if real else None) for a in given]
    u = total("stokes_sl", wrapped)
    assert isinstance(u, cupy.ndarray)
    close(u.get(), total("stokes_sl", given))


def test_input_is_not_written_to(cupy, rng):
    given = arguments("stokes_comb", rng)
    there = [cupy.asarray(a) for a in given]
    for choice in ({}, {"p2g_method": "BASE", "g2p_method": "BASE"}):
        total("stokes_comb", there, **choice)
        for a, kept in zip(there, given, strict=True):
            np.testing.assert_array_equal(a.get(), kept)


def test_the_stand_in_refuses_what_cupy_refuses(counted):
    a, x = counted.cupy.asarray(np.ones(3)), np.ones(3)
    for wrong in (
        lambda: np.asarray(a),
        lambda: np.add(a, x),
        lambda: a + x,
        lambda: x * a,
        lambda: np.concatenate([a]),
    ):
        with pytest.raises(TypeError):
            wrong()
    counted.counts.clear()
    assert float((a + 1).sum()) == 6.0
    assert counted.counts == {"scalar": 1}


def test_a_gpu_has_parameters_of_its_own(counted, monkeypatch):
    """Near pairs cost a GPU less, relative to grid points, than they cost a host."""
    monkeypatch.undo()
    cupy = standin.install(monkeypatch)
    x = 0.8 * np.random.default_rng(5).random((3, 3000))
    host, gpu = (parki.ewald.plan("stokes_sl", a, a, **OPTIONS).parameters for a in (x, cupy.asarray(x)))
    assert host != gpu
    host, gpu = (parki.ewald.plan("stokes_sl", a, a, rc=0.2, **OPTIONS).parameters for a in (x, cupy.asarray(x)))
    assert host.rc == gpu.rc == 0.2
