"""Plans in use: allocations of calls, results in a caller's memory, many right-hand sides, moves, errors, threads."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import parki
from parki import engine
from parki.ewald import checks, kernels
from parki.ewald.problem import EwaldProblem
from parki.plan import Plan
from tests.ewald import sums
from tests.quick import every

BOX = (1.0, 1.3, 0.8)
CELL = np.array([[1.0, 0.1, 0.0], [0.2, 1.1, 0.1], [0.0, 0.3, 0.9]])
TOLERANCE = 1e-3
SLACK = 100_000  # bytes


def points(rng, n):
    return np.array(BOX)[:, None] * rng.random((3, n))


def strengths(name, rng, n, rhs=()):
    """Return densities, and normals if the kernel takes any."""
    kernel = kernels.KERNELS[name]
    dens = rng.standard_normal((*rhs, n) if kernel.dens == 1 else (*rhs, kernel.dens, n))
    return (dens, rng.standard_normal((3, n))) if kernel.normals else (dens,)


def plan_of(name, trg, src, **options):
    return parki.ewald.plan(name, trg, src, **({"box": BOX, "tolerance": TOLERANCE} | options))


def agree(found, exact, bound=1e-12):
    np.testing.assert_allclose(found, exact, rtol=0, atol=bound * np.abs(exact).max())


@pytest.mark.parametrize(
    ("place", "dtype", "order", "layout"),
    every(
        4,
        [
            (place, *form)
            for place in ({}, {"box": CELL}, {"periodicity": (False, True, True)})
            for form in (("f8", "C", "dn"), ("f8", "F", "nd"), ("f4", "F", "dn"))
        ],
    ),
)
def test_calls_allocate_the_result_and_no_more(place, dtype, order, layout, rng):
    n = 20_000
    x, (dens, normals) = points(rng, n), strengths("stokes_comb", rng, n)
    x, dens, normals = (np.asarray(a.T if layout == "nd" else a, dtype, order) for a in (x, dens, normals))
    plan = plan_of("stokes_comb", x, x, layout=layout, **place)
    u = plan(dens, normals)
    assert u.nbytes > 2 * SLACK
    before = engine.counters()
    tracemalloc.start()
    try:
        for out in (None, None, np.empty_like(u)):
            tracemalloc.reset_peak()
            held = tracemalloc.get_traced_memory()[0]
            again = plan(dens, normals, out=out)
            peak = tracemalloc.get_traced_memory()[1] - held
            assert peak < (u.nbytes if out is None else 0) + SLACK
            np.testing.assert_array_equal(again, u)
    finally:
        tracemalloc.stop()
    assert engine.counters() == before


def test_counters_count(rng, tmp_path, monkeypatch):
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path))
    source = tmp_path / "fill.py"
    source.write_text('import pykokkos as pk\n\nreal = pk.double\n\n\n@pk.workunit\n'
                      'def fill(i: int, x: pk.View1D[real]):\n    x[i] = 4.0\n')  # fmt: skip
    before, x = engine.counters(), np.zeros(3)
    for _ in range(2):
        engine.parallel_for(engine.RangePolicy("Serial", 3), engine.kernel(source, "fill", real="double"), x=x)
    after = engine.counters()
    assert (after.builds - before.builds, after.prepares - before.prepares, x[1]) == (1, 2, 4.0)


@pytest.mark.parametrize("name", ["laplace", "stokes_sl"])
@pytest.mark.parametrize("layout", ["dn", "nd"])
def test_results_go_where_they_are_wanted(name, layout, rng):
    x, (dens,) = points(rng, 30), strengths(name, rng, 30, (3,))
    x, dens = (a.swapaxes(-1, -2) if layout == "nd" and a.ndim > 1 and name != "laplace" else a for a in (x, dens))
    x = x.T if layout == "nd" and name == "laplace" else x
    plan = plan_of(name, x, x, layout=layout)
    u, out = plan(dens), np.full(dens.shape, np.nan)
    assert plan(dens, out=out) is out
    np.testing.assert_array_equal(out, u)


@pytest.mark.parametrize(
    ("out", "text"),
    [
        (np.empty((3, 30), np.float32), r"out is a ndarray of shape \(3, 30\) and float32; expected a NumPy array"),
        (np.empty((3, 29)), r"expected a NumPy array of shape \(3, 30\) and float64"),
        ([0.0], "out is a list of shape None"),
    ],
)
def test_what_a_result_cannot_go_to(out, text, rng):
    x = points(rng, 30)
    with pytest.raises(ValueError, match=text):
        plan_of("stokes_sl", x, x)(x, out=out)


def test_results_do_not_overwrite_the_strengths(rng):
    x, dens = points(rng, 30), rng.standard_normal((3, 30))
    with pytest.raises(ValueError, match="out shares memory with density or normals"):
        plan_of("stokes_sl", x, x)(dens, out=dens)


def test_a_result_is_let_go_of(rng):
    x, (dens,) = points(rng, 30), strengths("laplace", rng, 30)
    plan = plan_of("laplace", x, x)
    u = plan(dens)
    kept = u.copy()
    plan(2 * dens)
    np.testing.assert_array_equal(u, kept)


@pytest.mark.parametrize(("name", "space", "layout"), [
    ("laplace", "OpenMP", "dn"), pytest.param("stokes_comb", "OpenMP", "nd", marks=pytest.mark.slow),
    pytest.param("stokes_grad", "OpenMP", "dn", marks=pytest.mark.slow), ("stokes_dl", "GpuSim", "dn"),
    *(pytest.param(name, "OpenMP", "dn", marks=pytest.mark.slow) for name in sums.PARAMETERS),
])  # fmt: skip
def test_right_hand_sides_share_points_and_normals(name, space, layout, rng):
    n, rhs = (40, 11) if space == "OpenMP" else (6, 3)
    x, (dens, *normals) = points(rng, n), strengths(name, rng, n, (rhs,))
    trg = points(rng, n + 1)
    if layout == "nd":
        x, trg, dens, normals = x.T, trg.T, dens.swapaxes(1, 2), [a.T for a in normals]
    plan = plan_of(name, trg, x, execution_space=space, layout=layout, **sums.PARAMETERS.get(name, {}))
    u = plan(dens, *normals)
    assert u.shape[0] == rhs
    for one, exact in zip(u, dens, strict=True):
        agree(one, plan(exact, *normals), 3e-6)  # rounding of far fields in single precision


@pytest.mark.parametrize(
    ("periodicity", "tolerance"), every(2, [(3, 1e-9), (3, 1e-3), (0, 1e-3), (0, 1e-9), (1, 1e-3), (1, 1e-9)])
)
def test_a_plan_is_one_operator_whatever_the_number_of_right_hand_sides(tolerance, periodicity, rng):
    """Results for a block equal results one by one, far below the tolerance; plans of another `rhs` agree to it."""
    x, q = rng.random((3, 500)), rng.standard_normal((8, 500))
    options = {"box": (1, 1, 1), "periodicity": periodicity, "tolerance": tolerance, "far_precision": "double"}
    one, many = (parki.ewald.plan("laplace", x, x, rhs=rhs, **options) for rhs in (1, 8))
    for plan in (one, many):
        u = plan(q)
        for k in (0, 7):
            agree(u[k], plan(q[k]), 1e-12)
        agree(plan(q[:3])[1], u[1], 1e-12)
    assert many.parameters.rc >= one.parameters.rc
    agree(many(q), one(q), 2 * tolerance)
    with pytest.raises(ValueError, match="rhs is 0; expected a positive whole number"):
        parki.ewald.plan("laplace", x, x, rhs=0, **options)


def test_groups_fit_the_room(rng, monkeypatch):
    x = points(rng, 30)
    plan = plan_of("laplace", x, x)
    assert list(plan._groups(13)) == [(0, 8), (8, 4), (12, 1)]
    monkeypatch.setattr(checks, "GRID_BYTES", 3 * plan.sums[1].sum.far.grid.nbytes)
    plan = plan_of("laplace", x, x)
    assert list(plan._groups(5)) == [(0, 2), (2, 2), (4, 1)]
    monkeypatch.setattr(checks, "GRID_BYTES", 1)
    plan = plan_of("laplace", x, x)
    assert list(plan._groups(2)) == [(0, 1), (1, 1)]


def afresh(plan, trg, src):
    """Return a new plan of new points with the old parameters, which a plan would choose anew."""
    names, place = ("targets", "sources"), plan.problem.geometry
    trg, src = (src, src) if trg is src else (np.ascontiguousarray(trg), np.ascontiguousarray(src))
    problem = EwaldProblem.of(place, names, trg, src, False, np, False)
    return Plan(plan.method, problem, plan.chosen)


MOVES = {
    "the same points": ("laplace", True, {}),
    "apart": ("laplace", False, {}),
    "triclinic": ("stokes_dl", True, {"box": CELL}),
    "one free direction": ("laplace_dipole", False, {"periodicity": (True, False, True)}),
    "free space": ("laplace", True, {"periodicity": 0}),
    "in any order": ("laplace", False, {"p2g_method": "BASE", "g2p_method": "BASE", "threads": 1}),
    "runs": ("laplace", True, {"p2g_method": "HYBRID", "threads": 1}),
}


@pytest.mark.parametrize("case", MOVES)
def test_moved_points_are_those_of_a_fresh_plan(case, rng):
    name, same, options = MOVES[case]
    n = 300
    src, given = points(rng, n), strengths(name, rng, n)
    trg = src if same else points(rng, 200)
    plan = plan_of(name, trg, src, **options)
    plan(*given)
    memory, before = plan.memory, engine.counters().builds
    # Most points move into a corner: numbers of batches change.
    src = 0.5 * points(rng, n) ** 2
    moved = src if same else points(rng, 200)
    plan.move(src) if same else plan.move(sources=src, targets=moved)
    agree(plan(*given), afresh(plan, moved, src)(*given))
    assert (plan.memory, engine.counters().builds) == (memory, before)


def test_targets_apart_stay_or_move(rng):
    src, trg, (dens,) = points(rng, 50), points(rng, 40), strengths("laplace", rng, 50)
    plan, other, moved = plan_of("laplace", trg, src), points(rng, 50), points(rng, 40)
    plan.move(sources=other)
    agree(plan(dens), afresh(plan, trg, other)(dens))
    plan.move(sources=src, targets=moved)
    agree(plan(dens), afresh(plan, moved, src)(dens))


@pytest.mark.parametrize("same", [True, False])
def test_points_that_leave_a_box_made_around_them(same, rng):
    src, (dens,) = points(rng, 60), strengths("laplace", rng, 60)
    trg = src if same else np.concatenate([points(rng, 10), src[:, :10]], axis=1)
    options = {"box": None, "periodicity": 0}
    plan = plan_of("laplace", trg, src, **options)
    inner = 0.5 * src + 0.2
    plan.move(sources=inner)
    exact = parki.direct.direct_sum("laplace", inner if same else trg, inner, dens)
    assert np.linalg.norm(plan(dens) - exact) < TOLERANCE * np.linalg.norm(exact)
    far = 3 * src - 1
    plan.move(sources=far)
    agree(plan(dens), plan_of("laplace", far if same else trg, far, **options)(dens))


def test_moves_are_checked(rng):
    x = points(rng, 30)
    plan = plan_of("laplace", x, x, periodicity=2)
    with pytest.raises(ValueError, match="sources has dtype float32; expected float64, that of this plan"):
        plan.move(x.astype(np.float32))
    with pytest.raises(ValueError, match="targets was given, but the targets of this plan are its sources"):
        plan.move(targets=x.copy())
    with pytest.raises(ValueError, match="30 of 30 points of sources lie outside the box"):
        plan.move(x + 1)


@pytest.mark.parametrize("options", [
    {}, pytest.param({"box": CELL}, marks=pytest.mark.slow), {"periodicity": 2}, {"periodicity": 0},
    {"box": None, "periodicity": 0}, {"layout": "nd"},
])  # fmt: skip
def test_errors_are_measured(options, rng):
    x, (dens, normals) = points(rng, 100), strengths("stokes_dl", rng, 100)
    if options.get("layout") == "nd":
        x, dens, normals = x.T, dens.T, normals.T
    plan = plan_of("stokes_dl", x, x, **options)
    with pytest.raises(ValueError, match="this plan has not been called"):
        plan.error()
    u = plan(dens, normals)
    sharp = plan_of("stokes_dl", x, x, **options | {"tolerance": 1e-9})(dens, normals)
    true = np.linalg.norm(u - sharp) / np.linalg.norm(sharp)
    every = plan.error(n=100)
    assert every.value == pytest.approx(true, rel=5e-3)
    assert (every.low, every.high, every.n) == (every.value, every.value, 100)
    some = plan.error(n=60)
    assert some.n == 60
    assert 0 < some.low < some.value < some.high
    assert some.low < true < some.high
    # A wrong result has a large error.
    assert plan.error(n=60, density=dens, normals=normals, u=1.01 * u).value == pytest.approx(0.01, rel=0.2)


def test_errors_of_single_precision(rng):
    x = points(rng, 100).astype(np.float32)
    plan = plan_of("laplace", x, x, tolerance=1e-3)
    plan(np.ones(100, np.float32) * np.where(x[0] < 0.5, 1, -1).astype(np.float32))
    assert 1e-6 < plan.error(n=50).value < 1e-3


def test_errors_with_every_call(rng):
    x, (dens,) = points(rng, 60), strengths("laplace", rng, 60)
    given = {"box": BOX, "tolerance": TOLERANCE, "return_walltime": True, "return_params": True, "return_error": True}
    u, times, p, error = parki.ewald.laplace(x, x, dens, **given)
    assert (u.shape, times.N_in, p.split, error.n) == ((60,), 60, "prolate", 60)
    assert 0 < error.value < TOLERANCE
    alone = parki.ewald.laplace(x, x, dens, box=BOX, tolerance=TOLERANCE, return_error=True)
    assert alone[1] == error
    with pytest.raises(ValueError, match="n is 0; expected a positive number"):
        plan_of("laplace", x, x).error(n=0, density=dens)


def test_memory_and_prediction(rng):
    x = points(rng, 1000)
    plan = plan_of("stokes_sl", x, x)
    one, found = plan.memory, plan.predict()
    assert one > plan.sums[1].sum.far.grid.nbytes + 2 * x.nbytes
    assert found.memory == one
    assert found.seconds == pytest.approx(found.near + found.transform + found.spread + found.gather)
    assert min(found.near, found.transform, found.spread, found.gather) > 0
    plan(rng.standard_normal((2, 3, 1000)))
    assert plan.memory > 1.5 * one
    text = str(plan)
    for part in ("stokes_sl: 1000 targets", "periodic in xyz", "prolate split", "predicted", "MB"):
        assert part in text
    assert "\n" not in repr(plan)
    assert "no direction" in str(plan_of("laplace", x, x, periodicity=0))


def one_sum(name, seed):
    """Return three results of a plan of its own, with other points for every seed."""
    rng = np.random.default_rng(seed)
    x, given = points(rng, 40), strengths(name, rng, 40)
    plan = plan_of(name, x, x, threads=1)
    return [plan(*given) for _ in range(3)]


def test_plans_in_threads_of_their_own():
    names = ["laplace", "laplace_grad", "laplace"]
    exact = [one_sum(name, i) for i, name in enumerate(names)]
    with ThreadPoolExecutor(3) as pool:
        warm = list(pool.map(one_sum, names, range(3)))
    for found, right in zip(warm, exact, strict=True):
        np.testing.assert_array_equal(found, right)


COLD = '''"""A kernel."""

from typing import List

import pykokkos as pk

real = pk.double
NS = 1
NU = 1
NF = 1
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    u[0] += 3.0 * s[0] * w * w
'''


def test_threads_compile_at_the_same_time(tmp_path, monkeypatch):
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path))
    x = np.random.default_rng(5).random((3, 50))

    def work(i):
        # A kernel that no other test has, so that nothing is compiled before.
        dens = np.full(50, 1.0 + i)
        return parki.direct.direct_sum(tmp_path / "cold.py", x, x, dens, threads=1)

    (tmp_path / "cold.py").write_text(COLD)
    before = engine.counters().builds
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    r2 = np.sum((x[:, :, None] - x[:, None]) ** 2, axis=0)
    exact = 3 * np.sum(np.divide(1.0, r2, out=np.zeros_like(r2), where=r2 > 0), axis=1)
    for i, u in enumerate(found):
        agree(u, (1.0 + i) * exact)
    assert engine.counters().builds - before == 1


def test_calls_of_one_plan_take_turns(rng):
    x, (dens,) = points(rng, 2000), strengths("stokes_sl", rng, 2000, (6,))
    plan = plan_of("stokes_sl", x, x)
    exact = [plan(one) for one in dens]
    with ThreadPoolExecutor(3) as pool:
        for _ in range(3):
            for found, right in zip(pool.map(plan, dens), exact, strict=True):
                np.testing.assert_array_equal(found, right)
