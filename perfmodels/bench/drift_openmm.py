"""Measure the drift of the energy of flexible water with forces of parki and of OpenMM, by OpenMM's Verlet integrator.

Run `python -m perfmodels.bench.drift_openmm examples/data/water.npz --ps 1`, from the root of the repository.  All
runs are in double precision, on OpenMM's Reference platform, and begin with the same positions and velocities: the
box of water, relaxed and heated to 300 K on the CPU platform.  Bonds and angles are springs, and oxygens have a
Lennard-Jones term with a smooth end at the cutoff, as in SPC/Fw water (Wu, Tepper & Voth 2006).  Only the
electrostatic part differs: PME of OpenMM, or parki in a PythonForce, whose far field is in single precision from a
tolerance of 1e-4 on, by its own choice.  The Reference platform is slow, so runs are short: 0.5 ps, 2000 steps, take
the better part of an hour.

A line is fitted to the total energy.  Its slope is the drift; the RMS distance from the line is the fluctuation, most
of all that of the integrator.  A run with nearly exact forces, parki at 1e-9, has the integrator's share of both.
Trajectories stay close together for a picosecond or so.  Therefore the difference from that run is free of most of the
fluctuation.  Its slope and its distance from its line are the shares of the forces' errors.
"""

import argparse
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from parki.perfmodels.bench.peers_openmm import EXACT, Water, errors, imported, openmm_charges, parki_step

KELVIN, TIMESTEP, EVERY = 300.0, 0.25e-3, 8  # K; ps; steps between two energies
OXYGEN, HYDROGEN = 15.9994, 1.008  # masses, Da
CHARGES = (-0.82, 0.41, 0.41)
BOND = (0.1012, 443153.4)  # nm, kJ/mol/nm²
ANGLE = (np.radians(113.24), 317.57)  # kJ/mol/rad²
SIGMA, EPSILON = 0.3165492, 0.650299  # of oxygens, nm, kJ/mol
SWITCH, CUTOFF = 0.75, 0.9  # nm, of the Lennard-Jones term
LENNARD_JONES = (
    f"step({CUTOFF}-r)*4*{EPSILON}*(s^2-s)*(1-step(t)*t^3*(10+t*(6*t-15)));"
    f"s=({SIGMA}/r)^6; t=(r-{SWITCH})/{CUTOFF - SWITCH}"
)
NEARLY_EXACT = 1e-9
TOLERANCES = (3e-3, 1e-3, 1e-4, 1e-5)
ASKED = (5e-4, 1e-4, 1e-5)  # ewaldErrorTolerance
ELECTRIC = 1  # force group

Force = Callable[[], Any]  # makes a force of OpenMM, which only one system may have


def flexible(openmm: ModuleType, water: Water, electric: Any) -> Any:
    """Return the system of flexible molecules with this electrostatic force."""
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors(*np.diag(water.box))
    bonds, angles = openmm.HarmonicBondForce(), openmm.HarmonicAngleForce()
    others = openmm.CustomBondForce(LENNARD_JONES)  # for all pairs, takes a third of the time of a CustomNonbondedForce
    others.setUsesPeriodicBoundaryConditions(True)
    oxygens = range(0, len(water.q), 3)
    for i in oxygens:
        for mass in (OXYGEN, HYDROGEN, HYDROGEN):
            system.addParticle(mass)
        for j in (i + 1, i + 2):
            bonds.addBond(i, j, *BOND)
        angles.addAngle(i + 1, i, i + 2, *ANGLE)
    for i, j in itertools.combinations(oxygens, 2):
        others.addBond(i, j, [])
    electric.setForceGroup(ELECTRIC)
    for force in (bonds, angles, others, electric):
        system.addForce(force)
    return system


def parki_force(openmm: ModuleType, water: Water, tolerance: float) -> Any:
    """Return a force that parki computes."""
    step = parki_step(water, tolerance)

    def electric(state: Any) -> tuple[float, np.ndarray]:
        x = state.getPositions(asNumpy=True).value_in_unit(openmm.unit.nanometer)
        energy, forces = step(np.ascontiguousarray(x.T))
        return energy, np.ascontiguousarray(forces.T)

    return openmm.PythonForce(electric)


def started(openmm: ModuleType, water: Water, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and velocities (N, 3) after a relaxation, and some picoseconds with a thermostat."""
    unit, electric = openmm.unit, openmm_charges(openmm, water, "PME", CUTOFF, 1e-4)
    integrator = openmm.LangevinMiddleIntegrator(KELVIN, 5.0, 2 * TIMESTEP)
    integrator.setRandomNumberSeed(1)
    system = flexible(openmm, water, electric)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatform("CPU"), {"Threads": "1"})
    context.setPositions(water.x.T.copy())
    openmm.LocalEnergyMinimizer.minimize(context, maxIterations=100)
    context.setVelocitiesToTemperature(KELVIN, 1)
    integrator.step(round(length / (2 * TIMESTEP)))
    state = context.getState(getPositions=True, getVelocities=True)
    v = state.getVelocities(asNumpy=True).value_in_unit(unit.nanometer / unit.picosecond)
    masses = np.tile([OXYGEN, HYDROGEN, HYDROGEN], len(v) // 3)
    return state.getPositions(asNumpy=True).value_in_unit(unit.nanometer), v - masses @ v / masses.sum()


def energies(
    openmm: ModuleType, system: Any, start: tuple[np.ndarray, np.ndarray], steps: int
) -> tuple[np.ndarray, tuple[float, np.ndarray]]:
    """Run, and return the total energies, and the electrostatic energy and forces (3, N) at the start."""
    unit, integrator = openmm.unit, openmm.VerletIntegrator(TIMESTEP)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatform("Reference"))
    context.setPositions(start[0])
    context.setVelocities(start[1])
    state = context.getState(getEnergy=True, getForces=True, groups={ELECTRIC})
    mole = unit.kilojoule_per_mole
    first = state.getPotentialEnergy().value_in_unit(mole)
    forces = state.getForces(asNumpy=True).value_in_unit(mole / unit.nanometer).T

    def total() -> float:
        found = context.getState(getEnergy=True)
        return (found.getKineticEnergy() + found.getPotentialEnergy()).value_in_unit(mole)

    found = [total()]
    for _ in range(steps // EVERY):
        integrator.step(EVERY)
        found.append(total())
    return np.array(found), (first, forces)


def line(found: np.ndarray) -> tuple[float, float]:
    """Return the slope per picosecond of the line through energies, and the RMS distance from the line."""
    times = EVERY * TIMESTEP * np.arange(len(found))
    fitted = np.polynomial.Polynomial.fit(times, found, 1)
    return float(fitted.deriv()(0.0)), float(np.sqrt(np.mean((found - fitted(times)) ** 2)))


def runs(openmm: ModuleType, water: Water) -> Iterator[tuple[str, Force]]:
    """Yield the name of each run and a function that makes its force, the nearly exact run first."""
    for tolerance in (NEARLY_EXACT, *TOLERANCES):
        yield f"parki, tolerance {tolerance:g}", lambda t=tolerance: parki_force(openmm, water, t)
    for asked in ASKED:
        yield (
            f"OpenMM PME, {CUTOFF} nm, {asked:g}",
            lambda a=asked: openmm_charges(openmm, water, "PME", CUTOFF, a),
        )


def main(arguments: list[str] | None = None) -> None:
    """Do all runs and print the drifts."""
    parser = argparse.ArgumentParser(description="Drift of the energy of flexible water: parki and OpenMM.")
    parser.add_argument("file", type=Path, help="box of water, as examples/data/water.npz")
    parser.add_argument("--ps", type=float, default=0.5, help="length of a run (0.5)")
    parser.add_argument("--equilibrate", type=float, default=2.0, metavar="PS", help="with the thermostat (2)")
    asked = parser.parse_args(arguments)
    openmm = imported()
    water = Water.of(asked.file)
    water = replace(water, q=np.tile(CHARGES, len(water.q) // 3))
    start = started(openmm, water, asked.equilibrate)
    water = replace(water, x=start[0].T.copy())
    steps = round(asked.ps / TIMESTEP)
    exact, nearly = parki_step(water, EXACT)(water.x), None
    head = f"{len(water.q)} atoms, {steps} steps of {1e3 * TIMESTEP:g} fs, double precision; energies in kJ/mol"
    head += f"\n{'electrostatics':<32}{'force error':>12}{'drift/ps':>11}{'fluctuation':>13}"
    head += f"{'share of errors/ps':>20}{'and fluctuation':>17}"
    print(head, flush=True)  # noqa: T201
    for name, force in runs(openmm, water):
        found, first = energies(openmm, flexible(openmm, water, force()), start, steps)
        nearly = found if nearly is None else nearly
        (slope, fluctuation), share = line(found), line(found - nearly)
        said = f"{name:<32}{errors(first, exact)[0]:>12.1e}{slope:>11.3f}{fluctuation:>13.3f}"
        said += f"{share[0]:>20.3f}{share[1]:>17.4f}"
        print(said, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
