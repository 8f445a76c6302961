"""Benchmarks of all methods in one way: rows are complete, sums are chosen by name, ratios are of the same sum."""

import pytest

from parki.engine.run.spaces import Space
from parki.perfmodels.bench import methods
from tests.perfmodels.recording import asked, ran

ONE = Space("Serial")


def test_every_method_reaches_its_tolerance(monkeypatch, tmp_path):
    monkeypatch.setattr(methods, "TOLERANCES", (1e-3, 1e-4))
    rows = ran("accuracy", 300, tmp_path)
    assert [r["series"] for r in rows[::2]] == [str(one) for one in methods.TOLERANT]
    assert {r["part"] for r in rows} == {"plan and call", "call again"}
    assert all(0 < r["error"] <= r["tolerance"] == 1e-3 for r in rows)
    assert all(r["memory"] > 0 for r in rows)


def test_growth_is_against_the_fewest_points(monkeypatch):
    monkeypatch.setattr(methods, "numbers", lambda n: [100, 200, 400])
    monkeypatch.setattr(methods, "MOST_DIRECT", 200)
    rows = methods.growth(asked("growth", 400, only=["kifmm-coulomb", "direct-coulomb"]), ONE)
    assert [(r["series"], r["n"]) for r in rows[::2]] == [
        *(("kifmm-coulomb", n) for n in (100, 200, 400)),
        *(("direct-coulomb", n) for n in (100, 200)),
    ]
    for r in rows:
        first = next(other for other in rows if (other["series"], other["part"]) == (r["series"], r["part"]))
        assert r is first or r["against"] == first["what"]
        assert r is first or r["ratio"] == pytest.approx(r["rate"] / first["rate"])


@pytest.mark.parametrize("name", ["ewald-laplace", "bldtt-coulomb", "kifmm-coulomb"])
def test_phases_and_the_rest_are_the_whole(name):
    rows = methods.phases(asked("phases", 300, only=[name]), ONE)
    assert rows[-1]["part"] == "plan and call"
    assert len(rows) > 4
    for k, whole in enumerate(rows[-1]["times"]):
        assert sum(r["times"][k] for r in rows[:-1]) <= whole * (1 + 1e-9)


def test_threads_are_against_one():
    rows = methods.threads(asked("threads", 300, only=["kifmm-coulomb"]), Space("OpenMP", threads=3))
    assert [r["threads"] for r in rows] == [1, 2, 3]
    assert ["ratio" in r for r in rows] == [False, True, True]
    assert {r["against"] for r in rows[1:]} == {rows[0]["what"]}


def test_other_names_are_refused():
    with pytest.raises(ValueError, match="--only is 'kifmm-yukawa'; expected some of ewald-laplace"):
        methods.phases(asked("phases", 300, only=["kifmm-yukawa"]), ONE)
    with pytest.raises(ValueError, match="'direct-coulomb'"):  # this sum has no tolerance
        methods.accuracy(asked("accuracy", 300, only=["direct-coulomb"]), ONE)
