"""An Ewald sum for fixed points: the stages in their order."""

import logging
import warnings

import numpy as np

from parki import arrays, engine
from parki.arrays import Array
from parki.engine import spaces
from parki.engine.runtime import devices
from parki.ewald import params, stages, variants, work
from parki.ewald.components import RESULT
from parki.ewald.options import EwaldOptions
from parki.ewald.report import Params, WallTime
from parki.ewald.verify import verify
from parki.perfmodels.machine import H200

log = logging.getLogger("parki.ewald")


class PrecisionWarning(UserWarning):
    """A tolerance below what the floating type can give; the best it can is computed."""


class Plan:
    """A sum over fixed targets and sources: made once, applied to any number of densities.

    Attributes
    ----------
    parameters : parki.ewald.params.Parameters
    variants : parki.ewald.variants.Variants
    space : parki.engine.spaces.Space
    walltime : WallTime
        Times of the last call; its making is in `time_cell_list`.  A GPU works on while the next launches are made:
        there the phases are timed, by waiting for each, only if `return_walltime` or `verbose` asks for it.
    """

    def __init__(self, kernel: str, trg: Array, src: Array, options: EwaldOptions) -> None:
        if kernel not in RESULT:
            raise ValueError(f"kernel is {kernel!r}; expected one of {', '.join(map(repr, RESULT))}.")
        self.kernel, self.options = kernel, options
        self.space = arrays.space_of(options.execution_space, options.threads, trg=trg, src=src)
        self.on_gpu = arrays.on_gpu(trg=trg, src=src) is not None
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
            options.rc, options.cell_size, H200 if self.space.kind == "device" else None,
            params.regularity(_sample(src), options.box, self.n_sources),
        )  # fmt: skip
        self.variants = variants.choose(self.space, self.dtype.name, options)
        self.xp = spaces.array_module(self.space)
        timed = self.space.kind == "device" and (options.return_walltime or options.verbose)
        self.walltime = WallTime(self.n_sources, self.n_targets, int(np.prod(p.grid)), wait=_wait if timed else None)
        log.log(logging.INFO if options.verbose else logging.DEBUG, "%s: %s", kernel, Params(p))
        if self.n_targets and self.n_sources:
            self._prepare(trg, src, same)

    def _prepare(self, trg: Array, src: Array, same: bool) -> None:
        p, v, space = self.parameters, self.variants, self.space
        units = stages.workunits(p, space, v)
        engine.compile_all(units, space, stages.threads(p, space, v))
        if space.kind != "sim":  # which checks every access itself
            verify(p, space, v, units)
        with self.walltime.phase("cell_list"):
            src = _wrapped(self.xp.asarray(src), p.box)
            trg = src if same else _wrapped(self.xp.asarray(trg), p.box)
            targets, sources = stages.sort(p, trg, src, space, v)
        self.stages = stages.Stages(p, v, targets, sources, trg, src)
        self.stages.far.use(self.options)
        if self.options.return_walltime:
            self.walltime.take(work.count(p, v, targets, sources, self.options.fft_type != "C2C"))

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
            ``(Nt,)`` or ``(3, Nt)``, in the points' dtype: a CuPy array for points on a GPU, else a NumPy array.
        """
        strengths = self._strengths(dens, normals)
        out = self.xp.zeros((RESULT[self.kernel], self.n_targets), self.dtype)
        self.walltime.reset(keep_cell_list=True)
        with self.walltime.phase("ewald"):
            if self.n_targets and self.n_sources:
                self._sum(strengths, out)
        result = arrays.in_layout(out[0] if len(out) == 1 else out, self.options.layout)
        return result if self.on_gpu else arrays.to_host(result)

    def _sum(self, strengths: list[Array], out: Array) -> None:
        times, at = self.walltime, self.stages
        with times.phase("p2p", "sort"):
            at.pack(strengths)
        with times.phase("p2p", "kernel"):
            at.near.run()
        with times.phase("p2g", "kernel"):
            at.far.spread.run()
        with times.phase("fft"):
            spectrum = at.far.forward()
        with times.phase("cnv"):
            at.far.multiply(spectrum)
        with times.phase("ifft"):
            at.far.backward(spectrum)
        with times.phase("g2p", "kernel"):
            at.far.gather.run()
        with times.phase("g2p", "sort"):
            at.unsort(out)

    def _strengths(self, dens: Array, normals: Array | None) -> list[Array]:
        layout, n = self.options.layout, self.n_sources
        there = {"dens": dens} if normals is None else {"dens": dens, "normals": normals}
        if (arrays.on_gpu(**there) is not None) is not self.on_gpu:
            kind = ("on the GPU", "cupy.asarray") if self.on_gpu else ("on the host", "cupy.asnumpy")
            raise ValueError(f"dens is not {kind[0]}, where the points of this plan are. Pass {kind[1]}(dens).")
        components = {"laplace": 1, "stokes_sl": 3, "stokes_comb": 6}[self.kernel]
        checked = {"dens": arrays.density("dens", dens, components, n, layout)}
        if self.kernel == "stokes_comb":
            if normals is None:
                raise ValueError(f"normals is missing; stokes_comb expects (3, {n}), one normal for each source.")
            checked["normals"] = arrays.density("normals", normals, 3, n, layout)
        elif normals is not None:
            raise ValueError(f"normals was given, but {self.kernel} takes none.")
        arrays.same_dtype(points=np.empty(0, self.dtype), **checked)
        return [self.xp.asarray(a if a.ndim == 2 else a[None]) for a in checked.values()]


def _wrapped(x: Array, box: tuple[float, float, float]) -> Array:
    """The points with those on an upper face moved to the lower one, of which they are images."""
    xp = arrays.module_of(x)
    sides = xp.asarray(box, x.dtype)[:, None]
    on_face = x >= sides
    # Whether there are any costs a GPU more than not to ask.
    return xp.where(on_face, x - sides, x) if xp is not np or on_face.any() else x


def _sample(x: Array, most: int = 1024) -> np.ndarray:
    """Some of the points, always the same ones, on the host: that is all of them that leaves a GPU."""
    n = x.shape[1]
    if n > most:
        x = x[:, arrays.module_of(x).asarray(np.random.default_rng(0).integers(n, size=most))]
    return arrays.to_host(x)


def _wait() -> None:
    """Wait for what has been launched on a GPU."""
    devices.cupy().cuda.get_current_stream().synchronize()
