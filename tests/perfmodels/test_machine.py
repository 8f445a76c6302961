"""Machines: their files, costs of the parts of a sum, and the calibrated host."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from parki.perfmodels import machine
from parki.perfmodels.machine import CROWD, H200, Costs, Machine

# Published peaks, double and single, vector units, TFLOP/s, and memory bandwidth, TB/s: for an MI250X, of one die.
PUBLISHED = {
    "h200": (29.8, 66.9, 4.17),  # double precision and memory: measured
    "h100": (33.5, 66.9, 3.35),
    "a100": (9.7, 19.5, 2.039),
    "mi300x": (81.7, 163.4, 5.3),
    "mi250x": (47.9 / 2, 47.9 / 2, 3.2768 / 2),
    "rtx4090": (82.6 / 64, 82.6, 1.008),
}
CLASSES = set(
    "fma add mul div sqrt rsqrt exp expm1 log sin cos tan sinh cosh tanh erf erfc pow compare integer".split()
)


@pytest.fixture
def h200():
    return Machine.load("h200")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return the path of a calibration that does not exist yet; the environment names no other."""
    monkeypatch.delenv("PARKI_CALIBRATION", raising=False)
    monkeypatch.setenv("PARKI_CACHE_DIR", str(tmp_path))
    return machine.stored()


def keep(made, path, built="g++ 12"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# {built}\n{made.text()}", "utf-8")


@pytest.mark.parametrize("name", PUBLISHED)
def test_peaks_are_the_published_ones(name):
    known, (double, single, memory) = Machine.load(name), PUBLISHED[name]
    assert 2 * known.operations["float64"]["fma"] == pytest.approx(1e12 * double, rel=0.01)
    assert 2 * known.operations["float32"]["fma"] == pytest.approx(1e12 * single, rel=0.01)
    assert known.bandwidth["dram"] == pytest.approx(1e12 * memory, rel=0.01)
    assert (known.kind, known.units, known.bandwidth["dram_all"]) == ("device", 1, known.bandwidth["dram"])
    assert min(known.registers, known.shared_bytes, known.threads, known.multiprocessors) > 0


@pytest.mark.parametrize("name", [n for n in Machine.names() if n != machine.HOST])
def test_every_machine_is_plausible(name):
    known = Machine.load(name)
    assert known.name
    assert known.source
    assert known.kind in ("host", "device")
    for rates in known.operations.values():
        assert rates.keys() == CLASSES
        assert all(0 < rate <= 1.1 * max(rates["fma"], rates["integer"]) for rate in rates.values())
        assert rates["erfc"] < rates["exp"] < rates["fma"] / 4
    inner = "shared" if known.kind == "device" else "l3"
    assert known.bandwidth.keys() == {"l1", "l2", inner, "dram", "dram_all"}
    assert known.bandwidth["l1"] > known.bandwidth["l2"] > known.bandwidth["dram"] > 1e9
    assert ("host" in known.links) == (known.kind == "device")
    assert all(1e10 <= rate < known.bandwidth["dram"] for rate in known.links.values())
    measured = {"p2p_list-2d", "ranges", "grids", "octets"} if name == "h200" else set()
    device = {"atomics", "p2g_tile", "g2p_tile"} if known.kind == "device" else set()
    assert known.reached.keys() == {*Machine.PHASES, *device, *measured}
    assert known.share("p2g", "TILE") == known.reached.get("p2g_tile", known.share("p2g", "BLOCK"))
    assert all(0 < share <= 1 for share in known.reached.values())
    assert 1e-7 < known.launch < 1e-4
    assert known.lanes["float64"] <= known.lanes["float32"] in (16, 32, 64)


def test_names():
    assert Machine.names()[0] == machine.HOST
    assert {*PUBLISHED, machine.GENERIC} <= set(Machine.names())
    assert Machine.load("RTX 4090") is Machine.load("rtx4090")
    with pytest.raises(ValueError, match=r"machine: found 'h20', expected one of host, a100.*Did you mean 'h200'\?"):
        Machine.load("h20")


def test_names_of_drivers():
    told = {"NVIDIA A100-SXM4-80GB": "a100", "NVIDIA H200": "h200", "AMD Instinct MI300X": "mi300x"}
    told |= {"NVIDIA GeForce RTX 4090": "rtx4090", "NVIDIA H100 80GB HBM3": "h100"}
    for name, known in told.items():
        assert Machine.of_device(name) is Machine.load(known)
    assert Machine.of_device("NVIDIA Tesla V100") is None
    assert Machine.of_device("Xeon Phi") is None  # not a GPU


def scaled(known, operations=1.0, bandwidth=1.0, fft=1.0, reached=1.0):
    def times(rates, factor):
        return {name: factor * rate for name, rate in rates.items()}

    return replace(
        known,
        operations={dtype: times(rates, operations) for dtype, rates in known.operations.items()},
        bandwidth=times(known.bandwidth, bandwidth),
        fft=times(known.fft, fft),
        reached=times(known.reached, reached),
        costs=None,
    )


@pytest.mark.parametrize("name", ["h200", "xeon"])
def test_costs_scale_as_rates_do(name):
    known = scaled(Machine.load(name))
    usual, times = Costs.of(known), ("near", "fft", "spread", "gather")
    for factor, changes in ((0.5, {"operations": 2.0, "bandwidth": 2.0, "fft": 2.0}), (4.0, {"reached": 0.25})):
        found = Costs.of(scaled(known, **changes))
        assert [getattr(found, t) for t in times] == pytest.approx([factor * getattr(usual, t) for t in times])
        assert (found.single, found.lanes, found.sparse) == (usual.single, usual.lanes, usual.sparse)
    faster = Costs.of(scaled(known, operations=2.0))
    assert faster.near == pytest.approx(usual.near / 2)
    assert (faster.fft, faster.gather) == (usual.fft, usual.gather)
    wider = Costs.of(scaled(known, bandwidth=2.0))
    assert (wider.near, wider.gather) == (usual.near, pytest.approx(usual.gather / 2))
    # tiles of GPUs spread by arithmetic, hosts by loads and stores
    by_operations, by_bytes = (2.0, 1.0) if known.is_gpu else (1.0, 2.0)
    assert faster.spread == pytest.approx(usual.spread / by_operations)
    assert wider.spread == pytest.approx(usual.spread / by_bytes)
    assert usual.fft / 2 < wider.fft < usual.fft


def test_costs_of_an_h200_by_hand(h200):
    w = (32 / 224) ** (1 / 3)  # a warp's targets over the sources in reach
    lanes = 4 * math.pi / 3 / (w**3 + 6 * w**2 + 3 * math.pi * w + 4 * math.pi / 3)
    slots = 6 * 0.127 / 0.121 + 26 + 5
    assert H200.near == pytest.approx(slots / 14.9e12 / lanes / 0.66, rel=1e-3)
    assert H200.fft == pytest.approx((2.5 * 23 * 0.8889 / 6.75e12) / 0.55 + 24 / 4.17e12 / 0.7, rel=1e-3)
    # a component's 9/8 fused operations for 15 × 11 × 11 places of pieces of 8 × 4 × 4; 8³ loads, and more
    assert H200.spread == pytest.approx(9 / 8 * 15 * 11 * 11 * 1.12 / 64 / 14.9e12 / 0.34, rel=1e-3)
    assert H200.gather == pytest.approx(8 * 8**3 * 1.2 * 1.25 / 64 / 33.45e12 / 0.46, rel=1e-3)
    assert H200.rows("spread", 12) / H200.rows("spread", 8) == pytest.approx(19 * 15 * 15 / (15 * 11 * 11))
    assert H200.rows("gather", 12) / H200.rows("gather", 8) == pytest.approx(12 * 3 * 3 / (8 * 2 * 2))
    assert 0.5 < H200.single < 0.6
    assert (H200.lanes, H200.sparse) == (32, 0.0)
    assert H200.target == pytest.approx(9600 / 14.9e12 / 0.66, rel=1e-3)
    # a list for each target costs 2 pairs of laplace, in no idle lanes: it pays for heavier pairs
    alone = slots / 14.9e12 / 0.66
    assert H200.near_pair(2.0, CROWD) == pytest.approx(alone * (3.0 + 2.0), rel=1e-3)
    assert H200.near_pair(1.0, 50 * CROWD) < alone * (1.0 + 2.0)


def test_scarce_double_precision_costs_pairs():
    """Check a card for games: dearer pairs in double precision, and a larger gain from single precision."""
    card = Costs.of(Machine.load("rtx4090"))
    assert card.near / card.fft > 2 * H200.near / H200.fft
    assert card.single < 0.6 * H200.single


def test_defaults_are_those_of_the_generic_host():
    generic = Machine.load(machine.GENERIC)
    assert Costs.of(generic) == Costs()
    by_rates = Costs.of(replace(generic, costs=None))
    for name in ("near", "fft", "spread", "gather", "single"):
        assert getattr(Costs(), name) / 2 < getattr(by_rates, name) < 2 * getattr(Costs(), name)


def test_measured_costs_come_first(h200):
    assert Costs.of(replace(h200, costs=Costs(near=1.0))) == Costs(near=1.0)


def test_text_and_back(h200):
    odd = replace(h200, name='a "b" \\ c\n', parallel={"p2p": 0.1 + 0.2}, costs=Costs(near=1 / 3, rhs=2))
    again = Machine.parse(odd.text())
    assert again == replace(odd, name='a "b" \\ c ')
    assert isinstance(again.costs.rhs, int)
    assert Machine.parse(h200.text()) == h200


def test_what_is_no_machine(h200):
    text = h200.text()
    for wrong, told in (
        (text.replace("fma = 1", "fma = -1"), "fma is -1"),
        (text.replace("launch = ", "launched = "), "launched"),
        (text.replace("g2p = ", "g3p = "), "no share that g2p reach"),
        (text.replace("launch = 6.2e-06", 'launch = "soon"'), "launch is 'soon'"),
        (text.replace("fma = 1", "fma = nan # "), "fma is nan; expected"),
        ("name = ", "Invalid value"),
    ):
        with pytest.raises(ValueError, match=told):
            Machine.parse(wrong)


def test_a_host_that_was_not_calibrated(place):
    assert machine.calibrated() is None
    assert Machine.load("host").name == Machine.load(machine.GENERIC).name
    assert Costs.of(Machine.load("host")) == Costs()


def test_a_calibrated_host(place, monkeypatch):
    made = replace(Machine.load("xeon"), name="this one", costs=Costs(near=1e-9))
    keep(made, place)
    assert machine.calibrated() == machine.calibrated("g++ 12") == Machine.load("host") == made
    assert machine.calibrated("g++ 13") is None
    for off in ("off", "0", "OFF"):
        monkeypatch.setenv("PARKI_CALIBRATION", off)
        assert machine.calibrated() is None
    monkeypatch.setenv("PARKI_CALIBRATION", "on")
    assert machine.calibrated() == made
    keep(replace(made, name="again"), place)
    assert machine.calibrated().name == "again"


def test_other_hardware(place, monkeypatch):
    keep(Machine.load("xeon"), place)
    here = machine.hardware()
    monkeypatch.setattr(machine, "hardware", lambda: here + "\nand a core more")
    assert machine.stored() != place
    assert machine.calibrated() is None


@pytest.mark.parametrize("text", ["", "# g++ 12\nname = 1", "# g++ 12\nname", b"\xff\xfe"])
def test_a_damaged_file(place, text):
    place.parent.mkdir(parents=True)
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert machine.calibrated() is None


def test_costs_of_pairs_and_rows():
    """Check that a pair costs its measured value at 224 sources, and more where few sources fill the lanes."""
    costs = Costs(near=2.0, near_overhead=1.5, lanes=8)
    assert costs.near_pair(3.0, CROWD) == pytest.approx(9.0)
    assert costs.near_pair(1.0, 10.0) > 1.5 * costs.near_pair(1.0, 224.0)
    spread, gather = (Costs(sparse=0.0).rows(phase, np.array([8, 12, 11]), 5.0) for phase in ("spread", "gather"))
    assert spread == pytest.approx([64 * 1.34, 144 * 1.76, 121 * 2.66])
    assert gather == pytest.approx([64.0, 144.0, 121 * 1.85])
    for phase, moves in (("spread", 2), ("gather", 1)):
        extra = Costs(sparse=0.1).rows(phase, 12, 5.0) - Costs(sparse=0.0).rows(phase, 12)
        assert extra == pytest.approx(moves * 64 * 0.1 * 5.0)
    short = [Costs().rows(phase, np.array([4, 6, 8]), 0.0, 4) for phase in ("spread", "gather")]
    assert short[0] == pytest.approx([16 * 0.92, 36 * 1.34, 64 * 0.92])  # 6 is counted as 4 and 2
    assert short[1] == pytest.approx([16 * 0.7, 36.0, 64 * 0.7])
    assert Costs().rows("spread", 16, 0.0, 4) == pytest.approx(256 * 1.34)  # one vector of 16
    assert H200.rows("spread", 16, 0.0, 4) == pytest.approx(H200.single * H200.rows("spread", 16))
    assert all(getattr(costs, f.name) is not None for f in fields(Costs))
