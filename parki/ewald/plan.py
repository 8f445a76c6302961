"""An Ewald sum for fixed points: the stages in their order."""

import logging
import warnings

import numpy as np

from parki import arrays, cells, engine
from parki.arrays import Array
from parki.cells import CellGrid, CellList
from parki.engine import RangePolicy
from parki.ewald import multipliers, params
from parki.ewald.options import EwaldOptions
from parki.ewald.report import Params, WallTime
from parki.ewald.stages import RESULT, STRENGTHS, FarField, NearField, workunits
from parki.ewald.verify import verify

log = logging.getLogger("parki.ewald")


class PrecisionWarning(UserWarning):
    """A tolerance below what the floating type can give; the best it can is computed."""


class Plan:
    """A sum over fixed targets and sources: made once, applied to any number of densities.

    Attributes
    ----------
    parameters : parki.ewald.params.Parameters
    walltime : WallTime
        Times of the last call; its making is in `time_cell_list`.
    """

    def __init__(self, kernel: str, trg: Array, src: Array, options: EwaldOptions) -> None:
        if kernel not in RESULT:
            raise ValueError(f"kernel is {kernel!r}; expected one of {', '.join(map(repr, RESULT))}.")
        self.kernel, self.options = kernel, options
        self.space = options.execution_space
        same = trg is src
        trg = arrays.points("trg", trg, options.box, options.layout)
        src = trg if same else arrays.points("src", src, options.box, options.layout)
        self.dtype = arrays.same_dtype(trg=trg, src=src)
        floor = params.REACH[self.dtype.name]
        if options.tolerance < floor:
            text = f"tolerance={options.tolerance:g} is below what {self.dtype} reaches here, about {floor:g}"
            warnings.warn(f"{text}; use float64 or a larger tolerance", PrecisionWarning, stacklevel=3)
        self.n_targets, self.n_sources = trg.shape[1], src.shape[1]
        self.parameters = p = params.choose(
            kernel, options.box, self.n_targets, self.n_sources, options.tolerance, self.dtype.name, options.split,
            options.rc, options.cell_size,
        )  # fmt: skip
        self.walltime = WallTime(self.n_sources, self.n_targets, int(np.prod(p.grid)))
        log.log(logging.INFO if options.verbose else logging.DEBUG, "%s: %s", kernel, Params(p))
        if self.n_targets and self.n_sources:
            self._prepare(trg, src, same)

    def _prepare(self, trg: Array, src: Array, same: bool) -> None:
        p, space = self.parameters, self.space
        pack = engine.kernel("cells", "gather_sources", real=p.dtype, NB=STRENGTHS[self.kernel])
        add = engine.kernel("cells", "scatter_sum", real=p.dtype)
        engine.compile_all([*workunits(p), pack, add, *cells.workunits(self.dtype)])
        verify(p, space)
        with self.walltime.phase("cell_list"):
            grid = CellGrid.for_points(p.box, self.n_sources, p.rc)
            sources = CellList(_wrapped(src, p.box), grid, space)
            targets = sources if same else CellList(_wrapped(trg, p.box), grid, space)
        self.strengths = np.empty((STRENGTHS[self.kernel], self.n_sources), p.dtype)
        packed = np.empty((self.n_sources, 3 + STRENGTHS[self.kernel]), p.dtype)
        self.pack = engine.prepare(
            RangePolicy(space, self.n_sources), pack, x=sources.points, strength=self.strengths,
            order=sources.order, out=packed,
        )  # fmt: skip
        self.near = NearField(p, targets, grid, sources.begin, packed, space)
        self.far = FarField(p, targets, grid, sources.begin, packed, space)
        self.order, self.add, self.background = targets.order, add, multipliers.background(p)

    def __call__(self, dens: Array, normals: Array | None = None) -> Array:
        """The sum at all targets.

        Parameters
        ----------
        dens : array
            ``(N,)`` charges, ``(3, N)`` forces, or ``(6, N)`` forces over double-layer densities.
        normals : array (3, N), optional
            Normals of the double layer; required for ``stokes_comb``, and only there.

        Returns
        -------
        array
            ``(Nt,)`` or ``(3, Nt)``, in the points' dtype.
        """
        strengths = self._strengths(dens, normals)
        out = np.zeros((RESULT[self.kernel], self.n_targets), self.dtype)
        self.walltime.reset(keep_cell_list=True)
        with self.walltime.phase("ewald"):
            if self.n_targets and self.n_sources:
                self._sum(strengths, out)
        result = out[0] if len(out) == 1 else out
        return arrays.in_layout(result, self.options.layout)

    def _sum(self, strengths: list[Array], out: Array) -> None:
        times = self.walltime
        with times.phase("p2p", "sort"):
            np.concatenate(strengths, out=self.strengths)
            self.pack.run()
        with times.phase("p2p", "kernel"):
            self.near.run()
        with times.phase("p2g", "kernel"):
            self.far.spread.run()
        with times.phase("fft"):
            spectrum = self.far.forward()
        with times.phase("cnv"):
            self.far.multiply(spectrum)
        with times.phase("ifft"):
            self.far.backward(spectrum)
        with times.phase("g2p", "kernel"):
            self.far.gather.run()
        with times.phase("g2p", "sort"):
            self._unsort(out)

    def _unsort(self, out: Array) -> None:
        """Near plus far field in the caller's order, and the constant that makes their mean zero."""
        net = self.strengths[: len(out)].sum(axis=1, dtype=np.float64)
        constant = (self.background * net).astype(self.dtype)
        policy = RangePolicy(self.space, self.n_targets)
        fields = {"a": self.near.result, "b": self.far.gather.result, "constant": constant}
        engine.parallel_for(policy, self.add, order=self.order, out=out, components=len(out), **fields)

    def _strengths(self, dens: Array, normals: Array | None) -> list[Array]:
        layout, n = self.options.layout, self.n_sources
        components = {"laplace": 1, "stokes_sl": 3, "stokes_comb": 6}[self.kernel]
        checked = {"dens": arrays.density("dens", dens, components, n, layout)}
        if self.kernel == "stokes_comb":
            if normals is None:
                raise ValueError(f"normals is missing; stokes_comb expects (3, {n}), one normal for each source.")
            checked["normals"] = arrays.density("normals", normals, 3, n, layout)
        elif normals is not None:
            raise ValueError(f"normals was given, but {self.kernel} takes none.")
        arrays.same_dtype(points=np.empty(0, self.dtype), **checked)
        return [np.atleast_2d(a) for a in checked.values()]


def _wrapped(x: Array, box: tuple[float, float, float]) -> Array:
    """The points with those on an upper face moved to the lower one, of which they are images."""
    sides = np.asarray(box, x.dtype)[:, None]
    on_face = x >= sides
    return np.where(on_face, x - sides, x) if on_face.any() else x
