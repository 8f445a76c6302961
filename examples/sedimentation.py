"""A sedimenting suspension
========================

Heavy spheres sink in a viscous liquid, each carried by the flow of all the others.

:Shows: ``parki.ewald.stokes_sl`` inside a time loop: the points move, so every step has its own sum.
:Run: ``python examples/sedimentation.py -o sedimentation.png sedimentation.gif`` (``--small`` for a trial)
:Expect: One sphere alone in a cubic box falls at 1 − 2.8373 a/L of the Stokes speed (Hasimoto 1959), to ten digits.
   Thousands that start at random fall differently: swarms sink fast, and liquid and other spheres rise elsewhere.

The spheres are point forces with the mobility of a sphere, F / 6πμa, which is right to order a / distance, so for
dilute suspensions. parki sums f/r + r (r·f)/r³; the example adds the factor 1 / 8πμ of Stokes flow.
"""

import argparse
import importlib.util
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

import parki

VISCOSITY = 1.0  # Pa s: silicone oil
RADIUS = 1e-4  # m: glass beads
FORCE = 4 / 3 * np.pi * RADIUS**3 * 1500 * 9.81  # N: weight less buoyancy
STOKES = FORCE / (6 * np.pi * VISCOSITY * RADIUS)  # m/s: speed of one bead in unbounded oil, 33 µm/s
HASIMOTO = 2.837297479480620  # Hasimoto's constant of a cubic lattice
MM = 1e3  # millimetres in a metre


def stirred(at, spheres, box, tolerance):
    """Return velocities (3, Nt) of the liquid at points (3, Nt), without a sphere's own flow but with its images'."""
    forces = np.outer([0, 0, -FORCE], np.ones(spheres.shape[1]))
    with warnings.catch_warnings():  # the net weight is intended: a mean pressure gradient carries it
        warnings.simplefilter("ignore", parki.ewald.NetDensityWarning)
        return parki.ewald.stokes_sl(at, spheres, forces, box=box, tolerance=tolerance) / (8 * np.pi * VISCOSITY)


def velocity(spheres, box, tolerance=1e-3):
    """Return velocities (3, N) of spheres anywhere: each one's own fall plus the flow of the others."""
    inside = parki.utils.wrap(spheres, box)
    return stirred(inside, inside, box, tolerance) - STOKES * np.eye(3)[:, 2:]


def seeded(n, box):
    """Return about n random points, no two of them closer than three radii."""
    points = np.random.default_rng(1).random((n, 3)) * box
    pairs = KDTree(points, boxsize=box).query_pairs(3 * RADIUS, output_type="ndarray")
    return np.delete(points, np.unique(pairs[:, 1]), axis=0).T.copy()


def fall(start, box, steps, step):
    """Return unwrapped positions (steps + 1, 3, N) in time by the midpoint rule, and the last velocities."""
    path = [start]
    for _ in range(steps):
        half = path[-1] + step / 2 * velocity(path[-1], box)
        path.append(path[-1] + step * velocity(half, box))
    return np.array(path), velocity(path[-1], box)


def draw(file, path, last, box, pixels):
    """Draw on the left the flow in a slice with its spheres, on the right the paths in a quarter of the box."""
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    now = parki.utils.wrap(path[-1], box)
    x, z = np.linspace(0, box[0], pixels), np.linspace(0, box[2], 2 * pixels)
    plane = np.stack(np.meshgrid(x, [box[1] / 2], z, indexing="ij")).reshape(3, -1)
    rise = stirred(plane, now, box, 1e-3)[2].reshape(pixels, -1).T / STOKES

    figure = Figure(figsize=(8.2, 8.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    below = {"location": "bottom", "shrink": 0.8, "pad": 0.02, "extend": "both"}
    image = left.pcolormesh(x * MM, z * MM, rise, cmap="RdBu_r", vmin=-1.5, vmax=1.5, shading="gouraud")
    figure.colorbar(image, ax=left, label="liquid, upwards (Stokes speeds)", **below)
    for sphere in now.T[np.abs(now[1] - box[1] / 2) < 2 * RADIUS] * MM:
        left.add_patch(Circle(sphere[::2], RADIUS * MM, facecolor="#222222", edgecolor="white", linewidth=0.5))
    left.set(title="The liquid in a slice, and the spheres in it", ylabel="height z (mm)")

    front = now[1] < box[1] / 4
    trails = (path - path[-1] + now)[:, ::2, front].transpose(2, 0, 1)  # trails end inside the box
    colours = {"cmap": "inferno_r", "clim": (-0.5, 3)}
    for shift in product((-1, 0, 1), (-1, 0)):  # spheres that leave through a side enter through the other
        lines = LineCollection((trails + np.multiply(shift, box[::2])) * MM, linewidths=0.9, alpha=0.8, **colours)
        lines.set_array(-last[2, front] / STOKES)
        right.add_collection(lines)
    right.scatter(*now[::2, front] * MM, s=9, c=-last[2, front] / STOKES, zorder=3).set(**colours)
    figure.colorbar(lines, ax=right, label="fall speed (Stokes speeds)", **below)
    right.set(title="Paths of the spheres in the front quarter")
    for axes in (left, right):
        axes.set(xlim=(0, box[0] * MM), ylim=(0, box[2] * MM), aspect="equal", xlabel="x (mm)")
    figure.suptitle(f"{now.shape[1]} spheres sinking: swarms fall, liquid rises beside them", fontsize=14)
    figure.savefig(file, dpi=130)


def animate(file, path, box, step):
    """Show the spheres of the middle quarter of the box as they sink."""
    from matplotlib.animation import FuncAnimation, PillowWriter
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4, 6.8), layout="constrained")
    axes = figure.subplots()
    scale = {"cmap": "plasma", "vmin": -0.5, "vmax": 3}
    dots = axes.scatter([], [], s=7, c=[], linewidths=0, **scale)
    figure.colorbar(dots, ax=axes, label="fall speed (Stokes speeds)", extend="both", shrink=0.8)
    axes.set(xlim=(0, box[0] * MM), ylim=(0, box[2] * MM), aspect="equal", facecolor="#1a1d24")
    axes.set(xlabel="x (mm)", ylabel="height z (mm)")
    frames = range(0, len(path) - 1, 1 + len(path) // 60)

    def show(frame):
        now = parki.utils.wrap(path[frame], box)
        middle = np.abs(now[1] - box[1] / 2) < box[1] / 8
        dots.set_offsets(now[::2, middle].T * MM)
        dots.set_array((path[frame] - path[frame + 1])[2, middle] / (step * STOKES))
        axes.set_title(f"{frame * step:4.0f} s")

    FuncAnimation(figure, show, frames).save(file, PillowWriter(fps=8), dpi=80)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="A sedimenting suspension.")
    parser.add_argument("--small", action="store_true", help="few spheres, few steps")
    parser.add_argument(
        "-o", type=Path, nargs="+", default=[], metavar="FILE", help="draw a picture, or its motion (.gif)"
    )
    asked = parser.parse_args(arguments)

    side = 100 * RADIUS
    alone = -velocity(np.full((3, 1), side / 2), (side, side, side), 1e-10)[2, 0] / STOKES
    exact = 1 - HASIMOTO * RADIUS / side
    print(
        f"one sphere, a/L = 0.01: {alone:.12f} of the Stokes speed, Hasimoto's {exact:.12f}, error {alone - exact:.1e}"
    )
    assert abs(alone - exact) < 1e-10

    box, n, steps = ((side, side, 2 * side), 8000, 60) if not asked.small else ((side / 2, side / 2, side), 700, 8)
    step = 0.5 * RADIUS / STOKES
    path, last = fall(seeded(n, box), box, steps, step)
    n, speed = path.shape[2], -last[2] / STOKES
    print(f"{n} spheres, {1e2 * n * 4 / 3 * np.pi * RADIUS**3 / np.prod(box):.2f} % by volume, {steps} steps")
    print(f"mean fall speed {speed.mean():.2f} Stokes speeds, spread {speed.std():.2f}, {np.mean(speed < 0):.0%} rise")
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
        return
    for file in asked.o:
        if file.suffix == ".gif":
            animate(file, path, box, step)
        else:
            draw(file, path, last, box, 40 if asked.small else 250)
        print(f"picture in {file}")


if __name__ == "__main__":
    main()
