"""Copies of data: where they are valid, the transfers that make them valid, and the ends of these."""

import pytest

from parki.tasks.memory import Channels, Copies
from parki.tasks.node import HOST, Node

MB = 1e6


class Counted(Channels):
    """Channels that record the order of transfers."""

    def __init__(self, nbytes, node):
        super().__init__(nbytes, node)
        self.order = []

    def carry(self, datum, source, to, since):
        self.order.append((datum, source, to))
        return super().carry(datum, source, to, since)


def copies(between=0.0, nbytes=(MB, 2 * MB, 3 * MB)):
    node = Node(1, 3, bandwidth=1e9, between=between, latency=1e-5)
    link = Counted(nbytes, node)
    return Copies(nbytes, link, between > 0), link


def test_data_are_copied_once():
    some, link = copies()
    assert some.missing([0, 1], 1) == 3 * MB
    assert some.fetch([0, 1], 1, 0.0) == pytest.approx(3e-3 + 1e-5)
    assert some.fetch([1], 1, 0.0) == pytest.approx(3e-3 + 1e-5)  # still under way
    assert some.fetch([0, 1], 1, 1.0) == 1.0
    assert some.fetch([0, 1, 2], HOST, 0.5) == 0.5
    assert (link.order, link.moved, link.transfers) == ([(0, 0, 1), (1, 0, 1)], 3 * MB, 2)
    assert some.missing([0, 1], 1) == 0


def test_a_write_leaves_one_copy():
    some, link = copies()
    some.fetch([0], 1, 0.0)
    some.write([0], 1, 1.0)
    assert some.missing([0], HOST) == some.missing([0], 2) == MB
    assert some.fetch([0], HOST, 2.0) == pytest.approx(2.0 + 1e-3 + 1e-5)
    some.write([0], HOST, 3.0)
    assert some.fetch([0], 1, 3.0) > 3.0
    assert link.order == [(0, 0, 1), (0, 1, 0), (0, 0, 1)]


@pytest.mark.parametrize(("between", "path"), [(0.0, [(2, 1, 0), (2, 0, 2)]), (3e9, [(2, 1, 2)])])
def test_devices_copy_through_the_host_where_they_have_no_link(between, path):
    some, link = copies(between)
    some.write([2], 1, 0.0)
    end = 1e-3 + 1e-5 if between else 2 * (3e-3 + 1e-5)
    assert some.fetch([2], 2, 0.0) == pytest.approx(end)
    assert link.order == path
    assert some.missing([2], HOST) == (3 * MB if between else 0)


def test_each_way_is_a_channel_of_its_own():
    some, _ = copies()
    some.write([0], 1, 0.0)
    out, back, other = some.fetch([1], 1, 0.0), some.fetch([0], HOST, 0.0), some.fetch([1], 2, 0.0)
    assert (out, back, other) == pytest.approx((2e-3 + 1e-5, 1e-3 + 1e-5, 2e-3 + 1e-5))


def test_the_earliest_copy_is_the_source():
    some, link = copies(3e9)
    some.write([0], 2, 1.0)
    some.fetch([0], 1, 1.0)
    some.fetch([0], 3, 1.0)
    assert link.order == [(0, 2, 1), (0, 2, 3)]
