"""Points split among ranks, and sums by one process and over ranks, to compare them."""

from dataclasses import dataclass, field

import numpy as np

import parki
from parki.arrays import to_host
from parki.distributed.simulated import World
from parki.ewald import kernels

CELL = [[1.0, 0.0, 0.0], [0.3, 1.0, 0.0], [0.2, 0.1, 0.9]]
BOX = (1.0, 1.3, 0.8)
PARAMETERS = {"yukawa": {"kappa": 3.0}, "rpy": {"radius": 0.05}, "rpy_rotation": {"radius": 0.05}}
PARAMETERS |= {name: {"epsilon": 0.05} for name in ("regularised_stokeslet", "regularised_dipole")}


def cuts(n, ranks, seed=0):
    """Split the indices of n points among ranks, into runs of any length, zero included."""
    ends = np.sort(np.random.default_rng(seed).integers(0, n + 1, ranks - 1))
    return np.split(np.arange(n), ends)


def part(a, which):
    """Return selected entries along the last axis, C-ordered."""
    return None if a is None else np.ascontiguousarray(a[..., which])


@dataclass
class Case:
    """A sum over random points; `same` if targets are the sources; `put` copies arrays to the memory of the sum."""

    kernel: str
    periodicity: int = 3
    box: object = BOX
    n: int = 600
    same: bool = False
    dtype: str = "float64"
    seed: int = 3
    options: dict = field(default_factory=dict)
    put: object = np.asarray

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        found = kernels.find(self.kernel, **PARAMETERS.get(self.kernel, {}))
        cell = np.diag(self.box) if np.ndim(self.box) == 1 else np.array(self.box)

        def points():
            return (cell.T @ rng.random((3, self.n))).astype(self.dtype)

        self.targets = points()
        self.sources = self.targets if self.same else points()
        shape = (found.dens, self.n) if found.dens > 1 else (self.n,)
        self.density = rng.standard_normal(shape).astype(self.dtype)
        self.normals = rng.standard_normal((3, self.n)).astype(self.dtype) if found.normals else None

    def plan(self, targets, sources, **more):
        keywords = {"box": self.box, "periodicity": self.periodicity, "tolerance": 1e-6} | self.options
        keywords |= PARAMETERS.get(self.kernel, {}) | more
        return parki.ewald.plan(self.kernel, targets, sources, **keywords)

    def alone(self):
        """Return the plan of one process, and its sum."""
        points, strengths = self.of(slice(None), slice(None))
        plan = self.plan(*points)
        return plan, to_host(plan(*strengths))

    def of(self, to, source):
        """Return the selected targets and sources, and the strengths of these sources."""
        x = self.put(part(self.targets, to))
        y = x if self.same else self.put(part(self.sources, source))
        return (x, y), [self.put(a) for a in (part(self.density, source), *self.given(source))]

    def given(self, which):
        return () if self.normals is None else (part(self.normals, which),)

    def shares(self, ranks, seed=0):
        """Return the indices of the targets and of the sources of each rank."""
        of_targets = cuts(self.n, ranks, seed)
        return of_targets, of_targets if self.same else cuts(self.n, ranks, seed + 1)

    def over(self, ranks, work=None, seed=0, world=None):
        """Return the whole sum over ranks, and each rank's ``work(comm, plan, to, source)`` or plan."""
        of_targets, of_sources = self.shares(ranks, seed)

        def one(comm):
            to, source = of_targets[comm.rank], of_sources[comm.rank]
            points, strengths = self.of(to, source)
            plan = self.plan(*points, comm=comm)
            u = plan(*strengths)
            assert type(u) is type(points[0])
            return to_host(u), work(comm, plan, to, source) if work else plan

        found = (world or World(ranks, seed)).run(one)
        return np.concatenate([u for u, _ in found], axis=-1), [other for _, other in found]


def far(u, v):
    """Return the largest difference, relative to the largest value of v."""
    return float(np.abs(u - v).max() / np.abs(v).max())
