"""Energies and forces of a box of water beside OpenMM, bonded pairs left out: `parki bench water`.

The box is that of the examples, with three sites a molecule, repeated along its sides to about the atoms asked for.
Lengths are in nm, charges in e, results in kJ/mol and kJ/mol/nm.

* A step of parki is `plan.move(x)` and `plan.energy_forces(q)`, of points in double or single precision; also for
  points in double precision the far field is in single precision at large tolerances, by parki's own choice.
* A step of OpenMM is `context.setPositions(x)` and a state with energy and forces.  Its CPU platform computes in
  single precision, its Reference platform in double precision and without regard to speed.  Both leave Lennard-Jones
  terms out: a well depth is zero.  A sweep of cutoffs, of error tolerances and of grids finds its best parameters; a
  simulation with Lennard-Jones terms has no freedom to take the short cutoffs.

Molecules are whole for OpenMM, which takes no nearest image of an excluded pair.  The process keeps to as many cores as
there are threads, one unless threads are asked for, as OpenMM may start another thread for its grid.  A turn is 20
steps along straight paths, molecules at thermal speed, a femtosecond a step: neighbour lists live as long as in a
simulation.  Time is that of a turn over its steps.  Errors are those of the first step, against parki at a tolerance of
1e-11, which is checked against a plain Ewald sum of OpenMM.  A star marks the rows of OpenMM that no other of its rows
beats in both time and error.
"""

import argparse
import contextlib
import importlib
import importlib.resources
import itertools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

import parki
from parki.engine import Space, workers
from parki.perfmodels.bench import measure
from parki.perfmodels.bench.measure import Row, absent, clock, require_host, row, turns

ABSENT = "against openmm", "pip install openmm"
WATER = "parki.examples.data", "water.npz"  # package and file of the box
AGREE = 1e-7  # relative error; OpenMM's plain Ewald sum with a larger one sums something else
EXACT = 1e-11  # tolerance of the reference
COULOMB = parki.units.coulomb("nm", "kJ/mol")
OPENMM_COULOMB = 138.93545764438198  # kJ nm / (mol e²), OpenMM's constant, of an older CODATA
TOLERANCES = {"double": [10.0 ** (-k / 2) for k in range(5, 15)], "single": [10.0 ** (-k / 2) for k in range(5, 11)]}
CUTOFFS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.2)  # nm
ASKED = (1e-3, 5e-4, 1e-4, 1e-5, 1e-6)  # ewaldErrorTolerance
GRIDS = (1.0, 0.75, 0.55)  # share of OpenMM's own grid points along a side, which are more than needed
#: Platform → cutoff, error tolerance and grid; short cutoffs with small errors take long, and are never best.
SWEEPS = {
    "CPU": [c for c in itertools.product(CUTOFFS, ASKED, GRIDS) if c[0] > 0.75 or c[1] > 1e-6],
    "Reference": [(0.9, 1e-4, 1.0), (0.9, 1e-5, 1.0), (0.9, 1e-6, 1.0), (0.9, 1e-7, 1.0)],
}
STEPS, FEMTOSECOND = 20, 1e-3  # steps of a turn; ps of a step
SPEED = 0.37  # nm/ps along an axis, of a water molecule at 300 K

Found = tuple[float, np.ndarray]  # energy, and forces (3, N)


@dataclass(frozen=True)
class Water:
    """Whole molecules: points (3, N) of the sites O, H, H of each, charges (N,), side lengths (3,)."""

    x: np.ndarray
    q: np.ndarray
    box: np.ndarray

    @classmethod
    def of(cls, n: int) -> "Water":
        """Read the box, bring the hydrogens of a molecule to its oxygen, and repeat the box to about `n` atoms."""
        package, name = WATER
        with importlib.resources.files(package).joinpath(name).open("rb") as file, np.load(file) as contents:
            x, q, box = contents["src"], contents["dens"], contents["box"]
        sites = x.reshape(3, -1, 3)
        offsets = sites - sites[:, :, :1]
        offsets -= box[:, None, None] * np.round(offsets / box[:, None, None])
        times = max(1, round((n / len(q)) ** (1 / 3)))
        corners = box[:, None] * np.indices((times,) * 3).reshape(3, -1)
        copies = (sites[:, :, :1] + offsets).reshape(3, 1, -1) + corners[:, :, None]
        return cls(copies.reshape(3, -1), np.tile(q, times**3), times * box)

    @property
    def pairs(self) -> np.ndarray:
        """Excluded pairs (2, N), three of each molecule."""
        first = np.arange(0, len(self.q), 3)
        return np.concatenate([[first + i, first + j] for i, j in ((0, 1), (0, 2), (1, 2))], axis=1)

    def paths(self) -> list[np.ndarray]:
        """Return the points of each step of a turn."""
        speeds = SPEED * np.random.default_rng(0).standard_normal((3, len(self.q) // 3))
        return [self.x + k * FEMTOSECOND * np.repeat(speeds, 3, axis=1) for k in range(STEPS)]


@dataclass(frozen=True)
class Configuration:
    """Parameters of a program: a step from points to energy and forces, its points, tolerance and measured errors."""

    program: str
    precision: str
    parameters: str
    tolerance: float
    step: Callable[[np.ndarray], Found]
    points: list[np.ndarray]
    force_error: float
    energy_error: float

    def turn(self) -> float:
        """Return the seconds a step of one turn."""
        return clock(lambda: [self.step(x) for x in self.points])() / len(self.points)

    def row(self, times: Sequence[float], n: int, threads: int) -> Row:
        """Return the row of measured seconds a step, of `n` atoms on some threads."""
        title = f"{self.program}, {self.precision}: {self.parameters}"
        details = {name: getattr(self, name) for name in ("program", "precision", "parameters", "tolerance")}
        details |= {"n": n, "threads": threads, "error": self.force_error, "energy_error": self.energy_error}
        return row(title, times, n / 1e6, "M atoms", **details)


def errors(result: Found, exact: Found) -> tuple[float, float]:
    """Return the relative RMS error of forces, and the relative error of the energy."""
    force = np.linalg.norm(result[1] - exact[1]) / np.linalg.norm(exact[1])
    return float(force), abs(result[0] / exact[0] - 1)


def parki_step(water: Water, tolerance: float, space: Space, dtype: type = np.float64) -> Callable[[np.ndarray], Found]:
    """Return a step of parki."""
    x, q = water.x.astype(dtype), water.q.astype(dtype)
    options = {"box": water.box, "exclude": water.pairs, "gradient": True, "execution_space": space}
    plan = parki.ewald.plan("laplace", x, x, tolerance=tolerance, **options)

    def step(points: np.ndarray) -> Found:
        plan.move(points)
        energy, forces, _ = plan.energy_forces(q)
        return COULOMB * float(energy), COULOMB * forces

    return step


def library() -> ModuleType | None:
    """Return OpenMM's module, None where it is not installed."""
    try:
        return importlib.import_module("openmm")
    except ImportError:
        return None


def one_core(args: argparse.Namespace, space: Space) -> Space:
    """Return the space to measure in, one core unless threads are asked for.

    Raises
    ------
    ValueError
        If the space is not on the host.
    """
    require_host(space)
    return space if args.threads else Space("Serial")


@contextlib.contextmanager
def kept_to(cores: int) -> Iterator[None]:
    """Keep the process to some of its cores, where the system allows it."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores_before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(cores_before)[-cores:]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores_before)


def openmm_charges(openmm: ModuleType, water: Water, method: str, cutoff: float, tolerance: float) -> Any:
    """Return a NonbondedForce of the charges alone, bonded pairs left out."""
    force = openmm.NonbondedForce()
    force.setNonbondedMethod(getattr(openmm.NonbondedForce, method))
    force.setCutoffDistance(cutoff)
    force.setEwaldErrorTolerance(tolerance)
    for charge in water.q:
        force.addParticle(float(charge), 1.0, 0.0)
    for i, j in water.pairs.T:
        force.addException(int(i), int(j), 0.0, 1.0, 0.0)
    return force


def openmm_step(
    openmm: ModuleType, water: Water, platform: str, tolerance: float, cutoff: float, grid: float = 1.0,
    method: str = "PME", threads: int = 1,
) -> tuple[Callable[[np.ndarray], Found], str]:  # fmt: skip
    """Return a step of OpenMM, of points (N, 3), and the grid as text."""
    force = openmm_charges(openmm, water, method, cutoff, tolerance)
    alpha = math.sqrt(-math.log(2 * tolerance)) / cutoff
    sizes = [math.ceil(grid * 2 * alpha * side / (3 * tolerance**0.2)) for side in water.box]
    if method == "PME":
        force.setPMEParameters(alpha, *sizes)  # OpenMM's own with a grid of 1.0
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors(*np.diag(water.box))
    for _ in water.q:
        system.addParticle(1.0)
    system.addForce(force)
    properties = {"Threads": str(threads)} if platform == "CPU" else {}
    platform = openmm.Platform.getPlatform(platform)
    context = openmm.Context(system, openmm.VerletIntegrator(FEMTOSECOND), platform, properties)
    scale, mole = COULOMB / OPENMM_COULOMB, openmm.unit.kilojoule_per_mole

    def step(points: np.ndarray) -> Found:
        context.setPositions(points)
        state = context.getState(getEnergy=True, getForces=True)
        forces = state.getForces(asNumpy=True).value_in_unit(mole / openmm.unit.nanometer)
        return scale * state.getPotentialEnergy().value_in_unit(mole), scale * forces.T

    if method != "PME":
        return step, "none"
    step(water.x.T.copy())  # OpenMM makes its grid with the first state only
    return step, "x".join(map(str, force.getPMEParametersInContext(context)[1:]))


def reference(openmm: ModuleType, water: Water, space: Space) -> Found:
    """Return energy and forces by parki at a tolerance of 1e-11.

    Raises
    ------
    RuntimeError
        If OpenMM's plain Ewald sum has others.
    """
    exact = parki_step(water, EXACT, space)(water.x)
    step, _ = openmm_step(openmm, water, "Reference", 1e-11, 0.49 * min(water.box), method="Ewald")
    if not (error := max(errors(step(water.x.T.copy()), exact))) < AGREE:
        raise RuntimeError(f"OpenMM and parki differ by {error:.1e}; expected the same sums")
    return exact


def configurations(openmm: ModuleType, box: Water, exact: Found, space: Space) -> Iterator[Configuration]:
    """Make the configurations of both programs, with their errors."""
    paths = box.paths()
    for precision, dtype in (("double", np.float64), ("single", np.float32)):
        points = [x.astype(dtype) for x in paths]
        for tolerance in TOLERANCES[precision]:
            step, parameters = parki_step(box, tolerance, space, dtype), f"tolerance {tolerance:.1e}"
            deviations = errors(step(points[0]), exact)
            yield Configuration("parki", precision, parameters, tolerance, step, points, *deviations)
    points = [np.ascontiguousarray(x.T) for x in paths]
    for platform, choices in SWEEPS.items():
        precision, steps = ("single", STEPS) if platform == "CPU" else ("double", 2)
        for cutoff, error_tolerance, grid in choices:
            step, sizes = openmm_step(openmm, box, platform, error_tolerance, cutoff, grid, threads=workers(space))
            parameters = f"cutoff {cutoff} nm, {error_tolerance:g}, grid {sizes}"
            deviations = errors(step(points[0]), exact)
            yield Configuration(
                f"OpenMM {platform}", precision, parameters, error_tolerance, step, points[:steps], *deviations
            )


def water(args: argparse.Namespace, space: Space) -> list[Row]:
    """Time steps of parki at its tolerances, and of OpenMM at a sweep of its parameters.

    Without OpenMM the only row says how to install it.

    Raises
    ------
    ValueError
        If the space is not on the host.
    RuntimeError
        If OpenMM and parki disagree.
    """
    space = one_core(args, space)
    if (openmm := library()) is None:
        return [absent(*ABSENT)]
    box = Water.of(args.n)
    with kept_to(workers(space)):
        rows = list(configurations(openmm, box, reference(openmm, box, space), space))
        seconds = turns([configuration.turn for configuration in rows], args.repeat)
    return [
        configuration.row(times, len(box.q), workers(space)) for configuration, times in zip(rows, seconds, strict=True)
    ]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text; each of OpenMM names parki's fastest row, in either precision, that is as exact."""
    if any("absent" in r for r in rows):
        return measure.table(rows)
    heads = [f"{'program':<20}{'precision':<10}{'parameters':<40}{'forces':>9}{'energy':>9}{'ms a step':>10}"]
    heads += [f"   parki, {precision:<16}" for precision in TOLERANCES]
    lines = ["".join(heads)]
    for r in rows:
        rivals = (rival for rival in rows if rival["program"] == r["program"] and rival is not r)
        is_beaten = any(rival["seconds"] <= r["seconds"] and rival["error"] <= r["error"] for rival in rivals)
        is_rival = r["program"] != "parki"
        name = r["program"] + " *" * (is_rival and not is_beaten)
        line = f"{name:<20}{r['precision']:<10}{r['parameters']:<40}{r['error']:>9.1e}{r['energy_error']:>9.1e}"
        line += f"{1e3 * r['seconds']:>10.2f}"
        for precision in TOLERANCES if is_rival else ():
            own_rows = [
                own_row for own_row in rows if (own_row["program"], own_row["precision"]) == ("parki", precision)
            ]
            exact = (own_row for own_row in own_rows if own_row["error"] <= r["error"])
            best = min(exact, key=lambda own_row: own_row["seconds"], default=None)
            comparison = f"{r['seconds'] / best['seconds']:.2f} x, {best['parameters']}" if best else "none as exact"
            line += f"   {comparison:<23}"
        lines.append(line.rstrip())
    return "\n".join([*lines, "2.00 x: OpenMM takes twice the time of parki's fastest row whose forces are as exact"])
