"""Steps on planes of modes: gather from the grid transformed along x, transform along y and z, multiply, and back.

Planes pass through a buffer, some at a time: on a host they stay in the cache between the steps.  Each worker has a
buffer of its own, and takes blocks of planes until none is left.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from parki import engine, fft
from parki.arrays import Array
from parki.engine.steps import Block, Blocks, Call, Context, Handle, Index, Step, constant, scratch, state
from parki.ewald.choice.params import Parameters
from parki.ewald.stages import multipliers
from parki.ewald.stages.mesh import Mesh
from parki.ewald.stages.multipliers import Columns, Planes, Some

CACHE = 1 << 21  # bytes per thread of a host transformed at once: with fewer, calls of the library take too long
BATCH = 1 << 28  # bytes transformed at once on a GPU
VIRIAL_SUMS = 7  # sums per line of modes in `kernels/virial.py`
PRUNED = 0.9  # largest remaining fraction of columns for which leaving out the others pays


def columns(p: Parameters, c: Planes, modes: tuple[int, ...]) -> list[slice]:
    """Return the columns along y that some planes of a class need; all others are multiplied by zero."""
    if isinstance(c, Columns):
        return []  # transformed along y already
    points = multipliers.period(p)
    if p.skew is not None:
        return [slice(None)]
    k_min = min(min(m, points - m) for m in modes) * 2 * math.pi / (points * p.h[0])
    k2 = p.kmax**2 - k_min**2
    end = int(math.sqrt(max(k2, 0.0)) * c.length * p.h[2] / (2 * math.pi)) + 1
    if 2 * end - 1 > PRUNED * c.length:
        return [slice(None)]
    return [slice(0, end), slice(c.length - end + 1, None)] if end > 1 else [slice(0, 1)]


def split(count: int, fit: int, unit: int, size: int) -> list[int]:
    """Return the begin of each block of modes, and the end of the last.

    Blocks have at most `fit` modes, in whole units; their number is a multiple of the number `size` of workers.
    """
    units, limit = count // unit, max(fit // unit, 1)
    blocks = -(-units // limit)
    if size > 1:
        blocks = min(-(-blocks // size) * size, units)
    return [units * block // blocks * unit for block in range(blocks + 1)]


@dataclass(frozen=True)
class Transforms:
    """Library of transforms, and the workers that process planes in parallel.

    Attributes
    ----------
    name : str
        Key of `parki.fft.BACKENDS`.
    on_gpu : bool
    several : bool
        True if threads of Python may transform different arrays at once.
    size, each : int
        Workers, and threads of each.
    """

    name: str
    on_gpu: bool
    several: bool
    size: int
    each: int

    @cached_property
    def library(self) -> fft.Library:
        """Return the library, imported on first use."""
        return fft.library(self.name, self.on_gpu, self.each)


@dataclass(frozen=True)
class Sizes:
    """Planes of a class: lengths, number in a buffer, rows that fit in the grid, components by use.

    `whole` is True if planes of negative kx are included; `virial` has the lines of the class.
    """

    c: Planes
    planes: int
    inside: int
    rhs: int
    components: int
    spread: int
    result: int
    whole: bool
    virial: Handle | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Return the shape of a buffer, with complex numbers as pairs of reals."""
        return self.rhs * self.components, self.planes, self.c.rows, 2 * self.c.length

    def at_once(self, transforms: Transforms) -> bool:
        """Tell whether the library transforms whole planes: rows of zeros and unused columns cost less than copies."""
        return not isinstance(self.c, Columns) and isinstance(transforms.library, fft.Cupy)

    def spectra(self, context: Context, buffer: Array, n_fields: int) -> list[Array]:
        """Return the complex arrays to transform: one on a host, where calls take time, else one per component.

        Libraries for GPUs would copy an array with gaps.
        """
        spectrum = fft.complexes(buffer).reshape(self.rhs, self.components, *self.shape[1:3], self.c.length)
        part = spectrum[:, :n_fields, : context.block["end"] - context.block["first"]]
        return [c for group in part for c in group] if context.space.own_memory else [part]


def blocks(
    p: Parameters, points: Sequence[int], grid: Handle, transforms: Transforms, with_images: bool, rhs: int,
    modes: Some | None = None, virial: Handle | None = None,
) -> Blocks:  # fmt: skip
    """Return the steps on all planes of a grid that is transformed along x; blocks write separate parts of the grid.

    Parameters
    ----------
    p : Parameters
    points : sequence of int
        Points of the grid along each axis.
    grid : Handle (C, …)
        Component c of right-hand side r is r * spread + c before, and r * result + c after the steps.
    transforms : Transforms
    with_images : bool
        True to also transform planes of negative kx.
    rhs : int
        Right-hand sides.
    modes : Some, optional
        Modes that the grid has; by default all.
    virial : Handle (lines, 7), optional
        Sums over lines of modes, for a kernel with its virial: see `virial_lines`.
    """
    classes, place = modes or Some.of(multipliers.planes(p, with_images))
    number = np.result_type(p.far, np.complex64)
    sizes = [p.kernel.components * rhs * c.rows * c.length for c in classes]
    # A plane and its image overwrite each other's transforms, so a block has both or none.
    units = [min(1 + with_images, len(c.modes)) for c in classes]
    batch = (BATCH if transforms.on_gpu else CACHE * transforms.each) // number.itemsize
    # Room for at least one plane of each class, with its image if both are transformed.
    room = max(batch, *(size * unit for size, unit in zip(sizes, units, strict=True)))
    bounds = [
        split(len(c.modes), room // size, unit, transforms.size)
        for c, size, unit in zip(classes, sizes, units, strict=True)
    ]
    capacity = [max(end - first for first, end in pairwise(b)) for b in bounds]
    numbers = 2 * max(n * size for n, size in zip(capacity, sizes, strict=True))
    buffer = scratch("planes", (numbers,), p.far)
    kernel, parts, begin = p.kernel, [], 0
    first: list[Step] = []
    for c, cuts, planes in zip(classes, bounds, capacity, strict=True):
        count = len(c.modes) * c.rows
        lines = None if virial is None else virial[begin : begin + count]
        begin += count
        block_sizes = Sizes(
            c, planes, points[1], rhs, kernel.components, kernel.spread, kernel.fields, with_images, lines
        )
        cut = [Block(first=a, end=b, columns=columns(p, c, c.modes[a:b])) for a, b in pairwise(cuts)]
        spectrum = buffer.view(0, block_sizes.shape, p.far)
        lines_of_modes = [place[m] for m in c.modes]
        body, filling = _body(p, points, lines_of_modes, block_sizes, grid, spectrum, transforms)
        parts.append((partial(_known, cut), body))
        first += filling
    return Blocks(parts, "far", first)


def virial_lines(p: Parameters, with_images: bool) -> Handle:
    """Return the array for sums over lines of modes of all planes."""
    count = sum(len(c.modes) * c.rows for c in multipliers.planes(p, with_images))
    return state("virial of lines", (count, VIRIAL_SUMS), p.far)


def convolve_kernel(p: Parameters, rhs: int = 1, single_lines: bool = False) -> engine.Workunit:
    """Return the workunit that multiplies the modes of planes, or of `single_lines`."""
    slots = {"multiply": p.kernel.multiplier, "STRIDE": p.kernel.components, "RHS": rhs, "SKEW": p.skew is not None}
    if single_lines:
        slots["SINGLE"] = True
    return engine.kernel("convolve", "convolve", real=p.far, **slots)


def _known(cut: list[Block], workers: int) -> list[Block]:
    return cut


def _body(
    p: Parameters, points: Sequence[int], lines: list[int], sizes: Sizes, grid: Handle, spectrum: Handle,
    transforms: Transforms,
) -> tuple[list[Step | Call], list[Step]]:  # fmt: skip
    """Return the steps on a block of planes of one class, and the first ones that fill in its tables.

    `lines` are the places of the planes' lines in the grid.
    """
    (n0, n1, n2), (rows, length), rhs = points, (sizes.c.rows, sizes.c.length), sizes.rhs
    tables, first = multipliers.tables(p, sizes.c)
    shared: dict[str, Any] = {"spec": spectrum, "first": Index("first"), "count": Index("end")}
    grid_args = shared | {"grid": grid, "mode": constant("lines", np.array(lines, np.int32))}
    grid_args |= {
        "stride": sizes.components,
        "n0": n0,
        "n1": n1,
        "n2": n2,
        "planes": sizes.planes,
        "rows": rows,
        "length": length,
    }
    s01, s02, s12 = multipliers.reciprocal(p)
    gather = engine.kernel("planes", "planes_gather", real=p.far)
    convolve = convolve_kernel(p, rhs, isinstance(sizes.c, Columns))
    scatter = engine.kernel("planes", "planes_scatter", real=p.far, BOTH=not sizes.whole)
    waves = shared | tables | {"rows": rows, "length": length, "s01": s01, "s02": s02, "s12": s12}

    def step(phase: str, unit: engine.Workunit, items: int, args: dict[str, Any]) -> Step:
        names = {q.name for q in unit.ir.params}
        return Step(phase, unit, items, {name: a for name, a in args.items() if name in names}, lane="far")

    def call(phase: str, function: Any) -> Call:
        return Call(phase, partial(function, sizes, transforms), [spectrum], [spectrum], lane="far",
                    threadsafe=transforms.several)  # fmt: skip

    sums = []
    if sizes.virial is not None:
        sums.append(step("cnv", _virial_kernel(p), sizes.planes * rows, waves | _virial(p, sizes)))
    steps = [
        step("fft", gather, rhs * sizes.spread * sizes.planes * rows, grid_args | {"components": sizes.spread}),
        call("fft", _forward),
        *sums,
        step("cnv", convolve, sizes.planes * rows, waves),
        call("ifft", _backward),
        step("ifft", scatter, rhs * sizes.result * sizes.planes * n1, grid_args | {"components": sizes.result}),
    ]
    return steps, first


def _virial_kernel(p: Parameters) -> engine.Workunit:
    return engine.kernel("virial", "line_virials", real=p.far, SKEW=p.skew is not None)


def _virial(p: Parameters, sizes: Sizes) -> dict[str, Any]:
    """Return the arguments of sums over lines of modes; a mode counts twice if its image is not among the planes."""
    slope = constant("slopes of green", multipliers.table(p, sizes.c, slope=True))
    weight = np.where(np.array(sizes.c.modes) == 0, 1.0, 1.0 if sizes.whole else 2.0).astype(p.far)
    return {"slope": slope, "weight": constant("images", weight), "out": sizes.virial}


def _forward(sizes: Sizes, transforms: Transforms, context: Context, buffer: Array) -> None:
    """Transform the rows of the planes, then the needed columns, or whole planes at once."""
    for c in sizes.spectra(context, buffer, sizes.spread):
        if sizes.at_once(transforms):
            transforms.library.run_planes(c, False)
            continue
        transforms.library.run(c[..., : sizes.inside, :], c.ndim - 1, False)
        for columns in context.block["columns"]:
            transforms.library.run(c[..., columns], c.ndim - 2, False)


def _backward(sizes: Sizes, transforms: Transforms, context: Context, buffer: Array) -> None:
    """Transform back the columns, then the rows that fit in the grid, or whole planes at once."""
    for c in sizes.spectra(context, buffer, sizes.result):
        if sizes.at_once(transforms):
            transforms.library.run_planes(c, True)
            continue
        for columns in context.block["columns"]:
            transforms.library.run(c[..., columns], c.ndim - 2, True)
        transforms.library.run(c[..., : sizes.inside, :], c.ndim - 1, True)


def last_mode(p: Parameters, mesh: Mesh, with_images: bool) -> int:
    """Return the largest index along x of a mode that has a plane."""
    return max(m for c in multipliers.planes(p, with_images) for m in c.modes if 2 * m <= mesh.box[0])
