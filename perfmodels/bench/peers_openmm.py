"""Compare energies and forces of a box of water with OpenMM's, bonded pairs left out, on one thread.

Run `python -m perfmodels.bench.peers_openmm examples/data/water.npz`, from the root of the repository.  The file has
points `src` (3, N), nm, three sites a molecule, charges `dens` (N,) in e, and side lengths `box` (3,).  Results are
in kJ/mol and kJ/mol/nm.

* A step of parki is `plan.move(x)` and `plan.energy_forces(q)`, of points in double or single precision; also for
  points in double precision the far field is in single precision at large tolerances, by parki's own choice.
* A step of OpenMM is `context.setPositions(x)` and a state with energy and forces.  Its CPU platform computes in
  single precision, its Reference platform in double precision and without regard to speed.  Both leave Lennard-Jones
  terms out: a well depth is zero.  A sweep of cutoffs, of error tolerances and of grids finds its best parameters; a
  simulation with Lennard-Jones terms has no freedom to take the short cutoffs.

Molecules are whole for OpenMM, which takes no nearest image of an excluded pair.  The process keeps to one core, as
OpenMM may start another thread for its grid.  A turn is 20 steps along straight paths, molecules at thermal speed, a
femtosecond a step: neighbour lists live as long as in a simulation.  Time is that of the fastest turn over its steps.
Errors are those of the first step, against parki at a tolerance of 1e-11, which is checked against a plain Ewald sum of
OpenMM.  A star marks the rows of OpenMM that no other of its rows beats in both time and error.
"""

import argparse
import importlib
import itertools
import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import parki
from parki.perfmodels.bench.measure import clock, turns

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
    def of(cls, file: Path) -> "Water":
        """Read a file, and bring the hydrogens of a molecule to its oxygen."""
        with np.load(file) as held:
            x, q, box = held["src"], held["dens"], held["box"]
        sites = x.reshape(3, -1, 3)
        away = sites - sites[:, :, :1]
        away -= box[:, None, None] * np.round(away / box[:, None, None])
        return cls((sites[:, :, :1] + away).reshape(3, -1), q, box)

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
class Row:
    """A configuration: a step from points to energy and forces, its points, measured errors and seconds."""

    program: str
    precision: str
    parameters: str
    step: Callable[[np.ndarray], Found]
    points: list[np.ndarray]
    force_error: float
    energy_error: float
    seconds: float = math.nan

    def turn(self) -> float:
        """Return the seconds a step of one turn."""
        return clock(lambda: [self.step(x) for x in self.points])() / len(self.points)


def errors(found: Found, exact: Found) -> tuple[float, float]:
    """Return the relative RMS error of forces, and the relative error of the energy."""
    force = np.linalg.norm(found[1] - exact[1]) / np.linalg.norm(exact[1])
    return float(force), abs(found[0] / exact[0] - 1)


def parki_step(
    water: Water, tolerance: float, dtype: type = np.float64, **options: Any
) -> Callable[[np.ndarray], Found]:
    """Return a step of parki on one thread."""
    x, q = water.x.astype(dtype), water.q.astype(dtype)
    options |= {"box": water.box, "exclude": water.pairs, "gradient": True, "threads": 1}
    plan = parki.ewald.plan("laplace", x, x, tolerance=tolerance, **options)

    def step(points: np.ndarray) -> Found:
        plan.move(points)
        energy, forces, _ = plan.energy_forces(q)
        return COULOMB * float(energy), COULOMB * forces

    return step


def imported() -> ModuleType:
    """Import OpenMM, or end with advice."""
    try:
        return importlib.import_module("openmm")
    except ImportError:
        sys.exit('this comparison needs OpenMM: pip install "parki[bench]"')


def openmm_charges(openmm: ModuleType, water: Water, method: str, cutoff: float, asked: float) -> Any:
    """Return a NonbondedForce of the charges alone, bonded pairs left out."""
    force = openmm.NonbondedForce()
    force.setNonbondedMethod(getattr(openmm.NonbondedForce, method))
    force.setCutoffDistance(cutoff)
    force.setEwaldErrorTolerance(asked)
    for charge in water.q:
        force.addParticle(float(charge), 1.0, 0.0)
    for i, j in water.pairs.T:
        force.addException(int(i), int(j), 0.0, 1.0, 0.0)
    return force


def openmm_step(
    openmm: ModuleType, water: Water, platform: str, asked: float, cutoff: float, grid: float = 1.0, method: str = "PME"
) -> tuple[Callable[[np.ndarray], Found], str]:
    """Return a step of OpenMM on one thread, of points (N, 3), and the grid as text."""
    force = openmm_charges(openmm, water, method, cutoff, asked)
    alpha = math.sqrt(-math.log(2 * asked)) / cutoff
    sizes = [math.ceil(grid * 2 * alpha * side / (3 * asked**0.2)) for side in water.box]
    if method == "PME":
        force.setPMEParameters(alpha, *sizes)  # OpenMM's own with a grid of 1.0
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors(*np.diag(water.box))
    for _ in water.q:
        system.addParticle(1.0)
    system.addForce(force)
    threads = {"Threads": "1"} if platform == "CPU" else {}
    platform = openmm.Platform.getPlatform(platform)
    context = openmm.Context(system, openmm.VerletIntegrator(FEMTOSECOND), platform, threads)
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


def reference(openmm: ModuleType, water: Water) -> tuple[Found, tuple[float, float]]:
    """Return energy and forces by parki at a tolerance of 1e-11, and the errors of OpenMM's plain Ewald sum."""
    exact = parki_step(water, EXACT)(water.x)
    step, _ = openmm_step(openmm, water, "Reference", 1e-11, 0.49 * min(water.box), method="Ewald")
    return exact, errors(step(water.x.T.copy()), exact)


def configurations(openmm: ModuleType, water: Water, exact: Found) -> Iterator[Row]:
    """Make the rows of both programs, with errors and without times."""
    paths = water.paths()
    for precision, dtype in (("double", np.float64), ("single", np.float32)):
        points = [x.astype(dtype) for x in paths]
        for tolerance in TOLERANCES[precision]:
            step = parki_step(water, tolerance, dtype)
            yield Row("parki", precision, f"tolerance {tolerance:.1e}", step, points, *errors(step(points[0]), exact))
    points = [np.ascontiguousarray(x.T) for x in paths]
    for platform, choices in SWEEPS.items():
        precision, steps = ("single", STEPS) if platform == "CPU" else ("double", 2)
        for cutoff, asked, grid in choices:
            step, sizes = openmm_step(openmm, water, platform, asked, cutoff, grid)
            parameters, found = f"cutoff {cutoff} nm, {asked:g}, grid {sizes}", errors(step(points[0]), exact)
            yield Row(f"OpenMM {platform}", precision, parameters, step, points[:steps], *found)


def table(rows: list[Row]) -> str:
    """Return the rows as text; each of OpenMM names parki's fastest row, in either precision, that is as exact."""
    heads = [f"{'program':<20}{'precision':<10}{'parameters':<40}{'forces':>9}{'energy':>9}{'ms a step':>10}"]
    heads += [f"   parki, {precision:<16}" for precision in TOLERANCES]
    lines = ["".join(heads)]
    for row in rows:
        others = (r for r in rows if r.program == row.program and r is not row)
        beaten = any(r.seconds <= row.seconds and r.force_error <= row.force_error for r in others)
        name = row.program + " *" * (row.program != "parki" and not beaten)
        line = f"{name:<20}{row.precision:<10}{row.parameters:<40}{row.force_error:>9.1e}{row.energy_error:>9.1e}"
        line += f"{1e3 * row.seconds:>10.2f}"
        for precision in TOLERANCES if row.program != "parki" else ():
            ours = [r for r in rows if r.program == "parki" and r.precision == precision]
            best = min((r for r in ours if r.force_error <= row.force_error), key=lambda r: r.seconds, default=None)
            said = f"{row.seconds / best.seconds:.2f} x, {best.parameters}" if best else "none as exact"
            line += f"   {said:<23}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Compare both programs and print the table."""
    parser = argparse.ArgumentParser(description="Energies and forces of a box of water: parki and OpenMM.")
    parser.add_argument("file", type=Path, help="box of water, as examples/data/water.npz")
    parser.add_argument("--repeat", type=int, default=5, help="turns of each configuration (5)")
    parser.add_argument("--drift", type=float, metavar="PS", help="the energy's drift, too, in runs of this length")
    asked = parser.parse_args(arguments)
    openmm = imported()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    water = Water.of(asked.file)
    exact, (force, energy) = reference(openmm, water)
    rows = list(configurations(openmm, water, exact))
    found = turns([row.turn for row in rows], asked.repeat)
    rows = [replace(row, seconds=min(times)) for row, times in zip(rows, found, strict=True)]
    said = f"parki {parki.__version__}, OpenMM {openmm.__version__}: {len(water.q)} atoms, {exact[0]:.6f} kJ/mol\n"
    said += f"parki at {EXACT:g} and OpenMM's Ewald sum differ by {force:.1e} in forces, {energy:.1e} in energy\n"
    said += "2.00 x: OpenMM takes twice the time of parki's fastest row whose forces are as exact\n"
    print(f"{said}\n{table(rows)}", flush=True)  # noqa: T201
    if asked.drift:
        from parki.perfmodels.bench import drift_openmm  # imported here, as drift_openmm imports this module

        drift_openmm.main([str(asked.file), "--ps", str(asked.drift)])


if __name__ == "__main__":
    main()
