"""Published model: gives the paper's analytical times, and its stages give the measured times."""

import pytest

from parki.perfmodels.published import kosmacher

H200 = kosmacher.DeviceConstants()


def printed(value):
    """Return half a unit of the last digit that the paper prints of a time."""
    return 0.5 * 10.0 ** -(3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0)


@pytest.mark.parametrize("row", kosmacher.TABLE3, ids=str)
def test_table_3(row):
    _, *analytical = kosmacher.TABLE3[row]
    found = kosmacher.p2p(kosmacher.PublishedProblem(s=256.0), H200, *row).times(H200)
    for milliseconds, seconds in zip(analytical, found.values(), strict=True):
        assert 1e3 * seconds == pytest.approx(milliseconds, abs=1.01 * printed(milliseconds))


@pytest.mark.parametrize("row", kosmacher.TABLE5, ids=str)
def test_table_5(row):
    kernel, variant, bx = row
    _, *analytical = kosmacher.TABLE5[row]
    work = (
        kosmacher.p2g(kosmacher.PublishedProblem(), variant, bx)
        if kernel == "P2G"
        else kosmacher.g2p(kosmacher.PublishedProblem())
    )
    for milliseconds, seconds in zip(analytical, work.times(H200).values(), strict=True):
        assert 1e3 * seconds == pytest.approx(milliseconds, abs=1.01 * printed(milliseconds))


def test_the_data_sheet_of_another_memory_does_not_give_table_3():
    wrong = kosmacher.DeviceConstants(byte=1 / 4.8e12)
    assert 1e3 * kosmacher.p2p(kosmacher.PublishedProblem(s=256.0), wrong).times(wrong)["T0"] < 800.0  # 854 is printed


def test_flops_of_a_pair_by_hand():
    # 27 cells of 10 sources: 270 candidate pairs with 14 flops each, and π/6 of them with 414.
    work = kosmacher.p2p(kosmacher.PublishedProblem(n=1, s=10.0), H200)
    assert work.flops == pytest.approx(270 * 14 + 141.3717 * 414, rel=1e-6)
    assert (work.whole, work.moved, work.shared) == (144.0, 48 + 96 * 270, 0.0)


@pytest.mark.parametrize("table", kosmacher.MEASURED)
def test_stages_within_30_percent(table):
    measured = kosmacher.MEASURED[table]
    found = kosmacher.stages(kosmacher.PROBLEMS[table], H200, measured, table.endswith("single"))
    assert list(found) == list(measured)
    assert {name: stage.off for name, stage in found.items() if abs(stage.off) > 0.3} == {}
    assert sum(stage.seconds for stage in found.values()) == pytest.approx(1e-3 * sum(measured.values()), rel=0.16)


def test_kernels_alone_reach_what_is_stated():
    w, reached = kosmacher.PROBLEMS["table10"], kosmacher.REACHED
    alone = {"p2g 4": (kosmacher.p2g(w), 4.0 / 178.23), "g2p 4": (kosmacher.g2p(w), 4.0 / 760.22)}
    for name, (work, seconds) in alone.items():
        assert work.times(H200)["T0"] / seconds == pytest.approx(reached[name].share, abs=0.01)
    assert reached["p2p"].share == pytest.approx(190 / 261, abs=0.005)


def test_other_densities_keep_the_balance():
    there = kosmacher.of_density(8_000_000, 112.0)
    assert there.held == pytest.approx(
        4 * kosmacher.PublishedProblem().held
    )  # twice the points, half as many in a cell
    assert there.cell == 7.0
    same = kosmacher.of_density(4_000_000, 224.0)
    assert same == kosmacher.PublishedProblem()
