"""Additional launches of sums with forces and stresses, on every execution space, against NumPy."""

import numpy as np
import pytest

from parki import engine
from parki.engine import RangePolicy, TeamPolicy
from tests.portability import launching
from tests.portability.formulas import close

DTYPES = ("float64", "float32")


@pytest.fixture(params=DTYPES)
def real(request):
    return request.param


@pytest.mark.parametrize("skew", [False, True])
def test_line_virials(skew, space, real, rng):
    """Test the second to the fourth of four planes, with room for one more."""
    rows, length = 6, 5
    spec = rng.standard_normal((1, 4, rows, length, 2)).astype(real)
    kx, ky, kz = (rng.standard_normal(n).astype(real) for n in (4, rows, length))
    shape = (4, rows, length) if skew else (4, rows // 2 + 1, length // 2 + 1)
    green, slope = (rng.standard_normal(shape).astype(real) for _ in range(2))
    weight, out = np.array([1.0, 2.0, 2.0, 1.0], real), np.full((4 * rows, 7), 5.0, real)
    s01, s02, s12 = (0.2, -0.4, 0.3) if skew else (0.0, 0.0, 0.0)
    args = {"kx": kx, "ky": ky, "kz": kz, "weight": weight, "out": out, "first": 1, "count": 4}
    args |= {"rows": rows, "length": length, "s01": s01, "s02": s02, "s12": s12, "green": green, "slope": slope}
    unit = engine.kernel("virial", "line_virials", real=real, SKEW=skew)
    launching.parallel_for(TeamPolicy(space, 4 * rows), unit, spec=spec.reshape(1, 4, rows, 2 * length), **args)
    k = np.array(np.meshgrid(kx[1:], ky, kz, indexing="ij"), float)
    k = np.array([k[0] + s01 * k[1] + s02 * k[2], k[1] + s12 * k[2], k[2]])
    b, j = np.arange(rows)[:, None], np.arange(length)
    at = np.s_[1:] if skew else np.s_[1:, np.minimum(b, rows - b), np.minimum(j, length - j)]
    square = (spec[0, :3].astype(float) ** 2).sum(axis=-1) * weight[1:, None, None]
    products = np.array([k[0] * k[0], k[0] * k[1], k[0] * k[2], k[1] * k[1], k[1] * k[2], k[2] * k[2]])
    parts = np.concatenate([green[at][None].astype(float), slope[at] * products])
    close(out[rows:], (parts * square).sum(axis=-1).reshape(7, -1).T, 10)
    np.testing.assert_array_equal(out[:rows], 5.0)


@pytest.mark.parametrize("types", [*DTYPES, "mixed"])
def test_take_off(types, space, rng):
    real, coord = ("float32", "float64") if types == "mixed" else (types, types)
    x, strength = rng.random((3, 50)).astype(coord), rng.standard_normal((1, 50)).astype(coord)
    order, u = rng.permutation(50).astype(np.int32), rng.standard_normal((3, 50)).astype(real)
    size, scale = np.array([0.5, -2.0, 1.0], real), np.array([9.0, 10.0, 8.0])
    exact = u + size[:, None] * strength[0, order] * np.sin(2 * np.pi * scale[:, None] * x)
    unit = engine.kernel("own_field", "take_off", real=real, coord=coord)
    given = {"x": x, "strength": strength, "order": order, "u": u, "size": size}
    launching.parallel_for(RangePolicy(space, 50), unit, **given, s0=9.0, s1=10.0, s2=8.0)
    close(u, exact, 300)


@pytest.mark.parametrize("periodic", [False, True])
def test_left_out(periodic, space, real, rng):
    """Test targets without partners, and one that is a source; a cell has one free direction."""
    cell = np.array([[1.0, 0.2, 0.0], [0.0, 1.3, 0.0], [0.0, 0.0, 0.0]], real)
    xt = (rng.random((3, 40)) * 2 - 0.5).astype(real)
    src = np.concatenate([rng.random((3, 30)), rng.standard_normal((1, 30))]).T.astype(real)
    src[5, :3] = xt[:, 7]
    counts = rng.integers(0, 4, 40)
    counts[7] = 1
    begin = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    partner = rng.integers(0, 30, begin[-1]).astype(np.int32)
    partner[begin[7]] = 5
    weight, u = rng.standard_normal(begin[-1]).astype(real), np.empty((10, 40), real)
    given = {"xt": xt, "src": src, "u": u, "begin": begin, "partner": partner, "weight": weight, "cell": cell}
    given["inverse"] = inverse = np.linalg.pinv(cell.astype(float)).astype(real)
    slots = {"pair": "pair/radial", "VALUE": True, "GRADIENT": True, "VIRIAL": True, "PERIODIC": periodic}
    launching.parallel_for(
        RangePolicy(space, 40), engine.kernel("left_out", "left_out", real=real, **slots), **given, tiny=0.0
    )
    i = np.repeat(np.arange(40), counts)
    r = xt[:, i].astype(float) - src[partner, :3].T
    if periodic:
        r -= cell.T.astype(float) @ np.floor(inverse.T.astype(float) @ r + 0.5)
    d = np.linalg.norm(r, axis=0)
    w = np.divide(1.0, d, out=np.zeros_like(d), where=d > 0)
    q = weight * src[partner, 3]
    slope = -q * w**3
    rows = [q * w, *(slope * r), *(slope * r[a] * r[b] for a, b in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)))]
    close(u, np.array([np.bincount(i, row, 40) for row in rows]), 100)
