"""The memory that a plan will hold, from its parameters before anything is made."""

import math

from parki import memory
from parki.cells import CellGrid
from parki.engine.spaces import Space, workers
from parki.ewald import multipliers, planes
from parki.ewald.crew import Crew
from parki.ewald.mesh import Mesh
from parki.ewald.options import EwaldOptions
from parki.ewald.params import Parameters
from parki.ewald.question import Question

BATCH_BYTES = 8  # a point's share of the batch that it is in


def require(question: Question, p: Parameters, rhs: int, options: EwaldOptions) -> None:
    """Refuse parameters for `rhs` right-hand sides at once that take more memory of the host than is free.

    The sorted points are counted with a plan's first right-hand side.

    Raises
    ------
    MemoryError
        Naming the bytes needed and free, and the options that lower them.
    """
    counts = question.n_targets, question.n_sources
    if question.space.kind == "device" or not all(counts):
        return
    grid = f"a plan with the grid {' × '.join(str(m) for m in p.grid)}"
    memory.require(math.prod(p.grid) * p.kernel.components * p.itemsizes[1], grid, _advice(options))
    needed = held_by_stages(p, *counts, rhs, question.space, options.fft_type == "C2C")
    if rhs == 1:
        needed += held_by_points(p, *counts, question.arrangement is None or question.same)
    memory.require(needed, grid, _advice(options))


def _advice(options: EwaldOptions) -> str:
    named = next((name for name in ("cell_size", "rc") if getattr(options, name) is not None), None)
    if named:
        return f"A larger {named}, or None to have rc chosen, or a larger tolerance takes less."
    return "A larger tolerance or a larger rc takes less."


def held_by_stages(
    p: Parameters, n_targets: int, n_sources: int, rhs: int, space: Space, whole: bool = False
) -> float:  # fmt: skip
    """Return the bytes of grid, tables, planes in work, fields and packed sources, without the padding of rows."""
    real, far = p.itemsizes
    kernel, mesh = p.kernel, Mesh(p, multipliers.period(p))
    shape = [max(e, low + n) for e, low, n in zip(mesh.extent, mesh.low, mesh.box, strict=True)]
    grid = rhs * kernel.components * math.prod(shape) * far
    crew, tables, buffer = Crew(workers(space), grid, True), 0, 0
    for c in multipliers.planes(p, whole):
        rows, length = (c.rows, c.length) if p.skew is not None else (c.rows // 2 + 1, c.length // 2 + 1)
        tables += len(c.modes) * rows * length * far
        plane = 2 * rhs * kernel.components * c.rows * c.length * far
        most = -(-len(c.modes) // crew.size)
        buffer = max(buffer, plane * min(most, max(1, planes.CACHE * crew.each // plane)))
    directed = 6 if p.skew is not None and kernel.slopes else 0
    packed = rhs * kernel.strengths + 3 + rhs * kernel.strengths  # strengths, and rows with places
    if p.skew is not None:
        packed += 3 + rhs * (kernel.strengths + directed) + rhs * (kernel.strengths + directed if directed else 0)
    fields = rhs * kernel.result * n_targets * (real + far)
    return grid + tables + crew.size * buffer + packed * n_sources * real + fields


def held_by_points(p: Parameters, n_targets: int, n_sources: int, same: bool) -> float:
    """Return the bytes of the points in the order of their cells."""
    real = p.itemsizes[0]
    cells = CellGrid.for_points(p.box, n_sources, p.rc, periodicity=p.periodicity).count
    each, lists = (
        3 * real + 4 + BATCH_BYTES,
        [n_sources] + ([] if same else [n_targets]) + ([n_sources] if p.skew is not None else []),
    )
    return sum(each * n + 4 * cells for n in lists) + (3 * real * n_targets if p.skew is not None else 0)
