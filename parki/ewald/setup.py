"""The setup of a plan: a checked sum with its points in the coordinates of the stages."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from parki import arrays
from parki.arrays import PRECISIONS, Array
from parki.engine import spaces
from parki.engine.spaces import Space
from parki.ewald import checks
from parki.ewald.choice import variants
from parki.ewald.choice.arrangement import Arrangement
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.ewald.choice.variants import Variants
from parki.ewald.geometry import Geometry
from parki.ewald.kernels import Kernel
from parki.ewald.options import EwaldOptions


@dataclass(frozen=True, eq=False)
class Setup:
    """A sum that a plan is made from.

    Attributes
    ----------
    kernel, options, dtype, variants, space
        The sum in the caller's unit of length, the points' type, the variants of its kernels, and its place.
    on_gpu : bool
        Whether the caller's arrays are on a GPU.
    geometry : Geometry
    trg, src : array (3, Nt), (3, Ns)
        Points in the stages' coordinates, one array if the targets are the sources.
    reach : dict
        How far targets and sources were from the box, see `Geometry.points`.
    targets : array (3, Nt), optional
        A copy of the caller's targets where a box around the points may have to grow with them.
    parameters : Parameters, optional
        To take as they are; without them they are chosen.
    served : bool
        Whether the sum serves another plan, which has warned of net densities.
    """

    kernel: Kernel
    options: EwaldOptions
    dtype: np.dtype
    variants: Variants
    space: Space
    on_gpu: bool
    geometry: Geometry
    trg: Array
    src: Array
    reach: dict[str, float]
    targets: Array | None = None
    parameters: Parameters | None = None
    served: bool = False

    @classmethod
    def of(cls, kernel: Kernel, trg: Array, src: Array, options: EwaldOptions) -> "Setup":
        """Check a caller's points and options, and take the points to the stages' coordinates.

        Raises
        ------
        ValueError, TypeError
            As `parki.ewald.plan`.
        """
        if (count := sum(options.periodic)) not in kernel.periodicities:
            listed = " or ".join(str(n) for n in kernel.periodicities)
            raise ValueError(f"periodicity is {count} and the kernel is {kernel}; expected {listed} for this kernel.")
        space = arrays.space_of(options.execution_space, options.threads, trg=trg, src=src)
        on_gpu = arrays.on_gpu(trg=trg, src=src) is not None
        same = trg is src
        trg = checks.points("trg", trg, options)
        src = trg if same else checks.points("src", src, options)
        dtype = arrays.same_dtype(trg=trg, src=src)
        checks.precision(dtype.name, options)
        geometry = checks.place(options, kernel, trg, src)
        chosen = variants.choose(space, dtype.name, options)
        targets = trg.copy() if options.box is None and not same else None
        inside, reach = inside_box(geometry, trg, src, spaces.array_module(space))
        return cls(kernel, options, dtype, chosen, space, on_gpu, geometry, *inside, reach, targets)


def inside_box(geometry: Geometry, trg: Array, src: Array, xp: Any) -> tuple[tuple[Array, Array], dict[str, float]]:
    """Return targets and sources in the stages' coordinates, one array if they are the same, and their reaches."""
    sources, far_sources = geometry.points("src", xp.asarray(src))
    targets, far_targets = (sources, 0.0) if trg is src else geometry.points("trg", xp.asarray(trg))
    return (targets, sources), {"trg": far_targets, "src": far_sources}


def question(
    kernel: Kernel, options: EwaldOptions, space: Space, dtype: np.dtype, geometry: Geometry, trg: Array, src: Array,
    measured: bool = True,
) -> Question:  # fmt: skip
    """Return the question of a sum in the stages' units; without an arrangement if its points are not `measured`."""
    rc = None if options.rc is None else geometry.inner(options.rc)
    return Question(
        kernel.scaled(geometry.power), geometry.box, trg.shape[1], src.shape[1], options.tolerance, dtype.name,
        options.split, rc, options.cell_size, PRECISIONS.get(options.far_precision), geometry.periodicity,
        geometry.skew, int(options.rhs), Arrangement.of(trg, src, geometry.box) if measured else None, space,
    )  # fmt: skip
