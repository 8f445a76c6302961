"""Ewald sums over simulated ranks: equal to those of one process up to rounding."""

import itertools
import logging

import numpy as np
import pytest

import parki
from parki.distributed.bricks import division
from parki.distributed.simulated import World
from parki.error import NetDensityWarning
from parki.ewald import kernels
from tests.distributed.shares import BOX, CELL, Case, cuts, far, part
from tests.quick import but, every

SAME = 1e-12
CRYSTALS = {  # number of cells along a side; places and charges of the atoms of a cell, x y z q
    "NaCl": (5, [(i / 2, j / 2, k / 2, (-1) ** (i + j + k)) for i in (0, 1) for j in (0, 1) for k in (0, 1)]),
    "CsCl": (8, [(0, 0, 0, 1), (0.5, 0.5, 0.5, -1)]),
    "ZnS": (5, [(x + d, y + d, z + d, 1 - 8 * d)
                for x, y, z in [(0, 0, 0), (0, 0.5, 0.5), (0.5, 0, 0.5), (0.5, 0.5, 0)] for d in (0, 0.25)]),
}  # fmt: skip
EVERY = [(k, p) for k, kernel in kernels.KERNELS.items() for p in kernel.periodicities]


def crystal(cells, atoms):
    """Return atoms (3, N) in the unit box, a little off their places, and their charges."""
    corner = np.array(np.meshgrid(*[np.arange(cells)] * 3)).reshape(3, -1, 1)
    *at, charge = np.array(atoms, float).T
    x = (corner + np.array(at)[:, None]).reshape(3, -1) / cells
    return (x + 1e-3 * np.random.default_rng(1).standard_normal(x.shape)) % 1.0, np.tile(charge, cells**3)


@pytest.mark.parametrize(("kernel", "periodicity"), every(3, EVERY))
def test_every_kernel_and_periodicity(kernel, periodicity):
    case = Case(kernel, periodicity)
    plan, expected = case.alone()
    u, plans = case.over(4)
    assert plans[0].parameters == plan.parameters
    assert far(u, expected) < SAME


@pytest.mark.parametrize("kernel", but("stokes_grad", of=["laplace", "stokes_comb", "stokes_grad", "yukawa"]))
def test_triclinic_cells(kernel):
    case = Case(kernel, box=CELL)
    _, expected = case.alone()
    for ranks in (2, 5):
        assert far(case.over(ranks)[0], expected) < SAME


@pytest.mark.parametrize(("kernel", "n", "more"), [("laplace", 600, {}), ("stokes_comb", 3000, {"rc": 0.15})])
def test_triclinic_slabs(kernel, n, more):
    case = Case(kernel, 2, np.diag((1.0, 1.0, 0.9)) + 0.3 * np.eye(3, k=-1) * [[1], [1], [0]], n, options=more)
    _, expected = case.alone()
    for ranks in (2, 5):
        assert far(case.over(ranks)[0], expected) < SAME


@pytest.mark.parametrize("ranks", but(3, 8, 27, 64, of=[1, 2, 3, 5, 8, 27, 64]))
@pytest.mark.parametrize(
    ("kernel", "periodicity", "box"), every(2, [("laplace", 3, BOX), ("stokes_sl", 1, BOX), ("stokes_dl", 3, CELL)])
)
def test_every_number_of_ranks(ranks, kernel, periodicity, box):
    case = Case(kernel, periodicity, box, same=ranks % 2 == 0)
    _, expected = case.alone()
    assert far(case.over(ranks, seed=ranks)[0], expected) < SAME


@pytest.mark.parametrize(
    ("kernel", "periodicity"), [(k, p) for k, p in EVERY if p >= 2 and k in ("laplace", "yukawa", "stokes_comb")]
)
@pytest.mark.parametrize("ranks", [2, 3])
def test_slabs_that_exchange_single_lines(kernel, periodicity, ranks, monkeypatch):
    monkeypatch.setattr(division, "pairs", lambda p, ranks, points: [(1, ranks)])
    case = Case(kernel, periodicity, options={"rhs": 2, "rc": 0.3})
    _, expected = case.alone()
    u, plans = case.over(ranks)
    assert plans[0].structure.division.single
    assert far(u, expected) < SAME


@pytest.mark.parametrize(("bits", "bound"), [(40, 1e-10), (32, 1e-6)])
@pytest.mark.parametrize("kernel", ["laplace", "stokes_grad", "stokes_comb", "yukawa"])
def test_fewer_bits_round_as_documented(kernel, bits, bound):
    case = Case(kernel, options={"exchange_bits": bits, "tolerance": 1e-9, "rc": 0.2})
    _, expected = case.alone()
    u, plans = case.over(4)
    rounding = np.sqrt(((u - expected) ** 2).sum() / (expected**2).sum())
    assert plans[0].chosen.bits == bits
    assert bound / 1e3 < rounding < bound / 10


#: Crystals, kernels and bits; the first two of the list are in every run.
ROUNDED = [("NaCl", "laplace", 40), ("ZnS", "yukawa", 32)]
ROUNDED += sorted({*itertools.product(CRYSTALS, ["laplace", "laplace_grad", "yukawa"], [40, 32])} - {*ROUNDED})


@pytest.mark.parametrize(
    ("cell", "kernel", "bits"),
    [pytest.param(*of, marks=[pytest.mark.slow] * (k > 1)) for k, of in enumerate(ROUNDED)],
)
def test_crystals_meet_tolerances_that_choose_fewer_bits(cell, kernel, bits):
    """Far fields cancel in crystals; atoms are moved a little off their places, so that fields are not zero."""
    x, q = crystal(*CRYSTALS[cell])
    own, tolerance = np.array_split(np.arange(len(q)), 4), {40: 1e-9, 32: 1e-6}[bits]

    def total(tolerance, **more):
        def work(comm):
            y = part(x, own[comm.rank])
            given = {"box": (1, 1, 1), "tolerance": tolerance, "rc": 0.15, "comm": comm} | more
            given |= {"kappa": 3.0} if kernel == "yukawa" else {}
            return parki.ewald.plan(kernel, y, y, **given)(part(q, own[comm.rank]))

        return np.concatenate(World(4).run(work), axis=-1)

    exact = total(1e-12)
    error = np.linalg.norm(total(tolerance, exchange_bits=bits) - exact) / np.linalg.norm(exact)
    whole = np.linalg.norm(total(tolerance) - exact) / np.linalg.norm(exact)
    assert error < tolerance + whole  # with a pinned cutoff the tolerance is only nearly met


@pytest.mark.parametrize("options", [
    {"p2g_method": "BASE", "g2p_method": "BASE"}, {"p2g_method": "SOURCE", "p2p_method": "GM-1D"},
    {"p2g_method": "GRID", "p2p_method": "SM-2D"}, {"p2g_method": "HYBRID", "p2p_method": "SM-1D"},
    {"p2p_method": "GM-2D"}, {"split": "gaussian"}, {"far_precision": "single", "tolerance": 1e-4},
    {"rc": 0.45}, {"rc": 0.79}, {"rc": 0.05, "tolerance": 1e-3}, {"layout": "nd"}, {"execution_space": "Serial"},
])  # fmt: skip
def test_options(options):
    bound = 1e-6 if options.get("tolerance", 0) >= 1e-4 else SAME  # far fields in single precision
    if options.get("layout") == "nd":
        case = Case("stokes_sl")
        _, expected = case.alone()
        ends = cuts(case.n, 3)

        def work(comm):
            x, y, f = (part(a, ends[comm.rank]).T.copy() for a in (case.targets, case.sources, case.density))
            return case.plan(x, y, comm=comm, layout="nd")(f)

        u = np.concatenate(World(3).run(work)).T
    else:
        case = Case("stokes_sl", options=options)
        _, expected = case.alone()
        u, _ = case.over(3)
    assert far(u, expected) < bound


def test_single_precision():
    case = Case("laplace", dtype="float32", options={"tolerance": 1e-4})
    _, expected = case.alone()
    u, _ = case.over(4)
    assert u.dtype == np.float32
    assert far(u, expected) < 3e-6


@pytest.mark.parametrize("seed", range(3))
def test_results_repeat_whatever_the_order_of_ranks(seed):
    case = Case("stokes_sl")
    first, _ = case.over(5, seed=1)
    again, _ = case.over(5, seed=1, world=World(5, 10 + seed))
    np.testing.assert_array_equal(first, again)


# Distributions --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("where", ["all on one rank", "no targets on some", "no sources on some", "few points"])
def test_any_distribution(where):
    case = Case("stokes_sl", n=5 if where == "few points" else 400)
    _, expected = case.alone()
    ends = cuts(case.n, 4)
    none = np.empty(0, int)
    everything = [none, np.arange(case.n), none, none]
    half = [*np.array_split(np.arange(case.n), 2), none, none]
    to, source = {
        "all on one rank": (everything, everything),
        "no targets on some": (half, ends),
        "no sources on some": (ends, half),
        "few points": (ends, half),
    }[where]

    def work(comm):
        plan = case.plan(part(case.targets, to[comm.rank]), part(case.sources, source[comm.rank]), comm=comm)
        return plan(part(case.density, source[comm.rank]))

    assert far(np.concatenate(World(4).run(work), axis=-1), expected) < SAME


def test_crystals_and_points_in_one_place():
    # No two points are exactly rc apart; roots with fewer digits would change with the rounding of images.
    case = Case("laplace", n=512, options={"rc": 0.31, "tolerance": 1e-9})
    # A little off rows of the grid: exactly on a row, rounding would choose between two windows.
    grid = np.array(np.meshgrid(*[np.arange(8) / 8 + 1e-3] * 3)).reshape(3, -1)
    case.targets = case.sources = grid * np.array(BOX)[:, None]
    case.targets[:, :40] = case.targets[:, :1]
    case.same = True
    _, expected = case.alone()
    for ranks in (2, 4, 8):
        assert far(case.over(ranks)[0], expected) < SAME


def test_no_points_anywhere():
    def work(comm):
        empty = np.empty((3, 0))
        plan = parki.ewald.plan("laplace", empty, empty, box=BOX, comm=comm)
        return plan(np.empty(0)).shape

    assert World(3).run(work) == [(0,)] * 3


def test_a_box_around_points_of_all_ranks():
    case = Case("laplace", 0)
    case.box = None
    case.targets, case.sources = 3 * np.random.default_rng(1).random((2, 3, case.n)) - 7
    _, expected = case.alone()
    u, plans = case.over(3)
    assert far(u, expected) < SAME
    assert len({plan.problem.geometry for plan in plans}) == 1


# Plans ----------------------------------------------------------------------------------------------------------------
def test_several_right_hand_sides_and_out():
    case = Case("stokes_comb")
    plan, _ = case.alone()
    many = np.stack([case.density, 2 * case.density[::-1], case.density**2])
    expected = plan(many, case.normals)

    def work(comm, plan, to, source):
        out = np.empty((3, 3, len(to)))
        assert plan(part(many, source), part(case.normals, source), out=out) is out
        return out

    _, outs = case.over(3, work)
    assert far(np.concatenate(outs, axis=-1), expected) < SAME


@pytest.mark.parametrize(("periodicity", "box"), [(3, BOX), (0, None)])
def test_moves(periodicity, box):
    case = Case("laplace", periodicity)
    case.box = box
    rng = np.random.default_rng(8)
    x, y, z = (rng.random((3, n)) * np.array(BOX)[:, None] for n in (600, 600, 450))
    q = rng.standard_normal(450)
    plan, _ = case.alone()
    plan.move(targets=x, sources=y)
    both = plan(case.density)
    plan.move(sources=z)
    one = plan(q)

    def work(comm, plan, to, source):
        before = plan.parameters
        plan.move(targets=part(x, to), sources=part(y, source))
        found = [plan(part(case.density, source))]
        assert plan.parameters == before or box is None
        own = cuts(450, 4, 77)[comm.rank]
        plan.move(sources=part(z, own))
        return [*found, plan(part(q, own))]

    _, found = case.over(4, work)
    assert far(np.concatenate([f[0] for f in found]), both) < (SAME if box else 1e-5)
    assert far(np.concatenate([f[1] for f in found]), one) < 1e-5


def test_callers_may_change_their_points():
    case = Case("laplace", same=True)
    single, expected = case.alone()
    turned = single.transposed()(case.density)

    def work(comm):
        own = cuts(case.n, 3)[comm.rank]
        x, q = part(case.targets, own), part(case.density, own)
        plan = case.plan(x, x, comm=comm)
        x[:] = 0
        return plan(q), plan.transposed()(q), plan.error().value

    found = World(3).run(work)
    assert far(np.concatenate([u for u, *_ in found]), expected) < SAME
    assert far(np.concatenate([u for _, u, _ in found]), turned) < SAME
    assert max(error for *_, error in found) < 1e-6


def test_points_that_stay_where_the_plan_put_them_are_not_sent():
    case = Case("stokes_sl", same=True)
    _, expected = case.alone()

    def work(comm, plan, to, source):
        x, f = plan.theirs(part(case.targets, to)), plan.theirs(part(case.density, to))
        np.testing.assert_array_equal(plan.ours(f), part(case.density, to))
        stay = case.plan(x, x, comm=comm)
        u = plan.ours(stay(f), of="targets")
        sent = stay.walltime.nbytes["sort"]
        stay.move(x)
        return u, sent, len({case.targets[1, 0], 1.0})

    _, found = case.over(4, work)
    assert far(np.concatenate([u for u, *_ in found], axis=-1), expected) < SAME
    assert [sent for _, sent, _ in found] == [0] * 4
    alone, _ = case.alone()
    assert alone.theirs(case.density) is case.density
    with pytest.raises(ValueError, match=r"of is 'both'; expected one of 'sources', 'targets'"):
        alone.theirs(case.density, of="both")


@pytest.mark.parametrize("periodicity", [3, 0])
def test_errors_are_measured_at_the_same_targets(periodicity):
    case = Case("stokes_sl", periodicity)
    plan, _ = case.alone()
    expected, others = (plan.error(50, seed).value for seed in (3, 4))
    assert others != pytest.approx(expected, rel=0.01)
    _, found = case.over(3, lambda comm, plan, to, source: plan.error(50, 3))
    for measured in found:
        assert measured.n == 50
        assert measured.value == pytest.approx(expected, rel=0.005)  # the reference has a hundredth of this error


def test_operators_and_inner_products():
    case = Case("stokes_dl")
    plan, _ = case.alone()
    w = np.random.default_rng(2).standard_normal((3, case.n))
    turned = plan.operator(case.normals).T @ w.ravel()
    inner = plan.inner(turned, case.density.ravel())

    def work(comm, plan, to, source):
        back = plan.operator(part(case.normals, source)).T @ part(w, to).ravel()
        return back.reshape(3, -1), plan.inner(back, part(case.density, source).ravel())

    _, found = case.over(3, work)
    assert far(np.concatenate([back for back, _ in found], axis=-1).ravel(), turned) < 1e-11
    assert [value for _, value in found] == pytest.approx([inner] * 3, rel=1e-9)


def test_one_shot_calls_and_their_reports():
    case = Case("laplace")
    _, expected = case.alone()

    def work(comm):
        own = cuts(case.n, 3)[comm.rank]
        x, y, q = part(case.targets, own), part(case.sources, own), part(case.density, own)
        flags = {"return_walltime": True, "return_params": True, "return_error": True}
        return parki.ewald.laplace(x, y, q, box=BOX, tolerance=1e-6, comm=comm, **flags)

    found = World(3).run(work)
    u, times, params, error = found[0]
    assert far(np.concatenate([f[0] for f in found]), expected) < SAME
    assert min(times.time[name] for name in ("sort", "ghost_source", "ghost_grid", "exchange", "agree")) > 0
    assert error.value < 1e-6
    assert "rc" in str(params)
    assert len(u) == len(cuts(case.n, 3)[0])


def test_times_of_all_ranks():
    case = Case("laplace")
    _, tables = case.over(3, lambda comm, plan, to, source: plan.walltime.summary())
    assert len(set(tables)) == 1
    for word in ("near field", "lines for planes", "margins of the grid", "busy: largest over mean"):
        assert word in tables[0]
    plan, _ = case.alone()
    assert "near field" in plan.walltime.summary()


def test_one_rank_warns_of_a_net_charge():
    case = Case("laplace")
    case.density = case.density + 1
    with pytest.warns(NetDensityWarning, match="total charge is") as caught:
        case.over(4)
    assert len(caught) == 1


def test_a_call_is_predicted_to_take_an_even_share_of_the_whole():
    case = Case("laplace")
    _, found = case.over(3, lambda comm, plan, to, source: (plan.predict().phases, plan.structure.division.size))
    whole = case.alone()[0].predict().phases
    for phases, bricks in found:
        assert bricks > 1
        assert phases == pytest.approx({part: seconds / bricks for part, seconds in whole.items()})


def test_descriptions_memory_and_copies(caplog):
    import pickle

    def work(comm, plan, to, source):
        assert plan.memory > 0
        assert plan.predict().seconds >= 0
        assert "laplace" in str(plan)
        with pytest.raises(NotImplementedError, match="cannot be copied or pickled"):
            pickle.dumps(plan)
        with pytest.raises(NotImplementedError, match="near_pairs is of one process"):
            plan.near_pairs(0.1)

    with caplog.at_level(logging.INFO):
        Case("laplace").over(3, work)
