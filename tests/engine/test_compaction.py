"""Scans that list the indices where a condition holds: compress stores on hosts, and no similar loop."""

import numpy as np
import pytest

from parki import engine
from parki.engine import TeamPolicy
from parki.engine.lower.compaction import is_compaction
from parki.engine.tree import ir
from parki.engine.tree.walk import walk

TEXT = '''"""A list of what is small."""

import pykokkos as pk

real = pk.double
FIRST = 2


@pk.workunit
def small(
    team: pk.TeamMember, x: pk.View1D[real], where: pk.View1D[pk.int32], value: pk.View1D[real],
    count: pk.View1D[pk.int32], n: int, most: real,
):
    """where = the places of x below `most`, value = twice these, from FIRST on."""
    b: int = team.league_rank()

    def keep(j: int, acc: pk.Acc[int], last: bool):
        v: real = x[b * n + j]
        {body}

    total: int = pk.parallel_scan(pk.TeamThreadRange(team, n), keep)

    def close():
        count[b] = total

    pk.single(pk.PerTeam(team), close)
'''
LISTED = """if v < most:
            if last:
                where[b * (n + FIRST) + FIRST + acc] = j
                value[acc + b * (n + FIRST) + FIRST] = 2.0 * v
            acc += 1"""
OTHERS = {
    "by two": LISTED.replace("acc += 1", "acc += 2"),
    "always": LISTED.replace("            acc += 1", "        acc += 1"),
    "else": LISTED + "\n        else:\n            if last:\n                where[b] = j",
    "acc in the value": LISTED.replace("= j", "= acc"),
    "acc twice": LISTED.replace("FIRST + acc] = j", "acc + acc] = j"),
    "a product": LISTED.replace("FIRST + acc] = j", "FIRST * acc] = j"),
    "a branch beside": LISTED.replace("            acc += 1", "            if v > 0.0:\n                acc += 1"),
    "stored elsewhere": "if last:\n            where[b] = j\n        " + LISTED,
}


def made(folder, body, **slots):
    path = folder / "listing.py"
    path.write_text(TEXT.replace("{body}", body), "utf-8")
    return engine.kernel(path, "small", **slots)


def scan(unit):
    return next(n for n in walk(unit.ir.body) if isinstance(n, ir.Range) and n.kind == "scan")


@pytest.mark.parametrize("space", ["Serial", "GpuSim"])
@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("n", [1, 7, 16, 41])
def test_what_is_listed(n, real, space, tmp_path, rng):
    unit = made(tmp_path, LISTED, real=real)
    assert is_compaction(scan(unit))
    dtype = {"double": np.float64, "float": np.float32}[real]
    x = rng.standard_normal((3, n)).astype(dtype)
    x[2] = 1.0  # none
    where, value = np.full((3, n + 2), -1, np.int32), np.full((3, n + 2), -9, dtype)
    count = np.full(3, -1, np.int32)
    policy = TeamPolicy(space, 3, 16, 1) if space == "GpuSim" else TeamPolicy(space, 3)
    given = {"x": x.ravel(), "where": where.ravel(), "value": value.ravel(), "count": count, "n": n, "most": 0.3}
    engine.parallel_for(policy, unit, **given)
    for k in range(3):
        found = np.flatnonzero(x[k] < dtype(0.3))
        assert count[k] == len(found)
        np.testing.assert_array_equal(where[k, 2 : 2 + len(found)], found)
        np.testing.assert_array_equal(value[k, 2 : 2 + len(found)], 2 * x[k, found])
        for row, untouched in ((where[k], -1), (value[k], -9)):
            assert (row[:2] == untouched).all()
            assert (row[2 + len(found) :] == untouched).all()


IN_SCRATCH = (
    TEXT.replace("@pk.workunit\n", "@pk.workunit(scratch=[(pk.int32, lambda p: ROOM), (real, lambda p: ROOM)])\n")
    .replace("FIRST = 2", "ROOM = 23")
    .replace(
        "    b: int = team.league_rank()\n",
        """    b: int = team.league_rank()
    where: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), ROOM)
    value: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), ROOM)
""",
    )
    .replace(
        "where: pk.View1D[pk.int32], value: pk.View1D[real],\n    ",
        "out: pk.View2D[pk.int32], twice: pk.View2D[real], ",
    )
    .replace(
        "{body}", LISTED.replace("b * (n + FIRST) + FIRST + acc", "acc").replace("acc + b * (n + FIRST) + FIRST", "acc")
    )
    .replace(
        "    pk.single",
        """    team.team_barrier()

    def copy(j: int):
        out[b][j] = where[j]
        twice[b][j] = value[j]

    pk.parallel_for(pk.TeamThreadRange(team, total), copy)
    pk.single""",
    )
)


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("hints", [(), ("open_lists",)], ids=["exact", "open"])
def test_lists_in_scratch_that_are_full(hints, real, tmp_path, rng):
    """Check lists of all lengths up to the room of scratch: a whole vector stored at its end would spoil the next."""
    path, n = tmp_path / "listing.py", 23
    path.write_text(IN_SCRATCH, "utf-8")
    unit = engine.kernel(path, "small", hints=hints, real=real)
    x = np.ones((24, n), {"double": np.float64, "float": np.float32}[real])
    for k in range(24):
        x[k, rng.permutation(n)[:k]] = -0.5 - rng.random(k)
    out, twice, count = np.full((24, n), -1, np.int32), np.full((24, n), -9, x.dtype), np.full(24, -1, np.int32)
    given = {"x": x.ravel(), "out": out, "twice": twice, "count": count, "n": n, "most": 0.0}
    engine.parallel_for(TeamPolicy("Serial", 24), unit, **given)
    np.testing.assert_array_equal(count, np.arange(24))
    for k in range(24):
        np.testing.assert_array_equal(out[k, :k], np.flatnonzero(x[k] < 0))
        np.testing.assert_array_equal(twice[k, :k], 2 * x[k, out[k, :k]])


def test_lanes_are_compressed(tmp_path):
    unit = made(tmp_path, LISTED)
    texts = [unit.unit(unit.default_layouts(), checked)[0].source for checked in (False, True)]
    assert ["pk_compress(" in text for text in texts] == [True, False]  # checked builds check one store after another


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_such_list(name, tmp_path):
    assert not is_compaction(scan(made(tmp_path, OTHERS[name])))
