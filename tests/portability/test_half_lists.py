"""Half lists on every available space, in both precisions, against NumPy."""

import numpy as np
import pytest

from parki import engine
from parki.engine import TeamPolicy
from tests.catalogue import PAIRS
from tests.portability import formulas, launching
from tests.portability.problems import BOX, CELLS, DTYPES, TERMS, cloud
from tests.quick import half

pytestmark = pytest.mark.portability

N, RC = 200, 0.2
#: Less scratch than a block's sources, and groups and batches that are not whole.
SLOTS = {"SCREENED": True, "TERMS": TERMS, "LANES": 4, "GROUP": 3, "SIZE": 7, "RUNS": 7, "CAP": 21, "PIECE": 5}
#: Numbers of a source in which fields are linear, where normals follow.
LINEAR = {"stresslet": 3, "stokes_comb": 6}


def test_every_workunit_is_here(where):
    assert {name for name, file in where.items() if file == "p2p_half"} == {"p2p_half"}


@pytest.mark.parametrize(("pair", "real"), half(PAIRS, DTYPES))
def test_points_at_themselves(pair, real, space, rng):
    ns, nu, nf = PAIRS[pair]
    slots = SLOTS | {"LINEAR": LINEAR.get(pair, ns), "GIVEN": ns, "BY_ROOT": real == DTYPES[-1]}
    x, begin = cloud(rng, N, real)
    strength, coef = rng.standard_normal((ns, N)).astype(real), rng.standard_normal(nf * TERMS).astype(real)
    exact = formulas.pair_sum(pair, x, np.concatenate([x, strength]).T, coef.reshape(-1, TERMS), RC, BOX)
    n0, n1, n2 = CELLS
    given = {"xs": x, "strength": strength, "u": np.zeros((nu, N), real), "cell_begin": begin, "coef": coef}
    given |= {"block": np.array([[0, 1, 0, n1, 0, n2], [1, n0, 0, n1, 0, n2]], np.int32), "tiny": 0.0}
    widths = [side / n for n, side in zip(CELLS, BOX, strict=True)]
    given |= {"cells": np.array([*CELLS, 2], np.int32), "bound": np.empty((2, 6), real)}
    given["lattice"] = np.array([*BOX, 0.0, 0.0, 0.0, *widths, RC], real)
    unit = engine.kernel("p2p_half", "p2p_half", real=real, pair=f"pair/{pair}", **slots)
    for first in (0, 1):  # the blocks are neighbours
        launching.parallel_for(TeamPolicy(space, 1, 4, 8), unit, **given | {"first": first})
    formulas.close(given["u"], exact, 30)
