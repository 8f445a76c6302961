"""Model by `parki model ewald`: counts, printed tables, files and pictures."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from parki import cli
from parki.ewald import predict
from parki.ewald.choice import choose, variants
from parki.ewald.choice.question import Question
from parki.ewald.stages import work
from parki.perfmodels.counts.totals import Counts
from parki.perfmodels.machine import Machine
from parki.perfmodels.models import ewald, table
from parki.perfmodels.published import kosmacher

BOX = (1.0, 1.0, 1.0)
ROW = re.compile(
    r"(P2P|P2G|FFT|CNV|IFFT|G2P) +[\d.e+]+ +[\d.e+]+ +[\d.e+]+ +\d+% +(\w+) +([\d.e-]+) +(\d+)% +([\d.e-]+)"
)


@pytest.fixture(autouse=True)
def stated(monkeypatch):
    """Use the rates of files, not of this machine; compile nothing for GPUs."""
    monkeypatch.setenv("PARKI_CALIBRATION", "off")
    monkeypatch.setattr(ewald, "ARCHES", {})


def asked(*more, device="h200", n=100_000, tolerance=1e-6):
    return ["model", "ewald", "--device", device, "--n", str(n), "--tolerance", str(tolerance), *more]


@pytest.mark.parametrize("device", ["h200", "a100", "mi300x", "host"])
def test_table(capsys, device):
    assert cli.main(asked("--kernel", "stokes_sl", "--threads", "1", device=device)) == 0
    text = capsys.readouterr().out
    rows = ROW.findall(text)
    assert [row[0] for row in rows] == ["P2P", "P2G", "FFT", "CNV", "IFFT", "G2P"]
    total = float(re.search(r"^total +([\d.]+)$", text, re.MULTILINE).group(1))
    assert total == pytest.approx(sum(float(row[4]) for row in rows), rel=2e-3)
    for _, _, limit, share, milliseconds in rows:
        assert float(milliseconds) >= 0.98 * float(limit) / (float(share) / 100 + 0.005)
    assert "stokes_sl, N = 100,000, tolerance 1e-06" in text


def test_json(tmp_path, capsys):
    path = tmp_path / "model.json"
    assert cli.main(asked("--json", str(path), "--published", "--periodicity", "1")) == 0
    found = json.loads(path.read_text("utf-8"))
    assert {"kernel", "n", "tolerance", "machine", "parameters", "variants", "phases", "seconds"} <= set(found)
    assert list(found["phases"]) == list(Machine.PHASES) == list(found["published"])
    for phase in found["phases"].values():
        assert {"seconds", "by", "share", "parts", "flops", "operations", "bytes", "fill"} <= set(phase)
        assert phase["by"] in phase["parts"]
        assert phase["seconds"] > 0
        assert 0 < phase["fill"] <= 1
    assert found["seconds"] == pytest.approx(sum(phase["seconds"] for phase in found["phases"].values()))
    assert found["periodicity"] == 1
    assert f"{1e3 * found['seconds']:.4g}" in capsys.readouterr().out


def test_plot(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "model.png"
    assert cli.main(asked("--plot", str(path))) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000


def test_published_beside_ours(capsys):
    assert cli.main(asked("--published", "--periodicity", "1", n=4_000_000, tolerance=1e-9)) == 0
    text = capsys.readouterr().out.partition("published ")[2]
    for stage, measured in kosmacher.MEASURED["table9"].items():
        line = next(line for line in text.splitlines() if line.startswith(f"{table.TITLES[stage]} "))
        found = re.search(r"% +([\d.]+) +([\d.]+) +([+-]\d+)%", line)
        assert float(found.group(2)) == measured
        assert abs(int(found.group(3))) <= 30
    assert re.search(r"^total +39\d\.\d +402\.7", text, re.MULTILINE)


def test_no_times_measured_elsewhere(capsys):
    assert cli.main(asked("--published", device="a100")) == 0
    assert "–" in capsys.readouterr().out.partition("published ")[2]


def question(kernel, n, tolerance, **more):
    return Question(kernel, BOX, n, n, tolerance, **more)


def test_the_headline_takes_less_than_the_goal():
    found = ewald.predict(question("stokes_comb", 4_000_000, 1e-9, periodicity=1), Machine.load("h200"))
    assert 0.03 < found.seconds < 0.12


def test_more_cores_and_a_given_cutoff():
    machine = Machine.load("host")
    one, all_of_them = (ewald.predict(question("laplace", 50_000, 1e-6), machine, u) for u in (1, None))
    assert all_of_them.units == machine.units
    assert all_of_them.seconds < one.seconds
    given = ewald.predict(question("laplace", 50_000, 1e-6, rc=0.15), machine, 1)
    assert given.parameters.rc == pytest.approx(0.15)
    with pytest.raises(ValueError, match="threads: found"):
        ewald.predict(question("laplace", 1000, 1e-6), machine, 10_000)
    with pytest.raises(ValueError, match="question: found 10 targets and 1000 sources"):
        ewald.predict(replace(question("laplace", 1000, 1e-6), n_targets=10), machine)


def test_time_grows_with_particles():
    machine = Machine.load("h200")
    times = [ewald.predict(question("stokes_sl", n, 1e-7), machine).seconds for n in (10**5, 10**6, 10**7)]
    assert 3 < times[1] / times[0] < 15
    assert 7 < times[2] / times[1] < 15


def test_pairs_within_the_cutoff_by_hand():
    p = choose.parameters(Question("laplace", BOX, 100_000, 100_000, 1e-6, rc=0.05))
    machine = Machine.load("h200")
    v = variants.choose(ewald.space_of(machine), "float64")
    found = predict.counts(p, v, (100_000, 100_000), machine)
    pairs = 100_000 * 4 / 3 * math.pi * 0.05**3 * 100_000
    assert found["p2p"].operations["rsqrt"] == pytest.approx(pairs, rel=0.05)


def test_traffic_that_surrounds_the_kernels():
    p = choose.parameters(Question("laplace", BOX, 100_000, 100_000, 1e-6, rc=0.05))
    machine = Machine.load("h200")
    v = variants.choose(ewald.space_of(machine), "float64")
    found = predict.counts(p, v, (100_000, 100_000), machine)
    bare = work.modelled(p, v, 100_000, 100_000, "device").counts
    more = {name: found[name].bytes["dram"] - bare[name].bytes["dram"] for name in bare}
    assert more["p2p"] == pytest.approx(8 * 100_000 * (4 + 4))  # a charge from anywhere; x, y, z, charge to its place
    assert more["g2p"] == pytest.approx(8 * 100_000 * 6)
    assert more["fft"] == more["ifft"] > 0
    assert more["p2g"] == more["cnv"] == 0


def test_atomics_reach_what_the_published_kernel_did():
    assert pytest.approx(1.5e11, rel=0.01) == kosmacher.SUSTAINED  # 5.9e9 in 39.5 ms
    machine = Machine.load("h200")
    counts = Counts(operations={"fma": 1.0}, atomics=1e9)
    found = predict.by_limit(counts, machine, "float64", 1, 0.4)
    assert found.bound.by == "atomics"
    assert found.bound.seconds == pytest.approx(1e9 / kosmacher.SUSTAINED, rel=1e-3)
    host = predict.by_limit(counts, Machine.load("host"), "float64", 1, 0.4)
    assert host.share == 0.4


def test_registers_of_compiled_kernels():
    if (why := ewald.devices.missing_compiler("Cuda")) is not None:
        pytest.skip(why)
    found = ewald.resident(ewald.predict(question("laplace", 100_000, 1e-4), Machine.load("h200")), "sm_90")
    assert list(found) == ["p2p", "p2g", "cnv", "g2p"]
    for registers, held in found.values():
        assert 16 <= registers <= 255
        assert 1 <= held.warps <= 64
        assert held.warps * 32 * registers <= 65536
    assert np.isfinite([held.share for _, held in found.values()]).all()


def test_unknown_machines_are_refused(capsys):
    assert cli.main(asked(device="h2000")) != 0
    assert "h200" in capsys.readouterr().err
