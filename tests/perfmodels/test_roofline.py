"""Times and occupancies worked out by hand."""

from dataclasses import replace

import pytest

from parki.perfmodels import roofline
from parki.perfmodels.counts.totals import Counts
from parki.perfmodels.machine import Machine
from parki.perfmodels.occupancy import occupancy

PHASES = ("p2p", "p2g", "fft", "cnv", "ifft", "g2p")
HOST = Machine(
    name="four cores",
    kind="host",
    units=4,
    operations={"float64": {"fma": 8e9, "add": 16e9, "div": 1e9}, "float32": {"fma": 16e9}},
    bandwidth={"l1": 100e9, "l2": 50e9, "l3": 25e9, "dram": 10e9, "dram_all": 25e9},
    atomics=1e8,
    launch=1e-3,
    fft={"float64": 5e9, "float32": 10e9},
    lanes={"float64": 8, "float32": 16},
    reached=dict.fromkeys(PHASES, 1.0),
)
GPU = replace(
    HOST,
    name="a GPU",
    kind="device",
    units=1,
    lanes={"float64": 32, "float32": 32},
    registers=65536,
    shared_bytes=233472,
    threads=2048,
    multiprocessors=132,
)


def test_classes_of_operations_share_the_pipes():
    found = roofline.time(Counts({"fma": 8e9, "add": 4e9, "div": 1e9}, {"dram": 1e9}), HOST)
    assert found.by == "compute"
    assert found.seconds == pytest.approx(1.0 + 0.25 + 1.0)
    assert found.parts == pytest.approx({"compute": 2.25, "dram": 0.1, "launch": 0.0})


def test_integers_have_pipes_of_their_own_on_hosts_and_where_32_lanes_are_a_warp():
    rates = {name: {**values, "integer": 8e9} for name, values in HOST.operations.items()}
    work, many = Counts({"fma": 8e9, "integer": 4e9}), Counts({"fma": 8e9, "integer": 24e9})
    gpu, wide = replace(GPU, operations=rates), replace(GPU, operations=rates, lanes={"float64": 64, "float32": 64})
    assert [roofline.time(w, gpu).seconds for w in (work, many)] == pytest.approx([1.0, 3.0])
    assert roofline.time(work, gpu, "float32").seconds == pytest.approx(1.0)  # 0.5 and 0.5 share their issue slots
    assert roofline.time(work, wide).seconds == pytest.approx(1.5)
    host = replace(HOST, operations=rates)
    assert [roofline.time(w, host).seconds for w in (work, many)] == pytest.approx([1.0, 3.0])


def test_transforms_have_a_rate_of_their_own():
    assert roofline.time(Counts({"fft": 10e9}), HOST).seconds == pytest.approx(2.0)
    assert roofline.time(Counts({"fft": 10e9}), HOST, "float32").seconds == pytest.approx(1.0)


@pytest.mark.parametrize(("level", "seconds"), [("l1", 0.5), ("l2", 1.0), ("l3", 2.0), ("dram", 5.0)])
def test_each_level_of_memory(level, seconds):
    found = roofline.time(Counts({"fma": 8e6}, {level: 50e9}), HOST)
    assert (found.by, found.seconds) == (level, pytest.approx(seconds))


def test_the_slowest_level_counts_and_they_overlap():
    found = roofline.time(Counts({"fma": 8e9}, {"l1": 1e9, "l2": 100e9, "dram": 10e9}), HOST)
    assert (found.by, found.seconds) == ("l2", pytest.approx(2.0))


def test_atomics():
    found = roofline.time(Counts({"fma": 8e9}, atomics=3e8), HOST)
    assert (found.by, found.seconds) == ("atomics", pytest.approx(3.0))
    assert roofline.time(Counts({"fma": 8e9}, atomics=3e8), HOST, units=4).seconds == pytest.approx(0.75)


def test_launches_come_on_top_and_may_be_most():
    found = roofline.time(Counts({"fma": 8e6}, launches=5), HOST)
    assert (found.by, found.seconds) == ("launch", pytest.approx(0.001 + 0.005))
    assert roofline.time(Counts({"fma": 80e6}, launches=5), HOST).by == "compute"


def test_units_share_the_work_but_not_all_memory():
    work = Counts({"fma": 8e9}, {"l2": 40e9, "dram": 10e9})
    one, two, four = (roofline.time(work, HOST, units=units) for units in (1, 2, 4))
    assert one.parts == pytest.approx({"compute": 1.0, "l2": 0.8, "dram": 1.0, "launch": 0.0})
    assert two.parts == pytest.approx({"compute": 0.5, "l2": 0.4, "dram": 0.5, "launch": 0.0})
    assert four.parts == pytest.approx({"compute": 0.25, "l2": 0.2, "dram": 0.4, "launch": 0.0})
    assert (four.by, four.seconds) == ("dram", pytest.approx(0.4))


def test_a_share_of_the_limit_is_of_work_and_not_of_launches():
    found = roofline.time(Counts({"fma": 8e9}, launches=1), HOST, share=0.5)
    assert found.seconds == pytest.approx(2.001)
    assert found.parts["compute"] == pytest.approx(1.0)


def test_idle_lanes_compute_and_load_but_bring_nothing_from_memory():
    found = roofline.time(Counts({"fma": 8e9}, {"l1": 100e9, "dram": 10e9}, fill=0.25), HOST)
    assert found.parts == pytest.approx({"compute": 4.0, "l1": 4.0, "dram": 1.0, "launch": 0.0})


def test_nothing_takes_no_time():
    assert roofline.time(Counts(), HOST).seconds == 0.0


@pytest.mark.parametrize(
    ("counts", "named"), [(Counts({"cosh": 1.0}), "'cosh'"), (Counts(bytes={"shared": 1.0}), "'shared'")]
)
def test_what_the_machine_has_no_rate_for_is_named(counts, named):
    with pytest.raises(ValueError, match=named):
        roofline.time(counts, HOST)


@pytest.mark.parametrize("wrong", [{"share": 0.0}, {"units": 0}])
def test_shares_and_units_are_positive(wrong):
    with pytest.raises(ValueError, match="expected positive"):
        roofline.time(Counts({"fma": 1.0}), HOST, **wrong)


@pytest.mark.parametrize(
    ("registers", "scratch", "threads", "blocks", "warps", "limit"),
    [
        (32, 0, 256, 8, 64, "threads"),  # 2048 / 256
        (128, 0, 128, 4, 16, "registers"),  # 4096 registers a warp, 16 warps
        (132, 0, 32, 15, 15, "registers"),  # 4224 round up to 4352: 65536 / 4352
        (32, 48 * 1024, 128, 4, 16, "shared"),  # 228 KB / 49 KB
        (32, 0, 32, 32, 32, "blocks"),
        (255, 0, 1, 8, 8, "registers"),  # a thread takes a whole warp's registers
    ],
)
def test_occupancy(registers, scratch, threads, blocks, warps, limit):
    found = occupancy(GPU, registers, scratch, threads)
    assert (found.blocks, found.warps, found.limit) == (blocks, warps, limit)


def test_few_warps_do_not_hide_latencies():
    # 8 cycles × 2 a cycle: 16 instructions in flight
    assert occupancy(GPU, 128, 0, 128, latency=8.0, rate=2.0, chains=1.0).share == 1.0
    assert occupancy(GPU, 255, 0, 32, latency=8.0, rate=2.0, chains=1.0).share == pytest.approx(0.5)
    assert occupancy(GPU, 255, 0, 32, latency=8.0, rate=2.0, chains=2.0).share == 1.0


def test_blocks_that_fit_nowhere():
    with pytest.raises(ValueError, match="too much of shared"):
        occupancy(GPU, 32, 240 * 1024, 128)
    with pytest.raises(ValueError, match="too much of registers"):
        occupancy(GPU, 255, 0, 1024)
    with pytest.raises(ValueError, match="expected a GPU"):
        occupancy(HOST, 32, 0, 128)
