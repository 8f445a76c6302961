"""Operators by classes against plain dense ones, and their files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from parki import pairs
from parki.engine.compile import cache
from parki.fmm import box_operators, representations
from parki.fmm.class_matrices import ClassMatrices
from tests.fmm import plain
from tests.fmm.octets import applied, children_folded, children_unfolded

OWN = Path(__file__).with_name("skewed.py")
HALF, TOLERANCE = 0.3, 1e-5
CASES = {
    "laplace5": ("laplace", {}, 5),
    "laplace6": ("laplace", {}, 6),
    "yukawa": ("yukawa", {"kappa": 2.0}, 5),
    "stokes": ("stokes_dl", {}, 4),
    "own": (OWN, {}, 4),
}


@pytest.fixture(params=CASES)
def case(request):
    """Return a representation, its operators, and the same in plain NumPy."""
    name, parameters, p = CASES[request.param]
    representation = representations.find(pairs.find(name, **parameters))
    formula = {"laplace": plain.charge, "yukawa": lambda r: plain.charge(r, 2.0), "stokes_dl": plain.both}.get(
        name, lambda r: representations.block(representation.up, r.reshape(-1, 3)).reshape(*r.shape[:2], 2, 2)
    )
    scale = plain.FLOW if name == "stokes_dl" else (representation.a, representation.b)
    expected = plain.Plain(formula, p, HALF, box_operators.cut(TOLERANCE), scale)
    return representation, box_operators.operators(representation, p, TOLERANCE, HALF), expected


def scaled(representation, half, points):
    """Return the factors of check values and of equivalents, by row."""
    return (np.repeat(s, points)[:, None] for s in representation.scales(half))


def close(found, expected, bound):
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound * np.abs(expected).max())


@pytest.mark.parametrize("up", [True, False])
def test_solve(case, up, rng):
    """Both factors make the truncated inverse, up to rounding over the smallest singular value kept."""
    representation, made, expected = case
    check, equivalent = scaled(representation, HALF, made.check.points)
    c = rng.standard_normal((made.check.begin[-1], 3))
    first, second = made.up if up else made.down
    e = made.equivalent.unfold(applied(second, applied(first, made.check.fold(c * check)))) / equivalent
    close(e, expected.solve(c, up), 1e-6)
    assert np.abs(first.table).max() <= 1.0 + 1e-12  # orthonormal, so bounded


def test_to_parent(case, rng):
    representation, made, expected = case
    points = made.check.points
    check, _ = scaled(representation, HALF, points)
    _, small = scaled(representation, HALF / 2, points)
    e = rng.standard_normal((8, made.equivalent.begin[-1]))
    found = (
        made.check.unfold(applied(made.to_parent, children_folded(made.equivalent, e * small[:, 0])[:, None])) / check
    )
    close(found[:, 0], sum(expected.to_parent(o, e[o]) for o in range(8)), 1e-12)


def test_to_children(case, rng):
    representation, made, expected = case
    points = made.check.points
    _, equivalent = scaled(representation, HALF, points)
    small, _ = scaled(representation, HALF / 2, points)
    e = rng.standard_normal((made.equivalent.begin[-1], 1))
    found = children_unfolded(made.check, applied(made.to_children, made.equivalent.fold(e * equivalent))[:, 0])
    close(found / small[:, 0], np.stack([expected.to_child(o, e[:, 0]) for o in range(8)]), 1e-12)


@pytest.mark.parametrize("name", ["laplace", "rotlet"])
def test_classes_and_plain_dense_form_agree(name, rng, monkeypatch):
    """Compare operators of a kernel with and without its symmetry."""
    representation, p = representations.find(pairs.find(name)), 3
    by_class = box_operators.operators(representation, p, 1e-4)
    monkeypatch.setattr(representations, "_masks", lambda pair: None)
    dense = box_operators.operators(representation, p, 1e-4)
    assert (by_class.check.group, dense.check.group) == (8, 1)
    assert len(dense.up[0].part) == 1
    assert by_class.up[0].rows == dense.up[0].rows  # as many singular values are kept
    assert 7 * by_class.to_parent.flops < dense.to_parent.flops
    c = rng.standard_normal((by_class.check.begin[-1], 2))
    close(*(o.equivalent.unfold(applied(o.up[1], applied(o.up[0], o.check.fold(c)))) for o in (by_class, dense)), 1e-6)


def test_the_cut_is_by_the_largest_value_of_all_classes():
    representation = representations.find(pairs.find("laplace"))
    s = np.linalg.svd(plain.matrix(plain.charge, plain.surface(6, 2.95), plain.surface(6, 1.05)), compute_uv=False)
    for tolerance in (1e-2, 1e-6, 1e-12):
        rank = np.count_nonzero(s > box_operators.cut(tolerance) * s[0])
        assert box_operators.operators(representation, 6, tolerance).up[0].rows == rank
    assert (box_operators.cut(1e-3), box_operators.cut(1e-14)) == (1e-6, 1e-15)


def test_one_set_for_all_levels_or_one_for_each():
    laplace, yukawa = representations.find(pairs.find("laplace")), representations.find(pairs.find("yukawa", kappa=1.0))
    assert box_operators.operators(laplace, 4, 1e-3, 0.5) is box_operators.operators(laplace, 4, 1e-3, 0.25)
    one, other = (box_operators.operators(yukawa, 4, 1e-3, half) for half in (0.5, 0.25))
    assert np.abs(one.to_parent.table - other.to_parent.table).max() > 1e-3
    double = representations.find(pairs.find("yukawa", kappa=2.0))
    assert box_operators.operators(double, 4, 1e-3, 0.25) is one  # κh alone matters


def test_blocks_are_laid_out_in_tiles(rng):
    matrices = [rng.standard_normal(shape) for shape in ((3, 5), (19, 4), (8, 1), (0, 2))]
    blocks = ClassMatrices.of(matrices)
    for c, a in enumerate(matrices):
        np.testing.assert_array_equal(blocks.matrix(c), a)
    assert (blocks.rows, blocks.columns, blocks.flops) == (30, 12, 2 * (15 + 76 + 8))
    assert blocks.part.tolist()[:2] == [[0, 5, 0, 3, 0], [5, 4, 3, 19, 5]]
    np.testing.assert_array_equal(blocks.table[5 + 4 + 1, :2], matrices[1][8:10, 1])
    v = rng.standard_normal((12, 2))
    np.testing.assert_allclose(applied(blocks, v)[3:22], matrices[1] @ v[5:9])


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """Keep operators in an empty folder."""
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    box_operators._kept.cache_clear()
    yield tmp_path
    box_operators._kept.cache_clear()


def kept(folder):
    return sorted(folder.rglob("*.operators"))


def test_operators_are_kept_on_disk(alone, monkeypatch):
    representation = representations.find(pairs.find("laplace"))
    made = box_operators.operators(representation, 4, 1e-3)
    (file,) = kept(alone)
    assert [path.name for path in file.parent.iterdir()] == [file.name]  # no temporary file is left
    box_operators._kept.cache_clear()
    monkeypatch.setattr(box_operators, "_make", None)  # a call would fail
    again = box_operators.operators(representation, 4, 1e-3)
    assert again is not made
    np.testing.assert_array_equal(again.down[1].table, made.down[1].table)
    np.testing.assert_array_equal(again.to_children.part, made.to_children.part)


@pytest.mark.parametrize("damage", ["cut short", "empty", "other bytes", "another's"])
def test_a_damaged_file_is_made_anew(alone, damage):
    representation = representations.find(pairs.find("laplace"))
    made = box_operators.operators(representation, 4, 1e-3)
    (file,) = kept(alone)
    content = bytearray(file.read_bytes())
    if damage == "another's":
        box_operators.operators(representation, 3, 1e-3)
        (other,) = set(kept(alone)) - {file}
        content = other.read_bytes()
    elif damage == "other bytes":
        content[len(content) // 3 : len(content) // 3 + 64] = bytes(range(64))
    file.write_bytes({"cut short": content[: len(content) // 2], "empty": b""}.get(damage, bytes(content)))
    box_operators._kept.cache_clear()
    again = box_operators.operators(representation, 4, 1e-3)
    np.testing.assert_array_equal(again.up[0].table, made.up[0].table)
    np.testing.assert_array_equal(again.to_parent.table, made.to_parent.table)


def test_a_folder_that_cannot_be_written(alone):
    """Make operators even if they cannot be kept."""
    (alone / cache.FORMAT).write_text("a file where a folder is wanted")
    assert box_operators.operators(representations.find(pairs.find("laplace")), 3, 1e-3).up[0].rows == 26


def test_values_that_are_not_finite():
    representation = representations.find(pairs.find("yukawa", kappa=1.0))
    broken = replace(representation, up=replace(representation.up, parameters=(np.nan,)))
    with pytest.raises(ValueError, match="not finite"):
        box_operators.operators(broken, 4, 1e-3)


FIELDS = {
    "laplace_grad": ({}, 1e-4),
    "laplace_dipole": ({}, 1e-3),
    "stokes_comb": ({}, 1e-3),
    "stokes_pressure": ({}, 1e-4),
    "stokes_grad": ({}, 1e-3),
    "stokes_dipole": ({}, 1e-3),
    "rotlet": ({}, 1e-3),
    "rpy": ({"radius": 0.05}, 1e-4),
    OWN: ({}, 1e-4),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_through_expansions(name, rng):
    """Go from sources to a box's equivalents, to those of a box apart, to its targets; more points err less."""
    parameters, bound = FIELDS[name]
    representation, h = representations.find(pairs.find(name, **parameters)), 0.4
    move = h * np.array([4.0, 2.0, 0.0])
    y, x = h * rng.uniform(-1, 1, (40, 3)), h * rng.uniform(-1, 1, (40, 3)) + move
    q = rng.standard_normal((40 * representation.pair.dens, 1))

    def matrix(pair, x, y):
        k = representations.block(pair, (x[:, None] - y).reshape(-1, 3)).reshape(len(x), len(y), pair.result, pair.dens)
        return k.transpose(2, 0, 3, 1).reshape(len(x) * pair.result, -1)

    errors, exact = [], matrix(representation.pair, x, y) @ q
    for p in (4, 6):
        made = box_operators.operators(representation, p, 10.0**-p, h)
        check, equivalent = scaled(representation, h, made.check.points)

        def solve(two, c, made=made, check=check, equivalent=equivalent):
            return made.equivalent.unfold(applied(two[1], applied(two[0], made.check.fold(c * check)))) / equivalent

        inner, outer = plain.surface(p, 1.05 * h), plain.surface(p, 2.95 * h)
        e = solve(made.up, matrix(representation.source, outer, y) @ q)
        f = solve(made.down, matrix(representation.down, move + inner, inner) @ e)
        found = matrix(representation.target, x, outer + move) @ f
        errors.append(np.linalg.norm(found - exact) / np.linalg.norm(exact))
    assert errors[1] < min(bound, 0.1 * errors[0])
