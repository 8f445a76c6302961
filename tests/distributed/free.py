"""Sums in free space by one process and over ranks, to compare them."""

from dataclasses import dataclass, field

import numpy as np

import parki
from parki import pairs, samples
from parki.arrays import to_host
from parki.distributed.simulated import World
from tests.distributed.shares import cuts, far, part

KAPPA = 1.5


def two(n, seed):
    """Return two clusters a million times as far apart as they are wide."""
    return samples.uniform(n, seed) + 1e6 * (np.arange(n) % 2)


def crowd(n, seed):
    """Return points of which half lie in one place."""
    x = samples.uniform(n, seed)
    x[:, : n // 2] = 0.25
    return x


SETS = {"uniform": samples.uniform, "plummer": samples.plummer, "sphere": samples.sphere, "two": two, "crowd": crowd}

FIXED = {"theta": 0.6, "degree": 4, "leaf_size": 40, "far_precision": "double"}
FIXED_FMM = {"order": 4, "leaf_size": 40, "far_precision": "double"}
#: Options of the methods of each module that sums over ranks.
METHODS = {
    parki.treecode: [FIXED | {"method": method} for method in ("dual", "pc", "cp")],
    parki.fmm: [FIXED_FMM | {"method": method} for method in ("kifmm", "chebyshev")],
}


@dataclass
class FreeCase:
    """A sum over random points by a module of parki; `targets` names their set, None if they are the sources."""

    module: object
    kernel: str = "coulomb"
    points: str = "uniform"
    targets: str | None = None
    n: int = 1500
    dtype: str = "float64"
    seed: int = 3
    options: dict = field(default_factory=dict)
    put: object = np.asarray

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        self.y = SETS[self.points](self.n, self.seed).astype(self.dtype)
        self.x = self.y if self.targets is None else SETS[self.targets](self.n // 2, self.seed + 1).astype(self.dtype)
        pair = pairs.PAIRS[self.kernel]
        shape = (pair.dens, self.n) if pair.dens > 1 else (self.n,)
        self.density = rng.standard_normal(shape).astype(self.dtype)
        self.normals = rng.standard_normal((3, self.n)).astype(self.dtype) if pair.normals else None

    def plan(self, x, y, **more):
        own = {"kappa": KAPPA} if self.kernel == "yukawa" else {}
        return self.module.plan(self.kernel, x, y, **{"execution_space": "Serial"} | self.options | own | more)

    def shares(self, ranks, seed=0):
        """Return the indices of the targets and of the sources of each rank."""
        of_sources = cuts(self.n, ranks, seed)
        return (of_sources if self.targets is None else cuts(self.x.shape[1], ranks, seed + 1)), of_sources

    def of(self, to, source):
        """Return the selected targets and sources, and the strengths of these sources."""
        y = self.put(part(self.y, source))
        x = y if self.targets is None else self.put(part(self.x, to))
        more = () if self.normals is None else (part(self.normals, source),)
        return (x, y), [self.put(a) for a in (part(self.density, source), *more)]

    def alone(self):
        """Return the plan of one process, and its sum."""
        (x, y), strengths = self.of(slice(None), slice(None))
        plan = self.plan(x, y)
        return plan, whole([plan(*strengths)])

    def over(self, ranks, work=None, seed=0, shares=None, world=None):
        """Return the whole sum of a second call over ranks, and each rank's ``work(comm, plan, …)`` or plan."""
        of_targets, of_sources = shares or self.shares(ranks, seed)

        def one(comm):
            (x, y), strengths = self.of(of_targets[comm.rank], of_sources[comm.rank])
            plan = self.plan(x, y, comm=comm)
            plan(*strengths)
            u = plan(*strengths)
            return u, work(comm, plan, strengths) if work else plan

        found = (world or World(ranks, seed)).run(one)
        return whole([u for u, _ in found]), [other for _, other in found]


def assert_same(one, ranks, seed=0, most=1e-12, **more):
    """Compare the sum over ranks, and its parameters, with those of one process; return the plans of the ranks."""
    plan, expected = one.alone()
    u, found = one.over(ranks, seed=seed, **more)
    assert all(other.parameters == plan.parameters for other in found)
    assert far(u, expected) < most
    return found


def whole(parts):
    """Concatenate the results of ranks, with a potential and its gradient as one array."""
    return np.concatenate(
        [np.vstack([to_host(a) for a in u]) if isinstance(u, tuple) else to_host(u) for u in parts], -1
    )
