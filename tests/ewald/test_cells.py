"""Cell lists, as on a host and as on GPUs; batches of neighbours."""

import numpy as np
import pytest

from parki.cells import TILE, CellGrid, SortedCells
from parki.engine.run import spaces

BOX = (1.0, 1.3, 0.8)


@pytest.fixture(params=["uniform", "one cluster", "one point"])
def points(request, rng):
    n = 1 if request.param == "one point" else 700
    x = np.array(BOX)[:, None] * rng.random((3, n))
    return 0.2 * x if request.param == "one cluster" else x


@pytest.fixture(params=["OpenMP", "GpuSim"])
def cells(request, points):
    return SortedCells(points, CellGrid.for_points(BOX, points.shape[1], 0.3), spaces.get(request.param))


def index(cells):
    """Return the cell of every point of a list, in the list's order, by NumPy."""
    shape = np.array(cells.grid.shape)[:, None]
    place = (cells.points / np.array(cells.grid.widths)[:, None]).astype(int)
    return np.ravel_multi_index(tuple(np.minimum(place, shape - 1)), cells.grid.shape)


def test_points_are_sorted_stably(cells, points):
    np.testing.assert_array_equal(cells.points, points[:, cells.order])
    cell = index(cells)
    np.testing.assert_array_equal(np.bincount(cell, minlength=cells.grid.count), np.diff(cells.begin))
    assert (np.diff(cell) >= 0).all()
    assert (np.diff(cells.order)[np.diff(cell) == 0] > 0).all()


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 7, 40), (13, 6, 300), (8, 20, 97)])
def test_pieces_are_tile_by_tile(shape):
    grid = CellGrid(BOX, shape)
    first, last = grid.pieces()
    covered = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
    np.testing.assert_array_equal(np.sort(covered), np.arange(grid.count))
    np.testing.assert_array_equal(first // shape[2], (last - 1) // shape[2])
    assert (last - first).max() <= 1.5 * TILE[2]
    column, z = np.divmod(first, shape[2])
    place = np.stack([column // shape[1] // TILE[0], column % shape[1] // TILE[1], z], axis=1)
    changes = (place[1:] != place[:-1]).any(axis=1).sum()
    assert changes == len(np.unique(place, axis=0)) - 1  # all pieces of a tile follow each other


@pytest.fixture(params=["whole columns", "many tiles"])
def tiles(request, monkeypatch):
    if request.param == "many tiles":
        monkeypatch.setattr("parki.cells.TILE", (2, 3, 4))


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("size", [1, 8, 32, 1000])
def test_batches(cells, size):
    batch, bound = cells.batches(size)
    assert (batch.dtype, bound.dtype) == (np.int32, np.float64)
    ordered = batch[np.argsort(batch[:, 0])]  # every point once
    np.testing.assert_array_equal(ordered[1:, 0], ordered[:-1, 1])
    assert (ordered[0, 0], ordered[-1, 1]) == (0, cells.n)
    length = batch[:, 1] - batch[:, 0]
    assert (length >= 1).all()
    assert (length <= size).all()
    # A column's batches are full but for the last one of each piece.
    column = index(cells) // cells.grid.shape[2]
    np.testing.assert_array_equal(column[batch[:, 0]], column[batch[:, 1] - 1])
    columns = column[batch[length < size, 0]]
    assert np.bincount(columns, minlength=1).max() <= cells.grid.cuts
    for (begin, end), box in zip(batch, bound, strict=True):
        part = cells.points[:, begin:end]
        np.testing.assert_array_equal(box, [*part.min(axis=1), *part.max(axis=1)])
