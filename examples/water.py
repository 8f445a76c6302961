"""Potential in a box of water
===========================

The electrostatic potential at every atom of a periodic box of water, and its error against exact values.

:Shows: ``parki.ewald.plan`` for charges in a periodic box, at the accuracy asked for.
:Run: ``python examples/water.py 1e-6 -o water.png`` (``--small``: a coarse picture)
:Expect: A relative RMS error below the tolerance, the argument; the picture shows oxygens at a high potential and
   hydrogens at a low one.

The 895 molecules of three rigid sites, oxygen −0.834 e and hydrogen 0.417 e, are in ``data/water.npz``; lengths are in
nm and potentials in e/nm, that is e/(4πε₀ nm) = 1.44 V.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

import numpy as np

import parki

DATA = Path(__file__).parent / "data" / "water.npz"
VOLT = 1.43996  # volts per e/(4πε₀ nm)
VOLTS = [-40, -20, -10, -5, -2, 0, 2, 5, 10, 20, 40]  # V: ticks of the colour scale
BINS = np.arange(-12, 16, 0.25)  # V: bins of the histogram


def draw(file, water, potential, pixels):
    """Draw the potential in the middle plane of the box, and the potentials at the atoms."""
    from matplotlib.colors import AsinhNorm
    from matplotlib.figure import Figure

    atoms, charges, box = water["src"], water["dens"], water["box"]
    x, y = np.linspace(0, box[0], pixels), np.linspace(0, box[1], pixels)
    plane = np.stack(np.meshgrid(x, y, [box[2] / 2])).reshape(3, -1)
    u = VOLT * parki.ewald.laplace(plane, atoms, charges, box=box, tolerance=1e-4).reshape(pixels, pixels)

    figure = Figure(figsize=(12.5, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    image = left.pcolormesh(x, y, u, norm=AsinhNorm(2, -40, 40), cmap="RdBu_r", shading="gouraud")
    figure.colorbar(image, ax=left, label="potential (V)", ticks=VOLTS, format="{x:g}", extend="both")
    near = np.abs(atoms[2] - box[2] / 2) < 0.05
    elements = {"oxygen": (charges < 0, "#d1495b", 40), "hydrogen": (charges > 0, "#f4f1e8", 14)}
    for name, (kind, colour, size) in elements.items():
        left.scatter(*atoms[:2, near & kind], s=size, color=colour, edgecolors="black", linewidths=0.6, label=name)
        right.hist(VOLT * potential[kind], bins=BINS, color=colour, edgecolor="black", linewidth=0.4, label=name)
    left.set(xlim=(0, box[0]), ylim=(0, box[1]), aspect="equal", xlabel="x (nm)", ylabel="y (nm)")
    left.set_title(f"Potential in the plane z = {box[2] / 2:g} nm, and the atoms within 0.05 nm of it")
    right.set(
        xlabel="potential of all other charges (V)", ylabel="atoms", title=f"Potential at the {atoms.shape[1]} atoms"
    )
    right.legend()
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Potential in a box of water.")
    parser.add_argument("tolerance", nargs="?", type=float, default=1e-6, help="relative RMS error asked for (1e-6)")
    parser.add_argument("--small", action="store_true", help="a coarse picture")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    water = np.load(DATA)
    plan = parki.ewald.plan("laplace", water["trg"], water["src"], box=water["box"], tolerance=asked.tolerance)
    potential = plan(water["dens"])

    exact = water["potential"]
    error = np.linalg.norm(potential[water["sample"]] - exact) / np.linalg.norm(exact)
    energy = 0.5 * np.sum(water["dens"] * potential)  # e²/nm, including pairs inside the molecules
    print(f"{water['src'].shape[1]} atoms, energy {energy:.6f} e²/nm")
    print(f"relative RMS error {error:.1e} at {len(exact)} atoms, tolerance {asked.tolerance:g}")
    if error > asked.tolerance:
        sys.exit("the tolerance is missed")
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, water, potential, 120 if asked.small else 500)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
