"""Drag of arrays of spheres
=========================

Liquid flows through a simple cubic lattice of fixed spheres, from dilute to dense.

:Shows: A flow past bodies by point forces inside them; one periodic cell, all columns of its matrix in a few calls.
:Run: ``python examples/drag_of_arrays.py -o drag_of_arrays.png`` (``--small``: three lattices, few points)
:Expect: The published drags of Zick and Homsy (J. Fluid Mech. 115 (1982) 13), to all their digits.

A sphere moves with unit velocity through liquid that is at rest on average. Point forces on a smaller sphere inside
make the flow u = Σ (f/r + r (r·f)/r³), and are found by least squares from u at points of the surface. With three
periodic directions the mean flow is zero and a mean pressure gradient balances the force; inside the sphere the flow
has the same mean as a rigid sphere, as it has no sources. So the drag over Stokes' 6πμaU is K = 8πμ Σf / (6πμa).
"""

import argparse
import importlib.util
import warnings
from pathlib import Path

import numpy as np

import parki

#: Volume fraction: K of a simple cubic lattice (Zick and Homsy, table 2); points and their radius over the sphere's.
LATTICES = {
    0.027: (2.008, 150, 0.5),
    0.064: (2.810, 200, 0.6),
    0.125: (4.292, 200, 0.6),
    0.216: (7.442, 300, 0.7),
    0.343: (15.4, 400, 0.75),
}
SUM = {"box": (1, 1, 1), "tolerance": 1e-8}
AT_ONCE = 100  # right-hand sides of a call


def sphere(n, radius):
    """Return n points (3, n) of a sphere in the middle of the cell, evenly along a spiral."""
    i = np.arange(n) + 0.5
    z, angle = 1 - 2 * i / n, np.pi * (1 + np.sqrt(5)) * i
    ring = np.sqrt(1 - z**2)
    return 0.5 + radius * np.stack([ring * np.cos(angle), ring * np.sin(angle), z])


def forces(fraction, n, inside):
    """Return the points (3, n) of forces over 8πμ (3, n) that move a sphere, and its radius."""
    radius = (3 * fraction / (4 * np.pi)) ** (1 / 3)
    y, x = sphere(n, inside * radius), sphere(2 * n, radius)
    plan = parki.ewald.plan("stokes_sl", x, y, rhs=AT_ONCE, **SUM)
    unit = np.eye(3 * n).reshape(3 * n, 3, n)
    columns = [plan(unit[k : k + AT_ONCE]) for k in range(0, 3 * n, AT_ONCE)]
    matrix = np.concatenate(columns).reshape(3 * n, -1).T
    velocity = np.repeat([1.0, 0.0, 0.0], 2 * n)
    return y, np.linalg.lstsq(matrix, velocity, rcond=1e-11)[0].reshape(3, n), radius


def draw(file, drags, flow, pixels):
    """Draw the drags beside Hasimoto's series, and the liquid's speed past a sphere at rest."""
    from matplotlib.figure import Figure

    y, f, radius = flow
    edges = np.linspace(0, 1, pixels)
    at = np.stack(np.meshgrid(edges, edges, [0.5], indexing="ij")).reshape(3, -1)
    u = np.array([[1.0], [0.0], [0.0]]) - parki.ewald.stokes_sl(at, y, f, **SUM)
    u[:, np.linalg.norm(at - 0.5, axis=0) < radius] = np.nan
    u = u.reshape(3, pixels, pixels).swapaxes(1, 2)
    figure = Figure(figsize=(10.5, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    image = left.pcolormesh(edges, edges, np.hypot(u[0], u[1]), cmap="viridis")
    left.streamplot(edges, edges, u[0], u[1], color="white", density=1.2, linewidth=0.7, arrowsize=0.8)
    left.set(aspect="equal", title="speed over the mean one, in a plane of centres")
    figure.colorbar(image, ax=left)
    fraction = np.array(list(drags))
    dilute = np.linspace(1e-4, 0.125, 200)
    right.plot(dilute, 1 / (1 - 1.7601 * np.cbrt(dilute) + dilute - 1.5593 * dilute**2), label="series for dilute ones")
    right.plot(fraction, [LATTICES[c][0] for c in drags], "s", ms=10, mfc="none", label="Zick and Homsy")
    right.plot(fraction, list(drags.values()), "k.", label="parki")
    right.set(xlabel="volume fraction", ylabel="drag over 6πμaU", yscale="log", title="a simple cubic lattice")
    right.legend()
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Drag of arrays of spheres.")
    parser.add_argument("--small", action="store_true", help="three lattices, few points")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore", parki.ewald.NetDensityWarning)  # a mean pressure gradient balances the forces

    drags = {}
    for fraction in list(LATTICES)[: 3 if asked.small else None]:
        published, n, inside = LATTICES[fraction]
        y, f, radius = forces(fraction, n // (2 if asked.small else 1), inside)
        drags[fraction] = f[0].sum() / (0.75 * radius)
        print(f"volume fraction {fraction:5.3f}: drag {drags[fraction]:7.4f} of 6πμaU, published {published}")
    error = max(abs(LATTICES[fraction][0] / drag - 1) for fraction, drag in drags.items())
    print(f"published over computed: {error:.1e} from 1 at most")
    assert error < 5e-4
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, drags, (y, f, radius), 60 if asked.small else 200)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
