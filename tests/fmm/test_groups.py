"""Groups of boxes, and where the sources of lists V stand in them."""

import numpy as np
import pytest

from parki import arrays, engine
from parki.engine import TeamPolicy, spaces
from parki.fmm import chebyshev_m2l, groups
from parki.fmm.chebyshev_tables import canonical, offsets, seen_from_source


@pytest.mark.parametrize(("n", "size"), [(1, 1), (7, 3), (64, 64), (65, 64), (100, 1), (1000, 300)])
def test_groups_have_all_boxes_once_sorted_by_octant(n, size, rng):
    boxes, octant = np.arange(50, 50 + n, dtype=np.int32), rng.integers(0, 8, n).astype(np.int32)
    made = groups.cut(boxes, octant, size)
    assert len(made) == -(-n // size)
    assert np.diff(made.begin).max() <= size
    np.testing.assert_array_equal(np.sort(made.boxes), boxes)
    seen = 0
    for rows, octants in made.slices():
        # A group's boxes follow each other: only their order within it differs.
        np.testing.assert_array_equal(np.sort(made.boxes[rows]), boxes[rows])
        for o, at in octants:
            assert (octant[made.boxes[at] - 50] == o).all()
            assert (np.diff(made.boxes[at]) > 0).all()
            seen += at.stop - at.start
    assert seen == n


def test_no_boxes_make_no_groups():
    made = groups.cut(np.zeros(0, np.int32), np.zeros(0, np.int32), 10)
    assert len(made) == 0
    assert list(made.slices()) == []


def test_neighbours_of_octets():
    near = groups.neighbours(np.array([0, 0, 2]), np.array([1, 2, 0]), np.array([3, 25, 0]), 3)
    expected = np.full((3, 26), -1)
    expected[0, 3], expected[0, 25], expected[2, 0] = 1, 2, 0
    np.testing.assert_array_equal(near, expected)


def test_rows_by_place():
    made = groups.cut(np.array([4, 5, 6], np.int32), np.array([7, 0, 3], np.int32), 3)
    slot = np.array([-1, 0, 0, 0, 7, 8, 11])
    row = groups.rows_by_place(made, slot, 2)
    assert [made.boxes[row[place]] for place in (7, 8, 11)] == [4, 5, 6]
    assert (np.delete(row, [7, 8, 11]) == -1).all()


@pytest.mark.parametrize("octant", range(8))
def test_ways_lead_to_the_sources_at_the_offsets(octant):
    bits = np.array([octant >> 2 & 1, octant >> 1 & 1, octant & 1])
    corners = [d for d in np.ndindex(3, 3, 3) if d != (1, 1, 1)]
    for d, (direction, other) in zip(offsets(), chebyshev_m2l.ways()[octant], strict=True):
        at = 2 * (np.array(corners[direction]) - 1) + [other >> 2 & 1, other >> 1 & 1, other & 1]
        apart = bits - at  # target − source
        np.testing.assert_array_equal(apart * (1 - 2 * bits), d)
        # In the frame of the source's octant the offset is the one that its table is made for.
        flip = 1 - 2 * np.array([other >> 2 & 1, other >> 1 & 1, other & 1])
        np.testing.assert_array_equal(apart * flip, seen_from_source(d))


def test_classes_have_as_many_offsets_as_published():
    counts = {}
    for d in offsets():
        counts[canonical(d)] = counts.get(canonical(d), 0) + 1
    published = [6, 24, 24, 12, 24, 8, 3, 12, 12, 12, 24, 12, 3, 6, 6, 1]
    assert [counts[key] for key in sorted(counts)] == published


@pytest.mark.portability
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_collect(space, dtype, rng):
    """Interchange on every space: what each target takes, and zeros where there is no source."""
    space = spaces.get(space)
    xp = spaces.array_module(space)
    octets, first, count = 5, 20, 30
    near = rng.integers(-1, octets, (octets, 26)).astype(np.int32)
    row = rng.permutation(np.arange(-1, 8 * octets - 1)).astype(np.int32)
    column = np.append(0, np.cumsum(rng.integers(0, 20, len(offsets())))).astype(np.int32)
    target, ways = np.array([3, 17, 38, 8], np.int32), chebyshev_m2l.ways()
    width = int(column[first + count] - column[first])
    given = rng.random((8 * octets, width)).astype(dtype)
    made = xp.full((len(target), width), 7, dtype)
    engine.parallel_for(
        TeamPolicy(space, len(target), *(() if space.kind == "host" else (16, 8))),
        engine.kernel("interchange", "collect", real=np.dtype(dtype)),
        target=xp.asarray(target), near=xp.asarray(near), way=xp.asarray(ways), row=xp.asarray(row),
        column=xp.asarray(column), first=first, count=count, given=xp.asarray(given), made=made,
    )  # fmt: skip
    expected = np.zeros((len(target), width), dtype)
    for b, place in enumerate(target):
        for j in range(first, first + count):
            direction, octant = ways[place % 8, j]
            octet = near[place // 8, direction]
            source = row[8 * octet + octant] if octet >= 0 else -1
            if source >= 0:
                columns = slice(column[j] - column[first], column[j + 1] - column[first])
                expected[b, columns] = given[source, columns]
    assert (expected == 0).any()
    np.testing.assert_array_equal(arrays.to_host(made), expected)
