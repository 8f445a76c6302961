"""Stages that one-shot sums leave behind: the next sum with the same parameters reuses them, with the same bits."""

import numpy as np
import pytest

import parki
from parki.engine.run import spaces
from parki.ewald import idle

OPTIONS = {"box": (1.0, 1.2, 0.9), "tolerance": 1e-9}


def points(rng, n):
    return np.array(OPTIONS["box"])[:, None] * rng.random((3, n))


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("space", ["Serial", "OpenMP"])
def test_sums_of_taken_stages_are_those_of_new_ones(space, same, rng):
    kept, sources, targets = set(), points(rng, 90), points(rng, 70)
    for _ in range(3):  # points in another order have the same arrangement, so that parameters are the same
        src, trg = (rng.permutation(x, axis=1) for x in (sources, targets))
        trg, dens, normals = src if same else trg, rng.standard_normal((6, 90)), rng.standard_normal((3, 90))
        u = parki.ewald.stokes_comb(trg, src, dens, normals, execution_space=space, **OPTIONS)
        kept |= {id(stages) for stages, _ in idle._kept.values()}
        before = dict(idle._kept)
        idle._kept.clear()
        new = parki.ewald.plan("stokes_comb", trg, src, execution_space=space, **OPTIONS)
        np.testing.assert_array_equal(new(dens, normals), u)
        idle._kept.update(before)
    assert len(kept) == 1


def test_other_threads_have_stages_of_their_own(rng, monkeypatch):
    if spaces.get("CPU").name != "OpenMP":
        pytest.skip("the compiler has no OpenMP")
    x = points(rng, 50)
    keys = []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        plan = parki.ewald.plan("laplace", x, x, **OPTIONS)
        keys.append(plan.method._key(plan.problem, plan.chosen))
    assert keys[0] != keys[1]


def test_large_stages_are_not_kept(rng, monkeypatch):
    x, q = points(rng, 50), rng.choice([-1.0, 1.0], 50)
    monkeypatch.setattr(idle, "EACH_BYTES", 1000)
    parki.ewald.laplace(x, x, q - q.mean(), **OPTIONS)
    assert not idle._kept
    monkeypatch.undo()
    parki.ewald.laplace(x, x, q - q.mean(), **OPTIONS)
    assert len(idle._kept) == 1
    monkeypatch.setattr(idle, "ALL_BYTES", 1000)
    parki.ewald.laplace(x, x, q - q.mean(), **OPTIONS | {"tolerance": 1e-3})
    assert not idle._kept
