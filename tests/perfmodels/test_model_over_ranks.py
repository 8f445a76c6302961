"""Models of treecodes and fast multipole sums over ranks."""

import dataclasses

import numpy as np
import pytest

from parki import cli
from parki.perfmodels.bench import plans
from parki.perfmodels.machine import Machine
from parki.perfmodels.network import Network
from parki.perfmodels.published import trees
from parki.perfmodels.ranks import fmm as ranks_fmm
from parki.perfmodels.ranks import planning, sums
from parki.perfmodels.ranks.fmm import FmmModel, RankedFmm
from parki.perfmodels.ranks.fmm_shares import FmmShares
from parki.perfmodels.ranks.shares import Cuts
from parki.perfmodels.ranks.sums import RankedSum, Sent
from parki.perfmodels.ranks.treecode import RankedTreecode, TreecodeModel
from tests.perfmodels import recording

H200, XEON, HDR, NDR = Machine.load("h200"), Machine.load("xeon"), Network.load("hdr200"), Network.load("ndr400")
TREECODE = RankedTreecode(options=(("theta", 0.7), ("degree", 4)))


@pytest.fixture(scope="module")
def fmm():
    return FmmModel(RankedFmm(options=(("order", 4), ("far_precision", "double"))), XEON, HDR)


@pytest.fixture(scope="module")
def tree():
    return TreecodeModel.of(TREECODE, 60_000, XEON)


def test_a_call_takes_its_slowest_rank():
    sent = {"sort": Sent(2.0, 3.0, 1.0), "exchange": Sent(4.0, 1.0, 4.0)}
    machine = dataclasses.replace(XEON, bandwidth={**XEON.bandwidth, "dram_all": sums.MOVED * 4.0})
    it = RankedSum(
        2, 10, 40.0, np.array([5.0, 1.0]), np.array([1.0, 4.0]), 3.0, sent, "owners", 1.0, 1, {"tree": 8.0},
        {"tree": 10.0}, machine, Network(1.0, 2.0),
    )  # fmt: skip
    assert it.sort == 4.0
    assert it.seconds() == 7.0 + 1.0 + 2.0  # the second rank waits for messages; handled; agreed
    assert it.seconds(hidden=False) == 9.0 + 3.0
    assert it.seconds(placed=False) == 14.0
    assert it.efficiency() == 2.0
    assert it.with_plan == 50.0 / (2 * 22.0)


def test_one_rank_sends_nothing_and_takes_its_time(tree, fmm):
    for one in (tree.over(1, HDR), fmm.predict(60_000, 1)):
        assert one.seconds() == pytest.approx(one.whole)
        assert one.exchange == one.sort == one.partners == 0
        assert one.plan == one.alone
    assert tree.seconds == pytest.approx(sum(tree.phases.values()))


def test_shares_of_phases_add_up(tree):
    one, some = tree.over(1, HDR), tree.over(4, HDR)
    launched = 4 * tree.launched * (1 - 1 / 4)
    assert (some.near + some.rest).sum() >= one.whole + 0.99 * launched
    assert (some.near + some.rest).sum() < 1.1 * (one.whole + launched)
    assert 0 < some.near.sum() < one.near.sum()  # lists with sources of other ranks are not hidden
    assert some.partners == 3
    assert 0.5 < some.efficiency(hidden=False) <= some.efficiency() < 1
    assert some.with_plan < some.efficiency()


def test_points_that_stand_for_many(monkeypatch):
    monkeypatch.setattr("parki.perfmodels.ranks.treecode.MOST", 50_000)
    many = TreecodeModel.of(TREECODE, 100_000, XEON)
    assert many.n == many.structure.targets.nodes.n_points == 100_000
    assert (many.structure.targets.nodes.count % 2 == 0).all()
    monkeypatch.undo()
    exact = TreecodeModel.of(TREECODE, 100_000, XEON)
    assert many.seconds == pytest.approx(exact.seconds, rel=0.12)
    assert sum(many.structure.lists.pairs) == pytest.approx(sum(exact.structure.lists.pairs), rel=0.12)
    a, b = (it.over(8, HDR).sent["exchange"].mean for it in (many, exact))
    assert a == pytest.approx(b, rel=0.15)


def test_work_of_a_cube_in_closed_form():
    nodes, lists = ranks_fmm.lattice(16)
    counted = FmmShares(nodes, lists, Cuts(np.array([0, 16**3]))).units
    assert [float(of[0]) for of in counted] == list(ranks_fmm.cube(16, 1.0))


@pytest.mark.parametrize(("ranks", "across", "most"), [(8, 48, 24), (64, 56, 28), (512, 64, 32)])
def test_laws_against_counts_of_two_sizes(fmm, monkeypatch, ranks, across, most):
    """Check the parabola for few ranks, and growth from fewer ranks for many."""
    ref = fmm.reference(100_000)
    counted = ranks_fmm.of_lattice(ranks, ref, across)
    monkeypatch.setattr(ranks_fmm, "ACROSS", most)
    law = ranks_fmm.law(ranks, ref, across)
    assert ranks_fmm.halvings(across) == 1
    for name in ("excess", "ghosts", "boxes", "owners mean", "hypercube", "hypercube mean"):
        assert law[name] == pytest.approx(counted[name], rel=0.25), name
    assert law["own"] == pytest.approx(counted["own"], rel=0.1)
    assert law["imbalance"] == pytest.approx(counted["imbalance"], abs=0.02)


def test_counts_of_points_and_laws_agree(fmm, monkeypatch):
    counted = fmm.predict(200_000, 8)
    monkeypatch.setattr(ranks_fmm, "COUNTED", 100_000)
    law = fmm.predict(200_000, 8)
    assert law.seconds() == pytest.approx(counted.seconds(), rel=0.1)
    assert law.whole == pytest.approx(counted.whole, rel=0.1)
    assert law.sent["ghosts"].mean == pytest.approx(counted.sent["ghosts"].mean, rel=0.25)


def test_the_cheaper_way_of_exchanging_is_taken(fmm):
    bytes_count, messages_count = Network(0.0, 1e9), Network(1e-3, 1e12)
    few, steps = (dataclasses.replace(fmm, network=it).predict(100_000, 8) for it in (bytes_count, messages_count))
    assert few.scheme == "owners"
    assert steps.scheme == "hypercube"
    assert steps.sent["hypercube"].messages == 3
    assert few.sent["owners"].mean < steps.sent["hypercube"].mean
    assert fmm.predict(100_000, 256).partners < 100


def test_making_a_plan():
    work = {"n": 1e6, "moved": 5e6, "pairs": 1e6, "recut": 1e4, "skeleton": 1e3, "partners": 7, "wanted": 1e3}
    work |= {"ghosts": 1e5, "boxes": 2e4, "again": 1.0}
    for plan in (planning.treecode, planning.fmm):
        one, some, slow = plan(NDR, 1, work), plan(NDR, 8, work), plan(Network(1e-3, 1e6), 8, work)
        assert tuple(one) == tuple(some) == planning.PARTS
        assert {name for name, seconds in one.items() if seconds} == {"tree", "lists", "steps"}
        assert all(some[name] == one[name] for name in ("tree", "lists", "steps"))
        assert all(slow[name] > some[name] > 0 for name in planning.PARTS if name not in ("tree", "lists", "steps"))
    even = planning.treecode(NDR, 8, work | {"again": 0.0})
    assert even["weights"] == 0
    assert 2 * even["geometry"] == pytest.approx(planning.treecode(NDR, 8, work)["geometry"])
    assert planning.steps_of(1) == 0
    assert planning.steps_of(5) == 3


def test_units_of_plans_are_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(plans, "LEAF", 40)
    rows = recording.ran("plans", 3000, tmp_path)
    assert len(rows) == len(capsys.readouterr().out.splitlines())
    assert all(r["rate"] > 0 for r in rows)


def test_commands(capsys, monkeypatch):
    monkeypatch.setenv("PARKI_CALIBRATION", "off")
    monkeypatch.setattr(trees, "TREECODES", (20_000, 4, (("theta", 0.7), ("degree", 2))))
    asked = ["--n", "20000", "--ranks", "4", "--network", "hdr200", "--device", "xeon", "--published"]
    assert cli.main(["model", "treecode", *asked, "--theta", "0.7", "--degree", "2"]) == 0
    said = capsys.readouterr().out
    for words in ("strong: 20,000 points", "weak: 5,000 points a rank", "BLDTT", "BLTC", "plummer", "wishes", "0.77"):
        assert words in said
    monkeypatch.setattr(trees, "STRONG", (40_000, (2, 4), "0.80-0.90"))
    monkeypatch.setattr(trees, "WEAK", (10_000, (1, 2), "0.67"))
    monkeypatch.setattr(trees, "GPUS", (10_000, (1, 4), "0.78"))
    assert cli.main(["model", "fmm", *asked, "--order", "4"]) == 0
    said = capsys.readouterr().out
    for words in ("weak: 20,000 points a rank", "strong: 20,000 points", "figure 4, weak", "efficiency", "ghosts"):
        assert words in said


@pytest.mark.parametrize("what", ["treecode", "fmm"])
def test_what_is_refused(capsys, what):
    assert cli.main(["model", what, "--n", "1000", "--published"]) == 2
    assert "--published" in capsys.readouterr().err
    assert cli.main(["model", what, "--n", "1000", "--ranks", "2", "--json", "x.json"]) == 2
    assert "--json: found with --ranks, expected without" in capsys.readouterr().err
    assert cli.main(["model", what, "--n", "1000", "--ranks", "2", "--network", "ethernet"]) == 2
    assert "network: found 'ethernet'" in capsys.readouterr().err


def test_too_many_points():
    with pytest.raises(ValueError, match="--n: found 3000000000, expected at most 2000000000"):
        TreecodeModel.of(TREECODE, 3_000_000_000, XEON)


def test_softened_charges_are_refused():
    case = RankedFmm("spline_coulomb", options=(("order", 3), ("epsilon", 0.01)))
    with pytest.raises(ValueError, match=r"kernel is spline_coulomb.*without softening"):
        ranks_fmm.reference(case, 2000, XEON)
