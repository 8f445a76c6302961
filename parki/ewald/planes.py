"""Planes of modes: gathered from the grid that is transformed along x, transformed along y and z, multiplied, and back.

They go through a buffer, some at a time: on a host they stay in the cache between the steps.  Each of a crew has a
buffer of its own, and takes blocks of planes as long as there are any.
"""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from parki import engine, fft
from parki.arrays import Array, module_of
from parki.engine import Prepared, TeamPolicy
from parki.engine.spaces import Space, workers
from parki.ewald import multipliers
from parki.ewald.crew import Crew
from parki.ewald.mesh import Mesh
from parki.ewald.multipliers import Planes
from parki.ewald.params import Parameters
from parki.ewald.report import WallTime

CACHE = 1 << 21  # bytes that a thread of a host transforms at once: less, and calls of the library take too long
BATCH = 1 << 28  # the same of a GPU
PRUNED = 0.9  # columns are left out where at most so many of them remain


def workunits(p: Parameters, whole: bool, rhs: int) -> list[engine.Workunit]:
    """What planes launch: gather, multiply, scatter."""
    gather = engine.kernel("planes", "planes_gather", real=p.far)
    scatter = engine.kernel("planes", "planes_scatter", real=p.far, BOTH=not whole)
    slots = {"multiply": p.kernel.multiplier, "STRIDE": p.kernel.components, "RHS": rhs, "SKEW": p.skew is not None}
    return [gather, engine.kernel("convolve", "convolve", real=p.far, **slots), scatter]


def columns(p: Parameters, c: Planes, modes: tuple[int, ...]) -> list[slice]:
    """Columns along y, of those with one kz, that these planes of a class need: the others are multiplied by zero."""
    points = multipliers.period(p)
    if p.skew is not None:
        return [slice(None)]
    least = min(min(m, points - m) for m in modes) * 2 * math.pi / (points * p.h[0])
    left = p.kmax**2 - least**2
    end = int(math.sqrt(max(left, 0.0)) * c.length * p.h[2] / (2 * math.pi)) + 1
    if 2 * end - 1 > PRUNED * c.length:
        return [slice(None)]
    return [slice(0, end), slice(c.length - end + 1, None)] if end > 1 else [slice(0, 1)]


def split(count: int, fit: int, unit: int, size: int) -> list[int]:
    """Where blocks of modes begin, and where the last ends: `fit` at most, units whole, as many for each of a crew."""
    units, most = count // unit, max(fit // unit, 1)
    blocks = -(-units // most)
    if size > 1:
        blocks = min(-(-blocks // size) * size, units)
    return [units * block // blocks * unit for block in range(blocks + 1)]


class Part:
    """Planes of one class, some at a time: `bounds` says which.  Each of a crew has a row of `buffers`."""

    def __init__(
        self, p: Parameters, c: Planes, bounds: list[int], mesh: Mesh, grid: Array, buffers: Array, space: Space,
        library: fft.Library, whole: bool, rhs: int,
    ) -> None:  # fmt: skip
        xp, self.c, self.library, self.kernel = module_of(grid), c, library, p.kernel
        self.planes, self.rows = max(end - first for first, end in pairwise(bounds)), mesh.box[1]
        green, k = multipliers.table(p, c)
        tables = [xp.asarray(a) for a in (green, *k, np.array(c.modes, np.int32))]
        self.seats = [Seat(p, self, mesh, grid, buffer, space, tables, whole, rhs) for buffer in buffers]
        self.blocks = [Block(p, self, first, end) for first, end in pairwise(bounds)]


class Seat:
    """What one of a crew has for the planes of a class: a spectrum and the launches on it."""

    def __init__(
        self, p: Parameters, part: Part, mesh: Mesh, grid: Array, buffer: Array, space: Space, tables: list[Array],
        whole: bool, rhs: int,
    ) -> None:  # fmt: skip
        planes, rows, length = part.planes, part.c.rows, part.c.length
        shape = (rhs, p.kernel.components, planes, rows, length)
        self.spectrum = buffer[: math.prod(shape)].reshape(shape)
        self.apart = space.kind == "device"
        n0, n1, n2 = mesh.box
        gather, convolve, scatter = workunits(p, whole, rhs)
        green, kx, ky, kz, mode = tables
        shared = {"spec": fft.pairs(self.spectrum.reshape(-1, *shape[2:])), "first": 0, "count": len(part.c.modes)}
        there = {"grid": grid, "mode": mode, "stride": p.kernel.components, "n0": n0, "n1": n1, "n2": n2}
        there |= {"planes": planes}
        s01, s02, s12 = multipliers.reciprocal(p)

        def made(kernel: engine.Workunit, teams: int, **given: Any) -> Prepared:
            return engine.prepare(TeamPolicy(space, teams), kernel, **shared, **given)

        spread, result = p.kernel.spread, p.kernel.result
        self.gather = made(gather, rhs * spread * planes * rows, components=spread, rows=rows, length=length, **there)
        self.convolve = made(
            convolve, planes * rows, green=green, kx=kx, ky=ky, kz=kz, rows=rows, length=length, s01=s01, s02=s02,
            s12=s12,
        )  # fmt: skip
        self.scatter = made(scatter, rhs * result * planes * n1, components=result, **there)

    def components(self, used: int, planes: int) -> list[Array]:
        """What is transformed: at once on a host, where calls take time; one by one on a GPU, where libraries copy."""
        found = self.spectrum[:, :used, :planes]
        return [c for one in found for c in one] if self.apart else [found]

    @property
    def launches(self) -> list[Prepared]:
        """All of them."""
        return [self.gather, self.convolve, self.scatter]


class Block:
    """As many planes of a class as a buffer holds, from mode number `first` to `end`."""

    def __init__(self, p: Parameters, part: Part, first: int, end: int) -> None:
        self.part, self.first, self.end = part, first, end
        self.columns = columns(p, part.c, part.c.modes[first:end])

    def run(self, member: int, times: WallTime) -> None:
        """All steps, by one of the crew."""
        seat = self.part.seats[member]
        with times.phase("fft"):
            self.forward(seat)
        with times.phase("cnv"):
            self._launch(seat.convolve)
        with times.phase("ifft"):
            self.backward(seat)

    def forward(self, seat: Seat) -> None:
        """Gather the planes; transform their rows, then the columns that are needed."""
        at = self.part
        self._launch(seat.gather)
        for c in seat.components(at.kernel.spread, self.end - self.first):
            at.library.run(c[..., : at.rows, :], c.ndim - 1, False)
            for columns in self.columns:
                at.library.run(c[..., columns], c.ndim - 2, False)

    def backward(self, seat: Seat) -> None:
        """Transform back, what the grid has room for; scatter."""
        at = self.part
        for c in seat.components(at.kernel.result, self.end - self.first):
            for columns in self.columns:
                at.library.run(c[..., columns], c.ndim - 2, True)
            at.library.run(c[..., : at.rows, :], c.ndim - 1, True)
        self._launch(seat.scatter)

    def _launch(self, launch: Prepared) -> None:
        launch.set(first=self.first, count=self.end)
        launch.run()


class Parts:
    """All planes of a grid that is transformed along x.

    Parameters
    ----------
    grid : array (C, …)
        What is transformed: component r * spread + c before, r * result + c after, of right-hand side r.
    whole
        Transform planes of negative kx, too.
    """

    def __init__(
        self, p: Parameters, mesh: Mesh, grid: Array, space: Space, library: fft.Library, whole: bool, rhs: int,
        crew: Crew,
    ) -> None:  # fmt: skip
        xp, classes = module_of(grid), multipliers.planes(p, whole)
        self.grid, self.last = grid, max(m for c in classes for m in c.modes if 2 * m <= mesh.box[0])
        number = np.result_type(p.far, np.complex64)
        sizes = [p.kernel.components * rhs * c.rows * c.length for c in classes]
        # A plane and its image overwrite each other's transforms: both or none.
        units = [min(1 + whole, len(c.modes)) for c in classes]
        batch = (BATCH if space.kind == "device" else CACHE * crew.each) // number.itemsize
        # At least a plane of each class, with its image where both are transformed.
        room = max(batch, *(size * unit for size, unit in zip(sizes, units, strict=True)))
        bounds = [
            split(len(c.modes), room // size, unit, crew.size)
            for c, size, unit in zip(classes, sizes, units, strict=True)
        ]
        most = [max(end - first for first, end in pairwise(b)) for b in bounds]
        self.buffers = xp.empty((crew.size, max(n * size for n, size in zip(most, sizes, strict=True))), number)
        if crew.each < workers(space):
            space = replace(space, threads=1)
        self.parts = [
            Part(p, c, b, mesh, grid, self.buffers, space, library, whole, rhs)
            for c, b in zip(classes, bounds, strict=True)
        ]
        self.result = rhs * p.kernel.result
        self.n0 = mesh.box[0]

    @property
    def blocks(self) -> list[Block]:
        """All of them: they write apart from each other."""
        return [block for part in self.parts for block in part.blocks]

    @property
    def launches(self) -> list[Prepared]:
        """All that they launch."""
        return [launch for part in self.parts for seat in part.seats for launch in seat.launches]

    def clear(self, rows: slice) -> None:
        """Set the modes that have no plane to zero."""
        self.grid[: self.result, self.last + 1 : self.n0 - self.last, rows] = 0
