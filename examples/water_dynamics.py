"""Dynamics of water
=================

Flexible water molecules move in a periodic box, and their total energy stays the same.

:Shows: ``plan.move`` and ``plan.energy_forces`` in a time loop, and ``exclude`` for the pairs inside each molecule.
:Run: ``python examples/water_dynamics.py -o water_dynamics.png`` (``--small``: few steps)
:Expect: The total energy drifts by less than a thousandth of the kinetic energy, and half the step divides its changes
   by 4, because velocity Verlet is of second order. The first neighbours are near 0.28 nm, as in real water.

The model is SPC/Fw (Wu, Tepper and Voth 2006): harmonic bonds and angles, Coulomb between molecules, and Lennard-Jones
between oxygens, here shifted so that energy and force end at the cut-off. Units are nm, ps, u, e and kJ/mol.
"""

import argparse
import importlib.util
import inspect
import time
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

import parki

DATA = Path(__file__).parent / "data" / "water.npz"
COULOMB = parki.units.coulomb("nm", "kJ/mol")
SIGMA, EPSILON, CUTOFF = 0.3165492, 0.6502995, 0.9
BOND, BOND_K = 0.1012, 443153.38
ANGLE, ANGLE_K = np.deg2rad(113.24), 317.5656
CHARGES, MASSES = np.array([-0.82, 0.41, 0.41]), np.array([15.9994, 1.00794, 1.00794])
KT = 2.479  # at 298 K
STEP = 0.00025  # ps
TOLERANCE = 1e-5


def lennard_jones(r):
    """Return energy and −dU/dr of pairs at distances r, without the shift."""
    s = (SIGMA / r) ** 6
    return 4 * EPSILON * (s**2 - s), 24 * EPSILON * (2 * s**2 - s) / r


def forces(plan, x, charges, box):
    """Return the energy, and the forces (3, N) on the atoms O, H, H, O, H, H, …."""
    plan.move(x)
    energy, f, _ = plan.energy_forces(charges)
    energy, f = COULOMB * energy, COULOMB * f
    atoms, on = x.reshape(3, -1, 3), f.reshape(3, -1, 3)

    r = atoms[:, :, 1:] - atoms[:, :, :1]
    length = np.linalg.norm(r, axis=0)
    u = r / length
    cosine = (u[:, :, 0] * u[:, :, 1]).sum(axis=0)
    angle = np.arccos(cosine)
    energy += 0.5 * BOND_K * ((length - BOND) ** 2).sum() + 0.5 * ANGLE_K * ((angle - ANGLE) ** 2).sum()
    turn = (ANGLE_K * (angle - ANGLE) / np.sin(angle))[:, None] * (u[:, :, ::-1] - cosine[:, None] * u) / length
    pull = turn - BOND_K * (length - BOND) * u
    on[:, :, 1:] += pull
    on[:, :, 0] -= pull.sum(axis=2)

    oxygens = atoms[:, :, 0]
    i, j = KDTree(oxygens.T % box, boxsize=box).query_pairs(CUTOFF, output_type="ndarray").T
    r = oxygens[:, i] - oxygens[:, j]
    r -= box[:, None] * np.round(r / box[:, None])
    length = np.linalg.norm(r, axis=0)
    (u, push), (end, last) = lennard_jones(length), lennard_jones(CUTOFF)
    energy += (u - end + (length - CUTOFF) * last).sum()
    for axis, p in enumerate((push - last) / length * r):
        on[axis, :, 0] += np.bincount(i, p, oxygens.shape[1]) - np.bincount(j, p, oxygens.shape[1])
    return energy, f


def lines(function):
    """Count the lines of a function, without its docstring, comments and blank lines."""
    source = map(str.strip, inspect.getsource(function).splitlines())
    return sum(bool(line) and not line.startswith(("#", '"""')) for line in source)


def molecules(water):
    """Return the atoms (3, N) of the data in whole molecules, each in the shape of the model at rest."""
    atoms, box = water["src"].reshape(3, -1, 3), water["box"][:, None, None]
    r = atoms[:, :, 1:] - atoms[:, :, :1]
    r -= box * np.round(r / box)
    middle, across = r.sum(axis=2), r[:, :, 0] - r[:, :, 1]
    along, across = (BOND * v / np.linalg.norm(v, axis=0) for v in (middle, across))
    c, s = np.cos(ANGLE / 2), np.sin(ANGLE / 2)
    shape = np.stack([0 * along, c * along + s * across, c * along - s * across], axis=2)
    return (atoms[:, :, :1] + shape).reshape(3, -1)


def run(plan, x, v, charges, masses, box, steps, step=STEP, thermostat=None):
    """Return atoms and velocities after velocity Verlet, and potential, kinetic energy and seconds of each step."""
    energy, f = forces(plan, x, charges, box)
    told = [(energy, 0.5 * (masses * v**2).sum(), np.nan)]
    for k in range(steps):
        begin = time.perf_counter()
        v = v + 0.5 * step * f / masses
        x = x + step * v
        energy, f = forces(plan, x, charges, box)
        v = v + 0.5 * step * f / masses
        if thermostat is not None and k % 10 == 0:
            v = thermostat.normal(size=v.shape) * np.sqrt(KT / masses)
        told.append((energy, 0.5 * (masses * v**2).sum(), time.perf_counter() - begin))
    return x, v, np.array(told).T


def neighbours(x, box):
    """Return distances, and the density of oxygens at these distances from an oxygen, over that of the liquid."""
    oxygens = x[:, ::3].T % box
    edges = np.linspace(0.2, 1.0, 81)
    tree = KDTree(oxygens, boxsize=box)
    within = tree.count_neighbors(tree, edges) - len(oxygens)
    volume = 4 / 3 * np.pi * edges**3 * len(oxygens) ** 2 / np.prod(box)
    return 0.5 * (edges[1:] + edges[:-1]), np.diff(within) / np.diff(volume)


def draw(file, x, v, masses, box, energies, pairs):
    """Draw a layer of molecules with their speeds, the energies in time, and the neighbours of oxygens."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6), layout="constrained")
    panels = figure.subplot_mosaic([["box", "energy"], ["box", "pairs"]], width_ratios=(1.3, 1))
    atoms, heat = x.reshape(3, -1, 3), 0.5 * (masses * v**2).reshape(3, -1, 3).sum(axis=(0, 2)) / (4.5 * KT)
    layer = np.flatnonzero(atoms[2, :, 0] % box[2] < 0.6)
    layer = layer[np.argsort(atoms[2, layer, 0] % box[2])]
    moved = atoms[:, layer] - box[:, None, None] * np.floor(atoms[:, layer, :1] / box[:, None, None])
    for k in (1, 2):
        panels["box"].plot(moved[0][:, [0, k]].T, moved[1][:, [0, k]].T, color="#555555", linewidth=1.5, zorder=1)
        panels["box"].scatter(*moved[:2, :, k], s=18, color="#f4f1e8", edgecolors="#555555", linewidths=0.6, zorder=2)
    dots = panels["box"].scatter(*moved[:2, :, 0], s=90, c=heat[layer], cmap="plasma", vmin=0, vmax=2.5, zorder=3)
    figure.colorbar(dots, ax=panels["box"], label="kinetic energy (of the mean)", extend="max", shrink=0.9)
    panels["box"].set(xlim=(0, box[0]), ylim=(0, box[1]), aspect="equal", xlabel="x (nm)", ylabel="y (nm)")
    panels["box"].set_title("Molecules in a layer of 0.6 nm")
    potential, kinetic = (energies[:2] - energies[:2, :1]) / len(heat)
    t = 1e3 * STEP * np.arange(len(kinetic))
    for name, change, colour in (
        ("potential", potential, "#1b6ca8"),
        ("kinetic", kinetic, "#d1495b"),
        ("total", potential + kinetic, "#222222"),
    ):
        panels["energy"].plot(t, change, color=colour, label=name)
    panels["energy"].set(xlabel="time (fs)", ylabel="change (kJ/mol a molecule)", title="Energy")
    panels["energy"].margins(y=0.25)
    panels["energy"].legend(ncols=3, loc="upper left")
    panels["pairs"].fill_between(*pairs, color="#f2b5a7")
    panels["pairs"].plot(*pairs, color="#8c1c13")
    panels["pairs"].set(xlim=(0.2, 1), ylim=0, xlabel="distance (nm)", ylabel="oxygens (of the mean)")
    panels["pairs"].set_title("Oxygens around an oxygen")
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Dynamics of flexible water.")
    parser.add_argument("--small", action="store_true", help="few steps")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    water, rng = np.load(DATA), np.random.default_rng(0)
    box, x = water["box"], molecules(water)
    n = x.shape[1] // 3
    charges, masses, first = np.tile(CHARGES, n), np.tile(MASSES, n), 3 * np.arange(n)
    inside = np.concatenate([np.stack([first + a, first + b]) for a, b in ((0, 1), (0, 2), (1, 2))], axis=1)
    plan = parki.ewald.plan("laplace", x, x, box=box, gradient=True, exclude=inside, tolerance=TOLERANCE)
    system = charges, masses, box

    v = rng.normal(size=x.shape) * np.sqrt(KT / masses)
    change = []
    for n_steps, step in ((20, STEP), (40, STEP / 2)):
        total = run(plan, x, v, *system, n_steps, step)[2][:2].sum(axis=0)
        change.append(np.linalg.norm((total - total[0])[:: n_steps // 20]))
    print(f"half the step divides the changes of the energy by {change[0] / change[1]:.2f}")
    assert abs(change[0] / change[1] - 4) < 0.2
    x, v, _ = run(plan, x, v, *system, 30 if asked.small else 500, thermostat=rng)
    steps = 60 if asked.small else 2000
    x, v, energies = run(plan, x, v, *system, steps)
    total, kinetic, span = energies[:2].sum(axis=0), energies[1].mean(), STEP * steps
    drift = np.polyfit(np.linspace(0, 1, steps + 1), total, 1)[0]
    print(f"{3 * n} atoms: one step takes {1e3 * np.nanmedian(energies[2]):.0f} ms, forces in {lines(forces)} lines")
    print(f"drift in {1e3 * span:g} fs: {drift / kinetic:.1e} of the kinetic energy", end=", ")
    print(f"{drift / span / (3 * n):.1e} kJ/mol per ps and atom")
    assert abs(drift) < 1e-3 * kinetic
    distance, density = neighbours(x, box)
    peak = distance[np.argmax(density)]
    print(f"temperature {298 * kinetic / (4.5 * n * KT):.0f} K, first neighbours at {peak:.3f} nm")
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, x, v, masses, box, energies, (distance, density))
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
