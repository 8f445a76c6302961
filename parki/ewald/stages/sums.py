"""Steps of an Ewald sum over sorted points: pack sources, sum near and far field, unpack results."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from parki import engine, left_out, scaling
from parki.arrays import ROW, Array, along_rows, module_of, to_host
from parki.engine import Space, launchable
from parki.engine.steps import Blocks, Call, Context, Handle, Step, Steps, argument, constant, glue, result, state
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.variants import Variants
from parki.ewald.geometry import Geometry
from parki.ewald.options import EwaldOptions
from parki.ewald.report import WallTime
from parki.ewald.stages import far, green, half_lists, near
from parki.ewald.stages.brick import Share
from parki.ewald.stages.points import PointHandles, Points
from parki.scaling import Powers

PACK, UNPACK = "p2p.sort", "g2p.sort"  # names of phases


class SumSteps:
    """Steps of `rhs` right-hand sides at once.

    Parameters
    ----------
    p : Parameters
    v : Variants
    numbers : tuple of (int, int, bool)
        Number of targets, number of sources, and True if the targets are the sources.
    space : Space
    options : EwaldOptions, optional
    rhs : int
    place : Geometry, optional
        Geometry; by default that of the parameters' box.
    share : Share, optional
        Share of a brick, whose sources are its own followed by ghosts.

    Attributes
    ----------
    density : Handle (rhs, components, Ns)
        Argument, with ``layout="nd"`` ``(rhs, Ns, components)``.
    normals : Handle (3, Ns) or None
        Argument, with ``layout="nd"`` ``(Ns, 3)``.
    factors : Handle (rhs · components + 3 + rhs · result, 2)
        Argument: two factors for each component of densities, normals and results.
    u : Handle (rhs, components, Nt)
        Result, with ``layout="nd"`` ``(rhs, Nt, components)``.
    near : NearField
    far : FarField
    rows_of_sources : Handle (Ns, numbers)
        Sources (x, y, z, strengths) in the order of their cells.
    constants : Handle (rhs · result)
        Constants that are added to the results for a net density.
    steps : Steps
    """

    def __init__(
        self, p: Parameters, v: Variants, numbers: tuple[int, int, bool], space: Space,
        options: EwaldOptions | None = None, rhs: int = 1, place: Geometry | None = None, share: Share | None = None,
    ) -> None:  # fmt: skip
        self.p, self.v, self.rhs, self.space = p, v, rhs, space
        self.place = place or Geometry(p.box, p.periodicity)
        self.rows = options is not None and options.layout == "nd"
        brick, exchanges, ghosts = share or (None, None, 0)
        self.points, self._others = PointHandles(p, *numbers, space, v, brick, ghosts), exchanges
        kernel, n, nt = p.kernel, numbers[1] + ghosts, numbers[0]
        self._own = numbers[1]
        self.law = kernel.law
        self.density = argument("density", (rhs, *self._axes(kernel.dens, n)), p.dtype)
        self.normals = argument("normals", self._axes(3, n), p.dtype) if kernel.normals else None
        n_loads = rhs * kernel.dens
        self.factors = argument("factors", (n_loads + 3 + rhs * kernel.result, 2), p.dtype)
        self._loading, self._normals_loading = self.factors[:n_loads], self.factors[n_loads : n_loads + 3]
        self._unloading = self.factors[n_loads + 3 :]
        self.u = result("result", (rhs, *self._axes(kernel.result, nt)), p.dtype)
        self.strengths = state("strengths", (rhs, kernel.strengths, n), p.dtype, zero=False)
        self.constants = state("constants", (rhs * kernel.result,), p.dtype)
        pack, first = self._load()
        directions, direction_steps = self._directed()
        self.rows_of_sources, spreading, packs = self._packed(directions)
        with_images = options is not None and options.fft_type == "C2C"
        library = options.transform() if options is not None else None
        skew = p.skew if brick is None or not any(brick.cut) else None
        self.near = self._near(skew)
        own_field = None
        if numbers[2]:
            base = (
                constant("order of G2P", np.arange(nt, dtype=np.int32))
                if v.g2p == "BASE"
                else self.points.targets.order
            )
            own_field = base, self.strengths
        far_points = far.FarPoints(self.points.spreading, self.points.targets, spreading, self.points.gather, own_field)
        self.far = self._far(far_points, library, with_images, share)
        steps = self._ordered([*pack, *direction_steps, *packs])
        transforms = self.far.transforms
        self.steps = Steps(steps, first, workers=lambda space: (transforms.size, transforms.each))

    # Fields -----------------------------------------------------------------------------------------------------------
    def _near(self, skew: tuple[float, float, float] | None) -> near.NearField:
        """Return the near field."""
        targets, sources = self.points.targets, self.points.sources
        is_half = self.v.once and targets is sources and self.rhs == 1
        if is_half and half_lists.fit(self.p, self.v, sources.grid):
            return half_lists.field(self.p, sources, self.strengths[0], self.v)
        return near.field(self.p, targets, sources, self.rows_of_sources, self.v, self.rhs, skew)

    def _far(self, points: far.FarPoints, library: str | None, with_images: bool, share: Share | None) -> far.FarField:
        """Return the far field."""
        return far.field(self.p, points, self.v, self.space, library, with_images, self.rhs, share)

    def _ordered(self, packing: list[Step]) -> list[Step | Call | Blocks]:
        """Return all steps, `packing` sources first."""
        head, tail = (self.near.steps, []) if self._others is None else self._others.beside(*self.near.steps)
        return [*packing, *head, *self.far.steps, *tail, *self._mean(), *self._unpack()]

    def _axes(self, components: int, n: int) -> tuple[int, int]:
        return (n, components) if self.rows else (components, n)

    def _turned(self, a: Handle) -> Handle:
        """Return an array with its components first."""
        return a.T if self.rows else a

    # Sources ----------------------------------------------------------------------------------------------------------
    def _load(self) -> tuple[list[Step], list[Step]]:
        """Return the steps that convert strengths, in the caller's order, to the stages' units and axes.

        The second list has the steps of the first run, which fill in the parameters of the kernel behind the strengths.
        """
        kernel, n_values = self.p.kernel, self.p.kernel.given
        steps, first = [], []
        for r in range(self.rhs):
            strengths, factor = self.strengths[r], self._loading[r * kernel.dens : (r + 1) * kernel.dens]
            steps += self._taken(self._turned(self.density[r]), factor, strengths[: kernel.dens])
            if self.normals is not None:
                steps += self._taken(
                    self._turned(self.normals), self._normals_loading, strengths[kernel.dens : n_values]
                )
            for i, value in enumerate(kernel.parameters, n_values):
                first += glue.fill(PACK, strengths[i], value)
        return steps, first

    def _taken(self, a: Handle, factor: Handle, out: Handle) -> list[Step]:
        args = {"a": a, "factor": factor, "out": out}
        if len(out) == 1 or self.place.frame is None:
            return [self._step(PACK, "load", out.shape[1], args | {"rows": len(out)})]
        matrix = constant("frame", np.array(self.place.frame, self.p.dtype))
        count = len(out) // 3
        load = self._step(PACK, "load_vectors", out.shape[1], args | {"matrix": matrix, "vectors": count})
        columns = left_out.threes(0, len(out))[count:]  # of a matrix, whose rows are turned
        return [load, *self._turns(PACK, out, columns, matrix)]

    def _directed(self) -> tuple[Handle, list[Step]]:
        """Return strengths, with q and n as grid directions for a double layer in a triclinic cell, and the steps."""
        p, kernel = self.p, self.p.kernel
        if p.skew is None or not kernel.slopes:
            return self.strengths, []
        numbers = kernel.strengths
        directions = state("directed", (self.rhs, numbers + 6, self.strengths.shape[2]), p.dtype, zero=False)
        t01, t02, t12 = (float(np.dtype(p.dtype).type(t)) for t in p.skew)
        l0, l1 = p.box[:2]
        tilts = {"t01": t01 / l0, "t02": t02 / l0, "t12": t12 / l1}
        steps = []
        for r in range(self.rhs):
            steps += glue.copy(PACK, self.strengths[r], directions[r, :numbers])
            for start in (0, 3):  # q, then n
                v = self.strengths[r, kernel.given - 6 + start :][:3]
                out = directions[r, numbers + start :][:3]
                steps.append(self._step(PACK, "along_sides", v.shape[1], {"v": v, "out": out, **tilts}))
        return directions, steps

    def _packed(self, directions: Handle) -> tuple[Handle, Handle, list[Step]]:
        """Return sources as rows (x, y, z, strengths) in the orders of their cells and of P2G, and the steps."""
        sources, base = self.points.sources, self.points.base
        rows, packs = self._rows(sources.points, sources.order, self.strengths)
        if base is not None:
            order = constant("order of P2G", np.arange(self._own, dtype=np.int32))
            spreading, far_packs = self._rows(base, order, directions)
            return rows, spreading, [packs, far_packs]
        if self.points.spreading is not sources:
            spreading, far_packs = self._rows(self.points.spreading.points, self.points.spreading.order, directions)
            return rows, spreading, [packs, far_packs]
        return rows, rows, [packs]

    def _rows(self, points: Handle, order: Handle, strengths: Handle) -> tuple[Handle, Step]:
        flat = strengths.reshape(len(strengths) * strengths.shape[1], strengths.shape[2])
        n = points.shape[1]
        out = state("sources as rows", (n, 3 + len(flat)), self.p.dtype, zero=False)
        unit = engine.kernel("cells", "gather_sources", real=self.p.dtype, NB=len(flat))
        return out, Step(PACK, unit, n, {"x": points, "strength": flat, "order": order, "out": out})

    # Results ----------------------------------------------------------------------------------------------------------
    def _mean(self) -> list[Call]:
        """Return the step that sets the constants of a net density, for kernels that have them."""
        p, kernel = self.p, self.p.kernel
        if not kernel.mean:
            return []
        factors = constant("factors of the mean", np.tile(green.constants(p, self.place.power), self.rhs))
        own_strengths, total = self.strengths[:, :, : self._own], self._others.total if self._others else None
        phase, function = UNPACK if total is None else "agree", partial(_mean, p, total, kernel.fields)
        return [Call(phase, function, [own_strengths, factors], [self.constants], capturable=False)]

    def _unpack(self) -> list[Step]:
        """Return the steps that add near field, far field and constants, in the caller's order, units and axes."""
        p, kernel, targets, constants = self.p, self.p.kernel, self.points.targets, self.constants
        slots = {"FAR_SORTED": False} if self.v.g2p == "BASE" else {}
        unit = engine.kernel("cells", "scatter_sum", real=p.dtype, far=p.far, **slots)
        steps: list[Step] = []
        for r in range(self.rhs):
            rows, out = slice(r * kernel.result, (r + 1) * kernel.result), self._turned(self.u[r])
            near_rows = slice(r * kernel.sums, r * kernel.sums + kernel.result)
            fields = {"a": self.near.result[near_rows], "b": self.far.result[rows], "constant": constants[rows]}
            args = fields | {
                "factor": self._unloading[rows],
                "order": targets.order,
                "out": out,
                "components": kernel.result,
            }
            steps.append(Step(UNPACK, unit, targets.n, args))
            steps += self._back(out)
        return steps

    def _back(self, out: Handle) -> list[Step]:
        """Return the steps that turn vectors, or rows and columns of matrices, to the caller's axes."""
        if self.place.frame is None:
            return []
        matrix = constant("axes", np.array(self.place.frame, self.p.dtype).T.copy())
        return self._turns(UNPACK, out, left_out.result_vectors(self.p.kernel), matrix)

    def _turns(self, phase: str, a: Handle, vectors: list[slice], matrix: Handle) -> list[Step]:
        """Return the steps that multiply vectors, rows of an array, by a matrix."""
        return [self._step(phase, "turn_vectors", a.shape[1], {"u": a[v], "matrix": matrix}) for v in vectors]

    def _step(self, phase: str, name: str, items: int, args: dict[str, object]) -> Step:
        return Step(phase, engine.kernel("glue", name, real=self.p.dtype), items, args)


def _mean(
    p: Parameters, total: Callable[[Array], Array] | None, count: int, context: Context, strengths: Array,
    factors: Array, constants: Array,
) -> None:  # fmt: skip
    """Set the constants that the net density of each right-hand side adds to its results.

    The first `count` components of a result have a constant.  A screened kernel in a periodic box multiplies the net
    density by a large factor, so it is summed without rounding.  `total` adds up the net densities of all bricks.
    """
    (rhs, *_), result = strengths.shape, p.kernel.result
    rows, xp = strengths[:, :count], context.xp
    if p.kernel.spectrum.screened and p.periodicity == 3:
        net = xp.asarray([math.fsum(row) for row in to_host(_halved(rows[:, 0])).tolist()])
    else:
        net = along_rows("sum", rows, dtype=np.float64)
    net = net.reshape(-1)
    net = net if total is None else total(net)
    constants[...] = 0
    constants.reshape(rhs, result)[:, :count] = factors.reshape(rhs, result)[:, :count] * net.reshape(rhs, count)


def _halved(rows: Array) -> Array:
    """Return rows of a few numbers with the same sums, up to rounding of rounding errors: sums of halves, and errors.

    Source: D. Knuth, The Art of Computer Programming, volume 2, section 4.2.2, theorem B.
    """
    rows = rows.astype(np.float64)
    errors = module_of(rows).zeros_like(rows)
    rest = []
    while rows.shape[1] > ROW:
        half = rows.shape[1] // 2
        rest += [rows[:, 2 * half :], errors[:, 2 * half :]]
        a, b = rows[:, :half], rows[:, half : 2 * half]
        rows = a + b
        addend = rows - a
        errors = errors[:, :half] + errors[:, half : 2 * half] + ((a - (rows - addend)) + (b - addend))
    return module_of(rows).concatenate([rows, errors, *rest], axis=1)


class Stages:
    """Steps of a sum with the arrays of its points."""

    def __init__(self, steps: SumSteps, points: Points, *, graph: bool = False) -> None:
        self.sum, self.points = steps, points
        _ = steps.far.transforms.library  # imported by one thread
        self.placed = steps.steps.place(steps.space, steps.points.arrays(points), graph=graph)

    def run(
        self, dens: Array, normals: Array | None, out: Array, times: WallTime, powers: Powers | None = None
    ) -> None:
        """Sum densities ``(rhs, components, N)`` with normals ``(3, N)``, in the caller's order, units and axes.

        Parameters
        ----------
        dens, normals : array
        out : array (rhs, components, Nt)
            C-ordered in memory, or with ``layout="nd"`` in the memory order of ``(rhs, Nt, components)``.
        times : WallTime
        powers : Powers, optional
            Powers of a sum over several bricks; by default those of these densities.
        """
        sum_, p = self.sum, self.sum.p
        powers = powers or Powers.of(sum_.law, sum_.place.power, dens, normals, p.kernel.result)
        xp = module_of(dens)

        def turned(a: Array) -> Array:
            return a.swapaxes(-1, -2) if sum_.rows else a

        density = turned(dens) if launchable(dens[0]) else xp.ascontiguousarray(turned(dens))
        exponents = *powers.dens.ravel().tolist(), *[powers.normals] * 3, *powers.result.ravel().tolist()
        factors = xp.asarray(scaling.pairs_of_factors(exponents, p.dtype))
        bound = {sum_.density: density, sum_.factors: factors, sum_.u: turned(out)}
        bound[sum_.near.tiny] = self.points.tiny
        if sum_.normals is not None:
            bound[sum_.normals] = turned(normals) if launchable(normals) else xp.ascontiguousarray(turned(normals))
        self.placed.run(bound, times)

    @property
    def arrays(self) -> list[Array]:
        """Return every array of the steps, including those of the points."""
        return self.placed.arrays
