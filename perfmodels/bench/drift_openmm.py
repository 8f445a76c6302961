"""Drift of the energy of flexible water beside OpenMM, by OpenMM's Verlet integrator: `parki bench drift`.

All runs are in double precision, on OpenMM's Reference platform, and begin with the same positions and velocities: the
box of water of `parki bench water`, relaxed and heated to 300 K on the CPU platform.  Bonds and angles are springs, and
oxygens have a Lennard-Jones term with a smooth end at the cutoff, as in SPC/Fw water (Wu, Tepper & Voth 2006).  Only
the electrostatic part differs: PME of OpenMM, or parki in a PythonForce, whose far field is in single precision from a
tolerance of 1e-4 on, by its own choice.  A run has as many pieces of 0.1 ps as turns are asked for, and its time is
that of a piece.  The Reference platform is slow: 0.5 ps, 2000 steps, take the better part of an hour for all runs.

A line is fitted to the total energy.  Its slope is the drift; the RMS distance from the line is the fluctuation, most
of all that of the integrator.  A run with nearly exact forces, parki at 1e-9, has the integrator's share of both.
Trajectories stay close together for a picosecond or so.  Therefore the difference from that run is free of most of the
fluctuation.  Its slope and its distance from its line are the shares of the forces' errors.
"""

import argparse
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from parki.engine import Space, workers
from parki.perfmodels.bench import measure
from parki.perfmodels.bench.measure import Row, absent, clock, row
from parki.perfmodels.bench.peers_openmm import (
    ABSENT,
    EXACT,
    Water,
    errors,
    kept_to,
    library,
    one_core,
    openmm_charges,
    parki_step,
)

PIECE, THERMOSTAT = 0.1, 2.0  # ps of a piece of a run; ps of the way to 300 K
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


@dataclass(frozen=True)
class Electrostatics:
    """Electrostatic part of a run: name, tolerance, a function that makes its force, which only one system may have."""

    name: str
    tolerance: float
    force: Callable[[], Any]


@dataclass(frozen=True)
class Run:
    """Run of a system: total energies, electrostatic energy and forces (3, N) at the start, seconds of each piece."""

    energies: np.ndarray
    first: tuple[float, np.ndarray]
    times: list[float]


def flexible(openmm: ModuleType, water: Water, electric: Any) -> Any:
    """Return the system of flexible molecules with this electrostatic force."""
    system = openmm.System()
    system.setDefaultPeriodicBoxVectors(*np.diag(water.box))
    bonds, angles = openmm.HarmonicBondForce(), openmm.HarmonicAngleForce()
    # For all pairs: takes a third of the time of a CustomNonbondedForce.
    repulsion = openmm.CustomBondForce(LENNARD_JONES)
    repulsion.setUsesPeriodicBoundaryConditions(True)
    oxygens = range(0, len(water.q), 3)
    for i in oxygens:
        for mass in (OXYGEN, HYDROGEN, HYDROGEN):
            system.addParticle(mass)
        for j in (i + 1, i + 2):
            bonds.addBond(i, j, *BOND)
        angles.addAngle(i + 1, i, i + 2, *ANGLE)
    for i, j in itertools.combinations(oxygens, 2):
        repulsion.addBond(i, j, [])
    electric.setForceGroup(ELECTRIC)
    for force in (bonds, angles, repulsion, electric):
        system.addForce(force)
    return system


def parki_force(openmm: ModuleType, water: Water, tolerance: float, space: Space) -> Any:
    """Return a force that parki computes."""
    step = parki_step(water, tolerance, space)

    def electric(state: Any) -> tuple[float, np.ndarray]:
        x = state.getPositions(asNumpy=True).value_in_unit(openmm.unit.nanometer)
        energy, forces = step(np.ascontiguousarray(x.T))
        return energy, np.ascontiguousarray(forces.T)

    return openmm.PythonForce(electric)


def started(openmm: ModuleType, water: Water) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and velocities (N, 3) after a relaxation, and some time with a thermostat."""
    unit, electric = openmm.unit, openmm_charges(openmm, water, "PME", CUTOFF, 1e-4)
    integrator = openmm.LangevinMiddleIntegrator(KELVIN, 5.0, 2 * TIMESTEP)
    integrator.setRandomNumberSeed(1)
    system = flexible(openmm, water, electric)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatform("CPU"), {"Threads": "1"})
    context.setPositions(water.x.T.copy())
    openmm.LocalEnergyMinimizer.minimize(context, maxIterations=100)
    context.setVelocitiesToTemperature(KELVIN, 1)
    integrator.step(round(THERMOSTAT / (2 * TIMESTEP)))
    state = context.getState(getPositions=True, getVelocities=True)
    v = state.getVelocities(asNumpy=True).value_in_unit(unit.nanometer / unit.picosecond)
    masses = np.tile([OXYGEN, HYDROGEN, HYDROGEN], len(v) // 3)
    return state.getPositions(asNumpy=True).value_in_unit(unit.nanometer), v - masses @ v / masses.sum()


def run(openmm: ModuleType, system: Any, start: tuple[np.ndarray, np.ndarray], pieces: int) -> Run:
    """Run a system for some pieces."""
    unit, integrator = openmm.unit, openmm.VerletIntegrator(TIMESTEP)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatform("Reference"))
    context.setPositions(start[0])
    context.setVelocities(start[1])
    state = context.getState(getEnergy=True, getForces=True, groups={ELECTRIC})
    mole = unit.kilojoule_per_mole
    first = state.getPotentialEnergy().value_in_unit(mole)
    forces = state.getForces(asNumpy=True).value_in_unit(mole / unit.nanometer).T

    def total() -> float:
        state = context.getState(getEnergy=True)
        return (state.getKineticEnergy() + state.getPotentialEnergy()).value_in_unit(mole)

    energies = [total()]

    def piece() -> None:
        for _ in range(max(1, round(PIECE / TIMESTEP / EVERY))):
            integrator.step(EVERY)
            energies.append(total())

    times = [clock(piece)() for _ in range(pieces)]
    return Run(np.array(energies), (first, forces), times)


def line(energies_: np.ndarray) -> tuple[float, float]:
    """Return the slope per picosecond of the line through energies, and the RMS distance from the line."""
    times = EVERY * TIMESTEP * np.arange(len(energies_))
    fit = np.polynomial.Polynomial.fit(times, energies_, 1)
    return float(fit.deriv()(0.0)), float(np.sqrt(np.mean((energies_ - fit(times)) ** 2)))


def parts(openmm: ModuleType, water: Water, space: Space) -> Iterator[Electrostatics]:
    """Yield the electrostatic part of each run, the nearly exact one first."""
    for tolerance in (NEARLY_EXACT, *TOLERANCES):
        name = f"parki, tolerance {tolerance:g}"
        yield Electrostatics(name, tolerance, lambda t=tolerance: parki_force(openmm, water, t, space))
    for error_tolerance in ASKED:
        name = f"OpenMM PME, {CUTOFF} nm, {error_tolerance:g}"
        yield Electrostatics(
            name, error_tolerance, lambda a=error_tolerance: openmm_charges(openmm, water, "PME", CUTOFF, a)
        )


def drift(args: argparse.Namespace, space: Space) -> list[Row]:
    """Return a row for each run, with its drift and fluctuation in kJ/mol, and the shares of its errors in both.

    Without OpenMM the only row says how to install it.

    Raises
    ------
    ValueError
        If the space is not on the host.
    """
    space = one_core(args, space)
    if (openmm := library()) is None:
        return [absent(*ABSENT)]
    with kept_to(workers(space)):
        water = Water.of(args.n)
        water = replace(water, q=np.tile(CHARGES, len(water.q) // 3))
        start = started(openmm, water)
        water = replace(water, x=start[0].T.copy())
        exact, rows, energies_of_first = parki_step(water, EXACT, space)(water.x), [], None
        for part in parts(openmm, water, space):
            result = run(openmm, flexible(openmm, water, part.force()), start, args.repeat)
            energies_of_first = result.energies if energies_of_first is None else energies_of_first
            details = dict(zip(("drift", "fluctuation"), line(result.energies), strict=True))
            details |= dict(
                zip(("error_drift", "error_fluctuation"), line(result.energies - energies_of_first), strict=True)
            )
            details |= {"n": len(water.q), "threads": workers(space), "tolerance": part.tolerance}
            steps = (len(result.energies) - 1) * EVERY
            details |= {"error": errors(result.first, exact)[0], "steps": steps}
            rows.append(row(part.name, result.times, steps / args.repeat / 1e3, "k steps", **details))
    return rows


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text, in kJ/mol and ps."""
    if any("absent" in r for r in rows):
        return measure.table(rows)
    n, steps = rows[0]["n"], rows[0]["steps"]
    lines = [f"{n} atoms, {steps} steps of {1e3 * TIMESTEP:g} fs, double precision; energies in kJ/mol"]
    lines.append(
        f"{'electrostatics':<32}{'force error':>12}{'drift/ps':>11}{'fluctuation':>13}"
        f"{'share of errors/ps':>20}{'and fluctuation':>17}{'ms a step':>11}"
    )
    for r in rows:
        text = f"{r['what']:<32}{r['error']:>12.1e}{r['drift']:>11.3f}{r['fluctuation']:>13.3f}"
        text += f"{r['error_drift']:>20.3f}{r['error_fluctuation']:>17.4f}"
        lines.append(f"{text}{1.0 / r['rate']:>11.2f}")
    return "\n".join(lines)
