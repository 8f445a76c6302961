"""Planes of modes: gathered from the grid that is transformed along x, transformed along y and z, multiplied, and back.

They go through one buffer, some at a time: on a host they stay in the cache between the steps.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from parki import engine, fft
from parki.arrays import Array, module_of
from parki.engine import Prepared, TeamPolicy
from parki.engine.spaces import Space
from parki.ewald import multipliers
from parki.ewald.mesh import Mesh
from parki.ewald.multipliers import Planes
from parki.ewald.params import Parameters

CACHE = 1 << 20  # bytes that a host transforms at once, for each thread
BATCH = 1 << 28  # the same of a GPU
PRUNED = 0.9  # columns are left out where at most so many of them remain


def workunits(p: Parameters, whole: bool, rhs: int) -> list[engine.Workunit]:
    """What planes launch: gather, multiply, scatter."""
    gather = engine.kernel("planes", "planes_gather", real=p.dtype)
    scatter = engine.kernel("planes", "planes_scatter", real=p.dtype, BOTH=not whole)
    slots = {"multiply": p.kernel.multiplier, "STRIDE": p.kernel.components, "RHS": rhs, "SKEW": p.skew is not None}
    return [gather, engine.kernel("convolve", "convolve", real=p.dtype, **slots), scatter]


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


class Part:
    """Planes of one class, some at a time; `shared` by threads or not."""

    def __init__(
        self, p: Parameters, c: Planes, mesh: Mesh, grid: Array, buffer: Array, room: int, space: Space,
        library: fft.Library, whole: bool, rhs: int, shared: bool,
    ) -> None:  # fmt: skip
        xp, self.c, self.library, self.shared = module_of(grid), c, library, shared
        components, self.kernel = p.kernel.components * rhs, p.kernel
        self.planes = min(room // (components * c.rows * c.length), len(c.modes))
        if whole and self.planes > 1:  # a plane and its image overwrite each other's transforms: both or none
            self.planes -= self.planes % 2
        shape = (components, self.planes, c.rows, c.length)
        self.spectrum = buffer[: math.prod(shape)].reshape(shape)
        pairs, self.rhs = fft.pairs(self.spectrum), rhs
        n0, n1, n2 = mesh.box
        self.rows = n1
        gather, convolve, scatter = workunits(p, whole, rhs)
        green, (kx, ky, kz) = multipliers.table(p, c)
        mode = xp.asarray(np.array(c.modes, np.int32))
        shared = {"spec": pairs, "first": 0, "count": len(c.modes)}
        there = {"grid": grid, "mode": mode, "stride": p.kernel.components, "n0": n0, "n1": n1, "n2": n2}
        there |= {"planes": self.planes}
        s01, s02, s12 = multipliers.reciprocal(p)

        def made(kernel: engine.Workunit, teams: int, **given: Any) -> Prepared:
            return engine.prepare(TeamPolicy(space, teams), kernel, **shared, **given)

        spread, result = p.kernel.spread, p.kernel.result
        self.gather = made(
            gather, rhs * spread * self.planes * c.rows, components=spread, rows=c.rows, length=c.length, **there
        )
        self.convolve = made(
            convolve, self.planes * c.rows, green=xp.asarray(green), kx=xp.asarray(kx), ky=xp.asarray(ky),
            kz=xp.asarray(kz), rows=c.rows, length=c.length, s01=s01, s02=s02, s12=s12,
        )  # fmt: skip
        self.scatter = made(scatter, rhs * result * self.planes * n1, components=result, **there)
        self.blocks = [Block(p, self, first) for first in range(0, len(c.modes), self.planes)]


class Block:
    """As many planes of a class as the buffer holds, from one on."""

    def __init__(self, p: Parameters, part: Part, first: int) -> None:
        modes = part.c.modes[first : first + part.planes]
        self.part, self.first, self.columns = part, first, columns(p, part.c, modes)
        self.spectrum = part.spectrum[:, : len(modes)]

    def forward(self) -> None:
        """Gather the planes; transform their rows, then the columns that are needed."""
        at = self.part
        at.gather.set(first=self.first)
        at.gather.run()
        for c in self._components(at.kernel.spread):
            at.library.run(c[..., : at.rows, :], c.ndim - 1, False)
            for columns in self.columns:
                at.library.run(c[..., columns], c.ndim - 2, False)

    def multiply(self) -> None:
        """CNV: the Fourier multiplier."""
        self.part.convolve.set(first=self.first)
        self.part.convolve.run()

    def backward(self) -> None:
        """Transform back, what the grid has room for; scatter."""
        at = self.part
        for c in self._components(at.kernel.result):
            for columns in self.columns:
                at.library.run(c[..., columns], c.ndim - 2, True)
            at.library.run(c[..., : at.rows, :], c.ndim - 1, True)
        at.scatter.set(first=self.first)
        at.scatter.run()

    def _components(self, used: int) -> list[Array]:
        """The components of all right-hand sides that hold something: one after another they stay in the cache.

        Where threads share the work all go at once: to wake them takes as long as a few planes.
        """
        stride = self.part.kernel.components
        if self.part.shared and (used == stride or self.part.rhs == 1):
            return [self.spectrum[: self.part.rhs * used]]
        return [self.spectrum[r * stride + c] for r in range(self.part.rhs) for c in range(used)]


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
        threads: int,
    ) -> None:  # fmt: skip
        xp, classes = module_of(grid), multipliers.planes(p, whole)
        self.grid, self.last = grid, max(m for c in classes for m in c.modes if 2 * m <= mesh.box[0])
        number = np.result_type(p.dtype, np.complex64)
        sizes = [(p.kernel.components * rhs * c.rows * c.length, len(c.modes)) for c in classes]
        batch = (BATCH if space.kind == "device" else CACHE * threads) // number.itemsize
        # At least a plane of each class, with its image where both are transformed; never more than a whole class.
        least = max(plane * min(1 + whole, count) for plane, count in sizes)
        room = min(max(batch, least), max(plane * count for plane, count in sizes))
        self.buffer = xp.empty(room, number)
        shared = threads > 1
        self.parts = [Part(p, c, mesh, grid, self.buffer, room, space, library, whole, rhs, shared) for c in classes]
        self.result = rhs * p.kernel.result
        self.n0 = mesh.box[0]

    def __iter__(self) -> Iterator[Block]:
        return (block for part in self.parts for block in part.blocks)

    def finish(self) -> None:
        """Set the modes that have no plane to zero."""
        self.grid[: self.result, self.last + 1 : self.n0 - self.last] = 0
