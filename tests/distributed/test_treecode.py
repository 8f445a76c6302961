"""Treecodes over ranks: lists and sums equal to those of one process."""

import itertools
import pickle
from pathlib import Path

import numpy as np
import pytest

import parki
from parki.distributed.simulated import World
from parki.distributed.treecode import lists as rank_lists
from parki.distributed.trees import tables
from parki.freespace import REPORTS
from parki.treecode import interactions
from tests.distributed.free import FIXED, FreeCase, assert_same, far
from tests.distributed.shares import part
from tests.ewald import cupy_standin as standin
from tests.quick import every

KERNELS = ("coulomb", "yukawa", "stokes_sl", "stokes_comb", "laplace_grad", "gaussian", "rpy", "rotlet")


def case(**more):
    options = FIXED | more.pop("options", {})
    if "tolerance" in options:
        options = {name: a for name, a in options.items() if name not in ("theta", "degree", "leaf_size")}
    return FreeCase(parki.treecode, options=options, **more)


@pytest.mark.parametrize(
    ("ranks", "points", "method"),
    every(2, itertools.product([1, 2, 5, 16], ["uniform", "plummer", "sphere", "two", "crowd"], ["dual", "pc", "cp"])),
)
def test_sums(method, points, ranks):
    assert_same(case(points=points, options={"method": method}), ranks, seed=ranks)


def test_many_ranks():
    assert_same(case(n=4000, points="plummer"), 64)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("method", ["dual", "cp"])
def test_kernels(kernel, method):
    more = {"width": 0.7} if kernel == "gaussian" else {"radius": 0.01} if kernel == "rpy" else {}
    assert_same(case(kernel=kernel, n=800, options={"method": method} | more), 4)


@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
def test_targets_apart(method):
    assert_same(case(points="uniform", targets="plummer", options={"method": method}), 6)
    assert_same(case(points="uniform", targets="uniform", n=900, options={"method": method, "batch_size": 25}), 3)


@pytest.mark.parametrize("gradient", [True, "only"])
def test_gradients(gradient):
    assert_same(case(n=700, options={"gradient": gradient}), 4)


def test_single_precision():
    assert_same(case(n=900, options={"far_precision": "single"}), 4, most=1e-6)
    assert_same(case(n=900, dtype="float32"), 4, most=1e-5)


def test_tolerances():
    for kernel, points in (("coulomb", "plummer"), ("yukawa", "sphere"), ("stokes_sl", "uniform")):
        one = case(kernel=kernel, points=points, n=2500, options={"tolerance": 1e-5})
        exact = parki.direct.direct_sum(
            kernel, one.x, one.y, one.density, **({"kappa": 1.5} if kernel == "yukawa" else {})
        )
        u, _ = one.over(7)
        assert np.linalg.norm(u - exact) < 1e-5 * np.linalg.norm(exact)


def names(nodes):
    return tables.named(nodes.level, nodes.begin)


def pairs_of(t_nodes, s_nodes, pairs, kind=None, m=None):
    """Return far and near pairs by the names of their nodes, with kinds and numbers of proxy points."""
    t, s = names(t_nodes), names(s_nodes)
    near = set(zip(t[pairs.near_t].tolist(), s[pairs.near_s].tolist(), strict=True))
    far_pairs = zip(t[pairs.far_t].tolist(), s[pairs.far_s].tolist(), kind.tolist(), *m.tolist(), strict=True)
    return near, set(far_pairs)


@pytest.mark.parametrize(
    ("points", "ranks", "method"),
    [
        pytest.param(points, ranks, method, marks=[pytest.mark.slow] * (ranks == 64 and method != "cp"))
        for points, ranks in [("uniform", 3), ("plummer", 8), ("sphere", 64), ("two", 5), ("crowd", 4)]
        for method in ["dual", "pc", "cp"]
    ],
)
def test_lists_are_those_of_one_process(method, points, ranks, monkeypatch):
    """Nodes, pairs, kinds and numbers of proxy points are equal as sets."""
    one, found = case(points=points, options={"method": method}), []
    made = interactions.FarPairs.choose

    def chosen(self, scale):
        made(self, scale)
        found.append(self)

    monkeypatch.setattr(interactions.FarPairs, "choose", chosen)
    kept = []
    traverse = parki.treecode.method.traverse

    def traversed(*given):
        kept.append(traverse(*given))
        return kept[-1]

    monkeypatch.setattr(parki.treecode.method, "traverse", traversed)
    monkeypatch.setattr(rank_lists, "traverse", traversed)
    one.alone()
    (far_one,), (pairs_one,) = found.copy(), kept.copy()
    expected = pairs_of(far_one.targets, far_one.sources, pairs_one, far_one.kind, far_one.m)
    last, of = {}, rank_lists.RankLists.of.__func__

    def kept_lists(cls, targets, *more):
        last[targets.comm.rank] = of(cls, targets, *more)  # the last ones, if a plan makes lists twice
        return last[targets.comm.rank]

    monkeypatch.setattr(rank_lists.RankLists, "of", classmethod(kept_lists))
    one.over(ranks)
    near, far_pairs = set(), set()
    for rank in range(ranks):
        own = last[rank]
        some = pairs_of(own.targets, own.sources, own.pairs, own.far.kind, own.far.m)
        assert some[0] <= expected[0]
        assert some[1] <= expected[1]
        near, far_pairs = near | some[0], far_pairs | some[1]
        for name in ("low", "high"):
            theirs = dict(zip(names(far_one.sources).tolist(), getattr(far_one.sources, name).tolist(), strict=True))
            assert all(
                theirs[k] == a
                for k, a in zip(names(own.sources).tolist(), getattr(own.sources, name).tolist(), strict=True)
            )
    assert (near, far_pairs) == expected


@pytest.mark.parametrize("method", ["dual", "pc", "cp"])
def test_bytes(method):
    """Messages of a call have as many bytes as follow from its lists."""
    one = case(points="plummer", n=3000, kernel="stokes_sl", options={"method": method})

    def work(comm, plan, strengths):
        return comm.rank, plan.structure, dict(plan.walltime.nbytes)

    _, found = one.over(6, work)
    sent = sum(nbytes["exchange"] for *_, nbytes in found)
    expected = 0
    for rank, structure, _ in found:
        away, cuts = structure.elsewhere, structure.parts[1].cuts
        expected += 3 * 8 * away.points.shape[1]
        for of in (away.lists.pc, away.lists.cc):
            assert all(m <= 5 for m in of)
        used = {m: np.unique(np.concatenate([of[m].sources for of in (away.lists.pc, away.lists.cc) if m in of]))
                for m in {*away.lists.pc, *away.lists.cc}}  # fmt: skip
        for m, nodes in used.items():
            name = names_of(structure, nodes)
            owner = np.searchsorted(cuts[1:-1], tables.places(name), side="right")
            expected += int(np.count_nonzero(owner != rank)) * m**3 * 3 * 8
    shared = shared_bytes(found)
    assert sent == expected + shared
    assert method == "cp" or shared > 0


def names_of(structure, nodes):
    """Return the names of nodes of a rank's skeleton."""
    return structure.names[nodes]


def shared_bytes(found):
    """Return the bytes of parts that contributors send to owners: one part each, for every node that any rank uses."""
    wanted = {}
    for _, structure, _ in found:
        away = structure.elsewhere
        for of in (away.lists.pc, away.lists.cc):
            for m, one in of.items():
                for name in structure.names[np.unique(one.sources)].tolist():
                    wanted.setdefault((m, name), set())
    total, cuts = 0, found[0][1].parts[1].cuts
    ends = {}
    for _, structure, _ in found:
        table = structure.parts[1].table
        ends |= dict(zip(tables.names(table).tolist(), (table["begin"] + table["count"]).tolist(), strict=True))
    for m, name in wanted:
        lo = np.searchsorted(cuts[1:-1], tables.places(np.array([name])), side="right")[0]
        hi = np.searchsorted(cuts[1:-1], ends[name] - 1, side="right") + 1
        total += (hi - lo - 1) * m**3 * 3 * 8
    return total


def test_calls_that_use_a_plan_once():
    """Call with reports, with arrays (N, 3), and with a kernel of one's own."""
    file = Path(__file__).parents[2] / "examples/regularised_stokeslet.py"
    blob = parki.pairs.Pair("blob", 3, 3, str(file), names=("epsilon",), parameters=(0.1,), singular=False)
    n = 600
    x, f = parki.samples.plummer(n, 1, cutoff=5), parki.samples.charges(3 * n, 2).reshape(3, n)
    options = {"kernel": "stokes_sl", "tolerance": 1e-4, "execution_space": "Serial"}
    calls = {
        "reports": (parki.treecode.bldtt, options | dict.fromkeys(REPORTS, True)),
        "nd": (parki.treecode.bltc, options | {"layout": "nd", "variant": "cp"}),
        "own": (parki.treecode.bltc, {"kernel": blob, "degree": 5, "execution_space": "Serial"}),
    }

    def work(comm):
        mine = slice(comm.rank * 200, (comm.rank + 1) * 200)
        y, g = (np.ascontiguousarray(a[:, mine]) for a in (x, f))
        return {
            name: call(*((y.T, y.T, g.T) if name == "nd" else (y, y, g)), comm=comm, **more)
            for name, (call, more) in calls.items()
        }

    found = World(3).run(work)
    for name, (call, more) in calls.items():
        parts, alone = [of[name] for of in found], call(*((x.T, x.T, f.T) if name == "nd" else (x, x, f)), **more)
        if name == "reports":
            parts, times, parameters, errors = zip(*parts, strict=True)
            assert set(parameters) == {alone[2]}
            assert {error.value for error in errors} == {errors[0].value}
            assert errors[0].value == pytest.approx(alone[3].value, rel=1e-6)
            assert all(one.time["exchange"] > 0 for one in times)
            alone = alone[0]
        assert far(np.concatenate(parts, axis=0 if name == "nd" else 1), alone) < 1e-12


def test_questions_to_one_process_alone():
    def work(comm, plan, strengths):
        with pytest.raises(NotImplementedError, match="cannot be copied or pickled"):
            pickle.dumps(plan)
        with pytest.raises(NotImplementedError, match="near_pairs is of one process"):
            plan.near_pairs(0.1)

    case(n=300).over(3, work)


@pytest.mark.parametrize("method", ["dual", "cp"])
def test_arrays_of_a_device(method, all_digits, monkeypatch):
    cupy = standin.install(monkeypatch)
    one = case(n=300, put=cupy.asarray, options={"method": method, "execution_space": None})
    u, _ = one.over(3, lambda comm, plan, strengths: plan.space.name)
    assert far(u, case(n=300, options={"method": method}).alone()[1]) < 1e-12


def test_bad_input_is_found_together():
    one = case(n=300)

    def work(comm):
        x = part(one.y, one.shares(3)[1][comm.rank])
        if comm.rank == 1:
            x[0, 0] = np.nan
        one.plan(x, x, comm=comm)

    with pytest.raises(ValueError, match="sources") as found:
        World(3).run(work)
    assert "rank 1 of 3" in found.value.__notes__[0]


@pytest.mark.parametrize(("points", "ranks"), every(2, [("plummer", 8), ("uniform", 8), ("sphere", 16)]))
def test_skeletons_are_hardly_larger_than_needed(points, ranks):
    one = case(points=points, n=20_000, options={"leaf_size": 20})

    def work(comm, plan, strengths):
        nodes, structure = plan.structure.sources.nodes, plan.structure
        there = ~structure.elsewhere.makes
        needed = np.zeros(nodes.n, bool)
        for of in structure.every:
            for clusters in (*of.pc.values(), *of.cc.values()):
                needed[clusters.sources] = True
        needed |= nodes.is_leaf & (nodes.end > nodes.begin)  # with particles
        for first, end in reversed(list(itertools.pairwise(nodes.level_begin[1:].tolist()))):
            np.logical_or.at(needed, nodes.parent[first:end], needed[first:end])
        return np.count_nonzero(there), np.count_nonzero(there & needed)

    _, found = one.over(ranks, work)
    sent, needed = np.sum(found, axis=0)
    assert needed <= sent <= 1.5 * needed


@pytest.mark.slow
def test_plans_scale():
    """At 64 ranks, less than a twentieth of a rank's items do not fall with the number of ranks."""
    one = FreeCase(parki.treecode, n=1_000_000)

    def work(comm):
        x = np.ascontiguousarray(one.y[:, comm.rank :: comm.size])
        return one.plan(x, x, comm=comm).structure.handled

    repeated, own = np.mean(World(64).run(work), axis=0)
    assert repeated < 0.05 * (repeated + own)


@pytest.mark.parametrize("name", ["traverse", "SharedPairs"])
def test_memory_that_one_rank_lacks(name, monkeypatch):
    """Raise the error of one rank on all ranks."""
    one, calls = case(n=300), []
    known = getattr(rank_lists, name)

    def lacking(*given):
        calls.append(given)
        if len(calls) == 2:
            raise MemoryError("lists would take 1 TB; 1 GB are free.")
        return known(*given) if name == "traverse" else known.of(*given)

    patched = lacking if name == "traverse" else type("Lacking", (), {"of": staticmethod(lacking)})
    monkeypatch.setattr(rank_lists, name, patched)
    with pytest.raises(MemoryError, match="1 TB") as found:
        one.over(3)
    assert "of 3" in found.value.__notes__[0]
