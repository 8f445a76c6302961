"""Laplace sums in a periodic box against OpenMM, torch-pme and ESP, at the same measured error: `parki bench peers`.

Neutral charges ±1 on the sites of a shaken lattice, about as close to each other as atoms are: no pair is closer than
0.3 spacings.  Each run has new points, so that all programs make their neighbour lists anew.  The comparisons are:

* OpenMM's CPU platform, forces: a Context that is made before, then positions in, forces out, in single precision.
  Parki: a plan of `laplace_grad` that is made before, then moved and applied; in both precisions.
* torch-pme, potentials, and forces by the framework's derivative of the energy, in double precision: a neighbour list
  of vesin, the calculator, the derivative.  Parki: whole calls of `laplace` and `laplace_grad`.
* ESP of DMK, potentials: a plan that is made before.  Parki: a plan of `laplace` that is made before, then moved and
  applied, or applied alone.

The cutoffs of OpenMM and ESP, and the cutoff and mesh of torch-pme, are the fastest of a few for the error they aim at.
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
from parki.perfmodels.bench import peers_free_programs
from parki.perfmodels.bench.free import reaching
from parki.perfmodels.bench.measure import Row, absent, clock, require_host, row, turns
from parki.perfmodels.bench.peers_esp import Esp
from parki.plan import Plan

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
ESP_ASKED = (1e-4, 1e-5, 1e-6, 1e-8)
ESP_CUTOFFS = (2.0, 2.5, 3.0, 3.5, 4.0, 5.0)  # lattice spacings
ESP = "dmk", "https://github.com/flatironinstitute/dmk"  # name of the library, and its page
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


def peers(args: argparse.Namespace, space: Space) -> list[Row]:
    """Return rows for each peer that is installed, and for each other peer a row on its installation.

    Raises
    ------
    ValueError
        If the space is not on the host.
    RuntimeError
        If a peer and parki disagree.
    """
    require_host(space)
    paths = peers_free_programs.library_paths(getattr(args, "library", None) or (), ESP[:1])
    library = peers_free_programs.loaded(ESP[0], Esp, paths[ESP[0]]) if paths else None
    system, rows = ions(args.n), []
    with threadpool_limits(workers(space), user_api="openmp"):
        for name, measure in (("openmm", openmm_rows), ("torchpme", torch_rows)):
            try:
                modules = [importlib.import_module(name)]
                modules += [
                    importlib.import_module(name_of_module)
                    for name_of_module in ("torch", "vesin")
                    if name == "torchpme"
                ]
            except ImportError:
                rows.append(absent(f"against {name}", GET[name]))
                continue
            rows += measure(modules, system, args.repeat, space)
        rows += (
            [absent("against ESP", peers_free_programs.advice(*ESP))]
            if library is None
            else esp_rows(library, system, args.repeat, space)
        )
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


def openmm_rows(modules: list[ModuleType], system: Ions, repeat: int, space: Space) -> list[Row]:
    """Return rows of forces at the tolerances of `OPENMM_ASKED`."""
    rows: list[Row] = []
    for tolerance in OPENMM_ASKED:
        cutoffs = [cutoff for cutoff in OPENMM_CUTOFFS if 2 * cutoff <= system.side]
        runs = [
            openmm_forces(modules[0], system, tolerance, c, workers(space)) for c in cutoffs or [0.49 * system.side]
        ]
        openmm_run = fastest(runs, system)
        target = agreeing("OpenMM", relative(openmm_run(system.x), system.forces))
        double, error_double = _forces_within(target, system, space, np.float64)
        single, error_single = _forces_within(target, system, space, np.float32)
        times = turns([_each(run, system) for run in (openmm_run, double, single)], repeat)
        name = f"forces, N = {len(system.q):,}, moved points, ewaldErrorTolerance {tolerance:g}"
        count, details = len(system.q) / 1e6, {"tolerance": tolerance}
        first = row(f"{name}: OpenMM, single", times[0], count, "M particles", error=target, **details)
        rows.append(first)
        rows.append(row(f"{name}: parki, double", times[1], count, "M particles", first, error=error_double, **details))
        rows.append(row(f"{name}: parki, single", times[2], count, "M particles", first, error=error_single, **details))
    return rows


def openmm_forces(
    openmm: ModuleType, system_of_ions: Ions, tolerance: float, cutoff: float, threads: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from positions to forces (3, n) in parki's units."""
    system, force = openmm.System(), openmm.NonbondedForce()
    system.setDefaultPeriodicBoxVectors(*(np.eye(3) * system_of_ions.side))
    force.setNonbondedMethod(openmm.NonbondedForce.PME)
    force.setCutoffDistance(cutoff)
    force.setEwaldErrorTolerance(tolerance)
    force.setUseDispersionCorrection(False)
    for charge in system_of_ions.q:
        system.addParticle(1.0)
        force.addParticle(float(charge), 1.0, 0.0)
    system.addForce(force)
    platform = openmm.Platform.getPlatform("CPU")
    context = openmm.Context(system, openmm.VerletIntegrator(0.001), platform, {"Threads": str(threads)})
    unit = openmm.unit.kilojoule_per_mole / openmm.unit.nanometer

    def run(x: np.ndarray) -> np.ndarray:
        context.setPositions(np.ascontiguousarray(x.T))
        forces = context.getState(getForces=True).getForces(asNumpy=True)
        return forces.value_in_unit(unit).T / COULOMB

    return run


def _forces_within(
    target: float, system: Ions, space: Space, dtype: type
) -> tuple[Callable[[np.ndarray], np.ndarray], float]:
    """Return a run of parki's plan at the largest tolerance tried whose forces are within an error, and their error."""
    runs: list[Callable[[np.ndarray], np.ndarray]] = []
    q = system.q.astype(dtype)

    def error(tolerance: float) -> float:
        x, box = system.x.astype(dtype), (system.side,) * 3
        plan = api.plan("laplace_grad", x, x, box=box, tolerance=tolerance, execution_space=space)

        def run(points: np.ndarray) -> np.ndarray:
            plan.move(points.astype(dtype, copy=False))
            return -q * plan(q)

        runs.append(run)
        return relative(run(system.x), system.forces)

    _, error_reached = reaching(error, target)
    return runs[-1], error_reached


def torch_rows(modules: list[ModuleType], system: Ions, repeat: int, space: Space) -> list[Row]:
    """Return rows of potentials, and of potentials and forces, at a coarse and a fine setting."""
    rows: list[Row] = []
    torch = modules[1]
    threads = torch.get_num_threads()
    torch.set_num_threads(workers(space))
    try:
        for setting, forces in itertools.product(TORCH, (False, True)):
            per_cutoff, per_smearing, nodes = TORCH[setting]
            meshes = torch_meshes(system, per_cutoff / per_smearing)
            runs = [torch_sum(modules, system, cut, cut / per_cutoff, mesh, nodes, forces) for cut, mesh in meshes]
            torch_run = fastest(runs, system, warm=False)
            exact = system.forces if forces else system.potential
            target = agreeing("torch-pme", relative(torch_run(system.x), exact))
            tolerance, error_reached = reaching(
                lambda t, f=forces, e=exact: relative(_sums(system.x, system, t, f, space), e), target
            )

            def ours(x: np.ndarray, t: float = tolerance, forces: bool = forces) -> np.ndarray:
                return _sums(x, system, t, forces, space)

            times = turns([_each(run, system) for run in (torch_run, ours)], repeat, warm=False)
            title = "potentials and forces" if forces else "potentials"
            name, count = f"{title}, N = {len(system.q):,}, {setting}", len(system.q) / 1e6
            rows.append(row(f"{name}: torch-pme", times[0], count, "M particles", error=target))
            rows.append(row(f"{name}: parki", times[1], count, "M particles", rows[-1], error=error_reached))
    finally:
        torch.set_num_threads(threads)
    return rows


def torch_meshes(system: Ions, per_mesh: float) -> list[tuple[float, int]]:
    """Return cutoffs in reach, `per_mesh` mesh spacings long, and the mesh points along a side, powers of two."""
    longest = min(TORCH_CUTOFFS[1] * PER_NM3 ** (-1 / 3), 0.49 * system.side)
    smallest = min(TORCH_CUTOFFS[0] * PER_NM3 ** (-1 / 3), 0.5 * longest)
    candidates = [(per_mesh * system.side / 2**k, 2**k) for k in range(2, 12)]
    return [(cutoff, mesh) for cutoff, mesh in candidates if smallest <= cutoff <= longest]


def torch_sum(
    modules: list[ModuleType], system: Ions, cutoff: float, smearing: float, mesh: int, nodes: int, forces: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from positions to potentials (n,), or to forces (3, n) after the potentials."""
    torchpme, torch, vesin = modules
    potential = torchpme.CoulombPotential(smearing=smearing)
    # PMECalculator rounds 2 side / spacing + 1 points up to a power of two: ask for slightly fewer.
    spacing = 2.0 * system.side / (mesh - 1.01)
    settings = {"mesh_spacing": spacing, "interpolation_nodes": nodes, "full_neighbor_list": False}
    calculator = torchpme.PMECalculator(potential, **settings).to(torch.float64)
    neighbours = vesin.NeighborList(cutoff=cutoff, full_list=False)
    cell, charges = torch.eye(3, dtype=torch.float64) * system.side, torch.from_numpy(system.q[:, None].copy())

    def run(x: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(x.T)
        i, j, shifts = neighbours.compute(points=rows, box=cell.numpy(), periodic=True, quantities="ijS")
        pairs = torch.from_numpy(np.stack([i, j], axis=1).astype(np.int64))
        positions = torch.from_numpy(rows).requires_grad_(forces)
        images = torch.from_numpy(shifts.astype(np.float64)) @ cell
        distances = torch.linalg.norm(positions[pairs[:, 1]] - positions[pairs[:, 0]] + images, dim=1)
        # The calculator returns half the potential, so that charges times result is the energy.
        potentials = calculator(charges, cell, positions, pairs, distances)
        if not forces:
            return 2.0 * potentials[:, 0].numpy()
        (charges * potentials).sum().backward()
        return -positions.grad.numpy().T

    return run


def _sums(x: np.ndarray, system: Ions, tolerance: float, forces: bool, space: Space) -> np.ndarray:
    """Return parki's potentials (n,), or forces (3, n) after the potentials, by whole calls."""
    options = {"box": (system.side,) * 3, "tolerance": tolerance, "execution_space": space}
    potential = api.laplace(x, x, system.q, **options)
    return -system.q * api.laplace_grad(x, x, system.q, **options) if forces else potential


def esp_rows(library: Esp, system: Ions, repeat: int, space: Space) -> list[Row]:
    """Return rows of potentials at the tolerances of `ESP_ASKED`."""
    rows: list[Row] = []
    spacing, options = PER_NM3 ** (-1 / 3), {"box": (system.side,) * 3, "execution_space": space}
    cutoffs = [cutoff * spacing for cutoff in ESP_CUTOFFS if cutoff * spacing < 0.49 * system.side]
    for eps in ESP_ASKED:
        esp_run = fastest([library.potentials(system.side, system.q, eps, cutoff) for cutoff in cutoffs], system)
        target = agreeing("ESP", relative(esp_run(system.x), system.potential))
        tolerance, error_reached = reaching(
            lambda t: relative(_sums(system.x, system, t, False, space), system.potential), target
        )
        plan = api.plan("laplace", system.x, system.x, tolerance=tolerance, **options)

        def moved(x: np.ndarray, plan: Plan = plan) -> np.ndarray:
            plan.move(x)
            return plan(system.q)

        def applied(x: np.ndarray, plan: Plan = plan) -> np.ndarray:
            return plan(system.q)

        times = turns([_each(run, system) for run in (esp_run, moved, applied)], repeat)
        name, count = f"potentials, N = {len(system.q):,}, eps {eps:g}", len(system.q) / 1e6
        first = row(f"{name}: ESP", times[0], count, "M particles", error=target)
        details = {"error": error_reached, "tolerance": tolerance}
        rows.append(first)
        rows.append(row(f"{name}: parki, moved points", times[1], count, "M particles", first, **details))
        rows.append(row(f"{name}: parki, new charges", times[2], count, "M particles", first, **details))
    return rows


def fastest(
    runs: list[Callable[[np.ndarray], np.ndarray]], system: Ions, warm: bool = True
) -> Callable[[np.ndarray], np.ndarray]:
    """Return the run of the least time in one turn; with `warm`, a turn that does not count comes before."""
    if len(runs) == 1:
        return runs[0]
    times = turns([_each(run, system) for run in runs], 1, warm)
    return runs[int(np.argmin([min(times_of_run) for times_of_run in times]))]


def _each(run: Callable[[np.ndarray], np.ndarray], system: Ions) -> Callable[[], float]:
    """Return a function that times a run on new points, which are made before the clock starts."""
    points = system.moved()

    def measure() -> float:
        x = next(points)
        return clock(lambda: run(x))()

    return measure


def agreeing(name: str, error: float) -> float:
    """Return the error of a program; raise RuntimeError if it is that of another sum."""
    if not error < AGREE:
        raise RuntimeError(f"{name} and parki differ by {error:.1e}; expected the same sums")
    return error


def relative(result: np.ndarray, exact: np.ndarray) -> float:
    """Return the error of a result relative to the exact one, in the 2-norm."""
    return float(np.linalg.norm(result - exact) / np.linalg.norm(exact))
