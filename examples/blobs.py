"""A kernel of one's own in treecodes and multipole methods
========================================================

The flow of regularised stokeslets, smooth blobs of force, from a file with the pair function alone.

:Shows: ``parki.pairs.Pair`` of a file with a pair function, ``parki.treecode.plan`` and ``parki.fmm.plan``, their
   errors, and their operators.
:Run: ``python examples/blobs.py -o blobs.png`` (``--small`` for a trial)
:Expect: The error is below any tolerance asked for, although parki does not know the kernel. A linear system for the
   forces that give the blobs a velocity is solved by GMRES with plans of a treecode and of the multipole method by
   equivalent sources: their drags are the same.

Interpolation at Chebyshev points only needs a kernel that is smooth away from r = 0 and linear in the strengths of the
sources, the three numbers of the force. Equivalent sources are blobs themselves, on surfaces around boxes. The width ε
is the same for all, so it is a parameter, not a strength. The kernel is in ``regularised_stokeslet.py``, beside this
file.
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import gmres

import parki

FILE = str(Path(__file__).with_name("regularised_stokeslet.py"))


def blob(epsilon):
    """Return the kernel with blobs of this width."""
    return parki.pairs.Pair("blob", 3, 3, FILE, names=("epsilon",), parameters=(epsilon,), singular=False)


def draw(file, x, forces, epsilon, errors, pixels):
    """Draw the liquid around the moving sphere, and the errors of both methods."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    line = np.linspace(-3, 3, pixels)
    plane = np.stack(np.meshgrid(line, line, [0.0])).reshape(3, -1)
    u = parki.treecode.plan(blob(epsilon), plane, x, tolerance=1e-4)(forces).reshape(3, pixels, pixels)

    figure = Figure(figsize=(12, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    image = left.pcolormesh(line, line, np.linalg.norm(u, axis=0), cmap="viridis", vmin=0, vmax=1, shading="gouraud")
    outside = np.where(np.hypot(*plane[:2]).reshape(pixels, pixels) > 1, u, np.nan)
    left.streamplot(line, line, outside[0], outside[1], density=1.2, color="white", linewidth=0.7, arrowsize=0.8)
    left.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor="black"))
    figure.colorbar(image, ax=left, label="speed (of the sphere)")
    left.set(aspect="equal", xlim=(-3, 3), ylim=(-3, 3), xlabel="x (radii)", ylabel="y (radii)")
    left.set_title(f"A sphere of {x.shape[1]} blobs moves through still liquid")
    for (name, found), marker in zip(errors.items(), "os", strict=True):
        right.loglog(*zip(*found, strict=True), marker=marker, markersize=8, label=name)
    ends = [1e-8, 1e-2]
    right.fill_between(ends, ends, 1, color="#f3d9d9", linewidth=0, label="tolerance missed")
    right.set(xlim=ends[::-1], ylim=(1e-10, 1), xlabel="asked tolerance", ylabel="measured error (relative RMS)")
    right.set_title("Errors of random forces on the blobs")
    right.grid(alpha=0.3)
    right.legend(loc="lower left")
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="A kernel of one's own in treecodes and multipole methods.")
    parser.add_argument("--small", action="store_true", help="few blobs")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    n = 3000 if asked.small else 10_000
    x = parki.samples.sphere(n, seed=1)
    forces = np.random.default_rng(2).normal(size=(3, n))
    few = 60 if asked.small else None
    errors = {"treecode": [], "chebyshev": []}
    for tolerance in (1e-3,) if asked.small else (1e-3, 1e-5, 1e-7):
        for name, plan in (
            ("treecode", parki.treecode.plan(blob(0.02), x, x, tolerance=tolerance, leaf_size=few)),
            ("chebyshev", parki.fmm.plan(blob(0.02), x, x, method="chebyshev", tolerance=tolerance, leaf_size=few)),
        ):
            plan(forces)
            error = plan.error()
            errors[name].append((tolerance, error.value))
            print(f"{n} blobs, tolerance {tolerance:g}, {name}: {error}; {plan.parameters}")
    worst = max(error / tolerance for found in errors.values() for tolerance, error in found)
    print(f"largest error: {worst:.3f} of the tolerance")
    assert worst < 1

    # A sphere that moves with velocity 1: its drag is 6πμa, here in units of 8πμ.
    epsilon, velocity = 1.2 * n**-0.5, np.outer([1.0, 0.0, 0.0], np.ones(n)).ravel()
    drag = {}
    for name, module in (("treecode", parki.treecode), ("equivalent sources", parki.fmm)):
        plan = module.plan(blob(epsilon), x, x, tolerance=1e-4, leaf_size=few)
        found, left = gmres(plan.operator(), velocity, rtol=1e-3, maxiter=5, restart=40)
        assert left == 0
        forces = found.reshape(3, n)
        drag[name] = forces.sum(axis=1)[0] / (6 / 8)
        print(f"drag of a sphere of {n} blobs, by {name}: {drag[name]:.3f} of Stokes'")
    assert np.ptp(list(drag.values())) < 1e-2
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, x, forces, epsilon, errors, 80 if asked.small else 240)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
