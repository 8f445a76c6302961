"""Stokes sums over ranks by their published names: thin faces of `parki.ewald`, whose calls take ``comm=``, too.

The published calls are of slabs, one periodic direction and GPUs; these have no such limits.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import parki.ewald
from parki.arrays import AnyArray
from parki.ewald.options import EwaldOptions

__all__ = ["DistributedEwaldOptions", "stokes_comb", "stokes_sl"]


@dataclasses.dataclass(slots=True)
class DistributedEwaldOptions(EwaldOptions):
    """Options of `parki.ewald.EwaldOptions`; without `comm` the ranks are those of ``MPI.COMM_WORLD``."""


def stokes_sl(
    trg: AnyArray, src: AnyArray, dens: AnyArray, options: EwaldOptions | None = None, **keywords: Any
) -> tuple[Any, ...]:
    """Return the single-layer sum at this rank's targets, and the targets.

    Parameters
    ----------
    trg, src : array (3, Nt), (3, Ns)
        This rank's points.
    dens : array (3, Ns)
    options : EwaldOptions, optional
        Single options may be given or replaced by keywords.

    Returns
    -------
    tuple
        ``(potential, trg[, WallTime][, Params][, ErrorEstimate])``.
    """
    return _with_targets(parki.ewald.stokes_sl(trg, src, dens, options, **_over(options, keywords)), trg)


def stokes_comb(
    trg: AnyArray, src: AnyArray, dens: AnyArray, normals: AnyArray, options: EwaldOptions | None = None,
    **keywords: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the sum of single and double layer at this rank's targets, and the targets: see `stokes_sl`."""
    return _with_targets(parki.ewald.stokes_comb(trg, src, dens, normals, options, **_over(options, keywords)), trg)


def _over(options: EwaldOptions | None, keywords: dict[str, Any]) -> dict[str, Any]:
    """Return keywords with a communicator."""
    if keywords.get("comm") is None and (options is None or options.comm is None):
        from mpi4py import MPI

        return keywords | {"comm": MPI.COMM_WORLD}
    return keywords


def _with_targets(result: Any, trg: AnyArray) -> tuple[Any, ...]:
    potential, *reports = result if isinstance(result, tuple) else (result,)
    return potential, trg, *reports
