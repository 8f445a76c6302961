"""Madelung constants of three crystals
====================================

The potential at an ion of an infinite crystal, for every tolerance from 1e-2 to 1e-12, against the exact values.

:Shows: ``parki.ewald.laplace``: the potential of all other ions of an infinite crystal at one of its ions, from the few
   ions of one unit cell; and the meaning of a tolerance.
:Run: ``python examples/madelung.py -o madelung.png`` (``--small``: three tolerances, a coarse picture)
:Expect: One line for each tolerance with the error for each crystal, every error below its tolerance; the picture
   shows the potential between the ions.

The Madelung constant is the potential at a positive ion of charge 1 whose nearest neighbours are at distance 1.
"""

import argparse
import importlib.util
from itertools import product
from pathlib import Path

import numpy as np

import parki

FCC = [(0, 0, 0), (0, 0.5, 0.5), (0.5, 0, 0.5), (0.5, 0.5, 0)]

# name: side of the cubic cell, its positive ions, the shift to the negative ones (in sides), the exact constant
CRYSTALS = {
    "NaCl": (2, FCC, (0.5, 0.5, 0.5), -1.7475645946331822),
    "CsCl": (2 / 3**0.5, [(0, 0, 0)], (0.5, 0.5, 0.5), -1.7626747730709884),
    "ZnS": (4 / 3**0.5, FCC, (0.25, 0.25, 0.25), -1.6380550533887894),
}


def cell(name):
    """Return the ions (3, N) of one unit cell, their charges (N,) and the three sides of the cell."""
    side, positive, shift, _ = CRYSTALS[name]
    positive = np.array(positive, dtype=float)
    ions = side * np.vstack([positive, (positive + shift) % 1]).T
    return ions, np.repeat([1.0, -1.0], len(positive)), (side, side, side)


def madelung(name, tolerance):
    """Return the potential at the first ion, a positive one; the ion's own potential is not included."""
    ions, charges, box = cell(name)
    return parki.ewald.laplace(ions, ions, charges, box=box, tolerance=tolerance)[0]


def draw(file, pixels):
    """Draw the potential in the plane (110), which cuts through ions of both kinds in all three crystals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.9), layout="constrained")
    for axes, name in zip(figure.subplots(1, 3), CRYSTALS, strict=True):
        ions, charges, box = cell(name)
        across, up = np.linspace(-2.6, 2.6, pixels), np.linspace(-2.6, 2.6, pixels)
        s, z = (a.ravel() for a in np.meshgrid(across, up))  # along [110] and along [001], nearest distances
        plane = parki.utils.wrap(np.stack([s / 2**0.5, s / 2**0.5, z]), box)
        potential = parki.ewald.laplace(plane, ions, charges, box=box, tolerance=1e-4).reshape(pixels, pixels)
        image = axes.pcolormesh(
            across, up, np.arcsinh(2 * potential), cmap="RdBu_r", vmin=-3, vmax=3, shading="gouraud"
        )
        axes.contour(across, up, potential, levels=[-2, -1, -0.5, 0, 0.5, 1, 2], colors="black", linewidths=0.5)
        shifts = box[0] * np.array(list(product(range(-4, 5), repeat=3)))
        x, y, height = (ions[:, None, :] + shifts.T[:, :, None]).reshape(3, -1)
        shown = np.abs(x - y) < 1e-9
        colours = np.where(np.tile(charges, len(shifts)) > 0, "#8c1c13", "#123c69")[shown]
        spots = (x + y)[shown] / 2**0.5, height[shown]
        axes.scatter(*spots, s=90, c=colours, edgecolors="white", zorder=3)
        axes.set(xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), aspect="equal", xlabel="along [110] (nearest distances)")
        axes.set_title(f"{name}   −{-CRYSTALS[name][3]:.6f}")
    figure.axes[0].set_ylabel("along [001] (nearest distances)")
    levels = np.array([-5, -2, -1, -0.5, 0, 0.5, 1, 2, 5])
    bar = figure.colorbar(image, ax=figure.axes, ticks=np.arcsinh(2 * levels), extend="both", pad=0.01)
    bar.ax.set_yticklabels([f"{level:g}".replace("-", "−") for level in levels])
    bar.set_label("potential (charge / nearest distance)")
    figure.suptitle("Electrostatic potential in three ionic crystals and their Madelung constants", fontsize=14)
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Madelung constants of three crystals.")
    parser.add_argument("--small", action="store_true", help="three tolerances, a coarse picture")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    print("tolerance" + "".join(f"{name:>20} {'error':>8}" for name in CRYSTALS))
    for digits in (2, 6, 12) if asked.small else range(2, 13):
        found = {name: madelung(name, 10.0**-digits) for name in CRYSTALS}
        errors = {name: abs(value / CRYSTALS[name][3] - 1) for name, value in found.items()}
        print(f"    1e-{digits:02d}" + "".join(f"{found[name]:20.14f} {errors[name]:8.1e}" for name in CRYSTALS))
        assert max(errors.values()) < 10.0**-digits, "the tolerance is missed"
    print("    exact" + "".join(f"{crystal[3]:20.14f} {'':8}" for crystal in CRYSTALS.values()))
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, 80 if asked.small else 400)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
