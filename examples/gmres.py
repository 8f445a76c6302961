"""Drag of a spheroid in a viscous liquid
======================================

A boundary integral whose matrix is never formed, solved by GMRES.

:Shows: ``plan.operator()``: a sum as a SciPy ``LinearOperator`` with a sparse correction of its quadrature.
:Run: ``python examples/gmres.py -o gmres.png`` (``--small``: few points)
:Expect: With more points the drag tends to Oberbeck's exact one (1876), in a number of steps that does not grow.

The completed double layer (Power and Miranda 1987): the flow is u = Σ −6 r (r·q)(r·n)/r⁵ plus that of a point force at
the centre, of strength f = Σ q dA. Outside, constant q gives no flow, so at the surface u tends to Σ K (q_j − q_i): a
block of the diagonal, −Σ K, corrects the sum, and no singular quadrature is needed. The drag is 8πμ f.
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, gmres
from scipy.spatial import KDTree

import parki

LONG, SHORT = 2.0, 1.0  # half axes, the long one along x
SUM = {"periodicity": 0, "tolerance": 1e-9}


def oberbeck():
    """Return the exact drag over μ U, along the axis."""
    e = np.sqrt(1 - (SHORT / LONG) ** 2)
    return 16 * np.pi * LONG * e**3 / ((1 + e**2) * np.log((1 + e) / (1 - e)) - 2 * e)


def spheroid(rings):
    """Return points (3, N) in rings, and outward normals (3, N) whose lengths are the areas."""
    s, weights = np.polynomial.legendre.leggauss(rings)
    around = rings + rings % 2
    s, t = (a.ravel() for a in np.meshgrid(s, np.arange(around) / around * 2 * np.pi, indexing="ij"))
    ring = np.sqrt(1 - s**2)
    points = np.stack([LONG * s, SHORT * ring * np.cos(t), SHORT * ring * np.sin(t)])
    half = np.array([[LONG], [SHORT], [SHORT]])
    return points, points / half**2 * (LONG * SHORT**2 * np.repeat(weights, around) * 2 * np.pi / around)


def drag(points, normals):
    """Return densities (3, N), the force over 8πμ for unit speed along x, and the number of steps of GMRES."""
    n, area = points.shape[1], np.linalg.norm(normals, axis=0)
    plan = parki.ewald.plan("stokes_dl", points, points, **SUM)
    rows = plan(np.eye(3)[:, :, None] * np.ones(n), normals)  # flows of constant q along x, y and z, (3, 3, N)
    i, j, k = np.indices((n, 3, 3))
    blocks = sparse.csr_array((-rows.transpose(2, 1, 0).ravel(), ((j * n + i).ravel(), (k * n + i).ravel())))
    layer = plan.operator(normals, correction=blocks)
    # Flow of one point force at all points: a matrix of three columns, times the integral of the density.
    force = parki.ewald.plan("stokes_sl", points, np.zeros((3, 1)), **SUM).operator() @ np.eye(3)

    def flow(q):
        return layer @ q + force @ (q.reshape(3, n) @ area)

    steps, still = [], np.repeat([1.0, 0.0, 0.0], n)
    whole = LinearOperator(layer.shape, matvec=flow, dtype=float)
    q, failed = gmres(whole, still, rtol=1e-8, callback=steps.append, callback_type="pr_norm")
    assert not failed
    return q.reshape(3, n), q.reshape(3, n) @ area, len(steps)


def draw(file, points, normals, q, f, pixels):
    """Draw streamlines past the spheroid in its frame, and the density on it."""
    from matplotlib.figure import Figure

    x, y = np.linspace(-4, 4, 2 * pixels), np.linspace(-2.5, 2.5, pixels)
    at = np.stack(np.meshgrid(x, y, [0.0])).reshape(3, -1)
    # Close to the surface, subtract the density of the nearest point, which gives no flow.
    near = q[:, KDTree(points.T).query(at.T)[1]]
    rows = np.eye(3)[:, :, None] * np.ones(points.shape[1])
    of_q, *of_rows = parki.ewald.stokes_dl(at, points, np.stack([q, *rows]), normals, **SUM)
    u = of_q - np.einsum("kdi,ki->di", of_rows, near)
    u += parki.ewald.stokes_sl(at, np.zeros((3, 1)), f[:, None], **SUM)
    u[:, (at[0] / LONG) ** 2 + (at[1] / SHORT) ** 2 < 1] = np.nan
    u = np.array([[1.0], [0.0], [0.0]]) - u
    u = u.reshape(3, pixels, 2 * pixels)
    figure = Figure(figsize=(10.5, 6.2), layout="constrained")
    panel = figure.subplots()
    image = panel.pcolormesh(x, y, np.hypot(u[0], u[1]), cmap="viridis", vmin=0, vmax=1)
    panel.streamplot(x, y, u[0], u[1], density=1.5, color="white", linewidth=0.7, arrowsize=0.8)
    front = points[2] >= 0
    body = panel.tripcolor(*points[:2, front], q[0, front], cmap="magma", shading="gouraud", zorder=3)
    panel.scatter(*points[:2, front], color="black", s=2, zorder=4)
    figure.colorbar(image, ax=panel, pad=0.01, label="speed past the spheroid (U)")
    figure.colorbar(body, ax=panel, pad=0.01, label="density of the double layer, along x (U)")
    panel.set(
        xlim=(-4, 4), ylim=(-2.5, 2.5), aspect="equal", xlabel="x (short half axes)", ylabel="y (short half axes)"
    )
    panel.set_title(f"Stokes flow past a spheroid, and the double layer on its {points.shape[1]} points")
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Drag of a spheroid by GMRES.")
    parser.add_argument("--small", action="store_true", help="few points")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    for rings in (6, 18) if asked.small else (6, 12, 18, 24):
        points, normals = spheroid(rings)
        q, f, steps = drag(points, normals)
        found = 8 * np.pi * f[0] / oberbeck()
        print(f"{points.shape[1]:5} points, {steps:2} steps: drag {found:.9f} of the exact one, error {found - 1:.1e}")
    assert abs(found - 1) < 1e-7
    assert np.abs(f[1:]).max() < 1e-6 * f[0]
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, points, normals, q, f, 40 if asked.small else 160)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
