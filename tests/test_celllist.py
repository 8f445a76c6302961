"""Cell lists (`parki.CellList`) against a version that visits one particle and one cell after another."""

import itertools
import math

import hypothesis
import hypothesis.extra.numpy
import hypothesis.strategies as st
import numpy as np
import pytest

import parki
from parki.engine.run import spaces
from tests.ewald import cupy_standin as standin


class ByHand:
    """Reference version of the lists, slow and simple."""

    def __init__(self, x, cutoff, box, factor=1, skip=True, periodicity=0):
        self.shape = tuple(max(1, math.floor(side / cutoff)) for side in box)
        self.cells = list(itertools.product(*map(range, self.shape)))
        members = {cell: [] for cell in self.cells}
        for i in range(x.shape[1]):
            place = [int(float(v) * (n / side)) for v, n, side in zip(x[:, i], self.shape, box, strict=True)]
            members[tuple(min(p, n - 1) for p, n in zip(place, self.shape, strict=True))].append(i)
        kept = [cell for cell in self.cells if members[cell] or not skip]
        self.nonempty_cells = [self.cells.index(cell) for cell in kept]
        self.nonempty_cell_index = [kept.index(cell) if cell in kept else -1 for cell in self.cells]
        self.counter = [len(members[cell]) for cell in kept]
        self.cell_size = math.ceil(max(self.counter, default=0) / factor) * factor
        padded = [members[cell] + [-1] * (self.cell_size - len(members[cell])) for cell in kept]
        self.particle_index = [i for cell in padded for i in cell]
        self.neighbors = []
        for cell in self.cells:
            row = []
            for step in itertools.product((-1, 0, 1), repeat=len(box)):
                near = [c + s for c, s in zip(cell, step, strict=True)]
                near[:periodicity] = [c % n for c, n in zip(near[:periodicity], self.shape, strict=False)]
                row.append(kept.index(tuple(near)) if tuple(near) in kept else -1)
            self.neighbors.append(row)


@st.composite
def problems(draw):
    """Draw particles of 1 to 3 dimensions, some on faces of cells or of the box, with a cutoff and other arguments."""
    d = draw(st.integers(1, 3))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    box = [draw(st.sampled_from([1.0, 0.7, 2.5])) for _ in range(d)]
    periodicity = draw(st.integers(0, d))
    cutoff = draw(st.floats(0.2, min([0.7, *box[:periodicity]])))
    n = draw(st.integers(0, 30))
    parts = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]))
    x = draw(hypothesis.extra.numpy.arrays(np.float64, (d, n), elements=parts))
    x = (x * np.array(box)[:, None]).astype(dtype)
    return x, cutoff, box, draw(st.integers(1, 5)), draw(st.booleans()), periodicity


@hypothesis.given(problems())
def test_as_by_hand(problem):
    x, cutoff, box, factor, skip, periodicity = problem
    found = parki.CellList(x, cutoff, box, None, None, factor, skip, periodicity)
    hand = ByHand(x, cutoff, box, factor, skip, periodicity)
    assert found.cell_grid_shape == hand.shape
    assert found.num_cells == len(hand.cells)
    assert found.num_nonempty_cells == len(hand.nonempty_cells)
    assert found.cell_size == hand.cell_size
    for name in ("nonempty_cells", "nonempty_cell_index", "counter", "particle_index"):
        assert getattr(found, name).tolist() == getattr(hand, name)
        assert getattr(found, name).dtype == np.int32
    assert found.nonempty_neighbors.tolist() == hand.neighbors
    assert found.nonempty_neighbors.shape == (found.num_cells, 3 ** len(box))


@hypothesis.given(problems())
def test_close_particles_are_in_neighbouring_cells(problem):
    x, cutoff, box, factor, _, periodicity = problem
    found = parki.CellList(x, cutoff, box, padding_factor=factor, periodicity=periodicity)
    slots = found.particle_index.reshape(found.num_nonempty_cells, found.cell_size)
    home = {int(i): c for c, cell in enumerate(slots) for i in cell if i >= 0}
    assert sorted(home) == list(range(x.shape[1]))
    apart = x.astype(float)[:, :, None] - x.astype(float)[:, None]
    for axis in range(periodicity):
        apart[axis] -= box[axis] * np.round(apart[axis] / box[axis])
    for i, j in np.argwhere(np.linalg.norm(apart, axis=0) < cutoff * (1 - 1e-6)):
        assert home[j] in found.nonempty_neighbors[found.nonempty_cells[home[i]]]


@pytest.fixture
def particles(rng):
    return np.array([1.0, 1.3, 0.8])[:, None] * rng.random((3, 60))


BOX = (1.0, 1.3, 0.8)


def test_lists_hold_particles_and_forces_in_their_slots(particles, rng):
    f = rng.standard_normal((2, 3, 60))
    found = parki.CellList(particles, 0.3, BOX, forces=(f[0, 0], f[0], f), padding_factor=4)
    real = found.particle_index >= 0
    assert real.sum() == 60
    assert found.cell_size % 4 == 0
    assert len(found.particle_index) == found.num_nonempty_cells * found.cell_size
    assert np.array_equal(found.particle_list[:, real], particles[:, found.particle_index[real]])
    assert not found.particle_list[:, ~real].any()
    assert [force.shape[:2] for force in found.force_list] == [(1, 1), (1, 3), (2, 3)]
    for force, given in zip(found.force_list, (f[:1, :1], f[:1], f), strict=True):
        assert np.array_equal(force[..., real], given[..., found.particle_index[real]])
        assert not force[..., ~real].any()


@pytest.mark.parametrize("shape", [(60,), (3, 60), (2, 3, 60)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forces_of_every_shape(shape, dtype, particles, rng):
    f = rng.standard_normal(shape).astype(dtype)
    found = parki.CellList(particles, 0.3, BOX, forces=f)
    assert found.forces is f
    assert found.force_list.dtype == dtype
    assert found.force_list.shape == (*(1,) * (3 - f.ndim), *shape[:-1], len(found.particle_index))
    assert np.isclose(found.force_list.sum(dtype=float), f.sum(dtype=float), rtol=1e-5)


def cells_of(found):
    """Return the cell of each particle."""
    held = found.particle_index.reshape(-1, found.cell_size)
    return {int(held[c, k]): int(found.nonempty_cells[c]) for c, k in np.argwhere(held >= 0)}


def test_two_lists_number_their_cells_alike(particles):
    one, other = parki.CellList(particles, 0.3, BOX), parki.CellList(particles[:, 50:], 0.3, BOX)
    assert one.cell_grid_shape == other.cell_grid_shape == (3, 4, 2)
    assert other.num_nonempty_cells < one.num_nonempty_cells
    every, some = cells_of(one), cells_of(other)
    assert len(some) == 10
    assert all(every[i + 50] == cell for i, cell in some.items())


def test_a_sum_over_neighbours_as_scripts_write_it(particles, rng):
    """Check the near field of 1/r within a cutoff, periodic, from the padded slots."""
    q, cutoff = rng.standard_normal(60), 0.25
    found = parki.CellList(particles, cutoff, BOX, forces=q, padding_factor=2, periodicity=3)
    x, f = found.particle_list, found.force_list[0, 0]
    u = np.zeros(60)
    for c, cell in enumerate(found.nonempty_cells):
        for near in found.nonempty_neighbors[cell][found.nonempty_neighbors[cell] >= 0]:
            for a, b in itertools.product(range(found.counter[c]), range(found.cell_size)):
                t, s = c * found.cell_size + a, near * found.cell_size + b
                r = x[:, t] - x[:, s]
                r = np.linalg.norm(r - np.array(BOX) * np.round(r / np.array(BOX)))
                u[found.particle_index[t]] += f[s] / r if 0 < r < cutoff else 0.0
    r = particles[:, :, None] - particles[:, None]
    r = np.linalg.norm(r - np.array(BOX)[:, None, None] * np.round(r / np.array(BOX)[:, None, None]), axis=0)
    exact = (np.where((r > 0) & (r < cutoff), 1 / np.where(r > 0, r, 1.0), 0.0) * q).sum(axis=1)
    assert np.allclose(u, exact, rtol=1e-12, atol=1e-12)


def test_no_particles():
    found = parki.CellList(np.empty((3, 0)), 0.5, (1, 1, 1), forces=np.empty(0), padding_factor=8)
    assert (found.num_nonempty_cells, found.cell_size, found.num_cells) == (0, 0, 8)
    assert found.particle_list.shape == (3, 0)
    assert found.force_list.shape == (1, 1, 0)
    assert (found.nonempty_neighbors == -1).all()
    every = parki.CellList(np.empty((3, 0)), 0.5, (1, 1, 1), skip_empty_cells=False)
    assert every.num_nonempty_cells == 8
    assert every.counter.tolist() == [0] * 8


def test_one_particle_on_the_upper_corner_is_in_the_last_cell():
    found = parki.CellList(np.array([[1.0], [2.0]]), 0.5, [1, 2], padding_factor=3, periodicity=1)
    assert found.cell_grid_shape == (2, 4)
    assert found.nonempty_cells.tolist() == [7]
    assert found.particle_index.tolist() == [0, -1, -1]
    first = found.nonempty_neighbors[3].tolist()  # the cell across the periodic axis, one step up and one step down
    assert first == [-1, 0, -1, -1, -1, -1, -1, 0, -1]
    assert (found.nonempty_neighbors[0] == -1).all()  # the second axis is not periodic


def test_arguments_are_attributes(particles):
    found = parki.CellList(particles, 0.3, list(BOX), "serial", None, 2, False, 2, False)
    assert found.particles is particles
    assert (found.cutoff, found.box, found.forces, found.force_list) == (0.3, BOX, None, None)
    assert found.execution_space == spaces.get("Serial")
    assert (found.padding_factor, found.skip_empty_cells, found.periodicity) == (2, False, 2)
    assert found.build_nonempty_neighbors is False
    assert found.nonempty_neighbors is None
    assert repr(found) == f"<CellList: 60 particles, 3 × 4 × 2 cells, 24 with {found.cell_size} slots each>"


def test_nothing_is_written_to(particles, rng):
    f = rng.standard_normal(60)
    particles.flags.writeable = f.flags.writeable = False
    found = parki.CellList(particles, 0.3, BOX, forces=f)
    assert not np.shares_memory(found.particle_list, particles)


@pytest.mark.parametrize("n", [60, 0])
@pytest.mark.parametrize("given", ["there", "here"])
def test_on_a_gpu_as_on_the_host(given, n, cupy, particles):
    particles, f = particles[:, :n].copy(), np.arange(3.0 * n).reshape(3, n)
    here = parki.CellList(particles, 0.3, BOX, forces=(f, f[0]), padding_factor=4, periodicity=3)
    if given == "there":
        moved, g, space = cupy.asarray(particles), cupy.asarray(f), None
    else:
        moved, g, space = particles, f, "GPU"
    there = parki.CellList(moved, 0.3, BOX, space, (g, g[0]), 4, periodicity=3)
    assert there.execution_space.kind == "device"
    for name in ("num_nonempty_cells", "cell_size", "num_cells", "cell_grid_shape", "box"):
        assert getattr(there, name) == getattr(here, name)
    listed = ("nonempty_cells", "nonempty_cell_index", "particle_index", "nonempty_neighbors", "particle_list")
    for name in (*listed, "counter", "particles"):
        assert isinstance(getattr(there, name), cupy.ndarray)
        assert np.array_equal(getattr(there, name).get(), getattr(here, name))
    for one, other in zip(there.force_list, here.force_list, strict=True):
        assert np.array_equal(one.get(), other)


def test_a_gpu_reads_back_few_numbers(monkeypatch, particles):
    cupy = standin.install(monkeypatch)
    moved = cupy.asarray(particles)
    standin.counts.clear()
    parki.CellList(moved, 0.3, BOX, periodicity=3)
    assert standin.counts["to host"] == 0
    assert standin.counts["scalar"] == 3  # all particles inside, cells with slots, the fullest cell


GOOD = {"particles": np.full((3, 2), 0.5), "cutoff": 0.5, "box": (1, 1, 1)}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"particles": np.full((2, 3), 0.5)}, r"box is \(1, 1, 1\); expected 2 positive"),
        ({"particles": np.full((4, 3), 0.5)}, r"particles has shape \(4, 3\); expected \(d, N\).* Pass particles\.T"),
        ({"particles": np.full(3, 0.5)}, r"particles has shape \(3,\)"),
        ({"particles": np.full((3, 2), 1)}, r"particles has dtype int64; expected float32 or float64"),
        ({"particles": np.full((3, 2), np.nan)}, r"2 of 2 points that lie outside .* or are not finite"),
        ({"particles": np.array([[0.5, 0.5], [0.5, 1.5]]), "box": (1, 1)}, r"1 of 2 .*index 1, \[0\.5, 1\.5\]"),
        ({"particles": np.array([[0.5, 0.5, -1e-9]]), "box": (1,)}, r"1 of 3 .*index 2, \[-1e-09\]"),
        ({"cutoff": 0.0}, r"cutoff is 0\.0; expected a positive"),
        ({"cutoff": "0.5"}, r"cutoff is '0\.5'"),
        ({"cutoff": math.nan}, r"cutoff is nan"),
        ({"cutoff": 2.0, "periodicity": 1}, r"cutoff is 2\.0, longer than a periodic side of the box, 1;"),
        ({"cutoff": 1e-4}, r"cutoff is 0\.0001 .* 1e\+12 cells; expected at most 2147483647"),
        ({"box": (1, -1, 1)}, r"box is \(1, -1, 1\); expected 3 positive"),
        ({"box": 1.0}, r"box is 1\.0; expected 3"),
        ({"periodicity": 4}, r"periodicity is 4; expected an integer from 0 to 3"),
        ({"padding_factor": 0}, r"padding_factor is 0; expected an integer of at least 1"),
        ({"padding_factor": 1.5}, r"padding_factor is 1\.5"),
        ({"skip_empty_cells": "no"}, r"skip_empty_cells is 'no'; expected True or False"),
        ({"build_nonempty_neighbors": 2}, r"build_nonempty_neighbors is 2"),
        ({"forces": np.zeros((2, 3))}, r"forces has shape \(2, 3\); expected \(2,\).*Pass forces\.T"),
        ({"forces": (np.zeros(2), np.zeros(3))}, r"forces\[1\] has shape \(3,\); expected \(2,\)"),
        ({"forces": np.zeros((1, 1, 1, 2))}, r"forces has shape \(1, 1, 1, 2\)"),
        ({"execution_space": "Kuda"}, r"Kuda"),
    ],
    ids=str,
)
def test_wrong_input_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        parki.CellList(**(GOOD | wrong))


def test_cutoff_may_be_longer_than_sides_that_are_not_periodic():
    assert parki.CellList(**(GOOD | {"cutoff": 2.0})).cell_grid_shape == (1, 1, 1)
