"""Water along a trajectory
========================

The electrostatic energy of water, and the field at its molecules, frame by frame of a trajectory of MDAnalysis.

:Shows: ``parki.ewald.plan`` that moves from frame to frame, box included, and leaves out the pairs inside molecules.
:Run: ``python examples/trajectory.py -o trajectory.png`` (``--small``: fewer frames)
:Expect: Potentials of the first frame within 1e-5 of exact values, as a trajectory has single precision; an energy that
   rises while molecules turn away from their neighbours, and comes back; a field along the dipoles.

Read a trajectory of your own by ``MDAnalysis.Universe(topology, trajectory)``.  This example writes a file first: the
895 molecules of ``data/water.npz`` swing about their oxygens, each about its own axis, while the box grows and shrinks.
MDAnalysis has points (N, 3) in Å, and a box as lengths and angles.  The walls of the box may cut molecules: parki
leaves out the nearest image of a pair.
"""

import argparse
import importlib.util
import sys
import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import parki

try:
    import MDAnalysis
    from MDAnalysis.lib.mdamath import triclinic_vectors
except ImportError:
    sys.exit("this example needs MDAnalysis: pip install MDAnalysis")

DATA = Path(__file__).parent / "data" / "water.npz"
TOLERANCE = 1e-7
COULOMB = parki.units.coulomb("Å", "eV")  # also V Å/e
SWING, BREATH = 0.5, 0.01  # largest angle in radians, and largest relative growth of the box


def molecules(data):
    """Return the box of water as a universe of one frame, with charges and bonds."""
    n = data["dens"].size
    u = MDAnalysis.Universe.empty(n, n // 3, atom_resindex=np.arange(n) // 3, trajectory=True)
    u.add_TopologyAttr("charges", data["dens"])
    u.add_TopologyAttr("bonds", [(i, i + j) for i in range(0, n, 3) for j in (1, 2)])
    u.dimensions = [*(10 * data["box"]), 90, 90, 90]
    u.atoms.positions = 10 * data["src"].T
    return u


def write(file, u, frames):
    """Write a trajectory: molecules swing to one side and back, and the box grows and shrinks."""
    sides, sites = u.dimensions[:3].astype(float), u.atoms.positions.astype(float).reshape(-1, 3, 3)
    away = sites - sites[:, :1]
    away -= sides * np.round(away / sides)
    axes = np.random.default_rng(0).standard_normal((len(sites), 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    with MDAnalysis.Writer(str(file), len(u.atoms)) as out:
        for share in np.sin(np.linspace(0, np.pi, frames)):
            turn = Rotation.from_rotvec(SWING * share * axes)
            turned = np.stack([turn.apply(away[:, k]) for k in range(3)], axis=1)
            u.dimensions = [*((1 + BREATH * share) * sides), 90, 90, 90]
            u.atoms.positions = ((1 + BREATH * share) * sites[:, :1] + turned).reshape(-1, 3)
            u.atoms.wrap()
            out.write(u.atoms)


def inside(u):
    """Return pairs (2, M) of atoms of the same molecule; for large molecules exclude bonds and angles instead."""
    return np.array([pair for f in u.atoms.fragments for pair in combinations(f.indices, 2)]).T


def frame(ts):
    """Return points (3, N) and lattice vectors, as rows, in double precision."""
    return ts.positions.T.astype(float), triclinic_vectors(ts.dimensions).astype(float)


def along(u, charges, forces):
    """Return the field at the oxygens along the dipoles of their molecules, V/Å."""
    field = (COULOMB * forces / charges).T.reshape(-1, 3, 3)[:, 0]
    sites, sides = u.atoms.positions.reshape(-1, 3, 3), u.dimensions[:3]
    away = sites[:, 1:] - sites[:, :1]
    dipole = (away - sides * np.round(away / sides)).sum(axis=1)
    return np.sum(field * dipole, axis=1) / np.linalg.norm(dipole, axis=1)


def analysed(u, plan):
    """Return energies (eV) and fields along dipoles of all frames."""
    energies, fields = [], []
    for ts in u.trajectory:
        x, box = frame(ts)
        plan.move(x, box=box)
        energy, forces, _ = plan.energy_forces(u.atoms.charges)
        energies.append(COULOMB * energy)
        fields.append(along(u, u.atoms.charges, forces))
    return np.array(energies), np.array(fields)


def potential_error(u, plan, data):
    """Return the error of the potential in this frame at a sample of atoms; exact values include all pairs."""
    x, box = frame(u.trajectory.ts)
    charges, (i, j) = u.atoms.charges, inside(u)
    potential, _ = plan(charges)
    sides = np.diag(box)[:, None]
    away = x[:, i] - x[:, j]
    distance = np.linalg.norm(away - sides * np.round(away / sides), axis=0)
    np.add.at(potential, i, charges[j] / distance)
    np.add.at(potential, j, charges[i] / distance)
    exact = data["potential"] / 10  # e/Å
    return np.linalg.norm(potential[data["sample"]] - exact) / np.linalg.norm(exact)


def draw(file, energies, fields):
    """Draw the energy by frames, and histograms of the fields."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    share = np.linspace(0, 1, len(energies))
    left.fill_between(share, energies.min(), energies, color="#1b6ca8", alpha=0.35, linewidth=0)
    left.plot(share, energies, "o-", color="#1b6ca8")
    left.set(xlabel="time (of the trajectory)", ylabel="energy (eV)", title="Energy between the molecules")
    bins = np.linspace(-0.5, 3, 71)
    middle = len(fields) // 2
    right.hist(fields[0], bins, color="#1b6ca8", label="first frame")
    right.hist(fields[middle], bins, color="#d1495b", alpha=0.6, label="largest swing")
    right.set(xlabel="field along the dipole (V/Å)", ylabel="molecules", title="Field at the oxygens")
    right.legend()
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Water along a trajectory of MDAnalysis.")
    parser.add_argument("--small", action="store_true", help="few frames")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    data = np.load(DATA)
    u = molecules(data)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "water.trr"
        write(file, u, 9 if asked.small else 41)
        u.load_new(str(file))
        options = {"gradient": True, "exclude": inside(u), "tolerance": TOLERANCE}
        x, box = frame(u.trajectory[0])
        plan = parki.ewald.plan("laplace", x, x, box=box, **options)
        error = potential_error(u, plan, data)
        energies, fields = analysed(u, plan)
        x, box = frame(u.trajectory[int(np.argmax(energies))])
        fresh = COULOMB * parki.ewald.plan("laplace", x, x, box=box, **options).energy_forces(u.atoms.charges).energy
        u.trajectory.close()

    print(f"potential of the first frame: relative RMS error {error:.1e} against exact values")
    assert error < 1e-5
    for k in range(0, len(energies), len(energies) // 8):
        print(f"frame {k:2}: energy {energies[k]:.4f} eV, mean field along dipoles {fields[k].mean():.3f} V/Å")
    print(f"moved plan and a fresh one differ by {abs(energies.max() / fresh - 1):.1e} in energy")
    assert abs(energies.max() / fresh - 1) < TOLERANCE
    print(f"last frame, back at the first: the energy differs by {abs(energies[-1] / energies[0] - 1):.1e}")
    assert abs(energies[-1] / energies[0] - 1) < 1e-5
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, energies, fields)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
