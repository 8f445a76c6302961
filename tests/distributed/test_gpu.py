"""Ewald sums over ranks with GPUs: by the simulator of their execution, and by a stand-in for CuPy's arrays."""

import itertools

import numpy as np
import pytest

import parki
from parki import prediction
from parki.distributed.simulated import World
from parki.engine.run import devices
from parki.perfmodels.machine import Costs
from tests.distributed.free import FreeCase
from tests.distributed.shares import CELL, Case, cuts, far
from tests.ewald import cupy_standin as standin
from tests.quick import every

pytestmark = pytest.mark.usefixtures("all_digits")
SAME = {"float64": 1e-12, "float32": 3e-6}


def small(kernel, periodicity=3, dtype="float64", n=60, **options):
    """Return a sum whose parameters do not depend on its execution space."""
    pinned = {"tolerance": 1e-3, "rc": 0.3, "far_precision": "double" if dtype == "float64" else "single"}
    return Case(kernel, periodicity, n=n, dtype=dtype, options=pinned | options)


# The simulator --------------------------------------------------------------------------------------------------------
OF_THE_SIMULATOR = [
    ("laplace", 3, 2, "float32"), ("stokes_comb", 3, 4, "float64"), ("stokes_comb", 1, 2, "float64"),
    ("laplace", 0, 4, "float32"), ("laplace", 3, 2, "float64"), ("stokes_comb", 3, 4, "float32"),
    ("stokes_comb", 1, 2, "float32"), ("laplace", 0, 4, "float64"),
    *itertools.chain(*([(*of, dtype) for dtype in SAME]
                       for of in [("laplace_grad", 3, 4), ("laplace_grad", 1, 2), ("laplace", 1, 8)])),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "periodicity", "ranks", "dtype"),
    [pytest.param(*of, marks=[pytest.mark.slow] * (k > 3)) for k, of in enumerate(OF_THE_SIMULATOR)],
)
def test_the_simulator_of_gpus(kernel, periodicity, ranks, dtype):
    case = small(kernel, periodicity, dtype, execution_space="GpuSim")
    plan, expected = case.alone()
    u, plans = case.over(ranks, seed=ranks)
    assert plans[0].parameters == plan.parameters
    assert plans[0].structure.division.size == ranks
    assert far(u, expected) < SAME[dtype]
    host, _ = small(kernel, periodicity, dtype).over(ranks)
    assert far(u, host) < SAME[dtype]


def test_warps_of_64_threads_and_triclinic_cells():
    case = small("laplace", execution_space="GpuSim64")
    case.box = CELL
    assert far(case.over(3)[0], case.alone()[1]) < SAME["float64"]


# Arrays of a device ---------------------------------------------------------------------------------------------------
@pytest.fixture
def cupy(monkeypatch):
    """Install the stand-in for CuPy, with parameters as on hosts."""
    monkeypatch.setattr(prediction, "H200", Costs())
    monkeypatch.setattr(prediction, "device_name", lambda *_: "")
    monkeypatch.setattr(standin.Device, "now", 0)
    return standin.install(monkeypatch)


@pytest.mark.parametrize("dtype", every(2, SAME))
@pytest.mark.parametrize(
    ("kernel", "periodicity", "ranks"), every(3, [("laplace", 3, 2), ("laplace_grad", 1, 3), ("stokes_comb", 3, 4)])
)
def test_results_lie_where_the_arrays_are(kernel, periodicity, ranks, dtype, cupy):
    case = small(kernel, periodicity, dtype)
    expected = case.alone()[1]
    case.put = cupy.asarray
    u, plans = case.over(ranks)
    assert plans[0].space.kind == "device"
    assert far(u, expected) < SAME[dtype]


def test_arrays_of_the_host_come_back_there(cupy):
    case = small("stokes_comb", execution_space="GPU")
    u, plans = case.over(3)
    assert plans[0].space.kind == "device"
    assert far(u, small("stokes_comb").alone()[1]) < SAME["float64"]


def test_plans_of_a_device(cupy):
    case, moved = small("laplace"), Case("laplace", n=60, seed=9)
    plan, _ = case.alone()
    plan.move(targets=moved.targets, sources=moved.sources)
    many = np.stack([case.density, case.density**2])
    expected, turned, direct = plan(many), plan.transposed()(case.density), _direct(case, slice(None), slice(None))

    def work(comm, plan, to, source):
        def there(a, which):
            return cupy.asarray(np.ascontiguousarray(a[..., which]))

        u = plan.ours(plan.theirs(there(case.density, source)))
        assert (u.get() == case.density[source]).all()
        plan.move(targets=there(moved.targets, to), sources=there(moved.sources, source))
        assert plan.error(20).value < 1e-3
        found = plan(there(many, source)), plan.transposed()(there(case.density, to)), _direct(case, to, source, comm)
        return [u.get() for u in found]

    case.put = cupy.asarray
    _, found = case.over(3, work)
    for i, known in enumerate((expected, turned, direct)):
        assert far(np.concatenate([f[i] for f in found], axis=-1), known) < SAME["float64"]


def _direct(case, to, source, comm=None):
    (x, y), strengths = case.of(to, source)
    return parki.direct.direct_sum("laplace", x, y, *strengths, comm=comm)


@pytest.mark.parametrize(
    ("place", "now", "arrays", "expected"),
    [(0, 0, "host", 0), (1, 0, "host", 1), (4, 0, "host", 1), (1, 2, "host", 2), (1, 0, "device", 0),
     (0, 2, "device", 2)],
)  # fmt: skip
def test_the_gpu_of_a_rank(place, now, arrays, expected, cupy, monkeypatch):
    """A rank takes the GPU of its arrays, or its caller's choice, else one by its place among a machine's processes."""
    several = tuple(devices.Device(k, "stand-in", "sm_90", 1 << 30, "none", 48 << 10, 32, 4) for k in range(3))
    monkeypatch.setattr(devices, "find", lambda kind: several)
    cupy.cuda.Device(now).use()
    case = small("laplace", execution_space="GPU")
    case.put = cupy.asarray if arrays == "device" else np.asarray
    ends = cuts(case.n, 2)

    def work(comm):
        comm.place = place
        points, _ = case.of(ends[comm.rank], ends[comm.rank])
        return case.plan(*points, comm=comm).structure.targets.device.id

    assert World(2).run(work) == [expected] * 2
    assert standin.Device.now == expected


@pytest.mark.parametrize("targets", [None, "plummer"])
def test_fast_multipole_sums(targets, cupy):
    more = {"options": {"order": 3, "leaf_size": 10}, "targets": targets, "n": 400}
    expected = FreeCase(parki.fmm, **more).alone()[1]
    more["options"] = more["options"] | {"execution_space": None}
    u, plans = FreeCase(parki.fmm, put=cupy.asarray, **more).over(3)
    assert plans[0].space.kind == "device"
    assert far(u, expected) < SAME["float64"]
