"""Rows of sources, and crowds as one source, on every available space: sums in NumPy's order, bit for bit."""

import numpy as np
import pytest

from parki import engine
from parki.engine import RangePolicy
from parki.treecode import upward
from tests.portability import launching
from tests.quick import every

pytestmark = pytest.mark.portability

DTYPES = ("float64", "float32")
SIZES = (65, 128, 129, 300, 1000, 20000)  # sources of crowds
GAP = 3  # sources between crowds


@pytest.fixture(params=DTYPES)
def real(request):
    return request.param


def test_every_workunit_is_here(where):
    assert {name for name, file in where.items() if file == "rows"} == {"source_rows", "crowd_sums", "crowd_rows"}


@pytest.mark.parametrize(("charges", "constants"), [(1, 0), (3, 2)])
def test_source_rows(charges, constants, space, real, rng):
    x, charge, constant = (rng.random(shape).astype(real) for shape in ((3, 50), (charges, 50), constants + 1))
    order, src = rng.permutation(50).astype(np.int32), np.zeros((52, 3 + charges + constants), real)
    unit = engine.kernel("rows", "source_rows", real=real, NC=charges, NP=constants)
    given = {"x": x, "charge": charge, "constant": constant, "order": order}
    launching.parallel_for(RangePolicy(space, 50), unit, **given, src=src)
    columns = [x, charge[:, order], np.tile(constant[:constants, None], 50)]
    np.testing.assert_array_equal(src[:50], np.concatenate(columns).T)
    assert not src[50:].any()


@pytest.mark.parametrize(
    ("charges", "real"), every(2, [(1, "float64"), (1, "float32"), (3, "float32"), (3, "float64")]), indirect=["real"]
)
def test_crowd_sums_and_crowd_rows(charges, space, real, rng):
    begin = np.cumsum([GAP, *(size + GAP for size in SIZES)])
    n = int(begin[-1])
    src = rng.standard_normal((n + len(SIZES), 4 + charges)).astype(real)
    expected = src.copy()
    for k, (first, size) in enumerate(zip(begin, SIZES, strict=False)):
        expected[n + k] = src[first]
        expected[n + k, 3 : 3 + charges] = src[first : first + size, 3 : 3 + charges].sum(axis=0)
    pieces, crowds = upward.cut([(int(b), int(b) + size) for b, size in zip(begin, SIZES, strict=False)], charges)
    part = np.zeros((len(pieces), charges), real)
    sums = engine.kernel("rows", "crowd_sums", real=real, NC=charges, SUMS=upward.EVEN if charges == 1 else 1)
    launching.parallel_for(RangePolicy(space, len(pieces)), sums, piece=pieces, src=src, part=part)
    rows, given = engine.kernel("rows", "crowd_rows", real=real, NC=charges, NP=1), {"crowd": crowds, "piece": pieces}
    launching.parallel_for(RangePolicy(space, len(crowds)), rows, **given, part=part, src=src, place=n)
    np.testing.assert_array_equal(src, expected)
