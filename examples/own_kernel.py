"""A kernel of one's own in every periodicity
==========================================

Regularised stokeslets, the flow of smooth blobs of force of width ε, as a spectral Ewald sum.

:Shows: ``parki.ewald.plan`` with a ``Kernel`` made of an existing one and a pair function in a file of one's own.
:Run: ``python examples/own_kernel.py -o own_kernel.png`` (``--small``: a coarse picture)
:Expect: The free-space sum agrees with NumPy's; in a periodic box blobs far apart act like stokeslets, but move
   themselves by 4f/(√π ε); the picture shows the flow that a turning helix, a flagellum, drives in a row of boxes.

An Ewald sum is Σ (K − far part) over near pairs and a sum over the modes of the far part. Adding a kernel takes

1. a pair function, here ``regularised_stokeslet.py``, beside this file: K for a pair, and under SCREENED minus the far
   parts. NS counts the numbers of a source, parameters such as ε behind the others, NU those of the result, NF the far
   parts. w is 0 where target and source coincide: the term that the function adds there is the self term;
2. its far parts, ``far``: band-limited radial functions (``parki.ewald.split.far_parts``). D and E are the stokeslet's;
3. a function of the modes, ``multiplier``, of ``spread`` components, and its Green's function, ``spectrum``;
4. the estimates that choose rc and the grid, ``layers``; its cost, ``near``.

A blob of force (1 + k²ε²/4) exp(−k²ε²/4) has the flow

    erf(r/ε) (f/r + r (r·f)/r³) + 2/(√π ε) exp(−r²/ε²) (f − r (r·f)/r²),

Hasimoto's far part for ξ = 1/ε. Beyond 6 ε the flow is the stokeslet to rounding, and its mean over a box is the same:
only the pair function differs, if rc ≥ 6 ε. ``dataclasses.replace`` takes all else from the stokeslet.
"""

import argparse
import dataclasses
import importlib.util
from pathlib import Path

import numpy as np
from scipy.special import erf

import parki

PAIR = str(Path(__file__).with_name("regularised_stokeslet.py"))
REACH = 6.0  # reach of the smoothing in units of ε: exp(−36) is rounding


def regularised(epsilon):
    """Return the kernel with blobs of this width."""
    return dataclasses.replace(
        parki.ewald.kernels.STOKES_SL, name="regularised", pair=PAIR, names=("epsilon",), parameters=(epsilon,),
        near=2.5,
    )  # fmt: skip


def flow(trg, src, forces, epsilon, **options):
    """Return velocities (3, Nt), times 8πμ, with a near field of at least REACH."""
    plan = parki.ewald.plan(regularised(epsilon), trg, src, **options)
    if plan.parameters.rc < REACH * epsilon:
        plan = parki.ewald.plan(regularised(epsilon), trg, src, rc=REACH * epsilon, **options)
    return plan(forces)


def directly(trg, src, forces, epsilon):
    """Return the free-space sum, all pairs by NumPy; r is kept off 0, where both parts have limits."""
    r = trg[:, :, None] - src[:, None, :]
    length = np.maximum(np.linalg.norm(r, axis=0), 1e-5 * epsilon)
    along = np.einsum("dij,dj->ij", r, forces) / length**2
    g = 2 / np.sqrt(np.pi) / epsilon * np.exp(-((length / epsilon) ** 2))
    e = erf(length / epsilon) / length
    return np.einsum("ij,dj->di", e + g, forces) + np.einsum("ij,dij->di", (e - g) * along, r)


def helix(turns, number, box):
    """Return points (3, n) of a helix along x that continues across the box, and forces that turn the helix."""
    t = (np.arange(number) + 0.5) / number
    angle, radius = 2 * np.pi * turns * t, 0.18 * box[1]
    across = radius * np.array([np.cos(angle), np.sin(angle)])
    points = np.vstack([box[0] * t, across + 0.5 * box[1]])
    return points, np.vstack([np.zeros(number), -across[1], across[0]]) / radius


def draw(file, pixels):
    """Draw the flow along and across the axis of a turning helix, periodic along x."""
    from matplotlib.figure import Figure

    box, epsilon = (3.0, 1.5, 1.5), 0.05
    points, forces = helix(3, 300, box)
    x, y = np.linspace(0, box[0], 2 * pixels), np.linspace(0, box[1], pixels)
    plane = np.stack(np.meshgrid(x, y, [box[2] / 2])).reshape(3, -1)
    u = flow(plane, points, forces, epsilon, box=box, periodicity=1, tolerance=1e-5)
    u = u.reshape(3, pixels, 2 * pixels) / np.linalg.norm(u, axis=0).max()
    figure = Figure(figsize=(10, 4.9), layout="constrained")
    panel = figure.subplots()
    image = panel.pcolormesh(x, y, u[2], cmap="RdBu_r", vmin=-1, vmax=1, shading="gouraud")
    panel.streamplot(x, y, u[0], u[1], density=1.6, color="#333333", linewidth=0.6, arrowsize=0.7)
    blobs = panel.scatter(*points[:2], c=points[2], cmap="viridis", s=24, zorder=3, edgecolors="black", linewidths=0.3)
    figure.colorbar(image, ax=panel, pad=0.01, label="flow towards the viewer (of the fastest)")
    figure.colorbar(blobs, ax=panel, pad=0.01, label="z of the blobs, towards the viewer")
    panel.set(xlim=(0, box[0]), ylim=(0, box[1]), aspect="equal", xlabel="x", ylabel="y")
    panel.set_title("A turning helix of regularised stokeslets, periodic along x")
    figure.savefig(file, dpi=130)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="A kernel of one's own: regularised stokeslets.")
    parser.add_argument("--small", action="store_true", help="a coarse picture")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    rng = np.random.default_rng(0)
    x, f = rng.random((3, 200)), rng.normal(size=(3, 200))
    exact = directly(x, x, f, 0.1)
    error = np.linalg.norm(flow(x, x, f, 0.1, periodicity=0, tolerance=1e-10) - exact) / np.linalg.norm(exact)
    print(f"free space, 200 blobs: relative error {error:.1e}")

    lattice = np.stack(np.meshgrid(*[np.arange(4) / 4 + 0.1] * 3)).reshape(3, -1)
    f, periodic = f[:, :64] - f[:, :64].mean(axis=1, keepdims=True), {"box": (1, 1, 1), "tolerance": 1e-11}
    points = parki.ewald.stokes_sl(lattice, lattice, f, **periodic)
    own = 4 / np.sqrt(np.pi)
    for epsilon in (0.16, 0.08, 0.04):
        blobs = flow(lattice, lattice, f, epsilon, **periodic)
        left = np.linalg.norm(blobs - points - own / epsilon * f) / np.linalg.norm(points)
        print(f"fully periodic, distance 0.25, ε = {epsilon:g}: {left:.1e} from stokeslets and the self term")
    assert error < 1e-10
    assert left < 1e-10
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, 40 if asked.small else 160)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
