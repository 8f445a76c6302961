"""Pairs of leaves that meet once, on every available space, in both precisions, against NumPy."""

import numpy as np
import pytest

from parki import engine
from parki.engine import TeamPolicy
from tests.catalogue import PAIRS
from tests.portability import formulas, launching
from tests.portability.problems import DTYPES
from tests.quick import half

pytestmark = pytest.mark.portability

LEAVES = [(0, 5), (5, 14), (14, 15), (15, 33), (33, 40)]
#: Leaf, and the leaves behind it that it meets; meetings have items (0, 1) and (2, 3), one launch each.
MET = [(0, [1, 3]), (1, [2, 3, 4]), (2, [4]), (3, [4])]


def test_every_workunit_is_here(where):
    assert {name for name, file in where.items() if file == "mutual"} == {"mutual"}


@pytest.mark.parametrize(("pair", "real"), half(PAIRS, DTYPES))
def test_fields_of_both(pair, real, space, rng):
    ns, nu, nf = PAIRS[pair]
    x, charge = rng.standard_normal((3, 40)).astype(real), rng.standard_normal((ns, 40)).astype(real)
    x[:, 20] = x[:, 2]  # in one place
    src = np.ascontiguousarray(np.concatenate([x, charge]).T)
    items, ranges, exact = [], [], np.zeros((nu, 40))

    def add(to, source):
        to, source = slice(*to), slice(*source)
        far = np.zeros((nf, 1))
        exact[:, to] += formulas.pair_sum(pair, x[:, to], src[source], far, np.inf)

    for leaf, others in MET:
        items.append([*LEAVES[leaf], len(ranges), len(ranges) + len(others)])
        ranges += [LEAVES[other] for other in others]
        for other in others:
            add(LEAVES[leaf], LEAVES[other])
            add(LEAVES[other], LEAVES[leaf])
    given = {"item": np.array(items, np.int32), "span": np.array(ranges, np.int32), "xt": x, "charge": charge}
    given |= {"meeting": np.array([0, 2, 4], np.int32), "src": src, "u": np.zeros((nu, 40), real), "tiny": 0.0}
    unit = engine.kernel("mutual", "mutual", real=real, pair=f"pair/{pair}", LANES=4, GROUP=3)
    for first in (0, 1):
        launching.parallel_for(TeamPolicy(space, 1, 4, 8), unit, **given | {"first": first})
    formulas.close(given["u"], exact, 30)
