"""Elastic constants of rock salt
==============================

A crystal of point charges with Born's repulsion is strained, and its stress gives the elastic constants.

:Shows: ``parki.ase.Coulomb`` as one of two calculators of ASE, with energies and stresses of skew cells.
:Run: ``python examples/elastic_constants.py -o elastic_constants.png`` (``--small``: few ions; needs ASE)
:Expect: C12 = C44 (Cauchy), because forces are central, the pressure is zero and each ion is a centre of symmetry. Both
   are (1.27802 − α/3) e²/2r⁴ (Kellermann 1940), and second differences of the energy agree with differences of the
   stress.

Ions are at nearest distance r, and α is the Madelung constant. Nearest neighbours repel each other by b/r⁹, with b such
that the pressure is zero. Their share of C44 is −α/3 for any law of repulsion, and that of the charges 1.27802.
"""

import argparse
import importlib.util
import inspect
import sys
import time
from pathlib import Path
from typing import ClassVar

import numpy as np

import parki

if importlib.util.find_spec("ase") is None:
    sys.exit('this example needs ASE: pip install "parki[ase]"')
import ase.build
from ase.calculators.calculator import Calculator, all_changes
from ase.calculators.mixing import SumCalculator
from ase.neighborlist import neighbor_list
from ase.units import GPa

NEAREST = 2.82  # Å
COULOMB = parki.units.coulomb("Å", "eV")
MADELUNG = 1.7475645946331822
BORN = MADELUNG * COULOMB * NEAREST**8 / 54
KELLERMANN = 1.27802
H = 1e-3  # step of the strain


class Repulsion(Calculator):
    """Compute Born's repulsion of nearest neighbours."""

    implemented_properties: ClassVar[list[str]] = ["energy", "forces", "stress"]

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        """Compute energy, forces and stress."""
        super().calculate(atoms, properties, system_changes)
        i, d, r = neighbor_list("idD", self.atoms, 1.2 * NEAREST)
        push = 9 * BORN / d**11
        forces = [np.bincount(i, -p, len(self.atoms)) for p in (push[:, None] * r).T]
        s = -0.5 * (push[:, None] * r).T @ r / self.atoms.get_volume()
        stress = np.array([s[0, 0], s[1, 1], s[2, 2], s[1, 2], s[0, 2], s[0, 1]])
        self.results = {"energy": 0.5 * (BORN / d**9).sum(), "forces": np.transpose(forces), "stress": stress}


def strained(salt, strain):
    """Return energy (eV) and stress (6,) (eV/Å³) of the crystal under a strain in Voigt's order."""
    xx, yy, zz, yz, xz, xy = strain
    deformed = salt.copy()
    grown = np.eye(3) + np.array([[xx, xy / 2, xz / 2], [xy / 2, yy, yz / 2], [xz / 2, yz / 2, zz]])
    deformed.set_cell(salt.cell.array @ grown, scale_atoms=True)
    deformed.calc = salt.calc
    stress = deformed.get_stress()  # first, because this call also computes the energy
    return deformed.get_potential_energy(), stress


def lines(function):
    """Count the lines of a function, without its docstring, comments and blank lines."""
    source = map(str.strip, inspect.getsource(function).splitlines())
    return sum(bool(line) and not line.startswith(("#", '"""')) for line in source)


def derivatives(salt, direction, middle):
    """Return the first derivative of the stress (6,) and the second of the energy density along a strain."""
    stress, curvature = [], []
    for h in (H, 2 * H):
        (e, s), (e_back, s_back) = strained(salt, h * direction), strained(salt, -h * direction)
        stress.append((s - s_back) / (2 * h))
        curvature.append((e + e_back - 2 * middle) / (h**2 * salt.get_volume()))
    return tuple((4 * near - far) / 3 for near, far in (stress, curvature))  # error of fourth order in H


def stiffness(c, n):
    """Return Young's modulus of a cubic crystal along unit vectors n (3, ...)."""
    s = np.linalg.inv(c)
    x, y, z = n**2
    return 1 / (s[0, 0] - 2 * (s[0, 0] - s[0, 1] - s[3, 3] / 2) * (x * y + y * z + z * x))


def draw(file, salt, c, fine):
    """Draw energies and stresses under strain, and Young's modulus in all directions."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 5), layout="constrained")
    grid = figure.add_gridspec(1, 3, width_ratios=(1, 1, 1.4))
    left, middle = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
    right = figure.add_subplot(grid[2], projection="3d")
    strains, line, energy = np.linspace(-0.02, 0.02, 5), np.linspace(-0.02, 0.02), strained(salt, np.zeros(6))[0]
    for k, colour, name, constant in ((0, "#d1495b", "xx", "C11"), (3, "#1b6ca8", "yz", "C44")):
        e, s = zip(*[strained(salt, a * np.eye(6)[k]) for a in strains], strict=True)
        left.plot(100 * line, 500 * c[k, k] * line**2, color=colour, label=f"{constant} ε²/2")
        left.scatter(100 * strains, 1e3 * (np.array(e) - energy) / salt.get_volume() / GPa, color=colour)
        middle.plot(100 * line, c[k, k] * line, color=colour, label=f"{constant} ε")
        middle.scatter(100 * strains, np.array(s)[:, k] / GPa, color=colour, label=f"stress {name}")
    left.set(xlabel="strain ε (%)", ylabel="energy by volume (MPa)", title="Energy")
    middle.set(xlabel="strain ε (%)", ylabel="stress (GPa)", title="Stress")
    for axes in (left, middle):
        axes.legend()
        axes.grid(alpha=0.3)
    theta, phi = np.meshgrid(np.linspace(0, np.pi, fine), np.linspace(0, 2 * np.pi, 2 * fine), indexing="ij")
    n = np.array([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)])
    young = stiffness(c, n)
    colours = ScalarMappable(Normalize(young.min(), young.max()), "viridis")
    right.plot_surface(*(young * n), facecolors=colours.to_rgba(young), rstride=1, cstride=1, shade=False)
    for axis, name in ((right.xaxis, "[100]"), (right.yaxis, "[010]"), (right.zaxis, "[001]")):
        axis.set_ticks((-40, 0, 40))
        axis.set_view_interval(-50, 50, ignore=True)
        axis.set_label_text(name)
    right.set_box_aspect((1, 1, 1), zoom=1.1)
    right.set_title("Young's modulus by direction")
    figure.colorbar(colours, ax=right, label="GPa", shrink=0.7, pad=0.12)
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Elastic constants of rock salt.")
    parser.add_argument("--small", action="store_true", help="few ions")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    salt = ase.build.bulk("NaCl", "rocksalt", a=2 * NEAREST, cubic=True) * ((1,) * 3 if asked.small else (3,) * 3)
    charges = np.where(salt.symbols == "Na", 1.0, -1.0)
    coulomb = parki.ase.Coulomb(charges, tolerance=1e-12, threads=1)  # few ions: more threads would wait for each other
    salt.calc = SumCalculator([coulomb, Repulsion()])
    energy, stress = strained(salt, np.zeros(6))
    c, curvatures, took = np.zeros((6, 6)), np.zeros(6), []
    for k, direction in enumerate(np.eye(6)):
        began = time.perf_counter()
        c[:, k], curvatures[k] = derivatives(salt, direction, energy)
        took.append((time.perf_counter() - began) / 4)
    print(f"{len(salt)} ions: one strain takes {1e3 * min(took):.0f} ms,", end=" ")
    print(f"energy and stress in {lines(strained)} lines, and repulsion in {lines(Repulsion)}")
    print(f"energy {2 * energy / len(salt):.6f} eV a pair, largest stress {np.abs(stress).max() / GPa:.0e} GPa")
    print(f"C11 {c[0, 0] / GPa:.6f}, C12 {c[0, 1] / GPa:.6f}, C44 {c[3, 3] / GPa:.6f} GPa")
    unit = COULOMB / (2 * NEAREST**4)
    print(f"C44 of Kellermann's: {c[3, 3] / unit / (KELLERMANN - MADELUNG / 3):.8f}")
    assert abs(c[3, 3] / unit - (KELLERMANN - MADELUNG / 3)) < 1e-5
    print(f"Cauchy's relation: C12/C44 = {c[0, 1] / c[3, 3]:.10f}")
    assert abs(c[0, 1] / c[3, 3] - 1) < 1e-7
    cubic = np.diag(np.repeat([c[0, 0] - c[0, 1], c[3, 3]], 3))
    cubic[:3, :3] += c[0, 1]
    print(f"deviation from cubic symmetry: {np.abs(c - cubic).max() / c[0, 0]:.1e} of C11")
    assert np.abs(c - cubic).max() < 1e-7 * c[0, 0]
    plane = derivatives(salt, np.array([1, 1, 0, 0, 0, 0]), energy)[1]
    off = np.abs([*(curvatures / np.diag(c) - 1), plane / (2 * (c[0, 0] + c[0, 1])) - 1]).max()
    print(f"differences of stress and energy differ by {off:.1e}")
    assert off < 1e-6
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, salt, c / GPa, 40 if asked.small else 80)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
