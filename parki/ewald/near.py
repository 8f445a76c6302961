"""The near field of an Ewald sum (P2P) as a prepared launch."""

import numpy as np

from parki import engine
from parki.arrays import Array, module_of
from parki.cells import CellList
from parki.ewald import radial
from parki.ewald.components import PAIRS, RESULT
from parki.ewald.params import Parameters
from parki.ewald.variants import Variants, team

LOOPS = {"GM-1D": "p2p_gm_1d", "GM-2D": "p2p_gm_2d", "SM-1D": "p2p_sm_1d", "SM-2D": "p2p_sm_2d"}
COINCIDENT = 1e-14  # of the longest side: double precision points closer than this are one point


def near_kernel(p: Parameters, v: Variants) -> engine.Workunit:
    """The near-field workunit of these parameters."""
    slots = {"TARGETS": v.targets, "LANES": v.lanes} if v.p2p.endswith("2D") else {}
    pair = {"pair": PAIRS[p.kernel], "SCREENED": True, "TERMS": _terms(p)}
    return engine.kernel("p2p", LOOPS[v.p2p], real=p.dtype, **pair, **slots)


class NearField:
    """result[:, j] = near field at the sorted target j.

    `src` holds the sources as rows (x, y, z, strengths) in the order of their list.
    """

    def __init__(self, p: Parameters, targets: CellList, sources: CellList, src: Array, v: Variants) -> None:
        xp = module_of(src)
        batch, bound = targets.batches(v.targets)
        self.result = xp.zeros((RESULT[p.kernel], targets.n), p.dtype)
        tiny = 0.0 if p.dtype == "float32" else (COINCIDENT * max(p.box)) ** 2
        self.launch = engine.prepare(
            team(targets.space, len(batch), v.targets, v.lanes if v.p2p.endswith("2D") else 1),
            near_kernel(p, v),
            xt=targets.points,
            src=src,
            u=self.result,
            batch=batch,
            bound=bound,
            cell_begin=sources.begin,
            coef=xp.asarray(_far_tables(p)),
            images=max(int(p.rc / side) for side in p.box) + 2,
            rc=p.rc,
            tiny=tiny,
            **{f"n{d}": n for d, n in enumerate(sources.grid.shape)},
            **{f"l{d}": side for d, side in enumerate(p.box)},
            **{f"h{d}": w for d, w in enumerate(sources.grid.widths)},
        )

    def run(self) -> None:
        """Compute the near field."""
        self.launch.run()


def _terms(p: Parameters) -> int:
    """Coefficients per table: an even number, so that even and odd powers pair up."""
    return p.radial_degree + 1 + (p.radial_degree + 1) % 2


def _far_tables(p: Parameters) -> Array:
    """The near-field tables one after another, each with a leading zero where its number of terms is odd."""
    tables = radial.tables(p)
    padded = np.zeros((len(tables), _terms(p)), p.dtype)
    padded[:, -tables.shape[1] :] = tables
    return padded.ravel()
