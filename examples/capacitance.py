"""Capacitance of a sphere, and of two
===================================

An integral equation of the first kind, solved by GMRES on the operator of a multipole plan.

:Shows: ``parki.fmm.plan``, and its operator with a correction for each point's own patch.
:Run: ``python examples/capacitance.py -o capacitance.png`` (``--small`` for a trial)
:Expect: The charge of a sphere of radius 1 at potential 1 is 1, its capacitance in units of 4πε₀a; the error falls as
   the number of points grows. A second sphere at potential −1 close to the first raises the charge, as the method of
   images says: Σ sinh β / sinh nβ, 2 cosh β their distance.

A charge density σ on the sphere has the potential ∫ σ/r. Points represent patches of equal area A, with charges σ A.
The sum over other points is less than the integral by the difference of a smooth plane and a lattice of point charges:
3.9003 σ √A for a square lattice (3.9210 if hexagonal), which Fibonacci's spirals resemble. This is the correction.
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np
from scipy.sparse import diags
from scipy.sparse.linalg import gmres

import parki

SQUARE = 3.900265  # potential of a square lattice of charges −1, one per area, with their background, at one of them


def fibonacci(n):
    """Return points (3, n) of the unit sphere that represent equal areas."""
    k = np.arange(n) + 0.5
    z, angle = 1 - 2 * k / n, np.pi * (1 + np.sqrt(5)) * k
    return np.vstack([np.sqrt(1 - z**2) * [np.cos(angle), np.sin(angle)], z])


def charges(x, potential, n, tolerance):
    """Return the charges (N,) of points with these potentials, n on each unit sphere, and the steps of GMRES."""
    plan = parki.fmm.plan("coulomb", x, x, tolerance=tolerance)
    own = SQUARE * np.sqrt(n / (4 * np.pi)) * np.ones(x.shape[1])
    steps = []
    q, left = gmres(
        plan.operator(correction=diags(own)), potential, rtol=10 * tolerance, callback=steps.append,
        callback_type="pr_norm", maxiter=10, restart=60,
    )  # fmt: skip
    assert left == 0
    return q, len(steps)


def images(gap):
    """Return the charge of a unit sphere at potential 1 beside one at potential −1, by images; the gap is in radii."""
    beta = np.arccosh(1 + gap / 2)
    n = np.arange(1, 200)
    return (np.sinh(beta) / np.sinh(n * beta)).sum()


def draw(file, x, q, n):
    """Draw both spheres from the side, and the density along their common axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7.6), layout="constrained")
    top, bottom = figure.subplots(2, 1, height_ratios=(1.25, 1))
    density = q * n / (4 * np.pi)
    most = np.abs(density).max()
    front = x[1] < 0
    size = 6 if n > 10_000 else 30
    dots = top.scatter(*x[::2, front], c=density[front], s=size, linewidths=0, cmap="RdBu_r", vmin=-most, vmax=most)
    top.set(aspect="equal", facecolor="#e8e8e8", xlabel="x (a)", ylabel="z (a)")
    top.set_title(f"Charge of two spheres at potentials 1 and −1, {n} points each")
    figure.colorbar(dots, ax=top, label="density (4πε₀/a)")
    for sign, colour in ((1, "#8c1c13"), (-1, "#123c69")):
        side = q * sign > 0
        bottom.plot(
            x[0, side], density[side], ".", markersize=2, color=colour, label=f"potential {sign}".replace("-", "−")
        )
        bottom.axhline(sign / (4 * np.pi), color=colour, linestyle="--", linewidth=1, label="the same sphere alone")
    bottom.set(xlabel="x (a)", ylabel="density (4πε₀/a)", title="Along the common axis")
    bottom.grid(alpha=0.3)
    bottom.legend(markerscale=6)
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Capacitance of a sphere, by GMRES.")
    parser.add_argument("--small", action="store_true", help="few points")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    for n in (1000, 4000) if asked.small else (1000, 4000, 16_000, 64_000):
        x = fibonacci(n)
        q, steps = charges(x, np.ones(n), n, 1e-6)
        print(f"{n:6} points, {steps:2} steps: capacitance {q.sum():.6f} of 4πε₀a, error {q.sum() - 1:.1e}")
    assert abs(q.sum() - 1) < 1e-5

    gap, n = 0.5, 3000 if asked.small else 30_000
    x = fibonacci(n)
    pair = np.hstack([x, x + np.reshape([2 + gap, 0, 0], (3, 1))])
    q, steps = charges(pair, np.repeat([1.0, -1.0], n), n, 1e-6)
    found = q[:n].sum() / images(gap)
    print(f"two spheres {gap:g} a apart, {steps} steps: charge {found:.6f} of that by images")
    assert abs(found - 1) < 1e-4
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, pair, q, n)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
