"""Microswimmers that stir their liquid
====================================

Each swimmer is carried and turned by the flow of all the others.

:Shows: ``parki.ewald.stokes_comb`` with double layer strengths q and normals n, used as force dipoles (stresslets).
:Run: ``python examples/squirmers.py -o squirmers.png squirmers.gif`` (``--small`` for a trial)
:Expect: Near one swimmer the exact flow of a force dipole, no net flow through a plane of the box, and a median speed
   in a swarm above that of one swimmer alone.

A pusher drives liquid out along its axis p and draws it in at the sides: u = σ (3 cos²θ − 1) r/r³. parki sums
−6 r (r·q)(r·n)/r⁵. Only pairs q ⊥ n add no volume, so the dipole p p − 1/3 is made of two of them: with unit vectors
a, b ⊥ p it is [(p + a)(p − a) + (p + b)(p − b)] / 3 up to an antisymmetric part, which the kernel ignores.
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np

import parki

SPEED = 30.0  # µm/s: speed of a swimmer alone
LENGTH = 8.0  # µm: length of a swimmer
SIGMA = 1500.0  # µm³/s, force dipole over 8πμ, positive for pushers; E. coli has about 30: these are strong


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=0)


def stresslets(axes):
    """Return strengths (6, 2N) and normals (3, 2N) of swimmers along unit vectors (3, N): two stresslets each."""
    least = np.eye(3)[np.argmin(np.abs(axes), axis=0)].T  # the coordinate axis that is farthest from p
    a = unit(np.cross(axes, least, axis=0))
    b = np.cross(axes, a, axis=0)
    strengths = np.hstack([axes + a, axes + b]) * (-SIGMA / 2 / 3)
    return np.vstack([np.zeros_like(strengths), strengths]), np.hstack([axes - a, axes - b])


def flow(at, places, axes, box, tolerance=1e-4):
    """Return velocities (3, Nt) of the liquid at points (3, Nt), without a swimmer's own flow at its own place."""
    at, sources = parki.utils.wrap(at, box), np.hstack([places, places])
    return parki.ewald.stokes_comb(at, sources, *stresslets(axes), box=box, tolerance=tolerance)


def rates(places, axes, box):
    """Return velocities of swimmers, and rates at which their axes turn, as for thin rods by the flow at both ends."""
    half = LENGTH / 2 * axes
    felt = flow(np.hstack([places, places + half, places - half]), places, axes, box)
    centre, front, back = np.split(felt, 3, axis=1)
    stretch = (front - back) / LENGTH
    turn = stretch - axes * np.sum(axes * stretch, axis=0)  # a swimmer's own flow at its ends, along p, cancels here
    return SPEED * axes + centre, turn


def swim(places, axes, box, steps, step):
    """Return a list of places and axes (3, N) after each step of the midpoint rule, and the last velocities."""
    path = [(places, axes)]
    for _ in range(steps):
        velocity, turn = rates(places, axes, box)
        middle = parki.utils.wrap(places + step / 2 * velocity, box)
        velocity, turn = rates(middle, unit(axes + step / 2 * turn), box)
        places, axes = parki.utils.wrap(places + step * velocity, box), unit(axes + step * turn)
        path.append((places, axes))
    return path, velocity


def bodies(panel, places, axes, box):
    """Draw the swimmers near the plane z = L/2, each with a dot at its head."""
    from matplotlib.patches import Ellipse

    near = np.abs(places[2] - box[2] / 2) < LENGTH
    (x, y, _), (px, py, _) = places[:, near], axes[:, near]
    for at, seen, turn in zip(np.c_[x, y], np.hypot(px, py), np.degrees(np.arctan2(py, px)), strict=True):
        body = Ellipse(at, LENGTH * max(seen, 0.35), LENGTH * 0.35, angle=turn, fc="#7fd6c2", ec="black", zorder=4)
        panel.add_patch(body)
    panel.scatter(x + 0.33 * LENGTH * px, y + 0.33 * LENGTH * py, s=9, color="black", zorder=5)


def draw(file, places, axes, box, pixels):
    """Draw the flow in the plane z = L/2, and the swimmers near it."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    line = np.linspace(0, box[0], pixels)
    plane = np.stack(np.meshgrid(line, line, [box[2] / 2])).reshape(3, -1)
    u = flow(plane, places, axes, box).reshape(3, pixels, pixels)

    figure = Figure(figsize=(8.6, 7.8), layout="constrained")
    panel = figure.subplots()
    speed = np.linalg.norm(u, axis=0)
    extent = (0, box[0], 0, box[1])
    image = panel.imshow(speed, "magma", norm=LogNorm(1, 100), extent=extent, origin="lower")
    panel.streamplot(line, line, u[0], u[1], density=pixels / 170, color="white", linewidth=0.5, arrowsize=0.6)
    bodies(panel, places, axes, box)
    figure.colorbar(image, ax=panel, extend="both", pad=0.02, label="speed of the liquid (µm/s)")
    title = f"The flow of {places.shape[1]} pushers in a slice, and those within {LENGTH:g} µm of it"
    panel.set(xlim=(0, box[0]), ylim=(0, box[1]), xlabel="x (µm)", ylabel="y (µm)", title=title)
    figure.savefig(file, dpi=130)


def animate(file, path, box, step, pixels):
    """Show the swimmers near the plane z = L/2 as they swim, and the speed of the liquid there."""
    from matplotlib.animation import FuncAnimation, PillowWriter
    from matplotlib.colors import BoundaryNorm
    from matplotlib.figure import Figure

    line, levels = np.linspace(0, box[0], pixels), [0, 5, 10, 20, 40, 80]
    plane = np.stack(np.meshgrid(line, line, [box[2] / 2])).reshape(3, -1)
    figure = Figure(figsize=(6.6, 5.6), layout="constrained")
    panel = figure.subplots()
    bands = {"levels": levels, "norm": BoundaryNorm(levels, 256, extend="max"), "cmap": "magma", "extend": "max"}
    bar = panel.contourf(line, line, np.zeros((pixels, pixels)), **bands)
    figure.colorbar(bar, ax=panel, label="speed of the liquid (µm/s)")

    def show(frame):
        panel.clear()
        speed = np.linalg.norm(flow(plane, *path[frame], box, 1e-2), axis=0)
        panel.contourf(line, line, speed.reshape(pixels, pixels), **bands)
        bodies(panel, *path[frame], box)
        panel.set(xlim=(0, box[0]), ylim=(0, box[1]), aspect="equal", xlabel="x (µm)", ylabel="y (µm)")
        panel.set_title(f"{path[frame][0].shape[1]} pushers, {1e3 * frame * step:3.0f} ms")

    FuncAnimation(figure, show, len(path)).save(file, PillowWriter(fps=10), dpi=70)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Microswimmers as force dipoles.")
    parser.add_argument("--small", action="store_true", help="few swimmers, few steps")
    parser.add_argument(
        "-o", type=Path, nargs="+", default=[], metavar="FILE", help="draw a picture, or its motion (.gif)"
    )
    asked = parser.parse_args(arguments)

    box = (200.0, 200.0, 200.0)  # µm
    one, axis = np.full((3, 1), 100.0), np.array([[1.0], [2.0], [2.0]]) / 3
    found = float(axis[:, 0] @ flow(one + 2 * axis, one, axis, box, 1e-9)[:, 0] / (2 * SIGMA / 2**2))
    print(f"one swimmer, 2 µm in front of it: {found:.8f} of the flow of a force dipole")
    grid = np.arange(0, 200, 6.25)
    through = flow(np.stack(np.meshgrid(grid, grid, [140.0])).reshape(3, -1), one, axis, box, 1e-9)[2]
    most = np.abs(through).max()
    print(f"flow through the plane z = 140 µm: {through.mean():.1e} µm/s on average, {most:.1e} at most")
    assert abs(found - 1) < 1e-5
    assert abs(through.mean()) < 1e-7 * most

    n, steps = (300, 4) if asked.small else (1000, 30)
    rng = np.random.default_rng(4)
    places, axes = rng.random((3, n)) * 200, unit(rng.normal(size=(3, n)))
    step = 0.02  # s
    path, velocity = swim(places, axes, box, steps, step)
    median = np.median(np.linalg.norm(velocity, axis=0))
    print(f"{n} swimmers, {steps} steps: median speed {median:.1f} µm/s, {SPEED:g} µm/s when alone")
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
        return
    for file in asked.o:
        if file.suffix == ".gif":
            animate(file, path, box, step, 50 if asked.small else 100)
        else:
            draw(file, *path[-1], box, 60 if asked.small else 300)
        print(f"picture in {file}")


if __name__ == "__main__":
    main()
