"""A bead falls along a pipe
=========================

A small bead falls along the axis of a pipe full of viscous liquid, which must stick to the wall.

:Shows: ``parki.ewald`` with one periodic direction, and a boundary integral of the double layer solved by GMRES.
:Run: ``python examples/pipe.py -o pipe.png`` (``--small``: a coarse wall)
:Expect: The wall slows the bead by 2.10444 a/R of its speed in open liquid, a the radius of the bead and R that of the
   pipe (Faxén 1922); in the picture the ring of liquid that turns between the bead and the wall.

The flow is that of the bead, a point force f, and of a double layer on the wall, u = Σ −6 r (r·q)(r·n)/r⁵. At the wall
this u tends to Σ K (q_j − q_i) + 8π q_i: constant q gives 8πq, and the difference needs no singular quadrature, only a
block of the diagonal. All velocities are times 8πμ. In periodic pressure, beads at distances L drag the liquid along by
4f/L at the axis; a closed pipe has no net flow, so this is subtracted.
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import gmres
from scipy.spatial import KDTree

import parki

FAXEN = 2.104443  # slowing of a small sphere in units of a/R
LENGTH = 6.0  # period along x; the radius of the pipe is 1 and its axis y = z = 1.2
BOX, AXIS = (LENGTH, 2.4, 2.4), 1.2
AROUND = 1.8  # length of the pipe on each side of the bead, in the picture
SUM = {"box": BOX, "periodicity": 1, "tolerance": 1e-8}


def wall(around):
    """Return points (3, N) on the wall at equal distances, and outward normals (3, N) whose lengths are the areas."""
    along = round(around * LENGTH / (2 * np.pi))
    x, t = (a.ravel() for a in np.meshgrid(np.arange(along) / along * LENGTH, np.arange(around) / around * 2 * np.pi))
    n = np.stack([np.zeros_like(t), np.cos(t), np.sin(t)])
    return np.stack([x, n[1] + AXIS, n[2] + AXIS]), n * (2 * np.pi / around * LENGTH / along)


def solve(points, normals, bead, force):
    """Return densities (3, N) on the wall that stop the liquid there, and the number of steps of GMRES."""
    n = points.shape[1]
    plan = parki.ewald.plan("stokes_dl", points, points, **SUM)
    rows = plan(np.eye(3)[:, :, None] * np.ones(n), normals)  # flows of constant q along x, y and z, (3, 3, N)
    blocks = 8 * np.pi * np.eye(3) - rows.transpose(2, 1, 0)
    i, j, k = np.indices((n, 3, 3))
    diagonal = sparse.csr_array((blocks.ravel(), ((j * n + i).ravel(), (k * n + i).ravel())))
    right, steps = -parki.ewald.stokes_sl(points, bead, force, **SUM).ravel(), []
    found, failed = gmres(
        plan.operator(normals, correction=diagonal), right, rtol=1e-7, callback=steps.append, callback_type="pr_norm"
    )
    assert not failed
    return found.reshape(3, n), len(steps)


def draw(file, points, normals, q, bead, force, pixels):
    """Draw streamlines and speed in a plane through the axis, with the mean flow subtracted."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    x, y = LENGTH / 2 + np.linspace(-AROUND, AROUND, 2 * pixels), np.linspace(AXIS - 1, AXIS + 1, pixels)
    at = np.stack(np.meshgrid(x, y, [AXIS])).reshape(3, -1)
    # Close to the wall, subtract the density of the nearest point, whose flow is 8π times the density.
    near = q[:, KDTree(points.T, boxsize=(LENGTH, 0, 0)).query(at.T)[1]]  # 0: not periodic
    rows = np.eye(3)[:, :, None] * np.ones(points.shape[1])
    of_q, *of_rows = parki.ewald.stokes_dl(at, points, np.stack([q, *rows]), normals, **SUM)
    u = of_q - np.einsum("kdi,ki->di", of_rows, near) + 8 * np.pi * near
    u += parki.ewald.stokes_sl(at, bead, force, **SUM)
    u[0] -= force[0] * 4 / LENGTH * (1 - (at[1] - AXIS) ** 2)
    u = u.reshape(3, pixels, 2 * pixels)
    figure = Figure(figsize=(10, 6.1), layout="constrained")
    panel = figure.subplots()
    speed = np.hypot(u[0], u[1])
    image = panel.pcolormesh(x, y - AXIS, speed, cmap="magma", norm=LogNorm(0.03, 10), shading="gouraud")
    along = np.where(speed > 0.05, u[0], np.nan)  # no lines where there is hardly any flow
    panel.streamplot(x, y - AXIS, along, u[1], density=1.4, color="white", linewidth=0.6, arrowsize=0.7)
    panel.plot(*bead[:2] - [[0], [AXIS]], "o", color="#7fd6c2", markeredgecolor="black", markersize=10)
    for side in (-1, 1):
        panel.fill_between(x[[0, -1]], 1.0 * side, 1.1 * side, color="#999999", linewidth=0)
    figure.colorbar(image, ax=panel, extend="both", pad=0.01, label="speed (f / 8πμR)")
    panel.set(xlim=x[[0, -1]], ylim=(-1.1, 1.1), aspect="equal", xlabel="along the pipe (R)", ylabel="across (R)")
    panel.set_title("A bead in a closed pipe turns the liquid round beside it")
    figure.savefig(file, dpi=130)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="A bead in a pipe.")
    parser.add_argument("--small", action="store_true", help="a coarse wall")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    bead, force = np.array([[LENGTH / 2], [AXIS], [AXIS]]), np.array([[1.0], [0.0], [0.0]])
    for around in (12, 24) if asked.small else (12, 24, 48):
        points, normals = wall(around)
        q, steps = solve(points, normals, bead, force)
        pushed = parki.ewald.stokes_dl(bead, points, q, normals, **SUM)[0, 0]
        images = parki.ewald.stokes_sl(bead, bead, force, **SUM)[0, 0]
        slowed = 0.75 * (4 / LENGTH - pushed - images)
        print(f"{points.shape[1]:5} points on the wall, {steps:2} steps: slowed by {slowed:.6f} a/R, Faxén {FAXEN}")
    assert abs(slowed - FAXEN) < 1e-3
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, points, normals, q, bead, force, 40 if asked.small else 120)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
