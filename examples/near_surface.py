"""Near a surface: singular sums of the fifth order
================================================

The potential of a charged ellipsoid on its surface and close to it, with corrections of near pairs in a sparse matrix.

:Shows: ``near_pairs`` of a ``parki.fmm.plan``, its operator with a correction, and the order of convergence of both.
:Run: ``python examples/near_surface.py -o near_surface.png`` (``--small``: few points)
:Expect: The plain sum converges with the first order of the points' spacing h, the corrected one with the fifth, on the
   surface and off it.

A conductor with semiaxes a, b, c and charge 1 has the potential R_F(a² + λ, b² + λ, c² + λ), an integral of Carlson.
Inside λ is 0; outside the ellipsoid of semiaxes √(a² + λ), √(b² + λ), √(c² + λ) contains the point.

A plan leaves out r = 0 and sums 1/r itself.  The correction replaces near terms by smooth ones, erf(r/δ)/r, whose sums
have small errors if δ exceeds h.  At a distance d = sδ from the surface the error of the smoothing is::

    c₁ δ I₀(s) + c₃ δ³ I₂(s) + O(δ⁵),   I₀ = exp(−s²)/√π − s erfc s,
                                        I₂ = (2/3) ((1/2 − s²) exp(−s²)/√π + s³ erfc s)

with unknown c₁ and c₃.  A weighted sum over three δ removes both (Beale and Tlupova 2024).  The weights depend on d
only, so one sparse matrix has all corrections: −Σ w_k erfc(r/δ_k)/r, or Σ w_k 2/(√π δ_k) at r = 0.
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np
from scipy.special import elliprf, erfc

import parki

AXES = np.array([[1.0], [0.9], [0.8]])
RATIOS = np.array([1.5, 2.0, 2.5])  # δ / h; the error of the sum, exp(−π² δ²/h²), needs a large δ
REACH = 4.0  # reach of the correction in units of the largest δ: erfc(4) is 1.5e-8
DISTANCES = np.array([-2.0, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0])  # distances of targets from the surface over h
TOLERANCE = 1e-9


def ellipsoid(cosines, angles):
    """Return points (3, N) and outward unit normals, from cosines and angles of points on the unit sphere."""
    ring = np.sqrt(1 - cosines**2)
    unit = np.stack([ring * np.cos(angles), ring * np.sin(angles), cosines])
    return AXES * unit, unit / AXES / np.linalg.norm(unit / AXES, axis=0)


def surface(rings):
    """Return points (3, N), normals and charges of the conductor, which are areas on the unit sphere over 4π."""
    cosines, weights = np.polynomial.legendre.leggauss(rings)
    angles = np.tile(np.arange(2 * rings) * np.pi / rings, rings)
    return *ellipsoid(np.repeat(cosines, 2 * rings), angles), np.repeat(weights, 2 * rings) / (4 * rings)


def exact(x):
    """Return the potential (M,) of the conductor; Newton's method finds λ from below."""
    level = np.zeros(x.shape[1])
    for _ in range(40):
        part = x**2 / (AXES**2 + level)
        level = np.maximum(level + (part.sum(axis=0) - 1) / (part / (AXES**2 + level)).sum(axis=0), 0)
    return elliprf(*(AXES**2 + level))


def blend(distances, deltas):
    """Return weights (M, 3) of the three sums, which cancel the errors of smoothing up to the third order."""
    s = np.minimum(np.abs(distances), 4 * deltas[0])[:, None] / deltas  # farther off the error vanishes
    bell = np.exp(-(s**2)) / np.sqrt(np.pi)
    first = RATIOS * (bell - s * erfc(s))
    third = RATIOS**3 * ((0.5 - s**2) * bell + s**3 * erfc(s))
    rows = np.stack([np.ones_like(s), first / first[:, -1:], third / third[:, -1:]], axis=1)
    return np.linalg.solve(rows, np.tile([[1.0], [0.0], [0.0]], (len(s), 1, 1)))[..., 0]


def potentials(x, distances, rings):
    """Return plain and corrected potentials (M,) at targets with given distances from the surface."""
    y, _, charges = surface(rings)
    deltas = RATIOS * np.pi / rings
    plan = parki.fmm.plan("laplace", x, y, tolerance=TOLERANCE)
    near = plan.near_pairs(REACH * deltas[-1])
    r, weights = near.data, np.repeat(blend(distances, deltas), np.diff(near.indptr), axis=0)
    own = weights @ (2 / np.sqrt(np.pi) / deltas)
    smoothed = sum(w * erfc(r / delta) for w, delta in zip(weights.T, deltas, strict=True))
    near.data = np.divide(-smoothed, r, out=own, where=r > 0)
    return plan(charges), plan.operator(correction=near) @ charges


def errors(rings):
    """Return RMS errors relative to the potential: on the surface plain and corrected, near it plain and corrected."""
    y, outward, _ = surface(rings)
    steps = np.repeat(DISTANCES * np.pi / rings, len(y[0, ::11]))
    some = [np.tile(a[:, ::11], len(DISTANCES)) for a in (y, outward)]
    x, distances = np.hstack([y, some[0] + steps * some[1]]), np.concatenate([np.zeros(y.shape[1]), steps])
    off = (np.array(potentials(x, distances, rings)) - exact(x)) / elliprf(*AXES**2)
    parts = off[:, : y.shape[1]], off[:, y.shape[1] :]
    return np.array([np.sqrt(np.mean(row**2)) for part in parts for row in part])


def draw(file, rings, found, pixels):
    """Draw errors of both sums in a quarter of a plane through the centre, and the convergence."""
    from matplotlib.figure import Figure

    distances = np.linspace(-0.3, 0.3, pixels)
    on, outward = ellipsoid(np.cos(np.linspace(0, np.pi / 2, 2 * pixels)), np.zeros(2 * pixels))
    x = on[:, None] + outward[:, None] * distances[:, None]
    sums = potentials(x.reshape(3, -1), np.repeat(distances, 2 * pixels), rings)
    figure = Figure(figsize=(10, 8.4), layout="constrained")
    panels = figure.subplot_mosaic("AB;CC")
    for name, u, title in zip("AB", sums, ("plain sum", "corrected"), strict=True):
        off = np.abs(u / exact(x.reshape(3, -1)) - 1).reshape(x.shape[1:])
        image = panels[name].pcolormesh(
            x[0], x[2], np.log10(off + 1e-16), vmin=-8, vmax=0, cmap="viridis", shading="gouraud"
        )
        panels[name].plot(on[0], on[2], color="white", linewidth=0.8)
        panels[name].set(aspect="equal", xlabel="x", ylabel="z", title=f"y = 0, {2 * rings**2} points: {title}")
    figure.colorbar(image, ax=panels["B"], label="log₁₀ of the relative error")
    h = np.pi / np.array(list(found))
    for k, label in enumerate(("on the surface, plain", "on it, corrected", "near it, plain", "near it, corrected")):
        colour, line = ("#c8552b", "#123c69")[k % 2], ("o-", "s--")[k // 2]
        panels["C"].loglog(h, [row[k] for row in found.values()], line, color=colour, label=label)
    for order, k in ((1, 0), (5, 1)):
        guide = 2 * found[rings][k] * (h * rings / np.pi) ** order
        panels["C"].loglog(h, guide, ":", color="black", linewidth=1, label=f"slope {order}")
    panels["C"].set(xlabel="spacing h", ylabel="relative RMS error", title="Convergence")
    panels["C"].grid(alpha=0.3)
    panels["C"].legend(ncols=2)
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Singular sums on and near a surface, corrected to the fifth order.")
    parser.add_argument("--small", action="store_true", help="few points")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    grids = (12, 16, 24) if asked.small else (12, 16, 24, 32, 48)
    print("points      h  on it: plain  corrected  near: plain  corrected")
    found = {}
    for rings in grids:
        found[rings] = errors(rings)
        row = "  ".join(f"{error:9.1e}" for error in found[rings])
        print(f"{2 * rings**2:6} {np.pi / rings:6.3f}  {row}")
    order = np.log(found[grids[-2]] / found[grids[-1]]) / np.log(grids[-1] / grids[-2])
    print(f"orders on the surface: plain {order[0]:.3f}, corrected {order[1]:.3f}")
    print(f"orders near it: plain {order[2]:.3f}, corrected {order[3]:.3f}")
    assert np.all(np.abs(order[::2] - 1) < 0.1)
    assert np.all(order[1::2] > 4.7)
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, 24, found, 40 if asked.small else 80)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
