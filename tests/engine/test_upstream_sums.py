"""Whole sums through the adapter to PyKokkos; parki's own engine runs the launches in place of PyKokkos."""

import copy
from dataclasses import replace

import numpy as np
import pytest

import parki
from parki import engine
from parki.engine.run import spaces, upstream
from tests.quick import half

CELL = [[1.0, 0.0, 0.0], [0.3, 1.2, 0.0], [0.1, 0.2, 0.9]]
N = 120


@pytest.fixture
def launched(stand_in, monkeypatch):
    """Run launches for PyKokkos on parki's engine, check that arrays have no gaps; return the kernels' names."""
    names = []

    def dispatch(call):
        arrays = [a for a in call._args.values() if isinstance(a, np.ndarray)]
        assert all(a.flags.c_contiguous or a.flags.f_contiguous for a in arrays)
        policy = copy.copy(call.policy)
        policy.space = replace(policy.space, engine="parki")
        call._total = engine.prepare(policy, call.workunit, **call._args).run()
        names.append(call.kernel.name)

    monkeypatch.setattr(upstream.UpstreamCall, "_dispatch", dispatch)
    return names


def points(rng, dens=1):
    shape = (dens, N) if dens > 1 else N
    return rng.random((3, N)), rng.standard_normal(shape)


def close(u, exact):
    assert np.linalg.norm(u - exact) <= 1e-12 * np.linalg.norm(exact)


WHERE = [{"periodicity": n, "box": (1, 1.2, 1)} for n in range(4)] + [{"box": CELL}]
SUMS = ("bldtt", "bltc", "kifmm", "chebyshev")


@pytest.mark.parametrize(("where", "tolerance"), half(WHERE, [1e-3, 1e-7]), ids=str)
def test_ewald_sums(where, tolerance, launched, rng):
    """Compare Ewald sums, also with a far field in single precision."""
    x, f = points(rng, 3)
    given = {"tolerance": tolerance, "execution_space": "Serial", **where}
    u = parki.ewald.stokes_sl(x, x, f, engine="pykokkos", **given)
    assert {"p2p_list", "p2g_block", "planes_gather", "convolve", "planes_scatter", "g2p_target"} <= set(launched)
    exact = parki.ewald.stokes_sl(x, x, f, **given)
    assert np.linalg.norm(u - exact) <= (1e-12 if tolerance < 1e-6 else 1e-6) * np.linalg.norm(exact)


@pytest.mark.parametrize(("sum_of", "space"), half(SUMS, ["Serial", "OpenMP"]))
def test_sums_over_clusters(sum_of, space, launched, rng):
    x, q = points(rng)
    x = x**3  # crowded near a corner
    if sum_of.startswith("bl"):
        call, given = getattr(parki.treecode, sum_of), {"degree": 2, "leaf_size": 5, "far_precision": "double"}
    else:
        call, given = getattr(parki.fmm, sum_of), {"order": 3, "leaf_size": 5}
    u = call(x, x, q, "coulomb", execution_space=spaces.get(space, "pykokkos"), **given)
    assert len(set(launched)) > 8
    close(u, call(x, x, q, "coulomb", execution_space=space, **given))
