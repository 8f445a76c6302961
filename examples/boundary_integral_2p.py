"""Flow through a sheet of spheres: a boundary integral in 2P
==========================================================

A viscous liquid flows through a square array of fixed spheres in one plane, which repeats in two directions.

:Shows: `parki.ewald` with two periodic directions, and a completed double layer solved by GMRES on plans' operators.
:Run: ``python examples/boundary_integral_2p.py -o boundary_integral_2p.png`` (``--small``: few points)
:Expect: The sheet resists less than its spheres alone would, F (1 − 2.92520 a/L + 4.51681 (a/L)³) = 6πμaU to the fifth
    power of a/L, where a is the radius and L the distance of the spheres, and U is the speed far away.

Far from the sheet the flow is U along z on both sides, because a force along z moves no liquid far away in 2P.  At a
sphere this velocity must vanish::

    u(x) = U − Σ K (q_j − q_i) − G f,   K q = −6 r (r·q)(r·n)/r⁵,   f = Σ q dA

K is the kernel of the double layer, whose flow outside is zero for a constant density, so that no singular quadrature
is needed.  G f is the flow of a point force at the centre (Power and Miranda 1987).  The force is F = 8πμ f.

The two numbers are sums over the square lattice.  A point force along z at each other site, with the mean subtracted,
slows a sphere by 3/4 of Σ 1/r = −3.900265/L; by Faxén's law the sphere's size adds (a²/3) ∇² of this, (3/4) (2/3)
Σ 1/r³ = 9.033622/2 L⁻³.  By symmetry the next term is of the fifth power.
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np
from scipy.sparse import block_array, diags_array
from scipy.sparse.linalg import LinearOperator, gmres
from scipy.spatial import KDTree

import parki

LATTICE, FAXEN = 0.75 * 3.9002649200019564, 0.5 * 9.0336216831509  # lattice sums of 1/r less its mean, and of 1/r³
HEIGHT = 3.0  # height of the box along z, with the sheet at half the height; L = 1
CENTRE = np.array([[0.5], [0.5], [HEIGHT / 2]])
SUM = {"box": (1, 1, HEIGHT), "periodicity": 2, "tolerance": 1e-9}


def sphere(radius, rings):
    """Return points (3, N) in rings about the centre, and outward normals (3, N) whose lengths are the areas."""
    cosines, weights = np.polynomial.legendre.leggauss(rings)
    angles = 2 * np.pi * np.arange(2 * rings) / (2 * rings)
    z, t = np.repeat(cosines, 2 * rings), np.tile(angles, rings)
    outward = np.stack([np.sqrt(1 - z**2) * np.cos(t), np.sqrt(1 - z**2) * np.sin(t), z])
    return CENTRE + radius * outward, outward * radius**2 * np.repeat(weights, 2 * rings) * np.pi / rings


def solve(points, normals):
    """Return densities (3, N) and the force f (3,) for unit speed, and the number of steps of GMRES."""
    n, area = points.shape[1], np.linalg.norm(normals, axis=0)
    plan = parki.ewald.plan("stokes_dl", points, points, **SUM)
    constant = plan(np.eye(3)[:, :, None] * np.ones(n), normals)  # flows of unit q along x, y and z, (3, 3, N)
    off = block_array([[diags_array(-constant[k, i]) for k in range(3)] for i in range(3)])
    layer, force = plan.operator(normals, correction=off), parki.ewald.plan("stokes_sl", points, CENTRE, **SUM)

    def disturbance(q):
        return layer @ q + force((q.reshape(3, n) @ area)[:, None]).ravel()

    steps, far = [], np.repeat([0.0, 0.0, 1.0], n)
    system = LinearOperator(layer.shape, disturbance, dtype=float)
    q, left = gmres(system, far, rtol=1e-9, callback=steps.append, callback_type="pr_norm")
    assert left == 0
    q = q.reshape(3, n)
    return q, q @ area, len(steps)


def velocity(at, points, normals, q, f):
    """Return the velocity (3, M) outside; the density of the nearest point, which gives no flow, is subtracted."""
    nearest = q[:, KDTree(points.T).query(at.T)[1]]
    columns = np.concatenate([q[None], np.eye(3)[:, :, None] * np.ones(points.shape[1])])
    whole, *constant = parki.ewald.stokes_dl(at, points, columns, normals, **SUM)
    layer = whole - sum(nearest[k] * constant[k] for k in range(3))
    return np.array([[0.0], [0.0], [1.0]]) - layer - parki.ewald.stokes_sl(at, CENTRE, f[:, None], **SUM)


def draw(file, radius, rings, pixels):
    """Draw streamlines and speed in a plane through the centres of a row of spheres."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    points, normals = sphere(radius, rings)
    x, z = (np.arange(pixels) + 0.5) / pixels, np.linspace(-1, 1, 2 * pixels)
    at = np.stack([a.ravel() for a in np.meshgrid(x, [0.5], z + HEIGHT / 2, indexing="ij")])
    u = velocity(at, points, normals, *solve(points, normals)[:2])
    u[:, np.linalg.norm(at - CENTRE, axis=0) < radius] = 0
    along, across = (np.tile(c.reshape(pixels, -1), (3, 1)) for c in (u[2], u[0]))
    x = np.concatenate([x, x + 1, x + 2])
    figure = Figure(figsize=(6.6, 8.4), layout="constrained")
    panel = figure.subplots()
    image = panel.pcolormesh(z, x, np.hypot(along, across), cmap="viridis", vmin=0, shading="gouraud")
    panel.streamplot(z, x, along, across, density=1.7, color="white", linewidth=0.7, arrowsize=0.8)
    for k in range(3):
        panel.add_patch(Circle((0, k + 0.5), radius, facecolor="#c8552b", edgecolor="black", zorder=3))
    figure.colorbar(image, ax=panel, pad=0.01, shrink=0.85, label="speed (of that far away)")
    panel.set(xlim=(-1, 1), ylim=(x[0], x[-1]), aspect="equal", xlabel="z / L, across the sheet", ylabel="x / L")
    panel.set_title(f"Stokes flow through a sheet of spheres, a/L = {radius:g}")
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Flow through a doubly periodic sheet of spheres, by GMRES.")
    parser.add_argument("--small", action="store_true", help="few points")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    for radius in (0.3, 0.05) if asked.small else (0.4, 0.3, 0.2, 0.1, 0.05):
        _, f, steps = solve(*sphere(radius, 10 if asked.small else 20))
        drag = 8 * f[2] / (6 * radius)
        found = drag * (1 - LATTICE * radius + FAXEN * radius**3)
        print(f"a/L = {radius:g}, {steps} steps: drag {drag:.6f} of 6πμaU, {found:.7f} of that by the series")
    assert abs(found - 1) < 2e-6
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, 0.3, 12 if asked.small else 24, 40 if asked.small else 120)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
