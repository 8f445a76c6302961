"""Charged bodies in salt water
============================

The screened potential of a charged sphere, and of a rough one, as of a large protein.

:Shows: ``parki.treecode.plan`` for Yukawa's kernel, targets apart from sources, and its measured error.
:Run: ``python examples/screened_sphere.py -o screened_sphere.png`` (``--small`` for a trial)
:Expect: Outside an evenly charged sphere of radius a the potential is that of its centre, Q exp(−κr)/r, times
   sinh(κa)/κa, to five digits; the error asked for is met.

Lengths are in units of the sphere's radius; κ = 4 is a Debye length of a quarter of it: a protein of 4 nm in water with
0.1 mol/l of salt, 1 nm.
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np

import parki

KAPPA = 4.0
TOLERANCE = 1e-7
HEIGHT = 0.3  # height of the plane in the picture


def spiral(n):
    """Return points (3, n) spread evenly on the unit sphere."""
    z = 1 - (2 * np.arange(n) + 1) / n
    angle = np.pi * (3 - np.sqrt(5)) * np.arange(n)
    return np.array([np.sqrt(1 - z**2) * np.cos(angle), np.sqrt(1 - z**2) * np.sin(angle), z])


def rough(points):
    """Return a lobed surface over the sphere, and charges on it that change sign with the lobes."""
    x, y, z = points
    lobes = 5 * x * y * z + 0.5 * (x**2 - y**2)
    return points * (1 + 0.25 * lobes), lobes / points.shape[1]


def potential(targets, sources, charges):
    """Return the screened potential at targets, and its measured error."""
    plan = parki.treecode.plan("yukawa", targets, sources, kappa=KAPPA, tolerance=TOLERANCE)
    return plan(charges), plan.error()


def draw(file, pixels, n):
    """Draw the potential of the rough body in a plane through it."""
    from matplotlib.colors import AsinhNorm
    from matplotlib.figure import Figure

    side = np.linspace(-1.8, 1.8, pixels)
    plane = np.stack(np.meshgrid(side, side, [HEIGHT])).reshape(3, -1)
    body, charges = rough(spiral(n))
    u, _ = potential(plane, body, charges)
    figure = Figure(figsize=(7, 6), layout="constrained")
    panel = figure.subplots()
    most = np.abs(u).max()
    image = panel.pcolormesh(
        side, side, u.reshape(pixels, pixels), norm=AsinhNorm(most / 50, -most, most), cmap="RdBu_r"
    )
    figure.colorbar(image, label="potential (charge / radius)")
    cut = np.abs(body[2] - HEIGHT) < 0.01
    panel.scatter(*body[:2, cut], s=1, color="black", label="surface of the body")
    panel.legend(loc="upper right", markerscale=5)
    panel.set(xlabel="x (radii)", ylabel="y (radii)", aspect="equal")
    panel.set_title(f"A rough charged body in salt water, κ = {KAPPA:g}, at z = {HEIGHT:g}")
    figure.savefig(file, dpi=130)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Screened potentials of charged bodies.")
    parser.add_argument("--small", action="store_true", help="few charges")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    n = 10_000 if asked.small else 200_000
    outside = spiral(2000) * np.linspace(1.2, 2.0, 2000)
    r = np.linalg.norm(outside, axis=0)
    found, error = potential(outside, spiral(n), np.full(n, 1 / n))
    exact = np.exp(-KAPPA * r) / r * np.sinh(KAPPA) / KAPPA
    ratio = found @ exact / (exact @ exact)
    print(f"outside an even sphere of {n} charges: {ratio:.6f} of the exact potential, {error}")
    assert error.value < TOLERANCE
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, 150 if asked.small else 400, n)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
