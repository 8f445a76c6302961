"""Viscosity of arrays of spheres
==============================

Rigid spheres on cubic lattices make a liquid more viscous, by how much depends on the direction of the strain.

:Shows: The stress of a suspension by point forces inside spheres, unknowns by symmetry, triclinic cells.
:Run: ``python examples/viscosity_of_arrays.py -o viscosity_of_arrays.png`` (``--small``: φ = 0.01 alone)
:Expect: At a volume fraction of 0.01 the series of dilute lattices (Zuzovsky, Adler and Brenner, Phys. Fluids 26
   (1983) 1714) to 1e-5. A third fewer unknowns change α and β of φ ≤ 0.3 by 1e-4 at most.

A liquid with the mean rate of strain E flows around spheres of radius 1. Point forces on a smaller sphere inside add
the periodic flow u = Σ (f/r + r (r·f)/r³), and are found by least squares from E·x + u = 0 at points of the surface.
By symmetry a sphere neither moves nor turns, is free of force and torque, and one octant has the rest's forces. They
add S/V to the mean stress, S = −8πμ Σ (y f + f y)/2. The tensor of viscosities has two numbers: μ (1 + α) is for
strains along the edges of the cube, E = diag(1, −½, −½), and μ (1 + β) for shear in its faces. Both are Einstein's
1 + 5φ/2 for small volume fractions φ, and the series follows from the flow of one sphere and two sums over a lattice.
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np
from scipy.special import gamma, gammaincc

import parki

LATTICES = {  # vectors of a cell of unit volume
    "simple": np.eye(3),
    "body-centred": (np.ones((3, 3)) - 2 * np.eye(3)) / 2 ** (2 / 3),
    "face-centred": (np.ones((3, 3)) - np.eye(3)) / 2 ** (1 / 3),
}
#: Volume fraction: points of an octant, and the radius that they lie on.
POINTS = {0.01: (24, 0.4), 0.1: (40, 0.5), 0.2: (60, 0.6), 0.3: (90, 0.7), 0.4: (120, 0.8)}
SIGNS = 1 - 2 * np.indices((2, 2, 2)).reshape(3, 8)  # of the coordinates in all octants
#: Rates of strain, and the sign that each takes in a mirror image.
STRAINS = [(np.diag([1, -0.5, -0.5]), SIGNS[0] ** 2), (np.eye(3)[[1, 0, 2]] * [1, 1, 0], SIGNS[0] * SIGNS[1])]
AT_ONCE = 100  # right-hand sides of a call


def octant(n, radius):
    """Return some n points (3, m) of a sphere around zero with positive coordinates, from a spiral of 8n."""
    i = np.arange(8 * n) + 0.5
    z, turns = 1 - i / (4 * n), np.pi * (1 + np.sqrt(5)) * i
    x = radius * np.stack([np.sqrt(1 - z**2) * np.cos(turns), np.sqrt(1 - z**2) * np.sin(turns), z])
    return x[:, np.all(x > 0, axis=0)]


def images(y):
    """Return points or vectors (…, 3, 8m) in all octants, from (…, 3, m) in the first one."""
    return (SIGNS[:, :, None] * y[..., None, :]).reshape(*y.shape[:-1], -1)


def forces(cell, n, inside):
    """Return points (3, 8m), and forces over 8πμ (2, 3, 8m) by which both strains pass a sphere of radius 1."""
    x, y = octant(2 * n, 1.0), octant(n, inside)
    m = y.shape[1]
    plan = parki.ewald.plan("stokes_sl", x, images(y), box=cell, tolerance=1e-8, rhs=AT_ONCE)
    unit, both = images(np.eye(3 * m).reshape(3 * m, 3, m)), []
    for strain, sign in STRAINS:
        columns = [plan(unit[k : k + AT_ONCE] * np.repeat(sign, m)) for k in range(0, 3 * m, AT_ONCE)]
        matrix = np.concatenate(columns).reshape(3 * m, -1).T
        f = np.linalg.lstsq(matrix, -(strain @ x).ravel(), rcond=1e-11)[0]
        both.append(images(f.reshape(3, m)) * np.repeat(sign, m))
    return images(y), np.array(both)


def viscosities(cell, n, inside):
    """Return α and β (2,): the work of the stresslets in their strains, over the liquid's 2μ V E:E."""
    y, f = forces(cell, n, inside)
    strains = np.array([strain for strain, _ in STRAINS])
    work = -8 * np.pi * np.sum(f * (strains @ y), axis=(1, 2))
    return work / (2 * abs(np.linalg.det(cell)) * np.sum(strains**2, axis=(1, 2)))


def lattice_sum(cell, s):
    """Return Σ P(x)/|x|^2s with P = x⁴ + y⁴ + z⁴ − 3/5 |x|⁴ over a cell's lattice without zero, by theta functions.

    P is harmonic: Σ P exp(−πt|x|²) is t^(−11/2) times the sum with 1/t over the reciprocal lattice.
    """
    total = 0.0
    for vectors, power in ((cell, s), (np.linalg.inv(cell).T, 5.5 - s)):
        x = vectors.T @ np.delete(np.indices((11, 11, 11)).reshape(3, -1) - 5, 11**3 // 2, axis=1)
        t = np.pi * np.sum(x**2, axis=0)
        harmonic = np.sum(x**4, axis=0) - 0.6 * (t / np.pi) ** 2
        total += np.sum(harmonic * gammaincc(power, t) * gamma(power) / t**power)
    return total * np.pi**s / gamma(s)


def series(cell, fraction):
    """Return α and β (2,) of dilute lattices, up to φ^(7/3) in the denominators."""
    b = -25 / 240 * 3 / (4 * np.pi) * lattice_sum(cell, 3.5)
    a = 35 / 24 * (3 / (4 * np.pi)) ** (5 / 3) * lattice_sum(cell, 4.5)
    factors = np.array([[1 - 60 * b, -12 * a], [1 + 40 * b, 8 * a]])
    return 2.5 * fraction / (1 - factors @ [fraction, fraction ** (5 / 3)])


def draw(file, table, pixels):
    """Draw the viscosities of all lattices, and a strain passing a sphere of the simple one."""
    from matplotlib.figure import Figure

    side = (4 * np.pi / 3 / 0.1) ** (1 / 3)
    y, f = forces(side * np.eye(3), *POINTS[0.1])
    edges = np.linspace(-side / 2, side / 2, pixels)
    at = np.stack(np.meshgrid(edges, edges, [0.0])).reshape(3, -1)
    u = STRAINS[0][0] @ at + parki.ewald.stokes_sl(at, y, f[0], box=side * np.eye(3), tolerance=1e-6)
    u[:, np.linalg.norm(at, axis=0) < 1] = np.nan
    u = u.reshape(3, pixels, pixels)

    figure = Figure(figsize=(10.5, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    image = left.pcolormesh(edges, edges, np.linalg.norm(u, axis=0), cmap="viridis")
    left.streamplot(edges, edges, u[0], u[1], color="white", density=1.2, linewidth=0.7, arrowsize=0.8)
    left.set(aspect="equal", xlabel="x / radius", ylabel="y / radius", title="a strain along an edge: speed, φ = 0.1")
    figure.colorbar(image, ax=left)
    dilute = np.linspace(0, 0.4, 100)
    right.plot(dilute, 1 + 2.5 * dilute, "k", lw=1, label="1 + 5φ/2")
    for color, (name, values) in zip(("C0", "C1", "C2"), table.items(), strict=True):
        lines = np.array([series(LATTICES[name], fraction) for fraction in dilute])
        for k, (marker, strain) in enumerate((("o", "edges"), ("s", "faces"))):
            right.plot(dilute, 1 + lines[:, k], color=color, ls=("-", "--")[k], lw=0.8)
            points = [1 + value[k] for value in values.values()]
            right.plot(list(values), points, marker, color=color, mfc="none", label=f"{name}, {strain}")
    right.set(xlabel="volume fraction", ylabel="viscosity over the liquid's", title="lattices: points, series: lines")
    right.set(yscale="log", ylim=(0.9, 9), yticks=[1, 2, 3, 5, 8], yticklabels=[1, 2, 3, 5, 8])
    right.minorticks_off()
    right.legend(fontsize="small")
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Viscosity of arrays of spheres.")
    parser.add_argument("--small", action="store_true", help="φ = 0.01 alone")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    table, off = {name: {} for name in LATTICES}, {}
    for fraction in list(POINTS)[: 1 if asked.small else None]:
        n, inside = POINTS[fraction]
        for name, vectors in LATTICES.items():
            cell = vectors * (4 * np.pi / 3 / fraction) ** (1 / 3)
            table[name][fraction] = values = viscosities(cell, n, inside)
            off[name, fraction] = np.abs(series(vectors, fraction) / values - 1).max()
            text = f"φ = {fraction:4.2f}, {name:12}: 1 + α = {1 + values[0]:.5f}, 1 + β = {1 + values[1]:.5f}"
            if fraction > 0.1:
                fewer = np.abs(viscosities(cell, 2 * n // 3, inside) / values - 1).max()
                print(f"{text}, with a third fewer points {fewer:.0e} away")
            else:
                print(f"{text}, the series {off[name, fraction]:.0e} away")
    last = max(off[name, 0.01] for name in LATTICES)
    print(f"series over computed: {last:.1e} from 1 at most, where φ = 0.01")
    assert last < 1e-5
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, table, 60 if asked.small else 200)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
