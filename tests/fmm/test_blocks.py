"""Blocks of boxes, the places of the sources of V lists in them, and the workunits on them."""

import numpy as np
import pytest

from parki import arrays, engine
from parki.engine import TeamPolicy
from parki.engine.run import spaces
from parki.fmm import blocks, chebyshev_m2l
from parki.fmm.blocks import BoxBlocks
from parki.fmm.chebyshev_tables import canonical, offsets, seen_from_source
from parki.fmm.chebyshev_translations import workunit


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("n", [0, 1, 8, 9, 100, 1000])
def test_blocks_have_all_boxes_once_sorted_by_table(n, lanes, rng):
    boxes, table = np.arange(50, 50 + n, dtype=np.int32), rng.integers(0, 8, n).astype(np.int32)
    made = BoxBlocks.of(boxes, table, lanes)
    assert len(made) == sum(-(-np.count_nonzero(table == k) // lanes) for k in range(8))
    np.testing.assert_array_equal(np.sort(made.boxes[made.boxes >= 0]), boxes)
    for row, number in zip(made.boxes, made.table, strict=True):
        there = row[row >= 0]
        assert (table[there - 50] == number).all()
        assert (np.diff(there) > 0).all()
        assert (row[: len(there)] == there).all()
    first, count, line = made.items(3, 7).T
    np.testing.assert_array_equal(
        np.concatenate([[], *(f + np.arange(c) for f, c in zip(first, count, strict=True))]), range(len(made))
    )
    assert n == 0 or 1 <= count.min() <= count.max() <= 3
    for f, c, at in zip(first, count, line, strict=True):
        assert (made.table[f : f + c] * 7 == at).all()


def test_neighbours_of_octets():
    near = blocks.neighbours(np.array([0, 0, 2]), np.array([1, 2, 0]), np.array([3, 25, 0]), 3)
    expected = np.full((3, 26), -1)
    expected[0, 3], expected[0, 25], expected[2, 0] = 1, 2, 0
    np.testing.assert_array_equal(near, expected)


def test_rows_by_place():
    made = BoxBlocks.of(np.array([4, 5, 6], np.int32), np.array([7, 0, 7], np.int32), 8)
    slot = np.array([-1, 0, 0, 0, 7, 8, 11])
    row = blocks.rows_by_place(made, slot, 2)
    assert [made.boxes.flat[row[place]] for place in (7, 8, 11)] == [4, 5, 6]
    assert (np.delete(row, [7, 8, 11]) == -1).all()


@pytest.mark.parametrize("octant", range(8))
def test_ways_lead_to_the_sources_at_the_offsets(octant):
    bits = np.array([octant >> 2 & 1, octant >> 1 & 1, octant & 1])
    corners = [d for d in np.ndindex(3, 3, 3) if d != (1, 1, 1)]
    for d, (direction, other) in zip(offsets(), chebyshev_m2l.ways()[octant], strict=True):
        at = 2 * (np.array(corners[direction]) - 1) + [other >> 2 & 1, other >> 1 & 1, other & 1]
        apart = bits - at  # target − source
        np.testing.assert_array_equal(apart * (1 - 2 * bits), d)
        # In the frame of the source's octant the offset is that of its table.
        flip = 1 - 2 * np.array([other >> 2 & 1, other >> 1 & 1, other & 1])
        np.testing.assert_array_equal(apart * flip, seen_from_source(d))


def test_classes_have_as_many_offsets_as_published():
    counts = {}
    for d in offsets():
        counts[canonical(d)] = counts.get(canonical(d), 0) + 1
    published = [6, 24, 24, 12, 24, 8, 3, 12, 12, 12, 24, 12, 3, 6, 6, 1]
    assert [counts[key] for key in sorted(counts)] == published


# Workunits ------------------------------------------------------------------------------------------------------------
BOXES, VALUES, TEAMS = 37, 11, 4


@pytest.fixture
def launch(space):
    """Return a function that launches a workunit on copies of arrays in the space, and returns the results."""
    space = spaces.get(space)
    xp = spaces.array_module(space)

    def run(items, unit, **args):
        there = {k: xp.array(v) if isinstance(v, np.ndarray) else v for k, v in args.items()}
        shape = () if space.kind == "host" else (TEAMS, int(dict(unit.l0.slots)["LANES"]))
        engine.parallel_for(TeamPolicy(space, items, *shape), unit, **there)
        return {k: arrays.to_host(v) for k, v in there.items() if isinstance(args[k], np.ndarray)}

    return run


@pytest.fixture(params=["float64", "float32"])
def real(request):
    return np.dtype(request.param)


@pytest.fixture
def some(real, rng):
    """Return blocks of boxes of two tables, and the frame of each box."""
    made = BoxBlocks.of(np.arange(BOXES, dtype=np.int32), rng.integers(0, 2, BOXES), 64 // real.itemsize)
    return made, rng.integers(0, 3, BOXES).astype(np.int32)


@pytest.fixture
def frames(real, rng):
    place = np.stack([rng.permutation(VALUES) for _ in range(3)]).astype(np.int32)
    return {"place": place, "sign": rng.choice([-1.0, 1.0], place.shape).astype(real)}


@pytest.mark.portability
@pytest.mark.parametrize("signed", [True, False])
def test_enter_and_leave(signed, real, some, frames, launch, rng):
    made, frame = some
    scale, charge = rng.random(VALUES).astype(real), rng.random((BOXES, VALUES)).astype(real)
    of = {"box": made.boxes, "frame": made.placed(frame, 0), "scale": scale, "rows": VALUES, **frames}
    given = np.full((len(made), VALUES, made.boxes.shape[1]), 7, real)
    given = launch(len(made), workunit("enter", real, SIGNED=signed), **of, charge=charge, given=given)["given"]
    rows = np.arange(BOXES)[:, None]
    sign = frames["sign"][frame] if signed else real.type(1)
    place = frames["place"][frame]
    there, lane = np.nonzero(made.boxes >= 0)
    expected = (charge * scale)[rows, place] * sign
    np.testing.assert_array_equal(given[there, :, lane], expected[made.boxes[there, lane]])
    assert (given.transpose(0, 2, 1)[made.boxes < 0] == 0).all()

    phi, points = rng.random((1, BOXES * VALUES)).astype(real), VALUES
    out = launch(len(made), workunit("leave", real, SIGNED=signed), **of, made=given, phi=phi, points=points)["phi"]
    back = np.empty((BOXES, VALUES), real)
    back[made.boxes[there, lane]] = given[there, :, lane]
    expected = phi + (back[rows, place] * sign * scale).ravel()
    np.testing.assert_allclose(out, expected, rtol=4 * np.finfo(real).eps)


@pytest.mark.portability
@pytest.mark.parametrize(("first", "count"), [(0, 16), (8, 13), (16, 5)])
def test_compress(first, count, real, some, launch, rng):
    made, _ = some
    matrices, lanes = rng.random((2, 21, VALUES)).astype(real), made.boxes.shape[1]
    given = rng.random((len(made), VALUES, lanes)).astype(real)
    table = tiled(matrices)
    items, out = made.items(2, 3 * VALUES), np.full((len(made) * lanes, 16), 7, real)
    args = {"item": items, "table": table, "rows": VALUES, "tile": first // 8, "columns": count}
    out = launch(len(items), workunit("compress", real), **args, given=given, made=out)["made"]
    expected = np.einsum("bck,bkl->blc", matrices[made.table, first : first + count], given).reshape(-1, count)
    np.testing.assert_allclose(out[:, :count], expected, rtol=20 * np.finfo(real).eps)
    assert (out[:, count:] == 7).all()


def tiled(matrices):
    """Return matrices as tiles of 8 rows, a line for each column."""
    n, rows, columns = matrices.shape
    padded = np.pad(matrices, ((0, 0), (0, -rows % 8), (0, 0)))
    return np.ascontiguousarray(padded.reshape(n, -1, 8, columns).transpose(0, 1, 3, 2).reshape(-1, 8))


@pytest.mark.portability
@pytest.mark.parametrize("add", [False, True])
def test_expand(add, real, some, launch, rng):
    """Compare sums over the sources of each target; missing sources add nothing."""
    made, _ = some
    octets, first_column, columns, translations = 5, 16, 30, 20
    near = rng.integers(-1, octets, (octets, 26)).astype(np.int32)
    row = rng.permutation(np.arange(-1, 8 * octets - 1)).astype(np.int32)
    column = np.sort(rng.integers(0, 60, translations + 1)).astype(np.int32)
    column[[0, -1]] = 0, 60
    begin, end = np.searchsorted(column, first_column, "right") - 1, np.searchsorted(column, first_column + columns)
    place, ways = made.placed(rng.permutation(8 * octets)[:BOXES], -1), chebyshev_m2l.ways()
    left = rng.random((2, VALUES, 60)).astype(real)
    given = rng.random((8 * octets, 32)).astype(real)
    out = rng.random((len(made), VALUES, made.boxes.shape[1])).astype(real)
    items = made.items(2, 2 * 60)
    found = launch(
        len(items), workunit("expand", real, ADD=add), item=items, target=place, near=near, way=ways, row=row,
        column=column, table=tiled(left), given=given, made=out, first_column=first_column, columns=columns,
        first=int(begin), count=int(end - begin), rows=VALUES, lines=60,
    )["made"]  # fmt: skip
    for (b, lane), at in np.ndenumerate(place):
        taken = np.zeros(columns)
        for j in range(begin, end):
            direction, octant = ways[at % 8, j]
            octet = near[at // 8, direction]
            source = row[8 * octet + octant] if octet >= 0 else -1
            if at >= 0 and source >= 0:
                some = slice(max(column[j] - first_column, 0), min(column[j + 1] - first_column, columns))
                taken[some] = given[source, some]
        expected = left[made.table[b], :, first_column : first_column + columns] @ taken + add * out[b, :, lane]
        np.testing.assert_allclose(found[b, :, lane], expected, rtol=40 * np.finfo(real).eps)
