"""Direct sums over simulated ranks."""

import numpy as np
import pytest

import parki
from parki.distributed.simulated import World
from tests.distributed.shares import cuts, far, part

RNG = np.random.default_rng(2)
X, Y, F, N = RNG.random((3, 200)), RNG.random((3, 300)), RNG.standard_normal((6, 300)), RNG.standard_normal((3, 300))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8, 27, 64])
def test_one_shot_sums(ranks):
    expected = parki.direct.direct_sum("stokes_comb", X, Y, F, N)
    to, source = cuts(200, ranks), cuts(300, ranks, 1)

    def work(comm):
        own = source[comm.rank]
        return parki.direct.direct_sum(
            "stokes_comb", part(X, to[comm.rank]), part(Y, own), part(F, own), part(N, own), comm=comm
        )

    assert far(np.concatenate(World(ranks).run(work), axis=-1), expected) < 1e-13


@pytest.mark.parametrize("gradient", [False, True, "only"])
def test_plans(gradient):
    plan = parki.direct.plan("yukawa", X, Y, kappa=2.0, gradient=gradient)
    expected = plan(F)
    turned = None if gradient else plan.operator().T @ expected[0].ravel()
    plan.move(targets=X, sources=2 * Y)
    moved = plan(F[0])
    to, source = cuts(200, 3), cuts(300, 3, 1)

    def work(comm):
        x, y, q = part(X, to[comm.rank]), part(Y, source[comm.rank]), part(F, source[comm.rank])
        plan = parki.direct.plan("yukawa", x, y, kappa=2.0, gradient=gradient, comm=comm)
        u = plan(q)
        back = None if gradient else plan.operator().T @ part(expected[0], to[comm.rank]).ravel()
        error = plan.error().value
        plan.move(targets=x, sources=2 * y)
        return u, back, error, plan(q[0]), plan.memory

    found = World(3).run(work)

    def whole(parts):
        if isinstance(parts[0], tuple):
            return np.concatenate([np.concatenate(one, axis=-1).ravel() for one in zip(*parts, strict=True)])
        return np.concatenate(parts, axis=-1)

    for i, right in ((0, expected), (3, moved)):
        right = np.concatenate([a.ravel() for a in right]) if isinstance(right, tuple) else right
        assert far(whole([f[i] for f in found]), right) < 1e-13
    if turned is not None:
        assert far(np.concatenate([f[1] for f in found]), turned) < 1e-13
    assert max(f[2] for f in found) < 1e-14


def test_errors_are_everyone_s():
    def work(comm):
        q = F[0] * (np.nan if comm.rank == 1 else 1)
        with pytest.raises(ValueError, match=r"dens has .* NaN"):
            parki.direct.direct_sum("laplace", X, Y, q, comm=comm)
        with pytest.raises(ValueError, match=r"kernel is .* on rank 1; expected"):
            parki.direct.direct_sum("laplace" if comm.rank != 1 else "biharmonic", X, Y, F[0], comm=comm)
        with pytest.raises(ValueError, match="call is"):
            parki.direct.direct_sum("laplace", X, Y, F[0], comm=comm) if comm.rank else parki.direct.plan(
                "laplace", X, Y, comm=comm
            )

    World(3).run(work)


def test_published_names():
    import parki.distributed.ewald as published

    options = published.DistributedEwaldOptions(box=(1.0, 1.0, 1.0), tolerance=1e-5)
    single = parki.ewald.stokes_comb(X, Y, F, N, box=(1, 1, 1), tolerance=1e-5)
    to, source = cuts(200, 2), cuts(300, 2, 1)

    def work(comm):
        own, x = source[comm.rank], part(X, to[comm.rank])
        u, targets = published.stokes_comb(x, part(Y, own), part(F, own), part(N, own), options, comm=comm)
        assert targets is x
        _, _, times = published.stokes_sl(x, part(Y, own), part(F[:3], own), options, comm=comm, return_walltime=True)
        assert times.nbytes["exchange"] > 0
        return u

    assert far(np.concatenate(World(2).run(work), axis=-1), single) < 1e-12
