"""A Brownian suspension
=====================

Colloidal spheres in water are kicked by its molecules, neighbours alike, because the water between them moves.

:Shows: ``plan.brownian_step`` of the kernel ``rpy``: displacements whose covariance is the mobility of all spheres.
:Run: ``python examples/brownian_suspension.py -o brownian_suspension.png`` (``--small`` for a trial)
:Expect: A sphere among its images diffuses more slowly than one alone, by 1 − 2.8373 a/L + 4π/3 (a/L)³ (Hasimoto
   1959), and neighbours move together: the correlation of their steps falls with their distance as the mobility does.

Each step draws the noise in two parts: the near field of the mobility by a few products with it, the far field by
independent modes.  The spheres do not repel each other, and may overlap.
"""

import argparse
from pathlib import Path

import numpy as np

import parki

KT = 4.11e-21  # J: at 25 °C
VISCOSITY = 0.89e-3  # Pa s: water
RADIUS = 0.5e-6  # m
ALONE = KT / (6 * np.pi * VISCOSITY * RADIUS)  # m²/s: diffusion coefficient of a sphere in unbounded water, 0.49 µm²/s
STEP = 2e-3  # s
UM = 1e6  # micrometres in a metre


def diffuse(n, fraction, steps, rng):
    """Return the side of a box with this volume fraction of n spheres, and unwrapped positions (steps + 1, 3, n)."""
    side = (n * 4 / 3 * np.pi * RADIUS**3 / fraction) ** (1 / 3)
    x = side * rng.random((3, n))
    plan, path = parki.ewald.plan("rpy", x, x, radius=RADIUS, box=(side,) * 3, tolerance=1e-3), [x]
    for _ in range(steps):
        path.append(path[-1] + plan.brownian_step(None, STEP, KT, rng, viscosity=VISCOSITY))
        plan.move(path[-1])
    return side, np.array(path)


def correlations(path, side, edges):
    """Return the mean product of the steps of two spheres along the line between them, over 2 D dt, by distance."""
    sums, counts = np.zeros((2, len(edges) - 1))
    for x, step in zip(path[:-1], np.diff(path, axis=0), strict=True):
        i, j = np.triu_indices(x.shape[1], 1)
        r = x[:, i] - x[:, j]
        r -= side * np.round(r / side)
        d = np.linalg.norm(r, axis=0)
        along = np.sum(step[:, i] * r, axis=0) * np.sum(step[:, j] * r, axis=0) / d**2
        sums += np.histogram(d, edges, weights=along)[0]
        counts += np.histogram(d, edges)[0]
    return sums / counts / (2 * ALONE * STEP)


def draw(file, path, side):
    """Draw the paths of the spheres in a slice, and the correlation of steps by distance."""
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.set_facecolor("#e8f1f8")  # water
    start = path[0]
    front = start[2] < side / 4
    trails = (path[:, :2, front] * UM).transpose(2, 0, 1)
    lines = LineCollection(trails, linewidths=0.7, cmap="viridis")
    lines.set_array(start[2, front] * UM)
    left.add_collection(lines)
    left.scatter(*path[-1][:2, front] * UM, s=14, c=start[2, front], cmap="viridis", zorder=3)
    left.set(xlim=(0, side * UM), ylim=(0, side * UM), aspect="equal", xlabel="x (µm)", ylabel="y (µm)")
    left.set_title(f"Paths of {front.sum()} spheres in {1e3 * STEP * (len(path) - 1):.0f} ms")

    edges = np.linspace(0.5, side / 2 / RADIUS, 14)
    middle, d = 0.5 * (edges[1:] + edges[:-1]), np.linspace(2, edges[-1], 100)
    right.plot(middle, correlations(path, side, edges * RADIUS), "o", label="steps")
    right.plot(d, 1.5 / d - 1 / d**3, label="$3a/2r - a^3/r^3$, unbounded water")
    right.set(xlabel="distance (radii)", ylabel="correlation along the line", ylim=(0, None))
    right.set_title("Neighbours move together")
    right.legend()
    figure.savefig(file, dpi=130)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="A Brownian suspension.")
    parser.add_argument("--small", action="store_true", help="few spheres")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    side, path = diffuse(*((200, 0.05, 100) if asked.small else (1500, 0.05, 200)), np.random.default_rng(1))
    measured = np.mean(np.diff(path, axis=0) ** 2) / (2 * STEP * ALONE)
    exact = 1 - 2.837297 * RADIUS / side + 4 / 3 * np.pi * (RADIUS / side) ** 3
    print(
        f"{path.shape[2]} spheres, a/L = {RADIUS / side:.3f}: diffusion {measured:.3f} of that in unbounded water, "
        f"Hasimoto's {exact:.3f}, ratio {measured / exact:.4f}"
    )
    if asked.o:
        draw(asked.o, path, side)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
