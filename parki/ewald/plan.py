"""An Ewald sum for fixed points: the stages in their order."""

import logging
import warnings
from collections.abc import Iterator

import numpy as np

from parki import arrays, engine
from parki.arrays import Array
from parki.engine import spaces
from parki.engine.runtime import devices
from parki.ewald import geometry, params, stages, variants, work
from parki.ewald.geometry import Geometry
from parki.ewald.kernels import Kernel
from parki.ewald.options import EwaldOptions
from parki.ewald.report import Params, WallTime
from parki.ewald.stages import Stages
from parki.ewald.verify import verify
from parki.perfmodels.machine import H200

log = logging.getLogger("parki.ewald")

TOGETHER = 8  # right-hand sides that go through the stages at once, at most


class PrecisionWarning(UserWarning):
    """A tolerance below what the floating type can give; the best it can is computed."""


class Plan:
    """A sum over fixed targets and sources: made once, applied to any number of densities.

    Attributes
    ----------
    kernel : parki.ewald.kernels.Kernel
    parameters : parki.ewald.params.Parameters
    variants : parki.ewald.variants.Variants
    space : parki.engine.spaces.Space
    walltime : WallTime
        Times of the last call; its making is in `time_cell_list`.  A GPU works on while the next launches are made:
        there the phases are timed, by waiting for each, only if `return_walltime` or `verbose` asks for it.
    """

    def __init__(self, kernel: Kernel, trg: Array, src: Array, options: EwaldOptions) -> None:
        self.kernel, self.options = kernel, options
        if (count := sum(options.periodic)) not in kernel.periodicities:
            listed = " or ".join(str(n) for n in kernel.periodicities)
            raise ValueError(f"periodicity is {count} and the kernel is {kernel}; expected {listed} for this kernel.")
        self.space = arrays.space_of(options.execution_space, options.threads, trg=trg, src=src)
        self.on_gpu = arrays.on_gpu(trg=trg, src=src) is not None
        same, free = trg is src, [axis for axis, on in enumerate(options.periodic) if not on]
        trg = arrays.points("trg", trg, options.box, options.layout, free)
        src = trg if same else arrays.points("src", src, options.box, options.layout, free)
        self.dtype = arrays.same_dtype(trg=trg, src=src)
        floor = params.REACH[self.dtype.name]
        if options.tolerance < floor:
            text = f"tolerance={options.tolerance:g} is below what {self.dtype} reaches here, about {floor:g}"
            warnings.warn(f"{text}; use float64 or a larger tolerance", PrecisionWarning, stacklevel=4)
        self.n_targets, self.n_sources = trg.shape[1], src.shape[1]
        self.xp = spaces.array_module(self.space)
        self.geometry = _geometry(options, trg, src)
        src = self.geometry.points(self.xp.asarray(src))
        trg = src if same else self.geometry.points(self.xp.asarray(trg))
        self.parameters = p = params.choose(
            kernel, self.geometry.box, self.n_targets, self.n_sources, options.tolerance, self.dtype.name,
            options.split, options.rc, options.cell_size, H200 if self.space.kind == "device" else None,
            params.regularity(_sample(src), self.geometry.box, self.n_sources), self.geometry.periodicity,
            self.geometry.skew,
        )  # fmt: skip
        self.variants = variants.choose(self.space, self.dtype.name, options)
        timed = self.space.kind == "device" and (options.return_walltime or options.verbose)
        self.walltime = WallTime(self.n_sources, self.n_targets, int(np.prod(p.grid)), wait=_wait if timed else None)
        log.log(logging.INFO if options.verbose else logging.DEBUG, "%s: %s", kernel, Params(p))
        self._stages: dict[int, Stages] = {}
        if self.n_targets and self.n_sources:
            self._compile(1)
            with self.walltime.phase("cell_list"):
                self.points = stages.sort(p, trg, src, self.space, self.variants)
            self._prepared(1)
            if options.return_walltime:
                whole = options.fft_type == "C2C"
                self.walltime.take(work.count(p, self.variants, self.points.targets, self.points.sources, not whole))

    def _compile(self, rhs: int) -> None:
        p, v, space = self.parameters, self.variants, self.space
        units = stages.workunits(p, space, v, rhs, self.options.fft_type == "C2C")
        engine.compile_all(units, space, stages.threads(p, space, v, rhs))
        if space.kind != "sim":  # which checks every access itself
            verify(p, space, v, units, rhs)

    def _prepared(self, rhs: int) -> Stages:
        """The stages for so many right-hand sides at once, made when first asked for."""
        if rhs not in self._stages:
            if rhs > 1:
                self._compile(rhs)
            self._stages[rhs] = Stages(self.parameters, self.variants, self.points, self.options, rhs)
        return self._stages[rhs]

    def __call__(self, dens: Array, normals: Array | None = None) -> Array:
        """The sum at all targets.

        Parameters
        ----------
        dens : array
            ``(N,)`` charges, ``(3, N)`` forces, or ``(6, N)`` forces over double-layer densities; with an axis of
            right-hand sides in front, all of them in one pass.
        normals : array (3, N), optional
            Normals of the double layer; required for kernels with one, and only there.

        Returns
        -------
        array
            ``(Nt,)`` or ``(components, Nt)``, in the points' dtype, with the axis of right-hand sides if there is one:
            a CuPy array for points on a GPU, else a NumPy array.
        """
        strengths, normals, many = self._strengths(dens, normals)
        result = self.kernel.result
        out = self.xp.zeros((len(strengths) * result, self.n_targets), self.dtype)
        self.walltime.reset(keep_cell_list=True)
        with self.walltime.phase("ewald"):
            if self.n_targets and self.n_sources:
                for first, count in _groups(len(strengths)):
                    at = slice(first * result, (first + count) * result)
                    self._sum(self._prepared(count), strengths[first : first + count], normals, out[at])
        u = self.geometry.back(out.reshape(len(strengths), result, self.n_targets), result)
        u = u[:, 0] if result == 1 else u
        u = arrays.in_layout(u if many else u[0], self.options.layout, result > 1)
        return u if self.on_gpu else arrays.to_host(u)

    def _sum(self, at: Stages, dens: Array, normals: Array | None, out: Array) -> None:
        times = self.walltime
        with times.phase("p2p", "sort"):
            at.pack(dens, normals)
        with times.phase("p2p", "kernel"):
            at.near.run()
        with times.phase("p2g", "kernel"):
            at.far.scatter()
        with times.phase("fft"):
            at.far.forward()
        for block in at.far.parts:
            with times.phase("fft"):
                block.forward()
            with times.phase("cnv"):
                block.multiply()
            with times.phase("ifft"):
                block.backward()
        with times.phase("ifft"):
            at.far.backward()
        with times.phase("g2p", "kernel"):
            at.far.gather.run()
        with times.phase("g2p", "sort"):
            at.unsort(out)

    def _strengths(self, dens: Array, normals: Array | None) -> tuple[Array, Array | None, bool]:
        """Densities ``(rhs, components, N)`` and normals in the stages' axes, and whether there was an axis of rhs."""
        layout, n = self.options.layout, self.n_sources
        there = {"dens": dens} if normals is None else {"dens": dens, "normals": normals}
        if (arrays.on_gpu(**there) is not None) is not self.on_gpu:
            kind = ("on the GPU", "cupy.asarray") if self.on_gpu else ("on the host", "cupy.asnumpy")
            raise ValueError(f"dens is not {kind[0]}, where the points of this plan are. Pass {kind[1]}(dens).")
        dens = arrays.density("dens", dens, self.kernel.dens, n, layout, many=True)
        checked = {"dens": dens}
        if self.kernel.normals:
            if normals is None:
                raise ValueError(f"normals is missing; {self.kernel} expects (3, {n}), one normal for each source.")
            checked["normals"] = arrays.density("normals", normals, 3, n, layout)
        elif normals is not None:
            raise ValueError(f"normals was given, but {self.kernel} takes none.")
        arrays.same_dtype(points=np.empty(0, self.dtype), **checked)
        many = dens.ndim == (2 if self.kernel.dens == 1 else 3)
        found = [self.xp.asarray(dens).reshape(-1, self.kernel.dens, n), checked.get("normals")]
        if self.kernel.dens > 1:
            found[0] = self.geometry.vectors(found[0])
        if found[1] is not None:
            found[1] = self.geometry.vectors(self.xp.asarray(found[1]))
        return *found, many


def _groups(count: int) -> Iterator[tuple[int, int]]:
    """Runs of right-hand sides, each as long as a power of two."""
    first = 0
    while first < count:
        size = TOGETHER
        while size > count - first:
            size //= 2
        yield first, size
        first += size


def _geometry(options: EwaldOptions, trg: Array, src: Array) -> Geometry:
    if options.box is None:
        return geometry.around(trg, src)
    if isinstance(options.box, np.ndarray):
        return geometry.of_cell(options.box)
    return geometry.of_box(options.box, options.periodic)


def _sample(x: Array, most: int = 1024) -> np.ndarray:
    """Some of the points, always the same ones, on the host: that is all of them that leaves a GPU."""
    n = x.shape[1]
    if n > most:
        x = x[:, arrays.module_of(x).asarray(np.random.default_rng(0).integers(n, size=most))]
    return arrays.to_host(x)


def _wait() -> None:
    """Wait for what has been launched on a GPU."""
    devices.cupy().cuda.get_current_stream().synchronize()
