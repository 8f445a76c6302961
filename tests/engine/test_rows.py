"""Vector ranges of fixed length: one value holds all lanes where the lanes do arithmetic only."""

import numpy as np
import pytest

from parki import engine
from parki.engine import TeamPolicy

TEXT = '''"""Rows of N numbers."""

from typing import List

import pykokkos as pk

real = pk.double
N = 10
M = 3
ROWS = 4
ADD = True


@pk.workunit
def rows(team: pk.TeamMember, x: pk.View2D[real], y: pk.View2D[real], w: pk.View1D[real], m: int):
    """y[r] from x[r …] and w."""

    def row(r: int):
        def lane(k: int):
            {body}

        pk.parallel_for(pk.ThreadVectorRange(team, N), lane)

    pk.parallel_for(pk.TeamThreadRange(team, ROWS), row)
'''
ARITHMETIC = """held: List[real] = [0.0] * M
        for j in range(M):
            held[j] = w[j]
        s: real = 0.25
        for i in range(m):
            t: real = 0.0
            for j in range(M):
                t += held[j] * x[r + j][k]
            s = s - t * x[r][k + i] / (x[r + i][k] * x[r + i][k] + 1.5)
        if ADD:
            s = s + w[0]
        y[r][k] = -s"""
OTHERS = {
    "a condition on lanes": "s: real = 0.0\n        if x[r][k] > 0.0:\n            s = x[r][k]\n        y[r][k] = s",
    "a function": "y[r][k] = pk.sqrt(x[r][k] * x[r][k])",
    "the lane's number": "y[r][k] = x[r][k] + real(k)",
    "every other": "y[r][k] = x[r][2 * k]",
    "stores in a loop": "for i in range(m):\n            y[r][k] += x[r + i][k]",
    "turns that lanes count": "for i in range(k):\n            y[r][k] = x[r][i]",
}


def made(folder, body, **slots):
    path = folder / "rows.py"
    path.write_text(TEXT.replace("{body}", body.replace("\n", "\n    ")), "utf-8")
    return engine.kernel(path, "rows", **slots)


def wanted(x, w, n, m, teams):
    out = np.empty((teams, n))
    for r in range(teams):
        t = sum(w[j] * x[r + j, :n] for j in range(3))
        s = 0.25 - sum(t * x[r, i : i + n] / (x[r + i, :n] ** 2 + 1.5) for i in range(m))
        out[r] = -(s + w[0])
    return out


LENGTHS = [1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 22, 24, 25, 31, 48, 49]
BOTH = (1, 7, 8, 9, 16, 17)  # lengths in both precisions in every run; it has the others in one of them


@pytest.mark.parametrize(
    ("n", "real"),
    [
        pytest.param(n, real, marks=[pytest.mark.slow] * (n not in BOTH and (i + k) % 2 == 1))
        for i, n in enumerate(LENGTHS)
        for k, real in enumerate(["double", "float"])
    ],
)
def test_every_length(n, real, tmp_path, rng):
    dtype = {"double": np.float64, "float": np.float32}[real]
    x, w, y = rng.standard_normal((8, n + 5)).astype(dtype), rng.random(3).astype(dtype), np.full((4, n + 3), 9, dtype)
    engine.parallel_for(TeamPolicy("Serial", 1), made(tmp_path, ARITHMETIC, N=n, real=real), x=x, y=y, w=w, m=4)
    exact = wanted(x.astype(np.float64), w.astype(np.float64), n, 4, 4)
    np.testing.assert_allclose(y[:, :n], exact, rtol=0, atol=20 * np.finfo(dtype).eps * np.abs(exact).max())
    assert (y[:, n:] == 9).all()


def test_lanes_are_a_row(tmp_path):
    unit = made(tmp_path, ARITHMETIC)
    texts = [unit.unit(unit.default_layouts(), checked)[0].source for checked in (False, True)]
    assert ["pk_for_row<10>" in text for text in texts] == [True, False]  # checked builds run one lane at a time


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_row(name, tmp_path, rng):
    unit = made(tmp_path, OTHERS[name])
    source = unit.unit(unit.default_layouts(), False)[0].source
    assert "pk_for_row" not in source
    assert "pk_for_n<10" in source
