"""Models of Ewald sums over ranks: their additions to the model of one machine."""

import itertools

import pytest

from parki import cli
from parki.distributed.bricks import volumes
from parki.ewald.choice.question import Question
from parki.perfmodels.machine import Machine
from parki.perfmodels.models import ewald
from parki.perfmodels.network import Network
from parki.perfmodels.published import table11
from parki.perfmodels.ranks import ewald as over_ranks

H200, NDR = Machine.load("h200"), Network.load("ndr400")


def question(n=4_000_000, **more):
    return Question("stokes_sl", (1.0, 1.0, 1.0), n, n, 1e-6, **more)


def test_networks():
    assert {"nvlink", "ndr400", "hdr200", "edr100"} <= set(Network.names())
    assert NDR.seconds(10, 45e9) == pytest.approx(1 + 5e-5)
    with pytest.raises(ValueError, match=r"network: found 'ndr40', expected one of .* Did you mean 'ndr400'"):
        Network.load("ndr40")


def test_one_rank_sends_nothing():
    one = over_ranks.shared(question(), H200, NDR, 1)
    assert one.exchanged() == 0
    assert one.seconds == one.work == ewald.predict(question(), H200).seconds


def test_bytes_are_those_of_the_formula_and_messages_take_their_time():
    some = over_ranks.shared(question(), H200, NDR, 8)
    assert some.volumes == volumes.by_formula(some.whole.parameters, some.shape, 4_000_000, bits=32)
    assert some.work == some.whole.seconds / 8
    assert some.exchanged() == pytest.approx(NDR.seconds(sum(some.messages.values()), sum(some.volumes)))
    assert some.work < some.seconds < some.apart == some.work + some.exchanged()
    hidden = min(some.whole.phases["p2p"].bound.seconds / 8, some.exchanged("ghost_grid", "exchange"))
    assert some.apart - some.seconds == pytest.approx(hidden)


@pytest.mark.parametrize("network", ["nvlink", "edr100"])
def test_the_cutoff_is_chosen_for_the_network(network):
    net = Network.load(network)
    plain, best = (f(question(32_000_000), H200, net, 8) for f in (over_ranks.shared, over_ranks.predict))
    assert best.seconds <= plain.seconds
    if network == "edr100":
        assert best.seconds < 0.8 * plain.seconds
        assert best.whole.parameters.rc > 1.2 * plain.whole.parameters.rc
    given = over_ranks.predict(question(32_000_000, rc=0.02), H200, net, 8)
    assert given.whole.parameters.rc == 0.02


def test_each_way_of_exchanging_gains():
    asked = question(16_000_000)
    seconds = [over_ranks.predict(asked, H200, NDR, 16, ways).seconds for ways in over_ranks.PARTS.values()]
    assert all(after <= before for before, after in itertools.pairwise(seconds))
    assert seconds[-1] < 0.5 * seconds[0]


def test_published_kernels_with_these_exchanges():
    """Check Table 11, whose efficiency is 0.39 on 64 GPUs."""
    assert table11.published(1) / table11.published(64) == pytest.approx(0.39, abs=0.005)
    for layout in table11.LAYOUTS:
        apart, hidden = (table11.seconds(64, NDR, layout, hidden) for hidden in (False, True))
        assert table11.published(1) / hidden >= 0.95 > table11.published(1) / apart
    assert table11.parameters(64).grid == (1024,) * 3


def test_weak_scaling_keeps_the_points_of_a_rank():
    rows = list(over_ranks.weak(question(100_000), H200, NDR, 6))
    assert [row.ranks for row in rows] == [1, 2, 4, 6]
    assert [row.whole.n for row in rows] == [100_000 * row.ranks for row in rows]
    assert rows[-1].work == pytest.approx(rows[0].work, rel=0.3)


def test_the_command(capsys):
    asked = ["model", "ewald", "--device", "h200", "--n", "1e6", "--ranks", "4", "--network", "nvlink"]
    assert cli.main(asked) == 0
    said = capsys.readouterr().out
    assert "Table 11" not in said
    for words in ("weak: 1,000,000 points a rank", "strong: 1,000,000 points", "NVLink 4", "efficiency", "ghost_grid"):
        assert words in said
    assert cli.main([*asked, "--published"]) == 0
    assert "Table 11" in capsys.readouterr().out
    assert cli.main([*asked[:4], "--ranks", "2", "--network", "ethernet"]) == 2
    assert "network: found 'ethernet', expected one of" in capsys.readouterr().err


def test_more_ranks_than_bricks():
    with pytest.raises(ValueError, match=r"--ranks 64: expected at most 3, as many as the grid has bricks for"):
        over_ranks.predict(question(3000), H200, NDR, 64)
    assert [row.ranks for row in over_ranks.strong(question(3000), H200, NDR, 64)] == [1, 2]
