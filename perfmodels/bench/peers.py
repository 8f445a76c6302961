"""Laplace forces in a periodic box against OpenMM and torch-pme, at the same measured error: `parki bench peers`.

Neutral charges ±1 on the sites of a shaken lattice, about as close to each other as atoms are: no pair is closer than
0.3 spacings.  Each run has new points, so that all programs make their neighbour lists anew.  The comparisons are:

* OpenMM's CPU platform, forces: a Context that is made before, then positions in, forces out, in single precision.
  Parki: a plan of `laplace_grad` that is made before, then moved and applied; in both precisions.
* torch-pme, potentials, and forces by the framework's derivative of the energy, in double precision: a neighbour list
  of vesin, the calculator, the derivative.  Parki: whole calls of `laplace` and `laplace_grad`.

The cutoff of OpenMM, and the cutoff and mesh of torch-pme, are the fastest of a few for the error they aim at.
Errors are relative to parki's sums at a tolerance of 1e-12, in the units of parki; as both peers agree with these sums,
charges, lengths and constants are the same.
"""

import argparse
import importlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from threadpoolctl import threadpool_limits

from parki.engine import Space, workers
from parki.ewald import api
from parki.perfmodels.bench.free import reaching
from parki.perfmodels.bench.measure import Row, absent, clock, row, turns

EXACT = 1e-12  # tolerance of the sums that errors are measured against
AGREE = 1e-2  # relative error; a peer with a larger one sums something else
SHAKE = 0.35  # spacings of the lattice; largest displacement along each axis
COULOMB = 138.935456  # kJ nm / (mol e²), OpenMM's constant; the exact one is not needed where errors are 1e-6
PER_NM3 = 100.0  # atoms per nm³
OPENMM_ASKED = (5e-4, 1e-5)  # its ewaldErrorTolerance: the default, and about the error of single precision
OPENMM_CUTOFFS = (0.6, 0.8, 1.0, 1.3)  # nm
# For torch-pme, whose meshes are powers of two: cutoff over smearing, mesh spacing over smearing, interpolation nodes.
TORCH = {"coarse": (4.0, 0.4, 5), "fine": (5.5, 0.25, 7)}
TORCH_CUTOFFS = 1.4, 5.5  # lattice spacings, least and largest; at 5.5 torch-pme keeps 350 pairs for each atom
GET = {"openmm": "pip install openmm", "torchpme": "pip install torch-pme vesin"}


@dataclass(frozen=True)
class Ions:
    """Charges (n,) at points (3, n) of a cubic box with its side, and the exact potentials (n,) and forces (3, n)."""

    x: np.ndarray
    q: np.ndarray
    side: float
    potential: np.ndarray
    forces: np.ndarray

    def moved(self) -> Iterator[np.ndarray]:
        """Yield the points without end, each time moved as a whole, which changes no potential and no force."""
        steps = np.random.default_rng(2).random((1000, 3, 1))
        for step in itertools.cycle(steps):
            yield (self.x + step * self.side) % self.side


def peers(asked: argparse.Namespace, space: Space) -> list[Row]:
    """Return rows for each peer that is installed, and for each other peer a row on its installation.

    Raises
    ------
    ValueError
        If the space is not on the host.
    RuntimeError
        If a peer and parki disagree.
    """
    if space.kind != "host":
        raise ValueError(f"space is {space.name}; this benchmark compares on a host: expected 'OpenMP' or 'Serial'.")
    here, rows = ions(asked.n), []
    with threadpool_limits(workers(space), user_api="openmp"):
        for name, compared in (("openmm", openmm_rows), ("torchpme", torch_rows)):
            try:
                modules = [importlib.import_module(name)]
                modules += [importlib.import_module(other) for other in ("torch", "vesin") if name == "torchpme"]
            except ImportError:
                rows.append(absent(f"against {name}", GET[name]))
                continue
            rows += compared(modules, here, asked.repeat, space)
    return rows


def ions(n: int) -> Ions:
    """Return ions as the module describes them; an odd `n` grows by one."""
    n += n % 2
    rng, m = np.random.default_rng(0), int(np.ceil(n ** (1 / 3)))
    sites = np.stack(np.unravel_index(rng.permutation(m**3)[:n], (m, m, m)))
    side = (m**3 / PER_NM3) ** (1 / 3)
    x = (sites + 0.5 + SHAKE * rng.uniform(-1, 1, (3, n))) * (side / m)
    q = np.where(np.arange(n) % 2, 1.0, -1.0)
    box = (side,) * 3
    potential = api.laplace(x, x, q, box=box, tolerance=EXACT)
    return Ions(x, q, side, potential, -q * api.laplace_grad(x, x, q, box=box, tolerance=EXACT))


def openmm_rows(modules: list[ModuleType], here: Ions, repeat: int, space: Space) -> list[Row]:
    """Return rows of forces at the tolerances of `OPENMM_ASKED`."""
    rows: list[Row] = []
    for asked in OPENMM_ASKED:
        cutoffs = [cutoff for cutoff in OPENMM_CUTOFFS if 2 * cutoff <= here.side]
        runs = [openmm_forces(modules[0], here, asked, c, workers(space)) for c in cutoffs or [0.49 * here.side]]
        theirs = fastest(runs, here)
        wanted = _agreeing("OpenMM", _error(theirs(here.x), here.forces))
        double, reached = _forces_within(wanted, here, space, np.float64)
        single, other = _forces_within(wanted, here, space, np.float32)
        times = turns([_each(run, here) for run in (theirs, double, single)], repeat)
        name = f"forces, N = {len(here.q):,}, moved points, ewaldErrorTolerance {asked:g}"
        count, about = len(here.q) / 1e6, {"tolerance": asked}
        first = row(f"{name}: OpenMM, single", times[0], count, "M particles", error=wanted, **about)
        rows.append(first)
        rows.append(row(f"{name}: parki, double", times[1], count, "M particles", first, error=reached, **about))
        rows.append(row(f"{name}: parki, single", times[2], count, "M particles", first, error=other, **about))
    return rows


def openmm_forces(
    openmm: ModuleType, here: Ions, asked: float, cutoff: float, threads: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from positions to forces (3, n) in parki's units."""
    system, force = openmm.System(), openmm.NonbondedForce()
    system.setDefaultPeriodicBoxVectors(*(np.eye(3) * here.side))
    force.setNonbondedMethod(openmm.NonbondedForce.PME)
    force.setCutoffDistance(cutoff)
    force.setEwaldErrorTolerance(asked)
    force.setUseDispersionCorrection(False)
    for charge in here.q:
        system.addParticle(1.0)
        force.addParticle(float(charge), 1.0, 0.0)
    system.addForce(force)
    platform = openmm.Platform.getPlatform("CPU")
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), platform, {"Threads": str(threads)})
    unit = openmm.unit.kilojoule_per_mole / openmm.unit.nanometer

    def run(x: np.ndarray) -> np.ndarray:
        context.setPositions(np.ascontiguousarray(x.T))
        found = context.getState(getForces=True).getForces(asNumpy=True)
        return found.value_in_unit(unit).T / COULOMB

    return run


def _forces_within(
    wanted: float, here: Ions, space: Space, dtype: type
) -> tuple[Callable[[np.ndarray], np.ndarray], float]:
    """Return a run of parki's plan at the largest tolerance tried whose forces are within an error, and their error."""
    made: list[Callable[[np.ndarray], np.ndarray]] = []
    q = here.q.astype(dtype)

    def error(tolerance: float) -> float:
        x, box = here.x.astype(dtype), (here.side,) * 3
        plan = api.plan("laplace_grad", x, x, box=box, tolerance=tolerance, execution_space=space)

        def run(points: np.ndarray) -> np.ndarray:
            plan.move(points.astype(dtype, copy=False))
            return -q * plan(q)

        made.append(run)
        return _error(run(here.x), here.forces)

    _, reached = reaching(error, wanted)
    return made[-1], reached


def torch_rows(modules: list[ModuleType], here: Ions, repeat: int, space: Space) -> list[Row]:
    """Return rows of potentials, and of potentials and forces, at a coarse and a fine setting."""
    rows: list[Row] = []
    torch = modules[1]
    before = torch.get_num_threads()
    torch.set_num_threads(workers(space))
    try:
        for setting, forces in itertools.product(TORCH, (False, True)):
            per_cutoff, per_smearing, nodes = TORCH[setting]
            meshes = torch_meshes(here, per_cutoff / per_smearing)
            runs = [torch_sum(modules, here, cut, cut / per_cutoff, mesh, nodes, forces) for cut, mesh in meshes]
            theirs = fastest(runs, here, warm=False)
            exact = here.forces if forces else here.potential
            wanted = _agreeing("torch-pme", _error(theirs(here.x), exact))
            tolerance, reached = reaching(
                lambda t, f=forces, e=exact: _error(_sums(here.x, here, t, f, space), e), wanted
            )

            def ours(x: np.ndarray, t: float = tolerance, forces: bool = forces) -> np.ndarray:
                return _sums(x, here, t, forces, space)

            times = turns([_each(run, here) for run in (theirs, ours)], repeat, warm=False)
            what = "potentials and forces" if forces else "potentials"
            name, count = f"{what}, N = {len(here.q):,}, {setting}", len(here.q) / 1e6
            rows.append(row(f"{name}: torch-pme", times[0], count, "M particles", error=wanted))
            rows.append(row(f"{name}: parki", times[1], count, "M particles", rows[-1], error=reached))
    finally:
        torch.set_num_threads(before)
    return rows


def torch_meshes(here: Ions, per_mesh: float) -> list[tuple[float, int]]:
    """Return cutoffs in reach, `per_mesh` mesh spacings long, and the mesh points along a side, powers of two."""
    longest = min(TORCH_CUTOFFS[1] * PER_NM3 ** (-1 / 3), 0.49 * here.side)
    shortest = min(TORCH_CUTOFFS[0] * PER_NM3 ** (-1 / 3), 0.5 * longest)
    found = [(per_mesh * here.side / 2**k, 2**k) for k in range(2, 12)]
    return [(cutoff, mesh) for cutoff, mesh in found if shortest <= cutoff <= longest]


def torch_sum(
    modules: list[ModuleType], here: Ions, cutoff: float, smearing: float, mesh: int, nodes: int, forces: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from positions to potentials (n,), or to forces (3, n) after the potentials."""
    torchpme, torch, vesin = modules
    potential = torchpme.CoulombPotential(smearing=smearing)
    # PMECalculator rounds 2 side / spacing + 1 points up to a power of two: ask for slightly fewer.
    spacing = 2.0 * here.side / (mesh - 1.01)
    settings = {"mesh_spacing": spacing, "interpolation_nodes": nodes, "full_neighbor_list": False}
    calculator = torchpme.PMECalculator(potential, **settings).to(torch.float64)
    neighbours = vesin.NeighborList(cutoff=cutoff, full_list=False)
    cell, charges = torch.eye(3, dtype=torch.float64) * here.side, torch.from_numpy(here.q[:, None].copy())

    def run(x: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(x.T)
        i, j, shifts = neighbours.compute(points=rows, box=cell.numpy(), periodic=True, quantities="ijS")
        pairs = torch.from_numpy(np.stack([i, j], axis=1).astype(np.int64))
        positions = torch.from_numpy(rows).requires_grad_(forces)
        images = torch.from_numpy(shifts.astype(np.float64)) @ cell
        distances = torch.linalg.norm(positions[pairs[:, 1]] - positions[pairs[:, 0]] + images, dim=1)
        # The calculator returns half the potential, so that charges times result is the energy.
        found = calculator(charges, cell, positions, pairs, distances)
        if not forces:
            return 2.0 * found[:, 0].numpy()
        (charges * found).sum().backward()
        return -positions.grad.numpy().T

    return run


def _sums(x: np.ndarray, here: Ions, tolerance: float, forces: bool, space: Space) -> np.ndarray:
    """Return parki's potentials (n,), or forces (3, n) after the potentials, by whole calls."""
    options = {"box": (here.side,) * 3, "tolerance": tolerance, "execution_space": space}
    potential = api.laplace(x, x, here.q, **options)
    return -here.q * api.laplace_grad(x, x, here.q, **options) if forces else potential


def fastest(
    runs: list[Callable[[np.ndarray], np.ndarray]], here: Ions, warm: bool = True
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the run of the least time in one turn; with `warm`, a turn that does not count comes before."""
    if len(runs) == 1:
        return runs[0]
    times = turns([_each(run, here) for run in runs], 1, warm)
    return runs[int(np.argmin([min(found) for found in times]))]


def _each(run: Callable[[np.ndarray], np.ndarray], here: Ions) -> Callable[[], float]:
    """Return a function that times a run on new points, which are made before the clock starts."""
    points = here.moved()

    def measure() -> float:
        x = next(points)
        return clock(lambda: run(x))()

    return measure


def _agreeing(name: str, error: float) -> float:
    if not error < AGREE:
        raise RuntimeError(f"{name} and parki differ by {error:.1e}; expected the same sums")
    return error


def _error(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
