"""Loops of constant length written out in a host's text: short ones, counted with the loops inside."""

import re

import pytest

from parki import engine


def unrolled(points):
    """Return the unroll factors for the loops over rows of a grid of proxy points, by the loop's variable."""
    kernel = engine.kernel("clusters", "grids", N1=points)
    text = kernel.unit(kernel.default_layouts(), False)[1].source
    found = re.findall(r"#pragma GCC unroll (\d+)\n(?:#line.*\n)*\s*for \(int32_t (k[01]) =", text)
    return {name: int(turns) for turns, name in found}


@pytest.mark.parametrize("points", [5, 6, 7])
def test_of_nested_loops_the_outer_one_stays(points):
    assert unrolled(points)["k0"] == 1


def test_short_ones_are_written_out_as_a_whole():
    assert unrolled(2) == {"k0": 2, "k1": 2}
