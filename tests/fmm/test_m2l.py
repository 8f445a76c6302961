"""Translations by transforms against dense matrices."""

from dataclasses import replace

import numpy as np
import pytest

from parki.engine.run import spaces
from parki.engine.steps import Steps, constant, state
from parki.fmm import limits, m2l, spectra

KAPPA = 0.7


def surface(p):
    grid = np.indices((p, p, p)).reshape(3, -1).T
    grid = grid[((grid == 0) | (grid == p - 1)).any(axis=1)]
    return 1.05 * (-1 + 2.0 * grid / (p - 1))


def inverse(r):
    """Return 1 / |r|, and 0 at r = 0."""
    r2 = np.einsum("...i,...i", r, r)
    return np.where(r2 > 0, 1 / np.sqrt(np.where(r2 > 0, r2, 1.0)), 0.0)


def laplace(r):
    return inverse(r)[:, None, None]


def yukawa(r):
    w = inverse(r)
    return (np.exp(-KAPPA * np.linalg.norm(r, axis=1)) * w)[:, None, None]


def stokes(r):
    """Return the velocity and pressure of forces and point flows: neither even nor odd, nor symmetric."""
    w, out = inverse(r), np.zeros((len(r), 4, 4))
    out[:, :3, :3] = np.eye(3) * w[:, None, None] + (w**3)[:, None, None] * r[:, :, None] * r[:, None, :]
    out[:, :3, 3] = r * (w**3)[:, None]
    out[:, 3, :3] = 2 * out[:, :3, 3]
    return out


def skew(r):
    """Return two components from three, without any symmetry."""
    w = inverse(r)
    return np.stack([[w, r[:, 0] * w**2, w**3], [r[:, 1] * w**3, r[:, 2] * w**4, w**2]]).transpose(2, 0, 1)


def octets(count, rng):
    """Return all pairs of `count` of 27 neighbouring octets; octet 1 is only a source, octet 2 only a target."""
    place = np.indices((3, 3, 3)).reshape(3, 27).T[np.sort(rng.permutation(27)[:count])]
    number = {tuple(a): i for i, a in enumerate(place)}
    found = [
        (i, number[tuple(a + d)], k)
        for i, a in enumerate(place)
        for k, d in enumerate(spectra.DIRECTIONS)
        if tuple(a + d) in number
    ]
    t, s, direction = np.array(found).T
    keep = (t != 1) & (s != 2)
    return t[keep], s[keep], direction[keep]


def dense(values, p, pairs, given, targets):
    """Return check values (targets, kt, m, 8) of equivalents (octets, ks, m, 8), by one matrix for each offset."""
    x = surface(p)
    kt, ks = values(np.ones((1, 3))).shape[1:]
    matrix, out = {}, np.zeros((len(given), kt, len(x), 8))
    for t, s, d in zip(*pairs, strict=True):
        for a in range(8):
            for b in range(8):
                o = spectra.OCTANTS[a] - spectra.OCTANTS[b] - 2 * spectra.DIRECTIONS[d]
                if np.abs(o).max() > 1 and t in targets:
                    if tuple(o) not in matrix:
                        r = (2.0 * o + x[:, None] - x[None, :]).reshape(-1, 3)
                        matrix[tuple(o)] = values(r).reshape(len(x), len(x), kt, ks).transpose(2, 0, 3, 1)
                        matrix[tuple(o)] = matrix[tuple(o)].reshape(kt * len(x), ks * len(x))
                    out[t, :, :, a] += (matrix[tuple(o)] @ given[s, :, :, b].ravel()).reshape(kt, -1)
    return out


def translated(values, p, lists, given, space="Serial", real="float64", wide=None, start=0.0, **more):
    """Return check values of type `wide` by lists of pairs, each with a kernel, and spectra of type `real`.

    Rows beyond the components' must not change.  Other options are limits of teams.
    """
    wide = wide or real
    ks, m = given.shape[1:3]
    kt = values(np.ones((1, 3))).shape[1]
    equivalents = np.full((len(given), ks * m + 2, 8), np.nan, wide)
    equivalents[:, : ks * m] = given.reshape(len(given), -1, 8)
    checks = state("checks", (len(given), kt * m + 3, 8), wide)
    of = [m2l.PairList(constant("table", spectra.table(f, p).astype(real)), *pairs) for f, pairs in lists]
    here = spaces.get(space)
    octets = m2l.OctetValues(p, ks, kt, constant("equivalents", equivalents), checks, np.dtype(real))
    placed = Steps(m2l.steps("m2l", octets, of, replace(limits.of(here), **more))).place(here)
    placed[checks][...] = start
    placed.run()
    made = placed[checks]
    assert (made[:, kt * m :] == start).all()
    return made[:, : kt * m].reshape(len(given), kt, m, 8)


def run(values, p, pairs, given, **options):
    """Return check values by one list of pairs."""
    return translated(values, p, [(values, pairs)], given, **options)


def far_from(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("gauss", [False, True])
@pytest.mark.parametrize(
    ("values", "p"), [(laplace, 4), (laplace, 5), (laplace, 6), (yukawa, 4), (skew, 4), (stokes, 4)]
)
def test_agrees_with_dense_matrices(values, p, gauss, rng):
    """Compare complex products by four and by three real ones, which hosts with vectors of 64 bytes take."""
    pairs = octets(14, rng)
    ks = values(np.ones((1, 3))).shape[2]
    given = rng.standard_normal((14, ks, len(surface(p)), 8))
    given[:, :, :, 3] = 0  # a sibling that is not there
    targets = (0, 5, 13) if ks > 1 else range(14)
    found, expected = run(values, p, pairs, given, gauss=gauss), dense(values, p, pairs, given, targets)
    assert far_from(found[list(targets)], expected[list(targets)]) < 1e-13
    assert (found[1] == 0).all()  # not a target


def test_adds_to_what_is_there(rng):
    pairs = octets(8, rng)
    given = rng.standard_normal((8, 1, len(surface(4)), 8))
    found, plain = run(laplace, 4, pairs, given, start=2.0), run(laplace, 4, pairs, given)
    assert far_from(found - 2.0, plain) < 1e-14


@pytest.mark.parametrize("limit", [0, 100_000, 300_000])
def test_planes_one_at_a_time_or_several(limit, rng):
    pairs = octets(9, rng)
    given = rng.standard_normal((9, 1, len(surface(4)), 8))
    assert far_from(run(laplace, 4, pairs, given, spectra=limit), run(laplace, 4, pairs, given)) < 1e-14


def test_groups_of_planes_hold_every_plane_once_within_the_limit():
    sizes = spectra.plane_sizes(6).tolist()
    assert sum(sizes) == 6 * 11 + 5 * 121
    assert m2l.plane_groups(6, 10, 0) == [(k, 1) for k in range(6)]
    assert m2l.plane_groups(6, 10, 10 * sum(sizes)) == [(0, 6)]
    assert m2l.plane_groups(6, 10, 10 * (66 + 121)) == [(0, 2), (2, 1), (3, 1), (4, 1), (5, 1)]
    assert m2l.plane_groups(6, 10, 10 * 2 * 121) == [(0, 2), (2, 2), (4, 2)]


@pytest.mark.parametrize(("space", "wide"), [("Serial", "float32"), ("Serial", "float64"), ("GpuSim", "float64")])
def test_spectra_in_single_precision(space, wide, rng):
    pairs = octets(9, rng)
    given = rng.standard_normal((9, 1, len(surface(4)), 8))
    found = run(laplace, 4, pairs, given, space=space, real="float32", wide=wide)
    assert found.dtype == wide
    assert 1e-9 < far_from(found, dense(laplace, 4, pairs, given, range(9))) < 2e-6


@pytest.mark.parametrize("space", ["OpenMP", "GpuSim"])
def test_other_spaces(space, rng):
    pairs = octets(5, rng)
    given = rng.standard_normal((5, 1, len(surface(3)), 8))
    expected = dense(laplace, 3, pairs, given, range(5))
    assert far_from(run(laplace, 3, pairs, given, space=space), expected) < 1e-13


def test_several_lists_share_spectra(rng):
    one, two = octets(9, rng), octets(6, rng)
    given = rng.standard_normal((9, 1, len(surface(4)), 8))
    lists = [(laplace, one), (laplace, (np.zeros(0, np.int32),) * 3), (yukawa, two)]
    expected = run(laplace, 4, one, given) + run(yukawa, 4, two, given)
    assert far_from(translated(laplace, 4, lists, given), expected) < 1e-14


def test_spectra_are_those_of_the_largest_list(rng):
    values = m2l.OctetValues(4, 1, 1, state("e", (9, 56, 8), float), state("c", (9, 56, 8), float), np.dtype(float))
    table = constant("table", spectra.table(laplace, 4))
    few, many = (m2l.PairList(table, *octets(n, rng)) for n in (6, 9))
    rooms = [
        {
            a.name: a.size
            for a in Steps(m2l.steps("m2l", values, of, limits.HOST)).handles
            if a.name.endswith("_spectra")
        }
        for of in ([many], [few, many])
    ]
    assert rooms[0] == rooms[1]
    assert min(rooms[0].values()) >= 16 * 8 * int(spectra.plane_sizes(4).sum())


def test_blocks_hold_every_pair_once(rng):
    t, s, direction = octets(20, rng)
    t, s = 3 * t + 40, 2 * s + 7
    found = m2l.blocks(t, s, direction, run=8)
    assert found.begin.shape == (3, 27)
    assert found.rows.tolist() == [0, 8, 16, len(found.targets)]
    seen = []
    for b in range(3):
        for d in range(26):
            for to, source in found.pairs[found.begin[b, d] : found.begin[b, d + 1]]:
                assert found.rows[b] <= to < found.rows[b + 1]
                seen.append((found.targets[to], found.sources[source], d))
    assert sorted(seen) == sorted(zip(t, s, direction, strict=True))


def test_places_are_those_of_the_offsets():
    place, offset = spectra.places().reshape(26, 8, 8), spectra.offsets()
    d = spectra.DIRECTIONS.tolist().index([0, -1, 1])
    # sources one box up in z and one down in y: source octant 6 = (1, 1, 0), target octant 1 = (0, 0, 1)
    assert offset[place[d, 6, 1]].tolist() == [-1, 1, -1]
    assert (np.abs(offset[place]).max(axis=-1) > 1).sum() == 1512
    table = spectra.table(laplace, 3)
    near = np.abs(offset).max(axis=1) < 2
    assert (table[:, :, :343][:, :, near] == 0).all()
    assert (np.abs(table[0, 0, :343][~near]) > 0).all()


def test_tables_in_single_precision():
    for values in (stokes, skew):
        table = spectra.table(values, 4)
        table[np.abs(table) < spectra.SUBNORMAL] = 0.0
        np.testing.assert_array_equal(spectra.table(values, 4, "float32"), table.astype(np.float32))
    for unit in (1e25, 1e-25):  # products with charges would overflow, or be subnormal
        assert not spectra.table(lambda r, unit=unit: unit * laplace(r), 4, "float32").size


def test_a_table_of_other_components_is_refused(rng):
    pairs = m2l.PairList(constant("table", spectra.table(laplace, 4)), *octets(5, rng))
    values = m2l.OctetValues(4, 2, 1, state("e", (5, 2 * 56, 8), float), state("c", (5, 56, 8), float), np.dtype(float))
    with pytest.raises(ValueError, match=r"table has shape \(175, 1, 688\), expected \(175, 2, 688\)"):
        m2l.steps("m2l", values, [pairs], limits.HOST)
