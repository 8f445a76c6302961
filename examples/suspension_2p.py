"""Spheres in shear: a moving boundary integral in 2P
==================================================

A layer of rigid spheres, free of force and torque, is carried and turned by a shear flow.

:Shows: `parki.ewald` with two periodic directions, ``plan.move``, and ``plan.operator()`` with a dense correction.
:Run: ``python examples/suspension_2p.py -o suspension_2p.png`` (``--small``: few points, spheres and steps)
:Expect: A sphere in a square sheet has Einstein's stresslet (20/3)πμa³E over 1 + (5/4) Σ₃ s³ − 3 Σ₅ s⁵, right to the
    tenth power of s = a/L, where Σₖ sums 1/rᵏ over the other sites.  Its turn Ω is also less than γ/2.

A double layer of density q disturbs the flow γ z along x, so that surfaces move rigidly (Kim and Karrila 1991)::

    γ z + Σ K q = U + Ω × x,   K q = −6 r (r·q)(r·n)/r⁵,   U + Ω × x = 4π P q

Outside, the rigid part P q of a density gives no flow, so it can represent the motion.  A double layer has neither
force nor torque; its stresslet is S = 8πμ ∫ (q n + n q) dA.  A sphere's layer on itself is singular: polar coordinates
about each point remove the singularity, and one matrix corrects the sum for all spheres at all times.  Other spheres
act by their points alone: velocities and turns of two spheres of 8 rings are right to 2e-4 at a gap of 0.6 a, but to
2 % at 0.3 a.
"""

import argparse
import importlib.util
import inspect
import time
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres
from scipy.spatial import KDTree

import parki

BOX = {"box": (1, 1, 1.6), "periodicity": 2}  # L = 1, and the shear rate γ = 1
MIDDLE, PERIODS = 0.8, (1, 1, 9)  # 9: effectively not periodic along z
LATTICE = 9.0336216831509, 5.0902582336557  # Σ₃ and Σ₅ of the square lattice


class Sphere:
    """Points in rings, and the layer's correction on the sphere itself."""

    def __init__(self, radius, rings):
        cosines, weights = np.polynomial.legendre.leggauss(rings)
        self.outward, weights = around(cosines, rings), np.repeat(weights, 2 * rings) * np.pi / rings
        self.radius, self.points, self.area = radius, radius * self.outward, radius**2 * weights
        self.normals, self.whole = self.outward * self.area, 4 * np.pi * radius**2
        self.own = correction(self.outward, weights, rings)

    def at(self, centres):
        """Return the points (3, N · n) of spheres."""
        return (centres[:, :, None] + self.points[:, None]).reshape(3, -1)

    def moments(self, q):
        """Return the rigid velocities and turns (3, N) of densities (3, N, n), and stresslets (N,) over Einstein's."""
        turns = 1.5 / self.radius * np.cross(self.outward[:, None], q, axis=0)
        stresslets = (q[0] @ self.normals[2] + q[2] @ self.normals[0]) / (5 / 12 * self.radius**3)
        return q @ self.area / self.whole, turns @ self.area / self.whole, stresslets


def around(cosines, rings):
    """Return points (3, N) of the unit sphere, 2 · rings for each cosine."""
    z, t = np.repeat(cosines, 2 * rings), np.tile(np.pi * np.arange(2 * rings) / rings, len(cosines))
    return np.stack([np.sqrt(1 - z**2) * np.cos(t), np.sqrt(1 - z**2) * np.sin(t), z])


def correction(outward, weights, rings):
    """Return the outer limit of a sphere's layer on itself less the sum over its points, (3, n, 3, n)."""
    n, polar = len(weights), np.polynomial.legendre.leggauss(rings + 6)
    theta, orders = np.pi / 2 * (1 + polar[0]), np.arange(rings)
    nodes, pole = around(np.cos(theta), rings), np.array([0.0, 0.0, 1.0])
    areas = np.repeat(polar[1] * np.sin(theta), 2 * rings) * np.pi**2 / 2 / rings

    def layer(r):  # on a sphere r·n = −r²/2a
        distance = np.linalg.norm(r, axis=0)
        return 3 * r[:, None] * r / np.where(distance > 0, distance, np.inf) ** 3

    result, near = np.empty((3, n, 3, n)), layer(pole[:, None] - nodes) * areas
    for i, x in enumerate(outward.T):
        mirror = np.eye(3) - 2 * np.outer(pole - x, pole - x) / np.sum((pole - x) ** 2)  # maps the pole to x
        basis = np.polynomial.legendre.legval((mirror @ nodes).T @ outward, (2 * orders + 1) / (4 * np.pi)) * weights
        result[:, i] = np.einsum("ac,cdm,db->abm", mirror, near, mirror) @ basis - layer(x[:, None] - outward) * weights
        result[:, i, :, i] -= 4 * np.pi * np.eye(3)
    return result


def plan_of(points, tolerance):
    """Plan the double layer of spheres' points."""
    return parki.ewald.plan("stokes_dl", points, points, tolerance=tolerance, **BOX)


def velocities(centres, sphere, plan, guess=None, residual=1e-5):
    """Return velocities and turns (3, N), densities (3, N, n) and the number of steps of GMRES."""
    points, shape, steps = sphere.at(centres), (*centres.shape, len(sphere.area)), []
    plan.move(points)

    def own(flat):
        return np.tensordot(sphere.own, flat.reshape(shape), ([2, 3], [0, 2])).transpose(0, 2, 1).ravel()

    def equation(flat):
        u, turns, _ = sphere.moments(flat.reshape(shape))
        rigid = u[:, :, None] + np.cross(turns[:, :, None], sphere.points[:, None], axis=0)
        return 4 * np.pi * rigid.ravel() - layer @ flat

    on_itself, system = (LinearOperator((points.size,) * 2, of, dtype=float) for of in (own, equation))
    layer = plan.operator(np.tile(sphere.normals, shape[1]), correction=on_itself)
    shear = np.stack([points[2] - MIDDLE, 0 * points[2], 0 * points[2]]).ravel()
    q, failed = gmres(system, shear, guess, rtol=residual, callback=steps.append, callback_type="pr_norm")
    assert not failed
    u, turns, _ = sphere.moments(q.reshape(shape))
    return 4 * np.pi * u, 4 * np.pi * turns, q.reshape(shape), len(steps)


def lines(function):
    """Count the lines of a function, without its docstring, comments and blank lines."""
    source = map(str.strip, inspect.getsource(function).splitlines())
    return sum(bool(line) and not line.startswith(("#", '"""')) for line in source)


def nearest(at, points, count=1):
    """Return distances and indices of the nearest points, images among them."""
    return KDTree(points.T % PERIODS, boxsize=PERIODS).query(at.T % PERIODS, count)


def move(centres, sphere, steps, step):
    """Return places by the midpoint rule, records of mean turns, stresslets, times, GMRES's steps, and densities."""
    plan, guess, path, record = plan_of(sphere.at(centres), 1e-6), None, [centres], []
    for _ in range(steps):
        start = time.perf_counter()
        u, turns, q, first = velocities(path[-1], sphere, plan, guess)
        u, _, middle, second = velocities(path[-1] + step / 2 * u, sphere, plan, q.ravel())
        path.append(path[-1] + step * u)
        record.append((2 * turns[1].mean(), sphere.moments(q)[2].mean(), time.perf_counter() - start, first, second))
        guess = (2 * middle - q).ravel()
    return np.array(path), np.array(record).T, velocities(path[-1], sphere, plan, guess)[2]


def draw(file, path, sphere, q, pixels):
    """Draw the flow in a plane through a sphere, and the paths of the centres."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    centres, points, normals = path[-1], sphere.at(path[-1]), np.tile(sphere.normals, path.shape[2])
    x, z = (np.arange(pixels) + 0.5) / pixels, np.linspace(-0.6, 0.6, pixels)
    at = np.stack([a.ravel() for a in np.meshgrid(x, centres[1, :1], z + MIDDLE, indexing="ij")])
    # Close to a surface, subtract the density of the nearest point, which gives no flow.
    columns = np.concatenate([q.reshape(1, 3, -1), np.eye(3)[:, :, None] * np.ones(points.shape[1])])
    of_q, *of_rows = parki.ewald.stokes_dl(at, points, columns, normals, tolerance=1e-5, **BOX)
    u = of_q - np.einsum("kdi,ki->di", of_rows, q.reshape(3, -1)[:, nearest(at, points)[1]])
    u = np.tile(u.reshape(3, pixels, pixels), (1, 2, 1)).transpose(0, 2, 1)
    x, most = np.concatenate([x, x + 1]), np.percentile(np.abs(u[0]), 98)
    panel = Figure(figsize=(9.0, 5.6), layout="constrained").subplots()
    image = panel.pcolormesh(x, z, u[0], cmap="RdBu_r", vmin=-most, vmax=most, shading="gouraud")
    panel.streamplot(x, z, u[0] + z[:, None], u[2], density=1.6, color="#555555", linewidth=0.6, arrowsize=0.7)
    cuts = sphere.radius**2 - ((centres[1] - centres[1, 0] + 0.5) % 1 - 0.5) ** 2
    for shift in (-1, 0, 1, 2):
        panel.plot(path[:, 0] % 1 + shift, path[:, 2] - MIDDLE, ".", color="black", markersize=2)
        for (a, _, b), cut in zip(centres.T, cuts, strict=True):
            panel.add_patch(Circle((a % 1 + shift, b - MIDDLE), max(cut, 0) ** 0.5, fc="#e0a030", ec="black", zorder=3))
    panel.figure.colorbar(image, ax=panel, pad=0.01, label="velocity along x less the shear (γL)")
    title = f"{len(cuts)} spheres in shear: a slice of the flow, and the paths of all centres"
    panel.set(xlim=(x[0], x[-1]), ylim=(-0.6, 0.6), aspect="equal", xlabel="x / L", ylabel="z / L", title=title)
    panel.figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Force-free spheres in a doubly periodic layer in shear, by GMRES.")
    parser.add_argument("--small", action="store_true", help="few points, spheres and steps")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    rings, centre = 6 if asked.small else 8, np.array([[0.5], [0.5], [MIDDLE]])
    for s in (0.2, 0.1, 0.05):
        alone, series = Sphere(s, rings), 1 / (1 + 1.25 * LATTICE[0] * s**3 - 3 * LATTICE[1] * s**5)
        _, turns, q, _ = velocities(centre, alone, plan_of(alone.at(centre), 1e-9), residual=1e-9)
        turn, stresslet = 2 * turns[1, 0], alone.moments(q)[2][0]
        a, b = turn / (1 - 1.25 * LATTICE[0] * s**3 * series), stresslet / series
        print(f"a/L = {s:g}: turn {turn:.6f}, {a:.9f} of the series; stresslet {stresslet:.6f}, {b:.9f} of the series")
    assert max(abs(a - 1), abs(b - 1)) < 1e-8

    sphere, rows, steps = Sphere(0.12, rings), 1 if asked.small else 2, 3 if asked.small else 20
    i, j, k = np.indices((rows, 2, 2)).reshape(3, -1)
    centres = np.stack([i / rows, j / 2 + k / 4, MIDDLE - 0.16 + 0.32 * k])
    centres += np.random.default_rng(3).uniform(-0.08, 0.08, centres.shape)
    path, record, q = move(centres, sphere, steps, 0.1)
    gap = min(nearest(x, x, 2)[0][:, 1].min() for x in path) / sphere.radius - 2
    assert gap > 0.5
    (turn, stresslet), took = record[:2].mean(axis=1), 1e3 * np.median(record[2])
    print(f"{len(i)} spheres: one step takes {took:.0f} ms, velocities in {lines(velocities)} lines")
    print(f"{record[3, 0]:.0f} steps of GMRES at first, {np.median(record[3:, 1:]):.0f} later; least gap {gap:.2f} a")
    lag = len(i) * 10 * np.pi / 3 * sphere.radius**3 * stresslet
    print(f"means: turn {turn:.3f} of γ/2, stresslet {stresslet:.3f} of Einstein's; liquid above lags by {lag:.4f} γL")
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, path, sphere, q, 40 if asked.small else 100)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
