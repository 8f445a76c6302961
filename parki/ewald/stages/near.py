"""Near field of an Ewald sum (P2P) as steps."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from parki import engine
from parki.arrays import Array
from parki.cells import SortedCellHandles
from parki.engine.steps import Handle, Number, Step, constant, state
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.variants import MOST_LANES, Variants
from parki.ewald.stages import radial
from parki.ewald.stages.points import coincident
from parki.hints import short

#: Kernel file and workunit of each variant.
LOOPS = {
    "LIST": ("p2p_list", "p2p_list"), "GM-1D": ("p2p", "p2p_gm_1d"), "GM-2D": ("p2p", "p2p_gm_2d"),
    "LIST-2D": ("p2p_list_2d", "p2p_list_2d"), "SM-1D": ("p2p", "p2p_sm_1d"),
    "SM-2D": ("published/p2p_sm_2d", "p2p_sm_2d"), "HALF": ("p2p_half", "p2p_half"),
}  # fmt: skip
#: Lengths, at least and at most, whose squares single precision holds with room for sums and products.
ORDINARY = (1e-18, 1e18)
#: Sources of a list that are computed at once, by number of far parts: as many as vector registers hold.
JAM = {1: "jam_3", 2: "jam_3"}
#: Bytes of scratch for the targets of a team of LIST-2D, at most, if it has several: their lists, sums of their lanes.
TARGETS_BYTES = 28 << 10
#: Rows of lanes of a team of LIST-2D, at most: targets of a batch take turns, and share the team's list of sources.
ROWS = 8


def near_kernel(p: Parameters, v: Variants, rhs: int = 1, skew: bool = False) -> engine.Workunit:
    """Return the near-field workunit for some parameters and `rhs` right-hand sides; `skew` for a triclinic box."""
    pair = {"pair": p.kernel.pair, **dict(p.kernel.slots), "SCREENED": True}
    pair |= {"TERMS": _terms(p), "RHS": rhs, "SKEW": skew}
    hints, slots = (*p.kernel.hints, *short(p.root_error, p.kernel.ours)), {}
    if _is_ordinary(p):
        hints = (*hints, "ordinary_rsqrt")
    if v.p2p == "LIST":
        hints, slots = (*hints, "open_lists", JAM.get(len(p.kernel.far), "jam_2")), {"LINEAR": p.kernel.dens}
    elif v.p2p == "HALF":
        hints, slots = (*hints, "open_lists"), {"LINEAR": p.kernel.dens, "GIVEN": p.kernel.given, "LANES": v.lanes}
        slots["BY_ROOT"] = p.kernel.fades
    elif v.p2p == "LIST-2D":
        hints, parts = (*hints, f"lanes_{v.lanes}"), _parts(p, v, rhs)
        slots = {"TARGETS": -(-v.targets // parts), "PARTS": parts, "LANES": v.lanes}
    elif v.p2p.endswith("2D"):
        slots = {"TARGETS": v.targets, "LANES": v.lanes}
    return engine.kernel(*LOOPS[v.p2p], real=p.dtype, hints=hints, **pair, **slots)


def _is_ordinary(p: Parameters) -> bool:
    """Return whether squared distances of distinct points, and of lengths of the kernel, are within `ORDINARY`.

    Distances are below five sides of the box: points of a batch are in one column of cells.
    """
    low, high = ORDINARY
    lengths = (math.sqrt(coincident(p, 0.0)), p.rc, 5 * max(p.box), *p.kernel.parameters)
    return p.kernel.ours and all(low <= length <= high for length in lengths)


def _parts(p: Parameters, v: Variants, rhs: int) -> int:
    """Return the teams that share a batch of targets: several for LIST-2D with many sums or targets."""
    if v.p2p != "LIST-2D":
        return 1
    places = sum(engine.kernel_constant("p2p_list_2d", name) for name in ("FULL", "TESTS"))
    of_target = 4 * places + v.lanes * rhs * p.kernel.sums * np.dtype(p.dtype).itemsize
    return min(v.targets, -(-v.targets * of_target // TARGETS_BYTES))


@dataclass(frozen=True)
class NearField:
    """Steps of the near field.

    Attributes
    ----------
    result : Handle (rhs C, Nt)
        Component c of C of right-hand side r at the sorted target j is result[r C + c, j]; C is `Kernel.sums`.
    tiny : Number
        Squared distance up to which points coincide: see `points.coincident`.
    steps : tuple of Step
        Empty for zeros.
    """

    result: Handle
    tiny: Number
    steps: tuple[Step, ...]


def field(
    p: Parameters, targets: SortedCellHandles, sources: SortedCellHandles, rows: Handle, v: Variants, rhs: int = 1,
    skew: tuple[float, float, float] | None = None,
) -> NearField:  # fmt: skip
    """Return the near field of sources at targets.

    Parameters
    ----------
    p : Parameters
    targets, sources : SortedCellHandles
        Sorted points; the grid of the sources has the sides by which the box repeats.
    rows : Handle (Ns, numbers)
        Sources (x, y, z, strengths of the first right-hand side, of the second, …) in the order of their list.
    v : Variants
    rhs : int
        Right-hand sides.
    skew : tuple of float, optional
        (t01, t02, t12), if the box repeats by the vectors (l0, t01, t02), (0, l1, t12), (0, 0, l2).
    """
    batch, bound = targets.runs(v.targets)
    result = state("near field", (rhs * p.kernel.sums, targets.n), p.dtype, zero=False)
    shared = arguments(p, sources, skew)
    args = {"xt": targets.points, "src": rows, "u": result, "batch": batch, "bound": bound} | shared
    if v.p2p.startswith("LIST"):
        args["xs"] = sources.points
    parts = _parts(p, v, rhs)
    rows = -(-v.targets // parts)
    if v.p2p == "LIST-2D":
        rows = min(rows, ROWS * max(1, MOST_LANES // v.lanes))
    shape = (rows, v.lanes if v.p2p.endswith("2D") else 1)
    unit = near_kernel(p, v, rhs, skew is not None)
    step = Step("p2p.kernel", unit, parts * len(batch), args, shape, lane="near")
    return NearField(result, shared["tiny"], (step,))


def arguments(
    p: Parameters, sources: SortedCellHandles, skew: tuple[float, float, float] | None = None
) -> dict[str, Any]:  # fmt: skip
    """Return the arguments that all loops share: cells, lattice, polynomials of far parts, and ``tiny``."""
    box, tilts = sources.grid.box, skew or (0.0, 0.0, 0.0)
    return {
        "cell_begin": sources.begin,
        "coef": constant("near-field tables", _far_tables(p)),
        "cells": constant("near-field cells", np.array([*sources.grid.shape, _images(p.rc, box, tilts)], np.int32)),
        "lattice": constant("near-field lattice", np.array([*box, *tilts, *sources.grid.widths, p.rc], p.dtype)),
        "tiny": Number("tiny", coincident(p, 0.0)),
    }


def _images(rc: float, box: tuple[float, float, float], tilts: tuple[float, float, float]) -> int:
    """Return a bound above the number of images within the cutoff along any axis; images of one axis shift the next."""
    t01, t02, t12 = map(abs, tilts)
    i = int(rc / box[0]) + 1
    j = int((rc + i * t01) / box[1]) + 1
    k = int((rc + i * t02 + j * t12) / box[2]) + 1
    return max(i, j, k) + 1


def _terms(p: Parameters) -> int:
    """Count the coefficients of a table: an even number, so that even and odd powers pair up."""
    return p.radial_degree + 1 + (p.radial_degree + 1) % 2


def _far_tables(p: Parameters) -> Array:
    """Return the near-field tables one after another, each with a leading zero if its number of terms is odd."""
    tables = radial.tables(p)
    padded = np.zeros((len(tables), _terms(p)), p.dtype)
    padded[:, -tables.shape[1] :] = tables
    return padded.ravel()
