"""Model by `parki model treecode`: counts, printed tables, files and refusals."""

import json
import re

import pytest

from parki import cli, samples, treecode
from parki.perfmodels.counts import clusters
from parki.perfmodels.machine import Machine
from parki.perfmodels.models import treecode as treecode_model

ROW = re.compile(r"^(\w+) +[\d.e+]+ +[\d.e+]+ +[\d.e+-]+ +\d+% +\w+ +([\d.e-]+) +(\d+)% +([\d.e-]+)$", re.MULTILINE)
GIVEN = ("--n", "3000", "--theta", "0.7", "--degree", "2")


@pytest.fixture(autouse=True)
def stated(monkeypatch):
    """Use the rates of files, not of this machine."""
    monkeypatch.setenv("PARKI_CALIBRATION", "off")


@pytest.fixture(scope="module")
def plan():
    x = samples.uniform(3000, seed=1)
    return treecode.plan("coulomb", x, x, theta=0.7, degree=2, execution_space="Serial")


@pytest.mark.parametrize("device", ["h200", "mi300x", "host"])
def test_table(capsys, device):
    assert cli.main(["model", "treecode", *GIVEN, "--device", device]) == 0
    text = capsys.readouterr().out
    assert "coulomb, dual, N = 3,000, float64" in text
    assert "θ 0.7, degree 2" in text
    rows = ROW.findall(text)
    assert {"tree", "lists", "PP"} <= {row[0] for row in rows}
    total = float(re.search(r"^total +([\d.e-]+)$", text, re.MULTILINE).group(1))
    assert total == pytest.approx(sum(float(row[3]) for row in rows), rel=2e-3)


def test_a_record_holds_the_lists_of_the_plan(tmp_path, plan, capsys):
    path = tmp_path / "model.json"
    assert cli.main(["model", "treecode", *GIVEN, "--device", "h200", "--json", str(path)]) == 0
    found = json.loads(path.read_text("utf-8"))
    assert found["evaluations"] == pytest.approx(dict(plan.walltime.pairs))
    assert set(found["phases"]) <= set(clusters.PHASES)
    assert found["seconds"] == pytest.approx(sum(phase["seconds"] for phase in found["phases"].values()))
    assert f"{1e3 * found['seconds']:.4g}" in capsys.readouterr().out


def test_more_cores_take_less_time_and_machines_differ(plan):
    host, device = Machine.load("xeon"), Machine.load("h200")
    one, all_ = (treecode_model.predict(plan, host, units) for units in (1, None))
    assert all_["pp"].bound.seconds < 0.5 * one["pp"].bound.seconds
    assert treecode_model.predict(plan, device)["pp"].bound.seconds < all_["pp"].bound.seconds
    assert one["pp"].counts.operations["rsqrt"] == pytest.approx(plan.walltime.pairs["pp"])
    with pytest.raises(ValueError, match="threads: found 1000"):
        treecode_model.predict(plan, host, 1000)


@pytest.mark.parametrize(
    ("what", "more", "says"),
    [
        ("treecode", ("--rc", "0.1"), "--rc"),
        ("treecode", ("--periodicity", "3"), "--periodicity: found 3"),
        ("treecode", ("--kernel", "quadrupole"), "quadrupole"),
        ("ewald", ("--theta", "0.7"), "--theta"),
        ("ewald", ("--kappa", "1.0"), "--kappa"),
    ],
)
def test_options_of_the_other_kind_are_refused(capsys, what, more, says):
    assert cli.main(["model", what, "--n", "3000", "--device", "h200", *more]) == 2
    assert says in capsys.readouterr().err


def test_single_precision(capsys):
    assert cli.main(["model", "treecode", *GIVEN, "--device", "h200", "--dtype", "float32"]) == 0
    assert "far field float32" in capsys.readouterr().out
