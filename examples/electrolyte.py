"""Ions between two charged walls
==============================

Brownian motion of ions against the mean-field theory of Gouy and Chapman.

:Shows: ``parki.ewald.laplace_grad`` with two periodic directions, and a plan whose points move.
:Run: ``python examples/electrolyte.py -o electrolyte.png`` (``--small`` for a trial; longer without)
:Expect: No field outside, where walls and ions cancel (Gauss); the ions gather at the walls as in mean-field theory,
   and their density there obeys the contact theorem, n(wall) − n(middle) = 2π l σ² within the noise.

Two walls of −σ each are neutralised by single positive ions. Equal walls have no field between them, so the ions only
interact with each other: F = −l ∇Σ 1/r in units of kT and of the Gouy–Chapman length b = 1/(2π l σ), with l the
Bjerrum length.
At l/b = 0.1 ions are weakly coupled: the density is (k²/2πl)/cos²(k(z − D/2)), k tan(kD/2) = 1 (Andelman 1995).
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

import parki

BJERRUM = 0.1  # Bjerrum length in Gouy–Chapman lengths
SIGMA = 1 / (2 * np.pi * BJERRUM)  # charges of a wall per b²
WIDTH, OUTSIDE = 4.0, 1.0  # distance of the walls, and room beyond each, in b
STEP = 0.01
BINS = 20
K = brentq(lambda k: k * np.tan(k * WIDTH / 2) - 1, 1e-3, (1 - 1e-9) * np.pi / WIDTH)


def mean_field(z):
    """Return the density of ions at the distance z from the lower wall."""
    return K**2 / (2 * np.pi * BJERRUM) / np.cos(K * (z - WIDTH / 2)) ** 2


def placed(n, side, rng):
    """Return random ions (3, N) with the density of mean-field theory, as a start."""
    x, y, s = rng.random((3, n))
    z = WIDTH / 2 + np.arctan((2 * s - 1) * np.tan(K * WIDTH / 2)) / K
    return np.stack([side * x, side * y, OUTSIDE + z])


def between(z):
    """Return the heights, reflected at the walls."""
    z = np.abs(z - OUTSIDE)
    return WIDTH - np.abs(WIDTH - z) + OUTSIDE


def move(ions, box, steps, rng):
    """Return ions (3, N) after some steps of Brownian motion, and their distances from the lower wall at each step."""
    heights, charges = [], np.ones(ions.shape[1])
    plan = parki.ewald.plan("laplace_grad", ions, ions, box=box, periodicity=2, tolerance=1e-3)
    for _ in range(steps):
        force = -BJERRUM * plan(charges)
        force *= np.minimum(1, 0.3 / (STEP * np.linalg.norm(force, axis=0)))  # limits the jump after a close encounter
        ions = ions + STEP * force + np.sqrt(2 * STEP) * rng.normal(size=ions.shape)
        ions[:2] %= box[0]
        ions[2] = between(ions[2])
        plan.move(ions)
        heights.append(ions[2] - OUTSIDE)
    return ions, np.array(heights)


def draw(file, ions, density, box):
    """Draw the ions from the side, and their density."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 8), layout="constrained")
    top, bottom = figure.subplots(2, 1)
    x, y, z = ions[:, np.argsort(-ions[1])]
    dots = top.scatter(x, z - OUTSIDE, c=y, s=50, cmap="plasma", edgecolors="black", linewidths=0.4)
    for below, above in ((-0.3, 0), (WIDTH, WIDTH + 0.3)):
        top.fill_between([0, box[0]], below, above, color="#1b6ca8", linewidth=0)
    top.set(xlim=(0, box[0]), ylim=(-0.3, WIDTH + 0.3), xlabel="x (b)", ylabel="z (b)", aspect="equal")
    top.set_title(f"{ions.shape[1]} ions between negative walls")
    figure.colorbar(dots, ax=top, label="y (b)")
    z = np.linspace(0, WIDTH, 200)
    bottom.stairs(density, np.linspace(0, WIDTH, BINS + 1), fill=True, color="#f2b5a7", label="Brownian motion")
    bottom.plot(z, mean_field(z), color="#8c1c13", label="mean field")
    bottom.set(xlabel="distance from the lower wall (b)", ylabel="density of ions (1/b³)", xlim=(0, WIDTH))
    bottom.set_title("Density of the ions between the walls")
    bottom.legend(loc="upper center")
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Ions between charged walls.")
    parser.add_argument("--small", action="store_true", help="few steps")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    rng, n = np.random.default_rng(0), 400
    side = np.sqrt(n / (2 * SIGMA))
    box = (side, side, WIDTH + 2 * OUTSIDE)
    steps = 150 if asked.small else 1000
    ions, heights = move(placed(n, side, rng), box, steps, rng)

    line = np.arange(32) * side / 32
    below = np.stack(np.meshgrid(line, line, [0.0])).reshape(3, -1)
    field = parki.ewald.laplace_grad(below, ions, np.ones(n), box=box, periodicity=2, tolerance=1e-9)
    outside = field[2].mean() / (4 * np.pi * SIGMA)
    print(f"field of the ions below both walls: {outside:.9f} of minus that of the walls")
    assert abs(outside - 1) < 1e-6
    density = np.histogram(heights, BINS, (0, WIDTH))[0] / (steps * side**2 * WIDTH / BINS)
    theory = mean_field((np.arange(BINS) + 0.5) * WIDTH / BINS)
    print(f"density: {np.sqrt(np.mean((density / theory - 1) ** 2)):.1%} RMS from mean-field theory")
    edge = np.mean([1.5 * d[0] - 0.5 * d[1] for d in (density, density[::-1])])  # at the wall, from two bins
    contact = (edge - density[BINS // 2 - 1 : BINS // 2 + 1].mean()) / (2 * np.pi * BJERRUM * SIGMA**2)
    print(f"contact theorem: n(wall) − n(middle) is {contact:.2f} of 2π l σ²")
    assert abs(contact - 1) < 0.5
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, ions, density, box)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
